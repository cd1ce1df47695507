"""``sparsegsvp evaluate``: how well a method predicts, by nested cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import _options as opt
from .._console import Screen, guarded
from .shared import check_resume, differing, make_settings, read, spell, summarise


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
    from .._tasks import evaluate_table

    check_resume(log, resume)
    screen = Screen(quiet=quiet, as_json=json)
    settings = make_settings(
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
    data = read(table, screen, **reading)
    command = spell(
        "evaluate", table, **reading, method=None if method == "GSVPSVMCV" else method,
        full_permutation=full_permutation, **differing(settings),
    )  # fmt: skip
    results = evaluate_table(
        data, settings, method=method, out=out, log=log, resume=resume, command=command,
        listener=screen,
    )  # fmt: skip
    where = None if out is None else str(out.resolve())
    if where is not None:
        screen.say(f"Results: {where}")
    screen.say(f"Repeat: {command}")
    screen.give(summarise(results, method=method, out=where, command=command))
