"""Series matrix files of GEO: numbers of one platform, and what is known of the samples."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InputError, listed, option, quote
from .frame import Frame, collect
from .text import ReadOptions, Rows, of_width, open_text, split_lines

_BEGIN, _END = "!series_matrix_table_begin", "!series_matrix_table_end"
_SAMPLE = "!Sample_"
_OPENINGS = (b"!series_", b'"!series_', b"!sample_", b'"!sample_')
_DAMAGED = "the file may be damaged: download it again"


def is_series_matrix(path: Path) -> bool:
    """Tell by its first line whether a text, gzipped or not, is a series matrix."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else open(path, "rb") as file:
            head = file.read(4096)
    except (OSError, EOFError, zlib.error):
        return False
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_OPENINGS)


def _is(cells: list[str], mark: str) -> bool:
    """Whether a line is one that begins or ends the table of numbers."""
    return cells[0].strip().lower() == mark


def _cells_of(handle: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that has any."""
    try:
        yield from split_lines(handle, "\t")
    except InputError as error:
        raise InputError(error.what, where=error.where, remedy=_DAMAGED) from error


def _read_samples(path: Path, options: ReadOptions) -> tuple[dict[str, list[str | None]], str]:
    """Read the lines before the numbers: columns of text by name, and the series."""
    lines: list[tuple[str, list[str]]] = []
    series = ""
    with open_text(path, options.encoding) as (handle, _):
        cells_of = _cells_of(handle)
        for _, cells in cells_of:
            if _is(cells, _BEGIN):
                break
            key = cells[0].strip()
            if key.startswith(_SAMPLE):
                lines.append((key[len(_SAMPLE) :], [cell.strip() for cell in cells[1:]]))
            elif key.lower() == "!series_geo_accession" and len(cells) > 1:
                series = cells[1].strip()
        else:
            raise InputError(
                "the series matrix holds no table of numbers",
                remedy="download it again; GEO offers it as *_series_matrix.txt.gz",
            )
        header = [name.strip() for name in next(cells_of, (0, [""]))[1][1:]]
    given = dict(reversed(lines))
    if not any(given.values()):
        raise InputError("the series matrix names no samples", remedy="download it again")
    # the header of the table names samples by accession; some files have titles alone
    accessions = given.get("geo_accession") or header
    platforms = sorted({p for key, cells in lines if key == "platform_id" for p in cells if p})
    if len(platforms) > 1:
        raise InputError(
            f"the samples are of {len(platforms)} platforms ({listed(platforms)})",
            remedy="use the series matrix of one platform: GEO offers one file for each",
        )
    columns: dict[str, list[str | None]] = {"geo_accession": list(accessions)}
    # what an error proposes begins with what the authors said of each sample
    for key, cells in sorted(lines, key=lambda line: not line[0].startswith("characteristics")):
        if len(cells) != len(accessions):
            raise InputError(
                f"line {quote(_SAMPLE + key)} has {len(cells)} values for {len(accessions)} "
                "samples",
                remedy=_DAMAGED,
            )
        if key.startswith("characteristics"):
            _add_characteristics(columns, key, cells)
        elif key != "geo_accession":
            _add(columns, key, [cell or None for cell in cells])
    return columns, series


def _add_characteristics(columns: dict[str, list[str | None]], line: str, cells: list[str]) -> None:
    """Add a line of "key: value" cells: each key is a column, whichever line it stands on."""
    keyed: dict[str, list[str | None]] = {}
    for i, cell in enumerate(cells):
        key, colon, value = (part.strip() for part in cell.partition(":"))
        key, value = (key, value) if key and colon else (line, cell)
        keyed.setdefault(key, [None] * len(cells))[i] = value or None
    for key, column in keyed.items():
        there = columns.get(key)
        if there is not None and all(a is None or b is None for a, b in zip(there, column)):
            columns[key] = [b if a is None else a for a, b in zip(there, column)]
        elif any(value is not None for value in column):
            _add(columns, key, column)


def _add(columns: dict[str, list[str | None]], name: str, column: list[str | None]) -> None:
    """Add a column; a name that is taken gets a number."""
    free, k = name, 0
    while free in columns:
        k += 1
        free = f"{name}.{k}"
    columns[free] = column


@contextmanager
def _open_numbers(path: Path, options: ReadOptions) -> Iterator[Rows]:
    """Open the table of numbers as rows, a feature in each."""
    with open_text(path, options.encoding) as (handle, compressed):
        lines = itertools.dropwhile(lambda line: not _is(line[1], _BEGIN), _cells_of(handle))
        next(lines)  # that the table begins
        names = [name.strip() for name in next(lines, (0, []))[1]]
        kind = f"{'gzipped ' if compressed else ''}GEO series matrix, {handle.encoding}"
        yield Rows(names, of_width(_up_to_end(lines), len(names), "\t", _DAMAGED), kind)


def _up_to_end(lines: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows up to the line that ends the table."""
    for number, cells in lines:
        if _is(cells, _END):
            return
        yield number, cells
    raise InputError("the table of numbers has no end", remedy="it is cut short: download it again")


def read_series_matrix(path: Path, options: ReadOptions, asked: Collection[str] | None) -> Frame:
    """Read the numbers with samples as columns, and what is known of the samples."""
    samples, series = _read_samples(path, options)
    accessions = samples["geo_accession"]
    frame = collect(lambda: _open_numbers(path, options), options, ())
    if len(frame) == 0:
        frame.meta = samples
        return frame
    place = {name: i for i, name in enumerate(accessions)}
    titles = samples.get("title")
    header = frame.names[1:]
    if titles and not place.keys() >= set(header) and set(titles) >= set(header):
        place = {title: i for i, title in enumerate(titles)}
    strange = [name for name in header if name not in place]
    if strange:
        raise InputError(
            f"the file says nothing of the samples {listed(strange)} of its table",
            remedy="it may be damaged: download it again",
        )
    order = [place[name] for name in header]
    frame.meta = {name: [column[i] for i in order] for name, column in samples.items()}
    frame.titles = frame.meta.get("title")
    of = f" of {series}" if series else ""
    frame.notes.insert(0, f"a GEO series matrix{of}: features are in rows, samples in columns")
    return frame


def refuse_without_numbers() -> InputError:
    """Return the error of a series matrix that describes samples and has no table."""
    return InputError(
        "the series matrix describes the samples but holds no numbers, as is usual for sequencing",
        remedy="download the table of values from the series' supplementary files, and give "
        f"this file beside it as {option('labels')}",
    )
