"""What the values of columns say: whole numbers, codes, copies of the label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_ENOUGH = 4  # samples of a class below which equal values say nothing
_RARE = 0.1  # share of the samples that have the rarer of two codes


def column_of(X: Any, i: int) -> NDArray[np.float64]:
    """Return one column as numbers."""
    column = X[:, [i]].toarray().ravel() if sparse.issparse(X) else X[:, i]
    return np.asarray(column, dtype=np.float64)


def is_code(column: NDArray[np.float64]) -> bool:
    """Whether a column holds 0 and 1, or 1 and 2, each of them often enough to be a code."""
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return values.tolist() in ([0, 1], [1, 2]) and bool(counts.min() >= _RARE * len(column))


def whole_columns(X: Any) -> NDArray[np.bool_]:
    """Return which columns hold whole numbers alone, missing ones aside."""
    if sparse.issparse(X):
        part = np.flatnonzero(~np.isnan(X.data) & (X.data != np.floor(X.data)))
        return np.bincount(X.indices[part], minlength=X.shape[1]) == 0
    found = [~(np.isfinite(b) & (b != np.floor(b))).any(axis=0) for _, b in _blocks(X)]
    return np.concatenate(found)


def constant_within(X: Any, codes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the columns that have one value in each class, and more than one in all."""
    members = [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]
    found: list[NDArray[np.intp]] = []
    if min(map(len, members)) < _ENOUGH:
        return np.array(found, dtype=np.intp)
    for start, block in _blocks(X):
        ends = [_ends(block[rows]) for rows in members]
        low, high = (np.array(part) for part in zip(*ends))
        same = (low == high).all(axis=0) & (low.min(axis=0) < high.max(axis=0))
        found.append(start + np.flatnonzero(same))
    return np.concatenate(found)


def _ends(block: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and the largest value of each column; NaN if one is missing."""
    if sparse.issparse(block):
        return block.min(axis=0).toarray().ravel(), block.max(axis=0).toarray().ravel()
    return block.min(axis=0), block.max(axis=0)


def _blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """Yield columns a few at a time, so that what is made of them stays small."""
    step = X.shape[1] if sparse.issparse(X) else max(1, (1 << 20) // max(1, X.shape[0]))
    for start in range(0, X.shape[1], step):
        yield start, X[:, start : start + step]


def determines(values: Any, codes: NDArray[Any]) -> bool:
    """Whether few values, each of them in one class only, say the class of every sample."""
    cells = [str(value) for value in values]
    pairs = {(cell, int(code)) for cell, code in zip(cells, codes)}
    levels = len(set(cells))
    return 1 < levels == len(pairs) and 3 * levels <= len(cells) >= 2 * _ENOUGH
