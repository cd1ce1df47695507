"""The file formats that are read, and `FORMATS`, the list of them.

To add a format, write a function here that opens a file as rows of cells (as Excel is opened)
or one that reads it into a `RawTable` (as NPZ is read), and add a line to `FORMATS`.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from . import structure
from .cells import as_label, as_role
from .errors import InputError, listed, need, option, quote, suggestion
from .geo import is_series_matrix, open_samples, read_series_matrix
from .guards import (
    ARRAY_RATIO,
    check_memory,
    check_unpacked,
    check_workbook,
    check_worksheet,
    guarded,
    guarded_rows,
    interruptible,
    without_warnings,
)
from .layout import (
    RawTable,
    Roles,
    RoleText,
    as_floating,
    from_anndata,
    from_arrays,
    lay_out,
    stored_matrix,
)
from .rows import from_rows
from .text import OpenRows, ReadOptions, RowStream, open_arff, open_delimited


@dataclass(frozen=True)
class Format:
    """A file format: what messages call it, how it is recognised, and how it is read.

    `suffixes` are in lower case; ``.gz`` after them is looked through; `recognise`, if there
    is one, has to say yes to the file's content too. Of the two readers at least one is needed:
    ``rows(path, options)`` opens a file as rows of cells, and such files can also hold labels, and
    features in rows; ``read(path, roles, options)`` gives a `RawTable` and goes first.
    `transposes` is whether features may be in rows, None where they always are; `layers` is
    whether a file holds several matrices.
    """

    name: str
    suffixes: tuple[str, ...]
    rows: Callable[[Path, ReadOptions], AbstractContextManager[RowStream]] | None = None
    read: Callable[[Path, Roles, ReadOptions], RawTable] | None = None
    transposes: bool | None = True
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
    if suffix == ".xls":
        remedy = "save the old Excel format as .xlsx or CSV"
    what = f"files of type {quote(suffix)} are not read" if suffix else "it has no extension"
    raise InputError(what, remedy=remedy)


def rows_of(file: Path, options: ReadOptions) -> OpenRows:
    """Return what opens a file as rows, as often as needed, or refuse its format."""
    form = format_of(file)
    if form.rows is None:
        names = [form.name for form in FORMATS if form.rows is not None]
        raise InputError(f"labels are read from {', '.join(names[:-1])} or {names[-1]}")
    return partial(_open_guarded, form, file, options)


def column_names(file: Path, options: ReadOptions) -> list[str]:
    """Return the names of a file's columns; none where it does not have rows of cells."""
    if format_of(file).rows is None:
        return []
    with rows_of(file, options)() as rows:
        return rows.names


@contextmanager
def _open_guarded(form: Format, file: Path, options: ReadOptions) -> Iterator[RowStream]:
    """Open a file as rows; what its library raises, now or later, is an `InputError`."""
    assert form.rows is not None
    with without_warnings(), ExitStack() as stack:
        with guarded(form.name):
            stream = stack.enter_context(form.rows(file, options))
        yield replace(stream, rows=guarded_rows(stream.rows, form.name))


