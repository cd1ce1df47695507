"""`sparse_gsvp` and `sparse_gsvp_path`: the solver on two class matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import Float64Array, IntArray
from .._validate import check_integer, check_real, warn_caller
from ..linalg.covariances import ClassCovariances, CovariancesOfMoments, Part, covariances_of
from ..linalg.moments import ClassMoments
from ..linalg.rows import read_rows
from .exact import solve_unpenalized
from .newton import Problem, Solution, kkt_residual
from .path import Path
from .penalties import Penalty, penalty_factors
from .quotient import OneVsRest, check_definite


@dataclass(frozen=True, eq=False)
class GSVPResult:
    """A stationary point of the sparse generalized singular vector problem.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        Unit vector with exact zeros; the mean of B lies on the positive side of the plane.
    b : float
        Bias of the plane ``x'w + b = 0``.
    delta : float
        Strength of the penalty.
    quotient : float
        The generalized Rayleigh quotient, without the penalty.
    objective : float
        Quotient plus penalty.
    kkt_residual : float
        Largest violation of stationarity, recomputed at `w` over all features. It certifies a
        stationary point, not a global minimum.
    n_iter : int
        Inner iterations.
    converged : bool
        Whether `kkt_residual` is at most ``tol * delta_max``; True where delta is 0.
    history : ndarray
        The objective after each iteration; it never increases.
    delta_max : float
        At and above it a single feature is returned, or those of penalty factor 0, and is
        stationary. NaN where delta is 0: that is solved exactly, without a path.
    clipped : bool
        The best bias ran off to infinity and was clipped.
    gap : float
        How far, relatively, the path downward was above this solution of the path upward.
    """

    w: Float64Array = field(repr=False)
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
    def support(self) -> IntArray:
        """Indices of the non-zero features."""
        return np.flatnonzero(self.w)


def sparse_gsvp(
    A: Any,
    B: Any,
    delta: float,
    *,
    q: float = 1.0,
    tau: float = 1.0,
    pool: float = 0.0,
    w0: Any = None,
    penalty_factor: Any = None,
    sample_weight: tuple[Any, Any] | None = None,
    eps: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> GSVPResult:
    r"""A sparse plane close to the rows of A and far from those of B.

    Solves, with features as given (no standardisation),

    .. math::
        \min_{\|w\|_2 = 1,\, b}
        \frac{\mathrm{MSD}_A(w, b) + \tau}{\mathrm{MSD}_B(w, b) + \tau}
        + \delta \sum_f l_f\, p(|w_f|)

    where MSD is the mean squared distance of a class to the plane, its spread shrunk
    toward the pooled one by `pool`, and p is the penalty: :math:`p(t) = t` for q = 1,
    :math:`(t + \epsilon)^q - \epsilon^q` below.

    Parameters
    ----------
    A, B : arrays or CSR/CSC matrices of shape (n_rows, n_features), or ClassMoments
        The rows of the plane's own class and of the other. float32 data is not widened, Dask
        arrays are read chunk by chunk, and a `ClassMoments` must hold one class.
    delta : float
        Strength of the penalty, at least 0. At 0 the problem is solved exactly. At or
        above ``delta_max`` a single feature is returned, or those of penalty factor 0.
    q : float, default=1.0
        Exponent of the penalty, in (0, 1].
    tau : float, default=1.0
        Floor on squared distances. 0 is the paper's quotient.
    pool : float, default=0.0
        In [0, 1]: 0 keeps each class's own spread, 1 uses the pooled spread for both.
    w0 : array of shape (n_features,), optional
        Where to start, by default at the best single feature. Unless it is a solution already,
        the solution it leads to is carried on to smaller penalties and back, and the lower of
        the two is returned. Not used where delta is 0.
    penalty_factor : array of shape (n_features,) or mapping, optional
        The factors l_f: 0 for features that are always used, infinity for those that never are.
        Or those of some features by the names of A's columns; the others are 1.
    sample_weight : pair of arrays, optional
        Weights of the rows of A and of B.
    eps : float, default=1e-3
        Smoothing of the penalty for q < 1.
    tol : float, default=1e-6
        The certificate is to be below ``tol * delta_max``.
    max_iter : int, default=1000
        Largest number of inner iterations.

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
    >>> A, B = rng.normal(size=(2, 40, 50))
    >>> B[:, 7] += 4.0
    >>> result = sparse_gsvp(A, B, delta=0.1)
    >>> bool(result.converged), int(np.argmax(result.w))
    (True, 7)

    A feature that has to be in, and one that may not:

    >>> factors = np.ones(50)
    >>> factors[3], factors[7] = 0.0, np.inf
    >>> result = sparse_gsvp(A, B, delta=0.1, penalty_factor=factors)
    >>> 3 in result.support, 7 in result.support
    (True, False)
    """
    check_real("delta", delta, least=0)
    check_real("tol", tol, least=0)
    check_integer("max_iter", max_iter, least=1)
    problem = _problem(A, B, Penalty(q, eps), tau, pool, penalty_factor, sample_weight)
    start = None if w0 is None else _unit_start(w0, problem)
    if delta == 0.0:
        result = _result(problem.cov, _unpenalized(problem), delta_max=float("nan"))
    else:
        path = Path(problem, tol=tol, max_iter=max_iter)
        if start is None:
            solution = path.continue_to(float(delta))
        else:
            solution = path.solve_from(float(delta), start)
        result = _result(problem.cov, solution, path.delta_max)
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
    penalty_factor: Any = None,
    sample_weight: tuple[Any, Any] | None = None,
    eps: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 1000,
    max_features: int | None = None,
) -> list[GSVPResult]:
    """Solutions at falling deltas, each warm started from the last.

    The path is walked down and up again, and the lower objective is kept at each delta.
    It ends early, with the first solution of more than `max_features` features.

    Parameters
    ----------
    A, B, q, tau, pool, penalty_factor, sample_weight, eps, tol, max_iter
        As in `sparse_gsvp`.
    deltas : sequence of float, optional
        Penalties, in any order; solved and returned from the largest to the smallest.
    n_deltas : int, default=30
        Without `deltas`: how many, in geometric steps from delta_max.
    ratio : float, default=1e-2
        Without `deltas`: the last one is ``ratio * delta_max``.
    max_features : int, optional
        The path ends with the first solution that has more features than this, by default the
        number of rows of A and B together; pass that of the features for all deltas.

    Returns
    -------
    list of GSVPResult
        One for each delta, or fewer where the path ended early.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp import sparse_gsvp_path
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(40, 50)), rng.normal(size=(40, 50)) + 0.2
    >>> path = sparse_gsvp_path(A, B, n_deltas=5)
    >>> len(path[0].support), all(result.converged for result in path)
    (1, True)
    """
    if deltas is not None:
        grid = np.sort(np.asarray(deltas, dtype=np.float64).ravel())[::-1]
        if len(grid) == 0 or not np.isfinite(grid).all() or grid[-1] <= 0.0:
            raise ValueError("deltas must be positive numbers: use sparse_gsvp for delta = 0")
    else:
        check_integer("n_deltas", n_deltas, least=1)
        check_real("ratio", ratio, above=0, below=1)
    check_real("tol", tol, least=0)
    check_integer("max_iter", max_iter, least=1)
    if max_features is not None:
        check_integer("max_features", max_features, least=1)
    problem = _problem(A, B, Penalty(q, eps), tau, pool, penalty_factor, sample_weight)
    path = Path(problem, tol=tol, max_iter=max_iter)
    if deltas is None:
        grid = path.delta_max * np.geomspace(1.0, ratio, int(n_deltas))
    most = problem.cov.n_samples if max_features is None else int(max_features)
    solutions = path.walk(grid, most)
    results = [_result(problem.cov, solution, path.delta_max) for solution in solutions]
    _warn(results, "the certificate is not met at {} of the deltas")
    return results


def _problem(
    A: Any,
    B: Any,
    penalty: Penalty,
    tau: float,
    pool: float,
    penalty_factor: Any,
    sample_weight: tuple[Any, Any] | None,
) -> Problem:
    """The problem of A's plane, all parameters checked."""
    tau = check_real("tau", tau, least=0)
    pool = check_real("pool", pool, least=0, most=1)
    cov = _covariances(A, B, sample_weight)
    if not cov.varying.any():
        raise ValueError(
            "all features are constant over the rows of A and B: there is nothing to select"
        )
    names = A.feature_names if isinstance(A, ClassMoments) else getattr(A, "columns", None)
    factors = penalty_factors(penalty_factor, cov.means.shape[1], names)
    problem = Problem(cov, OneVsRest.of_class(0, cov.share, pool), tau, penalty, factors)
    if not problem.eligible.any():
        raise ValueError(
            "all features of finite penalty_factor are constant: there is nothing to select"
        )
    constant = np.count_nonzero(factors == 0.0) - len(problem.free)
    if constant:
        warn_caller(
            f"{constant} feature(s) of penalty_factor 0 are constant, so no plane can use them"
        )
    if tau == 0.0:
        check_definite(cov, problem.plane, np.flatnonzero(problem.eligible))
    return problem


