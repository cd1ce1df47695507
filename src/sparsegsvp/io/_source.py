"""From a path to rows or matrices: which reader a file gets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from . import _arrays, _rowformats
from ._assemble import OpenRows, Parts, from_rows
from ._layout import Request
from ._text import Rows, file_digest, open_delimited, scan_text
from .errors import InputError, option, quote, suggestion

_SUFFIXES = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".tab": "text",
    ".dat": "text",
    ".arff": "arff",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".h5ad": "h5ad",
}
_READ = "CSV, TSV, Excel (.xlsx), Parquet, ARFF, NPZ and AnnData (.h5ad)"


@dataclass(frozen=True)
class TextOptions:
    """What a text file or a workbook is told rather than asked."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None


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


def kind_of(file: Path) -> str:
    """Tell the format by the extension, looking through ``.gz``."""
    suffixes = [s.lower() for s in file.suffixes]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".gz" and len(suffixes) > 1:
        suffix = suffixes[-2]
    kind = _SUFFIXES.get(suffix)
    if kind is None:
        remedy = f"{_READ} are read, by the file's extension"
        if suffix == ".xls":
            remedy = "save the old Excel format as .xlsx or CSV"
        what = f"files of type {quote(suffix)} are not read" if suffix else "it has no extension"
        raise InputError(what, where=file.name, remedy=remedy)
    return kind


def rows_of(file: Path, kind: str, options: TextOptions) -> tuple[OpenRows, str]:
    """Return what opens a file as rows, as often as needed, and the digest of the file."""
    opener: Callable[[], AbstractContextManager[Rows]]
    if kind in ("text", "arff"):
        text = scan_text(file, options.encoding)
        if kind == "arff":
            opener = partial(_rowformats.open_arff, text)
        else:
            opener = partial(open_delimited, text, options.separator)
        return opener, text.digest
    if kind == "excel":
        opener = partial(_rowformats.open_excel, file, options.sheet)
    else:
        opener = partial(_arrays.open_parquet_rows, file)
    return opener, file_digest(file)


def read_parts(
    file: Path,
    kind: str,
    request: Request,
    transpose: bool,
    layer: str | None,
    options: TextOptions,
) -> tuple[Parts, str]:
    """Read a table of any format; returns its parts and the digest of the file."""
    if transpose and kind in ("arff", "h5ad"):
        raise InputError(
            "files of this type have samples in rows by definition",
            where=file.name,
            remedy=f"leave {option('transpose')} out",
        )
    if kind == "parquet":
        parts = _arrays.read_parquet(file, request, transpose=transpose, decimal=options.decimal)
    elif kind == "npz":
        parts = _arrays.read_npz(file, request, transpose=transpose)
    elif kind == "h5ad":
        parts = _arrays.read_h5ad(file, request, layer=layer)
    else:
        opener, digest = rows_of(file, kind, options)
        parts = from_rows(opener, request, file.name, transpose=transpose, decimal=options.decimal)
        return parts, digest
    return parts, file_digest(file)
