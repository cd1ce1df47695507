"""Samples in rows, of any storage, behind one contract.

Products with X and X', a few columns, and means and variances of classes: a kind of storage is one
subclass of `Rows` that offers these without a copy of X. Dask's chunks are in `chunks`.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_array,
    check_consistent_length,
    validate_data,
)

from .._typing import Array, IntArray
from .._validate import LARGEST

# Elements of a block that is converted or centred at a time: small enough to stay in cache.
BLOCK = 1 << 17
_AHEAD = 64  # columns of a sparse matrix that are looked for in one pass over its indices

State = TypeVar("State")
# visit(state or None, block of rows, further arrays of these rows) -> state
Visit = Callable[..., State]
# merge(state of earlier rows, state of later rows) -> state
Merge = Callable[[State, State], State]


class Rows(ABC):
    """Samples in rows, features in columns."""

    X: Any  # the array, of rows in memory
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: Sequence[str] | None = None  # of the columns, where the storage knows any
    lazy = False  # whether every product reads the data anew
    change: Any = None  # what clipping adds to X, a CSR matrix of one row a feature
    likely: Array | None = None  # how likely columns are to be asked for next, (any, m)

    @abstractmethod
    def dot(self, v: Array, *, exact: bool = False) -> Array:
        """X v in float64; ``exact`` accumulates in float64 whatever the data's type."""

    @abstractmethod
    def tdot(self, u: Array, *, exact: bool = False) -> Array:
        """X'u in float64, one row for each row of u; ``exact`` as in `dot`."""

    @abstractmethod
    def columns(self, index: IntArray) -> Array:
        """The columns at ``index``, dense in float64."""

    @abstractmethod
    def class_statistics(
        self, codes: IntArray, weight: Array, n_classes: int
    ) -> tuple[Array, Array]:
        """Mean and variance of each feature in each class; of a class without weight, zeros."""

    @abstractmethod
    def clipped(self, low: Array, high: Array, codes: IntArray) -> Rows:
        """The rows moved into the limits (n_classes, n_features) of their class; a zero stays."""

    def row_blocks(self) -> Iterator[tuple[slice, Array]]:
        """All rows, dense in float64, a block at a time; of rows in memory."""
        for rows in spans(self.shape[0], max(64, BLOCK // max(1, self.shape[1]))):
            block = self.X[rows].toarray() if sp.issparse(self.X) else self.X[rows]
            if self.change is not None:
                block = block + self.change[:, rows].toarray().T
            yield rows, block.astype(np.float64, copy=False)

    def corrected(
        self, mean: Array, variance: Array, codes: IntArray, weight: Array
    ) -> tuple[Array, Array]:
        """The statistics of these rows, from those of the rows before they were clipped."""
        return self.class_statistics(codes, weight, len(mean))

    def take(self, index: IntArray) -> Rows:
        """The columns at ``index`` as rows of their own."""
        return DenseRows(self.columns(index))

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
        """X'v for ``v = weight * (x_f - center of the row's class)``, a row for each of ``index``.

        Its weights are the row ``sets`` of ``weight``; ``back`` is ``X'(weight * center)``.
        """
        v = (self.columns(index) - centers.T[codes]).T
        v *= weight[sets]
        return self.tdot(v, exact=exact)

    def reduce_rows(
        self, visit: Visit[State], merge: Merge[State], per_row: Sequence[np.ndarray] = ()
    ) -> State:
        """Visit all rows, a block at a time with its part of ``per_row``, and return the state.

        The first state is None. Rows stored apart may be visited apart, and their states merged.
        """
        state: Any = None
        for rows, block in self.row_blocks():
            state = visit(state, block, *map(operator.itemgetter(rows), per_row))
        return state

    def map_rows(self, function: Callable[..., Array], per_row: Sequence[np.ndarray] = ()) -> Array:
        """What ``function(block, *parts)`` gives for blocks of rows, one row for each."""

        def visit(state: list[Array] | None, *block: Any) -> list[Array]:
            return [*(state or []), function(*block)]

        return np.concatenate(self.reduce_rows(visit, operator.add, per_row))


def as_rows(X: Any) -> Rows:
    """Wrap an array in the class that knows its storage."""
    if isinstance(X, np.ndarray):
        return DenseRows(X)
    if sp.issparse(X):
        return SparseRows(X)
    if isinstance(X, Rows):
        return X
    if is_dask(X):
        from .chunks import DaskRows

        return DaskRows(X)
    raise TypeError(
        f"cannot use an array of type {type(X).__name__}: pass a NumPy array, a SciPy "
        "CSR or CSC matrix, or a Dask array"
    )


def read_rows(
    X: Any, name: str = "X", *, estimator: Any = None, reset: bool = True, **checks: Any
) -> Rows:
    """Check rows as scikit-learn does and wrap them; Dask's values in their first pass.

    ``reset`` is for rows that are fitted. ``checks`` are options of ``check_array``.
    """
    if is_dask(X):
        from .chunks import read_dask

        lazy = read_dask(X, name)
        if estimator is not None:
            header: Any = lazy
            if lazy.names is not None:
                import pandas as pd

                header = pd.DataFrame(columns=list(lazy.names))
            validate_data(estimator, header, reset=reset, skip_check_array=True)
        return lazy
    checks = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32), **checks}
    if estimator is None:
        rows = as_rows(check_array(X, input_name=name, **checks))
    else:
        rows = as_rows(validate_data(estimator, X, reset=reset, **checks))
    if reset and 0 not in rows.shape:
        check_extremes(float(rows.X.min()), float(rows.X.max()), rows.dtype, name)
    return rows


