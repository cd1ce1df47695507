"""Each method of planes against a computation that shares nothing with it."""

from itertools import combinations

import numpy as np
import pytest
from scipy import linalg, optimize

from sparsegsvp.related import (
    GEPSVM,
    IGEPSVM,
    IRQM,
    NPSVM,
    L1ReGEC,
    ReGEC,
    SparsePSVM,
    TruncatedRayleighFlow,
    npsvm,
)
from sparsegsvp.related.irqm import SmoothCount, leading_plane
from sparsegsvp.related.lasso import lasso
from sparsegsvp.related.regec import cross_shift_planes


def ones(A):
    return np.column_stack([A, np.ones(len(A))])


def moment(A):
    """``G = [A e]'[A e] / n_A`` formed in full, as a check on everything that does not."""
    return ones(A).T @ ones(A) / len(A)


def fitted(estimator, A, B):
    """The first plane of a method on class blocks as they are, and its objective."""
    X, y = np.vstack([A, B]), np.repeat([0, 1], [len(A), len(B)])
    model = estimator.set_params(standardize=False).fit(X, y)
    return np.append(model.planes_[0], model.plane_intercepts_[0]), model.objective_[0]


def assert_parallel(z, other, tol=1e-7):
    cosine = abs(z @ other) / np.linalg.norm(z) / np.linalg.norm(other)
    assert cosine == pytest.approx(1.0, abs=tol)


def smallest_pair(N, D):
    """Smallest eigenvalue of a pair by the general, unsymmetric solver."""
    mu, Z = linalg.eig(N, D)
    first = np.argmin(mu.real)
    return mu.real[first], Z[:, first].real


# ---- GEPSVM, IGEPSVM, ReGEC ------------------------------------------------------------------

few_and_many = pytest.mark.parametrize("m", [6, 90])  # fewer and more than the 55 samples


@few_and_many
def test_dense_methods_solve_their_pairs_formed_in_full(blocks, m):
    A, B = blocks(m=m)
    G, H, unit = moment(A), moment(B), np.eye(m + 1)
    diagonal_G, diagonal_H = np.diag(np.diag(G)), np.diag(np.diag(H))
    # For m = 90 H is singular, so GEPSVM's inverse pair is the one with finite eigenvalues.
    for estimator, N, D, objective in (
        (GEPSVM(0.5), -H, G + 0.5 * unit, lambda mu: -1.0 / mu),
        (IGEPSVM(0.1), G - 0.1 * H, unit, lambda mu: mu),
        (IGEPSVM(7.0), G - 7.0 * H, unit, lambda mu: mu),
        (ReGEC((0.1, 0.3)), G + 0.1 * diagonal_H, H + 0.3 * diagonal_G, lambda mu: mu),
    ):
        z, value = fitted(estimator, A, B)
        mu, direct = smallest_pair(N, D)
        assert value == pytest.approx(objective(mu))
        assert_parallel(z, direct)
    # With nu near 0 a null vector of the samples would be smaller, and say nothing.
    z, _ = fitted(IGEPSVM(1e-9), A, B)
    assert np.abs(ones(np.vstack([A, B])) @ z).max() > 1e-3


def test_regec_with_a_cross_shift_solves_the_pair_and_keeps_the_eigenvectors(blocks):
    A, B = blocks()
    G, H = moment(A), moment(B)
    low, high = cross_shift_planes(A, B, 0.1, 0.3)
    for plane, sign in ((low, 1), (high, -1)):
        mu, z = smallest_pair(sign * (G + 0.1 * H), H + 0.3 * G)
        assert plane.objective == pytest.approx((sign * mu) ** sign)
        assert_parallel(plane.z, z)
    assert_parallel(low.z, cross_shift_planes(A, B, 0.9, 0.01)[0].z, tol=1e-10)


def test_regec_with_a_cross_shift_and_many_features_is_the_limit_of_a_vanishing_ridge(blocks):
    A, B = blocks(n_a=10, n_b=12, m=40)
    z, _ = fitted(ReGEC(shift="cross"), A, B)
    assert np.linalg.norm(ones(A) @ z) < 1e-9 * np.linalg.norm(ones(B) @ z)
    null = linalg.null_space(ones(A))
    assert_parallel(z, null @ linalg.svd(ones(B) @ null)[2][0])


