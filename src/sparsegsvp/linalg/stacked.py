"""Matrices one above the other, and the statistics of rows that are stored apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from .._typing import Float64Array, IntArray
from .matrix import Matrix, Merge, State, Visit, merge_diagonal, widest


class StackedMatrix(Matrix):
    """Matrices with the same columns, one above the other, none of them copied."""

    def __init__(self, parts: Sequence[Matrix]) -> None:
        self.parts = list(parts)
        sizes = [part.shape[0] for part in self.parts]
        self.shape = (sum(sizes), self.parts[0].shape[1])
        self.dtype = np.result_type(*(part.dtype for part in self.parts))
        self.costly_passes = any(part.costly_passes for part in self.parts)
        stops = np.cumsum(sizes)
        self._rows = [slice(int(b - a), int(b)) for a, b in zip(sizes, stops)]

    def dot(self, v: Float64Array, *, exact: bool = False) -> Float64Array:
        return np.concatenate([part.dot(v, exact=exact) for part in self.parts])

    def tdot(self, u: Float64Array, *, exact: bool = False) -> Float64Array:
        out = self.parts[0].tdot(u[..., self._rows[0]], exact=exact)
        for part, rows in zip(self.parts[1:], self._rows[1:]):
            out = out + part.tdot(u[..., rows], exact=exact)
        return out

    def columns(self, index: IntArray) -> Float64Array:
        return np.concatenate([part.columns(index) for part in self.parts])

    def rows(self, index: IntArray) -> Float64Array:
        # the parts may be of different kinds: dense
        return np.concatenate([block for _, block in self.row_blocks()])[index]

    def row_blocks(self) -> Iterator[tuple[slice, Float64Array]]:
        for part, rows in zip(self.parts, self._rows):
            for inner, block in part.row_blocks():
                yield slice(rows.start + inner.start, rows.start + inner.stop), block

    def reduce_rows(
        self, visit: Visit[State], merge: Merge[State], per_row: Sequence[np.ndarray | None] = ()
    ) -> State:
        states = [
            part.reduce_rows(visit, merge, [None if a is None else a[rows] for a in per_row])
            for part, rows in zip(self.parts, self._rows)
        ]
        return reduce(merge, states)

    def combine(self, index: IntArray, coef: Float64Array) -> Float64Array:
        return np.concatenate([part.combine(index, coef) for part in self.parts])

    def fetch(self, index: IntArray) -> None:
        for part in self.parts:
            part.fetch(index)

    def reads_cheaply(self, index: IntArray) -> bool:
        return all(part.reads_cheaply(index) for part in self.parts)

    def prefetch(self, scores: Float64Array) -> None:
        for part in self.parts:
            part.prefetch(scores)

    def cached_tdot(
        self, u: Float64Array, *, exact: bool = False
    ) -> tuple[IntArray, Float64Array] | None:
        seen = []
        for part, rows in zip(self.parts, self._rows):
            found = part.cached_tdot(u[rows], exact=exact)
            if found is None:
                return None
            seen.append(found)
        index = reduce(np.intersect1d, [at for at, _ in seen])
        out = np.zeros(len(index))
        for at, values in seen:
            order = np.argsort(at)
            out += values[order][np.searchsorted(at[order], index)]
        return index, out

    def class_statistics(
        self, codes: IntArray, weight: Float64Array, n_classes: int
    ) -> tuple[Float64Array, Float64Array]:
        spreads = [
            Spread.of(part, codes[rows], weight[rows], n_classes)
            for part, rows in zip(self.parts, self._rows)
        ]
        found = reduce(Spread.merged, spreads)
        return found.mean, found.spread

    def extremes(self) -> tuple[float, float]:
        return widest([part.extremes() for part in self.parts])


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
        merge_diagonal(mean, spread, self.total, later.mean, later.spread, later.total)
        return Spread(self.total + later.total, mean, spread)
