"""`evaluate_table` and `compare_table`: how well methods predict, one or many."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._typing import Progress
from .._versions import versions
from ..estimators.log2 import log2_floor
from ..evaluation import Comparison, EvaluationResult, compare, default_methods
from ..evaluation.values import plain
from ..io import InputError, Table, csv_text
from ..io.errors import option
from ..report import build_comparison, comparison_verdict, describe_verdict, known_scores
from .procedure import OWN, method_name
from .results import json_text, out_of_fold_csv, timings_text, write_texts
from .run import PreparedRun, Stages
from .settings import Settings, outer_folds, refuse_missing, settings_from


@dataclass(frozen=True, eq=False)
class EvaluatedMethod:
    """What `evaluate_table` found.

    Attributes
    ----------
    evaluation : EvaluationResult
    document : dict
        What ``results.json`` holds: data, parameters, ``evaluation``, what was scored ``beside``
        it, and versions.
    seconds : dict of str to float
        How long each stage took.
    """

    evaluation: EvaluationResult
    document: dict[str, Any] = field(repr=False)
    table: Table = field(repr=False)
    seconds: dict[str, float] = field(repr=False)

    FILES = ("results.json", "predictions.csv", "timings.json")
    NEEDS = ()

    def write(self, folder: Path) -> None:
        """Write the files into a folder that exists."""
        write_texts(
            folder,
            {
                "results.json": json_text(self.document),
                "predictions.csv": out_of_fold_csv(self.table, self.document["evaluation"]),
                "timings.json": timings_text(self.seconds),
            },
        )


def evaluate_table(
    table: Table,
    *,
    method: str = OWN,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    command: str = "",
    **parameters: Any,
) -> EvaluatedMethod:
    """Estimate by nested cross-validation how well a method predicts.

    Parameters
    ----------
    table : Table
        Samples, features and labels.
    method : str, default="GSVPSVMCV"
        That method, which is what `select_panel` runs, or one of
        `sparsegsvp.evaluation.default_methods`. A method that only selects is followed by a
        balanced logistic regression.
    n_jobs, progress, cancel, log, resume, command
        As in `select_panel`.
    **parameters
        Repeats, permutations, seed, a given ``panel`` and so on, as in `select_panel`; also
        ``full_permutation``, which tunes inside every permutation.

    Returns
    -------
    EvaluatedMethod
    """
    settings = settings_from(**parameters)
    table = table.without_notice("raw") if settings.log2 else table
    run = PreparedRun(
        table, settings, method=method, n_jobs=n_jobs, progress=progress, cancel=cancel
    )
    # more draws may be added to finished ones
    asked = {k: v for k, v in run.parameters().items() if not k.endswith("permutations")}
    asked["method"] = method
    with run.open_journal("evaluate_table", asked, log, resume) as journal:
        found = run.evaluate(journal)
        beside = run.evaluate_beside(found, journal)
    evaluation, data = found.to_dict(), table.describe()
    notices = (*table.notices, *run.notices(), *found.notices)
    document = {
        "format": "sparsegsvp-evaluation",
        "command": command,
        "method": method,
        "data": data,
        "parameters": settings.to_dict(),
        "verdict": describe_verdict(data, known_scores(evaluation), evaluation),
        "notices": [notice.to_dict() for notice in notices],
        "evaluation": evaluation,
        "beside": plain(beside),
        "versions": versions(),
    }
    return EvaluatedMethod(found, document, table, run.stages.seconds)


@dataclass(frozen=True, eq=False)
class ComparedMethods:
    """What `compare_table` found.

    Attributes
    ----------
    comparison : Comparison
    document : dict
        What ``results.json`` holds.
    seconds : dict of str to float
        How long the comparison took.
    """

    comparison: Comparison
    document: dict[str, Any] = field(repr=False)
    seconds: dict[str, float] = field(repr=False)

    FILES = ("comparison.html", "results.json", "comparison.csv", "timings.json")
    NEEDS = ("jinja2",)

    def write(self, folder: Path) -> None:
        """Write the files into a folder that exists."""
        frame = self.comparison.to_frame()
        # Seconds never repeat, so they go where the other timings are.
        seconds = frame.pop("seconds_per_fit")
        rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        per_fit = {
            f"{m}, {k} features": round(float(s), 4)
            for m, k, s in zip(frame["method"], frame["size"], seconds)
            if s == s
        }
        write_texts(
            folder,
            {
                "results.json": json_text(self.document),
                "comparison.html": build_comparison(self.document),
                "comparison.csv": csv_text(list(frame.columns), rows),
                "timings.json": timings_text({**self.seconds, **per_fit}),
            },
        )


def compare_table(
    table: Table,
    *,
    methods: Sequence[str] = (),
    sizes: Sequence[int] = (2, 4, 8, 16, 32),
    time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    command: str = "",
    **parameters: Any,
) -> ComparedMethods:
    """Compare methods at equal panel sizes on the same folds.

    Parameters
    ----------
    table : Table
        Samples, features and labels.
    methods : sequence of str
        Names among `sparsegsvp.evaluation.default_methods`; all of them by default.
    sizes : sequence of int
        Panel sizes; those above the number of features are left out.
    time_limit : float, optional
        Seconds a method may take in one fold.
    n_jobs, progress, cancel, log, resume, command
        As in `select_panel`.
    **parameters
        Folds, repeats, seed, ``log2`` and ``floor``, as in `select_panel`.

    Returns
    -------
    ComparedMethods
    """
    asked = ComparisonRequest(table, settings_from(**parameters), methods, sizes)
    settings, stages = asked.settings, Stages(progress, cancel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compare(
            asked.methods,
            asked.values(),
            table.labels,
            asked.sizes,
            groups=table.groups,
            n_splits=asked.n_outer,
            n_repeats=settings.repeats,
            time_limit=time_limit,
            check_repeats=False,
            random_state=settings.random_state,
            n_jobs=n_jobs,
            log=log,
            resume=resume,
            progress=stages,
        )
    comparison = found.to_dict()
    document = {
        "format": "sparsegsvp-comparison",
        "command": command,
        "data": table.describe(),
        "parameters": {**settings.to_dict(), "sizes": asked.sizes, "time_limit": time_limit},
        "verdict": comparison_verdict(comparison),
        "comparison": comparison,
        "versions": versions(),
    }
    return ComparedMethods(found, document, stages.seconds)


class ComparisonRequest:
    """Methods and panel sizes to compare on a table, checked.

    No method means all of `default_methods`; sizes above the number of features are left out.
    """

    def __init__(
        self, table: Table, settings: Settings, methods: Sequence[str], sizes: Sequence[int]
    ) -> None:
        refuse_missing(table, settings)
        self.table, self.settings = table, settings
        self.n_outer = outer_folds(table, settings)
        known = default_methods()
        names = [method_name(name) for name in methods]
        self.methods = {name: known[name] for name in names} if names else known
        n_features = table.X.shape[1]
        self.sizes = [size for size in sizes if size <= n_features]
        if not self.sizes or min(sizes) < 1:
            raise InputError(
                f"{option('sizes')} are {', '.join(map(str, sizes))} and there are "
                f"{n_features} features",
                remedy="ask for panels of at least 1 and at most all features",
            )

    def values(self) -> Any:
        """Return the samples, with logarithms taken where these are asked for."""
        if not self.settings.log2:
            return self.table.X
        return log2_floor(self.table.X, self.settings.floor, self.table.covariate_columns)
