"""The six commands: select, predict, compare, reproduce, demo and app.

They parse options, print and write files; what they do is in `sparsegsvp.workflow`.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._threads import started_workers
from .._validate import need, suggestion
from ..io.errors import InputError
from .options import (
    COMMANDS,
    READING,
    ROLES,
    command,
    command_line,
    flag,
    reading_of,
    repeat_line,
    split_names,
)  # fmt: skip
from .screen import Screen

if TYPE_CHECKING:
    from ..io import Table

_STARTED = time.perf_counter()
TablePath = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        show_default=False,
        help="CSV, TSV (also .gz), GEO series matrix, Excel, Parquet or .h5ad.",
    ),
]
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model.skops file.")
]
_ELSEWHERE = {*READING, *ROLES, "test", "out", "force", "dry_run", "rungs"}
_ASKED = tuple(name for name in COMMANDS["select"] if name not in _ELSEWHERE)  # of select_panel


def _chosen(given: Mapping[str, Any], wanted: tuple[str, ...]) -> dict[str, Any]:
    """Return some of the options that a command was given."""
    return {name: given[name] for name in wanted if name in given}


def _read(path: Path, given: Mapping[str, Any], screen: Screen) -> Table:
    """Read a table, and show what was read and what its columns are for."""
    from ..io import read_table

    options = reading_of(given)
    with screen.stage(f"reading {path.name}"):
        table = read_table(path, **options)
    table = table.without_notice("raw") if given.get("log2") else table
    screen.show_table(table)
    screen.show_roles(table)
    return table


def _ask_for_target(name: str, path: Path, given: Mapping[str, Any], screen: Screen) -> None:
    """Show which columns may hold the classes, with the command for each, and end."""
    from .preview import find_targets

    with screen.stage(f"reading {path.name}"):
        candidates = find_targets(path, **_chosen(given, (*READING, "labels", "on")))
    asked = _chosen(given, COMMANDS[name])
    words = [
        shlex.join(["sparsegsvp", *command_line(name, [path], {**asked, "target": c.name})])
        for c in candidates
    ]
    screen.show_candidates(candidates, words)
    what, remedy = "it has to be said which column has the classes", "name it with {}"
    if not candidates:
        what = "no column looks like classes"
        remedy = f"name one with {{}}, or give a second file that has them with {flag('labels')}"
    raise InputError(what, where=path.name, remedy=remedy.format(flag("target")))


@command("select")
def select(table: TablePath, **given: Any) -> None:
    """Select a panel, estimate it honestly, and write a report.

    Writes a page, its numbers, tables and the model into DIR, all of them or none.
    """
    with Screen() as screen:
        if given["target"] is None:
            _ask_for_target("select", table, given, screen)
        if given["dry_run"]:
            _read(table, given, screen)
            screen.say("Nothing was run or written (--dry-run).")
            return
        with started_workers(given["n_jobs"]) as wait:
            _select("select", [table], given, screen, wait)


@command("demo", out=Path("demo-report"))
def demo(**given: Any) -> None:
    """Run select on the breast cancer data that come with the package."""
    from ..workflow import command_of

    # its own results are made again as often as one likes
    if (command_of(given["out"]) or "").startswith("sparsegsvp demo"):
        given["force"] = True
    with Screen() as screen, started_workers(given["n_jobs"]) as wait:
        _select("demo", [], given, screen, wait)


def _select(
    name: str, paths: list[Path], given: dict[str, Any], screen: Screen, wait: Callable[[], None]
) -> None:
    """Read a table and perhaps a cohort, select, show the result and write it."""
    with screen.stage("loading the library"):
        from ..workflow import Selection, demo_table, results_folder, select_panel
    loaded = time.perf_counter()
    repeat = repeat_line(name, paths, _chosen(given, COMMANDS[name]))
    with results_folder(given["out"], Selection, force=given["force"]) as folder:
        if paths:
            table = _read(paths[0], given, screen)
        else:
            table = demo_table()
            screen.show_table(table)
        test = _read_cohort(table, given, screen) if given.get("test") else None
        wait()
        read = time.perf_counter()
        selection = select_panel(
            table, test=test, command=repeat, progress=screen.progress, **_chosen(given, _ASKED)
        )
        selection.seconds["import"] = loaded - _STARTED
        selection.seconds["reading"] = read - loaded
        screen.show_selection(selection.document)
        with screen.stage("writing the page"):
            _import_skops()
            selection.write(folder, rungs=given.get("rungs", False))
    _finish(given["out"], repeat, screen)


def _import_skops() -> None:
    """Import skops without its list of scikit-learn's estimators, which costs half a second.

    Models are saved and loaded by a list of our own, and this program has no other use of skops.
    """
    import sklearn.utils

    gather = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = list
    try:
        with suppress(ImportError):  # saving and loading say what is missing
            import skops.io  # noqa: F401
    finally:
        sklearn.utils.all_estimators = gather


def _read_cohort(table: Table, given: Mapping[str, Any], screen: Screen) -> Table:
    """Read an independent cohort as the table was read: the same features, and known labels."""
    from ..workflow import read_cohort

    with screen.stage(f"reading {given['test'].name}"):
        cohort = read_cohort(given["test"], table, _chosen(given, READING))
    for sentence in cohort.record:
        screen.say(f"cohort: {sentence}")
    return cohort


def _finish(out: Path, repeat: str, screen: Screen) -> None:
    """Say where the page is, and how to repeat the run."""
    screen.say()
    screen.say(f"Page: {(out / 'index.html').resolve()}", style="bold")
    screen.say(f"Repeat: {screen.as_called(repeat)} --out {shlex.quote(str(out))}")


@command("predict")
def predict(
    model: ModelPath,
    table: TablePath,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="CSV to write; stdout by default."),
    ] = None,
    prevalence: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Share of the class of interest where the model is used, or 'training' for the "
            "class shares of the training samples: labels and probabilities are for these. By "
            "default for equal shares.",
        ),
    ] = None,
    **given: Any,
) -> None:
    """Classify samples with a saved model; with --target, say how well it does on them.

    Only the columns of the model's panel are needed, in any order; others are ignored.
    """
    from ..io import load_model, read_table
    from ..io.files import prepare_output, write_atomic
    from ..io.roles import guess_positive
    from ..report import describe_cohort
    from ..workflow import needed_features, predict_table, validate_table

    if out is not None:
        prepare_output(out, force=given["force"])
    _import_skops()
    fitted = load_model(model)
    with Screen() as screen:
        target = given["target"]
        data = read_table(
            table, features=needed_features(fitted), target=target, **_chosen(given, READING)
        )
        classes = [str(c) for c in fitted.classes_]
        of_interest = given["positive"] or (guess_positive(classes) if len(classes) == 2 else None)
        result = predict_table(fitted, data, prevalence=prevalence, positive=of_interest)
        for sentence in data.record[1:]:
            screen.remark(sentence)  # the first is how much was read
        for sentence in result.remarks():
            screen.remark(f"note: {sentence}")
        share = None if prevalence in (None, "training") else float(prevalence)
        if share is not None and given["positive"] is None:
            screen.remark(f"--prevalence is taken for '{of_interest}'; --positive names the other")
        text = result.csv()
        if out is None:
            screen.pass_on(text)
        else:
            write_atomic(out, text)
            screen.say(f"{data.source}: predicted are {result.counts()}")
            screen.say(f"Predictions: {out.resolve()}")
        if target is not None:
            cohort = validate_table(fitted, data, positive=of_interest, prevalence=share)
            screen.show_cohort(describe_cohort(cohort, source=data.source), aside=out is None)


@command("compare", out=Path("sparsegsvp-comparison"))
def compare(table: TablePath, **given: Any) -> None:
    """Compare methods of feature selection at equal panel sizes, on the same folds."""
    from ..workflow import ComparedMethods, compare_table, results_folder

    with Screen() as screen:
        if given["target"] is None:
            _ask_for_target("compare", table, given, screen)
        repeat = repeat_line("compare", [table], _chosen(given, COMMANDS["compare"]))
        sizes = _sizes(given["sizes"])
        with results_folder(given["out"], ComparedMethods, force=given["force"]) as folder:
            data = _read(table, given, screen)
            asked = ("log2", "floor", "folds", "repeats", "random_state", "n_jobs", "cache")
            result = compare_table(
                data,
                methods=split_names(given["methods"] or ()),
                sizes=sizes,
                command=repeat,
                progress=screen.progress,
                **_chosen(given, asked),
            )
            result.write(folder)
        screen.show_comparison(result.document, result.comparison)
        _finish(given["out"], repeat, screen)


def _sizes(text: str) -> list[int]:
    try:
        return [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(
            f"--sizes is '{text}'", remedy="write whole numbers and commas, such as 2,4,8"
        ) from None


@command("reproduce", out=Path("sparsegsvp-reproduction"))
def reproduce(
    which: Annotated[
        str, typer.Argument(metavar="[breast|ovarian|all]", help="Which data.")
    ] = "breast",
    data: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The ovarian data; SPARSEGSVP_DATA by default."),
    ] = None,
    **given: Any,
) -> None:
    """Rebuild the tables and figures of the paper, published numbers beside obtained ones.

    Finished experiments are kept in DIR: an interrupted run continues where it stopped.
    """
    from ..reproduce import reproduce as run_reproduce

    names = ["breast", "ovarian", "all"]
    if which not in names:
        raise InputError(f"there is no '{which}' to reproduce", remedy=suggestion(which, names))
    with Screen() as screen:
        chosen: Any = which
        made = run_reproduce(chosen, data, given["out"], screen.progress, n_jobs=given["n_jobs"])
        screen.say(f"Page: {made.page.resolve()}", style="bold")


@command("app")
def app(
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where runs are kept.")
    ] = Path("sparsegsvp-runs"),
    port: Annotated[int, typer.Option(metavar="N", help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Open a page in the browser: drop a table, look at it, run select, read the report.

    Everything stays on this machine.
    """
    for package in ("starlette", "uvicorn"):
        need(package, "app")
    from .server import serve

    screen = Screen()

    def announce(address: str) -> None:
        screen.say(f"Open {address}", style="bold")
        screen.say(f"Runs are kept in {folder.resolve()}. Ctrl-C ends the server.")
        if browser:
            import webbrowser

            webbrowser.open(address)

    serve(folder.resolve(), port=port, announce=announce)