def read_classes(
    X: Any, y: Any, sample_weight: Any = None, *, estimator: Any = None, **checks: Any
) -> tuple[Rows, np.ndarray, IntArray, Array]:
    """Checked rows, class labels, the class of each row as a code, and weights.

    Every class needs two rows, or one that stands for two: one row has no spread.
    """
    if y is None:
        name = "this function" if estimator is None else type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    y = y.compute() if is_dask(y) else y
    weight = sample_weight.compute() if is_dask(sample_weight) else sample_weight
    rows = read_rows(X, estimator=estimator, ensure_min_samples=2, **checks)
    y = _check_y(y, estimator=estimator)
    check_consistent_length(np.broadcast_to(0.0, rows.shape), y)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    weight = _check_sample_weight(
        weight, codes[:, None], dtype=np.float64, ensure_non_negative=True
    )
    check_class_sizes(classes, np.bincount(codes, repetitions(weight)).astype(int))
    return rows, classes, codes.astype(np.intp), weight


def repetitions(weight: Array) -> Array:
    """How many rows each row stands for: whole multiples of the lightest weight, or else 1."""
    times = weight / weight.min(where=weight > 0.0, initial=np.inf)
    whole = np.round(times)
    return whole if np.allclose(times, whole, rtol=0.0, atol=1e-6) else np.sign(weight)


def check_class_sizes(classes: np.ndarray, counts: np.ndarray) -> None:
    """Refuse fewer than two classes, or fewer than two rows in one."""
    if len(classes) < 2:
        raise ValueError(
            f"the labels hold one class only ({classes.tolist()[0]!r}): "
            "a classifier needs at least two"
        )
    for label, count in zip(classes.tolist(), counts.tolist()):
        if count < 2:
            raise ValueError(
                f"class {label!r} has {'one sample' if count else 'no samples'} of positive "
                "weight: every class needs at least two. Add samples or drop the class"
            )


