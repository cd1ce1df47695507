"""Features ranked by their loadings in the generalized SVD of the two classes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from .._typing import BoolArray
from .._typing import Float64Array as Array
from .._validate import check_real
from ..linalg import gsvd
from .base import PanelMethod, order_features
from .problem import BinaryProblem, RowSpace, moment_factor, spread_per_direction


@dataclass(frozen=True)
class Components:
    """Directions of two class blocks, from what the first has alone to what the second has alone.

    `angle` is the angular distance in [-pi/4, pi/4], descending: 0 is shared evenly, +-pi/4
    belongs to the first or the second class alone. `significance` is the share of each class's
    second moment; its rows sum to one. `loadings` has columns of unit length, but for the entry
    of the bias, which is left out.
    """

    angle: Array  # (r,)
    significance: Array  # (2, r)
    loadings: Array  # (m, r)

    @property
    def entropy(self) -> Array:
        """Shannon entropy of each class's significances, divided by its largest value, log r."""
        r = len(self.angle)
        if r == 1:
            return np.zeros(2)
        p = self.significance
        return -np.sum(p * np.log(np.where(p > 0.0, p, 1.0)), axis=1) / math.log(r)

    def feature_scores(self, kept: BoolArray) -> Array:
        """Return the root of the sum over kept components of squared loading times significance."""
        weight = self.significance[:, kept].max(axis=0)
        return np.sqrt(self.loadings[:, kept] ** 2 @ weight)


def class_components(A: Array, B: Array, tau: float) -> Components:
    """Compare two class blocks by the generalized SVD, in their row space.

    tau is a floor under both second moments, in units of their mean over as many directions as
    there are rows or, if fewer, columns: not their rank, so that rows which repeat others lower
    the floor. 0 is the plain decomposition.
    """
    space = RowSpace.of(A, B, bias=False)  # the bias has no floor, so it stays by itself
    r = space.A.shape[1]
    first, second = moment_factor(space.A), moment_factor(space.B)
    floor = tau * spread_per_direction(
        float(np.vdot(first[:, :r], first[:, :r])), float(np.vdot(second[:, :r], second[:, :r])), r
    )
    # Under the features only: a floor under the bias would tie the planes to the origin. One that
    # is below rounding is none: its square root would decide what rounding left open.
    needed = tau > np.finfo(np.float64).eps
    ridge = math.sqrt(floor) * np.eye(r if needed else 0, r + 1)
    U, V, alpha, beta, X = gsvd(np.vstack([first, ridge]), np.vstack([second, ridge]))
    length = np.linalg.norm(X, axis=0)
    size = np.stack([alpha, beta]) * length
    if needed:
        # The floor takes part in the comparison, but is no part of the data.
        size[0] *= np.linalg.norm(U[: len(A)], axis=0)
        size[1] *= np.linalg.norm(V[: len(B)], axis=0)
    else:
        # Any basis would do for what belongs to one class alone: take its principal directions.
        for own, alone in enumerate((beta == 0.0, alpha == 0.0)):
            W, values, _ = np.linalg.svd(X[:, alone], full_matrices=False)
            X[:, alone] = W * values
            length[alone] = size[own, alone] = values
    X /= length
    return Components(
        angle=np.arctan2(alpha, beta) - math.pi / 4,
        significance=size**2 / np.sum(size**2, axis=1, keepdims=True),
        loadings=space.lift(X[:-1]),
    )


