"""The commands: options in, words and files out. What they ask for is done by the workflow."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from .options import (
    Batches,
    Cohort,
    DryRun,
    Figures,
    Folds,
    Force,
    Given,
    Layout,
    Logging,
    MaybeOut,
    Method,
    Opening,
    Out,
    Permutations,
    Planning,
    Resamples,
    Roles,
    Running,
    Showing,
    TablePath,
    Transform,
    Use,
    changed,
    command,
    flag,
    spell,
    values,
)
from .screen import Screen, as_called, summary

if TYPE_CHECKING:
    from ..io import Table

# ------------------------------------------------------------------------------- panels


@command
def select(
    table: TablePath,
    roles: Roles,
    batches: Batches,
    layout: Layout,
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
    groups = (
        roles, batches, layout, cohort, use, method, transform, folds, given, permutations,
        resamples, planning, running, logging,
    )  # fmt: skip
    text = spell("select", table, *groups, fast=fast, dask=dask)
    if dask is not None:
        refused = [name for name, _ in changed(*groups) if name not in _ON_DISK]
        refused += ["fast"] if fast else []
        refused += ["dry_run"] if dry_run else []
        refused += ["figures"] if figures else []
        _select_lazily(
            table, dask, refused, roles, layout, method, running, text, screen, out=out, force=force
        )
        return
    _check_log(logging, out)

    def read() -> tuple[Table, Table | None]:
        data = _read(table, screen, roles, layout, transform, batches)
        return data, _read_cohort(cohort, data, roles, layout, screen)

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
    roles: Roles,
    layout: Layout,
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
            target=roles.target,
            group=roles.group,
            positive=roles.positive,
            id=layout.id,
            layer=layout.layer,
            drop=tuple(roles.drop or ()),
            keep=tuple(roles.keep or ()),
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
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model.skops file.")
    ],
    table: TablePath,
    layout: Layout,
    showing: Showing,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="CSV to write; stdout by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if there is one.")] = False,
    prevalence: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Share of the positive class where the model is used; moves probabilities and "
            "labels.",
        ),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The class of interest.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="COLUMN",
            help="True labels, if TABLE has them: says how well the model does here.",
        ),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON to write what --target shows into."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="A second model, to compare with the first on the same labelled samples: DeLong's "
            "test of the areas, McNemar's of the labels.",
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Batches of TABLE, for a model that centres them; else all samples are one.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Classify samples with a saved model; with --target, validate it on them.

    Only the columns of the model's panel are needed, in any order; others are ignored.
    """
    from ..io import (
        InputError,
        guess_positive,
        load_model,
        prepare_output,
        read_table,
        write_atomic,
    )
    from ..workflow import (
        compare_models,
        json_text,
        needed_features,
        predict_table,
        predictions_csv,
        validate_table,
    )

    screen = Screen.of(showing)
    for name, value in (("validation", validation), ("against", against)):
        if value is not None and target is None:
            raise InputError(
                f"{flag(name)} needs --target", remedy="name the column of true labels"
            )
    for path in (out, validation):
        if path is not None:
            prepare_output(path, force=force)
    fitted = load_model(model)
    second = None if against is None else load_model(against)
    names = needed_features(fitted)
    if second is not None:
        names += [name for name in needed_features(second) if name not in names]
    batches = () if batch is None else (batch,)
    data = read_table(table, target=target, features=names, batch=batches, **values(layout))
    said = data.record if target is None else _about_cohort(data)
    for sentence in said[1:]:  # the first is how much was read
        screen.remark(sentence)
    found = predict_table(fitted, data)
    if found.imputed:
        screen.remark(found.imputed_text())
    for note in (found.recalibrated, found.centred_text()):
        if note:
            screen.remark(f"note: {note}")
    if batch is not None and not found.centred:
        screen.remark("note: this model centres no batches, so --batch changes nothing")
    notice = found.shift_notice(None if target is None else data.labels)
    if notice is not None:
        screen.remark(f"note: {notice}")
    of_interest = positive or guess_positive(found.classes)
    shown = None
    if target is not None:
        shown = validate_table(found, data, positive=of_interest, prevalence=prevalence)
    paired = None
    if second is not None:
        paired = compare_models(found, predict_table(second, data), data, positive=of_interest)
    if prevalence is not None:
        found.set_prevalence(of_interest, prevalence)
        if positive is None:
            screen.remark(f"--prevalence is taken for '{of_interest}'; --positive names the other")
    text = predictions_csv(data, found)
    if out is not None:
        write_atomic(out, text)
        screen.say(f"{data.source}: predicted are {found.counts()}")
        screen.say(f"Predictions: {out.resolve()}")
    else:
        screen.pass_on(text)
    if shown is not None:
        screen.show_cohort(shown, moved=prevalence is not None, aside=out is None)
        for text in shown["remarks"]:
            screen.remark(f"note: {text}")
        if paired is not None:
            screen.show_paired(paired, aside=out is None)
        if validation is not None:
            more = {} if paired is None else {"against": paired}
            write_atomic(validation, json_text({**shown, **more}))
    screen.give(
        {
            "source": data.source,
            "digest": data.digest,
            "out": None if out is None else str(out.resolve()),
            "predictions": [str(label) for label in found.labels],
            "probabilities": None if found.proba is None else found.proba.tolist(),
            "classes": found.classes,
            "imputed": found.imputed,
            "recalibrated": found.recalibrated or None,
            "centred": found.centred_text() or None,
            "notices": [] if notice is None else [str(notice)],
            "validation": shown,
            "against": paired,
        }
    )


