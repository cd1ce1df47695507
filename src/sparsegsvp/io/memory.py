"""`make_table`: data frames, arrays and AnnData in memory as a checked table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from .cells import as_label, as_role, codes_of
from .errors import InputError, locating, option, quote, role_option
from .layout import (
    RawTable,
    Roles,
    as_floating,
    batch_role,
    from_anndata,
    from_matrix,
    lay_out,
    stored_matrix,
)
from .layout import feature_names as names_of_features
from .rows import from_rows
from .table import Table, as_names, checked_table, column_roles, read_table
from .text import OpenRows, ReadOptions, RowStream

# What messages call data in memory, by the package they belong to.
_SOURCES = {
    "pandas": "data frame",
    "polars": "data frame",
    "anndata": "AnnData",
    "scipy": "sparse matrix",
    "numpy": "array",
}
# Parameters that give as an array what a column may hold, by the role of that column.
_ARRAYS = {"target": "y", "id": "ids", "group": "groups"}


def make_table(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    positive: Any = None,
    id: str | None = None,
    ids: Any = None,
    group: str | None = None,
    groups: Any = None,
    batch: Any = (),
    adjust: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    features: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    na: str | Sequence[str] | None = None,
    collapse: str | None = None,
    layer: str | None = None,
    source: str = "",
    **reading: Any,
) -> Table:
    """Make a checked table of whatever holds the data.

    Data in memory are treated as a file with the same content would be: columns without
    another role are features, text in them is refused, samples without a label and features
    without a value are left out, and the record says so.

    Parameters
    ----------
    data : path-like, data frame, array-like, sparse matrix, AnnData or Table
        A file is read by `read_table`; a pandas or polars data frame, a matrix or AnnData is
        taken as it is in memory; a `Table` is returned.
    y : array-like of shape (n_samples,) or None, default=None
        Labels, unless `target` names them. A matrix needs them. An empty or missing one
        leaves the sample out.
    target, positive, id, group : str or None, default=None
        As in `read_table`. The index of a pandas frame, unless it counts 0, 1, ..., and the
        ``obs_names`` of AnnData are identifiers by themselves.
    ids, groups : array-like of shape (n_samples,) or None, default=None
        Identifiers and groups that are not in `data`.
    batch : str, sequence of str, or mapping from name to array-like, default=()
        Columns that say where or when samples were measured, or such values under their names
        if they are not in `data`; see `read_table`.
    adjust, categorical, drop, keep, features, na, collapse, layer
        Which columns are features, and how they are read, as in `read_table`.
    feature_names : sequence of str or None, default=None
        Names of the columns of a matrix; f0, f1, ... by default.
    source : str, default=""
        What to call data in memory; "data frame" and the like by default.
    **reading
        More of `read_table`'s parameters, for a file.

    Returns
    -------
    Table
        The same as if the data had been written to a file and read, but for `source`,
        `digest` and the wording of `record`.

    Raises
    ------
    InputError
        A ValueError whose one line says what is wrong, and what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsegsvp.io import make_table
    >>> frame = pd.DataFrame({"g1": [1.0, 2.0, 4.0], "g2": [0, 1, None], "class": list("abb")})
    >>> table = make_table(frame, target="class")
    >>> table.feature_names, table.class_counts(), table.n_missing
    (('g1', 'g2'), {'a': 1, 'b': 2}, 1)
    >>> make_table(frame[["g1", "g2"]].to_numpy(), frame["class"]).feature_names
    ('f0', 'f1')
    """
    columns, values_of_batches = _batches(batch)
    named = {
        "batch": columns, "drop": as_names(drop), "adjust": as_names(adjust),
        "categorical": as_names(categorical), "keep": as_names(keep),
    }  # fmt: skip
    options = {
        "y": y, "target": target, "positive": positive, "id": id, "ids": ids, "group": group,
        "groups": groups, **{name: names or None for name, names in named.items()},
        "features": features, "feature_names": feature_names, "na": na, "collapse": collapse,
        "layer": layer, "source": source or None, **reading,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    not_of_files = {*_ARRAYS.values(), "feature_names", "source"}
    if values_of_batches:
        given["batch"] = values_of_batches
        not_of_files.add("batch")
    if isinstance(data, Table):
        _refuse(given, given, "a Table is taken as it is")
        return data
    if isinstance(data, str | PathLike):
        with locating(str(data)):
            _refuse(given, not_of_files, "a file holds its own labels and names")
        return read_table(data, **given)
    package = _package_of(data)
    source = source or _SOURCES[package]
    with locating(source):
        _refuse(given, reading, "the data are in memory")
        for role, name in _ARRAYS.items():
            if role in given and name in given:
                both = f"{option(role)} and {option(name)} are both given"
                raise InputError(both, remedy="leave one of them out")
        if layer is not None and package != "anndata":
            raise InputError(f"{option('layer')} is for AnnData")
        roles = column_roles(target, id, group, features=features, collapse=collapse, **named)
        reader = ReadOptions(layer=layer, na=codes_of(na))
        if package not in ("scipy", "numpy"):
            _refuse(given, ["feature_names"], "the columns have names")
        raw = _read(data, package, roles, reader, feature_names, labelled=y is not None)
        arrays = [(role, name, given[name]) for role, name in _ARRAYS.items() if name in given]
        arrays += [(batch_role(name), "batch", cells) for name, cells in values_of_batches.items()]
        for role, name, values in arrays:
            raw.text[role] = _as_texts(values, role, name, raw.X.shape[0])
        target = target if y is None else str(getattr(y, "name", None) or "y")
        positive = None if positive is None else as_label(positive)
        raw.digest = _digest_of_values(raw)
        return checked_table(raw, source, roles, reader.na, target, positive, in_place=False)


def _refuse(given: Iterable[str], unwanted: Collection[str], why: str) -> None:
    """Refuse parameters that were given and that data of this kind cannot have."""
    names = [option(name) for name in given if name in unwanted]
    if names:
        raise InputError(why, remedy=f"leave {', '.join(names)} out")


def _batches(given: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the columns of batches that were named, or the values that were given."""
    if isinstance(given, str):
        return (given,), {}
    if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given):
        return tuple(given), {}
    if isinstance(given, Mapping):
        return (), {str(name): values for name, values in given.items()}
    raise InputError(
        f"{option('batch')} is a {type(given).__name__}",
        remedy="name columns, or give values under a name, as {'plate': values}",
    )


