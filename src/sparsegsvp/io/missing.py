"""Codes for missing values: the usual ones, those a caller adds, and what is said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .._notices import Notice
from .errors import InputError, option, quote

# Cells that say "too little to be measured" rather than "not known".
BELOW_DETECTION = frozenset(
    [f"{sign}{limit}" for sign in ("", "<", "< ", "below ") for limit in ("lod", "loq", "dl")]
    + ["nd", "n.d.", "n.d", "n/d", "bdl", "blod", "bloq", "not detected", "undetected"]
    + ["undetermined", "below detection", "below detection limit", "below limit of detection"]
)

# In a column of numbers these stand for "not measured", in capitals or not; in a column of
# labels only an empty cell does, because "NA" and "None" are the names of classes somewhere.
MISSING = BELOW_DETECTION.union(
    ["", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "null", "none", "nil"],
    ["?", ".", "-", "--", "\N{EN DASH}", "\N{EM DASH}", "missing", "unknown", "#div/0!", "#num!"],
    ["not available", "not applicable", "not measured", "not determined", "no data"],
)


_CODE_LENGTH = 20  # what is longer is no code


def codes_of(na: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return codes that were given as one text with commas, or one by one."""
    given = [] if na is None else na.split(",") if isinstance(na, str) else na
    return tuple(dict.fromkeys(code for code in (str(c).strip() for c in given) if code))


def numbers_of(codes: Sequence[str]) -> list[float]:
    """Return the codes that are numbers, such as -999: they hold however they are written."""
    found = []
    for code in codes:
        try:
            found.append(float(code))
        except ValueError:
            continue
    return [value for value in found if np.isfinite(value)]


def mark_missing(X: Any, values: Sequence[float], *, in_place: bool) -> tuple[Any, Counter[str]]:
    """Put NaN where a matrix holds one of some values; return it and how often each was met."""
    met: Counter[str] = Counter()
    if sparse.issparse(X):
        if 0.0 in values:
            raise InputError(
                f"0 cannot mark missing values in a sparse matrix ({option('na')})",
                remedy="what such a matrix leaves out are zeros",
            )
        data, met = mark_missing(X.data, values, in_place=in_place)
        return (X._with_data(data, copy=False) if met else X), met
    for value in values:
        for part in _blocks(X):
            hit = X[..., part] == value
            if hit.any():
                if not (in_place and X.flags.writeable):
                    X, in_place = X.copy(order="K"), True
                X[..., part][hit] = np.nan
                met[f"{value:g}"] += int(hit.sum())
    return X, met


def _blocks(X: Any) -> Iterator[slice]:
    """Yield slices of columns small enough for a mask of them."""
    step = max(1, (1 << 22) // max(1, X.shape[0])) if X.ndim > 1 else 1 << 22
    return (slice(start, start + step) for start in range(0, X.shape[-1], step))


def describe_codes(met: Counter[str]) -> str:
    """Say how many values of which codes were taken as missing."""
    listing = [f"{quote(code)} {n}" for code, n in met.most_common(8)]
    more = f" and {len(met) - 8} other codes" if len(met) > 8 else ""
    return f"taken as missing: {', '.join(listing)}{more}"


def below_detection(met: Counter[str]) -> Iterator[Notice]:
    """Warn of values that are low rather than unknown."""
    low = Counter({code: n for code, n in met.items() if code.lower() in BELOW_DETECTION})
    if not low:
        return
    listing = ", ".join(f"{quote(code)} {n}" for code, n in low.most_common(5))
    yield Notice(
        "detection",
        "caution",
        f"Some values are marked as too low to be detected, or may be ({listing}). They are "
        "treated as missing and filled with medians, which are too high for them, and whether a "
        "value could be measured may itself differ between the classes. If there are many, write "
        "a low number in their place, such as half of the limit of detection.",
    )


def if_a_code(value: str) -> str:
    """Propose a short text that is no number as a code for missing values; commas divide codes."""
    if "," in value or len(value) > _CODE_LENGTH:
        return ""
    return f"; if it stands for a missing value, use {option('na', value)}"
