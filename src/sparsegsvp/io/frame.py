"""`Frame`: any input as one data frame of cells, which is turned, joined and given its columns.

Numbers are a matrix; a cell that is none, or of a column that may be something else, stays as it
was written until it is known what it is for: an identifier 001 is not 1.
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
    column: str = "column"  # what messages call a column: "row" once it was turned
    indexed: bool = False  # whether the first column is an index, which names the rows
    lines: Sequence[int] | None = None  # of the rows in the file
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
    text: dict[str, list[Any]] = field(default_factory=dict)  # by role: "target", "id", ...
    adjust: dict[str, list[Any]] = field(default_factory=dict)  # columns to adjust for
    texts: dict[str, list[Any]] = field(default_factory=dict)  # columns without a role
    covariates: dict[str, tuple[str, ...]] = field(default_factory=dict)  # their features

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
        if self.lines is not None or name is None:
            return f"row {i + 1}" if self.lines is None else f"line {self.lines[i]}"
        return f"{'sample' if self.column == 'column' else 'column'} {quote(name)}"

    def where(self, i: int, name: str) -> str:
        """Say where a cell is: by line and column, or by names in a table that was turned."""
        return f"{self.row(i)}, {self.column} {quote(name)}"

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
        counts = Counter(name for name in self.names if name and name not in ignore)
        for name in [name for name, k in counts.items() if k > 1][:1]:
            at = [str(p) for p, other in enumerate(self.names, start=1) if other == name]
            what = f"{self.column} name {quote(name)} appears {len(at)} times"
            where = f" ({self.column}s {', '.join(at[:4])})"
            raise InputError(what + where, remedy=f"rename or remove the repeats{remedy}")

    def pick(self, rows: Sequence[int]) -> None:
        """Keep some of the rows."""
        if len(rows) == len(self):
            return
        place = {i: k for k, i in enumerate(rows)}
        self.X = self.X[rows]
        for p, cells in self.raw.items():
            self.raw[p] = {place[i]: cell for i, cell in cells.items() if i in place}
        self.lines = self.lines and [self.lines[i] for i in rows]
        for part in (self.beside, self.text, self.texts, self.adjust):
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
            samples="rows", column="row", indexed=False, lines=None, text={"id": [*self.names[1:]]},
        )  # fmt: skip


def collect(rows: Rows, options: ReadOptions, verbatim: Collection[str] | None) -> Frame:
    """Make a frame of rows of cells; those of the columns and rows asked for stay as written."""
    m, codes, keep = len(rows.names), options.codes, {0}
    series = Counter(re.sub(r"\d+", "#", name) for name in rows.names)
    for p, name in enumerate(rows.names):
        # many that differ in their numbers alone name no identifiers
        names = identifies(name) and series[re.sub(r"\d+", "#", name)] <= 20
        if verbatim is None or name in verbatim or names or look_of(name) or not name:
            keep.add(p)
    frame = Frame(
        rows.names, None, {}, rows.kind, "either", ours=True, notes=rows.notes, notices=rows.notices
    )
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
            keep.update(strange)  # columns of text, which are no more tried as numbers
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
    arrow = need("pyarrow", "cli")  # rounds as Python does, in a third of the time
    for missing in (frozenset[str](), codes.usual):
        with suppress(AttributeError, TypeError, ValueError):  # a spreadsheet's cells, other text
            texts = ["nan" if c in missing else c.strip() for c in cells] if missing else cells
            if decimal == ",":
                texts = [text.replace(".", "_").replace(",", ".") for text in texts]
            return np.array(arrow.array(texts, arrow.string()).cast(arrow.float64())), []
    read = [codes.number(cell, decimal) for cell in cells]
    values = np.array([math.nan if v is None else v for v in read], dtype=np.float64)
    return values, [j for j, value in enumerate(read) if value is None]


def from_pandas(data: Any) -> Frame:
    """Make a frame of a pandas data frame; its index is the first column unless it counts."""
    from pandas.api import types

    index = data.index
    counts = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    indexed = not counts or index.name is not None
    names = [str(index.name or "")] * indexed + [as_label(name) or "" for name in data.columns]
    if indexed:
        keys = np.empty(len(index), dtype=object)  # which tuples and numbers stay in
        keys[:] = [", ".join(map(str, key)) if isinstance(key, tuple) else key for key in index]
        data = data.copy(deep=False)
        data.insert(0, "", keys, allow_duplicates=True)
    numeric = [types.is_numeric_dtype(d) and not types.is_complex_dtype(d) for d in data.dtypes]
    at = np.flatnonzero(numeric)
    kinds = {str(data.dtypes.iloc[i]).lower() for i in at}
    single = bool(kinds) and kinds <= {"float32", "float16"}
    X = np.full(data.shape, np.nan, dtype=np.float32 if single else np.float64)
    if len(at):
        X[:, at] = data.iloc[:, at].to_numpy(dtype=X.dtype, na_value=np.nan)
    texts = (i for i, number in enumerate(numeric) if not number)
    raw = {i: dict(enumerate(_objects(data.iloc[:, i]))) for i in texts}
    return Frame(names, X, raw, "pandas", ours=True, indexed=indexed)


def _objects(column: Any) -> list[Any]:
    """Return the cells of a column of pandas, None where one is missing."""
    objects = column.astype(object)
    return list(objects.where(objects.notna(), None))


def from_matrix(X: Any, names: Sequence[Any] | None) -> Frame:
    """Make a frame of a matrix, all columns of which are features; sparse indices are checked."""
    packed, what = sparse.issparse(X), ""
    X = X if packed else np.asarray(X)
    if X.ndim != 2:
        what = f"the data are {X.ndim}-dimensional"
    elif X.dtype.kind not in "biuf":
        what = f"the matrix holds {X.dtype}, not numbers"
    elif names is not None and len(names) != X.shape[1]:
        what = f"{len(names)} feature_names for {X.shape[1]} columns of X"
    if what:
        remedy = "give a data frame, or a matrix of numbers with one name for each column"
        raise InputError(what, remedy=remedy)
    kind = "CSR" if packed else str(X.dtype)
    if packed:
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            what = f"its sparse matrix is damaged ({error})"
            raise InputError(what, remedy="write it again") from error
        X = X.tocsr(copy=not getattr(X, "has_canonical_format", False))
        X.sum_duplicates()
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    notes = ["the features have no names and were numbered f0, f1, …"] if names is None else []
    names = [f"f{j}" for j in range(X.shape[1])] if names is None else names
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
    header = frame.names
    notes = [f"features are in rows, samples in columns: {why}"] if why else []
    known = {*frame.row_names(), *frame.beside, *frame.labels.columns}
    if roles.id is not None and roles.id not in known and (free or roles.id == header[0]):
        notes.append(f"the header names the samples; there is no row {quote(roles.id)}")
        roles = replace(roles, id=None)
    frame.refuse_duplicates(roles.drop)
    places = {header[p]: p for p in frame.named(range(1, len(header)))}
    dropped = {name: "asked for" for name in places if name in roles.drop}
    strange = [name for name in places if name not in {*dropped, *frame.labels.rows}]
    if len(strange) < len(places) - len(dropped):
        dropped |= dict.fromkeys(strange, "no label")
        if strange:
            notes.append(f"left out, being columns of no labelled sample: {listed(strange)}")
    frame = frame.turned()
    frame.pick([p - 1 for name, p in places.items() if name not in dropped])
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
        named = next((n for n in (roles.id, frame.labels.on) if n in header), header[0])
        n_down = len(keys & {*map(as_label, frame.cells(header.index(named)))})
        n_across = len(keys & {*header[1:]})
        if n_across >= n_down > 0:
            what = f"the identifiers of the labels name columns ({listed([*keys][:2])}) and rows"
            ways = f"{option('transpose', True)} if the samples are in columns, else "
            raise InputError(what, remedy=f"say {ways}{option('transpose', False)}")
        return "the columns have the names of labelled samples" if n_across > n_down else ""
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
    header, place = frame.names, None
    unnamed = frame.column == "column" and not frame.all_features and header[:1] in _UNNAMED
    index = unnamed or (frame.indexed and header[0] not in roles.named().values())
    if roles.id is not None:
        frame.text["id"] = [*map(as_label, _named_cells(frame, roles.id, "id"))]
    elif "id" not in frame.text and not frame.all_features:
        place = 0 if index else _column_of_names(frame, roles)
        if frame.labels.on and frame.labels.on in header:
            place = header.index(frame.labels.on)
        if place is not None:
            frame.text["id"] = [*map(as_label, frame.cells(place))]
    if index:
        what = "first column has no name and" if unnamed else "index"
        said = "taken for sample identifiers" if place == 0 else "left out, as names of rows"
        frame.notes.append(f"the {what} was {said}")
    return {p for p in (place, 0 if index else None) if p is not None}


def _column_of_names(frame: Frame, roles: Roles) -> int | None:
    """Find the column that can only name the samples, by labels or by the features of a model."""
    named = {*roles.named().values(), *roles.drop, *(roles.features or ())}
    for p in [p for p in sorted(frame.raw) if frame.names[p] not in named]:
        names, title = [*map(as_label, frame.cells(p))], frame.names[p]
        text = not all(name is None or looks_numeric(name) for name in names)
        labelled = text and not frame.labels.rows.keys().isdisjoint(names)
        unique = len({*names}) == len(names)
        if unique and labelled:
            frame.roles.append(ColumnRole(title, "id", "has the names that the labels have"))
        if unique and (labelled or (roles.features and (identifies(title) or (p == 0 and text)))):
            return p
    return None


def join(frame: Frame, labels: Labels) -> None:
    """Put the columns of a second file beside the samples of a table."""
    ids = frame.text.get("id", [])
    rows = [labels.rows.get(key or "") for key in ids]
    if all(row is None for row in rows):
        what = f"no sample has a label: the table has {listed([key for key in ids if key][:2])}, "
        what += f"the labels {listed([*labels.rows][:2])}"
        remedy = f"name the column of identifiers, which must match exactly, with {option('id')}, "
        remedy += f"or use {option('transpose', True)} if they head columns"
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
    remedy = f", or make them one with {option('collapse', 'mean')} or 'max'"
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
        order = {name: k for k, name in enumerate(wanted)}
        if absent := sorted(order.keys() - {*header}, key=order.__getitem__):
            what = f"{len(absent)} of the {len(order)} {frame.column}s needed are missing: "
            remedy = "add them; names must match exactly, their order does not matter"
            raise InputError(what + listed(absent), remedy=remedy)
        places = [p for p, name in enumerate(header) if name in order]
        places.sort(key=lambda p: order[header[p]])
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
    header, across = [n for n in frame.names if n], option("transpose", True)
    asked, remedy = option(role.partition(":")[0]), suggestion(name, header)
    what = f"there is no {frame.column} {quote(name)} ({asked})"
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
    elif frame.column == "column" and name in frame.row_names():
        what = f"{quote(name)} names a row, not a column"
        remedy = f"the table has features in rows: use {across}"
    elif header and all(map(looks_numeric, header)):
        remedy = "the first line holds only numbers: add a line with the column names"
    elif role == "target":
        remedy += f"; if the features are in rows, use {across} and give the labels in a second "
        remedy += f"file ({option('labels')})"
    return InputError(what, remedy=remedy)
