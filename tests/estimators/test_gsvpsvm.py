"""`GSVPSVM`: one path for all sizes, its decisions, weights, factors, clipping, moments."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_info, threadpool_limits

from sparsegsvp import GSVPSVM, ClassMoments, subset_gsvp
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import base
from sparsegsvp.estimators.base import DECISIONS, LINEAR, PROBABILISTIC

# --- sizes -------------------------------------------------------------------------------


def test_every_size_of_a_path_is_a_fit_of_its_own_to_the_bit(table, same_bits) -> None:
    X, y = table
    models = GSVPSVM().fit_path(X, y, [1, 4, 13])
    for k, model in models.items():
        assert model.n_features == k == model.support_.sum()
        same_bits(model, GSVPSVM(n_features=k).fit(X, y))


def test_what_is_fitted_is_what_the_function_selects(table) -> None:
    X, y = table
    model, result = GSVPSVM(n_features=6).fit(X, y), subset_gsvp(X, y, 6)
    assert_array_equal(model.feature_order_, result.order)
    assert_array_equal(model.quotients_, result.quotients)
    assert model.tau_ == result.tau
    pairs = len(model.classes_) * (len(model.classes_) - 1) / 2
    # what the features gained is what the criterion lost
    assert_allclose(model.feature_importances_.sum(), pairs - result.quotients[-1])
    assert_array_equal(model.feature_importances_ > 0, model.support_)
    assert_array_equal(np.flatnonzero(model.planes_.any(axis=0)), np.flatnonzero(model.support_))
    assert_allclose(model.prior_, 1.0 / len(model.classes_))


def test_a_planted_support_is_found() -> None:
    """Eight planted features among 2,000: an effect of 1.1 finds most, of 0 none."""
    hits = {1.1: 0, 0.0: 0}
    for effect in hits:
        for seed in range(5):
            data = make_planted(120, 2000, 8, effect=effect, random_state=seed)
            hits[effect] += GSVPSVM(n_features=8).fit(data.X, data.y).support_[data.support].sum()
    assert hits[1.1] >= 32
    assert hits[0.0] <= 2


def test_known_accuracies() -> None:
    X, y = load_digits(return_X_y=True)
    scores = []
    for seed in range(3):
        A, B, a, b = train_test_split(X, y, stratify=y, test_size=0.3, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "[0-9]+ constant feature")
            scores.append(balanced_accuracy_score(b, GSVPSVM(n_features=10).fit(A, a).predict(B)))
    assert np.mean(scores) >= 0.88


# --- decisions ---------------------------------------------------------------------------


@pytest.mark.parametrize("decision", DECISIONS)
def test_decisions_have_the_shapes_and_laws_of_scikit_learn(table, decision) -> None:
    X, y = table
    model = GSVPSVM(n_features=5, decision=decision, clip=None).fit(X, y)
    scores, n_classes = model.decision_function(X), len(model.classes_)
    assert scores.shape == ((len(X),) if n_classes == 2 else (len(X), n_classes))
    winner = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert_array_equal(model.predict(X), model.classes_[winner])
    assert_allclose(
        model.distances(X), X @ model.planes_.T + model.plane_intercepts_, rtol=1e-8, atol=1e-9
    )
    squares = [(model.distances(X[y == k]) ** 2).mean(axis=0) for k in range(n_classes)]
    assert_allclose(model.scale_, np.sqrt(np.mean(squares, axis=0)))
    if decision == "distance":
        assert_array_equal(model.predict(X), model.classes_[np.abs(model.distances(X)).argmin(1)])
    # a row on its own is decided as among others
    alone = np.concatenate([model.decision_function(row[None]) for row in X[:20]])
    assert_allclose(alone, scores[:20], rtol=1e-9, atol=1e-9)
    assert hasattr(model, "predict_proba") == (decision in PROBABILISTIC)
    if decision in PROBABILISTIC:
        p = model.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1.0)
        assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert hasattr(model, "coef_") == (decision in LINEAR)
    if decision in LINEAR:
        assert model.coef_.shape == (1 if n_classes == 2 else n_classes, X.shape[1])
        linear = X @ model.coef_.T + model.intercept_
        assert_allclose(linear[:, 0] if n_classes == 2 else linear, scores, rtol=1e-8, atol=1e-8)
        clipped = GSVPSVM(n_features=5, decision=decision).fit(X, y)
        assert not hasattr(clipped, "coef_")  # it would not be what decides
    # all but the paper's rule, which knows no scale, are good on training rows
    if decision != "distance":
        assert balanced_accuracy_score(y, model.predict(X)) > 0.85


def test_classes_count_the_same_whatever_their_sizes(wide) -> None:
    X, y = wide
    model = GSVPSVM(n_features=4).fit(X, y)
    rows = np.repeat(np.arange(len(y)), np.where(y == 1, 5, 1))
    more = GSVPSVM(n_features=4, tau=model.tau_).fit(X[rows], y[rows])
    assert_array_equal(np.flatnonzero(more.support_), np.flatnonzero(model.support_))
    # the log odds move by less than a tenth where a prior of 5 : 1 would move them by 1.6
    shift = more.decision_function(X) - model.decision_function(X)
    assert np.abs(shift.mean()) < 0.1
    panel = model.transform(X)
    unbalanced = LogisticRegression().fit(panel[rows], y[rows]).decision_function(panel)
    assert unbalanced.mean() > model.decision_function(X).mean() + 0.5


@pytest.mark.parametrize("decision", ["logistic", "discriminant"])
def test_probabilities_are_those_of_equal_priors(decision) -> None:
    """Two normal classes whose log odds are known: 2 mu x for unit variance and means -mu, mu."""
    odds = []
    y = np.repeat([0, 1], [9000, 1000])
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(10_000, 3))
        X[:, 0] += 0.75 * (2 * y - 1)
        model = GSVPSVM(n_features=1, decision=decision, clip=None, tau=0.0).fit(X, y)
        odds.append([model.coef_[0, 0], model.intercept_[0]])
    # a slope is off by .06, a mean of five by less than .03
    assert_allclose(np.mean(odds, axis=0), [1.5, 0.0], atol=0.06)


# --- weights -----------------------------------------------------------------------------


@pytest.mark.parametrize("decision", DECISIONS)
def test_weights_are_repetitions_without_a_scale(three, decision, same_model) -> None:
    X, y = three
    times = np.random.default_rng(1).integers(0, 4, len(y))
    model = GSVPSVM(n_features=5, decision=decision)
    weighted = model.fit(X, y, sample_weight=times)
    kept = times > 0
    repeated = GSVPSVM(**model.get_params()).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    scaled = GSVPSVM(**model.get_params()).fit(X, y, sample_weight=1e-3 * times)
    without = GSVPSVM(**model.get_params()).fit(X[kept], y[kept], sample_weight=times[kept])
    for other in (repeated, scaled, without):
        same_model(weighted, other, X, tol=1e-7)
    # a row of weight 0 is not even looked at for the limits
    wild = np.where(kept[:, None], X, 1e6 * X)
    same_model(weighted, GSVPSVM(**model.get_params()).fit(wild, y, sample_weight=times), X)


def test_a_row_that_weighs_as_much_as_two_is_two(same_model) -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.repeat([0, 1], 10)
    weight = np.r_[np.ones(10), 1.0, np.zeros(9)]
    for single in (1.0, 2.5):
        weight[10] = single
        with pytest.raises(ValueError, match="class 1 has one sample of positive weight"):
            GSVPSVM(n_features=2).fit(X, y, sample_weight=weight)
    weight[10] = 2.0
    weighted = GSVPSVM(n_features=2).fit(X, y, sample_weight=weight)
    rows = np.r_[:11, 10]
    same_model(weighted, GSVPSVM(n_features=2).fit(X[rows], y[rows]), X)


@pytest.mark.parametrize("decision", ["logistic", "calibrated"])
@pytest.mark.parametrize("m", [20, 700])
def test_a_sample_of_many_rows_goes_by_content_and_keeps_weights(
    m, decision, monkeypatch, same_model
) -> None:
    """Defect 18: above 20,000 rows, here 300, weights were ignored."""
    for module in ("base", "gsvpsvm"):
        monkeypatch.setattr(f"sparsegsvp.estimators.{module}.SAMPLE", 300)
    rng = np.random.default_rng(0)
    y = np.arange(900) % 3
    X = rng.normal(size=(900, m))
    X[:, :3] += 1.5 * np.eye(3)[y]
    weight = np.where(X[:, 3] > 0.0, 30.0, 1.0)  # nearly all of it on one half of the rows
    model = GSVPSVM(n_features=5, decision=decision)
    expected = clone(model).fit(X, y, sample_weight=weight)
    rows = rng.permutation(900)
    same_model(clone(model).fit(X[rows], y[rows], sample_weight=weight[rows]), expected, X)
    more = np.r_[X, X[:50] + 9.0], np.r_[y, y[:50]], np.r_[weight, np.zeros(50)]
    same_model(clone(model).fit(more[0], more[1], sample_weight=7.0 * more[2]), expected, X)
    samples, plain = [], base.fit_logistic
    monkeypatch.setattr(base, "fit_logistic", lambda *args: samples.append(args) or plain(*args))
    clone(model).fit(X, y, sample_weight=weight)
    [(_, codes, _, kept, _)] = samples  # what the decision was fitted to
    assert 250 < len(kept) < 350
    assert_allclose(np.bincount(codes, kept), np.bincount(y, weight), rtol=0.2)


@pytest.mark.parametrize("n", [4000, 50_000])
def test_equal_rows_are_rows(n, same_model) -> None:
    """Of three yes-or-no features there are eight different rows; 50,000 answers are 50,000."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = (rng.random((n, 3)) < 0.3 + 0.3 * y[:, None]).astype(float)
    model = GSVPSVM(n_features=3, tau=1e-3).fit(X, y)
    plain = LogisticRegression(class_weight="balanced", C=100.0).fit(X, y)
    assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.01)
    rows = rng.permutation(n)
    same_model(GSVPSVM(n_features=3, tau=1e-3).fit(X[rows], y[rows]), model, X)


