"""`sparsegsvp select` and its kin: a folder with everything, or one line that says why not."""

from __future__ import annotations

import csv
import json
import shlex
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sparsegsvp import Selection
from sparsegsvp.evaluation import method_names
from sparsegsvp.report import check_document

WRITTEN = sorted(set(Selection.FILES) - {"test-predictions.csv", "figures/", "sizes/"})


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def results_of(folder):
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def repeat_of(result):
    """The words of the command that repeats a run, as the shell takes them."""
    line = result.stdout.partition("Repeat: ")[2].splitlines()[0]
    return shlex.split(line)[1:]


def test_everything_is_written_and_said(finished, kit):
    assert names(finished.out) == WRITTEN
    assert names(finished.out.parent) == ["out", "table.csv"]
    results = check_document(results_of(finished.out))
    assert {row["feature"] for row in results["panel"]} >= {kit.formula, kit.markup}
    assert results["data"]["positive"] == "ill"
    assert results["run"]["command"].startswith("sparsegsvp select ")
    text = finished.result.stdout
    assert "36 samples and 10 features" in text
    assert results["verdict"]["headline"] in text and kit.markup in text
    assert f"Page: {(finished.out / 'index.html').resolve()}" in text
    assert "Balanced accuracy: " in text and "\x1b" not in text
    seconds = json.loads((finished.out / "timings.json").read_text())["seconds"]
    for stage in ("import", "reading", "search", "folds", "permutations", "halves", "page"):
        assert seconds[stage] >= 0


def test_names_that_look_like_code_stay_text(finished, kit):
    panel = rows_of(finished.out / "panel.csv")
    assert {row["feature"] for row in panel} >= {"'" + kit.formula, kit.markup}
    assert {row["higher in"] for row in panel if row["feature"] == kit.markup} == {"well"}
    assert kit.markup not in (finished.out / "index.html").read_text(encoding="utf-8")


def test_the_repeat_line_gives_the_same_bytes(finished, tmp_path, kit):
    words = repeat_of(finished.result)
    assert words[-2:] == ["--out", str(finished.out)]
    result = kit.run(*words[:-1], tmp_path / "again", "--jobs", "2")
    assert result.exit_code == 0, result.stderr
    for name in WRITTEN:
        same = (tmp_path / "again" / name).read_bytes() == (finished.out / name).read_bytes()
        assert same or name == "timings.json"


def test_without_a_target_the_candidates_are_named(tmp_path, kit):
    X, labels, features = kit.planted()
    features[1], X[:, 1] = "sex", np.arange(36) % 2
    path = kit.write_table(tmp_path / "my table.csv", X, labels, features)
    result = kit.run("select", path, "--fast", "--jobs", "1", "--out", tmp_path / "out")
    assert result.exit_code == 2 and not (tmp_path / "out").exists()
    assert "which column has the classes" in result.stderr and "--target" in result.stderr
    first = result.stdout.splitlines()[0]
    assert "'class' (ill 18, well 18), most likely" in first
    command = shlex.split(result.stdout.splitlines()[1])
    assert command[:3] == ["sparsegsvp", "select", str(path)]
    assert command[command.index("--target") + 1] == "class" and "--fast" in command
    done = kit.run(*command[1:], "--set", "folds=2")
    assert done.exit_code == 0, done.stderr


