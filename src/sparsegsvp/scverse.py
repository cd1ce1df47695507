"""Marker panels from AnnData, in the manner of the scverse packages."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._typing import Float64Array, IntArray
from ._validate import check_integer, need, warn_caller
from .estimators import GSVPSVM
from .linalg.rows import Rows

__all__ = ["dot_plot_frames", "select_markers"]

# Pairs of types that are named for a gene, and what one must gain beside the first of them.
_PAIRS, _PART = 3, 1 / 3


def select_markers(
    adata: Any,
    groupby: str,
    n_genes: int = 50,
    *,
    layer: str | None = None,
    batch_key: str | None = None,
    tau: float | None = None,
    clip: float | None = 3.0,
    max_correlation: float = 0.9,
    key_added: str = "gsvp_markers",
) -> Any:
    """Select exactly as many genes as asked for that tell all cell types apart.

    Genes are chosen one by one by `sparsegsvp.GSVPSVM`'s criterion, a sum over all pairs of
    types in which every pair counts the same, and every type in the variances, whatever the
    number of its cells: a rare type is not drowned by a common one. A pair that is far apart
    already stops counting. No two genes are copies of each other. Sparse data stays sparse; a
    backed ``X`` is read in chunks of rows and never loaded.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, log-normalised values; counts are taken with a warning.
    groupby : str
        Column of ``obs`` with two types or more. Cells without one are left out.
    n_genes : int, default=50
        How many genes.
    layer : str, default=None
        A layer instead of ``X``.
    batch_key : str, default=None
        Column of ``obs`` with the batch or donor of each cell. Every batch of a type then counts
        the same, so that a gene of one large batch alone does not pass for a marker.
    tau, clip, max_correlation
        As in `sparsegsvp.GSVPSVM`.
    key_added : str, default="gsvp_markers"
        Name under which results are stored.

    Returns
    -------
    DataFrame
        One row a gene, in the order of choice: ``gene``, ``order`` (from 1), ``separates`` (the
        pairs of types that gain most by it), ``gain`` (what it takes from the criterion),
        ``stand_ins`` (genes that may stand for it), and ``mean_<type>`` and ``fraction_<type>``,
        the mean value and the part of the cells with a value above zero.
        ``adata.var[key_added]`` marks the panel, ``adata.var[key_added + "_order"]`` is the order
        (0 for other genes), and ``adata.uns[key_added]`` holds the names and the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import pytest
    >>> anndata = pytest.importorskip("anndata")
    >>> from sparsegsvp.scverse import select_markers
    >>> rng = np.random.default_rng(0)
    >>> cells = np.repeat(["B", "NK", "T"], 30)
    >>> X = rng.poisson(1.0, size=(90, 50)).astype(np.float32)
    >>> X[:, 0] += 5 * (cells == "B")
    >>> X[:, 1] += 5 * (cells == "T")
    >>> adata = anndata.AnnData(np.log1p(X), obs={"type": cells})
    >>> markers = select_markers(adata, groupby="type", n_genes=2)
    >>> sorted(markers["gene"])
    ['0', '1']
    >>> int(adata.var["gsvp_markers"].sum())
    2
    """
    if not isinstance(adata, need("anndata", "omics").AnnData):
        raise ValueError(f"adata must be an AnnData, got {type(adata).__name__}")
    import pandas as pd  # which anndata brings

    check_integer("n_genes", n_genes, least=1)
    labels = _column(adata, groupby, "groupby")
    X = _values(adata, layer)
    known = labels.notna().to_numpy()
    batch = None if batch_key is None else _column(adata, batch_key, "batch_key")
    if batch is not None:
        known = known & batch.notna().to_numpy()
        batch = batch[known].astype(str)
    labels = labels[known].astype(str)
    if not known.all():
        X = X[np.flatnonzero(known)]
    model = GSVPSVM(
        n_genes, tau=tau, clip=clip, max_correlation=max_correlation, decision="discriminant"
    )
    table = model._read(X, labels.to_numpy(), _even(labels, batch))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*constant feature")  # genes that no cell expresses
        model._fit_sizes(table, [model])
    types = model.classes_.tolist()
    order, names = model.feature_order_, adata.var_names.to_numpy()
    mean, fraction, broken = _expressed(table.rows.take(order), table.codes, len(types))
    if not broken.any() and np.any(mean > fraction):  # whole numbers, some of them above one
        warn_caller("the values look like counts: normalise each cell's total and take logarithms")
    frame = pd.DataFrame({"gene": names[order].astype(str), "order": np.arange(1, len(order) + 1)})
    frame["separates"] = _separated(model.pair_gains_, types)
    frame["gain"] = model.feature_importances_[order]
    frame["stand_ins"] = [tuple(names[g] for g, *_ in listed) for listed in model.stand_ins_]
    for k, name in enumerate(types):
        frame[f"mean_{name}"], frame[f"fraction_{name}"] = mean[k], fraction[k]
    rank = np.zeros(adata.n_vars, dtype=int)
    rank[order] = frame["order"]
    adata.var[key_added], adata.var[f"{key_added}_order"] = model.support_, rank
    parameters = {"groupby": groupby, "n_genes": n_genes, "tau": model.tau_, "layer": layer or "X"}
    adata.uns[key_added] = {
        "names": frame["gene"].to_numpy(dtype=object),
        "types": np.array(types, dtype=object),
        "params": parameters | ({} if batch_key is None else {"batch_key": batch_key}),
    }
    return frame


def dot_plot_frames(markers: Any) -> tuple[Any, Any]:
    """Mean values and fractions of cells, types by genes: what scanpy's ``DotPlot`` takes.

    Parameters
    ----------
    markers : DataFrame
        What `select_markers` returned.

    Returns
    -------
    color, size : DataFrame
        ``dot_color_df`` and ``dot_size_df`` of ``scanpy.pl.DotPlot``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsegsvp.scverse import dot_plot_frames
    >>> markers = pd.DataFrame({"gene": ["CD19"], "mean_B": [2.1], "fraction_B": [0.9]})
    >>> color, size = dot_plot_frames(markers)
    >>> float(size.loc["B", "CD19"])
    0.9
    """
    columns = markers.set_index("gene")
    mean, fraction = (
        columns.filter(regex=f"^{kind}").rename(columns=lambda name: name.partition("_")[2]).T
        for kind in ("mean_", "fraction_")
    )
    return mean, fraction


def _column(adata: Any, name: str, argument: str) -> Any:
    if name not in adata.obs:
        raise ValueError(
            f"{argument}={name!r} is not a column of obs: there are {list(adata.obs)[:10]}"
        )
    return adata.obs[name]


def _values(adata: Any, layer: str | None) -> Any:
    """X or a layer: in memory as it is, on disk as a Dask array of chunks."""
    if layer is not None and layer not in adata.layers:
        there = [name for name in adata.layers if name is not None]
        raise ValueError(f"layer={layer!r} does not exist: there are {there}")
    if layer is not None:
        return adata.layers[layer]
    if adata.X is None:
        raise ValueError("adata.X is empty: name a layer")
    if not adata.isbacked:
        return adata.X
    if adata.is_view:
        raise ValueError(
            "adata is a view of a backed AnnData, which can hold no results: call "
            "adata.to_memory(), or leave cells out by an empty type"
        )
    need("dask.array", "dask")
    from anndata.experimental import read_elem_lazy

    return read_elem_lazy(adata.file["X"])


def _even(labels: Any, batch: Any) -> Float64Array:
    """Weights of cells by which all types count the same, and all batches of a type."""
    both = labels if batch is None else labels + "\0" + batch
    n_batches = both.groupby(labels).nunique()
    return 1.0 / (labels.map(n_batches) * both.map(both.value_counts())).to_numpy(np.float64)


def _expressed(rows: Rows, codes: IntArray, n_types: int) -> Float64Array:
    """Mean value, and parts of the cells above zero and with a fraction, types by genes."""

    def visit(state: Any, block: Float64Array, code: IntArray) -> Float64Array:
        member = np.equal.outer(np.arange(n_types), code).astype(np.float64)
        part = np.stack([member @ a for a in (block, block > 0.0, block != np.floor(block))])
        return part if state is None else state + part

    sums = rows.reduce_rows(visit, np.add, (codes,))
    return np.asarray(sums / np.bincount(codes, minlength=n_types)[:, None])


def _separated(gains: Float64Array, types: list[str]) -> list[tuple[str, ...]]:
    """The pairs of types that gain most by each gene."""
    i, j = np.triu_indices(len(types), 1)
    pairs = []
    for gain in gains:
        best = np.argsort(-gain, kind="stable")[:_PAIRS]
        best = best[gain[best] >= _PART * gain[best[0]]]
        pairs.append(tuple(f"{types[i[p]]} | {types[j[p]]}" for p in best))
    return pairs
