"""Cells: the one parser that makes numbers, labels and missing values of them.

Text is a number with a decimal point or, if the table shows it, with decimal commas. What may be
read in two ways is refused with both: 1.042 beside 783 may be 1042, and 1,234 may be 1.234.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Action, Notice
from .errors import InputError, listed, option, quote
from .text import ReadOptions, looks_numeric

_DECIMAL = {
    ".": re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?"),
    ",": re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?"),
}
_WHOLE = re.compile(r"[+-]?\d+")
_THOUSANDS = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}([{mark}]\d{{3}})+") for mark in ".,"}
_BLANKS = " \u00a0\u2009\u202f"  # also those that do not break
_MARKS = {".": ".", ",": ",", "'": "'\u2019", " ": _BLANKS}
# Digits in groups of three, with a fraction or not, whatever the marks.
_GROUPED = re.compile(rf"[+-]?\d{{1,3}}([.,'\u2019{_BLANKS}])\d{{3}}(\1\d{{3}})*([.,]\d+)?")
_CODE_LENGTH = 20  # what is longer is no code

# Cells that say "too little to be measured" rather than "not known".
BELOW_DETECTION = frozenset(
    [f"{sign}{limit}" for sign in ("", "<", "< ", "below ") for limit in ("lod", "loq", "dl")]
    + ["nd", "n.d.", "n.d", "n/d", "bdl", "blod", "bloq", "not detected", "undetected"]
    + ["undetermined", "below detection", "below detection limit", "below limit of detection"]
)
# What programs write for a value that is not there: missing in every column, labels too.
NOT_AVAILABLE = frozenset(["", "na", "n/a", "#n/a", "#na", "<na>", "nan", "null", "#null!"])
# In a column of numbers these stand for "not measured"; among labels they may name a class.
MISSING = BELOW_DETECTION.union(
    NOT_AVAILABLE,
    ["n.a.", "n.a", "none", "nil", "#div/0!", "#num!", "#value!", "#ref!", "#name?"],
    ["?", ".", "-", "--", "\N{EN DASH}", "\N{EM DASH}", "missing", "unknown"],
    ["not available", "not applicable", "not measured", "not determined", "no data"],
)


def codes_of(na: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return codes that were given as one text with commas, or one by one."""
    given = [] if na is None else na.split(",") if isinstance(na, str) else na
    return tuple(dict.fromkeys(code for code in (str(c).strip() for c in given) if code))