def is_dask(X: Any) -> bool:
    """Whether this is a Dask collection, found out without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def check_extremes(low: float, high: float, dtype: np.dtype[Any], name: str) -> None:
    """Refuse NaN, infinity and values whose powers overflow, by the extreme values."""
    if not (np.isfinite(low) and np.isfinite(high)):
        kind = "NaN" if np.isnan(low) or np.isnan(high) else "infinity"
        raise ValueError(
            f"{name} contains {kind}: remove or impute those values first "
            "(for instance with sklearn.impute.SimpleImputer)"
        )
    limit = LARGEST.get(np.dtype(dtype).name, LARGEST["float64"])
    largest = max(abs(low), abs(high))
    if largest > limit:
        raise ValueError(
            f"{name} contains values up to {largest:.3g}, whose squares overflow: "
            f"rescale the columns to magnitudes below {limit:.0e}"
        )


def spans(total: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` that cover ``total``."""
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))


class Spread(NamedTuple):
    """Weight, mean and sum of squared deviations of each feature in each class."""

    total: Array
    mean: Array
    square: Array

    def merged(self, later: Spread) -> Spread:
        """The statistics of these rows and later ones (Chan, Golub and LeVeque 1983)."""
        total = self.total + later.total
        share = (later.total / np.where(total > 0.0, total, 1.0))[:, None]
        step = later.mean - self.mean
        square = self.square + later.square + step**2 * (self.total[:, None] * share)
        return Spread(total, self.mean + step * share, square)


