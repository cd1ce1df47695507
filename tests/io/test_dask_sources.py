"""Tables opened on disk: the same labels, names and model as if they were read."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from sparsegsvp import GSVPSVM
from sparsegsvp.io import InputError, open_table, read_table

da = pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    found = pd.DataFrame(
        rng.normal(size=(60, 5)).astype(np.float32), columns=[f"g{j}" for j in range(5)]
    )
    found["class"] = np.where(np.arange(60) % 3, "ill", "well")
    found["g1"] += (2.0 * (found["class"] == "ill")).astype(np.float32)
    found["site"] = np.arange(60) // 10
    return found


def fitted(table):
    return GSVPSVM(delta=0.05).fit(table.X, table.y)


def test_a_parquet_folder_is_the_table_of_its_parts(frame, tmp_path, monkeypatch):
    for part, rows in enumerate((slice(0, 25), slice(25, 60))):
        frame[rows].to_parquet(tmp_path / f"part-{part}.parquet", row_group_size=10)
    whole = tmp_path.parent / "whole.parquet"
    frame.to_parquet(whole)
    expected = read_table(whole, target="class", group="site", drop=["g4"], positive="ill")
    monkeypatch.setattr("sparsegsvp.io.lazy._CHUNK_BYTES", 20 * 4 * 4)  # 20 rows of 4 floats
    table = open_table(tmp_path, target="class", group="site", drop=["g4"], positive="ill")
    assert table.X.chunks == ((20, 5, 20, 15), (4,)) and table.X.dtype == np.float32
    assert_array_equal(table.X.compute(), expected.X)
    assert table.feature_names == expected.feature_names == ("g0", "g1", "g2", "g3")
    for name in ("y", "groups"):
        assert_array_equal(getattr(table, name), getattr(expected, name))
    assert_allclose(fitted(table).coef_, fitted(expected).coef_, rtol=1e-8)
    assert len(table.digest) == 64
    assert "opened 60 samples and 4 features in 4 x 1 chunks" in table.record[0]


def test_nulls_are_missing_and_rows_without_a_label_left_out(frame, tmp_path):
    frame.loc[3, "class"] = None
    frame.loc[5, "g2"] = None
    frame.to_parquet(tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet", target="class", drop=["site"])
    assert table.X.shape == (59, 5) and len(table.y) == 59
    assert np.isnan(table.X.compute()).sum() == 1
    assert any("1 sample has no label and was left out (row 4)" in line for line in table.record)
    with pytest.raises(ValueError, match=r"X contains NaN.*impute"):
        fitted(table)


@pytest.mark.parametrize("named", [True, False])
def test_a_zarr_store_of_arrays(frame, tmp_path, named):
    X = frame[[f"g{j}" for j in range(5)]].to_numpy()
    store = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    store.create_array("X", data=X, chunks=(25, 2))
    store.create_array("y", data=(frame["class"] == "ill").to_numpy().astype(np.int8))
    if named:
        store.create_array("feature_names", data=np.array([f"g{j}" for j in range(5)], dtype="U2"))
    table = open_table(tmp_path / "a.zarr", target="y")
    assert table.X.chunks == ((25, 25, 10), (2, 2, 1))
    assert table.feature_names[1] == ("g1" if named else "f1")
    assert table.class_counts() == {"0": 20, "1": 40}
    expected = GSVPSVM(delta=0.05).fit(X, table.y)
    assert_allclose(fitted(table).coef_, expected.coef_, rtol=1e-8)


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("container", ["h5ad", "zarr"])
def test_anndata_on_disk_stays_there(frame, tmp_path, kind, container, monkeypatch):
    anndata = pytest.importorskip("anndata")
    dense = frame[[f"g{j}" for j in range(5)]].to_numpy() * (np.arange(5) != 2)
    X = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "dense": np.asarray}[kind](dense)
    frame.index = [f"cell {i}" for i in range(60)]
    adata = anndata.AnnData(X, obs=frame[["class"]], layers={"raw": X})
    path = tmp_path / f"a.{container}"
    adata.write_h5ad(path) if container == "h5ad" else adata.write_zarr(path)
    monkeypatch.setattr("sparsegsvp.io.lazy._CHUNK_BYTES", 20 * 12 * 4)
    table = open_table(path, target="class", layer="raw", drop=["2"])
    if kind == "csr":
        assert table.X.chunks == ((20, 20, 20), (4,))
        assert sp.issparse(table.X.blocks[0].compute())
    assert table.feature_names == ("0", "1", "3", "4")
    assert table.ids[1] == "cell 1"
    expected = GSVPSVM(delta=0.05).fit(dense[:, [0, 1, 3, 4]], table.y)
    assert_allclose(fitted(table).coef_, expected.coef_, rtol=1e-8)


def test_refusals_say_what_and_where(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"no column 'Class' \(target\); did you mean 'class'"):
        open_table(tmp_path, target="Class")
    with pytest.raises(InputError, match=r"column 'class' holds .*string.*drop=\['class'\]"):
        open_table(tmp_path, target="site")
    with pytest.raises(InputError, match="no sample has the label 'sick'"):
        open_table(tmp_path, target="class", drop=["site"], positive="sick")
    with pytest.raises(InputError, match="no such file or folder"):
        open_table(tmp_path / "b")
    (tmp_path / "c.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="read whole, without dask"):
        open_table(tmp_path / "c.csv")
    frame.rename(columns={"g0": "h0"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: its columns are not those of a\.parquet"):
        open_table(tmp_path, target="class")


def test_without_dask_the_error_names_the_extra(frame, tmp_path, monkeypatch):
    frame.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r'dask is needed here: pip install "sparsegsvp\[dask\]"'):
        open_table(tmp_path, target="class")
