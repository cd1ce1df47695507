"""Checks of binary formats before they are used: shapes, index ranges, declared sizes.

Libraries trust what a file says of itself: an index out of range is a read of foreign memory,
a link is another file's content, a declared size is an allocation.
"""

from __future__ import annotations

import json
import math
import mmap
import re
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from .errors import InputError, need, quote
from .guards import ARRAY_RATIO, check_memory, check_unpacked

_AGAIN = "write it again"


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


def _check_pointers(indptr: Any, shape: tuple[int, int], n_stored: int, major: int) -> None:
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
            f"X is {len(shape)}-dimensional of type {dtype}", remedy="it must be numbers"
        )
    _check_shape(shape, n, m)
    return check_sparse(X) if sparse.issparse(X) else X


def _check_shape(shape: Sequence[int], n: int, m: int) -> None:
    if tuple(shape) != (n, m):
        raise InputError(
            f"X is {shape[0]} x {shape[1]}, but obs names {n} samples and var {m} features",
            remedy=_AGAIN,
        )


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
    _check_shape(shape, n, m)
    data, indices, indptr = (stored[part] for part in ("data", "indices", "indptr"))
    if data.ndim != 1 or indices.shape != data.shape or indptr.ndim != 1:
        raise InputError(
            "its sparse matrix is damaged (data and indices differ in size)", remedy=_AGAIN
        )
    check_memory(1, data.shape[0], 16)
    _check_pointers(indptr[:], (n, m), data.shape[0], int(encoding == "csc_matrix"))


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


# --- HDF5 ------------------------------------------------------------------------------
# Its library trusts a file more than one should: it hangs on damaged heaps, crashes on odd
# types, makes room for whatever length a text declares, and follows links into other files.

_SEARCHED_BYTES = 1 << 30
_HEAP = b"GCOL\x01\0\0\0"
# Attributes of AnnData that are texts.
_TEXTS = (b"encoding-type\0", b"encoding-version\0", b"_index\0", b"column-order\0")
_VARIABLE = 9  # as HDF5 numbers the kinds of types


def check_heaps(path: Path) -> None:
    """Refuse a heap of texts with free space of no size: HDF5 walks on the spot there for ever.

    And a text of an attribute that is longer than the file, for which it makes room. A large
    file is not looked through; a hang on it can still be interrupted.
    """
    if not 0 < path.stat().st_size <= _SEARCHED_BYTES:
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_HEAP)
        while at >= 0:
            end = min(at + int.from_bytes(data[at + 8 : at + 16], "little"), len(data))
            place = at + 16
            while place + 16 <= end:
                index, _, _, size = struct.unpack_from("<HHIQ", data, place)
                step = 16 + (size + 7) // 8 * 8 if index else size  # 0 is the free space
                if step == 0:
                    raise InputError("a heap of texts is damaged", remedy=_AGAIN)
                place += step
            at = data.find(_HEAP, at + 1)
        for name in _TEXTS:
            at = data.find(name)
            while at >= 0:
                if _text_length(data, at) > len(data):
                    raise InputError("a text of an attribute is damaged", remedy=_AGAIN)
                at = data.find(name, at + 1)


