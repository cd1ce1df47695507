"""Paths of solutions from the sparsest one down to small penalties, and up again.

`PathSolver` walks the path of one problem, `walk_together` those of many that share the
covariances, one pass over the data serving all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from .._typing import Float64Array
from .exact import Start, path_start, penalty_of
from .gradients import Rounds, run_to_end, together
from .penalties import L1, slope_at_zero
from .working_set import (
    Limits,
    Problem,
    Solution,
    solve,
    solve_ahead,
    solve_reweighted,
)

# Steps of the continuation that leads to a single delta.
_CONTINUATION = 0.6
# Relative difference of objectives that counts as another minimum.
_DISTINCT = 1e-7
# Relative tolerance at which the walk up can tell whether it is in another minimum.
_LOOSE = 1e-2
# Relative tolerance of the l1 solutions that reweighting starts from.
_START = 1e-4
# What rounding leaves of gradients: where the classes do not differ at all, so that these are
# nothing else, no certificate is met to a part of the largest of them.
_ROUNDING = 1e-14
# Points of a path that one pass is to certify, where passes are costly.
_AHEAD = 5


def delta_grid(delta_max: float, n_deltas: int, ratio: float) -> Float64Array:
    """``n_deltas`` values from delta_max down to ratio * delta_max, in geometric steps."""
    if n_deltas == 1:
        return np.array([delta_max])
    return delta_max * np.geomspace(1.0, ratio, n_deltas)


class PathSolver:
    """Solutions of one plane's problem at falling deltas, each from the last.

    ``tol`` is relative to delta_max, ``max_iter`` for each delta. With ``first_above`` the
    path's first solution is returned at and above delta_max. It is stationary there, but for a
    concave penalty only because that is so steep at zero: the l1 solution, reweighted, often
    leads to a lower objective. Without it the lower of the two is taken. ``start`` is what
    `path_start` found, if it was asked for already.

    Without ``final``, as is enough where a path is one of many to choose from, ``tol`` is
    relative to each delta and the last step that settles the coefficients is left out.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        tol: float,
        max_iter: int,
        first_above: bool = True,
        start: Start | None = None,
        final: bool = True,
    ) -> None:
        self.problem = replace(problem, references=None)
        # the same with bounds in the place of gradients, unless many problems share a pass
        self._bounded = problem.bounded() if final else self.problem
        self._first_above = first_above or problem.penalty.linear
        self.first, self.delta_max, launch = start or run_to_end(path_start(self._bounded))
        self._linear = replace(self._bounded, penalty=L1())
        self.linear_max = self.delta_max * slope_at_zero(problem.penalty)
        self._tol, self._max_iter, self._final = tol, max_iter, final
        # the l1 solution that the next, smaller, delta starts from
        self._l1 = replace(launch, delta=self.linear_max)

    def at(self, delta: float, last: Solution | None = None) -> Solution:
        """The solution at ``delta``, which may not be above that of the last call.

        Its gradient is exact for all features.
        """
        return run_to_end(self.rounds_at(delta, last, self.problem))

    def continue_to(self, delta: float) -> Solution:
        """The solution at one delta, through geometric steps from delta_max.

        Its gradient is exact for all features.
        """
        return run_to_end(self._continue_to(delta))

    def solve_from(self, delta: float, w: Float64Array) -> Solution:
        """The solution at ``delta`` from a unit vector, then by way of smaller deltas, if lower.

        What the way up does for a path: a start far from the path may end in a minimum
        that a smaller penalty does not have.
        """
        return run_to_end(self._solve_from(delta, w))

    def run(
        self,
        deltas: Sequence[float] | Float64Array,
        *,
        upward: bool = True,
        max_features: int | None = None,
    ) -> list[Solution]:
        """Solve down falling deltas and, with ``upward``, up again, keeping the better.

        The path ends with the first solution of more than ``max_features`` features.
        """
        walk = _walk_group([self], [deltas], upward=upward, max_features=max_features)
        return run_to_end(walk)[0]

    def _limits(self, delta: float) -> Limits:
        tol = max(self._tol * (self.delta_max if self._final else delta), _ROUNDING)
        return Limits(tol=tol, max_iter=self._max_iter, polish=self._final)

    def rounds_at(
        self, delta: float, last: Solution | None = None, problem: Problem | None = None
    ) -> Rounds[Solution]:
        """The same as `at`, in rounds; by default of the problem with bounds."""
        problem, limits = problem or self._bounded, self._limits(delta)
        if delta >= (self.delta_max if self._first_above else self.linear_max):
            return self._first_at(delta)
        if problem.penalty.linear:
            self._l1 = yield from solve(problem, delta, self._l1, limits)
            return self._l1
        self._l1 = yield from self._descend(delta)
        found = yield from solve_reweighted(problem, delta, self._l1, limits)
        if last is not None:
            # going on from the last delta may end in a lower minimum than starting anew
            again = yield from solve(problem, delta, last, limits)
            if again.objective < found.objective:
                found = again
        if delta >= self.delta_max:
            first = self._first_at(delta)
            if first.objective <= found.objective:
                found = first
        return found

    def rounds_along(
        self, deltas: Sequence[float], last: Solution | None = None
    ) -> Rounds[list[Solution]]:
        """The solutions at some falling deltas, in rounds.

        Where passes are costly, one of them certifies as many as possible.
        """
        found: list[Solution] = []
        while len(found) < len(deltas):
            rest = deltas[len(found) :]
            linear = self.problem.penalty.linear
            if len(rest) == 1 or not linear or rest[0] >= self.delta_max:
                last = yield from self.rounds_at(rest[0], last)
                found.append(last)
                continue
            found += yield from solve_ahead(
                self._bounded,
                rest,
                self._l1,
                [self._limits(delta) for delta in rest],
            )
            self._l1 = last = found[-1]
        return found

    def _descend(self, delta: float) -> Rounds[Solution]:
        """The l1 solution at ``delta`` by a continuation in geometric steps."""
        tol = max(_START * self.linear_max, _ROUNDING)
        limits = Limits(tol=tol, max_iter=self._max_iter, polish=self._final)
        current = self._l1
        level = min(current.delta, self.linear_max) * _CONTINUATION
        while level > delta:
            current = yield from solve(self._linear, level, current, limits)
            level *= _CONTINUATION
        return (yield from solve(self._linear, delta, current, limits))

    def _continue_to(self, delta: float) -> Rounds[Solution]:
        if self.problem.penalty.linear:
            level = self.delta_max * _CONTINUATION
            while level > delta * (1.0 + 1e-12):
                yield from self.rounds_at(level)
                level *= _CONTINUATION
        return (yield from self.rounds_at(delta, problem=self.problem))

    def _from_start(self, delta: float, w: Float64Array) -> Rounds[Solution]:
        features = np.flatnonzero(w)
        # of no feature more is expected: the certificate will name them in the same pass
        start = replace(
            self.first, delta=delta, features=features, w=w[features], gradient=np.zeros(len(w))
        )
        return (yield from solve(self._bounded, delta, start, self._limits(delta)))

    def _solve_from(self, delta: float, w: Float64Array) -> Rounds[Solution]:
        first = yield from self._from_start(delta, w)
        if first.history[0] - first.objective <= _DISTINCT * abs(first.objective):
            return first
        current, n_iter = first, first.n_iter
        for level in delta * _CONTINUATION ** np.array([1, 2, 1]):
            current = yield from solve(self._bounded, level, current, self._loose(level))
            n_iter += current.n_iter
        again = yield from solve(self._bounded, delta, current, self._limits(delta))
        lower = again.objective < first.objective * (1.0 - _DISTINCT)
        return replace(again if lower else first, n_iter=n_iter + again.n_iter)

    def _loose(self, delta: float) -> Limits:
        """Limits that are enough to tell whether one is in another minimum."""
        tol = max(self._limits(delta).tol, _LOOSE * delta)
        return Limits(tol=tol, max_iter=self._max_iter, polish=False)

    def _first_at(self, delta: float) -> Solution:
        cost = penalty_of(self.problem, self.first.features, self.first.w)
        objective = self.first.quotient + delta * cost
        return replace(self.first, delta=delta, objective=objective, history=[objective])

    def walk_up(self, path: list[Solution], last: Solution) -> Rounds[None]:
        """Start each point of a path anew from the one below it and keep the better, in rounds.

        ``last`` is the lowest point with its gradient.
        """
        current = last
        for index in range(len(path) - 2, -1, -1):
            down = path[index]
            if down.delta >= self.delta_max and self._first_above:
                break
            lower = yield from self._try_from(current, down)
            if lower is not None:
                current = lower
                gap = (down.objective - lower.objective) / abs(lower.objective)
                path[index] = replace(lower, gradient=_NOTHING, gap=gap)
            else:
                current = down

    def _try_from(self, start: Solution, down: Solution) -> Rounds[Solution | None]:
        """A solution at ``down``'s delta with a lower objective, started from ``start``.

        First on the features of the two alone, which costs no pass over the data; only
        if that ends lower is it worth a certificate. Where the two have the same features
        and signs nothing is tried: between them the objective is smooth, and one minimum.
        """
        if np.array_equal(start.features, down.features) and (start.w * down.w > 0.0).all():
            return None
        features = np.union1d(start.features, down.features)
        w = np.zeros(len(features))
        w[np.searchsorted(features, start.features)] = start.w
        trial = self.problem.minimize(down.delta, features, w, self._loose(down.delta))
        if trial.objective >= down.objective - _DISTINCT * abs(down.objective):
            return None
        dense = np.zeros(len(self.problem.weights))
        dense[features] = trial.point.w
        lower = yield from self._from_start(down.delta, dense)
        return lower if lower.objective < down.objective else None


