"""`MedianImputer`: medians in place of missing values, at little cost where none is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validate import forget_fit

# Elements of a block of columns that are sorted at a time: small enough to stay in cache.
_BLOCK = 1 << 17


class EachValue(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer of single values: of dense or sparse tables, with gaps, of either precision."""

    def _validated(self, X: Any, reset: bool) -> Any:
        if reset:
            forget_fit(self)
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MedianImputer(EachValue):
    """Put the median of a feature in place of its missing values.

    The results are those of scikit-learn's ``SimpleImputer(strategy="median",
    keep_empty_features=True)``: NaN is missing, the zeros of a sparse matrix are values, and a
    feature without any value becomes zero. Rows without missing values are returned as they
    are, not copied, and the medians take a fraction of the time.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features_in_,)
        The median of each feature.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.estimators import MedianImputer
    >>> MedianImputer().fit_transform([[1.0, np.nan], [3.0, 5.0], [np.nan, 5.0]])
    array([[1., 5.],
           [3., 5.],
           [2., 5.]])
    """

    def fit(self, X: Any, y: Any = None) -> MedianImputer:
        """Find the medians.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; NaN is missing.
        y : None
            Ignored.

        Returns
        -------
        MedianImputer
            The object itself.
        """
        X = self._validated(X, reset=True)
        found = _sparse_medians(X.tocsc()) if sparse.issparse(X) else _medians(X)
        self.statistics_ = np.where(np.isnan(found), X.dtype.type(0), found)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "statistics_")

    def transform(self, X: Any) -> Any:
        """Fill in the medians.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; NaN is missing.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features)
            The data without missing values: X itself where there are none.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        values = X.data if sparse.issparse(X) else X
        # a sum is finite only without NaN, and takes a fraction of the time of a mask
        with np.errstate(over="ignore"):
            total = values.sum(dtype=np.float64)
        if np.isfinite(total):
            return X
        missing = np.isnan(values)
        if not missing.any():
            return X
        filled = X.copy()
        if sparse.issparse(X):
            column = X.indices
            if X.format == "csc":
                column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
            filled.data[missing] = self.statistics_[column[missing]]
        else:
            filled[missing] = self.statistics_[np.nonzero(missing)[1]]
        return filled


def _medians(X: np.ndarray) -> np.ndarray:
    """The median of the values of each column that are not NaN; NaN where all are."""
    n, m = X.shape
    out = np.empty(m, dtype=X.dtype)
    step = max(1, _BLOCK // n)
    middle = [(n - 1) // 2, n // 2]
    for start in range(0, m, step):
        # one row per feature, contiguous
        block = np.ascontiguousarray(X[:, start : start + step].T)
        low, high = np.partition(block, middle, axis=1)[:, middle].T
        out[start : start + step] = (low + high) / 2
        for i in np.flatnonzero(np.isnan(block).any(axis=1)):
            out[start + i] = _median(block[i])
    return out


def _median(values: np.ndarray) -> Any:
    values = np.sort(values[~np.isnan(values)])
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2 if n else np.nan


def _sparse_medians(X: Any) -> np.ndarray:
    """The same for a CSC matrix, whose zeros are values."""
    n, m = X.shape
    out = np.zeros(m, dtype=X.dtype)
    starts, data = X.indptr, X.data
    # more zeros than anything else on either side: no need to look further
    column = np.repeat(np.arange(m), np.diff(starts))
    missing = np.bincount(column[np.isnan(data)], minlength=m)
    above = np.bincount(column[data > 0], minlength=m)
    below = np.bincount(column[data < 0], minlength=m)
    zeros = n - missing - above - below
    for i in np.flatnonzero(np.abs(above - below) >= zeros):
        dense = np.zeros(n, dtype=X.dtype)
        values = data[starts[i] : starts[i + 1]]
        dense[: len(values)] = values
        out[i] = _median(dense)
    return out
