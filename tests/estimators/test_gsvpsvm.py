"""GSVPSVM: what its planes, scales and probabilities are, and what must not change them."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sparsegsvp import GSVPSVM
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import elbow_features
from sparsegsvp.estimators.decision import fit_calibrator, log_distances

DECISIONS = ("calibrated", "scaled", "distance")


@pytest.fixture(params=["breast", "wide", "three"])
def table(request):
    return request.getfixturevalue(request.param)


def standardized(X, weight=None):
    """Weighted mean 0 and variance 1, with ddof = 0."""
    mean = np.average(X, axis=0, weights=weight)
    return (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))


def distance_forms(Z, y, panel, pool, tau):
    """Per class the matrix M_k with [w; b]' M_k [w; b] = MSD_k + tau ||w||^2, and S_W."""
    Z = Z[:, panel]
    parts = [Z[y == k] for k in np.unique(y)]
    covs = [np.cov(part.T, ddof=0).reshape(len(panel), len(panel)) for part in parts]
    pooled = sum(len(part) * cov for part, cov in zip(parts, covs)) / len(Z)
    forms = []
    for part, cov in zip(parts, covs):
        mean = np.append(part.mean(axis=0), 1.0)
        form = np.outer(mean, mean)
        form[:-1, :-1] += (1 - pool) * cov + pool * pooled + tau * np.eye(len(panel))
        forms.append(form)
    return forms


# --- the planes ----------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [0.0, 0.5, 1.0])
def test_refit_is_the_smallest_generalized_eigenvector_on_the_panel(table, pool) -> None:
    X, y = table
    model = GSVPSVM(n_features=7, pool=pool, tau=0.7).fit(X, y)
    panel = model.get_support(indices=True)
    Z = standardized(X)
    forms = distance_forms(Z, y, panel, pool, tau=0.7)
    for k, own in enumerate(forms):
        other = np.mean([form for j, form in enumerate(forms) if j != k], axis=0)
        z = scipy.linalg.eigh(own, other)[1][:, 0]
        z /= np.linalg.norm(z[:-1])
        expected = Z[:, panel] @ z[:-1] + z[-1]
        found = X @ model.coef_[k] + model.intercept_[k]
        # the rest lies on the positive side, whatever the sign of the eigenvector
        expected *= np.sign(expected[y != k].mean())
        assert_allclose(found, expected, atol=1e-8)


def test_coefficients_are_standardized_unit_normals_in_units_of_X(table) -> None:
    X, y = table
    model = GSVPSVM().fit(X, y)
    normals = model.coef_ * X.std(axis=0)
    assert_allclose(np.linalg.norm(normals, axis=1), 1.0)
    biases = model.intercept_ + model.coef_ @ X.mean(axis=0)
    assert_allclose(
        X @ model.coef_.T + model.intercept_, standardized(X) @ normals.T + biases, atol=1e-9
    )
    assert_allclose(model.distances(X), X @ model.coef_.T + model.intercept_, atol=1e-9)
    assert not model.coef_[:, ~model.support_].any()


def test_without_standardization_normals_are_units_in_X(three) -> None:
    X, y = three
    model = GSVPSVM(standardize=False).fit(X, y)
    assert_allclose(np.linalg.norm(model.coef_, axis=1), 1.0)
    # for variables of unit scale already, the scale of all of them changes nothing but tau
    scaled = GSVPSVM(standardize=False, tau=100.0).fit(10 * X, y)
    assert_allclose(scaled.coef_, model.coef_, atol=1e-8)


@pytest.mark.parametrize("selection", ["nonzero", "elbow"])
def test_without_refit_the_penalised_planes_are_cut_to_the_panel(wide, selection) -> None:
    X, y = wide
    model = GSVPSVM(refit=False, delta=0.15, selection=selection).fit(X, y)
    whole = GSVPSVM(refit=False, delta=0.15).fit(X, y)
    assert_array_equal(model.objective_, whole.objective_)
    normals = whole.coef_ * X.std(axis=0)
    keep = np.arange(X.shape[1])
    if selection == "elbow":
        keep = np.unique(np.concatenate([elbow_features(row) for row in normals]))
        assert 0 < len(keep) < whole.support_.sum()
    assert_array_equal(
        np.flatnonzero(model.support_), np.intersect1d(keep, np.flatnonzero(normals.any(0)))
    )
    cut = np.where(model.support_, normals, 0.0)
    assert_allclose(
        model.coef_ * X.std(axis=0), cut / np.linalg.norm(cut, axis=1, keepdims=True), atol=1e-12
    )


