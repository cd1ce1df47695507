"""Tables for spreadsheets: CSV and workbooks in which nothing can become a formula.

Both are written with the standard library, the same bytes every time.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from .cells import looks_numeric

Sheet = tuple[Sequence[str], Sequence[Sequence[Any]]]

_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_BLANKS = " \u00a0"
_CELL_ENDS = re.compile("([;\t\r\n])")  # where another locale, or another line, begins a cell


# --- CSV ------------------------------------------------------------------------------


def harmless(text: str) -> str:
    """Make text from a file safe to open in a spreadsheet.

    A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break would be run
    as a formula; an apostrophe before it makes it text. Where the list separator is a semicolon,
    as in much of Europe, or a tab, cells also begin within a cell, and lines in any case. Plain
    numbers such as ``-1``, which are labels often enough, stay as they are.

    Parameters
    ----------
    text : str
        The cell.

    Returns
    -------
    str
        The cell, with an apostrophe before all that could be run.

    Examples
    --------
    >>> from sparsegsvp.io import harmless
    >>> harmless("=cmd|'/c calc'!A1"), harmless("-1"), harmless("TP53")
    ("'=cmd|'/c calc'!A1", '-1', 'TP53')
    >>> harmless("x;=1+1")
    "x;'=1+1"
    """
    cells = _CELL_ENDS.split(text)
    safe = "".join(f"'{cell}" if _is_formula(cell) else cell for cell in cells)
    return f"'{safe}" if text.lstrip(_BLANKS).startswith(("\t", "\r", "\n")) else safe


def _is_formula(cell: str) -> bool:
    return cell.lstrip(_BLANKS).startswith(_FORMULA_STARTS) and not looks_numeric(cell)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as CSV: text made harmless, numbers so that they read back exactly.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells: text, numbers, or None for an empty one.

    Returns
    -------
    str
        The file's content, lines ended by ``\\n``.

    Examples
    --------
    >>> from sparsegsvp.io import csv_text
    >>> print(csv_text(["feature", "weight"], [["@SUM(A1)", -0.5], ["b,c", None]]), end="")
    feature,weight
    '@SUM(A1),-0.5
    "b,c",
    """
    lines = [[harmless(str(name)) for name in header]]
    lines += [[_csv_cell(cell) for cell in row] for row in rows]
    return "".join(",".join(map(_quoted, line)) + "\n" for line in lines)


def _csv_cell(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return harmless(str(cell))
    if hasattr(cell, "item"):  # a NumPy scalar prints its type otherwise
        cell = cell.item()
    return repr(cell)


def _quoted(cell: str) -> str:
    # Python's writer leaves a lone carriage return unquoted, and its reader then fails.
    if any(c in cell for c in ',;"\t\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


# --- workbooks -------------------------------------------------------------------------

# Characters that XML cannot hold.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PARTS = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def workbook(sheets: Mapping[str, Sheet]) -> bytes:
    """Return the content of an .xlsx file.

    Parameters
    ----------
    sheets : mapping from name to (header, rows)
        Cells are text, numbers, or None for an empty one.

    Returns
    -------
    bytes

    Examples
    --------
    >>> from sparsegsvp.io import workbook
    >>> content = workbook({"panel": (["feature", "weight"], [["=1+1", 0.5]])})
    >>> content[:2], content == workbook({"panel": (["feature", "weight"], [["=1+1", 0.5]])})
    (b'PK', True)
    """
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="rId{i}"/>'
        for i, name in zip(numbers, sheets)
    )
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{_LINKS}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in numbers
    )
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{_KIND}.worksheet+xml"/>'
        for i in numbers
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_PARTS}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>{kinds}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PARTS}/relationships"><Relationship Id="rId1" '
        f'Type="{_LINKS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>{listed}'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PARTS}/relationships">{links}'
        "</Relationships>",
    }
    for i, (header, rows) in zip(numbers, sheets.values()):
        files[f"xl/worksheets/sheet{i}.xml"] = _sheet(header, rows)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980, so that equal content gives equal bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
            archive.writestr(entry, (head + text).encode("utf-8"))
    return content.getvalue()


def _sheet(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A sheet whose first line stays in view."""
    lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in (header, *rows))
    return (
        f'<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" '
        'topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
        f'<sheetFormatPr defaultRowHeight="15"/><cols><col min="1" max="1" width="32" '
        f'customWidth="1"/></cols><sheetData>{lines}</sheetData></worksheet>'
    )


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "<c/>"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"<c><v>{value!r}</v></c>"
    text = escape(_UNWRITABLE.sub("\ufffd", str(value)))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
