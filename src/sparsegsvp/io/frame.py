"""`Frame`: any input as one data frame of cells, which is turned, joined and given its columns.

Numbers are a matrix; a cell that is none, or of a column that may be something else, stays as it
was written until it is known what it is for: an identifier 001 is not 1. Whoever adds a format
returns a `Frame`, or rows for `collect` to make one of.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice
from .._validate import did_you_mean, first_few, listed, need, one_line, quote, suggestion
from .cells import THOUSANDS, Codes, Column, as_label, column_of, make_numbers
from .errors import InputError, option
from .roles import ColumnRole, Roles, columns_behind, identifies, look_of, made_of
from .text import ReadOptions, Rows, looks_numeric

_SERIES = 20  # names that differ in their numbers alone, above which they name no identifiers
_UNNAMED = ([""], ["Unnamed: 0"])  # how programs head the names of rows


@dataclass(frozen=True)
class Labels:
    """Labels in a second file: its columns, and the row of each identifier; empty if none is."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    on: str = ""
    target: str | None = None
    source: str = ""


@dataclass
class Frame:
    """Cells in columns; samples in rows, once it stands up. Later all that a table is made of."""

    names: list[str]  # of all columns; of the features in the end
    X: Any  # numbers, NaN where a value is missing, or among `raw`
    raw: dict[int, dict[int, Any]]  # other cells as they were written, by column and row
    kind: str  # the format, for the record
    samples: Literal["rows", "columns", "either"] = "rows"
    place: str = "row"  # what messages call a row: "line" of a file, "column" once it was turned
    column: str = "column"  # and what they call a column: "row" once it was turned
    indexed: bool = False  # whether the first column is an index, which names the rows
    lines: Sequence[int] | None = None  # of the rows in the file
    name_lines: Sequence[int] | None = None  # of the features, once the table was turned
    mark: str | None = None  # the decimal mark that numbers of X were written with
    doubtful: bool = True  # whether no number shows that this does not separate thousands
    codes: Counter[str] = field(default_factory=Counter)  # for missing values, as written
    beside: dict[str, list[Any]] = field(default_factory=dict)  # obs, GEO's samples, labels
    labels: Labels = field(default_factory=Labels)  # that are to be joined
    all_features: bool = False  # whether every column is one, as in a matrix
    ours: bool = False  # whether X may be written to
    notes: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    roles: list[ColumnRole] = field(default_factory=list)
    text: dict[str, list[str | None]] = field(default_factory=dict)  # by role: "target", "id", ...
    adjust: dict[str, list[Any]] = field(default_factory=dict)  # columns to adjust for
    texts: dict[str, list[str | None]] = field(default_factory=dict)  # columns without a role

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def cells(self, position: int) -> list[Any]:
        """Return the cells of a column, as written where that is known."""
        cells = column_of(self.X, position).tolist()
        for i, cell in self.raw.get(position, {}).items():
            cells[i] = cell
        return cells

    def row_names(self) -> list[str | None]:
        """Return the cells of the first column as text."""
        return [as_label(cell) for cell in self.cells(0)] if self.names else []

    def row(self, i: int) -> str:
        """Say where a row is: by its line in the file, else by its name or its number."""
        name = self.text["id"][i] if "id" in self.text else None
        if self.lines is None and name is not None:
            return f"{self.place.replace('row', 'sample')} {quote(name)}"
        return f"{self.place} {i + 1 if self.lines is None else self.lines[i]}"

    def where(self, i: int, name: str) -> str:
        """Say where a cell is: by line and column, and by row in a table that was turned."""
        if self.place != "column":
            return f"{self.row(i)}, column {quote(name)}"
        p = self.names.index(name) if name in self.names else 0
        line = f"line {self.name_lines[p]}, " if self.name_lines else ""
        return f"{line}row {quote(name)}, {self.row(i)}"

    def named(self, positions: Sequence[int]) -> list[int]:
        """Return the columns with a name; refuse those without that hold anything."""
        for p in [p for p in positions if not self.names[p]]:
            for i, cell in enumerate(map(as_label, self.cells(p))):
                if cell is not None:
                    what = f"column {p + 1} has no name but holds {quote(cell)}"
                    raise InputError(what, self.row(i), "give it a name in the header")
        return [p for p in positions if self.names[p]]

    def refuse_duplicates(self, ignore: Collection[str] = (), remedy: str = "") -> None:
        """Refuse names of columns that occur twice, saying where."""
        twice = [n for n, k in Counter(self.names).items() if k > 1 and n and n not in ignore]
        if twice:
            places = self.name_lines or range(1, len(self.names) + 1)
            at = [str(place) for place, name in zip(places, self.names) if name == twice[0]]
            where = f"{'line' if self.name_lines else self.column}s {', '.join(at[:4])}"
            what = f"{self.column} name {quote(twice[0])} appears {len(at)} times ({where})"
            what += f", and {len(twice) - 1} other names repeat" * (len(twice) > 1)
            raise InputError(what, remedy=f"rename or remove the repeats{remedy}")

    def pick(self, rows: Sequence[int]) -> None:
        """Keep some of the rows."""
        if len(rows) == len(self):
            return
        place = {i: k for k, i in enumerate(rows)}
        self.X = self.X[rows]
        for p, cells in self.raw.items():
            self.raw[p] = {place[i]: cell for i, cell in cells.items() if i in place}
        self.lines = self.lines and [self.lines[i] for i in rows]
        parts: tuple[dict[str, list[Any]], ...] = (self.beside, self.text, self.texts, self.adjust)
        for part in parts:
            part.update({name: [cells[i] for i in rows] for name, cells in part.items()})

    def take(self, positions: Sequence[int]) -> None:
        """Keep some of the columns; in place where that saves the memory of a second matrix."""
        X, k, places = self.X, len(positions), np.array(positions, dtype=np.intp)
        plain = self.ours and not sparse.issparse(X) and X.flags.c_contiguous
        if plain and X.shape[1] < 2 * k <= 2 * X.shape[1]:
            flat = X.reshape(-1)
            for i in range(len(X)):
                flat[i * k : (i + 1) * k] = X[i, places]
            self.X = flat[: len(X) * k].reshape(len(X), k)
        elif list(positions) != list(range(X.shape[1])):
            self.X = X[:, places]
        self.names = [self.names[p] for p in positions]
        self.raw = {j: self.raw[p] for j, p in enumerate(positions) if p in self.raw}

    def turned(self) -> Frame:
        """Return a frame with features in rows the other way round."""
        names = [name or "" for name in self.row_names()]
        if "" in names:
            raise InputError("a row has no name", self.row(names.index("")), "name the feature")
        raw: dict[int, dict[int, Any]] = {}
        for p, column in self.raw.items():
            for i, cell in column.items() if p else ():
                raw.setdefault(i, {})[p - 1] = cell
        return replace(
            self, names=names, X=self.X[:, 1:].T, raw=raw, kind=f"{self.kind}, transposed",
            samples="rows", place="column", column="row", indexed=False, lines=None,
            name_lines=self.lines, text={"id": [*self.names[1:]]},
        )  # fmt: skip


