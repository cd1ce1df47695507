"""Cross-validation along paths: solve once per fold and setting, score and choose points.

A *point* is one rho for all planes, or, where the planes are combined freely, one rho for
each. Rows held out get weight zero, so no fold copies X.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .._parallel import one_thread
from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import Covariances, Matrix
from ..linalg.covariances import make_covariances
from ..metrics import balanced_log_loss
from ..solvers.penalties import exponent
from ..solvers.working_set import Solution
from .decision import FoldModel, fit_calibrator, log_distances
from .planes import PlaneProblems, PlaneSettings

# A scorer sees a fitted classifier, rows and labels, and returns a number, larger is better.
Scorer = Callable[[Any, Any, Any], float]

# Points beyond which a free combination of planes is refused.
_MAX_POINTS = 100_000


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with their classes and, if there are any, sample weights."""

    X: Matrix
    codes: IntArray  # index of each row's class in `classes`
    weight: Float64Array | None
    classes: np.ndarray  # labels

    @property
    def y(self) -> np.ndarray:
        """The label of each row."""
        return self.classes[self.codes]

    def weight_of(self, index: Any) -> Float64Array | None:
        """Weights of some rows, if there are weights."""
        return None if self.weight is None else self.weight[index]

    def covariances(self, standardize: bool, weight: Float64Array | None = None) -> Covariances:
        """Covariances of all rows, with their own weights or with others."""
        weight = self.weight if weight is None else weight
        return make_covariances(
            self.X, self.codes, weight, len(self.classes), standardize=standardize
        )


@dataclass(frozen=True, eq=False)
class Search:
    """The settings, points and decisions of a search; every combination is scored."""

    settings: Sequence[PlaneSettings]
    rhos: Float64Array  # falling ratios of delta to its largest value
    points: Sequence[tuple[int, ...]]  # at every point, the index of the rho of each plane
    decisions: Sequence[str]
    scorer: Scorer | None  # None: the balanced log loss of the calibrated decision, negated
    standardize: bool
    n_features: int | None = None  # the largest panel


