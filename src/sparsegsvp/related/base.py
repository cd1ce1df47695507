"""What the related methods are built on: panels of features, and pairs of planes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._mixins import NearerPlane, SupportSelector
from .._typing import Float64Array as Array
from .._typing import IntArray
from .._validate import check_integer, check_real, forget_fit
from ..linalg.matrix import check_extremes
from .problem import BinaryProblem

# Written once for the docstrings of all methods, which refer to them as %(name)s.
_SHARED_DOCS = {
    "standardize": """\
standardize : bool, default=True
    Scale features to mean 0 and variance 1 first. Weights of features in different units
    cannot be compared otherwise.""",
    "centred": """\
standardize : bool, default=True
    Scale features to variance 1 first. They are centred in any case.""",
    "dense_panel": """\
n_features : int or None, default=None
    Size of the panel. None keeps every feature that varies; an integer keeps the heaviest over
    the two planes and solves for both planes again on these.""",
    "sparse_panel": """\
n_features : int or None, default=None
    Size of the panel. None keeps the features with a weight in either plane; an integer keeps
    the heaviest (then those nearest to entering) and solves for both planes anew on these,
    without the l1 term.""",
    "planes": """\
classes_ : ndarray of shape (2,)
coef_ : ndarray of shape (2, n_features_in_)
    One plane per class in the units of X; ``X @ coef_.T + intercept_`` are signed distances
    in standardised units.
intercept_ : ndarray of shape (2,)""",
    "iterations": """\
n_iter_ : int
    Steps of the plane that took more.
history_ : list of two ndarray
    The objective of each plane, step by step.""",
    "panel": """\
support_ : ndarray of shape (n_features_in_,), bool
    The panel.