def collect(rows: Rows, options: ReadOptions, verbatim: Collection[str] | None) -> Frame:
    """Make a frame of rows of cells; those of the columns and rows asked for stay as written.

    A column with text in it is no more tried as numbers from there on.
    """
    m, codes, keep = len(rows.names), options.codes, {0}
    series = Counter(re.sub(r"\d+", "#", name) for name in rows.names)
    for p, name in enumerate(rows.names):
        names = identifies(name) and series[re.sub(r"\d+", "#", name)] <= _SERIES
        if verbatim is None or name in verbatim or names or look_of(name) or not name:
            keep.add(p)
    frame = Frame(rows.names, None, {}, rows.kind, "either", "line", ours=True)
    frame.notes, frame.notices = rows.notes, rows.notices
    decimal = options.decimal or {".": ",", ",": "."}.get(options.thousands or "", ".")
    numbers, lines = array("d"), array("q")
    grouped = np.ones(m, dtype=bool)  # columns all of whose marks may separate thousands
    for line, cells in rows.rows:
        i, texts = len(lines), cells.copy()
        lines.append(line)
        for p in keep:
            texts[p] = "nan"
        values, strange = _numbers(texts, decimal, codes)
        free = options.decimal is None and options.thousands is None and frame.mark is None
        if strange and free and any(codes.kind(texts[p]) == "," for p in strange):
            decimal = ","  # the first number with a fraction shows the mark of all
            values, strange = _numbers(texts, decimal, codes)
        numbers.frombytes(values.tobytes())
        for p in np.flatnonzero(grouped & ((values % 1 > 0) | (np.abs(values) >= 100))).tolist():
            text, whole = texts[p], values[p] % 1 == 0
            if not isinstance(text, str):
                grouped[p] = whole
            elif decimal in text:
                frame.mark = decimal
                if not THOUSANDS[decimal].fullmatch(text.strip()):
                    grouped[p] = frame.doubtful = False
                elif whole:  # 340.000 is no 340
                    frame.raw.setdefault(p, {})[i] = text
        for p in {*np.flatnonzero(np.isnan(values)).tolist()}.difference(strange, keep):
            if isinstance(texts[p], str) and texts[p].strip():
                frame.codes[texts[p].strip()] += 1
        asked = verbatim and isinstance(cells[0], str) and cells[0].strip() in verbatim
        for p in range(m) if asked else (*keep, *strange):
            frame.raw.setdefault(p, {})[i] = cells[p]
        if len(strange) <= max(2, (m - len(keep)) / 2):
            keep.update(strange)
    frame.X, frame.lines = np.frombuffer(numbers).reshape(len(lines), m), lines.tolist()
    for p in np.flatnonzero(grouped).tolist():
        for i in np.flatnonzero(frame.X[:, p] % 1 > 0)[:1].tolist():  # one speaks for all
            frame.raw.setdefault(p, {})[i] = f"{frame.X[i, p]:.3f}".replace(".", decimal)
    for p, column in frame.raw.items():
        frame.X[list(column), p] = np.nan
    return frame


