"""Class matrices one above the other: as one matrix, and as covariances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .._typing import Float64Array, IntArray
from .covariances import Covariances, Method, MomentCovariances, make_covariances
from .matrix import Matrix, Merge, Spread, State, Visit, read_matrix, widest
from .moments import ClassMoments


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


def block_covariances(
    A: Any, B: Any, sample_weight: tuple[Any, Any] | None, method: Method
) -> Covariances:
    """Covariances of the classes 0 (A) and 1 (B), given as rows or moments and checked."""
    if isinstance(A, ClassMoments) or isinstance(B, ClassMoments):
        return _moment_covariances(A, B, sample_weight, method)
    blocks = [_check_block("A", A), _check_block("B", B)]
    if blocks[0].shape[1] != blocks[1].shape[1]:
        raise ValueError(
            f"A has {blocks[0].shape[1]} features and B has {blocks[1].shape[1]}: "
            "both need the same columns"
        )
    sizes = [block.shape[0] for block in blocks]
    weight = None
    if sample_weight is not None:
        weight = _check_row_weights(sample_weight, sizes)
    return make_covariances(
        StackedMatrix(blocks),
        np.repeat(np.arange(2), sizes),
        weight,
        2,
        standardize=False,
        method=method,
    )


def _moment_covariances(
    A: Any, B: Any, sample_weight: tuple[Any, Any] | None, method: Method
) -> Covariances:
    if not (isinstance(A, ClassMoments) and isinstance(B, ClassMoments)):
        raise ValueError("A and B must both be ClassMoments or both be arrays")
    if sample_weight is not None:
        raise ValueError("sample_weight is already in the moments: pass it to from_data")
    if method == "working_set":
        raise ValueError('moments hold no rows: use method="auto" or "moments"')
    for name, part in (("A", A), ("B", B)):
        if len(part.classes) != 1:
            raise ValueError(
                f"{name} holds the moments of {len(part.classes)} classes: pick one with "
                "moments.select([label])"
            )
        if part.counts[0] < 2:
            raise ValueError(f"{name} has {part.counts[0]} rows: a class needs at least two")
        if not (part.means.any() or part.scatters.any()):
            raise ValueError(_only_zeros(name))
    if A.n_features != B.n_features:
        raise ValueError(f"A has {A.n_features} features and B has {B.n_features}")
    both = ClassMoments(
        np.arange(2),
        np.concatenate([A.counts, B.counts]),
        np.concatenate([A.weights, B.weights]),
        np.concatenate([A.means, B.means]),
        np.concatenate([A.scatters, B.scatters]),
    )
    return MomentCovariances(both, standardize=False)


def _check_block(name: str, X: Any) -> Matrix:
    matrix = read_matrix(
        X, name, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
    )
    if matrix.shape[0] < 2 or matrix.shape[1] < 1:
        raise ValueError(
            f"{name} has shape {matrix.shape}: a class needs at least two rows and one feature"
        )
    matrix.check_values(name)
    if not matrix.costly_passes and matrix.extremes() == (0.0, 0.0):
        raise ValueError(_only_zeros(name))
    return matrix


def _only_zeros(name: str) -> str:
    return (
        f"{name} contains only zeros, so every plane through the origin fits it: check that "
        "the rows of this class were read"
    )


def _check_row_weights(sample_weight: tuple[Any, Any], sizes: list[int]) -> Float64Array:
    if not (isinstance(sample_weight, Sequence) and len(sample_weight) == 2):
        raise ValueError("sample_weight must be a pair: the weights of A's rows and of B's")
    parts = [np.asarray(part, dtype=np.float64).ravel() for part in sample_weight]
    for name, part, size in zip("AB", parts, sizes):
        if len(part) != size:
            raise ValueError(f"sample_weight has {len(part)} weights for the {size} rows of {name}")
        if not np.isfinite(part).all() or (part < 0.0).any():
            raise ValueError("sample_weight must be non-negative and finite")
        if np.count_nonzero(part) < 2:
            raise ValueError(f"sample_weight leaves fewer than two rows of {name}")
    return np.concatenate(parts)