feature_order_ : ndarray of shape (n_features_in_,), int
    All features, the most important first.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Only where X has column names.""",
}


def check_pair(name: str, value: Any, **bounds: float) -> tuple[float, float]:
    """Return a number twice, or a pair of numbers, each within the bounds of `check_real`."""
    values: NDArray[Any] = np.atleast_1d(np.asarray(value))
    if values.shape not in ((1,), (2,)):
        raise ValueError(f"{name} must be a number or a pair of numbers, got {value!r}")
    first, last = values[0].item(), values[-1].item()
    return check_real(name, first, **bounds), check_real(name, last, **bounds)


def order_features(weight: Array, score: Array | None = None) -> IntArray:
    """Rank features by weight, most important first.

    Features with a weight come before those without; among the latter ``score`` decides. Ties
    go to the lowest index. Values are compared to ten digits of the largest one, so that equal
    columns tie although their sums were rounded differently.
    """

    def digits(values: Array) -> Array:
        top = values.max(initial=0.0)
        return np.round(values / top, 10) if top > 0 else np.zeros(len(values))

    weight = np.abs(weight)
    tie_break = np.zeros(len(weight)) if score is None else np.where(weight > 0, 0.0, np.abs(score))
    return np.lexsort((np.arange(len(weight)), -digits(tie_break), -digits(weight), weight == 0))


# --- panels ----------------------------------------------------------------------------------


class PanelMethod(SupportSelector):
    """A supervised method for two classes that ranks all features and selects a panel.

    A method mixes it into BaseEstimator, gives :meth:`_fit`, which ends with :meth:`_set_panel`,
    and checks its own parameters in :meth:`_check_parameters`. ``n_features`` and ``standardize``
    are parameters of every method. Transformation, names and masks are scikit-learn's.
    """

    n_features: int | None
    standardize: bool
    n_features_in_: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__:
            text = inspect.cleandoc(cls.__doc__)
            for name, shared in _SHARED_DOCS.items():
                text = text.replace(f"%({name})s", shared)
            cls.__doc__ = text

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the method and choose the panel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes, each with at least two samples.

        Returns
        -------
        self
        """
        if self.n_features is not None:
            check_integer("n_features", self.n_features, least=1)
        for name, check in (("tol", check_real), ("max_iter", check_integer)):
            if hasattr(self, name):
                check(name, getattr(self, name), least=int(name == "max_iter"))
        self._check_parameters()
        forget_fit(self)
        self._fit(self._read(X, y))
        return self

    def _read(self, X: ArrayLike, y: ArrayLike) -> BinaryProblem:
        """Validate training data and set what scikit-learn sets, ``classes_`` included."""
        table: NDArray[Any]
        table, labels = validate_data(
            self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        check_classification_targets(labels)
        check_extremes(float(table.min()), float(table.max()), np.dtype(np.float64), "X")
        classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        name = type(self).__name__
        if len(classes) == 1:
            raise ValueError(
                f"{name} needs two classes, but y has one class only, {classes.tolist()[0]!r}: "
                "add samples of the other class."
            )
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass "
                f"({len(classes)} classes): keep two of them, or wrap {name} in "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        if counts.min() < 2:
            raise ValueError(
                f"class {classes.tolist()[counts.argmin()]!r} has one sample only, and {name} "
                "needs at least two in each class: add samples of it, or use fewer folds."
            )
        problem = BinaryProblem.of(table, codes == 1, self.standardize)
        if not len(problem.features):
            raise ValueError(
                f"every feature of X is constant, so {name} has nothing to separate the classes "
                "with: check how X was read and filtered."
            )
        self.classes_ = classes
        return problem

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters of the method that make no sense."""

    def _fit(self, problem: BinaryProblem) -> None:
        """Set the fitted attributes."""
        raise NotImplementedError

    def _panel_size(self, available: int) -> int | None:
        """Return ``n_features``, or with a warning what there is if that is less."""
        if self.n_features is not None and self.n_features > available:
            warnings.warn(
                f"n_features={self.n_features} is more than the {available} features that vary: "
                "all of those are selected.",
                UserWarning,
                stacklevel=4,  # the caller of fit
            )
            return available
        return self.n_features

    def _set_panel(self, features: IntArray, order: IntArray, chosen: IntArray) -> None:
        """Store ``support_`` and ``feature_order_`` in terms of the input's features.

        `features` is the input feature of each column, `order` all columns, most important first
        (constant features follow after them), and `chosen` the columns in the panel.
        """
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[features[chosen]] = True
        left_out = np.setdiff1d(np.arange(self.n_features_in_), features, assume_unique=True)
        self.feature_order_ = np.concatenate([features[order], left_out])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Also where it is no classifier: its targets are those of a binary one.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


# --- planes ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlaneFit:
    """A plane ``z = [w; b]`` on the columns of the class blocks, and how it was found.

    z has any scale. `history` is the objective after each iteration, start included, or the value
    of a direct solution. `score` ranks the features whose weight is exactly zero (sparse methods):
    larger is nearer to entering the plane.
    """

    z: Array
    history: Sequence[float]
    score: Array | None = None
    n_iter: int = 0
    converged: bool = True

    @property
    def objective(self) -> float:
        """Value of the method's problem, at the scale the method works in."""
        return self.history[-1]

    def normalized(self, A: Array, B: Array) -> tuple[Array, float]:
        """Return w and b with ``||w|| = 1`` and the heaviest weight positive.

        Where the class means coincide the bias alone may be the best plane. Its w is zero up to
        rounding, which differs between processors, so w counts as zero when x'w is below ten
        digits of b for every sample, whatever the units of the features are.
        """
        w, b = self.z[:-1], float(self.z[-1])
        norm = float(np.linalg.norm(w))
        reach = max(np.abs(A @ w).max(), np.abs(B @ w).max())
        if not np.isfinite(norm) or norm == 0.0 or reach <= 1e-10 * abs(b):
            raise ValueError(
                "a plane came out without a direction (w = 0): the data leave nothing to choose "
                "by; lower the penalty, or check for duplicated samples and equal class means."
            )
        if w[np.abs(w).argmax()] < 0:
            norm = -norm
        return w / norm, b / norm


def lowest(planes: Iterable[PlaneFit], margin: float) -> PlaneFit:
    """Return the plane of lowest objective; where two agree to a relative margin, the earlier.

    Two starts that lead to one minimum end at values which only rounding tells apart.
    """
    best, *others = planes
    for other in others:
        if other.objective < (1.0 - margin) * best.objective:
            best = other
    return best


class PlanePairClassifier(PanelMethod, NearerPlane, ClassifierMixin, BaseEstimator):
    """A classifier that fits a plane to each class and decides by the nearer one.

    A method gives either :meth:`_fit_plane`, for the plane that is near the first block and far
    from the second, or :meth:`_fit_planes`, for both at once.

    The panel is the union of the planes' non-zero features or, with ``n_features``, as many as
    that of the heaviest (largest ``|w_f|`` over the two unit planes); then :meth:`_refit_planes`
    finds the planes anew on the panel.
    """

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        raise NotImplementedError

    def _fit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        return self._fit_plane(A, B), self._fit_plane(B, A)

    def _refit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        """Return planes on the panel's columns; by default by the method itself."""
        return self._fit_planes(A, B)

    def _fit(self, problem: BinaryProblem) -> None:
        A, B = problem.A, problem.B
        planes = kept = self._fit_planes(A, B)
        late = " and ".join(str(i) for i, plane in enumerate(planes) if not plane.converged)
        if late:
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter before plane {late} converged: "
                "raise max_iter or tol, or penalise more.",
                ConvergenceWarning,
                stacklevel=3,  # the caller of fit
            )
        weight = np.max([np.abs(plane.normalized(A, B)[0]) for plane in planes], axis=0)
        scores = [plane.score for plane in planes if plane.score is not None]
        order = order_features(weight, np.max(scores, axis=0) if scores else None)
        size = self._panel_size(len(order))
        columns, chosen = np.arange(len(order)), np.flatnonzero(weight)
        if size is not None:
            columns = chosen = np.sort(order[:size])
            A, B = A[:, columns], B[:, columns]
            kept = self._refit_planes(A, B)
        self.coef_ = np.zeros((2, self.n_features_in_))
        unit = [plane.normalized(A, B) for plane in kept]
        W = np.zeros((2, len(order)))
        W[:, columns] = [w for w, _ in unit]
        # Back from standardised units to those of the input.
        self.coef_[:, problem.features] = W / problem.scale
        self.intercept_ = [b for _, b in unit] - self.coef_[:, problem.features] @ problem.mean
        self.objective_ = np.array([plane.objective for plane in planes])
        if hasattr(self, "max_iter"):
            self.n_iter_ = max(plane.n_iter for plane in planes)
            self.history_ = [np.asarray(plane.history, dtype=np.float64) for plane in planes]
        self._set_panel(problem.features, order, chosen)