def _numbers(
    cells: Sequence[Any], decimal: str, codes: Codes
) -> tuple[NDArray[np.float64], list[int]]:
    """Read cells as numbers; return these, and the places of cells that are none."""
    with suppress(TypeError, ValueError):  # a spreadsheet's cells, or other text
        joined = "\n".join(cells)
        whole = joined.isascii() and joined.count("\n") == len(cells) - 1
        # Python would read 1_000 as a number
        if whole and "_" not in joined and not (decimal == "," and "." in joined):
            joined = joined.replace(",", ".") if decimal == "," else joined
            with suppress(ValueError):
                return _floats(joined.encode()), []
            texts = joined.split("\n")
            return np.array([math.nan if t in codes.usual else float(t) for t in texts]), []
    read = [codes.number(cell, decimal) for cell in cells]
    values = np.array([math.nan if v is None else v for v in read], dtype=np.float64)
    return values, [j for j, value in enumerate(read) if value is None]


def _floats(lines: bytes) -> NDArray[np.float64]:
    """Read a number from each line, rounded as Python does, in a third of the time."""
    arrow = need("pyarrow", "cli")
    breaks = np.flatnonzero(np.frombuffer(lines, dtype=np.uint8) == ord("\n"))
    starts = np.r_[0, breaks - np.arange(len(breaks)), len(lines) - len(breaks)].astype(np.int32)
    parts = arrow.py_buffer(starts), arrow.py_buffer(lines.replace(b"\n", b""))
    texts = arrow.StringArray.from_buffers(len(breaks) + 1, *parts)
    return np.array(texts.cast(arrow.float64()))


def from_pandas(data: Any) -> Frame:
    """Make a frame of a pandas data frame; its index is the first column unless it counts."""
    from pandas.api import types

    index = data.index
    counts = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    start = int(not counts or index.name is not None)
    numeric = [types.is_numeric_dtype(d) and not types.is_complex_dtype(d) for d in data.dtypes]
    at = np.flatnonzero(numeric)
    kinds = {str(data.dtypes.iloc[i]).lower().partition("[")[0] for i in at}
    single = bool(kinds) and kinds <= {"float32", "float16", "float"}
    shape = len(data), start + data.shape[1]
    X = np.full(shape, np.nan, dtype=np.float32 if single else np.float64)
    if len(at):
        X[:, start + at] = data.iloc[:, at].to_numpy(dtype=X.dtype, na_value=np.nan)
    names = [as_label(name) or "" for name in data.columns]
    texts = [i for i, number in enumerate(numeric) if not number]
    raw = {start + i: dict(enumerate(_objects(data.iloc[:, i]))) for i in texts}
    if start:
        levels = index.nlevels > 1
        raw[0] = dict(enumerate(", ".join(map(str, key)) if levels else key for key in index))
        names.insert(0, str(index.name or ""))
    return Frame(names, X, raw, "pandas", ours=True, indexed=bool(start))


