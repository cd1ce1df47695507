"""Series matrix files of GEO: numbers of one platform, and what is known of the samples."""

from __future__ import annotations

import gzip
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from .._validate import first_few
from .errors import InputError, did_you_mean, listed, option, quote, role_option
from .layout import RawTable, Roles
from .rows import from_rows
from .text import ReadOptions, RowStream, of_width, open_text, split_lines

_BEGIN, _END = "!series_matrix_table_begin", "!series_matrix_table_end"
_SAMPLE = "!Sample_"
_OPENINGS = (b"!series_", b'"!series_', b"!sample_", b'"!sample_')
_DAMAGED = "the file may be damaged: download it again"
_LISTED = 8  # columns that an error proposes


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
    return split_lines(handle, "\t", "the line cannot be read", _DAMAGED)


@dataclass(frozen=True)
class Samples:
    """What a series matrix says of its samples: columns of text by name, in its order."""

    accessions: list[str]
    columns: dict[str, list[str | None]]
    series: str = ""

    def find(self, name: str, role: str) -> list[str | None]:
        """Return the column of a name, with or without GEO's ``!Sample_`` before it."""
        short = re.sub(r"^!?Sample_", "", name)
        for known in (name, short):
            if known in self.columns:
                return self.columns[known]
        close = did_you_mean(short, list(self.columns))
        raise InputError(
            f"there is no {quote(name)} among what the file says of its samples "
            f"({role_option(role)})",
            remedy=f"{close} {self._usable()}".lstrip(),
        )

    def _usable(self) -> str:
        """List columns that tell samples apart without naming each, with a few values."""
        parts = []
        for name, column in self.columns.items():
            values = list(dict.fromkeys(value for value in column if value is not None))
            if 1 < len(values) < len(column):
                parts.append(f"{quote(name)} ({listed(values, shown=3, limit=24)})")
        usable = first_few(parts, most=_LISTED, between="; ")
        return f"usable are {usable}" if parts else "nothing in it tells groups of samples apart"


def _read_samples(path: Path, options: ReadOptions) -> Samples:
    """Read the lines before the numbers."""
    lines: list[tuple[str, list[str]]] = []
    series = ""
    with open_text(path, options.encoding) as (handle, _):
        for _, cells in _cells_of(handle):
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
    accessions = next((cells for key, cells in lines if key == "geo_accession"), None)
    if not accessions:
        raise InputError("the series matrix names no samples", remedy="download it again")
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
    return Samples(list(accessions), columns, series)


def _add_characteristics(columns: dict[str, list[str | None]], line: str, cells: list[str]) -> None:
    """Add a line of "key: value" cells: each key is a column, whichever line it stands on."""
    found: dict[str, list[str | None]] = {}
    for i, cell in enumerate(cells):
        key, colon, value = (part.strip() for part in cell.partition(":"))
        key, value = (key, value) if key and colon else (line, cell)
        found.setdefault(key, [None] * len(cells))[i] = value or None
    for key, column in found.items():
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
def open_samples(path: Path, options: ReadOptions) -> Iterator[RowStream]:
    """Open what is known of the samples as rows, for labels of another table."""
    samples = _read_samples(path, options)
    rows = enumerate(map(list, zip(*samples.columns.values())), start=1)
    yield RowStream(list(samples.columns), rows, "GEO series matrix")


@contextmanager
def _open_numbers(path: Path, options: ReadOptions) -> Iterator[RowStream]:
    """Open the table of numbers as rows, a feature in each."""
    with open_text(path, options.encoding) as (handle, compressed):
        lines = itertools.dropwhile(lambda line: not _is(line[1], _BEGIN), _cells_of(handle))
        next(lines)  # that the table begins
        names = [name.strip() for name in next(lines, (0, []))[1]]
        kind = f"{'gzipped ' if compressed else ''}GEO series matrix, {handle.encoding}"
        rows = of_width(_up_to_end(lines), len(names), _DAMAGED)
        yield RowStream(names, rows, kind)


def _up_to_end(lines: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows up to the line that ends the table."""
    for number, cells in lines:
        if _is(cells, _END):
            return
        yield number, cells
    raise InputError("the table of numbers has no end", remedy="it is cut short: download it again")


def read_series_matrix(path: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read the numbers with samples as rows, and the roles from what is known of the samples."""
    samples = _read_samples(path, options)
    if roles.id == "ID_REF":  # the column that names the features
        roles = replace(roles, id=None)
    roles.check()
    found = {role: samples.find(name, role) for role, name in roles.named().items()}
    left = Roles(
        drop=tuple(name for name in roles.drop if name not in samples.columns),
        features=roles.measured(),
        collapse=roles.collapse,
    )
    opener = partial(_open_numbers, path, options)
    with opener() as rows:
        empty = next(rows.rows, None) is None
    if empty:
        raise InputError(
            "the series matrix describes the samples but holds no numbers, as is usual for "
            "sequencing",
            remedy="download the table of values from the series' supplementary files, and give "
            f"this file beside it as {option('labels')}",
        )
    raw = from_rows(opener, left, replace(options, transpose=True))
    place = {name: i for i, name in enumerate(samples.accessions)}
    header = [str(name) for name in raw.text["id"]]
    strange = [name for name in header if name not in place]
    if strange:
        raise InputError(
            f"the file says nothing of the samples {listed(strange)} of its table",
            remedy="it may be damaged: download it again",
        )
    order = [place[name] for name in header]
    for role, column in found.items():
        raw.text[role] = [column[i] for i in order]
    titles = samples.columns.get("title")
    raw.titles = None if titles is None else [titles[i] for i in order]
    series = f" of {samples.series}" if samples.series else ""
    raw.notes.insert(0, f"a GEO series matrix{series}: features are in rows, samples in columns")
    return raw
