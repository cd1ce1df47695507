"""Sparse proximal planes by alternating regression."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg

from .base import Array, PlaneFit, PlanePairClassifier, flat_plane, moment_factor, shorten
from .gepsvm import ridge_plane
from .lasso import lasso


class Alternation:
    """The two steps of :class:`SparsePSVM`'s problem, for one plane.

    The m x m factor R never appears: with ``v = R^-1 a`` the set ``||a|| = 1`` reads
    ``v'(G + delta I)v = 1``, the regression's target is ``H v``, and the step for a gives a v
    proportional to ``(G + delta I)^-1 H beta``. Of it only ``S = Be (G + delta I)^-1 Be'`` is used.
    The elastic net's matrix is ``F'F + ridge I``.
    """

    def __init__(self, A: Array, B: Array, delta: float, l2: float) -> None:
        Ae, Be = shorten(moment_factor(A)), shorten(moment_factor(B))
        across = Ae @ Be.T
        solved = linalg.solve(Ae @ Ae.T + delta * np.eye(len(Ae)), across, assume_a="pos")
        self.Be, self.S = Be, (Be @ Be.T - across.T @ solved) / delta
        self.F, self.ridge = np.vstack([Be, np.sqrt(l2) * Ae]), l2 * delta

    def largest_l1(self, target: Array) -> float:
        """Return the l1 weight from which on the elastic net for a target has w = 0."""
        column = self.F.T @ self.F[:, -1]
        bias = target[-1] / (column[-1] + self.ridge)
        return 2.0 * float(np.abs(target[:-1] - bias * column[:-1]).max())

    def run(self, target: Array, l1: float, tol: float, max_iter: int) -> PlaneFit | None:
        """Alternate from a target on; None if the iteration loses every feature."""
        beta, score = np.zeros(len(target)), np.zeros(len(target))
        history, converged, solved = [np.inf], False, True
        while solved and not converged and len(history) <= max_iter:
            beta, score, solved = lasso(self.F, self.ridge, target, l1, beta)
            if not beta[:-1].any():
                return None
            image = self.Be @ beta
            direction = self.S @ image
            length = float(np.sqrt(image @ direction))  # v'H beta of the best v
            target = (direction / length) @ self.Be
            smooth = float(np.square(self.F @ beta).sum() + self.ridge * (beta @ beta))
            history.append(smooth - 2.0 * length + l1 * float(np.abs(beta[:-1]).sum()))
            converged = solved and history[-2] - history[-1] <= tol * abs(history[-1])
        return PlaneFit(beta, history[1:], np.abs(score[:-1]), len(history) - 1, converged)


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
    roles. The quotient rewards a direction in which the other class spreads, whatever the means do,
    and among thousands of independent noise features there always is one.

    The original's text was not at hand; the problem and the alternation are known from later
    descriptions. Chosen here: means per class; a bias free of the l1 term; the start at the plane
    of GEPSVM; the unit of :math:`\lambda_1`, the weight at which the first elastic net would have
    w = 0, and that of :math:`\lambda_2`, the largest quotient. A plane that loses every feature on
    the way is sought again with half the weight.

    Parameters
    ----------
    l1, l2 : float, default=0.5 and 1.0
        :math:`\lambda_1` in (0, 1], larger being sparser, and :math:`\lambda_2 > 0`, in the units
        above. Far below 1 an l2 lets the regression fit the other class alone.
    delta : float, default=1.0
        Ridge of the underlying quotient, > 0.
    %(steps)s
    %(planes)s

    References
    ----------
    V. Pappu, O. P. Panagopoulos, P. Xanthopoulos and P. M. Pardalos, "Sparse proximal support
    vector machines for feature selection in high dimensional datasets", Expert Systems with
    Applications (2015).

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
        start = ridge_plane(A, B, self.delta)
        steps = Alternation(A, B, self.delta, self.l2 / start.objective)
        target = steps.Be.T @ (steps.Be @ start.z)
        l1 = self.l1 * steps.largest_l1(target)
        # As l1 falls the iteration tends to stay at its start. Where the class means coincide
        # that may be w = 0 up to rounding, and a smaller l1 would only let the rounding in.
        for halving in range(30):
            plane = steps.run(target, 0.5**halving * l1, self.tol, self.max_iter)
            if plane is not None:
                return plane
        return PlaneFit(flat_plane(A.shape[1]), [np.nan])

    def _refit_plane(self, A: Array, B: Array) -> PlaneFit:
        return ridge_plane(A, B, self.delta)
