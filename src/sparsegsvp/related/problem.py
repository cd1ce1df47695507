"""The binary problem of the related methods: two classes on standardised features.

Notation, here and in the methods: ``A`` and ``B`` hold the (standardised) samples of the first
and the second class, ``z = [w; b]`` is a plane ``x'w + b = 0``, and

    G = [A e]'[A e] / n_A ,      H = [B e]'[B e] / n_B .

Both are means per class, so that an unbalanced table tilts no quotient and a ridge means the
same at every sample size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._typing import BoolArray, IntArray
from .._typing import Float64Array as Array


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

    varying: BoolArray
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
    features: IntArray
    standardizer: Standardizer

    def centred_table(self) -> Array:
        """Stack the class blocks, with the mean of all samples at zero, standardised or not.

        A shift of a feature would move into the bias, but take its loading along.
        """
        table = np.concatenate([self.A, self.B])
        table -= table.mean(axis=0)
        return table


def read_binary_problem(
    estimator: Any, X: ArrayLike, y: ArrayLike, *, standardize: bool
) -> BinaryProblem:
    """Validate training data for two classes and cut it into standardised class blocks.

    Sets ``n_features_in_`` and ``feature_names_in_`` on the estimator, as scikit-learn does.
    Raises ValueError if the data are not two classes of at least two samples each, contain NaN
    or infinity, or have no feature that varies.
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


# --- class blocks with their bias column -----------------------------------------------------


def with_bias(A: Array) -> Array:
    """Append the column of ones that multiplies the bias."""
    return np.column_stack([A, np.ones(len(A))])


def second_moment(A: Array) -> Array:
    """``A'A / n``, symmetric to the last bit."""
    return A.T @ A / len(A)


def spread_per_direction(first: float, second: float, rank: int) -> float:
    """Mean second moment of a direction, from the traces of both classes' second moments."""
    return 0.5 * (first + second) / rank


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
