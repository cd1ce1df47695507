"""`GSVPSVMCV`: the model of its size, folds by content, groups, the rules, noise."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import (
    GroupKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_predict,
)
from threadpoolctl import threadpool_info, threadpool_limits

from sparsegsvp import GSVPSVM, GSVPSVMCV
from sparsegsvp.datasets import make_planted


@pytest.fixture
def folds(monkeypatch):
    """The folds of every search, training and held-out rows."""
    from sparsegsvp.estimators import gsvpsvm_cv

    seen, plain = [], gsvpsvm_cv._folds
    monkeypatch.setattr(
        gsvpsvm_cv, "_folds", lambda *args: (seen.append(fold) or fold for fold in plain(*args))
    )
    return seen


def test_the_model_is_that_of_its_size_to_the_bit(table, same_bits) -> None:
    X, y = table
    search = GSVPSVMCV().fit(X, y)
    same_bits(search, GSVPSVM(n_features=search.n_features_).fit(X, y))
    assert_array_equal(
        search.decision_function(X), GSVPSVM(search.n_features_).fit(X, y).decision_function(X)
    )
    models = search.fit_path(X, y, [2, search.n_features_])
    same_bits(models[search.n_features_], search)
    same_bits(search, GSVPSVMCV().fit(X, y))


def test_the_path_is_what_separate_fits_give_out_of_fold(three) -> None:
    """Losses by size from one path a fold, against a model of each size fitted in each fold."""
    X, y = three
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    search = GSVPSVMCV(max_features=12, cv=cv, clip=None).fit(X, y)
    assert_array_equal(search.path_["n_features"], np.arange(1, 13))
    for k in (1, 5, 12):
        alone = GSVPSVM(n_features=k, clip=None, decision="discriminant")
        predicted = cross_val_predict(alone, X, y, cv=cv)
        expected = balanced_accuracy_score(y, predicted)
        assert_allclose(search.path_["balanced_accuracy"][k - 1], expected, atol=1e-6)
        assert_allclose(search.path_["loss"][k - 1], 1.0 - expected, atol=1e-6)
        # of a mean of classes' shares
        p = np.array([(predicted[y == c] != c).mean() for c in range(3)])
        error = np.sqrt((p * (1 - p) / np.bincount(y)).sum()) / 3
        assert_allclose(search.path_["balanced_accuracy_se"][k - 1], error, rtol=0.3, atol=0.01)
    errors = GSVPSVMCV(max_features=12, cv=cv, clip=None, scoring="error").fit(X, y)
    predicted = cross_val_predict(alone, X, y, cv=cv)
    assert_allclose(errors.path_["loss"][11], (predicted != y).mean(), atol=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_of_few_rows_are_drawn_four_times(folds, grouped) -> None:
    """Each time anew, and every row is held out once a time; of more rows once is enough."""
    X, y = make_planted(60, 30, 3, effect=1.0, random_state=0, return_X_y=True)
    groups = np.arange(60) // 2 if grouped else None
    GSVPSVMCV().fit(X, y, groups=groups)
    assert len(folds) == 5
    folds.clear()
    GSVPSVMCV().fit(X[:50], y[:50], groups=groups[:50] if grouped else None)
    held = [np.bincount(np.concatenate([h for _, h in folds[i : i + 5]])) for i in (0, 5, 10, 15)]
    assert len(folds) == 20 and all((times == 1).all() for times in held)
    assert len({tuple(sorted(h.tolist())) for _, h in folds}) > 15


def test_folds_depend_on_rows_and_not_on_orders_or_units(table, same_model) -> None:
    X, y = table
    search = GSVPSVMCV().fit(X, y)
    rng = np.random.default_rng(0)
    for _ in range(3):
        rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
        again = GSVPSVMCV().fit(X[rows], y[rows])
        assert_allclose(again.path_["loss"], search.path_["loss"], atol=1e-12)
        same_model(again, search, X)
        for other, back in (
            (X[:, columns], columns),
            (X * 10.0 ** rng.uniform(-3, 3, X.shape[1]), np.arange(X.shape[1])),
        ):
            again = GSVPSVMCV().fit(other, y)
            assert_array_equal(back[again.feature_order_], search.feature_order_)
            assert_allclose(again.path_["loss"], search.path_["loss"], atol=1e-12)
            assert_allclose(again.decision_function(other), search.decision_function(X), atol=1e-6)
    seeds = [GSVPSVMCV(random_state=seed).fit(X, y).path_["loss"] for seed in (0, 1)]
    assert (seeds[0] != seeds[1]).any()


def test_every_row_is_held_out_once_and_labels_are_spread(wide, folds) -> None:
    X, y = wide
    GSVPSVMCV(cv=4).fit(X, y)
    assert len(folds) == 4
    assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(70))
    for train, test in folds:
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(70))
        assert abs(y[test].sum() - y.sum() / 4) <= 1


@pytest.mark.parametrize("cv", [3, GroupKFold(3)], ids=["number", "splitter"])
def test_groups_are_never_split(wide, folds, cv) -> None:
    X, y = wide
    groups = np.random.default_rng(0).permutation(np.arange(70) // 4)
    search = GSVPSVMCV(cv=cv).fit(X, y, groups=groups)
    assert len(folds) == 3
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == 70
    if isinstance(cv, int):  # names of groups do not matter, nor does the order of rows
        rows = np.random.default_rng(1).permutation(70)
        names = np.array([f"patient {97 * g % 18}" for g in groups])
        again = GSVPSVMCV(cv=cv).fit(X[rows], y[rows], groups=names[rows])
        assert_allclose(again.path_["loss"], search.path_["loss"])
    with pytest.raises(ValueError, match="all samples are in one group"):
        GSVPSVMCV().fit(X, y, groups=np.zeros(70))


def test_rows_without_weight_are_in_no_fold(wide, folds, same_model) -> None:
    X, y = wide
    weight = np.random.default_rng(3).integers(0, 3, 70).astype(float)
    kept = weight > 0
    search = GSVPSVMCV().fit(X, y, sample_weight=weight)
    assert set(np.concatenate([np.r_[fold] for fold in folds])) == set(np.flatnonzero(kept))
    for other in (
        GSVPSVMCV().fit(X, y, sample_weight=10 * weight),
        GSVPSVMCV().fit(X[kept], y[kept], sample_weight=weight[kept]),
    ):
        assert other.n_features_ == search.n_features_
        assert_allclose(other.path_["loss"], search.path_["loss"], atol=1e-7)
        same_model(other, search, X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": [(np.arange(42), np.arange(42, 70))]}, "a training fold has no sample of class 1"),
        ({"cv": [(np.arange(70), np.arange(0))]}, "no fold holds out a sample"),
        ({"cv": 1}, "cv must be an integer of at least 2, got 1"),
        ({"rule": "2se"}, "rule must be 'paired', 'best' or '1se', got '2se'"),
        ({"scoring": "auc"}, "scoring must be 'balanced_error' or 'error'"),
        ({"max_features": 0}, "max_features must be an integer of at least 1"),
        ({"random_state": -1}, "random_state must be an integer of at least 0"),
        ({"penalty_factor": np.r_[0, 0, 0, np.ones(397)], "max_features": 2}, "less than the 3"),
    ],
)
def test_what_cannot_be_searched_is_refused(wide, options, message) -> None:
    X, y = wide
    order = np.argsort(y, kind="stable")  # 42 rows of class 0, 28 of class 1
    with pytest.raises(ValueError, match=message):
        GSVPSVMCV(**options).fit(X[order], y[order])


def test_more_folds_than_a_class_has_rows(wide) -> None:
    """A class of three is in no more than three folds' held-out rows, and in all training rows."""
    X, y = wide
    few = np.flatnonzero((y == 0) | (np.cumsum(y == 1) <= 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GSVPSVMCV(cv=10).fit(X[few], y[few])
    assert 1 <= search.n_features_ <= 30


# --- the size ------------------------------------------------------------------------------


def test_rules_are_what_they_say(table) -> None:
    X, y = table
    sizes = {}
    for rule in ("best", "paired", "1se"):
        search = GSVPSVMCV(rule=rule, max_features=25).fit(X, y)
        sizes[rule], path = search.n_features_, search.path_
    loss, error = path["loss"], path["loss_se"]
    assert sizes["best"] == 1 + loss.argmin()
    assert sizes["1se"] == 1 + np.flatnonzero(loss <= loss.min() + error[loss.argmin()])[0]
    assert sizes["paired"] <= sizes["best"] >= sizes["1se"]
    # the paired rule lets go of little: a quarter of an error of a difference, below a loss's
    gain = 1.0 - 1.0 / len(np.unique(y)) - loss.min()
    excess = loss[sizes["paired"] - 1] - loss.min()
    part = 0.03 if len(np.unique(y)) == 2 else 0.01
    assert excess <= max(part * gain, error[loss.argmin()]) + 1e-12


def test_the_default_range_grows_with_the_classes(wide, three, breast) -> None:
    for (X, y), most in ((wide, 30), (three, 35), (breast, 30)):
        assert GSVPSVMCV().fit(X, y).path_["n_features"][-1] == most
    assert GSVPSVMCV(max_features=7).fit(*wide).path_["loss"].shape == (7,)
    small = GSVPSVMCV().fit(breast[0][:, :4], breast[1])
    assert small.path_["n_features"].tolist() == [1, 2, 3, 4]


def test_must_and_never_hold_in_the_search(wide) -> None:
    X, y = wide
    free = GSVPSVMCV().fit(X, y)
    factor = np.ones(400)
    factor[[10, 20, 390]], factor[free.feature_order_[0]] = 0.0, np.inf
    search = GSVPSVMCV(penalty_factor=factor).fit(X, y)
    assert search.support_[[10, 20, 390]].all() and not search.support_[free.feature_order_[0]]
    assert search.n_features_ >= 3


def test_a_feature_that_is_constant_in_a_fold_is_no_candidate_there(wide) -> None:
    X, y = wide[0].copy(), wide[1]
    X[:, 7] = 0.0
    X[3, 7] = 1.0  # constant in the training rows of the fold that holds row 3 out
    search = GSVPSVMCV(max_features=400).fit(X[:, :12], y)
    assert search.path_["n_features"][-1] == 11


def test_many_splits_take_no_more_memory_than_their_training_sets() -> None:
    """Thirty of them, in which hardly two rows lie alike: 22 MB of covariances, not 290."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.standard_normal((400, 300))
    X[:, :4] += 0.6 * y[:, None]
    splits = RepeatedStratifiedKFold(n_splits=5, n_repeats=6, random_state=0)
    tracemalloc.start()
    search = GSVPSVMCV(max_features=6, cv=splits).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    expected = np.zeros(6)
    for inside, outside in splits.split(X, y):
        models = GSVPSVM(decision="discriminant").fit_path(X[inside], y[inside], range(1, 7))
        expected += [1 - m.score(X[outside], y[outside]) for m in models.values()]
    assert_allclose(search.path_["loss"], expected / 30, atol=0.01)  # limits are of all rows


def test_noise_is_not_called_signal() -> None:
    """Out-of-fold accuracy of the best of 30 sizes is a little above 1/2 by choice alone."""
    inside, outside = [], []
    for seed in range(12):
        X, y = make_planted(460, 500, 0, effect=0.0, random_state=seed, return_X_y=True)
        search = GSVPSVMCV().fit(X[:60], y[:60])
        inside.append(search.path_["balanced_accuracy"].mean())
        outside.append(balanced_accuracy_score(y[60:], search.predict(X[60:])))
    assert abs(np.mean(inside) - 0.5) < 0.05
    assert abs(np.mean(outside) - 0.5) < 0.02


def test_few_features_are_enough_where_few_differ(breast) -> None:
    """Three planted features: the size is near three, the accuracy near that of the three."""
    sizes, scores, ideal = [], [], []
    for seed in range(8):
        data = make_planted(460, 300, 3, effect=1.2, random_state=seed)
        search = GSVPSVMCV().fit(data.X[:160], data.y[:160])
        assert search.support_[data.support].sum() >= 2
        sizes.append(search.n_features_)
        model = GSVPSVM(n_features=3).fit(data.X[:160][:, data.support], data.y[:160])
        for scored, fitted, X in (
            (scores, search, data.X),
            (ideal, model, data.X[:, data.support]),
        ):
            scored.append(balanced_accuracy_score(data.y[160:], fitted.predict(X[160:])))
    assert np.mean(sizes) <= 6
    assert np.mean(scores) > np.mean(ideal) - 0.02
    search = GSVPSVMCV().fit(*breast)
    assert search.n_features_ <= 8 and search.path_["balanced_accuracy"].max() > 0.95


# --- storage, threads ------------------------------------------------------------------------


def test_float32_and_sparse_rows_give_the_same_search(same_model) -> None:
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 50)
    X = np.round(4 * rng.exponential(size=(100, 150))) / 4 * (rng.random((100, 150)) < 0.3)
    X[y == 1, :4] += 0.75
    dense = GSVPSVMCV().fit(X, y)
    for kind in (sp.csr_array, sp.csc_matrix, np.asfortranarray, np.float32):
        other = GSVPSVMCV().fit(kind(X), y)
        assert other.n_features_ == dense.n_features_
        assert_allclose(other.path_["loss"], dense.path_["loss"], atol=1e-6)
        same_model(other, dense, X, tol=1e-4 if kind is np.float32 else 1e-8)


def test_n_jobs_is_a_limit_of_threads_that_ends_with_the_fit(wide, same_model) -> None:
    with threadpool_limits(2):
        before = [pool["num_threads"] for pool in threadpool_info()]
        limited = GSVPSVMCV(n_jobs=1).fit(*wide)
        assert [pool["num_threads"] for pool in threadpool_info()] == before
    free = clone(limited).set_params(n_jobs=None).fit(*wide)
    assert free.n_features_ == limited.n_features_
    same_model(free, limited, wide[0])