@pytest.mark.parametrize(("q", "delta"), [(1.0, 0.12), (0.5, 0.03)])
def test_objective_and_certificate_describe_the_penalised_solution(table, q, delta) -> None:
    X, y = table
    tau, pool, eps = 0.7, 0.4, 2e-3
    model = GSVPSVM(q, delta, tau=tau, pool=pool, eps=eps, refit=False).fit(X, y)
    assert 2 < model.support_.sum() < X.shape[1]
    everything = np.arange(X.shape[1])
    forms = distance_forms(standardized(X), y, everything, pool, tau)
    normals = model.coef_ * X.std(axis=0)
    biases = model.intercept_ + model.coef_ @ X.mean(axis=0)
    for k, own in enumerate(forms):
        other = np.mean([form for j, form in enumerate(forms) if j != k], axis=0)
        z = np.append(normals[k], biases[k])
        top, bottom = z @ own @ z, z @ other @ z
        size = np.abs(z[:-1])
        penalty = size if q == 1.0 else (size + eps) ** q - eps**q
        slope = np.ones_like(size) if q == 1.0 else q * (size + eps) ** (q - 1)
        assert_allclose(model.objective_[k], top / bottom + delta * penalty.sum())
        # design, section 2.2: stationarity on the sphere
        g = 2 / bottom * (own @ z - top / bottom * (other @ z))
        assert abs(g[-1]) < 1e-8  # the bias is at its best
        g, w = g[:-1], z[:-1]
        violation = np.where(
            w != 0,
            np.abs(g + delta * slope * np.sign(w) - delta * (slope @ size) * w),
            np.maximum(np.abs(g) - delta * slope, 0.0),
        )
        assert_allclose(violation.max(), model.kkt_residual_[k], atol=1e-9)
        assert model.kkt_residual_[k] < 1e-5


def test_one_delta_per_class(breast) -> None:
    """The planes are separate problems: each is that of its own delta."""
    X, y = breast
    both = GSVPSVM(delta=(0.05, 0.3), refit=False).fit(X, y)
    for k, delta in enumerate((0.05, 0.3)):
        single = GSVPSVM(delta=delta, refit=False).fit(X, y)
        assert_array_equal(both.coef_[k], single.coef_[k])
        assert both.delta_[k] == delta


