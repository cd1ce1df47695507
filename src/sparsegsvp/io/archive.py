"""Models as sealed archives: canonical bytes, a digest, checks of sizes, and of types by name."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import io
import json
import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .. import __version__
from .errors import InputError, error_text, one_line
from .structure import check_npy, check_texts

SEAL = "sparsegsvp.json"
ARCHIVE_FORMAT = 1
MAX_BYTES = 1 << 30
_MAX_MEMBERS = 100_000
DAMAGED = "save the model again"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold: no clock in the bytes


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
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
        for node in _nodes(schema):
            if "__id__" in node:
                node["__id__"] = ids.setdefault(node["__id__"], len(ids))
            if "file" in node:
                suffix = Path(node["file"]).suffix
                node["file"] = files.setdefault(node["file"], f"{len(files):06d}{suffix}")
        members = {new: source.read(old) for old, new in files.items()}
    members["schema.json"] = json.dumps(schema, separators=(",", ":")).encode()
    return members


def archive_digest(members: dict[str, bytes]) -> str:
    """SHA-256 of all members but the seal."""
    total = hashlib.sha256()
    for name in sorted(members):
        if name != SEAL:
            total.update(f"{name}\0{len(members[name])}\0".encode())
            total.update(members[name])
    return total.hexdigest()


def sealed(members: dict[str, bytes], named: str) -> bytes:
    """Zip the members and a seal that names the type of the model and holds their digest."""
    seal = {
        "format": ARCHIVE_FORMAT,
        "type": named,
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
    """Check format and digest; return the type that the model says it has, by its present name."""
    if SEAL not in members or "schema.json" not in members:
        raise InputError(
            "the archive was not written by save_model",
            remedy="save the model again with sparsegsvp.save_model",
        )
    seal = _parsed(members[SEAL])
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
    return _present_name(one_line(seal.get("type")))


def _parsed(content: bytes) -> Any:
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


# --- what a model may be made of -------------------------------------------------------

# Which types each of skops' loaders may build. Loaders that are not here (functions,
# methods, partials, constructors) are never used.
_SCALARS = {f"numpy.{name}" for name in ("bool", "bool_", "int64", "int32", "intp", "str_")} | {
    f"numpy.{name}" for name in ("float64", "float32", "uint8", "uint32", "uint64")
}
_PLAIN: dict[str, set[str]] = {
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "DictNode": {"builtins.dict"},
    "SliceNode": {"builtins.slice"},
    "DTypeNode": {"numpy.dtype"},
    "NdArrayNode": {"numpy.ndarray"} | _SCALARS,
    "TypeNode": {f"builtins.{t}" for t in ("str", "int", "float", "bool", "NoneType")} | _SCALARS,
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "ObjectNode": set(),
}
_SKLEARN = {
    "sklearn.pipeline.Pipeline",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._label.LabelEncoder",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
} | {
    f"sklearn.model_selection._split.{name}"
    for name in ("KFold", "GroupKFold", "StratifiedKFold", "StratifiedGroupKFold")
    + ("RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedShuffleSplit")
    + ("LeaveOneOut", "LeaveOneGroupOut", "PredefinedSplit")
}
_OWN = re.compile(
    r"sparsegsvp\.(estimators|related|evaluation|linalg|metrics|solvers|io)(\._?[a-z][a-z0-9_]*)*"
)


def type_name(obj: Any) -> str:
    """Return the name of an object's type, with its module."""
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def check_model_type(model: Any) -> None:
    """Refuse what is neither an estimator of this package nor a pipeline that ends in one."""
    piped = type(model) is Pipeline or (isinstance(model, Pipeline) and _is_own(type_name(model)))
    last = model.steps[-1][1] if piped and model.steps else model
    if not isinstance(last, BaseEstimator) or not _is_own(type_name(last)):
        raise InputError(
            f"a {type_name(last)} is not a model of sparsegsvp",
            remedy="give an estimator of this package or a Pipeline that ends in one",
        )


def _is_own(name: str) -> bool:
    """Whether a name is an estimator or a record (dataclass, named tuple) of this package."""
    module, _, attribute = name.rpartition(".")
    if not _OWN.fullmatch(module):
        return False
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        return False
    # what a module imported from elsewhere is there, too, but not ours
    return (isinstance(cls, type) and cls.__module__ == module) and (
        issubclass(cls, BaseEstimator)
        or dataclasses.is_dataclass(cls)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    )


def _present_module(module: Any, name: Any) -> Any:
    """Return the module of a class that an older version saved under another one.

    Classes may move within their package: one that is not where it was is looked for among
    the package's public names. Everything else is returned as it is.
    """
    if not isinstance(module, str) or not _OWN.fullmatch(module):
        return module
    with suppress(ImportError):
        if importlib.util.find_spec(module) is not None:
            return module
    package = importlib.import_module(".".join(module.split(".")[:2]))
    found = getattr(package, name) if name in package.__all__ else None
    return found.__module__ if isinstance(found, type) else module


def _present_name(name: str) -> str:
    """Return the name that a type has now, of the one it had when it was saved."""
    module, _, last = name.rpartition(".")
    return f"{_present_module(module, last)}.{last}"


def updated_schema(members: dict[str, bytes]) -> Any:
    """Parse the schema and name the present modules in it, there and in `members`."""
    schema = _parsed(members["schema.json"])
    moved = False
    for node in _nodes(schema):
        module = _present_module(node.get("__module__"), node.get("__class__"))
        moved = moved or module != node.get("__module__")
        node["__module__"] = module
    if moved:
        members["schema.json"] = json.dumps(schema, separators=(",", ":")).encode()
    return schema


def types_in(schema: Any) -> list[str]:
    """Return the names of all types in a schema."""
    return sorted({_node_type(node) for node in _nodes(schema)})


def _node_type(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def foreign_types(schema: Any) -> list[str]:
    """Name the types that no model of this package has."""
    foreign = set()
    if not isinstance(schema, dict) or "__loader__" not in schema:
        foreign.add("something without a type")
    for node in _nodes(schema):
        loader, name = str(node["__loader__"]), _node_type(node)
        known = name in _PLAIN.get(loader, ()) or (loader == "ObjectNode" and name in _SKLEARN)
        if not known and not (loader in ("ObjectNode", "TupleNode") and _is_own(name)):
            foreign.add(name)
    return sorted(foreign)
