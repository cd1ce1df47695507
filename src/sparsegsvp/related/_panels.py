"""Panels: features ranked by weight, and the selector that keeps the first of them."""

from __future__ import annotations

import warnings
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from .._typing import Float64Array as Array


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
