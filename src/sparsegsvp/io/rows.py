"""Which column has which role, and tables of any source before they are checked.

`lay_out` gives the columns of a header their roles; `from_rows` reads rows of cells, and
`from_arrays` and `from_matrix` take arrays, into a `RawTable`.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._notices import Notice
from .covariates import ADJUST, columns_behind, made_of
from .errors import InputError, listed, option, quote, suggestion
from .missing import below_detection, describe_codes, if_a_code
from .roles import ColumnRole, names_in
from .structure import check_texts
from .text import (
    BadCell,
    DecimalCommaFound,
    MixedDecimals,
    NumberReader,
    OpenRows,
    ReadOptions,
    RowStream,
    TooManyBadCells,
    as_label,
    as_role,
    looks_numeric,
)

UNNAMED = ""  # the header cell that pandas and R leave above row names
_READ_BACK = "Unnamed: 0"  # what pandas makes of it when it reads the file and writes it again
_BATCH = "batch:"
_STRAY = 0.1  # a column with a smaller share of text is numbers with a slip in it
_SURE = 20  # rows that show whether a column holds text

# Labels ("target"), identifiers ("id"), groups ("group"), batches ("batch:" and their name) and
# what is adjusted for ("adjust:" and its name), None where a cell is empty.
RoleText = dict[str, list[str | None]]


@dataclass
class RawTable:
    """What a reader of any format returns, and what the checks find out about it.

    `dropped` says why a column was left out, `notes` what was decided and not asked for;
    `lines` has the place of each sample in the file, if it has lines, and `place` is what
    messages call that place. `beside` has the columns of text that nobody gave a role,
    `first_column` the name of the first column of all, and `roles` what became of the columns.
    `titles` are other names of the samples, if they have any, and `covariates` the features that
    were made of columns to adjust for.
    """

    X: Any
    names: list[str]
    kind: str
    text: RoleText = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lines: Sequence[int] | None = None
    place: str = "row"
    notices: tuple[Notice, ...] = ()
    n_missing: int = 0
    beside: dict[str, list[str | None]] = field(default_factory=dict)
    first_column: str | None = None
    roles: list[ColumnRole] = field(default_factory=list)
    titles: list[str | None] | None = None
    covariates: dict[str, tuple[str, ...]] = field(default_factory=dict)


# --- roles -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Roles:
    """The columns a caller named: labels, identifiers, groups, what to drop, what to read.

    `features` are the columns to read as numbers; None is every column without another role.
    `collapse` says how features that share a name will be made one; None refuses them.
    Those of `keep` are features whatever they look like, those of `text` hold text. Those of
    `adjust` are read as text and made features at the end, by their levels if `categorical`.
    """

    target: str | None = None
    id: str | None = None
    group: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    collapse: str | None = None
    keep: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    batch: tuple[str, ...] = ()
    adjust: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Return the columns of text that were named, by the key they have in `RoleText`."""
        pairs = (("target", self.target), ("id", self.id), ("group", self.group))
        found = {role: name for role, name in pairs if name is not None}
        # groups that are batches too are read once, and written down twice by `checked_table`
        found |= {batch_role(name): name for name in self.batch if name != self.group}
        return found | {f"{ADJUST}{name}": name for name in self.adjust}

    def measured(self) -> tuple[str, ...] | None:
        """Return the columns to read as numbers: those of `features` that `adjust` has not."""
        if self.features is None or not self.adjust:
            return self.features
        adjust = self.adjust
        return tuple(n for n in self.features if not any(made_of(n, column) for column in adjust))

    def asked(self) -> set[str]:
        """Return all names the caller gave."""
        return {*self.named().values(), *self.drop, *(self.features or ())}

    def check(self) -> None:
        """Refuse one column in two roles."""
        seen: dict[str, str] = {}
        more = [
            (role, name) for role in ("drop", "keep") for name in dict.fromkeys(getattr(self, role))
        ]
        for role, name in [*self.named().items(), *more]:
            first, second = seen.setdefault(name, role), role
            if first != second:
                both = f"{role_option(first)} and as {role_option(second)}"
                raise InputError(
                    f"column {quote(name)} is given as {both}",
                    remedy="give each column one role",
                )


def batch_role(name: str) -> str:
    """Return the key of a batch variable among the columns of text."""
    return f"{_BATCH}{name}"


def batches_of(text: RoleText) -> dict[str, list[str | None]]:
    """Return the batch variables among the columns of text, by their names."""
    return {r.removeprefix(_BATCH): v for r, v in text.items() if r.startswith(_BATCH)}


