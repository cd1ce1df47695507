"""One interface to the kinds of array that hold samples in rows.

The solver needs four things of its data: a product with X, a product with X', a few
columns, and per-class statistics. A kind of array is one subclass of `Matrix` that offers
them; none of them copies X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from .._typing import Float64Array, IntArray
from .._validate import LARGEST

# Elements of a block that is converted or centred at a time: small enough to stay in cache.
BLOCK = 1 << 17
# Elements of a matrix from which a product with it costs more than what may save it, and the
# part of its columns up to which reading them one by one is much cheaper.
_LARGE, _FEW = 1 << 20, 0.1

State = TypeVar("State")
# Takes what earlier rows have left, or None, a block of rows, and what else there is of
# these rows; it may change the state it is given.
Visit = Callable[..., State]
# Joins the states of earlier and later rows into a new one.
Merge = Callable[[State, State], State]


class Matrix(ABC):
    """Samples in rows, features in columns, of any storage; by default in memory."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    # names of the columns, where the storage knows any
    names: Sequence[str] | None = None
    # whether every product reads the data anew, so that columns at hand should be used first
    costly_passes = False

    @abstractmethod
    def dot(self, v: Float64Array, *, exact: bool = False) -> Float64Array:
        """X v, in float64; ``exact`` accumulates in float64 whatever the data's type."""

    @abstractmethod
    def tdot(self, u: Float64Array, *, exact: bool = False) -> Float64Array:
        """X' u, in float64; ``exact`` as in `dot`. Of several rows u, one row each."""

    @abstractmethod
    def columns(self, index: IntArray) -> Float64Array:
        """The columns at ``index``, dense, in float64."""

    @abstractmethod
    def rows(self, index: IntArray) -> Any:
        """The rows at ``index``, as the kind of array they came in."""

    @abstractmethod
    def row_blocks(self) -> Iterator[tuple[slice, Float64Array]]:
        """All rows, dense and in float64, a block at a time."""

    @abstractmethod
    def class_statistics(
        self, codes: IntArray, weight: Float64Array, n_classes: int
    ) -> tuple[Float64Array, Float64Array]:
        """Mean and variance of each feature in each class; weights sum to 1 in a class."""

    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest value; NaN where there is one."""

    def check_values(self, name: str) -> None:
        """Refuse NaN, infinity and overflow; where passes are costly, in the first of them."""
        check_extremes(*self.extremes(), self.dtype, name)

    def reduce_rows(
        self, visit: Visit[State], merge: Merge[State], per_row: Sequence[np.ndarray | None] = ()
    ) -> State:
        """Show every row once to ``visit``, a block at a time, and return the last state.

        ``visit(state, block, *parts) -> state`` gets None as its first state, and as parts
        the block's rows of the arrays ``per_row``. Rows that are stored apart may be visited
        apart; ``merge(state, state) -> state`` joins the states, earlier rows first.
        """
        state: Any = None
        for rows, block in self.row_blocks():
            state = visit(state, block, *(None if a is None else a[rows] for a in per_row))
        return state

    def combine(self, index: IntArray, coef: Float64Array) -> Float64Array:
        """``X[:, index] @ coef``, in float64, for a coef of several columns."""
        return self.columns(index) @ coef

    def fetch(self, index: IntArray) -> None:
        """Bring columns that will be used again and again into memory, in one pass."""
        return

    def reads_cheaply(self, index: IntArray) -> bool:
        """Whether reading these columns costs much less than a product with all of them."""
        return False

    def prefetch(self, scores: Float64Array) -> None:
        """Let the next pass that fetches columns also fetch those of the largest scores."""
        return

    def cached_tdot(
        self, u: Float64Array, *, exact: bool = False
    ) -> tuple[IntArray, Float64Array] | None:
        """The columns in memory and their part of X' u; None where all are in memory."""
        return None


def as_matrix(X: Any) -> Matrix:
    """Wrap an array in the class that knows its storage."""
    if isinstance(X, Matrix):
        return X
    if sp.issparse(X):
        return SparseMatrix(X)
    if isinstance(X, np.ndarray):
        return DenseMatrix(X)
    if _is_dask(X):
        from .lazy import DaskMatrix

        return DaskMatrix(X)
    raise TypeError(
        f"cannot use an array of type {type(X).__name__}: pass a NumPy array, a SciPy "
        "CSR or CSC matrix, or a Dask array"
    )


