"""Formats that hold whole columns or matrices: Parquet, NPZ and AnnData."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ._assemble import Parts, from_rows
from ._cells import as_label
from ._layout import Request, lay_out, refuse_duplicates
from ._text import Rows
from .errors import InputError, listed, one_line, option, quote, suggestion

_BATCH = 256  # rows of a Parquet file turned into Python values at a time


# --- Parquet ---------------------------------------------------------------------------


def _open_parquet(path: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:  # pragma: no cover - depends on the installation
        raise ImportError('reading Parquet needs: pip install "sparsegsvp[cli]"') from error
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "this is not a Parquet file, or it is damaged", where=path.name, remedy="write it again"
        ) from error


@contextmanager
def open_parquet_rows(path: Path) -> Iterator[Rows]:
    """Open a Parquet file row by row: for sheets of labels and transposed tables."""
    with _open_parquet(path) as file:
        names, _ = _parquet_names(file)
        yield Rows(names, _parquet_rows(file), "Parquet")


def _parquet_rows(file: Any) -> Iterator[tuple[int, list[Any]]]:
    line = 0
    for batch in file.iter_batches(batch_size=_BATCH):
        for cells in zip(*(column.to_pylist() for column in batch.columns)):
            line += 1
            yield line, list(cells)


def _parquet_names(file: Any) -> tuple[list[str], list[str]]:
    """Names of the columns, and which of them are the index of a pandas frame."""
    schema = file.schema_arrow
    metadata = (schema.metadata or {}).get(b"pandas")
    index = []
    if metadata is not None:
        columns = json.loads(metadata).get("index_columns", [])
        index = [c for c in columns if isinstance(c, str) and c in schema.names]
    # pandas' own name for an index without one says nothing to the reader of a message
    return ["" if n.startswith("__index_level_") else n for n in schema.names], index


def read_parquet(path: Path, request: Request, *, transpose: bool, decimal: str | None) -> Parts:
    """Read a Parquet file column by column into a matrix."""
    if transpose:
        return from_rows(
            lambda: open_parquet_rows(path), request, path.name, transpose=True, decimal=decimal
        )
    import pyarrow as pa

    where = path.name
    with _open_parquet(path) as file:
        names, index = _parquet_names(file)
        names = [f"column {i}" if n == "" and i > 0 else n for i, n in enumerate(names)]
        if index and request.id is None:
            position = file.schema_arrow.names.index(index[0])
            taken = (request.target, request.group, *request.drop, *(request.features or ()))
            if names[position] not in taken:
                names[position] = names[position] if names[position].strip() else "index"
                request = replace(request, id=names[position])
        layout = lay_out(names, request, where)
        schema = file.schema_arrow
        text_like = []
        for i in layout.features:
            kind = schema.field(i).type
            if not (
                pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            ):
                text_like.append(i)
        if text_like:
            # Numbers may be stored as text: the reader of cells knows, and knows the messages.
            parts = from_rows(lambda: open_parquet_rows(path), request, where, decimal=decimal)
            parts.place = "row"
            return parts
        single = layout.features and all(
            str(schema.field(i).type) in ("float", "halffloat") for i in layout.features
        )
        n = file.metadata.num_rows
        X = np.empty((n, len(layout.features)), np.float32 if single else np.float64, order="F")
        text: dict[str, list[str | None]] = {role: [] for role in layout.text}
        start = 0
        for batch in file.iter_batches(batch_size=65536):
            stop = start + batch.num_rows
            for j, i in enumerate(layout.features):
                X[start:stop, j] = _arrow_numbers(batch.column(i))
            for role, i in layout.text.items():
                text[role].extend(as_label(v) for v in batch.column(i).to_pylist())
            start = stop
    notes = list(layout.notes)
    return Parts(X, layout.names, "Parquet", text, layout.dropped, notes, place="row")


def _arrow_numbers(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if column.null_count:
        column = column.cast(pa.float32() if column.type == pa.float32() else pa.float64())
    return column.to_numpy(zero_copy_only=False)


# --- NPZ -------------------------------------------------------------------------------


def read_npz(path: Path, request: Request, *, transpose: bool) -> Parts:
    """Read ``X`` and ``feature_names`` of an archive, and the arrays named as parts."""
    where = path.name
    remedy = "save it with numpy.savez(path, X=..., y=..., feature_names=names as text)"
    try:
        if not zipfile.is_zipfile(path):  # NumPy would take it for a pickle
            raise zipfile.BadZipFile
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise InputError("this is not an NPZ archive, or it is damaged", where=where) from error
    except ValueError as error:
        if "pickle" in str(error):
            raise InputError(
                "the archive holds Python objects, which are not loaded because they can run code",
                where=where,
                remedy=remedy,
            ) from None
        raise InputError(f"an array cannot be read ({one_line(error)})", where=where) from error
    if "X" not in arrays:
        raise InputError(
            f"there is no array 'X' (there are {listed(arrays)})", where=where, remedy=remedy
        )
    X = arrays.pop("X")
    X = X.T if transpose else X
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            f"X is {X.ndim}-dimensional of type {X.dtype}", where=where, remedy="it must be numbers"
        )
    X = _floating(X)
    names = arrays.pop("feature_names", None)
    labels = [f"f{j}" for j in range(X.shape[1])] if names is None else [str(s) for s in names]
    if len(labels) != X.shape[1]:
        raise InputError(
            f"{len(labels)} feature_names for {X.shape[1]} columns of X",
            where=where,
            remedy="save one name for each column"
            if transpose
            else f"try {option('transpose', True)}",
        )
    classes = arrays.pop("class_names", None)
    text: dict[str, list[str | None]] = {}
    roles = request.roles()
    if "id" not in roles and "ids" in arrays:
        roles["id"] = "ids"
    for role, key in roles.items():
        if key not in arrays:
            raise InputError(
                f"there is no array {quote(key)} ({option(role)})",
                where=where,
                remedy=suggestion(key, list(arrays)),
            )
        values = arrays[key]
        if values.shape != (X.shape[0],):
            raise InputError(
                f"array {quote(key)} has shape {values.shape}, X has {X.shape[0]} rows", where=where
            )
        if role == "target" and classes is not None and values.dtype.kind in "biu":
            if values.min() < 0 or values.max() >= len(classes):
                raise InputError(f"array {quote(key)} does not index class_names", where=where)
            values = classes[values]
        text[role] = [as_label(v) for v in values.tolist()]
    notes = [] if names is not None else ["the features have no names and were numbered f0, f1, …"]
    chosen, kept, dropped = choose_features(labels, request, where)
    X = X if chosen is None else X[:, chosen]
    return Parts(X, kept, "NPZ", text, dropped, notes, place="row")


# --- AnnData ---------------------------------------------------------------------------


def read_h5ad(path: Path, request: Request, *, layer: str | None) -> Parts:
    """Read X (or a layer), the names and the labels of an AnnData file, and nothing else."""
    try:
        import h5py
        from anndata.io import read_elem
    except ImportError as error:  # pragma: no cover - depends on the installation
        raise ImportError('reading .h5ad needs: pip install "sparsegsvp[omics]"') from error
    where = path.name
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError("this is not an .h5ad file, or it is damaged", where=where) from error
    with file:
        if "obs" not in file or "var" not in file:
            raise InputError("the file has no obs and var", where=where, remedy="is it AnnData?")
        obs, var = read_elem(file["obs"]), read_elem(file["var"])
        X = read_elem(stored_matrix(file, layer, where))
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    X = _floating(X)
    names = [str(name) for name in var.index]
    text = columns_of_samples(obs, request, where)
    chosen, kept, dropped = choose_features(names, request, where)
    X = X if chosen is None else X[:, chosen]
    kind = "AnnData" if layer is None else f"AnnData, layer {layer}"
    return Parts(X, kept, kind, text, dropped, place="row")


def stored_matrix(root: Any, layer: str | None, where: str) -> Any:
    """X or a layer of AnnData, as it lies in the file or store."""
    layers = list(root["layers"]) if "layers" in root else []
    if layer is not None and layer not in layers:
        raise InputError(
            f"there is no layer {quote(layer)} ({option('layer')})",
            where=where,
            remedy=suggestion(layer, layers),
        )
    if layer is None and "X" not in root:
        raise InputError(
            "X is empty",
            where=where,
            remedy=f"name a layer with {option('layer')}: {listed(layers)}",
        )
    return root["X"] if layer is None else root["layers"][layer]


def columns_of_samples(obs: Any, request: Request, where: str) -> dict[str, list[str | None]]:
    """Names of the samples, and the columns of obs that have a role, as text."""
    text: dict[str, list[str | None]] = {"id": [str(name) for name in obs.index]}
    for role, name in request.roles().items():
        if name not in obs.columns:
            raise InputError(
                f"there is no column {quote(name)} in obs ({option(role)})",
                where=where,
                remedy=suggestion(name, [str(c) for c in obs.columns]),
            )
        column = obs[name]
        text[role] = [
            None if gone else as_label(value)
            for gone, value in zip(column.isna(), column.astype(object))
        ]
    return text


# --- both ------------------------------------------------------------------------------


def _floating(X: Any) -> Any:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def choose_features(
    names: Sequence[str], request: Request, where: str
) -> tuple[list[int] | None, list[str], dict[str, str]]:
    """Pick the features asked for among the names of a matrix; None means all of them."""
    only = Request(drop=request.drop, features=request.features)
    named = [name if name else f"column {i}" for i, name in enumerate(names)]
    refuse_duplicates(named, where, what="feature", ignore=request.drop)
    layout = lay_out(named, only, where)
    everything = layout.features == list(range(len(names)))
    return None if everything else layout.features, layout.names, layout.dropped
