"""Features by their loading on what one class has and the other lacks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags

from .._typing import Float64Array as Array
from ..linalg import gsvd
from ._checks import check_real
from ._panels import PanelMixin, order_features
from ._problem import BinaryProblem, read_binary_problem
from ._row_space import with_bias


class BinarySelector(PanelMixin, BaseEstimator):
    """A supervised selector for two classes: what scikit-learn needs to know about it."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Not a classifier, but its targets are those of a binary one.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def centred_table(problem: BinaryProblem) -> Array:
    """Stack the class blocks, with the mean of all samples at zero, standardised or not.

    A shift of a feature would move into the bias, but take its loading along.
    """
    table = np.concatenate([problem.A, problem.B])
    table -= table.mean(axis=0)
    return table


@dataclass(frozen=True)
class Components:
    """What two class blocks have in common and what they do not, direction by direction.

    Attributes
    ----------
    angle : ndarray of shape (r,)
        Angular distance in [-pi/4, pi/4], descending: 0 is shared evenly, +-pi/4 belongs to the
        first or the second class alone.
    significance : ndarray of shape (2, r)
        Share of each class's second moment; rows sum to one.
    loadings : ndarray of shape (m, r)
        Columns of unit length, but for the entry of the bias, which is left out.
    """

    angle: Array
    significance: Array
    loadings: Array

    @property
    def entropy(self) -> Array:
        """Shannon entropy of the significances per class, over its largest value, log r."""
        r = len(self.angle)
        if r == 1:
            return np.zeros(2)
        p = self.significance
        return -np.sum(p * np.log(np.where(p > 0.0, p, 1.0)), axis=1) / math.log(r)

    def feature_scores(self, kept: np.ndarray) -> Array:
        """Root of the sum over kept components of squared loading times significance."""
        weight = self.significance[:, kept].max(axis=0)
        return np.sqrt(self.loadings[:, kept] ** 2 @ weight)


def spread_per_direction(first: float, second: float, rank: int) -> float:
    """Mean second moment of a direction, from the traces of both classes' second moments."""
    return 0.5 * (first + second) / rank


def class_components(A: Array, B: Array, tau: float) -> Components:
    """Compare two class blocks by the generalized SVD, in their row space.

    Parameters
    ----------
    A, B : ndarray of shape (n_A, m) and (n_B, m)
    tau : float
        Floor under both second moments, in units of their mean over the directions of the row
        space; 0 is the plain decomposition.

    Examples
    --------
    >>> A = np.array([[3.0, 0.0], [-3.0, 0.0], [3.0, 1.0], [-3.0, -1.0]])
    >>> B = np.array([[0.0, 2.0], [0.0, -2.0], [0.0, 2.0], [0.0, -2.0]])
    >>> found = class_components(A, B, tau=0.0)
    >>> np.round(found.angle / (np.pi / 4), 2) + 0.0
    array([ 1.  ,  0.  , -0.69])
    """
    basis, first, second = _feature_space(A, B)
    r = first.shape[1]
    first, second = with_bias(first) / math.sqrt(len(A)), with_bias(second) / math.sqrt(len(B))
    floor = tau * spread_per_direction(
        float(np.vdot(first[:, :r], first[:, :r])), float(np.vdot(second[:, :r], second[:, :r])), r
    )
    # Under the features only: a floor under the bias would tie the planes to the origin.
    ridge = math.sqrt(floor) * np.eye(r if floor > 0.0 else 0, r + 1)
    U, V, alpha, beta, X = gsvd(np.vstack([first, ridge]), np.vstack([second, ridge]))
    length = np.linalg.norm(X, axis=0)
    size = np.stack([alpha, beta]) * length
    if floor > 0.0:
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
        loadings=X[:-1] if basis is None else basis @ X[:-1],
    )


def _feature_space(A: Array, B: Array) -> tuple[Array | None, Array, Array]:
    """Coordinates of both blocks in an orthonormal basis of their rows (None: the identity).

    Unlike the reduction for the plane methods this one leaves the bias out, which has no floor.
    """
    if A.shape[1] <= len(A) + len(B):
        return None, A, B
    basis, R = linalg.qr(
        np.concatenate([A, B]).T, mode="economic", overwrite_a=True, check_finite=False
    )
    return basis, R[:, : len(A)].T, R[:, len(A) :].T


class GSVDSelector(BinarySelector):
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
        Floor under the second moments of both classes, in units of their mean over the directions
        of the row space. 0 is the original. With more features than samples every direction is
        exclusive to one class there, so that the angles say nothing; with a floor, only directions
        in which one class spreads well beyond the mean are. It enters as rows
        :math:`\sqrt{floor}\,[I\ 0]` below both blocks; the bias has none, and significances count
        the data's rows only.
    n_features : int or None, default=None
        Size of the panel. None keeps the features whose squared score is at least the mean.
    standardize : bool, default=True
        Scale features to variance 1 first. They are centred in any case.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    angular_distance_ : ndarray of shape (r,)
        :math:`\theta`, in descending order, r being the rank of the stacked blocks.
    significance_ : ndarray of shape (2, r)
    entropy_ : ndarray of shape (2,)
        Of each class's significances: 0 if one component is everything, 1 if all are alike.
    kept_ : ndarray of shape (r,), bool
        The components that counted.
    scores_ : ndarray of shape (n_features_in_,)
        Zero for constant features.
    support_ : ndarray of shape (n_features_in_,), bool
        The panel.
    feature_order_ : ndarray of shape (n_features_in_,), int
        All features, highest score first.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Decompose the two classes and rank the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes, each with at least two samples.

        Returns
        -------
        self
        """
        self._check_n_features()
        check_real("threshold", self.threshold, 0, math.pi / 4)
        check_real("tau", self.tau, 0)
        problem = read_binary_problem(self, X, y, standardize=self.standardize)
        table, n_first = centred_table(problem), len(problem.A)
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
        self.classes_ = problem.classes
        self.angular_distance_ = found.angle
        self.significance_ = found.significance
        self.entropy_ = found.entropy
        self.kept_ = kept
        self.scores_ = np.zeros(self.n_features_in_)
        self.scores_[problem.features] = scores
        self._set_panel(problem.features, order, chosen)
        return self
