"""``sparsegsvp demo``: select on the data that come with the package."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .. import _options as opt
from .._console import Screen, guarded
from .shared import finish, spell


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
    from .._demo import DEMO_SETTINGS, demo_table
    from .._run import select as run_select

    screen = Screen(quiet=quiet, as_json=json)
    settings = replace(DEMO_SETTINGS, seed=seed, jobs=jobs)
    command = spell("demo", None, fast=fast, seed=seed or None)
    done = run_select(demo_table(), out, settings, fast=fast, command=command, listener=screen)
    finish(screen, done.results, out, f"{command} --out {shlex.quote(str(out))}")
