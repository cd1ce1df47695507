"""`select_panel`: what is evaluated is what is used, on any input, with every request obeyed."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsegsvp import Selection, select_panel
from sparsegsvp.io import InputError, make_table
from sparsegsvp.report import check_document

ONCE = {"repeats": 1, "permutations": 0}


def folds_panels(selection):
    """The panels of the outer folds, as sets of names."""
    names = selection.table.feature_names
    return [{names[j] for j in panel} for panel in selection.evaluation.panels["features"]]


def test_the_interface_is_what_the_design_says():
    assert len(inspect.signature(select_panel).parameters) <= 24
    for name in ("panel", "ladder", "notices", "verdict", "with_size", "save", "to_html"):
        assert hasattr(Selection, name)


def test_a_planted_panel_is_found_and_called_signal(selection, informative):
    assert set(informative) <= set(selection.panel.index)
    assert selection.verdict == "signal"
    assert selection.evaluation.scores["balanced_accuracy"].low > 0.5
    check_document(json.loads(json.dumps(selection.document, allow_nan=False)))
    assert [row["feature"] for row in selection.document["panel"]] == list(selection.panel.index)
    assert "Selection: " in repr(selection) and "<iframe" in selection._repr_html_()


def test_the_model_is_the_panel(selection, frame):
    """It predicts from the panel's columns alone, in any order, with others beside them."""
    features = frame.drop(columns="class")
    alone = features[list(selection.panel.index)]
    expected = selection.model.predict_proba(features)
    np.testing.assert_allclose(selection.model.predict_proba(alone), expected, rtol=1e-12)
    mixed = alone.iloc[:, ::-1].assign(other=1.0)
    np.testing.assert_allclose(selection.model.predict_proba(mixed), expected, rtol=1e-12)
    assert np.mean(selection.model.predict(features) == frame["class"]) > 0.85


def test_the_ladder_and_its_rungs(selection, frame):
    """A rung is a run of exactly that size: features, model and scores, without another run."""
    ladder = selection.ladder
    assert ladder["size"].tolist() == [1, 2, 3, 5, 8, 13, 21, 30]
    features = frame.drop(columns="class")
    for size in (1, 3, 8):
        rung = selection.with_size(size)
        row = ladder[ladder["size"] == size].iloc[0]
        assert list(rung.panel.index) == list(row["names"]) and len(rung.panel) == size
        score = rung.evaluation.scores["balanced_accuracy"]
        assert (score.value, score.low, score.high) == pytest.approx(
            (row["balanced_accuracy"], row["low"], row["high"])
        )
        alone = rung.model.predict(features[list(rung.panel.index)])
        assert (alone == rung.model.predict(features)).all()
        assert rung.to_html() != selection.to_html()
        assert [r["chosen"] for r in rung.document["ladder"]].count(True) == 1
    run = select_panel(frame, target="class", n_features=3, repeats=2, permutations=19)
    rung = selection.with_size(3)
    assert list(run.panel.index) == list(rung.panel.index)
    assert run.evaluation.scores["roc_auc"].value == pytest.approx(
        rung.evaluation.scores["roc_auc"].value
    )
    with pytest.raises(InputError, match="no panel of 4 features; it has those of 1, 2, 3"):
        selection.with_size(4)


def test_exactly_k_is_a_rung_of_its_own(frame):
    run = select_panel(frame, target="class", n_features=4, **ONCE)
    assert len(run.panel) == 4 and set(run.evaluation.panel_sizes) == {4}
    assert 4 in run.ladder["size"].tolist()


def test_noise_is_called_so_even_in_a_hurry(kit):
    """Defect 30: a fast run had no verdict."""
    answers = []
    for seed in range(5):
        frame, _ = kit.planted(effect=0.0, seed=seed)
        answers.append(select_panel(frame, target="class", fast=True).verdict)
    assert answers.count("signal") <= 1 and "not tested" not in answers


def test_what_is_banned_makes_no_signal(frame, informative):
    """Defect 1: `ban` left the p-value of all columns, and noise was "signal" in 3 of 6."""
    with_all = select_panel(frame, target="class", fast=True)
    without = select_panel(frame, target="class", fast=True, ban=informative)
    assert with_all.verdict == "signal" and without.verdict != "signal"
    assert all(panel.isdisjoint(informative) for panel in folds_panels(without))


def test_the_same_bytes_with_two_processes_and_the_same_numbers_in_any_order(
    selection, frame, tmp_path
):
    again = select_panel(frame, target="class", repeats=2, permutations=19, n_jobs=2)
    assert again.document == selection.document
    shuffled = frame.sample(frac=1.0, random_state=5)
    other = select_panel(shuffled, target="class", repeats=2, permutations=19)
    assert list(other.panel.index) == list(selection.panel.index)
    for name, score in selection.evaluation.scores.items():
        found = other.evaluation.scores[name]
        assert (found.value, found.low) == pytest.approx((score.value, score.low), abs=1e-6)
    assert other.evaluation.verdict.p_value == selection.evaluation.verdict.p_value


