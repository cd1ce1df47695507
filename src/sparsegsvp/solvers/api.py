"""`sparse_gsvp` and `sparse_gsvp_path`: the solver on two class matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._typing import Array, IntArray
from .._validate import check_integer, check_real
from ..linalg.moments import ClassMoments
from ..linalg.rows import read_rows
from .newton import Problem, Solution, kkt_residual
from .path import Path, warn_of
from .penalties import Penalty, penalty_factors
from .quotient import (
    ClassCovariances,
    CovariancesOfMoments,
    OneVsRest,
    Part,
    covariances_of,
    solve_unpenalized,
)


@dataclass(frozen=True, eq=False)
class GSVPResult:
    """A stationary point of the sparse generalized singular vector problem.

    Attributes
    ----------
    w, b : ndarray of shape (n_features,) and float
        The plane ``x'w + b = 0``, w of length 1 with exact zeros, B's mean on the positive side.
    delta, quotient, objective : float
        Strength of the penalty, generalized Rayleigh quotient, and quotient plus penalty.
    kkt_residual : float
        Largest violation of stationarity, recomputed at `w` over all features. It certifies a
        stationary point, not a global minimum.
    n_iter, history : int and ndarray
        Inner iterations, and the objective after each of them, which never increases.
    converged : bool
        Whether `kkt_residual` is at most ``tol * delta_max``; True where delta is 0.
    delta_max : float
        At and above it a single feature is returned, or those of penalty factor 0, and is
        stationary. NaN where delta is 0: that is solved exactly, without a path.
    clipped, gap : bool and float
        Whether the best bias ran off to infinity and was clipped, and how far, relatively, the
        path downward was above this solution of the path upward.
    """

    w: Array = field(repr=False)
    b: float
    delta: float
    quotient: float
    objective: float
    kkt_residual: float
    n_iter: int
    converged: bool
    history: Array = field(repr=False)
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
    :math:`(t + \epsilon)^q - \epsilon^q` below. Warns where the certificate is not met.

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
        Where to start, by default at the best single feature, unless delta is 0. The solution is
        also carried on to smaller penalties and back, and the lower of the two is returned.
    penalty_factor : array of shape (n_features,) or mapping, optional
        The factors l_f: 0 for features that are always used, infinity for those that never are.
        Or those of some features by the names of A's columns; the others are 1.
    eps : float, default=1e-3
        Smoothing of the penalty for q < 1.
    tol, max_iter : float, default=1e-6, and int, default=1000
        The certificate is to be below ``tol * delta_max`` after so many iterations.

    Examples
    --------
    A feature that tells the classes apart, one that has to be in, and one that may not:

    >>> import numpy as np
    >>> from sparsegsvp import sparse_gsvp
    >>> A, B = np.random.default_rng(0).normal(size=(2, 40, 50))
    >>> B[:, 7] += 4.0
    >>> int(sparse_gsvp(A, B, delta=0.1).w.argmax())
    7
    >>> factors = np.where(np.arange(50) == 3, 0.0, np.where(np.arange(50) == 7, np.inf, 1.0))
    >>> result = sparse_gsvp(A, B, delta=0.1, penalty_factor=factors)
    >>> 3 in result.support, 7 in result.support
    (True, False)
    """
    check_real("delta", delta, least=0)
    problem = _problem(A, B, Penalty(q, eps), tau, pool, penalty_factor, tol, max_iter)
    start = None if w0 is None else _unit_start(w0, problem)
    if delta == 0.0:
        return _results(problem, [_unpenalized(problem)], float("nan"))[0]
    path, delta = Path(problem, tol=tol, max_iter=max_iter), float(delta)
    solution = path.at(delta) if start is None else path.solve_from(delta, start)
    return _results(problem, [solution], path.delta_max)[0]


