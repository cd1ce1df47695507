"""Exactly k features in closed form: identities, recomputation from scratch, invariances."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from sklearn.datasets import load_digits, load_wine

from sparsegsvp import ClassMoments, sparse_gsvp, subset_gsvp
from sparsegsvp.datasets import load_breast_cancer, make_planted
from sparsegsvp.linalg.rows import as_rows
from sparsegsvp.solvers.subset import Covariances, forward

TABLES = {
    "wide": lambda: make_planted(60, 300, 5, effect=1.3, random_state=1, return_X_y=True),
    "three": lambda: make_planted(
        90, 200, 8, effect=1.5, n_classes=3, random_state=2, return_X_y=True
    ),
    "tall": lambda: make_planted(700, 40, 6, effect=0.6, random_state=3, return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
}


@pytest.fixture(params=TABLES)
def table(request):
    X, y = TABLES[request.param]()
    return np.asarray(X, dtype=float), np.asarray(y)


def criterion(X, y, panel, tau):
    """Sum over pairs of classes of the smallest generalized singular value, squared."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    classes = np.unique(y)
    means = np.array([Z[y == k].mean(axis=0) for k in classes])
    centred = Z - means[np.searchsorted(classes, y)]
    S = centred[:, panel].T @ centred[:, panel] / len(y) + tau * np.eye(len(panel))
    total = 0.0
    for i, j in combinations(range(len(classes)), 2):
        d = (means[i] - means[j])[panel]
        D2 = d @ np.linalg.solve(S, d)
        total += ((np.sqrt(D2 + 4) - np.sqrt(D2)) / 2) ** 2
    return total


# --- the identity ------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.05, 1.0, 20.0])
def test_the_criterion_is_the_papers_quotient_at_its_minimum(tau) -> None:
    X, y = make_planted(50, 4, 2, effect=1.0, random_state=5, return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    result = subset_gsvp(X, y, 4, tau=tau, clip=None)
    panel = np.sort(result.order)
    solved = sparse_gsvp(X[y == 0][:, panel], X[y == 1][:, panel], 0.0, tau=tau, pool=1.0)
    # a mean per class weighs the classes' rows as the pooled spread does
    assert_allclose(result.quotients[-1], solved.quotient, rtol=1e-10)
    # and it is the smallest eigenvalue of the bordered pair
    means = np.array([X[y == k].mean(axis=0) for k in (0, 1)])
    centred = X - means[y]
    S = centred.T @ centred / len(y) + tau * np.eye(4)
    pair = [np.block([[S + np.outer(m, m), m[:, None]], [m[None], np.ones((1, 1))]]) for m in means]
    assert_allclose(result.quotients[-1], eigh(*pair, eigvals_only=True)[0], rtol=1e-10)


def test_every_step_is_recomputed_from_scratch(table) -> None:
    X, y = table
    result = subset_gsvp(X, y, 6, clip=None, max_correlation=1.0)
    for k in range(1, 7):
        assert_allclose(
            result.quotients[k - 1], criterion(X, y, result.order[:k], result.tau), rtol=1e-9
        )
        others = np.setdiff1d(np.arange(X.shape[1]), result.order[: k - 1])
        scores = [criterion(X, y, [*result.order[: k - 1], f], result.tau) for f in others]
        assert others[int(np.argmin(scores))] == result.order[k - 1]


def test_panels_are_nested_and_the_criterion_falls(table) -> None:
    X, y = table
    long = subset_gsvp(X, y, 9)
    assert (np.diff(long.quotients) < 0).all()
    for k in (1, 4, 9):
        short = subset_gsvp(X, y, k)
        assert_array_equal(short.order, long.order[:k])
        assert short.tau == long.tau


@pytest.mark.parametrize(
    ("correlated", "tau", "n_classes", "least", "most"),
    [(False, None, 2, 30, 1e-9), (True, None, 2, 27, 0.05), (True, 0.01, 2, 20, 0.4),
     (True, None, 3, 14, 0.6)],
    ids=["independent", "correlated", "small tau", "three classes"],
)  # fmt: skip
def test_how_often_forward_selection_finds_the_best_pair(
    correlated, tau, n_classes, least, most
) -> None:
    """Against all pairs by brute force; docs/panels.md gives the shares."""
    best, excess = 0, []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = make_planted(60, 12, 3, effect=0.8, random_state=seed, return_X_y=True)
        if correlated:
            X = X @ rng.normal(size=(12, 12))
        if n_classes == 3:
            y = np.arange(60) % 3
            X += (1.5 * rng.normal(size=(3, 12)) * X.std(axis=0))[y]
        result = subset_gsvp(X, y, 2, tau=tau, clip=None, max_correlation=1.0)
        values = {p: criterion(X, y, list(p), result.tau) for p in combinations(range(12), 2)}
        optimum = min(values, key=values.get)
        best += set(optimum) == set(result.order)
        excess.append(result.quotients[-1] / values[optimum] - 1.0)
    assert least <= best <= (29 if correlated else 30)
    assert min(excess) > -1e-9 and max(excess) < most
    assert not correlated or max(excess) > 0.01


def test_known_panels() -> None:
    data = load_breast_cancer()
    panel = np.array(data.feature_names)[subset_gsvp(data.X, data.y, 3).order]
    assert list(panel) == ["worst concave points", "worst radius", "worst texture"]


# --- invariances -------------------------------------------------------------------------


def same(a, b, columns=None) -> None:
    order = b.order if columns is None else columns[b.order]
    assert_array_equal(a.order, order)
    assert_allclose(a.quotients, b.quotients, rtol=1e-8)
    assert_allclose(a.tau, b.tau, rtol=1e-8)


def test_units_labels_and_orders_do_not_matter(table) -> None:
    X, y = table
    reference = subset_gsvp(X, y, 6)
    rng = np.random.default_rng(0)
    scale, shift = 10.0 ** rng.uniform(-3, 3, X.shape[1]), rng.normal(size=X.shape[1])
    same(reference, subset_gsvp(X * scale + shift * scale, y, 6))
    same(reference, subset_gsvp(X, np.array(["zeta", "alpha", "mid"])[y], 6))
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    same(reference, subset_gsvp(X[rows], y[rows], 6))
    same(reference, subset_gsvp(X[:, columns], y, 6), columns)


@pytest.mark.parametrize("density", [0.05, 0.4])
def test_every_storage_gives_the_same_panel(density) -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1, 2], 60)
    counts = rng.poisson(0.5, (180, 220)) * (rng.random((180, 220)) < density)
    counts[y == 1, :4] += rng.poisson(1.5, (60, 4))
    counts[y == 2, 4:8] += rng.poisson(1.5, (60, 4))
    X = np.log1p(counts) + 0.0
    reference = subset_gsvp(X, y, 8)
    assert set(reference.order[:4]) <= set(range(8))
    same(reference, subset_gsvp(sp.csr_array(X), y, 8))
    same(reference, subset_gsvp(sp.csc_matrix(X), y, 8))
    same(reference, subset_gsvp(np.asfortranarray(X), y, 8))
    same(reference, subset_gsvp(X[::-1][:, ::-1][::-1][:, ::-1], y, 8))  # no unit stride
    single = subset_gsvp(X.astype(np.float32), y, 8)
    assert_array_equal(single.order, reference.order)
    assert_allclose(single.quotients, reference.quotients, rtol=1e-4)
    da = pytest.importorskip("dask.array")
    for chunks in ((50, 220), (180, 70), (50, 70)):
        same(reference, subset_gsvp(da.from_array(X, chunks=chunks), y, 8))


