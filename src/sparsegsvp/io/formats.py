"""The file formats that are read, and `FORMATS`, the list of them.

To add a format, write a function here that opens a file as rows of cells (as Excel is opened)
or one that reads it into a `RawTable` (as NPZ is read), and add a line to `FORMATS`.
"""

from __future__ import annotations

import datetime
import itertools
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .cells import as_label
from .errors import InputError, listed, one_line, option, quote, suggestion
from .roles import Roles, arrays_of_samples, choose_features, columns_of_samples, lay_out, numbered
from .rows import OpenRows, RawTable, RowStream, from_rows
from .text import file_digest, open_arff, open_delimited, scan_text

_BATCH = 256  # rows of a Parquet file turned into Python values at a time


@dataclass(frozen=True)
class ReadOptions:
    """What the caller said about a file, in place of what is found out or taken for granted."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    layer: str | None = None
    transpose: bool = False


@dataclass(frozen=True)
class Format:
    """A file format: how it is recognised and read.

    Attributes
    ----------
    name : str
        What messages call it.
    suffixes : tuple of str
        Extensions in lower case; ``.gz`` after them is looked through.
    rows : callable, optional
        ``rows(path, options)`` gives what opens the file as rows of cells. Such files can
        also hold labels, and features in rows.
    read : callable, optional
        ``read(path, roles, options)`` gives a `RawTable`; without it the rows are read.
    transposes : bool, default=True
        Whether features may be in rows.
    layers : bool, default=False
        Whether a file holds several matrices.
    """

    name: str
    suffixes: tuple[str, ...]
    rows: Callable[[Path, ReadOptions], OpenRows] | None = None
    read: Callable[[Path, Roles, ReadOptions], RawTable] | None = None
    transposes: bool = True
    layers: bool = False


def format_of(file: Path) -> Format:
    """Tell the format by the extension, looking through ``.gz``."""
    suffixes = [s.lower() for s in file.suffixes]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".gz" and len(suffixes) > 1:
        suffix = suffixes[-2]
    for form in FORMATS:
        if suffix in form.suffixes:
            return form
    names = [form.name for form in FORMATS]
    remedy = f"{', '.join(names[:-1])} and {names[-1]} are read, by the file's extension"
    if suffix == ".xls":
        remedy = "save the old Excel format as .xlsx or CSV"
    what = f"files of type {quote(suffix)} are not read" if suffix else "it has no extension"
    raise InputError(what, where=file.name, remedy=remedy)


def rows_of(file: Path, options: ReadOptions) -> OpenRows:
    """Return what opens a file as rows, as often as needed, or refuse its format."""
    form = format_of(file)
    if form.rows is None:
        names = [form.name for form in FORMATS if form.rows is not None]
        raise InputError(
            f"labels are read from {', '.join(names[:-1])} or {names[-1]}", where=file.name
        )
    return form.rows(file, options)


def read_file(file: Path, roles: Roles, options: ReadOptions) -> tuple[RawTable, str]:
    """Read a table of any format; returns it and the SHA-256 of the file."""
    form = format_of(file)
    if options.layer is not None and not form.layers:
        names = [form.name for form in FORMATS if form.layers]
        raise InputError(f"{option('layer')} is for {' and '.join(names)} files", where=file.name)
    if options.transpose and not form.transposes:
        raise InputError(
            "files of this type have samples in rows by definition",
            where=file.name,
            remedy=f"leave {option('transpose')} out",
        )
    if form.read is not None and not (options.transpose and form.rows is not None):
        raw = form.read(file, roles, options)
    else:
        raw = from_rows(
            rows_of(file, options),
            roles,
            file.name,
            transpose=options.transpose,
            decimal=options.decimal,
        )
    return raw, file_digest(file)


def existing_file(path: str | PathLike[str]) -> Path:
    """Return the path of a file with something in it."""
    file = Path(path)
    if file.is_dir():
        raise InputError("this is a folder", where=str(file), remedy="name the file in it")
    if not file.exists():
        there = []
        if file.parent.is_dir():
            there = sorted(p.name for p in file.parent.iterdir() if p.is_file())
        close = suggestion(file.name, there)
        remedy = close if close.startswith("did you mean") else "check the path"
        raise InputError("there is no such file", where=str(file), remedy=remedy)
    if file.stat().st_size == 0:
        raise InputError("the file is empty", where=file.name, remedy="check the path")
    return file


# --- text ------------------------------------------------------------------------------


def _text_rows(path: Path, options: ReadOptions) -> OpenRows:
    return partial(open_delimited, scan_text(path, options.encoding), options.separator)


def _arff_rows(path: Path, options: ReadOptions) -> OpenRows:
    return partial(open_arff, scan_text(path, options.encoding))


# --- Excel -----------------------------------------------------------------------------


def _excel_rows(path: Path, options: ReadOptions) -> OpenRows:
    return partial(_open_excel, path, options.sheet)


@contextmanager
def _open_excel(path: Path, sheet: str | None) -> Iterator[RowStream]:
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
        lines = enumerate(page.iter_rows(values_only=True), start=1)
        filled = ((n, cells) for n, cells in lines if any(c is not None for c in cells))
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
        yield RowStream(names, _excel_cells(filled, len(names), where), "Excel", notes)
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


def _excel_cells(
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


# --- Parquet ---------------------------------------------------------------------------


def _open_parquet(path: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:  # pragma: no cover - depends on the installation
        raise ImportError('reading Parquet needs: pip install "sparsegsvp[cli]"') from error
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "this is not a Parquet file, or it is damaged", where=path.name, remedy="write it again"
        ) from error


def _parquet_rows(path: Path, options: ReadOptions) -> OpenRows:
    """Open a Parquet file row by row: for sheets of labels and transposed tables."""
    return partial(_open_parquet_rows, path)


@contextmanager
def _open_parquet_rows(path: Path) -> Iterator[RowStream]:
    with _open_parquet(path) as file:
        names, _ = _parquet_names(file)
        yield RowStream(names, _parquet_cells(file), "Parquet")


def _parquet_cells(file: Any) -> Iterator[tuple[int, list[Any]]]:
    line = 0
    for batch in file.iter_batches(batch_size=_BATCH):
        for cells in zip(*(column.to_pylist() for column in batch.columns)):
            line += 1
            yield line, list(cells)


def _parquet_names(file: Any) -> tuple[list[str], list[str]]:
    """Return the names of the columns, and which are the index of a pandas frame."""
    schema = file.schema_arrow
    metadata = (schema.metadata or {}).get(b"pandas")
    index = []
    if metadata is not None:
        columns = json.loads(metadata).get("index_columns", [])
        index = [c for c in columns if isinstance(c, str) and c in schema.names]
    # pandas' own name for an index without one says nothing to the reader of a message
    return ["" if n.startswith("__index_level_") else n for n in schema.names], index


def _read_parquet(path: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read a Parquet file column by column into a matrix."""
    import pyarrow as pa

    where = path.name
    with _open_parquet(path) as file:
        names, index = _parquet_names(file)
        names = [f"column {i}" if n == "" and i > 0 else n for i, n in enumerate(names)]
        if index and roles.id is None:
            position = file.schema_arrow.names.index(index[0])
            taken = (roles.target, roles.group, *roles.drop, *(roles.features or ()))
            if names[position] not in taken:
                names[position] = names[position] if names[position].strip() else "index"
                roles = replace(roles, id=names[position])
        layout = lay_out(names, roles, where)
        schema = file.schema_arrow
        text_like = []
        for i in layout.features:
            kind = schema.field(i).type
            if not (
                pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            ):
                text_like.append(i)
        if text_like:
            # Numbers may be stored as text: the reader of cells knows, and knows the messages.
            raw = from_rows(_parquet_rows(path, options), roles, where, decimal=options.decimal)
            raw.place = "row"
            return raw
        single = layout.features and all(
            str(schema.field(i).type) in ("float", "halffloat") for i in layout.features
        )
        n = file.metadata.num_rows
        X = np.empty((n, len(layout.features)), np.float32 if single else np.float64, order="F")
        text: dict[str, list[str | None]] = {role: [] for role in layout.text}
        start = 0
        for batch in file.iter_batches(batch_size=65536):
            stop = start + batch.num_rows
            for j, i in enumerate(layout.features):
                X[start:stop, j] = _arrow_numbers(batch.column(i))
            for role, i in layout.text.items():
                text[role].extend(as_label(v) for v in batch.column(i).to_pylist())
            start = stop
    notes = list(layout.notes)
    return RawTable(X, layout.names, "Parquet", text, layout.dropped, notes, place="row")


