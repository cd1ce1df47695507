"""From solutions of the penalised problems to planes on a panel of features.

Everything here is in standardised units and knows nothing of scikit-learn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import (
    dormqr,
    dpotrf,
    dstebz,
    dstein,
    dsygst,
    dsygvd,
    dsytrd,
    dtrtrs,
)

from .._typing import Float64Array, IntArray
from .._validate import check_choice, check_integer, check_real
from ..linalg import Covariances
from ..solvers.exact import solve_unpenalized
from ..solvers.path import PathSolver, walk_together
from ..solvers.penalties import Penalty
from ..solvers.quotient import OneVsRest, best_bias, check_definite, full_gradient
from ..solvers.working_set import Problem, Solution
from .elbow import elbow_features

SelectionRule = Literal["nonzero", "elbow"]

# Features below which all eigenvectors are found as fast as two.
_FEW_FEATURES = 16
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

    def __post_init__(self) -> None:
        check_real("tau", self.tau, least=0)
        check_real("pool", self.pool, least=0, most=1)
        check_real("tol", self.tol, least=0)
        check_integer("max_iter", self.max_iter, least=1)
        check_choice("selection", self.selection, get_args(SelectionRule))


@dataclass(frozen=True, eq=False)
class Planes:
    """One plane per class on a common panel, in standardised units."""

    panel: IntArray  # sorted indices of the selected features
    w: Float64Array  # unit normals, (n_classes, n_selected)
    b: Float64Array  # biases for centred features
    scale: Float64Array  # class-balanced root mean square distances of the training rows
    kept: bool = False  # some plane could not be refitted, so the penalised one was kept

    def raw(self, center: Float64Array, inverse: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Coefficients on the panel and intercepts in the units of X."""
        coef = self.w * inverse[self.panel]
        return coef, self.b - coef @ center[self.panel]