def test_moments_give_the_panel_of_the_rows(table) -> None:
    X, y = table
    reference = subset_gsvp(X, y, 5, clip=None)
    covariances = Covariances.of_moments(ClassMoments.from_data(X, y))
    [path] = forward(covariances, 5)
    assert_array_equal(path.order, reference.order)
    assert_allclose(path.quotients[1:], reference.quotients, rtol=1e-7)


def test_float32_far_from_zero_is_as_good_as_float64() -> None:
    X, y = make_planted(60, 300, 5, effect=1.3, random_state=1, return_X_y=True)
    shifted = (X + 1000.0).astype(np.float32)
    result, exact = (subset_gsvp(v, y, 5, tau=1.0) for v in (shifted, shifted.astype(float)))
    assert_array_equal(result.order, exact.order)
    assert_allclose(result.quotients, exact.quotients, rtol=1e-5)


# --- weights -----------------------------------------------------------------------------


def test_weights_are_repetitions_and_only_their_ratios_matter(table) -> None:
    X, y = table
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = subset_gsvp(X, y, 5, sample_weight=times)
    same(weighted, subset_gsvp(np.repeat(X, times, axis=0), np.repeat(y, times), 5))
    same(weighted, subset_gsvp(X, y, 5, sample_weight=10.0 * times))
    kept = times > 0
    same(weighted, subset_gsvp(X[kept], y[kept], 5, sample_weight=times[kept]))


def test_a_class_of_one_counted_row_is_refused() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.repeat([0, 1], 10)
    weight = np.r_[np.ones(11), np.zeros(9)]
    with pytest.raises(ValueError, match="class 1 has one sample of positive weight"):
        subset_gsvp(X, y, 2, sample_weight=weight)


# --- must, never, costs, copies, constants -------------------------------------------------


