"""Delimited text and ARFF as rows of cells: compression, encoding, separator are found out."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import itertools
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .errors import InputError, quote
from .rows import RowStream

GZIP_MAGIC = b"\x1f\x8b"
SEPARATOR_NAMES = {"\t": "tab", ";": "semicolon", "|": "pipe", ",": "comma", " ": "white space"}
_BLOCK = 1 << 20
_SNIFFED_LINES = 12


@dataclass(frozen=True)
class TextFile:
    """A text file whose compression and encoding are known."""

    path: Path
    encoding: str
    compressed: bool

    @contextmanager
    def open(self) -> Iterator[io.TextIOWrapper]:
        """Open the text, line endings untouched."""
        with _opened(self.path, self.compressed) as raw:
            yield io.TextIOWrapper(raw, encoding=self.encoding, newline="")


@contextmanager
def _opened(path: Path, compressed: bool) -> Iterator[Any]:
    with open(path, "rb") as raw:
        if not compressed:
            yield raw
            return
        try:
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield unpacked
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"the gzip data are damaged or cut short ({error})",
                where=path.name,
                remedy="copy or download the file again",
            ) from error


def file_digest(path: Path) -> str:
    """Return the SHA-256 of the bytes on disk."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def scan_text(path: Path, encoding: str | None = None) -> TextFile:
    """Find the compression and the encoding of a file in one pass over it."""
    with open(path, "rb") as handle:
        compressed = handle.read(2) == GZIP_MAGIC
    with _opened(path, compressed) as raw:
        found = _find_encoding(raw, path) if encoding is None else encoding
    if encoding is not None:
        _check_encoding(path, compressed, encoding)
    return TextFile(path, found, compressed)


def _find_encoding(raw: BinaryIO, path: Path) -> str:
    head = raw.read(_BLOCK)
    if not head.strip():
        raise InputError("the file is empty", where=path.name, remedy="check the path")
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return name
    # Text of Western languages in UTF-16 has a zero in every second byte.
    sample = head[:4096]
    if b"\0" in sample:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if max(even, odd) > 0.8 * len(sample) / 2 and min(even, odd) < 0.05 * len(sample):
            return "utf-16-le" if odd > even else "utf-16-be"
    utf8, western = codecs.getincrementaldecoder("utf-8")(), True
    is_utf8 = True
    block = head
    while block:
        if b"\0" in block:
            raise InputError(
                "this is not a text table (it holds zero bytes)",
                where=path.name,
                remedy="give the file the extension of its format, such as .xlsx or .parquet",
            )
        if is_utf8:
            try:
                utf8.decode(block)
            except UnicodeDecodeError:
                is_utf8 = False
        # Five bytes mean nothing in Windows' Western encoding; Latin-1 takes any.
        western = western and not any(b in block for b in (0x81, 0x8D, 0x8F, 0x90, 0x9D))
        block = raw.read(_BLOCK)
    if is_utf8:
        try:
            utf8.decode(b"", final=True)
        except UnicodeDecodeError:
            is_utf8 = False
    if is_utf8:
        return "utf-8"
    return "cp1252" if western else "latin-1"


def _check_encoding(path: Path, compressed: bool, encoding: str) -> None:
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise InputError(
            f"there is no encoding called {quote(encoding)}",
            remedy="use utf-8, utf-16, latin-1 or another name that Python knows",
        ) from None
    with _opened(path, compressed) as raw:
        try:
            while block := raw.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise InputError(
                f"the file is not {encoding} ({error.reason})",
                where=path.name,
                remedy="leave the encoding out to have it found",
            ) from None


