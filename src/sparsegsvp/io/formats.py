"""The file formats that are read, and `FORMATS`, the list of them.

To add one, write a function that reads a file into a `Frame` (`collect` makes one of rows of cells)
and add it to the list. Libraries read, once sizes are checked and no link leads into another file.
"""

from __future__ import annotations

import datetime
import math
import re
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._notices import notice
from .._validate import listed, need, quote, shown_name, suggestion
from .cells import as_label, spelling_key
from .errors import InputError, guarded, locating, option
from .frame import Frame, Labels, collect, from_anndata, from_pandas
from .geo import is_series_matrix, read_series_matrix
from .text import ReadOptions, Rows, check_size, delimited, open_text, skip_titles

_AGAIN = "write it again"
_RATIO = 500  # numbers of eight bytes that are nearly all zero shrink further than text does


@dataclass(frozen=True)
class Format:
    """A file format: what messages call it, and what reads it."""

    name: str
    suffixes: tuple[str, ...]  # in lower case; ``.gz`` after them is looked through
    read: Callable[[Path, ReadOptions, Collection[str] | None], Frame]


def read_frame(file: Path, options: ReadOptions, verbatim: Collection[str] | None = ()) -> Frame:
    """Read a file of any format; the cells of columns that are asked for stay as written."""
    suffixes = [s.lower() for s in file.suffixes if s.lower() != ".gz"] or [""]
    form = next((form for form in FORMATS if suffixes[-1] in form.suffixes), None)
    if form is None:
        what = f"files of type {quote(suffixes[-1])} are not read"
        remedy = f"{', '.join(f.name for f in FORMATS)} are read, by the file's extension"
        raise InputError(what, remedy=remedy)
    if options.layer is not None and form.read is not _read_h5ad:
        raise InputError(f"{option('layer')} is for AnnData")
    with guarded(form.name):
        return form.read(file, options, verbatim)


def read_labels(file: Path, on: str | None, target: str | None, options: ReadOptions) -> Labels:
    """Read a second file; its first column identifies the samples unless `on` is another."""
    source, codes = shown_name(file), options.codes
    with locating(source):
        frame = read_frame(file, ReadOptions(encoding=options.encoding, codes=codes), None)
        columns = dict(frame.beside)
        if not frame.all_features:
            frame.refuse_duplicates()
            kept = [0, *frame.named(range(1, len(frame.names)))] if frame.names else []
            columns = {frame.names[p]: frame.cells(p) for p in kept}
        names = list(columns)
        on = names[0] if on is None else on
        others = [name for name in names if name != on]
        if target is None and len(others) == 1:
            target = others[0]
        for name, role in ((on, "on"), (target, "target")):
            if name not in names:
                what = f"there is no column {quote(name)} ({option(role)})"
                if name is None:
                    what = f"say which column holds the labels: {option(role)}"
                raise InputError(what, remedy=suggestion(name or "", others))
        labels = [codes.label(cell) for cell in columns[str(target)]]
        rows: dict[str, int] = {}
        for row, key in enumerate(map(as_label, columns[on])):
            label, other = labels[row], labels[rows.setdefault(key or "", row)]
            if key and spelling_key(label or "") != spelling_key(other or ""):
                what = f"{quote(key)} is labelled {quote(other)} and {quote(label)}"
                raise InputError(what, remedy="keep one label for each sample")
        rows.pop("", None)
    return Labels(columns, rows, on, target, source)


def _read_text(path: Path, options: ReadOptions, verbatim: Collection[str] | None) -> Frame:
    with open_text(path, options.encoding) as (handle, packed):
        if is_series_matrix(handle):
            return read_series_matrix(handle, packed, options, verbatim)
        return collect(delimited(handle, packed, options), options, verbatim)


_MOST_CELLS = 1 << 23  # that any sheet may have
_CELL = re.compile(rb'<(?:\w+:)?(?:row|c)\b[^>]*?\br="([A-Z]{0,9})([0-9]{1,19})"')


def _read_excel(path: Path, options: ReadOptions, verbatim: Collection[str] | None) -> Frame:
    """Read one sheet of a workbook; formulas give their last value."""
    calamine = need("python_calamine", "cli")
    _check_workbook(path)
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
    except (calamine.CalamineError, OSError) as error:
        what = "this is not an Excel workbook, or it is damaged or has a password"
        remedy = "save it again as .xlsx without a password, or as CSV"
        raise InputError(what, remedy=remedy) from error
    pages = [s for s in book.sheets_metadata if s.typ == calamine.SheetTypeEnum.WorkSheet]
    visible = [s.name for s in pages if s.visible == calamine.SheetVisibleEnum.Visible]
    shown = visible or [s.name for s in pages] or [""]
    name, others = options.sheet or shown[0], [] if options.sheet else shown[1:]
    if name not in (s.name for s in pages):
        raise InputError(f"there is no sheet {quote(name)}", remedy=suggestion(name, shown))
    try:
        with book:
            cells = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        filled = [(i, row) for i, row in enumerate(cells, start=1) if any(c != "" for c in row)]
        if not filled:
            raise InputError(f"sheet {quote(name)} is empty", remedy="fill it")
        titles, notes = skip_titles(filled)
        line, header = filled[titles]
        if dates := [cell for cell in header if isinstance(cell, datetime.date | datetime.time)]:
            what = f"the name of column {header.index(dates[0]) + 1} is a date ({dates[0]})"
            remedy = "Excel turns gene names such as SEPT2 into dates: restore it as text"
            raise InputError(what, f"line {line}", remedy)
        names, body = [as_label(cell) or "" for cell in header], iter(filled[titles + 1 :])
        said = [f"the first of {len(shown)} sheets, {quote(name)}"] if others else []
        notices = [notice("sheets", *others, text=text) for text in said]
        return collect(Rows(names, body, "Excel", notes + said, notices), options, verbatim)
    except InputError as error:
        if others:  # the first may be a title page
            error.remedy += f"; or read another sheet: {option('sheet', others[0])}"
        raise


