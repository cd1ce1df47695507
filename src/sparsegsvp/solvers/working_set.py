"""Solve one delta over many features by solving on few of them.

The set starts from the support and the features that the strong rule expects, and grows
by those that violate the certificate, until none is left. Within one delta it only grows
and the inner tolerance is below the outer one, so it cannot cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import Covariances
from .gradients import GradientRequest, References, Rounds, cached_gradient
from .newton import minimize_with_newton
from .penalties import L1, Penalty, slope_at_zero
from .quotient import (
    Bias,
    FactorQuotient,
    GramQuotient,
    OneVsRest,
    Quotient,
)
from .sphere import SphereSolution, kkt_residual, minimize_on_sphere

# Largest set whose covariance blocks are formed, by itself and in features per row; beyond
# it products go through the rows.
_MAX_GRAM = 2000
_MAX_GRAM_PER_ROW = 2
# The inner problem is solved to this part of the tolerance.
_INNER = 0.3


class Limits(NamedTuple):
    """How far a problem is solved."""

    tol: float  # absolute tolerance on the certificate
    max_iter: int  # inner iterations in all
    polish: bool = True  # whether to settle the coefficients by one step more


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem of one plane at any delta."""

    cov: Covariances
    plane: OneVsRest
    tau: float  # floor on squared distances
    penalty: Penalty  # the function p
    # penalty weights l_f of all features: 0 for those in every solution, infinite for those in none
    weights: Float64Array
    newton: bool = True  # whether the inner solver takes Newton steps
    # gradients of earlier points, where certificates may come from bounds
    references: References | None = None

    @classmethod
    def of_class(
        cls,
        cov: Covariances,
        i: int,
        *,
        tau: float,
        pool: float,
        penalty: Penalty,
        weights: Float64Array | None = None,
        newton: bool = True,
    ) -> Problem:
        """The problem of class i's plane; penalty weights are 1 unless given."""
        plane = OneVsRest.of_class(i, cov.share, pool)
        weights = np.ones(cov.means.shape[1]) if weights is None else weights
        return cls(cov, plane, tau, penalty, weights, newton)

    @cached_property
    def eligible(self) -> BoolArray:
        """Which features a solution may have: they vary and their weights are finite."""
        return self.cov.standardization.varying & (self.weights < np.inf)

    @cached_property
    def free(self) -> IntArray:
        """The features without a penalty, which are in every solution."""
        return np.flatnonzero((self.weights == 0.0) & self.cov.standardization.varying)

    def pull(self, gradient: Float64Array) -> Float64Array:
        """How much penalty each feature at zero would outweigh: |g_f| / l_f, 0 without one."""
        out = np.zeros(len(gradient))
        return np.divide(np.abs(gradient), self.weights, out=out, where=self.weights > 0.0)

    def bounded(self) -> Problem:
        """The same problem, in whose certificates bounds may stand for gradients."""
        return self if self.references else replace(self, references=References(self.cov))

    def request(
        self,
        features: IntArray,
        w: Float64Array,
        bias: Bias,
        threshold: Float64Array | None = None,
        known: IntArray | None = None,
    ) -> GradientRequest:
        """Ask for the gradient over all features at w, which is non-zero on ``features``."""
        return GradientRequest(
            self.cov, self.plane, self.tau, features, w, bias, self.references, threshold, known
        )

    def minimize(
        self, delta: float, features: IntArray, w: Float64Array, limits: Limits
    ) -> SphereSolution:
        """Minimise over some of the features, from the unit vector w on them."""
        weights, options = self.weights[features], limits._asdict()
        if self.forms_blocks(features):
            gram = self._gram(features)
            if self.newton:
                return minimize_with_newton(gram, self.penalty, delta, weights, w, **options)
            quotient: Quotient = gram
        else:
            quotient = FactorQuotient(self.cov, self.plane, self.tau, features)
        return minimize_on_sphere(
            quotient, self.penalty, delta, weights, w, newton=self.newton, **options
        )

    def forms_blocks(self, features: IntArray) -> bool:
        """Whether these are few enough for their covariance blocks to be formed."""
        most = min(_MAX_GRAM, _MAX_GRAM_PER_ROW * self.cov.n_samples)
        return len(features) <= most or self.cov.complete

    def _gram(self, features: IntArray) -> GramQuotient:
        if self.cov.complete and len(features) == len(self.whole_set):
            return self._whole
        self.cov.extend(features)
        return GramQuotient(self.cov, self.plane, self.tau, features)

    @cached_property
    def whole_set(self) -> IntArray:
        """The features of a problem that is solved without working sets."""
        return np.flatnonzero(self.weights < np.inf)

    @cached_property
    def _whole(self) -> GramQuotient:
        """The quotient of these features, which all deltas share."""
        return GramQuotient(self.cov, self.plane, self.tau, self.whole_set)


