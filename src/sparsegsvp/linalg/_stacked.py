"""What the exact decompositions share: checked input and a basis of the stacked blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Above this the sum of squares of even a large matrix may leave the range of float64.
_LARGEST = float(np.sqrt(np.finfo(np.float64).max) / 1e6)


class StackedFactors(NamedTuple):
    """``blocks[i] = Q[i] @ (singular[:, None] * Wt)``, the Q[i] stacked having orthonormal columns.

    Attributes
    ----------
    Q : list of arrays, the i-th of shape (min(rows of block i, r), r)
        In the coordinates of ``bases``.
    bases : list of (array or None)
        ``bases[i] @ Q[i]`` are the rows that belong to block i; None stands for the identity.
    singular : array of shape (r,)
    Wt : array of shape (r, m)
        Orthonormal rows.
    """

    Q: list[Array]
    bases: list[Array | None]
    singular: Array
    Wt: Array


def as_dense(value: ArrayLike, name: str) -> Array:
    """Return `value` as a finite, non-empty 2-d float64 array, or say what is wrong with it."""
    if scipy.sparse.issparse(value):
        raise ValueError(
            f"{name} is a sparse matrix, and the exact decompositions are dense: "
            f"pass {name}.toarray()."
        )
    try:
        raw = np.asarray(value)
        if np.iscomplexobj(raw):
            raise TypeError("complex values")
        matrix = raw.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold real numbers in rows of equal length ({error}): "
            "convert it to a numeric 2-d array."
        ) from error
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must be a 2-d array (rows x features), got {matrix.ndim} dimension(s): "
            "reshape a single row with .reshape(1, -1)."
        )
    if 0 in matrix.shape:
        raise ValueError(
            f"{name} is empty (shape {matrix.shape}): it needs at least one row and one column."
        )
    # Extremes find NaN and infinity without a temporary of the size of the matrix.
    low, high = float(matrix.min()), float(matrix.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{name} contains NaN or infinity: impute or drop those entries first.")
    if max(-low, high) > _LARGEST:
        raise ValueError(
            f"{name} has values so large (up to {max(-low, high):.3g}) that their squares "
            f"overflow: divide {name} by a constant."
        )
    return matrix


def check_same_width(matrices: Sequence[Array], names: Sequence[str]) -> None:
    """Raise unless all matrices have the same number of columns."""
    width = matrices[0].shape[1]
    for matrix, name in zip(matrices[1:], names[1:]):
        if matrix.shape[1] != width:
            raise ValueError(
                f"{names[0]} has {width} columns and {name} has {matrix.shape[1]}: "
                "both must have the same features, in the same order."
            )


def check_rtol(rtol: float | None) -> None:
    """Raise unless `rtol` is None or lies in [0, 1)."""
    if rtol is not None and not 0.0 <= rtol < 1.0:
        raise ValueError(f"rtol must be None or in [0, 1), got {rtol!r}.")


def binary_scale(matrix: Array) -> float:
    """Return the power of two nearest above the Frobenius norm (1 for a zero matrix).

    Dividing by a power of two is exact, so scaling never costs accuracy.
    """
    largest = float(max(-matrix.min(), matrix.max()))
    if largest == 0.0:
        return 1.0
    # In two steps, because the squares of very small values vanish.
    first = float(np.ldexp(1.0, int(np.frexp(largest)[1])))
    norm = float(np.linalg.norm(matrix / first))
    return first * float(np.ldexp(1.0, int(np.frexp(norm)[1])))


def svd(matrix: Array, *, full: bool = False) -> tuple[Array, Array, Array]:
    """SVD by divide and conquer, by QR iteration where that fails to converge."""
    if 0 in matrix.shape:
        rows, columns = matrix.shape if full else (0, 0)
        return np.eye(matrix.shape[0], rows), np.zeros(0), np.eye(columns, matrix.shape[1])
    try:
        return scipy.linalg.svd(matrix, full_matrices=full, check_finite=False)
    except np.linalg.LinAlgError:
        return scipy.linalg.svd(
            matrix, full_matrices=full, check_finite=False, lapack_driver="gesvd"
        )


def qr(matrix: Array, *, full: bool = False) -> tuple[Array, Array]:
    """QR decomposition with a non-negative diagonal of R; empty matrices allowed."""
    rows, columns = matrix.shape
    if 0 in matrix.shape:
        size = rows if full else 0
        return np.eye(rows, size), np.zeros((size, columns))
    Q, R = scipy.linalg.qr(matrix, mode="full" if full else "economic", check_finite=False)
    sign = np.where(np.diagonal(R) < 0.0, -1.0, 1.0)
    Q[:, : len(sign)] *= sign
    R[: len(sign)] *= sign[:, None]
    return Q, R


def rounding_level(size: int) -> float:
    """What rounding leaves of a zero in a matrix of norm one and of this (smaller) size."""
    return _EPS * max(size, 32)


def _shorten(block: Array) -> tuple[Array | None, Array]:
    """Write a tall block as basis @ square; other blocks are returned as they are."""
    if block.shape[0] <= block.shape[1]:
        return None, block
    return qr(block)


def _compose(first: Array | None, second: Array | None) -> Array | None:
    if first is None or second is None:
        return second if first is None else first
    return first @ second


def factor_stack(blocks: Sequence[Array], rtol: float | None = None) -> StackedFactors:
    """Factor the stacked blocks through an SVD, dropping what is zero to rounding.

    Tall blocks are shortened by QR first, so that the cost beyond one QR per block depends on
    the number of columns only; wide ones keep their rows, and no columns x columns matrix appears.
    """
    bases, short = map(list, zip(*(_shorten(block) for block in blocks)))
    left, singular, Wt = svd(np.concatenate(short))
    if rtol is None:
        rtol = rounding_level(len(singular))
    rank = int(np.count_nonzero(singular > rtol * singular[0]))
    cuts = np.cumsum([block.shape[0] for block in short])[:-1]
    Q = []
    for i, part in enumerate(np.split(left[:, :rank], cuts)):
        basis, square = _shorten(part)
        bases[i] = _compose(bases[i], basis)
        Q.append(square)
    return StackedFactors(Q, bases, singular[:rank], Wt[:rank])


def lift(basis: Array | None, factor: Array) -> Array:
    """Return basis @ factor, None being the identity."""
    return factor if basis is None else basis @ factor


def column_signs(matrix: Array) -> Array:
    """Signs that make the largest entry of each column positive (the first one where tied)."""
    if matrix.shape[1] == 0:
        return np.ones(0)
    largest = matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])]
    return np.where(largest < 0.0, -1.0, 1.0)
