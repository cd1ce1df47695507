"""The penalised problems of all planes, their paths, and the panels that are cut from them.

Everything here is in standardised units and knows nothing of scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from .._typing import Float64Array, IntArray
from .._validate import check_choice, check_integer, check_real
from ..linalg import Covariances
from ..solvers.exact import solve_unpenalized
from ..solvers.gradients import full_gradient
from ..solvers.path import PathSolver, walk_together
from ..solvers.penalties import Penalty
from ..solvers.quotient import check_definite
from ..solvers.working_set import Problem, Solution
from .elbow import elbow_features
from .groups import FeatureGroups
from .refit import Planes, balanced_scale, cut_to_panel, refit_pair

SelectionRule = Literal["nonzero", "elbow"]

# The path that leads to a panel of a given size: panels grow by few features a step.
_RHOS_TO_SIZE = np.geomspace(1.0, 1e-3, 60)
# How many times the features asked for a path must have before the heaviest are taken. At its
# first point of that size the order of the weights is better settled than where they enter.
_SURPLUS = 1.5
# The pool of the path that leads to a panel of a given size: with less the planes spend a
# small number of features separately.
POOL_FOR_SIZE = 1.0


def tau_for_size(k: int) -> float:
    """The tau of the path that leads to a panel of k features.

    As tau grows features are taken more and more for what each tells by itself, which is
    stable, and less for what they add to each other. docs/panels.md has what was measured.
    """
    return max(3.0, float(k))


@dataclass(frozen=True, eq=False)
class PlaneSettings:
    """The parameters of the planes' problems other than delta, checked."""

    penalty: Penalty
    tau: float
    pool: float
    tol: float = 1e-6
    max_iter: int = 1000
    selection: SelectionRule = "nonzero"
    refit: bool = True
    refit_tau: float | None = None  # None: as on the path
    refit_pool: float | None = None
    factors: Float64Array | None = None  # of the penalty, of all features; None: all 1
    groups: FeatureGroups | None = None  # features that go together; None: each by itself

    def __post_init__(self) -> None:
        check_real("tau", self.tau, least=0)
        check_real("pool", self.pool, least=0, most=1)
        check_real("tol", self.tol, least=0)
        check_integer("max_iter", self.max_iter, least=1)
        check_choice("selection", self.selection, get_args(SelectionRule))


