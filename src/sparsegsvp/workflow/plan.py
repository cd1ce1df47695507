"""What a run would do, and about how long it would take: what ``--dry-run`` shows.

One fit of each kind that the run needs is timed on the table itself, in this process; the rest
is multiplication. Processes that share memory bandwidth, and fits that take longer than the one
timed, make a run slower than that, a permutation test that stops early makes it faster.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs, parallel_config
from sklearn.base import clone

from .._typing import Progress
from ..estimators import MedianImputer
from ..estimators.pipeline import last_step
from ..evaluation.batches import LEFT_OUT, folds_without
from ..evaluation.folds import make_folds
from ..evaluation.learning import FRACTIONS, LEARNING
from ..evaluation.learning import REPEATS as LEARNING_REPEATS
from ..evaluation.outer import FOLDS
from ..evaluation.panels import fit_with_groups, size_is_a_cut, with_size
from ..evaluation.permutation import PERMUTATIONS, fixed_statistic
from ..evaluation.stability import HALVES
from ..io import Table
from .evidence import ComparisonRequest
from .procedure import INNER_FOLDS, OWN, batch_of, fixed_procedure
from .run import TUNING, PreparedRun, Stages
from .settings import can_be_halved, refuse_plan, settings_from

TIMING = "timing a fit of each kind"


@dataclass(frozen=True, eq=False)
class RunEstimate:
    """What a run would do on a table, and an estimate of its time.

    Attributes
    ----------
    table : Table
        The samples, with the role of each column.
    fits : dict of str to int
        How many fits each stage takes.
    seconds : dict of str to float
        About how long each stage takes, with the processes there are.
    n_jobs : int
        Processes.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.io import make_table
    >>> from sparsegsvp.workflow import plan_selection
    >>> data = make_planted(40, 20, 2)
    >>> plan = plan_selection(make_table(data.X, data.y), fast=True, tau=1.0, n_deltas=5)
    >>> plan.fits
    {'tuning and fitting': 1, 'nested cross-validation': 5}
    """

    table: Table = field(repr=False)
    fits: dict[str, int]
    seconds: dict[str, float]
    n_jobs: int

    @property
    def total(self) -> float:
        """About how many seconds the run takes."""
        return math.fsum(self.seconds.values())

    def sentence(self) -> str:
        """Say the estimate in words."""
        parts = [
            f"{stage} {in_words(self.seconds[stage])} ({n} {'fit' if n == 1 else 'fits'})"
            for stage, n in self.fits.items()
        ]
        where = "1 process" if self.n_jobs == 1 else f"{self.n_jobs} processes"
        return (
            f"The run would take about {in_words(self.total)} in {where}, an estimate from one "
            f"fit of each kind, and more beside other work: {', '.join(parts)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "data": self.table.describe(),
            "fits": self.fits,
            "seconds": {stage: round(s, 1) for stage, s in self.seconds.items()},
            "total_seconds": round(self.total, 1),
            "n_jobs": self.n_jobs,
        }


def in_words(seconds: float) -> str:
    """Write a time as roughly as it is known: 42 s, 5 min, 2.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Estimate:
    """Times single fits on the training part of one outer fold, and counts the fits of a run."""

    def __init__(self, asked: PreparedRun | ComparisonRequest, n_jobs: int | None) -> None:
        self.asked, self.table, self.X = asked, asked.table, asked.table.X
        self.n_jobs = effective_n_jobs(n_jobs)
        self.n_folds = asked.n_outer * asked.settings.repeats
        self.fits: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        folds = make_folds(
            self.table.labels,
            groups=self.table.groups,
            n_splits=asked.n_outer,
            random_state=asked.settings.random_state,
        )
        self.rows = folds[0].train

    def time(self, model: Any, rows: Any = None) -> float:
        """Return the seconds of one fit, by default on the training part."""
        rows = self.rows if rows is None else rows
        groups, batch = self.table.groups, batch_of(self.table)
        groups, batch = (None if given is None else given[rows] for given in (groups, batch))
        with warnings.catch_warnings(), parallel_config(n_jobs=1):
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            fit_with_groups(clone(model), self.X[rows], self.table.labels[rows], groups, batch)
            return time.perf_counter() - start

    def add(self, stage: str, fits: int, seconds: float) -> None:
        """Plan a stage: so many fits of so many seconds each."""
        self.fits[stage] = fits
        self.seconds[stage] = math.ceil(fits / self.n_jobs) * seconds

    def add_evaluation(self, run: PreparedRun, one: float) -> None:
        """Plan the nested cross-validation, a fit of which takes ``one``, and what goes with it."""
        settings, table = run.settings, self.table
        self.add(FOLDS, self.n_folds, one)
        for panel in run.fixed:
            fixed = fixed_procedure(run.method, settings, panel.columns, table)
            self.add(panel.kind, self.n_folds, self.time(fixed))
        if table.batches:
            codes = np.unique(table.labels, return_inverse=True)[1]
            without = folds_without(table.batches, codes, table.groups)
            self.add(LEFT_OUT, sum(map(len, without.values())), one)
        if settings.permutations:
            folds = min(5, *table.class_counts().values())
            each = one if settings.full_permutation else self.time(fixed_statistic(self.X))
            self.add(PERMUTATIONS, (settings.permutations + 1) * folds, each)

    def plan(self) -> RunEstimate:
        """Return what was planned."""
        return RunEstimate(self.table, self.fits, self.seconds, self.n_jobs)