def _objects(column: Any) -> list[Any]:
    """Return the cells of a column of pandas, None where one is missing."""
    objects = column.astype(object)
    return list(objects.where(objects.notna(), None))


def from_matrix(X: Any, names: Sequence[Any] | None) -> Frame:
    """Make a frame of a matrix, all columns of which are features; sparse indices are checked."""
    packed = sparse.issparse(X)
    X = X if packed else np.asarray(X)
    if X.ndim != 2:
        what = f"the data are {X.ndim}-dimensional"
        raise InputError(what, remedy="give a matrix with a row for each sample")
    notes = ["the features have no names and were numbered f0, f1, …"] if names is None else []
    names = [f"f{j}" for j in range(X.shape[1])] if names is None else names
    if len(names) != X.shape[1]:
        what = f"{len(names)} feature_names for {X.shape[1]} columns of X"
        raise InputError(what, remedy="give one name for each column")
    kind = "CSR" if packed else str(X.dtype)
    if X.dtype.kind not in "biuf":
        what = f"the matrix holds {X.dtype}, not numbers"
        raise InputError(what, remedy="give a data frame of cells that are to be read")
    if packed:
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            what = f"its sparse matrix is damaged ({error})"
            raise InputError(what, remedy="write it again") from error
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    named = [as_label(name) or f"column {j}" for j, name in enumerate(names)]
    return Frame(named, X, {}, kind, all_features=True, notes=notes)


def from_anndata(X: Any, obs: Any, names: Sequence[Any], layer: str | None) -> Frame:
    """Make a frame of AnnData: a matrix, its samples and their columns in obs, its features."""
    if getattr(X, "shape", ()) != (len(obs), len(names)):
        what = f"X does not have the {len(obs)} samples of obs and the {len(names)} features of var"
        raise InputError(what, remedy="write it again")
    frame = from_matrix(X, names)
    frame.kind = "AnnData" if layer is None else f"AnnData, layer {layer}"
    frame.text["id"] = [*map(str, obs.index)]
    frame.beside = {"obs_names": [*frame.text["id"]]}
    frame.beside |= {str(name): _objects(obs[name]) for name in obs.columns}
    return frame


def stand_up(frame: Frame, roles: Roles, options: ReadOptions) -> tuple[Frame, Roles]:
    """Return the frame with samples in rows, and the roles."""
    free = options.transpose is None and frame.samples == "either"
    why = _why_turned(frame, roles) if free and len(frame.names) > 1 else ""
    if not (why or options.transpose or frame.samples == "columns"):
        return frame, roles
    header, notes = frame.names, list[str]()
    if why:
        notes.append(f"features are in rows, samples in columns: {why}")
    known = {*frame.row_names(), *frame.beside, *frame.labels.columns}
    if roles.id is not None and roles.id not in known and (free or roles.id == header[0]):
        notes.append(f"the header names the samples; there is no row {quote(roles.id)}")
        roles = replace(roles, id=None)
    frame.refuse_duplicates(roles.drop)
    kept = {p: header[p] for p in frame.named(range(1, len(header)))}
    if not kept:
        raise InputError("the header names no sample", remedy="add a header line")
    dropped = {name: "asked for" for name in kept.values() if name in roles.drop}
    left = [name for name in kept.values() if name not in dropped]
    strange = [name for name in left if name not in frame.labels.rows]
    if len(strange) < len(left) and strange:
        notes.append(f"left out, being columns of no labelled sample: {listed(strange)}")
        dropped |= dict.fromkeys(strange, "no label")
    frame = frame.turned()
    frame.pick([p - 1 for p, name in kept.items() if name not in dropped])
    frame.notes, frame.dropped = [*notes, *frame.notes], dropped
    return frame, replace(roles, drop=tuple(n for n in roles.drop if n not in dropped))


