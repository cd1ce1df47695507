"""Fixed panels beside the selection: the same folds, the paired difference, an honest word."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVMCV, Panel, nested_evaluate, select_panel
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import MedianImputer
from sparsegsvp.evaluation import paired_difference, selected_features
from sparsegsvp.io import InputError, make_table
from sparsegsvp.report import build_report, validate
from sparsegsvp.workflow import evaluate_table, plan_evaluation
from sparsegsvp.workflow.procedure import (
    fixed_procedure,
    procedure_of,
    steering_factors,
    steering_notices,
)
from sparsegsvp.workflow.run import FixedPanel, fixed_panels
from sparsegsvp.workflow.settings import settings_from

QUICK = {"repeats": 1, "permutations": 0, "folds": 3, "tau": 1.0, "n_deltas": 5}
GIVEN = ["g1", "g7", "g9"]


def by_hand(table, *steps, n_repeats=1):
    return nested_evaluate(
        make_pipeline(*steps), table.X, table.labels, pos_label=table.positive_class, cv=3,
        n_repeats=n_repeats, n_permutations=0, final_fit=False,
        n_random_panels=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def evaluated(table):
    return evaluate_table(table, panel=GIVEN, **QUICK)


def test_a_given_panel_scores_as_it_does_by_hand(table, evaluated) -> None:
    found = evaluated
    [other] = found.document["beside"]
    model = GSVPSVMCV(tau=(1.0,), n_deltas=5, penalty_factor=np.zeros(3))
    own = by_hand(table, Panel([1, 7, 9]), MedianImputer(), model)
    score = own.scores["balanced_accuracy"]
    assert other["scores"]["balanced_accuracy"] == score.to_dict()
    expected = paired_difference(own, found.evaluation)
    assert (other["difference"]["value"], other["p_value"]) == (expected.value, expected.p_value)
    assert (other["kind"], other["features"]) == ("given panel", GIVEN)
    # the selection is what it is without a rival
    alone = evaluate_table(table, **QUICK).document
    assert alone["evaluation"] == found.document["evaluation"] and alone["beside"] == []
    assert json.loads(json.dumps(found.document)) == found.document


def test_every_feature_is_used_whatever_the_method(table) -> None:
    for method in ("GSVPSVMCV", "F test", "GEPSVM"):
        for size in (None, 2):
            settings = settings_from(tau=1.0, n_deltas=5, n_features=size)
            model = fixed_procedure(method, settings, (1, 7, 9), table).fit(table.X, table.labels)
            assert selected_features(model, 40).tolist() == [1, 7, 9]


def test_words_say_after_the_fact_unless_it_was_published(table) -> None:
    selected, noise = (
        by_hand(table, selector, LogisticRegression(), n_repeats=4)
        for selector in (SelectKBest(k=3), Panel([4]))
    )
    after, stated = (
        FixedPanel("given panel", ("g4",), (4,), published=published).describe(noise, selected)
        for published in (False, True)
    )
    assert "after the fact" in after["sentences"][-1] and "too good" in after["sentences"][-1]
    assert "stated that the panel was chosen without" in stated["sentences"][-1]
    assert after["sentences"][:-1] == stated["sentences"][:-1]
    assert "1 feature: g4" in after["sentences"][0]
    assert after["difference"]["high"] < 0 and "less" in after["sentences"][1]
    assert "the selection predicts better here" in after["sentences"][1]
    turned = FixedPanel("given panel", ("g4",), (4,)).describe(selected, noise)
    assert "more" in turned["sentences"][1]
    assert "the given panel predicts better here" in turned["sentences"][1]
    same = FixedPanel("given panel", ("g4",), (4,)).describe(noise, noise)
    assert "cannot be told apart" in same["sentences"][1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"panel": ["g77"]}, r"there is no feature 'g77' \(panel\).*did you mean 'g7'"),
        ({"published": True}, "published says where a given panel comes from.*panel"),
        ({"panel": "g1", "published": "yes"}, "published must be False or True"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_before_the_work(table, asked, message) -> None:
    for run in (evaluate_table, plan_evaluation):
        with pytest.raises(InputError, match=message):
            run(table, **asked, **QUICK)


def test_resuming_mixes_nothing(table, evaluated, tmp_path) -> None:
    log = tmp_path / "log.jsonl"
    whole = evaluate_table(table, panel=GIVEN, log=log, **QUICK)
    assert whole.document == evaluated.document
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    keys = [json.loads(line)["key"] for line in lines[1:]]
    folds = [["fold", 0, i] for i in range(3)]
    assert keys == folds + [["given panel", *key] for key in folds]
    # whatever is left of the log, and in whatever order, the rest is made again
    for kept in ([1, 3, 5], [6, 2, 5, 3]):
        log.write_bytes(lines[0] + b"".join(lines[i] for i in kept))
        again = evaluate_table(table, panel=GIVEN, log=log, resume=True, **QUICK)
        assert again.document == whole.document and log.read_bytes() == content
    # the two are told apart by their keys, not by their order: exchanged, the scores are too
    swapped = [{"key": k, "value": json.loads(line)["value"]} for k, line in
               zip(keys[3:] + keys[:3], lines[1:])]  # fmt: skip
    log.write_bytes(lines[0] + b"".join(json.dumps(s).encode() + b"\n" for s in swapped))
    other = evaluate_table(table, panel=GIVEN, log=log, resume=True, **QUICK).document
    score = other["evaluation"]["scores"]["balanced_accuracy"]
    assert score == whole.document["beside"][0]["scores"]["balanced_accuracy"]
    with pytest.raises(ValueError, match="holds other work: parameters differ"):
        evaluate_table(table, panel=["g2"], log=log, resume=True, **QUICK)
    groups = replace(table, groups=np.arange(50).astype(str).astype(object))
    with pytest.raises(ValueError, match="holds other work: groups differ"):
        evaluate_table(groups, panel=GIVEN, log=log, resume=True, **QUICK)


def test_a_selection_and_its_page_have_it_too(frame) -> None:
    quick = {"fast": True, "tau": 1.0, "n_deltas": 5, "folds": 3}
    hostile = frame.rename(columns={"g1": "<b>g1</b>"})
    found = select_panel(hostile, target="class", panel=["<b>g1</b>"], **quick)
    validate(found.document)
    [other] = found.document["beside"]
    page = build_report(found.document)
    assert "Beside it: given panel" in page and "after the fact" in page
    assert "1 feature: &lt;b&gt;g1&lt;/b&gt;" in page and "<b>g1</b>" not in page
    assert "Beside it" not in build_report({**found.document, "beside": []})
    assert other["features"] == ["<b>g1</b>"] and other["scores"].keys() >= {"auc", "sensitivity"}


def test_the_plan_counts_the_fits(table) -> None:
    assert plan_evaluation(table, panel=GIVEN, **QUICK).fits["given panel"] == 3


# --- covariates


@pytest.fixture(scope="module")
def patients():
    X, y = make_planted(60, 60, 3, effect=1.5, random_state=3, return_X_y=True)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(60)])
    frame["age"] = (60 + 5 * y + rng.normal(0, 8, 60)).round()
    frame["sex"] = np.where(rng.random(60) < 0.4, "M", "F")
    frame["class"] = np.array(["ill", "well"])[y]
    return frame


COVARIATES = {"age", "sex=M vs F"}


def test_what_is_adjusted_for_is_in_every_panel_of_every_fold(patients) -> None:
    quick = {"fast": True, "tau": 1.0, "n_deltas": 5, "folds": 3, "adjust": ["age", "sex"]}
    found = select_panel(patients, target="class", panel="g1,g2", **quick)
    names = found.evaluation.feature_names
    for fold in found.evaluation.folds:
        assert {names[j] for j in fold.panel} > COVARIATES
    assert set(found.panel.index) > COVARIATES
    alone, given = found.document["beside"]
    assert (alone["kind"], alone["features"]) == ("covariates alone", ["age", "sex=M vs F"])
    table = found.table
    model = GSVPSVMCV(tau=(1.0,), n_deltas=5, penalty_factor=np.zeros(2))
    own = by_hand(table, Panel([60, 61]), MedianImputer(), model)
    assert alone["scores"]["balanced_accuracy"] == own.scores["balanced_accuracy"].to_dict()
    # what the panel adds: the selection, which has the covariates too, less these alone
    assert alone["difference"]["value"] == paired_difference(found.evaluation, own).value > 0
    assert "Alone, age and sex=M vs F reach" in alone["sentences"][0]
    assert "the panel adds +" in alone["sentences"][1]
    assert given["features"] == ["g1", "g2"]
    assert "and what is adjusted for" in given["sentences"][0]
    [notice] = [n for n in found.notices if n.code == "steered"]
    assert notice.text == (
        "Adjusted for, so in every panel and counted in its size: 'age' and 'sex=M vs F'."
    )
    validate(found.document)
    assert "Beside it: covariates alone" in build_report(found.document)
    assert alone["sentences"][1] in found.document["methods"]["paragraph"]


def test_a_logarithm_does_not_touch_what_is_adjusted_for(patients) -> None:
    table = make_table(patients, target="class", adjust=["age", "sex"])
    settings = settings_from(tau=1.0, n_deltas=5, log2=True)
    factors = steering_factors(settings, table)
    model = procedure_of("GSVPSVMCV", settings, factors, table)
    seen = model.fit(table.X, table.labels)[:-1].transform(table.X)
    np.testing.assert_array_equal(seen[:, 60:], table.X[:, 60:])
    np.testing.assert_array_equal(seen[:, :60], np.log2(np.maximum(table.X[:, :60], 1.0)))
    [alone] = fixed_panels(settings, table)
    fixed = fixed_procedure("GSVPSVMCV", settings, alone.columns, table)
    seen = fixed.fit(table.X, table.labels)[:-1]
    np.testing.assert_array_equal(seen.transform(table.X), table.X[:, 60:])


def test_more_covariates_than_samples_can_bear_are_warned_of(patients) -> None:
    sites = patients.assign(site=[f"s{i % 6}" for i in range(60)])
    for adjust, severity in (("age", "note"), (["age", "site"], "caution")):
        table = make_table(sites, target="class", adjust=adjust)
        [notice] = steering_notices(steering_factors(settings_from(), table), table)
        assert notice.severity == severity
    assert "6 weights without penalty" in notice.text


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"ban": ["age"]}, r"'age' is to be in every panel \(adjust\) and in none \(ban\)"),
        ({"n_features": 1}, r"n_features=1 asks for fewer than the 2 .* \(adjust\)"),
        ({"panel": ["age"]}, "panel names nothing but what is adjusted for"),
        ({"method": "F test"}, "must, ban, costs and adjust are for the method GSVPSVMCV"),
    ],
    ids=str,
)
def test_what_contradicts_an_adjustment_is_refused(patients, asked, message) -> None:
    table = make_table(patients, target="class", adjust=["age", "sex"])
    with pytest.raises(InputError, match=message):
        evaluate_table(table, **asked, **QUICK)
