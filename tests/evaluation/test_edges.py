"""Small and odd cases: what is left out or refused there, and what is said of it."""

import json
import warnings
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, SelectorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer, recall_score
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from sparsegsvp import GSVPSVM, StabilitySelection, compare, nested_evaluate
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import BatchCenterer
from sparsegsvp.evaluation import (
    check_shift,
    compare_external,
    journal,
    paired_difference,
    recalibrate,
    repeated_samples,
    selected_features,
    validate_predictions,
)
from sparsegsvp.evaluation.baselines import ElasticNetSelector, L1Logistic, RecursiveElimination
from sparsegsvp.evaluation.batches import unseen_batches
from sparsegsvp.evaluation.journal import Journal
from sparsegsvp.evaluation.learning import look_ahead
from sparsegsvp.evaluation.panels import describe, exact_panel, fit_with_groups, with_size
from sparsegsvp.evaluation.recalibration import recalibration_effect, recalibration_text
from sparsegsvp.evaluation.scores import area_variance, class_scores
from sparsegsvp.evaluation.shift import _welch
from sparsegsvp.evaluation.values import digest, plain

ONCE = {"n_repeats": 1, "n_permutations": 0}


# ------------------------------------------------------------------------- nested evaluation


def test_one_split_has_no_stability_and_one_class_no_calibration(planted_small, procedure):
    X, y = planted_small

    def split(test):
        return np.setdiff1d(np.arange(40), test), test

    both, cases = split(np.arange(12, 20)), split(np.arange(12, 16))
    one = nested_evaluate(procedure, X, y, cv=[both], n_permutations=0)
    assert one.selection_frequencies.sum() == 4 and one.calibration is not None
    assert one.stability is None and one.jaccard is None
    two = nested_evaluate(procedure, X, y, cv=[cases, both], n_permutations=0)
    assert two.calibration is None and two.stability is not None


def test_a_procedure_without_panel_and_probabilities(planted_small, nearest_mean):
    X, y = planted_small
    found = nested_evaluate(nearest_mean, X, y, n_repeats=1, n_permutations=19)
    assert "p = 0.05, 19 draws" in repr(found) and "panel sizes" not in repr(found)
    assert found.to_dict()["features"] == [] and found.thresholds() == ()
    with pytest.raises(ValueError, match="there is no repeat 9"):
        found.out_of_fold(9)


def test_thresholds_are_at_the_prevalence(planted_small, procedure):
    found = nested_evaluate(procedure, *planted_small, **ONCE)
    own = [row.threshold for row in found.thresholds(0.1)]
    assert 0.1 in own and found.decision_curve(0.1).prevalence == 0.1


def test_warnings_of_the_fits_are_counted_by_their_kind(planted_small, nearest_mean):
    class Warns(type(nearest_mean)):
        def fit(self, X, y):
            warnings.warn("first", RuntimeWarning, stacklevel=1)
            warnings.warn("second", RuntimeWarning, stacklevel=1)
            return super().fit(X, y)

    found = nested_evaluate(Warns(), *planted_small, **ONCE)
    (told,) = (notice for notice in found.notices if notice.code == "fits")
    assert told.text == "5 of 5 fits warned, the first with RuntimeWarning: first"


def test_a_centred_table_of_other_columns_is_not_the_control(planted_small):
    """Random panels are drawn from the table where centring leaves other columns."""
    X, y = planted_small
    plates = np.tile(["a", "b"], 20)
    model = make_pipeline(BatchCenterer(), SelectKBest(k=3), GaussianNB())
    found = nested_evaluate(model, X, y, batch=plates, audit=False, **ONCE)
    assert found.control["selected"].value > found.control["random"].value


def test_folds_and_rows_of_any_kind(planted_small, nearest_mean):
    with pytest.raises(ValueError, match="cv gives no split"):
        nested_evaluate(nearest_mean, *planted_small, cv=[])
    rows = np.array([["a", 1], ["a", 1], ["b", 2]], dtype=object)
    assert "2 of 3 rows" in repeated_samples(rows)[0].text


