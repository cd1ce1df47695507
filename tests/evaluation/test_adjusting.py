"""`adjust` of `nested_evaluate`: features in every fold, and what the others add to them."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, GSVPSVMCV, Panel, nested_evaluate
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import MedianImputer
from sparsegsvp.evaluation import paired_difference

QUICK = {"cv": 3, "n_repeats": 2, "n_permutations": 0, "n_random_panels": 0, "final_fit": False}
MODEL = GSVPSVM(n_features=4)


@pytest.fixture(scope="module")
def patients():
    X, y = make_planted(60, 50, 3, effect=2.0, random_state=3, return_X_y=True)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(50)])
    frame.insert(7, "age", 60 + 3 * y + rng.normal(0, 8, 60))
    frame["sex"] = (rng.random(60) < 0.5).astype(float)
    return frame, y


def test_it_is_what_one_finds_by_hand(patients):
    frame, y = patients
    for model in (MODEL, GSVPSVMCV(tau=1.0, n_deltas=4, cv=3)):
        procedure = make_pipeline(MedianImputer(), model)
        found = nested_evaluate(procedure, frame, y, adjust=["sex", "age"], **QUICK)
        factors = np.ones(52)
        factors[[7, 51]] = 0.0
        by_hand = make_pipeline(MedianImputer(), model.set_params(penalty_factor=factors))
        expected = nested_evaluate(by_hand, frame, y, **QUICK)
        model.set_params(penalty_factor=None)
        without = {k: v for k, v in found.to_dict().items() if k != "adjusted"}
        assert without == expected.to_dict()
        assert all({7, 51} <= set(fold.panel) for fold in found.folds)
        size = {} if model is not MODEL else {"n_features": 2}
        fixed = type(model)(**{**model.get_params(), **size, "penalty_factor": np.zeros(2)})
        alone = nested_evaluate(make_pipeline(Panel([7, 51]), fixed), frame, y, **QUICK)
        assert found.adjusted.alone.scores == alone.scores
        assert found.adjusted.added == paired_difference(expected, alone)
        assert found.adjusted.added.value > 0
    assert (found.adjusted.features, found.adjusted.names) == ((7, 51), ("age", "sex"))
    assert "added to what is adjusted for: +0." in repr(found)
    assert json.dumps(found.to_dict()["adjusted"])
    assert "adjusted" not in expected.to_dict() and expected.adjusted is None


def test_names_numbers_and_folds_of_any_kind(patients):
    frame, y = patients
    numbers = nested_evaluate(MODEL, frame.to_numpy(), y, adjust=[51, 7], **QUICK)
    names = tuple(frame.columns)
    named = nested_evaluate(
        MODEL, frame.to_numpy(), y, adjust=("age", "sex"), feature_names=names, **QUICK
    )
    assert numbers.adjusted.added == named.adjusted.added and numbers.adjusted.names is None
    one = nested_evaluate(MODEL, frame, y, adjust="age", **QUICK)
    assert one.adjusted.features == (7,)
    splits = list(StratifiedKFold(3, shuffle=True, random_state=1).split(frame, y))
    once = {**QUICK, "cv": iter(splits)}  # gone after the first look
    found = nested_evaluate(MODEL, frame, y, adjust="age", **once)
    again = nested_evaluate(MODEL, frame, y, adjust="age", **{**QUICK, "cv": splits})
    assert found.to_dict() == again.to_dict()


def test_a_log_holds_both_and_is_continued(patients, tmp_path):
    frame, y = patients
    log, stages = tmp_path / "log.jsonl", []
    options = {**QUICK, "n_repeats": 1, "adjust": ["age"], "log": log}
    whole = nested_evaluate(MODEL, frame, y, progress=lambda *said: stages.append(said), **options)
    assert ("covariates alone", 3, 3) in stages
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    keys = [json.loads(line)["key"] for line in lines[1:]]
    folds = [["fold", 0, i] for i in range(3)]
    assert keys == folds + [["covariates alone", *key] for key in folds]
    log.write_bytes(b"".join(lines[i] for i in (0, 5, 2)))
    again = nested_evaluate(MODEL, frame, y, resume=True, **options)
    assert again.to_dict() == whole.to_dict() and log.read_bytes() == content
    with pytest.raises(ValueError, match="holds other work: estimator differ"):
        nested_evaluate(MODEL, frame, y, resume=True, **{**options, "adjust": ["sex"]})


def test_the_procedure_given_is_left_alone(patients):
    frame, y = patients
    model = GSVPSVM(n_features=4, penalty_factor={"g1": 0.0, "g2": np.inf})
    found = nested_evaluate(model, frame, y, adjust="age", **QUICK)
    place = list(frame.columns).index
    for fold in found.folds:
        assert {place("g1"), place("age")} <= set(fold.panel) and place("g2") not in fold.panel
    assert model.penalty_factor == {"g1": 0.0, "g2": np.inf} and not hasattr(model, "coef_")


def test_features_that_go_together_are_adjusted_for_as_a_whole(patients):
    frame, y = patients
    model = GSVPSVM(n_features=4, feature_groups={"age": 0, "sex": 0, "g1": 1, "g2": 1})
    found = nested_evaluate(model, frame, y, adjust="age", **QUICK)
    assert found.adjusted.names == ("age", "sex")
    assert all(fold.panel.size == 2 for fold in found.adjusted.alone.folds)
    assert all({7, 51} <= set(fold.panel) and fold.panel.size >= 5 for fold in found.folds)


def test_no_adjustment_is_none(patients):
    frame, y = patients
    plain = nested_evaluate(MODEL, frame, y, **QUICK)
    for nothing in (None, [], ()):
        found = nested_evaluate(MODEL, frame, y, adjust=nothing, **QUICK)
        assert found.adjusted is None and found.to_dict() == plain.to_dict()


@pytest.mark.parametrize(
    ("model", "asked", "message"),
    [
        (MODEL, ["ago"], "adjust names 'ago', which is no feature. Did you mean 'age'"),
        (MODEL, [52], "numbers from 0 to 51, got 52"),
        (MODEL, [-1], "numbers from 0 to 51, got -1"),
        (MODEL, [True], "numbers from 0 to 51, got True"),
        (GSVPSVM(n_features=1), ["age", "sex"], "less than the 2 features of penalty_factor 0"),
        (GSVPSVM(penalty_factor={"age": np.inf}), ["age"], "'age' is adjusted for, and has an inf"),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            ["age"],
            "adjust needs a method that takes penalty_factor.*got LogisticRegression",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_adjusted_for_is_refused(patients, model, asked, message):
    frame, y = patients
    with pytest.raises(ValueError, match=message):
        nested_evaluate(model, frame, y, adjust=asked, **QUICK)
    with pytest.raises(ValueError, match="'age', but the data has no names"):
        nested_evaluate(MODEL, frame.to_numpy(), y, adjust=["age"], **QUICK)
