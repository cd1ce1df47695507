"""Features ranked by their loadings in the generalized SVD of the two classes."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr
from sklearn.base import BaseEstimator

from .._typing import BoolArray
from ..linalg import gsvd
from .base import Array, ClassBlocks, PanelMethod, RowSpace, moment_factor, order_features

# Left factors, sigma (n_classes, r), the right factor, and what tells its r columns apart.
Decomposition = tuple[list[Array], Array, Array, Array]


@dataclass(eq=False, repr=False)
class GSVDSelector(PanelMethod, BaseEstimator):
    r"""Select features by their loadings in the generalized SVD of the two classes.

    The standardised blocks of the two classes, each with a column of ones and divided by the
    root of its number of samples, are decomposed with one right factor, of unit columns, for both,

    .. math:: [A\ e]/\sqrt{n_A} = U \,\mathrm{diag}(s_1)\, X^T, \qquad
              [B\ e]/\sqrt{n_B} = V \,\mathrm{diag}(s_2)\, X^T .

    A component k has an angular distance, 0 where it is shared evenly and :math:`\pm\pi/4` where it
    is exclusive to a class, and a significance in each class i,

    .. math:: \theta_k = \arctan(s_{1k} / s_{2k}) - \pi/4 , \qquad
              p_{ik} = s_{ik}^2 / \textstyle\sum_l s_{il}^2 .

    Those with :math:`|\theta_k| \ge` ``threshold`` are kept (at least the most exclusive one), and
    features ranked by :math:`\sum_{k\ \mathrm{kept}} \max_i(p_{ik})\, x_{fk}^2`; by default the
    panel has those at or above the mean. In the original the two data sets share their arrays and
    differ in their genes; here they share the features, so the loadings are X's, and the column of
    ones makes a difference of the class means a component.

    Parameters
    ----------
    threshold : float, default=pi/8
        Least angular distance of a component that counts, in [0, pi/4].
    tau : float, default=1.0
        Floor under the second moments of both classes, in units of their mean over as many
        directions as there are samples, or features if these are fewer. 0 is the original, where
        with more features than samples every direction is exclusive to one class. It enters as
        rows :math:`\sqrt{floor}\,[I\ 0]` below both blocks; significances count the data's only.
    %(selector)s
    angular_distance_, significance_ : ndarray of shapes (r,) and (2, r)
        :math:`\theta`, in descending order, and :math:`p`.
    entropy_ : ndarray of shape (2,)
        How evenly the significances of a class are spread, from 0 to 1.
    kept_, scores_ : ndarray of shapes (r,) and (n_features_in_,)
        The components that counted, and the root of the sum above, zero for constant features.

    References
    ----------
    O. Alter, P. O. Brown and D. Botstein, "Generalized singular value decomposition for
    comparative analysis of genome-scale expression data sets of two different organisms", PNAS
    100 (2003) 3351-3356.

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
    _bounds: ClassVar = {"threshold": {"least": 0, "most": math.pi / 4}, "tau": {"least": 0}}

    def _decompose(self, blocks: list[Array]) -> Decomposition:
        U, V, alpha, beta, X = gsvd(*blocks)
        angle = np.arctan2(alpha, beta) - math.pi / 4
        return [U, V], np.stack([alpha, beta]), X, angle

    def _keep(self, values: Array) -> BoolArray:
        """Store what describes the components, and return which of them count."""
        self.angular_distance_ = values
        size = np.abs(values)
        return size >= min(self.threshold, size.max())

    def _fit(self, problem: ClassBlocks, size: int | None) -> None:
        p, loadings, values = self._components(problem.centred())
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
        """Return significances, loadings (unit columns, without the bias) and values.

        The floor goes by the number of rows or, if fewer, of columns: not by their rank, so that
        rows which repeat others lower it.
        """
        space = RowSpace.of(blocks, bias=False)  # the bias has no floor, so it stays by itself
        r = space.blocks[0].shape[1]
        moments = [np.vdot(block, block) / len(block) for block in space.blocks]
        floor = self.tau * float(np.mean(moments)) / r
        # One below rounding is none: its square root would decide what rounding left open.
        floored = self.tau > np.finfo(np.float64).eps
        ridge = math.sqrt(floor) * np.eye(r if floored else 0, r + 1)
        lefts, sigma, X, values = self._decompose(
            [np.vstack([moment_factor(block), ridge]) for block in space.blocks]
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
        return significance, space.lift((X / length)[:-1]), values
