"""`evaluate_table` and `compare_table`: how well methods predict, one or many."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from .._typing import Float64Array, Progress
from .._versions import versions
from ..estimators import Panel
from ..evaluation import Comparison, EvaluationResult, compare, default_methods, nested_evaluate
from ..evaluation.baselines import common_classifier
from ..evaluation.compare import KNOWN_AS
from ..evaluation.journal import Journal, open_journal
from ..evaluation.paired import only_with
from ..evaluation.panels import with_size
from ..evaluation.values import plain
from ..io import InputError, Table, csv_text
from ..io.errors import option, quote, suggestion
from ..io.models import log2_floor
from ..report import build_comparison, comparison_verdict, known_scores, verdict
from .beside import COVARIATES, FixedPanel, fixed_panels
from .files import json_text, out_of_fold_csv, timings_text, write_texts
from .settings import (
    Settings,
    make_procedure,
    make_settings,
    outer_folds,
    preparing_steps,
    refuse_missing,
    run_header,
)
from .stages import Stages
from .steering import centring_notices, steering_factors, steering_notices

OWN = "GSVPSVMCV"  # the tuned method, which is what `select_panel` runs


def evaluate_procedure(
    procedure: Any,
    table: Table,
    settings: Settings,
    n_outer: int,
    *,
    n_jobs: int | None,
    log: Journal,
    progress: Progress,
    alone: bool = True,
) -> EvaluationResult:
    """Estimate a procedure on a table by nested cross-validation.

    Of one that only stands beside another the batches are not audited, nor random panels drawn,
    nor is it asked what it adds to the covariates.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the result carries them as notices
        return nested_evaluate(
            procedure,
            table.X,
            table.labels,
            groups=table.groups,
            batch=table.batches or None,
            adjust=(alone and table.covariate_columns) or None,
            ids=table.ids,
            cv=n_outer,
            n_repeats=settings.repeats,
            n_permutations=settings.permutations,
            max_permutations=settings.max_permutations,
            permutation="full" if settings.full_permutation else "fixed",
            pos_label=table.positive_class,
            feature_names=table.feature_names,
            final_fit=False,
            check_repeats=False,  # the table was searched for them when it was made
            random_state=settings.random_state,
            n_jobs=n_jobs,
            log=log,
            progress=progress,
            audit=alone,
            n_random_panels=5 if alone else 0,
        )


