"""What a run leaves behind: files whole or not at all, and numbers that can be checked."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from sparsegsvp import Selection, load_model, select_panel
from sparsegsvp.io import InputError, make_table
from sparsegsvp.workflow import command_of, compare_table


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def folder(selection, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "out"
    selection.save(path)
    return path


def test_every_file_is_there_and_repeats(selection, folder, tmp_path):
    left_out = {"test-predictions.csv", "figures/", "sizes/"}
    assert names(folder) == sorted(set(Selection.FILES) - left_out)
    selection.save(tmp_path / "again")
    for name in names(folder):
        same = (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        assert same or name == "timings.json"
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert document == selection.document and command_of(folder) == ""
    seconds = json.loads((folder / "timings.json").read_text())["seconds"]
    for stage in ("reading", "search", "folds", "permutations", "halves", "page"):
        assert seconds[stage] >= 0


def test_the_saved_model_is_the_model(selection, folder, frame):
    model = load_model(folder / "model.skops")
    features = frame.drop(columns="class")
    np.testing.assert_array_equal(
        model.predict_proba(features), selection.model.predict_proba(features)
    )


def test_the_rates_of_the_page_follow_from_the_predictions(selection, folder):
    """Recomputed from predictions.csv with nothing of this package: one set of predictions."""
    rows = pd.read_csv(folder / "predictions.csv")
    assert len(rows) == 2 * len(selection.table.y)  # both repeats
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    page, one = (folder / "index.html").read_text(encoding="utf-8"), document["data"]["positive"]
    truth, said = rows["truth"] == one, rows["prediction"] == one
    folds = [part for _, part in rows.groupby(["repeat", "fold"])]
    areas = [metrics.roc_auc_score(p["truth"] == one, p[f"decision_{one}"]) for p in folds]
    expected = {
        "Balanced accuracy": metrics.balanced_accuracy_score(truth, said),
        "Area under the ROC curve": np.mean(areas),
        "Sensitivity": metrics.recall_score(truth, said),
        "Specificity": metrics.recall_score(~truth, ~said),
        "Positive predictive value": metrics.precision_score(truth, said),
        "Negative predictive value": metrics.precision_score(~truth, ~said),
        "Accuracy": metrics.accuracy_score(truth, said),
        "Brier score": metrics.brier_score_loss(truth, rows[f"probability_{one}"]),
    }
    assert len(document["scores"]) == len(expected)
    for (name, value), score in zip(expected.items(), document["scores"].values()):
        assert score["value"] == pytest.approx(value, abs=1e-9), name
        shown = re.search(rf"<dt>{name}</dt><dd><b>([\d.]+)</b>", page)
        assert float(shown[1]) == pytest.approx(value, abs=0.00501), name
    labels = document["data"]["classes"]
    shares = metrics.confusion_matrix(
        rows["truth"], rows["prediction"], labels=labels, normalize="true"
    )
    assert np.allclose(document["confusion"]["shares"], shares)


def test_panel_and_ladder_as_tables(selection, folder):
    with open(folder / "panel.csv", newline="", encoding="utf-8") as file:
        panel = list(csv.DictReader(file))
    assert [row["feature"] for row in panel] == list(selection.panel.index)
    ladder = pd.read_csv(folder / "ladder.csv")
    assert ladder["size"].tolist() == selection.ladder["size"].tolist()
    np.testing.assert_allclose(ladder["low"], selection.ladder["low"], rtol=1e-9)
    assert ladder["features"][2].split("; ") == list(selection.ladder["names"][2])
    book = pd.read_excel(folder / "panel.xlsx", sheet_name=None)
    assert {"panel", "ladder", "scores"} <= set(book)
    assert book["panel"]["feature"].tolist() == list(selection.panel.index)


def test_an_earlier_run_is_replaced_on_request_and_foreign_files_never(selection, tmp_path):
    out = tmp_path / "out"
    selection.save(out)
    with pytest.raises(InputError, match="force"):
        selection.save(out)
    selection.with_size(1).save(out, force=True, figures=True)
    assert len(json.loads((out / "results.json").read_text())["panel"]) == 1
    assert "<svg" in next((out / "figures").glob("*.svg")).read_text(encoding="utf-8")
    (out / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        selection.save(out, force=True)
    assert (out / "thesis.tex").read_text() == "mine"


def test_a_write_that_fails_leaves_what_was_there(selection, tmp_path, monkeypatch):
    out = tmp_path / "out"
    selection.save(out)
    before = (out / "results.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sparsegsvp.workflow.results.save_model", full)
    with pytest.raises(OSError):
        selection.with_size(1).save(out, force=True)
    assert (out / "results.json").read_bytes() == before
    assert names(tmp_path) == ["out"] and not any(n.startswith(".") for n in names(out))
    with pytest.raises(OSError):
        selection.save(tmp_path / "new")
    assert names(tmp_path) == ["out"]


def test_the_page_stands_alone(selection, tmp_path):
    page = selection.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert selection.document["verdict"]["headline"] in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_methods_side_by_side(frame, tmp_path):
    table = make_table(frame, target="class")
    asked = {"methods": ["F test", "gsvpsvm"], "sizes": (2, 4, 64), "folds": 3, "repeats": 1}
    result = compare_table(table, cache=tmp_path / "cache", **asked)
    rows = result.comparison.table
    assert set(rows["size"]) == {2, 4} and {"F test", "random panel"} <= set(rows["method"])
    ours = rows[rows["method"].str.startswith("GSVPSVM") & (rows["size"] == 4)].iloc[0]
    assert ours["balanced_accuracy"] > 0.8
    result.save(tmp_path / "out")
    assert names(tmp_path / "out") == sorted(result.FILES)
    written = pd.read_csv(io.StringIO((tmp_path / "out" / "comparison.csv").read_text()))
    assert "seconds" not in written.columns and len(written) == len(rows)
    again = compare_table(table, cache=tmp_path / "cache", **asked)
    assert again.document == result.document
    gaps = make_table(
        frame.mask(np.arange(frame.size).reshape(frame.shape) % 97 == 5), target="class"
    )
    filled = compare_table(gaps, **asked).comparison.table
    assert gaps.n_missing > 20 and (filled["status"] == "ok").all()
    with pytest.raises(InputError, match="Did you mean 'F test'"):
        compare_table(table, methods=["F tset"])
    for sizes in ((99,), (0, 2)):
        with pytest.raises(InputError, match="there are 40 features"):
            compare_table(table, sizes=sizes)


def test_a_report_for_every_rung(frame, informative, tmp_path):
    """Each is a folder of its own, as a run of that size would have left it."""
    few = frame[[*informative, "g0", "class"]].loc[:, lambda f: ~f.columns.duplicated()]
    run = select_panel(few, target="class", repeats=1, permutations=0)
    run.save(tmp_path / "out", rungs=True)
    sizes = tmp_path / "out" / "sizes"
    assert names(sizes) == sorted(map(str, run.ladder["size"]))
    for size in run.ladder["size"]:
        document = json.loads((sizes / str(size) / "results.json").read_text(encoding="utf-8"))
        assert len(document["panel"]) == size
        model = load_model(sizes / str(size) / "model.skops")
        assert model.get_support().sum() == size
        assert "index.html" in names(sizes / str(size))
    run.save(tmp_path / "out", force=True)  # the rungs of the earlier run go
    assert "sizes" not in names(tmp_path / "out")
