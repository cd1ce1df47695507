"""`sparsegsvp select --dask`: a Parquet folder or a Zarr store as the table."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from sparsegsvp import GSVPSVMCV, load_model

pytest.importorskip("dask.array")


@pytest.fixture
def folder(tmp_path, kit):
    X, labels, names = kit.planted(n=60)
    frame = pd.DataFrame(X, columns=names).assign(**{"class": labels})
    shuffled = frame.sample(frac=1.0, random_state=0)
    (tmp_path / "parts").mkdir()
    shuffled[:25].to_parquet(tmp_path / "parts" / "0.parquet", index=False)
    shuffled[25:].to_parquet(tmp_path / "parts" / "1.parquet", index=False)
    return tmp_path / "parts", shuffled


def test_a_parquet_folder_gives_the_model_of_its_rows(folder, tmp_path, kit):
    path, frame = folder
    out = tmp_path / "out"
    words = ["select", path, "--dask", "-t", "class", "--tau", "1", "--deltas", "6", "--json"]
    result = kit.run(*words, "--out", out)
    assert result.exit_code == 0, result.stderr
    written = json.loads((out / "results.json").read_text())
    assert {p.name for p in out.iterdir()} == {
        "panel.csv", "model.skops", "results.json", "timings.json",
    }  # fmt: skip
    expected = GSVPSVMCV(tau=1.0, n_deltas=6).fit(
        frame.drop(columns="class").to_numpy(), frame["class"].to_numpy(dtype=str)
    )
    model = load_model(out / "model.skops")
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8, atol=1e-12)
    assert {row["feature"] for row in written["panel"]} >= {kit.formula, kit.markup}
    assert written["data"]["counts"] == {"ill": 30, "well": 30}
    assert any("Nested cross-validation" in line for line in written["skipped"])
    printed = json.loads(result.stdout)
    assert printed["panel"] == written["panel"] and "--dask threads" in printed["command"]
    # a formula is not one to a spreadsheet
    assert not any(line.startswith("=") for line in (out / "panel.csv").read_text().splitlines())


def test_a_zarr_store_on_the_scheduler_that_is_named(tmp_path, kit):
    zarr = pytest.importorskip("zarr")
    X, labels, _ = kit.planted(n=40)
    store = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    store.create_array("X", data=X, chunks=(15, 4))
    store.create_array("ill", data=(labels == "ill").astype(np.int8))
    words = ["select", tmp_path / "a.zarr", "-t", "ill", "--deltas", "4", "--tau", "1"]
    result = kit.run(*words, "--dask", "synchronous", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "f0" in (tmp_path / "out" / "panel.csv").read_text()
    for more, message in (
        (["--dask", "--log2"], "--log2 does not go with --dask"),
        (["--dask", "--transpose"], "--transpose does not go with --dask"),
        (["--dask", "--fast"], "--fast does not go with --dask"),
        (["--dask", "--permutations", "9"], "--permutations does not go with --dask"),
        (["--dask", "--positive", "2"], "no sample has the label '2'"),
    ):
        result = kit.run(*words, *more, "--out", tmp_path / "none")
        assert result.exit_code == 2 and message in result.stderr
        assert not (tmp_path / "none").exists()
