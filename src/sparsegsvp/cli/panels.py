"""Commands that make panels: select and its demo, a look at a table, the page for the browser."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import Groups, changed, command, flag, spell, values
from .options import (
    Batches,
    Cells,
    Cohort,
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
from .reading import check_log, read_cohort, read_data
from .screen import Screen, as_called

if TYPE_CHECKING:
    from ..io import Table


@command
def select(
    table: TablePath,
    columns: Columns,
    batches: Batches,
    cells: Cells,
    cohort: Cohort,
    use: Use,
    method: Method,
    transform: Transform,
    folds: Folds,
    given: Given,
    permutations: Permutations,
    resamples: Resamples,
    planning: Planning,
    running: Running,
    logging: Logging,
    showing: Showing,
    groups: Groups,
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
    screen = Screen.of(showing)
    text = spell("select", table, *groups, fast=fast, dask=dask)
    if dask is not None:
        refused = [name for name, _ in changed(*groups) if name not in _ON_DISK]
        refused += ["fast"] if fast else []
        refused += ["dry_run"] if dry_run else []
        refused += ["figures"] if figures else []
        _select_lazily(
            table,
            dask,
            refused,
            columns,
            cells,
            method,
            running,
            text,
            screen,
            out=out,
            force=force,
        )
        return
    check_log(logging, out)

    def read() -> tuple[Table, Table | None]:
        data = read_data(table, screen, columns, cells, transform, batches)
        return data, read_cohort(cohort, data, columns, cells, screen)

    asked = values(method, transform, folds, given, permutations, resamples, planning, running)
    asked["center_batches"] = batches.center_batches
    if dry_run:
        from ..workflow import plan_selection

        with screen:
            data, _ = read()
            plan = plan_selection(data, fast=fast, progress=screen.progress, **asked)
        screen.show_plan(plan)
        return
    kept = {"force": force, "figures": figures}
    _select(read, out, text, screen, **kept, fast=fast, **asked, **values(logging, use))


def _select(
    read: Callable[[], tuple[Table, Table | None]],
    out: Path,
    text: str,
    screen: Screen,
    *,
    force: bool,
    figures: bool = False,
    **parameters: Any,
) -> None:
    """Read a table and perhaps a cohort, select, show what was found and write it."""
    from ..workflow import Selection, results_folder, select_panel

    with screen, results_folder(out, Selection, force=force) as folder:
        data, test = read()
        found = select_panel(
            data,
            test=test,
            command=text,
            progress=screen.progress,
            on_panel=screen.show_panel,
            **parameters,
        )
        screen.show_estimate(found.document)
        with screen.stage("writing the page"):
            found.write(folder, figures=figures)
    screen.finish(found.document, out, text)


# Options that a table which stays on disk can use.
_ON_DISK = {
    "target", "positive", "id", "group", "drop", "keep", "layer", "n_features", "must", "ban",
    "costs", "q", "tau", "pool", "n_deltas", "rule", "folds", "random_state", "n_jobs",
}  # fmt: skip


def _select_lazily(
    path: Path,
    scheduler: str,
    refused: list[str],
    columns: Columns,
    cells: Cells,
    method: Method,
    running: Running,
    text: str,
    screen: Screen,
    *,
    out: Path,
    force: bool,
) -> None:
    from ..io import InputError, open_table
    from ..workflow import LazySelection, results_folder, select_lazily

    if refused:
        raise InputError(
            f"{flag(refused[0])} does not go with --dask", where=path.name, remedy="leave it out"
        )
    with screen, results_folder(out, LazySelection, force=force) as folder:
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
            command=text,
            random_state=running.random_state,
            **values(method),
        )
        found.write(folder)
    names = [row["feature"] for row in found.document["panel"]]
    shown = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    screen.say(f"Panel of {len(names)}: {shown}")
    for sentence in found.document["skipped"]:
        screen.say(f"Left out: {sentence}")
    text = f"{text} --out {shlex.quote(str(out))}"
    screen.say(f"Results: {out.resolve()}", style="bold")
    screen.say(f"Repeat: {as_called(text)}")
    screen.give({**found.document, "out": str(out.resolve()), "command": text})


@command
def demo(
    running: Running,
    showing: Showing,
    out: Out = Path("demo-report"),
    force: Force = False,
    figures: Figures = False,
    fast: Annotated[bool, typer.Option("--fast", help="Skip what takes long.")] = False,
) -> None:
    """Run select on the breast cancer data that come with the package.

    Settled for less than a minute: 2 repeats instead of 5, and 20 half samples instead of 50.
    """
    from ..workflow import command_of, demo_table

    screen = Screen.of(showing)

    def read() -> tuple[Table, None]:
        data = demo_table()
        screen.show_table(data)
        return data, None

    text = spell("demo", None, running, fast=fast)
    # its own results are made again as often as one likes
    own = (command_of(out) or "").startswith("sparsegsvp demo")
    settled: dict[str, Any] = {"repeats": 2, "resamples": 20}
    kept = {"force": force or own, "figures": figures}
    _select(read, out, text, screen, **kept, fast=fast, **settled, **values(running))


@command
def look(table: TablePath, showing: Showing, cells: Opening) -> None:
    """Show what is in a file, and which columns may hold the classes."""
    from ..io import preview_table

    screen = Screen.of(showing)
    found = preview_table(table, **values(cells))
    screen.show_preview(found)
    screen.give(found.to_dict())


@command
def app(
    showing: Showing,
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

    screen = Screen.of(showing)

    def announce(address: str) -> None:
        screen.say(f"Open {address}", style="bold")
        screen.say(f"Runs are kept in {folder.resolve()}. Ctrl-C ends the server.")
        screen.give({"address": address, "folder": str(folder.resolve())})
        if browser:
            import webbrowser

            webbrowser.open(address)

    most = machine_memory() if memory is None else int(memory * 2**30)
    serve(folder.resolve(), port=port, memory=most or None, announce=announce)