def _package_of(data: Any) -> str:
    """Return the key of `_SOURCES` that data in memory belong to; refuse what is lazy."""
    if hasattr(data, "__dask_graph__") or type(data).__name__ == "LazyFrame":
        raise InputError(
            "the data are not in memory yet",
            remedy="compute or collect them, or open the files with sparsegsvp.io.open_table",
        )
    # by name: whoever has such data has imported the package, others need not have it
    packages = {cls.__module__.partition(".")[0] for cls in type(data).__mro__}
    for package, attribute in (("anndata", "obs"), ("pandas", "columns"), ("polars", "columns")):
        if package in packages and hasattr(data, attribute):
            return package
    return "scipy" if sparse.issparse(data) else "numpy"


def _read(
    data: Any,
    package: str,
    roles: Roles,
    options: ReadOptions,
    feature_names: Sequence[str] | None,
    *,
    labelled: bool,
) -> RawTable:
    """Read data of a package of `_SOURCES`."""
    if package == "anndata":
        return _from_anndata(data, roles, options.layer)
    if package in ("pandas", "polars"):
        return _from_frame(data, roles, options, package)
    return _from_matrix(data, roles, options, feature_names, labelled=labelled)


def _as_texts(values: Any, role: str, name: str, n: int) -> list[str | None]:
    """Return labels, identifiers, groups or batches that the parameter `name` gave, as text."""
    cells = values.to_list() if hasattr(values, "to_list") else np.asarray(values).tolist()
    if not isinstance(cells, list) or any(isinstance(cell, list) for cell in cells):
        raise InputError(f"{option(name)} must be one-dimensional")
    if len(cells) != n:
        raise InputError(
            f"{option(name)} has {len(cells)} values for {n} samples",
            remedy="give one for each row",
        )
    return [as_role(role, _or_none(cell)) for cell in cells]


def _digest_of_values(raw: RawTable) -> str:
    """SHA-256 of the values, the names and the labels."""
    X = raw.X
    found = hashlib.sha256(f"{X.shape} {X.dtype}".encode())
    if sparse.issparse(X):
        for array in (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data):
            found.update(np.ascontiguousarray(array).data)
    else:
        found.update(np.ascontiguousarray(X).data)
    found.update(json.dumps([raw.names, raw.text.get("target")]).encode())
    return found.hexdigest()


# --- data frames -----------------------------------------------------------------------


def _from_frame(frame: Any, roles: Roles, options: ReadOptions, package: str) -> RawTable:
    names, dtypes = [str(name) for name in frame.columns], list(frame.dtypes)
    notes: list[str] = []
    index: Any = _index_of(frame, roles) if package == "pandas" else None
    before = 0  # columns before those of the frame: its index, if that has a role
    if index is not None:
        before = 1
        names, dtypes = [index.name, *names], [None, *dtypes]
        if index.name not in roles.asked():
            notes.append("the index was taken for sample identifiers")
            roles = replace(roles, id=index.name)
    names = [name or f"column {i}" for i, name in enumerate(names)]
    layout = lay_out(names, roles)
    notes += layout.notes

    def cells(i: int) -> list[Any]:
        if i < before:
            column = index
        else:
            column = frame.iloc[:, i - before] if package == "pandas" else frame.to_series(i)
        return [_or_none(cell) for cell in column.to_list()]

    others = [i for i in layout.features if not _is_numeric(dtypes[i])]
    raw = None
    if others:
        # Numbers may be stored as text: the reader of cells knows, and knows the messages.
        opener = _as_rows([names[i] for i in others], lambda: zip(*map(cells, others)), package)
        wanted = tuple(dict.fromkeys(names[i] for i in others))
        only = None if roles.features is None else wanted
        raw = from_rows(opener, Roles(features=only, collapse=roles.collapse), options, place="row")
        notes += raw.notes
        roles = replace(roles, text=tuple(raw.beside))
        layout = lay_out(names, roles)
    kinds = {str(dtypes[i]).lower() for i in layout.features}
    single = bool(kinds) and kinds <= {"float32", "float16"}
    X = np.empty((len(frame), len(layout.features)), np.float32 if single else np.float64)
    numeric = np.array([_is_numeric(dtypes[i]) for i in layout.features], dtype=bool)
    if numeric.any():
        chosen = [i - before for i, number in zip(layout.features, numeric) if number]
        X[:, numeric] = _frame_numbers(frame, chosen, X.dtype, package)
    if raw is not None:
        X[:, ~numeric] = raw.X
    text = {role: [as_role(role, cell) for cell in cells(i)] for role, i in layout.text.items()}
    made = RawTable(X, layout.names, package, text, layout.dropped, notes, first_column=names[0])
    made.beside = {} if raw is None else raw.beside
    made.notices = () if raw is None else raw.notices
    return made


