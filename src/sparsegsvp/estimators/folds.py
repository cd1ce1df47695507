"""The folds of a search: how rows are split, and how the folds are solved and scored.

Folds are solved one by one or in processes. Those of tall data take two passes over all rows
instead: the first forms the moments of every fold and draws a fixed sample of all classes, to
which calibrators are fitted (a training part is the sum of the other folds' moments); the second
scores all points block by block, each block by the planes of the folds its rows are held out from.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.metadata_routing import process_routing

from .._parallel import Task, on_cluster, one_thread, run_tasks
from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import ClassMoments, Covariances, MomentCovariances
from ..linalg.covariances import choose_method
from ..linalg.moments import ClassSums, add_rows, merge_sums
from .decision import SAMPLE, balanced_sample
from .scoring import (
    FoldPlanes,
    FoldScores,
    LabelledRows,
    PlaneStack,
    distinct,
    mean_scores,
    score_fold,
    sum_losses,
)
from .search import Search, effective_rows, solve_fold

# Seconds of work on one core below which processes take longer to start than they save.
_WORTH_A_POOL = 2.0
_Split = tuple[IntArray, IntArray]


def given_splitter(estimator: Any) -> bool:
    """Whether `cv` is more than a number of folds."""
    return not isinstance(estimator.cv, int | np.integer)


def split_rows(estimator: Any, rows: LabelledRows, routed: dict[str, Any]) -> list[_Split]:
    """Training and test rows of each fold, checked; ``routed`` goes to the splitter."""
    labels, k = rows.classes.tolist(), len(rows.classes)
    groups = routed.get("groups")
    splitter = _splitter(estimator, rows, groups)
    splits = [
        (_narrow(train), _narrow(test))
        for train, test in splitter.split(np.zeros(len(rows.codes)), rows.y, **routed)
    ]
    for train, _ in splits:
        counts = np.bincount(rows.codes[train], minlength=k)
        totals = np.bincount(rows.codes[train], rows.weight_of(train), minlength=k)
        short = np.flatnonzero((counts < 2) | (totals == 0.0))
        if len(short):
            raise ValueError(
                f"a training fold has {counts[short[0]]} samples of class "
                f"{labels[short[0]]!r}, of total weight {totals[short[0]]:g}: use fewer "
                "folds or other groups"
            )
    return splits


def _splitter(estimator: Any, rows: LabelledRows, groups: Any) -> Any:
    """The splitter that `cv` stands for."""
    if given_splitter(estimator):
        return check_cv(estimator.cv, rows.y, classifier=True)
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    n_splits = _possible_folds(int(estimator.cv), rows, groups)
    return kind(n_splits, shuffle=True, random_state=estimator.random_state)


def _possible_folds(asked: int, rows: LabelledRows, groups: Any) -> int:
    """As many folds as were asked for or, with a warning, as classes and groups allow."""
    counts = np.bincount(rows.codes)
    most = int(counts.min())
    what = f"class {rows.classes.tolist()[counts.argmin()]!r} has {most} samples"
    n_groups = most if groups is None else len(np.unique(groups))
    if n_groups < most:
        most, what = n_groups, f"there are {n_groups} groups"
    if most >= asked:
        return asked
    if most < 2:
        raise ValueError("all rows are in one group: cross-validation needs at least two")
    warnings.warn(
        f"{what}: cross-validation uses {most} folds instead of cv={asked}",
        UserWarning,
        stacklevel=5,
    )
    return most


def _narrow(index: Any) -> IntArray:
    """Indices in half the memory: all folds together hold as many as rows times folds."""
    index = np.asarray(index)
    small = index.dtype.kind == "i" and len(index) and index.max() < np.iinfo(np.int32).max
    return index.astype(np.int32) if small else index


def route(estimator: Any, groups: Any, params: dict[str, Any]) -> dict[str, Any]:
    """The part of the metadata of `fit` that goes to the splitter."""
    given = {key: value for key, value in params.items() if value is not None}
    if groups is not None:
        given["groups"] = groups
    if given_splitter(estimator) and get_config()["enable_metadata_routing"]:
        routed = dict(process_routing(estimator, "fit", **given).splitter.split)
        if groups is not None and "groups" not in routed:
            raise TypeError(
                f"fit got groups, which cv={estimator.cv!r} does not request: use a splitter "
                "that does, such as GroupKFold, or an integer"
            )
        return routed
    unknown = sorted(set(given) - {"groups"})
    if unknown:
        raise TypeError(f"fit got unexpected arguments {unknown}: only groups is known")
    return given


def run_folds(
    rows: LabelledRows, search: Search, splits: list[_Split], n_jobs: int | None, verbose: bool
) -> tuple[list[FoldScores], Covariances]:
    """Scores of all folds, and the covariances of all rows for the final fit."""
    report = _reporter(len(splits), verbose)
    held_out = fold_of_rows(rows, search, splits)
    if held_out is not None:
        return search_by_blocks(rows, search, held_out, report)
    folds: dict[int, FoldScores] = {}
    for f, fold in _as_they_end(rows, search, splits, n_jobs):
        folds[f] = fold
        report()
    return [folds[f] for f in range(len(splits))], rows.covariances(search.standardize)


def _as_they_end(
    rows: LabelledRows, search: Search, splits: list[_Split], n_jobs: int | None
) -> Iterator[tuple[int, FoldScores]]:
    """Solve the folds one by one or in processes, in whatever order they end."""
    tasks = [Task((f,), run_fold, (search, split)) for f, split in enumerate(splits)]
    # of data that is read anew, the chunks run in parallel, and folds share what they fetch
    n_jobs = 1 if rows.X.costly_passes else n_jobs
    if not on_cluster() and effective_n_jobs(n_jobs) > 1:
        # the first fold tells whether the others are worth a pool
        start = time.perf_counter()
        yield 0, run_fold(rows, search, splits[0])
        del tasks[0]
        if (time.perf_counter() - start) * len(tasks) < _WORTH_A_POOL:
            n_jobs = 1
    with closing(run_tasks(tasks, rows, n_jobs=n_jobs)) as outcomes:
        for outcome in outcomes:
            yield outcome.task.key[0], outcome.value


def run_fold(rows: LabelledRows, search: Search, split: _Split) -> FoldScores:
    """Solve and score one fold, given its training and its test rows."""
    train, test = split
    weight = np.bincount(train, minlength=len(rows.codes)).astype(np.float64)
    if rows.weight is not None:
        weight *= rows.weight
    with one_thread():
        cov = rows.covariances(search.standardize, weight)
        planes = solve_fold(cov, search, effective_rows(np.count_nonzero(weight), weight.sum()))
        return score_fold(planes, rows, search.decisions, search.scorer, train, test)


def _reporter(n_splits: int, verbose: bool) -> Callable[[], None]:
    """A function that prints a line at every call, or nothing."""
    started, done = time.perf_counter(), itertools.count(1)

    def report() -> None:
        if verbose:
            seconds = time.perf_counter() - started
            print(f"[GSVPSVMCV] fold {next(done)}/{n_splits}, {seconds:.1f} s", flush=True)

    return report


# --- tall data: all folds in two passes ------------------------------------------------------


def fold_of_rows(rows: LabelledRows, search: Search, splits: Sequence[_Split]) -> IntArray | None:
    """The fold each row is held out from, if the search can be done by blocks; else None.

    That takes moments that are cheap to form, folds that partition the rows, the default
    score, and rows so many, or so costly to read, that it is worth it.
    """
    n = len(rows.codes)
    if search.scorer is not None or choose_method(*rows.X.shape) != "moments":
        return None
    if n <= SAMPLE and not rows.X.costly_passes:
        return None
    folds = np.full(n, -1, dtype=np.intp)
    for f, (train, test) in enumerate(splits):
        if (folds[test] >= 0).any() or len(train) + len(test) != n:
            return None
        folds[test] = f
    return folds if (folds >= 0).all() else None


def search_by_blocks(
    rows: LabelledRows, search: Search, folds: IntArray, on_fold: Callable[[], None]
) -> tuple[list[FoldScores], Covariances]:
    """Solve and score all folds in two passes over the rows.

    ``folds`` is what `fold_of_rows` gives; ``on_fold`` is called whenever the paths of a
    fold are solved. The scores' features are of the rows sampled for the calibrators. The
    covariances returned are of all rows, so that the final fit needs no pass of its own.
    """
    sample = balanced_sample(rows.codes, SAMPLE, seed=0)
    parts, sampled = fold_moments(rows, folds, sample)
    planes = []
    for f in range(len(parts)):
        # adding moments is stable, subtracting them is not
        training = reduce(add, parts[:f] + parts[f + 1 :])
        cov = MomentCovariances(training, search.standardize)
        n_rows = effective_rows(training.counts.sum(), training.weights.sum())
        planes.append(solve_fold(cov, search, n_rows))
        on_fold()
    results = score_by_blocks(planes, rows, folds, sample, sampled)
    return results, MomentCovariances(reduce(add, parts), search.standardize)


def fold_moments(
    rows: LabelledRows, folds: IntArray, sample: IntArray
) -> tuple[list[ClassMoments], Float64Array]:
    """Moments of each fold's rows, and the rows of the sample, in one pass over all rows."""
    k, n_folds = len(rows.classes), int(folds.max()) + 1
    drawn = np.zeros(len(rows.codes), dtype=bool)
    drawn[sample] = True
    sums, sampled = rows.X.reduce_rows(
        partial(_visit, n_classes=n_folds * k), _merge, (folds * k + rows.codes, rows.weight, drawn)
    )
    all_folds = sums.moments()
    moments = [
        ClassMoments(
            np.arange(k),
            all_folds.counts[at],
            all_folds.weights[at],
            all_folds.means[at],
            all_folds.scatters[at],
        )
        for at in (slice(f * k, (f + 1) * k) for f in range(n_folds))
    ]
    return moments, np.concatenate(sampled)


