"""`select`: from a table to a panel, an honest estimate and a folder of files.

What ``results.json`` holds is defined in `sparsegsvp.report.schema`.
"""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..evaluation import EvaluationResult, StabilitySelection, nested_evaluate
from ..io import InputError, Table, csv_text, save_model, whole_folder
from ..report import build_report, summarize, summarize_test
from . import _listener
from ._cohort import Predictions, estimator_of, panel_columns, predictions_text
from ._listener import Listener
from ._settings import (
    FoldPlan,
    Settings,
    fit_procedure,
    labels_of,
    make_procedure,
    plan_folds,
    positive_of,
    refuse_missing,
)

FILES = (
    "report.html",
    "panel.csv",
    "model.skops",
    "results.json",
    "predictions.csv",
    "test-predictions.csv",
    "timings.json",
)


@dataclass(frozen=True)
class Run:
    """A finished run: its results, its model, and the predictions of a cohort."""

    results: dict[str, Any]
    model: Any
    cohort: str | None


def select(
    table: Table,
    out: str | PathLike[str] | None = None,
    settings: Settings | None = None,
    *,
    test: Table | None = None,
    fast: bool = False,
    command: str = "",
    listener: Listener | None = None,
) -> Run:
    """Select a panel, estimate it honestly, and write the folder whole or not at all.

    Parameters
    ----------
    table : Table
        Samples, features and labels; see `sparsegsvp.io.read_table`.
    out : path-like or None
        The folder to write; None writes nothing.
    settings : Settings, optional
        Parameters.
    test : Table, optional
        An independent cohort with the same features, to be scored by the final model.
    fast : bool, default=False
        Leave out what takes long, and say so in the results.
    command : str, default=""
        The command that repeats the run, for the record.
    listener : Listener, optional
        Told how the run is doing.

    Returns
    -------
    Run

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.cli._run import select
    >>> from sparsegsvp.cli._settings import Settings
    >>> from sparsegsvp.io import read_table
    >>> rows = [f"{i % 2 * 3 + i / 10},{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(24)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("x,y,z,class\\n" + "\\n".join(rows))
    ...     table = read_table(path, target="class")
    >>> settings = Settings(tau=(1.0,), deltas=8, jobs=1)
    >>> run = select(table, settings=settings, fast=True)
    >>> run.results["panel"][0]["feature"]
    'x'
    """
    settings = Settings() if settings is None else settings
    listener = Listener() if listener is None else listener
    skipped = _skipped(settings, fast)
    settings = settings.fast() if fast else settings
    refuse_missing(table, settings)
    plan = plan_folds(table, settings)
    if settings.resamples and plan.half is None:
        skipped.append("Stability in half samples: the smallest class has fewer than 6 samples.")
    if out is None:
        return _run(table, settings, plan, skipped, test, command, listener)
    need_for_files("jinja2", "skops")
    with whole_folder(out, owned=FILES) as folder:
        run = _run(table, settings, plan, skipped, test, command, listener)
        with listener.stage(_listener.PAGE):
            _write(folder, table, run)
        write_timings(folder, listener.seconds)
    return run


def need_for_files(*modules: str) -> None:
    """Find what writing the results needs before any work is done."""
    extras = {"jinja2": "report", "skops": "persist"}
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ImportError(
                f'writing the results needs {module}: pip install "sparsegsvp[{extras[module]}]"'
            )


def _skipped(asked: Settings, fast: bool) -> list[str]:
    """Say what a run leaves out."""
    skipped = []
    if fast and asked.repeats > 1:
        skipped.append(f"{asked.repeats - 1} of {asked.repeats} repeats (--fast).")
    if fast or not asked.permutations:
        skipped.append(f"The permutation test ({'--fast' if fast else '--permutations 0'}).")
    if fast or not asked.resamples:
        why = "--fast" if fast else "--resamples 0"
        skipped.append(f"Stability in half samples ({why}).")
    return skipped


