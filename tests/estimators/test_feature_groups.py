"""`feature_groups` of the estimators: in a panel together or not at all, and counted as one."""

from __future__ import annotations

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
from sparsegsvp.estimators.groups import FeatureGroups


def _groups(m: int) -> np.ndarray:
    """A third of the features alone, the others in groups of two and three, spread out."""
    order = np.random.default_rng(m).permutation(m)
    labels = np.empty(m, dtype=object)
    grouped = order[: 2 * m // 3]
    for i, start in enumerate(range(0, len(grouped), 5)):
        labels[grouped[start : start + 2]] = f"pair {i}"
        labels[grouped[start + 2 : start + 5]] = f"three {i}"
    return labels


def _whole(panel, labels) -> bool:
    """Whether the panel has all or nothing of every group."""
    inside = np.isin(np.arange(len(labels)), panel)
    return all(
        len({bool(v) for v in inside[labels == label]}) == 1 for label in set(labels) - {None}
    )


def _count(panel, labels) -> int:
    return len({labels[j] if labels[j] is not None else int(j) for j in panel})


@pytest.mark.parametrize("table", ["breast", "wide", "three"])
@pytest.mark.parametrize(
    "options",
    [{}, {"q": 0.5}, {"selection": "elbow"}, {"refit": False}, {"n_features": 4}],
    ids=str,
)
def test_all_or_nothing_in_every_panel_of_every_fold(table, options, request, fold_panels) -> None:
    X, y = request.getfixturevalue(table)
    labels = _groups(X.shape[1])
    model = GSVPSVMCV(tau=1.0, n_deltas=6, cv=3, feature_groups=labels, **options).fit(X, y)
    assert len(fold_panels) >= 6
    final = np.flatnonzero(model.support_)
    for panel in [*fold_panels, *model.path_["panel"], final]:
        assert _whole(panel, labels)
    sizes = [_count(panel, labels) for panel in model.path_["panel"]]
    np.testing.assert_array_equal(model.path_["n_features"], sizes)
    assert any(len(panel) > size for panel, size in zip(model.path_["panel"], sizes))
    np.testing.assert_array_equal(np.sort(model.feature_order_[: len(final)]), final)
    assert sorted(model.feature_order_) == list(range(X.shape[1]))
    assert (model.kkt_residual_ < 1e-5).all()
    if "n_features" in options:
        assert _count(final, labels) == 4
        results = pd.DataFrame(model.cv_results_)
        assert (results[[f"split{f}_n_features" for f in range(3)]] == 4).all(axis=None)
    again = GSVPSVM(**{**options, **model.best_params_}).fit(X, y)
    assert _whole(np.flatnonzero(again.support_), labels)


@pytest.mark.parametrize("table", ["breast", "wide", "three"])
def test_exactly_k_for_every_k(table, request) -> None:
    X, y = request.getfixturevalue(table)
    labels = _groups(X.shape[1])
    there = _count(range(X.shape[1]), labels)
    for k in range(1, there + 1) if there < 50 else (1, 2, 3, 5, 9, 40):
        panel = np.flatnonzero(GSVPSVM(n_features=k, feature_groups=labels).fit(X, y).support_)
        assert _count(panel, labels) == k and _whole(panel, labels)
    for estimator in (GSVPSVM, GSVPSVMCV):
        with pytest.raises(ValueError, match=f"more features than the {there} there are"):
            estimator(n_features=there + 1, feature_groups=labels).fit(X, y)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), n_must=st.integers(0, 3), n_banned=st.integers(0, 4))
def test_exactly_k_beside_what_must_and_may_not(seed, n_must, n_banned) -> None:
    X, y = make_planted(40, 20, 3, effect=1.5, random_state=seed, return_X_y=True)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 9, 20).astype(object)
    order = [labels == label for label in rng.permutation(np.unique(labels.astype(int)))]
    factors = rng.uniform(0.5, 2.0, 20)
    for members in order[:n_must]:
        factors[rng.choice(np.flatnonzero(members))] = 0.0  # one of them stands for all
    for members in order[n_must : n_must + n_banned]:
        factors[rng.choice(np.flatnonzero(members))] = np.inf
    k = min(n_must + 1, len(order) - n_banned)
    options = {"feature_groups": labels, "penalty_factor": factors}
    model = GSVPSVMCV(n_features=k, cv=3, **options).fit(X, y)
    for panel in (*model.path_["panel"], np.flatnonzero(model.support_)):
        assert _whole(panel, labels)
        inside = np.isin(np.arange(20), panel)
        assert all(inside[members].all() for members in order[:n_must])
        assert not any(inside[members].any() for members in order[n_must : n_must + n_banned])
    assert _count(np.flatnonzero(model.support_), labels) == k
    assert (np.diff(model.path_["n_features"]) > 0).all()


