"""The options of the command line, each defined once, in groups that commands share.

A group is a dataclass whose fields are options: the field's name is the parameter of the library,
its type and default are the option's. A command takes a group by naming it in `command.command`.
"""
# ruff: noqa: RUF009  (each call in a class below makes the field that it stands for)

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

_READ = "Reading"
_METHOD = "Method"
_ESTIMATE = "Estimate"
_GENERAL = "General"
_ADVANCED = "Advanced"
_REQUIRED = dataclasses.MISSING


def _option(panel: str, help: str, *flags: str, default: Any = None, **more: Any) -> Any:
    """Make a field that is an option; without flags, its name with dashes is the only one."""
    option = typer.Option(*flags, help=help, rich_help_panel=panel, **more)
    metadata = {"option": option, "flags": flags}
    if isinstance(default, list):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _switch(panel: str, help: str, flag: str) -> Any:
    """Make a field that is off unless its flag is given."""
    return _option(panel, help, flag, default=False, show_default=False)


def _flag(flag: str, help: str) -> Any:
    """Make an option of a single command that is off unless it is given."""
    return typer.Option(flag, help=help, rich_help_panel=_GENERAL, show_default=False)


TablePath = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        show_default=False,
        help="CSV, TSV (also .gz), GEO series matrix, Excel, Parquet, ARFF, NPZ or .h5ad.",
    ),
]
_OUT = typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")
Out = Annotated[Path, _OUT]
MaybeOut = Annotated[Path | None, _OUT]
Force = Annotated[bool, _flag("--force", "Replace the results of an earlier run.")]
Figures = Annotated[
    bool, _flag("--figures", "Write every figure too, as SVG, PNG and CSV, into DIR/figures.")
]
DryRun = Annotated[
    bool, _flag("--dry-run", "Show the columns and an estimate of the time, and stop.")
]


@dataclass(frozen=True)
class Opening:
    """What a file does not say of itself."""

    layer: str | None = _option(_READ, "Layer of an .h5ad file.", metavar="NAME")
    sheet: str | None = _option(_READ, "Sheet of a workbook.", metavar="NAME")
    separator: str | None = _option(_READ, "Separator, if it cannot be told.", metavar="CHAR")
    decimal: str | None = _option(_READ, "Decimal mark, if it cannot be told.", metavar="MARK")