@dataclass(frozen=True, eq=False)
class Solution:
    """A stationary point of one plane's problem at one delta.

    ``w`` holds the weights of ``features``, in standardised units; all others are zero.
    """

    delta: float
    features: IntArray
    w: Float64Array
    bias: Bias
    objective: float
    kkt_residual: float
    n_iter: int
    history: list[float]
    # of all features; with bounds, an estimate where that is certain to be below the slope
    gradient: Float64Array
    converged: bool
    gap: float = 0.0  # how far the downward path was above this, relative

    @property
    def quotient(self) -> float:
        return self.bias.ratio


def solve(problem: Problem, delta: float, start: Solution, limits: Limits) -> Rounds[Solution]:
    """Solve at one delta from a solution whose gradient and delta give the features to expect."""
    attempt = _Attempt(problem, delta, start, limits)
    attempt.minimize()
    if problem.cov.complete:
        gradient = np.zeros(len(problem.weights))
        gradient[attempt.features] = attempt.inner.point.gradient
        return _relabel(problem, attempt.certified(gradient))
    (gradient,) = yield [attempt.request]
    return (yield from attempt.finish(gradient))


def solve_ahead(
    problem: Problem, deltas: Sequence[float], start: Solution, limits: Sequence[Limits]
) -> Rounds[list[Solution]]:
    """Solve at falling deltas on the columns in memory and ask for all certificates at once.

    For data whose passes are costly. Returns the solutions up to the first that needed
    columns which were not in memory, that one solved for good: the ones after it started
    from a point that was not a solution.
    """
    attempts: list[_Attempt] = []
    for delta, limit in zip(deltas, limits):
        attempts.append(_Attempt(problem, delta, start, limit))
        attempts[-1].minimize()
        start = attempts[-1].draft()
    gradients = yield [attempt.request for attempt in attempts]
    found: list[Solution] = []
    for attempt, gradient in zip(attempts, gradients):
        found.append((yield from attempt.finish(gradient)))
        if attempt.n_rounds > 1:
            break
    return found


class _Attempt:
    """A growing set of features on which one delta is being solved."""

    def __init__(self, problem: Problem, delta: float, start: Solution, limits: Limits) -> None:
        self.problem, self.delta, self.limits = problem, delta, limits
        # what the slopes of features at zero are held against
        self.resting = (delta * slope_at_zero(problem.penalty)) * problem.weights
        self.features = _expected(problem, delta, start, self.resting)
        self.w = np.zeros(len(self.features))
        self.w[np.searchsorted(self.features, start.features)] = start.w
        self.history: list[float] = []
        self.n_iter, self.n_rounds = 0, 0

    def minimize(self) -> None:
        """Solve on the set, and again as long as columns in memory violate the certificate."""
        self.n_rounds += 1
        limits = self.limits._replace(tol=_INNER * self.limits.tol)
        while True:
            left = limits._replace(max_iter=max(limits.max_iter - self.n_iter, 1))
            self.inner = inner = self.problem.minimize(self.delta, self.features, self.w, left)
            self.n_iter += inner.n_iter
            self.history += inner.history[1:] if self.history else inner.history
            support = inner.point.w.nonzero()[0]
            self.request = self.problem.request(
                self.features[support],
                inner.point.w[support],
                inner.point.bias,
                self.resting,
                self.features,
            )
            if self.n_iter >= limits.max_iter or not self._grow(self._in_memory()):
                return

    def _in_memory(self) -> Float64Array | None:
        """The gradient of the features in memory, zero elsewhere; None where a pass is cheap.

        Where a pass is costly these are solved for first; most violators are among them.
        """
        seen = None if self.problem.cov.complete else cached_gradient(self.request)
        if seen is None:
            return None
        gradient = np.zeros(len(self.resting))
        gradient[seen[0]] = seen[1]
        return gradient

    def _grow(self, gradient: Float64Array | None) -> bool:
        """Add the features that violate the certificate; whether there are any."""
        if gradient is None:
            return False
        excess = np.abs(gradient)
        excess -= self.resting
        excess[self.features] = 0.0
        new = np.flatnonzero(excess > _INNER * self.limits.tol)
        if len(new) == 0:
            return False
        limit = max(16, len(self.features))
        if len(new) > limit:
            new = np.sort(new[np.argsort(-excess[new], kind="stable")[:limit]])
        grown = np.union1d(self.features, new)
        self.w = np.zeros(len(grown))
        self.w[np.searchsorted(grown, self.features)] = self.inner.point.w
        self.features = grown
        return True

    def finish(self, gradient: Float64Array) -> Rounds[Solution]:
        """Certify with the gradient that was asked for, and go on if need be."""
        while True:
            # the blocks are in float64 whatever the data is
            gradient[self.features] = self.inner.point.gradient
            self.problem.cov.prefetch(self.problem.pull(gradient))
            solution = self.certified(gradient)
            if solution.converged or self.n_iter >= self.limits.max_iter:
                break
            if not self._grow(gradient):
                break  # what is left is inside the set: the inner solver has stalled
            self.minimize()
            (gradient,) = yield [self.request]
        return _relabel(self.problem, solution)

    def certified(self, gradient: Float64Array) -> Solution:
        """The solution with its certificate over all features."""
        problem, request = self.problem, self.request
        dense = np.zeros(len(gradient))
        dense[request.features] = request.w
        slopes = self.delta * problem.weights
        if not problem.penalty.linear:
            slopes *= problem.penalty.slope(np.abs(dense))
        residual = kkt_residual(dense, gradient, slopes)
        return Solution(
            delta=self.delta,
            features=request.features,
            w=request.w,
            bias=request.bias,
            objective=self.inner.objective,
            kkt_residual=residual,
            n_iter=self.n_iter,
            history=list(self.history),
            gradient=gradient,
            converged=residual <= self.limits.tol,
        )

    def draft(self) -> Solution:
        """What is known before a pass: the features not in memory are taken to stay out."""
        gradient = self._in_memory()
        return self.certified(np.zeros(len(self.resting)) if gradient is None else gradient)


