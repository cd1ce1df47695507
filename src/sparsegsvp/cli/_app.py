"""The commands: options in, calls of the functions beside, sentences out."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from . import _options as opt
from ._console import Screen, guarded
from ._scheduler import WithScheduler

if TYPE_CHECKING:
    from ..io import Table
    from ._settings import Settings

app = typer.Typer(
    name="sparsegsvp",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Small, stable feature panels from tables of samples and features, with an honest "
    "estimate of how well they classify.",
    epilog="Start with: sparsegsvp demo",
)


def run() -> int:
    """Run the program; return its exit code."""
    # Worker processes would print every warning that the results carry in plain words.
    if "--debug" not in sys.argv:
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
    # A polite kill cleans up like Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        return 130
    return 0


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"sparsegsvp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


# --- what the commands share -----------------------------------------------------------


def _spell(command: str, path: Path | None, **options: Any) -> str:
    """Write the command that repeats a run: only what differs from the defaults."""
    words = ["sparsegsvp", command] + ([] if path is None else [str(path)])
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False or value == []:
            continue
        if value is True:
            words.append(flag)
        else:
            for item in value if isinstance(value, list | tuple) else [value]:
                words += [flag, f"{item:g}" if isinstance(item, float) else str(item)]
    return shlex.join(words)


def _differing(settings: Settings) -> dict[str, Any]:
    """The settings that are not the defaults, as options."""
    from ._settings import Settings

    default = Settings()
    names = [n for n in vars(settings) if n not in ("jobs", "full_permutation")]
    return {n: getattr(settings, n) for n in names if getattr(settings, n) != getattr(default, n)}


def _settings(**given: Any) -> Settings:
    from ._settings import Settings

    values = {name: value for name, value in given.items() if value is not None and value != []}
    for name in ("q", "tau", "pool"):
        if name in values:
            values[name] = tuple(values[name])
    return Settings(**values)


def _read(path: Path, screen: Screen, **options: Any) -> Table:
    from ..io import read_table

    options["drop"] = tuple(options.get("drop") or ())
    with screen.stage(f"reading {path.name}"):
        return read_table(path, **options)


def _summary(results: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What ``--json`` prints: the numbers that matter, and where the rest is."""
    evaluation = results["evaluation"]
    test = evaluation["permutation"]
    data = results["data"]
    summary = {
        **{key: data[key] for key in ("source", "digest", "n_samples", "n_features", "classes")},
        "scores": evaluation["scores"],
        "p_value": None if test is None else test["p_value"],
        "signal": evaluation["signal"],
        **more,
    }
    if "panel" in results:
        summary["panel"] = [row["feature"] for row in results["panel"]]
        summary["verdict"] = results["verdict"]["headline"]
        summary["warnings"] = [f"{w['title']}: {w['text']}" for w in results["warnings"]]
        summary["skipped"] = results["run"]["skipped"]
        summary["test"] = None if results["test"] is None else results["test"]["scores"]
    return summary


# --- commands --------------------------------------------------------------------------


@app.command(rich_help_panel="Panels", cls=WithScheduler)
@guarded
def select(
    table: opt.TablePath,
    target: opt.Target,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")
    ] = Path("sparsegsvp-report"),
    positive: opt.Positive = None,
    id: opt.Id = None,
    group: opt.Group = None,
    drop: opt.Drop = None,
    labels: opt.Labels = None,
    on: opt.On = None,
    transpose: opt.Transpose = False,
    layer: opt.Layer = None,
    sheet: opt.Sheet = None,
    separator: opt.Separator = None,
    decimal: opt.Decimal = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="An independent cohort to score.", rich_help_panel="Estimate"
        ),
    ] = None,
    test_labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labels of --test, if in a second file.",
            rich_help_panel="Estimate",
        ),
    ] = None,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Skip what takes long; the page says so.", rich_help_panel="Estimate"
        ),
    ] = False,
    dask: opt.Dask = None,
    n_features: opt.NFeatures = None,
    q: opt.Q = None,
    tau: opt.Tau = None,
    pool: opt.Pool = None,
    deltas: opt.Deltas = 30,
    rule: opt.Rule = "best",
    impute: opt.Impute = "median",
    log2: opt.TakeLog2 = False,
    floor: opt.Floor = 1.0,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 5,
    permutations: opt.Permutations = 99,
    resamples: opt.Resamples = 50,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    quiet: opt.Quiet = False,
    json: opt.AsJson = False,
    debug: opt.Debug = False,
) -> None:
    """Select a panel, estimate it honestly, and write a report.

    Writes report.html, panel.csv, predictions.csv, results.json and model.skops into DIR,
    all of them or none.
    """
    from ._run import select as run_select

    screen = Screen(quiet=quiet, as_json=json)
    settings = _settings(
        q=q, tau=tau, pool=pool, deltas=deltas, rule=rule, n_features=n_features,
        impute=impute, log2=log2,
        floor=floor, folds=folds, repeats=repeats, permutations=permutations,
        resamples=resamples, seed=seed, jobs=jobs,
    )  # fmt: skip
    reading = {
        "target": target, "id": id, "group": group, "transpose": transpose, "layer": layer,
        "sheet": sheet, "separator": separator, "decimal": decimal,
    }  # fmt: skip
    if dask is not None:
        opening = {
            "target": target, "id": id, "group": group, "layer": layer, "positive": positive,
            "drop": drop,
        }  # fmt: skip
        refused = {
            "transpose": transpose, "sheet": sheet, "separator": separator, "decimal": decimal,
            "labels": labels, "on": on, "test": test,
        }  # fmt: skip
        command = _spell("select", table, **opening, dask=dask, **_differing(settings))
        _select_lazily(table, out, settings, dask, opening, refused, command, screen)
        return
    data = _read(table, screen, **reading, positive=positive, drop=drop, labels=labels, on=on)
    cohort = None
    if test is not None:
        cohort = _read_cohort(test, test_labels, on, data, reading, screen)
    command = _spell(
        "select", table, **reading, positive=positive, drop=drop,
        labels=labels, on=on, test=test, test_labels=test_labels, fast=fast,
        **_differing(settings),
    )  # fmt: skip
    done = run_select(data, out, settings, test=cohort, fast=fast, command=command, listener=screen)
    _finish(screen, done.results, out, f"{command} --out {shlex.quote(str(out))}")