def _frame_numbers(frame: Any, columns: list[int], dtype: Any, package: str) -> Any:
    """Return columns of numbers as a matrix, NaN where they are missing."""
    if package == "pandas":
        return frame.iloc[:, columns].to_numpy(dtype=dtype, na_value=np.nan)
    import polars as pl

    return frame[:, columns].cast(pl.Float64).to_numpy()


def _index_of(frame: Any, roles: Roles) -> Any:
    """Return the index of a pandas frame under a name, if it has a role, or None."""
    index = frame.index
    if index.nlevels > 1:
        index = index.map(lambda levels: ", ".join(str(level) for level in levels))
    name = "index" if index.name is None else str(index.name)
    if name in frame.columns:
        return None
    counts = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    asked = index.name is not None and name in roles.asked()
    return index.rename(name) if asked or not (counts or roles.id is not None) else None


def _is_numeric(dtype: Any) -> bool:
    """Whether the type of a column is a number or a truth value, missing ones allowed."""
    if dtype is None:
        return False
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf"
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    from pandas.api import types

    if isinstance(dtype, types.CategoricalDtype):
        return False
    return bool(types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype))


def _as_rows(names: list[str], rows: Callable[[], Iterable[Iterable[Any]]], kind: str) -> OpenRows:
    """Return what opens values in memory as rows of cells."""

    def opened() -> AbstractContextManager[RowStream]:
        lines = ((i, list(row)) for i, row in enumerate(rows(), start=1))
        return nullcontext(RowStream(names, lines, kind))

    return opened


def _or_none(cell: Any) -> Any:
    return None if type(cell).__name__ in ("NAType", "NaTType") else cell


# --- matrices and AnnData --------------------------------------------------------------


def _from_matrix(
    data: Any, roles: Roles, options: ReadOptions, given: Sequence[str] | None, *, labelled: bool
) -> RawTable:
    X: Any = data.tocsr() if sparse.issparse(data) else np.asarray(data)
    if X.ndim != 2:
        raise InputError(
            f"the data are {X.ndim}-dimensional", remedy="give a matrix with a row for each sample"
        )
    for role, name in roles.named().items():
        raise InputError(
            f"a matrix has no column {quote(name)} ({role_option(role)})",
            remedy="give a data frame, or an array for it",
        )
    if not labelled:
        raise InputError("there are no labels", remedy=f"give them as {option('y')}")
    names, notes = names_of_features(given, X.shape[1], "give one name for each column")
    kind = "CSR" if sparse.issparse(X) else str(X.dtype)
    raw = from_matrix(X, names, roles, kind, {})
    raw.notes += notes
    if X.dtype.kind in "biuf":
        raw.X = _tidy(raw.X)
        return raw
    if sparse.issparse(X):
        raise InputError(f"the matrix holds {X.dtype}, not numbers")
    opener = _as_rows(raw.names, lambda: (map(_or_none, row) for row in raw.X.tolist()), "objects")
    wanted = tuple(dict.fromkeys(raw.names))
    found = from_rows(opener, Roles(features=wanted, collapse=roles.collapse), options, place="row")
    return replace(found, dropped=raw.dropped, notes=[*raw.notes, *found.notes])


def _from_anndata(adata: Any, roles: Roles, layer: str | None) -> RawTable:
    matrices = {"layers": adata.layers}
    if adata.X is not None:
        matrices["X"] = adata.X
    X = stored_matrix(matrices, layer)
    _package_of(X)  # refuses what is lazy
    X = X[:] if adata.isbacked else X
    X = X if sparse.issparse(X) else np.asarray(X)
    kind = "in memory" if layer is None else f"layer {layer}"
    raw = from_anndata(X, adata.obs, adata.var_names, roles, kind)
    raw.X = _tidy(raw.X)
    return raw


def _tidy(X: Any) -> Any:
    """Return floating point, row after row in memory as the reader of text files has it."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(as_floating(X))
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return as_floating(X)
