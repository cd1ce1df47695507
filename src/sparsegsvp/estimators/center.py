"""`BatchCenterer`: the means of batches taken out, learnt from the training rows."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from .._validate import forget_fit

#: Rows of a new batch below which its mean says more of these rows than of the batch.
FEWEST_ROWS = 10


class BatchCenterer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract from every row the mean of its batch, and add the mean of all training rows.

    The means of batches that occur in training are those of the training rows. A batch that does
    not is centred by its own rows, so it takes a whole batch, in which the classes are mixed about
    as in training: what the class adds to the mean is subtracted too. Rows of such a batch are
    not transformed one by one as they are together.

    Parameters
    ----------
    skip : sequence of int, default=()
        Columns that stay as they are, such as the age of patients.

    Attributes
    ----------
    batches_ : ndarray of str of shape (n_batches,)
        The batches of the training rows.
    means_ : ndarray of shape (n_batches, n_features_in_)
        Their means.
    mean_ : ndarray of shape (n_features_in_,)
        The mean of all training rows.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.

    Notes
    -----
    In a pipeline, `sparsegsvp.nested_evaluate` hands the first of its batch variables to this
    step. Otherwise enable scikit-learn's metadata routing: ``batch`` is requested by default.

    Examples
    --------
    >>> from sparsegsvp.estimators import BatchCenterer
    >>> X, plate = [[1.0], [3.0], [11.0], [13.0]], ["a", "a", "b", "b"]
    >>> BatchCenterer().fit_transform(X, batch=plate).ravel()
    array([6., 8., 6., 8.])
    """

    __metadata_request__fit = {"batch": True}  # noqa: RUF012
    __metadata_request__transform = {"batch": True}  # noqa: RUF012

    def __init__(self, skip: Sequence[int] = ()) -> None:
        self.skip = skip

    def fit(self, X: Any, y: Any = None, batch: ArrayLike | None = None) -> BatchCenterer:
        """Find the means of the batches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows, without missing values.
        y : None
            Ignored.
        batch : array-like of shape (n_samples,)
            The batch of each row.

        Returns
        -------
        BatchCenterer
            The object itself.
        """
        if batch is None:
            raise ValueError("batch is needed: say of each row which batch it is from")
        forget_fit(self)
        X = validate_data(self, X, dtype=(np.float64, np.float32))
        self.batches_, member = np.unique(_texts(batch, X), return_inverse=True)
        self.means_ = np.stack(
            [X[member == b].mean(axis=0, dtype=np.float64) for b in range(self.batches_.size)]
        )
        # shares before the product: with one batch its mean, to the last bit
        self.mean_ = (np.bincount(member) / member.size) @ self.means_
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "mean_")

    def fit_transform(self, X: Any, y: Any = None, batch: ArrayLike | None = None) -> Any:
        """Find the means of the batches and centre the same rows."""
        return self.fit(X, y, batch=batch).transform(X, batch=batch)

    def transform(self, X: Any, batch: ArrayLike | None = None) -> Any:
        """Centre rows by the means of their batches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, without missing values.
        batch : array-like of shape (n_samples,), optional
            The batch of each row. Without it, the rows are one new batch.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=(np.float64, np.float32))
        known = self
        if batch is None:
            names = np.full(X.shape[0], "")
            known = self._adapted(X, names)
        else:
            names = _texts(batch, X)
            new = ~np.isin(names, self.batches_)
            if new.any():
                known = self._adapted(X[new], names[new])
        return known._shifted(X, names)

    def _adapted(self, X: Any, batch: NDArray[np.str_]) -> BatchCenterer:
        """A copy that knows some batches by these rows."""
        names, member, counts = np.unique(batch, return_inverse=True, return_counts=True)
        if counts.min() < FEWEST_ROWS:
            warnings.warn(
                f"a batch that training has not seen is centred by the mean of {counts.min()} "
                "row(s): transform whole batches",
                UserWarning,
                stacklevel=3,
            )
        means = [X[member == b].mean(axis=0, dtype=np.float64) for b in range(names.size)]
        adapted = copy.copy(self)
        adapted.batches_ = np.concatenate([self.batches_, names])
        adapted.means_ = np.concatenate([self.means_, means])
        return adapted

    def _shifted(self, X: NDArray[Any], batch: NDArray[np.str_]) -> NDArray[Any]:
        centred = X.copy()
        for name in np.unique(batch):
            shift = self.mean_ - self.means_[self.batches_ == name][0]
            shift[list(self.skip)] = 0.0
            centred[batch == name] += shift.astype(X.dtype)
        return centred


def _texts(batch: ArrayLike, X: Any) -> NDArray[np.str_]:
    """Batches as text, one for each row; a number is the same text as integer and as float."""
    values = np.asarray(batch)
    if values.ndim != 1:
        raise ValueError(f"batch must have one value for each row, got shape {values.shape}")
    check_consistent_length(X, values)
    return np.array([f"{v:.15g}" if isinstance(v, Real) else str(v) for v in values.tolist()])


def takes_batch(step: Any) -> bool:
    """Whether a step of a pipeline has to be told the batch of each row that it transforms."""
    return "batch" in inspect.signature(getattr(step, "transform", len)).parameters