def _select_lazily(
    path: Path,
    out: Path,
    settings: Settings,
    scheduler: str,
    opening: dict[str, Any],
    refused: dict[str, Any],
    command: str,
    screen: Screen,
) -> None:
    from ..io import InputError, open_table
    from ._lazy import select_lazily

    for name, value in refused.items():
        if value:
            raise InputError(f"--{name} does not go with --dask", where=path.name)
    data = open_table(path, **{**opening, "drop": tuple(opening["drop"] or ())})
    results = select_lazily(data, out, settings, name=scheduler, command=command, listener=screen)
    names = [row["feature"] for row in results["panel"]]
    shown = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    screen.say(f"Panel of {len(names)}: {shown}")
    for sentence in results["skipped"]:
        screen.say(f"Left out: {sentence}")
    command = f"{command} --out {shlex.quote(str(out))}"
    screen.say(f"Results: {out.resolve()}", style="bold")
    screen.say(f"Repeat: {command}")
    screen.give({**results, "out": str(out.resolve()), "command": command})


def _finish(screen: Screen, results: dict[str, Any], out: Path, command: str) -> None:
    page = (out / "report.html").resolve()
    screen.say()
    screen.say(f"Report: {page}", style="bold")
    screen.say(f"Repeat: {command}")
    screen.give(_summary(results, out=str(out.resolve()), report=str(page), command=command))


def _read_cohort(
    path: Path,
    labels: Path | None,
    on: str | None,
    data: Table,
    reading: dict[str, Any],
    screen: Screen,
) -> Table:
    """Read an independent cohort: the same features, and labels the training table knows."""
    from ._cohort import check_cohort

    options = {k: v for k, v in reading.items() if k not in ("group", "target")}
    options |= {"target": data.target, "features": data.feature_names}
    cohort = _read(path, screen, **options, labels=labels, on=None if labels is None else on)
    check_cohort(cohort, data)
    return cohort


@app.command(rich_help_panel="Panels")
@guarded
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model.skops file.")
    ],
    table: opt.TablePath,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="CSV to write; stdout by default."),
    ] = None,
    id: opt.Id = None,
    prevalence: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Share of the positive class where the model is used; adjusts probabilities.",
        ),
    ] = None,
    positive: opt.Positive = None,
    transpose: opt.Transpose = False,
    layer: opt.Layer = None,
    sheet: opt.Sheet = None,
    separator: opt.Separator = None,
    decimal: opt.Decimal = None,
    quiet: opt.Quiet = False,
    json: opt.AsJson = False,
    debug: opt.Debug = False,
) -> None:
    """Classify samples with a saved model.

    Only the columns of the model's panel are needed, in any order; others are ignored.
    """
    from ..io import load_model, read_table, write_atomic
    from ._cohort import Predictions, panel_names, predictions_text

    screen = Screen(quiet=quiet, as_json=json)
    fitted = load_model(model)
    data = read_table(
        table,
        features=panel_names(fitted),
        id=id,
        transpose=transpose,
        layer=layer,
        sheet=sheet,
        separator=separator,
        decimal=decimal,
    )
    found = Predictions(fitted, data.X, data.source)
    proba = found.proba
    if prevalence is not None:
        proba = found.at_prevalence(positive or found.classes[-1], prevalence)
        if positive is None:
            screen.remark(
                f"--prevalence is taken for '{found.classes[-1]}'; --positive names the other"
            )
    text = predictions_text(data, found, proba)
    if out is not None:
        write_atomic(out, text)
        screen.say(f"{data.source}: {found.counts()}")
        screen.say(f"Predictions: {out.resolve()}")
    elif not json and not quiet:
        sys.stdout.write(text)
    screen.give(
        {
            "source": data.source,
            "digest": data.digest,
            "out": None if out is None else str(out.resolve()),
            "predictions": [str(label) for label in found.labels],
            "probabilities": None if proba is None else proba.tolist(),
            "classes": found.classes,
        }
    )


