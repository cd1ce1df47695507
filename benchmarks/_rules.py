"""Rules of the tuned search: every one of them on the scores of the same folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from _common import SIMULATIONS, Split, mean_and_error
from accuracy import l1_logistic
from sparsegsvp.estimators.decision import fit_calibrator, log_distances
from sparsegsvp.estimators.planes import (
    PlaneProblems,
    PlaneSettings,
    paths_to_sizes,
    shared_paths,
)
from sparsegsvp.estimators.scoring import PlaneStack, RawPlanes
from sparsegsvp.linalg import Matrix, as_matrix
from sparsegsvp.linalg.covariances import make_covariances
from sparsegsvp.metrics import balanced_log_loss
from sparsegsvp.solvers.penalties import L1

# What tau and pool are chosen from.
DEFAULT = tuple((tau, 0.5) for tau in (0.3, 1.0, 3.0, 10.0))
GRIDS = {
    "tau 0.3 to 10, pool 0.5": DEFAULT,
    "pool 1 added": DEFAULT + tuple((tau, 1.0) for tau, _ in DEFAULT),
    "tau 30 added": (*DEFAULT, (30.0, 0.5)),
}
# What the points of a search are: falling penalties, or rising sizes of the panel.
AXES = ("penalties", "sizes")
PEER = "scikit-learn's l1 LogisticRegressionCV"
MEASURES = ("accuracy", "log loss", "features")
N_FOLDS = 5
# What the default rule lets pass however surely it can be told.
SHARE = 0.02
# In the folds paths are walked to this tolerance, as the estimator does it.
FOLD_TOL = 1e-3


@dataclass(frozen=True)
class Search:
    """The points of every setting, and how many penalties the peer tries."""

    rhos: np.ndarray
    sizes: tuple[int, ...]
    n_penalties: int = 20


FULL = Search(
    np.geomspace(1.0, 1e-2, 30), (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64)
)
TINY = Search(np.geomspace(1.0, 0.3, 3), (1, 2), 2)

# A setting (tau, pool), an axis, and the index of a point along it.
Point = tuple[tuple[float, float], str, int]


# ----------------------------------------------------------------------------- one search


def every_setting() -> list[tuple[float, float]]:
    """The settings of all grids."""
    return list(dict.fromkeys(setting for grid in GRIDS.values() for setting in grid))


def solve(
    X: Matrix, y: np.ndarray, rows: np.ndarray, search: Search, tol: float | None
) -> dict[Point, RawPlanes]:
    """The planes at all points that the paths fitted on some of the rows reach."""
    weight = np.bincount(rows, minlength=len(y)).astype(np.float64)
    cov = make_covariances(X, y, weight, 2, standardize=True)
    std = cov.standardization
    settings = every_setting()
    every = [PlaneProblems(cov, PlaneSettings(L1(), tau, pool)) for tau, pool in settings]
    sizes = [k for k in search.sizes if k <= min(len(rows), X.shape[1])]
    by_penalty = shared_paths(every, search.rhos, tol=tol, max_features=max(len(rows), 30))
    to_sizes = paths_to_sizes(every, sizes, tol=tol)
    found: dict[Point, RawPlanes] = {}
    for setting, problems, *both in zip(settings, every, by_penalty, to_sizes):
        refitted: dict[bytes, RawPlanes] = {}
        for axis, paths in zip(AXES, both):
            for p, solutions in enumerate(zip(*paths)):
                if axis == "sizes":
                    panel = problems.heaviest(solutions, sizes[p])
                else:
                    panel = problems.select(solutions)
                key = panel.tobytes()
                if key not in refitted:
                    planes = problems.planes(solutions, panel)
                    raw = planes.raw(std.center, std.inverse)
                    refitted[key] = RawPlanes(panel, *raw, planes.scale, len(panel))
                found[setting, axis, p] = refitted[key]
    return found


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What the folds say about points: of shape (..., n_points), rows in the order of folds."""

    points: list[Point]
    sizes: np.ndarray  # of the panels, mean over folds, (n_points,)
    losses: np.ndarray  # log losses of held-out rows, (n_rows, n_points)
    distances: np.ndarray  # their log distances, (n_rows, n_points, 2)
    codes: np.ndarray  # their classes
    fold: np.ndarray  # and the fold that held them out

    @property
    def balanced(self) -> np.ndarray:
        """The losses weighted so that both classes count the same in their mean."""
        return self.losses * (len(self.codes) / (2 * np.bincount(self.codes))[self.codes, None])

    @property
    def scores(self) -> np.ndarray:
        """Balanced log loss of each fold, (n_folds, n_points)."""
        return np.stack(
            [
                np.mean(
                    [
                        self.losses[(self.fold == f) & (self.codes == c)].mean(axis=0)
                        for c in (0, 1)
                    ],
                    axis=0,
                )
                for f in np.unique(self.fold)
            ]
        )

    def only(self, index: np.ndarray) -> HeldOut:
        """Some of the points."""
        return HeldOut(
            [self.points[i] for i in index],
            self.sizes[index],
            self.losses[:, index],
            self.distances[:, index],
            self.codes,
            self.fold,
        )