def plan_selection(
    table: Table,
    *,
    fast: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> RunEstimate:
    """Say what `select_panel` would do on a table, and about how long it would take.

    Parameters
    ----------
    table, fast, n_jobs, progress, **parameters
        As in `select_panel`.

    Returns
    -------
    RunEstimate
    """
    settings = settings_from(**parameters)
    run = PreparedRun(table, settings.fast() if fast else settings, progress=progress)
    settings = run.settings
    refuse_plan(table, settings)
    found = _Estimate(run, n_jobs)
    halves = settings.resamples > 0 and can_be_halved(table)
    with run.stages.stage(TIMING):
        one = found.time(run.procedure)
        # on all samples the folds of the tuning run at once, and the final fit follows
        found.add(TUNING, 1, one * (1 / min(found.n_jobs, INNER_FOLDS) + 1 / INNER_FOLDS))
        found.add_evaluation(run, one)
        if halves or settings.plan:
            again = clone(run.procedure)
            if settings.n_features is None:
                last_step(again).set_params(tau=1.0)  # one of those that are chosen from
            one = found.time(again, _half(table))
            if halves:
                found.add(HALVES, settings.resamples + settings.resamples % 2, one)
            if settings.plan:  # its parts are about half of the samples in the mean
                found.add(LEARNING, len(FRACTIONS) * LEARNING_REPEATS, one)
    return found.plan()


def _half(table: Table) -> Any:
    """Return half of the samples: of each class every second one."""
    labels = table.labels
    return np.sort(np.concatenate([np.flatnonzero(labels == k)[::2] for k in np.unique(labels)]))


def plan_evaluation(
    table: Table,
    *,
    method: str = OWN,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> RunEstimate:
    """Say what `evaluate_table` would do on a table, and about how long it would take.

    Parameters
    ----------
    table, method, n_jobs, progress, **parameters
        As in `evaluate_table`.

    Returns
    -------
    RunEstimate
    """
    run = PreparedRun(table, settings_from(**parameters), method=method, progress=progress)
    found = _Estimate(run, n_jobs)
    with run.stages.stage(TIMING):
        found.add_evaluation(run, found.time(run.procedure))
    return found.plan()


def plan_comparison(
    table: Table,
    *,
    methods: Sequence[str] = (),
    sizes: Sequence[int] = (2, 4, 8, 16, 32),
    time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> RunEstimate:
    """Say what `compare_table` would do on a table, and about how long it would take.

    Parameters
    ----------
    table, methods, sizes, time_limit, n_jobs, progress, **parameters
        As in `compare_table`.

    Returns
    -------
    RunEstimate
        Its stages are the methods.
    """
    asked = ComparisonRequest(table, settings_from(**parameters), methods, sizes)
    found, stages = _Estimate(asked, n_jobs), Stages(progress)
    found.X = MedianImputer().fit_transform(asked.values())
    stages(TIMING, 0, len(asked.methods))
    for done, (name, model) in enumerate(asked.methods.items(), start=1):
        tried = asked.sizes[:1] if size_is_a_cut(model) else asked.sizes
        seconds: list[float] = []
        for size in tried:
            seconds.append(found.time(with_size(model, size)))
            if time_limit is not None and math.fsum(seconds) > time_limit:
                break
        found.add(name, found.n_folds * len(tried), math.fsum(seconds) / len(seconds))
        stages(TIMING, done, len(asked.methods))
    return found.plan()