def role_option(role: str) -> str:
    """Refer to the parameter that gave a column its role."""
    return option(role.partition(":")[0])


@dataclass(frozen=True)
class Layout:
    """Positions of the columns by role: numbers and their names, and text.

    Columns without a name (`blank`) must be empty; those of `beside` hold text that nobody gave
    a role.
    """

    features: list[int]
    names: list[str]
    text: dict[str, int]
    blank: list[int] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    beside: dict[str, int] = field(default_factory=dict)


def lay_out(header: Sequence[str], roles: Roles, what: str = "column") -> Layout:
    """Give every column of a header its role, or say which name is wrong."""
    roles = replace(roles, drop=names_in(roles.drop, set(header)))
    behind = columns_behind(roles.features or (), set(header))
    roles = replace(roles, adjust=tuple(dict.fromkeys((*roles.adjust, *behind))))
    roles.check()
    _refuse_shared_names(header, roles, what=what)
    position = {name: i for i, name in reversed(list(enumerate(header)))}
    asked = [*roles.named().items(), *(("drop", name) for name in roles.drop)]
    for role, name in asked:
        if name not in position:
            raise _missing(name, role, header)
    text = {role: position[name] for role, name in roles.named().items()}
    notes: list[str] = []
    blank = [i for i, name in enumerate(header) if name == UNNAMED]
    read_back = what == "column" and list(header[:1]) == [_READ_BACK]
    if read_back and _READ_BACK not in roles.asked():
        blank.insert(0, 0)
    first = blank.pop(0) if blank and blank[0] == 0 else None
    if first is not None and "id" not in text:
        text["id"] = first
        notes.append("the first column has no name and was taken for sample identifiers")
    elif first is not None:
        notes.append("the first column has no name and was left out, as names of rows")
    if roles.features is not None:
        features = _positions(roles.measured() or (), header, "columns")
        return Layout(features, [header[i] for i in features], text, notes=notes)
    beside = {name: position[name] for name in roles.text}
    skip, out = {*text.values(), *blank, first}, {*roles.drop, *beside}
    features = [i for i, name in enumerate(header) if i not in skip and name not in out]
    dropped = dict.fromkeys(roles.drop, "asked for")
    names = [header[i] for i in features]
    return Layout(features, names, text, blank, dropped, notes, beside)


def _refuse_shared_names(
    names: Sequence[str], roles: Roles, what: str = "column", lines: Sequence[int] | None = None
) -> None:
    """Refuse features that share a name, unless they will be made one."""
    if roles.collapse is None:
        ways = f"or make them one with {option('collapse', 'mean')}, 'max' or 'first'"
        refuse_duplicates(names, what=what, ignore=roles.drop, lines=lines, remedy=ways)
        return
    others = set(names).difference(roles.named().values())
    refuse_duplicates(names, what=what, ignore=others, lines=lines)


def refuse_duplicates(
    names: Sequence[str],
    *,
    what: str = "column",
    ignore: Collection[str] = (),
    lines: Sequence[int] | None = None,
    remedy: str = "since a panel is a list of names",
) -> None:
    """Refuse names that occur twice, saying where, before any reader renames them."""
    if len(set(names)) == len(names):
        return
    found: dict[str, list[int]] = {}
    for place, name in zip(lines or range(1, len(names) + 1), names):
        found.setdefault(name, []).append(place)
    twice = {n: p for n, p in found.items() if len(p) > 1 and n != UNNAMED and n not in ignore}
    if twice:
        name, at = next(iter(twice.items()))
        others = f", and {len(twice) - 1} other names repeat" if len(twice) > 1 else ""
        raise InputError(
            f"{what} name {quote(name)} appears {len(at)} times "
            f"({'lines' if lines else what + 's'} {', '.join(map(str, at[:4]))}){others}",
            remedy=f"rename or remove the repeats, {remedy}",
        )


def _missing(name: str, role: str, names: Sequence[str], what: str = "column") -> InputError:
    """Return the error for a name that there is not, with the one probably meant."""
    there = [n for n in names if n != UNNAMED]
    remedy = suggestion(name, there)
    if there and all(looks_numeric(n) for n in there):
        remedy = "the first line holds only numbers: add a line with the column names"
    if what == "row":
        remedy += f"; labels may also come from a second file ({option('labels')})"
    return InputError(f"there is no {what} {quote(name)} ({role_option(role)})", remedy=remedy)


