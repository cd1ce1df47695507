"""`from_rows`: rows of cells, samples or features in them, as a `RawTable`."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .cells import (
    BadCell,
    DecimalCommaFound,
    MixedDecimals,
    NumberReader,
    TooManyBadCells,
    as_label,
    as_role,
    below_detection,
    describe_codes,
    if_a_code,
    looks_numeric,
)
from .errors import InputError, did_you_mean, listed, option, quote
from .layout import (
    Layout,
    RawTable,
    Roles,
    RoleText,
    lay_out,
    names_in,
    no_such_line,
    positions_of,
    refuse_duplicates,
    refuse_shared_names,
)
from .text import OpenRows, ReadOptions, RowStream

_STRAY = 0.1  # a column with a smaller share of text is numbers with a slip in it
_SURE = 20  # rows that show whether a column holds text


def from_rows(
    open_rows: OpenRows, roles: Roles, options: ReadOptions, *, place: str = "line"
) -> RawTable:
    """Read a stream of rows into a matrix, with either decimal mark.

    A file is read with points first; a decimal comma makes it start again, and from then
    on a point is refused, so that 1,5 and 1.5 never mean different things in one file.
    One row at a time is in memory besides the matrix.
    """
    decimal = options.decimal
    assemble = _features_in_rows if options.transpose else _samples_in_rows
    if options.transpose and any("," in name for name in roles.drop):
        with open_rows() as rows:
            known = {*rows.names, *(as_label(cells[0]) or "" for _, cells in rows.rows)}
        roles = replace(roles, drop=names_in(roles.drop, known))
    comma: tuple[BadCell, str] | None = None  # the cell that made reading start again, its column
    while True:
        reader = NumberReader(decimal, place, options.na)
        try:
            with open_rows() as rows:
                raw = assemble(rows, roles, reader)
            break
        except DecimalCommaFound as found:
            comma, decimal = (found.args[0], reader.column_of(found.args[0])), ","
        except TextColumns as found:
            roles = replace(roles, text=(*roles.text, *found.args[0]))
        except MixedDecimals as mixed:
            raise _mixed_decimals(comma, mixed.args[0], reader) from None
    if comma is not None:
        if not reader.comma_proven:
            raise InputError(
                f"{quote(comma[0].value)} may have a decimal comma or a thousands separator",
                where=f"{place} {comma[0].line}, column {comma[1]}",
                remedy=f"use {option('decimal', ',')} if it is a decimal comma, or remove the "
                "separators",
            )
        raw.notes.append("numbers are written with decimal commas")
    if reader.codes:
        raw.notes.append(describe_codes(reader.codes))
        raw.notices += (*below_detection(reader.codes),)
    return raw


def _mixed_decimals(
    comma: tuple[BadCell, str] | None, point: BadCell, reader: NumberReader
) -> InputError:
    """Name a number with a point and, unless commas were asked for, the one with a comma."""
    column, place = reader.column_of(point), reader.place
    if comma is None:
        return InputError(
            f"{quote(point.value)} has a point",
            where=f"{place} {point.line}, column {column}",
            remedy="with decimal commas no number may have one",
        )
    return InputError(
        f"column {comma[1]} has the decimal comma of {quote(comma[0].value)} on {place} "
        f"{comma[0].line}, column {column} the decimal point of {quote(point.value)} on "
        f"{place} {point.line}",
        remedy="write all numbers with points",
    )


class TextColumns(Exception):
    """Raised where columns turn out to hold text: the rows are read again with them set aside."""


def _picker(positions: list[int]) -> Callable[[list[Any]], list[Any]]:
    """Return what picks cells of a row; a slice, nearly always possible, is much faster."""
    if positions and positions == list(range(positions[0], positions[-1] + 1)):
        part = slice(positions[0], positions[-1] + 1)
        return lambda cells: cells[part]
    return lambda cells: [cells[i] for i in positions]


def _samples_in_rows(rows: RowStream, roles: Roles, reader: NumberReader) -> RawTable:
    try:
        layout = lay_out(rows.names, roles)
    except InputError as error:
        if roles.target is not None and roles.target not in rows.names:
            raise _features_suspected(rows, roles.target, error) from None
        raise
    reader.columns = layout.names
    buffer, lines = array("d"), array("q")
    text: RoleText = {role: [] for role in layout.text}
    beside: RoleText = {name: [] for name in layout.beside}
    pick = _picker(layout.features)
    try:
        for line, cells in rows.rows:
            lines.append(line)
            for role, position in layout.text.items():
                text[role].append(as_role(role, cells[position]))
            for name, position in layout.beside.items():
                beside[name].append(as_label(cells[position]))
            for position in layout.blank:
                if as_label(cells[position]) is not None:
                    raise InputError(
                        f"column {position + 1} has no name but holds {quote(cells[position])}",
                        where=f"{reader.place} {line}",
                        remedy="give it a name in the header",
                    )
            buffer.frombytes(reader.row(pick(cells), line).tobytes())
            if len(lines) == _SURE and _columns_of_text(reader, _SURE, 0.5):
                break  # there is text, and reading it as numbers is slow
    except TooManyBadCells:
        pass
    if reader.bad:
        raise _no_numbers(reader, layout, len(lines), fixed=roles.features is not None)
    X = np.frombuffer(buffer, dtype=np.float64).reshape(len(lines), len(layout.features))
    notes = [*rows.notes, *layout.notes]
    return RawTable(
        X,
        layout.names,
        rows.kind,
        text,
        layout.dropped,
        notes,
        lines=lines,
        place=reader.place,
        beside=beside,
        first_column=rows.names[0],
    )


def _features_suspected(rows: RowStream, target: str, error: InputError) -> InputError:
    """Say that a target which is no column is a row, or that the features may be in rows."""
    first = [as_label(cells[0]) for _, cells in rows.rows]
    if target in first:
        return InputError(
            f"{quote(target)} names a row, not a column",
            remedy=f"the table has features in rows: use {option('transpose', True)}",
        )
    named = {name for name in first if name is not None and not looks_numeric(name)}
    meant_another = error.remedy == did_you_mean(target, rows.names)
    if len(named) < len(first) or len(first) < 2 or meant_another:
        return error
    return InputError(
        error.what,
        remedy=f"{error.remedy}; if the features are in rows, use {option('transpose', True)} and "
        f"give the labels in a second file ({option('labels')})",
    )


def _columns_of_text(reader: NumberReader, n_rows: int, share: float) -> list[int]:
    """Return the positions where more than a share of the cells, and of one, are no numbers."""
    counts = Counter(cell.position for cell in reader.bad)
    return [p for p, count in counts.items() if count > max(1, share * n_rows)]


def _no_numbers(
    reader: NumberReader, layout: Layout, n_rows: int, *, fixed: bool
) -> InputError | TextColumns:
    """Return the error of a cell that is a slip, or the columns that hold text."""
    bad, place = reader.bad, reader.place
    found = _columns_of_text(reader, n_rows, _STRAY) if n_rows >= 3 else []
    names = [layout.names[position] for position in found]
    if found and not fixed:
        return TextColumns(names)
    position = found[0] if found else min(cell.position for cell in bad)
    cell = next(cell for cell in bad if cell.position == position)
    if found:
        what = (
            f"column {listed(names)} holds" if len(names) == 1 else f"columns {listed(names)} hold"
        )
        return InputError(
            f"{what} text ({quote(cell.value)} on {place} {cell.line})",
            remedy="numbers are needed there",
        )
    more = f" ({len(bad) - 1} more cells like this)" if len(bad) > 1 else ""
    where = f"{place} {cell.line}, column {reader.column_of(cell)}"
    return _slip(cell, where, "column", layout.names[position], more)


def _slip(cell: BadCell, where: str, line: str, name: str, more: str = "") -> InputError:
    """Return the error of a cell that is no number, in a column or row of this name."""
    return InputError(
        f"{quote(cell.value)} is not a number{more}",
        where=where,
        remedy=f"correct it, leave the cell empty, or leave the {line} out with "
        f"{option('drop', [name])}{if_a_code(cell.value)}",
    )


def _features_in_rows(rows: RowStream, roles: Roles, reader: NumberReader) -> RawTable:
    """Read a table with a feature in each row: the header names the samples."""
    roles.check()
    header = rows.names
    if roles.id == header[0]:  # the column that names the features, not a row
        roles = replace(roles, id=None)
    refuse_duplicates(header, ignore=roles.drop)
    keep = [i for i in range(1, len(header)) if header[i] and header[i] not in roles.drop]
    if not keep:
        raise InputError("the header names no sample", remedy="add a header line")
    samples = reader.columns = [header[i] for i in keep]
    found = _FeatureRows({name: role for role, name in roles.named().items()})
    with suppress(TooManyBadCells):
        found.read(rows, roles, reader, keep)
    names, text = found.names, found.text
    for name, role in found.role_of.items():
        if role not in text:
            raise _no_such_row(name, role, header, names)
    if reader.bad:
        raise _text_in_rows(reader, names, found.lines)
    refuse_shared_names(names, roles, what="row", lines=found.lines)
    dropped = [name for name in roles.drop if name in header[1:]] + found.dropped
    for name in roles.drop:
        if name not in dropped:
            raise no_such_line(name, "drop", [*header, *names])
    M = np.frombuffer(found.values, dtype=np.float64).reshape(len(names), len(keep))
    measured = roles.measured()
    if measured is not None:
        order = positions_of(measured, names, "rows")
        M, names = M[order], [names[i] for i in order]
    text.setdefault("id", list(samples))
    return RawTable(
        M.T,
        names,
        f"{rows.kind}, transposed",
        text,
        dict.fromkeys(dropped, "asked for"),
        list(rows.notes),
        place="column",
        beside=found.beside,
    )


@dataclass
class _FeatureRows:
    """Rows with a feature in each, by what they hold; ``role_of`` has the rows with a role."""

    role_of: dict[str, str]
    text: RoleText = field(default_factory=dict)  # of a role
    beside: RoleText = field(default_factory=dict)  # text without a role
    dropped: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # numbers
    lines: list[int] = field(default_factory=list)
    values: array[float] = field(default_factory=lambda: array("d"))

    def read(self, rows: RowStream, roles: Roles, reader: NumberReader, keep: list[int]) -> None:
        """Read all rows, of each the cells of the samples to keep."""
        pick = _picker(keep)
        measured = roles.measured()
        wanted = None if measured is None else set(measured)
        for line, cells in rows.rows:
            name = as_label(cells[0])
            if name is None:
                raise InputError(
                    "a row has no name", where=f"line {line}", remedy="name the feature"
                )
            if name in self.role_of:
                role = self.role_of[name]
                self.text[role] = [as_role(role, value) for value in pick(cells)]
            elif name in roles.drop:
                self.dropped.append(name)
            elif wanted is None or name in wanted:
                before, codes = len(reader.bad), reader.codes.copy()
                values = reader.row(pick(cells), line)
                if wanted is None and len(reader.bad) - before > max(1, len(keep) / 2):
                    del reader.bad[before:]
                    reader.codes = codes
                    self.beside[name] = [as_label(value) for value in pick(cells)]
                    continue
                self.names.append(name)
                self.lines.append(line)
                self.values.frombytes(values.tobytes())


def _no_such_row(name: str, role: str, header: list[str], names: list[str]) -> InputError:
    """Say that there is no row of a name, or that it is the name of a column."""
    if name not in header:
        return no_such_line(name, role, names, "row")
    return InputError(
        f"{quote(name)} names a column, not a row",
        remedy=f"the table has samples in rows: leave {option('transpose', True)} out",
    )


def _text_in_rows(reader: NumberReader, names: list[str], lines: list[int]) -> InputError:
    """Name the column that holds text instead of a sample, or the first cell that is a slip."""
    cell = reader.bad[0]
    position, count = Counter(cell.position for cell in reader.bad).most_common(1)[0]
    if len(names) >= 3 and count > max(1, _STRAY * len(names)):
        column = reader.columns[position]
        return InputError(
            f"column {quote(column)} holds text ({quote(cell.value)} on line {cell.line})",
            remedy=f"drop it with {option('drop', [column])}: every column but the first is a "
            "sample",
        )
    name = names[lines.index(cell.line)]
    where = f"line {cell.line}, row {quote(name)}, column {reader.column_of(cell)}"
    return _slip(cell, where, "row", name)


# --- which way a table lies --------------------------------------------------------------


def find_orientation(
    open_rows: OpenRows, roles: Roles, options: ReadOptions, keys: Collection[str], on: str | None
) -> tuple[Roles, ReadOptions, list[str]]:
    """Say in the options whether features are in rows, of a table of which nobody said so.

    Returns the roles, the options and, if the features turned out to be in rows, what to put
    on record. `keys` are the identifiers of labels in a second file, `on` the name of their
    column. An `id` that names neither the first column nor a row was meant for a table with
    samples in rows, and goes.

    Samples are in rows unless the names a caller gave are found in the first column and not
    in the header (a target, features of a model), or the other way round (identifiers).
    """
    why = _reason(open_rows, roles, keys, on)
    if not why:
        return roles, options, []
    notes = [f"features are in rows, samples in columns: {why}"]
    with open_rows() as rows:
        first = rows.names[0]
    if roles.id not in (None, first) and roles.id not in _cells(open_rows, 0):
        notes.append(f"the header names the samples; there is no row {quote(roles.id)}")
        roles = replace(roles, id=None)
    return roles, replace(options, transpose=True), notes


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
