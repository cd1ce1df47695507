"""Paths of solutions from the sparsest one down to small penalties, and up again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import Array, IntArray
from .._validate import first_few, warn_caller
from .newton import Problem, Solution, kkt_residual, minimize, placed, solve, solve_reweighted
from .penalties import Penalty
from .quotient import Bias, single_feature_ratios, solve_unpenalized

_CONTINUATION = 0.6  # steps of the continuation that leads to a single delta
_DISTINCT = 1e-7  # relative difference of objectives that counts as another minimum
_LOOSE = 1e-2  # tolerance, relative to delta, at which one can tell another minimum
_START = 1e-4  # tolerance, relative to the largest delta, of l1 solutions to be reweighted
_ROUNDING = 1e-14  # what rounding leaves of gradients where the classes do not differ
_NOTHING_LEFT = 1e-24  # a quotient that is zero but for rounding


class Path:
    """Solutions of one plane's problem at falling deltas, each from the last.

    At and above delta_max the first solution is stationary, for q < 1 only because the penalty is
    so steep at zero; without ``first_above`` the reweighted l1 solution is taken where lower.
    """

    def __init__(
        self, problem: Problem, *, tol: float, max_iter: int, first_above: bool = True
    ) -> None:
        self.problem, self._max_iter = problem, max_iter
        self._linear = problem.penalty.q == 1.0
        self._l1_problem = replace(problem, penalty=Penalty())
        self.first, launch = path_start(problem)
        self.delta_max = self.first.delta
        # the largest delta of the l1 path
        self._l1_max = self.delta_max * problem.penalty.slope(0.0)
        self._first_above = self.delta_max if first_above else self._l1_max
        self._tol = max(tol * self.delta_max, _ROUNDING)
        # the l1 solution that the next, smaller, delta starts from
        self._l1 = replace(launch, delta=self._l1_max)

    def at(self, delta: float, last: Solution | None = None) -> Solution:
        """The solution at a delta not above that of the last call, whose solution was ``last``."""
        if delta >= self._first_above:
            return _at_delta(self.problem, delta, self.first)
        self._descend(delta)
        if self._linear:
            return self._l1
        results = [solve_reweighted(self.problem, delta, self._l1, self._tol, self._max_iter)]
        if last is not None:  # going on from the last delta may end in a lower minimum
            results.append(self._solve(delta, last))
        if delta >= self.delta_max:
            results.append(_at_delta(self.problem, delta, self.first))
        return min(results, key=attrgetter("objective"))

    def solve_from(self, delta: float, w: Array) -> Solution:
        """The solution at ``delta`` from a unit vector, then by way of smaller deltas, if lower."""
        first = self._from_start(delta, w)
        if first.history[0] - first.objective <= _DISTINCT * abs(first.objective):
            return first
        current, n_iter = first, first.n_iter
        for level in delta * _CONTINUATION ** np.array([1, 2, 1]):
            current = self._solve(level, current, _LOOSE * level)
            n_iter += current.n_iter
        again = self._solve(delta, current)
        lower = again.objective < first.objective * (1.0 - _DISTINCT)
        return replace(again if lower else first, n_iter=n_iter + again.n_iter)

    def walk(self, deltas: Iterable[float]) -> list[Solution]:
        """Solve down falling deltas and up again, keeping the lower objective at each."""
        path, last = [], None
        for delta in deltas:
            last = self.at(float(delta), last)
            # a gradient over all features for every delta would outweigh the data
            path.append(replace(last, gradient=np.empty(0)))
        for index in range(len(path) - 2, -1, -1):
            down = path[index]
            if down.delta >= self._first_above:
                break
            lower = self._lower_from(path[index + 1], down)
            if lower is not None:
                gap = (down.objective - lower.objective) / abs(lower.objective)
                path[index] = replace(lower, gradient=np.empty(0), gap=gap)
        return path

    def _lower_from(self, start: Solution, down: Solution) -> Solution | None:
        """A solution at ``down``'s delta with a lower objective, started from ``start``.

        First on the features of the two alone, which costs no pass over the data. With the same
        features and signs nothing is tried: between the two the objective is smooth.
        """
        if np.array_equal(start.features, down.features) and (start.w * down.w > 0.0).all():
            return None
        features = np.union1d(start.features, down.features)
        w = placed(start.features, start.w, features)
        tol = max(self._tol, _LOOSE * down.delta)
        trial, _ = minimize(self.problem, down.delta, features, w, tol, self._max_iter)
        if trial.objective >= down.objective - _DISTINCT * abs(down.objective):
            return None
        dense = np.zeros(len(self.problem.factors))
        dense[features] = trial.w
        lower = self._from_start(down.delta, dense)
        return lower if lower.objective < down.objective else None

    def _from_start(self, delta: float, w: Array) -> Solution:
        features = np.flatnonzero(w)
        # of no feature more is expected: the certificate will name them
        start = replace(
            self.first, delta=delta, features=features, w=w[features], gradient=np.zeros(len(w))
        )
        return self._solve(delta, start)

    def _solve(self, delta: float, start: Solution, tol: float = 0.0) -> Solution:
        return solve(self.problem, delta, start, max(self._tol, tol), self._max_iter)

    def _descend(self, delta: float) -> None:
        """Take the l1 solution on to ``delta`` by a continuation in geometric steps."""
        tol = self._tol if self._linear else max(_START * self._l1_max, _ROUNDING)
        level = self._l1.delta * _CONTINUATION
        while level > delta * (1.0 + 1e-12):
            self._l1 = solve(self._l1_problem, level, self._l1, tol, self._max_iter)
            level *= _CONTINUATION
        self._l1 = solve(self._l1_problem, delta, self._l1, tol, self._max_iter)


def path_start(problem: Problem) -> tuple[Solution, Solution]:
    """The first solution of a path, at delta_max, and what solutions below it start from.

    The first has the best single feature or all without a penalty. It is stationary at and above
    the largest ``|g_f| / (l_f p'(0))`` over the others, delta_max. Where features without a penalty
    tell next to nothing, as a covariate by which the classes were matched, another feature is
    worth its price far above: then delta_max is the largest ``(r - r_f) / (l_f p'(0))``.
    """
    ratios = single_feature_ratios(problem.cov, problem.plane, problem.tau)
    ratios[~problem.eligible] = np.inf
    features, w, bias = _sparsest(problem, ratios)
    if problem.tau == 0.0 and not bias.ratio > _NOTHING_LEFT:
        what = "the features of penalty 0 leave no distance"
        if len(problem.free) == 0:
            what = f"feature {features[0]} is constant"
        raise ValueError(
            f"{what} within the class, which makes delta_max 0: with "
            "tau = 0 its quotient is 0 at once, and no other feature can add to it. Use tau > 0"
        )
    gradient = problem.gradient(features, w, bias)
    slopes = problem.factors * problem.penalty.slope(0.0)
    rest = problem.eligible & (slopes > 0.0)
    rest[features] = False
    top = int(np.divide(np.abs(gradient), slopes, out=np.zeros(len(rest)), where=rest).argmax())
    near = np.union1d(features, top)
    if len(near) <= problem.cov.max_block:
        # the path hangs on this one gradient: from the blocks, in float64 whatever the data is
        gradient[near] = problem.quotient(near).evaluate(placed(features, w, near)).gradient
    delta = abs(float(gradient[top])) / float(slopes[top]) if rest[top] else 0.0
    residual = kkt_residual(w, gradient[features], np.zeros(len(w)))
    first = launch = Solution(delta, features, w, bias, bias.ratio, residual, 0, [], gradient, True)
    if len(problem.free):
        gains = np.divide(bias.ratio - ratios, slopes, out=np.zeros(len(rest)), where=rest)
        other = np.array([int(gains.argmax())])
        if gains[other[0]] > delta:
            delta = float(gains[other[0]])
            point = problem.quotient(other).evaluate(np.ones(1))
            gradient = problem.gradient(other, point.w, point.bias)
            launch = replace(first, features=other, w=point.w, gradient=gradient)
    return _at_delta(problem, delta, first), launch


def _at_delta(problem: Problem, delta: float, first: Solution) -> Solution:
    """The first solution at another delta."""
    cost = float(problem.factors[first.features] @ problem.penalty.value(np.abs(first.w)))
    objective = first.bias.ratio + delta * cost
    return replace(first, delta=delta, objective=objective, history=[objective])


def _sparsest(problem: Problem, ratios: Array) -> tuple[IntArray, Array, Bias]:
    """The best plane on the features without a penalty or, without any, on a single feature."""
    features = problem.free
    if len(features):
        result = solve_unpenalized(problem.cov, problem.plane, problem.tau, features)
        if result is not None:
            return features, *result
        # at infinity: what can be reached from the best of them
        w = 1.0 * (features == features[np.argmin(ratios[features])])
        it, _ = minimize(problem, 0.0, features, w, 1e-10, 1000)
        at = it.w.nonzero()[0]
        return features[at], it.w[at], it.point.bias
    features = np.array([int(np.argmin(ratios))])
    point = problem.quotient(features).evaluate(np.ones(1))
    return features, point.w, point.bias


def warn_of(solutions: Sequence[Solution], labels: Sequence[str]) -> None:
    """Warn of solutions that do not meet the certificate, and of biases that were clipped."""
    pairs = list(zip(labels, solutions))
    failed = [label for label, solution in pairs if not solution.converged]
    if failed:
        warn_caller(
            f"the certificate is not met for {first_few(failed)}: raise max_iter or tol, or tau "
            "(a larger floor makes the problem better conditioned)",
            ConvergenceWarning,
        )
    clipped = [label for label, solution in pairs if solution.bias.clipped]
    if clipped:
        warn_caller(
            f"the best bias for {first_few(clipped)} ran off to infinity and was clipped: along "
            "the direction chosen the class means coincide and the own class is the wider one. "
            "Try a larger pool or tau",
            RuntimeWarning,
        )