def read_file(file: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read a table of any format; its digest is the SHA-256 of the file."""
    form = format_of(file)
    if options.layer is not None and not form.layers:
        names = [form.name for form in FORMATS if form.layers]
        raise InputError(f"{option('layer')} is for {' and '.join(names)} files")
    if options.transpose and form.transposes is False:
        raise InputError(
            "files of this type have samples in rows by definition",
            remedy=f"leave {option('transpose', True)} out",
        )
    if form.read is not None:
        with without_warnings(), guarded(form.name):
            raw = form.read(file, roles, options)
    else:
        raw = from_rows(rows_of(file, options), roles, options)
    with guarded(form.name), open(file, "rb") as handle:
        raw.digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return raw


# --- Excel -----------------------------------------------------------------------------

NumberedRow = tuple[int, Sequence[Any]]
_TITLES_AMONG = 20  # lines


@contextmanager
def _excel_rows(path: Path, options: ReadOptions) -> Iterator[RowStream]:
    """Open one sheet of a workbook as a stream of rows; formulas give their last value."""
    sheet = options.sheet
    openpyxl = need("openpyxl", "cli")
    # openpyxl leaves open what it cannot read
    with open(path, "rb") as file, ExitStack() as stack:
        try:
            check_workbook(path)
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except (InputError, OSError):
            raise
        except Exception as error:
            raise InputError(
                "this is not an Excel workbook (.xlsx), or it is damaged or has a password",
                remedy="save it again as .xlsx without a password, or as CSV",
            ) from error
        stack.enter_context(closing(book))
        if sheet is not None and sheet not in book.sheetnames:
            raise InputError(
                f"there is no sheet {quote(sheet)}", remedy=suggestion(sheet, book.sheetnames)
            )
        page = book[book.sheetnames[0] if sheet is None else sheet]
        with page._get_source() as source:
            check_worksheet(source)
        page.reset_dimensions()  # what the file says of its size may be out of date
        filled = stack.enter_context(closing(_filled_rows(page)))
        above, rest = _skip_titles(filled)
        line, header = next(rest, (0, ()))
        if not header:
            raise InputError(f"sheet {quote(page.title)} is empty")
        for position, cell in enumerate(header, start=1):
            if isinstance(cell, datetime.date | datetime.time):
                raise InputError(
                    f"the name of column {position} is a date ({cell})",
                    where=f"line {line}",
                    remedy="Excel turns gene names such as SEPT2 into dates: restore it as text",
                )
        names = [as_label(cell) or "" for cell in header]
        while names and not names[-1]:
            names.pop()
        notes = []
        if len(book.sheetnames) > 1 and sheet is None:
            notes.append(f"the first of {len(book.sheetnames)} sheets, {quote(page.title)}")
        if above:
            passed = ", ".join(map(str, above))
            notes.append(f"the header is on line {line}; passed over above it: line {passed}")
        yield RowStream(names, _excel_cells(rest, len(names)), "Excel", notes)


def _skip_titles(lines: Iterator[NumberedRow]) -> tuple[list[int], Iterator[NumberedRow]]:
    """Pass over what stands above the header; return the lines left out, and the rest.

    `lines` are those with something in them. A title fills less than half of the cells that
    the widest line near it fills. What follows must look like a header, which holds no
    number: else nothing is passed over, and it is for the messages to say what is wrong.
    """
    head = list(itertools.islice(lines, _TITLES_AMONG))
    filled = [sum(cell is not None for cell in cells) for _, cells in head]
    titles = 0
    while titles < len(head) and 2 * filled[titles] < max(filled):
        titles += 1
    if titles == len(head) or any(isinstance(cell, Number) for cell in head[titles][1]):
        titles = 0
    return [number for number, _ in head[:titles]], itertools.chain(head[titles:], lines)


def _filled_rows(page: Any) -> Generator[NumberedRow]:
    """Yield the rows of a sheet that hold something; closed, it lets go of the file."""
    for line, cells in enumerate(page.iter_rows(values_only=True), start=1):
        if any(cell is not None for cell in cells):
            yield line, cells


def _excel_cells(filled: Iterator[NumberedRow], width: int) -> Iterator[tuple[int, list[Any]]]:
    for line, cells in filled:
        extra = next((c for c in cells[width:] if c is not None), None)
        if extra is not None:
            raise InputError(
                f"{quote(extra)} stands to the right of the last column with a name",
                where=f"line {line}",
                remedy="name the column or clear the cell",
            )
        yield line, list(itertools.islice(itertools.chain(cells, itertools.repeat(None)), width))


# --- Parquet ---------------------------------------------------------------------------


def open_parquet(path: Path) -> Any:
    """Open a Parquet file; nothing but its schema is read."""
    pa, pq = need("pyarrow", "cli"), need("pyarrow.parquet", "cli")
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "this is not a Parquet file, or it is damaged", remedy="write it again"
        ) from error


def is_number_type(kind: Any) -> bool:
    """Whether a type of Arrow is of numbers or truth values."""
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _parquet_names(file: Any) -> list[str]:
    # pandas' own name for an index without one says nothing to the reader of a message
    return ["" if n.startswith("__index_level_") else n for n in file.schema_arrow.names]


@contextmanager
def _parquet_rows(
    path: Path, options: ReadOptions, names: list[str] | None = None
) -> Iterator[RowStream]:
    """Open a Parquet file row by row: for labels, transposed tables, and columns of text."""
    with open_parquet(path) as file:
        batches = file.iter_batches(batch_size=256)
        columns = ([column.to_pylist() for column in batch.columns] for batch in batches)
        rows = (list(cells) for batch in columns for cells in zip(*batch))
        counted = _counted(rows, file.metadata.num_rows)
        yield RowStream(names or _parquet_names(file), counted, "Parquet")


def _counted(rows: Iterator[list[Any]], promised: int) -> Iterator[tuple[int, list[Any]]]:
    """Number the rows, and refuse a file that holds others than it promises."""
    number = 0
    for number, cells in enumerate(rows, start=1):
        yield number, cells
    check_filled(number, promised)


def check_filled(n: int, promised: int) -> None:
    """Refuse a Parquet file whose pages hold another number of rows than its footer says."""
    if n != promised:
        raise InputError(
            f"{promised} rows are promised, {n} are there", remedy="write the file again"
        )


def _read_parquet(path: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read a Parquet file column by column into a matrix, or row by row if it is turned."""
    if options.transpose:
        return from_rows(partial(_parquet_rows, path, options), roles, options)
    with open_parquet(path) as file:
        schema, names = file.schema_arrow, _parquet_names(file)
        index = _pandas_index(schema)
        if index is not None and roles.id is None and names[index] not in roles.asked():
            names[index] = names[index] if names[index].strip() else "index"
            roles = replace(roles, id=names[index])
        shown = [name or (f"column {i}" if i else "") for i, name in enumerate(names)]
        layout = lay_out(shown, roles)
        kinds = [schema.field(i).type for i in layout.features]
        if not all(map(is_number_type, kinds)):
            # Numbers may be stored as text: the reader of cells knows, and knows the messages.
            raw = from_rows(partial(_parquet_rows, path, options, names), roles, options)
            raw.place = "row"
            return raw
        single = bool(kinds) and all(str(kind) in ("float", "halffloat") for kind in kinds)
        shape = file.metadata.num_rows, len(layout.features)
        dtype = np.dtype(np.float32 if single else np.float64)
        size, remedy = dtype.itemsize * shape[0] * shape[1], "write it without compression"
        check_unpacked(size, path.stat().st_size, remedy, ratio=ARRAY_RATIO)
        check_memory(*shape, dtype.itemsize)
        X = np.empty(shape, dtype, order="F")
        text: RoleText = {role: [] for role in layout.text}
        start = 0
        for batch in file.iter_batches(batch_size=65536):
            stop = start + batch.num_rows
            check_filled(min(stop, shape[0]), stop)
            for j, i in enumerate(layout.features):
                X[start:stop, j] = _arrow_numbers(batch.column(i))
            for role, i in layout.text.items():
                text[role].extend(as_role(role, v) for v in batch.column(i).to_pylist())
            start = stop
        check_filled(start, shape[0])
    return RawTable(X, layout.names, "Parquet", text, layout.dropped, list(layout.notes))


def _pandas_index(schema: Any) -> int | None:
    """Return the position of the column that was the index of a pandas frame."""
    described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    for name in described.get("index_columns") or []:
        if isinstance(name, str) and name in schema.names:
            return int(schema.names.index(name))
    return None


def _arrow_numbers(column: Any) -> Any:
    """Return a column of Arrow as an array of numbers, NaN where one is missing."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if column.null_count or pa.types.is_decimal(column.type):
        kind = pa.float32() if column.type == pa.float32() else pa.float64()
        column = column.cast(kind, safe=False)  # large integers are rounded, as in other formats
    return column.to_numpy(zero_copy_only=False)


# --- NPZ -------------------------------------------------------------------------------


def _read_npz(path: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read ``X`` and ``feature_names`` of an archive, and the arrays that have a role."""
    remedy = "save it with numpy.savez(path, X=..., y=..., feature_names=names as text)"
    if not zipfile.is_zipfile(path):
        raise InputError("this is not an NPZ archive, or it is damaged", remedy=remedy)
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        if "X" not in members:
            raise InputError(f"there is no array 'X' (there are {listed(members)})", remedy=remedy)
        roles = replace(roles, id="ids") if roles.id is None and "ids" in members else roles
        # what has no role is not even unpacked
        wanted = {"X", "feature_names", "class_names", *roles.named().values()}
        arrays: dict[str, Any] = dict.fromkeys(members)
        for name in wanted & members.keys():
            arrays[name] = _npz_array(archive, members[name], name)
    X, classes = arrays.pop("X"), arrays.pop("class_names", None)
    labels = arrays.get(roles.target or "")
    if labels is not None and classes is not None and labels.dtype.kind in "biu":
        if classes.ndim != 1 or not np.isin(labels, np.arange(len(classes))).all():
            raise InputError(f"array {quote(roles.target)} does not index class_names")
        arrays[str(roles.target)] = classes[labels]
    hint = f"try {option('transpose', True)}"
    if options.transpose:
        X, hint = X.T, "save one name for each column"
    raw = from_arrays(X, arrays, roles, "NPZ", hint)
    raw.X = as_floating(raw.X)
    return raw


def _npz_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Any:
    """Read one array, if it is what its header and the archive say it is."""
    check_unpacked(entry.file_size, entry.compress_size, "save it with numpy.savez, not compressed")
    check_memory(1, entry.file_size, 1)
    with archive.open(entry) as stream:
        structure.check_npy(stream, entry.file_size, name)
    with archive.open(entry) as stream:
        return structure.check_texts(np.lib.format.read_array(stream, allow_pickle=False), name)


# --- AnnData ---------------------------------------------------------------------------


@contextmanager
def open_h5ad(path: Path, layer: str | None) -> Iterator[tuple[Any, Any, Any]]:
    """Open an AnnData file as HDF5 and check it; yield obs, var and the stored matrix."""
    h5py, _ = need("h5py", "omics"), need("anndata", "omics")
    from anndata.io import read_elem

    structure.check_heaps(path)
    with interruptible():
        try:
            file = h5py.File(path, "r")
        except OSError as error:
            if error.errno is not None:
                raise
            raise InputError("this is not an .h5ad file, or it is damaged") from error
        with file:
            if "obs" not in file or "var" not in file:
                raise InputError("the file has no obs and var", remedy="is it AnnData?")
            name = "X" if layer is None else f"layers/{layer}"
            structure.check_hdf5(file, ("obs", "var"), path.stat().st_size)
            stored = stored_matrix(file, layer)
            structure.check_hdf5(file, (name,), path.stat().st_size)
            obs, var = read_elem(file["obs"]), read_elem(file["var"])
            structure.check_anndata_matrix(stored, len(obs), len(var))
            yield obs, var, stored


def _read_h5ad(path: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read X (or a layer), the names and the labels of an AnnData file, and nothing else."""
    with open_h5ad(path, options.layer) as (obs, var, stored):
        from anndata.io import read_elem

        X = structure.check_matrix(read_elem(stored), len(obs), len(var))
    X = as_floating(X.tocsr() if sparse.issparse(X) else np.asarray(X))
    return from_anndata(X, obs, var.index, roles, anndata_kind(options.layer))


def anndata_kind(layer: str | None) -> str:
    """Return what the record calls an AnnData file of which X or a layer is read."""
    return "AnnData" if layer is None else f"AnnData, layer {layer}"


_TEXT = (".csv", ".txt", ".dat", ".tsv", ".tab")

FORMATS = (
    Format("CSV", (".csv", ".txt", ".dat"), rows=open_delimited),
    Format("TSV", (".tsv", ".tab"), rows=open_delimited),
    Format(
        "GEO series matrix", _TEXT, open_samples, read_series_matrix, None, False, is_series_matrix
    ),
    Format("Excel (.xlsx)", (".xlsx", ".xlsm"), rows=_excel_rows),
    Format("Parquet", (".parquet", ".pq"), rows=_parquet_rows, read=_read_parquet),
    Format("ARFF", (".arff",), rows=open_arff, transposes=False),
    Format("NPZ", (".npz",), read=_read_npz),
    Format("AnnData (.h5ad)", (".h5ad",), read=_read_h5ad, transposes=False, layers=True),
)
