"""What the related methods share: the binary problem, its row space, planes and panels.

Notation, here and in the methods: ``A`` and ``B`` hold the (standardised) samples of the first
and the second class, ``z = [w; b]`` is a plane ``x'w + b = 0``, and

    G = [A e]'[A e] / n_A ,      H = [B e]'[B e] / n_B .

Both are means per class, so that an unbalanced table tilts no quotient and a ridge means the
same at every sample size.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

Array = NDArray[np.float64]


# --------------------------------------------------------------------------------------------
# the problem
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standardizer:
    """Shift and scale of the features that vary; the constant ones are left out.

    Attributes
    ----------
    varying : ndarray of shape (m,), bool
        Which input features take more than one value. A constant feature says nothing about
        the classes and would only duplicate the bias, whether or not features are scaled.
    mean, scale : ndarray of shape (varying.sum(),)
        Zeros and ones where standardisation is off.
    """

    varying: NDArray[np.bool_]
    mean: Array
    scale: Array

    @classmethod
    def of(cls, X: NDArray[Any], standardize: bool) -> Self:
        """Measure the columns of X, in double precision whatever the type of X."""
        mean = X.mean(axis=0, dtype=np.float64)
        sd = X.std(axis=0, dtype=np.float64)
        # A constant column's computed deviation may be rounding noise instead of zero.
        noise = X.shape[0] * np.finfo(np.float64).eps * np.abs(mean)
        varying = (X.max(axis=0) > X.min(axis=0)) & (sd > noise)
        if not standardize:
            return cls(varying, np.zeros(varying.sum()), np.ones(varying.sum()))
        return cls(varying, mean[varying], sd[varying])

    def apply(self, X: NDArray[Any]) -> Array:
        """Return the varying columns of X, shifted and scaled, as a new float64 array."""
        Z = X.astype(np.float64) if self.varying.all() else X[:, self.varying].astype(np.float64)
        Z -= self.mean
        Z /= self.scale
        return Z

    def planes_in_input_units(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Rewrite planes on the standardised varying features as planes on the input."""
        coef = np.zeros((len(W), len(self.varying)))
        coef[:, self.varying] = W / self.scale
        return coef, b - coef[:, self.varying] @ self.mean


@dataclass(frozen=True)
class BinaryProblem:
    """Two classes of samples on standardised, varying features.

    Attributes
    ----------
    classes : ndarray of shape (2,)
        The labels, sorted.
    A, B : ndarray of shape (n_A, k) and (n_B, k), float64
        Samples of ``classes[0]`` and of ``classes[1]``.
    features : ndarray of shape (k,), int
        The input feature that each column stands for.
    standardizer : Standardizer
        The way from the input to the columns and back.
    """

    classes: NDArray[Any]
    A: Array
    B: Array
    features: NDArray[np.intp]
    standardizer: Standardizer


def read_binary_problem(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike, *, standardize: bool
) -> BinaryProblem:
    """Validate training data for two classes and cut it into standardised class blocks.

    Sets ``n_features_in_`` and ``feature_names_in_`` on the estimator, as scikit-learn does.

    Raises
    ------
    ValueError
        If the data are not two classes of at least two samples each, contain NaN or infinity,
        or have no feature that varies.
    """
    table: NDArray[Any]
    table, labels = validate_data(
        estimator, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2
    )
    check_classification_targets(labels)
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    name = type(estimator).__name__
    if len(classes) == 1:
        raise ValueError(
            f"{name} needs two classes, but y has one class only, {classes[0]!r}: "
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
            f"class {classes[counts.argmin()]!r} has one sample only, and {name} needs at least "
            "two in each class: add samples of it, or use fewer folds."
        )
    standardizer = Standardizer.of(table, standardize)
    if not standardizer.varying.any():
        raise ValueError(
            f"every feature of X is constant, so {name} has nothing to separate the classes "
            "with: check how X was read and filtered."
        )
    return BinaryProblem(
        classes=classes,
        A=standardizer.apply(table[codes == 0]),
        B=standardizer.apply(table[codes == 1]),
        features=np.flatnonzero(standardizer.varying),
        standardizer=standardizer,
    )


# --------------------------------------------------------------------------------------------
# the row space
# --------------------------------------------------------------------------------------------


