"""Commands that make panels: select and its demo, a look at a table, the page for the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..io.errors import InputError
from .command import Groups, changed, command, flag
from .job import Job, summary
from .options import (
    SELECTING,
    Cells,
    Columns,
    DryRun,
    Figures,
    Folds,
    Force,
    Given,
    Logging,
    Method,
    Opening,
    Out,
    Permutations,
    Planning,
    Resamples,
    Running,
    Showing,
    TablePath,
    Transform,
    Use,
)
from .screen import Screen

if TYPE_CHECKING:
    from ..io import Table


@command(*SELECTING, Logging, Showing)
def select(
    given: Groups,
    table: TablePath,
    out: Out = Path("sparsegsvp-report"),
    force: Force = False,
    figures: Figures = False,
    dry_run: DryRun = False,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Skip what takes long; the page says so.", rich_help_panel="Estimate"
        ),
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="[SCHEDULER]",
            help="Leave TABLE (a Parquet folder, Zarr store or .h5ad) on disk and read it in "
            "chunks: on threads, synchronous, distributed, or at an address.",
            rich_help_panel="Reading",
        ),
    ] = None,
) -> None:
    """Select a panel, estimate it honestly, and write a report.

    Writes report.html, checklist.md, panel.csv, panel.xlsx, predictions.csv, results.json and
    model.skops into DIR, all of them or none.
    """
    job = Job("select", table, given, out, fast=fast, dask=dask)
    if dask is not None:
        refused = [name for name, _ in changed(*given.asked()) if name not in _ON_DISK]
        own = {"fast": fast, "dry_run": dry_run, "figures": figures}
        refused += [name for name, asked in own.items() if asked]
        if refused:
            raise InputError(
                f"{flag(refused[0])} does not go with --dask",
                where=table.name,
                remedy="leave it out",
            )
        _select_lazily(job, table, dask, force=force)
        return
    job.check_log()
    asked = job.parameters(
        Method, Transform, Folds, Given, Permutations, Resamples, Planning, Running, fast=fast
    )
    if dry_run:
        from ..workflow import plan_selection

        job.show_plan(plan_selection, asked)
        return
    _select(job, job.read, force=force, figures=figures, **asked, **given.values(Logging, Use))


def _select(
    job: Job,
    read: Callable[[], tuple[Table, Table | None]],
    *,
    force: bool,
    figures: bool,
    **parameters: Any,
) -> None:
    """Read a table and perhaps a cohort, select, show what was found and write it."""
    from ..workflow import Selection, select_panel

    screen = job.screen
    with job.results(Selection, force=force) as folder:
        data, test = read()
        found = select_panel(
            data, test=test, command=job.command, on_panel=screen.show_panel, **parameters
        )
        screen.show_estimate(found.document)
        with screen.stage("writing the page"):
            found.write(folder, figures=figures)
    page, command = job.place("report.html"), job.command_with_out
    shown = summary(found.document, out=job.place(), report=page, command=command)
    screen.say()
    job.finish(shown, f"Report: {page}")


# Options that a table which stays on disk can use.
_ON_DISK = {
    "target", "positive", "id", "group", "drop", "keep", "layer", "n_features", "must", "ban",
    "costs", "q", "tau", "pool", "n_deltas", "rule", "folds", "random_state", "n_jobs",
}  # fmt: skip


def _select_lazily(job: Job, path: Path, scheduler: str, *, force: bool) -> None:
    """Select from a table that stays on disk, show what was found and write it."""
    from ..io import open_table
    from ..workflow import LazySelection, select_lazily

    screen, columns, cells = job.screen, job.given[Columns], job.given[Cells]
    with job.results(LazySelection, force=force) as folder:
        data = open_table(
            path,
            target=columns.target,
            group=columns.group,
            positive=columns.positive,
            id=cells.id,
            layer=cells.layer,
            drop=tuple(columns.drop or ()),
            keep=tuple(columns.keep or ()),
        )
        screen.show_table(data)
        screen.show_roles(data)
        found = select_lazily(
            data,
            scheduler=scheduler,
            progress=screen.progress,
            command=job.command,
            random_state=job.given[Running].random_state,
            **job.given.values(Method),
        )
        found.write(folder)
    names = [row["feature"] for row in found.document["panel"]]
    shown = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    screen.say(f"Panel of {len(names)}: {shown}")
    for sentence in found.document["skipped"]:
        screen.say(f"Left out: {sentence}")
    place, command = job.place(), job.command_with_out
    job.finish({**found.document, "out": place, "command": command}, f"Results: {place}")


@command(Running, Showing)
def demo(
    given: Groups,
    out: Out = Path("demo-report"),
    force: Force = False,
    figures: Figures = False,
    fast: Annotated[bool, typer.Option("--fast", help="Skip what takes long.")] = False,
) -> None:
    """Run select on the breast cancer data that come with the package.

    Settled for less than a minute: 2 repeats instead of 5, and 20 half samples instead of 50.
    """
    from ..workflow import command_of, demo_table

    job = Job("demo", None, given, out, fast=fast)

    def read() -> tuple[Table, None]:
        data = demo_table()
        job.screen.show_table(data)
        return data, None

    # its own results are made again as often as one likes
    own = (command_of(out) or "").startswith("sparsegsvp demo")
    asked = job.parameters(Running, fast=fast, repeats=2, resamples=20)
    _select(job, read, force=force or own, figures=figures, **asked)


@command(Showing, Opening)
def look(given: Groups, table: TablePath) -> None:
    """Show what is in a file, and which columns may hold the classes."""
    from ..io import preview_table

    screen = Screen.of(given[Showing])
    found = preview_table(table, **given.values(Opening))
    screen.show_preview(found)
    screen.give(found.to_dict())


@command(Showing)
def app(
    given: Groups,
    folder: Annotated[
        Path,
        typer.Option("--folder", metavar="DIR", help="Where runs are kept."),
    ] = Path("sparsegsvp-runs"),
    port: Annotated[int, typer.Option(metavar="N", help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    memory: Annotated[
        float | None,
        typer.Option(metavar="GB", help="Memory that a run may use; by default all there is."),
    ] = None,
) -> None:
    """Open a page in the browser: drop a table, look at it, run select, read the report.

    Everything stays on this machine.
    """
    from ..io import machine_memory, need

    for package in ("starlette", "uvicorn"):
        need(package, "app")
    from .web.server import serve

    screen = Screen.of(given[Showing])

    def announce(address: str) -> None:
        screen.say(f"Open {address}", style="bold")
        screen.say(f"Runs are kept in {folder.resolve()}. Ctrl-C ends the server.")
        screen.give({"address": address, "folder": str(folder.resolve())})
        if browser:
            import webbrowser

            webbrowser.open(address)

    most = machine_memory() if memory is None else int(memory * 2**30)
    serve(folder.resolve(), port=port, memory=most or None, announce=announce)
