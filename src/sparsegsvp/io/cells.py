"""Cells to numbers and labels: what is missing, what is a number, and which comma it uses."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# In a column of numbers these stand for "not measured"; in a column of labels only an
# empty cell does, because "NA" and "None" are the names of classes somewhere.
MISSING = frozenset(
    [""]
    + ["NA", "Na", "na", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN"]
    + ["NULL", "Null", "null", "NONE", "None", "none", "?"]
)

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

    def __init__(self, cell: BadCell) -> None:
        super().__init__(cell.value)
        self.cell = cell


class MixedDecimals(Exception):
    """Raised at a point among decimal commas: neither reading of the file is safe."""

    def __init__(self, cell: BadCell) -> None:
        super().__init__(cell.value)
        self.cell = cell


class TooManyBadCells(Exception):
    """Raised when enough cells were no numbers to say what is wrong with the file."""


class NumberReader:
    """Turn rows of cells into rows of float64.

    Three tiers, because nearly every row is clean: all cells at once; all cells but those
    of `MISSING`; one by one, which finds out what is wrong.

    The decimal mark is a point, a comma, or None: then a point is assumed, and the first
    decimal comma raises `DecimalCommaFound`.
    """

    def __init__(self, decimal: str | None = None, place: str = "line") -> None:
        self.decimal = decimal
        self.place = place  # what rows are called in messages
        self.columns: list[str] = []  # names of the positions, for messages
        self.bad: list[BadCell] = []
        self.comma_proven = False

    def row(self, cells: Sequence[Any], line: int) -> NDArray[np.float64]:
        """Read one row; a cell that is no number becomes NaN and is remembered in `bad`."""
        texts = cells
        try:
            joined = "\n".join(cells)
        except TypeError:  # a spreadsheet: numbers are numbers already
            return self._one_by_one(cells, line)
        if self.decimal == ",":
            if "." in joined:
                return self._one_by_one(cells, line)
            if not self.comma_proven:
                self.comma_proven = any(
                    _DECIMAL_COMMA.fullmatch(c.strip()) and not _THOUSANDS.fullmatch(c.strip())
                    for c in cells
                )
            texts = joined.replace(",", ".").split("\n") if cells else cells
        if "_" in joined:  # Python would read 1_000 as a number
            return self._one_by_one(cells, line)
        try:
            return np.fromiter(map(float, texts), np.float64, len(cells))
        except ValueError:
            pass
        try:
            numbers = [math.nan if t in MISSING else float(t) for t in texts]
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
        if text in MISSING:
            return math.nan
        if _DECIMAL_COMMA.fullmatch(text):
            if self.decimal is None:
                raise DecimalCommaFound(cell)
            if self.decimal == ",":
                self.comma_proven = self.comma_proven or not _THOUSANDS.fullmatch(text)
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


def looks_numeric(text: str) -> bool:
    """Whether a text is a number: of a header cell, a sign that the header is missing."""
    if "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_label(cell: Any) -> str | None:
    """Read a cell as a label: None only if it is empty, and 1.0 is the same class as 1."""
    if cell is None:
        return None
    if isinstance(cell, float | np.floating):
        if math.isnan(cell):
            return None
        return str(int(cell)) if float(cell).is_integer() else repr(float(cell))
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    text = str(cell).strip()
    return text or None
