"""Text files: compression, encoding and separator are found out, quotes and widths are strict.

`open_delimited` gives a file as rows of cells. A quotation mark that is never closed, text after
a closing one, a cell that swallows whole lines and a row of another length are refused, by line
and column. `names_or_files` reads lists of names.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from .._notices import Notice
from .errors import InputError, error_text, locating, one_line, option, quote

_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "pipe", ",": "comma", " ": "white space"}
_BLOCK = 1 << 20
_SNIFFED_LINES = 25
# What unpacks to less is never refused; text of measurements shrinks to a fifth, of counts that
# are nearly all zero to a fiftieth, and only a file made for it to a thousandth.
UNPACKED_BYTES, RATIO = 1 << 26, 100


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read, where that is not to be found out.

    `transpose` is None where nothing was said; `na` has codes for missing values besides the
    usual ones.
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    layer: str | None = None
    transpose: bool | None = None
    na: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # a shell passes \t on as two characters
        separator = {"\\t": "\t", "tab": "\t"}.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", separator)
        one = separator is None or (len(separator) == 1 and separator not in '"\r\n\0')
        for name, value, good, remedy in (
            ("separator", separator, one, "give one character, such as ; or |, or write tab"),
            ("decimal", self.decimal, self.decimal in (None, ".", ","), "give a point or a comma"),
            ("thousands", self.thousands, self.thousands in (None, ".", ",", "'", " "),
             "give a point, a comma, an apostrophe or a blank"),
            ("thousands", self.thousands, self.thousands is None or self.thousands != self.decimal,
             "it cannot be the decimal mark, too"),
        ):  # fmt: skip
            if not good:
                raise InputError(f"{option(name)} is {quote(value)}", remedy=remedy)


@dataclass
class Rows:
    """A file as a stream: names of the columns, then (line, cells) for each row.

    Cells are strings in text files and Python values in spreadsheets.
    """

    names: list[str]
    rows: Iterator[tuple[int, list[Any]]]
    kind: str
    notes: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)


# Opens a file as rows, as often as it is called.
OpenRows = Callable[[], AbstractContextManager[Rows]]


# --- compression and encoding ----------------------------------------------------------


class BoundedGzip(gzip.GzipFile):
    """A gzipped file that stops where it has unpacked to more than a table would."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(fileobj=file)
        self._most = max(UNPACKED_BYTES, RATIO * os.fstat(file.fileno()).st_size)

    def read1(self, size: int = -1) -> bytes:
        """Read as `gzip.GzipFile` does, as far as the bound allows."""
        return self._counted(super().read1(size))

    def read(self, size: int | None = -1) -> bytes:
        """Read as `gzip.GzipFile` does, as far as the bound allows."""
        return self._counted(super().read(size))

    def _counted(self, data: bytes) -> bytes:
        if self.tell() > self._most:
            raise InputError(
                f"it unpacks to more than {self._most >> 20} MB, which no table of its size does",
                remedy="unpack it yourself if you trust it, and give that file",
            )
        return data


@contextmanager
def open_text(path: Path, encoding: str | None) -> Iterator[tuple[io.TextIOWrapper, bool]]:
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
    sample = head[:4096]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    marked = None
    if head.startswith(codecs.BOM_UTF8):
        marked = "utf-8-sig"
    elif head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        marked = "utf-16"
    elif max(even, odd) > 0.4 * len(sample) and min(even, odd) < 0.05 * len(sample):
        marked = "utf-16-le" if odd > even else "utf-16-be"  # of Western languages
    if marked is not None:
        error = _cannot_be(raw, marked)
        if error is None:
            return marked
        raise InputError(
            f"it begins as {marked} but does not go on so ({error})",
            remedy="copy the file again, or save it as UTF-8",
        )
    raw.seek(0)
    if any(b"\0" in block for block in _blocks(raw)):
        raise InputError(
            "this is not a text table (it holds zero bytes)",
            remedy="give the file the extension of its format, such as .xlsx or .parquet",
        )
    # Five bytes mean nothing in Windows' Western encoding; Latin-1 takes any.
    return next((e for e in ("utf-8", "cp1252") if _cannot_be(raw, e) is None), "latin-1")