def _why_turned(frame: Frame, roles: Roles) -> str:
    """Return why the features must be in rows; empty where they need not be."""
    header, down = frame.names, frame.row_names()
    if roles.features is not None:
        wanted = {*roles.features}
        turns = len(wanted.intersection(down)) > len(wanted.intersection(header))
        return "the rows have the names of the features" if turns else ""
    if frame.labels.columns:
        keys = frame.labels.rows.keys()
        place = next((header.index(n) for n in (roles.id, frame.labels.on) if n in header), 0)
        across, n_down = len(keys & {*header[1:]}), len(keys & {*map(as_label, frame.cells(place))})
        if n_down and across >= n_down:
            what = f"the identifiers of the labels name columns ({listed(list(keys)[:2])}) as well "
            remedy = f"say {option('transpose', True)} if the samples are in columns, "
            remedy += f"{option('transpose', False)} if they are in rows"
            raise InputError(f"{what}as rows", remedy=remedy)
        return "the columns have the names of labelled samples" if across and not n_down else ""
    if roles.target is None or roles.target in header or roles.target not in down:
        return ""
    i = down.index(roles.target)
    row = (as_label(frame.raw.get(p, {}).get(i, frame.X[i, p])) for p in range(1, len(header)))
    numbers = [float(text) for text in row if text and looks_numeric(text)]
    # measurements, those of a sample or of a feature, are no labels
    measured = any(math.isfinite(v) and not v.is_integer() for v in numbers)
    return "" if measured else f"{quote(roles.target)} names a row"


def _name_samples(frame: Frame, roles: Roles) -> set[int]:
    """Find the names of the samples; return the positions of columns that can only be names."""
    header, places = frame.names, list[int]()
    unnamed = frame.column == "column" and not frame.all_features and header[:1] in _UNNAMED
    index = unnamed or (frame.indexed and header[0] not in roles.named().values())
    if roles.id is not None:
        frame.text["id"] = [*map(as_label, _named_cells(frame, roles.id, "id"))]
    elif "id" not in frame.text and not frame.all_features:
        if frame.labels.columns and frame.labels.on in header:
            places = [header.index(frame.labels.on)]
        else:
            places = [0] if index else _column_of_names(frame, roles)
        for p in places:
            frame.text["id"] = [*map(as_label, frame.cells(p))]
    if index:
        what = "first column has no name and" if unnamed else "index"
        said = "taken for sample identifiers" if places == [0] else "left out, as names of rows"
        frame.notes.append(f"the {what} was {said}")
    return {*places, 0} if index else {*places}


def _column_of_names(frame: Frame, roles: Roles) -> list[int]:
    """Find the column that can only name the samples, by labels or by the features of a model."""
    named = {*roles.named().values(), *roles.drop, *(roles.features or ())}
    for p in [p for p in sorted(frame.raw) if frame.names[p] not in named]:
        names = [as_label(cell) for cell in frame.cells(p)]
        if len({*names}) < len(names):
            continue
        text = not all(name is None or looks_numeric(name) for name in names)
        if text and frame.labels.rows.keys() & {*names}:
            frame.roles.append(
                ColumnRole(frame.names[p], "id", "has the names that the labels have")
            )
            return [p]
        if roles.features and (identifies(frame.names[p]) or (p == 0 and text)):
            return [p]
    return []


def join(frame: Frame, labels: Labels) -> None:
    """Put the columns of a second file beside the samples of a table."""
    ids, turn = frame.text.get("id"), option("transpose", True)
    if ids is None:
        remedy = f"name the column of them with {option('id')}, or use {turn} if they head columns"
        raise InputError("the samples have no identifiers to match the labels by", remedy=remedy)
    rows = [labels.rows.get(key or "") for key in ids]
    if all(row is None for row in rows):
        what = f"no sample has a label: the table has {listed([key for key in ids if key][:2])}, "
        what += f"the labels {listed(list(labels.rows)[:2])}"
        remedy = f"identifiers must match exactly; if they name columns of the table, use {turn}"
        raise InputError(what, remedy=remedy)
    if unused := len(labels.rows) - len({*rows} - {None}):
        frame.notes.append(f"{unused} rows of {labels.source} belong to no sample of the table")
    frame.notes.append(f"labels come from {labels.source}, matched by {quote(labels.on)}")
    for name, cells in labels.columns.items():
        frame.beside[name] = [None if row is None else cells[row] for row in rows]


