"""`make_table`: data frames, arrays and AnnData in memory as a checked table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from .cells import as_label
from .errors import InputError, option, quote
from .formats import stored_matrix
from .roles import UNNAMED, Roles, choose_features, columns_of_samples, lay_out, numbered
from .rows import OpenRows, RawTable, RowStream, from_rows
from .table import Table, checked_table, read_table

# What messages call data in memory, by the package they belong to.
_SOURCES = {
    "pandas": "data frame",
    "polars": "data frame",
    "anndata": "AnnData",
    "scipy": "sparse matrix",
    "numpy": "array",
}


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
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
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
    target : str or None, default=None
        The column of labels (of ``obs`` for AnnData).
    positive : str or None, default=None
        The class of interest; it must occur.
    id, group : str or None, default=None
        Columns of sample identifiers and of groups. The index of a pandas frame, unless it
        counts 0, 1, ..., and the ``obs_names`` of AnnData are identifiers by themselves.
    ids, groups : array-like of shape (n_samples,) or None, default=None
        Identifiers and groups that are not in `data`.
    drop : sequence of str, default=()
        Columns to leave out.
    features : sequence of str or None, default=None
        Take only these columns, in this order.
    feature_names : sequence of str or None, default=None
        Names of the columns of a matrix; f0, f1, ... by default.
    layer : str or None, default=None
        A layer of AnnData instead of its X.
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
        A ValueError whose one line says what is wrong, where, and what to do.

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
    options = {
        "y": y, "target": target, "positive": positive, "id": id, "ids": ids, "group": group,
        "groups": groups, "drop": tuple(drop) or None, "features": features,
        "feature_names": feature_names, "layer": layer, "source": source or None, **reading,
    }  # fmt: skip
    given = [name for name, value in options.items() if value is not None]
    if isinstance(data, Table):
        _refuse(given, "a Table is taken as it is", source)
        return data
    if isinstance(data, str | PathLike):
        apart = {"y", "ids", "groups", "feature_names", "source"}
        _refuse(
            [n for n in given if n in apart], "a file holds its own labels and names", str(data)
        )
        asked = {name: options[name] for name in given if name not in apart}
        return read_table(data, **asked)
    _refuse([name for name in given if name in reading], "the data are in memory", source)
    for name, array in (("target", "y"), ("id", "ids"), ("group", "groups")):
        if name in given and array in given:
            raise InputError(
                f"{option(name)} and {option(array)} are both given",
                where=source,
                remedy="leave one of them out",
            )
    wanted = None if features is None else tuple(features)
    roles = Roles(target=target, id=id, group=group, drop=tuple(drop), features=wanted)
    package = _package_of(data)
    source = source or _SOURCES[package]
    if layer is not None and package != "anndata":
        raise InputError(f"{option('layer')} is for AnnData", where=source)
    if feature_names is not None and package in ("pandas", "polars", "anndata"):
        _refuse(["feature_names"], "the columns have names", source)
    if package in ("pandas", "polars"):
        raw = _from_frame(data, roles, source, package)
    elif package == "anndata":
        raw = _from_anndata(data, roles, source, layer)
    else:
        raw = _from_matrix(data, roles, source, feature_names, labelled=y is not None)
    for role, name, values in (("target", "y", y), ("id", "ids", ids), ("group", "groups", groups)):
        if values is not None:
            raw.text[role] = _beside(values, raw.X.shape[0], name, source)
    if y is not None:
        target = str(getattr(y, "name", None) or "y")
    return checked_table(
        raw,
        source,
        _digest(raw),
        target=target,
        positive=None if positive is None else as_label(positive),
        fixed=features is not None,
    )


def _refuse(names: Sequence[str], why: str, where: str) -> None:
    if names:
        left = ", ".join(option(name) for name in names)
        raise InputError(why, where=where, remedy=f"leave {left} out")


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


def _beside(values: Any, n: int, name: str, where: str) -> list[str | None]:
    """Return labels, identifiers or groups that were given as an array, as text."""
    cells = _cells(values) if hasattr(values, "to_list") else np.asarray(values).tolist()
    if not isinstance(cells, list) or any(isinstance(cell, list) for cell in cells):
        raise InputError(f"{option(name)} must be one-dimensional", where=where)
    if len(cells) != n:
        raise InputError(
            f"{option(name)} has {len(cells)} values for {n} samples",
            where=where,
            remedy="give one for each row",
        )
    return [as_label(_or_none(cell)) for cell in cells]


def _digest(raw: RawTable) -> str:
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


def _from_frame(frame: Any, roles: Roles, where: str, package: str) -> RawTable:
    notes = []
    names = [str(name) for name in frame.columns]
    if package == "polars":
        columns = frame.get_columns()
    else:
        columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
        index = _index_of(frame, roles)
        if index is not None:
            name, values = index
            if roles.id is None:
                notes.append("the index was taken for sample identifiers")
                roles = replace(roles, id=name)
            names, columns = [name, *names], [values, *columns]
    names = [name or f"column {i}" for i, name in enumerate(names)]
    layout = lay_out(names, roles, where)
    if not all(_holds_numbers(columns[i]) for i in layout.features):
        # Numbers may be stored as text: the reader of cells knows, and knows the messages.
        opener = _as_rows(names, lambda: zip(*map(_cells, columns)), package)
        raw = from_rows(opener, roles, where, place="row")
        raw.notes = [*notes, *raw.notes]
        return raw
    kinds = {str(columns[i].dtype).lower() for i in layout.features}
    single = bool(kinds) and kinds <= {"float32", "float16"}
    X = np.empty((len(frame), len(layout.features)), np.float32 if single else np.float64)
    for j, i in enumerate(layout.features):
        X[:, j] = _numbers(columns[i])
    text = {
        role: [as_label(_or_none(cell)) for cell in _cells(columns[i])]
        for role, i in layout.text.items()
    }
    notes += layout.notes
    return RawTable(X, layout.names, package, text, layout.dropped, notes, place="row")


def _index_of(frame: Any, roles: Roles) -> tuple[str, Any] | None:
    """Return the index of a pandas frame and its name, if it identifies the samples."""
    index = frame.index
    name = UNNAMED if index.name is None else str(index.name)
    asked = (*roles.named().values(), *roles.drop, *(roles.features or ()))
    if name in frame.columns:
        return None
    if name and name in asked:
        return name, index
    counts = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    if counts or roles.id is not None:
        return None
    if index.nlevels > 1:
        return "index", index.map(lambda levels: ", ".join(str(level) for level in levels))
    return name or "index", index


def _holds_numbers(column: Any) -> bool:
    """Whether the type of a column is a number or a truth value, missing ones allowed."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf"
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    from pandas.api import types

    if isinstance(dtype, types.CategoricalDtype):
        return False
    return bool(types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype))


