"""Whether features are in rows, found out from the names that a caller gave."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from .cells import as_label, looks_numeric
from .errors import InputError, listed, option, quote
from .formats import format_of, rows_of
from .rows import Roles
from .text import OpenRows, ReadOptions


def orient(
    file: Path,
    roles: Roles,
    options: ReadOptions,
    keys: Collection[str] = (),
    on: str | None = None,
) -> tuple[Roles, ReadOptions, list[str]]:
    """Say in the options whether features are in rows, where the caller has not.

    Returns the roles, the options and, if the features turned out to be in rows, what to put
    on record. `keys` are the identifiers of labels in a second file, `on` the name of their
    column. An `id` that names neither the first column nor a row was meant for a table with
    samples in rows, and goes.

    Samples are in rows unless the names a caller gave are found in the first column and not
    in the header (a target, features of a model), or the other way round (identifiers).
    """
    form = format_of(file)
    if options.transpose is not None or not form.transposes or form.rows is None:
        return roles, options, []
    open_rows = rows_of(file, options)
    why = _reason(open_rows, roles, keys, on)
    if not why:
        return roles, options, []
    notes = [f"features are in rows, samples in columns: {why}"]
    if roles.id is not None and not _names_a_row(open_rows, roles.id):
        notes.append(f"the header names the samples; there is no row {quote(roles.id)}")
        roles = replace(roles, id=None)
    return roles, replace(options, transpose=True), notes


def _names_a_row(open_rows: OpenRows, name: str) -> bool:
    """Whether a name is that of a row, or of the first column, which the header names."""
    with open_rows() as rows:
        return name == rows.names[0] or any(as_label(c[0]) == name for _, c in rows.rows)


def _reason(open_rows: OpenRows, roles: Roles, keys: Collection[str], on: str | None) -> str:
    """Return why the features must be in rows; empty where they need not be."""
    with open_rows() as rows:
        header = rows.names
    if roles.features is not None:
        across = len(set(header).intersection(roles.features))
        if across == len(set(roles.features)):
            return ""
        down = len(set(_cells(open_rows, 0)).intersection(roles.features))
        return "the rows have the names of the features" if down > across else ""
    if keys:
        across = len(set(header[1:]).intersection(keys))
        if not across:
            return ""
        name = next((n for n in (roles.id, on) if n in header), header[0])
        down = len(set(_cells(open_rows, header.index(name))).intersection(keys))
        if down and across >= down:
            raise InputError(
                f"the identifiers of the labels name columns ({listed(list(keys)[:2])}) as well as "
                "rows",
                remedy=f"say {option('transpose', True)} if the samples are in columns, "
                f"{option('transpose', False)} if they are in rows",
            )
        return "" if down else "the columns have the names of labelled samples"
    if roles.target is None or roles.target in header:
        return ""
    with open_rows() as rows:
        row = next((cells for _, cells in rows.rows if as_label(cells[0]) == roles.target), None)
    if row is None or _measured(row[1:]):
        return ""
    return f"{quote(roles.target)} names a row"


def _measured(cells: list[Any]) -> bool:
    """Whether a row holds measurements, those of a sample or of a feature, which no label is."""
    numbers = [float(text) for text in map(as_label, cells) if text and looks_numeric(text)]
    return any(math.isfinite(value) and not value.is_integer() for value in numbers)


def _cells(open_rows: OpenRows, position: int) -> list[str]:
    """Return a column of a file as text."""
    with open_rows() as rows:
        return [as_label(cells[position]) or "" for _, cells in rows.rows]