class PlaneProblems:
    """The problems of all planes of one data set and setting, with their paths."""

    def __init__(self, cov: Covariances, settings: PlaneSettings) -> None:
        self.cov, self.settings = cov, settings
        self.problems = [
            Problem.of_class(cov, i, tau=settings.tau, pool=settings.pool, penalty=settings.penalty)
            for i in range(len(cov.share))
        ]
        if settings.tau == 0.0:
            check_definite(cov, self.problems[0].plane)

    @cached_property
    def solvers(self) -> list[PathSolver]:
        """What walks the path of each plane."""
        return [
            PathSolver(
                problem,
                tol=self.settings.tol,
                max_iter=self.settings.max_iter,
                single_above=False,
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

    def paths(self, rhos: Float64Array, *, max_features: int | None = None) -> list[list[Solution]]:
        """The path of each plane over ``rho * delta_max``, rho falling, down and up again.

        The paths end before the first point, other than the first of all, at which the
        planes together have more than ``max_features`` features.
        """
        return shared_paths([self], rhos, max_features=max_features)[0]

    def select(self, solutions: Sequence[Solution]) -> IntArray:
        """The union over planes of the features each selects."""
        if self.settings.selection == "nonzero":
            return _features(solutions)
        return np.unique(np.concatenate([_up_to_elbow(solution) for solution in solutions]))

    def heaviest(self, solutions: Sequence[Solution], k: int) -> IntArray:
        """The k features with the largest weight in any plane; all that vary, if they are fewer.

        Features without a weight come last, by the pull of their gradients.
        """
        order = by_weight(solutions)
        if len(order) < k:
            order = feature_order(self, solutions)
            order = order[self.cov.standardization.varying[order]]
        return np.sort(order[:k])

    def unpenalized(self) -> list[Solution] | None:
        """The best plane of each class on all features that vary; None if one is at infinity."""
        varying = np.flatnonzero(self.cov.standardization.varying)
        tau = self.settings.tau
        found = [solve_unpenalized(self.cov, p.plane, tau, varying) for p in self.problems]
        solutions = [solution for solution in found if solution is not None]
        return solutions if len(solutions) == len(found) else None

    def with_gradients(self, solutions: Sequence[Solution]) -> list[Solution]:
        """The same solutions with their gradients over all features, which paths do not keep."""
        return [
            replace(solution, gradient=self._gradient(problem, solution))
            for problem, solution in zip(self.problems, solutions)
        ]

    def _gradient(self, problem: Problem, solution: Solution) -> Float64Array:
        features = solution.features
        problem.cov.extend(features)
        return full_gradient(
            problem.cov, problem.plane, problem.tau, features, solution.w, solution.bias
        )

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
        """Planes on the panel: refitted there exactly, or truncated to it."""
        w = np.zeros((len(solutions), len(panel)))
        b = np.zeros(len(solutions))
        kept = False
        if self.settings.refit and self._refits is not self:
            return self._refits.planes(solutions, panel)
        tau = self.settings.tau
        if self.settings.refit and len(solutions) == 2 and tau > 0.0:
            found = refit_pair(self.cov, self.problems[0].plane, tau, panel)
            if found is not None:
                return found
        for i, solution in enumerate(solutions):
            plane = self.problems[i].plane
            chosen: Solution | None = None
            if self.settings.refit:
                chosen = solve_unpenalized(self.cov, plane, tau, panel)
                kept |= chosen is None
            w[i], b[i] = _on_panel(self.cov, plane, chosen or solution, panel)
        return Planes(panel, w, b, balanced_scale(self.cov, panel, w, b), kept)


def refit_pair(cov: Covariances, plane: OneVsRest, tau: float, panel: IntArray) -> Planes | None:
    """The best unpenalised planes of two classes on a panel, from one eigenproblem.

    With M_k = [[S_k + tau I + mu_k mu_k', mu_k], [mu_k', 1]] the plane of the first class is
    the first eigenvector (w, b) of the pair (M_1, M_1 + M_2). That of the second class is the
    quotient turned over, so it is the last. None where one of them lies at infinity.
    """
    lift = None
    features = panel
    if len(panel) > cov.n_samples:
        # tau counts against any part of w outside the row space, so the planes lie in it
        reduced = cov.row_space(panel)
        if reduced is not None:
            cov, lift = reduced
            features = np.arange(cov.means.shape[1])
    cov.extend(features)
    k = len(features)
    within, means = cov.blocks(features, np.eye(2)), cov.means[:, features]
    spreads = (plane.own, plane.other)
    forms = np.empty((2, k + 1, k + 1))
    for form, (first, second), mean in zip(forms, spreads, means):
        block = form[:k, :k]
        np.multiply(within[0], first, out=block)
        block += second * within[1]
        block += np.multiply.outer(mean, mean)
        form[:k, k] = form[k, :k] = mean
        form[k, k] = 1.0
        form.flat[: -1 : k + 2] += tau
    ends = _end_vectors(forms[0], forms[0] + forms[1]).T
    w, norms = ends[:, :k], np.linalg.norm(ends[:, :k], axis=1)
    if (norms <= 1e-8 * np.abs(ends[:, k])).any():
        return None
    w = w / norms[:, None]
    # variances and means of the classes (columns) along the planes (rows)
    variances = np.maximum(((w @ within) * w).sum(axis=2), 0.0).T
    centers = w @ means.T
    b = np.empty(2)
    for i, j in ((0, 1), (1, 0)):
        own, other = (float(spreads[c] @ variances[i]) + tau for c in (i, j))
        bias = best_bias(own, other, float(centers[i, j] - centers[i, i]))
        b[i] = bias.own - centers[i, i]
        if bias.other < 0.0:  # the other class lies on the positive side
            w[i], b[i], centers[i] = -w[i], -b[i], -centers[i]
    scale = np.sqrt((variances + (centers + b[:, None]) ** 2).mean(axis=1))
    if lift is not None:
        w = np.stack([lift(row) for row in w])
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    return Planes(panel, w, b, np.where(scale > 0.0, scale, 1.0))


def _end_vectors(A: Float64Array, B: Float64Array) -> Float64Array:
    """The first and the last eigenvector of the pair (A, B), as columns.

    By way of a tridiagonal matrix, as LAPACK has it for some but not for both of them: all
    eigenvectors take twice as long.
    """
    n = len(A)
    if n < _FEW_FEATURES:
        _, vectors, failed = dsygvd(A, B)
        if not failed:
            return vectors[:, [0, -1]]
    else:
        factor, failed = dpotrf(B.T, lower=1)
        if not failed:
            reduced, _ = dsygst(A.T, factor, lower=1)
            reflectors, diagonal, beside, scales, _ = dsytrd(reduced, lower=1)
            found = np.empty((n, 2), order="F")
            for column, index in enumerate((1, n)):
                _, values, block, split, wrong = dstebz(
                    diagonal, beside, 2, 0.0, 0.0, index, index, 0.0, "B"
                )
                vector, stalled = dstein(diagonal, beside, values[:1], block, split)
                found[:, column] = vector[:, 0]
                failed |= wrong | stalled
            found[1:], _, wrong = dormqr("L", "N", reflectors[1:, :-1], scales, found[1:], 128)
            vectors, singular = dtrtrs(factor, found, lower=1, trans=1)
            if not (failed or wrong or singular):
                return vectors
    return eigh(A, B)[1][:, [0, -1]]


def shared_paths(
    every: Sequence[PlaneProblems],
    rhos: Float64Array,
    *,
    tol: float | None = None,
    max_features: int | None,
) -> list[list[list[Solution]]]:
    """The paths of the planes of several settings on the same data, solved side by side.

    The paths of a setting end before the first point, other than the first of all, at which
    its planes together have more than ``max_features`` features. Without ``tol`` they are
    walked down and up again to the settings' own tolerance; otherwise down alone, to ``tol``,
    which is relative to the penalty at each point.
    """
    out = []
    for paths in _walk(every, rhos, tol, max_features):
        end = len(paths[0])
        if max_features is not None:
            # the last point has too many, and on the way up others may have come to
            sizes = [len(_features(solutions)) for solutions in zip(*paths)]
            end = next((i for i in range(1, end) if sizes[i] > max_features), end)
        out.append([path[:end] for path in paths])
    return out


def paths_to_sizes(
    every: Sequence[PlaneProblems], sizes: Sequence[int], *, tol: float | None = None
) -> list[list[list[Solution]]]:
    """The solutions of each setting's planes from which panels of these sizes are to be cut.

    For k features they are those of the first point of the path that has at least 1.5 k, else
    of its end, else, where even that has fewer than k, the unpenalised ones. ``tol`` is as in
    `shared_paths`; `PlaneProblems.heaviest` cuts.
    """
    varying = int(np.count_nonzero(every[0].cov.standardization.varying))
    enough = min(math.ceil(_SURPLUS * max(sizes)), varying)
    # no path is needed to a panel of all
    rhos = _RHOS_TO_SIZE if min(sizes) < varying else _RHOS_TO_SIZE[:1]
    out = []
    for problems, paths in zip(every, _walk(every, rhos, tol, enough - 1)):
        points = [list(solutions) for solutions in zip(*paths)]
        counts = np.array([len(_features(solutions)) for solutions in points])
        chosen = []
        for k in sizes:
            large = np.flatnonzero(counts >= _SURPLUS * k)
            at = int(large[0]) if len(large) else len(points) - 1
            solutions = points[at]
            if counts[at] < min(k, varying):
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
    )
    return [found[start : start + k] for start in starts]


def _features(solutions: Sequence[Solution]) -> IntArray:
    """All features of some planes, sorted."""
    return np.unique(np.concatenate([solution.features for solution in solutions]))


def warn_about(solutions: Sequence[Solution], planes: Planes, labels: Sequence[object]) -> None:
    """Warn of planes that were not refitted and of biases that were clipped."""
    if planes.kept:
        warnings.warn(
            "on the selected features the best unpenalised plane of some class lies at "
            "infinity, so its penalised plane was kept: the means of the classes may coincide. "
            "Try a larger pool or tau",
            RuntimeWarning,
            stacklevel=5,
        )
    clipped = [label for label, s in zip(labels, solutions) if s.bias.clipped]
    if clipped:
        warnings.warn(
            f"the best bias of the plane of class {clipped[0]!r} ran off to infinity and was "
            "clipped: along its direction the class means coincide. Try a larger pool or tau",
            RuntimeWarning,
            stacklevel=5,
        )


def by_weight(solutions: Sequence[Solution]) -> IntArray:
    """All features of some planes by their largest |w|, those of the better plane first in ties."""
    features = _features(solutions)
    weight, quotient = np.zeros(len(features)), np.zeros(len(features))
    for solution in sorted(solutions, key=lambda solution: solution.quotient):
        at = np.searchsorted(features, solution.features)
        larger = np.abs(solution.w) > weight[at]
        weight[at[larger]] = np.abs(solution.w)[larger]
        quotient[at[larger]] = solution.quotient
    # lexsort: last key first; stable, so what ties still goes to the lowest index
    return features[np.lexsort((quotient, -weight))]


def feature_order(problems: PlaneProblems, solutions: Sequence[Solution]) -> IntArray:
    """All features, most important first.

    The selected ones come by their largest weight, then the others by how close their
    gradient comes to the slope of the penalty, which is how close they are to being selected.
    """
    m = problems.cov.means.shape[1]
    pull = np.zeros(m)
    for solution in solutions:
        if len(solution.gradient) == m:
            np.maximum(pull, np.abs(solution.gradient), out=pull)
    first = by_weight(solutions)
    pull[first] = np.inf
    others = np.argsort(-pull, kind="stable")[len(first) :]
    return np.concatenate([first, others])


def balanced_scale(
    cov: Covariances, panel: IntArray, w: Float64Array, b: Float64Array
) -> Float64Array:
    """Root of the mean over classes of the mean squared distance to each plane."""
    offset = w @ cov.means[:, panel].T + b[:, None]
    scale = np.sqrt((cov.class_variances(panel, w) + offset**2).mean(axis=1))
    return np.where(scale > 0.0, scale, 1.0)


def _on_panel(
    cov: Covariances, plane: OneVsRest, solution: Solution, panel: IntArray
) -> tuple[Float64Array, float]:
    """Weights on the panel and bias, the other classes on the positive side.

    The bias is the solution's own also where weights are cut off, as the paper has it.
    """
    dense = np.zeros(len(panel))
    _, at, source = np.intersect1d(panel, solution.features, return_indices=True)
    dense[at] = solution.w[source]
    own = float((plane.own_mean @ cov.means[:, solution.features]) @ solution.w)
    sign = -1.0 if solution.bias.other < 0.0 else 1.0
    bias = sign * (solution.bias.own - own)
    norm = float(np.linalg.norm(dense))
    if norm == 0.0:
        return dense, bias
    # a truncated normal is made a unit vector again, so that distances stay distances
    return sign * dense / norm, bias / norm


def _up_to_elbow(solution: Solution) -> IntArray:
    # one of the zeros that follow, as the curve of all weights would have it
    return solution.features[elbow_features(np.append(solution.w, 0.0))]