def _check_encoding(raw: BinaryIO, encoding: str) -> None:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)  # refuses codecs that are not of text
    except (LookupError, TypeError):
        raise InputError(
            f"there is no encoding called {quote(encoding)}",
            remedy="use utf-8, utf-16, latin-1 or another name that Python knows",
        ) from None
    if error := _cannot_be(raw, encoding):
        raise InputError(
            f"the file is not {one_line(encoding)} ({error})",
            remedy="leave the encoding out to have it found",
        )


def _blocks(raw: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of a file in pieces."""
    return iter(lambda: raw.read(_BLOCK), b"")


def _cannot_be(raw: BinaryIO, encoding: str) -> str | None:
    """Return why a file is not in an encoding; None if it is."""
    raw.seek(0)
    try:
        deque(codecs.iterdecode(_blocks(raw), encoding), maxlen=0)
    except ValueError as error:
        return str(getattr(error, "reason", one_line(error)))
    return None


# --- rows of cells ---------------------------------------------------------------------


def split_lines(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, cells) for each row; rows of empty cells are passed over."""
    started: deque[str] = deque(maxlen=1)  # the line that a row begins on

    def fed() -> Iterator[str]:
        for number, line in enumerate(lines, start=1):
            if number == start:
                started.append(line)
            yield " ".join(line.split()) + "\n" if blank and '"' not in line else line

    blank, start = separator == " ", 1
    reader = csv.reader(fed(), delimiter=separator, strict=True, skipinitialspace=blank)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _unreadable(started, separator, start, reader.line_num, str(error)) from error
        if reader.line_num > start:  # a cell holds a line break
            width = max(1, len(cells) - 1)
            if any("\n" in c or "\r" in c for c in cells if c.count(separator) >= width):
                raise _unreadable(started, separator, start, reader.line_num, "")
        if blank and cells and not cells[-1]:
            cells.pop()
        if any(cells):
            yield start, cells


def _unreadable(
    started: Sequence[str], separator: str, start: int, end: int, error: str
) -> InputError:
    """Say where a quotation mark opens that is not closed where a cell ends."""
    head = started[0].rpartition('"')[0][: csv.field_size_limit()] if started else ""
    column = max(1, len(next(csv.reader([head], delimiter=separator), [])))
    where = f"line {start}, cell {column}"
    if "expected after" in error and end == start:
        return InputError(
            "text follows a closing quotation mark",
            where=f"line {start}",
            remedy='write a quotation mark within a cell twice (""), or remove it',
        )
    if "limit" in error and end == start:
        return InputError(
            f"a cell cannot be read ({error})", where=where, remedy="name another separator"
        )
    return InputError(
        f'a quotation mark (") is opened and not closed before line {end} ends',
        where=where,
        remedy="close it or remove it; the lines up to there would be one cell",
    )


def _find_separator(lines: list[str]) -> str:
    """Choose the separator that gives every sampled line the same number of cells.

    Row names without a header, as R writes them, and a separator at the end of each row make the
    lines one cell longer than the first. White space is considered only where nothing else fits.
    """
    fits: dict[str, tuple[bool, int, int]] = {}  # exactly, titles above (negative), cells
    splits: dict[str, tuple[bool, int, int]] = {}
    unreadable: InputError | None = None
    for separator in _SEPARATORS:
        widths: list[int] = []
        try:
            widths.extend(len(cells) for _, cells in split_lines(lines, separator))
        except InputError as error:  # a quotation mark, or the sample ends within a cell
            unreadable = error
        if not widths or max(widths) < 2:
            continue
        titles = 0
        while len(widths) > 2 and widths[0] == 1:
            del widths[0]
            titles -= 1
        first, body = widths[0], set(widths[1:])
        if first > 1:
            splits[separator] = (False, titles, first)
        if len(body) <= 1 and body <= {first, first + 1}:
            fits[separator] = (body <= {first}, titles, max(widths))
    if len(fits) > 1:
        fits.pop(" ", None)
    candidates = fits or splits
    if not candidates:
        raise unreadable or InputError(
            "only one column was found",
            remedy="separate the columns by comma, semicolon, tab or pipe, or name the separator",
        )
    return max(candidates, key=lambda s: candidates[s])


def skip_titles(head: Sequence[tuple[int, Sequence[Any]]]) -> int:
    """Return how many of the first rows are titles above the header.

    A title fills less than half of the cells that the widest row near it fills. What follows
    must look like a header, which is not of numbers: else nothing is passed over, and it is for
    the messages to say what is wrong.
    """
    filled = [sum(cell not in (None, "") for cell in cells) for _, cells in head]
    titles = 0
    while titles < len(head) and 2 * filled[titles] < max(filled):
        titles += 1
    if titles == len(head) or 2 * sum(map(is_number, head[titles][1])) >= filled[titles]:
        return 0
    return titles


def is_number(cell: Any) -> bool:
    """Whether a cell is a number, or a text that is one with a decimal point."""
    if isinstance(cell, str):
        return looks_numeric(cell)
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def looks_numeric(text: str) -> bool:
    """Whether a text is a number with a decimal point: of a header, a sign that it is missing."""
    if "_" in text or not text.isascii():
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def titles_note(head: Sequence[tuple[int, Sequence[Any]]], titles: int) -> list[str]:
    """Say which lines were passed over above the header."""
    if not titles:
        return []
    passed = ", ".join(str(line) for line, _ in head[:titles])
    return [f"the header is on line {head[titles][0]}; passed over above it: line {passed}"]


@contextmanager
def open_delimited(path: Path, options: ReadOptions) -> Iterator[Rows]:
    """Open a CSV or TSV file, whatever its separator, as a stream of rows."""
    with open_text(path, options.encoding) as (handle, compressed):
        sample = _first_lines(handle)
        separator, declared = options.separator, sample[0].strip().strip('"').lower()
        if len(declared) == 5 and declared.startswith("sep="):  # as Excel understands it
            sample[0], separator = "\n", separator or sample[0].strip().strip('"')[4]
        sep = _find_separator(sample) if separator is None else separator
        lines = split_lines(itertools.chain(sample, handle), sep)
        head = list(itertools.islice(lines, _SNIFFED_LINES))
        if not head:
            raise InputError("the file is empty", remedy="check the path")
        titles = skip_titles(head)
        names = [name.strip() for name in head[titles][1]]
        body: Iterator[tuple[int, list[str]]] = itertools.chain(head[titles + 1 :], lines)
        notes, notices = titles_note(head, titles), list[Notice]()
        longer = [cells for _, cells in head[titles + 1 :]]
        if longer[1:] and all(len(cells) == len(names) + 1 for cells in longer):
            if any(cells[-1].strip() for cells in longer):
                names = ["", *names]
                notes.append("the header is one cell shorter than the rows, as R writes row names")
            else:
                _refuse_two_readings(names, longer, head[titles + 1][0])
                body = _without_last(body, len(names) + 1)
                notes.append("every row ends in a separator, after which there is nothing")
        packed = "gzipped " if compressed else ""
        kind = f"{packed}text, {_SEPARATORS.get(sep, repr(sep))}-separated, {handle.encoding}"
        if options.encoding is None and handle.encoding in ("cp1252", "latin-1"):
            notices.append(_guessed_encoding(handle.encoding))
        yield Rows(names, of_width(body, len(names), sep), kind, notes, notices)


def _first_lines(handle: Iterable[str]) -> list[str]:
    """Return a few lines to find the separator from, fewer where they are long."""
    sample: list[str] = []
    length = 0
    for line in handle:
        sample.append(line)
        length += len(line)
        if len(sample) >= _SNIFFED_LINES or (length > _BLOCK and len(sample) > 4):
            break
    return sample


def _refuse_two_readings(names: list[str], rows: list[list[str]], line: int) -> None:
    """Refuse rows that end in nothing where their first cells may be names of rows.

    Either a separator stands at the end of each row, or the first cell is a name of R's, the
    header lacks it, and the last column is empty.
    """
    from .roles import names_samples

    first = [cells[0].strip() for cells in rows]
    distinct = len(set(first)) == len(first) > 2 and not any(map(looks_numeric, first))
    if distinct and not names_samples(names[0]):
        raise InputError(
            f"the rows have a cell more than the header and end in an empty one: {quote(first[0])} "
            f"is the value of {quote(names[0])} if a separator ends each row, or the name of a row "
            "if the header lacks that of the first column",
            where=f"line {line}",
            remedy="remove the separators at the ends, or name the first column",
        )


def _without_last(
    lines: Iterable[tuple[int, list[str]]], width: int
) -> Iterator[tuple[int, list[str]]]:
    for line, cells in lines:
        if len(cells) == width and not cells[-1].strip():
            del cells[-1]
        yield line, cells


def _guessed_encoding(encoding: str) -> Notice:
    return Notice(
        "encoding",
        "caution",
        f"The file is not UTF-8 and was read as {encoding}, which takes any bytes: check the "
        f"letters with accents, and name the encoding if they are wrong.",
    )


def of_width(
    lines: Iterable[tuple[int, list[str]]], width: int, separator: str, remedy: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows as long as all have as many cells as the header."""
    for line, cells in lines:
        if len(cells) != width:
            if separator == "," and len(cells) > width:
                remedy = remedy or (
                    "quote cells that hold a comma; decimal commas need another separator"
                )
            raise InputError(
                f"{len(cells)} cells where the header has {width}",
                where=f"line {line}",
                remedy=remedy or "every line needs one cell per column",
            )
        yield line, cells


# --- lists of names --------------------------------------------------------------------


def listed_names(given: Sequence[str]) -> tuple[str, ...]:
    """Return names that stand in texts with commas between them, or one in each line of a file."""
    parts = [[text] if text.startswith("@") else text.split(",") for text in given]
    names = [name.strip() for part in parts for name in part]
    return names_or_files([name for name in names if name])


def names_or_files(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names, those of a file where ``@file`` stands for it: one in each line."""
    names: list[str] = []
    for text in [given] if isinstance(given, str) else given:
        if text.startswith("@"):
            with locating(text[1:]):
                names += _lines_of(Path(text[1:]).expanduser())
        else:
            names.append(text)
    return tuple(names)


def _lines_of(path: Path) -> Iterator[str]:
    """Yield the lines that hold anything, without blanks and quotes."""
    try:
        with open_text(path, None) as (handle, _):
            for line in handle:
                text = line.strip()
                quoted = text.count('"') == 2 and text[0] == text[-1] == '"'
                if text:
                    yield text.strip('"') if quoted else text
    except OSError as error:
        raise InputError(
            f"the list cannot be read ({error_text(error)})", remedy="check the path"
        ) from None


def names_in(given: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Take apart "a,b,c" into three names, unless a name is written so."""
    names: list[str] = []
    for text in given:
        parts = [part.strip() for part in text.split(",")]
        names += [text] if text in known else [part for part in parts if part] or [text]
    return tuple(dict.fromkeys(names))


# --- tables for spreadsheets -----------------------------------------------------------

_FORMULA = re.compile("[ \u00a0]*[-=+@＝＋－＠]")
_CELL_ENDS = re.compile("([;\t\r\n])")  # where another locale, or another line, begins a cell


def harmless(text: str) -> str:
    """Put an apostrophe before all that a spreadsheet would run as a formula.

    Where the list separator is a semicolon, as in much of Europe, or a tab, cells also begin
    within a cell, and lines in any case. Plain numbers such as -1 stay as they are.
    """
    cells = _CELL_ENDS.split(text)
    runs = [bool(_FORMULA.match(cell)) and not looks_numeric(cell) for cell in cells]
    safe = "".join(f"'{cell}" if run else cell for cell, run in zip(cells, runs))
    return f"'{safe}" if text.lstrip(" \u00a0").startswith(("\t", "\r", "\n")) else safe


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as CSV: text made harmless, numbers so that they read back exactly."""
    return "".join(",".join(map(_csv_cell, line)) + "\n" for line in (header, *rows))


def _csv_cell(cell: Any) -> str:
    if not isinstance(cell, str):
        return "" if cell is None else repr(cell.item() if hasattr(cell, "item") else cell)
    text = harmless(cell)
    # Python's writer leaves a lone carriage return unquoted, and its reader then fails.
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',;"\t\r\n') else text
