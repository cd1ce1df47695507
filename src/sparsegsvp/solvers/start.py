"""Where a path starts: the sparsest solution, and the penalty from which on it is one."""

from __future__ import annotations

import numpy as np

from .._typing import Float64Array, IntArray
from .exact import solve_unpenalized
from .penalties import slope_at_zero
from .quotient import Bias, GramQuotient, evaluate, single_feature_ratios
from .rounds import Rounds
from .sphere import kkt_residual
from .working_set import Limits, Problem, Solution, lowest_copies

# A quotient that is zero but for rounding.
_NOTHING_LEFT = 1e-24
# How far the features without a penalty are solved where that cannot be done exactly.
_INEXACT = Limits(tol=1e-10, max_iter=1000)


def path_start(problem: Problem) -> Rounds[tuple[Solution, float]]:
    """The first solution of a path, and delta_max.

    It has the feature with the smallest quotient by itself or, where some have no penalty, all
    of these, at the best plane on them. At and above delta_max, the largest
    ``|g_f| / (l_f p'(0))`` over the other features, it meets the certificate.
    """
    cov, plane, tau = problem.cov, problem.plane, problem.tau
    features, w, bias = _best_without_penalty(problem) if len(problem.free) else _single(problem)
    (gradient,) = yield [problem.request(features, w, bias)]
    slope = problem.weights * slope_at_zero(problem.penalty)
    pull = problem.pull(gradient)
    pull[features] = 0.0
    cov.prefetch(pull)
    # the path hangs on this one gradient: from the blocks, in float64 whatever the data is
    top = int(pull.argmax())
    near = np.union1d(features, top)
    if problem.forms_blocks(near):
        cov.extend(near)
        dense = np.zeros(len(near))
        dense[np.searchsorted(near, features)] = w
        gradient[near] = evaluate(GramQuotient(cov, plane, tau, near), dense).gradient
    delta_max = float(np.abs(gradient[top]) / slope[top]) if pull[top] > 0.0 else 0.0
    if tau == 0.0 and not bias.ratio > _NOTHING_LEFT:
        what = "the features of penalty 0 leave no distance"
        if len(problem.free) == 0:
            what = f"feature {features[0]} is constant"
        raise ValueError(
            f"{what} within the class, which makes delta_max 0: with "
            "tau = 0 its quotient is 0 at once, and no other feature can add to it. Use tau > 0"
        )
    objective = bias.ratio + delta_max * penalty_of(problem, features, w)
    first = Solution(
        delta=delta_max,
        features=features,
        w=w,
        bias=bias,
        objective=objective,
        kkt_residual=kkt_residual(w, gradient[features], np.zeros(len(w))),
        n_iter=0,
        history=[objective],
        gradient=gradient,
        converged=True,
    )
    return first, delta_max


def penalty_of(problem: Problem, features: IntArray, w: Float64Array) -> float:
    """``sum_f l_f p(|w_f|)`` of a w that is non-zero on ``features`` only."""
    return float(problem.weights[features] @ problem.penalty.value(np.abs(w)))


_Start = tuple[IntArray, Float64Array, Bias]


def _single(problem: Problem) -> _Start:
    """The feature with the smallest quotient by itself."""
    cov = problem.cov
    ratios = _ratios(problem)
    if not np.isfinite(ratios).any():
        raise ValueError("every feature is constant: there is nothing to select from")
    cov.prefetch(-ratios)
    best = lowest_copies(problem, np.array([int(np.argmin(ratios))]))
    cov.extend(best)
    point = evaluate(GramQuotient(cov, problem.plane, problem.tau, best), np.ones(1))
    return best, point.w, point.bias


def _best_without_penalty(problem: Problem) -> _Start:
    """The best plane on the features without a penalty, exactly if it is not at infinity."""
    free = problem.free
    found = solve_unpenalized(problem.cov, problem.plane, problem.tau, free)
    if found is not None:
        return found.features, found.w, found.bias
    best = free[np.argmin(_ratios(problem)[free])]
    point = problem.minimize(0.0, free, 1.0 * (free == best), _INEXACT).point
    at = point.w.nonzero()[0]
    return free[at], point.w[at], point.bias


def _ratios(problem: Problem) -> Float64Array:
    """The quotient of every feature by itself; infinite where a plane may not use it."""
    ratios = single_feature_ratios(problem.cov, problem.plane, problem.tau)
    return np.where(problem.eligible, ratios, np.inf)
