"""`penalty_factor` of the estimators: what must be in, what may not, and what costs more."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline

from sparsegsvp import (
    GSVPSVM,
    GSVPSVMCV,
    ClassMoments,
    StabilitySelection,
    load_model,
    nested_evaluate,
    save_model,
)
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import folds as folds_module

MUST, BANNED = [3, 11], [0, 1, 5]


def _factors(m: int, must=MUST, banned=BANNED) -> np.ndarray:
    factors = np.ones(m)
    factors[must], factors[banned] = 0.0, np.inf
    return factors


def _keeps_to(panel, must=MUST, banned=BANNED) -> bool:
    return set(must) <= set(panel) and not set(banned) & set(panel)


KINDS = {
    "l1": {},
    "q": {"q": 0.5},
    "elbow": {"selection": "elbow"},
    "not refitted": {"refit": False},
    "raw units": {"standardize": False, "tau": 3.0},
}


@pytest.mark.parametrize("table", ["breast", "wide", "three"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_panel_has_what_it_must_and_nothing_that_it_may_not(table, kind, request) -> None:
    X, y = request.getfixturevalue(table)
    factors = _factors(X.shape[1])
    for delta in (100.0, 0.1):
        model = GSVPSVM(delta=delta, penalty_factor=factors, **KINDS[kind]).fit(X, y)
        panel = np.flatnonzero(model.support_)
        assert _keeps_to(panel)
        assert (panel.tolist() == MUST) == (delta == 100.0)
        assert sorted(model.feature_order_[:2]) == MUST
        assert sorted(model.feature_order_[-3:]) == BANNED
        assert sorted(model.feature_order_) == list(range(X.shape[1]))
        assert (model.kkt_residual_ < 1e-5).all()
        if delta == 0.1:
            assert model.score(X, y) > 0.5


@pytest.mark.parametrize("table", ["breast", "wide", "three"])
@pytest.mark.parametrize(
    "options", [{}, {"q": 0.5}, {"n_features": 6}, {"selection": "elbow"}], ids=str
)
def test_every_panel_of_every_fold_keeps_to_the_factors(
    table, options, request, fold_panels
) -> None:
    X, y = request.getfixturevalue(table)
    factors = _factors(X.shape[1])
    model = GSVPSVMCV(tau=1.0, n_deltas=6, cv=3, penalty_factor=factors, **options).fit(X, y)
    assert len(fold_panels) >= 6
    for panel in [*fold_panels, *model.path_["panel"], np.flatnonzero(model.support_)]:
        assert _keeps_to(panel)
    assert min(model.path_["n_features"]) >= len(MUST)
    assert np.isfinite(model.path_["rho"]).all()
    assert model.get_params()["penalty_factor"] is factors
    again = GSVPSVM(**{**options, **model.best_params_}).fit(X, y)
    assert _keeps_to(np.flatnonzero(again.support_))


@pytest.mark.parametrize("table", ["breast", "wide", "three"])
def test_exactly_k_for_every_k(table, request) -> None:
    X, y = request.getfixturevalue(table)
    m = X.shape[1]
    every = list(range(2, m - 2)) if m < 50 else [2, 3, 4, 7, 12, 40]
    for k in every:
        model = GSVPSVM(n_features=k, penalty_factor=_factors(m)).fit(X, y)
        panel = np.flatnonzero(model.support_)
        assert len(panel) == k and _keeps_to(panel)
        if k < m - 3:
            np.testing.assert_array_equal(np.sort(model.feature_order_[:k]), panel)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n_must=st.integers(0, 6),
    n_banned=st.integers(0, 12),
    extra=st.integers(0, 5),
)
def test_exactly_k_whatever_must_and_may_not(seed, n_must, n_banned, extra) -> None:
    X, y = make_planted(40, 20, 3, effect=1.5, random_state=seed, return_X_y=True)
    order = np.random.default_rng(seed).permutation(20)
    must, banned = order[:n_must], order[n_must : n_must + n_banned]
    k = min(max(n_must + extra, 1), 20 - n_banned)
    factors = _factors(20, must, banned)
    model = GSVPSVMCV(n_features=k, cv=3, penalty_factor=factors).fit(X, y)
    for panel in (*model.path_["panel"], np.flatnonzero(model.support_)):
        assert _keeps_to(panel, must, banned)
    assert model.support_.sum() == k
    assert (np.diff(model.path_["n_features"]) > 0).all()


def test_one_may_ask_for_all_that_is_not_banned(wide) -> None:
    X, y = wide
    banned = np.arange(20, 400)
    model = GSVPSVM(n_features=20, penalty_factor=_factors(400, MUST, banned)).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.support_), np.arange(20))
    for k, message in (
        (21, "n_features=21 asks for more features than the 20 of finite penalty_factor"),
        (1, "n_features=1 is less than the 2 features of penalty_factor 0"),
        (401, "more features than the 20 of finite"),
    ):
        for estimator in (GSVPSVM, GSVPSVMCV):
            with pytest.raises(ValueError, match=message):
                estimator(n_features=k, penalty_factor=_factors(400, MUST, banned)).fit(X, y)
    with pytest.raises(ValueError, match="max_features=1 is less than the 2 features of"):
        GSVPSVMCV(max_features=1, penalty_factor=_factors(400)).fit(X, y)


# --- equal factors


@pytest.mark.parametrize("table", ["breast", "wide", "three"])
@pytest.mark.parametrize(
    "options", [{}, {"q": 0.5, "selection": "elbow"}, {"n_features": 5}], ids=str
)
def test_ones_are_the_same_to_the_last_bit(table, options, request) -> None:
    X, y = request.getfixturevalue(table)
    ones = np.ones(X.shape[1])
    for plain in (GSVPSVM(**options), GSVPSVMCV(tau=1.0, n_deltas=5, cv=3, **options)):
        with_ones = clone(plain).set_params(penalty_factor=ones).fit(X, y)
        plain.fit(X, y)
        for name in ("coef_", "intercept_", "feature_order_", "scale_", "kkt_residual_", "delta_"):
            np.testing.assert_array_equal(getattr(plain, name), getattr(with_ones, name))


def test_equal_factors_are_another_delta(wide) -> None:
    X, y = wide
    plain = GSVPSVM(delta=0.2).fit(X, y)
    fours = GSVPSVM(delta=0.05, penalty_factor=np.full(400, 4.0)).fit(X, y)
    np.testing.assert_array_equal(plain.support_, fours.support_)
    np.testing.assert_allclose(plain.coef_, fours.coef_, rtol=1e-7)
    searched = [
        GSVPSVMCV(tau=1.0, n_deltas=8, cv=3, penalty_factor=f).fit(X, y)
        for f in (None, np.full(400, 4.0))
    ]
    np.testing.assert_array_equal(searched[0].support_, searched[1].support_)
    np.testing.assert_allclose(searched[0].delta_, 4.0 * searched[1].delta_, rtol=1e-9)


def test_the_order_of_columns_and_their_units_do_not_matter(wide) -> None:
    X, y = wide
    factors = _factors(400)
    factors[20:60] = 2.0
    rng = np.random.default_rng(0)
    order, units = rng.permutation(400), np.exp(rng.normal(size=400))
    for options in ({"delta": 0.1}, {"n_features": 9}):
        plain = GSVPSVM(penalty_factor=factors, **options).fit(X, y)
        moved = GSVPSVM(penalty_factor=factors[order], **options).fit(X[:, order], y)
        scaled = GSVPSVM(penalty_factor=factors, **options).fit(X * units, y)
        np.testing.assert_array_equal(moved.support_, plain.support_[order])
        np.testing.assert_array_equal(scaled.support_, plain.support_)
        np.testing.assert_allclose(moved.coef_, plain.coef_[:, order], rtol=1e-5, atol=1e-9)


def test_a_feature_that_costs_more_has_to_be_worth_more(wide) -> None:
    X, y = wide
    chosen = np.flatnonzero(GSVPSVM(n_features=6).fit(X, y).support_)
    sizes = []
    for cost in (1.0, 2.0, 20.0):
        factors = np.ones(400)
        factors[chosen] = cost
        panel = np.flatnonzero(GSVPSVM(n_features=6, penalty_factor=factors).fit(X, y).support_)
        sizes.append(len(np.intersect1d(panel, chosen)))
    assert sizes[0] == 6 and sizes[2] == 0
    assert all(a >= b for a, b in pairwise(sizes))


def test_only_what_must_be_in_is_a_fit_on_those_columns(wide) -> None:
    X, y = wide
    must = [4, 8, 15]
    factors = _factors(400, must, np.setdiff1d(np.arange(400), must))
    alone = GSVPSVM(n_features=3).fit(X[:, must], y)
    for model in (
        GSVPSVM(n_features=3, penalty_factor=factors).fit(X, y),
        GSVPSVM(tau=1.0, pool=0.5, refit=False, penalty_factor=factors).fit(X, y),
        GSVPSVMCV(tau=1.0, cv=3, penalty_factor=factors).fit(X, y),
    ):
        np.testing.assert_array_equal(np.flatnonzero(model.support_), must)
        np.testing.assert_allclose(model.coef_[:, must], alone.coef_, rtol=1e-5)
        np.testing.assert_allclose(model.intercept_, alone.intercept_, rtol=1e-5)


# --- kinds of data


def test_rows_moments_batches_sparse_and_frames_agree(three) -> None:
    X, y = three
    X = X * (np.abs(X) > 0.5)
    factors = _factors(300)
    names = [f"g{j}" for j in range(300)]
    by_name = {f"g{j}": 0.0 for j in MUST} | {f"g{j}": np.inf for j in BANNED}
    frame = pd.DataFrame(X, columns=names)
    options = {"n_features": 8, "decision": "scaled"}
    plain = GSVPSVM(penalty_factor=factors, **options).fit(X, y)
    named = GSVPSVM(penalty_factor=by_name, **options)
    batches = clone(named)
    for rows in np.array_split(np.arange(len(y)), 3):
        batches.partial_fit(frame.iloc[rows], y[rows], classes=np.unique(y))
    for model in (
        clone(named).fit(frame, y),
        clone(named).fit_moments(ClassMoments.from_data(frame, y)),
        batches,
        GSVPSVM(penalty_factor=factors, **options).fit(sp.csr_array(X), y),
    ):
        np.testing.assert_array_equal(model.support_, plain.support_)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-12)


def test_dask_keeps_to_the_factors(wide) -> None:
    da = pytest.importorskip("dask.array")
    X, y = wide
    lazy = da.from_array(np.asarray(X), chunks=(35, 100))
    options = {"tau": 1.0, "n_deltas": 5, "cv": 3, "penalty_factor": _factors(400)}
    plain, found = (GSVPSVMCV(**options).fit(rows, y) for rows in (X, lazy))
    assert _keeps_to(np.flatnonzero(found.support_))
    np.testing.assert_array_equal(found.support_, plain.support_)


def test_the_search_by_blocks_keeps_to_the_factors(fold_panels, monkeypatch) -> None:
    X, y = make_planted(600, 15, 4, effect=1.0, random_state=0, return_X_y=True)
    options = {"tau": 1.0, "n_deltas": 5, "cv": 3, "penalty_factor": _factors(15)}
    plain = GSVPSVMCV(**options).fit(X, y)
    monkeypatch.setattr(folds_module, "SAMPLE", 200)
    fold_panels.clear()
    found = GSVPSVMCV(**options).fit(X, y)
    assert len(fold_panels) >= 15 and all(_keeps_to(panel) for panel in fold_panels)
    np.testing.assert_array_equal(found.path_["panel"][0], plain.path_["panel"][0])
    assert _keeps_to(np.flatnonzero(found.support_))


# --- what is given


@pytest.mark.parametrize("estimator", [GSVPSVM, GSVPSVMCV])
@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (np.ones(29), r"one number for each of the 30 features, got shape \(29,\)"),
        (np.full(30, np.inf), "infinite for every feature: there is nothing left"),
        ([np.nan] + 29 * [1], "must be 0 or more, got nan for feature 0"),
        ([-1.0] + 29 * [1], "must be 0 or more, got -1 for feature 0"),
        ({"radius": 0}, "the data has no names: fit on a data frame"),
        (3.0, r"got shape \(\)"),
    ],
    ids=str,
)
def test_bad_factors_are_refused(breast, estimator, factors, message) -> None:
    with pytest.raises(ValueError, match=message):
        estimator(penalty_factor=factors).fit(*breast)


def test_unknown_names_get_a_suggestion(breast) -> None:
    X, y = breast
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(30)])
    with pytest.raises(ValueError, match="not there: 'Gene 77'; did you mean 'gene 7'"):
        GSVPSVM(penalty_factor={"Gene 77": 0}).fit(frame, y)


def test_constant_features_that_must_be_in_are_named(breast) -> None:
    X, y = breast
    X = X.copy()
    X[:, [3, 5, 7]] = 1.0
    factors = _factors(30, [3, 4], [5])
    with pytest.warns(UserWarning) as caught:
        model = GSVPSVM(n_features=4, penalty_factor=factors).fit(X, y)
    texts = [str(w.message) for w in caught]
    assert "1 feature(s) of penalty_factor 0 are constant, so no plane can use them: 3" in texts
    assert "1 constant feature(s) are left out: 7" in texts  # of a banned one no word
    assert model.support_.sum() == 4 and model.support_[4] and not model.support_[3]
    # constant in a fold only: left out there, and in again on all rows
    X = breast[0].copy()
    X[:, 3] = 0.0
    X[:40, 3] = np.arange(40)
    splits = [
        (np.arange(40, len(y)), np.arange(40)),
        (np.arange(len(y) - 40), np.arange(len(y) - 40, len(y))),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GSVPSVMCV(n_features=4, cv=splits, penalty_factor=factors).fit(X, y)
    assert model.support_[[3, 4]].all() and model.support_.sum() == 4


def test_a_pipeline_with_a_selector_in_front_says_what_is_wrong(wide) -> None:
    X, y = wide
    model = make_pipeline(SelectKBest(k=50), GSVPSVM(penalty_factor=_factors(400)))
    with pytest.raises(ValueError, match=r"each of the 50 features.*that reaches this step"):
        model.fit(X, y)
    names = [f"g{j}" for j in range(400)]
    select = SelectKBest(k=50).set_output(transform="pandas")
    first = select.fit(pd.DataFrame(X, columns=names), y).get_feature_names_out()[0]
    model = make_pipeline(select, GSVPSVM(n_features=3, penalty_factor={first: 0}))
    model.fit(pd.DataFrame(X, columns=names), y)
    assert model[-1].support_[0]


@pytest.mark.parametrize("by_name", [False, True])
def test_factors_survive_clones_and_files(breast, by_name, tmp_path) -> None:
    pytest.importorskip("skops")
    X, y = breast
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(30)])
    factors = {"g3": 0.0, "g0": np.inf, "g7": 2.5} if by_name else _factors(30)
    model = clone(GSVPSVM(n_features=4, penalty_factor=factors)).fit(frame, y)
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    again = clone(loaded).fit(frame, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_the_arrays_given_are_left_alone_and_may_be_read_only(breast) -> None:
    factors = _factors(30)
    factors.flags.writeable = False
    GSVPSVMCV(n_features=3, cv=3, penalty_factor=factors).fit(*breast)
    np.testing.assert_array_equal(factors, _factors(30))


def test_processes_find_the_same(wide) -> None:
    X, y = wide
    options = {"tau": 1.0, "n_deltas": 5, "cv": 3, "penalty_factor": _factors(400)}
    one, two = (GSVPSVMCV(n_jobs=n, **options).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_evaluations_and_half_samples_keep_to_the_factors(wide, tmp_path) -> None:
    X, y = wide
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(400)])
    by_name = {f"g{j}": 0.0 for j in MUST} | {f"g{j}": np.inf for j in BANNED}
    model = GSVPSVM(n_features=6, penalty_factor=by_name)
    options = {"n_repeats": 1, "n_permutations": 0, "log": tmp_path / "log.jsonl"}
    found = nested_evaluate(model, frame, y, **options)
    assert all(_keeps_to(fold.panel) for fold in found.folds) and _keeps_to(found.final_panel)
    again = nested_evaluate(model, frame, y, resume=True, **options)
    assert again.to_dict() == found.to_dict()
    stability = StabilitySelection(model, n_resamples=4).fit(frame, y)
    assert (stability.selection_frequencies_[MUST] == 1.0).all()
    assert (stability.selection_frequencies_[BANNED] == 0.0).all()