def _text_length(data: Any, at: int) -> int:
    """Return the length that an attribute declares for its text; ``at`` is where its name is.

    Before the name are a version and the sizes of name, type and shape; after it come these,
    padded in the first version, and then the value: its length, and where it is.
    """
    for version, ahead, pad in ((1, 8, 8), (2, 8, 1), (3, 9, 1)):
        if at >= ahead and data[at - ahead] == version:
            sizes = struct.unpack_from("<HHH", data, at - ahead + 2)
            name, *rest = (-(-size // pad) * pad for size in sizes)
            kind, value = at + name, at + name + sum(rest)
            if value + 4 <= len(data) and data[kind] & 15 == _VARIABLE:
                return int(struct.unpack_from("<I", data, value)[0])
    return 0


def check_hdf5(root: Any, names: tuple[str, ...], file_size: int) -> None:
    """Check what is under these names of an HDF5 file: no other file's content, honest sizes."""
    import h5py

    seen: set[tuple[int, Any]] = set()
    stack: list[tuple[Any, str]] = []
    for name in names:
        folder, _, last = name.rpartition("/")
        if isinstance(root.get(folder or last, getlink=True), h5py.ExternalLink):
            raise _elsewhere(name)
        stack.append((root[folder] if folder else root, last))
    while stack:
        group, name = stack.pop()
        if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
            raise _elsewhere(name)
        found = group[name]
        info = h5py.h5o.get_info(found.id)
        if (info.fileno, info.addr) in seen:
            continue
        seen.add((info.fileno, info.addr))
        if found.file.filename != root.file.filename:
            raise _elsewhere(name)
        for key in found.attrs:
            _check_type(found.attrs.get_id(key).get_type(), key)
        if isinstance(found, h5py.Group):
            stack += [(found, child) for child in found]
        elif isinstance(found, h5py.Dataset):
            if found.is_virtual or found.external:
                raise _elsewhere(name)
            _check_type(found.id.get_type(), name)
            # only chunks can be compressed, and every text takes a byte somewhere
            least = found.size or 0
            least *= 1 if found.dtype.kind == "O" else found.dtype.itemsize
            if least > file_size and (found.chunks is None or found.dtype.kind == "O"):
                raise InputError(f"{quote(name)} declares more than there is", remedy=_AGAIN)
            chunk = math.prod(found.chunks or ()) * found.dtype.itemsize
            check_unpacked(max(least, chunk), file_size, "write it uncompressed", ratio=ARRAY_RATIO)
            if found.dtype.kind == "O":
                _check_lengths(found, name, file_size)


def _check_lengths(texts: Any, name: str, file_size: int) -> None:
    """Refuse texts that are longer than their file: HDF5 makes room before it looks for them.

    A text of an array is 16 bytes: its length, and where it is.
    """
    from h5py import h5t

    kind = texts.id.get_type()
    if kind.get_class() != h5t.STRING or not kind.is_variable_str():
        return
    with open(texts.file.filename, "rb") as file:
        for raw in _stored_parts(texts, file):
            lengths = np.frombuffer(raw[: len(raw) // 16 * 16], "<u4")[::4]
            if len(lengths) and int(lengths.max()) > file_size:
                raise InputError(f"a text of {quote(name)} is damaged", remedy=_AGAIN)


def _stored_parts(array: Any, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of an array of texts as they are stored, unpacked if they are gzipped."""
    if array.chunks is None:
        if array.id.get_offset() is not None:
            file.seek(array.id.get_offset())
            yield file.read(16 * array.size)
        return
    size, plan = 16 * math.prod(array.chunks), array.id.get_create_plist()
    deflate, shuffle = 1, 2  # as HDF5 numbers its filters
    for i in range(array.id.get_num_chunks()):
        chunk = array.id.get_chunk_info(i)
        file.seek(chunk.byte_offset)
        raw = file.read(min(chunk.size, size + 1024))
        for step in reversed(range(plan.get_nfilters())):
            code = plan.get_filter(step)[0]
            if chunk.filter_mask >> step & 1:
                continue
            if code == deflate:
                raw = zlib.decompressobj().decompress(raw, size)
            elif code == shuffle:
                raw = np.frombuffer(raw[: len(raw) // 16 * 16], "u1").reshape(16, -1).T.tobytes()
            else:
                return
        yield raw


def _check_type(kind: Any, name: str) -> None:
    """Refuse types that no AnnData file has, above all those that HDF5 crashes on if damaged."""
    from h5py import h5t

    known = (h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.ENUM, h5t.REFERENCE)
    if kind.get_class() == h5t.COMPOUND:  # a table of the first versions
        for i in range(kind.get_nmembers()):
            _check_type(kind.get_member_type(i), name)
    elif kind.get_class() not in known:
        raise InputError(f"{quote(name)} holds neither numbers nor text", remedy=_AGAIN)


def _elsewhere(name: str) -> InputError:
    return InputError(
        f"{quote(name)} is kept in another file, which is not opened",
        remedy="write everything into one file",
    )


# --- Zarr ------------------------------------------------------------------------------

_MOST_CHUNKS = 10_000
# Codecs after which the bytes are what they were, or which say nothing about packing.
_NOT_PACKING = ("vlen-utf8", "vlen-bytes", "vlen-array", "bytes", "endian", "transpose")
_METADATA = ("zarr.json", ".zarray", ".zmetadata")
# Of the codecs that Zarr knows, those that turn bytes into numbers and text. One of the others
# unpickles, which runs code.
_CODECS = re.compile(
    r"(numcodecs\.)?(blosc|bytes|endian|transpose|gzip|zlib|zstd|lz4|lzma|bz2|crc32c?|adler32|"
    r"fletcher32|jenkins_lookup3|sharding_indexed|shuffle|bitround|packbits|delta|astype|quantize|"
    r"fixedscaleoffset|categorize|vlen-(utf8|bytes|array)|scale_offset|cast_value)"
)


def check_sizes(found: Any, size: int) -> None:
    """Refuse arrays of a Zarr group that declare far more than their store holds."""
    stack = [found]
    while stack:
        item = stack.pop()
        if hasattr(item, "keys"):
            stack += [item[key] for key in item]
        else:
            check_unpacked(int(item.nbytes), size, _AGAIN, ratio=ARRAY_RATIO)
            check_chunks(item.shape, item.chunks, size)


def check_chunks(shape: tuple[int, ...], chunks: tuple[int, ...], size: int) -> None:
    """Refuse an array in far more pieces than its store has bytes: each takes its time."""
    count = math.prod(-(-n // max(1, c)) for n, c in zip(shape, chunks))
    if count > max(_MOST_CHUNKS, size):
        raise InputError(f"it declares {count} chunks, more than there are bytes", remedy=_AGAIN)


def check_codecs(path: Path) -> None:
    """Refuse a Zarr store with a codec that does more than turn bytes into numbers and text."""
    files = [file for file in sorted(path.rglob("*")) if file.name in _METADATA]
    for file in files:
        for name in _codec_names(json.loads(file.read_bytes())):
            if not _CODECS.fullmatch(name):
                raise InputError(
                    f"it is packed with {quote(name)}, which is not opened",
                    remedy="write it with another codec, such as zstd or blosc",
                )
    looked_into = set()
    for folder, metadata in _arrays(files):
        names = list(_codec_names(metadata))
        packers = [name for name in names if name not in _NOT_PACKING]
        texts = any(name.startswith("vlen-") for name in names)
        how = (folder, *packers, texts)
        if len(packers) <= 1 and how not in looked_into:
            looked_into.add(how)
            _check_pieces(folder, packers[0] if packers else "", texts)


def _arrays(files: list[Path]) -> Iterator[tuple[Path, Any]]:
    """Yield the folder of each array of a store with what is said of it, there or above it."""
    for file in files:
        said = json.loads(file.read_bytes())
        if file.name == ".zmetadata":
            below = said["metadata"]
        else:
            below = (said.pop("consolidated_metadata", None) or {}).get("metadata", {})
            yield file.parent, said
        for name, more in below.items():
            folder = name.removesuffix(".zarray").rstrip("/")
            if ".." not in folder.split("/"):
                yield file.parent / folder, more


def _check_pieces(folder: Path, packer: str, texts: bool) -> None:
    """Refuse chunks that declare more bytes, or more texts, than they hold.

    Blosc reads on behind the end of a chunk that was cut short, and the codec of texts makes room
    for all it was told of. Chunks that are packed in several ways are not looked into.
    """
    for file in sorted(folder.rglob("*")):
        if file.name in _METADATA or file.name.startswith(".z") or not file.is_file():
            continue
        size = file.stat().st_size
        if packer == "blosc":
            with open(file, "rb") as chunk:
                header = chunk.read(16)
            unpacked, packed = (int.from_bytes(header[i : i + 4], "little") for i in (4, 12))
            if len(header) < 16 or packed != size:
                raise InputError(f"a chunk of {quote(folder.name)} is cut short", remedy=_AGAIN)
            check_unpacked(unpacked, size, _AGAIN, ratio=ARRAY_RATIO)
        if texts and packer in ("", "blosc", "zstd", "gzip", "zlib", "lz4"):
            raw = file.read_bytes()
            if packer:
                raw = need("numcodecs", "dask").get_codec({"id": packer}).decode(raw)
            if 4 * int.from_bytes(raw[:4], "little") > len(raw):
                raise InputError(f"texts of {quote(folder.name)} are damaged", remedy=_AGAIN)


def _codec_names(metadata: Any) -> Iterator[str]:
    stack = [metadata]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            for key in ("codecs", "index_codecs", "filters", "compressor"):
                packers = item.get(key) or []
                for packer in packers if isinstance(packers, list) else [packers]:
                    if isinstance(packer, dict):
                        yield str(packer.get("name", packer.get("id")))
                    elif isinstance(packer, str):
                        yield packer
            stack += item.values()