@command
def recalibrate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model.skops file.")
    ],
    layout: Layout,
    showing: Showing,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Model to write.")],
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", show_default=False, help="A cohort with labels."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="Class labels.")
    ] = None,
    prevalence: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Share of the positive class that probabilities are to be for."
        ),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The class of interest.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="What TABLE sets: the intercept of the log odds, or slope and intercept (slope)."
        ),
    ] = "intercept",
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if there is one.")] = False,
) -> None:
    """Fit a model's probabilities to a prevalence, or to a cohort with labels.

    Panel and ranking stay; probabilities and labels change, and are marked wherever they are used.
    """
    from ..io import (
        InputError,
        guess_positive,
        load_model,
        prepare_output,
        read_table,
        save_model,
    )
    from ..workflow import (
        needed_features,
        predict_table,
        recalibrate_model,
        recalibration_effect,
        recalibration_of,
        recalibration_text,
    )

    screen = Screen.of(showing)
    if (table is None) != (target is None):
        raise InputError("a cohort needs both TABLE and --target", remedy="give both, or neither")
    if table is None and method == "slope":
        raise InputError("--method slope needs TABLE", remedy="a prevalence alone sets no slope")
    prepare_output(out, force=force)
    fitted = load_model(model)
    data = None
    if table is not None:
        names = needed_features(fitted)
        data = read_table(table, target=target, features=names, **values(layout))
        for sentence in _about_cohort(data):
            screen.say(sentence)
        notice = predict_table(fitted, data).shift_notice(data.labels)
        if notice is not None:
            screen.say(f"note: {notice} No recalibration mends these.", style="yellow")
    of_interest = positive or guess_positive([str(c) for c in fitted.classes_])
    again = recalibrate_model(
        fitted, data, positive=of_interest, prevalence=prevalence, method=method
    )
    save_model(again, out)
    said = recalibration_text(again)
    screen.say(said[:1].upper() + said[1:])
    if positive is None:
        screen.say(f"The class of interest is '{of_interest}'; --positive names the other")
    done = recalibration_of(again)
    if data is not None and done is not None:
        effect = recalibration_effect(done)
        screen.say(effect[:1].upper() + effect[1:])
        screen.say("Test the new model on other samples than these: predict --target")
    screen.say(f"Model: {out.resolve()}")
    screen.give({"out": str(out.resolve()), "recalibrated": said, "recalibration": done})


# ------------------------------------------------------------------------------- looking


@command
def look(table: TablePath, showing: Showing, layout: Opening) -> None:
    """Show what is in a file, and which columns may hold the classes."""
    from ..io import preview_table

    screen = Screen.of(showing)
    found = preview_table(table, **values(layout))
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
    from ..io import need

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

    most = None if memory is None else int(memory * 2**30)
    serve(folder.resolve(), port=port, memory=most, announce=announce)


# ----------------------------------------------------------------------------- evidence