class PlaneProblems:
    """The problems of all planes of one data set and setting, with their paths."""

    def __init__(self, cov: Covariances, settings: PlaneSettings) -> None:
        self.cov, self.settings = cov, settings
        self.problems = [
            Problem.of_class(
                cov,
                i,
                tau=settings.tau,
                pool=settings.pool,
                penalty=settings.penalty,
                weights=settings.factors,
            )
            for i in range(len(cov.share))
        ]
        if settings.tau == 0.0:
            check_definite(cov, self.problems[0].plane, self.eligible)

    @property
    def must(self) -> IntArray:
        """The features that are in every panel: penalty factor 0, and not constant."""
        return self.problems[0].free

    @property
    def eligible(self) -> IntArray:
        """The features that a panel may have: a finite penalty factor, and not constant."""
        return np.flatnonzero(self.problems[0].eligible)

    @cached_property
    def solvers(self) -> list[PathSolver]:
        """What walks the path of each plane."""
        return [
            PathSolver(
                problem,
                tol=self.settings.tol,
                max_iter=self.settings.max_iter,
                first_above=False,
            )
            for problem in self.problems
        ]

    @property
    def delta_max(self) -> Float64Array:
        """The largest delta of each plane's path."""
        return np.array([solver.linear_max for solver in self.solvers])

    def at(self, deltas: Sequence[float] | Float64Array) -> list[Solution]:
        """One solution per plane, each at its own delta, through a continuation."""
        return [solver.continue_to(float(d)) for solver, d in zip(self.solvers, deltas)]

    def select(self, solutions: Sequence[Solution]) -> IntArray:
        """The union over planes of the features each selects, and those that must be in.

        Of features that go together all are selected where one of them is.
        """
        if self.settings.selection == "nonzero":
            return self._closed(self.features(solutions))
        chosen = [_up_to_elbow(solution, self.must) for solution in solutions]
        return self._closed(np.unique(np.concatenate([self.must, *chosen])))

    def features(self, solutions: Sequence[Solution]) -> IntArray:
        """All features of some planes and those that must be in, sorted."""
        found = _features(solutions)
        return np.union1d(found, self.must) if len(self.must) else found

    def size(self, features: IntArray) -> int:
        """How many features these are, those that go together counted once."""
        groups = self.settings.groups
        return len(features) if groups is None else groups.count(features)

    def _closed(self, features: IntArray) -> IntArray:
        """These features and all that go together with them, even those that are constant here."""
        groups = self.settings.groups
        return features if groups is None else groups.close(features)

    def heaviest(self, solutions: Sequence[Solution], k: int) -> IntArray:
        """The k features with the largest weight in any plane; all there are, if they are fewer.

        Those that must be in come first. Features without a weight come last, by the pull of
        their gradients. Features that go together count as one.
        """
        groups = self.settings.groups
        order = by_weight(solutions, self.must, groups)
        if self.size(order) < k:
            order = feature_order(self, solutions)
            order = order[self.problems[0].eligible[order]]
        if groups is None:
            return np.sort(order[:k])
        return self._closed(groups.first(order, k))

    def unpenalized(self) -> list[Solution] | None:
        """The best plane of each class on all features there are; None if one is at infinity."""
        found = self._unpenalized_on(self.eligible)
        solutions = [solution for solution in found if solution is not None]
        return solutions if len(solutions) == len(found) else None

    def _unpenalized_on(self, features: IntArray) -> list[Solution | None]:
        tau = self.settings.tau
        return [solve_unpenalized(self.cov, p.plane, tau, features) for p in self.problems]

    def with_gradients(self, solutions: Sequence[Solution]) -> list[Solution]:
        """The same solutions with their gradients over all features, which paths do not keep."""
        out = []
        for problem, solution in zip(self.problems, solutions):
            self.cov.extend(solution.features)
            gradient = full_gradient(
                self.cov,
                problem.plane,
                problem.tau,
                solution.features,
                solution.w,
                solution.bias,
            )
            out.append(replace(solution, gradient=gradient))
        return out

    @cached_property
    def _refits(self) -> PlaneProblems:
        """The problems that are solved on a panel: of another tau and pool, if given."""
        chosen = self.settings
        tau = chosen.tau if chosen.refit_tau is None else chosen.refit_tau
        pool = chosen.pool if chosen.refit_pool is None else chosen.refit_pool
        if (tau, pool) == (chosen.tau, chosen.pool):
            return self
        return PlaneProblems(self.cov, replace(chosen, tau=tau, pool=pool))

    def planes(self, solutions: Sequence[Solution], panel: IntArray) -> Planes:
        """Planes on the panel: refitted there exactly, or truncated to it.

        Constant features, which may be there with others that they go together with, have no
        weight.
        """
        varying = self.cov.standardization.varying[panel]
        if not varying.all():
            return self.planes(solutions, panel[varying]).within(panel)
        if not self.settings.refit:
            return self._cut(solutions, panel, kept=False)
        return self._refits._refitted(solutions, panel)

    def _refitted(self, solutions: Sequence[Solution], panel: IntArray) -> Planes:
        """The best planes on the panel, but these where the best lies at infinity."""
        tau = self.settings.tau
        if len(solutions) == 2 and tau > 0.0:
            pair = refit_pair(self.cov, self.problems[0].plane, tau, panel)
            if pair is not None:
                return pair
        found = self._unpenalized_on(panel)
        best = [new or solution for new, solution in zip(found, solutions)]
        return self._cut(best, panel, kept=any(new is None for new in found))

    def _cut(self, solutions: Sequence[Solution], panel: IntArray, *, kept: bool) -> Planes:
        cut = [cut_to_panel(self.cov, p.plane, s, panel) for p, s in zip(self.problems, solutions)]
        w, b = np.stack([weights for weights, _ in cut]), np.array([bias for _, bias in cut])
        return Planes(panel, w, b, balanced_scale(self.cov, panel, w, b), kept)


def shared_paths(
    every: Sequence[PlaneProblems],
    rhos: Float64Array,
    *,
    tol: float | None = None,
    max_features: int | None = None,
) -> list[list[list[Solution]]]:
    """The paths of the planes of several settings on the same data, solved side by side.

    Their points are at ``rho * delta_max``, rho falling. The paths of a setting end before the
    first point, other than the first of all, at which its planes together have more than
    ``max_features`` features. Without ``tol`` they are walked down and up again to the settings'
    own tolerance; otherwise down alone, to ``tol``, which is relative to the penalty at each point.
    """
    out = []
    for problems, paths in zip(every, _walk(every, rhos, tol, max_features)):
        end = len(paths[0])
        if max_features is not None:
            # the last point has too many, and on the way up others may have come to
            sizes = [problems.size(problems.features(solutions)) for solutions in zip(*paths)]
            end = next((i for i in range(1, end) if sizes[i] > max_features), end)
        out.append([path[:end] for path in paths])
    return out


