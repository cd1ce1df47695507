"""Tables that stay on disk: Parquet folders, Zarr stores and backed AnnData files.

The labels are read, the numbers are not: X is a Dask array whose chunks are read when a
pass needs them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import choose_features, columns_of_samples, stored_matrix
from ._cells import as_label
from ._checks import refuse_labels
from ._judge import check_positive
from ._layout import Request, lay_out
from .errors import InputError, listed, one_line, option, quote, suggestion
from .table import Table

# Bytes of a chunk, where the storage leaves the choice.
_CHUNK_BYTES = 1 << 26


def open_table(
    path: str | PathLike[str],
    *,
    target: str | None = None,
    positive: str | None = None,
    id: str | None = None,
    group: str | None = None,
    drop: Sequence[str] = (),
    layer: str | None = None,
) -> Table:
    """Open a table without reading its numbers.

    Parameters
    ----------
    path : path-like
        A Parquet file or a folder of them (``*.parquet``, read in the order of their names);
        a Zarr store, either of AnnData or with the arrays ``X`` and, if there are names,
        ``feature_names``; an ``.h5ad`` file. Samples are rows.
    target : str or None, default=None
        Labels: a column, a column of ``obs``, or an array of the Zarr store. Rows without
        one are left out and counted.
    positive : str or None, default=None
        The class of interest; it must occur.
    id, group : str or None, default=None
        Where sample identifiers and groups are.
    drop : sequence of str, default=()
        Columns to leave out.
    layer : str or None, default=None
        A layer of AnnData instead of its X.

    Returns
    -------
    Table
        ``X`` is a Dask array. ``digest`` is of names, sizes and metadata rather than of the
        values, which are not looked at: missing ones are refused when a model is fitted.

    Raises
    ------
    ImportError
        If Dask, or what reads the format, is not installed; it names the extra.
    InputError
        If the table cannot be used.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.io import open_table
    >>> frame = pd.DataFrame({"a": np.arange(8.0), "b": [3.0, 1.0] * 4, "class": list("xxxxyyyy")})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part, rows in enumerate((slice(0, 5), slice(5, 8))):
    ...         frame[rows].to_parquet(pathlib.Path(folder) / f"{part}.parquet")
    ...     table = open_table(folder, target="class")
    ...     model = GSVPSVM().fit(table.X, table.y)
    >>> table.X.chunks, table.class_counts()
    (((5, 3), (2,)), {'x': 4, 'y': 4})
    >>> model.support_
    array([ True, False])
    """
    need("dask.array", "dask")
    file = Path(path)
    request = Request(target=target, id=id, group=group, drop=tuple(drop))
    parts = _reader(file, layer)(file, request)
    labels = parts.text.get("target")
    notes = list(parts.notes)
    if labels is not None:
        kept = np.array([label is not None for label in labels])
        if not kept.any():
            raise InputError(
                "no sample has a label", where=file.name, remedy=f"check {option('target')}"
            )
        if not kept.all():
            notes.append(f"{(~kept).sum()} samples without a label were left out")
            parts.X = parts.X[np.flatnonzero(kept)]
            parts.text = {
                role: [v for v, keep in zip(values, kept) if keep]
                for role, values in parts.text.items()
            }
        refuse_labels([str(v) for v in parts.text["target"]], str(target), file.name)
    check_positive(positive, parts.text.get("target"), target, file.name)
    groups = parts.text.get("group")
    if groups is not None and None in groups:
        raise InputError(
            "a sample has no group", where=file.name, remedy=f"fill it in {option('group')}"
        )
    return Table(
        X=parts.X,
        feature_names=tuple(parts.names),
        y=_texts(parts.text.get("target")),
        ids=_texts(parts.text.get("id")),
        groups=_texts(groups),
        target=target,
        positive=positive,
        source=file.name,
        digest=parts.digest,
        record=(*_opening(parts, file.name, target), *notes),
        notices=(),
        dropped=parts.dropped,
        n_missing=0,
    )


def need(module: str, extra: str) -> Any:
    """Import an optional module, or name the extra that brings it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{module.partition(".")[0]} is needed here: pip install "sparsegsvp[{extra}]"'
        ) from error