def _positions(wanted: Sequence[str], names: Sequence[str], what: str) -> list[int]:
    """Return all places of the wanted names among the names, or list those that are missing."""
    places: dict[str, list[int]] = {name: [] for name in wanted}
    for i, name in enumerate(names):
        if name in places:
            places[name].append(i)
    absent = [name for name, found in places.items() if not found]
    if absent:
        raise InputError(
            f"{len(absent)} of the {len(wanted)} {what} needed are missing: {listed(absent)}",
            remedy="add them; names must match exactly, their order does not matter",
        )
    return [i for name in wanted for i in places[name]]


# --- matrices and arrays ---------------------------------------------------------------


def from_matrix(X: Any, names: Sequence[str], roles: Roles, kind: str, text: RoleText) -> RawTable:
    """Make a table of a matrix whose columns are all features, and of the text beside it."""
    named = [name or f"column {i}" for i, name in enumerate(names)]
    own = replace(
        roles, target=None, id=None, group=None, batch=(), adjust=(), features=roles.measured()
    )
    layout = lay_out(named, own, "feature")
    if layout.features != list(range(len(named))):
        X = X[:, layout.features]
    return RawTable(X, layout.names, kind, text, layout.dropped)


def from_arrays(
    X: Any, arrays: Mapping[str, Any], roles: Roles, kind: str, remedy: str = ""
) -> RawTable:
    """Make a table of a matrix and of arrays that name its columns or have a role."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            f"X is {X.ndim}-dimensional of type {X.dtype}", remedy="it must be numbers"
        )
    names, notes = feature_names(arrays.get("feature_names"), X.shape[1], remedy)
    others = [name for name in arrays if name != "feature_names"]
    text: RoleText = {}
    for role, name in roles.named().items():
        if name not in others:
            raise InputError(
                f"there is no array {quote(name)} ({role_option(role)})",
                remedy=suggestion(name, others),
            )
        values = check_texts(np.asarray(arrays[name][...]), name)
        if values.shape != X.shape[:1]:
            raise InputError(
                f"array {quote(name)} has shape {values.shape}, X has {X.shape[0]} rows"
            )
        text[role] = [as_role(role, value) for value in values.tolist()]
    raw = from_matrix(X, names, roles, kind, text)
    raw.notes += notes
    return raw


def feature_names(given: Any, m: int, remedy: str) -> tuple[list[str], list[str]]:
    """Return a name for each of m features, and a note if they had to be numbered."""
    if given is None:
        note = "the features have no names and were numbered f0, f1, …"
        return [f"f{j}" for j in range(m)], [note]
    if len(getattr(given, "shape", (m,))) != 1:
        raise InputError("feature_names is not one-dimensional", remedy=remedy)
    given = check_texts(given[:], "feature_names") if hasattr(given, "dtype") else given
    names = [as_label(name) or "" for name in given]
    if len(names) != m:
        raise InputError(f"{len(names)} feature_names for {m} columns of X", remedy=remedy)
    return names, []


def columns_of_obs(obs: Any, roles: Roles) -> RoleText:
    """Return the names of AnnData's samples and the columns of obs that have a role, as text."""
    text: RoleText = {"id": [str(name) for name in obs.index]}
    for role, name in roles.named().items():
        if name not in obs.columns:
            raise InputError(
                f"there is no column {quote(name)} in obs ({role_option(role)})",
                remedy=suggestion(name, [str(c) for c in obs.columns]),
            )
        column = obs[name]
        cells = zip(column.isna(), column.astype(object))
        text[role] = [None if gone else as_role(role, value) for gone, value in cells]
    return text


# --- rows of cells ---------------------------------------------------------------------