@dataclass(frozen=True, eq=False)
class RawPlanes:
    """Planes on a panel in the units of X."""

    panel: IntArray
    coef: Float64Array  # (n_classes, n_selected)
    intercept: Float64Array
    scale: Float64Array

    def distances(self, X: Matrix) -> Float64Array:
        """Signed distances of rows to the planes, in standardised units."""
        return X.combine(self.panel, self.coef.T) + self.intercept


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores, panel sizes and held-out log distances of one fold, at every point."""

    scores: Float64Array  # (n_settings, n_points, n_decisions)
    accuracies: Float64Array  # balanced accuracies, likewise, whatever the score is
    sizes: IntArray  # of the panels, (n_settings, n_points)
    rows: IntArray  # indices of held-out rows for the final calibrator
    features: Float64Array  # their log distances, (n_settings, n_points, n_rows, n_classes)


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


def solve_points(cov: Covariances, settings: PlaneSettings, search: Search) -> list[RawPlanes]:
    """Planes at every point; points with the same panel share one refit."""
    problems = PlaneProblems(cov, settings)
    paths = problems.paths(search.rhos)
    std = cov.standardization
    seen: dict[bytes, RawPlanes] = {}
    out = []
    for point in search.points:
        solutions = at_point(paths, point)
        panel = problems.select(solutions, search.n_features)
        # with a refit the planes depend on the panel alone
        key = panel.tobytes() if settings.refit else repr(point).encode()
        if key not in seen:
            planes = problems.planes(solutions, panel)
            seen[key] = RawPlanes(panel, *planes.raw(std.center, std.inverse), planes.scale)
        out.append(seen[key])
    return out


def at_point(paths: Sequence[Sequence[Solution]], point: Sequence[int]) -> list[Solution]:
    """The solution of each plane at its own index."""
    return [path[i] for path, i in zip(paths, point)]


def run_fold(rows: LabelledRows, search: Search, split: tuple[IntArray, IntArray]) -> FoldScores:
    """Solve and score one fold, given its training and its test rows.

    The settings share the cached products.
    """
    train, test = split
    weight = np.bincount(train, minlength=len(rows.codes)).astype(np.float64)
    if rows.weight is not None:
        weight *= rows.weight
    with one_thread():
        cov = rows.covariances(search.standardize, weight)
        planes = [solve_points(cov, settings, search) for settings in search.settings]
        # one pass for all points instead of one for each
        rows.X.fetch(np.unique(np.concatenate([p.panel for points in planes for p in points])))
        return score_fold(planes, rows, search, train, test)


def score_fold(
    planes: Sequence[Sequence[RawPlanes]],
    rows: LabelledRows,
    search: Search,
    train: IntArray,
    test: IntArray,
) -> FoldScores:
    """Score the planes of every setting and point on the rows held out from a fold."""
    classes, codes, scorer = rows.classes, rows.codes, search.scorer
    k, n_points = len(classes), len(planes[0])
    out = np.zeros((len(planes), n_points, len(search.decisions)))
    accuracies = np.zeros_like(out)
    sizes = np.zeros((len(planes), n_points), dtype=np.intp)
    features = np.zeros((len(planes), n_points, len(test), k))
    X_test = rows.X.rows(test) if scorer is not None else None
    y_test, test_weight = classes[codes[test]], rows.weight_of(test)
    done: dict[int, tuple[Float64Array, Float64Array, Float64Array]] = {}
    for s, p in np.ndindex(len(planes), n_points):
        plane = planes[s][p]
        sizes[s, p] = len(plane.panel)
        if id(plane) in done:
            out[s, p], accuracies[s, p], features[s, p] = done[id(plane)]
            continue
        distances = plane.distances(rows.X)
        features[s, p] = log_distances(distances[test], plane.scale)
        for d, decision in enumerate(search.decisions):
            calibrator = None
            if decision == "calibrated":
                calibrator = fit_calibrator(
                    log_distances(distances[train], plane.scale),
                    codes[train],
                    k,
                    rows.weight_of(train),
                )
            model = FoldModel(distances[test], plane.scale, decision, calibrator, classes)
            accuracies[s, p, d] = balanced_accuracy(codes[test], model.predicted_codes(), k)
            if scorer is None:
                out[s, p, d] = -balanced_log_loss(
                    y_test, model.predict_proba(None), labels=classes, sample_weight=test_weight
                )
            else:
                out[s, p, d] = float(scorer(model, X_test, y_test))
        done[id(plane)] = (out[s, p], accuracies[s, p], features[s, p])
    return FoldScores(out, accuracies, sizes, test, features)


def balanced_accuracy(codes: IntArray, predicted: IntArray, n_classes: int) -> float:
    """Mean over the classes that occur of the share of their rows predicted right."""
    counts = np.bincount(codes, minlength=n_classes)
    hits = np.bincount(codes[codes == predicted], minlength=n_classes)
    return float(mean_recall(hits[:, None], counts)[0])


def mean_recall(hits: Float64Array | IntArray, counts: Float64Array | IntArray) -> Float64Array:
    """Balanced accuracies from hits (n_classes, n_models) and rows per class.

    LabelledRows count the same whatever their weights are, as in scikit-learn's score.
    """
    present = counts > 0
    return (hits[present] / counts[present, None]).mean(axis=0)


def pick(
    table: Float64Array, sizes: IntArray, allowed: BoolArray, rule: str
) -> tuple[int, int, int]:
    """Choose a setting, point and decision by the rule "best" or "1se".

    ``table`` holds scores by fold, setting, point and decision, larger being better,
    ``sizes`` panel sizes by fold, setting and point.
    """
    mean = np.where(allowed, table.mean(axis=0), -np.inf)
    size = np.broadcast_to(sizes.mean(axis=0)[:, :, None], mean.shape)
    # ties go to the smaller panel, then to the earlier row
    order = np.lexsort((np.arange(mean.size), size.ravel(), -mean.ravel()))
    best = np.unravel_index(order[0], mean.shape)
    if not np.isfinite(mean[best]):
        raise ValueError("the score is not finite anywhere: check scoring and the folds")
    if rule == "best":
        return int(best[0]), int(best[1]), int(best[2])
    near = mean >= mean[best] - standard_error(table[(slice(None), *best)])
    order = np.lexsort((np.arange(mean.size), -mean.ravel(), np.where(near, size, np.inf).ravel()))
    found = np.unravel_index(order[0], mean.shape)
    return int(found[0]), int(found[1]), int(found[2])


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
) -> dict[str, Any]:
    """The path of one setting on all rows, where all planes have the same rho.

    ``paths`` are those of the planes; ``table`` and ``accuracies``, of shape
    (n_folds, n_points), are scores and balanced accuracies at the setting.
    """
    rhos = search.rhos
    diagonal = [search.points.index((i,) * len(paths)) for i in range(len(rhos))]
    scores, accuracies = table[:, diagonal], accuracies[:, diagonal]
    steps = [at_point(paths, (i,) * len(paths)) for i in range(len(rhos))]
    panels = [problems.select(step) for step in steps]
    weights = []
    for step, panel in zip(steps, panels):
        dense = np.zeros((len(step), len(panel)))
        for i, solution in enumerate(step):
            _, at, source = np.intersect1d(panel, solution.features, return_indices=True)
            sign = -1.0 if solution.bias.other < 0.0 else 1.0
            dense[i, at] = sign * solution.w[source]
        weights.append(dense)
    return {
        "rho": rhos.copy(),
        "delta": np.array([[s.delta for s in step] for step in steps]),
        "panel": panels,
        "weights": weights,
        "n_features": np.array([len(panel) for panel in panels]),
        "score": scores.mean(axis=0),
        "score_error": standard_error(scores),
        "accuracy": accuracies.mean(axis=0),
        "accuracy_error": standard_error(accuracies),
        "objective": np.array([[s.objective for s in step] for step in steps]),
        "quotient": np.array([[s.quotient for s in step] for step in steps]),
        "kkt_residual": np.array([[s.kkt_residual for s in step] for step in steps]),
        "gap": np.array([[s.gap for s in step] for step in steps]),
    }


def results_table(
    table: Float64Array, accuracies: Float64Array, sizes: IntArray, search: Search
) -> dict[str, np.ndarray]:
    """``cv_results_``: columns with one row per setting, point and decision."""
    n_folds = len(table)
    rows = list(product(search.settings, search.points, search.decisions))
    out: dict[str, np.ndarray] = {
        "param_q": np.array([exponent(settings.penalty) for settings, _, _ in rows]),
        "param_tau": np.array([settings.tau for settings, _, _ in rows]),
        "param_pool": np.array([settings.pool for settings, _, _ in rows]),
        "param_decision": np.array([decision for _, _, decision in rows]),
    }
    for k in range(len(search.points[0])):
        out[f"rho_{k}"] = np.array([search.rhos[point[k]] for _, point, _ in rows])
    flat = table.reshape(n_folds, -1)
    size = np.repeat(sizes.reshape(n_folds, -1), len(search.decisions), axis=1)
    for f in range(n_folds):
        out[f"split{f}_test_score"] = flat[f]
    for f in range(n_folds):
        out[f"split{f}_n_features"] = size[f]
    out["mean_n_features"] = size.mean(axis=0)
    out["mean_test_score"] = flat.mean(axis=0)
    out["std_test_score"] = flat.std(axis=0)
    out["se_test_score"] = standard_error(flat)
    rank = np.empty(flat.shape[1], dtype=np.intp)
    rank[np.argsort(-out["mean_test_score"], kind="stable")] = np.arange(1, flat.shape[1] + 1)
    out["rank_test_score"] = rank
    out["mean_balanced_accuracy"] = accuracies.reshape(n_folds, -1).mean(axis=0)
    return out
