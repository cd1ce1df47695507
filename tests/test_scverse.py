"""Marker panels on AnnData: where results go, what stays sparse, what stays on disk."""

from __future__ import annotations

import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sparsegsvp import GSVPSVM, select_panel
from sparsegsvp.datasets import make_cells
from sparsegsvp.linalg import chunks
from sparsegsvp.report import draw_figures
from sparsegsvp.scverse import dot_plot_frames, select_markers

anndata = pytest.importorskip("anndata")


@pytest.fixture
def adata():
    """Three types, a marker gene each (3, 7, 11), 90% zeros elsewhere."""
    rng = np.random.default_rng(0)
    types = np.array(["B", "NK", "T"])[np.arange(120) % 3]
    X = np.where(rng.random((120, 40)) < 0.1, rng.normal(2.0, 1.0, (120, 40)), 0.0)
    for name, gene in (("B", 3), ("NK", 7), ("T", 11)):
        X[types == name, gene] += rng.normal(3.0, 0.3, 40)
    data = anndata.AnnData(sp.csr_matrix(X.astype(np.float32)), obs={"type": types})
    data.var_names = [f"g{j}" for j in range(40)]
    data.layers["reversed"] = data.X[:, ::-1].tocsr()
    return data


def test_the_panel_is_that_of_the_estimator_and_is_stored_as_scanpy_does(adata):
    expected = GSVPSVM(n_features=4).fit(adata.X, adata.obs["type"].to_numpy())
    markers = select_markers(adata, "type", 4)
    assert list(markers["gene"]) == [f"g{j}" for j in expected.feature_order_]
    assert set(markers["gene"][:3]) == {"g3", "g7", "g11"}
    assert list(markers["order"]) == [1, 2, 3, 4]
    np.testing.assert_array_equal(adata.var["gsvp_markers"], expected.support_)
    assert adata.var.loc[markers["gene"], "gsvp_markers_order"].tolist() == [1, 2, 3, 4]
    assert adata.uns["gsvp_markers"]["names"].tolist() == list(markers["gene"])
    assert adata.uns["gsvp_markers"]["params"]["groupby"] == "type"


def test_what_is_said_of_a_gene(adata):
    markers = select_markers(adata, "type", 3).set_index("gene")
    X = adata.X.toarray()
    for name, gene in (("B", 3), ("NK", 7), ("T", 11)):
        row = markers.loc[f"g{gene}"]
        inside = (adata.obs["type"] == name).to_numpy()
        assert row[f"mean_{name}"] == pytest.approx(X[inside, gene].mean(), rel=1e-6)
        assert row[f"fraction_{name}"] == pytest.approx((X[inside, gene] > 0).mean())
    # the first gene separates its type from both others
    first = markers.iloc[0]
    kind = {"g3": "B", "g7": "NK", "g11": "T"}[markers.index[0]]
    assert len(first["separates"]) == 2 and all(kind in pair for pair in first["separates"])
    assert (np.diff(markers["gain"]) < 0).all()
    color, size = dot_plot_frames(markers.reset_index())
    assert list(color.index) == list(size.index) == ["B", "NK", "T"]
    assert list(color.columns) == list(markers.index)


def test_a_copy_stands_in_for_a_gene_and_is_not_chosen_beside_it(adata):
    rng = np.random.default_rng(4)
    X = adata.X.toarray()
    for gene in (3, 7, 11):
        X[:, gene + 1] = X[:, gene] * rng.normal(1.0, 0.01, len(X))
    adata.X = sp.csr_matrix(X)
    markers = select_markers(adata, "type", 6)
    for pair in ({"g3", "g4"}, {"g7", "g8"}, {"g11", "g12"}):
        [row] = [row for row in markers.itertuples() if row.gene in pair]
        assert set(row.stand_ins) == pair - {row.gene}


def test_scanpy_draws_the_dot_plot(adata):
    scanpy = pytest.importorskip("scanpy")
    markers = select_markers(adata, "type", 5)
    color, size = dot_plot_frames(markers)
    genes = list(markers["gene"])
    plot = scanpy.pl.DotPlot(adata, genes, "type", dot_color_df=color, dot_size_df=size)
    own = scanpy.pl.DotPlot(adata, genes, "type")
    for given, made in ((plot.dot_color_df, own.dot_color_df), (plot.dot_size_df, own.dot_size_df)):
        assert list(given.index) == list(made.index) and list(given) == list(made)
        np.testing.assert_allclose(given, made, rtol=1e-5)
    plot.make_figure()