_NOTHING = np.empty(0)


def walk_together(
    problems: Sequence[Problem],
    rhos: Float64Array,
    *,
    tol: float,
    max_iter: int,
    max_features: int | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    final: bool = False,
    count: Callable[[np.ndarray], int] = len,
) -> list[list[Solution]]:
    """The paths of problems that share their covariances, one pass serving all of them.

    Each problem is solved at ``rhos``, falling, times the largest delta of its own l1 path,
    and its solutions are those it would have alone, but for rounding. ``groups`` holds the
    indices of problems that share a panel, those of the planes of one setting; by default
    every problem is a group of its own. The paths of a group end, all at the same rho, with
    the first at which the features of its solutions are more than ``max_features`` in all, as
    ``count`` counts distinct features.

    With ``final`` the paths are those of a final fit: ``tol`` is relative to the largest
    delta instead of to each, the coefficients are settled and the path is walked up again.
    """
    starts = run_to_end(together([path_start(problem) for problem in problems]))
    solvers = [
        PathSolver(problem, tol=tol, max_iter=max_iter, first_above=False, start=start, final=final)
        for problem, start in zip(problems, starts)
    ]
    groups = [[i] for i in range(len(problems))] if groups is None else groups
    walks = []
    for group in groups:
        members = [solvers[i] for i in group]
        deltas = [rhos * member.linear_max for member in members]
        walks.append(
            _walk_group(members, deltas, upward=final, max_features=max_features, count=count)
        )
    paths: list[list[Solution]] = [[] for _ in problems]
    for group, found in zip(groups, run_to_end(together(walks))):
        for i, path in zip(group, found):
            paths[i] = path
    return paths


