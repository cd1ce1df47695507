"""Checks of a Zarr store before its library reads it: codecs, sizes, numbers of pieces."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import InputError, need, quote
from .guards import ARRAY_RATIO, check_unpacked

_AGAIN = "write it again"
_MOST_CHUNKS = 10_000
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
    for file in sorted(path.rglob("*")):
        if file.name not in _METADATA:
            continue
        names = list(_codec_names(json.loads(file.read_bytes())))
        for name in names:
            if not _CODECS.fullmatch(name):
                raise InputError(
                    f"it is packed with {quote(name)}, which is not opened",
                    remedy="write it with another codec, such as zstd or blosc",
                )
        if file.name != ".zmetadata" and any(name.startswith("vlen-") for name in names):
            _check_texts(file.parent, names)


def _check_texts(folder: Path, codecs: list[str]) -> None:
    """Refuse chunks of an array that declare more texts than they have bytes for.

    The codec makes room for all of them first. Chunks that are packed in several ways are not
    looked into.
    """
    numcodecs = need("numcodecs", "dask")
    packers = [name for name in codecs if not name.startswith("vlen-")]
    if len(packers) > 1 or not {*packers} <= {"blosc", "zstd", "gzip", "zlib", "lz4"}:
        return
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.name.startswith(".z") or file.name in _METADATA:
            continue
        raw = file.read_bytes()
        if packers == ["blosc"]:  # its header says what it unpacks to
            declared = int.from_bytes(raw[4:8], "little")
            check_unpacked(declared, len(raw), _AGAIN, ratio=ARRAY_RATIO)
        if packers:
            raw = numcodecs.get_codec({"id": packers[0]}).decode(raw)
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