_Seen = tuple[ClassSums, list[Float64Array]]


def _visit(
    state: _Seen | None,
    block: Float64Array,
    code: IntArray,
    weight: Float64Array | None,
    drawn: BoolArray,
    *,
    n_classes: int,
) -> _Seen:
    sums, sampled = (None, []) if state is None else state
    sampled.append(block[drawn])
    return add_rows(sums, block, code, weight, n_classes=n_classes), sampled


def _merge(earlier: _Seen, later: _Seen) -> _Seen:
    return merge_sums(earlier[0], later[0]), earlier[1] + later[1]


def score_by_blocks(
    planes: Sequence[FoldPlanes],
    rows: LabelledRows,
    folds: IntArray,
    sample: IntArray,
    sampled: Float64Array,
) -> list[FoldScores]:
    """Class-balanced log loss and accuracy of every point of every fold, in one pass.

    ``planes`` come per fold, setting and point; ``sample`` and ``sampled`` are the indices
    and values of the rows to calibrate on, those in the fold giving features and losses.
    """
    stacks, sampled_folds = [], []
    for f, fold in enumerate(planes):
        models, place = distinct(fold)
        stack = PlaneStack.of(models)
        features = stack.log_distances(sampled[:, stack.panel])
        held_out = folds[sample] == f
        train, test = sample[~held_out], sample[held_out]
        stack = stack.calibrated(features[~held_out], rows.codes[train], rows.weight_of(train))
        loss, _ = stack.losses(features[held_out], rows.codes[test])
        stacks.append(stack)
        sampled_folds.append((place, test, features[held_out], loss))
    losses = rows.X.reduce_rows(
        partial(_visit_losses, stacks=stacks), _add_losses, (folds, rows.codes, rows.weight)
    )
    results = []
    for f, (place, test, features, loss) in enumerate(sampled_folds):
        n_scored = int(np.count_nonzero(folds == f))
        found = FoldScores.empty(planes[f], test, 1, len(rows.classes), n_scored)
        scores, accuracies = mean_scores(losses[f])
        found.put(place, 0, scores[:, None], accuracies[:, None], features, loss)
        results.append(found)
    return results


def _visit_losses(
    state: list[Float64Array] | None,
    block: Float64Array,
    folds: IntArray,
    codes: IntArray,
    weight: Float64Array | None,
    *,
    stacks: Sequence[PlaneStack],
) -> list[Float64Array]:
    """Per fold the sums of `sum_losses` over this block and those before."""
    found = []
    for f, stack in enumerate(stacks):
        inside = folds == f
        row_weight = np.ones(int(inside.sum())) if weight is None else weight[inside]
        features = stack.log_distances(block[np.ix_(inside, stack.panel)])
        losses = stack.losses(features, codes[inside])
        found.append(sum_losses(*losses, codes[inside], row_weight, stack.offset.shape[1]))
    return found if state is None else _add_losses(state, found)


def _add_losses(earlier: list[Float64Array], later: list[Float64Array]) -> list[Float64Array]:
    return [a + b for a, b in zip(earlier, later)]