@dataclass(frozen=True)
class Cells(Opening):
    """How the cells of a file are laid out."""

    id: str | None = _option(_READ, "Column with the names of samples.", metavar="COLUMN")
    transpose: bool | None = _option(
        _READ,
        "Features are in rows, samples in columns; found out where the names tell.",
        "--transpose/--no-transpose",
        show_default=False,
    )
    na: str | None = _option(
        _READ,
        "Codes for missing values, with commas between them, besides the usual ones such as "
        "NA, n.d. and <LOD.",
        metavar="CODES",
    )
    collapse: str | None = _option(
        _READ,
        "Make one feature of those with the same name: their mean, the one with the largest "
        "mean (max), or the first.",
        metavar="mean|max|first",
    )


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are for."""

    target: str = _option(
        _READ,
        "Column with the class labels.",
        "--target",
        "-t",
        metavar="COLUMN",
        show_default=False,
        default=_REQUIRED,
    )
    positive: str | None = _option(_READ, "The class of interest.", metavar="LABEL")
    group: str | None = _option(
        _READ,
        "Patients, sites or batches that must not be split between training and test.",
        metavar="COLUMN",
    )
    drop: list[str] | None = _option(_READ, "Columns to leave out.", metavar="COLUMN[,COLUMN...]")
    keep: list[str] | None = _option(
        _READ,
        "Features, although they look clinical or technical; commas between them.",
        metavar="COLUMNS",
    )
    labels: Path | None = _option(_READ, "A second file that has the labels.", metavar="FILE")
    on: str | None = _option(_READ, "Column with the names of samples in --labels.", metavar="ID")


@dataclass(frozen=True)
class Batches:
    """What else is known of the samples: where or when they were measured, age and sex."""

    batch: list[str] | None = _option(
        _READ,
        "Plates, days or sites, to be audited: does the panel show them instead of the class? "
        "May be repeated.",
        metavar="COLUMN",
    )
    center_batches: bool = _switch(
        _METHOD,
        "Subtract the mean of each batch (of the first --batch) inside every fold. Needs the "
        "classes mixed alike in all batches; the model then predicts whole batches only.",
        "--center-batches",
    )
    adjust: list[str] | None = _option(
        _READ,
        "Age, sex and the like, in the decision in every fold: what does the panel add to them? "
        "Commas between them, or @FILE.",
        metavar="COLUMNS",
    )
    categorical: list[str] | None = _option(
        _READ,
        "Categories, text or codes, that may be chosen: all levels of a column or none. Those of "
        "--adjust are in every panel. Commas between them, or @FILE.",
        metavar="COLUMNS",
    )


@dataclass(frozen=True)
class Transform:
    """What is done to the values first."""

    log2: bool = _option(_METHOD, "Take logarithms first.", "--log2", default=False)
    floor: float = _option(
        _METHOD, "Smaller values count as this in --log2; 16 is usual for microarrays.", default=1.0
    )


@dataclass(frozen=True)
class Method:
    """What the search chooses from, and how."""

    n_features: int | None = _option(_METHOD, "Exactly K features.", metavar="K")
    must: list[str] | None = _option(
        _METHOD,
        "In every panel; names, commas between them, or @FILE with one in each line.",
        metavar="NAMES",
    )
    ban: list[str] | None = _option(_METHOD, "In no panel; names or @FILE.", metavar="NAMES")
    costs: Path | None = _option(
        _METHOD,
        "What features cost, in place of 1: a name and a number in each line.",
        metavar="FILE",
    )
    q: list[float] = _option(
        _ADVANCED,
        "Shape of the penalty, above 0 and up to 1: smaller values give fewer, larger weights. "
        "Repeat to choose among several.",
        default=[1.0],
    )
    tau: list[float] | None = _option(
        _ADVANCED,
        "Added to squared distances, so that a panel cannot look perfect by chance; larger values "
        "weigh features one by one. Repeat to choose among several.",
    )
    pool: list[float] | None = _option(
        _ADVANCED,
        "How far the spread of each class is drawn to the common one, 0 to 1; repeatable.",
    )
    n_deltas: int = _option(_ADVANCED, "Steps from one feature to many.", "--deltas", default=30)
    rule: str = _option(
        _METHOD,
        "How small: paired, the smallest panel that cannot be told from the best; best; or 1se, "
        "the smallest within one standard error.",
        default="paired",
    )
    impute: str = _option(
        _METHOD, "Fill gaps with the median (of the training part), or none.", default="median"
    )


@dataclass(frozen=True)
class Folds:
    """The outer folds."""

    folds: int = _option(_ESTIMATE, "Parts of which each is kept out once.", default=5)
    repeats: int = _option(_ESTIMATE, "How often that is repeated.", default=5)


@dataclass(frozen=True)
class Given:
    """Another panel, to be scored beside the selection."""

    panel: list[str] | None = _option(
        _ESTIMATE,
        "Score this panel too, on the same folds, and its difference to the selection; names or "
        "@FILE. Called after the fact: too good if it was chosen with these samples.",
        metavar="NAMES",
    )
    published: bool = _switch(
        _ESTIMATE, "The --panel was chosen elsewhere, without any of these samples.", "--published"
    )


@dataclass(frozen=True)
class Permutations:
    """The permutation test."""

    permutations: int = _option(
        _ESTIMATE, "Tables with shuffled labels to test against; 0 for none.", default=99
    )
    max_permutations: int = _option(
        _ADVANCED,
        "More draws, up to this many, where 99 leave the answer open (p between 0.01 and 0.1); 0 "
        "for none.",
        default=999,
    )


@dataclass(frozen=True)
class Resamples:
    """Stability in half samples."""

    resamples: int = _option(
        _ESTIMATE, "Random halves to select from anew, for stability; 0 for none.", default=50
    )


@dataclass(frozen=True)
class Planning:
    """What more samples would bring."""

    plan: bool = _switch(
        _ESTIMATE, "Measure growing parts of the samples: would more of them help?", "--plan"
    )


@dataclass(frozen=True)
class Cohort:
    """An independent cohort."""

    test: Path | None = _option(_ESTIMATE, "An independent cohort to score.", metavar="FILE")
    test_labels: Path | None = _option(
        _ESTIMATE, "Labels of --test, if in a second file.", metavar="FILE"
    )


@dataclass(frozen=True)
class Use:
    """Where a panel is to be used."""

    prevalence: float | None = _option(
        _ESTIMATE,
        "Share of the positive class where the panel is used, for predictive values and the "
        "decision curve.",
        metavar="P",
    )


@dataclass(frozen=True)
class Running:
    """Seed and processes."""

    random_state: int = _option(_GENERAL, "Seed of all random choices.", "--seed", default=0)
    n_jobs: int = _option(
        _GENERAL, "Processes; -1 for one per core. Changes no result.", "--jobs", "-j", default=-1
    )


@dataclass(frozen=True)
class Logging:
    """A log that an interrupted run continues from."""

    log: Path | None = _option(_GENERAL, "Append finished work here as it comes.", metavar="FILE")
    resume: bool = _option(_GENERAL, "Continue --log where it ends.", "--resume", default=False)


@dataclass(frozen=True)
class Showing:
    """What is printed."""

    quiet: bool = _option(_GENERAL, "Print nothing but errors.", "--quiet", default=False)
    json: bool = _option(
        _GENERAL, "Print one JSON object and nothing else.", "--json", default=False
    )
    debug: bool = _option(_GENERAL, "Show the traceback of an error.", "--debug", default=False)
    progress_file: Path | None = _option(
        _GENERAL,
        "Append how far the run has come, a JSON object in each line, for programs that watch.",
        metavar="FILE",
    )


GROUPS = tuple(
    kind
    for kind in list(vars().values())
    if isinstance(kind, type) and dataclasses.is_dataclass(kind)
)
# The groups of `select` that say what is done, which the page in the browser sets too.
SELECTING = (
    Columns, Batches, Cells, Cohort, Use, Method, Transform, Folds, Given, Permutations, Resamples,
    Planning, Running,
)  # fmt: skip
