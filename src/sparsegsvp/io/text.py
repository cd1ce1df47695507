"""Text files: delimited tables and ARFF as rows of cells, and lists of names and costs.

Compression, encoding and separator are found out.
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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from .errors import InputError, error_text, locating, one_line, option, quote
from .guards import BoundedGzip

_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "pipe", ",": "comma", " ": "white space"}
_BLOCK = 1 << 20
_SNIFFED_LINES = 12
_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))\s+(.+)""", re.IGNORECASE
)


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading a file, in place of what is found out or taken for granted.

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


# --- compression and encoding ----------------------------------------------------------


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
    if b"\0" in head or any(b"\0" in block for block in _bytes_of(raw)):
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


def _bytes_of(raw: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of a file in pieces."""
    return iter(lambda: raw.read(_BLOCK), b"")


def _decode(raw: BinaryIO, encoding: str) -> None:
    deque(codecs.iterdecode(_bytes_of(raw), encoding), maxlen=0)


# --- delimited text --------------------------------------------------------------------


def split_lines(
    lines: Iterable[str],
    separator: str,
    what: str = "a cell that begins here cannot be read",
    remedy: str = 'look for a quotation mark (") that is never closed',
) -> Iterator[tuple[int, list[str]]]:
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
            raise InputError(f"{what} ({error})", where=f"line {start}", remedy=remedy) from error
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
            widths = [len(cells) for _, cells in split_lines(lines, separator)]
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
    with open_text(path, options.encoding) as (handle, compressed):
        sample = list(itertools.islice(handle, _SNIFFED_LINES))
        sep = _find_separator(sample) if options.separator is None else options.separator
        lines = split_lines(itertools.chain(sample, handle), sep)
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
        remedy = "every line needs one cell per column"
        if_more = "quote cells that hold a comma; decimal commas need another separator"
        rows = of_width(body, len(names), remedy, if_more if sep == "," else remedy)
        yield RowStream(names, rows, kind, notes)


def of_width(
    lines: Iterator[tuple[int, list[str]]], width: int, remedy: str, if_more: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows as long as all have as many cells as the header; more may need another remedy."""
    for line, cells in lines:
        if len(cells) != width:
            raise InputError(
                f"{len(cells)} cells where the header has {width}",
                where=f"line {line}",
                remedy=(if_more or remedy) if len(cells) > width else remedy,
            )
        yield line, cells


# --- ARFF ------------------------------------------------------------------------------


@contextmanager
def open_arff(path: Path, options: ReadOptions) -> Iterator[RowStream]:
    """Open an ARFF file as a stream of rows; ``?`` is an empty cell."""
    with open_text(path, options.encoding) as (handle, _):
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


# --- lists: names of features, and what each costs ---------------------------------------

# In this order: a comma may be a decimal mark where there is another separator.
_COST_SEPARATORS = ("\t", ";", ",")
_EACH_LINE = "write a name, a comma and its cost in each line"


def listed_names(given: Sequence[str]) -> tuple[str, ...]:
    """Return names that stand in texts with commas between them, or one in each line of a file.

    Examples
    --------
    >>> from sparsegsvp.io.text import listed_names
    >>> listed_names(["age, sex", "stage"])
    ('age', 'sex', 'stage')
    """
    parts = [[text] if text.startswith("@") else text.split(",") for text in given]
    names = [name.strip() for part in parts for name in part]
    return names_or_files([name for name in names if name])


def names_or_files(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names, those of a file where ``@file`` stands for it: one in each line."""
    found: list[str] = []
    for text in [given] if isinstance(given, str) else given:
        if text.startswith("@"):
            with locating(text[1:]):
                found += [line for _, line in _listed_lines(text[1:])]
        else:
            found.append(text)
    return tuple(found)


def read_costs(path: str | PathLike[str]) -> dict[str, float]:
    """Read what features cost: in each line a name and a number, perhaps below a header."""
    with locating(str(path)):
        costs = dict(_costs(_listed_lines(path)))
        if not costs:
            raise InputError("there is no cost in it", remedy=_EACH_LINE)
    return costs


def _costs(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, float]]:
    for number, line in lines:
        separator = next((s for s in _COST_SEPARATORS if s in line), None)
        name, _, cell = line.rpartition(separator) if separator else (line, "", "")
        try:
            cost = float(cell.strip(' "').replace(",", "."))
        except ValueError:
            if number == 1 and separator:
                continue  # a header
            raise InputError(
                f"{quote(line)} is not a name and a number",
                where=f"line {number}",
                remedy=_EACH_LINE,
            ) from None
        name = name.strip(' "')
        if not 0.0 <= cost < math.inf:
            raise InputError(
                f"the cost of {quote(name)} is {quote(cell.strip())}",
                where=f"line {number}",
                remedy=f"costs are 0 or more, and finite: what is too dear is for {option('ban')}",
            )
        yield name, cost


def _listed_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold anything, with their numbers, without blanks and quotes."""
    try:
        with open_text(Path(path).expanduser(), None) as (handle, _):
            for number, line in enumerate(handle, 1):
                text = line.strip()
                quoted = text.count('"') == 2 and text[0] == text[-1] == '"'
                if text:
                    yield number, text.strip('"') if quoted else text
    except OSError as error:
        raise InputError(
            f"the list cannot be read ({error_text(error)})", remedy="check the path"
        ) from None
