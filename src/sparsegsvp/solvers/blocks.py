"""Two class matrices, or their moments, checked and made covariances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import Float64Array
from ..linalg import ClassMoments, Covariances, Matrix, MomentCovariances, StackedMatrix
from ..linalg.covariances import Method, make_covariances
from ..linalg.matrix import read_matrix


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
