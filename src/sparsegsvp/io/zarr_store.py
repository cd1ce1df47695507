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
        packers = [name for name in names if name not in _NOT_PACKING]
        if file.name != ".zmetadata" and len(packers) <= 1:
            texts = any(name.startswith("vlen-") for name in names)
            _check_pieces(file.parent, packers[0] if packers else "", texts)


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