def test_paired_differences_need_the_same_folds_and_score(planted_small, nearest_mean):
    X, y = planted_small
    first = nested_evaluate(nearest_mean, X, y, **ONCE)
    second = nested_evaluate(GaussianNB(), X, y, **ONCE)
    with pytest.raises(ValueError, match="there is no score 'auc' in both"):
        paired_difference(first, second, "auc")
    gap = paired_difference(second, second, "auc")
    assert gap.value == gap.low == gap.high == 0 and gap.p_value == 1
    other = nested_evaluate(nearest_mean, X, y, random_state=1, **ONCE)
    with pytest.raises(ValueError, match="differ in their samples or folds"):
        paired_difference(first, other)


def test_batches_that_were_not_left_out_are_named(planted_small, procedure):
    X, y = planted_small
    plates = np.tile(["a", "b"], 20)
    audit = nested_evaluate(procedure, X, y, batch={"plate": plates}, **ONCE).batches[0]
    assert "Not left out" not in audit.sentences()[2]
    few = replace(audit, unseen=replace(audit.unseen, not_left_out=("a",)))
    assert "Not left out, a class needing them: a." in few.sentences()[2]
    many = replace(audit, unseen=replace(audit.unseen, not_left_out=tuple("abcdefg")))
    assert "a, b, c, d, e and 2 more." in many.sentences()[2]
    none = replace(audit, unseen=None)
    assert "can be left out: without it a class has fewer than 4" in none.sentences()[2]


def test_unseen_batches_need_every_class():
    codes, member = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    fold = SimpleNamespace(train=np.array([1, 2, 3]), test=np.array([0]), predicted=np.array([0]))
    assert unseen_batches(codes, member, ["a", "b"], [fold], [fold], 0.95) is None


# ---------------------------------------------------------------------------- other cohorts


def test_validation_without_curves_shows_the_rest():
    found = validate_predictions(["ill", "well"] * 3, ["ill", "well"] * 3, ["ill", "well"])
    assert "calibration intercept" not in repr(found) and "no probabilities" in repr(found)
    proba = np.array([[0.9, 0.1], [0.2, 0.8]] * 3)
    apart = validate_predictions(
        ["ill", "well"] * 3, ["ill", "well"] * 3, ["ill", "well"], proba=proba
    )
    assert "calibration intercept" in repr(apart) and "  calibration slope:" not in repr(apart)


def test_three_classes_without_scores_or_without_one_of_them():
    labels = ["a", "b", "c"] * 4
    found = validate_predictions(labels, labels, ["a", "b", "c"])
    assert set(found.scores) == {"accuracy", "balanced_accuracy"}
    missing = validate_predictions(["a", "b"] * 4, ["a", "b"] * 4, ["a", "b", "c"])
    assert set(missing.scores) == {"accuracy"} and "no sample of c" in missing.remarks[0]


def test_two_models_and_a_class_of_one_sample_have_no_areas():
    X, y = make_planted(60, 10, 2, effect=2.0, return_X_y=True)
    one, two = (GSVPSVM(n_features=k).fit(X, y) for k in (1, 2))
    rows = np.r_[np.flatnonzero(y == 0)[:9], np.flatnonzero(y == 1)[:1]]
    assert compare_external(one, two, X[rows], y[rows]).areas is None
    with pytest.raises(ValueError, match="must know the same two classes"):
        compare_external(one, GSVPSVM(n_features=1).fit(X, y + 1), X, y)


def test_a_recalibration_to_a_prevalence_says_so():
    X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    again = recalibrate(GSVPSVM().fit(X, y), prevalence=0.1)
    said = "probabilities are recalibrated: a prevalence of 10% of '1'"
    assert recalibration_text(again) == said
    assert "as they were" in recalibration_effect(again.recalibration_)


def test_shifts_of_features_without_values_or_spread():
    X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    model = GSVPSVM(n_features=1).fit(X, y)
    (found,) = check_shift(model, np.full((5, 1), np.nan))
    assert (found.shift, found.factor, found.shifted, found.scaled) == (0.0, None, False, False)
    assert _welch(0.0, [(0.0, 9)]) == 1.0 and _welch(0.1, [(0.0, 9)]) == 0.0


# ------------------------------------------------------------------- methods and their panels


