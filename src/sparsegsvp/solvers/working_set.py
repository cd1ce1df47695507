"""Solve one delta over many features by solving on few of them.

The set starts from the support and the features that the strong rule expects, and grows
by those that violate the certificate, until none is left. Within one delta it only grows
and the inner tolerance is below the outer one, so it cannot cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypedDict

import numpy as np

from .._typing import Float64Array, IntArray
from ..linalg import Covariances
from .newton import minimize_with_newton
from .penalties import L1, Penalty, slope_at_zero
from .quotient import (
    Bias,
    FactorQuotient,
    GradientRequest,
    GramQuotient,
    OneVsRest,
    cached_gradient,
)
from .rounds import Rounds
from .safe import References
from .sphere import SphereSolution, kkt_residual, minimize_on_sphere

# Largest set whose covariance blocks are formed, by itself and in features per row; beyond
# it products go through the rows.
_MAX_GRAM = 2000
_MAX_GRAM_PER_ROW = 2
# The inner problem is solved to this part of the tolerance.
_INNER = 0.3


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem of one plane at any delta."""

    cov: Covariances
    plane: OneVsRest
    tau: float  # floor on squared distances
    penalty: Penalty  # the function p
    weights: Float64Array  # penalty weights l_f of all features
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
        self,
        delta: float,
        features: IntArray,
        w: Float64Array,
        *,
        tol: float,
        max_iter: int,
        polish: bool = True,
    ) -> SphereSolution:
        """Minimise over some of the features, from the unit vector w on them."""
        weights = self.weights[features]
        limits = _Limits(tol=tol, max_iter=max_iter, polish=polish)
        most = min(_MAX_GRAM, _MAX_GRAM_PER_ROW * self.cov.n_samples)
        if len(features) > most and not self.cov.complete:
            factors = FactorQuotient(self.cov, self.plane, self.tau, features)
            return minimize_on_sphere(
                factors, self.penalty, delta, weights, w, newton=self.newton, **limits
            )
        quotient = self._gram(features)
        if not self.newton:
            return minimize_on_sphere(
                quotient, self.penalty, delta, weights, w, newton=False, **limits
            )
        return minimize_with_newton(quotient, self.penalty, delta, weights, w, **limits)

    def _gram(self, features: IntArray) -> GramQuotient:
        if self.cov.complete and len(features) == len(self.weights):
            return self._whole
        self.cov.extend(features)
        return GramQuotient(self.cov, self.plane, self.tau, features)

    @cached_property
    def _whole(self) -> GramQuotient:
        """The quotient of all features, which all deltas share."""
        return GramQuotient(self.cov, self.plane, self.tau, np.arange(len(self.weights)))


class _Limits(TypedDict):
    tol: float
    max_iter: int
    polish: bool


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


