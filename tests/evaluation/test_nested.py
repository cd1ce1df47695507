"""Nested evaluation: no leak, one set of predictions, priors, groups, the ladder."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, GSVPSVMCV, Panel, nested_evaluate
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import paired_difference, selected_features
from sparsegsvp.evaluation.result import OutOfFold, Scoring
from sparsegsvp.metrics import move_prior

QUICK = {"n_repeats": 2, "n_permutations": 0, "n_pairs": 0}


@pytest.fixture(scope="module")
def found():
    """The whole of it on a small table, with a verdict and half samples."""
    X, y = make_planted(60, 80, 3, effect=2.0, random_state=0, return_X_y=True)
    return nested_evaluate(GSVPSVMCV(), X, y, n_repeats=2, n_permutations=19, n_pairs=4), X, y


# ---------------------------------------------------------------------------------- traps


def test_selection_outside_the_folds_leaks_and_nested_evaluation_does_not(noise):
    X, y = noise
    leaked = SelectKBest(k=10).fit_transform(X, y)
    assert cross_val_score(LogisticRegression(), leaked, y).mean() > 0.75
    honest = nested_evaluate(make_pipeline(SelectKBest(k=10), LogisticRegression()), X, y, **QUICK)
    assert 0.3 < honest.scores["balanced_accuracy"].value < 0.65
    assert honest.scores["balanced_accuracy"].low < 0.5


def test_noise_is_called_so(noise):
    X, y = noise
    found = nested_evaluate(GSVPSVMCV(), X, y, n_repeats=1, n_pairs=0)
    assert found.verdict.answer == "none"


def test_duplicates_and_twins_warn_and_groups_silence_them(planted, procedure):
    """Defect 29."""
    X, y = planted
    twice, labels = np.r_[X, X], np.r_[y, y]
    with pytest.warns(UserWarning, match="80 of 80 rows are exact duplicates.*groups"):
        found = nested_evaluate(procedure, twice, labels, **QUICK)
    assert [f.code for f in found.flags] == ["duplicates"]
    assert found.flags[0].numbers == {"n_samples": 80, "n_rows": 80}
    rng = np.random.default_rng(0)
    near = twice + 0.1 * rng.normal(size=twice.shape)
    with pytest.warns(UserWarning, match="far more like another row"):
        found = nested_evaluate(procedure, near, labels, **QUICK)
    assert found.flags[0].code == "twins"
    patients = np.tile(np.arange(40), 2)
    assert not nested_evaluate(procedure, near, labels, groups=patients, **QUICK).flags


# ------------------------------------------------------------------ one set of predictions


def test_every_rate_is_that_of_the_predictions(found):
    """Defects 5 and 6: predictive values came of one repeat, sensitivities of all."""
    result, _, _ = found
    frame = result.predictions
    assert len(frame) == 2 * 60
    truth, said = frame["truth"] == result.positive, frame["prediction"] == result.positive
    s, c = said[truth].mean(), (~said[~truth]).mean()
    share = result.prevalence
    expected = {
        "sensitivity": s,
        "specificity": c,
        "balanced_accuracy": (s + c) / 2,
        "accuracy": (said == truth).mean(),
        "ppv": share * s / (share * s + (1 - share) * (1 - c)),
        "npv": (1 - share) * c / ((1 - share) * c + share * (1 - s)),
        "brier": ((frame[f"probability_{result.positive}"] - truth) ** 2).mean(),
    }
    for name, value in expected.items():
        assert result.scores[name].value == pytest.approx(value), name
    assert balanced_accuracy_score(truth, said) == pytest.approx(expected["balanced_accuracy"])
    areas = [
        roc_auc_score(part["truth"] == result.positive, part[f"decision_{result.positive}"])
        for _, part in frame.groupby(["repeat", "fold"])
    ]
    assert result.scores["roc_auc"].value == pytest.approx(np.mean(areas))
    own = result.thresholds().query("own").iloc[0]
    assert (own["sensitivity"], own["specificity"]) == pytest.approx((s, c))
    assert own["npv"] == pytest.approx(expected["npv"])
    slider = result.slider()
    row = slider[slider["threshold"] >= 0.5].iloc[0]
    assert row["tp"] / (row["tp"] + row["fn"]) == pytest.approx(s)
    matrix = result.confusion
    assert matrix.sum() == 60 and np.diag(matrix).sum() / 60 == pytest.approx(expected["accuracy"])


def test_a_difference_is_that_of_the_scores_shown(planted):
    """Defect 6: two balanced accuracies on a page."""
    X, y = planted
    a = nested_evaluate(make_pipeline(Panel([0, 1, 2]), GaussianNB()), X, y, **QUICK)
    b = nested_evaluate(make_pipeline(Panel([5, 6, 7]), GaussianNB()), X, y, **QUICK)
    for score in ("balanced_accuracy", "roc_auc"):
        gap = paired_difference(a, b, score)
        assert gap.value == pytest.approx(a.scores[score].value - b.scores[score].value)
        back = paired_difference(b, a, score)
        assert (gap.value, gap.low, gap.high) == pytest.approx((-back.value, -back.high, -back.low))
    assert paired_difference(a, a).p_value == 1.0
    with pytest.raises(ValueError, match="differ in their samples or folds"):
        paired_difference(a, nested_evaluate(GaussianNB(), X, y, random_state=1, **QUICK))


# --------------------------------------------------------------------------------- priors


@pytest.fixture(scope="module")
def rare():
    """A calibrated problem with 12% positives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    p = 1 / (1 + np.exp(-(1.6 * X[:, 0] - 2.7)))
    return X, (rng.random(800) < p).astype(int)


