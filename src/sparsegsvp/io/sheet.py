"""Labels in a second file, matched with the samples of a table by identifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from .covariates import ADJUST
from .errors import InputError, listed, locating, one_line, option, quote, suggestion
from .formats import format_of, rows_of
from .guards import shown_name
from .labels import spelling_key
from .roles import names_in
from .rows import RawTable, Roles, batch_role, refuse_duplicates
from .text import ReadOptions, as_label


@dataclass(frozen=True)
class LabelSheet:
    """Labels in a second file: its columns as text, and the row of each identifier."""

    columns: dict[str, list[str | None]]
    rows: dict[str, int]
    on: str
    target: str
    source: str


def read_labels(file: Path, on: str | None, target: str | None, encoding: str | None) -> LabelSheet:
    """Read the file; its first column identifies the samples unless `on` is another."""
    with locating(file.name):
        with rows_of(file, ReadOptions(encoding=encoding))() as opened:
            names, lines = opened.names, [cells for _, cells in opened.rows]
        refuse_duplicates(names)
        on = names[0] if on is None else on
        columns = {
            name: [as_label(c[i], strip=name != target or name == on) for c in lines]
            for i, name in enumerate(names)
        }
        for name, role in ((on, "on"), (target, "target")):
            if name is not None and name not in columns:
                raise InputError(
                    f"there is no column {quote(name)} ({option(role)})",
                    remedy=suggestion(name, names),
                )
        if target is None:
            others = [name for name in names if name != on]
            if len(others) != 1:
                raise InputError(
                    f"it has the columns {listed(others)} besides {quote(on)}",
                    remedy=f"say which holds the labels with {option('target')}",
                )
            target = others[0]
        rows: dict[str, int] = {}
        for row, (key, label) in enumerate(zip(columns[on], columns[target])):
            if key is None:
                continue
            other = columns[target][rows.setdefault(key, row)]
            if spelling_key(label or "") != spelling_key(other or ""):
                raise InputError(
                    f"{quote(key)} is labelled {quote(other)} and {quote(label)}",
                    remedy="keep one label for each sample",
                )
    return LabelSheet(columns, rows, on, target, shown_name(file))


def roles_left(sheet: LabelSheet, roles: Roles, file: Path, options: ReadOptions) -> Roles:
    """Return the roles that columns of the table itself have; refuse labels in both.

    The column that identifies the labels identifies the samples of the table too, if it is
    there.
    """
    group = None if roles.group in sheet.columns else roles.group
    batch = tuple(name for name in roles.batch if name not in sheet.columns)
    adjust = tuple(name for name in roles.adjust if name not in sheet.columns)
    # what is not read from the table is no column of it either
    features = roles.measured()
    roles = replace(roles, target=None, group=group, batch=batch, adjust=adjust, features=features)
    if options.transpose or format_of(file).rows is None:
        return roles
    with rows_of(file, options)() as rows:
        names = rows.names
    if sheet.target in names and sheet.target not in names_in(roles.drop, names):
        raise InputError(
            f"column {quote(sheet.target)} is in the table and in {one_line(sheet.source)}",
            remedy=f"leave {option('labels')} out, or drop the table's with "
            f"{option('drop', [sheet.target])}",
        )
    return replace(roles, id=sheet.on) if roles.id is None and sheet.on in names else roles


def other_columns(sheet: LabelSheet, file: Path, options: ReadOptions) -> list[str]:
    """Return the columns of a table with features in rows that are no labelled samples.

    They may hold text, as descriptions of the genes do.
    """
    if not options.transpose or format_of(file).rows is None:
        return []
    with rows_of(file, options)() as rows:
        names = [name for name in rows.names[1:] if name]
    strange = [name for name in names if name not in sheet.rows]
    return strange if len(strange) < len(names) else []


def say_left_out(raw: RawTable, names: list[str]) -> None:
    """Put on record which columns were left out because no label names them."""
    if names:
        raw.dropped.update(dict.fromkeys(names, "no label"))
        raw.notes.append(f"left out, being columns of no labelled sample: {listed(names)}")


def join(raw: RawTable, sheet: LabelSheet, asked: Roles) -> None:
    """Put the labels (and groups and batches) of the sheet beside the samples of a table."""
    ids = raw.text["id"]
    rows = [None if key is None else sheet.rows.get(key) for key in ids]
    if all(row is None for row in rows) and raw.titles is not None:
        rows = [None if key is None else sheet.rows.get(key) for key in raw.titles]
    if all(row is None for row in rows):
        here = [key for key in ids if key is not None]
        raise InputError(
            f"no sample has a label: the table has {listed(here[:2])}, the labels "
            f"{listed(list(sheet.rows)[:2])}",
            remedy="identifiers must match exactly; if they are column names of the table, "
            f"use {option('transpose', True)}",
        )
    unused = len(sheet.rows) - len({row for row in rows if row is not None})
    if unused:
        raw.notes.append(f"{unused} rows of {sheet.source} belong to no sample of the table")
    raw.notes.append(f"labels come from {sheet.source}, matched by {quote(sheet.on)}")
    beside = {"target": sheet.target, "group": asked.group}
    beside |= {batch_role(name): name for name in asked.batch}
    beside |= {f"{ADJUST}{name}": name for name in asked.adjust}
    for role, name in beside.items():
        if name in sheet.columns:
            column = sheet.columns[name]
            raw.text[role] = [None if row is None else column[row] for row in rows]
