"""Rows in the chunks of a Dask array: every product is a pass over them, nothing is gathered.

A pass is one task per chunk and a tree of merges whose shape depends on the chunks alone,
so the scheduler and the number of workers change nothing, not even the last bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import Array, IntArray
from .rows import Merge, Rows, Spread, State, Visit, as_rows, check_extremes, is_dask

_FAN_IN = 8  # states that are merged by one task
_BAND_BYTES = 1 << 27  # largest band of rows that is put together from several chunks of columns


class DaskRows(Rows):
    """A Dask array of chunks, dense or sparse; the first pass refuses NaN and infinity."""

    lazy = True

    def __init__(self, X: Any, name: str = "X", names: Sequence[str] | None = None) -> None:
        _check_array(X, name)
        self.names = names
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        self.array, self.name = X, name
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = X.dtype
        self._rows, self._cols = (_bounds(sizes) for sizes in X.chunks)
        self._chunks = X.to_delayed()
        self._limits: tuple[Array, Array, IntArray] | None = None
        self._checked = False

    def dot(self, v: Array, *, exact: bool = False) -> Array:
        bands = self._each("dot", lambda rows, cols: v[cols], exact)
        return np.concatenate([sum(band) for band in self._compute(bands)])

    def tdot(self, u: Array, *, exact: bool = False) -> Array:
        bands = self._each("tdot", lambda rows, cols: u[..., rows], exact)
        columns = [_tree(np.add, list(column)) for column in zip(*bands)]
        return np.concatenate(self._compute(columns), axis=-1)

    def cross(
        self,
        index: IntArray,
        centers: Array,
        codes: IntArray,
        weight: Array,
        sets: IntArray,
        back: Array,
        *,
        exact: bool = False,
    ) -> Array:
        parts = []
        for i, rows in enumerate(self._rows):
            held = [j for j, cols in enumerate(self._cols) if _inside(index, cols).any()]
            local = [index[_inside(index, self._cols[j])] - self._cols[j].start for j in held]
            place = [np.flatnonzero(_inside(index, self._cols[j])) for j in held]
            v = _task(
                _centred_columns, [self._chunk(i, j) for j in held], local, place,
                centers, codes[rows], weight[:, rows], sets,
            )  # fmt: skip
            chunks = (self._chunk(i, j) for j in range(len(self._cols)))
            parts.append([_task(_ask, chunk, "tdot", v, exact=exact) for chunk in chunks])
        columns = [_tree(np.add, list(column)) for column in zip(*parts)]
        return np.concatenate(self._compute(columns), axis=-1)

    def columns(self, index: IntArray) -> Array:
        return self.take(index).map_rows(np.array)

    def take(self, index: IntArray) -> DaskRows:
        taken = self._like(self.array[:, np.asarray(index)])
        if self._limits is not None:
            low, high, codes = self._limits
            taken._limits = (low[:, index], high[:, index], codes)
        return taken

    def clipped(self, low: Array, high: Array, codes: IntArray) -> Rows:
        """The same chunks, each clipped whenever it is read."""
        rows = self._like(self.array)
        rows._limits = (low, high, codes)
        return rows

    def _like(self, array: Any) -> DaskRows:
        """Another array of these values, read with the same care."""
        rows = DaskRows(array, self.name)
        rows._limits, rows._checked = self._limits, self._checked
        return rows

    def reduce_rows(
        self, visit: Visit[State], merge: Merge[State], per_row: Sequence[np.ndarray] = ()
    ) -> State:
        source = self._by_bands()
        from dask import delayed

        name = None if self._checked else self.name
        shared = delayed((visit, merge, name), pure=False, traverse=False)
        parts = [
            _task(
                _reduce, shared, [array[rows] for array in per_row],
                *(source._chunk(i, j) for j in range(len(source._cols))),
            )
            for i, rows in enumerate(source._rows)
        ]  # fmt: skip
        (state,) = self._compute([_tree(merge, parts)])
        self._checked = True
        return state

    def class_statistics(
        self, codes: IntArray, weight: Array, n_classes: int
    ) -> tuple[Array, Array]:
        name = None if self._checked else self.name
        columns = [
            _tree(
                Spread.merged,
                [
                    _task(_spread, self._chunk(i, j), codes[rows], weight[rows], n_classes, name)
                    for i, rows in enumerate(self._rows)
                ],
            )
            for j in range(len(self._cols))
        ]
        parts = self._compute(columns)
        self._checked = True
        total = np.where(parts[0].total > 0.0, parts[0].total, 1.0)[:, None]
        mean = np.concatenate([part.mean for part in parts], axis=1)
        return mean, np.concatenate([part.square for part in parts], axis=1) / total

    def _chunk(self, i: int, j: int) -> Any:
        """The chunk of band i and column chunk j, clipped where there are limits."""
        chunk = self._chunks[i, j]
        if self._limits is None:
            return chunk
        low, high, codes = self._limits
        cols = self._cols[j]
        return _task(_clip, chunk, low[:, cols], high[:, cols], codes[self._rows[i]])

    def _each(
        self, method: str, vector: Callable[[slice, slice], Any], exact: bool
    ) -> list[list[Any]]:
        """A task for every chunk, its product with a vector."""
        return [
            [
                _task(_ask, self._chunk(i, j), method, vector(rows, cols), exact=exact)
                for j, cols in enumerate(self._cols)
            ]
            for i, rows in enumerate(self._rows)
        ]

    def _by_bands(self) -> DaskRows:
        """The same rows in bands that are small enough to be put together."""
        row_bytes = self.shape[1] * self.dtype.itemsize
        tallest = max(rows.stop - rows.start for rows in self._rows)
        if len(self._cols) == 1 or tallest * row_bytes <= _BAND_BYTES:
            return self
        return self._like(self.array.rechunk({0: max(1, _BAND_BYTES // row_bytes), 1: -1}))

    def _compute(self, tasks: list[Any]) -> list[Any]:
        import dask

        with warnings.catch_warnings():
            # what goes with the chunks, a few bytes per row, is no mistake
            warnings.filterwarnings("ignore", message="Sending large graph")
            return list(dask.compute(*tasks))


def read_dask(X: Any, name: str = "X") -> DaskRows:
    """Wrap a Dask array, or a data frame, whose partitions are counted in a pass of its own."""
    if not hasattr(X, "to_dask_array"):
        return DaskRows(X, name)
    kinds = X.dtypes
    other = [str(c) for c, kind in kinds.items() if getattr(kind, "kind", "O") not in "fiub"]
    if other:
        raise ValueError(
            f"column {other[0]!r} of {name} holds {kinds[other[0]]}, not numbers: drop or encode it"
        )
    # of the array, not of the frame: files of few columns are joined on the way to it
    return DaskRows(X.to_dask_array().compute_chunk_sizes(), name, list(X.columns))


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


def _task(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    from dask import delayed

    lists = any(isinstance(a, list) and a and is_dask(a[0]) for a in args)
    return delayed(function, pure=False, traverse=lists)(*args, **options)


def _tree(merge: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """Merge parts by a tree whose shape depends on their number alone."""
    while len(parts) > 1:
        starts = range(0, len(parts), _FAN_IN)
        parts = [_task(reduce, merge, parts[i : i + _FAN_IN]) for i in starts]
    return parts[0]


def _bounds(sizes: Sequence[int]) -> list[slice]:
    stops = np.cumsum(sizes)
    return [slice(int(stop - size), int(stop)) for size, stop in zip(sizes, stops)]


def _inside(index: IntArray, cols: slice) -> np.ndarray:
    return (index >= cols.start) & (index < cols.stop)


def _ask(chunk: Any, method: str, *args: Any, **options: Any) -> Any:
    """The answer of a chunk to a method of `Rows`."""
    return getattr(as_rows(chunk), method)(*args, **options)


def _clip(chunk: Any, low: Array, high: Array, codes: IntArray) -> Rows:
    return as_rows(chunk).clipped(low, high, codes)


def _centred_columns(
    chunks: list[Any],
    local: list[IntArray],
    place: list[IntArray],
    centers: Array,
    codes: IntArray,
    weight: Array,
    sets: IntArray,
) -> Array:
    """Weighted and centred columns of a band, one a row; their chunks and places are given."""
    v = np.empty((len(sets), len(codes)))
    for chunk, index, at in zip(chunks, local, place):
        v[at] = as_rows(chunk).columns(index).T
    v -= centers[:, codes]
    return v * weight[sets]


def _check(rows: Rows, name: str | None) -> None:
    if name is not None:
        check_extremes(float(rows.X.min()), float(rows.X.max()), rows.dtype, name)


def _spread(chunk: Any, codes: IntArray, weight: Array, n_classes: int, name: str | None) -> Spread:
    rows = as_rows(chunk)
    _check(rows, name)
    total = np.bincount(codes, weight, minlength=n_classes).astype(np.float64)
    mean, variance = rows.class_statistics(codes, weight, n_classes)
    return Spread(total, mean, variance * total[:, None])


def _reduce(shared: tuple[Any, Any, str | None], per_row: list[Any], *chunks: Any) -> Any:
    rows, (visit, merge, name) = as_rows(_join(*chunks)), shared
    _check(rows, name)
    return rows.reduce_rows(visit, merge, per_row)


def _join(*chunks: Any) -> Any:
    if len(chunks) == 1:
        return chunks[0]
    if any(isinstance(chunk, Rows) for chunk in chunks):  # clipped
        rows = [as_rows(chunk) for chunk in chunks]
        return np.concatenate([part.columns(np.arange(part.shape[1])) for part in rows], axis=1)
    if any(sp.issparse(chunk) for chunk in chunks):
        return sp.hstack(chunks, format="csr")
    return np.concatenate(chunks, axis=1)