def solve(
    problem: Problem,
    delta: float,
    start: Solution,
    *,
    tol: float,
    max_iter: int,
    polish: bool = True,
) -> Rounds[Solution]:
    """Solve at one delta from a solution whose gradient and delta give the features to expect.

    ``tol`` is the absolute tolerance on the certificate, ``max_iter`` the largest number of
    inner iterations in all; ``polish`` settles the coefficients by one step more.
    """
    resting = (delta * slope_at_zero(problem.penalty)) * problem.weights
    features = _expected(problem, delta, start, resting)
    w = np.zeros(len(features))
    w[np.searchsorted(features, start.features)] = start.w
    history: list[float] = []
    n_iter = 0
    while True:
        inner = problem.minimize(
            delta,
            features,
            w,
            tol=_INNER * tol,
            max_iter=max(max_iter - n_iter, 1),
            polish=polish,
        )
        n_iter += inner.n_iter
        history += inner.history if not history else inner.history[1:]
        support = inner.point.w.nonzero()[0]
        request = problem.request(
            features[support], inner.point.w[support], inner.point.bias, resting, features
        )
        excess = None if n_iter >= max_iter else _cached_excess(request, features, resting)
        if excess is None or excess.max() <= _INNER * tol:
            gradient = inner.point.gradient
            if not problem.cov.complete:
                (gradient,) = yield [request]
                # the blocks are in float64 whatever the data is
                gradient[features] = inner.point.gradient
                problem.cov.prefetch(np.abs(gradient) / problem.weights)
            solution = _certify(problem, delta, request, inner, gradient, tol, n_iter, history)
            if solution.converged or problem.cov.complete or n_iter >= max_iter:
                break
            excess = np.abs(solution.gradient)
            excess -= resting
            excess[features] = 0.0
        new = np.flatnonzero(excess > _INNER * tol)
        if len(new) == 0:
            break  # what is left is inside the set: the inner solver has stalled
        limit = max(16, len(features))
        if len(new) > limit:
            new = np.sort(new[np.argsort(-excess[new], kind="stable")[:limit]])
        grown = np.union1d(features, new)
        w = np.zeros(len(grown))
        w[np.searchsorted(grown, features)] = inner.point.w
        features = grown
    return _relabel(problem, solution)


def _expected(problem: Problem, delta: float, start: Solution, resting: Float64Array) -> IntArray:
    """The support of ``start`` and the features that are likely to join it, in order."""
    if problem.cov.complete:
        return np.arange(len(resting))  # no working set
    # sequential strong rule: slopes change by no more than delta does
    least = max(2.0 - max(start.delta, delta) / delta, 0.0)
    pull = np.abs(start.gradient)
    expected = pull >= least * resting
    expected &= problem.cov.standardization.varying
    expected[start.features] = True
    features = expected.nonzero()[0]
    # more of them save few passes and cost memory for their products
    limit = 3 * len(start.features) // 2 + 16
    if len(features) <= limit:
        return features
    score = pull[features] - resting[features]
    score[np.searchsorted(features, start.features)] = np.inf
    return np.sort(features[np.argsort(-score, kind="stable")[:limit]])


def _cached_excess(
    request: GradientRequest, features: IntArray, resting: Float64Array
) -> Float64Array | None:
    """How far the features in memory exceed the certificate; None where a pass is cheap.

    Where a pass is costly these are solved for first; most violators are among them.
    """
    seen = None if request.cov.complete else cached_gradient(request)
    if seen is None:
        return None
    index, gradient = seen
    excess = np.zeros(len(resting))
    excess[index] = np.abs(gradient) - resting[index]
    excess[features] = 0.0
    return excess


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


def _certify(
    problem: Problem,
    delta: float,
    request: GradientRequest,
    inner: SphereSolution,
    gradient: Float64Array,
    tol: float,
    n_iter: int,
    history: list[float],
) -> Solution:
    """The certificate over all features at the point where the inner solver stopped."""
    dense = np.zeros(len(gradient))
    dense[request.features] = request.w
    slopes = delta * problem.weights
    if not problem.penalty.linear:
        slopes *= problem.penalty.slope(np.abs(dense))
    residual = kkt_residual(dense, gradient, slopes)
    return Solution(
        delta=delta,
        features=request.features,
        w=request.w,
        bias=request.bias,
        objective=inner.objective,
        kkt_residual=residual,
        n_iter=n_iter,
        history=list(history),
        gradient=gradient,
        converged=residual <= tol,
    )


def solve_reweighted(
    problem: Problem,
    delta: float,
    start: Solution,
    *,
    tol: float,
    max_iter: int,
    polish: bool = True,
    times: int = 3,
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
        current = yield from solve(
            tangent, delta, current, tol=10 * tol, max_iter=max_iter, polish=polish
        )
        n_iter += current.n_iter
    found = yield from solve(problem, delta, current, tol=tol, max_iter=max_iter, polish=polish)
    return replace(found, n_iter=n_iter + found.n_iter)