class DenseRows(Rows):
    """A NumPy array of any memory order, float32 or float64, clipped by a sparse ``change``."""

    def __init__(self, X: np.ndarray, change: Any = None) -> None:
        self.X, self.change = X, change
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        # BLAS takes one unit stride and a positive leading dimension; anything else
        # would be copied whole by every product
        item = X.itemsize
        strides = np.array(X.strides)
        self._blas = item in X.strides and bool(((strides >= item) & (strides % item == 0)).all())

    def dot(self, v: Array, *, exact: bool = False) -> Array:
        if self._blas and not (exact and self.dtype != np.float64):
            out = (self.X @ v.astype(self.dtype, copy=False)).astype(np.float64, copy=False)
        else:
            out = np.zeros(self.shape[0])
            for cols, rows in self._tiles():
                out[rows] += self.X[rows, cols].astype(np.float64) @ v[cols]
        return out if self.change is None else out + self.change.T @ v

    def tdot(self, u: Array, *, exact: bool = False) -> Array:
        if self._blas and not (exact and self.dtype != np.float64):
            out = (u.astype(self.dtype, copy=False) @ self.X).astype(np.float64, copy=False)
        else:
            out = np.zeros((*u.shape[:-1], self.shape[1]))
            for cols, rows in self._tiles():
                out[..., cols] += u[..., rows] @ self.X[rows, cols].astype(np.float64)
        if self.change is not None:
            out += (self.change @ u.T).T
        return out

    def columns(self, index: IntArray) -> Array:
        out = self.X[:, index].astype(np.float64)
        if self.change is not None:
            # what SciPy's indexing does, at a tenth of its cost for few columns
            bounds, counts = self.change.indptr, np.diff(self.change.indptr)[index]
            column = np.repeat(np.arange(len(index)), counts)
            entry = np.arange(len(column)) + (bounds[index] - np.cumsum(counts) + counts)[column]
            out[self.change.indices[entry], column] += self.change.data[entry]
        return out

    def class_statistics(
        self, codes: IntArray, weight: Array, n_classes: int
    ) -> tuple[Array, Array]:
        mean, square = np.zeros((2, n_classes, self.shape[1]))
        totals = np.bincount(codes, weight, minlength=n_classes)
        # relative to the first row a constant column is exactly zero, and stays so
        pilot = self.X[0].astype(np.float64)
        seen = np.zeros(n_classes)
        for cols, rows in self._tiles():
            code = codes[rows]
            member = np.zeros((n_classes, len(code)))
            member[code, np.arange(len(code))] = weight[rows]
            total = member.sum(axis=1)
            block = np.subtract(self.X[rows, cols], pilot[cols], dtype=np.float64)
            center = (member @ block) / np.where(total > 0.0, total, 1.0)[:, None]
            block -= center[code]
            np.square(block, out=block)
            part = Spread(total, center, member @ block)
            if rows.start > 0:
                part = Spread(seen, mean[:, cols], square[:, cols]).merged(part)
            seen, mean[:, cols], square[:, cols] = part
        mean[totals > 0.0] += pilot
        square /= np.where(totals > 0.0, totals, 1.0)[:, None]
        return self.corrected(mean, square, codes, weight)

    def corrected(
        self, mean: Array, variance: Array, codes: IntArray, weight: Array
    ) -> tuple[Array, Array]:
        if self.change is None:
            return mean, variance
        n_classes, m = mean.shape
        change, row = self.change.data, self.change.indices
        col = np.repeat(np.arange(m), np.diff(self.change.indptr))
        totals = np.bincount(codes, weight, minlength=n_classes)
        at = codes[row] * m + col
        w = weight[row] / np.where(totals > 0.0, totals, 1.0)[codes[row]]
        # the square of x + change, less that of x, both about the mean
        moved = change * (change + 2.0 * (self.X[row, col] - mean.reshape(-1)[at]))
        shift = np.bincount(at, w * change, minlength=mean.size).reshape(mean.shape)
        moved = np.bincount(at, w * moved, minlength=mean.size).reshape(mean.shape)
        return mean + shift, np.maximum(variance + moved - shift**2, 0.0)

    def clipped(self, low: Array, high: Array, codes: IntArray) -> Rows:
        parts = []
        bottom, top = low.astype(self.dtype), high.astype(self.dtype)
        for cols, rows in self._tiles():
            block, code = self.X[rows, cols], codes[rows]
            i, j = np.nonzero((block > top[code, cols]) | (block < bottom[code, cols]))
            x = block[i, j].astype(np.float64)
            keep = x != 0.0
            i, j, x = i[keep], j[keep] + cols.start, x[keep]
            change = np.clip(x, low[code[i], j], high[code[i], j]) - x
            parts.append((i + rows.start, j, change))
        row, col, change = map(np.concatenate, zip(*parts))
        return DenseRows(self.X, sp.csr_array((change, (col, row)), shape=self.shape[::-1]))

    def _tiles(self) -> Iterator[tuple[slice, slice]]:
        """Columns and rows of blocks that lie together in memory, row by row for each columns."""
        n, m = self.shape
        width = max(1, BLOCK // n) if self.X.flags.f_contiguous else 512
        for cols in spans(m, width):
            for rows in spans(n, max(1, BLOCK // min(m, width))):
                yield cols, rows


class SparseRows(Rows):
    """A SciPy CSR or CSC matrix; implicit zeros are never written out."""

    def __init__(self, X: Any) -> None:
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        self._places: dict[int, IntArray] = {}  # of the values of a column

    # SciPy converts the stored values to the vector's type: a block at a time, not all of them
    def dot(self, v: Array, *, exact: bool = False) -> Array:
        out = np.zeros(self.shape[0])
        for rows, cols in self._spans():
            out[rows] += self.X[rows, cols] @ v[cols]
        return out

    def tdot(self, u: Array, *, exact: bool = False) -> Array:
        out = np.zeros((self.shape[1], *u.shape[:-1]))
        for rows, cols in self._spans():
            out[cols] += self.X[rows, cols].T @ u[..., rows].T
        return out.T

    def columns(self, index: IntArray) -> Array:
        return self.X[:, index].toarray().astype(np.float64, copy=False)

    def _spans(self) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of blocks that are stored together."""
        along = self.shape[self.X.format == "csc"]
        for span in spans(along, self._height(along)):
            yield (span, slice(None)) if self.X.format == "csr" else (slice(None), span)

    def _height(self, along: int) -> int:
        """How many rows or columns of ``along`` hold a block of values."""
        return max(1, 4 * BLOCK * along // max(1, self.X.nnz))

    def _entries(self, codes: IntArray) -> Iterator[tuple[slice, IntArray, IntArray]]:
        """Blocks of stored values, their rows, and their places in (n_classes, n_features)."""
        start, bounds = codes * self.shape[1], self.X.indptr
        for span in spans(len(bounds) - 1, self._height(len(bounds) - 1)):
            part = slice(bounds[span.start], bounds[span.stop])
            along = np.arange(span.start, span.stop)
            row = np.repeat(along, np.diff(bounds[span.start : span.stop + 1]))
            col = self.X.indices[part]
            if self.X.format == "csc":
                row, col = col, row
            yield part, row, start[row] + col

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
        if self.X.format != "csr":
            return super().cross(index, centers, codes, weight, sets, back, exact=exact)
        out = -back
        self._find(index)
        for j, f in enumerate(index.tolist()):
            # only rows in which the column is stored contribute, but for the centers; a block of
            # them is copied into the cache, and multiplied there in float64
            at = self._places[f]
            rows = np.searchsorted(self.X.indptr, at, side="right") - 1
            v = self.X.data[at] * weight[sets[j], rows]
            for span in spans(len(rows), self._height(self.shape[0])):
                out[j] += self.X[rows[span]].T @ v[span]
        return out

    def _find(self, index: IntArray) -> None:
        """Find where the values of columns are stored, and those of likely ones."""
        columns = [f for f in index.tolist() if f not in self._places]
        if not columns:
            return
        if self.likely is not None:
            columns += np.argsort(-self.likely.max(axis=0))[:_AHEAD].tolist()
        table, indices = np.zeros(self.shape[1], dtype=bool), self.X.indices
        table[[f for f in columns if f not in self._places]] = True
        parts = spans(len(indices), 8 * BLOCK)
        at = np.concatenate([p.start + np.flatnonzero(table[indices[p]]) for p in parts])
        order = np.argsort(indices[at], kind="stable")
        ends = np.searchsorted(indices[at[order]], np.arange(self.shape[1] + 1))
        for f in np.flatnonzero(table).tolist():
            self._places[f] = at[order[ends[f] : ends[f + 1]]].astype(self.X.indptr.dtype)

    def class_statistics(
        self, codes: IntArray, weight: Array, n_classes: int
    ) -> tuple[Array, Array]:
        n, m = self.shape
        totals = np.bincount(codes, weight, minlength=n_classes)
        weight = weight / np.where(totals > 0.0, totals, 1.0)[codes]
        mean, square = np.zeros((2, n_classes, m))
        for part, row, at in self._entries(codes):
            x = self.X.data[part]
            weighted = weight[row] * x
            np.add.at(mean.reshape(-1), at, weighted)
            weighted *= x
            np.add.at(square.reshape(-1), at, weighted)
        variance = np.maximum(square - mean**2, 0.0)
        # far from zero the difference cancels: such columns have hardly a zero
        far = np.flatnonzero((variance < 1e-6 * square).any(axis=0))
        for span in spans(len(far), max(1, 64 * BLOCK // n)):
            dense = DenseRows(self.columns(far[span]))
            mean[:, far[span]], variance[:, far[span]] = dense.class_statistics(
                codes, weight, n_classes
            )
        return mean, variance

    def clipped(self, low: Array, high: Array, codes: IntArray) -> Rows:
        """The same places with other values: of sparse rows most values may lie far out."""
        data = self.X.data.copy()
        low, high = low.reshape(-1).astype(self.dtype), high.reshape(-1).astype(self.dtype)
        for part, _, at in self._entries(codes):
            x = data[part]
            np.copyto(x, np.clip(x, low[at], high[at]), where=x != 0.0)
        arrays = (data, self.X.indices, self.X.indptr)
        return SparseRows(type(self.X)(arrays, shape=self.X.shape, copy=False))
