"""The benchmark of the comparison runs, resumes, and says what it left out."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsegsvp.evaluation.panels import exact_panel

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def adapters():
    spec = importlib.util.spec_from_file_location("_peers", FOLDER / "_peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tiny_run_writes_its_table_and_figure(tmp_path):
    command = [sys.executable, FOLDER / "compare.py", "--tiny", "--out", tmp_path]
    command += ["--only", "GSVPSVM", "F test"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "compare.md").read_text()
    assert "| GSVPSVM |" in table and "| random panel |" in table and "Goal" in table
    page = json.loads((tmp_path / "compare-planted.json").read_text())
    assert {row["status"] for row in page["rows"]} == {"ok"}
    assert (tmp_path / "compare.png").stat().st_size > 10_000


def test_missing_peers_are_named(adapters, monkeypatch):
    monkeypatch.setattr(adapters.importlib.util, "find_spec", lambda name: None)
    found, missing = adapters.peers()
    assert found == {} and len(missing) == 6
    assert missing["mRMR"] == "mrmr is not installed"


@pytest.mark.parametrize("name", ["celer", "skglm MCP", "mRMR", "Boruta", "ReliefF", "abess"])
def test_adapters_put_the_one_informative_feature_first(adapters, name):
    found, missing = adapters.peers()
    if name in missing:
        pytest.skip(missing[name])
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 20)
    X = rng.normal(size=(40, 30))
    X[y == "b", 4] += 3
    X[:, 7] = 1.0  # constant: dropped before the peer sees it
    model = found[name].set_params(**{f"{found[name].steps[-1][0]}__n_features": 3}).fit(X, y)
    assert exact_panel(model, 1, 30).tolist() == [4]
    assert exact_panel(model, 3, 30).size == 3