def test_factors_steer_the_choice(table) -> None:
    X, y = table
    free = subset_gsvp(X, y, 5)
    last = int(np.argmin(np.abs(np.corrcoef(X.T, y)[-1, :-1])))
    factor = np.ones(X.shape[1])
    factor[last], factor[free.order[0]] = 0.0, np.inf
    steered = subset_gsvp(X, y, 5, penalty_factor=factor)
    assert steered.order[0] == last
    assert free.order[0] not in steered.order
    # a feature that costs more than it gains over the second best comes later
    dear = np.ones(X.shape[1])
    dear[free.order[0]] = 1e6
    assert subset_gsvp(X, y, 1, penalty_factor=dear).order[0] != free.order[0]
    assert subset_gsvp(X, y, 3, penalty_factor=np.full(X.shape[1], 7.0)).order.tolist() == list(
        free.order[:3]
    )


@pytest.mark.parametrize("limit", [0.6, 0.9])
def test_no_two_features_are_copies(limit) -> None:
    rng = np.random.default_rng(3)
    X, y = make_planted(80, 30, 4, effect=1.5, random_state=3, return_X_y=True)
    X = np.c_[X, X[:, :10] + 0.1 * rng.normal(size=(80, 10))]
    order = subset_gsvp(X, y, 12, clip=None, max_correlation=limit).order
    centred = X - np.array([X[y == k].mean(axis=0) for k in (0, 1)])[y]
    correlation = np.corrcoef(centred[:, order].T) - np.eye(12)
    assert np.abs(correlation).max() < limit
    assert np.abs(np.corrcoef(centred.T) - np.eye(40)).max() > limit


def test_copies_come_last_and_of_equal_columns_the_first_is_taken() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    once, twice = subset_gsvp(X, y, 6), subset_gsvp(np.c_[X, X], y, 6)
    assert_array_equal(once.order, twice.order)
    everything = subset_gsvp(np.c_[X[:, :3], X[:, :3]], y, 6).order
    assert sorted(everything) == list(range(6))
    assert everything[0] < 3


def test_constant_columns_and_more_than_there_are() -> None:
    X, y = make_planted(40, 6, 2, effect=2.0, random_state=0, return_X_y=True)
    X[:, 2] = 7.1
    with pytest.warns(UserWarning, match="n_features=9 is more than the 5 features that vary"):
        result = subset_gsvp(X, y, 9)
    assert sorted(result.order) == [0, 1, 3, 4, 5]
    with pytest.raises(ValueError, match="all features are constant"):
        subset_gsvp(np.ones((10, 3)), np.repeat([0, 1], 5), 1)


# --- outliers ----------------------------------------------------------------------------


def test_clipping_finds_more_features_among_heavy_tails() -> None:
    hits = {3.0: 0, None: 0}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], 40)
        X = rng.standard_t(2, (80, 200))
        X[y == 1, :5] += 2.0
        for clip in hits:
            hits[clip] += np.isin(subset_gsvp(X, y, 5, clip=clip).order, np.arange(5)).sum()
    assert hits[3.0] >= hits[None] + 5


def test_clipping_is_the_clipping_of_rows_and_leaves_zeros() -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_t(2, (70, 30)) * (rng.random((70, 30)) < 0.7) + 0.0
    y = np.repeat([0, 1], 35)
    means = np.array([X[y == k].mean(axis=0) for k in (0, 1)])
    sd = np.sqrt(((X - means[y]) ** 2).mean(axis=0))
    clipped = np.where(X == 0.0, 0.0, np.clip(X, means[y] - 2 * sd, means[y] + 2 * sd))
    assert (clipped != X).any()
    same(subset_gsvp(X, y, 6, clip=2.0), subset_gsvp(clipped, y, 6, clip=None))


def test_markers_of_a_rare_class_survive() -> None:
    rng = np.random.default_rng(8)
    y = np.r_[np.zeros(3000, int), np.ones(3000, int), np.full(6, 2)]
    X = rng.normal(size=(len(y), 60))
    X[y == 1, 0] += 3.0
    X[y == 2, 1] += 25.0  # 25 standard deviations out for 1 in 1,000
    assert set(subset_gsvp(X, y, 2).order) == {0, 1}


# --- the path ------------------------------------------------------------------------------


def paths_of(X, y, k, train=None):
    rows = as_rows(np.asarray(X, dtype=float))
    everything = Covariances(rows, y, np.ones(len(y)), y.max() + 1, clip=3.0)
    return everything, forward(everything if train is None else everything.folds(train), k)


def test_scores_of_every_size_are_those_of_separate_solutions(table) -> None:
    X, y = table
    _, [path] = paths_of(X, y, 6)
    predicted = path.predictions(X[:, path.order])
    for k in range(1, 7):
        weights, offsets = path.scores(k)
        scores = X[:, path.order[:k]] @ weights.T + offsets
        assert_array_equal(predicted[k - 1], scores.argmax(axis=1))


