"""Sparse proximal planes by alternating regression."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg

from .base import Array, PlaneFit, PlanePairClassifier, flat_plane, moment_factor, shorten
from .gepsvm import ridge_plane
from .lasso import lasso


@dataclass(eq=False, repr=False)
class SparsePSVM(PlanePairClassifier):
    r"""Sparse proximal support vector machine. A reconstruction.

    The plane of `GEPSVM` maximises :math:`z^T H z / z^T (G + \delta I) z`. Written as a regression,
    in the manner of sparse principal components, with :math:`\tilde H = [B\ e] / \sqrt{n_B}` and
    :math:`G + \delta I = R^T R`, it is sought as

    .. math:: \min_{\|a\| = 1,\ \beta}\ \|\tilde H R^{-1} - \tilde H \beta a^T\|_F^2
              + \lambda_2\, \beta^T (G + \delta I) \beta + \lambda_1 \|w\|_1 ,
              \qquad \beta = [w; b] .

    For fixed a this is an elastic net with the target :math:`\tilde H R^{-1} a`; for fixed
    :math:`\beta` the best a is :math:`R^{-T} H \beta`, normalised. The two steps alternate, and
    neither raises the objective, given less its constant. For the second plane the classes change
    roles. Among thousands of independent noise features one always spreads the other class.

    The original's text was not at hand; the problem and the alternation are known from later
    descriptions. Chosen here: a bias free of the l1 term; the start at the plane of GEPSVM; the
    unit of :math:`\lambda_1`, at which the first elastic net would have w = 0, and that of
    :math:`\lambda_2`, the largest quotient; half the weight where a plane loses every feature.

    Parameters
    ----------
    l1, l2, delta : float, default=0.5, 1.0 and 1.0
        :math:`\lambda_1` in (0, 1], larger being sparser, and :math:`\lambda_2 > 0`, in the units
        above (far below 1 it lets the regression fit the other class alone), and the ridge.
    %(steps)s
    %(planes)s

    References
    ----------
    V. Pappu et al., "Sparse proximal support vector machines for feature selection in high
    dimensional datasets", Expert Systems with Applications (2015).

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import SparsePSVM
    >>> data = make_planted(200, 50, 3, effect=3.0)
    >>> bool(SparsePSVM(n_features=3).fit(data.X, data.y).support_[data.support].all())
    True
    """

    l1: float = 0.5
    _: KW_ONLY
    l2: float = 1.0
    delta: float = 1.0
    tol: float = 1e-6
    max_iter: int = 1000
    _rules: ClassVar = {"l1": {"above": 0, "most": 1}}

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        # The m x m factor R never appears: with v = R^-1 a the set ||a|| = 1 reads
        # v'(G + delta I)v = 1, the regression's target is H v, and the step for a gives a v
        # proportional to (G + delta I)^-1 H beta. Of it only S = Be (G + delta I)^-1 Be' is used.
        start = ridge_plane(A, B, self.delta)
        Ae, Be = shorten(moment_factor(A)), shorten(moment_factor(B))
        across, kernel = Ae @ Be.T, Ae @ Ae.T + self.delta * np.eye(len(Ae))
        S = Be @ Be.T - across.T @ linalg.solve(kernel, across, assume_a="pos")
        l2 = self.l2 / start.objective
        F, ridge = np.vstack([Be, np.sqrt(l2) * Ae]), l2 * self.delta
        target, column = Be.T @ (Be @ start.z), F.T @ F[:, -1]
        bias = target[-1] / (column[-1] + ridge)  # of the first elastic net with w = 0
        l1 = self.l1 * 2.0 * float(np.abs(target - bias * column)[:-1].max())
        # As l1 falls the iteration tends to stay at its start. Where the class means coincide
        # that may be w = 0 up to rounding, and a smaller l1 would only let the rounding in.
        for halving in range(30):
            plane = self._alternate(Be, S / self.delta, F, ridge, target, 0.5**halving * l1)
            if plane is not None:
                return plane
        return PlaneFit(flat_plane(A.shape[1]), [np.nan])

    def _alternate(
        self, Be: Array, S: Array, F: Array, ridge: float, target: Array, l1: float
    ) -> PlaneFit | None:
        """Alternate from a target on; None if the iteration loses every feature."""
        beta, score = np.zeros(len(target)), np.zeros(len(target))
        history, converged, solved = [np.inf], False, True
        while solved and not converged and len(history) <= self.max_iter:
            beta, score, solved = lasso(F, ridge, target, l1, beta)
            if not beta[:-1].any():
                return None
            image = Be @ beta
            direction = S @ image
            length = float(np.sqrt(image @ direction))  # v'H beta of the best v
            target = (direction / length) @ Be
            smooth = float(np.square(F @ beta).sum() + ridge * (beta @ beta))
            history.append(smooth - 2.0 * length + l1 * float(np.abs(beta[:-1]).sum()))
            converged = solved and history[-2] - history[-1] <= self.tol * abs(history[-1])
        return PlaneFit(beta, history[1:], np.abs(score[:-1]), len(history) - 1, converged)

    def _refit_plane(self, A: Array, B: Array) -> PlaneFit:
        return ridge_plane(A, B, self.delta)
