"""GSVPSVMCV: what is solved, what is scored, what is chosen, and at what cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)

from sparsegsvp import GSVPSVM, GSVPSVMCV
from sparsegsvp.datasets import data_folder, load_ovarian, make_planted
from sparsegsvp.estimators import folds, planes
from sparsegsvp.estimators.decision import balanced_sample, fit_calibrator, log_distances
from sparsegsvp.estimators.folds import run_fold, search_by_blocks
from sparsegsvp.estimators.planes import PlaneProblems, PlaneSettings
from sparsegsvp.estimators.search import (
    HeldOutLosses,
    LabelledRows,
    Search,
    choose_point,
    pick,
    points_of,
    sizes_up_to,
)
from sparsegsvp.linalg import DenseMatrix, as_matrix
from sparsegsvp.metrics import balanced_log_loss
from sparsegsvp.solvers import L1, Lq

# all of every path, whatever the number of rows
QUICK = {
    "tau": (0.5, 3.0),
    "n_deltas": 6,
    "ratio": 0.05,
    "cv": 3,
    "max_features": 400,
    "rule": "best",
}


@pytest.fixture(scope="module", params=["breast", "wide", "three"])
def table(request):
    X, y = request.getfixturevalue(request.param)
    return X[:200], y[:200]


@pytest.fixture(scope="module")
def model(table) -> GSVPSVMCV:
    return GSVPSVMCV(**QUICK).fit(*table)


def folds_of(X, y, n_splits: int = 3):
    """The folds that an integer cv stands for."""
    return list(StratifiedKFold(n_splits, shuffle=True, random_state=0).split(X, y))


# --- the score of a point is that of a GSVPSVM fitted on the training rows ------------------


def test_scores_are_those_of_models_fitted_on_the_training_rows(table, model) -> None:
    X, y = table
    results = pd.DataFrame(model.cv_results_)
    # at the larger tau, where a walk down the path and a single fit have one minimum to find
    for row in (6 + 2, 6 + 4):
        point = results.iloc[row]
        for f, (train, test) in enumerate(folds_of(X, y)):
            settings = {"tau": point.param_tau, "refit": True}
            largest = first_deltas(X[train], y[train], point.param_tau)
            single = GSVPSVM(delta=largest * point.rho_0, **settings).fit(X[train], y[train])
            loss = balanced_log_loss(y[test], single.predict_proba(X[test]), labels=model.classes_)
            assert_allclose(point[f"split{f}_test_score"], -loss, rtol=1e-4)
            assert point[f"split{f}_n_features"] == single.support_.sum()


def first_deltas(X, y, tau):
    """delta_max of each plane."""
    rows = LabelledRows(as_matrix(X), y.astype(np.intp), None, np.unique(y))
    settings = PlaneSettings(L1(), tau, 0.5)
    return PlaneProblems(rows.covariances(True), settings).delta_max


def test_final_model_is_the_gsvpsvm_of_what_was_chosen(table, model) -> None:
    X, y = table
    same = GSVPSVM(delta=model.delta_, tau=model.tau_, pool=model.pool_, q=model.q_).fit(X, y)
    assert_array_equal(model.support_, same.support_)
    spread = X.std(axis=0)
    assert_allclose(model.coef_ * spread, same.coef_ * spread, atol=1e-5)
    assert_allclose(model.scale_, same.scale_, rtol=1e-5)
    assert (model.kkt_residual_ < 1e-4).all()


def test_calibrator_is_fitted_on_held_out_distances(table, model) -> None:
    X, y = table
    features, codes = [], []
    rho = model.cv_results_["rho_0"][model.best_index_]
    for train, test in folds_of(X, y):
        deltas = rho * first_deltas(X[train], y[train], model.tau_)
        single = GSVPSVM(delta=deltas, tau=model.tau_).fit(X[train], y[train])
        features.append(log_distances(single.distances(X[test]), single.scale_))
        codes.append(y[test])
    expected = fit_calibrator(np.vstack(features), np.concatenate(codes), len(set(y)), None)
    assert_allclose(model.calibrator_[0], expected.coef, rtol=1e-3, atol=1e-3)
    assert_allclose(model.calibrator_[1], expected.intercept, rtol=1e-3, atol=1e-3)


# --- what is chosen ------------------------------------------------------------------------


def test_results_are_a_table_and_the_best_row_is_the_best(model) -> None:
    frame = pd.DataFrame(model.cv_results_)
    assert len(frame) == 2 * 6
    splits = frame[[f"split{f}_test_score" for f in range(3)]].to_numpy()
    assert_allclose(frame.mean_test_score, splits.mean(axis=1))
    assert_allclose(frame.std_test_score, splits.std(axis=1))
    assert_allclose(frame.se_test_score, splits.std(axis=1, ddof=1) / np.sqrt(3))
    best = frame.iloc[model.best_index_]
    assert best.mean_test_score == frame.mean_test_score.max()
    assert best.param_tau == model.tau_ and best.param_pool == model.pool_ == 0.5
    assert sorted(frame.rank_test_score) == list(range(1, 13))
    assert (
        frame.mean_test_score[frame.rank_test_score.to_numpy() == 1].item() == best.mean_test_score
    )
    assert model.n_splits_ == 3


def test_path_is_that_of_the_chosen_setting_on_all_rows(model) -> None:
    path, frame = model.path_, pd.DataFrame(model.cv_results_)
    inside = frame[frame.param_tau == model.tau_]
    assert_allclose(path["score"], inside.mean_test_score)
    assert_allclose(path["score_error"], inside.se_test_score)
    assert_array_equal(path["accuracy"], inside.mean_balanced_accuracy)
    assert_allclose(path["rho"], np.geomspace(1.0, 0.05, 6))
    assert_allclose(path["delta"], np.outer(path["rho"], path["delta"][0]))
    assert_array_equal(path["n_features"], [len(panel) for panel in path["panel"]])
    at = int(np.flatnonzero(inside.index == model.best_index_)[0])
    assert_array_equal(path["panel"][at], model.get_support(indices=True))
    assert_allclose(path["delta"][at], model.delta_)
    assert_allclose(path["objective"][at], model.objective_)
    for panel, weights in zip(path["panel"], path["weights"]):
        assert weights.shape == (len(model.classes_), len(panel))
        assert_allclose(np.linalg.norm(weights, axis=1), 1.0)
    penalty = np.array([np.abs(weights).sum(axis=1) for weights in path["weights"]])
    assert_allclose(path["quotient"] + path["delta"] * penalty, path["objective"])
    # least penalised is best fitting
    assert (np.diff(path["quotient"], axis=0) <= 1e-9).all()
    assert (path["gap"] >= 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"combine": True, "n_deltas": 4},
        {"n_features": 6, "n_deltas": 12},
        {"scoring": "roc_auc_ovr"},
        {"decision": ("distance", "scaled", "calibrated"), "scoring": "accuracy"},
    ],
    ids=["default", "combine", "n_features", "scorer", "decisions"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_is_recorded_beside_the_score(table, options, weighted) -> None:
    """A second search at the chosen setting, scored by accuracy, has nothing to add."""
    X, y = table
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    found = GSVPSVMCV(**{**QUICK, **options}).fit(X, y, sample_weight=weight)
    chosen = {name: found.best_params_[name] for name in ("q", "tau", "pool", "decision")}
    again = clone(found).set_params(**chosen, scoring="balanced_accuracy")
    again.fit(X, y, sample_weight=weight)
    assert_array_equal(found.path_["accuracy"], again.path_["score"])
    assert_array_equal(found.path_["accuracy_error"], again.path_["score_error"])
    assert_array_equal(again.path_["accuracy"], again.path_["score"])
    frame = pd.DataFrame(found.cv_results_)
    inside = frame[(frame.param_tau == found.tau_) & (frame.param_decision == found.decision_)]
    assert_array_equal(inside.mean_balanced_accuracy, again.cv_results_["mean_test_score"])
    # a number of this table that could come out otherwise
    assert len(set(found.path_["accuracy"])) > 1


def test_one_standard_error_is_never_larger(table, model) -> None:
    sparse = clone(model).set_params(rule="1se").fit(*table)
    assert_array_equal(sparse.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])
    frame = pd.DataFrame(model.cv_results_)
    best, taken = frame.iloc[model.best_index_], frame.iloc[sparse.best_index_]
    assert taken.mean_test_score >= best.mean_test_score - best.se_test_score
    assert taken.mean_n_features <= best.mean_n_features
    within = frame[frame.mean_test_score >= best.mean_test_score - best.se_test_score]
    assert taken.mean_n_features == within.mean_n_features.min()
    assert sparse.support_.sum() <= model.support_.sum()


def test_pick_by_hand() -> None:
    table = np.array([[[[1.0], [3.0], [2.9]]], [[[2.0], [3.0], [3.1]]]])  # 2 folds, 3 points
    sizes = np.array([[[1, 5, 4]], [[1, 5, 4]]])
    everything = np.ones((1, 3, 1), dtype=bool)
    # 3.0 twice: the smaller panel
    assert pick(table, sizes, everything, "best") == (0, 2, 0)
    # the error at the best point is 0.1: 1.5 is out of reach
    assert pick(table, sizes, everything, "1se") == (0, 2, 0)
    noisy = table + np.array([-2.0, 2.0])[:, None, None, None]
    assert pick(noisy, sizes, everything, "1se") == (0, 0, 0)
    assert pick(noisy, sizes, everything & (np.arange(3) > 0)[None, :, None], "1se") == (0, 2, 0)
    # a score that is undefined somewhere is not taken
    undefined = table.copy()
    undefined[0, 0, 2] = np.nan
    assert pick(undefined, sizes, everything, "best") == (0, 1, 0)
    with pytest.raises(ValueError, match="not finite anywhere"):
        pick(np.full_like(table, np.nan), sizes, everything, "best")


def test_paired_by_hand() -> None:
    """At most half a standard error of the difference on the same rows, or 2% of the gain."""
    sizes = np.array([[[1, 2, 5]]] * 2)
    everything = np.ones((1, 3, 1), dtype=bool)
    best = np.array([0.1, 0.3, 0.2, 0.2])

    def taken(excess: float, spread: float, n_rows: int = 4) -> int:
        """What is taken when the second of three points is worse by so much on four rows."""
        worse = best + excess + spread * np.array([-1.0, 1.0, -1.0, 1.0])
        rows = np.stack([best + 9.0, worse, best])[None]
        table = np.repeat(-rows.mean(axis=2)[None, :, :, None], 2, axis=0)
        losses = HeldOutLosses(rows, n_rows, of_guessing=np.log(2))
        return pick(table, sizes, everything, "paired", losses)[1]

    # a spread of 0.3 is a standard error of 0.3 sqrt(4 / 3) / 2 = 0.173
    assert taken(0.08, 0.3) == 1 and taken(0.09, 0.3) == 2
    # of ten times the spread a hundred times as many rows leave as much
    assert taken(0.08, 3.0, 400) == 1 and taken(0.09, 3.0, 400) == 2
    # what is always worse by the same can be told at once; 2% of 0.693 - 0.2 is 0.0099
    assert taken(0.0098, 0.0) == 1 and taken(0.0100, 0.0) == 2
    # without losses the folds are what is paired
    table = np.array([[[[1.0], [2.8], [3.0]]], [[[2.0], [4.9], [5.0]]]])
    assert pick(table, sizes, everything, "paired") == (0, 2, 0)
    table[1, 0, 1] = 5.1
    assert pick(table, sizes, everything, "paired") == (0, 1, 0)


@pytest.mark.parametrize("scoring", ["balanced_log_loss", "roc_auc_ovr"])
def test_the_default_is_the_sparsest_that_cannot_be_told_from_the_best(table, scoring) -> None:
    X, y = table
    best = GSVPSVMCV(**{**QUICK, "scoring": scoring}).fit(X, y)
    found = clone(best).set_params(rule=GSVPSVMCV().rule).fit(X, y)
    frame = pd.DataFrame(found.cv_results_)
    top, taken = frame.iloc[best.best_index_], frame.iloc[found.best_index_]
    assert taken.mean_n_features <= top.mean_n_features
    # the paired difference of folds is a coarse form of that of rows
    folds = [f"split{f}_test_score" for f in range(3)]
    difference = (top[folds] - taken[folds]).astype(float)
    assert difference.mean() <= max(2 * difference.sem(), 0.02 * (np.log(3) + top.mean_test_score))


def test_losses_of_rows_are_those_of_the_scores(breast) -> None:
    """Weighted or not, in folds or as a sample of tall data, their means are the scores."""
    X, y = breast
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    for given in (None, weight):
        rows = LabelledRows(as_matrix(X), y, given, np.unique(y))
        search = GSVPSVMCV(tau=1.0, n_deltas=4)._check_parameters()
        search = replace(search, points=points_of(4, 2, False))
        folds = [run_fold(rows, search, split) for split in folds_of(X, y)]
        losses = HeldOutLosses.of_folds(folds, rows)
        scores = np.mean([fold.scores[:, :, 0] for fold in folds], axis=0)
        # folds hold a class in nearly equal numbers
        assert_allclose(losses.weighted.mean(axis=2), -scores, rtol=0.01)
        assert losses.n_rows == len(y)


@pytest.mark.parametrize("k", [1, 4, 11])
@pytest.mark.parametrize("tau", [None, (0.5, 2.0)])
def test_exactly_k_features_in_every_fold_and_on_all_rows(table, k, tau) -> None:
    X, y = table
    found = GSVPSVMCV(tau=tau, cv=3, n_features=k).fit(X, y)
    frame = pd.DataFrame(found.cv_results_)
    assert len(frame) == (1 if tau is None else 2)
    assert (frame[[f"split{f}_n_features" for f in range(3)]] == k).all(axis=None)
    # the panel, and but for the calibration the planes, are those without folds
    single = GSVPSVM(**found.best_params_).fit(X, y)
    assert_array_equal(found.support_, single.support_)
    assert_allclose(found.coef_, single.coef_)
    assert found.support_.sum() == k
    # smaller panels are scored beside it, and none of them can be taken
    path = found.path_
    assert path["n_features"].tolist() == [s for s in (1, 2, 3, 4, 6, 8, 11) if s <= k]
    assert path["chosen"] == len(path["panel"]) - 1
    assert path["score"][-1] == found.best_score_
    for size, panel in zip(path["n_features"], path["panel"]):
        given = {**found.best_params_, "n_features": int(size)}
        if tau is not None:
            assert_array_equal(panel, np.flatnonzero(GSVPSVM(**given).fit(X, y).support_))


def test_sizes_up_to_a_panel() -> None:
    assert sizes_up_to(1) == [1]
    assert sizes_up_to(12) == [1, 2, 3, 4, 6, 8, 12]
    assert sizes_up_to(50) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 50]


def test_combining_planes_freely_is_a_larger_grid_at_no_more_solves(breast, monkeypatch) -> None:
    X, y = breast
    solves = count_runs(monkeypatch)
    common = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3, rule="best").fit(X, y)
    n_solves = len(solves)
    free = clone(common).set_params(combine=True).fit(X, y)
    assert len(solves) == 2 * n_solves
    frame = pd.DataFrame(free.cv_results_)
    assert len(frame) == 25 and len(set(zip(frame.rho_0, frame.rho_1))) == 25
    diagonal = frame[frame.rho_0 == frame.rho_1]
    assert_allclose(diagonal.mean_test_score, common.cv_results_["mean_test_score"])
    assert_allclose(free.path_["score"], common.path_["score"])
    best = frame.iloc[free.best_index_]
    assert best.mean_test_score >= common.cv_results_["mean_test_score"].max()
    assert_allclose(free.delta_, free.path_["delta"][0] * [best.rho_0, best.rho_1])


def test_every_parameter_is_searched(wide) -> None:
    X, y = wide
    found = GSVPSVMCV(
        q=(1.0, 0.5),
        tau=(1.0, 3.0),
        pool=(0.2, 0.8),
        n_deltas=3,
        ratio=0.1,
        cv=2,
        selection="elbow",
    ).fit(X, y)
    frame = pd.DataFrame(found.cv_results_)
    assert len(frame.groupby(["param_q", "param_tau", "param_pool"])) == 8
    best = frame.iloc[found.best_index_]
    assert (found.q_, found.tau_, found.pool_) == (best.param_q, best.param_tau, best.param_pool)


def test_without_refit(wide) -> None:
    X, y = wide
    found = GSVPSVMCV(**QUICK, refit=False).fit(X, y)
    at = found.best_index_ % 6  # the points of a setting follow each other
    assert found.cv_results_["rho_0"][found.best_index_] == found.path_["rho"][at]
    weights = found.path_["weights"][at]
    assert_allclose(found.coef_[:, found.support_] * X.std(axis=0)[found.support_], weights)


# --- where paths end -----------------------------------------------------------------------


def test_paths_end_at_the_number_of_rows(wide) -> None:
    X, y = wide
    options = {"tau": (0.3, 3.0), "n_deltas": 8, "ratio": 0.01, "cv": 3}
    whole = GSVPSVMCV(**options, max_features=400).fit(X, y)
    found = GSVPSVMCV(**options).fit(X, y)
    frame, all_points = pd.DataFrame(found.cv_results_), pd.DataFrame(whole.cv_results_)
    assert 2 <= len(frame) < len(all_points) == 16
    # a training part has 46 or 47 rows
    for f, (train, _) in enumerate(folds_of(X, y)):
        assert frame[f"split{f}_n_features"].max() <= len(train)
    assert all_points["mean_n_features"].max() > 47
    # what is left is as it would be: the points, their scores and their order
    shared = all_points.merge(frame, on=["param_tau", "rho_0"], suffixes=("", "_found"))
    assert len(shared) == len(frame)
    assert_allclose(shared.mean_test_score, shared.mean_test_score_found)
    assert sorted(frame.rank_test_score) == list(range(1, len(frame) + 1))
    assert frame.notna().all(axis=None)
    best = frame.iloc[found.best_index_]
    assert best.rank_test_score == 1 and best.param_tau == found.tau_
    inside = frame[frame.param_tau == found.tau_]
    assert_array_equal(found.path_["rho"], inside.rho_0)
    assert_array_equal(found.path_["score"], inside.mean_test_score)
    columns = [column for name, column in found.path_.items() if name != "chosen"]
    assert {len(column) for column in columns} == {len(inside)}
    assert found.path_["n_features"].max() <= len(y)


@pytest.mark.parametrize("most", [1, 5, 30])
@pytest.mark.parametrize("combine", [False, True])
def test_max_features_bounds_all_panels_but_the_first(table, most, combine) -> None:
    X, y = table
    options = {**QUICK, "max_features": most, "n_deltas": 4, "combine": combine}
    found = GSVPSVMCV(**options).fit(X, y)
    sizes = np.concatenate([found.cv_results_[f"split{f}_n_features"] for f in range(3)])
    k = len(found.classes_)
    # planes that are combined freely have more together, each at its own point
    assert sizes.max() <= max(k * most if combine else most, k)
    assert found.path_["n_features"].max() <= max(most, k)
    assert found.support_.sum() <= max(k * most if combine else most, k)


def test_n_features_overrides_max_features(wide) -> None:
    X, y = wide
    one, two = (GSVPSVMCV(**{**QUICK, "max_features": m}, n_features=9).fit(X, y) for m in (1, 99))
    assert_array_equal(one.coef_, two.coef_)
    assert one.support_.sum() == 9


def test_a_point_that_the_path_on_all_rows_does_not_reach_is_not_chosen() -> None:
    """The best is ruled out, and with it all beyond; the next best is of another setting."""
    table = np.array([[[[1.0], [2.0], [5.0]], [[1.0], [4.0], [3.0]]]])  # 2 settings, 3 points
    sizes = np.array([[[1, 2, 3], [1, 2, 3]]])
    search = Search(
        settings=[PlaneSettings(L1(), tau, 0.5) for tau in (1.0, 3.0)],
        rhos=np.array([1.0, 0.5, 0.25]),
        points=points_of(3, 2, False),
        decisions=["calibrated"],
        scorer=None,
        standardize=True,
    )
    lengths = [2, 3]
    final = lambda s: (None, [[None] * lengths[s]] * 2)
    chosen, reached, allowed = choose_point(table, sizes, search, final, "best")
    assert chosen == (1, 1, 0)
    assert_array_equal(reached, [[True, True, False], [True, True, True]])
    assert_array_equal(allowed[:, :, 0], reached)
    # what a fold did not reach is not chosen either
    sizes[0, 1, 1:] = 0
    assert choose_point(table, sizes, search, final, "best")[0] == (0, 1, 0)


# --- scorers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scoring", "decision"),
    [
        ("roc_auc", ("calibrated", "scaled")),
        ("balanced_accuracy", ("scaled", "distance")),
        ("accuracy", "distance"),
        (make_scorer(balanced_accuracy_score), ("calibrated", "distance", "scaled")),
        (lambda estimator, X, y: -np.mean(estimator.predict(X) != y), ("scaled",)),
    ],
    ids=["roc_auc", "balanced_accuracy", "accuracy", "make_scorer", "function"],
)
def test_any_scorer(wide, scoring, decision) -> None:
    X, y = wide
    names = np.array(["no", "yes"])[y]
    found = GSVPSVMCV(tau=1.0, n_deltas=5, ratio=0.1, cv=3, scoring=scoring, decision=decision).fit(
        X, names
    )
    frame = pd.DataFrame(found.cv_results_)
    decisions = [decision] if isinstance(decision, str) else list(decision)
    assert len(frame) == 5 * len(decisions)
    best = frame.iloc[found.best_index_]
    assert found.decision_ == best.param_decision in decisions
    assert hasattr(found, "predict_proba") == (found.decision_ == "calibrated")
    # the score of a point is that of the model fitted there
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    for f, (train, test) in enumerate(folds_of(X, y)):
        deltas = best.rho_0 * first_deltas(X[train], y[train], 1.0)
        single = GSVPSVM(delta=deltas, decision=found.decision_).fit(X[train], names[train])
        assert_allclose(best[f"split{f}_test_score"], scorer(single, X[test], names[test]))


def test_a_scorer_in_three_classes(three) -> None:
    X, y = three
    found = GSVPSVMCV(tau=3.0, n_deltas=4, ratio=0.2, cv=3, scoring="roc_auc_ovr").fit(X, y)
    assert found.cv_results_["mean_test_score"].max() > 0.9
    assert found.score(X, y) > 0.9


# --- folds ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv",
    [GroupKFold(3), LeaveOneGroupOut(), ShuffleSplit(4, random_state=1), None],
    ids=["GroupKFold", "LeaveOneGroupOut", "ShuffleSplit", "None"],
)
def test_any_splitter(breast, cv) -> None:
    X, y = breast
    groups = np.arange(len(y)) % 4
    arguments = {"groups": groups} if "Group" in type(cv).__name__ else {}
    found = GSVPSVMCV(tau=1.0, n_deltas=3, cv=cv).fit(X, y, **arguments)
    assert found.n_splits_ == {"GroupKFold": 3, "NoneType": 5}.get(type(cv).__name__, 4)
    splits = list((cv or StratifiedKFold(5)).split(X, y, groups=groups if arguments else None))
    listed = GSVPSVMCV(tau=1.0, n_deltas=3, cv=splits).fit(X, y)
    assert_array_equal(listed.cv_results_["mean_test_score"], found.cv_results_["mean_test_score"])
    assert_array_equal(listed.coef_, found.coef_)


def test_zero_weights_are_absent_rows(breast) -> None:
    """The law behind folds that do not copy X."""
    X, y = breast
    weight = (np.arange(len(y)) % 5 > 0).astype(float)
    kept = np.flatnonzero(weight)
    folds = folds_of(X[kept], y[kept])
    weighted = GSVPSVMCV(tau=1.0, n_deltas=4, cv=[(kept[a], kept[b]) for a, b in folds])
    weighted.fit(X, y, sample_weight=weight)
    absent = GSVPSVMCV(tau=1.0, n_deltas=4, cv=folds).fit(X[kept], y[kept])
    assert_allclose(
        weighted.cv_results_["mean_test_score"], absent.cv_results_["mean_test_score"], rtol=1e-6
    )
    assert_allclose(weighted.predict_proba(X), absent.predict_proba(X), atol=1e-6)


# --- determinism ---------------------------------------------------------------------------


def test_two_fits_agree_to_the_last_bit(wide) -> None:
    model, again = (GSVPSVMCV(**QUICK).fit(*wide) for _ in range(2))
    for name in ("coef_", "intercept_", "scale_", "delta_", "objective_"):
        assert getattr(again, name).tobytes() == getattr(model, name).tobytes(), name
    for key, column in model.cv_results_.items():
        assert_array_equal(again.cv_results_[key], column)
    for one, two in zip(again.calibrator_, model.calibrator_):
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_two_workers_select_the_same_as_one(wide, monkeypatch, seconds) -> None:
    X, y = wide
    monkeypatch.setattr(folds, "_WORTH_A_POOL", seconds)
    one, two = (GSVPSVMCV(**QUICK, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.best_index_ == two.best_index_


def test_a_pool_is_started_only_for_work_that_takes_longer(wide, monkeypatch) -> None:
    seen: list[int] = []
    plain = folds.run_tasks

    def spy(tasks, shared, *, n_jobs):
        seen.append(n_jobs)
        return plain(tasks, shared, n_jobs=1)

    monkeypatch.setattr(folds, "run_tasks", spy)
    GSVPSVMCV(tau=1.0, n_deltas=2, cv=3, n_jobs=2).fit(*wide)
    monkeypatch.setattr(folds, "_WORTH_A_POOL", 0.0)
    GSVPSVMCV(tau=1.0, n_deltas=2, cv=3, n_jobs=2).fit(*wide)
    assert seen == [1, 2]


def test_sparse_equals_dense() -> None:
    rng = np.random.default_rng(4)
    X = rng.poisson(0.5, size=(60, 400)).astype(float)
    y = (X[:, :4].sum(axis=1) + rng.normal(size=60) > 2).astype(int)
    for scoring, decision in (("balanced_log_loss", "calibrated"), ("roc_auc", "scaled")):
        search = GSVPSVMCV(tau=1.0, n_deltas=4, ratio=0.1, cv=3, scoring=scoring, decision=decision)
        dense, sparse = clone(search).fit(X, y), clone(search).fit(sp.csc_array(X), y)
        assert_allclose(
            sparse.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"], rtol=1e-6
        )
        assert_array_equal(sparse.support_, dense.support_)


# --- cost ----------------------------------------------------------------------------------


def count_runs(monkeypatch) -> list[tuple[int, bool]]:
    """The number of paths of every walk from now on, and whether it is that of a final fit."""
    runs: list[tuple[int, bool]] = []
    plain = planes.walk_together

    def spy(problems, rhos, **options):
        runs.append((len(problems), options["final"]))
        return plain(problems, rhos, **options)

    monkeypatch.setattr(planes, "walk_together", spy)
    return runs


@pytest.mark.parametrize("n_features", [None, 5])
def test_each_path_is_solved_once_per_fold_and_setting(wide, monkeypatch, n_features) -> None:
    X, y = wide
    runs = count_runs(monkeypatch)
    GSVPSVMCV(
        tau=(1.0, 3.0), pool=(0.3, 0.6), n_deltas=4, ratio=0.2, cv=3, n_features=n_features
    ).fit(X, y)
    # two planes in four settings, side by side in each of three folds; then all rows at the
    # chosen setting
    assert runs == [(2 * 4, False)] * 3 + [(2, True)]


@pytest.mark.parametrize("verbose", [0, 1])
def test_progress_is_a_line_per_fold_or_nothing(breast, capsys, verbose) -> None:
    GSVPSVMCV(tau=1.0, n_deltas=2, cv=3, verbose=verbose).fit(*breast)
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert len(lines) == 3 * verbose and not printed.err
    for f, line in enumerate(lines, start=1):
        assert line.startswith(f"[GSVPSVMCV] fold {f}/3")


# --- tall data -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tall() -> tuple[np.ndarray, np.ndarray]:
    """20,600 x 12, a rare class: just tall enough for the route by blocks."""
    return make_planted(20_600, 12, 6, effect=0.6, weights=(0.9, 0.1), return_X_y=True)


def test_tall_data_is_passed_over_twice_in_all(tall, monkeypatch, capsys) -> None:
    X, y = tall
    passes: list[str] = []
    for name in ("row_blocks", "tdot", "dot", "columns", "class_statistics"):
        plain = getattr(DenseMatrix, name)

        def spy(self, *args, name=name, plain=plain, **options):
            passes.append(name)
            return plain(self, *args, **options)

        monkeypatch.setattr(DenseMatrix, name, spy)
    found = GSVPSVMCV(tau=(0.3, 1.0), n_deltas=6, cv=4, verbose=1).fit(X, y)
    # one for the folds' moments, one to score; the final fit adds the moments up
    assert passes == ["row_blocks", "row_blocks"]
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert len(found.cv_results_["mean_test_score"]) == 12


def test_the_tall_route_agrees_with_the_generic_one(tall) -> None:
    X, y = tall
    by_blocks = GSVPSVMCV(tau=(0.3, 1.0), n_deltas=6, cv=3).fit(X, y)

    def same_score(model, rows, labels):
        # a scorer of one's own takes the generic route
        return -balanced_log_loss(labels, model.predict_proba(rows), labels=[0, 1])

    generic = clone(by_blocks).set_params(scoring=same_score).fit(X, y)
    one, two = by_blocks.cv_results_, generic.cv_results_
    # 600 rows less for the calibrators: nothing in the fourth digit of the score
    assert_allclose(one["mean_test_score"], two["mean_test_score"], atol=1e-4)
    for f in range(3):
        assert_array_equal(one[f"split{f}_n_features"], two[f"split{f}_n_features"])
    assert by_blocks.best_index_ == generic.best_index_
    # a row or two in 20,600 on the other side
    assert_allclose(one["mean_balanced_accuracy"], two["mean_balanced_accuracy"], atol=2e-3)
    assert_allclose(by_blocks.coef_, generic.coef_, atol=1e-10)
    assert_allclose(by_blocks.predict_proba(X), generic.predict_proba(X), atol=5e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_by_blocks_are_the_scores_of_the_folds(n_classes) -> None:
    """With all rows in the sample, the two routes differ by rounding only."""
    X, y = make_planted(400, 6, 3, n_classes=n_classes, return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    rows = LabelledRows(as_matrix(X), y.astype(np.intp), weight, np.arange(n_classes))
    search = Search(
        settings=[PlaneSettings(L1(), tau, 0.5, 1e-6, 100) for tau in (0.5, 2.0)],
        rhos=np.geomspace(1, 0.1, 4),
        points=points_of(4, n_classes, False),
        decisions=["calibrated"],
        scorer=None,
        standardize=True,
    )
    folds = np.arange(len(y)) % 3
    done: list[None] = []
    by_blocks, cov = search_by_blocks(rows, search, folds, lambda: done.append(None))
    assert len(done) == len(by_blocks) == 3
    for f, found in enumerate(by_blocks):
        train, test = np.flatnonzero(folds != f), np.flatnonzero(folds == f)
        expected = run_fold(rows, search, (train, test))
        assert_allclose(found.scores, expected.scores, rtol=1e-6)
        assert_allclose(found.accuracies, expected.accuracies, rtol=1e-12)
        assert_array_equal(found.sizes, expected.sizes)
        assert_array_equal(found.rows, test)
        assert_allclose(found.features, expected.features, atol=1e-8)
    everything = rows.covariances(standardize=True)
    assert_allclose(cov.means, everything.means, atol=1e-12)
    assert_allclose(cov.variances, everything.variances)
    assert_allclose(cov.share, everything.share)


def test_a_sample_for_calibrators_keeps_rare_classes_whole() -> None:
    codes = np.repeat([0, 1, 2], [5, 40_000, 10_000])
    sample = balanced_sample(codes, 20_000, seed=0)
    assert_array_equal(np.bincount(codes[sample]), [5, 9998, 9997])
    assert len(np.unique(sample)) == len(sample) == 20_000
    assert_array_equal(sample, balanced_sample(codes, 20_000, seed=0))
    assert_array_equal(balanced_sample(codes[:100], 20_000, seed=0), np.arange(100))


# --- signal and noise ----------------------------------------------------------------------


def test_noise_is_not_called_signal() -> None:
    """60 x 2000 and random labels: no score that selection inside the folds could inflate."""
    rng = np.random.default_rng(17)
    X, y = rng.normal(size=(60, 2000)), rng.permutation(np.repeat([0, 1], 30))
    search = GSVPSVMCV(tau=1.0, n_deltas=6, ratio=0.05, cv=3)
    predicted = cross_val_predict(search, X, y, cv=StratifiedKFold(5))
    # 60 guesses; a fair coin leaves this range once in ten thousand times
    low, high = binom.ppf([5e-5, 1 - 5e-5], 60, 0.5)
    assert low <= (predicted == y).sum() <= high
    # a constant guess scores -log 2 = -0.69
    assert search.fit(X, y).cv_results_["mean_test_score"].max() < -0.6
    # and the trap is there: on its own rows a panel of ten looks like a discovery
    single = GSVPSVM(tau=1.0, pool=0.5, n_features=10).fit(X, y)
    assert single.score(X, y) > 0.9
    assert balanced_log_loss(y, single.predict_proba(X)) < 0.3


def test_planted_features_are_recovered_among_five_thousand() -> None:
    data = make_planted(200, 5000, 5, effect=2.0, random_state=0)
    found = GSVPSVMCV(tau=1.0, n_deltas=10, ratio=0.05, cv=3).fit(data.X, data.y)
    assert_array_equal(found.get_support(indices=True), data.support)
    assert found.score(data.X, data.y) > 0.97


@pytest.mark.skipif(data_folder() is None, reason="SPARSEGSVP_DATA is not set")
@pytest.mark.filterwarnings("ignore:.*constant feature")
def test_ovarian_with_the_defaults() -> None:
    """Everything is chosen inside the training part of two random 70/30 splits."""
    X, y = load_ovarian(return_X_y=True)
    scores = []
    for seed in (0, 1):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.3, stratify=y, random_state=seed
        )
        found = GSVPSVMCV().fit(X_train, y_train)
        assert found.support_.sum() <= 15
        scores.append(balanced_accuracy_score(y_test, found.predict(X_test)))
    assert np.mean(scores) >= 0.99


@pytest.mark.parametrize("penalty", ["l1", Lq(0.5)], ids=["l1", "object"])
def test_what_was_chosen_makes_the_same_model(breast, penalty) -> None:
    X, y = breast
    search = GSVPSVMCV(tau=(1.0, 3.0), n_deltas=6, cv=3, penalty=penalty, rule="best")
    assert not hasattr(search, "best_params_") and not hasattr(search, "best_score_")
    search.fit(X, y)
    best = search.best_params_
    assert set(best) == {"delta", "tau", "pool", "decision", "q" if penalty == "l1" else "penalty"}
    assert search.best_score_ == search.cv_results_["mean_test_score"][search.best_index_]
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    again = GSVPSVM(**best).fit(X, y)
    assert_array_equal(again.support_, search.support_)
    assert_allclose(again.coef_, search.coef_, rtol=1e-6)


def test_what_was_chosen_does_not_follow_parameters_set_after_the_fit(breast) -> None:
    search = GSVPSVMCV(**QUICK).fit(*breast)
    best = dict(search.best_params_)
    search.set_params(n_features=3, tau=None, penalty=Lq(0.5), penalty_factor=[1.0] * 30)
    assert search.best_params_ == best and "delta" in best


def test_a_fold_whose_rows_weigh_nothing_cannot_be_scored(breast) -> None:
    X, y = breast[0][:60], breast[1][:60]
    weight = np.ones(60)
    weight[:20] = 0.0
    folds_given = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    with pytest.raises(ValueError, match="sample_weight leaves no sample to score"):
        GSVPSVMCV(**QUICK | {"cv": folds_given}).fit(X, y, sample_weight=weight)
