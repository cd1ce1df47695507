"""Parts of estimators that several packages share: the fitted panel, the nearer of two planes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._typing import BoolArray, Float64Array


class SupportSelector(SelectorMixin):
    """A selector whose fit ends with ``support_``, the mask of its panel."""

    support_: BoolArray

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_


class NearerPlane:
    """A classifier by two planes, ``planes_`` and ``plane_intercepts_``: the nearer one decides.

    The planes have unit normals in standardised units, so that ``X @ planes_.T +
    plane_intercepts_`` are signed distances there. The decision is not linear in X, so there is
    no ``coef_``.
    """

    classes_: NDArray[Any]
    planes_: Float64Array
    plane_intercepts_: Float64Array

    def _signed_distances(self, table: NDArray[Any]) -> Float64Array:
        return table @ self.planes_.T + self.plane_intercepts_

    def decision_function(self, X: ArrayLike) -> Float64Array:
        """Return the distance to the first class's plane minus that to the second's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive where `predict` gives ``classes_[1]``; 0, a tie, goes to ``classes_[0]``.
        """
        check_is_fitted(self)
        table: NDArray[Any] = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        distances = np.abs(self._signed_distances(table))
        return distances[:, 0] - distances[:, 1]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the nearer plane for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        nearer_second = self.decision_function(X) > 0.0
        return self.classes_[nearer_second.astype(np.intp)]