def _walk_group(
    solvers: Sequence[PathSolver],
    deltas: Sequence[Sequence[float] | Float64Array],
    *,
    upward: bool,
    max_features: int | None,
    count: Callable[[np.ndarray], int] = len,
) -> Rounds[list[list[Solution]]]:
    """The paths of problems that share a panel, each at its own falling deltas."""
    levels = [[float(delta) for delta in level] for level in zip(*deltas)]
    step = _AHEAD if solvers[0].problem.cov.costly_passes else 1
    paths: list[list[Solution]] = [[] for _ in solvers]
    last: Sequence[Solution] = []
    for first in range(0, len(levels), step):
        own = zip(*levels[first : first + step])  # the deltas of each problem
        walks = [
            solver.rounds_along(some, before)
            for solver, some, before in zip_longest(solvers, own, last)
        ]
        found = list(zip(*(yield from together(walks))))  # the solutions at each level
        sizes = [count(_features(solutions)) for solutions in found]
        within = [max_features is None or size <= max_features for size in sizes]
        ended = not all(within)
        if ended:
            found = found[: within.index(False) + 1]
        last = found[-1]
        for path, solutions in zip(paths, zip(*found)):
            # a gradient over all features for every delta would outweigh the data
            path += [replace(solution, gradient=_NOTHING) for solution in solutions]
        if ended:
            break
    if upward and last:
        yield from together(
            [solver.walk_up(path, end) for solver, path, end in zip(solvers, paths, last)]
        )
    return paths


def _features(solutions: Sequence[Solution]) -> np.ndarray:
    """The panel of solutions that share one."""
    return np.unique(np.concatenate([solution.features for solution in solutions]))
