"""The paper's classifier and selector, Algorithm 3, as published; its elbow and its decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import Array, IntArray
from .._validate import check_choice, forget_fit, refuse_dask, warn_caller
from ..linalg.rows import read_classes
from ..solvers.pgd import Conventions, PGDPlane, PGDResult, Prox, pgd_planes, random_start
from .pipeline import _FLOATS, SupportSelector

ElbowRule = Literal["chord", "full-chord"]

_STRAIGHT = 1e-12  # a straight line departs from its chord by less, relative to its fall


def find_elbow(weights: ArrayLike, *, rule: ElbowRule = "chord") -> int | None:
    r"""Find how many of the largest weights lie up to the elbow of the sorted curve.

    Sort :math:`|w|` in descending order and join the first and the last point by a chord. The elbow
    is the point with the largest distance to it, the first one if several share it.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
    rule : {"chord", "full-chord"}, default="chord"
        "chord" first removes a constant head and tail, all but the point next to the curve, so a
        long tail of zeros does not flatten the chord: what the paper's knee-finding library does.
        "full-chord" joins the very first and the very last point: what the paper's text says.

    Returns
    -------
    int or None
        The number of weights up to and including the elbow, or None where there is none: fewer
        than three points left, a constant curve, or a straight one.

    Examples
    --------
    >>> from sparsegsvp.estimators import find_elbow
    >>> find_elbow([0.1, -9.0, 8.0, 0.3, 0.2])
    3
    >>> find_elbow([4.0, 3.0, 2.0, 1.0]) is None
    True
    """
    check_choice("rule", rule, get_args(ElbowRule))
    magnitudes = np.abs(np.asarray(weights, dtype=np.float64))
    if magnitudes.ndim != 1 or magnitudes.size == 0 or not np.isfinite(magnitudes).all():
        raise ValueError("weights must be one non-empty row of finite numbers.")
    curve = np.sort(magnitudes)[::-1]
    first, last = 0, curve.size - 1
    if rule == "chord":
        first = int(np.flatnonzero(curve == curve[0])[-1])
        last = int(np.flatnonzero(curve == curve[-1])[0])
    fall = curve[first] - curve[last]
    if last - first < 2 or fall == 0.0:
        return None
    # The vertical distance to the chord is the true one times a constant.
    position = np.arange(last - first + 1) / (last - first)
    distance = np.abs((curve[first : last + 1] - curve[first]) / fall + position)
    # Up to rounding, equal distances are ties, and the first of them wins.
    largest = distance.max()
    if largest <= _STRAIGHT:
        return None
    return first + int(np.argmax(distance >= largest * (1.0 - _STRAIGHT))) + 1


def elbow_features(weights: ArrayLike, *, rule: ElbowRule = "chord") -> NDArray[np.intp]:
    """Return the features up to the elbow, the heaviest first.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
    rule : {"chord", "full-chord"}, default="chord"
        See `find_elbow`.

    Returns
    -------
    ndarray of int
        Indices in descending order of magnitude, the lower index first among equals. Where
        there is no elbow, all features whose weight is not zero; a zero is never selected.

    Examples
    --------
    >>> from sparsegsvp.estimators import elbow_features
    >>> elbow_features([0.1, -9.0, 8.0, 0.0, 0.0])
    array([1, 2, 0])
    """
    kept = find_elbow(weights, rule=rule)
    magnitudes = np.abs(np.asarray(weights, dtype=np.float64))
    order = np.argsort(-magnitudes, kind="stable")[:kept]
    return order[magnitudes[order] > 0.0]


def read_dense(
    estimator: Any, X: Any, y: Any, *, multiclass: bool = False, **checks: Any
) -> tuple[NDArray[Any], IntArray]:
    """Set ``classes_``, and return checked dense rows and the class of each by number."""
    refuse_dask(X)
    rows, classes, codes, _ = read_classes(X, y, estimator=estimator, accept_sparse=False, **checks)
    if len(classes) > 2 and not multiclass:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass "
            f"({len(classes)} classes): keep two of them, or wrap {type(estimator).__name__} in "
            "sklearn.multiclass.OneVsRestClassifier"
        )
    estimator.classes_ = classes
    return rows.X, codes


class NearerPlane(ClassifierMixin, SupportSelector):
    """A classifier by the nearer of two planes; not being linear in X, it has no ``coef_``."""

    classes_: NDArray[Any]
    planes_: Array
    plane_intercepts_: Array

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the distance to the first class's plane minus that to the second's.

        It is positive where `predict` gives ``classes_[1]``; 0, a tie, goes to ``classes_[0]``.
        """
        check_is_fitted(self)
        table: NDArray[Any] = validate_data(self, X, reset=False, dtype=_FLOATS)
        panel = np.flatnonzero(self.support_)
        signed = table[:, panel] @ self.planes_[:, panel].T + self.plane_intercepts_
        return np.abs(signed[:, 0]) - np.abs(signed[:, 1])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the nearer plane for each row."""
        second = self.decision_function(X) > 0.0
        return self.classes_[second.astype(np.intp)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(eq=False, repr=False)
class PGDGSVPSVM(NearerPlane, BaseEstimator):
    r"""The l1- and lq-PGD-GSVPSVM of the paper: Algorithms 1, 2 and 3 exactly.

    For each of the two classes, with rows :math:`C_i` (standardised, a column of ones appended)
    and the other class's rows :math:`C_j`, proximal gradient with a fixed step lowers

    .. math:: \frac{\|C_i z\|_2^2}{\|C_j z\|_2^2} + \delta_i \|z\|_q^q, \qquad z = [w; b],

    the features up to the elbow of the sorted :math:`|w|` are kept, and a sample belongs to the
    class whose plane, cut down to these features, is nearer (equation 21).

    For comparison and reproduction: the objective has no minimiser, as the penalty falls when z
    shrinks and the quotient stays, so what is selected depends on start, step and cap. `GSVPSVM`
    solves a relative of the problem that has one.

    Parameters
    ----------
    q : float in (0, 1] or None, default=None
        None is the l1 method (Algorithm 1, soft thresholding); a number the lq method
        (Algorithm 2, a weighted l2 step), whose q = 1 is its own reading of the l1 penalty.
    delta : float or pair of float, default=(0.1, 0.1)
        Penalty of each plane.
    step_size, eps, max_iter, tol, conventions, prox, backtracking
        As in `sparsegsvp.solvers.lq_pgd_gsvp`. Published results had a fixed step.
    random_state : int, RandomState or None, default=42
        Seed of the start, uniform on [0, 1), divided by its norm, the same for both planes.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    weights_, biases_ : ndarray of shapes (2, n_features) and (2,)
        Solutions before the elbow cuts them, in standardised units; the biases are not refitted.
    features_, elbows_ : list of ndarray, and ndarray of shape (2,)
        The features kept by each plane, the heaviest first, and their numbers.
    support_ : ndarray of shape (n_features,), bool
        The features kept by either plane.
    planes_, plane_intercepts_ : ndarrays of shapes (2, n_features) and (2,)
        The cut planes in the units of X; ``X @ planes_.T + plane_intercepts_`` are signed
        distances in standardised units.
    mean_, scale_ : ndarray of shape (n_features,)
        The standardisation.
    history_, n_iter_, converged_ : list of dict, int, and ndarray of shape (2,), bool
        Of each plane, as in `sparsegsvp.solvers.PGDHistory`; iterations of the plane that took
        longer; whether the stopping rule fired before the cap.
    cycles_ : ndarray of shape (2,), int
        The iteration from which a plane jumps between two points to the end, -1 where it does not.

    References
    ----------
    U. O. Ugwu and M. Kirby, Optimizing Sparse Generalized Singular Vectors for Feature Selection in
    Proximal Support Vector Machines with Application to Breast and Ovarian Cancer Detection,
    arXiv:2410.03978 (2024).

    Examples
    --------
    >>> from sparsegsvp import PGDGSVPSVM
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PGDGSVPSVM(q=0.1, delta=0.02, step_size=0.025, conventions="code").fit(X, y)
    >>> model.converged_
    array([ True,  True])
    """

    q: float | None = None
    _: KW_ONLY
    delta: float | tuple[float, float] = (0.1, 0.1)
    step_size: float = 1e-3
    eps: float = 1e-3
    max_iter: int = 10_000
    tol: float = 1e-4
    conventions: Conventions = "paper"
    prox: Prox = "weighted"
    backtracking: bool = False
    random_state: int | np.random.RandomState | None = 42

    def fit(self, X: ArrayLike, y: ArrayLike) -> PGDGSVPSVM:
        """Fit both planes, on samples of two classes, and cut each at its elbow."""
        fit_together([self], X, y)
        for label, done, since in zip(self.classes_.tolist(), self.converged_, self.cycles_):
            cap = f"max_iter={self.max_iter}"
            what = f"was cut off at {cap}: its objective has no minimiser"
            if since >= 0:
                what = (
                    f"is in a 2-cycle since iteration {since}: the step is too long, and which of "
                    f"two points is kept depends on {cap} being even or odd"
                )
            if not done:
                advice = "Try a smaller step_size, or use GSVPSVM."
                warn_caller(f"The plane of class {label!r} {what}. {advice}", ConvergenceWarning)
        return self

    def _planes(self, varies: NDArray[np.bool_]) -> list[PGDPlane]:
        """Both planes as the solver takes them, from the same start, zero at constant features."""
        if np.shape(self.delta) not in ((), (2,)):
            raise ValueError(f"delta must be one number, or one per class, got {self.delta!r}.")
        start = random_start(varies.size + 1, self.random_state)
        start[:-1] *= varies
        given = ("eps", "conventions", "step_size", "max_iter", "tol", "backtracking")
        how: dict[str, Any] = {name: getattr(self, name) for name in given}
        how |= {"q": 1.0 if self.q is None else self.q, "prox": self.prox}
        if self.q is None and self.prox == "weighted":
            how["prox"] = "exact"  # Algorithm 1
        deltas = np.broadcast_to(self.delta, 2).tolist()
        return [PGDPlane(k, start, delta, **how) for k, delta in enumerate(deltas)]

    def _store(self, results: list[PGDResult]) -> None:
        self.weights_ = np.array([result.w for result in results])
        self.biases_ = np.array([result.b for result in results])
        self.n_iter_ = max(result.n_iter for result in results)
        self.converged_ = np.array([result.converged for result in results])
        self.history_ = [dict(vars(result.history)) for result in results]
        cycles = [result.history.cycle for result in results]
        self.cycles_ = np.array([-1 if since is None else since for since in cycles])
        self.features_ = [elbow_features(w) for w in self.weights_]
        self.elbows_ = np.array([features.size for features in self.features_])
        if not self.elbows_.all():
            empty = self.classes_[self.elbows_ == 0].tolist()
            raise ValueError(
                f"The plane of class {empty[0]!r} has no feature left: all features are constant, "
                "or delta or step_size is too large."
            )
        cut = np.zeros_like(self.weights_)
        for k, features in enumerate(self.features_):
            cut[k, features] = self.weights_[k, features]
        self.support_ = np.logical_or.reduce(cut != 0.0)
        norms = np.linalg.norm(cut, axis=1)
        self.planes_ = cut / (norms[:, np.newaxis] * self.scale_)
        self.plane_intercepts_ = self.biases_ / norms - self.planes_ @ self.mean_


def fit_together(models: Sequence[PGDGSVPSVM], X: ArrayLike, y: ArrayLike) -> None:
    """Fit several models to the same samples, sharing every pass, without a warning of caps."""
    planes: list[PGDPlane] = []
    for model in models:
        forget_fit(model)
        table, codes = read_dense(model, X, y)
        if not planes:
            scaler = StandardScaler().fit(table)
            varies = scaler.scale_ == np.sqrt(scaler.var_)  # for what is constant it is 1
        planes += model._planes(varies)
    blocks = [(table[codes == k] - scaler.mean_) / scaler.scale_ for k in (0, 1)]
    for block in blocks:
        block[:, ~varies] = 0.0  # no gradient, and the start is zero there: never selected
    results = pgd_planes(blocks[0], blocks[1], planes)
    for model, first, second in zip(models, results[::2], results[1::2]):
        model.mean_, model.scale_ = scaler.mean_, scaler.scale_
        model._store([first, second])