def _expected(problem: Problem, delta: float, start: Solution, resting: Float64Array) -> IntArray:
    """The support of ``start`` and the features that are likely to join it, in order."""
    if problem.cov.complete:
        return problem.whole_set
    # sequential strong rule: slopes change by no more than delta does
    least = max(2.0 - max(start.delta, delta) / delta, 0.0)
    pull = np.abs(start.gradient)
    with np.errstate(invalid="ignore"):  # 0 times an infinite weight
        expected = pull >= least * resting
    expected &= problem.eligible
    kept = start.features
    if len(problem.free):
        kept = np.union1d(kept, problem.free)
    expected[kept] = True
    features = expected.nonzero()[0]
    # more of them save few passes and cost memory for their products
    limit = 3 * len(kept) // 2 + 16
    if len(features) <= limit:
        return features
    score = pull[features] - resting[features]
    score[np.searchsorted(features, kept)] = np.inf
    return np.sort(features[np.argsort(-score, kind="stable")[:limit]])


def lowest_copies(problem: Problem, features: IntArray) -> IntArray:
    """Replace features by the lowest of the columns that are identical to them.

    Between identical columns only rounding decides, which depends on the storage and the
    number of threads. Columns whose penalty weights differ are not identical.
    """
    out = features.copy()
    for group in problem.cov.copies(features):
        for weight in np.unique(problem.weights[group]):
            alike = group[problem.weights[group] == weight]
            taken = np.flatnonzero(np.isin(features, alike))
            lowest = alike[: len(taken)]
            moved = taken[~np.isin(features[taken], lowest)]
            out[moved] = np.setdiff1d(lowest, features[taken])
    return out


def _relabel(problem: Problem, solution: Solution) -> Solution:
    """The same solution on the lowest of identical columns."""
    old = solution.features
    new = lowest_copies(problem, old)
    if np.array_equal(old, new):
        return solution
    gradient = solution.gradient.copy()
    gradient[old] = solution.gradient[new]
    gradient[new] = solution.gradient[old]
    order = np.argsort(new)
    return replace(solution, features=new[order], w=solution.w[order], gradient=gradient)


def solve_reweighted(
    problem: Problem, delta: float, start: Solution, limits: Limits, times: int = 3
) -> Rounds[Solution]:
    """Solve with a concave penalty from the l1 solution ``start`` at the same delta.

    A few ``times`` p is majorised by its tangent where the last one ended, each an l1 problem
    solved by itself; then the loop takes the penalty's own curvature into account, which
    converges where reweighting would creep.
    """
    current, n_iter = start, 0
    for _ in range(times):
        dense = np.zeros(len(problem.weights))
        dense[current.features] = current.w
        tangent = replace(
            problem,
            penalty=L1(),
            weights=problem.weights * problem.penalty.slope(np.abs(dense)),
        )
        loose = limits._replace(tol=10 * limits.tol)
        current = yield from solve(tangent, delta, current, loose)
        n_iter += current.n_iter
    found = yield from solve(problem, delta, current, limits)
    return replace(found, n_iter=n_iter + found.n_iter)