# ---- the lasso, and L1ReGEC ------------------------------------------------------------------


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("copies", [1, 20])
def test_the_lasso_meets_its_conditions(constrained, share, copies):
    """Copies are columns equal but for their last bits: sets of them must not take turns."""
    rng = np.random.default_rng(3)
    F = np.repeat(rng.normal(size=(8, 12)), copies, axis=1)
    F *= 1 + rng.choice([-1, 0, 1], size=F.shape) * np.finfo(float).eps
    F = ones(F)
    c, g = F.T @ rng.normal(size=8), F.T @ rng.normal(size=8)
    start = np.zeros(len(c))
    start[-1] = 1 / g[-1]
    l1 = share * 2 * np.abs(c).max()
    z, gradient, converged = lasso(F, 0.2, c, l1, start, equality=g if constrained else None)
    assert converged
    slope = 2 * (F.T @ (F @ z) + 0.2 * z - c)
    if constrained:
        assert g @ z == pytest.approx(1.0)
        slope -= slope[-1] / g[-1] * g  # the bias fixes the multiplier
    np.testing.assert_allclose(gradient, slope, atol=1e-8 * np.abs(c).max())
    margin = 1e-7 * np.abs(c).max()
    assert abs(slope[-1]) <= margin
    w, slope = z[:-1], slope[:-1]
    np.testing.assert_allclose(slope[w != 0], -l1 * np.sign(w[w != 0]), atol=margin)
    assert (np.abs(slope) <= l1 + margin).all()


def test_l1_regec_beats_a_search_over_directions(blocks):
    A, B = blocks(m=3)
    G, H, ridge = moment(A), moment(B), 0.1 * np.eye(4)
    N, D = G + 0.1 * H + ridge, H + 0.1 * G + ridge
    flat = np.array([0, 0, 0, 1.0]) / np.sqrt(D[-1, -1])
    unit = 2 * np.abs(N @ flat - (N @ flat)[-1] / (D @ flat)[-1] * (D @ flat)).max()

    def value(z):  # the scale is fixed by the constraint
        z = z / np.sqrt(z @ D @ z)
        return z @ N @ z + 0.3 * unit * np.abs(z[:-1]).sum()

    options = {"xatol": 1e-9, "fatol": 1e-12}
    best = min(
        optimize.minimize(value, z, method="Nelder-Mead", options=options).fun
        for z in np.random.default_rng(0).normal(size=(20, 4))
    )
    z, objective = fitted(L1ReGEC(0.3), A, B)
    assert [objective, value(z)] == pytest.approx([best, best], rel=1e-5)


def test_l1_regec_keeps_one_feature_just_below_the_weight_that_keeps_none(table):
    model = L1ReGEC(l1=0.999).fit(*table(m=100))
    assert (np.count_nonzero(model.planes_, axis=1) == 1).all()


# ---- NPSVM -----------------------------------------------------------------------------------


def least_l1(A, B, z, delta):
    """``min mean|Az| + delta ||z||_1`` on ``mean|Bz| = 1``, signs as at z: a linear programme."""
    (n, k), g = A.shape, np.sign(B @ z) @ B / len(B)
    halves = np.hstack([A, -A])
    return optimize.linprog(
        np.concatenate([np.full(2 * k, delta), np.full(n, 1 / n)]),
        A_ub=np.block([[halves, -np.eye(n)], [-halves, -np.eye(n)]]),
        b_ub=np.zeros(2 * n),
        A_eq=np.concatenate([g, -g, np.zeros(n)])[None],
        b_eq=[1.0],
    ).fun


@pytest.mark.parametrize("seed", range(3))
def test_npsvm_ends_at_the_least_of_all_directions(blocks, seed):
    A, B = blocks(m=3, seed=seed)
    z, objective = fitted(NPSVM(tol=1e-10), A, B)
    Ae, Be = ones(A), ones(B)
    ratio = np.abs(Ae @ z).mean() / np.abs(Be @ z).mean()
    assert objective == pytest.approx(ratio)
    assert ratio == pytest.approx(least_l1(Ae, Be, z, 0.0), rel=1e-4)
    directions = np.random.default_rng(0).normal(size=(100_000, 4))
    everywhere = np.abs(directions @ Ae.T).mean(axis=1) / np.abs(directions @ Be.T).mean(axis=1)
    assert ratio <= everywhere.min()


@pytest.mark.parametrize("m", [3, 60])
def test_npsvm_with_an_l1_penalty_ends_at_the_optimum_of_its_linear_programme(
    blocks, m, monkeypatch
):
    monkeypatch.setattr(npsvm, "EPS", 1e-5)
    A, B = blocks(n_a=20, n_b=15, m=m)
    z, objective = fitted(NPSVM("lp", tol=1e-8, max_iter=20_000), A, B)
    least = least_l1(ones(A), ones(B), z, 0.1)
    assert np.count_nonzero(z) < 40
    z /= np.abs(ones(B) @ z).mean()
    value = np.abs(ones(A) @ z).mean() + 0.1 * np.abs(z).sum()
    assert [value, objective] == pytest.approx([least, least], rel=1e-3)


def test_npsvm_takes_collinear_columns(table):
    X, y = table(m=4)
    X = np.column_stack([X, X[:, :2] @ [1.0, -2.0], X[:, 0]])
    assert NPSVM().fit(X, y).score(X, y) > 0.7


# ---- SparsePSVM ------------------------------------------------------------------------------


