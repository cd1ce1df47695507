"""Base classes of the related methods: selectors of a panel, classifiers by a pair of planes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import BoolArray, IntArray
from .._typing import Float64Array as Array
from .._validate import check_integer, check_real
from .problem import BinaryProblem, read_binary_problem

# Written once for the docstrings of all methods, which refer to them as %(name)s.
_SHARED_DOCS = {
    "standardize": """\
standardize : bool, default=True
    Scale features to mean 0 and variance 1 first. Weights of features in different units
    cannot be compared otherwise.""",
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
    """Return a number twice, or a pair of numbers, each within the bounds of `check_real`.

    Examples
    --------
    >>> check_pair("delta", 0.5, above=0)
    (0.5, 0.5)
    """
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

    Examples
    --------
    >>> order_features(np.array([0.0, 2.0, 1.0, 2.0]))
    array([1, 3, 2, 0])
    >>> order_features(np.array([0.0, 2.0, 0.0, 0.0]), score=np.array([1.0, 0.0, 3.0, 1.0]))
    array([1, 2, 0, 3])
    """

    def digits(values: Array) -> Array:
        top = values.max(initial=0.0)
        return np.round(values / top, 10) if top > 0 else np.zeros(len(values))

    weight = np.abs(weight)
    tie_break = np.zeros(len(weight)) if score is None else np.where(weight > 0, 0.0, np.abs(score))
    return np.lexsort((np.arange(len(weight)), -digits(tie_break), -digits(weight), weight == 0))


class PanelMethod(SelectorMixin):
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
        problem = read_binary_problem(self, X, y, standardize=self.standardize)
        self.classes_ = problem.classes
        self._fit(problem)
        return self

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

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Also where it is no classifier: its targets are those of a binary one.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


@dataclass(frozen=True)
class PlaneFit:
    """One plane on the columns of the class blocks, and how it was found.

    Attributes
    ----------
    w : ndarray of shape (k,)
    b : float
        The plane ``x'w + b = 0`` at any scale.
    objective : float
        Value of the method's problem, at the scale the method works in.
    score : ndarray of shape (k,) or None
        Ranks the features whose weight is exactly zero (sparse methods): larger is nearer to
        entering the plane.
    n_iter : int
    history : ndarray
        The objective after each iteration, start included; empty for direct solutions.
    converged : bool
    """

    w: Array
    b: float
    objective: float
    score: Array | None = None
    n_iter: int = 0
    history: Array | Sequence[float] = ()
    converged: bool = True

    @classmethod
    def of(cls, z: Array, objective: float, **found: Any) -> Self:
        """Make it from ``z = [w; b]``."""
        return cls(z[:-1], z[-1], objective, **found)

    def normalized(self) -> tuple[Array, float]:
        """Return w and b with ``||w|| = 1`` and the heaviest weight positive."""
        norm = float(np.linalg.norm(self.w))
        if not norm > 0.0 or not np.isfinite(norm):
            raise ValueError(
                "a plane came out without a direction (w = 0): the data leave nothing to "
                "choose by; lower the penalty, or check for duplicated samples."
            )
        if self.w[np.abs(self.w).argmax()] < 0:
            norm = -norm
        return self.w / norm, float(self.b) / norm


def lower_end(first: PlaneFit, other: PlaneFit, margin: float) -> PlaneFit:
    """Return the plane of lower objective; where they agree to a relative margin, the first.

    Two starts that lead to one minimum end at values which only rounding tells apart.
    """
    return other if other.objective < (1.0 - margin) * first.objective else first


class PlanePairClassifier(PanelMethod, ClassifierMixin, BaseEstimator):
    """A classifier that fits a plane to each class and decides by the nearer one.

    A method gives either :meth:`_fit_plane`, for the plane that is near the first block and far
    from the second, or :meth:`_fit_planes`, for both at once.

    The panel is the union of the planes' non-zero features or, with ``n_features``, as many as
    that of the heaviest (largest ``|w_f|`` over the two unit planes); then :meth:`_refit_planes`
    finds the planes anew on the panel.
    """

    classes_: NDArray[Any]

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        raise NotImplementedError

    def _fit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        return self._fit_plane(A, B), self._fit_plane(B, A)

    def _refit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        """Return planes on the panel's columns; by default by the method itself."""
        return self._fit_planes(A, B)

    def _fit(self, problem: BinaryProblem) -> None:
        planes = self._fit_planes(problem.A, problem.B)
        self._warn_unless_converged(planes)
        weights = np.abs([plane.normalized()[0] for plane in planes])
        scores = [plane.score for plane in planes if plane.score is not None]
        order = order_features(weights.max(axis=0), np.max(scores, axis=0) if scores else None)
        size = self._panel_size(len(order))
        if size is None:
            chosen, kept = np.flatnonzero(weights.max(axis=0)), planes
            columns = np.arange(len(order))
        else:
            columns = chosen = np.sort(order[:size])
            kept = self._refit_planes(problem.A[:, columns], problem.B[:, columns])
        W = np.zeros((2, len(order)))
        b = np.zeros(2)
        for i, plane in enumerate(kept):
            W[i, columns], b[i] = plane.normalized()
        self.coef_, self.intercept_ = problem.standardizer.planes_in_input_units(W, b)
        self.objective_ = np.array([plane.objective for plane in planes])
        if any(len(plane.history) for plane in planes):
            self.n_iter_ = max(plane.n_iter for plane in planes)
            self.history_ = [np.asarray(plane.history, dtype=np.float64) for plane in planes]
        self._set_panel(problem.features, order, chosen)

    def _warn_unless_converged(self, planes: tuple[PlaneFit, PlaneFit]) -> None:
        late = " and ".join(str(i) for i, plane in enumerate(planes) if not plane.converged)
        if late:
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter before plane {late} converged: "
                "raise max_iter or tol, or penalise more.",
                ConvergenceWarning,
                stacklevel=4,  # the caller of fit
            )

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the distance to the first class's plane minus that to the second's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive where ``predict`` gives ``classes_[1]``.
        """
        check_is_fitted(self)
        table: NDArray[Any] = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        # The rows of coef_ have unit norm in standardised units: these are |x'w + b| / ||w||.
        distance = np.abs(table @ self.coef_.T + self.intercept_)
        return distance[:, 0] - distance[:, 1]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of the nearer plane for each row of X."""
        nearer_second = self.decision_function(X) > 0
        return self.classes_[nearer_second.astype(int)]