def _run(
    table: Table,
    settings: Settings,
    plan: FoldPlan,
    skipped: list[str],
    test: Table | None,
    command: str,
    listener: Listener,
) -> Run:
    listener.table_read(table)
    with listener.stage(_listener.TUNING), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        procedure = make_procedure(
            settings,
            plan.final,
            grouped=table.groups is not None,
            missing=settings.impute == "median",
            jobs=settings.jobs,
        )
        model = fit_procedure(procedure, table)
    notices = _plain(caught)
    listener.panel_found(_summary(table, model, path_accuracy=False))

    found = evaluate(table, settings, plan, listener)
    stable = None
    if settings.resamples and plan.half is not None:
        tau = float(estimator_of(model).tau_)
        stable = resample(table, settings, plan, tau, listener)
    scored, cohort = None, None
    if test is not None:
        predictions = Predictions(model, panel_columns(model, test), test.source)
        cohort = predictions_text(test, predictions, predictions.proba)
        scored = summarize_test(
            labels_of(test),
            predictions.labels,
            predictions.classes,
            positive=positive_of(table),
            source=test.source,
            digest=test.digest,
        )
    with listener.stage(_listener.SUMMARY):
        results = _summary(
            table,
            model,
            evaluation=found,
            stability=stable,
            test=scored,
            path_accuracy=settings.repeats > 1,
            command=command,
            parameters={**settings.to_dict(), **_folds(plan)},
            seed=settings.seed,
            skipped=skipped,
        )
    results["warnings"] += notices
    listener.estimated(results)
    return Run(results, model, cohort)


def _summary(table: Table, model: Any, **parts: Any) -> dict[str, Any]:
    """Describe everything in one document; a model that knows names may be given none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(summarize(table, model, **parts))


def _folds(plan: FoldPlan) -> dict[str, int | None]:
    return {
        "outer_folds": plan.outer,
        "inner_folds": plan.inner,
        "final_folds": plan.final,
        "half_folds": plan.half,
    }


def evaluate(
    table: Table,
    settings: Settings,
    plan: FoldPlan,
    listener: Listener,
    *,
    estimator: Any = None,
    log: str | PathLike[str] | None = None,
    resume: bool = False,
) -> EvaluationResult:
    """Estimate the procedure (or another estimator) by nested cross-validation.

    Parameters
    ----------
    table : Table
        Samples, features and labels.
    settings : Settings
        Repeats, permutations, seed, and what the procedure is made of.
    plan : FoldPlan
        Numbers of folds.
    listener : Listener
        Told of every fold and permutation.
    estimator : classifier, optional
        Instead of the procedure of the settings.
    log : path-like, optional
        Log of finished folds.
    resume : bool, default=False
        Continue the log.

    Returns
    -------
    EvaluationResult
    """
    grouped = table.groups is not None
    if estimator is None:
        estimator = make_procedure(
            settings, plan.inner, grouped=grouped, missing=table.n_missing > 0
        )

    stage = _Stages(listener)

    def progress(done: int, total: int, message: str) -> None:
        name = _listener.PERMUTATIONS if message.startswith("perm") else _listener.FOLDS
        stage.enter(name, total)
        listener.advanced(name, done, total)

    with warnings.catch_warnings(), stage:
        warnings.simplefilter("ignore")  # the result carries them, in plain words
        stage.enter(_listener.FOLDS, plan.outer * settings.repeats)
        return nested_evaluate(
            estimator,
            table.X,
            labels_of(table),
            groups=table.groups,
            ids=table.ids,
            cv=plan.outer,
            n_repeats=settings.repeats,
            n_permutations=settings.permutations,
            permutation="full" if settings.full_permutation else "fixed",
            pos_label=positive_of(table),
            feature_names=table.feature_names,
            final_fit=False,
            random_state=settings.seed,
            n_jobs=settings.jobs,
            log=log,
            resume=resume,
            progress=progress,
        )


class _Stages:
    """Turn a stream of messages into stages that begin and end."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.name: str | None = None
        self.open: Any = None

    def __enter__(self) -> _Stages:
        return self

    def enter(self, name: str, total: int) -> None:
        if name == self.name:
            return
        self.__exit__()
        self.name, self.open = name, self.listener.stage(name, total)
        self.open.__enter__()

    def __exit__(self, *_: object) -> None:
        if self.open is not None:
            self.open.__exit__(None, None, None)
            self.open = None