@command
def evaluate(
    table: TablePath,
    roles: Roles,
    batches: Batches,
    layout: Layout,
    method: Method,
    transform: Transform,
    folds: Folds,
    given: Given,
    permutations: Permutations,
    running: Running,
    logging: Logging,
    showing: Showing,
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

    _check_log(logging, out)
    screen = Screen.of(showing)
    text = spell(
        "evaluate", table, roles, batches, layout, method, transform, folds, given, permutations,
        running,
        method=None if name == "GSVPSVMCV" else name, full_permutation=full_permutation,
    )  # fmt: skip
    asked: dict[str, Any] = {"method": name, "full_permutation": full_permutation}
    asked |= {"progress": screen.progress}
    asked |= values(method, transform, folds, given, permutations, running)
    asked["center_batches"] = batches.center_batches
    if dry_run:
        with screen:
            plan = plan_evaluation(_read(table, screen, roles, layout, transform, batches), **asked)
        screen.show_plan(plan)
        return
    with screen, results_folder(out, EvaluatedMethod, force=force) as folder:
        data = _read(table, screen, roles, layout, transform, batches)
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
    roles: Roles,
    layout: Layout,
    transform: Transform,
    folds: Folds,
    running: Running,
    logging: Logging,
    showing: Showing,
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

    _check_log(logging, out)
    screen = Screen.of(showing)
    text = spell(
        "compare", table, roles, layout, transform, folds, running,
        method=methods, sizes=None if sizes == "2,4,8,16,32" else sizes, time_limit=time_limit,
    )  # fmt: skip
    named = [name for part in methods or () for name in part.split(",")]
    asked: dict[str, Any] = {"methods": named, "sizes": _sizes(sizes)}
    asked |= {"time_limit": time_limit, "progress": screen.progress}
    asked |= values(transform, folds, running)
    if dry_run:
        with screen:
            plan = plan_comparison(_read(table, screen, roles, layout, transform), **asked)
        screen.show_plan(plan)
        return
    with screen, results_folder(out, ComparedMethods, force=force) as folder:
        data = _read(table, screen, roles, layout, transform)
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


# ------------------------------------------------------------------------- what they share


def _read(
    path: Path,
    screen: Screen,
    roles: Roles,
    layout: Layout,
    transform: Transform,
    batches: Batches | None = None,
) -> Table:
    """Read the table, show that it is being read, and say what was read."""
    from ..io import read_table
    from ..io.text import listed_names

    options = {**values(roles, layout), "drop": tuple(roles.drop or ())}
    options["keep"] = tuple(roles.keep or ())
    more = batches or Batches()
    options["batch"] = tuple(more.batch or ())
    for name in ("adjust", "categorical"):
        options[name] = listed_names(getattr(more, name) or ())
    with screen.stage(f"reading {path.name}"):
        table = read_table(path, **options)
    table = table.without_notice("raw") if transform.log2 else table
    screen.show_table(table)
    screen.show_roles(table)
    return table


def _read_cohort(
    cohort: Cohort, data: Table, roles: Roles, layout: Layout, screen: Screen
) -> Table | None:
    """Read an independent cohort, if one is named: the same features, and known labels."""
    from ..io import check_cohort, read_table

    if cohort.test is None:
        return None
    with screen.stage(f"reading {cohort.test.name}"):
        test = read_table(
            cohort.test,
            target=data.target,
            features=data.feature_names,
            adjust=tuple(data.covariates),
            labels=cohort.test_labels,
            on=None if cohort.test_labels is None else roles.on,
            **values(layout),
        )
        test = check_cohort(test, data)
    for sentence in _about_cohort(test):
        screen.say(f"cohort: {sentence}")
    return test


def _about_cohort(table: Table) -> list[str]:
    """Return what was read; which class is of interest is the model's matter."""
    counts = ", ".join(f"{n} '{label}'" for label, n in table.class_counts().items())
    return [table.record[0], f"labels in '{table.target}': {counts}", *table.record[2:]]


def _sizes(text: str) -> list[int]:
    from ..io import InputError

    try:
        return [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(
            f"--sizes is '{text}'", remedy="write whole numbers and commas, such as 2,4,8"
        ) from None


def _check_log(logging: Logging, out: Path | None) -> None:
    """Refuse a log that cannot be written or continued, before any work is done."""
    from ..io import InputError, prepare_output

    if logging.resume and logging.log is None:
        raise InputError("--resume needs --log", remedy="name the file of the run to continue")
    if logging.log is None:
        return
    if out is not None and out.resolve() in logging.log.resolve().parents:
        raise InputError(
            "the log (--log) lies in the folder for the results (--out)",
            where=str(logging.log),
            remedy="put it beside the folder, which is written whole at the end",
        )
    if logging.log.is_file() and not logging.resume:
        raise InputError(
            "there is such a log already (--log)",
            where=str(logging.log),
            remedy="continue it with --resume, or choose another name",
        )
    prepare_output(logging.log, force=True)