def test_any_input_gives_the_same_panel(frame, tmp_path):
    quick = {**ONCE, "fast": True}  # five pairs of half samples
    X, y = frame.drop(columns="class"), frame["class"]
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    expected = select_panel(frame, target="class", **quick)
    names = list(X.columns)
    others = [
        select_panel(X, y, **quick),
        select_panel(X.to_numpy(), y.to_numpy(), feature_names=names, **quick),
        select_panel(sparse.csr_array(X.to_numpy()), y.to_numpy(), feature_names=names, **quick),
        select_panel(make_table(frame, target="class"), **quick),
        select_panel(tmp_path / "a.csv", target="class", **quick),
        select_panel(tmp_path / "a.parquet", target="class", **quick),
    ]
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"class": y.to_numpy()}, index=[f"s{i}" for i in range(len(y))])
    data = anndata.AnnData(X.to_numpy(), obs=obs, var=pd.DataFrame(index=names))
    others.append(select_panel(data, target="class", **quick))
    value = expected.evaluation.scores["balanced_accuracy"].value
    for other in others:
        assert list(other.panel.index) == list(expected.panel.index)
        assert other.evaluation.scores["balanced_accuracy"].value == pytest.approx(value)


def test_must_is_in_every_fold(frame, informative):
    noise = next(name for name in frame if name not in (*informative, "class"))
    run = select_panel(frame, target="class", must=noise, ban=informative[:1], **ONCE)
    for panel in folds_panels(run):
        assert noise in panel and informative[0] not in panel
    assert noise in run.panel.index and informative[0] not in run.panel.index
    notice = next(n for n in run.notices if n.code == "steered")
    assert noise in notice.text and informative[0] in notice.text
    assert min(run.ladder["size"]) == 1 and run.ladder["names"].iloc[0] == (noise,)


def test_a_given_panel_is_paired_on_the_same_folds(frame, informative):
    noise = [name for name in frame if name not in (*informative, "class")][:3]
    run = select_panel(frame, target="class", panel=noise, **ONCE)
    given = run.document["given"]
    assert given["names"] == noise and given["difference"]["high"] < 0
    score = run.evaluation.scores["balanced_accuracy"].value
    assert given["difference"]["value"] == pytest.approx(given["score"]["value"] - score)
    best = select_panel(frame, target="class", panel=list(run.panel.index), **ONCE)
    assert best.document["given"]["difference"]["value"] > -0.02


def test_what_is_adjusted_for_is_in_every_panel(frame):
    """Age is a number, sex a text; the logarithm leaves both alone."""
    rng = np.random.default_rng(0)
    raw = np.exp2(frame.drop(columns="class") + 8)
    raw["age"] = rng.integers(40, 80, len(frame))
    raw["sex"] = rng.choice(["F", "M"], len(frame))
    raw["class"] = frame["class"]
    run = select_panel(raw, target="class", adjust=["age", "sex"], log2=True, **ONCE)
    assert list(run.table.covariates) == ["age", "sex"]
    covariates = {name for made in run.table.covariates.values() for name in made}
    assert all(covariates <= panel for panel in folds_panels(run))
    adjusted = run.document["adjusted"]
    assert adjusted["added"]["low"] > 0 and adjusted["alone"]["low"] < 0.6
    ages = raw["age"].to_numpy(dtype=float)
    column = run.table.feature_names.index("age")
    np.testing.assert_array_equal(run.run.values[:, column], ages)
    male = run.run.values[:, run.table.feature_names.index("sex=M vs F")]
    np.testing.assert_array_equal(male, raw["sex"] == "M")


def test_logarithms_and_medians_belong_to_the_model(frame, informative):
    """A model takes the cells of a file: raw values, with gaps."""
    plain = select_panel(frame, target="class", **ONCE)
    raw = np.exp2(frame.drop(columns="class") + 8)
    run = select_panel(raw.assign(**{"class": frame["class"]}), target="class", log2=True, **ONCE)
    assert set(run.panel.index) == set(plain.panel.index)
    with_gaps = raw.copy()
    with_gaps.loc[::7, informative[0]] = np.nan
    gappy = select_panel(
        with_gaps.assign(**{"class": frame["class"]}), target="class", log2=True, **ONCE
    )
    assert gappy.table.n_missing == len(with_gaps.loc[::7])
    for model in (run.model, gappy.model):
        assert [name for name, _ in model.steps] == ["log2", "impute", "model"]
        probabilities = model.predict_proba(with_gaps)
        assert np.isfinite(probabilities).all()
        median = np.nanmedian(np.log2(with_gaps[informative[0]]))
        filled = with_gaps.fillna({informative[0]: np.exp2(median)})
        if model is gappy.model:
            np.testing.assert_allclose(probabilities, model.predict_proba(filled), rtol=1e-9)