def _arrow_numbers(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if column.null_count:
        column = column.cast(pa.float32() if column.type == pa.float32() else pa.float64())
    return column.to_numpy(zero_copy_only=False)


# --- NPZ -------------------------------------------------------------------------------


def _read_npz(path: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read ``X`` and ``feature_names`` of an archive, and the arrays that have a role."""
    where = path.name
    remedy = "save it with numpy.savez(path, X=..., y=..., feature_names=names as text)"
    try:
        if not zipfile.is_zipfile(path):  # NumPy would take it for a pickle
            raise zipfile.BadZipFile
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise InputError("this is not an NPZ archive, or it is damaged", where=where) from error
    except ValueError as error:
        if "pickle" in str(error):
            raise InputError(
                "the archive holds Python objects, which are not loaded because they can run code",
                where=where,
                remedy=remedy,
            ) from None
        raise InputError(f"an array cannot be read ({one_line(error)})", where=where) from error
    if "X" not in arrays:
        raise InputError(
            f"there is no array 'X' (there are {listed(arrays)})", where=where, remedy=remedy
        )
    X = arrays.pop("X")
    X = X.T if options.transpose else X
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            f"X is {X.ndim}-dimensional of type {X.dtype}", where=where, remedy="it must be numbers"
        )
    X = _floating(X)
    given, classes = arrays.pop("feature_names", None), arrays.pop("class_names", None)
    notes = []
    if given is None:
        names, note = numbered(X.shape[1])
        notes.append(note)
    else:
        names = [str(name) for name in given]
    if len(names) != X.shape[1]:
        raise InputError(
            f"{len(names)} feature_names for {X.shape[1]} columns of X",
            where=where,
            remedy="save one name for each column"
            if options.transpose
            else f"try {option('transpose', True)}",
        )
    named = roles.named()
    if "id" not in named and "ids" in arrays:
        named["id"] = "ids"
    found = arrays_of_samples(arrays, named, X.shape[0], where)
    labels = found.get("target")
    if labels is not None and classes is not None and labels.dtype.kind in "biu":
        if labels.min() < 0 or labels.max() >= len(classes):
            raise InputError(f"array {quote(roles.target)} does not index class_names", where=where)
        found["target"] = classes[labels]
    text = {role: [as_label(v) for v in values.tolist()] for role, values in found.items()}
    chosen, kept, dropped = choose_features(names, roles, where)
    X = X if chosen is None else X[:, chosen]
    return RawTable(X, kept, "NPZ", text, dropped, notes, place="row")


# --- AnnData ---------------------------------------------------------------------------


def _read_h5ad(path: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read X (or a layer), the names and the labels of an AnnData file, and nothing else."""
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError as error:  # pragma: no cover - depends on the installation
        raise ImportError('reading .h5ad needs: pip install "sparsegsvp[omics]"') from error
    where = path.name
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError("this is not an .h5ad file, or it is damaged", where=where) from error
    with file:
        if "obs" not in file or "var" not in file:
            raise InputError("the file has no obs and var", where=where, remedy="is it AnnData?")
        obs, var = read_elem(file["obs"]), read_elem(file["var"])
        X = read_elem(stored_matrix(file, options.layer, where))
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    X = _floating(X)
    names = [str(name) for name in var.index]
    text = columns_of_samples(obs, roles, where)
    chosen, kept, dropped = choose_features(names, roles, where)
    X = X if chosen is None else X[:, chosen]
    kind = "AnnData" if options.layer is None else f"AnnData, layer {options.layer}"
    return RawTable(X, kept, kind, text, dropped, place="row")


def stored_matrix(root: Any, layer: str | None, where: str) -> Any:
    """Return X or a layer of AnnData as its file, store or object holds it."""
    layers = list(root["layers"]) if "layers" in root else []
    if layer is not None and layer not in layers:
        raise InputError(
            f"there is no layer {quote(layer)} ({option('layer')})",
            where=where,
            remedy=suggestion(layer, layers),
        )
    if layer is None and "X" not in root:
        raise InputError(
            "X is empty",
            where=where,
            remedy=f"name a layer with {option('layer')}: {listed(layers)}",
        )
    return root["X"] if layer is None else root["layers"][layer]


def _floating(X: Any) -> Any:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


FORMATS = (
    Format("CSV", (".csv", ".txt", ".dat"), rows=_text_rows),
    Format("TSV", (".tsv", ".tab"), rows=_text_rows),
    Format("Excel (.xlsx)", (".xlsx", ".xlsm"), rows=_excel_rows),
    Format("Parquet", (".parquet", ".pq"), rows=_parquet_rows, read=_read_parquet),
    Format("ARFF", (".arff",), rows=_arff_rows, transposes=False),
    Format("NPZ", (".npz",), read=_read_npz),
    Format("AnnData (.h5ad)", (".h5ad",), read=_read_h5ad, transposes=False, layers=True),
)
