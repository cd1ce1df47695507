"""A table and what is asked of it: one set-up, evaluation, and fixed panels beside it."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from .._notices import Notice
from .._typing import Progress
from .._versions import versions
from ..evaluation import EvaluationResult, nested_evaluate, paired_difference
from ..evaluation.journal import Journal, open_journal
from ..evaluation.paired import ALONE
from ..evaluation.values import digest
from ..io import InputError, Table
from ..io.errors import option
from ..report.words import interval, joined, number, plural
from .procedure import (
    OWN,
    centring_notices,
    columns_of,
    fixed_procedure,
    procedure_of,
    steering_factors,
    steering_notices,
)
from .settings import Settings, outer_folds, refuse_missing

TUNING = "tuning and fitting"
SUMMARY = "summary"
GIVEN, COVARIATES = "given panel", ALONE
_LEVEL = 0.95


class Cancelled(Exception):
    """The run was ended by its caller; nothing was written."""


class Stages:
    """Passes progress on, and keeps the seconds of each stage.

    ``cancel`` is asked after each piece of work; once it returns True the run ends with
    `Cancelled`.
    """

    def __init__(
        self, progress: Progress | None = None, cancel: Callable[[], bool] | None = None
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._progress, self._cancel = progress, cancel
        self._started: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Take the report of a piece of work."""
        now = time.perf_counter()
        self.seconds[stage] = round(now - self._started.setdefault(stage, now), 3)
        if self._progress is not None:
            self._progress(stage, done, total)
        if self._cancel is not None and self._cancel():
            raise Cancelled("the run was cancelled; nothing was written")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Enclose a stage that is one piece."""
        self(name, 0, 1)
        yield
        self(name, 1, 1)


class PreparedRun:
    """A table with the settings of a run, and the procedure that follows from both.

    What the table does not allow is refused when it is made. ``fixed`` are the panels that are
    scored beside the selection.
    """

    def __init__(
        self,
        table: Table,
        settings: Settings,
        *,
        method: str = OWN,
        n_jobs: int | None = None,
        progress: Progress | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> None:
        refuse_missing(table, settings)
        self.table, self.settings, self.method, self.n_jobs = table, settings, method, n_jobs
        self.n_outer = outer_folds(table, settings)
        self.factors = steering_factors(settings, table)
        self.procedure = procedure_of(method, settings, self.factors, table)
        self.fixed = fixed_panels(settings, table)
        self.stages = Stages(progress, cancel)

    def parameters(self) -> dict[str, Any]:
        """Return the settings and the number of folds as JSON can hold them."""
        return {**self.settings.to_dict(), "outer_folds": self.n_outer}

    def notices(self) -> list[Notice]:
        """Say what is in a panel by request, what was kept out of it, and what was centred."""
        return [
            *steering_notices(self.factors, self.table),
            *centring_notices(self.settings, self.table),
        ]

    def open_journal(
        self,
        kind: str,
        parameters: dict[str, Any],
        log: str | os.PathLike[str] | None,
        resume: bool,
    ) -> AbstractContextManager[Journal]:
        """Open the log of a run, which must agree with this one before it is continued."""
        table = self.table

        def header() -> dict[str, Any]:
            more = {"batches": digest(table.batches)} if table.batches else {}
            if table.covariates:  # of data in memory their values are no part of the digest
                more["covariates"] = digest(table.covariates, table.X[:, table.covariate_columns])
            return {
                "kind": kind,
                **more,
                "data": table.digest,
                "features": digest(table.feature_names),
                "labels": [table.target, table.positive_class, digest(table.labels)],
                "groups": None if table.groups is None else digest(table.groups),
                "parameters": parameters,
                "versions": versions(),
            }

        return open_journal(log, header, resume=resume)

    def evaluate(self, log: Journal) -> EvaluationResult:
        """Estimate the procedure by nested cross-validation."""
        return self._evaluate(
            self.procedure,
            log=log,
            progress=self.stages,
            adjust=self.table.covariate_columns or None,
            n_permutations=self.settings.permutations,
            audit=True,
            n_random_panels=5,
        )

    def evaluate_beside(self, selected: EvaluationResult, log: Journal) -> list[dict[str, Any]]:
        """Score the fixed panels on the folds of a selection, each in its own part of the log.

        What is adjusted for was scored alone with the selection. Of the others the batches are
        not audited, nor random panels drawn, nor is it asked what they add to the covariates.
        """
        described = []
        for panel in self.fixed:
            if panel.kind == COVARIATES and selected.adjusted is not None:
                own = selected.adjusted.alone
            else:
                own = self._evaluate(
                    fixed_procedure(self.method, self.settings, panel.columns, self.table),
                    log=log.part(panel.kind),
                    progress=lambda _, done, total, kind=panel.kind: self.stages(kind, done, total),
                    n_permutations=0,
                    audit=False,
                    n_random_panels=0,
                )
            described.append(panel.describe(own, selected))
        return described

    def _evaluate(self, procedure: Any, **more: Any) -> EvaluationResult:
        table, settings = self.table, self.settings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the result carries them as notices
            return nested_evaluate(
                procedure,
                table.X,
                table.labels,
                groups=table.groups,
                batch=table.batches or None,
                ids=table.sample_names,
                cv=self.n_outer,
                n_repeats=settings.repeats,
                max_permutations=settings.max_permutations,
                permutation="full" if settings.full_permutation else "fixed",
                pos_label=table.positive_class,
                feature_names=table.feature_names,
                final_fit=False,
                check_repeats=False,  # the table was searched for them when it was made
                random_state=settings.random_state,
                n_jobs=self.n_jobs,
                **more,
            )


# --- fixed panels


@dataclass(frozen=True)
class FixedPanel:
    """Columns that are scored as they are, beside those that a procedure selects.

    ``kind`` is `GIVEN` for a panel that the caller names, `COVARIATES` for what is adjusted for.
    It is also the stage, and the part of the log, in which the panel is scored. ``adjusted`` says
    that the last of the columns are what is adjusted for, which ``names`` leaves out.
    """

    kind: str
    names: tuple[str, ...]
    columns: tuple[int, ...]
    adjusted: bool = False
    published: bool = False

    def describe(self, own: EvaluationResult, selected: EvaluationResult) -> dict[str, Any]:
        """Set the scores of the panel beside those of the selection, as JSON and in words.

        The difference is what the given panel has more than the selection, or what the selection,
        which has the covariates too, has more than these alone.
        """
        pair = (own, selected) if self.kind == GIVEN else (selected, own)
        found = paired_difference(*pair, level=_LEVEL)
        ends = {"value": found.value, "low": found.low, "high": found.high}
        scores = {name: score.to_dict() for name, score in own.scores.items()}
        mine, other = (
            interval(result.scores["balanced_accuracy"].to_dict()) for result in (own, selected)
        )
        apart = found.low > 0 or found.high < 0
        words = _given_words if self.kind == GIVEN else _covariate_words
        return {
            "kind": self.kind,
            "features": list(self.names),
            "published": self.published,
            "scores": {name: score for name, score in scores.items() if score["low"] is not None},
            "difference": {**ends, "level": _LEVEL},
            "p_value": found.p_value,
            "sentences": words(self, mine, other, ends, apart),
        }


def _given_words(
    panel: FixedPanel, mine: str, other: str, difference: dict[str, float], apart: bool
) -> list[str]:
    more = difference["value"] >= 0
    told = "the two cannot be told apart on these samples"
    if apart:
        told = f"the {'given panel' if more else 'selection'} predicts better here"
    origin = (
        "This judges the panel after the fact: if it was chosen with these samples, or some of "
        "them, its score is too good, because the folds leave out samples from fitting its "
        "weights but not from choosing its features."
    )
    if panel.published:
        origin = (
            "It is stated that the panel was chosen without any of these samples; if that is so, "
            "its score is as honest as that of the selection."
        )
    what = f"{plural(len(panel.names), 'feature')}: {joined(panel.names)}"
    what += "; and what is adjusted for" if panel.adjusted else ""
    return [
        f"The given panel ({what}) reaches a balanced accuracy of {mine}, the selection {other}, "
        "both on the same folds.",
        f"Fold by fold that is {number(abs(difference['value']))} {'more' if more else 'less'} "
        f"({_range(difference)}): {told}.",
        origin,
    ]


def _covariate_words(
    panel: FixedPanel, mine: str, other: str, difference: dict[str, float], apart: bool
) -> list[str]:
    told = "whether it adds anything cannot be told on these samples"
    if apart:
        told = "it adds to them" if difference["value"] > 0 else "with it the prediction is worse"
    reach = "reaches" if len(panel.names) == 1 else "reach"
    return [
        f"Alone, {joined(panel.names)} {reach} a balanced accuracy of {mine}, and {other} "
        "together with the panel, both on the same folds.",
        f"Fold by fold the panel adds {difference['value']:+.2f} ({_range(difference)}): {told}.",
    ]


def _range(difference: dict[str, float]) -> str:
    return (
        f"{_LEVEL:.0%} interval of the difference {difference['low']:+.2f} to "
        f"{difference['high']:+.2f}"
    )


def fixed_panels(settings: Settings, table: Table) -> list[FixedPanel]:
    """Return what is to be scored beside the selection.

    What is adjusted for is part of a given panel too: the two differ in the rest alone.
    """
    adjusted = table.covariate_columns
    found = []
    if adjusted:
        names = tuple(table.feature_names[j] for j in adjusted)
        found.append(FixedPanel(COVARIATES, names, tuple(adjusted)))
    if settings.panel:
        columns = [j for j in columns_of(settings.panel, table, "panel") if j not in adjusted]
        if not columns:
            raise InputError(
                f"{option('panel')} names nothing but what is adjusted for ({option('adjust')})",
                remedy="name its features, or leave it out",
            )
        names = tuple(table.feature_names[j] for j in columns)
        every = (*columns, *adjusted)
        found.append(FixedPanel(GIVEN, names, every, bool(adjusted), settings.published))
    return found
