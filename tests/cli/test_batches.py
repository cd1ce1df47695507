"""`--batch`: from the column of a file to the words at the top of the page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsegsvp.io import read_table
from sparsegsvp.report import build_report, validate
from sparsegsvp.workflow import plan_selection, select_panel

HOSTILE = "<b>plate</b>"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """48 samples in four plates that go with the class and shift every gene; an even day."""
    rng = np.random.default_rng(2)
    labels = np.repeat(["ill", "well"], 24)
    plate = (labels == "well") * 2 + np.tile([0, 1], 24)
    plate[::8] = rng.permutation(4)[[0, 1, 2, 3, 0, 1]]
    X = rng.normal(size=(48, 60)) + 1.5 * rng.normal(size=(4, 60))[plate]
    path = tmp_path_factory.mktemp("batches") / "table.csv"
    names = ["sample", *(f"G{j}" for j in range(60)), HOSTILE, "run_day", "class"]
    with open(path, "w") as handle:
        handle.write(",".join(names) + "\n")
        for i, row in enumerate(X.round(4)):
            cells = [f"s{i}", *row, f"p<{plate[i]}>", ["mo", "tu"][i // 2 % 2], labels[i]]
            handle.write(",".join(map(str, cells)) + "\n")
    return path


@pytest.fixture(scope="module")
def selected(table, tmp_path_factory):
    from typer.testing import CliRunner

    from sparsegsvp.cli.app import app

    out = tmp_path_factory.mktemp("out") / "out"
    words = ["select", str(table), "-t", "class", "--batch", HOSTILE, "--batch", "run_day"]
    words += ["--tau", "1", "--deltas", "5", "--folds", "3", "--fast", "--jobs", "1"]
    result = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert result.exit_code == 0, result.stderr
    return result.stdout, out, json.loads((out / "results.json").read_text(encoding="utf-8"))


def test_the_audit_is_in_the_results_and_at_the_top(selected):
    printed, _, document = selected
    validate(document)
    plate, day = document["evaluation"]["batches"]
    assert (plate["name"], day["name"]) == (HOSTILE, "run_day")
    assert plate["confounded"] and plate["lost"] and not day["confounded"]
    lede = document["verdict"]["sentences"][-1]
    assert f"class and {HOSTILE} hang together: the panel may show {HOSTILE}" in lede
    assert "run_day" not in lede
    assert lede in printed and plate["sentences"][0] in printed and day["sentences"][2] in printed
    assert f"with the values of {HOSTILE} left out in turn" in document["methods"]["paragraph"]
    codes = [notice["code"] for notice in document["notices"]]
    assert codes[0] == "confounded" and "new batch" in codes
    roles = {c: line["role"] for line in document["data"]["roles"] for c in line["columns"]}
    assert roles[HOSTILE] == roles["run_day"] == "batch"
    assert document["run"]["command"].count("--batch") == 2


def test_the_page_has_a_table_of_batches_and_names_stay_text(selected):
    _, out, document = selected
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Batches: &lt;b&gt;plate&lt;/b&gt;" in page and "<b>plate</b>" not in page
    assert page.count('class="facts batches"') == 2 and "p&lt;0&gt;" in page
    document = json.loads(json.dumps(document))
    document["evaluation"]["batches"][0]["unseen"] = None
    document["evaluation"]["batches"][1]["panel"] = None
    assert "recognised when left out" in build_report(document)
    del document["evaluation"]["batches"]
    assert "Batches:" not in build_report(document)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda audit: audit.pop("labels"), r"\['batches'\]\[0\]\['labels'\] is missing"),
        (lambda audit: audit["panel"].update(auc=None), r"\['panel'\]\['auc'\] must be a finite"),
        (lambda audit: audit.update(more=1), "unknown entry 'more'"),
    ],
)
def test_a_wrong_audit_is_refused_by_place(selected, change, said):
    document = json.loads(json.dumps(selected[2]))
    change(document["evaluation"]["batches"][0])
    with pytest.raises(ValueError, match=said):
        validate(document)


def test_python_gives_the_same_and_the_plan_counts_the_fits(table, selected):
    quick = {"tau": 1.0, "n_deltas": 5, "folds": 3, "fast": True}
    found = select_panel(table, target="class", batch=[HOSTILE, "run_day"], **quick)
    assert found.document["evaluation"] == selected[2]["evaluation"]
    read = read_table(table, target="class", batch=[HOSTILE, "run_day"])
    assert plan_selection(read, **quick).fits["leaving batches out"] == 6


def test_evaluate_audits_and_a_recognised_batch_is_pointed_out(table, kit):
    words = ["evaluate", table, "-t", "class", "--method", "F test", "--n-features", "3"]
    words += ["--folds", "3", "--repeats", "1", "--permutations", "0", "--jobs", "1"]
    asked = kit.run(*words, "--batch", HOSTILE, "--drop", "run_day")
    assert asked.exit_code == 0, asked.stderr
    assert f"From {HOSTILE} alone, the class is told" in asked.stdout
    assert "--batch COLUMN" not in asked.stdout
    hint = kit.run(*words, "--drop", HOSTILE, "--dry-run")
    assert "--batch COLUMN checks whether a panel shows the batch" in hint.stdout
    refused = kit.run(*words, "--batch", "plate")
    assert refused.exit_code == 2 and "there is no column 'plate' (--batch)" in refused.stderr


def test_centring_says_what_it_did_to_another_cohort(table, kit, tmp_path):
    out, predictions = tmp_path / "out", tmp_path / "predictions.csv"
    words = ["select", table, "-t", "class", "--batch", "run_day", "--center-batches", "--drop"]
    words += [HOSTILE, "--tau", "1", "--deltas", "4", "--folds", "3", "--fast", "--jobs", "1"]
    result = kit.run(*words, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "Batches are centred: In every fold" in result.stdout
    assert "--center-batches" in json.loads((out / "results.json").read_text())["run"]["command"]
    asked = ["predict", out / "model.skops", table, "--out", predictions, "--force"]
    for more, said in (([], "as one batch of 48"), (["--batch", "run_day"], "2 batches of 24, 24")):
        result = kit.run(*asked, *more)
        assert result.exit_code == 0 and said in " ".join(result.stderr.split())
    few = tmp_path / "few.csv"
    few.write_text("".join(table.read_text().splitlines(keepends=True)[:5]))
    refused = kit.run("predict", out / "model.skops", few)
    assert refused.exit_code == 2 and "there are only 4 samples" in refused.stderr
    assert "without --center-batches" in refused.stderr