def test_a_dry_run_shows_the_columns_and_writes_nothing(table, tmp_path, kit):
    result = kit.run("select", table, "-t", "class", "--dry-run", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "target" in result.stdout and "Nothing was run" in result.stdout
    assert names(tmp_path) == ["table.csv"]


BAD = {
    "no target": (["-t", "klass"], "there is no column 'klass' (--target)"),
    "kept text": (["-t", "class", "--set", "keep=sample"], "column 'sample'"),
    "positive": (["-t", "class", "--positive", "I"], "--positive"),
    "repeats": (["-t", "class", "--set", "repeats=0"], "--set repeats=... must be"),
    "size": (["-t", "class", "-k", "99"], "--n-features 99 asks for more than the 10"),
    "must": (["-t", "class", "--must", "g77"], "there is no feature 'g77' (--must)"),
    "prevalence": (["-t", "class", "--prevalence", "2"], "--prevalence must be"),
    "cohort": (["-t", "class", "--test", "nowhere.csv"], "no such file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_touches_nothing(table, tmp_path, kit, case):
    words, expected = BAD[case]
    out = tmp_path / "out"
    out.mkdir()
    (out / "panel.csv").write_text("of an earlier run")
    (out / "results.json").write_text('{"format": "sparsegsvp results"}')
    result = kit.run("select", table, *words, "--out", out, "--jobs", "1", "--force")
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("sparsegsvp: ") and expected in last
    assert (out / "panel.csv").read_text() == "of an earlier run"
    assert names(tmp_path) == ["out", "table.csv"]


def test_a_folder_with_other_files_is_refused_before_the_work(table, tmp_path, kit):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "draft.tex").write_text("mine")
    result = kit.run("select", table, "-t", "class", "--out", tmp_path / "thesis", "--force")
    assert result.exit_code == 2 and "draft.tex" in result.stderr
    assert "folds" not in result.stderr and names(tmp_path / "thesis") == ["draft.tex"]


@pytest.mark.parametrize(
    ("number", "jobs"), [(signal.SIGTERM, 1), (signal.SIGINT, 2), (signal.SIGTERM, 2)]
)
def test_an_interrupt_leaves_nothing(tmp_path, kit, number, jobs):
    path = kit.write_table(tmp_path / "t.csv", *kit.planted(n=200, m=400))
    child = kit.start("select", path, "-t", "class", "--set", "repeats=400", "--jobs", jobs,
                      "--out", tmp_path / "out")  # fmt: skip
    for line in child.stderr:
        if line.startswith(b"folds"):
            break
    time.sleep(0.5)
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == (130 if number == signal.SIGINT else 128 + number)
    text = errors.decode()
    assert "Traceback" not in text and names(tmp_path) == ["t.csv"]
    if number == signal.SIGINT:
        assert text.strip().splitlines()[-1] == "sparsegsvp: interrupted; nothing was written"


def test_a_cohort_batches_groups_and_a_given_panel_at_once(tmp_path, kit):
    X, labels, features = kit.planted(n=48)

    def write(name, X, order=1):
        path = kit.write_table(tmp_path / name, X[:, ::order], labels, features[::order])
        lines = path.read_text().splitlines()
        more = ["patient,plate", *(f"p{i // 2},{'AB'[i % 2]}" for i in range(48))]
        path.write_text("\n".join(f"{a},{b}" for a, b in zip(lines, more)))
        return path

    path = write("t.csv", X)
    other = write("other.csv", kit.planted(n=48, seed=9)[0], -1)
    words = ["select", path, "-t", "class", "--group", "patient", "--batch", "plate", *kit.fast]
    words += ["--panel", "g1, g2", "--test", other, "--prevalence", "0.2"]
    result = kit.run(*words, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    results = results_of(tmp_path / "out")
    assert results["data"]["n_groups"] == 24 and results["batches"][0]["name"] == "plate"
    assert results["given"]["names"] == ["g1", "g2"] and results["prevalence"] == 0.2
    assert results["cohort"]["scores"]["balanced_accuracy"]["value"] > 0.85
    assert len(rows_of(tmp_path / "out" / "test-predictions.csv")) == 48
    assert "On other.csv, 48 samples:" in result.stdout and "Given panel: " in result.stdout
    assert "--prevalence 0.2" in results["run"]["command"]


def test_a_terminal_that_knows_only_ascii(tmp_path, kit):
    X, labels, features = kit.planted()
    features[1] = "β-actin"
    labels = ["gesünd" if label == "well" else label for label in labels]
    path = kit.write_table(tmp_path / "table.csv", X, labels, features)
    child = kit.start("select", path, "-t", "class", *kit.fast, "--out", tmp_path / "out",
                      PYTHONIOENCODING="ascii")  # fmt: skip
    out, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    assert "ges\\xfcnd" in out.decode("ascii")
    assert "gesünd" in (tmp_path / "out" / "panel.csv").read_text(encoding="utf-8")


def test_predict_keeps_the_names_and_finds_the_columns(finished, tmp_path, kit):
    model = finished.out / "model.skops"
    straight = kit.run("predict", model, finished.path)
    assert straight.exit_code == 0, straight.stderr
    rows = list(csv.DictReader(straight.stdout.splitlines()))
    assert [row["sample"] for row in rows] == [f"s{i}" for i in range(36)]
    with open(finished.path) as handle:
        cells = [row[::-1] + ["A"] for row in csv.reader(handle)]
    cells[0][-1] = "site"
    with open(tmp_path / "turned.csv", "w", newline="") as handle:
        csv.writer(handle, delimiter=";").writerows(cells)
    out = tmp_path / "calls.csv"
    again = kit.run("predict", model, tmp_path / "turned.csv", "--set", "id=sample", "--out", out)
    assert again.exit_code == 0, again.stderr
    assert rows_of(out) == rows and "predicted are 1" in again.stdout
    refused = kit.run("predict", model, finished.path, "--out", out)
    assert refused.exit_code == 2 and "--force" in refused.stderr
    (tmp_path / "few.csv").write_text("sample,g1,g2\ns1,1,2\ns2,2,3\n")
    refused = kit.run("predict", model, tmp_path / "few.csv")
    assert refused.exit_code == 2 and "missing" in refused.stderr and kit.markup in refused.stderr


def test_predict_at_a_prevalence_and_against_labels(finished, kit):
    model = finished.out / "model.skops"
    words = ["predict", model, finished.path, "--positive", "ill"]
    base = list(csv.DictReader(kit.run(*words).stdout.splitlines()))
    rare = list(csv.DictReader(kit.run(*words, "--prevalence", "0.1").stdout.splitlines()))
    for one, two in zip(base, rare):
        p, q = float(one["probability of ill"]), float(two["probability of ill"])
        assert q * (1 - p) * 9 == pytest.approx(p * (1 - q), abs=1e-6)
    same = kit.run(*words, "--prevalence", "training")  # 18 of each
    for one, two in zip(base, csv.DictReader(same.stdout.splitlines()), strict=True):
        assert float(one["probability of ill"]) == pytest.approx(float(two["probability of ill"]))
    for wrong in ("0", "1.5", "often"):
        refused = kit.run(*words, "--prevalence", wrong)
        assert refused.exit_code == 2 and "--prevalence" in refused.stderr
    judged = kit.run(*words, "--target", "class")
    assert judged.exit_code == 0, judged.stderr
    assert "alanced accuracy" in judged.stderr and "label" in judged.stdout.splitlines()[0]


def test_a_damaged_model_is_the_files_fault_and_a_bug_is_ours(finished, tmp_path, kit, monkeypatch):
    broken = tmp_path / "model.skops"
    broken.write_bytes((finished.out / "model.skops").read_bytes()[:200])
    result = kit.run("predict", broken, finished.path)
    assert result.exit_code == 2 and "model.skops" in result.stderr
    monkeypatch.setattr("sparsegsvp.workflow.run.make_procedure", lambda *_: 1 / 0)
    result = kit.run("select", finished.path, "-t", "class", "--out", tmp_path / "out")
    assert result.exit_code == 1 and "a fault of sparsegsvp, not of your file" in result.stderr


def test_compare(table, tmp_path, kit):
    words = ["compare", table, "-t", "class", "--sizes", "2,4,64", "-m", "f-test,GSVPSVM"]
    words += ["--set", "folds=3", "--set", "repeats=1", "--jobs", "1"]
    result = kit.run(*words, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    rows = rows_of(tmp_path / "out" / "comparison.csv")
    assert {r["size"] for r in rows} == {"2", "4"}
    assert {"F test", "GSVPSVM", "random panel"} == {r["method"] for r in rows}
    assert "F test" in result.stdout and "index.html" in result.stdout
    for wrong in ("two", "0,2", "99"):
        refused = kit.run(
            "compare", table, "-t", "class", "--sizes", wrong, "--out", tmp_path / "o"
        )
        assert refused.exit_code == 2 and "--sizes" in refused.stderr
    unknown = kit.run("compare", table, "-t", "class", "-m", "F tset", "--out", tmp_path / "o")
    assert unknown.exit_code == 2 and "Did you mean 'F test'" in unknown.stderr
    assert all(name in unknown.stderr for name in method_names())


def test_reproduce_passes_on_what_it_is_told(tmp_path, kit, monkeypatch):
    seen = {}

    def fake(which, data, out, progress, *, n_jobs):
        seen.update(which=which, data=data, out=out, n_jobs=n_jobs)
        progress("a stage", 1, 2)
        return SimpleNamespace(page=Path(out) / "index.html", results={"breast": Path(out) / "b"})

    monkeypatch.setitem(sys.modules, "sparsegsvp.reproduce", SimpleNamespace(reproduce=fake))
    result = kit.run("reproduce", "breast", "--out", tmp_path / "r", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert seen == {"which": "breast", "data": None, "out": tmp_path / "r", "n_jobs": 1}
    assert f"Page: {(tmp_path / 'r' / 'index.html').resolve()}" in result.stdout
    result = kit.run("reproduce", "breats")
    assert result.exit_code == 2 and "did you mean 'breast'" in result.stderr


def test_the_demo_runs_twice_into_the_same_folder(tmp_path, kit):
    for _ in range(2):
        result = kit.run("demo", "--fast", "--jobs", "1", "--out", tmp_path / "d")
        assert result.exit_code == 0, result.stderr
    assert f"Page: {(tmp_path / 'd' / 'index.html').resolve()}" in result.stdout
    results = results_of(tmp_path / "d")
    assert results["run"]["command"] == "sparsegsvp demo --fast"
    assert results["verdict"]["answer"] == "signal"
