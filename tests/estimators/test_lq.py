"""`LqGSVPSVM`: the penalised planes, the panel they select and the classifier on it."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp import LqGSVPSVM, sparse_gsvp
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import elbow_features

DECISIONS = ["logistic", "calibrated", "scaled", "distance"]


@parametrize_with_checks([LqGSVPSVM(), LqGSVPSVM(q=0.5, delta=0.03, decision="calibrated")])
def test_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the best (bias|plane)", RuntimeWarning)
        check(estimator)


@pytest.fixture(scope="module")
def breast():
    X, y = load_breast_cancer(return_X_y=True)
    return X, np.array(["malignant", "benign"])[y]


@pytest.fixture(scope="module")
def wide():
    dataset = make_planted(80, 400, 6, effect=1.5, random_state=0)
    return dataset.X, dataset.y


def _same(left, right, atol=1e-6):
    np.testing.assert_array_equal(left.support_, right.support_)
    np.testing.assert_array_equal(left.feature_order_, right.feature_order_)
    size = np.abs(left.planes_).max()
    np.testing.assert_allclose(left.planes_, right.planes_, atol=atol * size)
    np.testing.assert_allclose(left.objective_, right.objective_, rtol=atol)


@pytest.mark.parametrize("q", [1.0, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_planes_are_those_of_the_penalised_problem(q, n_classes):
    """Unrefitted planes in the units of X are solutions on standardised columns."""
    X, y = load_iris(return_X_y=True)
    X = np.c_[X, np.random.default_rng(0).normal(size=(150, 6))][y < n_classes]
    y = y[y < n_classes]
    deltas = np.linspace(0.02, 0.05, n_classes)
    model = LqGSVPSVM(q=q, delta=deltas, refit=False, decision="distance").fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_array_equal(model.delta_, deltas)
    w = model.planes_ * X.std(axis=0)
    b = model.plane_intercepts_ + model.planes_ @ X.mean(axis=0)
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1.0)
    np.testing.assert_array_equal(np.flatnonzero(w.any(axis=0)), np.flatnonzero(model.support_))
    np.testing.assert_allclose(model.distances(X), Z @ w.T + b, atol=1e-9)
    squares = [np.mean((Z[y == k] @ w.T + b) ** 2, axis=0) for k in range(n_classes)]
    np.testing.assert_allclose(model.scale_, np.sqrt(np.mean(squares, axis=0)))
    if n_classes == 2:
        for i in (0, 1):
            result = sparse_gsvp(Z[y == i], Z[y != i], deltas[i], q=q, pool=0.5, w0=w[i])
            np.testing.assert_allclose(result.w, w[i], atol=1e-6)
            assert result.objective == pytest.approx(model.objective_[i], rel=1e-9)
            assert result.b == pytest.approx(b[i], abs=1e-6)
    assert model.kkt_residual_.max() <= 1e-6 and model.n_iter_ > 0


@pytest.mark.parametrize("decision", DECISIONS)
def test_decisions(breast, decision):
    X, y = breast
    model = LqGSVPSVM(decision=decision).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose([model.decision_function(x[None])[0] for x in X[:20]], scores[:20])
    assert hasattr(model, "coef_") == (decision == "logistic")
    if decision == "logistic":
        np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, scores[:, None])
        assert model.coef_.shape == (1, 30)
    if decision == "distance":
        nearest = np.abs(X @ model.planes_.T + model.plane_intercepts_).argmin(axis=1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[nearest])
    if decision in ("logistic", "calibrated"):
        proba = model.predict_proba(X)
        np.testing.assert_allclose(np.log(proba[:, 1] / proba[:, 0]), scores, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(model.prior_, [0.5, 0.5])
    else:
        with pytest.raises(AttributeError, match="predict_proba"):
            model.predict_proba(X)


def test_refitted_planes_have_the_smallest_quotient_on_the_panel(breast):
    X, y = breast
    model = LqGSVPSVM().fit(X, y)
    Z = ((X - X.mean(axis=0)) / X.std(axis=0))[:, model.support_]
    for i, label in enumerate(model.classes_):
        best = sparse_gsvp(Z[y == label], Z[y != label], 0.0, pool=0.5)
        w = (model.planes_[i] * X.std(axis=0))[model.support_]
        np.testing.assert_allclose(w, best.w, atol=1e-8)


def test_the_elbow_selects_from_each_plane(breast):
    X, y = breast
    every = LqGSVPSVM(delta=0.01, refit=False).fit(X, y)
    elbow = LqGSVPSVM(delta=0.01, selection="elbow").fit(X, y)
    w = every.planes_ * X.std(axis=0)
    expected = np.unique(np.concatenate([elbow_features(row) for row in w]))
    np.testing.assert_array_equal(np.flatnonzero(elbow.support_), expected)
    assert elbow.support_.sum() < every.support_.sum()
    np.testing.assert_array_equal(elbow.objective_, every.objective_)
    order = np.argsort(-np.abs(w).max(axis=0), kind="stable")[: every.support_.sum()]
    np.testing.assert_array_equal(every.feature_order_, order)


@pytest.mark.parametrize("q", [1.0, 0.5])
def test_a_planted_panel_is_recovered(q):
    """An effect of 1.5 standard deviations among many features; a weaker one is missed."""
    recovered = {}
    for effect in (1.5, 0.15):
        dataset = make_planted(150, 500, 5, effect=effect, random_state=3)
        panels = [
            LqGSVPSVM(q=q, delta=delta).fit(dataset.X, dataset.y).support_
            for delta in np.geomspace(0.3, 0.03, 8)
        ]
        recovered[effect] = any(
            np.array_equal(np.flatnonzero(panel), dataset.support) for panel in panels
        )
    assert recovered == {1.5: True, 0.15: False}


@pytest.mark.parametrize("shape", ["wide", "tall"])
def test_every_storage_gives_the_same_model(wide, shape):
    X, y = wide if shape == "wide" else (load_breast_cancer().data, load_breast_cancer().target)
    X = X * (np.median(X, axis=0) < X)
    model = LqGSVPSVM(delta=0.1).fit(X, y)
    frame = pd.DataFrame(X, columns=[f"g{i}" for i in range(X.shape[1])])
    for kind in (sp.csr_array(X), sp.csc_matrix(X), np.asfortranarray(X), frame):
        other = LqGSVPSVM(delta=0.1).fit(kind, y)
        _same(model, other)
        np.testing.assert_allclose(
            other.decision_function(kind), model.decision_function(X), atol=1e-6
        )
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(30, 100))
    other = LqGSVPSVM(delta=0.1).fit(lazy, y)
    _same(model, other)
    np.testing.assert_array_equal(other.predict(lazy), model.predict(X))
    single = LqGSVPSVM(delta=0.1).fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(single.support_, model.support_)
    np.testing.assert_allclose(single.objective_, model.objective_, rtol=1e-4)


@pytest.mark.parametrize("shape", ["wide", "tall"])
def test_weights_are_repetitions_and_free_of_scale(wide, shape):
    X, y = wide if shape == "wide" else load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    model = LqGSVPSVM(delta=0.05).fit(X, y, sample_weight=weight)
    _same(model, LqGSVPSVM(delta=0.05).fit(X, y, sample_weight=10.0 * weight), atol=1e-9)
    repeated = LqGSVPSVM(delta=0.05).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    _same(model, repeated)
    np.testing.assert_allclose(repeated.coef_, model.coef_, atol=1e-5)
    _same(model, LqGSVPSVM(delta=0.05).fit(X[weight > 0], y[weight > 0], weight[weight > 0]))
    alone = np.where((y == y[0]) & (np.arange(len(y)) > np.flatnonzero(y == y[0])[0]), 0.0, 1.0)
    with pytest.raises(ValueError, match=r"one sample.*at least two"):
        LqGSVPSVM().fit(X, y, sample_weight=alone)


def test_units_labels_and_order_do_not_matter(wide):
    X, y = wide
    model = LqGSVPSVM(delta=0.1).fit(X, y)
    rng = np.random.default_rng(1)
    scale, shift, order = rng.uniform(1e-3, 1e3, 400), rng.normal(size=400), rng.permutation(80)
    other = LqGSVPSVM(delta=0.1).fit((X * scale + shift)[order], np.array(["b", "c"])[y[order]])
    np.testing.assert_array_equal(model.support_, other.support_)
    np.testing.assert_allclose(other.planes_ * scale, model.planes_, atol=1e-6)
    columns = rng.permutation(400)
    moved = LqGSVPSVM(delta=0.1).fit(X[:, columns], y)
    np.testing.assert_array_equal(columns[moved.feature_order_], model.feature_order_)


def test_factors(wide):
    X, y = wide
    frame = pd.DataFrame(X, columns=[f"g{i}" for i in range(400)])
    plain = LqGSVPSVM(delta=0.1).fit(frame, y)
    best, dull = plain.feature_order_[0], np.flatnonzero(~plain.support_)[0]
    factors = {f"g{dull}": 0.0, f"g{best}": np.inf}
    model = LqGSVPSVM(delta=0.1, penalty_factor=factors).fit(frame, y)
    assert model.feature_order_[0] == dull and not model.support_[best]
    dear = LqGSVPSVM(delta=0.1, penalty_factor={f"g{best}": 5.0}).fit(frame, y)
    assert not dear.support_[best]
    frame["g3"] = 1.0
    with pytest.warns(UserWarning, match=r"1 constant feature\(s\) are left out: g3"):
        model = LqGSVPSVM(delta=0.1, penalty_factor={"g3": 0.0}).fit(frame, y)
    assert not model.support_[3]


def test_selector_and_clone(breast):
    X, y = breast
    frame = pd.DataFrame(X).add_prefix("f")
    model = LqGSVPSVM(penalty_factor={"f3": 0.0}).fit(frame, y)
    panel = np.flatnonzero(model.support_)
    np.testing.assert_array_equal(model.transform(frame), X[:, panel])
    assert model.get_feature_names_out().tolist() == [f"f{i}" for i in panel]
    again = clone(model).fit(frame, y)
    np.testing.assert_array_equal(again.planes_, model.planes_)
    np.testing.assert_array_equal(model.predict(frame.iloc[:, panel]), model.predict(frame))


def test_warnings_say_what_to_do(breast):
    X, y = breast
    with pytest.warns(ConvergenceWarning, match=r"not met for the plane of .*raise max_iter"):
        LqGSVPSVM(delta=1e-3, tau=0.01, max_iter=1).fit(X, y)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 5))
    Z -= Z.mean(axis=0)
    with pytest.warns(RuntimeWarning, match="infinity") as caught:
        model = LqGSVPSVM(pool=0.0).fit(np.r_[3 * Z, Z], np.repeat([0, 1], 60))
    assert caught[0].filename == __file__
    assert np.isfinite(model.planes_).all() and np.isfinite(model.plane_intercepts_).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "delta must be a positive number, or one for each of the 2 classes"),
        ({"delta": [0.1, 0.2, 0.3]}, "delta must be a positive number, or one for each"),
        ({"q": 1.5}, "q must be a number above 0 and at most 1"),
        ({"tau": -1.0}, "tau must be a number of at least 0"),
        ({"pool": 2.0}, "pool must be a number of at least 0 and at most 1"),
        ({"selection": "best"}, "selection must be 'nonzero' or 'elbow'"),
        ({"decision": "discriminant"}, "decision must be 'logistic', 'calibrated'"),
        ({"penalty_factor": np.full(30, np.inf)}, "infinite for every feature"),
        ({"eps": 0.0}, "eps must be a number above 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
    ],
)
def test_bad_parameters(breast, change, message):
    with pytest.raises(ValueError, match=message):
        LqGSVPSVM(**change).fit(*breast)
