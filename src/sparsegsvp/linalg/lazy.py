"""Rows in the chunks of a Dask array: every product is a pass over them, nothing is gathered.

A pass is one task per chunk and a tree of merges whose shape depends on the chunks alone,
so the scheduler and the number of workers change nothing, not even the last bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import Float64Array, IntArray
from .matrix import Matrix, Merge, Spread, State, Visit, as_matrix, check_extremes, widest

# States that are merged by one task.
_FAN_IN = 8
# Columns that are fetched in one pass, as far as their bytes allow it and an eighth of all
# at most: reading the chunks is what costs, and the path will ask for more of them.
_AHEAD, _AHEAD_BYTES = 16_384, 1 << 28
# Largest band of rows that is put together from several chunks of columns.
_BAND_BYTES = 1 << 27


class DaskMatrix(Matrix):
    """A Dask array of dense or SciPy-sparse chunks, by rows, by columns or both.

    The sizes of the chunks must be known; ``name`` is what errors call the array,
    ``names`` are those of its columns. The first
    pass also looks for NaN, infinity and values that overflow: checking costs no pass of its
    own. Columns that have been asked for are kept.
    """

    costly_passes = True

    def __init__(self, X: Any, name: str = "X", names: Sequence[str] | None = None) -> None:
        _check_array(X, name)
        self.names = names
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        self.array, self.name = X, name
        self.shape: tuple[int, int] = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = X.dtype
        self.n_passes = 0.0  # chunks read so far, as a multiple of all chunks
        self._rows, self._cols = (_bounds(sizes) for sizes in X.chunks)
        self._chunks = X.to_delayed()
        self._extremes: tuple[float, float] | None = None
        self._scores: Float64Array | None = None
        self._held = np.empty((0, self.shape[0]), dtype=self.dtype)  # one row per column
        self._index = np.empty(0, dtype=np.intp)  # which columns these are
        self._place = np.full(self.shape[1], -1, dtype=np.int32)

    def rows(self, index: IntArray) -> Any:
        return self.array[index]

    def dot(self, v: Float64Array, *, exact: bool = False) -> Float64Array:
        parts = [
            [
                _task(_ask, chunk, "dot", v[cols], exact=exact)
                for chunk, cols in zip(band, self._cols)
            ]
            for band in self._chunks
        ]
        return np.concatenate([sum(row) for row in self._pass(parts)])

    def tdot(self, u: Float64Array, *, exact: bool = False) -> Float64Array:
        parts = [
            [
                _task(_ask, chunk, "tdot", u[..., rows], exact=exact)
                for chunk, rows in zip(column, self._rows)
            ]
            for column in self._chunks.T
        ]
        return np.concatenate(self._pass([_tree(np.add, column) for column in parts]), axis=-1)

    def columns(self, index: IntArray) -> Float64Array:
        index = np.asarray(index)
        self.fetch(index)
        return self._held[self._place[index]].T.astype(np.float64, order="C")

    def fetch(self, index: IntArray) -> None:
        missing = np.unique(index[self._place[index] < 0])
        if len(missing):
            self._read_columns(self._with_prefetched(missing))

    def _with_prefetched(self, missing: IntArray) -> IntArray:
        """These columns and, as far as there is room, those of the largest scores."""
        bytes_each = self.shape[0] * self.dtype.itemsize
        room = min(_AHEAD, _AHEAD_BYTES // bytes_each, self.shape[1] // 8) - len(missing)
        if self._scores is None or room <= 0:
            return missing
        scores = np.where(self._place < 0, self._scores, -np.inf)
        scores[missing] = -np.inf
        order = np.argsort(-scores, kind="stable")[:room]
        return np.union1d(missing, order[np.isfinite(scores[order])])

    def _read_columns(self, index: IntArray) -> None:
        touched = [
            (j, index[(index >= cols.start) & (index < cols.stop)] - cols.start)
            for j, cols in enumerate(self._cols)
        ]
        touched = [(j, local) for j, local in touched if len(local)]
        parts = [[_task(_columns, band[j], local) for j, local in touched] for band in self._chunks]
        found = self._pass(parts, share=len(touched) / len(self._cols))
        rows = np.concatenate([np.concatenate(row, axis=1) for row in found])
        self._place[index] = len(self._held) + np.arange(len(index))
        self._index = np.concatenate([self._index, index])
        self._held = np.concatenate([self._held, rows.T.astype(self.dtype, copy=False)])

    def reads_cheaply(self, index: IntArray) -> bool:
        return bool((self._place[index] >= 0).all())

    def prefetch(self, scores: Float64Array) -> None:
        self._scores = scores

    def cached_tdot(
        self, u: Float64Array, *, exact: bool = False
    ) -> tuple[IntArray, Float64Array] | None:
        return self._index, as_matrix(self._held.T).tdot(u, exact=exact)

    def combine(self, index: IntArray, coef: Float64Array) -> Float64Array:
        index = np.asarray(index)
        if (self._place[index] >= 0).all():
            return self.columns(index) @ coef
        parts = []
        for band in self._chunks:
            row = []
            for chunk, cols in zip(band, self._cols):
                inside = (index >= cols.start) & (index < cols.stop)
                if inside.any():
                    local = index[inside] - cols.start
                    row.append(_task(_ask, chunk, "combine", local, coef[inside]))
            parts.append(row)
        found = self._pass(parts, share=len(parts[0]) / len(self._cols))
        return np.concatenate([reduce(np.add, row) for row in found])

    def row_blocks(self) -> Iterator[tuple[slice, Float64Array]]:
        source = self._by_bands()
        for rows, band in zip(source._rows, source._chunks):
            (chunk,) = self._pass([_task(_join, *band)], share=1 / len(source._rows))
            for inner, block in as_matrix(chunk).row_blocks():
                yield slice(rows.start + inner.start, rows.start + inner.stop), block

    def reduce_rows(
        self, visit: Visit[State], merge: Merge[State], per_row: Sequence[np.ndarray | None] = ()
    ) -> State:
        source = self._by_bands()
        compact = [_compact(array) for array in per_row]
        shared = _once((visit, merge))
        parts = [
            _task(_reduce, shared, [None if a is None else a[rows] for a in compact], *band)
            for rows, band in zip(source._rows, source._chunks)
        ]
        state, low, high = self._pass([_tree(_merge_checked(merge), parts)])[0]
        self._check(low, high)
        return state

    def class_statistics(
        self, codes: IntArray, weight: Float64Array, n_classes: int
    ) -> tuple[Float64Array, Float64Array]:
        compact = _compact(codes)
        parts = [
            _tree(
                _merge_checked(Spread.merged),
                [
                    _task(_spread, chunk, compact[rows], weight[rows], n_classes)
                    for chunk, rows in zip(column, self._rows)
                ],
            )
            for column in self._chunks.T
        ]
        found = self._pass(parts)
        self._check(*widest([(low, high) for _, low, high in found]))
        mean = np.concatenate([part.mean for part, _, _ in found], axis=1)
        return mean, np.concatenate([part.spread for part, _, _ in found], axis=1)

    def extremes(self) -> tuple[float, float]:
        if self._extremes is None:
            parts = [[_task(_ask, chunk, "extremes") for chunk in band] for band in self._chunks]
            self._extremes = widest([pair for row in self._pass(parts) for pair in row])
        return self._extremes

    def check_values(self, name: str) -> None:
        self.name = name  # the first pass over all rows looks at the values, see `_check`

    def _check(self, low: float, high: float) -> None:
        self._extremes = (low, high)
        check_extremes(low, high, self.dtype, self.name)

    def _by_bands(self) -> DaskMatrix:
        """The same rows in bands that are small enough to be put together."""
        if len(self._cols) == 1:
            return self
        row_bytes = self.shape[1] * self.dtype.itemsize
        tallest = max(rows.stop - rows.start for rows in self._rows)
        if tallest * row_bytes <= _BAND_BYTES:
            return self
        size = max(1, _BAND_BYTES // row_bytes)
        return DaskMatrix(self.array.rechunk({0: size, 1: -1}), self.name)

    def _pass(self, tasks: list[Any], share: float = 1.0) -> list[Any]:
        """Compute tasks that read a share of the chunks between them."""
        import dask

        self.n_passes += share
        with warnings.catch_warnings():
            # what goes with the chunks, a few bytes per row, is no mistake
            warnings.filterwarnings("ignore", message="Sending large graph")
            return list(dask.compute(*tasks))


def read_dask(X: Any, name: str = "X") -> DaskMatrix:
    """Wrap a Dask array, or a data frame of numbers in partitions of rows.

    Partitions do not know their lengths; counting them is a pass of its own, unless the
    storage knows them.
    """
    if not hasattr(X, "to_dask_array"):
        return DaskMatrix(X, name)
    kinds = X.dtypes
    other = [str(c) for c, kind in kinds.items() if getattr(kind, "kind", "O") not in "fiub"]
    if other:
        raise ValueError(
            f"column {other[0]!r} of {name} holds {kinds[other[0]]}, not numbers: drop or encode it"
        )
    matrix = DaskMatrix(X.to_dask_array(lengths=True), name, list(X.columns))
    matrix.n_passes = 1.0
    return matrix


def _check_array(X: Any, name: str) -> None:
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array for {name} instead")
    if not all(np.isfinite(size) for sizes in X.chunks for size in sizes):
        raise ValueError(
            f"the sizes of {name}'s chunks are not known: call {name}.compute_chunk_sizes(), or "
            "pass lengths=True where the array is made from a data frame"
        )
    if np.dtype(X.dtype).kind not in "fiub":
        raise ValueError(f"{name} holds {X.dtype}, not numbers: convert it to float first")
    if 0 in X.shape:
        raise ValueError(
            f"Found array with {'0 sample(s)' if X.shape[0] == 0 else '0 feature(s)'} "
            f"(shape={X.shape}) while a minimum of 1 is required."
        )


# --- graphs ----------------------------------------------------------------------------


def _task(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    from dask import delayed

    return delayed(function, pure=False, traverse=False)(*args, **options)


def _once(value: Any) -> Any:
    """A value that all tasks of a pass share, sent once."""
    from dask import delayed

    return delayed(value, pure=False, traverse=False)


def _tree(merge: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """Merge parts by a tree whose shape depends on their number alone."""
    while len(parts) > 1:
        parts = [
            _task(_fold, merge, *parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)
        ]
    return parts[0]


def _fold(merge: Callable[[Any, Any], Any], *parts: Any) -> Any:
    return reduce(merge, parts)


class _merge_checked:
    """Merge two values that come with their extremes, and the extremes."""

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self.merge = merge

    def __call__(self, a: tuple[Any, float, float], b: tuple[Any, float, float]) -> Any:
        with np.errstate(all="ignore"):
            return (self.merge(a[0], b[0]), *widest([a[1:], b[1:]]))


def _bounds(sizes: Sequence[int]) -> list[slice]:
    stops = np.cumsum(sizes)
    return [slice(int(stop - size), int(stop)) for size, stop in zip(sizes, stops)]


def _compact(array: Any) -> Any:
    """Non-negative integers in as few bytes as they need, for they travel with the tasks."""
    if array is None or array.dtype.kind not in "iu" or not len(array) or array.min() < 0:
        return array
    return array.astype(np.min_scalar_type(int(array.max())))


def _as_index(array: Any) -> Any:
    """Compact integers as numpy's index type again."""
    return array.astype(np.intp) if array is not None and array.dtype.kind in "iu" else array