def resample(
    table: Table, settings: Settings, plan: FoldPlan, tau: float, listener: Listener
) -> StabilitySelection:
    """Select again in complementary half samples, tuning the penalty in each.

    The floor tau stays at the value chosen on all samples: tuning it too costs several
    times as much. The frequencies of the outer folds tune everything.
    """
    assert plan.half is not None
    procedure = make_procedure(
        settings,
        plan.half,
        grouped=table.groups is not None,
        missing=table.n_missing > 0,
        tau=(tau,),
    )
    n_resamples = settings.resamples + settings.resamples % 2

    def progress(done: int, total: int, _: str) -> None:
        listener.advanced(_listener.RESAMPLES, done, total)

    with listener.stage(_listener.RESAMPLES, n_resamples), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stable = StabilitySelection(
            procedure, n_resamples=n_resamples, n_jobs=settings.jobs, random_state=settings.seed
        )
        try:
            return stable.fit(table.X, labels_of(table), groups=table.groups, progress=progress)
        except ValueError as error:
            raise InputError(
                f"stability cannot be measured ({error})",
                where=table.source,
                remedy="leave it out with --resamples 0",
            ) from error


def _plain(caught: Sequence[warnings.WarningMessage]) -> list[dict[str, str]]:
    """Turn the warnings of the final fit into those of the document."""
    kept = [w for w in caught if issubclass(w.category, ConvergenceWarning | UserWarning)]
    return [
        {"kind": "fit", "severity": "caution", "title": "From the final fit", "text": text}
        for text in dict.fromkeys(str(w.message) for w in kept)
    ]


# --- files -----------------------------------------------------------------------------


def _write(folder: Path, table: Table, run: Run) -> None:
    results = run.results
    texts = {
        "results.json": json_text(results),
        "panel.csv": panel_csv(results),
        "predictions.csv": out_of_fold_csv(table, results["evaluation"]),
        "test-predictions.csv": run.cohort,
        "report.html": build_report(results),
    }
    for name, text in texts.items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    save_model(run.model, folder / "model.skops")


def write_timings(folder: Path, seconds: dict[str, float]) -> None:
    """Write the times, which never repeat, apart from the results, which do."""
    (folder / "timings.json").write_text(json_text({"seconds": seconds}), encoding="utf-8")


def json_text(value: Any) -> str:
    """Format a value as JSON, ended by a line break."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def panel_csv(results: dict[str, Any]) -> str:
    """The panel as CSV: feature, direction and weight per class, frequencies, substitutes."""
    classes = results["data"]["classes"]
    header = ["feature"]
    for label in classes:
        header += [f"direction in {label}", f"weight for {label}", f"effect in {label}"]
    header += ["selection frequency", "frequency with substitutes", "substitutes"]
    rows = []
    for row in results["panel"]:
        cells: list[Any] = [row["feature"]]
        for effect, weight in zip(row["effects"], row["weights"]):
            cells += [direction(effect), weight, effect]
        cells += [row["frequency"], row["group_frequency"]]
        cells.append("; ".join(s["feature"] for s in row["substitutes"]))
        rows.append(cells)
    return csv_text(header, rows)


def direction(effect: float | None) -> str:
    """Say on which side of the other classes a class lies."""
    if not effect:
        return "same"
    return "higher" if effect > 0 else "lower"


def out_of_fold_csv(table: Table, evaluation: dict[str, Any]) -> str:
    """Predictions of the first repeat, each sample by a fit that has not seen it."""
    classes = [str(c) for c in evaluation["classes"]]
    first = evaluation["out_of_fold"][0]
    parts = [("probability of", first["proba"]), ("distance to", first["distances"])]
    parts = [(title, values) for title, values in parts if values is not None]
    header = ["sample", "label", "prediction", "correct", "fold"]
    header += [f"{title} {label}" for title, _ in parts for label in classes]
    rows = []
    for i, code in enumerate(evaluation["y"]):
        predicted = first["predicted"][i]
        name = str(i + 1) if table.ids is None else str(table.ids[i])
        cells: list[Any] = [name, classes[code]]
        if predicted < 0:
            cells += [None, None, None]
        else:
            right = "yes" if predicted == code else "no"
            cells += [classes[predicted], right, first["fold"][i] + 1]
        rows.append([*cells, *(v for _, values in parts for v in values[i])])
    return csv_text(header, rows)
