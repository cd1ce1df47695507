"""Paths of solutions from the best single feature down to small penalties, and up again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np

from .._typing import Float64Array
from .penalties import L1, slope_at_zero
from .quotient import GramQuotient, evaluate, full_gradient, single_feature_ratios
from .sphere import minimize_on_sphere
from .working_set import Problem, Solution, lowest_copies, solve, solve_reweighted

# Steps of the continuation that leads to a single delta.
_CONTINUATION = 0.6
# Relative difference of objectives that counts as another minimum.
_DISTINCT = 1e-7
# Relative tolerance at which the walk up can tell whether it is in another minimum.
_LOOSE = 1e-2
# Relative tolerance of the l1 solutions that reweighting starts from.
_START = 1e-4
# A quotient that is zero but for rounding.
_NOTHING_LEFT = 1e-24


def best_single_feature(problem: Problem) -> tuple[Solution, float]:
    """The feature with the smallest quotient by itself, and delta_max there.

    At and above delta_max, the largest ``|g_f| / (l_f p'(0))`` over the other features, that
    feature alone meets the certificate.
    """
    cov = problem.cov
    ratios = single_feature_ratios(cov, problem.plane, problem.tau)
    if not np.isfinite(ratios).any():
        raise ValueError("every feature is constant: there is nothing to select from")
    cov.prefetch(-ratios)
    best = lowest_copies(problem, np.array([int(np.argmin(ratios))]))
    cov.extend(best)
    point = evaluate(GramQuotient(cov, problem.plane, problem.tau, best), np.ones(1))
    gradient = full_gradient(cov, problem.plane, problem.tau, best, point.w, point.bias)
    slope = problem.weights * slope_at_zero(problem.penalty)
    pull = np.abs(gradient) / slope
    pull[best] = 0.0
    cov.prefetch(pull)
    # the path hangs on this one gradient: from the blocks, in float64 whatever the data is
    top = int(pull.argmax())
    pair = np.array(sorted({int(best[0]), top}))
    cov.extend(pair)
    exact = evaluate(GramQuotient(cov, problem.plane, problem.tau, pair), 1.0 * (pair == best[0]))
    gradient[pair] = exact.gradient
    delta_max = float(np.abs(gradient[top]) / slope[top]) if pull[top] > 0.0 else 0.0
    if problem.tau == 0.0 and not point.ratio > _NOTHING_LEFT:
        raise ValueError(
            f"feature {best[0]} is constant within the class, which makes delta_max 0: with "
            "tau = 0 its quotient is 0 at once, and no other feature can add to it. Use tau > 0"
        )
    objective = point.ratio + delta_max * float(
        problem.weights[best[0]] * problem.penalty.value(np.ones(1))[0]
    )
    return (
        Solution(
            delta=delta_max,
            features=best,
            w=point.w,
            bias=point.bias,
            objective=objective,
            kkt_residual=0.0,
            n_iter=0,
            history=[objective],
            gradient=gradient,
            converged=True,
        ),
        delta_max,
    )


def delta_grid(delta_max: float, n_deltas: int, ratio: float) -> Float64Array:
    """``n_deltas`` values from delta_max down to ratio * delta_max, in geometric steps."""
    if n_deltas == 1:
        return np.array([delta_max])
    return delta_max * np.geomspace(1.0, ratio, n_deltas)


class _Limits(TypedDict):
    tol: float
    max_iter: int


class PathSolver:
    """Solutions of one plane's problem at falling deltas, each from the last.

    ``tol`` is relative to delta_max, ``max_iter`` for each delta. With ``single_above`` the
    single feature is returned at and above delta_max. It is stationary there, but for a
    concave penalty only because that is so steep at zero: the l1 solution, reweighted, often
    leads to a lower objective. Without it the lower of the two is taken.
    """

    def __init__(
        self, problem: Problem, *, tol: float, max_iter: int, single_above: bool = True
    ) -> None:
        self.problem = problem
        self._single_above = single_above or problem.penalty.linear
        self.single, self.delta_max = best_single_feature(problem)
        self._linear = replace(problem, penalty=L1())
        self.linear_max = self.delta_max * slope_at_zero(problem.penalty)
        self._options = _Limits(tol=tol * self.delta_max, max_iter=max_iter)
        # the l1 solution that the next, smaller, delta starts from
        self._l1 = replace(self.single, delta=self.linear_max)

    def at(self, delta: float, last: Solution | None = None) -> Solution:
        """The solution at ``delta``, which may not be above that of the last call."""
        if delta >= (self.delta_max if self._single_above else self.linear_max):
            return self._single_at(delta)
        if self.problem.penalty.linear:
            self._l1 = solve(self.problem, delta, self._l1, **self._options)
            return self._l1
        self._l1 = self._descend(delta)
        found = solve_reweighted(self.problem, delta, self._l1, **self._options)
        if last is not None:
            # going on from the last delta may end in a lower minimum than starting anew
            again = solve(self.problem, delta, last, **self._options)
            if again.objective < found.objective:
                found = again
        if delta >= self.delta_max:
            single = self._single_at(delta)
            if single.objective <= found.objective:
                found = single
        return found

    def _descend(self, delta: float) -> Solution:
        """The l1 solution at ``delta`` by a continuation in geometric steps."""
        linear = _Limits(tol=_START * self.linear_max, max_iter=self._options["max_iter"])
        current = self._l1
        level = min(current.delta, self.linear_max) * _CONTINUATION
        while level > delta:
            current = solve(self._linear, level, current, **linear)
            level *= _CONTINUATION
        return solve(self._linear, delta, current, **linear)

    def continue_to(self, delta: float) -> Solution:
        """The solution at one delta, through geometric steps from delta_max."""
        if not self.problem.penalty.linear:
            return self.at(delta)
        level = self.delta_max * _CONTINUATION
        while level > delta * (1.0 + 1e-12):
            self.at(level)
            level *= _CONTINUATION
        return self.at(delta)

    def from_start(self, delta: float, w: Float64Array) -> Solution:
        """The solution at ``delta`` from a given unit vector over all features."""
        problem = self.problem
        features = np.flatnonzero(w)
        point = evaluate(problem.quotient(features), w[features])
        # of no feature more is expected: the certificate will name them in the same pass
        gradient = np.zeros(len(w))
        start = replace(
            self.single,
            delta=delta,
            features=features,
            w=w[features],
            bias=point.bias,
            gradient=gradient,
        )
        return solve(problem, delta, start, **self._options)

    def solve_from(self, delta: float, w: Float64Array) -> Solution:
        """As `from_start`, then by way of smaller deltas again, keeping the lower objective.

        What the way up does for a path: a start far from the path may end in a minimum
        that a smaller penalty does not have.
        """
        first = self.from_start(delta, w)
        if first.history[0] - first.objective <= _DISTINCT * abs(first.objective):
            return first
        current, n_iter = first, first.n_iter
        for level in delta * _CONTINUATION ** np.array([1, 2, 1]):
            tol = max(self._options["tol"], _LOOSE * level)
            current = solve(
                self.problem, level, current, tol=tol, max_iter=self._options["max_iter"]
            )
            n_iter += current.n_iter
        again = solve(self.problem, delta, current, **self._options)
        lower = again.objective < first.objective * (1.0 - _DISTINCT)
        return replace(again if lower else first, n_iter=n_iter + again.n_iter)

    def _single_at(self, delta: float) -> Solution:
        value = float(
            self.problem.weights[self.single.features[0]]
            * self.problem.penalty.value(np.ones(1))[0]
        )
        objective = self.single.quotient + delta * value
        return replace(self.single, delta=delta, objective=objective, history=[objective])

    def run(self, deltas: Sequence[float] | Float64Array, *, upward: bool = True) -> list[Solution]:
        """Solve down falling deltas and, with ``upward``, up again, keeping the better."""
        path: list[Solution] = []
        last: Solution | None = None
        for delta in deltas:
            last = self.at(float(delta), last)
            # a gradient over all features for every delta would outweigh the data
            path.append(replace(last, gradient=_NOTHING))
        if upward and last is not None:
            self.walk_up(path, last)
        return path

    def walk_up(self, path: list[Solution], last: Solution) -> None:
        """Solve up a path from its last solution, replacing those that end lower."""
        current = last
        for index in range(len(path) - 2, -1, -1):
            down = path[index]
            if down.delta >= self.delta_max and self._single_above:
                break
            lower = self._try_from(current, down)
            if lower is not None:
                current = lower
                gap = (down.objective - lower.objective) / abs(lower.objective)
                path[index] = replace(lower, gradient=_NOTHING, gap=gap)
            else:
                current = down

    def _try_from(self, start: Solution, down: Solution) -> Solution | None:
        """A solution at ``down``'s delta with a lower objective, started from ``start``.

        First on the features of the two alone, which costs no pass over the data; only
        if that ends lower is it worth a certificate.
        """
        problem, options = self.problem, self._options
        features = np.union1d(start.features, down.features)
        w = np.zeros(len(features))
        w[np.searchsorted(features, start.features)] = start.w
        trial = minimize_on_sphere(
            problem.quotient(features),
            problem.penalty,
            down.delta,
            problem.weights[features],
            w,
            tol=max(options["tol"], _LOOSE * down.delta),
            max_iter=options["max_iter"],
            newton=problem.newton,
            polish=False,
        )
        if trial.objective >= down.objective - _DISTINCT * abs(down.objective):
            return None
        dense = np.zeros(len(problem.weights))
        dense[features] = trial.point.w
        lower = self.from_start(down.delta, dense)
        return lower if lower.objective < down.objective else None


_NOTHING = np.empty(0)
