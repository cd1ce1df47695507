"""Subsets of the samples to re-run a selection on: classes even, groups whole.

The sampling unit is a group where groups are given, a sample otherwise. Units whose label
is constant are stratified by it; a group of mixed labels belongs to no class, and such
groups are drawn together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


def _units(y: NDArray[Any], groups: NDArray[Any] | None) -> tuple[list[Indices], list[Indices]]:
    """Return the rows of each unit, and the units of each stratum."""
    codes = np.unique(y, return_inverse=True)[1]
    if groups is None:
        rows = [np.array([i]) for i in range(y.size)]
        stratum = codes
    else:
        member = np.unique(groups, return_inverse=True)[1]
        rows = [np.flatnonzero(member == g) for g in range(member.max() + 1)]
        stratum = np.array([codes[r[0]] if np.ptp(codes[r]) == 0 else -1 for r in rows])
    return rows, [np.flatnonzero(stratum == s) for s in np.unique(stratum)]


def _join(rows: list[Indices], units: NDArray[np.intp]) -> Indices:
    return np.sort(np.concatenate([rows[u] for u in units]))


def complementary_pair(
    y: NDArray[Any], groups: NDArray[Any] | None, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return two disjoint halves of exactly floor(n / 2) units each, classes even.

    The odd units of the strata are dealt alternately to the halves; if their number is odd,
    one of them sits out.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.evaluation._resampling import complementary_pair
    >>> a, b = complementary_pair(np.array([0, 0, 0, 1, 1, 1, 1]), None, np.random.default_rng(0))
    >>> len(a), len(b), len(np.intersect1d(a, b))
    (3, 3, 0)
    """
    rows, strata = _units(y, groups)
    halves: tuple[list[int], list[int]] = ([], [])
    odd: list[int] = []
    for units in strata:
        drawn = rng.permutation(units)
        half = drawn.size // 2
        halves[0].extend(drawn[:half])
        halves[1].extend(drawn[half : 2 * half])
        odd.extend(drawn[2 * half :])
    odd = list(rng.permutation(odd)) if odd else []
    for first, second in zip(odd[::2], odd[1::2]):
        halves[0].append(first)
        halves[1].append(second)
    return _join(rows, np.array(halves[0], dtype=np.intp)), _join(
        rows, np.array(halves[1], dtype=np.intp)
    )


def subsample(
    y: NDArray[Any], groups: NDArray[Any] | None, fraction: float, rng: np.random.Generator
) -> Indices:
    """Return a share of the units of each stratum, drawn without replacement."""
    rows, strata = _units(y, groups)
    parts = []
    for units in strata:
        size = max(1, round(fraction * units.size))
        parts.append(rng.choice(units, size, replace=False))
    return _join(rows, np.concatenate(parts))


def bootstrap(
    y: NDArray[Any], groups: NDArray[Any] | None, fraction: float, rng: np.random.Generator
) -> Indices:
    """Return units of each stratum drawn with replacement; rows repeat with their unit."""
    rows, strata = _units(y, groups)
    parts = []
    for units in strata:
        size = max(1, round(fraction * units.size))
        parts.append(rng.choice(units, size, replace=True))
    return _join(rows, np.concatenate(parts))
