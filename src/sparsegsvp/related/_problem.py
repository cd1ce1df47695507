"""The binary problem: two classes of samples on standardised features that vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

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
