"""Models as skops files: no pickle, and no types but plain ones, some of scikit-learn, and ours.

Ours are estimators and records (dataclasses, named tuples). Equal models are equal bytes.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import zipfile
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .._validate import listed, need
from .errors import InputError, guarded, locating
from .files import write_atomic
from .text import check_size, existing_file

# Loaders of skops (none of functions, methods, partials), and what they build besides our own.
_LOADERS = "Json List Tuple Dict Slice DType NdArray Type RandomState Object"
_TYPES = {
    "builtins": "str int float bool NoneType list tuple dict slice",
    "numpy": "dtype ndarray bool bool_ int64 int32 intp str_ float64 float32 uint8",
    "numpy.random.mtrand": "RandomState",
    "sklearn.pipeline": "Pipeline",
    "sklearn.impute._base": "SimpleImputer",
    "sklearn.preprocessing._data": "StandardScaler",
    "sklearn.utils._metadata_requests": "MetadataRequest MethodMetadataRequest",
    "sklearn.model_selection._split": "KFold GroupKFold StratifiedKFold StratifiedGroupKFold "
    "RepeatedKFold RepeatedStratifiedKFold LeaveOneGroupOut PredefinedSplit",
}


def save_model(model: Any, path: str | PathLike[str]) -> Path:
    """Write a fitted model to a file, without pickle.

    Parameters
    ----------
    model : estimator
        An estimator of this package, or a scikit-learn ``Pipeline`` that ends in one.
    path : path-like
        The file, usually ``*.skops``; written whole or not at all.

    Returns
    -------
    pathlib.Path
        The path written.

    Examples
    --------
    >>> import tempfile
    >>> from sparsegsvp import load_model, save_model
    >>> from sparsegsvp.related import GEPSVM
    >>> model = GEPSVM().fit([[0, 1], [1, 0], [2, 1], [5, 5], [6, 5], [5, 7]], list("aaabbb"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_model(save_model(model, f"{folder}/model.skops"))
    >>> again.predict([[1, 1], [6, 6]]).tolist()
    ['a', 'b']
    """
    skops = need("skops.io", "persist")
    with locating(str(path)), guarded("a model that can be saved"):
        archive = zipfile.ZipFile(io.BytesIO(skops.dumps(_checked(model))))
        schema, nodes = _read_schema(archive, "give names instead of functions, as for scoring")
    ids, files = dict[Any, int](), dict[str, str]()
    # skops names parts after their addresses in memory: rename them by order of appearance
    for node in nodes:
        if "__id__" in node:
            node["__id__"] = ids.setdefault(node["__id__"], len(ids))
        if "file" in node:
            new = f"{len(files):06d}{Path(node['file']).suffix}"
            node["file"] = files.setdefault(node["file"], new)
    members = {new: archive.read(old) for old, new in files.items()}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as target:
        for name, data in (members | {"schema.json": json.dumps(schema).encode()}).items():
            target.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # of 1980
    return write_atomic(path, content.getvalue())


def load_model(path: str | PathLike[str]) -> Any:
    """Load a model that `save_model` wrote, trusting nothing else.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        It predicts exactly as the saved one did; what is no model is an `InputError`.

    Examples
    --------
    >>> from sparsegsvp import load_model
    >>> model = load_model("results/model.skops")  # doctest: +SKIP
    """
    file, skops = existing_file(path), need("skops.io", "persist")
    with locating(str(path)), guarded("a model"):
        data = file.read_bytes()
        archive = zipfile.ZipFile(io.BytesIO(data))
        check_size(sum(entry.file_size for entry in archive.infolist()), file)
        _read_schema(archive, "do not use it unless you know who made it")
        # all types were checked; skops asks for those that it does not know itself
        return _checked(skops.loads(data, trusted=skops.get_untrusted_types(data=data)))


def _read_schema(archive: zipfile.ZipFile, remedy: str) -> tuple[Any, list[dict[str, Any]]]:
    """Return a schema and its nodes; refuse types that no model has, and other loaders."""
    parts, foreign = [json.loads(archive.read("schema.json"))], set()
    for part in parts:  # which grows
        inner = part.values() if isinstance(part, dict) else part
        parts += inner if isinstance(part, dict | list) else ()
    nodes = [part for part in parts if isinstance(part, dict) and "__loader__" in part]
    for node in nodes:
        loader, module, name = (str(node.get(f"__{k}__")) for k in ("loader", "module", "class"))
        fits = name in _TYPES.get(module, "").split() or _is_ours(module, name)
        if not fits or loader.removesuffix("Node") not in _LOADERS.split():
            foreign.add(f"{module}.{name}")
    if foreign:
        what = f"it holds types that are not part of a model: {listed(sorted(foreign), limit=100)}"
        raise InputError(what, remedy=remedy)
    return parts[0], nodes


def _is_ours(module: str, name: str) -> bool:
    """Whether a name is an estimator or a record that a module of this package defines."""
    cls: Any = None
    if module.partition(".")[0] == __name__.partition(".")[0]:
        with suppress(ImportError, AttributeError):
            cls = getattr(importlib.import_module(module), name)
    here = isinstance(cls, type) and cls.__module__ == module  # and not imported there
    record = dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")
    return here and (record or issubclass(cls, BaseEstimator))


def _checked(model: Any) -> Any:
    """Refuse what is no estimator of this package, or pipeline that ends in one, as it is now."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) and model.steps else model
    module, name = type(last).__module__, type(last).__qualname__
    if not isinstance(last, BaseEstimator) or not _is_ours(module, name):
        what = f"a {module}.{name} is not a model of sparsegsvp"
        raise InputError(what, remedy="give an estimator of it, or a Pipeline that ends in one")
    if vars(last).keys() >= {*last._get_param_names()}:
        return model
    raise InputError("it is a model of another version of sparsegsvp", remedy="fit it again")
