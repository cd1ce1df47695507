"""The file formats that are read, and `FORMATS`, the list of them.

To add a format, write a function here that opens a file as rows of cells, or one that reads it
into a `Frame`, and add a line to `FORMATS`. Libraries read; what is checked before are sizes and
that nothing leads into another file.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import itertools
import math
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from .._notices import Action, Notice
from .cells import as_label
from .errors import (
    InputError,
    did_you_mean,
    guarded,
    listed,
    need,
    no_such,
    option,
    quote,
    suggestion,
)
from .frame import Frame, collect, from_anndata, from_pandas
from .geo import is_series_matrix, read_series_matrix
from .text import (
    UNPACKED_BYTES,
    ReadOptions,
    Rows,
    open_delimited,
    skip_titles,
    titles_note,
)

_AGAIN = "write it again"
# Numbers of eight bytes that are nearly all zero shrink further than text does.
_RATIO = 500


@dataclass(frozen=True)
class Format:
    """A file format: what messages call it, how it is recognised, and how it is read.

    `suffixes` are in lower case; ``.gz`` after them is looked through; `recognise`, if there is
    one, has to say yes to the file's content too. One of the two readers is needed:
    ``rows(path, options)`` opens a file as rows of cells, ``read(path, options, asked)`` gives a
    `Frame`, in which the columns asked for stay as written. `layers` is whether a file holds
    several matrices.
    """

    name: str
    suffixes: tuple[str, ...]
    rows: Callable[[Path, ReadOptions], AbstractContextManager[Rows]] | None = None
    read: Callable[[Path, ReadOptions, Collection[str] | None], Frame] | None = None
    layers: bool = False
    recognise: Callable[[Path], bool] | None = None


def format_of(file: Path) -> Format:
    """Tell the format by the extension, looking through ``.gz``."""
    suffixes = [s.lower() for s in file.suffixes]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".gz" and len(suffixes) > 1:
        suffix = suffixes[-2]
    for form in sorted(FORMATS, key=lambda form: form.recognise is None):
        if suffix in form.suffixes and (form.recognise is None or form.recognise(file)):
            return form
    names = [form.name for form in FORMATS]
    remedy = f"{', '.join(names[:-1])} and {names[-1]} are read, by the file's extension"
    what = f"files of type {quote(suffix)} are not read" if suffix else "it has no extension"
    raise InputError(what, remedy=remedy)


def read_frame(file: Path, options: ReadOptions, asked: Collection[str] | None = ()) -> Frame:
    """Read a file of any format; the cells of columns that are asked for stay as written."""
    form = format_of(file)
    if options.layer is not None and not form.layers:
        names = [form.name for form in FORMATS if form.layers]
        raise InputError(f"{option('layer')} is for {' and '.join(names)} files")
    if options.transpose and form.layers:
        raise InputError(
            "files of this type have samples in rows by definition",
            remedy=f"leave {option('transpose', True)} out",
        )
    with guarded(form.name):
        if form.read is not None:
            return form.read(file, options, asked)
        assert form.rows is not None
        opened = form.rows
        return collect(lambda: opened(file, options), options, asked)


def digest_of(file: Path) -> str:
    """SHA-256 of the bytes of a file."""
    with guarded("a file"), open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def shown_name(path: str | PathLike[str]) -> str:
    """Return a file's name as text that can be written anywhere, whatever bytes it is of."""
    return os.fsencode(Path(path).name).decode("utf-8", "replace")


def existing_file(path: str | PathLike[str]) -> Path:
    """Return the path of a file with something in it."""
    file = Path(path)
    try:
        size = file.stat().st_size
    except (FileNotFoundError, NotADirectoryError, ValueError):
        there = []
        if file.parent.is_dir():
            there = sorted(p.name for p in file.parent.iterdir() if p.is_file())
        remedy = did_you_mean(file.name, there) or "check the path"
        raise InputError("there is no such file", where=str(file), remedy=remedy) from None
    except OSError as error:
        raise InputError(
            f"it cannot be opened ({error.strerror})", where=shown_name(file), remedy="check it"
        ) from None
    if file.is_dir():
        raise InputError("this is a folder", where=str(file), remedy="name the file in it")
    if size == 0:
        raise InputError("the file is empty", where=shown_name(file), remedy="check the path")
    return file