def test_less_penalty_gives_more_features(wide) -> None:
    sizes = [GSVPSVM(delta=d).fit(*wide).support_.sum() for d in (0.5, 0.2, 0.1, 0.05)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


@pytest.mark.parametrize("options", [{}, {"q": 0.5}, {"tau": 1.0, "pool": 0.5}, {"refit": False}])
@pytest.mark.parametrize("k", [1, 2, 5, 20])
def test_exactly_n_features_are_selected(table, k, options) -> None:
    X, y = table
    model = GSVPSVM(n_features=k, **options).fit(X, y)
    assert model.support_.sum() == k
    assert (model.coef_ != 0).any(axis=0).sum() == k
    assert set(model.feature_order_[:k]) == set(np.flatnonzero(model.support_))


def test_every_number_of_features_can_be_had(breast, wide) -> None:
    X, y = breast
    for k in range(1, 31):
        assert GSVPSVM(n_features=k).fit(X, y).support_.sum() == k
    X, y = wide
    for k in (70, 71, 150, 399, 400):  # beyond the number of rows, and beyond any path
        assert GSVPSVM(n_features=k).fit(X, y).support_.sum() == k


def test_of_features_that_do_not_vary_none_is_selected(wide) -> None:
    X, y = wide
    X = X[:, :9].copy()
    X[:, [2, 5]] = 3.0
    with pytest.warns(UserWarning, match="constant"):
        models = [GSVPSVM(n_features=k).fit(X, y) for k in (6, 7, 8, 9)]
    assert [int(model.support_.sum()) for model in models] == [6, 7, 7, 7]
    assert not any(model.support_[[2, 5]].any() for model in models)


def test_a_panel_of_given_size_has_a_path_and_planes_of_their_own_defaults(wide) -> None:
    X, y = wide
    model = GSVPSVM(n_features=6).fit(X, y)
    path = GSVPSVM(n_features=6, tau=6.0, pool=1.0).fit(X, y)
    assert_array_equal(model.support_, path.support_)
    panel = np.flatnonzero(model.support_)
    planes = GSVPSVM(n_features=6, tau=1.0, pool=0.5).fit(X[:, panel], y)
    assert_allclose(model.coef_[:, panel], planes.coef_)
    # explicit values are those of the path and of the planes
    assert not np.allclose(path.coef_[:, panel], planes.coef_)
    # and without a size they are what they always were
    assert_array_equal(GSVPSVM().fit(X, y).coef_, GSVPSVM(tau=1.0, pool=0.5).fit(X, y).coef_)


def test_feature_order_starts_with_the_heaviest_of_the_panel(wide) -> None:
    X, y = wide
    model = GSVPSVM(delta=0.15, refit=False).fit(X, y)
    assert_array_equal(np.sort(model.feature_order_), np.arange(X.shape[1]))
    weight = np.abs(model.coef_ * X.std(axis=0)).max(axis=0)
    assert (np.diff(weight[model.feature_order_]) <= 0).all()
    # the first that is left out is the next to come in
    following = model.feature_order_[model.support_.sum()]
    smaller = GSVPSVM(delta=0.14).fit(X, y)
    assert smaller.support_[following]


# --- the decision --------------------------------------------------------------------------


def test_scale_is_the_class_balanced_root_mean_square_distance(table) -> None:
    X, y = table
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    for w in (None, weight):
        model = GSVPSVM().fit(X, y, sample_weight=w)
        squared = model.distances(X) ** 2
        means = [
            np.average(squared[y == k], axis=0, weights=None if w is None else w[y == k])
            for k in model.classes_
        ]
        assert_allclose(model.scale_, np.sqrt(np.mean(means, axis=0)))


@pytest.mark.parametrize("weighted", [False, True])
def test_calibrator_is_balanced_logistic_regression_on_log_distances(table, weighted) -> None:
    X, y = table
    weight = np.random.default_rng(1).uniform(0.1, 2.0, len(y)) if weighted else np.ones(len(y))
    model = GSVPSVM(n_features=6).fit(X, y, sample_weight=weight)
    features = log_distances(model.distances(X), model.scale_)
    totals = np.bincount(y, weight)
    balanced = weight * weight.sum() / (len(totals) * totals[y])
    solver = {"tol": 1e-12, "max_iter": 10_000}
    reference = LogisticRegression(C=1.0, **solver).fit(features, y, sample_weight=balanced)
    assert_allclose(model.predict_proba(X), reference.predict_proba(features), atol=1e-6)
    coef, intercept = model.calibrator_
    assert_allclose(np.atleast_2d(coef), reference.coef_, atol=1e-5)
    assert_allclose(np.atleast_1d(intercept), reference.intercept_, atol=1e-5)


def test_calibrator_of_many_classes_forms_no_matrix_of_second_derivatives() -> None:
    k = 50
    rng, codes = np.random.default_rng(0), np.arange(4 * k) % k
    features = rng.normal(size=(len(codes), k)) - 2.0 * np.eye(k)[codes]
    tracemalloc.start()
    found = fit_calibrator(features, codes, k, None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * (k * (k + 1)) ** 2 / 4
    model = LogisticRegression(tol=1e-6, max_iter=1000).fit(features, codes)
    values = features @ found.coef.T + found.intercept
    assert_allclose(values, model.decision_function(features), atol=1e-3)


def test_calibrator_survives_separable_and_extreme_features() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [3, 40])
    features = np.column_stack([codes * 40.0 - 20.0, rng.normal(size=43)])
    found = fit_calibrator(features, codes, 2, None)
    weight = 43 / (2 * np.bincount(codes)[codes])
    reference = LogisticRegression(tol=1e-12, max_iter=10_000).fit(
        features, codes, sample_weight=weight
    )
    assert_allclose(found.probabilities(features), reference.predict_proba(features), atol=1e-6)


@pytest.mark.parametrize("decision", DECISIONS)
def test_decision_rules(table, decision) -> None:
    X, y = table
    model = GSVPSVM(decision=decision, n_features=6).fit(X, y)
    distances = np.abs(model.distances(X))
    predicted = model.predict(X)
    if decision == "distance":
        assert_array_equal(predicted, distances.argmin(axis=1))
    elif decision == "scaled":
        assert_array_equal(predicted, (distances / model.scale_).argmin(axis=1))
    else:
        probabilities = model.predict_proba(X)
        assert_allclose(probabilities.sum(axis=1), 1.0)
        assert_array_equal(predicted, probabilities.argmax(axis=1))
    assert hasattr(model, "predict_proba") == (decision == "calibrated")
    chance = 1 / len(model.classes_)
    assert np.mean([(predicted == k)[y == k].mean() for k in model.classes_]) > chance + 0.25


@pytest.mark.parametrize("decision", DECISIONS)
def test_zero_of_the_decision_function_is_where_predict_changes(breast, decision) -> None:
    """Along a segment between two rows of different classes, found by bisection."""
    X, y = breast
    model = GSVPSVM(decision=decision, n_features=5).fit(X, y)
    values, predicted = model.decision_function(X), model.predict(X)
    assert values.shape == (len(X),)
    assert_array_equal(predicted == model.classes_[1], values > 0)
    low, high = X[values.argmin()], X[values.argmax()]
    for _ in range(60):
        middle = (low + high) / 2
        if model.predict(middle[None])[0] == model.classes_[1]:
            high = middle
        else:
            low = middle
    # row by row, as the bisection saw them: here the last bit counts
    below, above = (model.decision_function(row[None])[0] for row in (low, high))
    assert below <= 0 < above
    assert_allclose([below, above], 0.0, atol=1e-8)


@pytest.mark.parametrize("decision", DECISIONS)
def test_three_classes_have_a_column_each(three, decision) -> None:
    X, y = three
    names = np.array(["a", "b", "c"])
    model = GSVPSVM(decision=decision, n_features=9).fit(X, names[y])
    values = model.decision_function(X)
    assert values.shape == (len(X), 3) == model.distances(X).shape
    assert_array_equal(model.predict(X), names[values.argmax(axis=1)])
    assert model.score(X, names[y]) > 0.8
    assert model.coef_.shape == (3, 300) and model.objective_.shape == (3,)


def test_probabilities_are_for_equal_priors() -> None:
    """Nine times as many of one class move no probability."""
    X, y = make_planted(60, 10, 3, effect=1.0, return_X_y=True)
    weight = np.where(y == 0, 1.8, 0.2)
    # pool = 0: the pooled spread is that of the sample and would move with it
    plain = GSVPSVM(pool=0.0, standardize=False).fit(X, y)
    uneven = GSVPSVM(pool=0.0, standardize=False).fit(X, y, sample_weight=weight)
    assert_allclose(uneven.coef_, plain.coef_, atol=1e-6)
    assert_allclose(uneven.predict_proba(X), plain.predict_proba(X), atol=1e-6)


# --- what must change nothing --------------------------------------------------------------


@pytest.mark.parametrize("decision", DECISIONS)
def test_one_by_one_prediction_equals_batch_prediction(table, decision) -> None:
    X, y = table
    model = GSVPSVM(decision=decision, n_features=8).fit(X, y)
    one_by_one = np.concatenate([model.predict(row[None]) for row in X[:100]])
    assert_array_equal(one_by_one, model.predict(X)[:100])
    values = np.concatenate([model.decision_function(row[None]) for row in X[:20]])
    assert_allclose(values, model.decision_function(X[:20]), atol=1e-12)
    # nor does the company of a row matter
    assert_array_equal(model.predict(X[:10] * 1.0), model.predict(X)[:10])


@pytest.mark.parametrize("settings", [{}, {"q": 0.5, "delta": 0.03}], ids=["l1", "lq"])
def test_two_fits_agree_to_the_last_bit_and_change_nothing(table, settings) -> None:
    X, y = table  # not writeable
    first = GSVPSVM(**settings)
    parameters = first.get_params()
    first.fit(X, y)
    second = clone(first).fit(X, y)
    for name in ("coef_", "intercept_", "scale_", "objective_", "kkt_residual_", "feature_order_"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name
    for one, two in zip(first.calibrator_, second.calibrator_):
        assert one.tobytes() == two.tobytes()
    assert first.get_params() == parameters
    # a second fit of the same object forgets the first
    first.fit(X[:50], y[:50]).fit(X, y)
    assert first.coef_.tobytes() == second.coef_.tobytes()


def test_shuffling_columns_changes_nothing_but_order(table) -> None:
    X, y = table
    order = np.random.default_rng(0).permutation(X.shape[1])
    plain, shuffled = GSVPSVM().fit(X, y), GSVPSVM().fit(X[:, order], y)
    assert_array_equal(shuffled.support_, plain.support_[order])
    scale = X.std(axis=0)
    assert_allclose(shuffled.coef_ * scale[order], (plain.coef_ * scale)[:, order], atol=1e-6)
    assert_allclose(shuffled.decision_function(X[:, order]), plain.decision_function(X), atol=1e-6)


def test_shuffling_rows_changes_nothing(table) -> None:
    X, y = table
    order = np.random.default_rng(0).permutation(len(y))
    plain, shuffled = GSVPSVM().fit(X, y), GSVPSVM().fit(X[order], y[order])
    assert_array_equal(shuffled.support_, plain.support_)
    scale = X.std(axis=0)
    assert_allclose(shuffled.coef_ * scale, plain.coef_ * scale, atol=1e-6)
    assert_allclose(shuffled.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_renaming_the_classes_swaps_the_planes(breast) -> None:
    X, y = breast
    plain, swapped = GSVPSVM().fit(X, y), GSVPSVM().fit(X, 1 - y)
    assert_allclose(swapped.coef_, plain.coef_[::-1], rtol=1e-6)
    assert_allclose(swapped.decision_function(X), -plain.decision_function(X), atol=1e-7)


def test_units_change_nothing(wide) -> None:
    X, y = wide
    factors = np.random.default_rng(0).uniform(0.5, 20.0, X.shape[1])
    plain, moved = GSVPSVM().fit(X, y), GSVPSVM().fit(X * factors + 3.0, y)
    assert_array_equal(moved.support_, plain.support_)
    assert_allclose(
        moved.decision_function(X * factors + 3.0), plain.decision_function(X), atol=1e-6
    )


@pytest.mark.parametrize("decision", ["calibrated", "scaled"])
def test_weights_are_repetitions(table, decision) -> None:
    X, y = table
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = GSVPSVM(decision=decision, n_features=8).fit(X, y, sample_weight=weight)
    repeated = GSVPSVM(decision=decision, n_features=8).fit(
        X.repeat(weight, axis=0), y.repeat(weight)
    )
    assert_array_equal(weighted.support_, repeated.support_)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    assert_allclose(weighted.scale_, repeated.scale_)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("shape", [(80, 30), (60, 500)], ids=["moments", "working set"])
def test_sparse_equals_dense(kind, shape) -> None:
    rng = np.random.default_rng(4)
    X = rng.poisson(0.5, size=shape).astype(float)
    y = (X[:, :4].sum(axis=1) + rng.normal(size=shape[0]) > 2).astype(int)
    dense, sparse = GSVPSVM().fit(X, y), GSVPSVM().fit(kind(X), y)
    assert_array_equal(sparse.support_, dense.support_)
    assert_allclose(sparse.coef_, dense.coef_, atol=1e-8)
    assert_allclose(sparse.predict_proba(kind(X)), dense.predict_proba(X), atol=1e-8)
    panel = sparse.transform(kind(X))
    assert sp.issparse(panel)
    assert_array_equal(panel.toarray(), X[:, dense.support_])


def test_float32_is_selected_as_float64_and_not_widened(table) -> None:
    X, y = table
    single = X.astype(np.float32)
    model = GSVPSVM(n_features=8).fit(single, y)
    reference = GSVPSVM(n_features=8).fit(single.astype(np.float64), y)
    assert_array_equal(model.support_, reference.support_)
    assert_allclose(model.decision_function(single), reference.decision_function(single), atol=1e-3)
    assert model.coef_.dtype == np.float64
    assert model.transform(single).dtype == np.float32


# --- limits --------------------------------------------------------------------------------


def test_pool_one_makes_both_planes_parallel(breast) -> None:
    """Sparse Fisher discrimination: one direction up to sign."""
    X, y = breast
    model = GSVPSVM(pool=1.0, n_features=6).fit(X, y)
    assert_allclose(model.coef_[0], -model.coef_[1], rtol=1e-6, atol=1e-12)


def test_a_large_floor_leads_to_the_difference_of_the_means(wide) -> None:
    X, y = wide
    model = GSVPSVM(tau=1e8, n_features=10).fit(X, y)
    panel = model.get_support(indices=True)
    Z = standardized(X)[:, panel]
    difference = Z[y == 1].mean(axis=0) - Z[y == 0].mean(axis=0)
    difference /= np.linalg.norm(difference)
    assert_allclose(model.coef_[0, panel] * X.std(axis=0)[panel], difference, atol=1e-3)


def test_a_floor_of_zero_is_the_papers_quotient(breast) -> None:
    X, y = breast
    model = GSVPSVM(tau=0.0, pool=0.0, n_features=4).fit(X, y)
    panel = model.get_support(indices=True)
    own, other = distance_forms(standardized(X), y, panel, 0.0, 0.0)
    z = np.append(model.coef_[0] * X.std(axis=0), model.intercept_[0] + model.coef_[0] @ X.mean(0))
    z = np.append(z[panel], z[-1])
    smallest = scipy.linalg.eigh(own, other, eigvals_only=True)[0]
    assert_allclose(z @ own @ z / (z @ other @ z), smallest, rtol=1e-6)


def test_an_unmet_certificate_warns_with_advice(wide) -> None:
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        GSVPSVM(max_iter=1, delta=0.02).fit(*wide)


@pytest.mark.parametrize("shape", [(60, 30), (60, 200)])
def test_classes_that_do_not_differ_end_at_once(shape) -> None:
    """Gradients are rounding there, to parts of which no certificate can be met."""
    X, y = np.random.default_rng(0).normal(size=shape), np.arange(shape[0]) % 2
    for k in (0, 1):
        X[y == k] -= X[y == k].mean(axis=0)
    model = GSVPSVM(n_features=5, tau=5.0, pool=1.0, refit=False, decision="scaled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of clipped biases
        model.fit(X, y)
    assert model.n_iter_ < 20 and model.support_.sum() == 5


def test_planted_features_are_recovered_among_five_thousand() -> None:
    data = make_planted(150, 5000, 5, effect=2.0, random_state=1)
    model = GSVPSVM(n_features=5).fit(data.X, data.y)
    assert_array_equal(model.get_support(indices=True), data.support)


def test_a_plane_at_infinity_is_told_and_its_penalised_one_kept() -> None:
    """Equal means, and a class that is wider in every direction: its best plane is far away."""
    half = np.random.default_rng(0).normal(size=(20, 3))
    narrow = np.concatenate([half, -half])
    X, y = np.concatenate([3.0 * narrow, narrow]), np.repeat([0, 1], 40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GSVPSVM(pool=0.0).fit(X, y)
    words = [str(warning.message) for warning in caught]
    assert any("lies at infinity, so its penalised plane was kept" in text for text in words)
    assert any("of the plane of class 0 ran off to infinity and was clipped" in t for t in words)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()


def test_a_model_without_its_calibrator_says_so(breast) -> None:
    model = GSVPSVM(n_features=2).fit(*breast)
    model.calibrator_ = None
    with pytest.raises(ValueError, match="the model has no calibrator: fit it with decision="):
        model.predict_proba(breast[0])