def _check_workbook(path: Path) -> None:
    """Refuse a workbook that unpacks to more than sheets do, or has a cell far out."""
    if not zipfile.is_zipfile(path):
        return  # the old format, or nothing: the library will say
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        check_size(sum(entry.file_size for entry in entries), path)
        for entry in entries:
            rows, columns = {b"0"}, {b""}
            for match in _CELL.finditer(archive.read(entry)):
                columns.add(match[1])
                rows.add(match[2])
            height, last = max(map(int, rows)), max(columns, key=lambda text: (len(text), text))
            width = sum((c - 64) * 26**k for k, c in enumerate(reversed(last)))
            # the library makes room for all cells up to the last
            if height * width > max(_MOST_CELLS, 100 * path.stat().st_size):
                what = f"a sheet has cells as far out as {last.decode()}{height}, nearly all empty"
                raise InputError(what, remedy="clear those apart from the table, or save it as CSV")


def _read_parquet(path: Path, options: ReadOptions, verbatim: Collection[str] | None) -> Frame:
    pa, pq = need("pyarrow", "cli"), need("pyarrow.parquet", "cli")
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError("this is not a Parquet file, or it is damaged", remedy=_AGAIN) from error
    with file:
        promised = file.metadata.num_rows
        check_size(8 * promised * len(file.schema_arrow.names), path, _RATIO)
        table = file.read(use_threads=False)
    if any(len(column) != promised for column in table.columns):
        raise InputError(f"{promised} rows are promised, {table.num_rows} are there", remedy=_AGAIN)
    table.validate(full=True)
    frame = from_pandas(table.to_pandas(use_threads=False))
    return replace(frame, kind="Parquet", samples="either")


def _read_h5ad(path: Path, options: ReadOptions, verbatim: Collection[str] | None) -> Frame:
    """Read X (or a layer), the names and what is said of the samples, and nothing else."""
    if options.transpose:
        raise InputError("AnnData has samples in rows", remedy=f"leave {option('transpose')} out")
    h5py, _ = need("h5py", "omics"), need("anndata", "omics")
    from anndata.io import read_elem

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError("this is not an .h5ad file, or it is damaged", remedy=_AGAIN) from error
    with file:
        if "obs" not in file or "var" not in file:
            raise InputError("the file has no obs and var", remedy="is it AnnData?")
        stored = stored_matrix(file, options.layer)
        matrix = (file, "X") if options.layer is None else (file["layers"], options.layer)
        _check_hdf5([(file, "obs"), (file, "var"), matrix], path)
        obs, var, X = read_elem(file["obs"]), read_elem(file["var"]), read_elem(stored)
    return from_anndata(X, obs, list(var.index), options.layer)


def stored_matrix(root: Any, layer: str | None) -> Any:
    """Return X or a layer of AnnData as its file or object holds it."""
    # anndata 0.13 has X among the layers too, under None
    layers = [name for name in root["layers"] if name is not None] if "layers" in root else []
    if layer is not None and layer not in layers:
        what = f"there is no layer {quote(layer)} ({option('layer')})"
        raise InputError(what, remedy=suggestion(layer, layers))
    if layer is None and "X" not in root:
        raise InputError("X is empty", remedy=f"name a layer ({option('layer')}): {listed(layers)}")
    return root["X"] if layer is None else root["layers"][layer]


def _check_hdf5(stack: list[tuple[Any, str]], path: Path) -> None:
    """Refuse links into other files, and arrays that declare more than the file can hold."""
    import h5py

    seen, name = set(), stack[0][0].file.filename
    while stack:
        group, key = stack.pop()
        linked = isinstance(group.get(key, getlink=True), h5py.ExternalLink)
        item = None if linked else group[key]
        kept = isinstance(item, h5py.Dataset) and (item.is_virtual or item.external)
        if item is None or kept or item.file.filename != name:
            what = f"{quote(key)} is kept in another file, which is not opened"
            raise InputError(what, remedy="write everything into one file")
        address = h5py.h5o.get_info(item.id).addr
        if address not in seen and isinstance(item, h5py.Group):
            stack += [(item, child) for child in item]
        elif isinstance(item, h5py.Dataset):
            size = max(item.size or 0, math.prod(item.chunks or ())) * item.dtype.itemsize
            check_size(size, path, _RATIO if item.chunks else 1)
        seen.add(address)


FORMATS = (
    Format("text (CSV, TSV, GEO)", (".csv", ".txt", ".dat", ".tsv", ".tab"), _read_text),
    Format("Excel", (".xlsx", ".xlsm", ".xls"), _read_excel),
    Format("Parquet", (".parquet", ".pq"), _read_parquet),
    Format("AnnData (.h5ad)", (".h5ad",), _read_h5ad),
)