def _check_size(size: int, path: Path, ratio: int) -> None:
    """Refuse what takes more memory than there is, or than a file of this size can hold."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # pragma: no cover  (not on this platform)
        memory = 1 << 40
    packed = path.stat().st_size
    most = min(memory, max(UNPACKED_BYTES, ratio * packed))
    if size > most:
        raise InputError(
            f"it unpacks to {size >> 20} MB, which is more than a file of {packed >> 10} kB can "
            "hold or this machine has memory for",
            remedy="write it without compression, or read it on a larger machine",
        )


# --- Excel -----------------------------------------------------------------------------

_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_PLACE = re.compile(rb'<(?:\w+:)?(row|c)\b[^>]*?\br="([A-Z]{0,9})([0-9]{1,19})"')
_TITLES_AMONG = 20  # lines


@contextmanager
def _excel_rows(path: Path, options: ReadOptions) -> Iterator[Rows]:
    """Open one sheet of a workbook as a stream of rows; formulas give their last value."""
    calamine = need("python_calamine", "cli")
    if path.suffix.lower() != ".xls":
        _check_workbook(path)
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
    except (calamine.CalamineError, OSError) as error:
        raise InputError(
            "this is not an Excel workbook, or it is damaged or has a password",
            remedy="save it again as .xlsx without a password, or as CSV",
        ) from error
    visible = calamine.SheetVisibleEnum.Visible
    pages = [s for s in book.sheets_metadata if s.typ == calamine.SheetTypeEnum.WorkSheet]
    shown = [s.name for s in pages if s.visible == visible] or [s.name for s in pages]
    sheet = options.sheet
    if sheet is not None and sheet not in [s.name for s in pages]:
        raise InputError(f"there is no sheet {quote(sheet)}", remedy=suggestion(sheet, shown))
    if not shown:
        raise InputError("the workbook has no sheet with cells", remedy="save it again")
    name = shown[0] if sheet is None else sheet
    with book:
        page = book.get_sheet_by_name(name)
        cells = page.to_python(skip_empty_area=False)
    filled = [(i, row) for i, row in enumerate(cells, start=1) if any(c != "" for c in row)]
    if not filled:
        filled_ones = [other for other in shown if other != name]
        raise InputError(
            f"sheet {quote(name)} is empty",
            remedy=f"read another: {_sheets(filled_ones)}" if filled_ones else "",
        )
    head = filled[:_TITLES_AMONG]
    titles = skip_titles(head)
    line, header = filled[titles]
    notes, notices = titles_note(head, titles), list[Notice]()
    others = [other for other in shown if other != name] if sheet is None else []
    if others:
        read = f"the first of {len(shown)} sheets, {quote(name)}"
        notes.append(read)
        choices = tuple(Action("sheet", other, f"Read sheet {other}") for other in others)
        notices.append(Notice("sheets", "note", f"This is {read}.", choices))
    names = [_header_name(cell, i, line) for i, cell in enumerate(header, start=1)]
    while names and not names[-1]:
        names.pop()
    try:
        yield Rows(names, _excel_cells(filled[titles + 1 :], len(names)), "Excel", notes, notices)
    except InputError as error:
        if others:  # the first may be a title page
            error.remedy += f"; or read another sheet: {_sheets(others)}"
        raise


def _sheets(names: Sequence[str]) -> str:
    return ", ".join(option("sheet", name) for name in names[:8])


def _header_name(cell: Any, position: int, line: int) -> str:
    if isinstance(cell, datetime.date | datetime.time):
        raise InputError(
            f"the name of column {position} is a date ({cell})",
            where=f"line {line}",
            remedy="Excel turns gene names such as SEPT2 into dates: restore it as text",
        )
    return as_label(cell) or ""


def _excel_cells(
    filled: list[tuple[int, list[Any]]], width: int
) -> Iterator[tuple[int, list[Any]]]:
    for line, cells in filled:
        extra = next((c for c in itertools.islice(cells, width, None) if c != ""), None)
        if extra is not None:
            raise InputError(
                f"{quote(extra)} stands to the right of the last column with a name",
                where=f"line {line}",
                remedy="name the column or clear the cell",
            )
        yield line, cells[:width]


def _check_workbook(path: Path) -> None:
    """Refuse a workbook that unpacks to more than sheets do, or has cells where Excel has none.

    The library that reads it makes room for every cell up to the last.
    """
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        return  # the old format in disguise, or nothing: the library will say
    with archive:
        entries = archive.infolist()
        _check_size(sum(entry.file_size for entry in entries), path, 100)
        for entry in entries:
            if not entry.filename.startswith("xl/worksheets/"):
                continue
            rest, low, high, column = b"", 0, 0, 0
            with archive.open(entry) as stream:
                while block := stream.read(1 << 20):
                    text = rest + block
                    for kind, letters, digits in _PLACE.findall(text):
                        row = int(digits)
                        if kind == b"row" and row <= low:
                            raise _disordered(f"row {row} follows row {low}")
                        low, high = (row if kind == b"row" else low), max(high, row)
                        column = max(column, _column_number(letters))
                    rest = text[text.rfind(b"<") :] if b"<" in text else b""
            if high > _MOST_ROWS or column > _MOST_COLUMNS:
                raise _disordered(f"it has a cell in row {high}, column {column}")


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _disordered(what: str) -> InputError:
    return InputError(
        f"the sheet is damaged ({what})", remedy="save it again with Excel, or as CSV"
    )


# --- Parquet ---------------------------------------------------------------------------


def _read_parquet(path: Path, options: ReadOptions, asked: Collection[str] | None) -> Frame:
    pa, pq = need("pyarrow", "cli"), need("pyarrow.parquet", "cli")
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError("this is not a Parquet file, or it is damaged", remedy=_AGAIN) from error
    with file:
        promised = file.metadata.num_rows
        _check_size(8 * promised * len(file.schema_arrow.names), path, _RATIO)
        table = file.read(use_threads=False)
    if any(len(column) != promised for column in table.columns):
        raise InputError(f"{promised} rows are promised, {table.num_rows} are there", remedy=_AGAIN)
    table.validate(full=True)
    frame = from_pandas(table.to_pandas(use_threads=False))
    return replace(frame, kind="Parquet", turns=True)


# --- AnnData ---------------------------------------------------------------------------


def _read_h5ad(path: Path, options: ReadOptions, asked: Collection[str] | None) -> Frame:
    """Read X (or a layer), the names and what is said of the samples, and nothing else."""
    h5py, _ = need("h5py", "omics"), need("anndata", "omics")
    from anndata.io import read_elem

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        if error.errno is not None:
            raise
        raise InputError("this is not an .h5ad file, or it is damaged") from error
    with file:
        if "obs" not in file or "var" not in file:
            raise InputError("the file has no obs and var", remedy="is it AnnData?")
        name = "X" if options.layer is None else f"layers/{options.layer}"
        stored = stored_matrix(file, options.layer)
        for part in ("obs", "var", name):
            _check_hdf5(file, part, path)
        obs, var = read_elem(file["obs"]), read_elem(file["var"])
        X = read_elem(stored)
    kind = "AnnData" if options.layer is None else f"AnnData, layer {options.layer}"
    return from_anndata(X, obs, list(var.index), kind)


def stored_matrix(root: Any, layer: str | None) -> Any:
    """Return X or a layer of AnnData as its file or object holds it."""
    # anndata 0.13 has X among the layers too, under None
    layers = [name for name in root["layers"] if name is not None] if "layers" in root else []
    if layer is not None and layer not in layers:
        raise no_such("layer", layer, "layer", layers)
    if layer is None and "X" not in root:
        raise InputError(
            "X is empty", remedy=f"name a layer with {option('layer')}: {listed(layers)}"
        )
    return root["X"] if layer is None else root["layers"][layer]


def _check_hdf5(root: Any, name: str, path: Path) -> None:
    """Refuse links into other files, and arrays that declare more than the file can hold."""
    import h5py

    folder, _, last = name.rpartition("/")
    stack = [(root[folder] if folder else root, last)]
    seen = set()
    while stack:
        group, key = stack.pop()
        link = group.get(key, getlink=True)
        item = None if isinstance(link, h5py.ExternalLink) else group[key]
        if item is None or item.file.filename != root.file.filename:
            raise _elsewhere(key)
        address = h5py.h5o.get_info(item.id).addr
        if address in seen:
            continue
        seen.add(address)
        if isinstance(item, h5py.Group):
            stack += [(item, child) for child in item]
        elif isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                raise _elsewhere(key)
            size = (item.size or 0) * item.dtype.itemsize
            packed = item.chunks is not None
            if size > path.stat().st_size and not packed:
                raise InputError(f"{quote(key)} declares more than there is", remedy=_AGAIN)
            _check_size(max(size, math.prod(item.chunks or ()) * item.dtype.itemsize), path, _RATIO)


def _elsewhere(name: str) -> InputError:
    return InputError(
        f"{quote(name)} is kept in another file, which is not opened",
        remedy="write everything into one file",
    )


FORMATS = (
    Format("CSV", (".csv", ".txt", ".dat"), rows=open_delimited),
    Format("TSV", (".tsv", ".tab"), rows=open_delimited),
    Format(
        "GEO series matrix",
        (".csv", ".txt", ".dat", ".tsv", ".tab"),
        read=read_series_matrix,
        recognise=is_series_matrix,
    ),
    Format("Excel", (".xlsx", ".xlsm", ".xls"), rows=_excel_rows),
    Format("Parquet", (".parquet", ".pq"), read=_read_parquet),
    Format("AnnData (.h5ad)", (".h5ad",), read=_read_h5ad, layers=True),
)


# --- writing ---------------------------------------------------------------------------

# Characters that XML cannot hold.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def workbook(sheets: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]) -> bytes:
    """Return an .xlsx file of (header, rows) by name: the same bytes every time, no formulas."""
    openpyxl = need("openpyxl", "cli")
    book = openpyxl.Workbook(write_only=True)
    book.properties.created = book.properties.modified = datetime.datetime(1980, 1, 1)
    for name, (header, rows) in sheets.items():
        page = book.create_sheet(name)
        page.freeze_panes = "A2"
        page.column_dimensions["A"].width = 32
        for row in (header, *rows):
            page.append([_written_cell(page, cell) for cell in row])
    written, content = io.BytesIO(), io.BytesIO()
    book.save(written)
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(content, "w") as target:
        for entry in source.infolist():
            # openpyxl writes the time of saving
            data = re.sub(
                rb"(<dcterms:modified[^>]*>)[^<]*",
                rb"\g<1>1980-01-01T00:00:00Z",
                source.read(entry),
            )
            target.writestr(zipfile.ZipInfo(entry.filename), data, zipfile.ZIP_DEFLATED)  # of 1980
    return content.getvalue()


def _written_cell(page: Any, value: Any) -> Any:
    if isinstance(value, str):
        cell = need("openpyxl.cell", "cli").WriteOnlyCell(page, _UNWRITABLE.sub("\ufffd", value))
        cell.data_type = "s"
        return cell
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value.item() if hasattr(value, "item") else value
