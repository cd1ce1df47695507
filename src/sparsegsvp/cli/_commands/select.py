"""``sparsegsvp select``: a panel, its honest estimate, and the report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import _options as opt
from .._console import Screen, guarded
from .shared import differing, finish, make_settings, read, spell

if TYPE_CHECKING:
    from ...io import Table
    from .._settings import Settings


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
    from .._run import select as run_select

    screen = Screen(quiet=quiet, as_json=json)
    settings = make_settings(
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
            "labels": labels, "on": on, "test": test, "test-labels": test_labels, "fast": fast,
        }  # fmt: skip
        changed = differing(settings)
        refused |= {name: name in changed for name in ("impute", *_ESTIMATE)}
        command = spell("select", table, **opening, dask=dask, **changed)
        _select_lazily(table, out, settings, dask, opening, refused, command, screen)
        return
    data = read(table, screen, **reading, positive=positive, drop=drop, labels=labels, on=on)
    cohort = None
    if test is not None:
        cohort = _read_cohort(test, test_labels, on, data, reading, screen)
    command = spell(
        "select", table, **reading, positive=positive, drop=drop,
        labels=labels, on=on, test=test, test_labels=test_labels, fast=fast,
        **differing(settings),
    )  # fmt: skip
    done = run_select(data, out, settings, test=cohort, fast=fast, command=command, listener=screen)
    finish(screen, done.results, out, f"{command} --out {shlex.quote(str(out))}")


# Settings of the estimate, which a table that stays on disk does not get.
_ESTIMATE = ("repeats", "permutations", "resamples")


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
    from ...io import InputError, open_table
    from .._lazy import select_lazily

    for name, value in refused.items():
        if value:
            raise InputError(
                f"--{name} does not go with --dask", where=path.name, remedy="leave it out"
            )
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


def _read_cohort(
    path: Path,
    labels: Path | None,
    on: str | None,
    data: Table,
    reading: dict[str, Any],
    screen: Screen,
) -> Table:
    """Read an independent cohort: the same features, and labels the training table knows."""
    from .._cohort import check_cohort

    options = {k: v for k, v in reading.items() if k not in ("group", "target")}
    options |= {"target": data.target, "features": data.feature_names}
    cohort = read(path, screen, **options, labels=labels, on=None if labels is None else on)
    check_cohort(cohort, data)
    return cohort