def cross_validate(X: Matrix, y: np.ndarray, search: Search) -> HeldOut:
    """Losses of all points that all folds reach, the calibrators fitted on the training rows."""
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)), y)
    solved, parts, rows = [], [], []
    for train, test in folds:
        planes = solve(X, y, train, search, FOLD_TOL)
        stack = PlaneStack.of(list(planes.values()))
        distances = log_distances(stack.distances(X), stack.scale)
        stack = stack.calibrated(distances[train], y[train], None)
        log_odds = np.einsum("npk,pk->np", distances[test], stack.slope[:, 1]) + stack.offset[:, 1]
        losses = np.logaddexp(0.0, np.where(y[test, None] == 1, -log_odds, log_odds))
        # as the metric has it, no probability is taken below the rounding unit
        losses = np.minimum(losses, -np.log(np.finfo(np.float64).eps))
        solved.append(planes)
        parts.append((losses, distances[test]))
        rows.append(test)
    common = [point for point in solved[0] if all(point in planes for planes in solved)]
    places = [{point: i for i, point in enumerate(planes)} for planes in solved]
    at = [np.array([place[point] for point in common]) for place in places]
    return HeldOut(
        common,
        np.mean([[len(planes[point].panel) for point in common] for planes in solved], axis=0),
        np.concatenate([losses[:, i] for (losses, _), i in zip(parts, at)]),
        np.concatenate([distances[:, i] for (_, distances), i in zip(parts, at)]),
        y[np.concatenate(rows)],
        np.repeat(np.arange(len(rows)), [len(test) for test in rows]),
    )


# ------------------------------------------------------------------------------ the rules


def chosen_by_rules(found: HeldOut) -> dict[str, int]:
    """The index of the point that each rule chooses.

    All rules but "best" take the sparsest of the points that are not clearly worse than it.
    """
    scores, losses = found.scores, found.balanced
    mean = scores.mean(axis=0)
    best = int(np.lexsort((found.sizes, mean))[0])
    near = {
        "best": np.arange(len(mean)) == best,
        "within a standard error": mean <= mean[best] + standard_error(scores)[best],
    }
    for unit, table in (("samples", losses), ("folds", scores)):
        worse = table - table[:, [best]]
        for c in (0.5, 1.0):
            near[f"paired over {unit}, {c:g}"] = worse.mean(axis=0) <= c * standard_error(worse)
    worse = losses - losses[:, [best]]
    for share in (0.01, 0.02, 0.05):  # of what the best gains over guessing
        slack = np.maximum(0.5 * standard_error(worse), share * (np.log(2) - mean[best]))
        rule = f"paired over samples, 0.5, or {share:.0%}"
        near[rule + (", the default" if share == SHARE else "")] = worse.mean(axis=0) <= slack
    out = {}
    for rule, mask in near.items():
        mask[best] = True  # its difference to itself is exactly zero, but for rounding
        index = np.flatnonzero(mask)
        out[rule] = int(index[np.lexsort((mean[index], found.sizes[index]))[0]])
    return out


def standard_error(table: np.ndarray) -> np.ndarray:
    """Of the means of columns."""
    return table.std(axis=0, ddof=1) / np.sqrt(len(table))


# ----------------------------------------------------------------------------- one split


