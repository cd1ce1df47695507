"""Each method against a computation that shares nothing with it."""

from itertools import combinations

import numpy as np
import pytest
from scipy import linalg, optimize

from sparsegsvp.related import (
    GEPSVM,
    IGEPSVM,
    NPSVM,
    L1ReGEC,
    ReGEC,
    SparsePSVM,
    TruncatedRayleighFlow,
)
from sparsegsvp.related.gepsvm import ridge_plane
from sparsegsvp.related.igepsvm import difference_plane
from sparsegsvp.related.l1_regec import ShiftedPair
from sparsegsvp.related.lasso import lasso
from sparsegsvp.related.npsvm import reweight, starts
from sparsegsvp.related.regec import cross_shift_planes, diagonal_shift_plane
from sparsegsvp.related.sparse_psvm import Alternation


def assert_parallel(z, other, tol=1e-7):
    cosine = abs(z @ other) / np.linalg.norm(z) / np.linalg.norm(other)
    assert cosine == pytest.approx(1.0, abs=tol)


def smallest_pair(N, D):
    """Smallest eigenvalue of a pair by the general, unsymmetric solver."""
    mu, Z = linalg.eig(N, D)
    first = np.argmin(mu.real)
    return mu.real[first], Z[:, first].real


def plane_in_standard_units(model, X, i):
    w = model.planes_[i] * X.std(axis=0)
    return np.append(w, model.plane_intercepts_[i] + model.planes_[i] @ X.mean(axis=0))


# ---- GEPSVM ----------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [6, 90])  # fewer and more features than the 55 samples
def test_gepsvm_solves_the_pair_formed_in_full(blocks, moments, m):
    A, B = blocks(m=m)
    G, H = moments(A), moments(B)
    plane = ridge_plane(A, B, 0.5)
    z = plane.z
    # For m = 90 H is singular, so the inverse pair is the one with finite eigenvalues.
    inverse, direct = smallest_pair(-H, G + 0.5 * np.eye(m + 1))
    assert plane.objective == pytest.approx(-1.0 / inverse)
    assert_parallel(z, direct)
    assert z @ G @ z + 0.5 * z @ z == pytest.approx(1.0)


def test_gepsvm_estimator_gives_those_planes_on_standardised_features(table):
    X, y = table()
    model = GEPSVM(delta=0.5).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for i in (0, 1):
        plane = ridge_plane(Z[y == i], Z[y != i], 0.5)
        assert_parallel(plane_in_standard_units(model, X, i), plane.z)
        assert model.objective_[i] == pytest.approx(plane.objective)


# ---- IGEPSVM ---------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [6, 90])  # fewer and more features than the 55 samples
@pytest.mark.parametrize("nu", [0.1, 1.0, 7.0])
def test_igepsvm_is_the_smallest_eigenvector_formed_in_full(blocks, moments, m, nu):
    A, B = blocks(m=m)
    plane = difference_plane(A, B, nu)
    values, vectors = np.linalg.eigh(moments(A) - nu * moments(B))
    assert m == 6 or values[0] < 0  # with 90 features, or it would be a null vector of both
    assert plane.objective == pytest.approx(values[0])
    assert_parallel(plane.z, vectors[:, 0])
    # a ridge adds a constant on unit vectors: the same plane
    assert_parallel(plane.z, np.linalg.eigh(moments(A) - nu * moments(B) + np.eye(m + 1))[1][:, 0])


def test_igepsvm_estimator_gives_those_planes_on_standardised_features(table):
    X, y = table()
    model = IGEPSVM(nu=2.0).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for i in (0, 1):
        plane = difference_plane(Z[y == i], Z[y != i], 2.0)
        assert_parallel(plane_in_standard_units(model, X, i), plane.z)
        assert model.objective_[i] == pytest.approx(plane.objective)


def test_igepsvm_keeps_to_the_samples_where_a_null_vector_would_be_smaller(blocks):
    """With nu near 0 the form is positive on the row space, and zero outside of it."""
    A, B = blocks(m=90)
    z = difference_plane(A, B, 1e-9).z
    assert np.abs(np.vstack([A, B]) @ z[:-1] + z[-1]).max() > 1e-3


# ---- ReGEC -----------------------------------------------------------------------------------


def test_cross_shift_solves_the_pair_and_keeps_the_eigenvectors(blocks, moments):
    A, B = blocks()
    G, H = moments(A), moments(B)
    low, high = cross_shift_planes(A, B, 0.1, 0.3)
    mu, z = smallest_pair(G + 0.1 * H, H + 0.3 * G)
    assert low.objective == pytest.approx(mu)
    assert_parallel(low.z, z)
    negative, z = smallest_pair(-(G + 0.1 * H), H + 0.3 * G)
    assert high.objective == pytest.approx(-negative)
    assert_parallel(high.z, z)
    other, _ = cross_shift_planes(A, B, 0.9, 0.01)
    assert_parallel(low.z, other.z, tol=1e-10)