def paths_to_sizes(
    every: Sequence[PlaneProblems], sizes: Sequence[int], *, tol: float | None = None
) -> list[list[list[Solution]]]:
    """The solutions of each setting's planes from which panels of these sizes are to be cut.

    For k features, beside those that must be in, they are those of the first point of the path
    that has at least 1.5 k, else of its end, else, where even that has fewer than k, the
    unpenalised ones. ``tol`` is as in `shared_paths`; `PlaneProblems.heaviest` cuts.
    """
    n_must, there = every[0].size(every[0].must), every[0].size(every[0].eligible)
    wanted = [n_must + _SURPLUS * (k - n_must) for k in sizes]
    enough = min(math.ceil(max(wanted)), there)
    # no path is needed to a panel of all
    rhos = _RHOS_TO_SIZE if min(sizes) < there else _RHOS_TO_SIZE[:1]
    out = []
    for problems, paths in zip(every, _walk(every, rhos, tol, enough - 1)):
        points = [list(solutions) for solutions in zip(*paths)]
        counts = np.array([problems.size(problems.features(solutions)) for solutions in points])
        chosen = []
        for k, surplus in zip(sizes, wanted):
            large = np.flatnonzero(counts >= surplus)
            at = int(large[0]) if len(large) else len(points) - 1
            solutions = points[at]
            if counts[at] < min(k, there):
                solutions = problems.unpenalized() or problems.with_gradients(solutions)
            chosen.append(solutions)
        out.append([list(path) for path in zip(*chosen)])
    return out


def _walk(
    every: Sequence[PlaneProblems],
    rhos: Float64Array,
    tol: float | None,
    max_features: int | None,
) -> list[list[list[Solution]]]:
    """The paths of each setting's planes, to the first point of too many features."""
    k = len(every[0].problems)
    starts = range(0, k * len(every), k)
    chosen = every[0].settings
    found = walk_together(
        [problem for problems in every for problem in problems.problems],
        rhos,
        tol=chosen.tol if tol is None else tol,
        max_iter=chosen.max_iter,
        max_features=max_features,
        groups=[range(start, start + k) for start in starts],
        final=tol is None,
        count=every[0].size,
    )
    return [found[start : start + k] for start in starts]


def _features(solutions: Sequence[Solution]) -> IntArray:
    """All features of some planes, sorted."""
    return np.unique(np.concatenate([solution.features for solution in solutions]))


def by_weight(
    solutions: Sequence[Solution], must: IntArray, groups: FeatureGroups | None = None
) -> IntArray:
    """All features of some planes by their largest |w|, those of the better plane first in ties.

    Those that ``must`` be in come before all others. Features that go together have the root of
    their squared weights in a plane in common.
    """
    features = np.union1d(_features(solutions), must)
    weight, quotient = np.zeros(len(features)), np.zeros(len(features))
    for solution in sorted(solutions, key=lambda solution: solution.quotient):
        at = np.searchsorted(features, solution.features)
        own = np.abs(solution.w)
        own = own if groups is None else groups.norms(solution.features, own)
        larger = own > weight[at]
        weight[at[larger]] = own[larger]
        quotient[at[larger]] = solution.quotient
    # lexsort: last key first; stable, so what ties still goes to the lowest index
    return features[np.lexsort((quotient, -weight, ~np.isin(features, must)))]


def feature_order(problems: PlaneProblems, solutions: Sequence[Solution]) -> IntArray:
    """All features, most important first.

    Those that must be in a panel come first, then the selected ones by their largest weight,
    then the others by how close their gradient comes to the slope of the penalty, which is how
    close they are to being selected. Those that may not be in a panel are the last. Features that
    go together stand where the first of them does.
    """
    m = problems.cov.means.shape[1]
    pull = np.zeros(m)
    for problem, solution in zip(problems.problems, solutions):
        if len(solution.gradient) == m:
            np.maximum(pull, problem.pull(solution.gradient), out=pull)
    pull[problems.problems[0].weights == np.inf] = -1.0
    groups = problems.settings.groups
    first = by_weight(solutions, problems.must, groups)
    pull[first] = np.inf
    others = np.argsort(-pull, kind="stable")[len(first) :]
    order = np.concatenate([first, others])
    return order if groups is None else groups.together(order)


def _up_to_elbow(solution: Solution, must: IntArray) -> IntArray:
    """The features up to the elbow of the weights of those that are there by choice."""
    chosen = ~np.isin(solution.features, must)
    # one of the zeros that follow, as the curve of all weights would have it
    return solution.features[chosen][elbow_features(np.append(solution.w[chosen], 0.0))]