def test_probabilities_are_for_the_shares_they_were_trained_on(rare):
    """Defect 4: a calibrated model had an intercept of +2 and too high a Brier score."""
    X, y = rare
    found = nested_evaluate(LogisticRegression(), X, y, **QUICK)
    assert found.prior == "training"
    assert abs(found.calibration.intercept.value) < 0.3
    assert found.scores["brier"].value < 0.95 * y.mean() * (1 - y.mean())
    curve = found.decision_curve()
    at = curve[np.isclose(curve["threshold"], 0.1)].iloc[0]
    assert at["net_benefit"] > at["treat_all"]


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(class_weight="balanced"), GSVPSVM(2)], ids=["balanced", "own"]
)
def test_equal_priors_are_known_and_moved(rare, estimator):
    X, y = rare
    found = nested_evaluate(estimator, X, y, **QUICK)
    plain = nested_evaluate(LogisticRegression(), X, y, **QUICK)
    assert found.prior == "equal"
    assert abs(found.calibration.intercept.value) < 0.3
    assert found.scores["brier"].value == pytest.approx(plain.scores["brier"].value, abs=0.01)
    # labels change at equal shares, which is the prevalence after moving
    own = found.thresholds().query("own")["threshold"].item()
    assert own == pytest.approx(found.prevalence)
    frame = found.predictions
    assert ((frame["probability_1"] >= own) == (frame["prediction"] == 1)).mean() > 0.999


def test_a_given_prior_wins_and_a_wrong_one_shows(rare):
    X, y = rare
    told = nested_evaluate(LogisticRegression(), X, y, prior="equal", **QUICK)
    assert told.prior == "equal" and told.calibration.intercept.value > 1.5
    shares = [1 - y.mean(), y.mean()]
    right = nested_evaluate(LogisticRegression(), X, y, prior=shares, **QUICK)
    assert right.prior == "given" and abs(right.calibration.intercept.value) < 0.3
    with pytest.raises(ValueError, match="prior"):
        nested_evaluate(LogisticRegression(), X, y, prior=[0.1, 0.2], **QUICK)


# --------------------------------------------------------------------------------- groups


