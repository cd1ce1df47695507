"""Features ranked by their loadings in the generalized SVD of two classes, or of several."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr

from .._typing import BoolArray
from ..linalg import gsvd, hogsvd
from .base import Array, ClassBlocks, PanelMethod, moment_factor, order_features, row_space


@dataclass(eq=False, repr=False)
class GSVDSelector(PanelMethod):
    r"""Select features by their loadings in the generalized SVD of the two classes.

    The standardised blocks of the two classes are decomposed with one right factor, of unit
    columns, for both,

    .. math:: [A\ e]/\sqrt{n_A} = U \,\mathrm{diag}(s_1)\, X^T, \qquad
              [B\ e]/\sqrt{n_B} = V \,\mathrm{diag}(s_2)\, X^T .

    A component k has an angular distance, 0 where it is shared evenly and :math:`\pm\pi/4` where it
    is exclusive to a class, and a significance in each class i,

    .. math:: \theta_k = \arctan(s_{1k} / s_{2k}) - \pi/4 , \qquad
              p_{ik} = s_{ik}^2 / \textstyle\sum_l s_{il}^2 .

    Those with :math:`|\theta_k| \ge` ``threshold`` are kept (at least the most exclusive one), and
    features ranked by :math:`\sum_{k\ \mathrm{kept}} \max_i(p_{ik})\, x_{fk}^2`; by default the
    panel has those at or above the mean. The original's data sets share their arrays, these share
    the features, so the loadings are X's; the column of ones lets class means differ.

    Parameters
    ----------
    threshold : float, default=pi/8
        Least angular distance of a component that counts, in [0, pi/4].
    tau : float, default=1.0
        Floor under the second moments of both classes, in units of their mean over as many
        directions as there are samples, or features if these are fewer. 0 is the original, where
        with more features than samples every direction is exclusive to one class.
    %(selector)s
    angular_distance_, significance_, entropy_ : ndarray of shapes (r,), (2, r) and (2,)
        :math:`\theta`, in descending order, :math:`p`, and how evenly p is spread, from 0 to 1.
    kept_, scores_ : ndarray of shapes (r,) and (n_features_in_,)
        The components that counted, and the root of the sum above, zero for constant features.

    References
    ----------
    O. Alter, P. O. Brown and D. Botstein, "Generalized singular value decomposition for comparative
    analysis of genome-scale expression data sets of two different organisms", PNAS 100 (2003).

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import GSVDSelector
    >>> data = make_planted(40, 200, 10, effect=3.0)
    >>> bool(GSVDSelector(n_features=10).fit(data.X, data.y).support_[data.support].all())
    True
    """

    _: KW_ONLY
    threshold: float = math.pi / 8
    tau: float = 1.0
    _rules: ClassVar = {"threshold": {"least": 0, "most": math.pi / 4}, "tau": {"least": 0}}

    def _decompose(self, blocks: list[Array]) -> Any:
        """Left factors, sigma (n_classes, r), right factor, and what tells its columns apart."""
        U, V, alpha, beta, X = gsvd(*blocks)
        angle = np.arctan2(alpha, beta) - math.pi / 4
        return [U, V], np.stack([alpha, beta]), X, angle

    def _keep(self, values: Array) -> BoolArray:
        """Store what describes the components, and return which of them count."""
        self.angular_distance_ = values
        size = np.abs(values)
        return size >= min(self.threshold, size.max())

    def _fit(self, problem: ClassBlocks, size: int | None) -> None:
        p, loadings, values = self._components(problem.blocks)
        kept = self._keep(values)
        scores = np.sqrt(loadings[:, kept] ** 2 @ p[:, kept].max(axis=0))
        order = order_features(scores)
        # The margin keeps rounding from deciding where all scores are equal.
        heavy = np.flatnonzero(scores**2 >= np.mean(scores**2) * (1.0 - 1e-10))
        self.kept_, self.significance_ = kept, p
        self.entropy_ = entr(p).sum(axis=1) / math.log(max(len(values), 2))
        self.scores_ = np.zeros(self.n_features_in_)
        self.scores_[problem.features] = scores
        self._set_panel(problem, order, heavy if size is None else order[:size])

    def _components(self, blocks: list[Array]) -> tuple[Array, Array, Array]:
        """Return significances, loadings (unit columns, without the bias) and values."""
        reduced, basis = row_space(blocks, bias=False)  # the bias has no floor: it stays apart
        r = reduced[0].shape[1]
        moments = [np.vdot(block, block) / len(block) for block in reduced]
        floor = self.tau * float(np.mean(moments)) / r
        # One below rounding is none: its square root would decide what rounding left open.
        floored = self.tau > np.finfo(np.float64).eps
        ridge = math.sqrt(floor) * np.eye(r if floored else 0, r + 1)
        lefts, sigma, X, values = self._decompose(
            [np.vstack([moment_factor(block), ridge]) for block in reduced]
        )
        length = np.linalg.norm(X, axis=0)
        size = sigma * length
        for k, (block, left) in enumerate(zip(blocks, lefts)):
            # The floor takes part in the comparison, but is no part of the data.
            size[k] *= np.linalg.norm(left[: len(block)], axis=0)
            alone = ~np.delete(sigma, k, axis=0).any(axis=0)
            if not floored and alone.any():
                # Any basis would do for what one class has alone: take its principal directions.
                W, singular, _ = np.linalg.svd(X[:, alone], full_matrices=False)
                X[:, alone] = W * singular
                length[alone] = size[k, alone] = singular
        significance = size**2 / np.sum(size**2, axis=1, keepdims=True)
        return significance, basis @ (X / length)[:-1], values


@dataclass(eq=False, repr=False)
class HOGSVDSelector(GSVDSelector):
    r"""Select features by their loadings in the higher-order GSVD of all classes.

    A reconstruction: `GSVDSelector` for N classes, with which it agrees for two and ``tau > 0``.
    One right factor serves all blocks, :math:`[C_i\ e]/\sqrt{n_i} = U_i\,\mathrm{diag}(s_i)\,V^T`.
    Its columns are eigenvectors of the mean of all quotients of two classes' second moments, with
    eigenvalues :math:`\lambda_k \ge 1`, which are 1 where all classes share a direction evenly. A
    direction in which one class alone stands out by an angular distance :math:`\theta` has

    .. math:: \lambda(\theta) = (x + 1/x + N - 2) / N , \qquad x = \tan^2(\pi/4 + \theta) .

    Components with :math:`\lambda_k \ge \lambda(\mathrm{threshold})` count as exclusive, the
    others as shared; at least one is kept. No gene selector of the decomposition's authors was at
    hand: chosen here are the column of ones, the floor, the threshold and the score.

    Parameters
    ----------
    kind : {"exclusive", "shared"}, default="exclusive"
        The components that features are ranked by.
    threshold, tau : float, default=pi/8 and 1.0
        :math:`\theta` above, and the floor, as in `GSVDSelector`.
    %(selector)s
    eigenvalues_ : ndarray of shape (r,)
        :math:`\lambda`, in ascending order.
    significance_, entropy_, kept_, scores_ : ndarray
        As in `GSVDSelector`, of N classes.

    References
    ----------
    S. P. Ponnapalli et al., "A higher-order generalized singular value decomposition for comparison
    of global mRNA expression from multiple organisms", PLoS ONE 6(12): e28072, 2011.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import HOGSVDSelector
    >>> data = make_planted(60, 100, 12, effect=3.0, n_classes=3)
    >>> bool(HOGSVDSelector(n_features=12).fit(data.X, data.y).support_[data.support].all())
    True
    """

    _: KW_ONLY
    kind: str = "exclusive"
    _rules: ClassVar = {**GSVDSelector._rules, "kind": ("exclusive", "shared")}
    _multiclass: ClassVar[bool] = True

    def _decompose(self, blocks: list[Array]) -> Any:
        return hogsvd(blocks)

    def _keep(self, values: Array) -> BoolArray:
        self.eigenvalues_ = values
        n = len(self.classes_)
        x = math.tan(math.pi / 4 + self.threshold) ** 2
        bound = (x + 1.0 / x + n - 2) / n
        if self.kind == "exclusive":
            return values >= min(bound, values.max())
        return values <= max(bound, values.min())
