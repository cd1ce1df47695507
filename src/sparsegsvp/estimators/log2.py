"""The logarithm as a step of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validate import check_real, forget_fit


def log2_floor(X: Any, floor: float = 1.0, skip: Sequence[int] = ()) -> Any:
    """Compute ``log2(max(x, floor))``; missing values stay missing, float32 stays float32.

    Sparse input stays sparse and needs ``floor = 1``, for which zeros stay zeros. Columns of
    `skip` stay as they are.
    """
    if sparse.issparse(X):
        if floor != 1:
            raise ValueError(
                f"floor={floor} would make every zero of sparse data non-zero: use floor=1"
            )
        logged = X.copy()
        np.maximum(logged.data, 1, out=logged.data)
        np.log2(logged.data, out=logged.data)
        if len(skip):
            column = X.indices
            if X.format == "csc":
                column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
            kept = np.isin(column, skip)
            logged.data[kept] = X.data[kept]
        return logged
    floored = np.maximum(X, X.dtype.type(floor))
    np.log2(floored, out=floored)
    floored[:, list(skip)] = X[:, list(skip)]
    return floored


class Log2(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Take ``log2(max(x, floor))`` of every value, as intensities usually are.

    Parameters
    ----------
    floor : float, default=1.0
        Smaller values, negative ones among them, count as this. Raw microarray
        intensities are often floored at 16.
    skip : sequence of int, default=()
        Columns that stay as they are, such as the age of patients.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.

    Examples
    --------
    >>> from sparsegsvp.estimators.log2 import Log2
    >>> Log2().fit_transform([[1.0, 8.0], [-3.0, 2.0]])
    array([[0., 3.],
           [0., 1.]])
    """

    def __init__(self, floor: float = 1.0, skip: Sequence[int] = ()) -> None:
        self.floor = floor
        self.skip = skip

    def fit(self, X: Any, y: Any = None) -> Log2:
        """Check the data and remember the names of the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.

        Returns
        -------
        Log2
            The object itself.
        """
        check_real("floor", self.floor, above=0)
        forget_fit(self)
        self._validated(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Take the logarithm.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features)
            Its logarithm.
        """
        check_is_fitted(self, "n_features_in_")
        return log2_floor(self._validated(X, reset=False), self.floor, self.skip)

    def _validated(self, X: Any, reset: bool) -> Any:
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
