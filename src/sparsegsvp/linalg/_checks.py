"""Checks of values that every entry point shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._matrix import Matrix

# The bias needs fourth powers of the values, the float32 products second powers.
_LIMITS = {np.dtype(np.float32): 1e18, np.dtype(np.float64): 1e75}


def check_values(matrix: Matrix, name: str) -> None:
    """Refuse NaN, infinity and values whose powers overflow."""
    check_extremes(*matrix.extremes(), matrix.dtype, name)


def check_extremes(low: float, high: float, dtype: np.dtype[Any], name: str) -> None:
    """Refuse what `check_values` does, by the smallest and the largest value."""
    if not (np.isfinite(low) and np.isfinite(high)):
        kind = "NaN" if np.isnan(low) or np.isnan(high) else "infinity"
        raise ValueError(
            f"{name} contains {kind}: remove or impute those values first "
            "(for instance with sklearn.impute.SimpleImputer)"
        )
    limit = _LIMITS.get(np.dtype(dtype), 1e75)
    largest = max(abs(low), abs(high))
    if largest > limit:
        raise ValueError(
            f"{name} contains values up to {largest:.3g}, whose squares overflow: "
            f"rescale the columns to magnitudes below {limit:.0e}"
        )
