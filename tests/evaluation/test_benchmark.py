"""The benchmark of the comparison runs, resumes, and says what it left out."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest

from sparsegsvp.evaluation.panels import exact_panel

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def adapters():
    spec = importlib.util.spec_from_file_location("_peers", FOLDER / "_peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tiny_run_writes_its_table_and_figure(tmp_path, monkeypatch):
    command = [sys.executable, FOLDER / "compare.py", "--tiny", "--out", tmp_path]
    command += ["--only", "GSVPSVM", "F test"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "compare.md").read_text()
    assert "| GSVPSVM |" in table and "| random panel |" in table
    assert "of 1 sets and sizes" in table and "goal" not in table.lower()
    page = json.loads((tmp_path / "compare-planted.json").read_text())
    assert {row["status"] for row in page["rows"]} == {"ok"}
    assert (tmp_path / "compare.png").stat().st_size > 10_000
    # the page is made again from the files of results, with neither data nor logs
    (tmp_path / "compare-planted.jsonl").unlink()
    command += ["--rebuild", "--page", tmp_path / "again.md"]
    monkeypatch.setattr(sys, "argv", list(map(str, command[1:])))
    monkeypatch.syspath_prepend(FOLDER)
    importlib.import_module("compare").main()
    again = (tmp_path / "again.md").read_text()
    assert again.replace("again.png", "compare.png") == table


@pytest.fixture(scope="module")
def coverage():
    sys.path.insert(0, str(FOLDER))  # for what the benchmarks share
    try:
        spec = importlib.util.spec_from_file_location("bench_coverage", FOLDER / "coverage.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look it up
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(FOLDER))


def test_coverage_of_one_cell_within_binomial_error(coverage):
    # 200 replicates at a nominal 0.95: three standard errors are 0.046
    cell = coverage.Cell(60, "even", "weak")
    found = coverage.stand_in(cell, 200, seed=5)
    assert 0.6 < found["truth"]["balanced_accuracy"] < found["truth"]["auc"] < 0.8
    covered = {}
    for name, ends in found["ends"].items():
        truth = found["truth"][name.removesuffix(" alone")]
        covered[name] = np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert all(covered[name] >= 0.95 - 0.046 for name in coverage.SCORES)
    assert covered["auc alone"] < 0.95 - 0.046  # what the sampling term is for


def test_the_stand_in_is_a_filter_and_a_diagonal_discriminant(coverage):
    cell = coverage.Cell(30, "3to1", "strong")
    y, rng = cell.y, np.random.default_rng(0)
    X = cell.draw(rng, y)
    weights, biases = coverage.fit(X, y[None].astype(float), (~y)[None].astype(float))
    kept = SelectKBest(k=10).fit(X, y).get_support()
    np.testing.assert_array_equal(weights[0] != 0, kept)
    linear = LinearDiscriminantAnalysis(solver="lsqr", priors=[0.5, 0.5])
    one = X[:, kept][:, :1]  # of one feature it is the linear discriminant
    model = linear.fit(one, y)
    w, b = weights[0][kept][0], model.intercept_[0] / model.coef_[0, 0]
    centre = (one[y].mean() + one[~y].mean()) / 2
    assert -b == pytest.approx(centre) and np.sign(w) == np.sign(model.coef_[0, 0])
    total = sum(w * (X[y, j].mean() + X[~y, j].mean()) / 2 for j, w in enumerate(weights[0]))
    assert biases[0] == pytest.approx(-total)


def test_size_of_the_stand_ins_permutation_test(coverage):
    cell, rng = coverage.Cell(30, "even", "none"), np.random.default_rng(2)
    p = [coverage.permutation_p_value(cell.draw(rng, cell.y), cell.y, rng)[0] for _ in range(150)]
    assert np.mean(np.array(p) <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)
    strong = coverage.Cell(30, "even", "perfect")
    assert coverage.permutation_p_value(strong.draw(rng, cell.y), cell.y, rng) == (0.01, 99)


def test_the_real_procedure_goes_on_where_it_was_ended(coverage, tmp_path, monkeypatch, capsys):
    cheap = coverage.GSVPSVMCV(tau=1.0, n_deltas=3, cv=2)
    monkeypatch.setattr(coverage, "GSVPSVMCV", lambda: clone(cheap))
    cells = coverage.chosen_cells(["30-weak"], coverage.REAL_CELLS)
    assert [cell.name for cell in cells] == ["30-even-weak", "30-3to1-weak"]
    log = tmp_path / "log.jsonl"
    settings = {"log": log, "draws": 0}
    ended = coverage.real(cells, 1, 0, minutes=0.0, **settings)  # before the first replicate
    assert ended == [] and "goes on from here" in capsys.readouterr().err
    (one,) = coverage.real(cells[:1], 1, 0, **settings)
    assert one["replicates"] == 1 and one["rejected"] is None
    capsys.readouterr()
    both = coverage.real(cells, 1, 0, **settings)
    assert "replicates: 1 of 2" in capsys.readouterr().err  # the first is not made again
    assert both[0] == one and both[1] != one
    assert 0.3 < one["truth"]["auc"] < 1.0 and 0.2 < one["width"]["auc"] <= 1.0
    assert "not tested" in coverage.table(both)
    with pytest.raises(SystemExit, match="there is no cell 31"):
        coverage.chosen_cells(["31"], coverage.REAL_CELLS)


def test_the_table_goes_between_its_marks(coverage, tmp_path):
    row = {
        "cell": "30-3to1-weak",
        "replicates": 1000,
        "truth": {"balanced_accuracy": 0.6, "auc": 0.7},
        "coverage": dict.fromkeys(coverage.SCORES + coverage.ALONE, 0.95) | {"auc": 0.9},
        "width": dict.fromkeys(coverage.SCORES, 0.3),
        "rejected": 0.2,
        "draws": 150,
    }
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- coverage -->\nold\n<!-- end -->\nafter\n")
    coverage.write_docs([row], page)
    text = page.read_text()
    assert "| 30, 3 to 1, weak |" in text and "**0.900** (0.30)" in text and "old" not in text
    assert "1,000 replicates a cell" in text
    assert "30-3to1-weak auc: 0.900" in text and text.endswith("<!-- end -->\nafter\n")


def test_missing_peers_are_named(adapters, monkeypatch):
    monkeypatch.setattr(adapters.importlib.util, "find_spec", lambda name: None)
    found, missing = adapters.peers()
    assert list(found) == ["mRMR"] and len(missing) == 5
    assert missing["Boruta"] == "boruta is not installed"


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


def test_coverage_of_delongs_interval_within_binomial_error(coverage):
    # 400 replicates at a nominal 0.95: three standard errors are 0.033
    found = coverage.delong(20, 20, 0.95, 400, seed=3)["coverage"]
    assert found["delong"] >= 0.95 - 0.033
    assert found["wald"] < found["delong"]  # why it is not used
    row = coverage.delong(10, 10, 0.85, 5, seed=3)
    assert coverage.delong_table([row]).splitlines()[-1].startswith("| 10 + 10 | 0.85 | ")
