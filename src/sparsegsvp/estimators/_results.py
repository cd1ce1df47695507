"""What a search found: the point to take, and tables of all points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from .._typing import BoolArray, Float64Array, IntArray
from ..solvers.working_set import Solution
from ._planes import PlaneProblems
from ._search import Search, at_point


def pick(
    table: Float64Array, sizes: IntArray, allowed: BoolArray, rule: str
) -> tuple[int, int, int]:
    """The point to take: setting, point and decision.

    Parameters
    ----------
    table : array of shape (n_folds, n_settings, n_points, n_decisions)
        Scores, larger is better.
    sizes : array of shape (n_folds, n_settings, n_points)
        Panel sizes.
    allowed : array of bool of shape (n_settings, n_points, n_decisions)
    rule : {"best", "1se"}
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
    """Of the mean over the first axis, which is the folds; 0 for a single fold."""
    n = len(scores)
    return scores.std(axis=0, ddof=1 if n > 1 else 0) / np.sqrt(n)


def path_table(
    problems: PlaneProblems,
    paths: Sequence[Sequence[Solution]],
    search: Search,
    table: Float64Array,
    accuracies: Float64Array,
) -> dict[str, Any]:
    """The path of one setting, where all planes have the same rho.

    Parameters
    ----------
    problems : PlaneProblems
        Of all rows at the setting.
    paths : sequence of sequences of Solution
        Per plane.
    search : Search
    table, accuracies : arrays of shape (n_folds, n_points)
        Scores and balanced accuracies at the setting.
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
    """One row per setting, point and decision, as columns.

    Parameters
    ----------
    table, accuracies : arrays of shape (n_folds, n_settings, n_points, n_decisions)
        Scores and balanced accuracies.
    sizes : array of shape (n_folds, n_settings, n_points)
        Panel sizes.
    search : Search
    """
    n_folds = len(table)
    rows = list(product(search.settings, search.points, search.decisions))
    out: dict[str, np.ndarray] = {
        "param_q": np.array([settings.q for settings, _, _ in rows]),
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