def evaluate_beside(
    fixed: Sequence[FixedPanel],
    selected: EvaluationResult,
    table: Table,
    settings: Settings,
    n_outer: int,
    *,
    method: str = OWN,
    n_jobs: int | None,
    log: Journal,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Score fixed panels on the folds of a selection, each in a part of the log of its own.

    What is adjusted for was scored alone with the selection.
    """
    untested = replace(settings, permutations=0)
    described = []
    for panel in fixed:
        if panel.kind == COVARIATES and selected.adjusted is not None:
            described.append(panel.describe(selected.adjusted.alone, selected))
            continue

        def report(_: str, done: int, total: int, kind: str = panel.kind) -> None:
            progress(kind, done, total)

        own = evaluate_procedure(
            fixed_procedure(method, settings, panel, table), table, untested, n_outer,
            n_jobs=n_jobs, log=log.part(panel.kind), progress=report, alone=False,
        )  # fmt: skip
        described.append(panel.describe(own, selected))
    return described


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
    settings = make_settings(**parameters)
    table = table.without_notice("raw") if settings.log2 else table
    refuse_missing(table, settings)
    n_outer = outer_folds(table, settings)
    factors = steering_factors(settings, table)
    procedure = procedure_of(method, settings, factors, table)
    fixed = fixed_panels(settings, table)
    stages = Stages(progress, cancel)
    # more draws may be added to finished ones
    asked = {k: v for k, v in settings.to_dict().items() if not k.endswith("permutations")}
    asked |= {"method": method, "outer_folds": n_outer}
    header = partial(run_header, "evaluate_table", table, asked)
    with open_journal(log, header, resume=resume) as journal:
        found = evaluate_procedure(
            procedure, table, settings, n_outer, n_jobs=n_jobs, log=journal, progress=stages
        )
        beside = evaluate_beside(
            fixed, found, table, settings, n_outer,
            method=method, n_jobs=n_jobs, log=journal, progress=stages,
        )  # fmt: skip
    evaluation, data = found.to_dict(), table.describe()
    steered = [*steering_notices(factors, table), *centring_notices(settings, table)]
    document = {
        "format": "sparsegsvp-evaluation",
        "command": command,
        "method": method,
        "data": data,
        "parameters": settings.to_dict(),
        "verdict": verdict(data, known_scores(evaluation), evaluation),
        "notices": [n.to_dict() for n in (*table.notices, *steered, *found.notices)],
        "evaluation": evaluation,
        "beside": plain(beside),
        "versions": versions(),
    }
    return EvaluatedMethod(found, document, table, stages.seconds)


def _folded(name: str) -> str:
    """Return a name without capitals, blanks and dashes."""
    return "".join(c for c in name.lower() if c.isalnum())


def method_name(name: str) -> str:
    """Return how `default_methods` spells a name, whatever its capitals, blanks and dashes."""
    known = {_folded(key): key for key in default_methods()}
    folded = _folded(name)
    if folded in known:
        return known[folded]
    if folded in KNOWN_AS:
        remedy = f"did you mean '{KNOWN_AS[folded]}'?"
    else:
        remedy = suggestion(name, [OWN, *known.values()])
    raise InputError(f"there is no method {quote(name)}", remedy=remedy)


def method_named(name: str) -> Any:
    """Return a method of `default_methods` by its name."""
    return default_methods()[method_name(name)]


def procedure_of(
    method: str,
    settings: Settings,
    factors: Float64Array | None = None,
    table: Table | None = None,
) -> Any:
    """Return a method with what comes before and, if it only selects, after it."""
    if method == OWN:
        return make_procedure(settings, factors, table)
    if factors is not None:
        asked = [option(name) for name in ("must", "ban", "costs", "adjust")]
        raise InputError(
            f"{', '.join(asked[:-1])} and {asked[-1]} are for the method {OWN}",
            remedy="leave them out",
        )
    if table is not None:
        refuse_categories(table)
    model = method_named(method)
    if settings.n_features is not None:
        model = with_size(model, settings.n_features)
    steps = [*preparing_steps(settings), ("method", model)]
    if not hasattr(model, "predict"):
        steps.append(("classify", common_classifier()))
    return Pipeline(steps)


def refuse_categories(table: Table) -> None:
    """Refuse categories that may be chosen: other methods would choose their levels one by one."""
    if table.categories:
        raise InputError(
            f"{option('categorical')} is for the method {OWN}: others choose levels one by one",
            where=table.source,
            remedy="leave it out",
        )


def fixed_procedure(method: str, settings: Settings, panel: FixedPanel, table: Table) -> Any:
    """Return a method that sees the columns of a panel only, and takes all of them."""
    if method == OWN:
        return only_with(make_procedure(settings, None, table), panel.columns)
    sized = procedure_of(method, replace(settings, n_features=len(panel.columns)), None, table)
    n = len(preparing_steps(settings))
    steps = [*sized.steps[:n], ("panel", Panel(panel.columns)), *sized.steps[n:]]
    return Pipeline(steps)


def possible_sizes(table: Table, sizes: Sequence[int]) -> list[int]:
    """Return the panel sizes that a table allows; refuse them if there is none."""
    possible = [size for size in sizes if size <= table.X.shape[1]]
    if not possible or min(sizes) < 1:
        raise InputError(
            f"{option('sizes')} are {', '.join(map(str, sizes))} and there are "
            f"{table.X.shape[1]} features",
            remedy="ask for panels of at least 1 and at most all features",
        )
    return possible


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
    settings = make_settings(**parameters)
    refuse_missing(table, settings)
    refuse_categories(table)
    n_outer = outer_folds(table, settings)
    chosen = {method_name(name): method_named(name) for name in methods} if methods else None
    possible = possible_sizes(table, sizes)
    stages = Stages(progress, cancel)
    X = table.X
    if settings.log2:
        X = log2_floor(X, settings.floor, table.clinical_columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compare(
            chosen,
            X,
            table.labels,
            possible,
            groups=table.groups,
            n_splits=n_outer,
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
        "parameters": {**settings.to_dict(), "sizes": possible, "time_limit": time_limit},
        "verdict": comparison_verdict(comparison),
        "comparison": comparison,
        "versions": versions(),
    }
    return ComparedMethods(found, document, stages.seconds)
