"""The document: its shape, its honesty, and that nothing in it depends on the run."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVMCV
from sparsegsvp.evaluation import repeated_samples
from sparsegsvp.report import build_report, methods, summarize, summarize_test, validate, wording
from sparsegsvp.report.notices import notices


def test_the_document_is_valid_json_and_repeats_itself(fitted, results):
    validate(json.loads(json.dumps(results, allow_nan=False)))
    again = summarize(
        fitted.table,
        fitted.model,
        evaluation=fitted.evaluation.to_dict(),
        stability=fitted.stability,
        seed=0,
        command=results["run"]["command"],
    )
    assert json.dumps(again) == json.dumps(results)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (("data", "n_samples"), "60", r"results\['data'\]\['n_samples'\] must be a finite int"),
        (("scores", "auc", "low"), float("nan"), "must be a finite float"),
        (("verdict", "level"), "splendid", "must be one of"),
        (("panel", 0, "extra"), 1, "unknown entry 'extra'"),
        (("figures", "roc"), [], "must be a dictionary"),
        (("format_version",), 99, "write the results again"),
    ],
)
def test_a_wrong_document_is_refused_by_place(results, where, value, message):
    part = results
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = value
    with pytest.raises(ValueError, match=message):
        build_report(results)


def test_panel_rows_agree_with_the_model(fitted, results):
    model, panel = fitted.model, results["panel"]
    assert sorted(f["index"] for f in panel) == np.flatnonzero(model.support_).tolist()
    sizes = [max(map(abs, f["weights"])) for f in panel]
    assert sizes == sorted(sizes, reverse=True)
    norms = np.sum([np.square(f["weights"]) for f in panel], axis=0)
    np.testing.assert_allclose(norms, 1.0)  # unit normals in standardised units
    for f in panel:
        values = fitted.table.X[:, f["index"]]
        ill = fitted.table.y == fitted.table.positive
        higher = fitted.table.positive if values[ill].mean() > values[~ill].mean() else "well"
        assert f["higher_in"] == higher
        # of the outer folds, which repeat the whole procedure
        folds = results["evaluation"]["folds"]
        expected = np.mean([f["index"] in fold["panel"] for fold in folds])
        assert f["frequency"] == pytest.approx(expected)
        assert f["group_frequency"] >= f["frequency"]


def test_a_pipeline_is_read_through(fitted):
    X = fitted.table.X.copy()
    X[0, 0] = np.nan
    table = copy.copy(fitted.table)
    table.X, table.n_missing = X, 1
    model = make_pipeline(SimpleImputer(), GSVPSVMCV(tau=1.0, n_deltas=5, cv=3)).fit(X, table.y)
    found = summarize(table, model)
    assert {f["index"] for f in found["panel"]} == set(np.flatnonzero(model[-1].support_))
    accuracies = [step["accuracy"] for step in found["figures"]["path"]["steps"]]
    assert max(accuracies) > 0.8  # an accuracy, not the log loss the model was tuned by
    build_report(found)


def _verdict(results, *, low, value, high, p, n=99, n_classes=2):
    classes = [f"k{i}" for i in range(n_classes)]
    data = {**results["data"], "classes": classes, "class_counts": [30] * n_classes}
    data["positive"] = classes[-1] if n_classes == 2 else None
    score = {"value": value, "low": low, "high": high, "level": 0.95}
    permutation = None if p is None else {"p_value": p, "distribution": [0.5] * n}
    scores = {"balanced_accuracy": score}
    found = wording.verdict(data, results["panel"], scores, permutation, None)
    return found, notices(data, results["panel"], found, scores, permutation, None)


@pytest.mark.parametrize(
    ("numbers", "level"),
    [
        ({"low": 0.9, "value": 0.95, "high": 1.0, "p": 0.01}, "signal"),
        ({"low": 0.55, "value": 0.62, "high": 0.7, "p": 0.01}, "weak"),
        ({"low": 0.4, "value": 0.52, "high": 0.6, "p": 0.4}, "chance"),
        ({"low": 0.4, "value": 0.48, "high": 0.6, "p": 0.01}, "chance"),
        ({"low": 0.4, "value": 0.55, "high": 0.7, "p": None}, "chance"),
        ({"low": 0.8, "value": 0.9, "high": 1.0, "p": 0.1, "n": 9}, "unclear"),
        ({"low": 0.4, "value": 0.6, "high": 0.8, "p": 0.01, "n_classes": 3}, "weak"),
    ],
)
def test_the_verdict_calls_chance_chance(results, numbers, level):
    found, said = _verdict(results, **numbers)
    assert found["level"] == level
    serious = [n["kind"] for n in said if n["severity"] == "serious"]
    assert ("chance" in serious) == (level == "chance")
    if level == "chance":
        assert "better than by chance" in found["headline"]
        assert "must not be read as markers" in found["sentences"][1]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"class_counts": [50, 10]}, "few"),
        ({"class_counts": [50, 10]}, "imbalance"),
        ({"n_groups": 3, "group_association": 0.9}, "batch"),
        ({"n_missing": 500}, "missing"),
        ({"hints": ["values look like logarithms"]}, "table"),
    ],
)
def test_warnings_say_what_is_wrong(results, change, kind):
    data, found = results["data"], results["verdict"]
    before = notices(data, [], found, results["scores"], None, None)
    after = notices({**data, **change}, [], found, results["scores"], None, None)
    assert kind not in {n["kind"] for n in before}
    assert kind in {n["kind"] for n in after}


@pytest.mark.parametrize(
    ("heard", "kind", "severity"),
    [
        (repeated_samples([[1, 2], [1, 2], [3, 4]])[0], "repeats", "serious"),
        ("Random panels of the same size predict about as well (0.8).", "random", "caution"),
        ("3 of 10 fits warned, the first with UserWarning: slow", "fits", "note"),
    ],
)
def test_what_the_evaluation_said_is_passed_on(results, heard, kind, severity):
    found = notices(results["data"], [], results["verdict"], results["scores"], None, None, [heard])
    assert {(n["kind"], n["severity"], n["text"]) for n in found} >= {(kind, severity, heard)}


def test_groups_of_single_subjects_are_no_batch(results):
    data = {**results["data"], "n_groups": 30, "group_association": 0.95}
    found = notices(data, [], results["verdict"], results["scores"], None, None)
    assert "batch" not in {n["kind"] for n in found}


def test_an_unstable_panel_is_called_so(results):
    shaky = {**results["stability"], "index": 0.2}
    found = notices(results["data"], [], results["verdict"], results["scores"], None, shaky)
    assert "unstable" in {n["kind"] for n in found}


def test_the_methods_paragraph_cites_what_the_citation_file_does(results):
    text = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    assert methods.SOFTWARE_TITLE in text
    assert methods.PAPER_TITLE in text
    written = results["methods"]
    assert any(methods.PAPER_TITLE in c for c in written["citations"])
    score = results["scores"]["balanced_accuracy"]
    assert wording.interval(score) in written["paragraph"]


def test_scores_of_an_independent_cohort():
    truth, predicted = ["a"] * 10 + ["b"] * 20, ["a"] * 9 + ["b"] * 21
    found = summarize_test(truth, predicted, ["a", "b"], positive="a", source="new.csv")
    assert found["scores"]["sensitivity"]["value"] == pytest.approx(0.9)
    assert found["scores"]["balanced_accuracy"]["value"] == pytest.approx(0.95)
    assert found["confusion"]["counts"] == [[9, 1], [0, 20]]
    with pytest.raises(ValueError, match="'c', which the model does not know"):
        summarize_test(["c"], ["a"], ["a", "b"])
