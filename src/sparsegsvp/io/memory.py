"""`make_table`: data frames, arrays and AnnData in memory as a checked table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from ._arrays import choose_features, columns_of_samples
from ._assemble import Parts, from_rows
from ._cells import as_label
from ._layout import UNNAMED, Request, lay_out
from ._text import Rows
from .errors import InputError, listed, option, quote, suggestion
from .table import Table, checked_table, read_table


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
        "groups": groups, "drop": drop or None, "features": features,
        "feature_names": feature_names, "layer": layer, "source": source or None, **reading,
    }  # fmt: skip
    given = [name for name, value in options.items() if value is not None]
    if isinstance(data, Table):
        _refuse(given, "a Table is taken as it is", source)
        return data
    if isinstance(data, str | PathLike):
        apart = [n for n in given if n in ("y", "ids", "groups", "feature_names", "source")]
        _refuse(apart, "a file holds its own labels and names", str(data))
        return read_table(
            data,
            target=target,
            positive=positive,
            id=id,
            group=group,
            drop=drop,
            features=features,
            layer=layer,
            **reading,
        )
    _refuse([name for name in given if name in reading], "the data are in memory", source)
    for name, array in (("target", "y"), ("id", "ids"), ("group", "groups")):
        if name in given and array in given:
            raise InputError(
                f"{option(name)} and {option(array)} are both given",
                where=source,
                remedy="leave one of them out",
            )
    wanted = None if features is None else tuple(features)
    request = Request(target=target, id=id, group=group, drop=tuple(drop), features=wanted)
    kind = _kind_of(data)
    source = source or kind.source
    if layer is not None and kind.package != "anndata":
        raise InputError(f"{option('layer')} is for AnnData", where=source)
    if kind.package in ("pandas", "polars"):
        _refuse([n for n in given if n == "feature_names"], "the columns have names", source)
        parts = _from_frame(data, request, source, kind.package)
    elif kind.package == "anndata":
        _refuse([n for n in given if n == "feature_names"], "the variables have names", source)
        parts = _from_anndata(data, request, source, layer)
    else:
        parts = _from_matrix(data, request, source, feature_names, labelled=y is not None)
    for role, values in (("target", y), ("id", ids), ("group", groups)):
        if values is not None:
            parts.text[role] = _beside(values, parts.X.shape[0], role, source)
    if y is not None:
        target = str(getattr(y, "name", None) or "y")
    return checked_table(
        parts,
        source,
        _digest(parts),
        target=target,
        positive=None if positive is None else as_label(positive),
        fixed=features is not None,
    )


def _refuse(names: Sequence[str], why: str, where: str) -> None:
    if names:
        left = ", ".join(option(name) for name in names)
        raise InputError(why, where=where, remedy=f"leave {left} out")


@dataclass(frozen=True)
class _Kind:
    """The package that data in memory belong to, and what messages call them."""

    package: str
    source: str


def _kind_of(data: Any) -> _Kind:
    # by the name of the package: whoever has such data has imported it, others need not
    packages = {cls.__module__.partition(".")[0] for cls in type(data).__mro__}
    if hasattr(data, "__dask_graph__") or type(data).__name__ == "LazyFrame":
        raise InputError(
            "the data are not in memory yet",
            remedy="compute or collect them, or open the files with sparsegsvp.io.open_table",
        )
    if "anndata" in packages and hasattr(data, "obs"):
        return _Kind("anndata", "AnnData")
    for package in ("pandas", "polars"):
        if package in packages and hasattr(data, "columns"):
            return _Kind(package, "data frame")
    if sparse.issparse(data):
        return _Kind("scipy", "sparse matrix")
    return _Kind("numpy", "array")


def _beside(values: Any, n: int, role: str, where: str) -> list[str | None]:
    """Labels, identifiers or groups that were given as an array."""
    name = {"target": "y", "id": "ids", "group": "groups"}[role]
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


def _digest(parts: Parts) -> str:
    """SHA-256 of the values, the names and the labels."""
    X = parts.X
    found = hashlib.sha256(f"{X.shape} {X.dtype}".encode())
    if sparse.issparse(X):
        for array in (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data):
            found.update(np.ascontiguousarray(array).data)
    else:
        found.update(np.ascontiguousarray(X).data)
    found.update(json.dumps([parts.names, parts.text.get("target")]).encode())
    return found.hexdigest()


# --- data frames -----------------------------------------------------------------------


def _from_frame(frame: Any, request: Request, where: str, package: str) -> Parts:
    notes = []
    names = [str(name) for name in frame.columns]
    if package == "polars":
        columns = frame.get_columns()
    else:
        columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
        index = _index_of(frame, request)
        if index is not None:
            name, values = index
            if request.id is None:
                notes.append("the index was taken for sample identifiers")
                request = replace(request, id=name)
            names, columns = [name, *names], [values, *columns]
    names = [name or f"column {i}" for i, name in enumerate(names)]
    layout = lay_out(names, request, where)
    if not all(_holds_numbers(columns[i]) for i in layout.features):
        # Numbers may be stored as text: the reader of cells knows, and knows the messages.
        @contextmanager
        def rows() -> Iterator[Rows]:
            cells = zip(*(map(_or_none, _cells(column)) for column in columns))
            yield Rows(names, ((i, list(row)) for i, row in enumerate(cells, start=1)), package)

        parts = from_rows(rows, request, where, place="row")
        parts.notes = [*notes, *parts.notes]
        return parts
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
    return Parts(X, layout.names, package, text, layout.dropped, notes, place="row")


def _index_of(frame: Any, request: Request) -> tuple[str, Any] | None:
    """The index of a pandas frame and its name, if it identifies the samples."""
    index = frame.index
    name = UNNAMED if index.name is None else str(index.name)
    asked = (*request.roles().values(), *request.drop, *(request.features or ()))
    if name in frame.columns:
        return None
    if name and name in asked:
        return name, index
    counts = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    if counts or request.id is not None:
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
    """The values of a Series or an index as Python has them."""
    return list(column.to_list())


def _or_none(cell: Any) -> Any:
    return None if type(cell).__name__ in ("NAType", "NaTType") else cell


# --- matrices and AnnData --------------------------------------------------------------


def _from_matrix(
    data: Any,
    request: Request,
    where: str,
    feature_names: Sequence[str] | None,
    *,
    labelled: bool,
) -> Parts:
    X: Any = data if sparse.issparse(data) else np.asarray(data)
    if X.ndim != 2:
        raise InputError(
            f"the data are {X.ndim}-dimensional",
            where=where,
            remedy="give a matrix with a row for each sample",
        )
    for role, name in request.roles().items():
        raise InputError(
            f"a matrix has no column {quote(name)} ({option(role)})",
            where=where,
            remedy="give a data frame, or an array for it",
        )
    if not labelled:
        raise InputError("there are no labels", where=where, remedy=f"give them as {option('y')}")
    notes = []
    if feature_names is None:
        names = [f"f{j}" for j in range(X.shape[1])]
        notes.append("the features have no names and were numbered f0, f1, …")
    else:
        names = [str(name) for name in feature_names]
    if len(names) != X.shape[1]:
        raise InputError(
            f"{len(names)} {option('feature_names')} for {X.shape[1]} columns",
            where=where,
            remedy="give one name for each column",
        )
    chosen, kept, dropped = choose_features(names, request, where)
    X = X if chosen is None else (X.tocsr() if sparse.issparse(X) else X)[:, chosen]
    if X.dtype.kind not in "biuf":
        if sparse.issparse(X):
            raise InputError(f"the matrix holds {X.dtype}, not numbers", where=where)

        @contextmanager
        def rows() -> Iterator[Rows]:
            cells = ([_or_none(cell) for cell in row] for row in X.tolist())
            yield Rows(kept, enumerate(cells, start=1), "objects")

        only = Request(features=tuple(kept))
        parts = from_rows(rows, only, where, place="row")
        parts.dropped, parts.notes = dropped, [*notes, *parts.notes]
        return parts
    kind = "CSR" if sparse.issparse(X) else str(X.dtype)
    return Parts(_tidy(X), kept, kind, {}, dropped, notes, place="row")


def _from_anndata(adata: Any, request: Request, where: str, layer: str | None) -> Parts:
    layers = list(adata.layers)
    if layer is not None and layer not in layers:
        raise InputError(
            f"there is no layer {quote(layer)} ({option('layer')})",
            where=where,
            remedy=suggestion(layer, layers),
        )
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise InputError(
            "X is empty",
            where=where,
            remedy=f"name a layer with {option('layer')}: {listed(layers)}",
        )
    if hasattr(X, "__dask_graph__"):
        _kind_of(X)  # refuses it
    X = X[:] if adata.isbacked else X
    X = X if sparse.issparse(X) else np.asarray(X)
    text = columns_of_samples(adata.obs, request, where)
    chosen, kept, dropped = choose_features([str(n) for n in adata.var_names], request, where)
    X = X if chosen is None else X[:, chosen]
    kind = "in memory" if layer is None else f"layer {layer}"
    return Parts(_tidy(X), kept, kind, text, dropped, place="row")


def _tidy(X: Any) -> Any:
    """Rows in a row in memory, as the reader of files has them; floating point."""
    if sparse.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return X if sparse.issparse(X) else np.ascontiguousarray(X)
