"""Rows of cells to a matrix with names: one pass, one row in memory besides the matrix."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .cells import (
    BadCell,
    DecimalCommaFound,
    MixedDecimals,
    NumberReader,
    TooManyBadCells,
    as_label,
)
from .errors import InputError, listed, option, quote
from .roles import Layout, Roles, lay_out, missing_column, refuse_duplicates

_STRAY = 0.1  # a column with a smaller share of text is numbers with a slip in it


@dataclass(frozen=True)
class RowStream:
    """A file as a stream: names of the columns, then (line, cells) for each row.

    Cells are strings in text files and Python values in spreadsheets.
    """

    names: list[str]
    rows: Iterator[tuple[int, list[Any]]]
    kind: str
    notes: list[str] = field(default_factory=list)


# Opens a file as rows, as often as it is called.
OpenRows = Callable[[], AbstractContextManager[RowStream]]


@dataclass
class RawTable:
    """What a reader of any format returns, before it is checked.

    `text` holds the labels ("target"), identifiers ("id") and groups ("group"), None where
    a cell is empty; `lines` the place of each sample in the file, if it has lines; `place`
    what messages call that place.
    """

    X: Any
    names: list[str]
    kind: str
    text: dict[str, list[str | None]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lines: Sequence[int] | None = None
    place: str = "line"


def from_rows(
    open_rows: OpenRows,
    roles: Roles,
    where: str,
    *,
    transpose: bool = False,
    decimal: str | None = None,
    place: str = "line",
) -> RawTable:
    """Read a stream of rows into a matrix, with either decimal mark.

    A file is read with points first; a decimal comma makes it start again, and from then
    on a point is refused, so that 1,5 and 1.5 never mean different things in one file.
    """
    assemble = _features_in_rows if transpose else _samples_in_rows
    reader = NumberReader(decimal, place)
    try:
        with open_rows() as rows:
            return assemble(rows, roles, where, reader)
    except DecimalCommaFound as found:
        first = found.cell
        column = quote(reader.columns[first.position])
    except MixedDecimals as mixed:
        raise InputError(
            f"{quote(mixed.cell.value)} has a point",
            where=f"{where}, {place} {mixed.cell.line}, "
            f"column {quote(reader.columns[mixed.cell.position])}",
            remedy="with decimal commas no number may have one",
        ) from None
    reader = NumberReader(",", place)
    try:
        with open_rows() as rows:
            raw = assemble(rows, roles, where, reader)
    except MixedDecimals as mixed:
        other = mixed.cell
        raise InputError(
            f"column {column} has the decimal comma of {quote(first.value)} on {place} "
            f"{first.line}, column {quote(reader.columns[other.position])} the decimal point "
            f"of {quote(other.value)} on {place} {other.line}",
            where=where,
            remedy="write all numbers with points",
        ) from None
    if not reader.comma_proven:
        raise InputError(
            f"{quote(first.value)} may have a decimal comma or a thousands separator",
            where=f"{where}, {place} {first.line}, column {column}",
            remedy=f"use {option('decimal', ',')} if it is a decimal comma, or remove the "
            "separators",
        )
    raw.notes.append("numbers are written with decimal commas")
    return raw


def text_columns(open_rows: OpenRows, where: str) -> dict[str, list[str | None]]:
    """Read every column as text: a sheet of labels."""
    with open_rows() as rows:
        refuse_duplicates(rows.names, where)
        columns: list[list[str | None]] = [[] for _ in rows.names]
        for _, cells in rows.rows:
            for column, cell in zip(columns, cells):
                column.append(as_label(cell))
        return dict(zip(rows.names, columns))


def _samples_in_rows(rows: RowStream, roles: Roles, where: str, reader: NumberReader) -> RawTable:
    try:
        layout = lay_out(rows.names, roles, where)
    except InputError as error:
        raise _maybe_transposed(error, rows, roles) from None
    reader.columns = layout.names
    buffer, lines = array("d"), array("q")
    text: dict[str, list[str | None]] = {role: [] for role in layout.text}
    # A slice is much faster than picking cells one by one, and nearly always possible.
    pick: Any = _as_slice(layout.features)
    first_column: list[str] = []
    try:
        for line, cells in rows.rows:
            for role, position in layout.text.items():
                text[role].append(as_label(cells[position]))
            for position in layout.blank:
                if as_label(cells[position]) is not None:
                    raise InputError(
                        f"column {position + 1} has no name but holds {quote(cells[position])}",
                        where=f"{where}, {reader.place} {line}",
                        remedy="give it a name in the header",
                    )
            numbers = cells[pick] if isinstance(pick, slice) else [cells[i] for i in pick]
            if numbers and layout.features[0] == 0:
                first_column.append(str(cells[0]))
            buffer.frombytes(reader.row(numbers, line).tobytes())
            lines.append(line)
    except TooManyBadCells:
        lines.append(line)
    if reader.bad:
        raise _not_numbers(reader, layout, len(lines), first_column, where)
    X = np.frombuffer(buffer, dtype=np.float64).reshape(len(lines), len(layout.features))
    return RawTable(
        X,
        layout.names,
        rows.kind,
        text,
        layout.dropped,
        [*rows.notes, *layout.notes],
        lines=lines,
        place=reader.place,
    )


def _as_slice(positions: list[int]) -> slice | list[int]:
    if positions and positions == list(range(positions[0], positions[0] + len(positions))):
        return slice(positions[0], positions[0] + len(positions))
    return positions


def _maybe_transposed(error: InputError, rows: RowStream, roles: Roles) -> InputError:
    """Look for a missing target among the row names before complaining of its absence."""
    if roles.target is None or roles.target in rows.names:
        return error
    for _, cells in rows.rows:
        if as_label(cells[0]) == roles.target:
            return InputError(
                f"{quote(roles.target)} names a row, not a column",
                where=error.where,
                remedy=f"the table has features in rows: use {option('transpose', True)}",
            )
    return error


def _not_numbers(
    reader: NumberReader, layout: Layout, n_rows: int, first_column: list[str], where: str
) -> InputError:
    """Name the columns that hold text, or the one cell that is a slip."""
    bad, place = reader.bad, reader.place
    counts = Counter(cell.position for cell in bad)
    examples: dict[int, BadCell] = {}
    for cell in bad:
        examples.setdefault(cell.position, cell)
    strays = [p for p, count in counts.items() if count <= max(1, _STRAY * n_rows)]
    categorical = [p for p in counts if p not in strays]
    if not categorical or n_rows < 3:
        cell = examples[min(counts)]
        more = f" ({len(bad) - 1} more cells like this)" if len(bad) > 1 else ""
        return InputError(
            f"{quote(cell.value)} is not a number{more}",
            where=f"{where}, {place} {cell.line}, column {quote(layout.names[cell.position])}",
            remedy=f"correct it, leave it empty, or leave the column out with {option('drop')}",
        )
    names = [layout.names[p] for p in categorical]
    cell = examples[categorical[0]]
    plural = "columns" if len(names) > 1 else "column"
    verb = "hold" if len(names) > 1 else "holds"
    what = f"{plural} {listed(names)} {verb} text ({quote(cell.value)} on {place} {cell.line})"
    first = layout.names[categorical[0]]
    remedy = f"drop it with {option('drop', [first])} or code it as numbers"
    if len(names) > 1:
        remedy = f"leave each out with {option('drop')} or code it as numbers"
    if layout.features[categorical[0]] == 0 and len(set(first_column)) == len(first_column):
        remedy = (
            f"if it names the samples use {option('id', first)}, "
            f"if it names the features {option('transpose', True)}"
        )
    return InputError(what, where=where, remedy=remedy)


def _features_in_rows(rows: RowStream, roles: Roles, where: str, reader: NumberReader) -> RawTable:
    """Read a table with a feature in each row: the header names the samples."""
    roles.check()
    header = rows.names
    refuse_duplicates(header, where, ignore=roles.drop)
    keep = [i for i in range(1, len(header)) if header[i] and header[i] not in roles.drop]
    if not keep:
        raise InputError("the header names no sample", where=where, remedy="add a header line")
    samples = [header[i] for i in keep]
    reader.columns = samples
    dropped = {name: "asked for" for name in roles.drop if name in header[1:]}
    pick = _as_slice(keep)
    role_of = {name: role for role, name in roles.named().items()}
    text: dict[str, list[str | None]] = {}
    names: list[str] = []
    found: list[int] = []
    buffer = array("d")
    wanted = None if roles.features is None else set(roles.features)
    try:
        for line, cells in rows.rows:
            name = as_label(cells[0])
            if name is None:
                raise InputError(
                    "a row has no name", where=f"{where}, line {line}", remedy="name the feature"
                )
            values = cells[pick] if isinstance(pick, slice) else [cells[i] for i in pick]
            if name in role_of:
                text[role_of[name]] = [as_label(value) for value in values]
            elif name in roles.drop:
                dropped[name] = "asked for"
            elif wanted is None or name in wanted:
                names.append(name)
                found.append(line)
                buffer.frombytes(reader.row(values, line).tobytes())
    except TooManyBadCells:
        pass
    for name, role in role_of.items():
        if role not in text:
            raise _row_missing(name, role, header, names, where)
    if reader.bad:
        raise _not_numbers_in_rows(reader.bad, samples, names, found, where)
    refuse_duplicates(names, where, what="row", places=found)
    for name in roles.drop:
        if name not in dropped:
            raise missing_column(name, "drop", [*header, *names], where)
    M = np.frombuffer(buffer, dtype=np.float64).reshape(len(names), len(keep))
    if roles.features is not None:
        M = M[_rows_of(roles.features, names, where)]
        names = list(roles.features)
    text.setdefault("id", list(samples))
    return RawTable(
        M.T, names, f"{rows.kind}, transposed", text, dropped, list(rows.notes), place="column"
    )


def _rows_of(wanted: Sequence[str], names: list[str], where: str) -> list[int]:
    order = {name: i for i, name in enumerate(names)}
    absent = [name for name in wanted if name not in order]
    if absent:
        raise InputError(
            f"{len(absent)} of the {len(wanted)} rows needed are missing: {listed(absent)}",
            where=where,
            remedy="add them; names must match exactly, their order does not matter",
        )
    return [order[name] for name in wanted]


def _row_missing(
    name: str, role: str, header: list[str], names: list[str], where: str
) -> InputError:
    if name in header:
        return InputError(
            f"{quote(name)} names a column, not a row",
            where=where,
            remedy=f"the table has samples in rows: leave {option('transpose')} out",
        )
    error = missing_column(name, role, names, where)
    return InputError(
        f"there is no row {quote(name)} ({option(role)})",
        where=where,
        remedy=f"{error.remedy}; labels may also come from a second file ({option('labels')})",
    )


def _not_numbers_in_rows(
    bad: list[BadCell], samples: list[str], names: list[str], found: list[int], where: str
) -> InputError:
    by_column = Counter(cell.position for cell in bad)
    position, count = by_column.most_common(1)[0]
    if len(names) >= 3 and count > max(1, _STRAY * len(names)):
        name = samples[position]
        return InputError(
            f"column {quote(name)} holds text ({quote(bad[0].value)} on line {bad[0].line})",
            where=where,
            remedy=f"drop it with {option('drop', [name])}: every column but the first is a sample",
        )
    cell = bad[0]
    name = names[found.index(cell.line)] if cell.line in found else f"line {cell.line}"
    return InputError(
        f"{quote(cell.value)} is not a number",
        where=f"{where}, line {cell.line}, row {quote(name)}, column "
        f"{quote(samples[cell.position])}",
        remedy="correct it, leave the cell empty, or leave the row out with "
        f"{option('drop', [name])}",
    )