def test_groups_count_once_in_the_intervals():
    """Defect 8: ten patients with forty samples each, all right, gave .991 to 1."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 40)
    y = groups % 2
    X = rng.normal(size=(400, 3)) + 8.0 * y[:, None]
    found = nested_evaluate(GaussianNB(), X, y, groups=groups, **QUICK)
    assert found.n_groups == 10 and found.scores["balanced_accuracy"].value == 1.0
    for name in ("balanced_accuracy", "roc_auc"):
        assert found.scores[name].low == pytest.approx(0.025 ** (1 / 10), abs=0.01)
    assert found.scores["sensitivity"].low == pytest.approx(0.025 ** (1 / 5), abs=0.01)
    assert [f.code for f in found.flags] == ["perfect"]


# ------------------------------------------------------------------------------ the ladder


def test_the_ladder_scores_exactly_k_features(found):
    result, X, y = found
    ladder = result.ladder
    assert ladder["size"].tolist() == [1, 2, 3, 5, 8, 13, 21, 30]
    assert [len(f) for f in ladder["features"]] == ladder["size"].tolist()
    for small, large in zip(ladder["features"], ladder["features"][1:]):
        assert large[: len(small)] == small  # nested
    assert ladder["features"][2] == result.panel[:3] or len(result.panel) < 3
    alone = nested_evaluate(GSVPSVM(3), X, y, n_repeats=2, n_permutations=0, n_pairs=0)
    row = ladder[ladder["size"] == 3].iloc[0]
    assert row["balanced_accuracy"] == pytest.approx(alone.scores["balanced_accuracy"].value)
    assert row["low"] == pytest.approx(alone.scores["balanced_accuracy"].low)
    assert row["roc_auc"] == pytest.approx(alone.scores["roc_auc"].value)
    assert set(result.models) == set(ladder["size"])
    direct = GSVPSVM(5).fit(X, y)
    assert np.array_equal(result.models[5].predict(X), direct.predict(X))


def test_a_rung_is_a_result_of_its_own(found):
    """What the page of another size shows is of that size: rates, calibration, verdict."""
    result, X, y = found
    rung = result.at_size(3)
    alone = nested_evaluate(GSVPSVM(3), X, y, n_repeats=2, n_permutations=0, n_pairs=0)
    for name, score in alone.scores.items():
        assert rung.scores[name].value == pytest.approx(score.value, abs=1e-9), name
    assert rung.calibration.intercept.value == pytest.approx(alone.calibration.intercept.value)
    assert rung.panel == alone.panel and rung.panel_sizes == (3,) * 10
    assert rung.verdict.p_value == result.verdict.p_value
    with pytest.raises(ValueError, match="size must be one of"):
        result.at_size(4)


def test_probabilities_of_a_rung_are_moved_too(rare):
    X, y = rare
    found = nested_evaluate(GSVPSVMCV(), X, y, sizes=(1, 2), **QUICK)
    assert abs(found.at_size(1).calibration.intercept.value) < 0.3


def test_a_pipeline_has_a_ladder_of_pipelines():
    X, y = make_planted(50, 40, 3, effect=2.0, random_state=1, return_X_y=True)
    pipe = make_pipeline(StandardScaler(), GSVPSVMCV())
    found = nested_evaluate(pipe, X, y, sizes=(2, 4, 99), **QUICK)
    assert found.ladder["size"].tolist() == [2, 4]
    assert type(found.models[2]) is type(pipe)
    assert found.models[2].predict_proba(X).shape == (50, 2)
    assert selected_features(found.models[4], 40).tolist() == list(found.ladder["features"][1])


def test_no_path_no_ladder(planted, procedure):
    X, y = planted
    found = nested_evaluate(procedure, X, y, **QUICK)
    assert found.ladder is None and found.models == {} and found.stability is None
    assert found.panel_sizes == (3,) * 10 and found.size_range == (3.0, 3, 3)
    assert all(len(p) == 3 for p in found.panels["features"])


# ---------------------------------------------------------------------------- determinism


def test_the_order_of_rows_and_the_workers_do_not_matter(found):
    result, X, y = found
    rows = np.random.default_rng(0).permutation(60)
    again = nested_evaluate(
        GSVPSVMCV(), X[rows], y[rows], n_repeats=2, n_permutations=19, n_pairs=4, n_jobs=2
    )
    assert again.panel == result.panel and again.verdict == result.verdict
    for name, score in result.scores.items():
        assert again.scores[name] == score, name
    assert again.ladder.drop(columns=["features", "names"]).equals(
        result.ladder.drop(columns=["features", "names"])
    )
    truth = again.predictions.assign(sample=rows[again.predictions["sample"]])
    ordered = truth.sort_values(["repeat", "sample"]).reset_index(drop=True)
    assert np.allclose(ordered["probability_1"], result.predictions["probability_1"], atol=1e-9)


def test_a_run_repeats_to_the_last_bit(found):
    result, X, y = found
    again = nested_evaluate(GSVPSVMCV(), X, y, n_repeats=2, n_permutations=19, n_pairs=4)
    assert again.predictions.equals(result.predictions) and again.ladder.equals(result.ladder)
    assert again.verdict == result.verdict and again.scores == result.scores


def test_recalls_and_confusions_at_every_size_are_those_of_the_rung():
    X, y = make_planted(90, 30, 6, effect=1.5, n_classes=3, random_state=0, return_X_y=True)
    result = nested_evaluate(GSVPSVM(4), X, y, n_permutations=0, n_pairs=0, sizes=(1, 4))
    for size, counts in result.confusions.items():
        assert np.array_equal(counts, result.at_size(size).confusion)
        assert counts.sum(axis=1).tolist() == list(result.class_counts)
        rows = result.class_recalls.query("size == @size")
        assert np.allclose(rows["recall"], np.diag(counts) / counts.sum(axis=1))
        scores = result.at_size(size).scores
        assert [scores[f"recall {k}"].low for k in range(3)] == rows["low"].tolist()


# ---------------------------------------------------------------------- any estimator, input


def test_searches_and_frames_and_names():
    pd = pytest.importorskip("pandas")
    X, y = make_planted(40, 12, 3, effect=2.0, random_state=2, return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(12)])
    pipe = make_pipeline(SelectKBest(), LogisticRegression())
    search = GridSearchCV(pipe, {"selectkbest__k": [2, 4]}, cv=3)
    found = nested_evaluate(search, frame, np.where(y, "ill", "well"), pos_label="ill", **QUICK)
    assert found.positive == "ill" and found.feature_names[3] == "g3"
    assert set(found.panel_sizes) <= {2, 4} and found.panel is not None
    with pytest.raises(ValueError, match="pos_label"):
        nested_evaluate(search, frame, y, pos_label="sick", **QUICK)


def test_sparse_tables_give_what_dense_ones_give():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(0.4, size=(60, 40)).astype(float), np.repeat([0, 1], 30)
    X[y == 1, :2] += rng.poisson(2.0, size=(30, 2))
    options = {"n_repeats": 1, "n_permutations": 19, "n_pairs": 3}
    a, b = (nested_evaluate(GSVPSVMCV(clip=None), part, y, **options) for part in (X, csr_array(X)))
    assert a.panel == b.panel and a.verdict.p_value == b.verdict.p_value
    assert a.ladder["balanced_accuracy"].tolist() == b.ladder["balanced_accuracy"].tolist()


def test_three_classes_have_recalls_and_no_sensitivity():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [12, 15, 18])
    X = rng.normal(size=(45, 20))
    X[y == "a", 0] += 3
    X[y == "b", 1] += 3
    found = nested_evaluate(GSVPSVMCV(), X, y, **QUICK)
    assert {"recall a", "recall b", "recall c", "roc_auc", "brier"} <= set(found.scores)
    recalls = [found.scores[f"recall {c}"].value for c in "abc"]
    assert found.scores["balanced_accuracy"].value == pytest.approx(np.mean(recalls))
    assert found.calibration is None and found.thresholds() is None and found.positive is None
    assert found.verdict.chance == pytest.approx(1 / 3)
    columns = [f"probability_{c}" for c in "abc"]
    assert np.allclose(found.predictions[columns].sum(axis=1), 1)


class Ranker(ClassifierMixin, BaseEstimator):
    """A classifier without probabilities that warns."""

    def fit(self, X, y):
        import warnings

        warnings.warn("too short", RuntimeWarning, stacklevel=1)
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


def test_a_model_without_probabilities_and_its_warnings(planted):
    X, y = planted
    found = nested_evaluate(Ranker(), X, y, **QUICK)
    assert found.prior == "none" and "brier" not in found.scores and "roc_auc" in found.scores
    assert found.calibration is None and found.decision_curve() is None and found.panel is None
    flag = next(f for f in found.flags if f.code == "fits")
    assert flag.numbers == {"n_fits": 10, "kind": "RuntimeWarning", "first": "too short"}


def test_small_classes_shorten_the_folds():
    X, y = make_planted(30, 8, 2, effect=3.0, random_state=0, return_X_y=True)
    keep = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:4]]
    found = nested_evaluate(GaussianNB(), X[keep], y[keep], **QUICK)
    assert found.settings["n_splits"] == 4
    assert next(f for f in found.flags if f.code == "few").numbers["count"] == 4


# ------------------------------------------------------------------------------- adjusting


def test_adjusted_columns_are_in_every_panel_and_what_the_rest_adds_is_shown():
    pd = pytest.importorskip("pandas")
    X, y = make_planted(60, 60, 3, effect=2.0, random_state=0, return_X_y=True)
    age = np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame(np.c_[age, X], columns=["age", *(f"g{j}" for j in range(60))])
    found = nested_evaluate(GSVPSVMCV(), frame, y, adjust=["age"], **QUICK)
    assert all(0 in panel for panel in found.fold_panels) and 0 in found.panel
    assert found.adjusted.names == ("age",) and found.adjusted.alone.panel_sizes == (1,) * 10
    assert found.adjusted.added.low > 0
    assert found.adjusted.added.value == pytest.approx(
        found.scores["balanced_accuracy"].value
        - found.adjusted.alone.scores["balanced_accuracy"].value
    )
    with pytest.raises(ValueError, match="Did you mean 'age'"):
        nested_evaluate(GSVPSVMCV(), frame, y, adjust=["Age"], **QUICK)
    with pytest.raises(ValueError, match="takes penalty_factor"):
        nested_evaluate(GaussianNB(), X, y, adjust=[0], **QUICK)


def test_moved_probabilities_are_those_of_the_model(planted):
    X, y = planted
    found = nested_evaluate(GSVPSVM(3), X, y, n_repeats=1, n_permutations=0, n_pairs=0)
    fold = found.predictions.query("repeat == 0 and fold == 0")
    test = fold["sample"].to_numpy()
    train = np.setdiff1d(np.arange(40), test)
    proba = GSVPSVM(3).fit(X[train], y[train]).predict_proba(X[test])
    moved = move_prior(proba, "equal", [16 / 40, 24 / 40])
    assert np.allclose(moved, fold[["probability_case", "probability_control"]], atol=1e-6)


def test_the_variance_of_a_mean_of_areas_knows_how_far_they_go_together() -> None:
    """One sample counts in the areas of all classes: their mean varies less than each of them."""
    rng, n, areas, variances = np.random.default_rng(0), 60, [], []
    nothing, truth = np.zeros(n, dtype=int), np.arange(n) % 4
    scoring = Scoring(np.full(4, 15.0), 3, 0.95)
    for _ in range(400):
        decision = rng.normal(size=(n, 4)) + np.eye(4)[truth]
        found = OutOfFold(
            np.arange(n), nothing, nothing, truth, decision.argmax(axis=1), decision, None
        )
        areas.append(found.fold_areas(4, 3)[0])
        variances.append(scoring.area_variance(found, found.placements(4, 3), 0.0))
    assert np.mean(variances) == pytest.approx(np.var(areas), rel=0.2)


def test_classes_that_have_patients_in_common_vary_together() -> None:
    """Ten patients with samples of all classes: where one is hard, all of its samples are."""
    rng, means, variances, alone = np.random.default_rng(0), [], [], []
    truth, patient = np.tile(np.arange(3), 40), np.repeat(np.arange(10), 12)
    scoring = Scoring(np.full(3, 10.0), 2, 0.95, patient)
    nothing = np.zeros(120, dtype=int)
    for _ in range(400):
        ease = 2 * rng.random(10)[patient, None]
        decision = rng.normal(size=(120, 3)) + ease * np.eye(3)[truth]
        said = decision.argmax(axis=1)
        found = OutOfFold(np.arange(120), nothing, nothing, truth, said, decision, None)
        means.append(found.recalls(3).mean())
        variances.append(scoring.sampling(found, said == truth).sum() / 9)
        alone.append(np.trace(scoring.sampling(found, said == truth)) / 9)
    assert np.mean(variances) * 10 / 9 == pytest.approx(np.var(means), rel=0.2)
    assert np.mean(alone) < 0.7 * np.var(means)


def test_rates_that_err_against_each_other_give_predictive_values() -> None:
    """Patients with a sample of each class, both of which are called the same."""
    truth, patient, nothing = np.tile([0, 1], 30), np.repeat(np.arange(30), 2), np.zeros(60, int)
    said = np.where(patient < 20, patient % 2, truth)
    decision = np.stack([-said, said], axis=1) + 0.0
    found = OutOfFold(np.arange(60), nothing, nothing, truth, said, decision, None)
    scoring = Scoring(np.full(2, 30.0), 1, 0.95, patient)
    assert scoring.worth(found, 0.4)[1] < 0
    for score in scoring.all(found, (0, 1), 0.5).values():
        assert 0 <= score.low < score.value < score.high <= 1
