"""What commands do before their work: read tables and cohorts, check logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .command import values
from .options import Batches, Cells, Cohort, Columns, Logging, Transform
from .screen import Screen

if TYPE_CHECKING:
    from ..io import Table


def read_data(
    path: Path,
    screen: Screen,
    columns: Columns,
    cells: Cells,
    transform: Transform,
    batches: Batches | None = None,
) -> Table:
    """Read the table, show that it is being read, and say what was read."""
    from ..io import listed_names, read_table

    options = {**values(columns, cells), "drop": tuple(columns.drop or ())}
    options["keep"] = tuple(columns.keep or ())
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


def read_cohort(
    cohort: Cohort, data: Table, columns: Columns, cells: Cells, screen: Screen
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
            categorical=tuple(data.categories),
            labels=cohort.test_labels,
            on=None if cohort.test_labels is None else columns.on,
            **values(cells),
        )
        test = check_cohort(test, data)
    for sentence in about_cohort(test):
        screen.say(f"cohort: {sentence}")
    return test


def about_cohort(table: Table) -> list[str]:
    """Return what was read; which class is of interest is the model's matter."""
    counts = ", ".join(f"{n} '{label}'" for label, n in table.class_counts().items())
    return [table.record[0], f"labels in '{table.target}': {counts}", *table.record[2:]]


def check_log(logging: Logging, out: Path | None) -> None:
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
