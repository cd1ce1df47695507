"""Models as sealed archives: canonical bytes, a digest, and sizes checked before unpacking."""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from .. import __version__
from .errors import InputError, error_text, one_line
from .structure import check_npy, check_texts

SEAL = "sparsegsvp.json"
ARCHIVE_FORMAT = 1
MAX_BYTES = 1 << 30
_MAX_MEMBERS = 100_000
DAMAGED = "save the model again"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold: no clock in the bytes


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Walk every node of a schema; a stack, because a forged one may be deeply nested."""
    stack = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if "__loader__" in item:
                yield item
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list):
            stack.extend(reversed(item))


def canonical(archive: bytes) -> dict[str, bytes]:
    """Rename what skops names after memory addresses by order of appearance."""
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        schema = json.loads(source.read("schema.json"))
        ids: dict[Any, int] = {}
        files: dict[str, str] = {}
        for node in nodes(schema):
            if "__id__" in node:
                node["__id__"] = ids.setdefault(node["__id__"], len(ids))
            if "file" in node:
                suffix = Path(node["file"]).suffix
                node["file"] = files.setdefault(node["file"], f"{len(files):06d}{suffix}")
        members = {new: source.read(old) for old, new in files.items()}
    members["schema.json"] = json.dumps(schema, separators=(",", ":")).encode()
    return members


def archive_digest(members: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(members):
        if name != SEAL:
            total.update(f"{name}\0{len(members[name])}\0".encode())
            total.update(members[name])
    return total.hexdigest()


def sealed(members: dict[str, bytes], type_name: str) -> bytes:
    seal = {
        "format": ARCHIVE_FORMAT,
        "type": type_name,
        "digest": archive_digest(members),
        "versions": {
            "sparsegsvp": __version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
        },
    }
    return zipped({**members, SEAL: json.dumps(seal, indent=2).encode()})


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o600 << 16
            target.writestr(info, content)
    return buffer.getvalue()


def unpacked(file: Path, max_bytes: int) -> dict[str, bytes]:
    """Read all members, after the sizes they declare; zipfile reads no more than declared."""
    if not os.path.isfile(file):
        raise InputError("there is no such file", remedy="check the path")
    _refuse_size(file.stat().st_size, max_bytes)
    try:
        if not zipfile.is_zipfile(file):
            raise InputError("this is not a model file, or it is cut short", remedy=DAMAGED)
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _refuse_size(sum(entry.file_size for entry in entries), max_bytes)
            names = {entry.filename for entry in entries}
            if len(entries) > _MAX_MEMBERS or len(names) < len(entries):
                raise InputError("its list of parts is not that of a model", remedy="do not use it")
            return {entry.filename: archive.read(entry) for entry in entries}
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and struct raise their own for damaged data
        raise InputError(f"the file is damaged ({error_text(error)})", remedy=DAMAGED) from error


def _refuse_size(size: int, limit: int) -> None:
    if size > limit:
        raise InputError(
            f"it would unpack to {size / 2**20:.0f} MB, more than the limit of "
            f"{limit / 2**20:.0f} MB",
            remedy="raise max_bytes if you know who made it",
        )


def checked_seal(members: dict[str, bytes]) -> str:
    """Check format and digest; return the type of the model as it was when it was saved."""
    if SEAL not in members or "schema.json" not in members:
        raise InputError(
            "the archive was not written by save_model",
            remedy="save the model again with sparsegsvp.save_model",
        )
    seal = parsed(members[SEAL])
    if not isinstance(seal, dict) or not isinstance(seal.get("format"), int):
        raise InputError("its description is damaged", remedy=DAMAGED)
    if seal["format"] > ARCHIVE_FORMAT:
        raise InputError(
            f"it was written by a newer version (format {seal['format']})",
            remedy="upgrade sparsegsvp",
        )
    if seal.get("digest") != archive_digest(members):
        raise InputError(
            "its content was changed after it was saved (the digest differs)",
            remedy="get the original file again",
        )
    return one_line(seal.get("type"))


def parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError("its description is damaged", remedy=DAMAGED) from error


def check_arrays(members: dict[str, bytes]) -> None:
    """Refuse arrays that declare more numbers than the archive holds."""
    for name, content in members.items():
        if not name.endswith(".npy"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_npy(io.BytesIO(content), len(content), name)
            check_texts(np.lib.format.read_array(io.BytesIO(content), allow_pickle=False), name)
