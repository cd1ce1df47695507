"""Learning from moments alone: across sites, in batches, and what is not possible."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sparsegsvp import GSVPSVM, ClassMoments
from sparsegsvp.datasets import make_planted


def assert_same_model(one: GSVPSVM, two: GSVPSVM, X, atol: float = 1e-8) -> None:
    assert_array_equal(one.classes_, two.classes_)
    assert_array_equal(one.support_, two.support_)
    spread = X.std(axis=0)
    assert_allclose(one.coef_ * spread, two.coef_ * spread, atol=atol)
    assert_allclose(one.scale_, two.scale_, atol=atol)
    assert_allclose(one.decision_function(X), two.decision_function(X), atol=atol)
    assert_array_equal(one.predict(X), two.predict(X))


@pytest.fixture(params=["breast", "three"])
def sites(request):
    """Three sites of uneven size that measure on different levels of the same scale."""
    X, y = request.getfixturevalue(request.param)
    X, y = X[:, :40], np.array(["n", "p", "q"])[y]
    cuts = [len(y) // 6, len(y) // 2]
    return X, y, list(zip(np.split(X, cuts), np.split(y, cuts)))


@pytest.mark.parametrize("decision", ["distance", "scaled"])
@pytest.mark.parametrize("settings", [{}, {"n_features": 4}, {"q": 0.5, "delta": 0.03}])
def test_three_sites_get_the_model_of_the_pooled_rows(sites, decision, settings) -> None:
    X, y, parts = sites
    model = GSVPSVM(decision=decision, **settings)
    # all that travels between the sites are plain arrays
    shared = [ClassMoments.from_data(*part).to_dict() for part in parts]
    pooled = sum(ClassMoments.from_dict(arrays) for arrays in shared)
    assert_same_model(clone(model).fit_moments(pooled), clone(model).fit(X, y), X)


def test_a_site_may_lack_a_class(three) -> None:
    X, y = three
    X = X[:, :50]
    parts = [(X[y != k], y[y != k]) for k in range(3)]
    pooled = sum(ClassMoments.from_data(*part) for part in parts)
    # every row was counted at two of the sites
    model = GSVPSVM(decision="scaled")
    assert_same_model(clone(model).fit_moments(pooled), model.fit(X, y), X)


def test_batches_equal_all_moments_equal_all_rows(sites) -> None:
    X, y, parts = sites
    model = GSVPSVM(decision="scaled")
    batched = clone(model)
    for rows, labels in parts:
        assert batched.partial_fit(rows, labels, classes=np.unique(y)) is batched
    assert_same_model(batched, clone(model).fit_moments(ClassMoments.from_data(X, y)), X)
    assert_same_model(batched, clone(model).fit(X, y), X)
    assert batched.moments_.counts.sum() == len(y)


def test_weights_travel_with_the_moments(breast) -> None:
    X, y = breast
    weight = np.random.default_rng(0).uniform(0.0, 3.0, len(y))
    model = GSVPSVM(decision="scaled")
    batched = clone(model)
    for rows in np.array_split(np.arange(len(y)), 4):
        batched.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
    assert_same_model(batched, clone(model).fit(X, y, sample_weight=weight), X)


def test_a_large_mean_does_not_destroy_a_small_spread() -> None:
    X, y = make_planted(300, 10, 3, effect=1.0, return_X_y=True)
    far = X + 1e6
    moments = sum(ClassMoments.from_data(far[i::3], y[i::3]) for i in range(3))
    found = GSVPSVM(decision="scaled").fit_moments(moments)
    expected = GSVPSVM(decision="scaled").fit(X, y)
    # 1e6 leaves ten digits of the spread
    assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    assert_allclose(found.decision_function(far), expected.decision_function(X), atol=1e-6)


def test_rows_may_be_withdrawn(breast) -> None:
    X, y = breast
    moments = ClassMoments.from_data(X, y) - ClassMoments.from_data(X[:100], y[:100])
    model = GSVPSVM(decision="scaled")
    rest = clone(model).fit(X[100:], y[100:])
    assert_same_model(clone(model).fit_moments(moments), rest, X[100:], atol=1e-6)


def test_no_prediction_before_every_class_has_two_rows(breast) -> None:
    X, y = breast
    order = np.argsort(y, kind="stable")
    model = GSVPSVM(decision="scaled")
    model.partial_fit(X[order[:50]], y[order[:50]], classes=[0, 1])
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X[order[50:]], y[order[50:]])
    assert_same_model(model, GSVPSVM(decision="scaled").fit(X[order], y[order]), X)


def test_fit_forgets_batches_and_batches_forget_fit(breast) -> None:
    X, y = breast
    model = GSVPSVM(decision="scaled").partial_fit(X[:200], y[:200])
    model.fit(X, y)
    assert not hasattr(model, "moments_")
    model.partial_fit(X[200:], y[200:])
    assert model.moments_.counts.sum() == len(y) - 200
    model.fit_moments(ClassMoments.from_data(X, y))
    assert not hasattr(model, "moments_")


def test_a_first_batch_that_is_too_small_leaves_nothing_of_an_earlier_fit(breast) -> None:
    X, y = breast
    model = GSVPSVM(decision="scaled").fit(X, y)
    model.partial_fit(X[:1, :5], y[:1], classes=[0, 1])
    assert model.n_features_in_ == 5
    with pytest.raises(NotFittedError):
        model.predict(X[:, :5])


def test_a_refused_batch_leaves_no_trace(breast) -> None:
    X, y = breast
    model = GSVPSVM(decision="scaled").partial_fit(X[:300], y[:300])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X[300:], y[300:] + 7)
    with pytest.raises(ValueError, match="30 features"):
        model.partial_fit(X[300:, :5], y[300:])
    assert_array_equal(model.coef_, before)
    model.partial_fit(X[300:], y[300:])
    assert model.moments_.counts.sum() == len(y)


def test_names_travel_with_the_moments(breast) -> None:
    X, y = breast
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(X.shape[1])])
    moments = ClassMoments.from_dict(ClassMoments.from_data(frame, y).to_dict())
    model = GSVPSVM(decision="scaled").fit_moments(moments)
    assert_array_equal(model.get_feature_names_out(), frame.columns[model.support_])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.iloc[:, ::-1])
    batched = GSVPSVM(decision="scaled").partial_fit(frame[:300], y[:300])
    batched.partial_fit(frame[300:], y[300:])
    assert_array_equal(batched.feature_names_in_, frame.columns)
    # names of an earlier fit do not linger
    assert not hasattr(model.fit_moments(ClassMoments.from_data(X, y)), "feature_names_in_")


@pytest.mark.parametrize("name", ["fit_moments", "partial_fit"])
def test_without_rows_to_calibrate_on_the_decision_is_scaled(breast, name) -> None:
    X, y = breast
    arguments = (ClassMoments.from_data(X, y),) if name == "fit_moments" else (X, y)
    model = GSVPSVM()
    with pytest.warns(UserWarning, match='no rows to calibrate on, so decision="scaled" is used'):
        getattr(model, name)(*arguments)
    expected = getattr(GSVPSVM(decision="scaled"), name)(*arguments)
    assert model.decision == "calibrated" and model.decision_ == expected.decision_ == "scaled"
    assert_array_equal(model.decision_function(X), expected.decision_function(X))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "fitted from moments, which hold no rows" in str(caught.value.__cause__)
    # with rows there are probabilities again
    assert model.fit(X, y).decision_ == "calibrated"
    assert model.predict_proba(X).shape == (len(y), 2)


def test_bad_moments(breast) -> None:
    X, y = breast
    model = GSVPSVM(decision="scaled")
    with pytest.raises(ValueError, match=r"ClassMoments.*from_data"):
        model.fit_moments(X)
    with pytest.raises(ValueError, match="one class only"):
        model.fit_moments(ClassMoments.from_data(X, np.ones(len(y))))
    with pytest.raises(ValueError, match="class 1 has one sample"):
        model.fit_moments(ClassMoments.from_data(X, np.eye(1, len(y), 3, dtype=int)[0]))
    with pytest.raises(ValueError, match="class 1 has no samples"):
        model.fit_moments(ClassMoments.from_data(X[y == 0], y[y == 0], classes=[0, 1]))
    with pytest.raises(ValueError, match="class 1 has one sample"):
        model.partial_fit(X, np.eye(1, len(y), 3, dtype=int)[0])
