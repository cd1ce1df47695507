"""The options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_READ = "Reading"
_METHOD = "Method"
_ESTIMATE = "Estimate"
_GENERAL = "General"

TablePath = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        show_default=False,
        help="CSV, TSV (also .gz), Excel, Parquet, ARFF, NPZ or .h5ad; samples in rows.",
    ),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        show_default=False,
        help="Class labels.",
        rich_help_panel=_READ,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="The class of interest.", rich_help_panel=_READ),
]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Sample identifiers.", rich_help_panel=_READ),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Patients, sites or batches that must not be split between training and test.",
        rich_help_panel=_READ,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Leave out; may be repeated.", rich_help_panel=_READ),
]
Labels = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Labels from a second file.", rich_help_panel=_READ),
]
On = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Column of identifiers in --labels.", rich_help_panel=_READ),
]
Transpose = Annotated[
    bool,
    typer.Option(
        "--transpose", help="Features are in rows, samples in columns.", rich_help_panel=_READ
    ),
]
Layer = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Layer of an .h5ad file.", rich_help_panel=_READ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of a workbook.", rich_help_panel=_READ),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="Decimal mark, if it cannot be told.", rich_help_panel=_READ),
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="CHAR", help="Separator, if it cannot be told.", rich_help_panel=_READ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="[SCHEDULER]",
        help="Leave TABLE (a Parquet folder, Zarr store or .h5ad) on disk and read it in chunks: "
        "on threads, synchronous, distributed, or at an address.",
        rich_help_panel=_READ,
    ),
]
NFeatures = Annotated[
    int | None,
    typer.Option("--n-features", metavar="K", help="At most K features.", rich_help_panel=_METHOD),
]
Q = Annotated[
    list[float] | None,
    typer.Option(
        "--q",
        help="Exponent of the penalty, 0 < q <= 1; repeat to choose among several.",
        rich_help_panel=_METHOD,
    ),
]
Tau = Annotated[
    list[float] | None,
    typer.Option(
        "--tau",
        help="Floor on squared distances; repeat to choose among several.",
        rich_help_panel=_METHOD,
    ),
]
Pool = Annotated[
    list[float] | None,
    typer.Option(
        "--pool",
        help="Shrinkage of the classes' spreads, 0 to 1; repeatable.",
        rich_help_panel=_METHOD,
    ),
]
Deltas = Annotated[int, typer.Option(help="Penalties tried on each path.", rich_help_panel=_METHOD)]
Rule = Annotated[
    str,
    typer.Option(
        help="best, or 1se for the smallest panel within one standard error.",
        rich_help_panel=_METHOD,
    ),
]
Impute = Annotated[
    str,
    typer.Option(help="median (of the training part) or none.", rich_help_panel=_METHOD),
]
TakeLog2 = Annotated[
    bool,
    typer.Option("--log2", help="Take log2(max(x, floor)) first.", rich_help_panel=_METHOD),
]
Floor = Annotated[
    float,
    typer.Option(
        help="Floor of --log2; raw microarray intensities often use 16.", rich_help_panel=_METHOD
    ),
]
Folds = Annotated[int, typer.Option(help="Outer folds.", rich_help_panel=_ESTIMATE)]
Repeats = Annotated[
    int, typer.Option(help="Repeats of the outer folds.", rich_help_panel=_ESTIMATE)
]
Permutations = Annotated[
    int,
    typer.Option(help="Draws of the permutation test; 0 leaves it out.", rich_help_panel=_ESTIMATE),
]
Resamples = Annotated[
    int,
    typer.Option(help="Half samples for stability; 0 leaves it out.", rich_help_panel=_ESTIMATE),
]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", rich_help_panel=_GENERAL)]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        help="Processes; -1 for one per core. Changes no result.",
        rich_help_panel=_GENERAL,
    ),
]
Log = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Append finished work here as it comes.", rich_help_panel=_GENERAL
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue --log where it ends.", rich_help_panel=_GENERAL),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="Print nothing but errors.", rich_help_panel=_GENERAL),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object and nothing else.", rich_help_panel=_GENERAL
    ),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_GENERAL),
]