def as_label(cell: Any, strip: bool = True) -> str | None:
    """Read a cell as text: None if it is empty; 1.0 is the same as 1."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, float | np.floating):
        if math.isnan(cell):
            return None
        return str(int(cell)) if float(cell).is_integer() else repr(float(cell))
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    text = str(cell)
    return (text.strip() if strip else text) if text.strip() else None


def is_value(cell: Any) -> bool:
    """Whether a cell is stored as a number or a truth value."""
    return isinstance(cell, int | float | Decimal | np.number | np.bool_)


class Codes:
    """Codes for missing values: the usual ones, and those that a caller gave.

    Codes are told in capitals or not; one that is a number holds however it is written, -999
    and -999.0.
    """

    def __init__(self, given: Sequence[str] = ()) -> None:
        self.given = frozenset(code.lower() for code in given)
        self.missing = MISSING | self.given
        self.usual = self.missing.union(c.upper() for c in self.missing) | {
            c.capitalize() for c in self.missing
        }
        numbers = (float(code) for code in given if looks_numeric(code))
        self.numbers = [value for value in numbers if math.isfinite(value)]

    def label(self, cell: Any, *, strip: bool = True) -> str | None:
        """Read a label, a group or a category; None where it is missing."""
        text = as_label(cell, strip)
        if text is None or text.strip().lower() in NOT_AVAILABLE | self.given:
            return None
        if self.numbers and looks_numeric(text) and float(text) in self.numbers:
            return None
        return text


# --- columns of cells to numbers ---------------------------------------------------------


@dataclass
class Column:
    """Cells of a column that is not numbers yet, and what is among them.

    `marked` has the rows of cells with each decimal mark, `grouped` of those that have other
    marks in thousands, `bad` of the rest.
    """

    cells: Sequence[Any]
    marked: dict[str, list[int]] = field(default_factory=lambda: {".": [], ",": []})
    grouped: list[int] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    n_filled: int = 0

    @property
    def holds_text(self) -> bool:
        """Whether at least half of its cells are no numbers."""
        return 2 * len(self.bad) >= self.n_filled and bool(self.bad)


def look_at(cells: Sequence[Any], codes: Codes) -> Column:
    """Sort the cells of a column by how their numbers are written."""
    column = Column(cells)
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            text = cell.strip()
            if text in codes.usual or text.lower() in codes.missing:
                continue
            column.n_filled += 1
            if _WHOLE.fullmatch(text) and text.isascii():
                continue
            mark = next((mark for mark, form in _DECIMAL.items() if form.fullmatch(text)), None)
            if mark is not None:
                column.marked[mark].append(i)
            elif _GROUPED.fullmatch(text):
                column.grouped.append(i)
            elif not looks_numeric(text):  # as 1e5 and inf do
                column.bad.append(i)
        elif is_value(cell):
            column.n_filled += not math.isnan(cell)
        elif as_label(cell) is not None:
            column.n_filled += 1
            column.bad.append(i)
    return column


@dataclass(frozen=True)
class Place:
    """A cell that a message is about: its text, its column, and where it is."""

    text: str
    column: str
    row: str
    where: str


def find_decimal(
    columns: Mapping[str, Column], options: ReadOptions, table: Any, read: tuple[str, Place] | None
) -> str:
    """Return the decimal mark of all columns, or refuse what may be read in two ways.

    `table` says where cells are, and `read` is the mark that the other columns of the table were
    read with and a cell that has it, if there is one.
    """

    def place(name: str, i: int) -> Place:
        text = str(columns[name].cells[i]).strip()
        return Place(text, name, table.row(i), table.where(i, name))

    first = {
        mark: next(
            (place(n, c.marked[mark][0]) for n, c in columns.items() if c.marked[mark]), None
        )
        for mark in ".,"
    }
    for mark in ".,":
        if mark == options.thousands:
            first[mark] = None
        elif read is not None and read[0] == mark:
            first[mark] = first[mark] or read[1]
    if options.decimal is not None:
        wrong = first["," if options.decimal == "." else "."]
        if wrong is not None:
            kind = {".": "a comma", ",": "a point"}[options.decimal]
            said = {".": "points", ",": "commas"}[options.decimal]
            raise InputError(
                f"{quote(wrong.text)} has {kind}",
                where=wrong.where,
                remedy=f"with decimal {said} no number may have one, unless it is a separator of "
                f"thousands ({option('thousands')})",
            )
        return options.decimal
    comma, point = first[","], first["."]
    if comma is not None and point is not None:
        raise InputError(
            f"column {quote(comma.column)} has the decimal comma of {quote(comma.text)} on "
            f"{comma.row}, column {quote(point.column)} the decimal point of {quote(point.text)} "
            f"on {point.row}",
            remedy="write all numbers with points, or say which of the two is the separator of "
            f"thousands with {option('thousands')}",
        )
    mark = "," if comma is not None or options.thousands == "." else "."
    commas = (str(c.cells[i]).strip() for c in columns.values() for i in c.marked[","])
    if (
        comma is not None
        and (read is None or read[0] != ",")
        and all(map(_THOUSANDS[","].fullmatch, commas))
    ):
        raise _two_readings(comma, ",")
    for name, column in columns.items():
        if mark != options.thousands and _may_be_thousands(column, mark):
            raise _two_readings(place(name, column.marked[mark][0]), mark)
    return mark


def may_be_thousands(columns: Mapping[str, Column], mark: str) -> Iterator[Notice]:
    """Say so where every number with a mark has three digits after it."""
    marked = [
        (name, str(c.cells[i]).strip()) for name, c in columns.items() for i in c.marked[mark]
    ]
    if marked and all(_THOUSANDS[mark].fullmatch(text) for _, text in marked):
        name, text = marked[0]
        yield Notice(
            "thousands",
            "note",
            f"All numbers with a {'point' if mark == '.' else 'comma'} have three digits after it, "
            f"such as {quote(text)} in {quote(name)}: it is read as the decimal mark. If it "
            "separates thousands, say so with the option thousands.",
            (Action("thousands", mark, f"Read {text} as {text.replace(mark, '')}"),),
        )


def _may_be_thousands(column: Column, mark: str) -> bool:
    """Whether marks stand before three digits only, beside whole numbers of three digits."""
    marked = [str(column.cells[i]).strip() for i in column.marked[mark]]
    if not marked or not all(map(_THOUSANDS[mark].fullmatch, marked)):
        return False
    texts = (cell.strip() for cell in column.cells if isinstance(cell, str))
    sizes = [abs(int(text)) for text in texts if len(text) < 20 and _WHOLE.fullmatch(text)]
    return bool(sizes) and 100 <= max(sizes) < 1000


def _two_readings(place: Place, mark: str) -> InputError:
    decimal, whole = place.text.replace(",", "."), place.text.replace(mark, "")
    kind = {".": "a decimal point", ",": "a decimal comma"}[mark]
    return InputError(
        f"{quote(place.text)} may have {kind} or a thousands separator: it is {decimal} or {whole}",
        where=place.where,
        remedy=f"use {option('decimal', mark)} if it is {kind}, {option('thousands', mark)} if it "
        "separates thousands",
    )


def to_numbers(
    cells: Sequence[Any], decimal: str, thousands: str | None, codes: Codes
) -> tuple[NDArray[np.float64], Counter[str], list[int]]:
    """Return cells as numbers, how often each code for missing values occurs, and bad places."""
    values, met, bad = np.full(len(cells), np.nan), Counter[str](), list[int]()
    marks = _MARKS[thousands] if thousands else ""
    grouped = re.compile(rf"[+-]?\d{{1,3}}([{marks}]\d{{3}})+([{decimal}]\d*)?") if marks else None
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            text = cell.strip()
            if text.lower() in codes.missing:
                met[text] += bool(text)
                continue
            if grouped is not None and grouped.fullmatch(text):
                text = re.sub(f"[{marks}]", "", text)
            if decimal == ",":
                text = text.replace(".", "_").replace(",", ".")
            if looks_numeric(text):
                values[i] = float(text)
            else:
                bad.append(i)
        elif is_value(cell):
            values[i] = float(cell)
        elif as_label(cell) is not None:
            bad.append(i)
    return values, +met, bad


def not_a_number(column: Column, bad: list[int], name: str, table: Any) -> InputError:
    """Return the error of cells that are no numbers in a column, or row, of numbers."""
    line, where = "row" if table.place == "column" else "column", table.where(bad[0], name)
    text = str(column.cells[bad[0]]).strip()
    if _GROUPED.fullmatch(text):
        mark = next(c for c in text.lstrip("+-") if not c.isdigit())
        mark = next(m for m, all_ in _MARKS.items() if mark in all_)
        return InputError(
            f"{quote(text)} is not a number (it has a thousands separator)",
            where=where,
            remedy=f"use {option('thousands', mark)}, or remove the separators",
        )
    same = len({str(column.cells[i]).strip() for i in bad}) == 1
    code = ""
    if same and "," not in text and len(text) <= _CODE_LENGTH:
        code = f"; if it stands for a missing value, use {option('na', text)}"
    like = "" if len(bad) == 1 else f" ({len(bad)} cells like this)"
    return InputError(
        f"{quote(text)} is not a number{like}",
        where=where,
        remedy=f"correct it, leave the cell empty, or leave the {line} out with "
        f"{option('drop', [name])}{code}",
    )


# --- codes in matrices -------------------------------------------------------------------


def mark_missing(X: Any, values: Sequence[float], *, in_place: bool) -> tuple[Any, Counter[str]]:
    """Put NaN where a matrix holds one of some values; return it and how often each was met."""
    met: Counter[str] = Counter()
    if sparse.issparse(X):
        if 0.0 in values:
            raise InputError(
                f"0 cannot mark missing values in a sparse matrix ({option('na')})",
                remedy="what such a matrix leaves out are zeros",
            )
        data, met = mark_missing(X.data, values, in_place=in_place)
        return (X._with_data(data, copy=False) if met else X), met
    for value in values:
        for part in column_slices(X):
            hit = X[..., part] == value
            if hit.any():
                if not (in_place and X.flags.writeable):
                    X, in_place = X.copy(order="K"), True
                X[..., part][hit] = np.nan
                met[f"{value:g}"] += int(hit.sum())
    return X, met


def column_slices(X: Any) -> Iterator[slice]:
    """Yield slices of columns, or of an array of one dimension: what is made of each stays small.

    Sparse data are one slice, since taking columns from CSR costs more than it saves.
    """
    if sparse.issparse(X):
        step = max(1, X.shape[1])
    else:
        step = max(1, (1 << 20) // max(1, X.shape[0] if X.ndim > 1 else 1))
    return (slice(start, start + step) for start in range(0, X.shape[-1], step))


def column_of(X: Any, i: int) -> NDArray[np.float64]:
    """Return one column of a matrix as numbers."""
    column = X[:, [i]].toarray().ravel() if sparse.issparse(X) else X[:, i]
    return np.asarray(column, dtype=np.float64)


def describe_codes(met: Mapping[str, int]) -> str:
    """Say how many values of which codes were taken as missing."""
    counts = sorted(met.items(), key=lambda pair: (-pair[1], pair[0]))
    listing = [f"{quote(code)} {n}" for code, n in counts[:8]]
    more = f" and {len(counts) - 8} other codes" if len(counts) > 8 else ""
    return f"taken as missing: {', '.join(listing)}{more}"


def below_detection(met: Mapping[str, int]) -> Iterator[Notice]:
    """Warn of values that are low rather than unknown."""
    low = Counter({code: n for code, n in met.items() if code.lower() in BELOW_DETECTION})
    if not low:
        return
    listing = ", ".join(f"{quote(code)} {n}" for code, n in low.most_common(5))
    yield Notice(
        "detection",
        "caution",
        f"Some values are marked as too low to be detected, or may be ({listing}). They are "
        "treated as missing and filled with medians, which are too high for them, and whether a "
        "value could be measured may itself differ between the classes. If there are many, write "
        "a low number in their place, such as half of the limit of detection.",
    )


_NINES = [sign * (10.0**k - 1) for k in range(2, 8) for sign in (1, -1)]
_FAR = 10  # times the largest other value of a column


def suspected_codes(
    X: Any, names: Sequence[str], low: NDArray[Any], high: NDArray[Any]
) -> Iterator[Notice]:
    """Warn of -9999 and the like far from all other values of a feature."""
    met: Counter[float] = Counter()
    where: list[str] = []
    for j in np.flatnonzero(np.isin(low, _NINES) | np.isin(high, _NINES)):
        column = column_of(X, int(j))
        codes = {float(v) for v in (low[j], high[j]) if v in _NINES}
        others = np.abs(column[~np.isin(column, list(codes)) & ~np.isnan(column)])
        if len(others) and (others > 0).any():
            far = [code for code in codes if abs(code) > _FAR * others.max()]
            met.update({code: int((column == code).sum()) for code in far})
            where += [names[int(j)]] if far else []
    if met:
        listing = ", ".join(f"{code:g} ({n} times)" for code, n in met.items())
        codes_text = ",".join(f"{code:g}" for code in met)
        yield Notice(
            "codes",
            "serious",
            f"{listing} in {listed(where)} lies far from all other values, as codes for missing "
            f"values do. If it is one, name it with the option na ({codes_text}): as a number it "
            "decides everything.",
            actions=(Action("na", codes_text, f"Treat {codes_text} as missing"),),
        )
