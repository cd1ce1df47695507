"""Cells: text to numbers and labels, and codes for missing values."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice
from .errors import InputError, option, quote

_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_ENOUGH = 5000  # cells that are not numbers, after which reading on would tell no more


@dataclass(frozen=True)
class BadCell:
    """A cell that is not a number: its line, its position among the cells given, its text."""

    line: int
    position: int
    value: str


class DecimalCommaFound(Exception):
    """Raised at the first 1,5 for one and a half: the file has to be read again that way."""


class MixedDecimals(Exception):
    """Raised at a point among decimal commas: neither reading of the file is safe."""


class TooManyBadCells(Exception):
    """Raised when enough cells were no numbers to say what is wrong with the file."""


class NumberReader:
    """Turn rows of cells into rows of float64.

    Three tiers, because nearly every row is clean: all cells at once; all cells but codes
    for missing values as they are usually written; one by one, which finds out what is wrong.

    The decimal mark is a point, a comma, or None: then a point is assumed, and the first
    decimal comma raises `DecimalCommaFound`. Exceptions carry the `BadCell`.
    """

    def __init__(
        self, decimal: str | None = None, place: str = "line", na: Sequence[str] = ()
    ) -> None:
        self.decimal = decimal
        self.missing = MISSING.union(code.lower() for code in na)  # in lower case
        self.usual = self.missing.union(
            written for code in self.missing for written in (code.upper(), code.capitalize())
        )
        self.codes: Counter[str] = Counter()  # what was taken as missing, as it was written
        self.place = place  # what rows are called in messages
        self.columns: list[str] = []  # names of the positions, for messages
        self.bad: list[BadCell] = []
        self.comma_proven = False  # whether a comma cannot be a thousands separator

    def column_of(self, cell: BadCell) -> str:
        """Quote the name of a cell's column."""
        return quote(self.columns[cell.position])

    def row(self, cells: Sequence[Any], line: int) -> NDArray[np.float64]:
        """Read one row; a cell that is no number becomes NaN and is remembered in `bad`."""
        values = self._row(cells, line)
        for i in np.flatnonzero(np.isnan(values)).tolist():
            code = cells[i].strip() if isinstance(cells[i], str) else ""
            if code and (code.lower() in self.missing or looks_numeric(code)):
                self.codes[code] += 1
        return values

    def _row(self, cells: Sequence[Any], line: int) -> NDArray[np.float64]:
        texts = cells
        try:
            joined = "\n".join(cells)
        except TypeError:  # a spreadsheet: numbers are numbers already
            return self._one_by_one(cells, line)
        if "_" in joined or (self.decimal == "," and "." in joined):
            return self._one_by_one(cells, line)  # Python would read 1_000 as a number
        if self.decimal == ",":
            self.comma_proven = self.comma_proven or any(map(_proves_comma, cells))
            texts = [cell.replace(",", ".") for cell in cells]
        try:
            return np.fromiter(map(float, texts), np.float64, len(cells))
        except ValueError:
            pass
        try:
            numbers = [math.nan if t in self.usual else float(t) for t in texts]
        except ValueError:
            return self._one_by_one(cells, line)
        return np.array(numbers, dtype=np.float64)

    def _one_by_one(self, cells: Sequence[Any], line: int) -> NDArray[np.float64]:
        values = np.full(len(cells), np.nan)
        for position, cell in enumerate(cells):
            if isinstance(cell, str):
                values[position] = self._text(BadCell(line, position, cell.strip()))
            elif isinstance(cell, int | float | np.number | np.bool_):  # bool is an int
                values[position] = float(cell)
            elif cell is not None:
                self._remember(BadCell(line, position, str(cell)))
        return values

    def _text(self, cell: BadCell) -> float:
        text = cell.value
        if text.lower() in self.missing:
            return math.nan
        if _DECIMAL_COMMA.fullmatch(text):
            if self.decimal is None:
                raise DecimalCommaFound(cell)
            if self.decimal == ",":
                self.comma_proven = self.comma_proven or _proves_comma(text)
                return float(text.replace(",", "."))
        elif looks_numeric(text):
            if self.decimal == "," and "." in text:
                raise MixedDecimals(cell)
            return float(text)
        self._remember(cell)
        return math.nan

    def _remember(self, cell: BadCell) -> None:
        self.bad.append(cell)
        if len(self.bad) >= _ENOUGH:
            raise TooManyBadCells


def _proves_comma(cell: str) -> bool:
    text = cell.strip()
    return bool(_DECIMAL_COMMA.fullmatch(text)) and not _THOUSANDS.fullmatch(text)


def looks_numeric(text: str) -> bool:
    """Whether a text is a number: of a header cell, a sign that the header is missing."""
    if "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_label(cell: Any, strip: bool = True) -> str | None:
    """Read a cell as a label: None only if it is empty, and 1.0 is the same class as 1."""
    if cell is None:
        return None
    if isinstance(cell, float | np.floating):
        if math.isnan(cell):
            return None
        return str(int(cell)) if float(cell).is_integer() else repr(float(cell))
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    text = str(cell)
    return (text.strip() if strip else text) if text.strip() else None


def as_role(role: str, cell: Any) -> str | None:
    """Read a cell of a column with a role; blanks around a label stay until they are counted."""
    return as_label(cell, strip=role != "target")


# --- missing values ---------------------------------------------------------------------

# Cells that say "too little to be measured" rather than "not known".
BELOW_DETECTION = frozenset(
    [f"{sign}{limit}" for sign in ("", "<", "< ", "below ") for limit in ("lod", "loq", "dl")]
    + ["nd", "n.d.", "n.d", "n/d", "bdl", "blod", "bloq", "not detected", "undetected"]
    + ["undetermined", "below detection", "below detection limit", "below limit of detection"]
)

# In a column of numbers these stand for "not measured", in capitals or not; in a column of
# labels only an empty cell does, because "NA" and "None" are the names of classes somewhere.
MISSING = BELOW_DETECTION.union(
    ["", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "null", "none", "nil"],
    ["?", ".", "-", "--", "\N{EN DASH}", "\N{EM DASH}", "missing", "unknown", "#div/0!", "#num!"],
    ["not available", "not applicable", "not measured", "not determined", "no data"],
)


_CODE_LENGTH = 20  # what is longer is no code


def codes_of(na: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return codes that were given as one text with commas, or one by one."""
    given = [] if na is None else na.split(",") if isinstance(na, str) else na
    return tuple(dict.fromkeys(code for code in (str(c).strip() for c in given) if code))


def numbers_of(codes: Sequence[str]) -> list[float]:
    """Return the codes that are numbers, such as -999: they hold however they are written."""
    found = []
    for code in codes:
        try:
            found.append(float(code))
        except ValueError:
            continue
    return [value for value in found if np.isfinite(value)]


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


def describe_codes(met: Counter[str]) -> str:
    """Say how many values of which codes were taken as missing."""
    listing = [f"{quote(code)} {n}" for code, n in met.most_common(8)]
    more = f" and {len(met) - 8} other codes" if len(met) > 8 else ""
    return f"taken as missing: {', '.join(listing)}{more}"


def below_detection(met: Counter[str]) -> Iterator[Notice]:
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


def if_a_code(value: str) -> str:
    """Propose a short text that is no number as a code for missing values; commas divide codes."""
    if "," in value or len(value) > _CODE_LENGTH:
        return ""
    return f"; if it stands for a missing value, use {option('na', value)}"
