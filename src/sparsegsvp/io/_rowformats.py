"""ARFF and Excel as rows of cells."""

from __future__ import annotations

import csv
import datetime
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._cells import as_label
from ._text import Rows, TextFile
from .errors import InputError, quote, suggestion

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))\s+(.+)""", re.IGNORECASE
)


@contextmanager
def open_arff(text: TextFile) -> Iterator[Rows]:
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
        yield Rows(names, _arff_rows(lines, len(names), where), f"ARFF, {text.encoding}")


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


@contextmanager
def open_excel(path: Path, sheet: str | None = None) -> Iterator[Rows]:
    """Open one sheet of a workbook as a stream of rows; formulas give their last value."""
    try:
        import openpyxl
    except ImportError as error:  # pragma: no cover - depends on the installation
        raise ImportError('reading Excel needs: pip install "sparsegsvp[cli]"') from error
    where = path.name
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:
        raise InputError(
            "this is not an Excel workbook (.xlsx), or it is damaged or has a password",
            where=where,
            remedy="save it again as .xlsx without a password, or as CSV",
        ) from error
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise InputError(
                f"there is no sheet {quote(sheet)}",
                where=where,
                remedy=suggestion(sheet, book.sheetnames),
            )
        page = book[book.sheetnames[0] if sheet is None else sheet]
        numbered = enumerate(page.iter_rows(values_only=True), start=1)
        filled = ((n, cells) for n, cells in numbered if any(c is not None for c in cells))
        first = next(filled, None)
        if first is None:
            raise InputError(f"sheet {quote(page.title)} is empty", where=where)
        line, header = first
        names = [_header_cell(cell, i, where, line) for i, cell in enumerate(header, start=1)]
        while names and not names[-1]:
            names.pop()
        notes = []
        if len(book.sheetnames) > 1 and sheet is None:
            notes.append(f"the first of {len(book.sheetnames)} sheets, {quote(page.title)}")
        yield Rows(names, _excel_rows(filled, len(names), where), "Excel", notes)
    finally:
        book.close()


def _header_cell(cell: Any, position: int, where: str, line: int) -> str:
    if isinstance(cell, datetime.date | datetime.time):
        raise InputError(
            f"the name of column {position} is a date ({cell})",
            where=f"{where}, line {line}",
            remedy="Excel turns gene names such as SEPT2 into dates: restore it as text",
        )
    return as_label(cell) or ""


def _excel_rows(
    filled: Iterator[tuple[int, tuple[Any, ...]]], width: int, where: str
) -> Iterator[tuple[int, list[Any]]]:
    for line, cells in filled:
        row = list(itertools.islice(itertools.chain(cells, itertools.repeat(None)), width))
        extra = next((c for c in cells[width:] if c is not None), None)
        if extra is not None:
            raise InputError(
                f"{quote(extra)} stands to the right of the last column with a name",
                where=f"{where}, line {line}",
                remedy="name the column or clear the cell",
            )
        yield line, row