def test_groups_are_never_split_and_batches_are_audited(frame):
    groups = np.repeat(np.arange(len(frame) // 2), 2)
    plates = np.where(frame["class"] == "ill", "A", "B")
    plates[::5] = "C"
    table = frame.assign(patient=groups, plate=plates)
    table["class"] = frame["class"].to_numpy()[np.repeat(np.arange(0, len(frame), 2), 2)]
    run = select_panel(table, target="class", groups="patient", batch="plate", **ONCE)
    assert run.evaluation.n_groups == len(frame) // 2
    predictions = run.evaluation.predictions
    patient = groups[predictions["sample"]]
    assert predictions.groupby([patient, predictions["repeat"]])["fold"].nunique().max() == 1
    audit = run.document["batches"][0]
    assert audit["name"] == "plate" and audit["confounded"]
    assert not {"patient", "plate"} & set(run.table.feature_names)


def test_another_cohort_in_full(frame, kit, tmp_path):
    other, _ = kit.planted(n=80, seed=1)
    other = other.iloc[60:] if len(other) > 60 else other
    rng = np.random.default_rng(3)
    cohort = frame.copy()
    numbers = cohort.columns.drop("class")
    cohort[numbers] = cohort[numbers] + rng.normal(scale=0.3, size=(len(cohort), len(numbers)))
    cohort = cohort[list(reversed(cohort.columns))]
    run = select_panel(frame, target="class", test=cohort, prevalence=0.1, **ONCE)
    found = run.document["cohort"]
    assert found["n_samples"] == len(cohort) and found["prevalence"] == 0.1
    assert found["scores"]["balanced_accuracy"]["value"] > 0.8 and found["thresholds"]
    features = frame.columns.drop("class")
    right = run.model.predict(cohort[features]) == cohort["class"]
    assert found["scores"]["accuracy"]["value"] == pytest.approx(right.mean())
    assert run.with_size(1).document["cohort"]["scores"] != found["scores"]
    assert run.document["prevalence"] == 0.1
    with pytest.raises(InputError, match="is the training table itself"):
        select_panel(frame, target="class", test=frame, **ONCE)
    renamed = cohort.replace({"class": {"ill": "sick"}})
    with pytest.raises(InputError, match="label 'sick' does not occur"):
        select_panel(frame, target="class", test=renamed, **ONCE)


def test_three_classes():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 20)), columns=[f"g{j}" for j in range(20)])
    frame["class"] = np.repeat(["a", "b", "c"], 20)
    frame.loc[frame["class"] == "a", "g0"] += 4
    frame.loc[frame["class"] == "b", "g1"] += 4
    run = select_panel(frame, target="class", fast=True)
    assert {"g0", "g1"} <= set(run.panel.index) and run.verdict == "signal"
    assert run.document["data"]["positive"] is None
    assert {"recall a", "recall b", "recall c"} <= set(run.document["scores"])
    assert "<svg" in run.to_html()
    with pytest.raises(InputError, match="prevalence is for two classes"):
        select_panel(frame, target="class", prevalence=0.1)


REFUSED = {
    "size": ({"n_features": 0}, "n_features must be"),
    "too large": ({"n_features": 99}, "more than the 40 that there are; ask for 40"),
    "too small": ({"n_features": 1, "must": "g0,g1"}, "fewer than the 2"),
    "unknown": ({"must": "g44"}, "there is no feature 'g44' \\(must\\); did you mean"),
    "both": ({"must": "g1", "ban": "g1"}, "'g1' is to be in every panel \\(must\\) and in none"),
    "all": ({"ban": [f"g{j}" for j in range(40)]}, "ban leaves no feature"),
    "prevalence": ({"prevalence": 1.5}, "prevalence must be"),
    "folds": ({"folds": 1}, "folds must be an integer of at least 2"),
    "repeats": ({"repeats": 0}, "repeats must be"),
    "seed": ({"random_state": -1}, "random_state must be"),
    "floor": ({"floor": 0.0}, "floor must be"),
    "target": ({"target": "klass"}, "there is no column 'klass' \\(target\\)"),
    "positive": ({"positive": "sick"}, "sick"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_early(frame, case, monkeypatch):
    """By name and with a remedy, before anything is fitted."""
    import sparsegsvp.workflow.run as room

    monkeypatch.setattr(room, "nested_evaluate", lambda *_, **__: pytest.fail("it was fitted"))
    given, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        select_panel(frame, **{"target": "class", **given})


def test_tables_that_are_too_small(frame):
    few = frame.groupby("class").head(3)
    with pytest.raises(InputError, match="class 'ill' has only 3 samples"):
        select_panel(few, target="class")
    with pytest.raises(InputError, match="only 3 groups"):
        select_panel(frame, target="class", groups=np.arange(len(frame)) % 3)
    small = frame.groupby("class").head(5)
    run = select_panel(small, target="class", fast=True)
    assert run.evaluation.stability is None
    assert any("half samples" in sentence for sentence in run.document["run"]["skipped"])
