"""What `sparse_gsvp` and `sparse_gsvp_path` are given, checked and made a problem."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from .._typing import Float64Array
from ..linalg import (
    ClassMoments,
    Covariances,
    Matrix,
    MomentCovariances,
    StackedMatrix,
    as_matrix,
    is_dask,
)
from ..linalg._checks import check_values
from ..linalg._dask import as_dask_matrix
from ._build import Method, check_definite, make_covariances, make_problem
from .penalties import make_penalty
from .working_set import Problem


def prepare(
    A: Any,
    B: Any,
    q: float,
    tau: float,
    pool: float,
    weights: Any,
    sample_weight: tuple[Any, Any] | None,
    eps: float,
    method: Method,
    inner: str,
    tol: float,
    max_iter: int,
) -> tuple[Covariances, Problem]:
    """Checked covariances and the problem of A's plane."""
    tau = nonnegative("tau", tau)
    if not (is_real(pool) and 0.0 <= pool <= 1.0):
        raise ValueError(f"pool must be in [0, 1], got {pool!r}")
    make_penalty(q, eps)
    nonnegative("tol", tol)
    positive_integer("max_iter", max_iter)
    if inner not in ("newton", "bb"):
        raise ValueError(f'inner must be "newton" or "bb", got {inner!r}')
    cov = _covariances(A, B, sample_weight, method)
    if not cov.standardization.varying.any():
        raise ValueError(
            "all features are constant over the rows of A and B: there is nothing to select"
        )
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (cov.means.shape[1],):
            raise ValueError(
                f"weights must have one entry per feature ({cov.means.shape[1]}), "
                f"got shape {weights.shape}"
            )
        if not (np.isfinite(weights).all() and (weights > 0.0).all()):
            raise ValueError("weights must be positive and finite")
    problem = make_problem(
        cov,
        0,
        tau=tau,
        pool=float(pool),
        q=float(q),
        eps=float(eps),
        weights=weights,
        newton=inner == "newton",
    )
    if tau == 0.0:
        check_definite(cov, problem.plane)
    return cov, problem


def _covariances(
    A: Any, B: Any, sample_weight: tuple[Any, Any] | None, method: Method
) -> Covariances:
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
    if is_dask(X):
        # its values are looked at in the first pass
        return as_dask_matrix(X, name)
    array = check_array(
        X,
        accept_sparse=("csr", "csc"),
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name=name,
    )
    if array.shape[0] < 2 or array.shape[1] < 1:
        raise ValueError(
            f"{name} has shape {array.shape}: a class needs at least two rows and one feature"
        )
    matrix = as_matrix(array)
    check_values(matrix, name)
    if matrix.extremes() == (0.0, 0.0):
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


def is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def nonnegative(name: str, value: float) -> float:
    """The value as a float; refused below 0."""
    if not (is_real(value) and np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def positive_integer(name: str, value: int) -> None:
    """Refuse anything but a positive integer."""
    if not (isinstance(value, Integral) and value >= 1):
        raise ValueError(f"{name} must be a positive integer, got {value!r}")


def unit_start(w0: Any, problem: Problem) -> Float64Array:
    """The given start as a unit vector on the features that vary."""
    w = np.array(w0, dtype=np.float64).ravel()
    if w.shape != problem.weights.shape or not np.isfinite(w).all():
        raise ValueError(f"w0 must be {len(problem.weights)} finite numbers, one per feature")
    w[~problem.cov.standardization.varying] = 0.0
    norm = float(np.linalg.norm(w))
    if norm == 0.0:
        raise ValueError("w0 must not be zero on the features that vary")
    return w / norm