def test_the_triangle_is_that_of_the_covariances(table) -> None:
    X, y = table
    everything, [path] = paths_of(X, y, 6)
    columns = (everything.rows.columns(path.order) - path.center) / path.scale
    centred = columns - np.array([columns[y == k].mean(axis=0) for k in range(y.max() + 1)])[y]
    assert_allclose(
        path.lower * path.pivots @ path.lower.T,
        centred.T @ centred / len(y) + path.tau * np.eye(6),
        rtol=1e-8, atol=1e-10,
    )  # fmt: skip


def test_training_sets_side_by_side_are_as_good_as_alone(table) -> None:
    X, y = table
    train = np.random.default_rng(9).random((3, len(y))) < 0.7
    everything, paths = paths_of(X, y, 5, train)
    for mask, path in zip(train, paths):
        rows = as_rows(everything.rows.columns(np.arange(X.shape[1]))[mask])
        alone = Covariances(rows, y[mask], np.ones(mask.sum()), y.max() + 1)
        [single] = forward(alone, 5, tau=path.tau)
        assert_array_equal(single.order, path.order)
        assert_allclose(single.quotients, path.quotients, rtol=1e-8)


@pytest.mark.parametrize("shape", [(60, 200), (300, 260), (300, 30)], ids=str)
def test_the_floors_of_training_sets_do_not_depend_on_storage_or_place(shape) -> None:
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    y = np.arange(shape[0]) % 3
    X = rng.exponential(size=shape) * (rng.random(shape) < 0.2) + 0.3 * (y == 1)[:, None]
    train = rng.random((3, shape[0])) < 0.7

    def floors(rows, train):
        everything = Covariances(rows, y, np.ones(len(y)), 3, clip=3.0)
        return [path.tau for path in forward(everything.folds(train), 1)]

    expected = floors(as_rows(X), train)
    assert_allclose(floors(as_rows(X), train[::-1]), expected[::-1])
    assert_allclose(floors(as_rows(sp.csr_array(X)), train), expected)
    assert_allclose(floors(as_rows(da.from_array(X, chunks=(50, 100))), train), expected)


def test_stand_ins_are_correlated_and_their_loss_is_the_exchange() -> None:
    rng = np.random.default_rng(10)
    X, y = make_planted(120, 25, 4, effect=1.2, n_classes=3, random_state=4, return_X_y=True)
    X = np.c_[X, X + 0.35 * rng.normal(size=X.shape)]
    result = subset_gsvp(X, y, 5, clip=None)
    rows = as_rows(X)
    [path] = forward(Covariances(rows, y, np.ones(120), 3), 5)
    listed = path.stand_ins(5)
    centred = X - np.array([X[y == k].mean(axis=0) for k in range(3)])[y]
    correlations = np.corrcoef(centred.T)
    assert sum(map(len, listed)) >= 4
    for place, stand_ins in enumerate(listed):
        f = path.order[place]
        near = np.flatnonzero(np.abs(correlations[f]) >= 0.8)
        assert {g for g, _, _ in stand_ins} == set(near) - set(path.order)
        for g, correlation, loss in stand_ins:
            assert_allclose(correlation, correlations[f, g], rtol=1e-8)
            exchanged = np.where(path.order == f, g, path.order)
            expected = criterion(X, y, exchanged, path.tau) - result.quotients[-1]
            assert_allclose(loss, expected, rtol=1e-6, atol=1e-10)


# --- tau -----------------------------------------------------------------------------------


def test_the_default_floor_falls_as_samples_grow() -> None:
    taus = []
    for n in (100, 1000, 10_000):
        X, y = make_planted(n, 50, 5, effect=0.5, random_state=0, return_X_y=True)
        X = X + X[:, :1]  # a common factor, for which no shrinkage is right
        taus.append(subset_gsvp(X, y, 1).tau)
    assert taus[0] > 4 * taus[1] > 16 * taus[2] * 0.5
    assert taus[2] < 0.05


def test_a_large_table_takes_its_floor_from_some_features(monkeypatch) -> None:
    from sparsegsvp.solvers import subset

    X, y = load_digits(return_X_y=True)
    X = np.repeat(X[:400], 5, axis=1) + np.random.default_rng(0).normal(size=(400, 320))
    exact = subset_gsvp(X, y[:400], 10)
    monkeypatch.setattr(subset, "_EXACT_SHRINKAGE", 1.0)
    sampled = subset_gsvp(X, y[:400], 10)
    assert_allclose(sampled.tau, exact.tau, rtol=0.3)
