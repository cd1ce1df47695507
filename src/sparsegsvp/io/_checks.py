"""What is looked at once the numbers are in memory: overflow, gaps, constants, repeats."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._cells import looks_numeric
from .errors import InputError, listed, option, quote

# Squares and their sums over samples must stay finite in float64.
LARGEST = 1e150


def column_range(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Smallest and largest value of each column, NaN only where a column has nothing else."""
    if sparse.issparse(X):
        low, high = (np.asarray(m.todense()).ravel() for m in (X.min(axis=0), X.max(axis=0)))
        gaps = np.isnan(low) | np.isnan(high)
        for j in np.flatnonzero(gaps):
            column = X[:, [int(j)]].toarray()
            low[j], high[j] = np.fmin.reduce(column)[0], np.fmax.reduce(column)[0]
        return low, high
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def missing_per_column(X: Any) -> NDArray[np.intp]:
    """Number of missing values in each column, without a second matrix for dense data."""
    if sparse.issparse(X):
        return np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    counts = np.zeros(X.shape[1], dtype=np.intp)
    step = max(1, (1 << 22) // max(1, X.shape[0]))
    for start in range(0, X.shape[1], step):
        counts[start : start + step] = np.isnan(X[:, start : start + step]).sum(axis=0)
    return counts


def refuse_overflow(
    X: Any,
    low: NDArray[Any],
    high: NDArray[Any],
    names: Sequence[str],
    where: str,
    place: str,
    lines: Sequence[int] | None,
) -> None:
    """Refuse infinities and numbers whose squares overflow, by column and line."""
    extreme = np.flatnonzero(np.fmax(np.abs(low), np.abs(high)).astype(np.float64) > LARGEST)
    if not len(extreme):
        return
    j = int(extreme[0])
    column = X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j]
    column = column.astype(np.float64)
    i = int(np.flatnonzero(np.abs(column) > LARGEST)[0])
    at = lines[i] if lines is not None else i + 1
    value = float(column[i])
    what = "is infinite" if np.isinf(value) else f"is too large (at most {LARGEST:g})"
    raise InputError(
        f"{value:g} {what}",
        where=f"{where}, {place} {at}, column {quote(names[j])}",
        remedy="correct it, or leave the cell empty",
    )


def repeated_rows(X: Any) -> list[tuple[int, int]]:
    """Pairs (first, repeat) of samples whose numbers agree to the last bit."""
    seen: dict[bytes, int] = {}
    pairs = []
    for i in range(X.shape[0]):
        digest = hashlib.blake2b(digest_size=16)
        if sparse.issparse(X):
            part = slice(X.indptr[i], X.indptr[i + 1])
            digest.update(X.indices[part].tobytes())
            digest.update(X.data[part].tobytes())
        else:
            digest.update(X[i].tobytes())
        first = seen.setdefault(digest.digest(), i)
        if first != i:
            pairs.append((first, i))
    return pairs


def refuse_labels(y: Sequence[str], target: str, where: str) -> None:
    """Refuse labels that are no classes: one value only, identifiers, measurements."""
    distinct = sorted(set(y))
    if len(distinct) == 1:
        raise InputError(
            f"column {quote(target)} ({option('target')}) has only the value {quote(distinct[0])}",
            where=where,
            remedy="a classifier needs at least two classes",
        )
    numbers = [label for label in distinct if looks_numeric(label)]
    if len(numbers) == len(distinct) and any(not float(v).is_integer() for v in numbers):
        raise InputError(
            f"column {quote(target)} ({option('target')}) holds measurements such as "
            f"{listed(distinct[:3])}",
            where=where,
            remedy="cut it into classes first",
        )
    if len(distinct) == len(y) and len(y) > 2:
        raise InputError(
            f"column {quote(target)} ({option('target')}) has a different value in every row",
            where=where,
            remedy=f"it looks like identifiers: use {option('id')} for it and name the classes as "
            f"{option('target')}",
        )
