"""Checks of an HDF5 file before its library reads it.

HDF5 trusts a file more than one should: it hangs on damaged heaps, crashes on odd types, makes
room for whatever length a text declares, and follows links into other files.
"""

from __future__ import annotations

import math
import mmap
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from .errors import InputError, quote
from .guards import ARRAY_RATIO, check_unpacked

_AGAIN = "write it again"
_SEARCHED_BYTES = 1 << 30
_HEAP = b"GCOL\x01\0\0\0"


def check_heaps(path: Path) -> None:
    """Refuse a heap of texts with free space of no size: HDF5 walks on the spot there for ever.

    A large file is not looked through; a hang on it can still be interrupted.
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
