"""Text files: compression, encoding and separator are found out, quotes and widths are strict."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._notices import Notice, notice
from .._threads import memory_size
from .._validate import did_you_mean, one_line, quote
from .errors import InputError, option

_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "pipe", ",": "comma", " ": "white space"}
_MARKED = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
Line = tuple[int, list[str]]  # the number of a line, and its cells
_BLOCK = 1 << 20
_SNIFFED_LINES = 25
# What unpacks to less is never refused; text of measurements shrinks to a fifth, of counts that
# are nearly all zero to a fiftieth, and only a file made for it to a thousandth.
_UNPACKED, _RATIO = 1 << 26, 100


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read, where that is not to be found out."""

    codes: Any  # those for missing values, of `cells`
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    layer: str | None = None
    transpose: bool | None = None

    def __post_init__(self) -> None:
        # a shell passes \t on as two characters
        separator = {"\\t": "\t", "tab": "\t"}.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", separator)
        wrong = {
            "separator": len(separator or ";") != 1 or (separator or ";") in '"\r\n\0',
            "decimal": self.decimal not in (None, ".", ","),
            "thousands": self.thousands not in {None, *".,' "} - {self.decimal or ""},
        }
        for name in [name for name in wrong if wrong[name]]:
            remedy = "give one mark, or tab: decimals follow a point or a comma, thousands another"
            raise InputError(f"{option(name)} is {quote(getattr(self, name))}", remedy=remedy)


@dataclass
class Rows:
    """A file as a stream: names of the columns, then (line, cells) for each row."""

    names: list[str]
    rows: Iterator[tuple[int, list[Any]]]
    kind: str
    notes: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file with something in it."""
    file, remedy = Path(path), "check the path"
    if os.path.isdir(file):
        what, remedy = "this is a folder", "name the file in it"
    elif not os.path.exists(file):
        what, folder = "there is no such file", file.parent
        there = next(os.walk(folder), ("", [], []))[2] if os.path.isdir(folder) else []
        remedy = did_you_mean(file.name, there) or remedy
    elif os.path.getsize(file):
        return file
    else:
        what = "the file is empty"
    raise InputError(what, where=str(file), remedy=remedy)


@contextmanager
def open_text(path: Path, encoding: str | None) -> Iterator[tuple[io.TextIOWrapper, str]]:
    """Open a text, line endings untouched; say for the record if it was compressed."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        raw: Any = gzip.GzipFile(fileobj=file) if compressed else file
        try:
            yield _decoded(raw, encoding, path), "gzipped " if compressed else ""
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            what = f"the gzip data are damaged or cut short ({error})"
            raise InputError(what, remedy="copy or download the file again") from error


def _decoded(raw: Any, given: str | None, path: Path) -> io.TextIOWrapper:
    """Return a text in the first encoding that reads all of a file."""
    head = raw.read(4)
    sure = given or next((name for mark, name in _MARKED.items() if head.startswith(mark)), None)
    # five bytes mean nothing in Windows' Western encoding; Latin-1 takes any
    for encoding in (sure,) if sure else ("utf-8", "cp1252", "latin-1"):
        raw.seek(0)
        try:
            text = io.TextIOWrapper(raw, encoding, newline="")
            while block := text.read(_BLOCK):
                check_size(raw.tell() if isinstance(raw, gzip.GzipFile) else 0, path)
                if "\0" in block:
                    what = "this is not a text table (it holds zero bytes)"
                    remedy = "give the file the extension of its format, such as .xlsx, or name "
                    raise InputError(what, remedy=remedy + option("encoding", "utf-16-le"))
            text.seek(0)
            return text
        except LookupError:  # or a codec that is not of text
            remedy = "use utf-8, utf-16, latin-1 or another name that Python knows"
            raise InputError(f"there is no encoding called {quote(sure)}", remedy=remedy) from None
        except UnicodeError as error:
            text.detach()
            what = f"the file is not {encoding} ({getattr(error, 'reason', one_line(error))})"
    raise InputError(what, remedy="leave the encoding out to have it found, or save it as UTF-8")


def check_size(size: int, path: Path, ratio: int = _RATIO) -> None:
    """Refuse what takes more memory than there is, or than a file of this size can hold."""
    packed = path.stat().st_size
    if size > min(memory_size(), max(_UNPACKED, ratio * packed)):
        what = f"it unpacks to {size >> 20} MB or more, too much for a file of {packed >> 10} kB"
        remedy = "unpack it yourself if you trust it, or read it on a larger machine"
        raise InputError(f"{what} or for this machine", remedy=remedy)