def _unit_start(w0: Any, problem: Problem) -> Float64Array:
    """The given start as a unit vector on the features that a plane may use."""
    w = np.array(w0, dtype=np.float64).ravel()
    if w.shape != problem.factors.shape or not np.isfinite(w).all():
        raise ValueError(f"w0 must be {len(problem.factors)} finite numbers, one per feature")
    w[~problem.eligible] = 0.0
    norm = float(np.linalg.norm(w))
    if norm == 0.0:
        raise ValueError(
            "w0 must not be zero on the features that vary and have a finite penalty_factor"
        )
    return w / norm


def _unpenalized(problem: Problem) -> Solution:
    features = np.flatnonzero(problem.eligible)
    result = solve_unpenalized(problem.cov, problem.plane, problem.tau, features)
    if result is None:
        raise ValueError(
            "the unpenalised plane lies at infinity: the class means coincide. Use delta > 0"
        )
    w, bias = result
    gradient = problem.gradient(features, w, bias)[features]
    residual = kkt_residual(w, gradient, np.zeros(len(w)))
    keep = w != 0.0
    used, ratio = features[keep], bias.ratio
    return Solution(0.0, used, w[keep], bias, ratio, residual, 1, [ratio], gradient, True)


def _result(cov: ClassCovariances, solution: Solution, delta_max: float) -> GSVPResult:
    sign = -1.0 if solution.bias.other < 0.0 else 1.0
    w = np.zeros(cov.means.shape[1])
    w[solution.features] = sign * solution.w
    # bias.own is p_i + b for centred features: class 0 is A
    return GSVPResult(
        w=w,
        b=sign * solution.bias.own - float((cov.means[0] + cov.center) @ w),
        delta=solution.delta,
        quotient=solution.bias.ratio,
        objective=solution.objective,
        kkt_residual=solution.kkt_residual,
        n_iter=solution.n_iter,
        converged=solution.converged,
        history=np.asarray(solution.history),
        delta_max=delta_max,
        clipped=solution.bias.clipped,
        gap=solution.gap,
    )