def test_a_decision_of_many_coefficients_is_as_exact_as_one_of_few(monkeypatch, same_model) -> None:
    """Above 500 of them it stopped early, at weights that went by the order of the rows."""
    rng = np.random.default_rng(0)
    y = np.arange(1200) % 8
    X = rng.normal(size=(1200, 40)) + 2.0 * (np.arange(40) % 9 == y[:, None])
    exact = GSVPSVM(n_features=20).fit(X, y)
    monkeypatch.setattr(base, "_FEW", 0)
    model, rows = GSVPSVM(n_features=20).fit(X, y), rng.permutation(1200)
    same_model(model, exact, X)
    same_model(GSVPSVM(n_features=20).fit(X[rows], y[rows]), model, X, tol=1e-8)


# --- factors, constants, copies ------------------------------------------------------------


def test_factors_are_must_never_and_costs(wide) -> None:
    pd = pytest.importorskip("pandas")
    X, y = wide
    free = GSVPSVM(n_features=5).fit(X, y)
    best, second = free.feature_order_[:2]
    names = [f"gene {j}" for j in range(400)]
    factor = np.ones(400)
    factor[[50, 333]], factor[best] = 0.0, np.inf
    by_name = {names[50]: 0.0, names[333]: 0.0, names[best]: np.inf}
    frame = pd.DataFrame(X, columns=names)
    steered = GSVPSVM(n_features=5, penalty_factor=factor).fit(X, y)
    for given in (by_name, pd.Series(by_name)):
        named = GSVPSVM(n_features=5, penalty_factor=given).fit(frame, y)
        assert_array_equal(named.feature_order_, steered.feature_order_)
    assert set(steered.feature_order_[:2]) == {50, 333}
    assert not steered.support_[best]
    # a cost of the ratio of gains is where the order of two features changes
    gains = 1.0 - np.array([subset_gsvp(X[:, [f]], y, 1, tau=free.tau_).quotients[0]
                            for f in (best, second)])  # fmt: skip
    for cost, first in ((0.99 * gains[0] / gains[1], best), (1.01 * gains[0] / gains[1], second)):
        pair = np.full(400, np.inf)
        pair[best], pair[second] = cost, 1.0
        model = GSVPSVM(n_features=1, penalty_factor=pair, tau=free.tau_).fit(X, y)
        assert model.feature_order_[0] == first
    with pytest.raises(ValueError, match="less than the 2 features of penalty_factor 0"):
        GSVPSVM(n_features=1, penalty_factor=factor).fit(X, y)
    with pytest.raises(ValueError, match="names features that are not there: 'gene x'"):
        GSVPSVM(penalty_factor={"gene x": 0.0}).fit(frame, y)
    with pytest.raises(ValueError, match="the data has no names"):
        GSVPSVM(penalty_factor=by_name).fit(X, y)
    for wrong, message in ((factor[:-1], "one number for each"), (-factor, "0 or more"),
                           (np.full(400, np.inf), "nothing left")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            GSVPSVM(penalty_factor=wrong).fit(X, y)


def test_constant_columns_are_left_out_and_said(table) -> None:
    X, y = table
    wider = np.column_stack([np.full(len(y), 7.3), X, np.zeros(len(y))])
    last = X.shape[1] + 1
    with pytest.warns(UserWarning, match=rf"2 constant feature\(s\) are left out: 0, {last}"):
        model = GSVPSVM(n_features=4).fit(wider, y)
    assert_array_equal(model.feature_order_ - 1, GSVPSVM(n_features=4).fit(X, y).feature_order_)
    assert not model.planes_[:, [0, last]].any()
    with pytest.raises(ValueError, match="all features are constant"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GSVPSVM().fit(np.ones_like(X) * np.arange(X.shape[1]), y)


def test_more_features_than_vary_are_all_of_them_with_one_warning(breast) -> None:
    X, y = breast[0][:, :7], breast[1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GSVPSVM(n_features=9).fit(X, y)
    assert [str(w.message) for w in caught] == [
        "n_features=9 is more than the 7 features that vary: all of them are selected"
    ]
    assert model.support_.all() and model.n_features == 9
    assert_array_equal(model.feature_order_, GSVPSVM(n_features=7).fit(X, y).feature_order_)


# --- outliers ----------------------------------------------------------------------------


def test_an_outlier_cannot_throw_a_prediction(table) -> None:
    X, y = table
    model, open_ = (GSVPSVM(n_features=5, clip=clip).fit(X, y) for clip in (3.0, None))
    first = model.feature_order_[0]
    rows = X[:30].copy()
    rows[:, first] = 1e9 * X[:, first].std()
    # no further away than the farthest value that training knows
    at_limit = X[:30].copy()
    at_limit[:, first] = model.limits_[1, np.flatnonzero(model.support_) == first]
    assert_allclose(model.decision_function(rows), model.decision_function(at_limit))
    assert np.abs(model.decision_function(rows)).max() < 50
    assert np.abs(open_.decision_function(rows)).max() > 1e6
    assert (model.limits_[0] < model.limits_[1]).all() and open_.limits_ is None


def test_zeros_stay_zero_in_training_and_prediction(same_model) -> None:
    """Zeros that lie outside the limits: a dense table and a sparse one are one table."""
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 60)
    X = np.where(rng.random((120, 40)) < 0.03, 0.0, 10 + rng.normal(size=(120, 40)))
    X[y == 1, :3] += 1.0 * (X[y == 1, :3] != 0)
    for clip in (1.0, 3.0):
        dense = GSVPSVM(n_features=4, clip=clip).fit(X, y)
        sparse = GSVPSVM(n_features=4, clip=clip).fit(sp.csr_array(X), y)
        same_model(dense, sparse, X, tol=1e-8)
        zeros = np.zeros((1, 40))
        expected = dense.decision_function(zeros)
        assert (dense.limits_[0] > 0).any() or clip == 3.0
        assert_allclose(dense.distances(zeros), [dense.plane_intercepts_])
        assert_allclose(sparse.decision_function(sp.csr_array(zeros)), expected)


# --- moments, batches ----------------------------------------------------------------------


def test_moments_and_batches_give_the_model_of_the_rows(table, same_model) -> None:
    X, y = table
    labels = np.array(["a", "b", "c"])[y]
    model = GSVPSVM(n_features=5, decision="discriminant", clip=None)
    expected = model.fit(X, labels)
    moments = ClassMoments.from_data(X, labels)
    same_model(GSVPSVM(**model.get_params()).fit_moments(moments), expected, X)
    batches = GSVPSVM(**model.get_params())
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 6):
        batches.partial_fit(X[rows], labels[rows], classes=np.unique(labels))
    same_model(batches, expected, X)
    near = [[[f for f, *_ in others] for others in m.stand_ins_] for m in (batches, expected)]
    assert near[0] == near[1]  # of the last batch, not of an earlier one
    refused = {**batches.__dict__}
    with pytest.raises(ValueError, match="not in classes"):
        batches.partial_fit(X[:3], ["a", "b", "z"])
    assert batches.__dict__ == refused  # a batch that is refused leaves no trace
    with pytest.warns(UserWarning, match='"discriminant" is used'):
        default = GSVPSVM(n_features=5).fit_moments(moments)
    assert default.decision_ == "discriminant"
    assert not hasattr(batches.fit(X, labels), "moments_")
    with pytest.raises(ValueError, match="must be a ClassMoments, got dict"):
        GSVPSVM().fit_moments(moments.to_dict())


# --- manners -------------------------------------------------------------------------------


def test_threads_of_blas_are_left_as_they_were(wide, breast, same_model) -> None:
    with threadpool_limits(2):
        before = [pool["num_threads"] for pool in threadpool_info()]
        models = Parallel(2, backend="threading")(
            delayed(GSVPSVM(n_features=k).fit)(*data)
            for k in range(1, 7)
            for data in (wide, breast)
        )
        assert [pool["num_threads"] for pool in threadpool_info()] == before
    for model, data in zip(models[:2], (wide, breast)):
        same_model(model, GSVPSVM(n_features=1).fit(*data), data[0])