@app.command(rich_help_panel="Evidence")
@guarded
def evaluate(
    table: opt.TablePath,
    target: opt.Target,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="GSVPSVMCV (what select runs) or a method of compare.", rich_help_panel="Method"
        ),
    ] = "GSVPSVMCV",
    positive: opt.Positive = None,
    id: opt.Id = None,
    group: opt.Group = None,
    drop: opt.Drop = None,
    labels: opt.Labels = None,
    on: opt.On = None,
    transpose: opt.Transpose = False,
    layer: opt.Layer = None,
    sheet: opt.Sheet = None,
    separator: opt.Separator = None,
    decimal: opt.Decimal = None,
    n_features: opt.NFeatures = None,
    q: opt.Q = None,
    tau: opt.Tau = None,
    pool: opt.Pool = None,
    deltas: opt.Deltas = 30,
    rule: opt.Rule = "best",
    impute: opt.Impute = "median",
    log2: opt.TakeLog2 = False,
    floor: opt.Floor = 1.0,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 5,
    permutations: opt.Permutations = 99,
    full_permutation: Annotated[
        bool,
        typer.Option(
            "--full-permutation",
            help="Tune inside every permutation; slow.",
            rich_help_panel="Estimate",
        ),
    ] = False,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    log: opt.Log = None,
    resume: opt.Resume = False,
    quiet: opt.Quiet = False,
    json: opt.AsJson = False,
    debug: opt.Debug = False,
) -> None:
    """Estimate by nested cross-validation how well a method predicts."""
    from ._tasks import evaluate_table

    _check_resume(log, resume)
    screen = Screen(quiet=quiet, as_json=json)
    settings = _settings(
        q=q, tau=tau, pool=pool, deltas=deltas, rule=rule, n_features=n_features,
        impute=impute, log2=log2,
        floor=floor, folds=folds, repeats=repeats, permutations=permutations,
        full_permutation=full_permutation, seed=seed, jobs=jobs,
    )  # fmt: skip
    reading = {
        "target": target, "positive": positive, "id": id, "group": group, "drop": drop,
        "labels": labels, "on": on, "transpose": transpose, "layer": layer, "sheet": sheet,
        "separator": separator, "decimal": decimal,
    }  # fmt: skip
    data = _read(table, screen, **reading)
    command = _spell(
        "evaluate", table, **reading, method=None if method == "GSVPSVMCV" else method,
        full_permutation=full_permutation, **_differing(settings),
    )  # fmt: skip
    results = evaluate_table(
        data, settings, method=method, out=out, log=log, resume=resume, command=command,
        listener=screen,
    )  # fmt: skip
    where = None if out is None else str(out.resolve())
    if where is not None:
        screen.say(f"Results: {where}")
    screen.say(f"Repeat: {command}")
    screen.give(_summary(results, method=method, out=where, command=command))