def with_bias(A: Array) -> Array:
    """Append the column of ones that multiplies the bias."""
    return np.column_stack([A, np.ones(len(A))])


@dataclass(frozen=True)
class RowSpace:
    """The class blocks ``[A e]`` and ``[B e]`` in orthonormal coordinates of their row space.

    For ``z = basis @ u``: ``[A e] z = A u``, ``[B e] z = B u`` and ``||z|| = ||u||``. A quotient
    of functions of ``[A e]z``, ``[B e]z`` and, increasing, ``||z||`` in the numerator has its
    minimum there, because a component of z outside raises ``||z||`` and nothing else: the
    reduction is exact.

    Attributes
    ----------
    A, B : ndarray of shape (n_A, r) and (n_B, r)
        The blocks, bias column included, with r = min(m + 1, n_A + n_B).
    basis : ndarray of shape (m + 1, r) or None
        None stands for the identity, when there are no more columns than rows.
    """

    A: Array
    B: Array
    basis: Array | None

    def lift(self, u: Array) -> Array:
        """Return z, bias last, for coordinates u."""
        return u if self.basis is None else self.basis @ u


def row_space(A: Array, B: Array) -> RowSpace:
    """Reduce two class blocks (without their bias columns) to their row space.

    Costs one QR factorisation of an (m + 1) x (n_A + n_B) matrix when there are more features
    than samples, and nothing otherwise; no m x m matrix is formed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(4, 1000)), rng.normal(size=(5, 1000))
    >>> space = row_space(A, B)
    >>> space.basis.shape
    (1001, 9)
    >>> z = space.lift(np.ones(9))
    >>> bool(np.allclose(A @ z[:-1] + z[-1], space.A.sum(axis=1)))
    True
    """
    n, m = len(A) + len(B), A.shape[1]
    if m + 1 <= n:
        return RowSpace(with_bias(A), with_bias(B), None)
    stacked = np.empty((m + 1, n), order="F")
    stacked[:m, : len(A)] = A.T
    stacked[:m, len(A) :] = B.T
    stacked[m] = 1.0
    basis, R = linalg.qr(stacked, mode="economic", overwrite_a=True, check_finite=False)
    return RowSpace(R[:, : len(A)].T.copy(), R[:, len(A) :].T.copy(), basis)


def second_moment(A: Array) -> Array:
    """``A'A / n``, symmetric to the last bit."""
    return A.T @ A / len(A)


# --------------------------------------------------------------------------------------------
# planes and panels
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plane:
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


def order_features(weight: Array, score: Array | None = None) -> NDArray[np.intp]:
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


class PanelMixin(SelectorMixin):
    """A selector whose panel is a mask, with every feature ranked.

    A fit calls :meth:`_set_panel`. Transformation, names and masks are scikit-learn's.
    """

    n_features: int | None
    n_features_in_: int

    def _check_n_features(self) -> None:
        """Reject a panel size that is not None or a positive integer."""
        size = self.n_features
        if size is None:
            return
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(f"n_features must be None or an integer of at least 1, got {size!r}.")

    def _panel_size(self, available: int) -> int | None:
        """Return ``n_features``, or with a warning what there is if that is less."""
        self._check_n_features()
        if self.n_features is not None and self.n_features > available:
            warnings.warn(
                f"n_features={self.n_features} is more than the {available} features that vary: "
                "all of those are selected.",
                UserWarning,
                stacklevel=3,
            )
            return available
        return self.n_features

    def _set_panel(
        self, features: NDArray[np.intp], order: NDArray[np.intp], chosen: NDArray[np.intp]
    ) -> None:
        """Store ``support_`` and ``feature_order_`` in terms of the input's features.

        Parameters
        ----------
        features : ndarray of shape (k,)
            The input feature of each column (``BinaryProblem.features``).
        order : ndarray of shape (k,)
            All columns, most important first. Constant features follow after them.
        chosen : ndarray
            The columns in the panel.
        """
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[features[chosen]] = True
        left_out = np.setdiff1d(np.arange(self.n_features_in_), features, assume_unique=True)
        self.feature_order_ = np.concatenate([features[order], left_out])

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_