def split_lines(
    lines: Iterator[str], separator: str, where: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the last line read, cells); empty lines are passed over."""
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
                where=f"{where}, line {start}",
                remedy='look for a quotation mark (") that is never closed',
            ) from error
        if any(cells):
            yield start, cells


def find_separator(lines: list[str], where: str) -> str:
    """Choose the separator that gives every sampled line the same number of cells.

    Row names without a header, as R writes them, make the lines one cell longer than the
    first. White space is considered only where nothing else fits.
    """
    fits: dict[str, int] = {}
    widest: dict[str, int] = {}
    unreadable: InputError | None = None
    for separator in SEPARATOR_NAMES:
        try:
            widths = [len(cells) for _, cells in split_lines(iter(lines), separator, where)]
        except InputError as error:  # a whole line taken for one cell is too long for csv
            unreadable = error
            continue
        if not widths or max(widths) < 2:
            continue
        widest[separator] = widths[0]
        body = set(widths[1:])
        if len(body) <= 1 and body <= {widths[0], widths[0] + 1} and max(widths) > 1:
            fits[separator] = max(widths)
    if len(fits) > 1:
        fits.pop(" ", None)
    candidates = fits or {s: w for s, w in widest.items() if w > 1}
    if not candidates and unreadable is not None:
        raise unreadable
    if not candidates:
        raise InputError(
            "only one column was found",
            where=where,
            remedy="separate the columns by comma, semicolon, tab or pipe, or name the separator",
        )
    return max(candidates, key=lambda s: candidates[s])


@contextmanager
def open_delimited(text: TextFile, separator: str | None = None) -> Iterator[RowStream]:
    """Open a CSV or TSV file, whatever its separator, as a stream of rows."""
    where = text.path.name
    with text.open() as handle:
        try:
            sample = list(itertools.islice(handle, _SNIFFED_LINES))
            sep = find_separator(sample, where) if separator is None else separator
            lines = split_lines(itertools.chain(sample, handle), sep, where)
            _, header = next(lines)
        except StopIteration:
            raise InputError("the file is empty", where=where, remedy="check the path") from None
        names = [name.strip() for name in header]
        first = next(lines, None)
        notes = []
        if first is not None and len(first[1]) == len(names) + 1:
            names = ["", *names]
            notes.append("the header is one cell shorter than the rows, as R writes row names")
        body = itertools.chain([] if first is None else [first], lines)
        packed = "gzipped " if text.compressed else ""
        kind = f"{packed}text, {SEPARATOR_NAMES.get(sep, repr(sep))}-separated, {text.encoding}"
        yield RowStream(names, _checked(body, len(names), where, sep), kind, notes)


def _checked(
    lines: Iterator[tuple[int, list[str]]], width: int, where: str, separator: str
) -> Iterator[tuple[int, list[Any]]]:
    for line, cells in lines:
        if len(cells) != width:
            remedy = "every line needs one cell per column"
            if separator == "," and len(cells) > width:
                remedy = "quote cells that hold a comma; decimal commas need another separator"
            raise InputError(
                f"{len(cells)} cells where the header has {width}",
                where=f"{where}, line {line}",
                remedy=remedy,
            )
        yield line, cells


# --- ARFF


_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))\s+(.+)""", re.IGNORECASE
)


@contextmanager
def open_arff(text: TextFile) -> Iterator[RowStream]:
    """Open an ARFF file as a stream of rows; ``?`` is an empty cell."""
    where = text.path.name
    with text.open() as handle:
        lines = enumerate(handle, start=1)
        names: list[str] = []
        for number, line in lines:
            stripped = line.strip()
            if not stripped or stripped.startswith("%"):
                continue
            lowered = stripped.lower()
            if lowered.startswith("@data"):
                break
            if lowered.startswith("@attribute"):
                match = _ATTRIBUTE.match(stripped)
                if match is None:
                    raise InputError(
                        "an @attribute needs a name and a type", where=f"{where}, line {number}"
                    )
                name = next(g for g in match.groups()[:3] if g is not None)
                names.append(re.sub(r"\\(.)", r"\1", name).strip())
            elif not lowered.startswith("@relation"):
                raise InputError(
                    f"{quote(stripped)} is not ARFF",
                    where=f"{where}, line {number}",
                    remedy="rename the file to .csv if it is plain text",
                )
        else:
            raise InputError("there is no @data section", where=where, remedy="check the file")
        yield RowStream(names, _arff_rows(lines, len(names), where), f"ARFF, {text.encoding}")


def _arff_rows(
    lines: Iterator[tuple[int, str]], width: int, where: str
) -> Iterator[tuple[int, list[Any]]]:
    for number, line in lines:
        stripped = line.strip()
        if not stripped or stripped.startswith("%"):
            continue
        if stripped.startswith("{"):
            raise InputError(
                "sparse ARFF rows are not read",
                where=f"{where}, line {number}",
                remedy="save it as dense ARFF, CSV or .h5ad",
            )
        single = stripped.find("'"), stripped.find('"')
        quoted = '"' if single[0] < 0 <= single[1] else "'"
        separator = "," if "," in stripped or "\t" not in stripped else "\t"
        cells = next(
            csv.reader(
                [stripped],
                delimiter=separator,
                quotechar=quoted,
                escapechar="\\",
                skipinitialspace=True,
            )
        )
        if len(cells) != width:
            raise InputError(
                f"{len(cells)} values for {width} attributes", where=f"{where}, line {number}"
            )
        yield number, ["" if c == "?" else c for c in cells] if "?" in cells else cells