def split_lines(lines: Iterable[str], separator: str) -> Iterator[Line]:
    """Yield (number of the first line, cells) for each row; rows of empty cells are passed over."""
    first, start, blank = "", 1, separator == " "  # the line that a row begins on, its number

    def fed() -> Iterator[str]:
        nonlocal first
        for number, line in enumerate(lines, start=1):
            first = line if number == start else first
            yield " ".join(line.split()) + "\n" if blank and '"' not in line else line

    reader = csv.reader(fed(), delimiter=separator, strict=True, skipinitialspace=blank)
    while True:
        start, why = reader.line_num + 1, ""
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cells, why = [], str(error)
        if cells is None:
            return
        # a cell of several lines that would be a row each
        width = max(1, len(cells) - 1)
        long = [c for c in cells if c.count(separator) >= width] if reader.line_num > start else []
        if why or any({"\n", "\r"} & {*cell} for cell in long):
            head = first.rpartition('"')[0][: csv.field_size_limit()]
            column = max(1, len(next(csv.reader([head], delimiter=separator), [])))
            what = 'a quotation mark (") is opened and not closed where its cell ends '
            what += f"({why or f'it goes on to line {reader.line_num}'})"
            remedy = 'close it or remove it; one within a cell is written twice ("")'
            raise InputError(what, where=f"line {start}, cell {column}", remedy=remedy)
        if blank and cells and not cells[-1]:
            cells.pop()
        if any(cells):
            yield start, cells


def _find_separator(lines: list[str]) -> str:
    """Choose the separator that gives every sampled line the same number of cells."""
    # row names as R writes them, or a separator at each end, make lines one longer than the header
    ranks: dict[str, tuple[int, ...]] = {}  # the largest wins
    remedy = "separate the columns by comma, semicolon, tab or pipe, or name the separator"
    refused = InputError("only one column was found", remedy=remedy)
    for separator in _SEPARATORS:
        widths: list[int] = []
        try:
            widths.extend(len(cells) for _, cells in split_lines(lines, separator))
        except InputError as error:  # a quotation mark, or the sample ends within a cell
            refused = error
        titles = next((i for i, width in enumerate(widths[:-2]) if width > 1), len(widths[2:]))
        header, *body = widths[titles:] or [0]
        if (widest := max(header, *body, 0)) > 1:
            more = {width - header for width in body}
            fits, narrow = len(more) <= 1 and more <= {0, 1}, separator != " "
            ranks[separator] = (fits, header > 1, fits and narrow, more <= {0}, -titles, widest)
    if not ranks:
        raise refused
    return max(ranks, key=lambda s: ranks[s])


def skip_titles(head: Sequence[tuple[int, Sequence[Any]]]) -> tuple[int, list[str]]:
    """Return how many of the first rows are titles above the header, and a note on them."""
    head = head[:_SNIFFED_LINES]
    filled = [len(cells) - cells.count("") - cells.count(None) for _, cells in head]
    titles = next((i for i, n in enumerate(filled) if 2 * n >= max(filled)), 0)
    header = [str(cell) for cell in head[titles][1]] if titles else []
    if not titles or 2 * sum(map(looks_numeric, header)) >= filled[titles]:
        return 0, []
    passed = ", ".join(str(line) for line, _ in head[:titles])
    return titles, [f"the header is on line {head[titles][0]}; passed over above it: line {passed}"]


def looks_numeric(text: str) -> bool:
    """Whether a text is a number with a decimal point: of a header, a sign that it is missing."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()


def delimited(handle: io.TextIOWrapper, packed: str, options: ReadOptions) -> Rows:
    """Return a CSV or TSV file, whatever its separator, as a stream of rows."""
    sample = handle.readlines(_BLOCK)
    if not any(c.isalnum() for line in sample for c in line):
        raise InputError("the file is empty", remedy="check the path")
    separator, declared = options.separator, sample[0].strip().strip('"')
    if len(declared) == 5 and declared.lower().startswith("sep="):  # as Excel understands it
        sample[0], separator = "\n", separator or declared[4]
    sep = separator or _find_separator(sample[:_SNIFFED_LINES])
    lines = split_lines(itertools.chain(sample, handle), sep)
    head = list(itertools.islice(lines, _SNIFFED_LINES))
    titles, notes = skip_titles(head)
    names, rows, notices = [name.strip() for name in head[titles][1]], head[titles + 1 :], []
    if rows[1:] and all(len(cells) == len(names) + 1 for _, cells in rows):
        if not any(cells[-1].strip() for _, cells in rows):
            what = "the rows have a cell more than the header, and end in an empty one: a "
            what += "separator ends each row, or the header lacks the name of the first column"
            remedy = "remove the separators at the ends, or name the first column"
            raise InputError(what, f"line {rows[0][0]}", remedy)
        names = ["", *names]
        notes.append("the header is one cell shorter than the rows, as R writes row names")
    kind = f"{packed}text, {_SEPARATORS.get(sep, repr(sep))}-separated, {handle.encoding}"
    if options.encoding is None and handle.encoding in ("cp1252", "latin-1"):
        notices.append(notice("encoding", encoding=handle.encoding))
    body = of_width(itertools.chain(rows, lines), len(names))
    return Rows(names, body, kind, notes, notices)


def of_width(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Yield rows as long as all are as wide as the header."""
    for line, cells in lines:
        if len(cells) != width:
            what = f"{len(cells)} cells where the header has {width}"
            remedy = "every line needs one cell per column: quote cells that hold the separator"
            raise InputError(what, where=f"line {line}", remedy=remedy)
        yield line, cells


def names_in(given: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Take apart "a,b,c" into three names, unless a name is written so."""
    names: list[str] = []
    for text in given:
        parts = [part.strip() for part in text.split(",")]
        names += [text] if text in known else [part for part in parts if part] or [text]
    return tuple(dict.fromkeys(names))
