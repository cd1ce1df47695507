"""Series matrix files of GEO: numbers of one platform, and what is known of the samples."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import Any

from .._validate import listed, quote
from .errors import InputError, option
from .frame import Frame, collect
from .text import Line, ReadOptions, Rows, of_width, split_lines

_BEGIN, _END = "!series_matrix_table_begin", "!series_matrix_table_end"
_SAMPLE, _SERIES = "!Sample_", "!series_geo_accession"
_AGAIN = "the file may be damaged or cut short: download it again"


def is_series_matrix(handle: io.TextIOWrapper) -> bool:
    """Tell by its first line whether a text is a series matrix."""
    opening = handle.read(4096).lstrip().removeprefix('"').lower()
    handle.seek(0)
    return opening.startswith(("!series_", "!sample_"))


def read_series_matrix(
    handle: io.TextIOWrapper, packed: str, options: ReadOptions, verbatim: Collection[str] | None
) -> Frame:
    """Read the numbers with samples as columns, and what is known of the samples."""
    above: list[tuple[str, list[str]]] = []
    lines = split_lines(handle, "\t")
    for _, cells in lines:
        if cells[0].strip().lower() == _BEGIN:
            break
        above.append((cells[0].strip(), [cell.strip() for cell in cells[1:]]))
    else:
        raise InputError("the series matrix holds no table of numbers", remedy=_AGAIN)
    names = [name.strip() for name in next(lines, (0, [""]))[1]]
    kind = f"{packed}GEO series matrix, {handle.encoding}"
    rows = Rows(names, of_width(_up_to_end(lines), len(names)), kind)
    frame = collect(rows, options, ())
    columns = _samples(above, names[1:])
    if not len(frame) and verbatim is not None:
        what = "the series matrix holds no numbers, as is usual for sequencing"
        remedy = "download the values from the series' supplementary files, and "
        raise InputError(what, remedy=f"{remedy}give this file beside it as {option('labels')}")
    accessions = columns["geo_accession"]
    header = frame.names[1:] if len(frame) else accessions
    # the header of the table names samples by accession; some files have titles alone
    titles = {*columns.get("title", [])} >= {*header} and not {*header} <= {*accessions}
    place = {name: i for i, name in enumerate(columns["title"] if titles else accessions)}
    if strange := [name for name in header if name not in place]:
        what = f"the file says nothing of the samples {listed(strange)} of its table"
        raise InputError(what, remedy=_AGAIN)
    order = [place[name] for name in header]
    frame.beside = {name: [cells[i] for i in order] for name, cells in columns.items()}
    series = [cell for key, cells in above if key.lower() == _SERIES for cell in cells]
    of = f" of {series[0]}" if series else ""
    frame.notes.insert(0, f"a GEO series matrix{of}: features are in rows, samples in columns")
    frame.samples, frame.all_features = "columns", True
    return frame


def _up_to_end(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the rows up to the line that ends the table."""
    for number, cells in lines:
        if cells[0].strip().lower() == _END:
            return
        yield number, cells
    raise InputError("the table of numbers has no end", remedy="it is cut short: download it again")


def _samples(above: list[tuple[str, list[str]]], header: list[str]) -> dict[str, list[Any]]:
    """Return what is said of the samples: columns of text by name."""
    lines = [(k.removeprefix(_SAMPLE), cells) for k, cells in above if k.startswith(_SAMPLE)]
    given = dict(reversed(lines))
    if not any(given.values()):
        raise InputError("the series matrix names no samples", remedy=_AGAIN)
    if len(platforms := {*given.get("platform_id", [])} - {""}) > 1:
        what = f"the samples are of {len(platforms)} platforms ({listed(sorted(platforms))})"
        remedy = "use the series matrix of one platform: GEO offers one file for each"
        raise InputError(what, remedy=remedy)
    columns: dict[str, list[Any]] = {"geo_accession": given.pop("geo_accession", []) or header}
    n = len(columns["geo_accession"])
    # what an error proposes begins with what the authors said of each sample
    for line, cells in sorted(lines, key=lambda line: not line[0].startswith("characteristics")):
        if len(cells) != n:
            what = f"line {quote(_SAMPLE + line)} has {len(cells)} values for {n} samples"
            raise InputError(what, remedy=_AGAIN)
        for i, cell in enumerate(cells if line in given else ()):
            key, colon, value = (part.strip() for part in cell.partition(":"))
            pair = line.startswith("characteristics") and key and colon
            key, value = (key, value) if pair else (line, cell)
            # of "key: value" each key is a column; what is said again gets a number
            names = (f"{key}.{k}" if k else key for k in range(len(lines) + 1))
            free = (name for name in names if name not in columns or columns[name][i] is None)
            if value:
                columns.setdefault(next(free), [None] * n)[i] = value
    return columns
