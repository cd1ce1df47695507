"""Selection on AnnData: where results go, what stays sparse, what stays on disk."""

import builtins
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sparsegsvp import GSVPSVM, PGDGSVPSVM
from sparsegsvp.scverse import select_features

anndata = pytest.importorskip("anndata")

MODEL = GSVPSVM(n_features=4)


@pytest.fixture
def adata():
    """Three groups, a marker gene each (3, 7, 11), 90% zeros elsewhere."""
    rng = np.random.default_rng(0)
    groups = np.array(["B", "NK", "T"])[np.arange(120) % 3]
    X = np.where(rng.random((120, 40)) < 0.1, rng.normal(2.0, 1.0, (120, 40)), 0.0)
    for group, gene in (("B", 3), ("NK", 7), ("T", 11)):
        X[groups == group, gene] += rng.normal(3.0, 0.3, 40)
    found = anndata.AnnData(sp.csr_matrix(X.astype(np.float32)), obs={"type": groups})
    found.var_names = [f"g{j}" for j in range(40)]
    found.layers["shuffled"] = found.X[:, ::-1].tocsr()
    return found


def test_results_are_those_of_the_estimator_under_the_agreed_names(adata):
    expected = GSVPSVM(n_features=4).fit(adata.X, adata.obs["type"].to_numpy())
    assert select_features(adata, groupby="type", estimator=MODEL) is None
    np.testing.assert_array_equal(adata.var["gsvp_selected"], expected.support_)
    assert set(adata.var_names[adata.var["gsvp_selected"]]) >= {"g3", "g7", "g11"}
    for group, weights in zip(["B", "NK", "T"], expected.coef_):
        np.testing.assert_array_equal(adata.var[f"gsvp_weight_{group}"], weights)
    assert adata.uns["gsvp"]["groups"].tolist() == ["B", "NK", "T"]
    assert adata.uns["gsvp"]["params"]["groupby"] == "type"
    assert not hasattr(MODEL, "coef_")  # the caller's estimator is not fitted


def test_a_layer_a_copy_and_another_key(adata):
    found = select_features(
        adata, "type", layer="shuffled", estimator=MODEL, key_added="panel", copy=True
    )
    assert "panel_selected" not in adata.var and "panel" not in adata.uns
    assert set(found.var_names[found.var["panel_selected"]]) >= {"g36", "g32", "g28"}
    assert found.uns["panel"]["params"]["layer"] == "shuffled"


def test_observations_without_a_group_are_left_out(adata):
    groups = adata.obs["type"].astype(object)
    groups.iloc[:10] = np.nan
    adata.obs["type"] = groups
    select_features(adata, groupby="type", estimator=MODEL)
    expected = GSVPSVM(n_features=4).fit(adata.X[10:], groups.iloc[10:].to_numpy(dtype=str))
    np.testing.assert_allclose(adata.var["gsvp_weight_T"], expected.coef_[2], rtol=1e-12)


def test_weights_of_observations_and_a_size_of_the_panel(adata):
    adata.obs["cells"] = np.arange(120) % 4 + 1.0
    select_features(adata, "type", n_features=3, estimator=MODEL, sample_weight="cells")
    expected = GSVPSVM(n_features=3)
    expected.fit(adata.X, adata.obs["type"].to_numpy(), sample_weight=adata.obs["cells"])
    np.testing.assert_allclose(adata.var["gsvp_weight_B"], expected.coef_[0], rtol=1e-12)
    with pytest.raises(ValueError, match="PGDGSVPSVM takes no sample_weight: leave it out"):
        select_features(adata, "type", estimator=PGDGSVPSVM(), sample_weight="cells")


def test_results_survive_a_file_and_backed_data_gives_the_same(adata, tmp_path):
    pytest.importorskip("dask.array")
    adata.write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    select_features(backed, groupby="type", estimator=MODEL)
    assert backed.isbacked
    select_features(adata, groupby="type", estimator=MODEL)
    np.testing.assert_allclose(
        backed.var["gsvp_weight_B"], adata.var["gsvp_weight_B"], rtol=1e-8, atol=1e-12
    )
    adata.write_h5ad(tmp_path / "b.h5ad")
    again = anndata.read_h5ad(tmp_path / "b.h5ad")
    assert again.uns["gsvp"]["panel"].tolist() == adata.uns["gsvp"]["panel"].tolist()


def test_errors_name_the_argument_and_what_there_is(adata):
    with pytest.raises(ValueError, match=r"groupby='kind' is not a column of obs.*type"):
        select_features(adata, groupby="kind")
    with pytest.raises(ValueError, match=r"layer='raw' does not exist.*shuffled"):
        select_features(adata, groupby="type", layer="raw")
    with pytest.raises(ValueError, match="adata must be an AnnData, got ndarray"):
        select_features(np.eye(3), groupby="type")
    with pytest.raises(ValueError, match=r"adata\.X is empty: name a layer"):
        select_features(anndata.AnnData(obs=adata.obs, var=adata.var), groupby="type")


def test_without_anndata_the_error_names_the_extra(adata, monkeypatch):
    plain = builtins.__import__

    def blocked(name, *args, **options):
        if name.partition(".")[0] == "anndata":
            raise ImportError(name)
        return plain(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", blocked)
    with pytest.raises(ImportError, match=r'pip install "sparsegsvp\[omics\]"'):
        select_features(adata, groupby="type")


def test_200000_sparse_features_are_fitted_without_densifying():
    rng = np.random.default_rng(1)
    n, m = 300, 200_000
    X = sp.random(n, m, density=0.01, format="csr", dtype=np.float32, random_state=rng)
    y = np.arange(n) % 2
    markers = sp.csr_matrix((np.full(150, 2.0, np.float32), (np.arange(1, n, 2), np.full(150, 5))),
                            shape=(n, m))  # fmt: skip
    X = (X + markers).tocsr()
    held = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    tracemalloc.start()
    try:
        with pytest.warns(UserWarning, match="constant feature"):  # all zeros, by chance
            model = GSVPSVM(delta=0.3).fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.support_[5]
    # dense would be 240 MB in float32; the rest is a few vectors of 200,000 numbers per class
    assert peak < 3 * held + 40 * 8 * m < 0.6 * 4 * n * m