class NearestPlaneMixin(ClassifierMixin):
    """The decision rule: a sample belongs to the class whose plane is nearer.

    The rows of ``coef_`` have unit norm in standardised units, so ``|X coef_' + intercept_|``
    is already the distance ``|x'w_i + b_i| / ||w_i||`` and is not divided again.
    """

    classes_: NDArray[Any]
    coef_: Array
    intercept_: Array

    def decision_function(self, X: ArrayLike) -> Array:
        """Distance to the first class's plane minus distance to the second's.

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
        distance = np.abs(table @ self.coef_.T + self.intercept_)
        return distance[:, 0] - distance[:, 1]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of the nearer plane for each row of X."""
        nearer_second = self.decision_function(X) > 0
        return self.classes_[nearer_second.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class PlanePairClassifier(PanelMixin, NearestPlaneMixin, BaseEstimator):
    """Fit two planes, rank the features over both, cut the panel, decide by the nearer plane.

    A method gives :meth:`_check_parameters` and either :meth:`_fit_plane`, for the plane that is
    near the first block and far from the second, or :meth:`_fit_planes`, for both at once.
    ``self.n_features`` and ``self.standardize`` are parameters of every method.

    The panel is the union of the planes' non-zero features or, with ``n_features``, as many as
    that of the heaviest (largest ``|w_f|`` over the two unit planes); then :meth:`_refit_planes`
    finds the planes anew on the panel.
    """

    standardize: bool

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that make no sense."""

    def _fit_plane(self, A: Array, B: Array) -> Plane:
        raise NotImplementedError

    def _fit_planes(self, A: Array, B: Array) -> tuple[Plane, Plane]:
        return self._fit_plane(A, B), self._fit_plane(B, A)

    def _refit_planes(self, A: Array, B: Array) -> tuple[Plane, Plane]:
        """Planes on the panel's columns; by default the method itself."""
        return self._fit_planes(A, B)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the two planes and the panel.

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
        self._check_parameters()
        problem = read_binary_problem(self, X, y, standardize=self.standardize)
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
        self.classes_ = problem.classes
        self.coef_, self.intercept_ = problem.standardizer.planes_in_input_units(W, b)
        self.objective_ = np.array([plane.objective for plane in planes])
        if any(len(plane.history) for plane in planes):
            self.n_iter_ = max(plane.n_iter for plane in planes)
            self.history_ = [np.asarray(plane.history, dtype=np.float64) for plane in planes]
        self._set_panel(problem.features, order, chosen)
        return self

    def _warn_unless_converged(self, planes: tuple[Plane, Plane]) -> None:
        late = " and ".join(str(i) for i, plane in enumerate(planes) if not plane.converged)
        if late:
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter before plane {late} settled: "
                "raise max_iter or tol, or penalise more.",
                ConvergenceWarning,
                stacklevel=3,
            )


def check_real(
    name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False
) -> None:
    """Raise ValueError unless ``value`` is a finite number in [low, high], or (low, high].

    Examples
    --------
    >>> check_real("delta", -1.0, 0, open_low=True)
    Traceback (most recent call last):
        ...
    ValueError: delta must be a finite number > 0, got -1.0.
    """
    fine = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value))
    if not fine or not low <= value <= high or (open_low and value == low):
        upper = "" if high == np.inf else f" and <= {high:g}"
        raise ValueError(
            f"{name} must be a finite number {'>' if open_low else '>='} {low:g}{upper}, "
            f"got {value!r}."
        )


def pair_of(name: str, value: Any) -> tuple[float, float]:
    """Return a number twice, or a pair as it is.

    Examples
    --------
    >>> pair_of("delta", 0.5)
    (0.5, 0.5)
    """
    values: NDArray[Any] = np.atleast_1d(np.asarray(value))
    if values.shape == (1,):
        return values[0].item(), values[0].item()
    if values.shape == (2,):
        return values[0].item(), values[1].item()
    raise ValueError(f"{name} must be a number or a pair of numbers, got {value!r}.")


def check_count(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is an integer of at least 1.

    Examples
    --------
    >>> check_count("max_iter", 0)
    Traceback (most recent call last):
        ...
    ValueError: max_iter must be an integer of at least 1, got 0.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