def from_rows(
    open_rows: OpenRows,
    roles: Roles,
    options: ReadOptions | None = None,
    *,
    place: str = "line",
) -> RawTable:
    """Read a stream of rows into a matrix, with either decimal mark.

    A file is read with points first; a decimal comma makes it start again, and from then
    on a point is refused, so that 1,5 and 1.5 never mean different things in one file.
    One row at a time is in memory besides the matrix.
    """
    options = options or ReadOptions()
    decimal = options.decimal
    assemble = _features_in_rows if options.transpose else _samples_in_rows
    if options.transpose and any("," in name for name in roles.drop):
        with open_rows() as rows:
            known = {*rows.names, *(as_label(cells[0]) or "" for _, cells in rows.rows)}
        roles = replace(roles, drop=names_in(roles.drop, known))
    first: BadCell | None = None  # the cell that made reading start again
    first_column = ""
    while True:
        reader = NumberReader(decimal, place, options.na)
        try:
            with open_rows() as rows:
                raw = assemble(rows, roles, reader)
            break
        except DecimalCommaFound as found:
            first, decimal = found.args[0], ","
            first_column = quote(reader.columns[first.position])
        except TextColumns as found:
            roles = replace(roles, text=(*roles.text, *found.args[0]))
        except MixedDecimals as mixed:
            other = mixed.args[0]
            column = quote(reader.columns[other.position])
            if first is None:
                raise InputError(
                    f"{quote(other.value)} has a point",
                    where=f"{place} {other.line}, column {column}",
                    remedy="with decimal commas no number may have one",
                ) from None
            raise InputError(
                f"column {first_column} has the decimal comma of {quote(first.value)} on {place} "
                f"{first.line}, column {column} the decimal point of {quote(other.value)} on "
                f"{place} {other.line}",
                remedy="write all numbers with points",
            ) from None
    if first is not None:
        if not reader.comma_proven:
            raise InputError(
                f"{quote(first.value)} may have a decimal comma or a thousands separator",
                where=f"{place} {first.line}, column {first_column}",
                remedy=f"use {option('decimal', ',')} if it is a decimal comma, or remove the "
                "separators",
            )
        raw.notes.append("numbers are written with decimal commas")
    if reader.codes:
        raw.notes.append(describe_codes(reader.codes))
        raw.notices += (*below_detection(reader.codes),)
    return raw


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
    if len(named) < len(first) or len(first) < 2 or error.remedy.startswith("did you mean"):
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
    name = layout.names[position]
    return InputError(
        f"{quote(cell.value)} is not a number{more}",
        where=f"{place} {cell.line}, column {quote(name)}",
        remedy=f"correct it, leave the cell empty, or leave the column out with "
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
    dropped = {name: "asked for" for name in roles.drop if name in header[1:]}
    pick = _picker(keep)
    role_of = {name: role for role, name in roles.named().items()}
    text: RoleText = {}
    names: list[str] = []
    lines: list[int] = []
    buffer = array("d")
    beside: RoleText = {}
    measured = roles.measured()
    wanted = None if measured is None else set(measured)
    try:
        for line, cells in rows.rows:
            name = as_label(cells[0])
            if name is None:
                raise InputError(
                    "a row has no name", where=f"line {line}", remedy="name the feature"
                )
            if name in role_of:
                text[role_of[name]] = [as_role(role_of[name], value) for value in pick(cells)]
            elif name in roles.drop:
                dropped[name] = "asked for"
            elif wanted is None or name in wanted:
                before, codes = len(reader.bad), reader.codes.copy()
                values = reader.row(pick(cells), line)
                if wanted is None and len(reader.bad) - before > max(1, len(keep) / 2):
                    del reader.bad[before:]
                    reader.codes = codes
                    beside[name] = [as_label(value) for value in pick(cells)]
                    continue
                names.append(name)
                lines.append(line)
                buffer.frombytes(values.tobytes())
    except TooManyBadCells:
        pass
    for name, role in role_of.items():
        if role not in text and name in header:
            raise InputError(
                f"{quote(name)} names a column, not a row",
                remedy=f"the table has samples in rows: leave {option('transpose', True)} out",
            )
        if role not in text:
            raise _missing(name, role, names, "row")
    if reader.bad:
        raise _text_in_rows(reader, names, lines)
    _refuse_shared_names(names, roles, what="row", lines=lines)
    for name in roles.drop:
        if name not in dropped:
            raise _missing(name, "drop", [*header, *names])
    M = np.frombuffer(buffer, dtype=np.float64).reshape(len(names), len(keep))
    if measured is not None:
        order = _positions(measured, names, "rows")
        M, names = M[order], [names[i] for i in order]
    text.setdefault("id", list(samples))
    kind = f"{rows.kind}, transposed"
    notes = list(rows.notes)
    return RawTable(M.T, names, kind, text, dropped, notes, place="column", beside=beside)


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
    return InputError(
        f"{quote(cell.value)} is not a number",
        where=f"line {cell.line}, row {quote(name)}, column {quote(reader.columns[cell.position])}",
        remedy="correct it, leave the cell empty, or leave the row out with "
        f"{option('drop', [name])}{if_a_code(cell.value)}",
    )