class GSVDSelector(PanelMethod, BaseEstimator):
    r"""Select features by their loadings in the generalized SVD of the two classes.

    The standardised blocks of the two classes, each with a column of ones and divided by the
    root of its number of samples, are decomposed with one right factor for both,

    .. math:: [A\ e]/\sqrt{n_A} = U \,\mathrm{diag}(s_1)\, X^T, \qquad
              [B\ e]/\sqrt{n_B} = V \,\mathrm{diag}(s_2)\, X^T ,

    with unit columns of X. A component k is described by its angular distance and by its
    significance in each class i,

    .. math:: \theta_k = \arctan(s_{1k} / s_{2k}) - \pi/4 , \qquad
              p_{ik} = s_{ik}^2 / \textstyle\sum_l s_{il}^2 ,

    where :math:`\theta = 0` is shared evenly and :math:`\pm\pi/4` is exclusive to the first or the
    second class. The components with :math:`|\theta_k| \ge` ``threshold`` are kept (the most
    exclusive one if there is none), and feature f is ranked by its loadings on them,

    .. math:: \mathrm{score}_f^2 =
              \textstyle\sum_{k\ \mathrm{kept}} \max(p_{1k}, p_{2k})\, x_{fk}^2 .

    Parameters
    ----------
    threshold : float, default=pi/8
        Least angular distance of a component that counts, in [0, pi/4]. The default is half way
        between shared and exclusive.
    tau : float, default=1.0
        Floor under the second moments of both classes, in units of their mean over as many
        directions as there are samples, or features if these are fewer. 0 is the original. With
        more features than samples every direction is exclusive to one class there, so that the
        angles say nothing; with a floor, only directions in which one class spreads well beyond
        the mean are. It enters as rows :math:`\sqrt{floor}\,[I\ 0]` below both blocks; the bias has
        none, and significances count the data's rows only.
    n_features : int or None, default=None
        Size of the panel. None keeps the features whose squared score is at least the mean.
    %(centred)s

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    angular_distance_ : ndarray of shape (r,)
        :math:`\theta`, in descending order; r is one more than that number of directions, or for
        ``tau=0`` the rank of the stacked blocks.
    significance_ : ndarray of shape (2, r)
    entropy_ : ndarray of shape (2,)
        Of each class's significances: 0 if one component is everything, 1 if all are alike.
    kept_ : ndarray of shape (r,), bool
        The components that counted.
    scores_ : ndarray of shape (n_features_in_,)
        Zero for constant features.
    %(panel)s

    Notes
    -----
    In the original the two data sets share their arrays and differ in their genes; here they
    share the features and differ in their samples, so the loadings are X's. The column of ones
    makes a difference of the class means a component (without it, only differences in spread can
    be one), and the division by :math:`\sqrt{n_i}` keeps an unbalanced table from tilting the
    angles. With more features than samples all is done in the row space of the data.

    References
    ----------
    O. Alter, P. O. Brown and D. Botstein, "Generalized singular value decomposition for
    comparative analysis of genome-scale expression data sets of two different organisms",
    Proceedings of the National Academy of Sciences 100 (2003) 3351-3356.

    Examples
    --------
    Twelve of 200 features differ between the classes.

    >>> import numpy as np
    >>> from sparsegsvp.related import GSVDSelector
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 20)
    >>> X = rng.normal(size=(40, 200))
    >>> X[:, :12] += 2.5 * y[:, None]
    >>> selector = GSVDSelector(n_features=12).fit(X, y)
    >>> np.flatnonzero(selector.get_support())
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11])
    >>> selector.transform(X).shape
    (40, 12)
    """

    def __init__(
        self,
        *,
        threshold: float = math.pi / 8,
        tau: float = 1.0,
        n_features: int | None = None,
        standardize: bool = True,
    ) -> None:
        self.threshold = threshold
        self.tau = tau
        self.n_features = n_features
        self.standardize = standardize

    def _check_parameters(self) -> None:
        check_real("threshold", self.threshold, least=0, most=math.pi / 4)
        check_real("tau", self.tau, least=0)

    def _fit(self, problem: BinaryProblem) -> None:
        table, n_first = problem.centred_table(), len(problem.A)
        found = class_components(table[:n_first], table[n_first:], self.tau)
        kept = np.abs(found.angle) >= self.threshold
        if not kept.any():
            kept[np.abs(found.angle).argmax()] = True
        scores = found.feature_scores(kept)
        order = order_features(scores)
        size = self._panel_size(len(order))
        if size is None:
            # The margin keeps rounding from deciding where all scores are equal.
            chosen = np.flatnonzero(scores**2 >= np.mean(scores**2) * (1.0 - 1e-10))
        else:
            chosen = order[:size]
        self.angular_distance_ = found.angle
        self.significance_ = found.significance
        self.entropy_ = found.entropy
        self.kept_ = kept
        self.scores_ = np.zeros(self.n_features_in_)
        self.scores_[problem.features] = scores
        self._set_panel(problem.features, order, chosen)