def test_sparse_psvm_matches_the_alternation_with_the_factor_formed(blocks):
    A, B = blocks(m=8)
    z, found = fitted(SparsePSVM(l1=0.3, l2=0.2, delta=0.5, tol=1e-10), A, B)
    N, H = moment(A) + 0.5 * np.eye(9), moment(B)
    R = linalg.cholesky(N)
    Rinv, Ht = linalg.inv(R), ones(B) / np.sqrt(len(B))
    mu, V = linalg.eigh(H, N)
    l2, a = 0.2 * mu[-1], R @ V[:, -1]  # the parameter is in units of the largest eigenvalue
    Q, c = H + l2 * N, H @ V[:, -1]
    l1 = 0.3 * 2 * np.abs(c - c[-1] / Q[-1, -1] * Q[-1])[:-1].max()
    beta = np.zeros(9)
    for _ in range(40):
        c = H @ Rinv @ a
        for f in list(range(9)) * 200:  # coordinate descent on the elastic net
            rest = c[f] - Q[f] @ beta + Q[f, f] * beta[f]
            beta[f] = np.sign(rest) * max(abs(rest) - (f < 8) * l1 / 2, 0.0) / Q[f, f]
        a = Rinv.T @ H @ beta
        a /= np.linalg.norm(a)
    fit = np.square(Ht @ Rinv - np.outer(Ht @ beta, a)).sum() - np.square(Ht @ Rinv).sum()
    expected = fit + l2 * beta @ N @ beta + l1 * np.abs(beta[:-1]).sum()
    assert found == pytest.approx(expected, rel=1e-6)
    assert_parallel(z, beta, tol=1e-6)
    assert 0 < np.count_nonzero(beta[:-1]) < 8


# ---- TruncatedRayleighFlow and IRQM ----------------------------------------------------------


def quotients(A, B, delta):
    """The largest ``z'Hz / z'(G + delta I)z`` on every set of features, by brute force."""
    N, H, m = moment(A) + delta * np.eye(A.shape[1] + 1), moment(B), A.shape[1]
    sets = [kept for k in range(m + 1) for kept in combinations(range(m), k)]
    grids = {kept: np.ix_([*kept, m], [*kept, m]) for kept in sets}
    return {kept: linalg.eigh(H[grid], N[grid])[0][-1] for kept, grid in grids.items()}


@pytest.mark.parametrize("seed", range(3))
def test_flow_finds_the_best_of_all_supports(blocks, seed):
    A, B = blocks(m=9, seed=seed)
    _, objective = fitted(TruncatedRayleighFlow(n_features=3, tau=0.5), A, B)
    best = max(value for kept, value in quotients(A, B, 0.5).items() if len(kept) == 3)
    assert objective == pytest.approx(1 / best)


def test_irqm_with_a_small_p_finds_the_best_support_nearly_always(blocks):
    """A local method: never below its start at the best feature, and rarely below the best set."""
    best = 0
    for seed in range(6):
        A, B = blocks(m=7, seed=seed)
        values = quotients(A, B, 1.0)
        gain = max(v for kept, v in values.items() if len(kept) == 1) - values[()]
        for rho in (0.1, 0.5, 1.0):
            z, objective = fitted(IRQM(rho, p=1e-8), A, B)
            kept = tuple(np.flatnonzero(z[:-1]))
            net = {k: value - rho * gain * len(k) for k, value in values.items()}
            # the count is g = 1 at |w| = 1, a little less below
            assert net[kept] <= -objective <= net[kept] + 0.2 * rho * gain * len(kept)
            assert -objective >= values[()] + (1 - rho) * gain - 1e-9
            best += net[kept] == max(net.values())
    assert best >= 15  # of 18


def test_irqm_without_a_price_is_gepsvm_and_its_law_of_the_number_of_features(table):
    X, y = table(m=9)
    free = IRQM(1e-9, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(free.planes_, GEPSVM().fit(X, y).planes_, rtol=1e-3, atol=1e-4)
    sizes = [IRQM(rho).fit(X, y).support_.sum() for rho in (0.01, 0.1, 0.3, 1.0)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1] >= 1


def test_smooth_count_tends_to_the_count():
    w = np.array([0.0, 0.7, -0.2, 0.0, 1.0])
    errors = [abs(SmoothCount(p).value(w) - 3) for p in (1e-1, 1e-4, 1e-16, 1e-64)]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.02


@few_and_many
def test_leading_plane_is_the_leading_eigenvector_formed_in_full(blocks, m):
    A, B = (ones(block) for block in blocks(m=m))
    price = np.append(np.random.default_rng(1).uniform(0, 40, m) ** 2, 0.0)
    values, vectors = linalg.eigh(B.T @ B - np.diag(price), A.T @ A + 0.5 * np.eye(m + 1))
    bias = len(B) / (len(A) + 0.5)
    z = leading_plane(A, B, 0.5, price, bias)
    assert_parallel(z, vectors[:, -1])
    assert np.square(B @ z).sum() - price @ z**2 == pytest.approx(values[-1])