@app.command(rich_help_panel="Evidence")
@guarded
def compare(
    table: opt.TablePath,
    target: opt.Target,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="Only these; may be repeated.",
            rich_help_panel="Method",
        ),
    ] = None,
    sizes: Annotated[
        str, typer.Option(help="Panel sizes, separated by commas.", rich_help_panel="Method")
    ] = "2,4,8,16,32",
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Stop a method that takes longer in one fold.",
            rich_help_panel="Method",
        ),
    ] = None,
    positive: opt.Positive = None,
    id: opt.Id = None,
    group: opt.Group = None,
    drop: opt.Drop = None,
    labels: opt.Labels = None,
    on: opt.On = None,
    transpose: opt.Transpose = False,
    layer: opt.Layer = None,
    sheet: opt.Sheet = None,
    separator: opt.Separator = None,
    decimal: opt.Decimal = None,
    log2: opt.TakeLog2 = False,
    floor: opt.Floor = 1.0,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 5,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    log: opt.Log = None,
    resume: opt.Resume = False,
    quiet: opt.Quiet = False,
    json: opt.AsJson = False,
    debug: opt.Debug = False,
) -> None:
    """Compare methods of feature selection at equal panel sizes, on the same folds."""
    from ._comparison import comparison_grid
    from ._tasks import compare_table

    _check_resume(log, resume)
    screen = Screen(quiet=quiet, as_json=json)
    settings = _settings(log2=log2, floor=floor, folds=folds, repeats=repeats, seed=seed, jobs=jobs)
    reading = {
        "target": target, "positive": positive, "id": id, "group": group, "drop": drop,
        "labels": labels, "on": on, "transpose": transpose, "layer": layer, "sheet": sheet,
        "separator": separator, "decimal": decimal,
    }  # fmt: skip
    data = _read(table, screen, **reading)
    command = _spell(
        "compare", table, **reading, method=methods,
        sizes=None if sizes == "2,4,8,16,32" else sizes, time_limit=time_limit,
        **_differing(settings),
    )  # fmt: skip
    results, found = compare_table(
        data, settings, methods=methods or (), sizes=_sizes(sizes), time_limit=time_limit,
        out=out, log=log, resume=resume, command=command, listener=screen,
    )  # fmt: skip
    screen.say()
    screen.show(comparison_grid(found))
    for note in results["comparison"]["notes"]:
        screen.say(note, style="dim")
    where = None if out is None else str(out.resolve())
    if out is not None:
        screen.say(f"Page: {(out / 'comparison.html').resolve()}", style="bold")
    screen.say(f"Repeat: {command}")
    screen.give({"out": where, "command": command, **results["comparison"]})


def _sizes(text: str) -> list[int]:
    from ..io import InputError

    try:
        return [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(
            f"--sizes is '{text}'", remedy="write whole numbers and commas, such as 2,4,8"
        ) from None


def _check_resume(log: Path | None, resume: bool) -> None:
    from ..io import InputError

    if resume and log is None:
        raise InputError("--resume needs --log", remedy="name the file of the run to continue")


@app.command(rich_help_panel="Evidence")
@guarded
def reproduce(
    which: Annotated[
        str, typer.Argument(metavar="[breast|ovarian|all]", help="Which data.")
    ] = "breast",
    data: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The ovarian data; SPARSEGSVP_DATA by default."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")
    ] = Path("sparsegsvp-reproduction"),
    jobs: opt.Jobs = -1,
    quiet: opt.Quiet = False,
    json: opt.AsJson = False,
    debug: opt.Debug = False,
) -> None:
    """Rebuild the tables and figures of the paper, published numbers beside obtained ones.

    Finished experiments are kept in DIR: an interrupted run continues where it stopped.
    """
    from ..io import InputError
    from ..io._errors import suggestion
    from ..reproduce import reproduce as run_reproduce

    if which not in ("breast", "ovarian", "all"):
        raise InputError(
            f"there is no '{which}' to reproduce",
            remedy=suggestion(which, ["breast", "ovarian", "all"]),
        )
    screen = Screen(quiet=quiet, as_json=json)
    stage = f"reproducing {which}"

    def progress(_: str, done: int, total: int) -> None:
        screen.advanced(stage, done, total)

    with screen.stage(stage):
        made = run_reproduce(
            cast(Literal["breast", "ovarian", "all"], which), data, out, progress, n_jobs=jobs
        )
    screen.say(f"Page: {made.page.resolve()}", style="bold")
    screen.give(
        {
            "out": str(out.resolve()),
            "page": str(made.page.resolve()),
            "results": {name: str(path.resolve()) for name, path in made.results.items()},
        }
    )


@app.command(rich_help_panel="Panels")
@guarded
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")
    ] = Path("demo-report"),
    fast: Annotated[bool, typer.Option("--fast", help="Skip what takes long.")] = False,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    quiet: opt.Quiet = False,
    json: opt.AsJson = False,
    debug: opt.Debug = False,
) -> None:
    """Run select on the breast cancer data that come with the package.

    Settled for about a minute: the smallest panel within one standard error, 2 repeats
    instead of 5, and 20 half samples instead of 50.
    """
    from ._demo import DEMO_SETTINGS, demo_table
    from ._run import select as run_select

    screen = Screen(quiet=quiet, as_json=json)
    settings = replace(DEMO_SETTINGS, seed=seed, jobs=jobs)
    command = _spell("demo", None, fast=fast, seed=seed or None)
    done = run_select(demo_table(), out, settings, fast=fast, command=command, listener=screen)
    _finish(screen, done.results, out, f"{command} --out {shlex.quote(str(out))}")
