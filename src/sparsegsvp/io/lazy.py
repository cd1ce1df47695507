"""Tables that stay on disk: Parquet folders, Zarr stores and backed AnnData files.

The labels are read, the numbers are not: X is a Dask array whose chunks are read when a
pass needs them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .cells import as_role
from .checks import check_roles
from .errors import InputError, listed, locating, need, one_line, option, quote
from .formats import anndata_kind, check_filled, is_number_type, open_h5ad, open_parquet
from .guards import check_memory, guarded, shown_name, without_warnings
from .layout import RawTable, Roles, RoleText, from_anndata, from_arrays, lay_out, stored_matrix
from .roles import assign_roles_by_name
from .structure import (
    check_anndata_matrix,
    check_chunks,
    check_codecs,
    check_matrix,
    check_sizes,
    sparse_layout,
)
from .table import Table, table_of

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
    keep: Sequence[str] = (),
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
    positive, id, group, drop, keep, layer
        As in `read_table`.

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
    if not os.path.exists(file):
        raise InputError("there is no such file or folder", where=str(path), remedy="check it")
    roles = Roles(target=target, id=id, group=group, drop=tuple(drop), keep=tuple(keep))
    name = shown_name(file)
    with locating(name), without_warnings(), guarded("a Parquet folder, Zarr store or .h5ad file"):
        if file.suffix == ".h5ad":
            raw = _open_h5ad(file, roles, layer)
        elif any((file / name).exists() for name in ("zarr.json", ".zgroup", ".zarray")):
            raw = _open_zarr(file, roles, layer)
        elif _parquet_files(file):
            raw = _open_parquet(file, roles, layer)
        else:
            raise InputError(
                "this is no Parquet folder, Zarr store or .h5ad file",
                remedy=f"other files are read whole, without {option('dask')}",
            )
        positive = check_roles(raw, target, positive)
        assign_roles_by_name(raw, roles, target)
    (n, m), blocks = raw.X.shape, " x ".join(str(count) for count in raw.X.numblocks)
    opening = f"opened {n} samples and {m} features in {blocks} chunks of {name} ({raw.kind})"
    about = "the digest is of names, sizes and metadata, not of the values"
    return table_of(raw, opening, name, target, positive, about)


def _refuse_layer(layer: str | None) -> None:
    if layer is not None:
        raise InputError(f"{option('layer')} is for AnnData")


def _digest_of_files(root: Path, files: Sequence[Path], *metadata: bytes) -> str:
    """SHA-256 of the names and sizes of files, and of metadata."""
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


def _open_parquet(path: Path, roles: Roles, layer: str | None) -> RawTable:
    _refuse_layer(layer)
    files = _parquet_files(path)
    opened = []
    for file in files:
        with locating("" if file == path else file.name):
            opened.append(open_parquet(file))
    schema = opened[0].schema_arrow
    for file, part in zip(files[1:], opened[1:]):
        if part.schema_arrow.names != schema.names:
            raise InputError(
                f"its columns are not those of {one_line(files[0].name)}",
                where=file.name,
                remedy="write all parts with the same columns",
            )
    index = [name for name in schema.names if name.startswith("__index_level_")]
    layout = lay_out([n for n in schema.names if n not in index], roles)
    for name in layout.names:
        kind = schema.field(name).type
        if not is_number_type(kind):
            raise InputError(
                f"column {quote(name)} holds {one_line(kind)}, not numbers",
                remedy=f"leave it out with {option('drop', [name])}",
            )
    single = all(str(schema.field(name).type) == "float" for name in layout.names)
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
    text: RoleText = {}
    for role, column in roles.named().items():
        cells = [v for part in opened for v in part.read([column]).column(0).to_pylist()]
        text[role] = [as_role(role, cell) for cell in cells]
        check_filled(len(cells), X.shape[0])
    root = path if path.is_dir() else path.parent
    digest = _digest_of_files(root, files, schema.serialize().to_pybytes())
    return RawTable(X, layout.names, "Parquet", text, layout.dropped, digest=digest)


def _row_groups(
    files: Sequence[Path], opened: Sequence[Any], row_bytes: int
) -> Iterator[tuple[Path, list[int], int]]:
    """Yield neighbouring row groups of a file, together no larger than a chunk should be."""
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

    with locating(shown_name(file)), guarded("Parquet"):
        opened = pq.ParquetFile(file)
        found = opened.read_row_groups(groups, columns=names)
        promised = sum(opened.metadata.row_group(i).num_rows for i in groups)
        check_filled(found.num_rows, promised)
        X = np.empty((found.num_rows, len(names)), dtype)
        for j, name in enumerate(names):
            X[:, j] = found.column(name).cast("double", safe=False).to_numpy()  # a null is NaN
        return X


# --- Zarr and AnnData ------------------------------------------------------------------


def _open_zarr(path: Path, roles: Roles, layer: str | None) -> RawTable:
    zarr = need("zarr", "dask")
    check_codecs(path)
    root = zarr.open(str(path), mode="r")
    files = sorted(p for p in path.rglob("*") if p.is_file())
    digest, size = _digest_of_files(path, files), sum(p.stat().st_size for p in files)
    if not hasattr(root, "keys"):
        raise InputError("the store is a single array", remedy="it should hold X and labels")
    arrays = list(root.keys())
    if "obs" in arrays and "var" in arrays:
        need("anndata", "omics")
        from anndata.io import read_elem

        check_sizes(root["obs"], size)
        check_sizes(root["var"], size)
        obs, var = read_elem(root["obs"]), read_elem(root["var"])
        stored = stored_matrix(root, layer)
        for part in [stored] if hasattr(stored, "shape") else [stored[key] for key in stored]:
            check_chunks(part.shape, part.chunks, size)
        return replace(_open_anndata(path, stored, obs, var, roles, layer), digest=digest)
    _refuse_layer(layer)
    if "X" not in arrays:
        raise InputError(f"there is no array 'X' (there are {listed(arrays)})")
    others = {name: root[name] for name in arrays if name != "X"}
    for name in {"feature_names", *roles.named().values()} & others.keys():
        check_sizes(others[name], size)
    stored = root["X"]
    if stored.ndim != 2:
        raise InputError(f"X is {stored.ndim}-dimensional", remedy="it must be a matrix")
    check_chunks(stored.shape, stored.chunks, size)
    X = _lazy_matrix(path, "X", stored.shape, stored.chunks, stored.dtype)
    return replace(from_arrays(X, others, roles, "Zarr"), digest=digest)


def _open_h5ad(path: Path, roles: Roles, layer: str | None) -> RawTable:
    digest = _digest_of_files(path, [path])
    with open_h5ad(path, layer) as (obs, var, stored):
        return replace(_open_anndata(path, stored, obs, var, roles, layer), digest=digest)


def _open_anndata(
    path: Path, stored: Any, obs: Any, var: Any, roles: Roles, layer: str | None
) -> RawTable:
    """Open X in blocks as it is stored: CSR by rows, CSC by columns, an array by its chunks."""
    n, m = len(obs), len(var)
    check_anndata_matrix(stored, n, m)
    dense = hasattr(stored, "shape")
    if dense:
        dtype, meta = stored.dtype, None
        chunks = stored.chunks or (_fitting(n, m * stored.dtype.itemsize), m)
    else:
        encoding, _ = sparse_layout(stored)
        dtype, by_rows = stored["data"].dtype, encoding == "csr_matrix"
        count = n if by_rows else m
        each = _fitting(count, 12 * max(1, stored["data"].shape[0] // max(1, count)))
        chunks = (each, m) if by_rows else (n, each)
        meta = (sparse.csr_matrix if by_rows else sparse.csc_matrix)((0, 0), dtype=dtype)
    X = _lazy_matrix(path, "X" if layer is None else f"layers/{layer}", (n, m), chunks, dtype, meta)
    return from_anndata(X, obs, var.index, roles, anndata_kind(layer))


def _fitting(count: int, size: int) -> int:
    """Return how many of ``count`` rows or columns of a size fit into a chunk."""
    return int(np.clip(_CHUNK_BYTES // max(1, size), 1, max(1, count)))


def _lazy_matrix(
    path: Path, name: str, shape: tuple[int, int], chunks: Any, dtype: Any, meta: Any = None
) -> Any:
    """Return a matrix of a file or store as a Dask array, whose blocks are checked as they come."""
    da = need("dask.array", "dask")
    blocks = da.core.normalize_chunks(chunks, shape, dtype=dtype)
    if meta is None:
        check_memory(max(blocks[0], default=0), max(blocks[1], default=0), dtype.itemsize)
    return da.map_blocks(
        _read_block,
        str(path),
        name,
        chunks=blocks,
        dtype=dtype,
        meta=np.empty((0, 0), dtype) if meta is None else meta,
    )


def _read_block(path: str, name: str, block_info: Any = None) -> Any:
    """Read one block; the file is opened anew, in whatever process Dask runs this."""
    ends = block_info[None]["array-location"]
    rows, columns = (slice(*pair) for pair in ends)
    with (
        locating(shown_name(path)),
        guarded("what it was when it was opened"),
        ExitStack() as stack,
    ):
        if path.endswith(".h5ad"):
            stored = stack.enter_context(need("h5py", "omics").File(path, "r"))[name]
        else:
            stored = need("zarr", "dask").open(path, mode="r")[name]
        if not hasattr(stored, "shape"):
            from anndata.io import sparse_dataset

            stored = sparse_dataset(stored, should_cache_indptr=False)
        return check_matrix(stored[rows, columns], *(stop - start for start, stop in ends))
