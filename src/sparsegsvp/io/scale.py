"""Raw intensities, recognised by their scale: advice to take their logarithm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice

_LEAST_FEATURES = 50  # fewer may be measurements of unlike things, each on a scale of its own
_HIGH = 256.0  # 2 ** 8: logarithms and pictures stay below it
_FEATURE_HIGH = 50.0  # no feature of a table of logarithms comes near it
_SPAN = 100.0  # from the weak values to the strong ones
_SKEW = 1.5  # from the median of all values to their mean
_LOOKED_AT = 1000  # about as many features, and samples


def raw_intensities(X: Any, low: NDArray[Any], high: NDArray[Any]) -> Iterator[Notice]:
    """Advise the logarithm where like features are positive, skewed and spread over decades.

    `low` and `high` are the least and the largest value of each feature. Most features must
    reach high and be skewed to the right themselves, with a mean above the median.
    """
    m = X.shape[1]
    if m < _LEAST_FEATURES or not np.nanmin(low) >= 0 or not np.nanmax(high) > _HIGH:
        return
    if np.nanmedian(high) <= _FEATURE_HIGH:
        return
    some = X[:: max(1, X.shape[0] // _LOOKED_AT), :: max(1, m // _LOOKED_AT)]
    some = some.toarray() if sparse.issparse(some) else some
    some = some[:, ~np.isnan(some).any(axis=0)]
    if not (some > 0).any():
        return
    skewed = np.mean(some.mean(axis=0) > np.median(some, axis=0)) > 0.6
    weak, strong = np.quantile(some[some > 0], [0.01, 0.99])
    if skewed and some.mean() > _SKEW * np.median(some) and strong > _SPAN * weak:
        yield Notice(
            "raw",
            "caution",
            f"The values reach {np.nanmax(high):,.0f} and differ by orders of magnitude, as raw "
            "intensities and counts do. On that scale a few large values decide everything: take "
            "logarithms first, with the option log2, unless you know better.",
        )
