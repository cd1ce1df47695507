"""Commands that weigh methods: evaluate, compare and reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from ..io.errors import InputError, suggestion
from .command import Groups, command
from .job import Job, summary
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
from .screen import Screen


@command(
    Columns, Batches, Cells, Method, Transform, Folds, Given, Permutations, Running, Logging,
    Showing,
)  # fmt: skip
def evaluate(
    given: Groups,
    table: TablePath,
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
    from ..workflow import EvaluatedMethod, evaluate_table, plan_evaluation

    other = None if name == "GSVPSVMCV" else name
    job = Job("evaluate", table, given, out, method=other, full_permutation=full_permutation)
    job.check_log()
    asked = job.parameters(
        Method, Transform, Folds, Given, Permutations, Running,
        method=name, full_permutation=full_permutation,
    )  # fmt: skip
    if dry_run:
        job.show_plan(plan_evaluation, asked)
        return
    with job.results(EvaluatedMethod, force=force) as folder:
        data, _ = job.read()
        found = evaluate_table(data, command=job.command, **asked, **given.values(Logging))
        job.screen.show_estimate(found.document)
        if folder is not None:
            found.write(folder)
    shown = summary(found.document, method=name, out=job.place(), command=job.command_with_out)
    job.finish(shown, f"Results: {job.place()}", style="")


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


@command(Columns, Cells, Transform, Folds, Running, Logging, Showing)
def compare(
    given: Groups,
    table: TablePath,
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
    from ..workflow import ComparedMethods, compare_table, plan_comparison

    other = None if sizes == "2,4,8,16,32" else sizes
    job = Job("compare", table, given, out, method=methods, sizes=other, time_limit=time_limit)
    job.check_log()
    asked = job.parameters(
        Transform,
        Folds,
        Running,
        methods=[name for part in methods or () for name in part.split(",")],
        sizes=_sizes(sizes),
        time_limit=time_limit,
    )
    if dry_run:
        job.show_plan(plan_comparison, asked)
        return
    with job.results(ComparedMethods, force=force) as folder:
        data, _ = job.read()
        found = compare_table(data, command=job.command, **asked, **given.values(Logging))
        if folder is not None:
            found.write(folder)
    job.screen.show_comparison(found.document)
    shown = {"out": job.place(), "command": job.command_with_out, **found.document["comparison"]}
    job.finish(shown, f"Page: {job.place('comparison.html')}")


@command(Running, Showing)
def reproduce(
    given: Groups,
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
    from ..reproduce import reproduce as run_reproduce

    if which not in ("breast", "ovarian", "all"):
        raise InputError(
            f"there is no '{which}' to reproduce",
            remedy=suggestion(which, ["breast", "ovarian", "all"]),
        )
    screen = Screen.of(given[Showing])
    with screen:
        made = run_reproduce(
            cast(Literal["breast", "ovarian", "all"], which),
            data,
            out,
            screen.progress,
            n_jobs=given[Running].n_jobs,
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
    try:
        return [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(
            f"--sizes is '{text}'", remedy="write whole numbers and commas, such as 2,4,8"
        ) from None
