"""`sparse_gsvp` and `sparse_gsvp_path`: the solver on two class matrices."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from .._typing import Float64Array, IntArray
from ..linalg import (
    ClassMoments,
    Covariances,
    DataCovariances,
    Matrix,
    MomentCovariances,
    StackedMatrix,
    as_matrix,
    is_dask,
)
from ..linalg._checks import check_values
from ..linalg._dask import as_dask_matrix
from ..linalg._moments import scatter_by_class
from ._threads import one_blas_thread
from .exact import solve_in_row_space, solve_unpenalized
from .path import PathSolver, delta_grid
from .penalties import make_penalty
from .quotient import Plane
from .working_set import Problem, Solution

Method = Literal["auto", "moments", "working_set"]


@dataclass(frozen=True, eq=False)
class GSVPResult:
    """A stationary point of the sparse generalized singular vector problem.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        Unit vector, exact zeros outside `support`. Its sign is such that the mean of B
        lies on the positive side of the plane.
    b : float
        Bias of the plane ``x'w + b = 0``.
    delta : float
        Strength of the penalty.
    quotient : float
        The generalized Rayleigh quotient, without the penalty.
    objective : float
        Quotient plus penalty.
    kkt_residual : float
        Largest violation of stationarity, recomputed at `w` over all features. It
        certifies a stationary point, not a global minimum.
    n_iter : int
        Inner iterations.
    converged : bool
        Whether `kkt_residual` is at most ``tol * delta_max``; True where delta is 0.
    history : ndarray
        The objective after each iteration; it never increases.
    delta_max : float
        At and above it a single feature is stationary. NaN where delta is 0: that is
        solved exactly, without a path.
    clipped : bool
        The best bias ran off to infinity and was clipped.
    gap : float
        How far, relatively, the path downward was above this solution, which the path
        upward found; 0 where they agree.
    support : ndarray of int
        Indices of the non-zero features.
    """

    support: IntArray
    weights: Float64Array = field(repr=False)
    n_features: int
    b: float
    delta: float
    quotient: float
    objective: float
    kkt_residual: float
    n_iter: int
    converged: bool
    history: Float64Array = field(repr=False)
    delta_max: float
    clipped: bool = False
    gap: float = 0.0

    @property
    def w(self) -> Float64Array:
        """The weights of all features."""
        dense = np.zeros(self.n_features)
        dense[self.support] = self.weights
        return dense


def sparse_gsvp(
    A: Any,
    B: Any,
    delta: float,
    *,
    q: float = 1.0,
    tau: float = 1.0,
    pool: float = 0.0,
    w0: Any = None,
    weights: Any = None,
    sample_weight: tuple[Any, Any] | None = None,
    eps: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 1000,
    method: Method = "auto",
    inner: Literal["newton", "bb"] = "newton",
) -> GSVPResult:
    r"""A sparse plane close to the rows of A and far from those of B.

    Solves, with features as given (no standardisation),

    .. math::
        \min_{\|w\|_2 = 1,\, b}
        \frac{\mathrm{MSD}_A(w, b) + \tau}{\mathrm{MSD}_B(w, b) + \tau}
        + \delta \sum_f l_f\, p(|w_f|)

    where MSD is the mean squared distance of a class to the plane, its spread shrunk
    toward the pooled one by `pool`, and :math:`p(t) = t` for q = 1,
    :math:`(t + \epsilon)^q - \epsilon^q` below.

    Parameters
    ----------
    A, B : arrays or CSR/CSC matrices of shape (n_rows, n_features), or ClassMoments
        The rows of the plane's own class and of the other. float32 data is not widened.
        Dask arrays are read chunk by chunk.
        A `ClassMoments` must hold one class.
    delta : float
        Strength of the penalty, at least 0. At 0 the problem is solved exactly. At or
        above ``delta_max`` a single feature is returned.
    q : float, default=1.0
        Exponent of the penalty, in (0, 1].
    tau : float, default=1.0
        Floor on squared distances. 0 is the paper's quotient.
    pool : float, default=0.0
        In [0, 1]: 0 keeps each class's own spread, 1 uses the pooled spread for both.
    w0 : array of shape (n_features,), optional
        Where to start. By default a continuation from the best single feature. Unless
        the start is a solution already, the solution it leads to is carried on to smaller
        penalties and back, and the lower of the two is returned. Not used where delta
        is 0.
    weights : array of shape (n_features,), optional
        Positive penalty weights l_f.
    sample_weight : pair of arrays, optional
        Weights of the rows of A and of B.
    eps : float, default=1e-3
        Smoothing of the penalty for q < 1.
    tol : float, default=1e-6
        The certificate is to be below ``tol * delta_max``.
    max_iter : int, default=1000
        Largest number of inner iterations.
    method : {"auto", "moments", "working_set"}, default="auto"
        Form the class moments once, or solve on working sets of features. Chosen from
        the shapes by default.
    inner : {"newton", "bb"}, default="newton"
        Newton steps on the support, or Barzilai-Borwein steps alone.

    Returns
    -------
    GSVPResult
        With its certificate.

    Warns
    -----
    ConvergenceWarning
        The certificate is not met.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp import sparse_gsvp
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(40, 50))
    >>> B = rng.normal(size=(40, 50))
    >>> B[:, 7] += 4.0
    >>> result = sparse_gsvp(A, B, delta=0.1)
    >>> bool(result.converged), int(np.argmax(result.w))
    (True, 7)
    """
    delta = _nonnegative("delta", delta)
    with one_blas_thread():
        cov, problem = _prepare(
            A, B, q, tau, pool, weights, sample_weight, eps, method, inner, tol, max_iter
        )
        start = None if w0 is None else _unit(w0, problem)
        if delta == 0.0:
            result = _result(cov, _unpenalized(cov, problem), delta_max=float("nan"))
        else:
            solver = PathSolver(problem, tol=tol, max_iter=max_iter)
            if start is None:
                found = solver.continue_to(delta)
            else:
                found = solver.settle(delta, start)
            result = _result(cov, found, solver.delta_max)
    _warn(
        [result],
        f"the certificate is {result.kkt_residual:.2g}, above tol * delta_max = "
        f"{tol * result.delta_max:.2g}",
    )
    return result


def sparse_gsvp_path(
    A: Any,
    B: Any,
    deltas: Sequence[float] | Float64Array | None = None,
    *,
    n_deltas: int = 30,
    ratio: float = 1e-2,
    q: float = 1.0,
    tau: float = 1.0,
    pool: float = 0.0,
    weights: Any = None,
    sample_weight: tuple[Any, Any] | None = None,
    eps: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 1000,
    method: Method = "auto",
    inner: Literal["newton", "bb"] = "newton",
    upward: bool = True,
) -> list[GSVPResult]:
    """Solutions at falling deltas, each warm started from the last.

    The path is walked down and up again, and the lower objective is kept at each delta.

    Parameters
    ----------
    A, B, q, tau, pool, weights, sample_weight, eps, tol, max_iter, method, inner
        As in `sparse_gsvp`.
    deltas : sequence of float, optional
        Penalties, in any order; solved and returned from the largest to the smallest.
    n_deltas : int, default=30
        Without `deltas`: how many, in geometric steps from delta_max.
    ratio : float, default=1e-2
        Without `deltas`: the last one is ``ratio * delta_max``.
    upward : bool, default=True
        Whether to walk up again.

    Returns
    -------
    list of GSVPResult

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp import sparse_gsvp_path
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(40, 50)), rng.normal(size=(40, 50)) + 0.2
    >>> path = sparse_gsvp_path(A, B, n_deltas=5)
    >>> [len(result.support) for result in path][0]
    1
    >>> all(result.converged for result in path)
    True
    """
    if deltas is not None:
        grid = np.sort(np.asarray(deltas, dtype=np.float64).ravel())[::-1]
        if len(grid) == 0 or not np.isfinite(grid).all() or grid[-1] <= 0.0:
            raise ValueError("deltas must be positive numbers: use sparse_gsvp for delta = 0")
    else:
        _positive_integer("n_deltas", n_deltas)
        if not (_is_real(ratio) and 0.0 < ratio < 1.0):
            raise ValueError(f"ratio must be between 0 and 1, got {ratio!r}")
    with one_blas_thread():
        cov, problem = _prepare(
            A, B, q, tau, pool, weights, sample_weight, eps, method, inner, tol, max_iter
        )
        solver = PathSolver(problem, tol=tol, max_iter=max_iter)
        if deltas is None:
            grid = delta_grid(solver.delta_max, int(n_deltas), ratio)
        path = solver.run(grid, upward=upward)
        results = [_result(cov, found, solver.delta_max) for found in path]
    _warn(results, "the certificate is not met at {} of the deltas")
    return results


def choose_method(n_samples: int, n_features: int) -> Literal["moments", "working_set"]:
    """Moments where forming them costs less than the passes of a path over the data."""
    if n_features <= 200 or (n_features <= 1000 and n_samples >= 10 * n_features):
        return "moments"
    return "working_set"


def make_covariances(
    matrix: Matrix,
    codes: IntArray,
    weight: Float64Array | None,
    n_classes: int,
    *,
    standardize: bool,
    method: Method = "auto",
) -> Covariances:
    """Covariances of labelled rows by the method that suits their shape."""
    if method == "auto":
        method = choose_method(*matrix.shape)
    if method == "moments":
        moments = ClassMoments(
            np.arange(n_classes), *scatter_by_class(matrix, codes, weight, n_classes)
        )
        return MomentCovariances(moments, standardize)
    if method == "working_set":
        return DataCovariances(matrix, codes, weight, n_classes, standardize)
    raise ValueError(f'method must be "auto", "moments" or "working_set", got {method!r}')


def make_problem(
    cov: Covariances,
    i: int,
    *,
    tau: float,
    pool: float,
    q: float,
    eps: float,
    weights: Float64Array | None = None,
    newton: bool = True,
) -> Problem:
    """The problem of class i's plane."""
    return Problem(
        cov=cov,
        plane=Plane.of_class(i, cov.share, pool),
        tau=tau,
        penalty=make_penalty(q, eps),
        weights=np.ones(cov.means.shape[1]) if weights is None else weights,
        newton=newton,
        whole=isinstance(cov, MomentCovariances),
    )