@dataclass
class _Lazy:
    """A table that is opened."""

    X: Any
    names: list[str]
    kind: str
    digest: str
    text: dict[str, list[str | None]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _reader(path: Path, layer: str | None) -> Callable[[Path, Request], _Lazy]:
    if not path.exists():
        raise InputError("there is no such file or folder", where=str(path), remedy="check it")
    if path.suffix == ".h5ad":
        return lambda file, request: _open_h5ad(file, request, layer)
    if path.is_dir() and any((path / n).exists() for n in ("zarr.json", ".zgroup", ".zarray")):
        return lambda file, request: _open_zarr(file, request, layer)
    if layer is not None:
        raise InputError(f"{option('layer')} is for AnnData", where=path.name)
    if _parquet_files(path):
        return _open_parquet
    raise InputError(
        "this is no Parquet folder, Zarr store or .h5ad file",
        where=path.name,
        remedy=f"other files are read whole, without {option('dask')}",
    )


def _opening(parts: _Lazy, where: str, target: str | None) -> Iterator[str]:
    n, m = parts.X.shape
    blocks = " x ".join(str(count) for count in parts.X.numblocks)
    yield f"opened {n} samples and {m} features in {blocks} chunks of {where} ({parts.kind})"
    labels = parts.text.get("target")
    if labels is not None:
        counts = sorted(Counter(str(label) for label in labels).items())
        yield f"classes in {quote(target)}: {', '.join(f'{quote(k)} {v}' for k, v in counts)}"
    yield "the digest is of names, sizes and metadata, not of the values"
    if parts.dropped:
        yield f"left out as asked: {listed(parts.dropped)}"


def _texts(values: list[str | None] | None) -> Any:
    if values is None:
        return None
    array = np.empty(len(values), dtype=object)
    array[:] = ["" if value is None else value for value in values]
    return array


def _digest(root: Path, files: Sequence[Path], *metadata: bytes) -> str:
    found = hashlib.sha256()
    for file in files:
        name = file.relative_to(root).as_posix() if file != root else file.name
        found.update(f"{name}\0{file.stat().st_size}\n".encode())
    for part in metadata:
        found.update(part)
    return found.hexdigest()


# --- Parquet ---------------------------------------------------------------------------


def _parquet_files(path: Path) -> list[Path]:
    found = [path] if path.is_file() else sorted(path.rglob("*"))
    return [file for file in found if file.suffix in (".parquet", ".pq")]


def _open_parquet(path: Path, request: Request) -> _Lazy:
    pq = need("pyarrow.parquet", "cli")
    pa = need("pyarrow", "cli")
    files = _parquet_files(path)
    opened = []
    for file in files:
        try:
            opened.append(pq.ParquetFile(file))
        except (pa.ArrowException, OSError) as error:
            raise InputError("this is not Parquet, or it is damaged", where=file.name) from error
    schema = opened[0].schema_arrow
    for file, part in zip(files[1:], opened[1:]):
        if part.schema_arrow.names != schema.names:
            raise InputError(
                f"its columns are not those of {one_line(files[0].name)}",
                where=file.name,
                remedy="write all parts with the same columns",
            )
    index = [name for name in schema.names if name.startswith("__index_level_")]
    layout = lay_out([n for n in schema.names if n not in index], request, path.name)
    for name in layout.names:
        kind = schema.field(name).type
        if not (
            pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        ):
            raise InputError(
                f"column {quote(name)} holds {one_line(kind)}, not numbers",
                where=path.name,
                remedy=f"leave it out with {option('drop', [name])}",
            )
    single = all(schema.field(name).type == pa.float32() for name in layout.names)
    dtype = np.dtype(np.float32 if single else np.float64)
    spans = list(_row_groups(files, opened, max(1, len(layout.names)) * dtype.itemsize))
    da, delayed = need("dask.array", "dask"), need("dask", "dask").delayed
    X = da.concatenate(
        [
            da.from_delayed(
                delayed(_read_groups, pure=True)(str(file), groups, layout.names, dtype.name),
                shape=(n, len(layout.names)),
                dtype=dtype,
            )
            for file, groups, n in spans
        ]
    )
    text: dict[str, list[str | None]] = {}
    for role, column in request.roles().items():
        cells = [v for part in opened for v in part.read([column]).column(0).to_pylist()]
        text[role] = [as_label(cell) for cell in cells]
    root = path if path.is_dir() else path.parent
    digest = _digest(root, files, schema.serialize().to_pybytes())
    return _Lazy(X, list(layout.names), "Parquet", digest, text, dict(layout.dropped))


def _row_groups(
    files: Sequence[Path], opened: Sequence[Any], row_bytes: int
) -> Iterator[tuple[Path, list[int], int]]:
    """Neighbouring row groups of a file, together no larger than a chunk should be."""
    for file, part in zip(files, opened):
        groups: list[int] = []
        n = 0
        for i in range(part.metadata.num_row_groups):
            size = part.metadata.row_group(i).num_rows
            if groups and (n + size) * row_bytes > _CHUNK_BYTES:
                yield file, groups, n
                groups, n = [], 0
            groups.append(i)
            n += size
        if n:
            yield file, groups, n


def _read_groups(file: str, groups: list[int], names: list[str], dtype: str) -> np.ndarray:
    import pyarrow.parquet as pq

    found = pq.ParquetFile(file).read_row_groups(groups, columns=names)
    X = np.empty((found.num_rows, len(names)), dtype)
    for j, name in enumerate(names):
        X[:, j] = found.column(name).to_numpy()  # a null is NaN
    return X


# --- Zarr and AnnData ------------------------------------------------------------------


def _open_zarr(path: Path, request: Request, layer: str | None) -> _Lazy:
    zarr = need("zarr", "dask")
    da = need("dask.array", "dask")
    root = zarr.open(str(path), mode="r")
    digest = _digest(path, sorted(p for p in path.rglob("*") if p.is_file()))
    if not hasattr(root, "keys"):
        raise InputError(
            "the store is a single array", where=path.name, remedy="it should hold X and labels"
        )
    arrays = list(root.keys())
    if "obs" in arrays and "var" in arrays:
        return _open_anndata(root, request, layer, path.name, digest)
    if layer is not None:
        raise InputError(f"{option('layer')} is for AnnData", where=path.name)
    if "X" not in arrays:
        raise InputError(f"there is no array 'X' (there are {listed(arrays)})", where=path.name)
    X = da.from_zarr(root["X"])
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(f"X is {X.ndim}-dimensional of type {X.dtype}", where=path.name)
    notes = []
    if "feature_names" in arrays:
        names = [str(name) for name in np.asarray(root["feature_names"][:])]
    else:
        names = [f"f{j}" for j in range(X.shape[1])]
        notes.append("the features have no names and were numbered f0, f1, …")
    if len(names) != X.shape[1]:
        raise InputError(
            f"{len(names)} feature_names for {X.shape[1]} columns of X", where=path.name
        )
    text = {}
    for role, name in request.roles().items():
        if name not in arrays:
            raise InputError(
                f"there is no array {quote(name)} ({option(role)})",
                where=path.name,
                remedy=suggestion(name, [a for a in arrays if a not in ("X", "feature_names")]),
            )
        values = np.asarray(root[name][:])
        if values.shape != (X.shape[0],):
            raise InputError(
                f"array {quote(name)} has shape {values.shape}, X has {X.shape[0]} rows",
                where=path.name,
            )
        text[role] = [as_label(value) for value in values.tolist()]
    chosen, kept, dropped = choose_features(names, request, path.name)
    X = X if chosen is None else X[:, chosen]
    return _Lazy(X, kept, "Zarr", digest, text, dropped, notes)


def _open_h5ad(path: Path, request: Request, layer: str | None) -> _Lazy:
    h5py = need("h5py", "omics")
    need("anndata", "omics")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError("this is not an .h5ad file, or it is damaged", where=path.name) from error
    with file:
        if "obs" not in file or "var" not in file:
            raise InputError(
                "the file has no obs and var", where=path.name, remedy="is it AnnData?"
            )
        return _open_anndata(file, request, layer, path.name, _digest(path, [path]))


def _open_anndata(root: Any, request: Request, layer: str | None, where: str, digest: str) -> _Lazy:
    """X by blocks of rows, as CSR stores it: a slice of columns would read everything."""
    need("anndata", "omics")
    from anndata.experimental import read_elem_lazy
    from anndata.io import read_elem

    stored = stored_matrix(root, layer, where)
    obs, var = read_elem(root["obs"]), read_elem(root["var"])
    encoding = str(dict(stored.attrs).get("encoding-type", ""))
    chunks = None
    if encoding == "csr_matrix":
        per_row = 12 * max(1, stored["data"].shape[0] // max(1, len(obs)))
        chunks = (int(np.clip(_CHUNK_BYTES // per_row, 1, len(obs))), len(var))
    X = read_elem_lazy(stored, chunks=chunks)
    text = columns_of_samples(obs, request, where)
    chosen, kept, dropped = choose_features([str(n) for n in var.index], request, where)
    X = X if chosen is None else X[:, chosen]
    kind = "AnnData" if layer is None else f"AnnData, layer {layer}"
    return _Lazy(X, kept, kind, digest, text, dropped)