def _numbers(column: Any) -> Any:
    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    if hasattr(column.dtype, "is_numeric"):
        import polars as pl

        return column.cast(pl.Float64).to_numpy()
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _cells(column: Any) -> list[Any]:
    """Return the values of a Series or an index as Python has them."""
    return list(column.to_list())


def _as_rows(names: list[str], rows: Callable[[], Iterable[Sequence[Any]]], kind: str) -> OpenRows:
    """Return what opens values in memory as rows of cells."""

    @contextmanager
    def opened() -> Iterator[RowStream]:
        cells = ([_or_none(cell) for cell in row] for row in rows())
        yield RowStream(names, enumerate(cells, start=1), kind)

    return opened


def _or_none(cell: Any) -> Any:
    return None if type(cell).__name__ in ("NAType", "NaTType") else cell


# --- matrices and AnnData --------------------------------------------------------------


def _from_matrix(
    data: Any,
    roles: Roles,
    where: str,
    feature_names: Sequence[str] | None,
    *,
    labelled: bool,
) -> RawTable:
    X: Any = data if sparse.issparse(data) else np.asarray(data)
    if X.ndim != 2:
        raise InputError(
            f"the data are {X.ndim}-dimensional",
            where=where,
            remedy="give a matrix with a row for each sample",
        )
    for role, name in roles.named().items():
        raise InputError(
            f"a matrix has no column {quote(name)} ({option(role)})",
            where=where,
            remedy="give a data frame, or an array for it",
        )
    if not labelled:
        raise InputError("there are no labels", where=where, remedy=f"give them as {option('y')}")
    notes = []
    if feature_names is None:
        names, note = numbered(X.shape[1])
        notes.append(note)
    else:
        names = [str(name) for name in feature_names]
    if len(names) != X.shape[1]:
        raise InputError(
            f"{len(names)} {option('feature_names')} for {X.shape[1]} columns",
            where=where,
            remedy="give one name for each column",
        )
    chosen, kept, dropped = choose_features(names, roles, where)
    X = X if chosen is None else (X.tocsr() if sparse.issparse(X) else X)[:, chosen]
    if X.dtype.kind not in "biuf":
        if sparse.issparse(X):
            raise InputError(f"the matrix holds {X.dtype}, not numbers", where=where)

        opener = _as_rows(kept, X.tolist, "objects")
        raw = from_rows(opener, Roles(features=tuple(kept)), where, place="row")
        raw.dropped, raw.notes = dropped, [*notes, *raw.notes]
        return raw
    kind = "CSR" if sparse.issparse(X) else str(X.dtype)
    return RawTable(_tidy(X), kept, kind, {}, dropped, notes, place="row")


def _from_anndata(adata: Any, roles: Roles, where: str, layer: str | None) -> RawTable:
    matrices = (
        {"layers": adata.layers} if adata.X is None else {"layers": adata.layers, "X": adata.X}
    )
    X = stored_matrix(matrices, layer, where)
    _package_of(X)  # refuses what is lazy
    X = X[:] if adata.isbacked else X
    X = X if sparse.issparse(X) else np.asarray(X)
    text = columns_of_samples(adata.obs, roles, where)
    chosen, kept, dropped = choose_features([str(n) for n in adata.var_names], roles, where)
    X = X if chosen is None else X[:, chosen]
    kind = "in memory" if layer is None else f"layer {layer}"
    return RawTable(_tidy(X), kept, kind, text, dropped, place="row")


def _tidy(X: Any) -> Any:
    """Return floating point, row after row in memory as the reader of text files has it."""
    if sparse.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return X if sparse.issparse(X) else np.ascontiguousarray(X)