def _prepare(
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
    tau = _nonnegative("tau", tau)
    if not (_is_real(pool) and 0.0 <= pool <= 1.0):
        raise ValueError(f"pool must be in [0, 1], got {pool!r}")
    make_penalty(q, eps)
    _nonnegative("tol", tol)
    _positive_integer("max_iter", max_iter)
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


def check_definite(cov: Covariances, plane: Plane) -> None:
    """Refuse tau = 0 where some direction has no distances at all: the quotient is 0/0 there."""
    features = np.flatnonzero(cov.standardization.varying)
    singular = len(features) >= cov.n_samples
    if not singular:
        cov.extend(features)
        total = cov.blocks(features, (plane.own + plane.other)[None])[0]
        contrast = (plane.other_mean - plane.own_mean) @ cov.means[:, features]
        total += np.multiply.outer(contrast, contrast)
        values = np.linalg.eigvalsh(total)
        singular = bool(values[0] <= 1e-13 * values[-1])
    if singular:
        raise ValueError(
            "tau = 0 leaves the quotient 0/0 on directions in which no row differs "
            "(more features than rows, or collinear features): use tau > 0"
        )


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


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _nonnegative(name: str, value: float) -> float:
    if not (_is_real(value) and np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def _positive_integer(name: str, value: int) -> None:
    if not (isinstance(value, Integral) and value >= 1):
        raise ValueError(f"{name} must be a positive integer, got {value!r}")


def _unit(w0: Any, problem: Problem) -> Float64Array:
    w = np.array(w0, dtype=np.float64).ravel()
    if w.shape != problem.weights.shape or not np.isfinite(w).all():
        raise ValueError(f"w0 must be {len(problem.weights)} finite numbers, one per feature")
    w[~problem.cov.standardization.varying] = 0.0
    norm = float(np.linalg.norm(w))
    if norm == 0.0:
        raise ValueError("w0 must not be zero on the features that vary")
    return w / norm


def _unpenalized(cov: Covariances, problem: Problem) -> Solution:
    varying = np.flatnonzero(cov.standardization.varying)
    if isinstance(cov, DataCovariances) and len(varying) > cov.n_samples:
        if cov.matrix.lazy:
            raise ValueError(
                "delta = 0 keeps every feature, so it needs A and B in memory: pass "
                "A.compute() and B.compute(), or a small delta"
            )
        found = solve_in_row_space(cov, problem.plane, problem.tau)
    else:
        found = solve_unpenalized(cov, problem.plane, problem.tau, varying)
    if found is None:
        raise ValueError(
            "the unpenalised plane lies at infinity: the class means coincide. Use delta > 0"
        )
    return found


def _result(cov: Covariances, found: Solution, delta_max: float) -> GSVPResult:
    sign = -1.0 if found.bias.other < 0.0 else 1.0
    weights = sign * found.w
    # bias.own is p_i + b for centred features: class 0 is A
    mean = cov.means[0, found.features] + cov.standardization.center[found.features]
    return GSVPResult(
        support=found.features,
        weights=weights,
        n_features=cov.means.shape[1],
        b=sign * found.bias.own - float(mean @ weights),
        delta=found.delta,
        quotient=found.quotient,
        objective=found.objective,
        kkt_residual=found.kkt_residual,
        n_iter=found.n_iter,
        converged=found.converged,
        history=np.asarray(found.history),
        delta_max=delta_max,
        clipped=found.bias.clipped,
        gap=found.gap,
    )


def _warn(results: list[GSVPResult], message: str) -> None:
    failed = sum(not result.converged for result in results)
    if failed:
        warnings.warn(
            f"{message.format(failed)}: raise max_iter or tol, or tau (a larger floor makes "
            "the problem better conditioned)",
            ConvergenceWarning,
            stacklevel=3,
        )
    if any(result.clipped for result in results):
        warnings.warn(
            "the best bias ran off to infinity and was clipped: along the direction found "
            "the class means coincide and the own class is the wider one",
            RuntimeWarning,
            stacklevel=3,
        )