def pick_columns(frame: Frame, roles: Roles, options: ReadOptions) -> None:
    """Read the columns that a caller named by their roles, and make numbers of the others."""
    header, labels = list(frame.names), frame.labels
    known = {*header, *frame.beside, *labels.columns}
    behind = columns_behind(roles.features or (), known)
    roles = replace(roles, adjust=tuple(dict.fromkeys((*roles.adjust, *behind))))
    roles.check()
    if labels.target in {*header}.difference(roles.drop, frame.beside):
        what = f"column {quote(labels.target)} is in the table and in {one_line(labels.source)}"
        remedy = f"leave {option('labels')} out, or use {option('drop', [labels.target])}"
        raise InputError(what, remedy=remedy)
    remedy = f", or make them one with {option('collapse', 'mean')}, 'max' or 'first'"
    others = {*header}.difference(roles.named().values()) if roles.collapse else roles.drop
    frame.refuse_duplicates(others, remedy)
    taken = _name_samples(frame, roles)
    if labels.columns:
        join(frame, labels)
    columns: list[Column] = []
    for role, name in replace(roles, id=None).named().items():
        cells = _named_cells(frame, name, role)
        if role.startswith("adjust:"):
            empty = np.full(len(frame), np.nan)
            columns.append(Column(name, empty, dict(enumerate(cells)), options.codes))
        else:
            frame.text[role] = options.codes.column(role, cells)
    if roles.group in roles.batch:
        frame.text[f"batch:{roles.group}"] = frame.text["group"]
    for name in roles.drop:
        if name not in known:
            raise _no_such_line(frame, name, "drop")
        frame.dropped[name] = "asked for"
    if roles.features is None:
        gone = {*roles.drop} if frame.all_features else {*roles.drop, *roles.named().values()}
        left = [p for p, name in enumerate(header) if p not in taken and name not in gone]
        places = frame.named(left)
    else:
        wanted = [n for n in roles.features if not any(made_of(n, c) for c in roles.adjust)]
        at: dict[str, list[int]] = {name: [] for name in wanted}
        for p, name in enumerate(header):
            at.get(name, []).append(p)
        if absent := [name for name in at if not at[name]]:
            what = f"{len(absent)} of the {len(at)} {frame.column}s needed are missing: "
            remedy = "add them; names must match exactly, their order does not matter"
            raise InputError(what + listed(absent), remedy=remedy)
        places = [p for name in at for p in at[name]]
    strict = roles.features is not None or frame.all_features
    make_numbers(frame, places, columns, options, strict)


def _named_cells(frame: Frame, name: str, role: str) -> list[Any]:
    """Return the cells of a column, or of what is beside the samples."""
    if name in frame.beside:
        return frame.beside[name]
    if name in frame.names and not (frame.all_features and frame.beside):
        return frame.cells(frame.names.index(name))
    raise _no_such_line(frame, name, role)


def _no_such_line(frame: Frame, name: str, role: str) -> InputError:
    """Return the error for a column or row that there is not, with the remedy for tables."""
    header, asked = [n for n in frame.names if n], option(role.partition(":")[0])
    what, across = f"there is no {frame.column} {quote(name)} ({asked})", option("transpose", True)
    remedy = suggestion(name, header)
    if frame.all_features and frame.beside:
        what = f"nothing called {quote(name)} ({asked}) is said of samples"
        usable = []
        for key, cells in frame.beside.items():
            values = dict.fromkeys(value for value in cells if value is not None)
            if 1 < len(values) < len(cells):
                usable.append(f"{quote(key)} ({listed(values, shown=3, limit=24)})")
        listing = f"usable are {first_few(usable, most=8, between='; ')}" if usable else ""
        remedy = f"{did_you_mean(name, list(frame.beside))} {listing}".strip()
    elif frame.column == "row" and name in frame.text["id"]:
        remedy = f"it names a column: if the samples are in rows, leave {across} out"
    elif frame.column == "row":
        remedy += f"; labels may also come from a second file ({option('labels')})"
    elif name in frame.row_names():
        what = f"{quote(name)} names a row, not a column"
        remedy = f"the table has features in rows: use {across}"
    elif header and all(map(looks_numeric, header)):
        remedy = "the first line holds only numbers: add a line with the column names"
    elif role == "target" and remedy.startswith("there"):
        remedy += f"; if the features are in rows, use {across} and give the labels in a second "
        remedy += f"file ({option('labels')})"
    return InputError(what, remedy=remedy)
