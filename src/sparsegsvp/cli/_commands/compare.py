"""``sparsegsvp compare``: methods side by side at equal panel sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import _options as opt
from .._console import Screen, guarded
from .shared import check_resume, differing, make_settings, read, spell


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
            help="Stop a method that takes longer in one fold; with --resume, a larger limit "
            "tries it again.",
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
    from ...report.comparison import verdict
    from .._comparison import comparison_grid
    from .._tasks import compare_table

    check_resume(log, resume)
    screen = Screen(quiet=quiet, as_json=json)
    settings = make_settings(
        log2=log2, floor=floor, folds=folds, repeats=repeats, seed=seed, jobs=jobs
    )
    reading = {
        "target": target, "positive": positive, "id": id, "group": group, "drop": drop,
        "labels": labels, "on": on, "transpose": transpose, "layer": layer, "sheet": sheet,
        "separator": separator, "decimal": decimal,
    }  # fmt: skip
    data = read(table, screen, **reading)
    command = spell(
        "compare", table, **reading, method=methods,
        sizes=None if sizes == "2,4,8,16,32" else sizes, time_limit=time_limit,
        **differing(settings),
    )  # fmt: skip
    results, found = compare_table(
        data, settings, methods=methods or (), sizes=_sizes(sizes), time_limit=time_limit,
        out=out, log=log, resume=resume, command=command, listener=screen,
    )  # fmt: skip
    screen.say()
    screen.show(comparison_grid(found))
    headline, sentences = verdict(results["comparison"])
    screen.say(headline, style="bold")
    screen.say(" ".join(sentences))
    for note in results["comparison"]["notes"]:
        screen.say(note, style="dim")
    where = None if out is None else str(out.resolve())
    if out is not None:
        screen.say(f"Page: {(out / 'comparison.html').resolve()}", style="bold")
    screen.say(f"Repeat: {command}")
    screen.give({"out": where, "command": command, **results["comparison"]})


def _sizes(text: str) -> list[int]:
    from ...io import InputError

    try:
        return [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(
            f"--sizes is '{text}'", remedy="write whole numbers and commas, such as 2,4,8"
        ) from None
