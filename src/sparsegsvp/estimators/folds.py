"""The folds of a search: how rows are split, what goes to a splitter, how the folds are run."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.metadata_routing import process_routing

from .._parallel import Task, on_cluster, run_tasks
from .._typing import IntArray
from ..linalg import Covariances
from .scoring import FoldScores, LabelledRows
from .search import Search, run_fold
from .tall import fold_of_rows, search_by_blocks

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


def _reporter(n_splits: int, verbose: bool) -> Callable[[], None]:
    """A function that prints a line at every call, or nothing."""
    started, done = time.perf_counter(), itertools.count(1)

    def report() -> None:
        if verbose:
            seconds = time.perf_counter() - started
            print(f"[GSVPSVMCV] fold {next(done)}/{n_splits}, {seconds:.1f} s", flush=True)

    return report
