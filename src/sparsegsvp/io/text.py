"""Cells to numbers and labels; delimited text and ARFF files as rows of cells.

Compression, encoding, separator and decimal mark are found out.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import math
import re
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, one_line, option, quote
from .guards import BoundedGzip
from .missing import MISSING

_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_ENOUGH = 5000  # cells that are not numbers, after which reading on would tell no more
_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "pipe", ",": "comma", " ": "white space"}
_BLOCK = 1 << 20
_SNIFFED_LINES = 12
_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))\s+(.+)""", re.IGNORECASE
)


@dataclass(frozen=True)
class ReadOptions:
    """What the caller said about a file, in place of what is found out or taken for granted.

    `transpose` is None where nothing was said, and `na` has codes for missing values besides
    the usual ones.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    layer: str | None = None
    transpose: bool | None = None
    na: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # a shell passes \t on as two characters
        separator = {"\\t": "\t", "tab": "\t"}.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", separator)
        if separator is not None and (len(separator) != 1 or separator in '"\r\n\0'):
            raise InputError(
                f"{option('separator')} is {quote(separator)}",
                remedy="give one character, such as ; or |, or write tab",
            )
        if self.decimal not in (None, ".", ","):
            raise InputError(
                f"{option('decimal')} is {quote(self.decimal)}", remedy="give a point or a comma"
            )


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


# --- cells -----------------------------------------------------------------------------


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


# --- compression and encoding ----------------------------------------------------------


@contextmanager
def _open_text(path: Path, encoding: str | None) -> Iterator[tuple[io.TextIOWrapper, bool]]:
    """Open a text, line endings untouched; say whether it was compressed.

    The compression is found out; so is the encoding, or the one given is checked.
    """
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        raw: Any = BoundedGzip(file) if compressed else file
        try:
            if encoding is None:
                encoding = _find_encoding(raw)
            else:
                _check_encoding(raw, encoding)
            raw.seek(0)
            yield io.TextIOWrapper(raw, encoding=encoding, newline=""), compressed
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"the gzip data are damaged or cut short ({error})",
                remedy="copy or download the file again",
            ) from error


def _find_encoding(raw: BinaryIO) -> str:
    head = raw.read(_BLOCK)
    if not head.strip():
        raise InputError("the file is empty", remedy="check the path")
    if head.startswith(codecs.BOM_UTF8):
        return _marked(raw, "utf-8-sig")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _marked(raw, "utf-16")
    # Text of Western languages in UTF-16 has a zero in every second byte.
    sample = head[:4096]
    if b"\0" in sample:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if max(even, odd) > 0.8 * len(sample) / 2 and min(even, odd) < 0.05 * len(sample):
            return _marked(raw, "utf-16-le" if odd > even else "utf-16-be")
    if b"\0" in head or any(b"\0" in block for block in _blocks(raw)):
        raise InputError(
            "this is not a text table (it holds zero bytes)",
            remedy="give the file the extension of its format, such as .xlsx or .parquet",
        )
    # Five bytes mean nothing in Windows' Western encoding; Latin-1 takes any.
    for encoding in ("utf-8", "cp1252"):
        raw.seek(0)
        with suppress(UnicodeDecodeError):
            _decode(raw, encoding)
            return encoding
    return "latin-1"


def _marked(raw: BinaryIO, encoding: str) -> str:
    """Return the encoding that the first bytes tell, if the rest agrees."""
    raw.seek(0)
    try:
        _decode(raw, encoding)
    except UnicodeError as error:
        raise InputError(
            f"it begins as {encoding} but does not go on so ({error})",
            remedy="copy the file again, or save it as UTF-8",
        ) from None
    return encoding


def _check_encoding(raw: BinaryIO, encoding: str) -> None:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)  # refuses codecs that are not of text
        _decode(raw, encoding)
    except (LookupError, TypeError):
        raise InputError(
            f"there is no encoding called {quote(encoding)}",
            remedy="use utf-8, utf-16, latin-1 or another name that Python knows",
        ) from None
    except ValueError as error:
        raise InputError(
            f"the file is not {one_line(encoding)} ({getattr(error, 'reason', one_line(error))})",
            remedy="leave the encoding out to have it found",
        ) from None


def _blocks(raw: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: raw.read(_BLOCK), b"")


def _decode(raw: BinaryIO, encoding: str) -> None:
    deque(codecs.iterdecode(_blocks(raw), encoding), maxlen=0)


# --- delimited text --------------------------------------------------------------------


def _split_lines(lines: Iterator[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, cells) for each row; empty lines are passed over."""
    if separator == " ":
        lines = (" ".join(line.split()) + "\n" for line in lines)
    reader = csv.reader(lines, delimiter=separator)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"a cell that begins here cannot be read ({error})",
                where=f"line {start}",
                remedy='look for a quotation mark (") that is never closed',
            ) from error
        if any(cells):
            yield start, cells