def test_counts_are_taken_with_a_warning_and_silent_genes_without_one(adata):
    adata.X = abs(adata.X).rint()
    adata.X = (adata.X @ sp.diags((np.arange(40) != 20).astype(np.float32))).tocsr()
    adata.layers["log"] = adata.X.log1p()
    adata.layers["open"] = (adata.X > 0).astype(np.float32)  # as of chromatin
    with pytest.warns(UserWarning, match="look like counts: normalise"):
        select_markers(adata, "type", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        select_markers(adata, "type", 4, layer="log")
        select_markers(adata, "type", 4, layer="open")


def test_an_evaluation_leaves_donors_out_and_shows_types():
    """Folds by donors, recall and confusion at every size, dots; the cells stay sparse."""
    adata = make_cells(600, 150, 8, n_donors=6, n_markers=5, weights=[1.0] * 8)
    selection = select_panel(adata, target="cell_type", groups="donor", fast=True)
    assert sp.issparse(selection.table.X)
    result = selection.evaluation
    donor = adata.obs["donor"].to_numpy()[result.predictions["sample"]]
    assert (result.predictions["fold"].groupby(donor).nunique() == 1).all()
    for size in result.ladder["size"]:
        assert result.confusions[size].shape == (8, 8)
        assert len(result.class_recalls.query("size == @size")) == 8
    figures = set(draw_figures(selection.document))
    assert {"dots", "confusion", "recalls"} <= figures and "roc" not in figures


def test_a_layer_and_another_key(adata):
    markers = select_markers(adata, "type", 3, layer="reversed", key_added="panel")
    assert set(markers["gene"]) == {"g36", "g32", "g28"}
    assert adata.uns["panel"]["params"]["layer"] == "reversed"
    assert "gsvp_markers" not in adata.var


def test_cells_without_a_type_are_left_out(adata):
    types = adata.obs["type"].astype(object)
    types.iloc[:10] = np.nan
    adata.obs["type"] = types
    markers = select_markers(adata, "type", 4)
    expected = select_markers(adata[10:].copy(), "type", 4)
    assert list(markers["gene"]) == list(expected["gene"])
    np.testing.assert_allclose(markers["mean_T"], expected["mean_T"])


def test_a_rare_type_is_not_drowned():
    """Ten cells beside 50,000 get their marker before genes that tell the common types apart."""
    rng = np.random.default_rng(1)
    types = np.repeat(["common", "other", "rare"], [50_000, 20_000, 10])
    X = sp.random(len(types), 60, density=0.05, format="lil", dtype=np.float32, random_state=rng)
    X[50_000:70_000, 0] = rng.normal(2.0, 0.5, (20_000, 1))
    X[50_000:70_000, 2] = rng.normal(1.0, 0.5, (20_000, 1))  # the common types, less well
    X[70_000:, 1] = rng.normal(2.0, 0.5, (10, 1))
    adata = anndata.AnnData(X.tocsr(), obs={"type": types})
    markers = select_markers(adata, "type", 3)
    assert set(markers["gene"][:2]) == {"0", "1"}
    assert all("rare" in pair for pair in markers.set_index("gene").loc["1", "separates"])


def test_a_rare_type_counts_in_the_variances_too():
    """What is quiet in the common cells and noisy in rare ones is no marker of rare ones."""
    rng = np.random.default_rng(3)
    types = np.repeat(["common", "rare a", "rare b"], [5000, 100, 100])
    rare, b = types != "common", types == "rare b"
    X = rng.normal(size=(len(types), 20))
    X[:, 0] *= np.where(rare, 3.0, 0.1)  # of all cells alike the steadier one
    X[:, 0] += 1.5 * b
    X[:, 1] += 2.0 * b
    adata = anndata.AnnData(X, obs={"type": types})
    assert select_markers(adata[rare].copy(), "type", 1)["gene"].tolist() == ["1"]
    assert select_markers(adata, "type", 1)["gene"].tolist() == ["1"]
    assert GSVPSVM(1).fit(X, types).feature_order_.tolist() == [0]


def test_a_gene_of_one_large_batch_is_no_marker():
    rng = np.random.default_rng(2)
    types, batch = np.tile(["a", "b"], 500), np.repeat(["one", "two"], [900, 100])
    X = rng.normal(size=(1000, 30))
    X[:, 0] += 0.9 * (types == "b")  # in both batches
    X[:, 1] += 2.0 * ((types == "b") & (batch == "one")) - 2.0 * ((types == "b") & (batch == "two"))
    adata = anndata.AnnData(X, obs={"type": types, "batch": batch})
    assert select_markers(adata, "type", 1)["gene"].tolist() == ["1"]
    assert select_markers(adata, "type", 1, batch_key="batch")["gene"].tolist() == ["0"]


@pytest.mark.parametrize("dense", [False, True])
def test_results_survive_a_file_and_backed_data_gives_the_same(adata, dense, tmp_path):
    pytest.importorskip("dask.array")
    adata.obs["batch"] = np.where(np.arange(120) < 80, "one", "two")
    types = adata.obs["type"].astype(object)
    types.iloc[:10] = np.nan
    adata.obs["type"] = types
    adata.X = adata.X.toarray() if dense else adata.X
    expected = select_markers(adata, "type", 4, batch_key="batch")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    assert backed.uns["gsvp_markers"]["names"].tolist() == list(expected["gene"])
    markers = select_markers(backed, "type", 4, batch_key="batch")
    pd.testing.assert_frame_equal(markers, expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"view of a backed AnnData.*to_memory"):
        select_markers(backed[20:], "type", 4)
    backed.file.close()


def test_backed_data_is_read_by_chunks_of_rows(tmp_path, monkeypatch):
    """No chunk has more than a thousand rows, whatever is done with it."""
    pytest.importorskip("dask.array")
    adata = make_cells(3500, 80, 3, n_markers=4)
    expected = select_markers(adata, "cell_type", 5)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    rows, plain = [], chunks.as_rows
    monkeypatch.setattr(chunks, "as_rows", lambda X: rows.append(X.shape[0]) or plain(X))
    markers = select_markers(backed, "cell_type", 5)
    backed.file.close()
    assert list(markers["gene"]) == list(expected["gene"])
    assert 0 < max(rows) <= 1000


@pytest.mark.parametrize("dense", [False, True])
def test_backed_data_is_never_held(dense, tmp_path):
    """The peak of memory stays below that of the values alone, which are on disk."""
    dask = pytest.importorskip("dask")
    rng = np.random.default_rng(0)
    shape = (8000, 2100) if dense else (80_000, 200)
    X = rng.random(shape, dtype=np.float32)
    X[::3, 7] += 1.0
    X = X if dense else sp.csr_matrix(np.where(rng.random(shape) < 0.3, X, np.float32(0.0)))
    size = X.nbytes if dense else X.data.nbytes + X.indices.nbytes
    types = np.array(["a", "b", "c"])[np.arange(shape[0]) % 3]
    anndata.AnnData(X, obs={"type": types}).write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with dask.config.set(scheduler="synchronous"):  # a chunk at a time, on any machine
        select_markers(backed, "type", 1)  # imports what it needs
        tracemalloc.start()
        markers = select_markers(backed, "type", 3)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    backed.file.close()
    assert markers["gene"][0] == "7"
    assert peak < 0.7 * size


def test_sparse_features_are_never_made_dense():
    X = sp.random(60, 200_000, density=0.001, format="csr", dtype=np.float32, random_state=0)
    types = np.repeat(["a", "b"], 30)
    X = X + sp.csr_matrix(
        (np.full(30, 3.0, np.float32), (np.arange(30), np.zeros(30, int))), X.shape
    )
    adata = anndata.AnnData(X.tocsr(), obs={"type": types})
    tracemalloc.start()
    markers = select_markers(adata, "type", 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert markers["gene"][0] == "0"
    assert peak < 60 * 200_000 * 8 / 1.2  # dense it would be 96 MB, and several copies of it


def test_refusals_say_what_to_do(adata, monkeypatch):
    with pytest.raises(ValueError, match=r"groupby='kind' is not a column of obs: there are"):
        select_markers(adata, "kind")
    with pytest.raises(ValueError, match="n_genes must be an integer of at least 1, got 0"):
        select_markers(adata, "type", 0)
    with pytest.raises(ValueError, match=r"layer='raw' does not exist"):
        select_markers(adata, "type", layer="raw")
    with pytest.raises(ValueError, match="must be an AnnData, got ndarray"):
        select_markers(adata.X.toarray(), "type")
    monkeypatch.setitem(sys.modules, "anndata", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r"sparsegsvp\[omics\]"):
        select_markers(adata, "type")