def read_matrix(
    X: Any, name: str = "X", *, estimator: Any = None, reset: bool = True, **checks: Any
) -> Matrix:
    """Check rows as scikit-learn does and wrap them.

    Of Dask arrays and data frames, what is known without reading them is checked. The names
    and the number of features are compared with the estimator's or, with ``reset``, set.
    ``checks`` are options of ``sklearn.utils.check_array`` for rows in memory.
    """
    if _is_dask(X):
        from .lazy import read_dask

        X = read_dask(X, name)
    if isinstance(X, Matrix):
        if estimator is not None:
            validate_data(estimator, _header(X), reset=reset, skip_check_array=True)
        return X
    checks = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32), **checks}
    if estimator is None:
        return as_matrix(check_array(X, input_name=name, **checks))
    return as_matrix(validate_data(estimator, X, reset=reset, **checks))


def _header(matrix: Matrix) -> Any:
    """Return what scikit-learn reads names and the number of features from."""
    if matrix.names is None:
        return matrix
    import pandas as pd

    return pd.DataFrame(columns=list(matrix.names))


def dense(values: Any) -> np.ndarray:
    """A NumPy array or a SciPy matrix as an array."""
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


def in_memory(values: Any) -> Any:
    """Labels or weights as they are, computed if Dask holds them."""
    return values.compute() if _is_dask(values) else values


def _is_dask(X: Any) -> bool:
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