def _warn(results: list[GSVPResult], message: str) -> None:
    failed = sum(not result.converged for result in results)
    if failed:
        warn_caller(
            f"{message.format(failed)}: raise max_iter or tol, or tau (a larger floor makes "
            "the problem better conditioned)",
            ConvergenceWarning,
        )
    if any(result.clipped for result in results):
        warn_caller(
            "the best bias ran off to infinity and was clipped: along the direction chosen "
            "the class means coincide and the own class is the wider one",
            RuntimeWarning,
        )


def _covariances(A: Any, B: Any, sample_weight: tuple[Any, Any] | None) -> ClassCovariances:
    """Covariances of the classes 0 (A) and 1 (B), given as rows or moments and checked."""
    if isinstance(A, ClassMoments) or isinstance(B, ClassMoments):
        return _moment_covariances(A, B, sample_weight)
    if sample_weight is None:
        sample_weight = (None, None)
    if not (isinstance(sample_weight, Sequence) and len(sample_weight) == 2):
        raise ValueError("sample_weight must be a pair: the weights of A's rows and of B's")
    parts = [
        _part(name, X, weight, k)
        for k, (name, X, weight) in enumerate(zip("AB", (A, B), sample_weight))
    ]
    m, other = (part.rows.shape[1] for part in parts)
    if m != other:
        raise ValueError(f"A has {m} features and B has {other}: both need the same columns")
    return covariances_of(parts, 2, standardize=False)


def _moment_covariances(A: Any, B: Any, sample_weight: Any) -> ClassCovariances:
    if not (isinstance(A, ClassMoments) and isinstance(B, ClassMoments)):
        raise ValueError("A and B must both be ClassMoments or both be arrays")
    if sample_weight is not None:
        raise ValueError("sample_weight is already in the moments: pass it to from_data")
    for name, part in (("A", A), ("B", B)):
        if len(part.classes) != 1:
            raise ValueError(
                f"{name} holds the moments of {len(part.classes)} classes: compute those of its "
                "rows alone, ClassMoments.from_data(X[y == label])"
            )
        if part.counts[0] < 2:
            raise ValueError(f"{name} has {part.counts[0]} rows: a class needs at least two")
    both = replace(A, classes=np.array([0])) + replace(B, classes=np.array([1]))
    return CovariancesOfMoments.of(both, standardize=False)


def _part(name: str, X: Any, sample_weight: Any, code: int) -> Part:
    """The rows of one class and their weights, checked."""
    rows = read_rows(X, name, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0)
    n = rows.shape[0]
    if n < 2 or rows.shape[1] < 1:
        raise ValueError(
            f"{name} has shape {rows.shape}: a class needs at least two rows and one feature"
        )
    rows.check_values(name)
    weight = np.ones(n)
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64).ravel()
        if len(weight) != n:
            raise ValueError(f"sample_weight has {len(weight)} weights for the {n} rows of {name}")
        if not np.isfinite(weight).all() or (weight < 0.0).any():
            raise ValueError("sample_weight must be non-negative and finite")
        if np.count_nonzero(weight) < 2:
            raise ValueError(f"sample_weight leaves fewer than two rows of {name}")
    return Part(rows, np.full(n, code), weight)
