"""What the figures show, against answers known by other means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_ind
from sklearn.metrics import confusion_matrix, roc_auc_score

from sparsegsvp.evaluation.values import plain
from sparsegsvp.metrics import calibration_line
from sparsegsvp.report import features, figures, projections, summarize
from sparsegsvp.report.document import group_association


def test_a_box_holds_every_value_once():
    values = np.array([*np.arange(20.0), 100.0, -90.0, np.nan])
    found = features.box(values, "a")
    assert found["n"] == 22
    np.testing.assert_allclose(
        [found["q1"], found["median"], found["q3"]], np.nanquantile(values, [0.25, 0.5, 0.75])
    )
    assert (found["low"], found["high"]) == (0.0, 19.0)
    assert found["outliers"] == [-90.0, 100.0]
    assert features.box(np.array([np.nan]), "a") is None


def test_long_lists_of_outliers_are_cut_but_counted():
    values = np.concatenate([np.zeros(200), np.arange(1.0, 31.0), -np.arange(1.0, 4.0)])
    found = features.box(values, "a")
    assert found["n_outliers"] == 33
    assert found["outliers"] == [-3.0, -2.0, -1.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0]


def test_effect_size_is_cohens_d_and_ignores_units():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [12, 30])
    values = rng.normal(size=42) + 0.7 * codes
    found = features.effect_sizes(values, codes, 2)
    t = ttest_ind(values[codes == 1], values[codes == 0]).statistic
    assert found[1] == pytest.approx(t * np.sqrt(1 / 12 + 1 / 30))
    assert found[0] == pytest.approx(-found[1])
    np.testing.assert_allclose(features.effect_sizes(1000 * values + 7, codes, 2), found)
    assert features.effect_sizes(codes.astype(float), codes, 2) == [None, None]


def test_the_mean_roc_curve_has_the_mean_area(fitted):
    found = figures.roc(fitted.evaluation.to_dict())
    areas = []
    for fold in fitted.evaluation.folds:
        truth = fitted.evaluation.y[fold.test] == 0
        areas.append(roc_auc_score(truth, fold.decision[:, 0]))
    # the grid of 101 points cuts corners of at most half a step each
    assert np.trapezoid(found["tpr"], found["fpr"]) == pytest.approx(np.mean(areas), abs=0.01)
    assert found["label"] == fitted.table.positive
    assert all(a <= b for a, b in zip(found["low"], found["high"]))
    assert np.all(np.diff(found["tpr"]) >= 0)


def test_confusion_is_averaged_over_the_repeats_and_gives_the_rates(fitted):
    evaluation = fitted.evaluation
    found = figures.confusion(evaluation.to_dict())
    tables = [
        confusion_matrix(evaluation.y, evaluation.out_of_fold(r)["predicted"], labels=[0, 1])
        for r in (0, 1)
    ]
    np.testing.assert_allclose(found["counts"], np.mean(tables, axis=0))
    counts = np.array(found["counts"])
    positive = list(evaluation.classes).index(evaluation.positive)
    rates = counts.diagonal() / counts.sum(axis=1)
    assert evaluation.scores["sensitivity"].value == pytest.approx(rates[positive])
    assert evaluation.scores["specificity"].value == pytest.approx(rates[1 - positive])
    assert evaluation.scores["balanced_accuracy"].value == pytest.approx(rates.mean())


def test_the_decision_curve_is_that_of_the_first_repeat(fitted):
    evaluation = fitted.evaluation.to_dict()
    found = figures.decision(evaluation, 0.1)
    expected = fitted.evaluation.decision_curve(0.1).to_dict()
    assert {**found, "label": None} == {**expected, "label": None}
    assert found["prevalence"] == 0.1 and found["label"] == fitted.table.positive
    own = figures.decision(evaluation)
    share = np.mean(fitted.table.y == fitted.table.positive)
    assert own["prevalence"] == share == fitted.evaluation.decision_curve().prevalence
    first = evaluation["out_of_fold"][0]
    one = evaluation["classes"].index(fitted.table.positive)
    p, y = np.array(first["proba"])[:, one], np.array(evaluation["y"]) == one
    t = np.array(own["thresholds"])
    odds = p / (1 - p) * share / (1 - share)
    called = odds[:, None] >= t / (1 - t)
    counted = (called & y[:, None]).mean(axis=0) - (called & ~y[:, None]).mean(axis=0) * t / (1 - t)
    np.testing.assert_allclose(own["net_benefit"], counted, atol=1e-12)
    line = fitted.evaluation.calibration_line
    assert figures.calibration(evaluation)["line"] == line.to_dict()
    assert line.intercept == calibration_line(y, p).intercept


@pytest.mark.parametrize("prevalence", [None, 0.1])
def test_thresholds_out_of_fold_are_counted_in_the_first_repeat(fitted, prevalence):
    evaluation = fitted.evaluation.to_dict()
    table = fitted.table
    found = summarize(table, fitted.model, evaluation=evaluation, prevalence=prevalence)
    found = found["thresholds"]
    assert found == plain(fitted.evaluation.thresholds(prevalence))
    one = evaluation["classes"].index(fitted.table.positive)
    p, y = np.array(evaluation["out_of_fold"][0]["proba"])[:, one], np.array(evaluation["y"]) == one
    share = y.mean() if prevalence is None else prevalence
    odds = p / (1 - p) * share / (1 - share)
    curve = figures.decision(evaluation, prevalence)
    for row in found:
        called = odds >= row["threshold"] / (1 - row["threshold"]) * (1 - 1e-12)
        assert row["sensitivity"]["value"] == pytest.approx(np.mean(called[y]))
        assert row["specificity"]["value"] == pytest.approx(np.mean(~called[~y]))
        if row["threshold"] in curve["thresholds"]:
            at = curve["thresholds"].index(row["threshold"])
            assert row["net_benefit"] == pytest.approx(curve["net_benefit"][at])
    own = next(row for row in found if row["own"])
    predicted = np.array(evaluation["out_of_fold"][0]["predicted"]) == one
    assert own["threshold"] == share
    assert own["sensitivity"]["value"] == pytest.approx(np.mean(predicted[y]))
    # the compact table says the same for any prevalence
    counts = evaluation["threshold_counts"]
    assert counts["threshold"] == sorted(set(np.clip(p, 0, 1).tolist()))
    half = np.searchsorted(counts["threshold"], 0.5)
    assert counts["tp"][half] == np.sum(predicted & y)
    assert counts["fp"][half] == np.sum(predicted & ~y)
    totals = {tuple(np.add(counts[a], counts[b])) for a, b in (("tp", "fn"), ("fp", "tn"))}
    assert totals == {(y.sum(),) * len(counts["tp"]), ((~y).sum(),) * len(counts["tp"])}


def test_without_two_classes_or_probabilities_there_are_no_thresholds(fitted):
    evaluation = fitted.evaluation.to_dict()
    evaluation["out_of_fold"][0]["proba"] = None
    assert summarize(fitted.table, fitted.model, evaluation=evaluation)["thresholds"] == []
    assert figures.decision(evaluation) is None


def test_every_permutation_is_in_a_bin(fitted):
    found = figures.permutation_histogram(fitted.evaluation.to_dict())
    assert sum(found["counts"]) == found["n"] == len(fitted.evaluation.permutation.distribution)
    assert found["edges"][0] <= found["observed"] <= found["edges"][-1]


def test_the_path_tells_who_enters_and_leaves(fitted):
    found = figures.path(fitted.model, fitted.table.feature_names)
    panel: set[int] = set()
    for s, step in enumerate(found["steps"]):
        panel = (panel - set(step["leaving"])) | set(step["entering"])
        assert panel == set(step["panel"])
        names = {found["features"][f] for f in step["panel"]}
        assert names == {fitted.table.feature_names[j] for j in fitted.model.path_["panel"][s]}
        drawn = {f for f, row in enumerate(found["weights"]) if row[s] > 0}
        assert drawn <= set(step["panel"])
    assert len(found["steps"]) == 8  # n_deltas
    assert found["features"][0] in {fitted.table.feature_names[j] for j in fitted.data.support}
    chosen = {found["features"][f] for f in found["steps"][found["chosen"]]["panel"]}
    selected = np.flatnonzero(fitted.model.support_)
    assert chosen == {fitted.table.feature_names[j] for j in selected}


def test_weights_are_sorted_and_end_at_zero(fitted):
    curves = figures.weight_curves(fitted.model, fitted.table.feature_names)
    assert [curve["label"] for curve in curves] == fitted.model.classes_.tolist()
    for curve in curves:
        assert curve["weights"] == sorted(curve["weights"], reverse=True)
        assert curve["weights"][-1] == 0.0
        assert curve["n_nonzero"] == len(curve["features"]) == len(curve["weights"]) - 1


def test_stability_bars_keep_the_whole_panel():
    frequencies = np.linspace(1.0, 0.1, 60)
    bars = figures.stability_bars(frequencies, [str(j) for j in range(60)], [58, 59])
    assert len(bars) == 30
    assert [bar["feature"] for bar in bars if bar["in_panel"]] == ["58", "59"]
    assert [bar["frequency"] for bar in bars] == sorted(
        (bar["frequency"] for bar in bars), reverse=True
    )


def test_pca_before_selection_is_the_svd_of_standardised_data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 1500)) * rng.uniform(0.1, 10, 1500)
    X[:, :700] += 4 * rng.normal(size=(30, 1))
    codes = np.repeat([0, 1], 15)
    samples = figures.SampleTable(X, codes, ["a", "b"], [str(j) for j in range(1500)])
    found = projections.pca_before(samples)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    u, s, _ = np.linalg.svd(Z, full_matrices=False)
    for axis, k in (("x", 0), ("y", 1)):
        np.testing.assert_allclose(np.abs(found[axis]), np.abs(u[:, k] * s[k]), atol=1e-8)
    # labels must not move a point
    other = projections.pca_before(replace(samples, codes=1 - codes))
    assert other["x"] == found["x"]


def test_pca_after_selection_does_not_see_the_sample_it_places(fitted):
    evaluation = fitted.evaluation.to_dict()
    found = projections.pca_after(fitted.table.X, evaluation)
    moved = fitted.table.X.copy()
    test = np.asarray(evaluation["folds"][0]["test"])
    moved[test[0]] += 1.0  # it is in the training part of the other folds, not of its own
    changed = projections.pca_after(moved, evaluation)
    own = np.array([found["x"], found["y"]])[:, test[1:]]
    np.testing.assert_array_equal(own, np.array([changed["x"], changed["y"]])[:, test[1:]])


def test_pictures_after_selection_show_noise_as_noise():
    """Panels chosen on all samples would separate noise; these must not."""
    from sparsegsvp import GSVPSVM, nested_evaluate

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 800)), np.repeat([0, 1], 20)
    found = nested_evaluate(
        GSVPSVM(delta=0.15), X, y, cv=4, n_repeats=1, n_permutations=0, n_random_panels=0
    ).to_dict()
    for shown in (projections.pca_after(X, found), projections.planes(found)):
        both = np.column_stack([shown["x"], shown["y"]])
        labels = np.asarray(shown["label"])
        gap = both[labels == 0].mean(axis=0) - both[labels == 1].mean(axis=0)
        assert np.all(np.abs(gap) < 0.7 * both.std(axis=0))


def test_distances_are_those_of_unseeing_fits(fitted):
    found = projections.planes(fitted.evaluation.to_dict(), names=fitted.table.ids)
    out = fitted.evaluation.out_of_fold(0)
    np.testing.assert_allclose(found["x"], np.abs(out["distances"][:, 0]))
    assert found["wrong"] == (out["predicted"] != fitted.evaluation.y).tolist()
    assert found["name"][3] == "P03"


def test_thinning_keeps_small_classes_whole():
    codes = np.repeat([0, 1, 2], [5000, 30, 2000])
    rows = projections.thin(codes, limit=600)
    assert rows.size == 600
    assert np.bincount(codes[rows]).tolist() == [285, 30, 285]


def test_group_association_knows_batches_from_subjects():
    codes = np.repeat([0, 1], 30)
    assert group_association(codes, codes) == pytest.approx(1.0)
    assert group_association(codes, np.arange(60)) is None
    rng = np.random.default_rng(0)
    assert group_association(codes, rng.integers(0, 4, 60)) < 0.3


def test_a_feature_alone_ranks_in_its_better_direction():
    codes = np.array([0, 0, 1, 1])
    assert features.single_auc(np.array([4.0, 3.0, 2.0, 1.0]), codes, 2) == 1.0
    assert features.single_auc(np.array([4.0, 3.0, np.nan, np.nan]), codes, 2) is None
    assert features.single_auc(np.array([4.0, 3.0, 2.0, 1.0]), codes, 3) is None
    assert group_association(np.repeat([0, 1], 20), np.tile(["a", "b"], 20)) == 0.0


def test_small_cases_have_the_answers_known_by_hand():
    found = features.box(np.array([1.0, 2.0, 3.0, 4.0, 100.0]), "ill")
    assert (found["median"], found["high"], found["outliers"]) == (3.0, 4.0, [100.0])
    effects = features.effect_sizes(np.array([0.0, 2.0, 4.0, 6.0]), np.array([0, 0, 1, 1]), 2)
    assert effects == pytest.approx([-np.sqrt(8), np.sqrt(8)])
    assert projections.thin(np.array([0, 0, 0, 0, 1, 1]), limit=4).tolist() == [0, 3, 4, 5]
    X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, 4.0]])
    shown = projections.pca_before(figures.SampleTable(X, np.array([0, 0, 1, 1]), ["a", "b"], "xy"))
    assert [round(v, 2) for v in shown["x"]] == [1.9, 0.63, -0.63, -1.9]  # the sign too
    counts = {"threshold": [0.2, 0.6], "tp": [10, 8], "fn": [0, 2], "fp": [9, 1], "tn": [1, 9]}
    at = figures.at_threshold(counts, 0.0, 0.2)
    assert [round(at[key], 3) for key in ("threshold", "ppv", "net_benefit")] == [0.2, 0.667, 0.14]
    bars = figures.stability_bars(np.array([0.2, 0.9, 0.0]), ["a", "b", "c"], [1])
    assert [(bar["feature"], bar["in_panel"]) for bar in bars] == [("b", True), ("a", False)]
