"""`evaluate`, `compare`, `reproduce` and `demo`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import sparsegsvp.reproduce
import sparsegsvp.workflow
from sparsegsvp.report import build_comparison

EVALUATE = ["--tau", "1", "--deltas", "5", "--folds", "3", "--repeats", "1", "--jobs", "1"]


def test_evaluate_agrees_with_select(finished, tmp_path, kit):
    """The same folds, seed and procedure give the same estimate."""
    out = tmp_path / "out"
    words = ["-t", "class", "--id", "sample", "--positive", "ill", *EVALUATE]
    words += ["--permutations", "3", "--max-permutations", "0"]
    result = kit.run("evaluate", finished.path, *words, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "Balanced accuracy:" in result.stdout
    mine = json.loads((out / "results.json").read_text())["evaluation"]
    whole = json.loads((finished.out / "results.json").read_text(encoding="utf-8"))["evaluation"]
    assert mine["scores"] == whole["scores"]
    assert mine["permutation"] == whole["permutation"]
    # too few draws to be gone on with, whatever the limit
    assert mine["description"]["max_permutations"] == 0
    assert whole["description"]["max_permutations"] == 999
    assert (out / "predictions.csv").read_bytes() == (finished.out / "predictions.csv").read_bytes()


def test_evaluate_resumes_a_torn_log(table, tmp_path, kit):
    log = tmp_path / "log.jsonl"
    words = ["evaluate", table, "-t", "class", "--id", "sample", *EVALUATE, "--permutations", "0"]
    whole = kit.run(*words, "--log", log, "--json")
    assert whole.exit_code == 0, whole.stderr
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:2]) + lines[2][:20])
    again = kit.run(*words, "--log", log, "--resume", "--json")
    assert again.exit_code == 0, again.stderr
    assert again.stdout == whole.stdout
    assert log.read_bytes() == content
    refused = kit.run(*words, "--resume")
    assert refused.exit_code == 2 and "--resume needs --log" in refused.stderr


@pytest.mark.parametrize("method", ["F test", "gepsvm"])
def test_evaluate_other_methods(table, kit, method):
    result = kit.run("evaluate", table, "-t", "class", "--id", "sample", "--method", method,
                     "--n-features", "2", "--folds", "3", "--repeats", "1",
                     "--permutations", "0", "--jobs", "1", "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert printed["scores"]["balanced_accuracy"]["value"] > 0.8


def test_compare(table, tmp_path, kit):
    out = tmp_path / "out"
    words = ["compare", table, "-t", "class", "--id", "sample", "--sizes", "2,4,64"]
    words += ["-m", "F test", "-m", "GSVPSVM", "--folds", "3", "--repeats", "1", "--jobs", "1"]
    result = kit.run(*words, "--out", out)
    assert result.exit_code == 0, result.stderr
    for name in ("F test", "GSVPSVM", "random panel"):
        assert name in result.stdout
    with open(out / "comparison.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert {(r["method"], r["size"]) for r in rows} == {
        (m, k) for m in ("F test", "GSVPSVM", "random panel") for k in ("2", "4")
    }
    assert "seconds_per_fit" not in rows[0]
    results = json.loads((out / "results.json").read_text())
    assert results["comparison"]["reference"] == "F test"
    page = (out / "comparison.html").read_text()
    assert "comparison.html" in result.stdout and "F test" in page
    assert page == build_comparison(results)
    refused = kit.run(*words, "-m", "F tset")
    assert refused.exit_code == 2 and "did you mean 'F test'" in refused.stderr
    for name, meant in (("lasso", "l1 logistic"), ("XGBoost", "gradient boosting")):
        refused = kit.run(*words, "-m", name)
        assert refused.exit_code == 2 and f"did you mean '{meant}'?" in refused.stderr
    for sizes in ("two", "0,2", "99"):
        refused = kit.run("compare", table, "-t", "class", "--id", "sample", "--sizes", sizes)
        assert refused.exit_code == 2 and "--sizes" in refused.stderr


def test_compare_lists_its_methods_without_a_table(kit):
    result = kit.run("compare", "--list")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "random forest " in result.stdout and len(lines) >= 17
    assert any(line.startswith("elastic net") and "l1 and an l2" in line for line in lines)


def test_names_of_methods_may_be_spelled_otherwise(table, kit):
    words = ["compare", table, "-t", "class", "--id", "sample", "--sizes", "2", "--folds", "3"]
    words += ["--repeats", "1", "--jobs", "1", "-m", "f-test", "-m", "Elastic_Net", "--json"]
    result = kit.run(*words)
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert {row["method"] for row in rows} == {"F test", "elastic net", "random panel"}


def test_reproduce_passes_on_what_it_is_told(tmp_path, kit, monkeypatch):
    seen = {}

    def fake(which, data, out, progress, *, n_jobs):
        seen.update(which=which, data=data, out=out, n_jobs=n_jobs)
        progress("a stage", 1, 2)
        return SimpleNamespace(page=Path(out) / "index.html", results={"breast": Path(out) / "b"})

    monkeypatch.setattr(sparsegsvp.reproduce, "reproduce", fake)
    result = kit.run("reproduce", "breast", "--out", tmp_path / "r", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert seen == {"which": "breast", "data": None, "out": tmp_path / "r", "n_jobs": 1}
    assert f"Page: {(tmp_path / 'r' / 'index.html').resolve()}" in result.stdout

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sparsegsvp.reproduce, "reproduce", interrupted)
    result = kit.run("reproduce", "all")
    assert result.exit_code == 130 and "run it again to continue" in result.stderr
    result = kit.run("reproduce", "breats")
    assert result.exit_code == 2 and "did you mean 'breast'" in result.stderr


def test_demo_selects_on_the_embedded_data(tmp_path, kit, monkeypatch):
    """Wiring only: `make demo` runs it whole."""
    seen = {}

    def fake(table, **options):
        seen.update(table=table, **options)
        raise ValueError("stop here")

    monkeypatch.setattr(sparsegsvp.workflow, "select_panel", fake)
    result = kit.run("demo", "--out", tmp_path / "d", "--seed", "3")
    assert result.exit_code == 2
    assert seen["table"].X.shape == (569, 30) and seen["table"].positive == "malignant"
    assert "read 569 samples and 30 features from the breast cancer data" in result.stdout
    # what is chosen, and how, is what select chooses
    assert seen["random_state"] == 3 and not {"rule", "tau", "n_features"} & set(seen)
    assert seen["command"] == "sparsegsvp demo --seed 3"
