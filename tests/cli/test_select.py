"""`sparsegsvp select`: a folder with everything, or one line that says why not."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparsegsvp import Selection, load_model, select_panel
from sparsegsvp.io import read_table
from sparsegsvp.report import validate

WRITTEN = sorted(set(Selection.FILES) - {"test-predictions.csv", "figures/"})
CHEAP = {"tau": 1.0, "n_deltas": 4, "folds": 2, "fast": True}


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_everything_is_written(finished, kit):
    assert names(finished.out) == WRITTEN
    assert names(finished.out.parent) == ["out", "table.csv"]
    results = json.loads((finished.out / "results.json").read_text(encoding="utf-8"))
    validate(results)
    assert {row["feature"] for row in results["panel"]} >= {kit.formula, kit.markup}
    assert results["data"]["positive"] == "ill"
    assert results["run"]["command"].startswith("sparsegsvp select ")
    assert len(results["evaluation"]["permutation"]["distribution"]) == 3
    assert results["stability"]["n_panels"] == 4
    assert results["run"]["parameters"]["outer_folds"] == 3


def test_the_panel_is_said_before_the_estimate(finished, kit):
    text = finished.result.stdout
    assert "read 36 samples and 10 features from table.csv" in text
    assert text.index(kit.markup) < text.index("Balanced accuracy:")
    assert f"Report: {(finished.out / 'report.html').resolve()}" in text
    assert "Repeat: sparsegsvp select" in text
    # plain lines where there is no terminal
    assert "nested cross-validation ..." in finished.result.stderr


def test_names_that_look_like_code_stay_text(finished, kit):
    panel = rows_of(finished.out / "panel.csv")
    assert {row["feature"] for row in panel} >= {"'" + kit.formula, kit.markup}
    assert {row["direction in ill"] for row in panel if row["feature"] == kit.markup} == {"lower"}
    page = (finished.out / "report.html").read_text(encoding="utf-8")
    assert kit.markup not in page
    assert "\x1b" not in finished.result.stdout


def test_out_of_fold_predictions_can_be_looked_up(finished):
    rows = rows_of(finished.out / "predictions.csv")
    assert [row["sample"] for row in rows] == [f"s{i}" for i in range(36)]
    right = np.mean([row["correct"] == "yes" for row in rows])
    assert right > 0.8
    for row in rows:
        assert (row["label"] == row["prediction"]) == (row["correct"] == "yes")
        total = float(row["probability of ill"]) + float(row["probability of well"])
        assert total == pytest.approx(1)


def test_a_second_run_gives_the_same_bytes_with_two_workers(finished, tmp_path, kit):
    again = tmp_path / "again"
    words = list(finished.words)
    words[words.index("--jobs") + 1] = "2"
    result = kit.run(*words, "--out", again, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    for name in WRITTEN:
        same = (again / name).read_bytes() == (finished.out / name).read_bytes()
        assert same or name == "timings.json"


def test_the_model_knows_the_names(finished, kit):
    import pandas as pd

    model = load_model(finished.out / "model.skops")
    frame = pd.read_csv(finished.path).drop(columns=["sample", "class"])
    assert list(model.feature_names_in_) == list(frame.columns)
    assert np.mean(model.predict(frame) == np.repeat(["ill", "well"], 18)) > 0.9
    panel = frame.columns[model.get_support()]
    left_out = {name: f"other {name}" for name in frame if name not in panel}
    np.testing.assert_array_equal(
        model.predict(frame.rename(columns=left_out)), model.predict(frame)
    )
    with pytest.raises(ValueError) as caught:
        model.predict(frame.rename(columns={panel[0]: "other"}))
    assert str(caught.value) == f"columns of the panel are missing: {panel[0]!r}"


def test_json_is_all_that_is_printed(table, tmp_path, kit):
    out = tmp_path / "out"
    result = kit.run("select", table, "-t", "class", "--id", "sample", *kit.fast,
                     "--out", out, "--json")  # fmt: skip
    assert result.exit_code == 0 and result.stderr == ""
    printed = json.loads(result.stdout)
    assert printed["out"] == str(out.resolve())
    assert kit.formula in printed["panel"]
    assert printed["p_value"] is None
    assert any("permutation test (fast run)" in text for text in printed["skipped"])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "(fast run)" in page and "--fast" in page  # the latter in the command to repeat


def test_a_plan_is_counted_and_refused_by_its_flag(table, tmp_path, kit):
    words = ["-t", "class", "--id", "sample", *kit.fast, "--plan"]
    counted = kit.run("select", table, *words, "--dry-run", "--json")
    assert counted.exit_code == 0, counted.stderr
    assert json.loads(counted.stdout)["fits"]["learning curve"] == 50
    X, labels, _ = kit.planted(n=14)
    few = kit.write_table(tmp_path / "few.csv", X, labels, [f"g{j}" for j in range(X.shape[1])])
    refused = kit.run("select", few, *words, "--out", tmp_path / "out")
    assert refused.exit_code == 2 and not (tmp_path / "out").exists()
    assert "2 of class 'ill'" in refused.stderr and "leave out --plan" in refused.stderr


def test_every_format_gives_the_same_panel(tmp_path, kit):
    import pandas as pd

    X, labels, _ = kit.planted(n=24)
    features = [f"g {j}" for j in range(X.shape[1])]  # pandas would write "=" as a formula
    path = kit.write_table(tmp_path / "a.csv", X, labels, features)
    frame = pd.read_csv(path)
    frame.to_csv(tmp_path / "a.tsv", sep="\t", index=False)
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    np.savez(tmp_path / "a.npz", X=X, feature_names=features, **{"class": labels})
    frame.set_index("sample").T.to_csv(tmp_path / "turned.csv")
    header = "@relation a\n@attribute sample string\n"
    header += "".join(f"@attribute '{f}' real\n" for f in features)
    header += "@attribute class {ill,well}\n@data\n"
    (tmp_path / "a.arff").write_text(header + path.read_text().split("\n", 1)[1])
    found = {}
    for name in ("a.csv", "a.tsv", "a.xlsx", "a.parquet", "a.arff", "a.npz", "turned.csv"):
        plain = name in ("a.npz", "turned.csv")
        read = read_table(
            tmp_path / name,
            target="class",
            id=None if plain else "sample",
            transpose=name == "turned.csv",
        )
        run = select_panel(read, **CHEAP)
        found[name] = [(row["feature"], row["weights"]) for row in run.document["panel"]]
    try:
        import anndata
    except ImportError:
        pass
    else:
        obs = pd.DataFrame({"class": labels}, index=[f"s{i}" for i in range(24)])
        data = anndata.AnnData(csr_matrix(X), obs=obs, var=pd.DataFrame(index=features))
        data.write_h5ad(tmp_path / "a.h5ad")
        run = select_panel(read_table(tmp_path / "a.h5ad", target="class"), **CHEAP)
        found["a.h5ad"] = [(row["feature"], row["weights"]) for row in run.document["panel"]]
    reference = found.pop("a.csv")
    for name, panel in found.items():
        assert [f for f, _ in panel] == [f for f, _ in reference], name
        weights = [np.array([w for _, w in p]) for p in (panel, reference)]
        np.testing.assert_allclose(*weights, rtol=1e-6, err_msg=name)


BAD = {
    "no target": (["-t", "klass"], "there is no column 'klass' (--target)"),
    "categorical": (
        ["-t", "class", "--keep", "sample"],
        "column 'sample' (--keep) holds text ('s0' on line 2); code it as numbers",
    ),
    "kept": (["-t", "class", "--keep", "g1,h1"], "there is no column 'h1' (--keep)"),
    "kept target": (["-t", "class", "--keep", "class"], "as --target and as --keep"),
    "positive": (["-t", "class", "--id", "sample", "--positive", "I"], "no sample has the label"),
    "impute": (
        ["-t", "class", "--id", "sample", "--impute", "mean"],
        "--impute must be 'median' or 'none', got 'mean'",
    ),
    "q": (
        ["-t", "class", "--id", "sample", "--q", "2"],
        "--q must be a number above 0 and at most 1, got 2",
    ),
    "repeats": (
        ["-t", "class", "--id", "sample", "--repeats", "0"],
        "--repeats must be an integer of at least 1, got 0",
    ),
    "panel": (["-t", "class", "--id", "sample", "--n-features", "99"], "n_features"),
    "on": (["-t", "class", "--on", "sample"], "--on names a column of the file given"),
    "cohort": (["-t", "class", "--id", "sample", "--test", "nowhere.csv"], "no such file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_touches_nothing(table, tmp_path, kit, case):
    words, expected = BAD[case]
    out = tmp_path / "out"
    out.mkdir()
    (out / "panel.csv").write_text("of an earlier run")
    (out / "results.json").write_text('{"format": "sparsegsvp-results"}')
    result = kit.run("select", table, *words, "--out", out, "--jobs", "1", "--quiet", "--force")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("sparsegsvp: ") and result.stderr.count("\n") == 1
    assert expected in result.stderr
    assert (out / "panel.csv").read_text() == "of an earlier run"
    assert names(tmp_path) == ["out", "table.csv"]


def test_debug_shows_the_traceback(table, tmp_path, kit):
    result = kit.run("select", table, "-t", "nope", "--out", tmp_path / "out", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr and "InputError" in result.stderr


def test_a_folder_with_other_files_is_refused_before_the_work(table, tmp_path, kit):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "draft.tex").write_text("mine")
    start = time.perf_counter()
    result = kit.run("select", table, "-t", "class", "--id", "sample", "--out", tmp_path / "thesis")
    assert result.exit_code == 2
    assert "the folder holds other files ('draft.tex')" in result.stderr
    assert time.perf_counter() - start < 5
    assert names(tmp_path / "thesis") == ["draft.tex"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda X, y, n: (X[:21], y[:21], n), "class 'well' has only 3 samples"),
        (lambda X, y, n: (X[:18], y[:18], n), "has only the value 'ill'"),
        (lambda X, y, n: (np.where(X > 2, np.nan, X), y, n), "values are missing; use --impute"),
        (lambda X, y, n: (X * 1e300, y, n), "is too large"),
        (lambda X, y, n: (np.ones_like(X), y, n), "constant"),
    ],
)
def test_tables_that_cannot_serve(tmp_path, kit, change, expected):
    path = kit.write_table(tmp_path / "t.csv", *change(*kit.planted()))
    result = kit.run("select", path, "-t", "class", "--id", "sample", "--impute", "none",
                     *kit.fast, "--out", tmp_path / "out", "--quiet")  # fmt: skip
    assert result.exit_code == 2
    assert expected in result.stderr
    assert names(tmp_path) == ["t.csv"]


def test_control_c_leaves_nothing(tmp_path, kit):
    path = kit.write_table(tmp_path / "t.csv", *kit.planted(n=60, m=40))
    words = ["-m", "sparsegsvp.cli", "select", str(path), "-t", "class", "--id", "sample"]
    words += ["--repeats", "50", "--jobs", "1", "--out", str(tmp_path / "out")]
    child = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    for line in child.stderr:
        if line.startswith(b"nested"):
            break
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert errors.decode().strip().splitlines()[-1] == (
        "sparsegsvp: interrupted; nothing was written"
    )
    assert b"Traceback" not in errors
    assert names(tmp_path) == ["t.csv"]


def test_an_independent_cohort(table, tmp_path, kit):
    X, labels, features = kit.planted(seed=9)
    other = kit.write_table(tmp_path / "other.csv", X[:, ::-1], labels, features[::-1])
    out = tmp_path / "out"
    words = ["select", table, "-t", "class", "--id", "sample", *kit.fast, "--out", out]
    result = kit.run(*words, "--test", other)
    assert result.exit_code == 0, result.stderr
    assert "On other.csv, 36 samples:" in result.stdout
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert results["test"]["scores"]["balanced_accuracy"]["value"] > 0.85
    assert np.sum(results["test"]["confusion"]["counts"]) == 36
    rows = rows_of(out / "test-predictions.csv")
    assert len(rows) == 36 and rows[0]["label"] == "ill"
    found = results["test"]
    assert {"accuracy", "sensitivity", "specificity", "auc", "ppv", "npv", "brier"} <= set(
        found["scores"]
    )
    assert found["positive"] == "ill" and found["prevalence"] == 0.5 and found["thresholds"]
    assert "In another cohort (other.csv; 36 samples" in results["verdict"]["sentences"][-1]
    assert "validated on an independent cohort of 36" in results["methods"]["paragraph"]
    assert "Positive predictive value: " in result.stdout and "prevalence of 50%" in result.stdout
    # what was said of the estimate is still said
    assert "the whole procedure reaches" in result.stdout
    page = (out / "report.html").read_text(encoding="utf-8")
    # lede, tile, section, and the lede again in the checklist
    assert page.count("In another cohort") == 4
    assert "no part in it" in page and "Where to draw the line" in page

    words += ["--force"]
    result = kit.run(*words, "--test", table)
    assert result.exit_code == 2
    assert "is the training table itself" in result.stderr
    kit.write_table(other, X, np.where(labels == "ill", "sick", "well"), features)
    result = kit.run(*words, "--test", other)
    assert result.exit_code == 2
    assert "label 'sick' does not occur in table.csv" in result.stderr


def test_a_cohort_in_other_units_at_a_prevalence(table, tmp_path, kit):
    X, labels, features = kit.planted(seed=9)
    X[:, 0] += 6.0
    other = kit.write_table(tmp_path / "other.csv", X, labels, features)
    words = ["select", table, "-t", "class", "--id", "sample", *kit.fast, "--out", tmp_path / "o"]
    result = kit.run(*words, "--test", other, "--prevalence", "0.1")
    assert result.exit_code == 0, result.stderr
    document = json.loads((tmp_path / "o" / "results.json").read_text(encoding="utf-8"))
    notice = next(n for n in document["notices"] if n["code"] == "shift")
    assert features[0] in notice["text"] and "standard deviations higher" in notice["text"]
    shifted = {f["feature"]: f["shifted"] for f in document["test"]["shift"]}
    assert shifted.pop(features[0]) and not any(shifted.values())
    assert document["test"]["prevalence"] == document["figures"]["decision"]["prevalence"] == 0.1
    assert "--prevalence 0.1" in document["run"]["command"]
    for wrong in ("0", "1.5"):
        result = kit.run(*words, "--prevalence", wrong, "--force")
        assert result.exit_code == 2 and "lies between 0 and 1" in result.stderr


def test_groups_are_never_split(tmp_path, kit):
    X, labels, features = kit.planted()
    patients = [f"p{i // 3}" for i in range(36)]
    lines = kit.write_table(tmp_path / "t.csv", X, labels, features).read_text().splitlines()
    lines = [f"{line},{p}" for line, p in zip(lines, ["patient", *patients])]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    read = read_table(tmp_path / "t.csv", target="class", id="sample", group="patient")
    run = select_panel(read, **CHEAP)
    for fold in run.document["evaluation"]["folds"]:
        test = {patients[i] for i in fold["test"]}
        assert test.isdisjoint(patients[i] for i in range(36) if i not in set(fold["test"]))
    assert run.document["data"]["n_groups"] == 12


def test_noise_is_called_so(tmp_path, kit):
    path = kit.write_table(tmp_path / "t.csv", *kit.planted(shift=0.0, seed=4))
    words = ["select", path, "-t", "class", "--id", "sample", *kit.cheap]
    words += ["--permutations", "19", "--resamples", "0", "--out", tmp_path / "o"]
    result = kit.run(*words)
    assert result.exit_code == 0, result.stderr
    assert "No signal" in result.stdout
    results = json.loads((tmp_path / "o" / "results.json").read_text())
    assert results["verdict"]["level"] == results["evaluation"]["verdict"] == "none"
    assert results["run"]["skipped"] == ["Stability in half samples (none asked for)."]


def test_medians_and_logarithms_belong_to_the_model(tmp_path, kit):
    """A saved model takes raw values with gaps, as the training table had them."""
    import pandas as pd

    X, labels, features = kit.planted()
    X = np.exp2(X + 5)
    X[::7, 0] = np.nan
    path = kit.write_table(tmp_path / "t.csv", X, labels, features)
    path.write_text(path.read_text().replace("nan", "NA"))
    read = read_table(path, target="class", id="sample")
    run = select_panel(read, log2=True, **CHEAP)
    assert [name for name, _ in run.model.steps] == ["log2", "impute", "model"]
    medians = run.model.named_steps["impute"].statistics_
    assert medians[0] == pytest.approx(np.nanmedian(np.log2(X[:, 0])))
    assert kit.formula in [row["feature"] for row in run.document["panel"]]
    frame = pd.DataFrame(X, columns=features)
    assert np.mean(run.model.predict(frame) == labels) > 0.85


def test_three_classes(tmp_path, kit):
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 14)
    X = rng.normal(size=(42, 6)).round(4)
    X[:14, 0] += 4
    X[14:28, 1] += 4
    path = kit.write_table(tmp_path / "t.csv", X, labels, [f"g{j}" for j in range(6)])
    run = select_panel(read_table(path, target="class", id="sample"), **CHEAP)
    assert run.document["data"]["positive"] is None
    assert {"g0", "g1"} <= {row["feature"] for row in run.document["panel"]}
    assert len(run.document["panel"][0]["weights"]) == 3