def test_cross_shift_with_more_features_is_the_limit_of_a_vanishing_ridge(blocks):
    A, B = blocks(n_a=10, n_b=12, m=40)
    low, _ = cross_shift_planes(A, B, 0.1, 0.1)
    Ae = np.column_stack([A, np.ones(10)])
    Be = np.column_stack([B, np.ones(12)])
    z = low.z
    assert np.linalg.norm(Ae @ z) < 1e-9 * np.linalg.norm(Be @ z)
    null = linalg.null_space(Ae)
    _, _, Vt = linalg.svd(Be @ null)
    assert_parallel(z, null @ Vt[0])


@pytest.mark.parametrize("m", [6, 90])
def test_diagonal_shift_without_matrices(blocks, moments, m):
    A, B = blocks(m=m)
    G, H = moments(A), moments(B)
    N, D = G + 0.1 * np.diag(np.diag(H)), H + 0.3 * np.diag(np.diag(G))
    mu, direct = smallest_pair(N, D)
    plane = diagonal_shift_plane(A, B, 0.1, 0.3)
    assert plane.objective == pytest.approx(mu)
    assert_parallel(plane.z, direct)


def test_the_two_shifts_differ_and_both_separate(table):
    X, y = table()
    diagonal, cross = ReGEC(delta=0.5).fit(X, y), ReGEC(delta=0.5, shift="cross").fit(X, y)
    assert not np.allclose(np.abs(diagonal.planes_), np.abs(cross.planes_), rtol=1e-2)
    assert min(diagonal.score(X, y), cross.score(X, y)) > 0.7


# ---- the lasso, and L1ReGEC ------------------------------------------------------------------


