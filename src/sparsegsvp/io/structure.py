"""Checks of binary formats before they are used: shapes, index ranges, declared sizes.

Libraries trust what a file says of itself: an index out of range is a read of foreign memory,
a link is another file's content, a declared size is an allocation.
"""

from __future__ import annotations

import math
import re
import sys
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from .errors import InputError, quote
from .guards import check_memory, check_unpacked

_AGAIN = "write it again"
# Sheets shrink to a tenth; openpyxl takes some seconds for 8 MB.
_XML_BYTES, _XML_RATIO = 1 << 23, 50
# Excel's own limits.
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384


# --- matrices --------------------------------------------------------------------------


def check_sparse(X: Any) -> Any:
    """Check every index of a CSR or CSC matrix; return it, sorted and without repeats."""
    for name, part in (("data", X.data), ("indices", X.indices), ("indptr", X.indptr)):
        kinds = "biuf" if name == "data" else "iu"
        if part.ndim != 1 or part.dtype.kind not in kinds:
            raise InputError(
                f"the {name} of a sparse matrix are {part.ndim}-dimensional of type {part.dtype}",
                remedy=_AGAIN,
            )
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"its sparse matrix is damaged ({error})", remedy=_AGAIN) from error
    if not X.has_canonical_format:
        X.sum_duplicates()
    return X


def check_pointers(indptr: Any, shape: tuple[int, int], n_stored: int, major: int) -> None:
    """Check where the rows (major 0) or columns (1) of a sparse matrix on disk begin and end."""
    if (
        indptr.shape != (shape[major] + 1,)
        or indptr.dtype.kind not in "iu"
        or int(indptr[0]) != 0
        or int(indptr[-1]) != n_stored
        or bool((indptr[1:] < indptr[:-1]).any())
    ):
        raise InputError(
            "its sparse matrix is damaged (the index pointer does not fit)", remedy=_AGAIN
        )


def check_matrix(X: Any, n: int, m: int) -> Any:
    """Check that X of AnnData is a matrix of numbers, with a row for each of n, a column for m."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    dtype = getattr(X, "dtype", None)
    if len(shape) != 2 or dtype is None or np.dtype(dtype).kind not in "biuf":
        raise InputError(
            f"X is {len(shape)}-dimensional of type {dtype}",
            remedy="it must be numbers",
        )
    if tuple(shape) != (n, m):
        raise InputError(
            f"X is {shape[0]} x {shape[1]}, but obs names {n} samples and var {m} features",
            remedy=_AGAIN,
        )
    return check_sparse(X) if sparse.issparse(X) else X


# --- NumPy -----------------------------------------------------------------------------


def check_npy(stream: IO[bytes], size: int, name: str) -> None:
    """Check that an array of a file declares what the bytes after its header hold."""
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(stream)
    except Exception as error:
        raise InputError(f"array {quote(name)} is damaged", remedy="save it again") from error
    if dtype.hasobject:
        raise InputError(
            f"array {quote(name)} holds Python objects, which are not loaded because they can run "
            "code",
            remedy="save it as numbers or text",
        )
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise InputError(
            f"array {quote(name)} does not hold what it declares", remedy="save it again"
        )


def check_texts(array: Any, name: str) -> Any:
    """Refuse text with characters that there are not: Python fails on it wherever it is used."""
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).view(np.uint32)
        if codes.size and int(codes.max()) > sys.maxunicode:
            raise InputError(f"array {quote(name)} holds damaged text", remedy=_AGAIN)
    return array


# --- AnnData --------------------------------------------------------------------------


def check_anndata_matrix(stored: Any, n: int, m: int) -> None:
    """Check X or a layer of AnnData as it is stored, before any of its numbers is read."""
    if hasattr(stored, "shape"):
        check_matrix(stored, n, m)
        check_memory(n, m, np.dtype(stored.dtype).itemsize)
        return
    encoding, shape = sparse_layout(stored)
    if tuple(shape) != (n, m):
        raise InputError(
            f"X is {shape[0]} x {shape[1]}, but obs names {n} samples and var {m} features",
            remedy=_AGAIN,
        )
    data, indices, indptr = (stored[part] for part in ("data", "indices", "indptr"))
    if data.ndim != 1 or indices.shape != data.shape or indptr.ndim != 1:
        raise InputError(
            "its sparse matrix is damaged (data and indices differ in size)", remedy=_AGAIN
        )
    check_memory(1, data.shape[0], 16)
    check_pointers(indptr[:], (n, m), data.shape[0], int(encoding == "csc_matrix"))


def sparse_layout(stored: Any) -> tuple[str, tuple[int, int]]:
    """Return the encoding and the shape of a sparse matrix that AnnData stores as a group."""
    attributes: dict[str, Any] = dict(stored.attrs)
    encoding = str(attributes.get("encoding-type", attributes.get("h5sparse_format", "")))
    encoding = {"csr": "csr_matrix", "csc": "csc_matrix"}.get(encoding, encoding)
    shape = attributes.get("shape", attributes.get("h5sparse_shape", ()))
    if encoding not in ("csr_matrix", "csc_matrix") or len(shape) != 2:
        raise InputError(
            f"X is stored as {quote(encoding)}", remedy="store it as an array, CSR or CSC matrix"
        )
    return encoding, (int(shape[0]), int(shape[1]))


# --- Excel -----------------------------------------------------------------------------


def check_workbook(path: Path) -> None:
    """Refuse a workbook whose parts unpack to more than a sheet would."""
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    remedy = "save the sheet as CSV if you trust it"
    check_unpacked(size, path.stat().st_size, remedy, ratio=_XML_RATIO, always=_XML_BYTES)


def check_worksheet(sheet: IO[bytes]) -> None:
    """Check that rows and cells come in order, each once, within the limits of Excel.

    openpyxl passes over rows whose numbers do not rise and over cells right of the last one
    given, and it makes up every row that a leap in the numbers leaves out.
    """
    from xml.parsers import expat

    row = column = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal row, column
        if name.endswith("row") and name.rpartition(":")[2] == "row":
            number = int(attributes["r"]) if "r" in attributes else row + 1
            if not row < number <= _MOST_ROWS:
                raise _disordered(f"row {quote(number)} follows row {row}")
            row, column = number, 0
        elif name.endswith("c") and name.rpartition(":")[2] == "c":
            number = _column(attributes["r"], row) if "r" in attributes else column + 1
            if not column < number <= _MOST_COLUMNS:
                raise _disordered(f"cell {quote(attributes.get('r', number))} is out of order")
            column = number

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.ParseFile(sheet)


def _column(place: str, row: int) -> int:
    letters = place.rstrip("0123456789").upper()
    if not re.fullmatch("[A-Z]{1,3}", letters) or place[len(letters) :] not in ("", str(row)):
        raise _disordered(f"cell {quote(place)} is in row {row}")
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


def _disordered(what: str) -> InputError:
    return InputError(
        f"the sheet is damaged ({what})", remedy="save it again with Excel, or as CSV"
    )
