"""Files made to break a reader are refused or read right; none crashes what previews them."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsegsvp.cli.preview import preview_table
from sparsegsvp.io import InputError, load_model, read_table


def refusal(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **options)
    return str(caught.value)


def sheet(n: int = 12) -> pd.DataFrame:
    X = np.random.default_rng(5).normal(size=(n, 4)).round(6)
    frame = pd.DataFrame(X, columns=["g1", "g2", "g3", "g4"])
    return frame.assign(**{"class": np.repeat(["ill", "well"], n // 2)})


@pytest.fixture
def annotated(tmp_path):
    anndata = pytest.importorskip("anndata")
    from scipy import sparse

    frame = sheet()
    obs = frame[["class"]].set_axis([f"s{i}" for i in range(12)])
    X = sparse.csr_matrix(frame.iloc[:, :4].to_numpy())
    path = tmp_path / "a.h5ad"
    anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=frame.columns[:4])).write_h5ad(path)
    return path


@pytest.mark.parametrize("part", ["indices", "indptr", "negative", "shape"])
def test_sparse_indices_are_checked(annotated, part):
    import h5py

    with h5py.File(annotated, "r+") as file:
        if part == "indices":
            file["X/indices"][5] = 4_000_000
        elif part == "negative":
            file["X/indices"][5] = -7
        elif part == "indptr":
            file["X/indptr"][3] = 9_000
        else:
            file["X"].attrs["shape"] = [12, 5]
    assert "damaged" in refusal(annotated, target="class") or part == "shape"


def test_links_into_other_files_are_refused(annotated, tmp_path):
    import h5py

    other = tmp_path / "other.h5ad"
    other.write_bytes(annotated.read_bytes())
    with h5py.File(annotated, "r+") as file:
        del file["X"]
        file["X"] = h5py.ExternalLink(str(other), "/X")
    assert "'X' is kept in another file, which is not opened" in refusal(annotated, target="class")
    with h5py.File(annotated, "r+") as file:
        del file["X"]
        (tmp_path / "raw").write_bytes(np.arange(48.0).tobytes())
        file.create_dataset("X", (12, 4), "f8", external=[(str(tmp_path / "raw"), 0, 384)])
    assert "kept in another file" in refusal(annotated, target="class")
    with h5py.File(annotated, "r+") as file:
        del file["X"]
        file.create_dataset("X", (1 << 20, 1 << 20), "f8", chunks=(1 << 10, 1 << 10))
    assert "unpacks to" in refusal(annotated, target="class")


def test_what_unpacks_to_more_than_a_table_is_refused(tmp_path):
    path = tmp_path / "a.csv.gz"
    line = b"a,b,class\n" + b"0,0,x\n" * 20_000_000
    path.write_bytes(gzip.compress(line, 9))
    assert "unpacks to" in refusal(path, target="class")
    book = tmp_path / "a.xlsx"
    sheet().to_excel(book, index=False)
    with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/more.bin", bytes(1 << 27))
    assert "unpacks to" in refusal(book, target="class")


@pytest.mark.parametrize(
    ("old", "new"),
    [('r="A13"', 'r="A900000000"'), ('<row r="13"', '<row r="900000000"'),
     ('r="E13"', 'r="ZZZZZ13"'), ('r="E13"', 'r="XFD1048576"')],
)  # fmt: skip
def test_cells_that_no_sheet_has(tmp_path, old, new):
    path, forged = tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    sheet().to_excel(path, index=False)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(forged, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("sheet1.xml"):
                assert old.encode() in data
                data = data.replace(old.encode(), new.encode())
            target.writestr(name, data)
    assert "a sheet has cells as far out as" in refusal(forged, target="class")


def test_our_own_defects_are_not_called_damaged_files(tmp_path, monkeypatch):
    sheet().to_csv(tmp_path / "a.csv", index=False)
    monkeypatch.setattr("sparsegsvp.io.frame._numbers", lambda *cells: None)
    with pytest.raises(TypeError, match="cannot unpack"):
        read_table(tmp_path / "a.csv", target="class")


def test_a_preview_has_limits(tmp_path):
    path = tmp_path / "a.csv"
    sheet().assign(Sex=["m", "f"] * 6).to_csv(path, index=False)
    preview = preview_table(path, drop=["Sex"])
    assert preview["target"] == "class" and preview["proposed"]
    assert preview["table"]["n_samples"] == 12 and preview["shown"]
    assert {"name": "class", "role": "target", "reason": "a guess"} in preview["columns"]
    without = preview_table(path)
    assert without["table"] is None and "holds text" in without["error"][0]
    with pytest.raises(InputError, match=r"takes more than 0.01 seconds"):
        preview_table(path, seconds=0.01)
    with pytest.raises(InputError, match=r"more memory|ended the process"):
        preview_table(path, memory=1 << 25)


ATTACK = Path(os.environ.get("SPARSEGSVP_DATA") or "/nowhere").parent / "findings" / "attack"


@pytest.mark.skipif(not ATTACK.is_dir(), reason="the files of the hostile trial are not here")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("csr_index.h5ad", "damaged"), ("csr_indptr.h5ad", "damaged"),
     ("csr_negative.h5ad", "damaged"),
     ("row9e8.xlsx", "as far out as"), ("rows_missing.parquet", ""), ("hdf5_hang.h5ad", "damaged")],
)  # fmt: skip
def test_files_of_the_hostile_trial(name, expected):
    assert expected in refusal(ATTACK / name, target="class")


@pytest.mark.skipif(not ATTACK.is_dir(), reason="the files of the hostile trial are not here")
def test_a_model_of_another_version_is_refused():
    with pytest.raises(InputError, match=r"model of another version of sparsegsvp; fit it again"):
        load_model(ATTACK / "model.skops")


@pytest.mark.skipif(not ATTACK.is_dir(), reason="the files of the hostile trial are not here")
def test_a_sheet_that_says_it_is_smaller_is_read_whole():
    assert preview_table(ATTACK / "stale_dimension.xlsx")["table"]["n_samples"] == 12