def test_lasso_of_orthogonal_columns_is_a_soft_threshold():
    """With Q = 2 I every weight is soft(c, l1 / 2) / 2; the bias is free of it."""
    z, _, _ = lasso(np.eye(4), 1.0, np.array([3.0, -0.4, 1.0, 2.0]), 1.0, np.zeros(4))
    np.testing.assert_allclose(z, [1.25, 0.0, 0.25, 1.0])


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_lasso_agrees_with_a_general_convex_solver(constrained, share):
    rng = np.random.default_rng(3)
    m = 12
    F, g = rng.normal(size=(8, m + 1)), rng.normal(size=m + 1)
    c = np.zeros(m + 1) if constrained else F.T @ rng.normal(size=8)
    l1 = share * (1.0 if constrained else 2 * np.abs(c).max())
    Q = F.T @ F + 0.2 * np.eye(m + 1)
    start = np.zeros(m + 1)
    if constrained:
        start[-1] = 1 / g[-1]
    found, _, _ = lasso(F, 0.2, c, l1, start, equality=g if constrained else None)

    def value(z):
        return z @ Q @ z - 2 * c @ z + l1 * np.abs(z[:-1]).sum()

    def split(x):  # w = p - q with p, q >= 0
        return np.append(x[:m] - x[m : 2 * m], x[-1])

    def objective(x):
        z = split(x)
        slope = 2 * (Q @ z - c)
        return (
            z @ Q @ z - 2 * c @ z + l1 * x[: 2 * m].sum(),
            np.concatenate([slope[:m] + l1, -slope[:m] + l1, slope[m:]]),
        )

    x0 = np.zeros(2 * m + 1)
    x0[-1] = start[-1]
    equality = {"type": "eq", "fun": lambda x: g @ split(x) - 1}
    general = optimize.minimize(
        objective,
        x0,
        jac=True,
        method="SLSQP",
        bounds=[(0, None)] * (2 * m) + [(None, None)],
        constraints=[equality] if constrained else [],
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    assert general.success
    assert value(found) <= general.fun + 1e-9
    assert value(found) == pytest.approx(general.fun, rel=1e-5)
    np.testing.assert_allclose(found, split(general.x), atol=2e-4)


def test_l1_regec_beats_a_search_over_directions(blocks, moments):
    A, B = blocks(m=3)
    X, y = np.vstack([A, B]), np.repeat([0, 1], [len(A), len(B)])
    model = L1ReGEC(l1=0.3, standardize=False).fit(X, y)
    pair = ShiftedPair.of(A, B, 0.1, 0.1, 0.1)
    l1 = 0.3 * pair.flat_plane()[1]
    G, H, ridge = moments(A), moments(B), 0.1 * np.eye(4)

    def value(z):  # the scale is fixed by the constraint
        z = z / np.sqrt(z @ (H + 0.1 * G + ridge) @ z)
        return z @ (G + 0.1 * H + ridge) @ z + l1 * np.abs(z[:-1]).sum()

    rng = np.random.default_rng(0)
    best = min(
        optimize.minimize(
            value, z, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
        ).fun
        for z in rng.normal(size=(20, 4))
    )
    assert model.objective_[0] == pytest.approx(best, rel=1e-5)
    assert value(np.append(model.planes_[0], model.plane_intercepts_[0])) == pytest.approx(
        best, rel=1e-5
    )


def test_l1_regec_keeps_one_feature_just_below_the_weight_that_keeps_none(table):
    model = L1ReGEC(l1=0.999).fit(*table(m=100))
    assert (np.count_nonzero(model.planes_, axis=1) == 1).all()


# ---- NPSVM -----------------------------------------------------------------------------------


def least_l1(A, B, signs, delta):
    """``min mean|Az| + delta ||z||_1`` on ``mean(signs * Bz) = 1``, as a linear programme."""
    (n, k), nb = A.shape, len(B)
    cost = np.concatenate([np.full(2 * k, delta), np.full(n, 1 / n)])
    halves = np.hstack([A, -A])
    upper = np.block([[halves, -np.eye(n)], [-halves, -np.eye(n)]])
    g = signs @ B / nb
    return optimize.linprog(
        cost,
        A_ub=upper,
        b_ub=np.zeros(2 * n),
        A_eq=np.concatenate([g, -g, np.zeros(n)])[None],
        b_eq=[1.0],
    ).fun


@pytest.mark.parametrize("seed", range(4))
def test_npsvm_ends_at_the_optimum_of_its_linear_programme(blocks, seed):
    A, B = blocks(m=3, seed=seed)
    X, y = np.vstack([A, B]), np.repeat([0, 1], [len(A), len(B)])
    model = NPSVM(standardize=False, tol=1e-10).fit(X, y)
    Ae, Be = (np.column_stack([M, np.ones(len(M))]) for M in (A, B))
    z = np.append(model.planes_[0], model.plane_intercepts_[0])
    ratio = np.abs(Ae @ z).mean() / np.abs(Be @ z).mean()
    assert model.objective_[0] == pytest.approx(ratio)
    assert ratio == pytest.approx(least_l1(Ae, Be, np.sign(Be @ z), 0.0), rel=1e-4)
    # ... and is the least over all directions, found by brute force to its resolution.
    directions = np.random.default_rng(0).normal(size=(100_000, 4))
    everywhere = np.abs(directions @ Ae.T).mean(axis=1) / np.abs(directions @ Be.T).mean(axis=1)
    assert ratio <= everywhere.min()


def test_npsvm_is_not_turned_by_a_few_odd_samples():
    t = np.linspace(-3, 3, 60)
    rng = np.random.default_rng(0)
    X = np.vstack([np.column_stack([t, t]), np.column_stack([t, -t])])
    X += 0.1 * rng.normal(size=X.shape)
    y = np.repeat([0, 1], 60)
    odd = X.copy()
    odd[:4] = [[-3, 14]] * 4
    turned = {}
    for estimator in (NPSVM(standardize=False), GEPSVM(standardize=False)):
        clean, spoiled = (estimator.fit(table, y).planes_[0] for table in (X, odd))
        turned[type(estimator).__name__] = np.degrees(np.arccos(min(1.0, abs(clean @ spoiled))))
    assert turned["NPSVM"] < 2 < turned["GEPSVM"]


def test_npsvm_with_an_l1_penalty_ends_at_the_optimum_of_its_linear_programme(blocks):
    A, B = blocks(n_a=20, n_b=15, m=60)  # more features than samples
    Ae, Be = (np.column_stack([M, np.ones(len(M))]) for M in (A, B))
    z, history, converged = reweight(Ae, Be, starts(A, B)[1], 0.1, 1.0, 1e-5, 1e-8, 20_000)
    least = least_l1(Ae, Be, np.sign(Be @ z), 0.1)
    assert converged
    assert np.count_nonzero(z) < 40
    z /= np.abs(Be @ z).mean()
    assert np.abs(Ae @ z).mean() + 0.1 * np.abs(z).sum() == pytest.approx(least, rel=1e-3)
    assert history[-1] == pytest.approx(least, rel=1e-3)


def test_npsvm_with_an_l2_penalty_reduces_exactly_and_is_locally_best(blocks):
    A, B = blocks(n_a=10, n_b=8, m=40)
    X, y = np.vstack([A, B]), np.repeat([0, 1], [len(A), len(B)])
    model = NPSVM("l2", delta=0.5, standardize=False, tol=1e-12).fit(X, y)
    Ae, Be = (np.column_stack([M, np.ones(len(M))]) for M in (A, B))
    ends = [reweight(Ae, Be, z, 0.5, 2.0, 1e-4, 1e-12, 5000) for z in starts(A, B)]
    z, history, _ = min(ends, key=lambda end: end[1][-1])
    assert model.objective_[0] == pytest.approx(history[-1], rel=1e-6)
    assert_parallel(np.append(model.planes_[0], model.plane_intercepts_[0]), z, tol=1e-5)

    def value(z):
        z = z / np.abs(Be @ z).mean()
        return np.sqrt((Ae @ z) ** 2 + 1e-8).mean() + 0.5 * z @ z

    rng = np.random.default_rng(0)
    here = value(z)
    for size in (1e-1, 1e-2, 1e-3):
        steps = size * np.linalg.norm(z) * rng.normal(size=(500, 41)) / np.sqrt(41)
        assert min(value(z + step) for step in steps) >= here * (1 - 1e-9)


# ---- SparsePSVM ------------------------------------------------------------------------------


def test_sparse_psvm_matches_the_alternation_with_the_factor_formed(blocks, moments):
    A, B = blocks(m=8)
    X, y = np.vstack([A, B]), np.repeat([0, 1], [len(A), len(B)])
    model = SparsePSVM(l1=0.3, l2=0.2, delta=0.5, standardize=False, tol=1e-10).fit(X, y)
    N = moments(A) + 0.5 * np.eye(9)
    R = linalg.cholesky(N)
    Rinv = linalg.inv(R)
    Ht = np.column_stack([B, np.ones(len(B))]) / np.sqrt(len(B))
    H = Ht.T @ Ht
    v = ridge_plane(A, B, 0.5).z
    l2 = 0.2 * linalg.eigh(H, N)[0][-1]  # the parameter is in units of the largest eigenvalue
    l1 = 0.3 * Alternation.of(A, B, 0.5, l2).largest_l1(H @ v)
    a = R @ v

    def objective(a, beta):
        fit = np.square(Ht @ Rinv - np.outer(Ht @ beta, a)).sum()
        return fit + l2 * beta @ N @ beta + l1 * np.abs(beta[:-1]).sum()

    def elastic_net(a, beta):  # coordinate descent, written out
        Q, c = H + l2 * N, H @ Rinv @ a
        for _ in range(200):
            for f in range(9):
                rest = c[f] - Q[f] @ beta + Q[f, f] * beta[f]
                cut = 0.0 if f == 8 else l1 / 2
                beta[f] = np.sign(rest) * max(abs(rest) - cut, 0.0) / Q[f, f]
        return beta

    beta = np.zeros(9)
    for _ in range(40):
        beta = elastic_net(a, beta)
        a = Rinv.T @ H @ beta
        a /= np.linalg.norm(a)
    constant = np.square(Ht @ Rinv).sum()
    assert model.objective_[0] == pytest.approx(objective(a, beta) - constant, rel=1e-6)
    assert_parallel(np.append(model.planes_[0], model.plane_intercepts_[0]), beta, tol=1e-6)
    assert 0 < np.count_nonzero(beta[:-1]) < 8


def test_sparse_psvm_without_l1_is_gepsvm(table):
    X, y = table()
    sparse = SparsePSVM(l1=1e-9, tol=1e-13, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(sparse.planes_, GEPSVM().fit(X, y).planes_, rtol=1e-3, atol=1e-4)


# ---- TruncatedRayleighFlow -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_flow_finds_the_best_of_all_supports(blocks, moments, seed):
    A, B = blocks(m=9, seed=seed)
    X, y = np.vstack([A, B]), np.repeat([0, 1], [len(A), len(B)])
    model = TruncatedRayleighFlow(3, tau=0.5, standardize=False).fit(X, y)
    N, H = moments(A) + 0.5 * np.eye(10), moments(B)

    def best_on(kept):
        kept = [*kept, 9]
        return 1 / linalg.eigh(H[np.ix_(kept, kept)], N[np.ix_(kept, kept)])[0][-1]

    values = {kept: best_on(kept) for kept in combinations(range(9), 3)}
    best = min(values, key=values.get)
    assert model.objective_[0] == pytest.approx(values[best])
    assert tuple(np.flatnonzero(model.planes_[0])) == best


def test_npsvm_takes_collinear_columns() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    X = np.column_stack([X, X[:, :2] @ [1.0, -2.0], X[:, 0]])
    y = np.repeat([0, 1], 20)
    X[y == 1] += 1.0
    model = NPSVM().fit(X, y)
    assert np.isfinite(model.planes_).all()
    assert model.score(X, y) > 0.5
