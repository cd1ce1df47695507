"""Cross-validation along paths: solve once per fold and setting, score and choose points.

A *point* is one rho for all planes, or, where the planes are combined freely, one rho for
each; where the number of features is given, it is a size of the panel. Rows held out get
weight zero, so no fold copies X.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import Covariances
from ..solvers.penalties import exponent
from ..solvers.working_set import Solution
from .groups import Steering
from .planes import PlaneProblems, PlaneSettings, paths_to_sizes, shared_paths
from .scoring import FoldScores, LabelledRows, RawPlanes, Scorer

RULES = ("paired", "best", "1se")
# Points beyond which a free combination of planes is refused.
_MAX_POINTS = 100_000
# Features up to which paths go however few rows there are.
_LEAST_END = 30
# A point cannot be told from the best if it is worse by at most so many standard errors of the
# difference, and it does not matter which is taken if it is worse by at most this share of what
# the best gains over guessing: with many rows any difference can be told. docs/panels.md has
# what was measured.
_CANNOT_TELL = 0.5
_DOES_NOT_MATTER = 0.02
# Scores this close are equal but for rounding.
_ROUNDING = 1e-12
# Tolerance of the paths in the folds, relative to the penalty. The planes are refitted on the
# panel, which at this tolerance is nearly always what it would be at a smaller one.
_FOLD_TOL = 1e-3


@dataclass(frozen=True, eq=False)
class Search:
    """The settings, points and decisions of a search; every combination is scored."""

    settings: Sequence[PlaneSettings]
    rhos: Float64Array  # falling ratios of delta to its largest value
    points: Sequence[tuple[int, ...]]  # at every point, the index of the rho (size) of each plane
    decisions: Sequence[str]
    scorer: Scorer | None  # None: the balanced log loss of the calibrated decision, negated
    standardize: bool
    sizes: Sequence[int] | None = None  # rising sizes of the panel instead of rhos
    max_features: int | None = None  # where paths end; None: at the number of rows

    def steered(self, steering: Steering) -> Search:
        """The same search with these factors and groups, and no panel too small for them."""
        settings = [steering.applied(setting) for setting in self.settings]
        sizes = self.sizes
        sizes = None if sizes is None else [size for size in sizes if size >= steering.n_must]
        return replace(self, settings=settings, sizes=sizes)

    def paths(
        self, every: Sequence[PlaneProblems], n_rows: int, tol: float | None = None
    ) -> list[list[list[Solution]]]:
        """The paths of each setting's planes, fitted on so many rows.

        ``tol`` is as in `shared_paths`.
        """
        if self.sizes is not None:
            return paths_to_sizes(every, self.sizes, tol=tol)
        end = max(n_rows, _LEAST_END) if self.max_features is None else self.max_features
        return shared_paths(every, self.rhos, tol=tol, max_features=end)

    def panel(self, problems: PlaneProblems, solutions: Sequence[Solution], p: int) -> IntArray:
        """The panel at point p, given the solutions there."""
        if self.sizes is not None:
            return problems.heaviest(solutions, self.sizes[p])
        return problems.select(solutions)


def sizes_up_to(k: int) -> list[int]:
    """Sizes of panels from 1 to k, those between in steps of a third to a half."""
    steps = [2**i + extra for i in range(k.bit_length()) for extra in (0, 2**i // 2)]
    return sorted({size for size in steps if size < k} | {k})


def effective_rows(counted: Any, total: Any) -> int:
    """How many rows a path is fitted on, given the rows of any weight and their total weight.

    A row of weight 3 counts as three equal rows; one of a small weight counts as a row.
    """
    return max(int(counted), int(total))


def points_of(n_deltas: int, n_classes: int, combine: bool) -> list[tuple[int, ...]]:
    """Index of the delta of each plane, at every point."""
    if not combine:
        return [(i,) * n_classes for i in range(n_deltas)]
    if n_deltas**n_classes > _MAX_POINTS:
        raise ValueError(
            f"combine=True with {n_deltas} deltas and {n_classes} classes makes "
            f"{n_deltas**n_classes} points to score: use a smaller n_deltas or combine=False"
        )
    return list(product(range(n_deltas), repeat=n_classes))


def solve_fold(cov: Covariances, search: Search, n_rows: int) -> list[list[RawPlanes | None]]:
    """Planes of every setting and point; None where a path ended before.

    ``n_rows`` is the number of rows that are not held out, as `effective_rows` counts them.
    Points with the same panel share one refit.
    """
    std = cov.standardization
    every = [PlaneProblems(cov, settings) for settings in search.settings]
    out = []
    for problems, paths in zip(every, search.paths(every, n_rows, _FOLD_TOL)):
        seen: dict[bytes, RawPlanes] = {}
        planes: list[RawPlanes | None] = []
        for p, point in enumerate(search.points):
            if max(point) >= len(paths[0]):
                planes.append(None)
                continue
            solutions = at_point(paths, point)
            panel = search.panel(problems, solutions, p)
            # with a refit the planes depend on the panel alone
            key = panel.tobytes() if problems.settings.refit else repr(point).encode()
            if key not in seen:
                refitted = problems.planes(solutions, panel)
                raw = refitted.raw(std.center, std.inverse)
                seen[key] = RawPlanes(panel, *raw, refitted.scale, problems.size(panel))
            planes.append(seen[key])
        out.append(planes)
    return out


def at_point(paths: Sequence[Sequence[Solution]], point: Sequence[int]) -> list[Solution]:
    """The solution of each plane at its own index."""
    return [path[i] for path, i in zip(paths, point)]


# The problems and paths on all rows of a setting, given its index.
FinalPaths = Callable[[int], tuple[PlaneProblems, Sequence[Sequence[Solution]]]]


def choose_point(
    table: Float64Array,
    sizes: IntArray,
    search: Search,
    final: FinalPaths,
    rule: str,
    losses: HeldOutLosses | None = None,
) -> tuple[tuple[int, int, int], BoolArray, BoolArray]:
    """Choose a setting, point and decision that all folds and the path on all rows reached.

    ``table``, ``sizes`` and ``losses`` are as in `pick`, sizes of zero saying that a fold did not
    reach a point. The path on all rows is solved for the settings that come first. Beside the
    choice: which settings and points are reached, and which settings, points and decisions may
    be chosen, as far as these paths tell.
    """
    reached: BoolArray = np.asarray((sizes > 0).all(axis=0))
    allowed = np.repeat(reached[:, :, None], len(search.decisions), axis=2)
    if search.sizes is not None:
        allowed[:, :-1] = False  # smaller panels are there to be looked at
    furthest = np.array([max(point) for point in search.points])
    while True:
        s, p, d = pick(table, sizes, allowed, rule, losses)
        reached[s] &= furthest < len(final(s)[1][0])
        allowed[s] &= reached[s][:, None]
        if allowed[s, p, d]:
            return (s, p, d), reached, allowed


def pick(
    table: Float64Array,
    sizes: IntArray,
    allowed: BoolArray,
    rule: str,
    losses: HeldOutLosses | None = None,
) -> tuple[int, int, int]:
    """Choose a setting, point and decision by the rule "paired", "best" or "1se".

    ``table`` holds scores by fold, setting, point and decision, larger being better,
    ``sizes`` panel sizes by fold, setting and point. ``losses`` are those the scores are means
    of; where there are none, differences between folds stand for those between rows.
    """
    mean = np.where(allowed, table.mean(axis=0), -np.inf)
    size = np.broadcast_to(sizes.mean(axis=0)[:, :, None], mean.shape)
    # ties go to the smaller panel, then to the earlier row
    order = np.lexsort((np.arange(mean.size), size.ravel(), -mean.ravel()))
    s, p, d = (int(i) for i in np.unravel_index(order[0], mean.shape))
    if not np.isfinite(mean[s, p, d]):
        raise ValueError("the score is not finite anywhere: check scoring and the folds")
    if rule == "best":
        return s, p, d
    best = table[:, s, p, d]
    if rule == "1se":
        slack = standard_error(best)
    elif losses is None:
        slack = _CANNOT_TELL * standard_error(table - best[:, None, None, None])
    else:
        slack = _CANNOT_TELL * losses.errors(s, p)[:, :, None]
        slack = np.maximum(slack, _DOES_NOT_MATTER * (losses.of_guessing + mean[s, p, d]))
    near = mean >= mean[s, p, d] - slack - _ROUNDING
    order = np.lexsort((np.arange(mean.size), -mean.ravel(), np.where(near, size, np.inf).ravel()))
    s, p, d = (int(i) for i in np.unravel_index(order[0], mean.shape))
    return s, p, d


@dataclass(frozen=True, eq=False)
class HeldOutLosses:
    """The losses of all held-out rows at every point, whose means are the balanced ones."""

    weighted: Float64Array  # by setting, point and row
    n_rows: int  # how many rows they stand for: of tall data they are a sample
    of_guessing: float  # the mean loss of equal probabilities

    @classmethod
    def of_folds(cls, folds: Sequence[FoldScores], rows: LabelledRows) -> HeldOutLosses:
        """The losses of these folds."""
        index = np.concatenate([fold.rows for fold in folds])
        codes, weight = rows.codes[index], rows.weight_of(index)
        weight = np.ones(len(index)) if weight is None else weight
        total = np.bincount(codes, weight, minlength=len(rows.classes))
        weight = weight * len(index) / (np.count_nonzero(total) * total[codes])
        weighted = np.concatenate([fold.losses for fold in folds], axis=2) * weight
        # rows that are held out more than once are no more rows
        n_rows = min(sum(fold.n_scored for fold in folds), len(rows.codes))
        return cls(weighted, n_rows, float(np.log(len(rows.classes))))

    def errors(self, s: int, p: int) -> Float64Array:
        """Standard errors of the mean differences to one point, by setting and point."""
        spread = (self.weighted - self.weighted[s, p]).std(axis=2, ddof=1)
        return spread / np.sqrt(self.n_rows)


def standard_error(scores: Float64Array) -> Float64Array:
    """Standard error of the mean over the folds (first axis); 0 for a single fold."""
    n = len(scores)
    return scores.std(axis=0, ddof=1 if n > 1 else 0) / np.sqrt(n)


def path_table(
    problems: PlaneProblems,
    paths: Sequence[Sequence[Solution]],
    search: Search,
    table: Float64Array,
    accuracies: Float64Array,
    reached: BoolArray,
    chosen: int,
) -> dict[str, Any]:
    """The path of one setting on all rows, where all planes have the same rho.

    ``paths`` are those of the planes; ``table`` and ``accuracies``, of shape
    (n_folds, n_points), are scores and balanced accuracies at the setting. Points that are not
    ``reached`` are left out; ``chosen`` is the index of the point that was chosen.
    """
    n_steps = 1 + max(max(point) for point in search.points)
    diagonal = [search.points.index((i,) * len(paths)) for i in range(n_steps)]
    shown = np.array([i for i, point in enumerate(diagonal) if reached[point]])
    diagonal = [diagonal[i] for i in shown]
    scores, accuracies = table[:, diagonal], accuracies[:, diagonal]
    steps = [[path[i] for path in paths] for i in shown]
    panels = [search.panel(problems, step, p) for step, p in zip(steps, diagonal)]
    deltas = np.array([[s.delta for s in step] for step in steps])
    weights = []
    for step, panel in zip(steps, panels):
        dense = np.zeros((len(step), len(panel)))
        for i, solution in enumerate(step):
            _, at, source = np.intersect1d(panel, solution.features, return_indices=True)
            sign = -1.0 if solution.bias.other < 0.0 else 1.0
            dense[i, at] = sign * solution.w[source]
        weights.append(dense)
    return {
        "rho": search.rhos[shown] if search.sizes is None else _share(deltas[:, 0], problems),
        "delta": deltas,
        "panel": panels,
        "weights": weights,
        "n_features": np.array([problems.size(panel) for panel in panels]),
        "score": scores.mean(axis=0),
        "score_error": standard_error(scores),
        "accuracy": accuracies.mean(axis=0),
        "accuracy_error": standard_error(accuracies),
        "objective": np.array([[s.objective for s in step] for step in steps]),
        "quotient": np.array([[s.quotient for s in step] for step in steps]),
        "kkt_residual": np.array([[s.kkt_residual for s in step] for step in steps]),
        "gap": np.array([[s.gap for s in step] for step in steps]),
        # where each plane has a rho of its own, the nearest step at which they have the same
        "chosen": int(np.abs(shown - np.mean(search.points[chosen])).argmin()),
    }


def _share(deltas: Float64Array, problems: PlaneProblems) -> Float64Array:
    """Deltas of the first plane, relative to the largest; 1 where there is nothing to add."""
    largest = problems.delta_max[0]
    return deltas / largest if largest > 0.0 else np.ones(len(deltas))


def results_table(
    table: Float64Array,
    accuracies: Float64Array,
    sizes: IntArray,
    search: Search,
    allowed: BoolArray,
) -> dict[str, np.ndarray]:
    """``cv_results_``: columns with one row per setting, point and decision that is allowed."""
    n_folds = len(table)
    kept = np.flatnonzero(allowed)
    every = list(product(search.settings, search.points, search.decisions))
    rows = [every[i] for i in kept]
    out: dict[str, np.ndarray] = {
        "param_q": np.array([exponent(settings.penalty) for settings, _, _ in rows]),
        "param_tau": np.array([settings.tau for settings, _, _ in rows]),
        "param_pool": np.array([settings.pool for settings, _, _ in rows]),
        "param_decision": np.array([decision for _, _, decision in rows]),
    }
    for k in range(len(search.points[0]) if search.sizes is None else 0):
        out[f"rho_{k}"] = np.array([search.rhos[point[k]] for _, point, _ in rows])
    flat = table.reshape(n_folds, -1)[:, kept]
    size = np.repeat(sizes.reshape(n_folds, -1), len(search.decisions), axis=1)[:, kept]
    for f in range(n_folds):
        out[f"split{f}_test_score"] = flat[f]
    for f in range(n_folds):
        out[f"split{f}_n_features"] = size[f]
    out["mean_n_features"] = size.mean(axis=0)
    out["mean_test_score"] = flat.mean(axis=0)
    out["std_test_score"] = flat.std(axis=0)
    out["se_test_score"] = standard_error(flat)
    rank = np.empty(len(kept), dtype=np.intp)
    rank[np.argsort(-out["mean_test_score"], kind="stable")] = np.arange(1, len(kept) + 1)
    out["rank_test_score"] = rank
    out["mean_balanced_accuracy"] = accuracies.reshape(n_folds, -1)[:, kept].mean(axis=0)
    return out