def _find_separator(lines: list[str]) -> str:
    """Choose the separator that gives every sampled line the same number of cells.

    Row names without a header, as R writes them, make the lines one cell longer than the
    first. White space is considered only where nothing else fits.
    """
    fits: dict[str, int] = {}
    splits: dict[str, int] = {}
    unreadable: InputError | None = None
    for separator in _SEPARATORS:
        try:
            widths = [len(cells) for _, cells in _split_lines(iter(lines), separator)]
        except InputError as error:  # a whole line taken for one cell is too long for csv
            unreadable = error
            continue
        if not widths or max(widths) < 2:
            continue
        first, body = widths[0], set(widths[1:])
        if first > 1:
            splits[separator] = first
        if len(body) <= 1 and body <= {first, first + 1}:
            fits[separator] = max(widths)
    if len(fits) > 1:
        fits.pop(" ", None)
    candidates = fits or splits
    if not candidates:
        raise unreadable or InputError(
            "only one column was found",
            remedy="separate the columns by comma, semicolon, tab or pipe, or name the separator",
        )
    return max(candidates, key=lambda s: candidates[s])


@contextmanager
def open_delimited(path: Path, options: ReadOptions) -> Iterator[RowStream]:
    """Open a CSV or TSV file, whatever its separator, as a stream of rows."""
    with _open_text(path, options.encoding) as (handle, compressed):
        sample = list(itertools.islice(handle, _SNIFFED_LINES))
        sep = _find_separator(sample) if options.separator is None else options.separator
        lines = _split_lines(itertools.chain(sample, handle), sep)
        first, second = next(lines, None), next(lines, None)
        if first is None:
            raise InputError("the file is empty", remedy="check the path")
        names = [name.strip() for name in first[1]]
        notes = []
        if second is not None and len(second[1]) == len(names) + 1:
            names = ["", *names]
            notes.append("the header is one cell shorter than the rows, as R writes row names")
        body = itertools.chain([] if second is None else [second], lines)
        packed = "gzipped " if compressed else ""
        kind = f"{packed}text, {_SEPARATORS.get(sep, repr(sep))}-separated, {handle.encoding}"
        yield RowStream(names, _of_width(body, len(names), sep), kind, notes)


def _of_width(
    lines: Iterator[tuple[int, list[str]]], width: int, separator: str
) -> Iterator[tuple[int, list[Any]]]:
    for line, cells in lines:
        if len(cells) != width:
            remedy = "every line needs one cell per column"
            if separator == "," and len(cells) > width:
                remedy = "quote cells that hold a comma; decimal commas need another separator"
            raise InputError(
                f"{len(cells)} cells where the header has {width}",
                where=f"line {line}",
                remedy=remedy,
            )
        yield line, cells


# --- ARFF ------------------------------------------------------------------------------


@contextmanager
def open_arff(path: Path, options: ReadOptions) -> Iterator[RowStream]:
    """Open an ARFF file as a stream of rows; ``?`` is an empty cell."""
    with _open_text(path, options.encoding) as (handle, _):
        numbered = ((number, line.strip()) for number, line in enumerate(handle, start=1))
        lines = ((n, line) for n, line in numbered if line and not line.startswith("%"))
        names: list[str] = []
        for number, line in lines:
            lowered = line.lower()
            if lowered.startswith("@data"):
                break
            if lowered.startswith("@attribute"):
                match = _ATTRIBUTE.match(line)
                if match is None:
                    raise InputError(
                        "an @attribute needs a name and a type", where=f"line {number}"
                    )
                name = next(g for g in match.groups()[:3] if g is not None)
                names.append(re.sub(r"\\(.)", r"\1", name).strip())
            elif not lowered.startswith("@relation"):
                raise InputError(
                    f"{quote(line)} is not ARFF",
                    where=f"line {number}",
                    remedy="rename the file to .csv if it is plain text",
                )
        else:
            raise InputError("there is no @data section", remedy="check the file")
        yield RowStream(names, _arff_rows(lines, len(names)), f"ARFF, {handle.encoding}")


def _arff_rows(lines: Iterator[tuple[int, str]], width: int) -> Iterator[tuple[int, list[Any]]]:
    for number, line in lines:
        if line.startswith("{"):
            raise InputError(
                "sparse ARFF rows are not read",
                where=f"line {number}",
                remedy="save it as dense ARFF, CSV or .h5ad",
            )
        reader = csv.reader(
            [line],
            delimiter="," if "," in line or "\t" not in line else "\t",
            quotechar='"' if "'" not in line and '"' in line else "'",
            escapechar="\\",
            skipinitialspace=True,
        )
        try:
            cells = ["" if cell == "?" else cell for cell in next(reader)]
        except csv.Error as error:
            raise InputError(
                f"the line cannot be read ({error})",
                where=f"line {number}",
                remedy="check its quotation marks",
            ) from error
        if len(cells) != width:
            raise InputError(f"{len(cells)} values for {width} attributes", where=f"line {number}")
        yield number, cells