def sparse_gsvp_path(
    A: Any,
    B: Any,
    deltas: Sequence[float] | Array | None = None,
    *,
    n_deltas: int = 30,
    ratio: float = 1e-2,
    q: float = 1.0,
    tau: float = 1.0,
    pool: float = 0.0,
    penalty_factor: Any = None,
    eps: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> list[GSVPResult]:
    """Solutions at falling deltas, each warm started from the last.

    The path is walked down and up again, and the lower objective is kept at each delta.

    Parameters
    ----------
    A, B, q, tau, pool, penalty_factor, eps, tol, max_iter
        As in `sparse_gsvp`.
    deltas : sequence of float, optional
        Penalties, in any order; solved and returned from the largest to the smallest.
    n_deltas, ratio : int, default=30, and float, default=1e-2
        Without `deltas`: how many, in geometric steps from delta_max to ``ratio * delta_max``.

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
    problem = _problem(A, B, Penalty(q, eps), tau, pool, penalty_factor, tol, max_iter)
    path = Path(problem, tol=tol, max_iter=max_iter)
    if deltas is None:
        grid = path.delta_max * np.geomspace(1.0, ratio, int(n_deltas))
    return _results(problem, path.walk(grid), path.delta_max)


def _problem(
    A: Any, B: Any, penalty: Penalty, tau: float, pool: float, penalty_factor: Any, tol: float,
    max_iter: int,
) -> Problem:  # fmt: skip
    """The problem of A's plane, all parameters checked."""
    check_real("tol", tol, least=0)
    check_integer("max_iter", max_iter, least=1)
    tau = check_real("tau", tau, least=0)
    pool = check_real("pool", pool, least=0, most=1)
    cov = _covariances(A, B)
    names = A.feature_names if isinstance(A, ClassMoments) else getattr(A, "columns", None)
    factors = penalty_factors(penalty_factor, len(cov.center), names)
    problem = Problem(cov, OneVsRest.of_class(0, cov.share, pool), tau, penalty, factors)
    problem.check(names)
    return problem


def _covariances(A: Any, B: Any) -> ClassCovariances:
    """Covariances of the classes 0 (A) and 1 (B), given as rows or moments and checked."""
    given = [isinstance(X, ClassMoments) for X in (A, B)]
    if any(given) and not all(given):
        raise ValueError("A and B must both be ClassMoments or both be arrays")
    parts = []
    for code, (name, X) in enumerate(zip("AB", (A, B))):
        if any(given):
            if len(X.classes) != 1:
                raise ValueError(
                    f"{name} holds the moments of {len(X.classes)} classes: compute those of its "
                    "rows alone, ClassMoments.from_data(X[y == label])"
                )
            shape = int(X.counts[0]), X.n_features
        else:
            rows = read_rows(
                X, name, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
            )
            shape = rows.shape
            parts.append(Part(rows, np.full(shape[0], code), np.ones(shape[0])))
        if shape[0] < 2 or shape[1] < 1:
            raise ValueError(
                f"{name} has shape {shape}: a class needs at least two rows and one feature"
            )
    if any(given):
        both = replace(A, classes=np.array([0])) + replace(B, classes=np.array([1]))
        return CovariancesOfMoments(both, standardize=False)
    m, other = (part.rows.shape[1] for part in parts)
    if m != other:
        raise ValueError(f"A has {m} features and B has {other}: both need the same columns")
    return covariances_of(parts, 2, standardize=False)


def _unit_start(w0: Any, problem: Problem) -> Array:
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
    return Solution(
        0.0, features, w, bias, bias.ratio, residual, 1, [bias.ratio], gradient, converged=True
    )


def _results(problem: Problem, solutions: list[Solution], delta_max: float) -> list[GSVPResult]:
    """What is returned for solutions, with warnings of what is wrong with them."""
    warn_of(solutions, [f"delta = {solution.delta:.3g}" for solution in solutions])
    cov, results = problem.cov, []
    for s in solutions:
        w = s.dense(len(cov.center))
        # bias.own is p_i + b for centred features: class 0 is A
        b = s.bias.sign * s.bias.own - float((cov.means[0] + cov.center) @ w)
        results.append(
            GSVPResult(
                w, b, s.delta, s.bias.ratio, s.objective, s.kkt_residual, s.n_iter, s.converged,
                np.asarray(s.history), delta_max, s.bias.clipped, s.gap,
            )
        )  # fmt: skip
    return results
