"""The options of the command line, each defined once, in groups that commands share.

A group is a dataclass whose fields are options: type, flags and help stand in the annotation,
the default is the field's. A command takes a group by naming it among its parameters; `command`
has what makes options of it.
"""

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


def _option(panel: str | None, help: str, *flags: str, **more: Any) -> Any:
    return typer.Option(*flags, help=help, rich_help_panel=panel, **more)


TablePath = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        show_default=False,
        help="CSV, TSV (also .gz), GEO series matrix, Excel, Parquet, ARFF, NPZ or .h5ad.",
    ),
]
Out = Annotated[Path, _option(None, "Folder for the results.", "--out", "-o", metavar="DIR")]
MaybeOut = Annotated[
    Path | None, _option(None, "Folder for the results.", "--out", "-o", metavar="DIR")
]
Force = Annotated[
    bool, _option(_GENERAL, "Replace the results of an earlier run.", "--force", show_default=False)
]
Figures = Annotated[
    bool,
    _option(
        _GENERAL, "Write every figure too, as SVG, PNG and CSV, into DIR/figures.", "--figures",
        show_default=False,
    ),
]  # fmt: skip
DryRun = Annotated[
    bool,
    _option(
        _GENERAL, "Show the columns and an estimate of the time, and stop.", "--dry-run",
        show_default=False,
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Opening:
    """What a file does not say of itself."""

    layer: Annotated[str | None, _option(_READ, "Layer of an .h5ad file.", metavar="NAME")] = None
    sheet: Annotated[str | None, _option(_READ, "Sheet of a workbook.", metavar="NAME")] = None
    separator: Annotated[
        str | None, _option(_READ, "Separator, if it cannot be told.", metavar="CHAR")
    ] = None
    decimal: Annotated[
        str | None, _option(_READ, "Decimal mark, if it cannot be told.", metavar="MARK")
    ] = None


@dataclass(frozen=True)
class Cells(Opening):
    """How the cells of a file are laid out."""

    id: Annotated[
        str | None, _option(_READ, "Column with the names of samples.", metavar="COLUMN")
    ] = None
    transpose: Annotated[
        bool | None,
        _option(
            _READ,
            "Features are in rows, samples in columns; found out where the names tell.",
            "--transpose/--no-transpose",
            show_default=False,
        ),
    ] = None
    na: Annotated[
        str | None,
        _option(
            _READ,
            "Codes for missing values, with commas between them, besides the usual ones such as "
            "NA, n.d. and <LOD.",
            metavar="CODES",
        ),
    ] = None
    collapse: Annotated[
        str | None,
        _option(
            _READ,
            "Make one feature of those with the same name: their mean, the one with the largest "
            "mean (max), or the first.",
            metavar="mean|max|first",
        ),
    ] = None


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are for."""

    target: Annotated[
        str,
        _option(
            _READ,
            "Column with the class labels.",
            "--target",
            "-t",
            metavar="COLUMN",
            show_default=False,
        ),
    ]
    positive: Annotated[str | None, _option(_READ, "The class of interest.", metavar="LABEL")] = (
        None
    )
    group: Annotated[
        str | None,
        _option(
            _READ,
            "Patients, sites or batches that must not be split between training and test.",
            metavar="COLUMN",
        ),
    ] = None
    drop: Annotated[
        list[str] | None, _option(_READ, "Columns to leave out.", metavar="COLUMN[,COLUMN...]")
    ] = None
    keep: Annotated[
        list[str] | None,
        _option(
            _READ,
            "Features, although they look clinical or technical; commas between them.",
            metavar="COLUMNS",
        ),
    ] = None
    labels: Annotated[
        Path | None, _option(_READ, "A second file that has the labels.", metavar="FILE")
    ] = None
    on: Annotated[
        str | None, _option(_READ, "Column with the names of samples in --labels.", metavar="ID")
    ] = None


@dataclass(frozen=True)
class Batches:
    """What else is known of the samples: where or when they were measured, age and sex."""

    batch: Annotated[
        list[str] | None,
        _option(
            _READ,
            "Plates, days or sites, to be audited: does the panel show them instead of the "
            "class? May be repeated.",
            metavar="COLUMN",
        ),
    ] = None
    center_batches: Annotated[
        bool,
        _option(
            _METHOD,
            "Subtract the mean of each batch (of the first --batch) inside every fold. Needs the "
            "classes mixed alike in all batches; the model then predicts whole batches only.",
            "--center-batches",
            show_default=False,
        ),
    ] = False
    adjust: Annotated[
        list[str] | None,
        _option(
            _READ,
            "Age, sex and the like, in the decision in every fold: what does the panel add to "
            "them? Commas between them, or @FILE.",
            metavar="COLUMNS",
        ),
    ] = None
    categorical: Annotated[
        list[str] | None,
        _option(
            _READ,
            "Categories, text or codes, that may be chosen: all levels of a column or none. Those "
            "of --adjust are in every panel. Commas between them, or @FILE.",
            metavar="COLUMNS",
        ),
    ] = None


@dataclass(frozen=True)
class Transform:
    """What is done to the values first."""

    log2: Annotated[bool, _option(_METHOD, "Take logarithms first.", "--log2")] = False
    floor: Annotated[
        float,
        _option(_METHOD, "Smaller values count as this in --log2; 16 is usual for microarrays."),
    ] = 1.0


@dataclass(frozen=True)
class Method:
    """What the search chooses from, and how."""

    n_features: Annotated[int | None, _option(_METHOD, "Exactly K features.", metavar="K")] = None
    must: Annotated[
        list[str] | None,
        _option(
            _METHOD,
            "In every panel; names, commas between them, or @FILE with one in each line.",
            metavar="NAMES",
        ),
    ] = None
    ban: Annotated[
        list[str] | None, _option(_METHOD, "In no panel; names or @FILE.", metavar="NAMES")
    ] = None
    costs: Annotated[
        Path | None,
        _option(
            _METHOD,
            "What features cost, in place of 1: a name and a number in each line.",
            metavar="FILE",
        ),
    ] = None
    q: Annotated[
        list[float],
        _option(
            _ADVANCED,
            "Shape of the penalty, above 0 and up to 1: smaller values give fewer, larger weights. "
            "Repeat to choose among several.",
        ),
    ] = dataclasses.field(default_factory=lambda: [1.0])
    tau: Annotated[
        list[float] | None,
        _option(
            _ADVANCED,
            "Added to squared distances, so that a panel cannot look perfect by chance; larger "
            "values weigh features one by one. Repeat to choose among several.",
        ),
    ] = None
    pool: Annotated[
        list[float] | None,
        _option(
            _ADVANCED,
            "How far the spread of each class is drawn to the common one, 0 to 1; repeatable.",
        ),
    ] = None
    n_deltas: Annotated[int, _option(_ADVANCED, "Steps from one feature to many.", "--deltas")] = 30
    rule: Annotated[
        str,
        _option(
            _METHOD,
            "How small: paired, the smallest panel that cannot be told from the best; best; or "
            "1se, the smallest within one standard error.",
        ),
    ] = "paired"
    impute: Annotated[
        str, _option(_METHOD, "Fill gaps with the median (of the training part), or none.")
    ] = "median"


@dataclass(frozen=True)
class Folds:
    """The outer folds."""

    folds: Annotated[int, _option(_ESTIMATE, "Parts of which each is kept out once.")] = 5
    repeats: Annotated[int, _option(_ESTIMATE, "How often that is repeated.")] = 5


@dataclass(frozen=True)
class Given:
    """Another panel, to be scored beside the selection."""

    panel: Annotated[
        list[str] | None,
        _option(
            _ESTIMATE,
            "Score this panel too, on the same folds, and its difference to the selection; names "
            "or @FILE. Called after the fact: too good if it was chosen with these samples.",
            metavar="NAMES",
        ),
    ] = None
    published: Annotated[
        bool,
        _option(
            _ESTIMATE,
            "The --panel was chosen elsewhere, without any of these samples.",
            "--published",
            show_default=False,
        ),
    ] = False


@dataclass(frozen=True)
class Permutations:
    """The permutation test."""

    permutations: Annotated[
        int, _option(_ESTIMATE, "Tables with shuffled labels to test against; 0 for none.")
    ] = 99
    max_permutations: Annotated[
        int,
        _option(
            _ADVANCED,
            "More draws, up to this many, where 99 leave the answer open (p between 0.01 and "
            "0.1); 0 for none.",
        ),
    ] = 999


@dataclass(frozen=True)
class Resamples:
    """Stability in half samples."""

    resamples: Annotated[
        int, _option(_ESTIMATE, "Random halves to select from anew, for stability; 0 for none.")
    ] = 50


@dataclass(frozen=True)
class Planning:
    """What more samples would bring."""

    plan: Annotated[
        bool,
        _option(
            _ESTIMATE,
            "Measure growing parts of the samples: would more of them help?",
            "--plan",
            show_default=False,
        ),
    ] = False


@dataclass(frozen=True)
class Cohort:
    """An independent cohort."""

    test: Annotated[
        Path | None, _option(_ESTIMATE, "An independent cohort to score.", metavar="FILE")
    ] = None
    test_labels: Annotated[
        Path | None, _option(_ESTIMATE, "Labels of --test, if in a second file.", metavar="FILE")
    ] = None


@dataclass(frozen=True)
class Use:
    """Where a panel is to be used."""

    prevalence: Annotated[
        float | None,
        _option(
            _ESTIMATE,
            "Share of the positive class where the panel is used, for predictive values and the "
            "decision curve.",
            metavar="P",
        ),
    ] = None


@dataclass(frozen=True)
class Running:
    """Seed and processes."""

    random_state: Annotated[int, _option(_GENERAL, "Seed of all random choices.", "--seed")] = 0
    n_jobs: Annotated[
        int,
        _option(_GENERAL, "Processes; -1 for one per core. Changes no result.", "--jobs", "-j"),
    ] = -1


@dataclass(frozen=True)
class Logging:
    """A log that an interrupted run continues from."""

    log: Annotated[
        Path | None, _option(_GENERAL, "Append finished work here as it comes.", metavar="FILE")
    ] = None
    resume: Annotated[bool, _option(_GENERAL, "Continue --log where it ends.", "--resume")] = False


@dataclass(frozen=True)
class Showing:
    """What is printed."""

    quiet: Annotated[bool, _option(_GENERAL, "Print nothing but errors.", "--quiet")] = False
    json: Annotated[
        bool, _option(_GENERAL, "Print one JSON object and nothing else.", "--json")
    ] = False
    debug: Annotated[bool, _option(_GENERAL, "Show the traceback of an error.", "--debug")] = False
    progress_file: Annotated[
        Path | None,
        _option(
            _GENERAL,
            "Append how far the run has come, a JSON object in each line, for programs that watch.",
            metavar="FILE",
        ),
    ] = None


GROUPS = tuple(
    kind
    for kind in list(vars().values())
    if isinstance(kind, type) and dataclasses.is_dataclass(kind)
)
