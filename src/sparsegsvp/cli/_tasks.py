"""`evaluate_table` and `compare_table`: what ``evaluate`` and ``compare`` do."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from .._versions import versions
from ..evaluation import Comparison, compare, default_methods
from ..evaluation._baselines import common_classifier
from ..evaluation._panels import with_size
from ..io import InputError, Log2, Table, csv_text, whole_folder
from ..io._errors import suggestion
from ..io._transform import log2_floor
from ..report import build_comparison
from ._listener import Listener
from ._run import evaluate, json_text, need_for_files, out_of_fold_csv, write_timings
from ._settings import Settings, labels_of, plan_folds, positive_of, refuse_missing

OWN = "GSVPSVMCV"  # the tuned method, which is what `select` runs
COMPARING = "comparison"
EVALUATION_FILES = ("results.json", "predictions.csv", "timings.json")
COMPARISON_FILES = ("comparison.html", "results.json", "comparison.csv", "timings.json")


def evaluate_table(
    table: Table,
    settings: Settings,
    *,
    method: str = OWN,
    out: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
    resume: bool = False,
    command: str = "",
    listener: Listener | None = None,
) -> dict[str, Any]:
    """Estimate how well a method predicts, by nested cross-validation.

    Parameters
    ----------
    table : Table
        Samples, features and labels.
    settings : Settings
        Repeats, permutations, seed; for the package's own method also its parameters.
    method : str, default="GSVPSVMCV"
        That method, or one of `sparsegsvp.evaluation.default_methods`. A method that only
        selects is followed by a balanced logistic regression.
    out : path-like or None
        Folder for ``results.json``, ``predictions.csv`` and ``timings.json``.
    log : path-like or None
        Log of finished folds, which survives being killed.
    resume : bool, default=False
        Continue the log.
    command : str, default=""
        The command that repeats this.
    listener : Listener, optional
        Told of every fold.

    Returns
    -------
    dict
        Data, parameters, ``evaluation`` and versions.
    """
    listener = Listener() if listener is None else listener
    refuse_missing(table, settings)
    plan = plan_folds(table, settings)
    estimator = None if method == OWN else _estimator(method, table, settings)
    listener.table_read(table)

    def work() -> dict[str, Any]:
        found = evaluate(
            table, settings, plan, listener, estimator=estimator, log=log, resume=resume
        )
        results = {
            "format": "sparsegsvp-evaluation",
            "command": command,
            "method": method,
            "data": describe(table),
            "parameters": settings.to_dict(),
            "evaluation": found.to_dict(),
            "versions": versions(),
        }
        listener.estimated(results)
        return results

    if out is None:
        return work()
    with whole_folder(out, owned=EVALUATION_FILES) as folder:
        done = work()
        (folder / "results.json").write_text(json_text(done), encoding="utf-8")
        text = out_of_fold_csv(table, done["evaluation"])
        (folder / "predictions.csv").write_text(text, encoding="utf-8")
        write_timings(folder, listener.seconds)
    return done


def describe(table: Table) -> dict[str, Any]:
    """Say what was read, as JSON can hold it."""
    counts = table.class_counts()
    return {
        "source": table.source,
        "digest": table.digest,
        "target": table.target,
        "positive": positive_of(table),
        "n_samples": int(table.X.shape[0]),
        "n_features": int(table.X.shape[1]),
        "n_missing": table.n_missing,
        "classes": list(counts),
        "class_counts": list(counts.values()),
        "record": list(table.record),
        "hints": list(table.hints),
        "dropped": dict(table.dropped),
    }


def method_names() -> list[str]:
    """Names that ``--method`` and ``--methods`` take."""
    return [OWN, *default_methods()]


def _named(name: str) -> Any:
    known = default_methods()
    folded = {key.lower(): key for key in known}
    if name.lower() not in folded:
        raise InputError(f"there is no method '{name}'", remedy=suggestion(name, [OWN, *known]))
    return known[folded[name.lower()]]


def _estimator(method: str, table: Table, settings: Settings) -> Any:
    """A method with what comes before and, if it only selects, after it."""
    model = _named(method)
    if settings.n_features is not None:
        model = with_size(model, settings.n_features)
    steps: list[tuple[str, Any]] = []
    if settings.log2:
        steps.append(("log2", Log2(floor=settings.floor)))
    if table.n_missing:
        steps.append(("impute", SimpleImputer(strategy="median", keep_empty_features=True)))
    steps.append(("method", model))
    if not hasattr(model, "predict"):
        steps.append(("classify", common_classifier()))
    return Pipeline(steps)


def compare_table(
    table: Table,
    settings: Settings,
    *,
    methods: Sequence[str] = (),
    sizes: Sequence[int] = (2, 4, 8, 16, 32),
    time_limit: float | None = None,
    out: str | PathLike[str] | None = None,
    log: str | PathLike[str] | None = None,
    resume: bool = False,
    command: str = "",
    listener: Listener | None = None,
) -> tuple[dict[str, Any], Comparison]:
    """Compare methods at equal panel sizes on the same folds.

    Parameters
    ----------
    table : Table
        Samples, features and labels.
    settings : Settings
        Folds, repeats, seed and workers; with ``log2`` the logarithm is taken first.
    methods : sequence of str
        Names among `sparsegsvp.evaluation.default_methods`; all of them by default.
    sizes : sequence of int
        Panel sizes; those above the number of features are left out.
    time_limit : float, optional
        Seconds a method may take in one fold.
    out : path-like or None
        Folder for ``comparison.html``, ``results.json``, ``comparison.csv`` and
        ``timings.json``.
    log, resume, command, listener
        As in `evaluate_table`.

    Returns
    -------
    tuple of (dict, Comparison)
        The results as JSON can hold them, and as an object.
    """
    listener = Listener() if listener is None else listener
    refuse_missing(table, settings)
    plan = plan_folds(table, settings)
    chosen = {name: _named(name) for name in methods} if methods else None
    possible = [size for size in sizes if size <= table.X.shape[1]]
    if not possible or min(sizes) < 1:
        raise InputError(
            f"--sizes are {', '.join(map(str, sizes))} and there are {table.X.shape[1]} features",
            remedy="ask for panels of at least 1 and at most all features",
        )
    listener.table_read(table)
    X = log2_floor(table.X, settings.floor) if settings.log2 else table.X

    def work() -> tuple[dict[str, Any], Comparison]:
        def progress(done: int, total: int, _: str) -> None:
            listener.advanced(COMPARING, done, total)

        with listener.stage(COMPARING), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compare(
                chosen,
                X,
                labels_of(table),
                possible,
                groups=table.groups,
                n_splits=plan.outer,
                n_repeats=settings.repeats,
                time_limit=time_limit,
                random_state=settings.seed,
                n_jobs=settings.jobs,
                log=log,
                resume=resume,
                progress=progress,
            )
        results = {
            "format": "sparsegsvp-comparison",
            "command": command,
            "data": describe(table),
            "parameters": {**settings.to_dict(), "sizes": possible, "time_limit": time_limit},
            "comparison": found.to_dict(),
            "versions": versions(),
        }
        return results, found

    if out is None:
        return work()
    need_for_files("jinja2")
    with whole_folder(out, owned=COMPARISON_FILES) as folder:
        done, found = work()
        _write_comparison(folder, done, found, listener)
    return done, found


def _write_comparison(
    folder: Path, results: dict[str, Any], found: Comparison, listener: Listener
) -> None:
    (folder / "results.json").write_text(json_text(results), encoding="utf-8")
    (folder / "comparison.html").write_text(build_comparison(results), encoding="utf-8")
    frame = found.to_frame()
    # Seconds never repeat, so they go where the other timings are.
    seconds = frame.pop("seconds_per_fit")
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    text = csv_text(list(frame.columns), rows)
    (folder / "comparison.csv").write_text(text, encoding="utf-8")
    per_fit = {
        f"{m}, {k} features": round(float(s), 4)
        for m, k, s in zip(frame["method"], frame["size"], seconds)
        if s == s
    }
    write_timings(folder, {**listener.seconds, **per_fit})