@pytest.mark.parametrize("table", ["wide", "three"])
@pytest.mark.parametrize("options", [{}, {"selection": "elbow"}, {"n_features": 5}], ids=str)
def test_groups_of_one_are_none_to_the_last_bit(table, options, request) -> None:
    X, y = request.getfixturevalue(table)
    alone = [f"own {j}" if j % 2 else None for j in range(X.shape[1])]
    for plain in (GSVPSVM(**options), GSVPSVMCV(tau=1.0, n_deltas=5, cv=3, **options)):
        grouped = clone(plain).set_params(feature_groups=alone).fit(X, y)
        plain.fit(X, y)
        for name in ("coef_", "intercept_", "feature_order_", "scale_", "kkt_residual_", "delta_"):
            np.testing.assert_array_equal(getattr(plain, name), getattr(grouped, name))


def test_the_panel_is_closed_and_refitted_there(wide) -> None:
    X, y = wide
    labels = _groups(400)
    plain, grouped = (GSVPSVM(delta=0.1, feature_groups=g).fit(X, y) for g in (None, labels))
    closed = FeatureGroups.of(labels, 400).close(plain.support_)
    assert len(closed) > plain.support_.sum()
    np.testing.assert_array_equal(np.flatnonzero(grouped.support_), closed)
    # the certificate is that of the penalised planes, which know nothing of groups
    np.testing.assert_array_equal(plain.kkt_residual_, grouped.kkt_residual_)
    np.testing.assert_array_equal(plain.objective_, grouped.objective_)
    alone = GSVPSVM(penalty_factor=np.zeros(len(closed))).fit(X[:, closed], y)
    np.testing.assert_allclose(grouped.coef_[:, closed], alone.coef_, rtol=1e-6, atol=1e-12)
    kept = GSVPSVM(delta=0.1, feature_groups=labels, refit=False).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(kept.support_), closed)
    np.testing.assert_array_equal(kept.coef_.any(axis=0), plain.support_)


def test_the_order_of_columns_and_the_names_of_groups_do_not_matter(wide) -> None:
    X, y = wide
    labels = _groups(400)
    order = np.random.default_rng(0).permutation(400)
    names = dict.fromkeys(filter(None, labels))
    numbers = {label: -i for i, label in enumerate(reversed(names))}
    for options in ({"delta": 0.1}, {"n_features": 7}):
        plain = GSVPSVM(feature_groups=labels, **options).fit(X, y)
        moved = GSVPSVM(feature_groups=labels[order], **options).fit(X[:, order], y)
        np.testing.assert_array_equal(moved.support_, plain.support_[order])
        np.testing.assert_allclose(moved.coef_, plain.coef_[:, order], rtol=1e-5, atol=1e-9)
        renamed = [None if label is None else numbers[label] for label in labels]
        other = GSVPSVM(feature_groups=renamed, **options).fit(X, y)
        np.testing.assert_array_equal(other.coef_, plain.coef_)


def test_paths_end_at_so_many_groups(wide) -> None:
    X, y = wide
    labels = np.repeat(np.arange(100), 4)
    model = GSVPSVMCV(tau=1.0, cv=3, max_features=5, feature_groups=labels).fit(X, y)
    assert max(model.path_["n_features"]) <= 5
    assert max(map(len, model.path_["panel"])) > 5
    with pytest.raises(ValueError, match="max_features=1 is less than the 2 features of"):
        factors = np.where(np.isin(labels, [3, 8]), 0.0, 1.0)
        options = {"feature_groups": labels, "penalty_factor": factors}
        GSVPSVMCV(max_features=1, **options).fit(X, y)


def test_a_constant_feature_goes_with_its_group_and_has_no_weight(wide, fold_panels) -> None:
    X, y = wide
    X = X.copy()
    X[:, 1] = 1.0
    labels = np.array([0, 0, 0] + 397 * [None], dtype=object)
    factors = {"penalty_factor": [0.0] + 399 * [1.0]}
    model = GSVPSVM(n_features=2, feature_groups=labels, **factors)
    with pytest.warns(UserWarning, match="of penalty_factor 0 are constant"):
        model.fit(X, y)
    assert model.support_[:3].all() and model.support_.sum() == 4
    assert not model.coef_[:, 1].any() and np.isfinite(model.intercept_).all()
    # the planes are those without it
    left = np.delete(np.arange(400), 1)
    factors = {"penalty_factor": [0.0, 0.0] + 397 * [1.0]}
    other = GSVPSVM(n_features=2, feature_groups=labels[left], **factors).fit(X[:, left], y)
    np.testing.assert_allclose(model.coef_[:, left], other.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X[:, left]), rtol=1e-8)
    # a level that the training part of a fold lacks is still in with the others, in every fold
    X[:, 1] = 0.0
    X[:2, 1] = 1.0
    splits = [(np.arange(2, 70), np.arange(2)), (np.arange(60), np.arange(60, 70))]
    options = {"feature_groups": labels, "penalty_factor": [0.0] + 399 * [1.0]}
    for size in ({"n_features": 3}, {"n_deltas": 4, "refit": False}, {"n_deltas": 4}):
        fold_panels.clear()
        found = GSVPSVMCV(tau=1.0, cv=splits, **size, **options).fit(X, y)
        assert len(fold_panels) >= 4 and found.support_[:3].all()
        assert all(_whole(panel, labels) for panel in fold_panels)