def widest(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The smallest and the largest of several extremes."""
    # np.min, unlike min, carries a NaN through
    return float(np.min([low for low, _ in pairs])), float(np.max([high for _, high in pairs]))


def _spans(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))


class DenseMatrix(Matrix):
    """A NumPy array, float32 or float64, of any memory order."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = X.dtype
        # BLAS takes one unit stride and a positive leading dimension; anything else
        # would be copied whole by every product.
        item = X.itemsize
        self._blas = item in X.strides and all(s >= item and s % item == 0 for s in X.strides)

    def dot(self, v: Float64Array, *, exact: bool = False) -> Float64Array:
        if not self._blas or (exact and self.dtype != np.float64):
            return np.concatenate([block @ v for _, block in self.row_blocks()])
        return (self.X @ v.astype(self.dtype, copy=False)).astype(np.float64, copy=False)

    def tdot(self, u: Float64Array, *, exact: bool = False) -> Float64Array:
        if self._blas and not (exact and self.dtype != np.float64):
            return (u.astype(self.dtype, copy=False) @ self.X).astype(np.float64, copy=False)
        out = np.empty((*u.shape[:-1], self.shape[1]))
        for cols in _spans(self.shape[1], max(1, BLOCK // max(1, self.shape[0]))):
            out[..., cols] = u @ self.X[:, cols].astype(np.float64)
        return out

    def columns(self, index: IntArray) -> Float64Array:
        return self.X[:, index].astype(np.float64)

    def reads_cheaply(self, index: IntArray) -> bool:
        return self.X.size >= _LARGE and len(index) <= _FEW * self.shape[1]

    def rows(self, index: IntArray) -> np.ndarray:
        return self.X[index]

    def row_blocks(self) -> Iterator[tuple[slice, Float64Array]]:
        for rows in _spans(self.shape[0], max(64, BLOCK // max(1, self.shape[1]))):
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def class_statistics(
        self, codes: IntArray, weight: Float64Array, n_classes: int
    ) -> tuple[Float64Array, Float64Array]:
        n, m = self.shape
        mean, var = np.zeros((n_classes, m)), np.zeros((n_classes, m))
        # Relative to the first row a constant column is exactly zero, and stays so.
        pilot = self.X[0].astype(np.float64)
        width = min(m, 512)
        seen = np.zeros(n_classes)
        for rows in _spans(n, max(1, BLOCK // width)):
            code = codes[rows]
            member = _membership(code, weight[rows], n_classes)
            total = member.sum(axis=1)
            safe = np.where(total > 0, total, 1.0)
            for cols in _spans(m, width):
                block = np.subtract(self.X[rows, cols], pilot[cols], dtype=np.float64)
                block_mean = (member @ block) / safe[:, None]
                block -= block_mean[code]
                np.square(block, out=block)
                block_var = member @ block
                _merge_diagonal(mean[:, cols], var[:, cols], seen, block_mean, block_var, total)
            seen += total
        mean += pilot
        return mean, var

    def extremes(self) -> tuple[float, float]:
        return float(self.X.min()), float(self.X.max())


class SparseMatrix(Matrix):
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

    def dot(self, v: Float64Array, *, exact: bool = False) -> Float64Array:
        if exact and self.dtype != np.float64:
            return np.concatenate([self.X[rows].astype(np.float64) @ v for rows in self._spans()])
        # SciPy would convert the stored values to the vector's type, which copies X.
        return np.asarray(self.X @ v.astype(self.dtype, copy=False), dtype=np.float64)

    def tdot(self, u: Float64Array, *, exact: bool = False) -> Float64Array:
        if exact and self.dtype != np.float64:
            out = np.zeros((self.shape[1], *u.shape[:-1]))
            for rows in self._spans():
                out += self.X[rows].astype(np.float64).T @ u[..., rows].T
            return out.T
        return np.asarray(self.X.T @ u.T.astype(self.dtype, copy=False), dtype=np.float64).T

    def columns(self, index: IntArray) -> Float64Array:
        return self.X[:, index].toarray().astype(np.float64, copy=False)

    def rows(self, index: IntArray) -> Any:
        return self.X[index]

    def row_blocks(self) -> Iterator[tuple[slice, Float64Array]]:
        for rows in self._spans():
            yield rows, self.X[rows].toarray().astype(np.float64, copy=False)

    def class_statistics(
        self, codes: IntArray, weight: Float64Array, n_classes: int
    ) -> tuple[Float64Array, Float64Array]:
        m = self.shape[1]
        size = n_classes * m
        mean, share, drift, spread = (np.zeros(size) for _ in range(4))
        stored = np.zeros(size, dtype=np.intp)
        for at, x, w in self._entries(codes, weight, size):
            mean += np.bincount(at, w * x, minlength=size)
            share += np.bincount(at, w, minlength=size)
            stored += np.bincount(at, minlength=size)
        for at, x, w in self._entries(codes, weight, size):
            x -= mean[at]
            drift += np.bincount(at, w * x, minlength=size)
            spread += np.bincount(at, w * x * x, minlength=size)
        # the implicit zeros lie mean away from the mean; a full column has none, whatever
        # rounding has left of its weights
        full = stored == np.repeat(np.bincount(codes, minlength=n_classes), m)
        implicit = np.where(full, 0.0, np.maximum(1.0 - share, 0.0))
        drift -= implicit * mean
        spread += implicit * mean**2
        # what the first pass missed of the mean, the second one measures
        var = np.maximum(spread - drift**2, 0.0)
        return (mean + drift).reshape(n_classes, m), var.reshape(n_classes, m)

    def _spans(self) -> Iterator[slice]:
        return _spans(self.shape[0], max(64, BLOCK // max(1, self.shape[1])))

    def _entries(
        self, codes: IntArray, weight: Float64Array, size: int
    ) -> Iterator[tuple[IntArray, Float64Array, Float64Array]]:
        """Place in (class, feature), value and weight of the stored values, some at a time."""
        for span in _spans(self.X.nnz, max(BLOCK // 4, size)):
            index = np.arange(span.start, span.stop)
            major = np.searchsorted(self.X.indptr, index, side="right") - 1
            minor = self.X.indices[span]
            row, col = (major, minor) if self.X.format == "csr" else (minor, major)
            at = codes[row] * self.shape[1] + col
            yield at, self.X.data[span].astype(np.float64), weight[row]

    def extremes(self) -> tuple[float, float]:
        if self.X.nnz == 0:
            return 0.0, 0.0
        return float(min(self.X.data.min(), 0.0)), float(max(self.X.data.max(), 0.0))


def _membership(codes: IntArray, weight: Float64Array, n_classes: int) -> Float64Array:
    member = np.zeros((n_classes, len(codes)))
    member[codes, np.arange(len(codes))] = weight
    return member


def _merge_diagonal(
    mean: Float64Array,
    spread: Float64Array,
    seen: Float64Array,
    block_mean: Float64Array,
    block_spread: Float64Array,
    total: Float64Array,
) -> None:
    """Merge a block's means and sums of squares into the running ones, in place.

    The update of Chan, Golub and LeVeque (1983): nothing is subtracted that is large.
    """
    share = (total / np.where(seen + total > 0, seen + total, 1.0))[:, None]
    step = block_mean - mean
    spread += block_spread + step**2 * (seen[:, None] * share)
    mean += step * share


@dataclass(frozen=True, eq=False)
class Spread:
    """Weight, mean and sum of squared deviations of each feature in each class."""

    total: Float64Array
    mean: Float64Array
    spread: Float64Array

    @classmethod
    def of(cls, part: Matrix, codes: IntArray, weight: Float64Array, n_classes: int) -> Spread:
        """The statistics of some rows, whose weights need not sum to 1 in a class."""
        total = np.bincount(codes, weight, minlength=n_classes).astype(np.float64)
        safe = np.where(total > 0, total, 1.0)
        mean, var = part.class_statistics(codes, weight / safe[codes], n_classes)
        return cls(total, mean, var * total[:, None])

    def merged(self, later: Spread) -> Spread:
        """The statistics of these rows and later ones."""
        mean, spread = self.mean.copy(), self.spread.copy()
        _merge_diagonal(mean, spread, self.total, later.mean, later.spread, later.total)
        return Spread(self.total + later.total, mean, spread)