def run(split: Split, search: Search = FULL) -> dict[str, Any]:
    """Accuracy, log loss and size of what every rule chooses, and of the peer, on one split."""
    X, X_test = as_matrix(np.ascontiguousarray(split.X)), as_matrix(split.X_test)
    found = cross_validate(X, split.y, search)
    final = solve(X, split.y, np.arange(len(split.y)), search, None)
    found = found.only(np.array([i for i, point in enumerate(found.points) if point in final]))
    tested: dict[int, dict[str, float]] = {}  # rules often choose the same point

    def test(i: int) -> dict[str, float]:
        if i not in tested:
            planes = final[found.points[i]]
            stack = PlaneStack.of([planes])
            distances = log_distances(stack.distances(X_test), stack.scale)[:, 0]
            calibrator = fit_calibrator(found.distances[:, i], found.codes, 2, None)
            tau, pool = found.points[i][0]
            tested[i] = {
                **measure(split, calibrator.probabilities(distances)),
                "features": len(planes.panel),
                "tau": tau,
                "pool": pool,
            }
        return tested[i]

    out: dict[str, Any] = {}
    for axis in AXES:
        for grid, settings in GRIDS.items():
            inside = np.array(
                [i for i, (s, a, _) in enumerate(found.points) if a == axis and s in settings]
            )
            for rule, i in chosen_by_rules(found.only(inside)).items():
                out[label(axis, grid, rule)] = test(int(inside[i]))
    peer = l1_logistic(search.n_penalties)
    peer.set_params(logisticregressioncv__scoring="neg_log_loss")
    peer.fit(split.X, split.y)
    size = int(np.count_nonzero(peer[-1].coef_))
    out[PEER] = {**measure(split, peer.predict_proba(split.X_test)), "features": size}
    return out


def measure(split: Split, probabilities: np.ndarray) -> dict[str, float]:
    """Balanced accuracy and log loss on the test part."""
    predicted = probabilities.argmax(axis=1)
    return {
        "accuracy": float(balanced_accuracy_score(split.y_test, predicted)),
        "log loss": float(balanced_log_loss(split.y_test, probabilities, labels=[0, 1])),
    }


def label(axis: str, grid: str, rule: str) -> str:
    return f"{axis} | {grid} | {rule}"


# ------------------------------------------------------------------------------ the tables


def page(results: dict[str, Any]) -> list[str]:
    """Markdown: differences to the best point of the default grid, by kind of set."""
    apart = [name for name in ("breast", "ovarian") if name in results]
    groups = {
        "microarrays": [n for n in results if n not in SIMULATIONS and n not in apart],
        "simulated sets": [n for n in results if n in SIMULATIONS],
        **{name: [name] for name in apart},
    }
    lines: list[str] = []
    for title, sets in groups.items():
        if sets:
            said = f" ({', '.join(sets)})" if sets != [title] else ""
            lines += [f"### {title.capitalize()}{said}", ""]
            lines += [*table([results[name]["splits"] for name in sets]), ""]
    return lines


def table(sets: Sequence[list[dict[str, Any]]]) -> list[str]:
    """One row per axis, grid and rule: three measures as differences to the first row.

    Of other axes and grids than the default's only two rules are shown.
    """
    base, *others = sets[0][0]
    own = label(AXES[0], next(iter(GRIDS)), "")
    both = (" | best", ", the default")
    others = [x for x in others if x == PEER or x.startswith(own) or x.endswith(both)]
    lines = [
        "| points | tau and pool | rule | accuracy | log loss | features |",
        "| --- | --- | --- | --- | --- | --- |",
        row(base, [f"{mean_of(sets, base, name):.3f}" for name in MEASURES[:2]], sets),
    ]
    for name in others:
        cells = []
        for measure_name in MEASURES[:2]:
            gaps = [
                np.array(
                    [split[name][measure_name] - split[base][measure_name] for split in splits]
                )
                for splits in sets
            ]
            mean, error = mean_and_error(gaps)
            cells.append(f"{mean:+.3f} ± {error:.3f}")
        lines.append(row(name, cells, sets))
    return lines


def row(name: str, cells: list[str], sets: Sequence[list[dict[str, Any]]]) -> str:
    said = f" | | {PEER}" if name == PEER else name
    size = f"{mean_of(sets, name, 'features'):.1f}"
    return f"| {said} | " + " | ".join([*cells, size]) + " |"


def mean_of(sets: Sequence[list[dict[str, Any]]], name: str, of: str) -> float:
    return float(np.mean([np.mean([split[name][of] for split in splits]) for splits in sets]))
