"""The document: its shape, its honesty, and that nothing in it depends on the run."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVMCV, evaluation
from sparsegsvp._notices import Notice
from sparsegsvp.evaluation import PermutationResult, repeated_samples, validate_predictions
from sparsegsvp.metrics import Interval
from sparsegsvp.report import (
    build_report,
    methods,
    schema,
    summarize,
    summarize_test,
    validate,
    words,
)
from sparsegsvp.report.notices import notices_about


def test_the_document_is_valid_json_and_repeats_itself(fitted, results):
    validate(json.loads(json.dumps(results, allow_nan=False)))
    again = summarize(
        fitted.table,
        fitted.model,
        evaluation=fitted.evaluation.to_dict(),
        stability=fitted.stability,
        test=results["test"],
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
        (("data", "roles", 0, "role"), "villain", r"\['roles'\]\[0\]\['role'\] must be one of"),
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


def test_the_description_of_the_document_is_complete():
    kinds = schema._KINDS
    scalars = {"str", "int", "float", "bool", "any"}
    named = {kind.strip("[]{}?") for entries in kinds.values() for kind in entries.values()}
    assert {kind for kind in named if "|" not in kind} <= kinds.keys() | scalars
    assert named >= kinds.keys() - {"Results", "Comparison", "Batches"}  # nothing in vain


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


def test_weights_speak_for_the_class_a_feature_is_higher_in(results):
    classes = results["data"]["classes"]
    for f in results["panel"]:
        if f["auc"] > 0.9:  # a feature that discriminates by itself
            assert f["weights"][classes.index(f["higher_in"])] > 0


def test_the_sizes_behind_the_score_are_beside_it(fitted, results):
    low, high = min(fitted.evaluation.panel_sizes), max(fitted.evaluation.panel_sizes)
    assert low < high
    assert f"with panels of {low} to {high} features" in results["verdict"]["sentences"][1]
    assert f"the score is of panels of {low} to {high}" in build_report(results)
    folds = [replace(f, panel=np.arange(25)) for f in fitted.evaluation.folds]
    told = replace(fitted.evaluation, folds=tuple(folds))
    codes = [n["code"] for n in summarize(fitted.table, fitted.model, evaluation=told)["notices"]]
    assert "sizes" in codes and "sizes" not in [n["code"] for n in results["notices"]]


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
    path = model[-1].path_
    assert accuracies == path["accuracy"].tolist()  # what the search recorded: nothing is fitted
    build_report(found)


def test_nothing_is_fitted_for_the_report(fitted, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the report fits a model")

    monkeypatch.setattr(GSVPSVMCV, "fit", refuse)
    found = summarize(
        fitted.table, fitted.model, evaluation=fitted.evaluation, stability=fitted.stability
    )
    assert build_report(found)


def _verdict(results, *, low, value, high, p, n=99, n_classes=2):
    classes = [f"k{i}" for i in range(n_classes)]
    data = {**results["data"], "classes": classes, "class_counts": [30] * n_classes}
    data["positive"] = classes[-1] if n_classes == 2 else None
    score = Interval(value, low, high, 0.95)
    test = None
    if p is not None:
        test = PermutationResult(value, (0.5,) * n, p, False, "fixed", "free")
    level = evaluation.verdict(test, score, n_classes)
    found = {"verdict": level, "permutation": None if test is None else test.to_dict()}
    scores = {"balanced_accuracy": score.to_dict()}
    said = notices_about(data, results["panel"], level, scores, None)
    return words.describe_verdict(data, scores, found, size=2), [notice.code for notice in said]


@pytest.mark.parametrize(
    ("numbers", "level"),
    [
        ({"low": 0.9, "value": 0.95, "high": 1.0, "p": 0.01}, "signal"),
        ({"low": 0.55, "value": 0.62, "high": 0.7, "p": 0.01}, "signal"),
        ({"low": 0.4, "value": 0.52, "high": 0.6, "p": 0.4}, "none"),
        ({"low": 0.4, "value": 0.48, "high": 0.6, "p": 0.01}, "none"),
        ({"low": 0.8, "value": 0.9, "high": 1.0, "p": 0.2}, "inconclusive"),
        ({"low": 0.4, "value": 0.55, "high": 0.7, "p": None}, "not tested"),
        ({"low": 0.8, "value": 0.9, "high": 1.0, "p": 0.1, "n": 9}, "not tested"),
        ({"low": 0.4, "value": 0.6, "high": 0.8, "p": 0.01, "n_classes": 3}, "signal"),
    ],
)
def test_the_verdict_calls_chance_chance(results, numbers, level):
    found, said = _verdict(results, **numbers)
    assert found["level"] == level
    chance = 1 / numbers.get("n_classes", 2)
    assert ("weak" in said) == (level == "signal" and numbers["low"] < chance + 0.1)
    if level == "none":
        assert "better than by chance" in found["headline"]
        assert "must not be read as markers" in found["sentences"][1]
    if level == "not tested":
        assert "not tested against chance" in found["headline"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"class_counts": [50, 10]}, "few"),
        ({"class_counts": [50, 10]}, "imbalance"),
        ({"n_groups": 3, "group_association": 0.9}, "batch"),
        ({"n_missing": 500}, "missing"),
    ],
)
def test_notices_say_what_is_wrong(results, change, code):
    data, scores = results["data"], results["scores"]
    before = notices_about(data, [], "signal", scores, None)
    after = notices_about({**data, **change}, [], "signal", scores, None)
    assert code not in {n.code for n in before}
    assert code in {n.code for n in after}


@pytest.mark.parametrize(
    "heard",
    [
        repeated_samples([[1, 2], [1, 2], [3, 4]])[0],
        Notice("random", "caution", "Random panels of the same size predict about as well (0.8)."),
        Notice("fits", "note", "3 of 10 fits warned, the first with UserWarning: slow"),
    ],
)
def test_what_the_evaluation_said_is_passed_on(fitted, heard):
    """Whatever its words: a notice is known by its code."""
    told = replace(fitted.evaluation, notices=(heard,))
    found = summarize(fitted.table, fitted.model, evaluation=told)
    assert heard.to_dict() in found["notices"]


def test_what_the_table_and_the_run_said_is_passed_on(fitted):
    table = copy.copy(fitted.table)
    table.notices = (Notice("table", "note", "Values look like logarithms."),)
    final = Notice("final", "caution", "It did not converge.")
    found = summarize(table, fitted.model, notices=[final], skipped=["The permutation test."])
    said = [(n["code"], n["text"]) for n in found["notices"]]
    assert ("table", "Values look like logarithms.") in said
    assert ("skipped", "The permutation test.") in said
    assert said.index(("final", "It did not converge.")) < said.index(
        ("skipped", "The permutation test.")
    )


def test_groups_of_single_subjects_are_no_batch(results):
    data = {**results["data"], "n_groups": 30, "group_association": 0.95}
    found = notices_about(data, [], "signal", results["scores"], None)
    assert "batch" not in {n.code for n in found}


def test_an_unstable_panel_is_called_so(results):
    shaky = {**results["stability"], "index": 0.2}
    found = notices_about(results["data"], [], "signal", results["scores"], shaky)
    assert "unstable" in {n.code for n in found}
    for substitutes in ([], [{"feature": "b"}]):
        panel = [{"feature": "a", "frequency": 1.0, "group_frequency": 1.0}]
        panel[0]["substitutes"] = substitutes
        (said,) = [n.text for n in notices_about(
            results["data"], panel, "none", {}, shaky) if n.code == "unstable"]  # fmt: skip
        assert ("substitutes" in said) == bool(substitutes)


def test_the_score_along_the_path_has_its_name():
    path = {"score_name": "balanced_log_loss", "steps": [{"accuracy": None}]}
    assert words.path_score(path) == "minus balanced log loss"
    assert words.path_score({**path, "score_name": "roc_auc"}) == "roc auc"
    assert words.path_score({**path, "steps": [{"accuracy": 0.9}]}) == "balanced accuracy"


def test_the_methods_paragraph_cites_what_the_citation_file_does(results):
    text = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    assert methods.SOFTWARE_TITLE in text
    assert methods.PAPER_TITLE in text
    written = results["methods"]
    assert any(methods.PAPER_TITLE in c for c in written["citations"])
    score = results["scores"]["balanced_accuracy"]
    assert words.interval(score) in written["paragraph"]


def test_scores_of_an_independent_cohort():
    truth, predicted = ["a"] * 10 + ["b"] * 20, ["a"] * 9 + ["b"] * 21
    validation = validate_predictions(truth, predicted, ["a", "b"], positive="a")
    found = summarize_test(validation, source="new.csv")
    schema.check_kind(found, "Test", "test")
    assert found["scores"]["sensitivity"]["value"] == pytest.approx(0.9)
    assert found["scores"]["balanced_accuracy"]["value"] == pytest.approx(0.95)
    assert found["confusion"]["counts"] == [[9, 1], [0, 20]]
    with pytest.raises(ValueError, match="'c', which the model does not know"):
        validate_predictions(["c"], ["a"], ["a", "b"])


def test_parts_that_are_at_odds_are_refused(results):
    odd = json.loads(json.dumps(results))
    odd["data"]["classes"] = []
    with pytest.raises(ValueError, match=r"do not fit together .*: write the results again"):
        build_report(odd)
    odd["format"] = "x" * 3000
    with pytest.raises(ValueError, match="'format'") as refused:
        build_report(odd)
    assert len(str(refused.value)) < 200


def test_numbers_and_names_are_written_for_readers():
    assert (words.p_value(0.01), words.p_value(0.234)) == ("p = 0.01", "p = 0.23")
    assert words.p_value(0.004) == "p = 0.004"
    assert words.plural(1, "feature") == "1 feature"
    assert words.plural(15154, "feature") == "15,154 features"
    assert words.joined(["a", "b", "c"]) == "a, b and c" and words.joined(["a"]) == "a"
    assert words.joined(["a", "b", "c"], most=2) == "a, b and 1 more"
    assert words.class_counts_text([12, 1030], ["ill", "well"]) == "12 ill, 1,030 well"
    assert words.percent(0.05) == "5%"
    share = "4 of 2,000 features"
    assert words.headline("signal", ["ill", "well"], "ill", share) == f"{share} tell ill from well"
