"""Models as skops files: no pickle, and no types but those of a model.

Loading trusts some plain types and some of scikit-learn by name, and the estimators and records
(dataclasses, named tuples) that this package defines. Equal models are equal bytes.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import warnings
import zipfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .errors import InputError, error_text, guarded, listed, locating, need
from .files import write_atomic
from .formats import existing_file

MAX_BYTES = 1 << 30
_PACKAGE = __name__.partition(".")[0]
_AGAIN = "save the model again"
_NUMBERS = ("bool", "bool_", "int64", "int32", "intp", "str_", "float64", "float32", "uint8")
_SCALARS = {f"numpy.{name}" for name in _NUMBERS}
# Which types each of skops' loaders may build. Loaders that are not here (functions, methods,
# partials, constructors) are never used.
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
    "ObjectNode": {
        "sklearn.pipeline.Pipeline",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
    }
    | {
        f"sklearn.model_selection._split.{name}"
        for name in ("KFold", "GroupKFold", "StratifiedKFold", "StratifiedGroupKFold")
        + ("RepeatedKFold", "RepeatedStratifiedKFold", "LeaveOneGroupOut", "PredefinedSplit")
    },
}


def save_model(model: Any, path: str | PathLike[str]) -> Path:
    """Write a fitted model to a file, without pickle.

    Parameters
    ----------
    model : estimator
        An estimator of this package, or a scikit-learn ``Pipeline`` that ends in one. What
        `load_model` would refuse, such as a function given as ``scoring``, is an `InputError`.
    path : path-like
        The file, usually ``*.skops``; written whole or not at all.

    Returns
    -------
    pathlib.Path
        The path written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from sparsegsvp import load_model, save_model
    >>> from sparsegsvp.related import GEPSVM
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 5)), np.repeat(["ill", "well"], 20)
    >>> model = GEPSVM().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, pathlib.Path(folder) / "model.skops")
    ...     again = load_model(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    skops = need("skops.io", "persist")
    with locating(str(path)):
        _check_model(model)
        try:
            members = _canonical(skops.dumps(model))
        except Exception as error:
            raise InputError(
                f"the model holds something that cannot be saved ({error_text(error)})",
                remedy="use names instead of functions for parameters such as scoring",
            ) from error
        foreign = _foreign(json.loads(members["schema.json"]))
        if foreign:
            raise InputError(
                f"the model holds {listed(foreign, limit=100)}, which loading would refuse",
                remedy="use names instead of functions and plain parameters",
            )
    return write_atomic(path, _zipped(members))


def load_model(path: str | PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Load a model that `save_model` wrote, trusting nothing else.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int, default=2**30
        Refuse archives that would unpack to more than this.

    Returns
    -------
    estimator
        It predicts exactly as the saved one did. What is not a model, damaged, too large or of
        foreign types is an `InputError`.

    Examples
    --------
    >>> from sparsegsvp import load_model
    >>> model = load_model("results/model.skops")  # doctest: +SKIP
    """
    file = existing_file(path)
    skops = need("skops.io", "persist")
    with locating(str(path)), guarded("a model"):
        if not zipfile.is_zipfile(file):
            raise InputError("this is not a model file, or it is cut short", remedy=_AGAIN)
        with zipfile.ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > max_bytes:
                raise InputError(
                    f"it would unpack to {size >> 20} MB, more than {max_bytes >> 20} MB",
                    remedy="raise max_bytes if you know who made it",
                )
            content = {entry.filename: archive.read(entry) for entry in archive.infolist()}
        if "schema.json" not in content:
            raise InputError("this is not a model file", remedy=_AGAIN)
        schema = json.loads(content["schema.json"])
        foreign = _foreign(schema)
        if foreign:
            raise InputError(
                f"it holds types that are not part of a model: {listed(foreign, limit=100)}",
                remedy="do not use it unless you know who made it; load_model never will",
            )
        # all types were checked; skops asks for those that it does not know itself
        trusted = sorted({_type_of(node) for node in _nodes(schema)})
        model = skops.loads(file.read_bytes(), trusted=trusted)
        _check_model(model)
        _try_out(model, size)
    return model


def _try_out(model: Any, size: int) -> None:
    """Refuse a model whose parts do not fit together, by letting it treat a row of ones."""
    m = getattr(model, "n_features_in_", None)
    if m is None:
        return
    try:
        if not 0 < m <= size:  # there is at least a byte for each
            raise ValueError(f"{m} features")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for method in ("predict", "decision_function", "predict_proba", "transform"):
                if hasattr(model, method):
                    getattr(model, method)(np.ones((1, m)))
    except Exception as error:
        raise InputError(
            f"the parts of the model do not fit together ({error_text(error)})",
            remedy="do not use it unless you know who changed it",
        ) from error


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


def _type_of(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _foreign(schema: Any) -> list[str]:
    """Name the types that no model of this package has."""
    foreign = set() if isinstance(schema, dict) and "__loader__" in schema else {"no type"}
    for node in _nodes(schema):
        loader, name = str(node["__loader__"]), _type_of(node)
        own = loader in ("ObjectNode", "TupleNode") and _is_own(name)
        if name not in _PLAIN.get(loader, ()) and not own:
            foreign.add(name)
    return sorted(foreign)


def _is_own(name: str) -> bool:
    """Whether a name is an estimator or a record that a module of this package defines."""
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] != _PACKAGE or not module.replace(".", "").isidentifier():
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


def _check_model(model: Any) -> None:
    """Refuse what is neither an estimator of this package nor a pipeline that ends in one."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) and model.steps else model
    name = f"{type(last).__module__}.{type(last).__qualname__}"
    if not isinstance(last, BaseEstimator) or not _is_own(name):
        raise InputError(
            f"a {name} is not a model of sparsegsvp",
            remedy="give an estimator of this package or a Pipeline that ends in one",
        )


def _canonical(archive: bytes) -> dict[str, bytes]:
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
    return members | {"schema.json": json.dumps(schema, separators=(",", ":")).encode()}


def _zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # of 1980
    return buffer.getvalue()
