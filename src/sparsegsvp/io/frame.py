"""`Frame`: any input as one data frame of cells, and what makes it of rows and of data in memory.

Columns of clean numbers are a matrix, all others stay as they were written until it is known what
they are for: an identifier 001 is not 1. Whoever adds a format returns a `Frame`.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice
from .cells import Codes, Place, as_label, column_slices, look_at, to_numbers
from .errors import InputError, option, quote
from .roles import look_of, names_people, names_samples
from .text import OpenRows, ReadOptions, Rows

_SURE = 50  # rows that show which columns hold text
_STRAY = 0.1  # a column with a smaller share of text is numbers with a slip in it
_EXACT = 2.0**53  # whole numbers from here on lose digits


@dataclass
class Frame:
    """Cells in columns, samples in rows or not.

    Attributes
    ----------
    names : list of str
        Of all columns, in their order.
    numbers : ndarray or CSR matrix of shape (n_rows, len(at))
        Columns of numbers; NaN where a value is missing.
    at : ndarray of int
        Their positions among the columns.
    texts : dict of int to list
        The cells of the other columns, by position.
    kind : str
        The format, for the record.
    place : str
        What messages call a row: "line", "row", or "column" once the table was turned.
    lines : sequence of int or None
        The place of each row in its file.
    decimal : str or None
        The mark with which `numbers` were written; None if they were stored as numbers.
    codes : Counter
        Codes for missing values among `numbers`, as they were written.
    text_rows : dict of int to list
        Rows that hold text where others hold numbers: all their cells.
    ids : list or None
        Names of the rows that are no column, such as an index, and `id_name` what they are called.
    meta : dict of str to list or None
        What is known of the samples apart from the columns: ``obs`` of AnnData, GEO's samples.
    titles : list or None
        Other names of the samples, by which labels may be matched.
    """

    names: list[str]
    numbers: Any
    at: NDArray[np.intp]
    texts: dict[int, list[Any]]
    kind: str
    place: str = "row"
    lines: Sequence[int] | None = None
    decimal: str | None = None
    codes: Counter[str] = field(default_factory=Counter)
    text_rows: dict[int, list[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    ids: list[Any] | None = None
    id_name: str = ""
    meta: dict[str, list[Any]] | None = None
    titles: list[str | None] | None = None
    turns: bool = False  # whether features may be in rows
    in_doubt: bool = False  # whether no number of the matrix shows what its decimal mark is
    name_lines: Sequence[int] | None = None  # of the features, once the table was turned
    dropped: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    def column(self, position: int) -> list[Any]:
        """Return the cells of a column; numbers where they are no text any more."""
        if position in self.texts:
            return self.texts[position]
        j = int(np.searchsorted(self.at, position))
        column = self.numbers[:, [j]]
        cells = (column.toarray() if sparse.issparse(column) else column).ravel().tolist()
        for i, row in self.text_rows.items():
            cells[i] = row[position]
        return cells

    def row(self, i: int) -> str:
        """Say where a row is in the file, or in the table if that has no lines."""
        return f"{self.place} {i + 1 if self.lines is None else self.lines[i]}"

    def where(self, i: int, name: str) -> str:
        """Say where a cell is: by line and column, and by row in a table that was turned."""
        if self.place != "column":
            return f"{self.row(i)}, column {quote(name)}"
        p = self.names.index(name) if name in self.names else 0
        line = f"line {self.name_lines[p]}, " if self.name_lines else ""
        return f"{line}row {quote(name)}, column {quote(self.ids[i] if self.ids else i + 1)}"

    def fraction(self) -> tuple[str, Place] | None:
        """Return the decimal mark of the numbers and a cell that has it, if there is one."""
        if self.decimal is None:
            return None
        for i in range(len(self)):
            for j in np.flatnonzero(np.isfinite(self.numbers[i]) & (self.numbers[i] % 1 != 0)):
                text = repr(float(self.numbers[i, j]))
                if "." in text:  # 9e-05 has no mark
                    name = self.names[self.at[j]]
                    text = text.replace(".", self.decimal)
                    return self.decimal, Place(text, name, self.row(i), self.where(i, name))
        return None

    def upright(self, options: ReadOptions) -> Frame:
        """Return the frame with samples in rows: text where others hold numbers is refused."""
        codes, numbers = Codes(options.na), self.numbers
        for i, cells in self.text_rows.items():
            values, _, odd = to_numbers(
                [cells[p] for p in self.at], self.decimal or ".", None, codes
            )
            if odd:
                cell, name = cells[self.at[odd[0]]], self.names[self.at[odd[0]]]
                more = f" ({len(odd) - 1} more cells of this line are none)" if len(odd) > 1 else ""
                raise InputError(
                    f"{quote(str(cell).strip())} is not a number{more}",
                    where=f"{self.row(i)}, column {quote(name)}",
                    remedy="remove the line if it is no sample, or use "
                    f"{option('transpose', True)} if the features are in rows",
                )
            numbers[i] = values
        return replace(self, text_rows={}, turns=False)

    def turned(self, options: ReadOptions, skip: Collection[str] = ()) -> Frame:
        """Return a frame with features in rows the other way round; `skip` are no samples."""
        codes, mark = Codes(options.na), self.decimal or "."
        names = [as_label(cell) for cell in self.column(0)]
        if None in names:
            raise InputError(
                "a row has no name", where=self.row(names.index(None)), remedy="name the feature"
            )
        for p in range(1, len(self.names)):
            refuse_unnamed(self, p)
        kept = [p for p in range(1, len(self.names)) if self.names[p] and self.names[p] not in skip]
        if not kept:
            raise InputError("the header names no sample", remedy="add a header line")
        M, met = np.empty((len(names), len(kept))), self.codes.copy()
        place = {int(p): j for j, p in enumerate(self.at)}
        odd_in: dict[int, list[int]] = {}
        for j, p in enumerate(kept):
            if p in place:
                M[:, j] = self.numbers[:, place[p]]
            else:
                M[:, j], more, odd_in[p] = to_numbers(self.texts[p], mark, None, codes)
                met += more
        counts = Counter(i for odd in odd_in.values() for i in odd)
        rows = {*self.text_rows, *(i for i, n in counts.items() if 2 * n > len(kept))}
        for p, odd in odd_in.items():
            strays = [i for i in odd if i not in rows]
            if len(names) > 2 and len(strays) > max(1, _STRAY * len(names)):
                text = f"{quote(self.texts[p][strays[0]])} on {self.row(strays[0])}"
                raise InputError(
                    f"column {quote(self.names[p])} holds text ({text})",
                    remedy=f"drop it with {option('drop', [self.names[p]])}: every column but the "
                    "first is a sample",
                )
        texts = rows.union(counts)
        columns = {p: self.column(p) for p in kept} if texts else {}
        at = np.array([i for i in range(len(names)) if i not in texts], dtype=np.intp)
        return Frame(
            [name or "" for name in names],
            M.T[:, at],
            at,
            {i: [columns[p][i] for p in kept] for i in sorted(texts)},
            f"{self.kind}, transposed",
            place="column",
            decimal=self.decimal,
            codes=met,
            notes=self.notes,
            notices=self.notices,
            ids=[self.names[p] for p in kept],
            name_lines=self.lines,
            in_doubt=self.in_doubt,
        )


def refuse_unnamed(frame: Frame, position: int) -> None:
    """Refuse a column without a name that holds anything."""
    if frame.names[position]:
        return
    cells = frame.column(position)
    i = next((i for i, cell in enumerate(cells) if as_label(cell) is not None), None)
    if i is not None:
        raise InputError(
            f"column {position + 1} has no name but holds {quote(cells[i])}",
            where=frame.row(i),
            remedy="give it a name in the header",
        )


# --- rows of cells -----------------------------------------------------------------------


def collect(open_rows: OpenRows, options: ReadOptions, asked: Collection[str] | None) -> Frame:
    """Make a frame of rows of cells; those of the columns and rows asked for stay as written.

    All do if `asked` is None.

    Numbers are read as the rows come. A column with a cell that is none, or that may be read in
    two ways, is left to the parser of cells: the rows are read again with it set aside.
    """
    codes, text, in_doubt = Codes(options.na), set[int](), False
    decimal = options.decimal or {".": ",", ",": "."}.get(options.thousands or "")
    while True:
        with open_rows() as rows:
            if not text:
                text = {i for i, name in enumerate(rows.names) if keeps_text(name, asked)} | {0}
            frame, odd, comma = _read(rows, text, decimal or ".", codes, asked)
        if comma and decimal is None and frame.fraction() is None:
            decimal = ","
        elif odd:
            text |= odd
        elif not in_doubt and frame.decimal is not None and (odd := _three_decimals(frame)):
            text, in_doubt = text | odd, True
        else:
            return replace(frame, in_doubt=in_doubt)


def keeps_text(name: str, asked: Collection[str] | None) -> bool:
    """Whether the cells of a column may be something else than numbers, by its name."""
    if asked is None or name in asked or not name:
        return True
    look = look_of(name)
    return (look is not None and look.plain) or names_samples(name) or names_people(name)


def _read(
    rows: Rows, text: set[int], decimal: str, codes: Codes, asked: Collection[str] | None
) -> tuple[Frame, set[int], bool]:
    """Read rows as far as they go; return the columns that are no numbers, and if 1,5 was met."""
    at = [i for i in range(len(rows.names)) if i not in text]
    pick = _picker(at)
    reader = _NumberReader(decimal, codes)
    buffer, lines = array("d"), array("q")
    texts: dict[int, list[Any]] = {p: [] for p in sorted(text)}
    text_rows: dict[int, list[Any]] = {}
    odd_columns: Counter[int] = Counter()
    odd: set[int] = set()
    for line, cells in rows.rows:
        i = len(lines)
        lines.append(line)
        for p, column in texts.items():
            column.append(cells[p])
        values, strange = reader.row(pick(cells))
        buffer.frombytes(values.tobytes())
        first = cells[0]
        mostly = len(strange) > max(2, len(at) / 2)
        if mostly or (asked and isinstance(first, str) and first in asked):
            text_rows[i] = cells
            odd_columns.update(strange)
        else:
            odd.update(strange)
        if len(lines) == _SURE and (odd or max(odd_columns.values(), default=0) > _SURE / 2):
            break
    odd.update(j for j, n in odd_columns.items() if n > len(lines) / 2)
    X = np.frombuffer(buffer, dtype=np.float64).reshape(len(lines), len(at))
    if not odd and reader.met_text:
        odd.update(_ambiguous(X))
    frame = Frame(
        rows.names, X, np.array(at, dtype=np.intp), texts, rows.kind, "line", lines,
        decimal if reader.met_text else None, reader.codes, text_rows, rows.notes, rows.notices,
        turns=True,
    )  # fmt: skip
    return frame, {at[j] for j in odd}, reader.comma


def _picker(positions: list[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """Return what picks cells of a row; a slice, nearly always possible, is much faster."""
    if positions and positions == list(range(positions[0], positions[-1] + 1)):
        part = slice(positions[0], positions[-1] + 1)
        return lambda cells: cells[part]
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda cells: [cells[i] for i in positions]


def _ambiguous(X: NDArray[np.float64]) -> list[int]:
    """Return columns whose numbers may be written with thousands, or have too many digits."""
    high = np.fmax(np.fmax.reduce(X, axis=0, initial=0), -np.fmin.reduce(X, axis=0, initial=0))
    columns = np.flatnonzero((high >= _EXACT) & np.isfinite(high)).tolist()
    for j in np.flatnonzero((high >= 100) & (high < 1000)).tolist():
        part = np.abs(X[:, j][X[:, j] % 1 != 0])
        part = part[~np.isnan(part)]
        if (
            len(part)
            and part.min() >= 1
            and (np.abs(part * 1e3 - np.rint(part * 1e3)) < 1e-6).all()
        ):
            columns.append(j)
    return columns


def _three_decimals(frame: Frame) -> set[int]:
    """Return some columns if no number of a table shows that its marks are decimal ones."""
    X, columns = frame.numbers, list[int]()
    for part in column_slices(X):
        block = np.abs(X[:, part])
        block = np.where(np.isfinite(block) & (block % 1 != 0), block, 1.125)
        if block.min(initial=1) < 1 or (np.abs(block * 1e3 - np.rint(block * 1e3)) > 1e-6).any():
            return set()
        columns += (part.start + np.flatnonzero((block != 1.125).any(axis=0))).tolist()
    return {int(frame.at[j]) for j in columns[:3]}


class _NumberReader:
    """Turn rows of cells into float64; most rows are clean and are read at once.

    `codes` counts what was taken as missing, `comma` is whether 1,5 was met where points were
    expected, `met_text` whether any cell was a text.
    """

    def __init__(self, decimal: str, codes: Codes) -> None:
        self.decimal, self.known = decimal, codes
        self.codes: Counter[str] = Counter()
        self.comma = self.met_text = False

    def row(self, cells: Sequence[Any]) -> tuple[NDArray[np.float64], list[int]]:
        """Return the numbers of a row, NaN where a cell is none, and where that is so."""
        try:
            joined = "\n".join(cells)
        except TypeError:  # a spreadsheet: numbers are numbers already
            joined = "_"
            self.met_text = self.met_text or any(isinstance(cell, str) and cell for cell in cells)
        else:
            self.met_text = True
        if "_" in joined or not joined.isascii() or (self.decimal == "," and "." in joined):
            return self._slowly(cells)  # Python would read 1_000 as a number
        texts = [cell.replace(",", ".") for cell in cells] if self.decimal == "," else cells
        try:
            values = np.fromiter(map(float, texts), np.float64, len(texts))
        except ValueError:
            usual = self.known.usual
            try:
                values = np.array([np.nan if t in usual else float(t) for t in texts], float)
            except ValueError:
                return self._slowly(cells)
        for j in np.flatnonzero(np.isnan(values)).tolist():
            if code := cells[j].strip():
                self.codes[code] += 1
        return values, []

    def _slowly(self, cells: Sequence[Any]) -> tuple[NDArray[np.float64], list[int]]:
        values, met, odd = to_numbers(cells, self.decimal, None, self.known)
        self.codes += met
        if odd and self.decimal == "." and not self.comma:
            self.comma = bool(look_at([cells[j] for j in odd], self.known).marked[","])
        return values, odd


# --- data in memory ----------------------------------------------------------------------


def from_pandas(frame: Any) -> Frame:
    """Make a frame of a pandas data frame; its index names the samples unless it counts."""
    from pandas.api import types

    dtypes = list(frame.dtypes)
    at = [
        i
        for i, dtype in enumerate(dtypes)
        if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)
    ]
    kinds = {str(dtypes[i]).lower().partition("[")[0] for i in at}
    single = bool(at) and kinds <= {"float32", "float16", "float"}
    dtype = np.float32 if single else np.float64
    X = (
        frame.iloc[:, at].to_numpy(dtype=dtype, na_value=np.nan)
        if at
        else np.empty((len(frame), 0))
    )
    columns = {i: frame.iloc[:, i].astype(object) for i in set(range(len(dtypes))).difference(at)}
    texts = {i: column.where(column.notna(), None).tolist() for i, column in columns.items()}
    names = [as_label(name) or "" for name in frame.columns]
    made = Frame(names, np.ascontiguousarray(X), np.array(at, dtype=np.intp), texts, "pandas")
    index = frame.index
    if index.nlevels > 1:
        index = index.map(lambda levels: ", ".join(str(level) for level in levels))
    counts = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    if not counts or index.name is not None:
        made.ids, made.id_name = list(index), str(index.name or "index")
    return made


def from_matrix(X: Any, names: Sequence[str] | None) -> Frame:
    """Make a frame of an array or a sparse matrix, all columns of which are features."""
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise InputError(
            f"the data are {X.ndim}-dimensional", remedy="give a matrix with a row for each sample"
        )
    notes = []
    if names is None:
        names = [f"f{j}" for j in range(X.shape[1])]
        notes = ["the features have no names and were numbered f0, f1, …"]
    elif len(names) != X.shape[1]:
        raise InputError(
            f"{len(names)} feature_names for {X.shape[1]} columns of X",
            remedy="give one name for each column",
        )
    kind = "CSR" if sparse.issparse(X) else str(X.dtype)
    named = [as_label(name) or f"column {j}" for j, name in enumerate(names)]
    if X.dtype.kind in "biuf":
        frame = Frame(named, checked_matrix(X), np.arange(X.shape[1]), {}, kind)
    elif sparse.issparse(X):
        raise InputError(f"the matrix holds {X.dtype}, not numbers")
    else:
        rows = [(i, row) for i, row in enumerate(X.tolist(), start=1)]
        frame = collect(lambda: nullcontext(Rows(named, iter(rows), kind)), ReadOptions(), ())
        frame = replace(frame, place="row", lines=None, turns=False, decimal=None)
    frame.notes = notes
    frame.meta = {}
    return frame


def from_anndata(X: Any, obs: Any, names: Sequence[Any], kind: str) -> Frame:
    """Make a frame of AnnData: a matrix, its samples and their columns in obs, its features."""
    shape = getattr(X, "shape", ())
    if tuple(shape) != (len(obs), len(names)):
        raise InputError(
            f"X is {' x '.join(map(str, shape))}, but obs names {len(obs)} samples and var "
            f"{len(names)} features",
            remedy="write it again",
        )
    named = [as_label(name) or f"column {j}" for j, name in enumerate(names)]
    frame = Frame(named, checked_matrix(X), np.arange(len(named)), {}, kind)
    frame.ids = [str(name) for name in obs.index]
    frame.meta = {}
    for name in obs.columns:
        column = obs[name].astype(object)
        frame.meta[str(name)] = column.where(column.notna(), None).tolist()
    return frame


def checked_matrix(X: Any) -> Any:
    """Return a matrix as floating point, with every index of a sparse one checked."""
    dtype = getattr(X, "dtype", None)
    if dtype is None or dtype.kind not in "biuf" or X.ndim != 2:
        raise InputError(f"X is of type {dtype}", remedy="it must be numbers")
    if sparse.issparse(X):
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise InputError(
                f"its sparse matrix is damaged ({error})", remedy="write it again"
            ) from error
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