def test_baselines_refuse_what_they_cannot_order():
    X, y = make_planted(20, 5, 2, return_X_y=True)
    with pytest.raises(ValueError, match="every feature of X is constant"):
        L1Logistic(1).fit(np.ones((20, 5)), y)
    with pytest.raises(ValueError, match=r"n_features=6 must lie in 1\.\.5"):
        L1Logistic(6).fit(X, y)


def test_elimination_halves_many_features():
    X, y = make_planted(40, 150, 1, effect=4.0, return_X_y=True)
    model = RecursiveElimination(1).fit(X, y)
    assert sorted(model.feature_order_) == list(range(150))
    (support,) = make_planted(40, 150, 1, effect=4.0).support
    assert model.get_support(indices=True).tolist() == [support]


def test_a_lasso_with_fewer_samples_than_asked_for_ends_with_what_entered():
    X, y = make_planted(8, 40, 2, return_X_y=True)
    model = ElasticNetSelector(30, l1_ratio=1.0).fit(X, y)
    assert 0 < model.get_support().sum() < 30


class _Empty(SelectorMixin, BaseEstimator):
    """Selects nothing, and has no order to fill its panel by."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self):
        return np.zeros(self.n_features_in_, dtype=bool)


def test_an_empty_panel_fails_and_copies_warn(planted_small):
    X, y = planted_small
    X[1] = X[0]
    with pytest.warns(UserWarning, match="2 of 40 rows are exact duplicates"):
        found = compare({"none": _Empty()}, X, y, sizes=[2], n_splits=2, n_repeats=1)
    row = found.row("none", 2)
    assert row.status == "failed" and row.error == "ValueError: it gave an empty panel."
    with pytest.raises(ValueError, match="there is no row for 'none' with 3 features"):
        found.row("none", 3)


def test_panels_that_cannot_be_traced(planted_small):
    X, y = planted_small
    for mixing in (PCA(5), PolynomialFeatures(2)):
        model = make_pipeline(mixing, LogisticRegression()).fit(X[:, :10], y)
        assert selected_features(model, 10) is None
    ranks = SimpleNamespace(feature_order_=[3, 1, 2])
    assert selected_features(ranks, 5) is None and exact_panel(ranks, 2, 5).tolist() == [1, 3]


def test_sizes_are_found_where_they_are():
    plain_model = make_pipeline(StandardScaler(), GaussianNB())
    assert repr(with_size(plain_model, 3)) == repr(plain_model)
    pipe = make_pipeline(SelectKBest(), GaussianNB())
    search = GridSearchCV(pipe, {"gaussiannb__var_smoothing": [1e-9, 1e-3]})
    assert with_size(search, 3).estimator[0].k == 3


def test_groups_reach_the_end_of_a_pipeline(planted_small, nearest_mean):
    class Grouped(type(nearest_mean)):
        def fit(self, X, y, groups=None):
            self.groups_ = groups
            return super().fit(X, y)

    X, y = planted_small
    groups = np.arange(40)
    model = fit_with_groups(make_pipeline(StandardScaler(), Grouped()), X, y, groups)
    assert model[-1].groups_ is groups
    assert describe(partial(np.round, decimals=2))["keywords"] == {"decimals": 2}
    assert describe(partial(np.round, 3)) != describe(partial(np.round, 4))


def test_substitutes_are_found_by_number():
    X, y = make_planted(40, 20, 2, effect=2.0, return_X_y=True)
    stable = StabilitySelection(SelectKBest(k=2), n_resamples=4).fit(X, y)
    assert stable.substitutes(0) == stable.substitutes_.get(0, ())


# ------------------------------------------------------------------- scores, laws and values


def test_scores_that_are_no_value_per_class():
    class Model:
        def __init__(self, proba=None, decision=None):
            if proba is not None:
                self.predict_proba = lambda X: np.zeros((len(X), proba))
            if decision is not None:
                self.decision_function = lambda X: np.zeros((len(X), decision))

    X = np.zeros((5, 1))
    with pytest.raises(ValueError, match="2 columns for 3 classes"):
        class_scores(Model(proba=2), X, 3)
    assert class_scores(Model(decision=6), X, 4) == (None, None)  # one against one
    decision, proba = class_scores(Model(decision=4), X, 4)
    assert decision.shape == (5, 4) and proba is None
    assert np.isnan(area_variance(np.array([0, 1]), None, [1]))


@pytest.mark.parametrize(
    ("curve", "reason"),
    [(lambda n: 0.6 + 0.05 * n, "no bend"), (lambda n: 0.9 - 0.02 * (n < 0.35), "early bend")],
)
def test_a_law_at_the_end_of_its_range_is_not_continued(curve, reason):
    shares = np.array([0.3, 0.4, 0.5, 0.65, 0.8])
    rng = np.random.default_rng(0)
    scores = curve(shares) + 1e-4 * rng.normal(size=(10, 5))
    _, law, forecast, found = look_ahead(scores, 100 * shares, 100, 0.5, 1e-3, 0.95, rng)
    assert (law, forecast, found) == (None, (), reason)


def test_values_of_any_kind():
    assert plain({"kind": frozenset({1})}) == {"kind": "frozenset({1})"}
    table = sparse.csr_matrix(np.eye(3))
    assert digest(table) == digest(table.tocsc()) != digest(2 * table)


# ---------------------------------------------------------------------------------- journals


def test_a_fresh_record_that_cannot_be_read_is_no_damaged_line():
    with Journal(None, {}) as log:
        log.add(("fold", 0), {})
        with pytest.raises(KeyError, match="panel"):
            log.read(("fold", 0), lambda record: record["panel"])


def test_a_last_line_of_wrong_bytes_is_made_again(tmp_path):
    path = tmp_path / "log.jsonl"
    with Journal(path, {"kind": "x"}) as log:
        log.add(("fold", 0), 1)
    with path.open("ab") as file:
        file.write(b"\0\0\0\0\n")
    with Journal(path, {"kind": "x"}, resume=True) as log:
        assert log.records == {("fold", 0): 1}
        log.finish(keep_others=True)
    assert path.read_text().count("\n") == 2


def test_an_interrupt_while_finishing_leaves_the_log(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    path = tmp_path / "log.jsonl"
    with Journal(path, {"kind": "x"}) as log:
        log.add(("fold", 0), 1)
        monkeypatch.setattr(journal.os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            log.finish()
        monkeypatch.undo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.jsonl", "log.timings.jsonl"]
    assert Journal(path, {"kind": "x"}, resume=True).records == {("fold", 0): 1}


def test_logs_are_written_where_files_cannot_be_locked(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "fcntl", None)
    with Journal(tmp_path / "log.jsonl", {"kind": "x"}) as log:
        log.add(("fold", 0), 1)
        log.finish(keep_others=True)
    assert (tmp_path / "log.jsonl").read_text().count("\n") == 2


def test_a_log_knows_the_folds_and_the_score_of_a_search():
    searches = [
        GridSearchCV(GaussianNB(), {}, cv=StratifiedKFold(3), scoring=make_scorer(f1_score)),
        GridSearchCV(GaussianNB(), {}, cv=StratifiedKFold(5), scoring=make_scorer(f1_score)),
        GridSearchCV(GaussianNB(), {}, cv=StratifiedKFold(3), scoring=make_scorer(recall_score)),
    ]
    texts = [json.dumps(describe(search)) for search in searches]
    assert len(set(texts)) == 3
    assert describe(object()) == "builtins.object"  # an address is of one process alone


def test_folds_that_never_test_every_class_are_refused(planted_small, nearest_mean):
    with pytest.raises(ValueError, match="no fold tests samples of every class"):
        nested_evaluate(nearest_mean, *planted_small, cv=LeaveOneOut())


def test_a_positive_class_that_is_none_of_the_classes_is_refused():
    with pytest.raises(ValueError, match="'typo' is not among the classes"):
        validate_predictions(["a", "b"], ["a", "b"], ["a", "b"], positive="typo")


def test_samples_of_unknown_class_do_not_count_in_the_spread_of_the_classes(planted_small):
    X, y = planted_small
    model = GSVPSVM(n_features=1).fit(X, y)
    x = X[:, model.get_support()]
    (alone,) = check_shift(model, x, y)
    (beside,) = check_shift(model, np.vstack([x, x]), [*y, *["unknown"] * len(y)])
    assert beside.factor == pytest.approx(alone.factor)