# --- what is done to a chunk, wherever it is ---------------------------------------------


def _ask(chunk: Any, method: str, *args: Any, **options: Any) -> Any:
    """The answer of a chunk to a method of `Matrix`."""
    with np.errstate(all="ignore"):
        return getattr(as_matrix(chunk), method)(*args, **options)


def _columns(chunk: Any, index: IntArray) -> np.ndarray:
    matrix = as_matrix(chunk)
    return matrix.columns(index).astype(matrix.dtype, copy=False)


def _spread(
    chunk: Any, codes: IntArray, weight: Float64Array, n_classes: int
) -> tuple[Spread, float, float]:
    matrix = as_matrix(chunk)
    with np.errstate(all="ignore"):
        found = Spread.of(matrix, _as_index(codes), weight, n_classes)
        return (found, *matrix.extremes())


def _reduce(shared: tuple[Any, Any], per_row: list[Any], *chunks: Any) -> tuple[Any, float, float]:
    matrix: Matrix = as_matrix(_join(*chunks))
    visit, merge = shared
    with np.errstate(all="ignore"):
        state = matrix.reduce_rows(visit, merge, [_as_index(array) for array in per_row])
        return (state, *matrix.extremes())


def _join(*chunks: Any) -> Any:
    if len(chunks) == 1:
        return chunks[0]
    if any(sp.issparse(chunk) for chunk in chunks):
        return sp.hstack(chunks, format="csr")
    return np.concatenate(chunks, axis=1)
