"""``sparsegsvp reproduce``: the tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from .. import _options as opt
from .._console import Screen, guarded


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
    from ...io import InputError
    from ...io._errors import suggestion
    from ...reproduce import reproduce as run_reproduce

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
