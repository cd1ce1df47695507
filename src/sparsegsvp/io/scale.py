"""Raw intensities, recognised by their scale: advice to take their logarithm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice

if TYPE_CHECKING:
    from .table import Table

_LEAST_FEATURES = 50  # fewer may be measurements of unlike things, each on a scale of its own
_HIGH = 256.0  # 2 ** 8: logarithms and pictures stay below it
_FEATURE_HIGH = 50.0  # no feature of a table of logarithms comes near it
_SPAN = 30.0  # between features that are weak and those that are strong
_LOOKED_AT = 1000  # features


def raw_intensities(X: Any, low: NDArray[Any], high: NDArray[Any]) -> Iterator[Notice]:
    """Advise the logarithm where like features are positive, skewed and spread over decades.

    `low` and `high` are the least and the largest value of each feature. Most features must
    be skewed to the right themselves: a mean above the median, a maximum far from it.
    """
    m = X.shape[1]
    if m < _LEAST_FEATURES or not np.nanmin(low) >= 0 or not np.nanmax(high) > _HIGH:
        return
    if np.nanmedian(high) <= _FEATURE_HIGH:
        return
    some = X[:, :: max(1, m // _LOOKED_AT)]
    some = some.toarray() if sparse.issparse(some) else some
    some = some[:, ~np.isnan(some).any(axis=0)]
    if not some.shape[1]:
        return
    means, medians = some.mean(axis=0), np.median(some, axis=0)
    skewed = np.mean(means > medians) > 0.6
    weak, strong = np.quantile(means, [0.05, 0.95])
    if skewed and strong > _SPAN * max(weak, np.finfo(float).tiny):
        yield Notice(
            "raw",
            "caution",
            f"The values reach {np.nanmax(high):,.0f} and differ by orders of magnitude between "
            "features, as raw intensities and counts do. On that scale a few large values decide "
            "everything: take logarithms first, with the option log2, unless you know better.",
        )


def without_advice(table: Table) -> Table:
    """Return a table whose logarithm is taken, which needs no advice to take it."""
    return replace(table, notices=tuple(n for n in table.notices if n.code != "raw"))
