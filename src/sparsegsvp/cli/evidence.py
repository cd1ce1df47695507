"""Commands that weigh methods: evaluate, compare and reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from .command import Groups, command, spell, values
from .options import (
    Batches,
    Cells,
    Columns,
    DryRun,
    Folds,
    Force,
    Given,
    Logging,
    MaybeOut,
    Method,
    Out,
    Permutations,
    Running,
    Showing,
    TablePath,
    Transform,
)
from .reading import check_log, read_data
from .screen import Screen, as_called, summary


@command
def evaluate(
    table: TablePath,
    columns: Columns,
    batches: Batches,
    cells: Cells,
    method: Method,
    transform: Transform,
    folds: Folds,
    given: Given,
    permutations: Permutations,
    running: Running,
    logging: Logging,
    showing: Showing,
    groups: Groups,
    out: MaybeOut = None,
    force: Force = False,
    dry_run: DryRun = False,
    name: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="GSVPSVMCV (what select runs) or a method of compare (compare --list).",
            rich_help_panel="Method",
        ),
    ] = "GSVPSVMCV",
    full_permutation: Annotated[
        bool,
        typer.Option(
            "--full-permutation",
            help="Tune inside every permutation; slow.",
            rich_help_panel="Estimate",
        ),
    ] = False,
) -> None:
    """Estimate by nested cross-validation how well a method predicts."""
    from ..workflow import EvaluatedMethod, evaluate_table, plan_evaluation, results_folder

    check_log(logging, out)
    screen = Screen.of(showing)
    other = None if name == "GSVPSVMCV" else name
    text = spell("evaluate", table, *groups, method=other, full_permutation=full_permutation)
    asked: dict[str, Any] = {"method": name, "full_permutation": full_permutation}
    asked |= {"progress": screen.progress}
    asked |= values(method, transform, folds, given, permutations, running)
    asked["center_batches"] = batches.center_batches
    if dry_run:
        with screen:
            plan = plan_evaluation(
                read_data(table, screen, columns, cells, transform, batches), **asked
            )
        screen.show_plan(plan)
        return
    with screen, results_folder(out, EvaluatedMethod, force=force) as folder:
        data = read_data(table, screen, columns, cells, transform, batches)
        found = evaluate_table(data, command=text, **asked, **values(logging))
        screen.show_estimate(found.document)
        if folder is not None:
            found.write(folder)
    where = None if out is None else str(out.resolve())
    if where is not None:
        screen.say(f"Results: {where}")
    screen.say(f"Repeat: {as_called(text)}")
    screen.give(summary(found.document, method=name, out=where, command=text))


def _list_methods(wanted: bool) -> None:
    """Print the methods of compare, a line each, before a table is asked for."""
    if not wanted:
        return
    from ..workflow import method_lines

    lines = method_lines()
    width = max(map(len, lines))
    for name, line in lines.items():
        print(f"{name:{width}}  {line}")
    raise typer.Exit


@command
def compare(
    table: TablePath,
    columns: Columns,
    cells: Cells,
    transform: Transform,
    folds: Folds,
    running: Running,
    logging: Logging,
    showing: Showing,
    groups: Groups,
    out: MaybeOut = None,
    force: Force = False,
    dry_run: DryRun = False,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="Only these, with commas between them.",
            rich_help_panel="Method",
        ),
    ] = None,
    listing: Annotated[
        bool,
        typer.Option(
            "--list",
            help="Show the methods there are, and stop.",
            is_eager=True,
            callback=_list_methods,
            show_default=False,
            rich_help_panel="Method",
        ),
    ] = False,
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
) -> None:
    """Compare methods of feature selection at equal panel sizes, on the same folds."""
    from ..workflow import ComparedMethods, compare_table, plan_comparison, results_folder

    check_log(logging, out)
    screen = Screen.of(showing)
    other = None if sizes == "2,4,8,16,32" else sizes
    text = spell("compare", table, *groups, method=methods, sizes=other, time_limit=time_limit)
    named = [name for part in methods or () for name in part.split(",")]
    asked: dict[str, Any] = {"methods": named, "sizes": _sizes(sizes)}
    asked |= {"time_limit": time_limit, "progress": screen.progress}
    asked |= values(transform, folds, running)
    if dry_run:
        with screen:
            plan = plan_comparison(read_data(table, screen, columns, cells, transform), **asked)
        screen.show_plan(plan)
        return
    with screen, results_folder(out, ComparedMethods, force=force) as folder:
        data = read_data(table, screen, columns, cells, transform)
        found = compare_table(data, command=text, **asked, **values(logging))
        if folder is not None:
            found.write(folder)
    screen.show_comparison(found.document)
    where = None if out is None else str(out.resolve())
    if out is not None:
        screen.say(f"Page: {(out / 'comparison.html').resolve()}", style="bold")
    screen.say(f"Repeat: {as_called(text)}")
    screen.give({"out": where, "command": text, **found.document["comparison"]})


@command
def reproduce(
    running: Running,
    showing: Showing,
    which: Annotated[
        str, typer.Argument(metavar="[breast|ovarian|all]", help="Which data.")
    ] = "breast",
    data: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The ovarian data; SPARSEGSVP_DATA by default."),
    ] = None,
    out: Out = Path("sparsegsvp-reproduction"),
) -> None:
    """Rebuild the tables and figures of the paper, published numbers beside obtained ones.

    Finished experiments are kept in DIR: an interrupted run continues where it stopped.
    """
    from ..io import InputError
    from ..io.errors import suggestion
    from ..reproduce import reproduce as run_reproduce

    if which not in ("breast", "ovarian", "all"):
        raise InputError(
            f"there is no '{which}' to reproduce",
            remedy=suggestion(which, ["breast", "ovarian", "all"]),
        )
    screen = Screen.of(showing)
    with screen:
        made = run_reproduce(
            cast(Literal["breast", "ovarian", "all"], which),
            data,
            out,
            screen.progress,
            n_jobs=running.n_jobs,
        )
    screen.say(f"Page: {made.page.resolve()}", style="bold")
    screen.give(
        {
            "out": str(out.resolve()),
            "page": str(made.page.resolve()),
            "results": {name: str(path.resolve()) for name, path in made.results.items()},
        }
    )


def _sizes(text: str) -> list[int]:
    from ..io import InputError

    try:
        return [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(
            f"--sizes is '{text}'", remedy="write whole numbers and commas, such as 2,4,8"
        ) from None