def test_rows_moments_batches_sparse_frames_and_dask_agree(three) -> None:
    X, y = three
    X = X * (np.abs(X) > 0.5)
    labels = _groups(300)
    by_name = {f"g{j}": label for j, label in enumerate(labels) if label is not None}
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(300)])
    options = {"n_features": 6, "decision": "scaled"}
    plain = GSVPSVM(feature_groups=labels, **options).fit(X, y)
    named = GSVPSVM(feature_groups=by_name, **options)
    batches = clone(named)
    for rows in np.array_split(np.arange(len(y)), 3):
        batches.partial_fit(frame.iloc[rows], y[rows], classes=np.unique(y))
    da = pytest.importorskip("dask.array")
    for model in (
        clone(named).fit(frame, y),
        GSVPSVM(feature_groups=pd.Series(by_name), **options).fit(frame, y),
        clone(named).fit_moments(ClassMoments.from_data(frame, y)),
        batches,
        GSVPSVM(feature_groups=labels, **options).fit(sp.csr_array(X), y),
        GSVPSVM(feature_groups=labels, **options).fit(da.from_array(X, chunks=(40, 150)), y),
    ):
        np.testing.assert_array_equal(model.support_, plain.support_)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-12)


def test_the_search_by_blocks_and_processes_keep_groups_whole(fold_panels, monkeypatch) -> None:
    X, y = make_planted(600, 15, 4, effect=1.0, random_state=0, return_X_y=True)
    labels = np.repeat(np.arange(5), 3)
    options = {"tau": 1.0, "n_deltas": 5, "cv": 3, "feature_groups": labels}
    plain, two = (GSVPSVMCV(n_jobs=n, **options).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(plain.coef_, two.coef_)
    monkeypatch.setattr(folds_module, "SAMPLE", 200)
    fold_panels.clear()
    found = GSVPSVMCV(**options).fit(X, y)
    assert len(fold_panels) >= 15 and all(_whole(panel, labels) for panel in fold_panels)
    sizes = [found.cv_results_[f"split{f}_n_features"] for f in range(3)]
    assert np.max(sizes) <= 5
    assert _whole(np.flatnonzero(found.support_), labels)


def test_evaluations_and_half_samples_keep_groups_whole(wide, tmp_path) -> None:
    pytest.importorskip("skops")
    X, y = wide
    labels = _groups(400)
    model = GSVPSVM(n_features=4, feature_groups=labels)
    found = nested_evaluate(
        model, X, y, n_repeats=1, n_permutations=0, log=tmp_path / "log.jsonl"
    )  # a description of the groups is part of the log
    for panel in (*(fold.panel for fold in found.folds), found.final_panel):
        assert _whole(panel, labels) and _count(panel, labels) == 4
    stability = StabilitySelection(model, n_resamples=4).fit(X, y)
    assert all(_whole(np.flatnonzero(row), labels) for row in stability.selections_)
    model.fit(X, y)
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(clone(loaded).fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("estimator", [GSVPSVM, GSVPSVMCV])
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"feature_groups": np.arange(29)}, "one label for each of the 30 features, got 29"),
        ({"feature_groups": "stage"}, "must be one label per feature, or a mapping"),
        ({"feature_groups": 3}, "must be one label per feature, or a mapping"),
        ({"feature_groups": {"stage": 1}}, "the data has no names: .*one label per feature"),
        ({"feature_groups": [["a"]] * 30}, "labels that can be told apart"),
        (
            {"feature_groups": ["a"] * 3 + [None] * 27, "penalty_factor": [0, np.inf] + [1] * 28},
            "is 0 for one feature of the group 'a' and infinite for another",
        ),
        (
            {"feature_groups": ["a"] * 30, "penalty_factor": [np.inf] + [1] * 29},
            "infinite for a feature of every group",
        ),
    ],
    ids=str,
)
def test_bad_groups_are_refused(breast, estimator, asked, message) -> None:
    with pytest.raises(ValueError, match=message):
        estimator(**asked).fit(*breast)


def test_a_pipeline_with_a_selector_in_front_says_what_is_wrong(wide) -> None:
    X, y = wide
    model = make_pipeline(SelectKBest(k=50), GSVPSVM(feature_groups=_groups(400)))
    with pytest.raises(ValueError, match=r"each of the 50 features.*that reaches this step"):
        model.fit(X, y)
