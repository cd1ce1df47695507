"""Solving on a few features certifies the solution on all of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsegsvp.linalg import ClassMoments, DataCovariances, MomentCovariances, as_matrix
from sparsegsvp.solvers import L1, working_set
from sparsegsvp.solvers.gradients import run_to_end
from sparsegsvp.solvers.newton import minimize_with_newton
from sparsegsvp.solvers.path import PathSolver
from sparsegsvp.solvers.working_set import Limits, Problem, solve


def _stack(blocks):
    return np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])


def _cov(blocks, kind=as_matrix, standardize=True):
    X, codes = _stack(blocks)
    return DataCovariances(as_matrix(kind(X)), codes, None, len(blocks), standardize)


def _moments(blocks):
    X, codes = _stack(blocks)
    return MomentCovariances(ClassMoments.from_data(X, codes), standardize=True)


def _standardized(blocks):
    """The same rows, centred and scaled over all of them."""
    X, _ = _stack(blocks)
    return [(block - X.mean(axis=0)) / X.std(axis=0) for block in blocks]


def _solve(cov, i, rho, *, penalty=L1(), tau=1.0, pool=0.5, weights=None, newton=True):  # noqa: B008
    problem = Problem.of_class(
        cov, i, tau=tau, pool=pool, penalty=penalty, weights=weights, newton=newton
    )
    solver = PathSolver(problem, tol=1e-6, max_iter=1000)
    return solver.continue_to(rho * solver.delta_max), solver


def _dense(solution, m):
    w = np.zeros(m)
    w[solution.features] = solution.w
    return w


@pytest.mark.parametrize("rho", [0.5, 0.05])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_certificate_holds_on_all_features(reference, classes, penalty, n_classes, rho):
    """Recomputed on standardised rows, with the spread between the other classes' means."""
    m = 120
    blocks = classes(20, m, n_classes, seed=3)
    Z = _standardized(blocks)
    for i in range(n_classes):
        solution, solver = _solve(_cov(blocks), i, rho, penalty=penalty)
        w = _dense(solution, m)
        assert 1 < len(solution.features) < m
        expected = reference(*Z, i=i, tau=1.0, pool=0.5)
        b = solution.bias.own - expected.means[i] @ w
        assert solution.converged
        certificate = expected.certificate(w, b, solution.delta, penalty)
        assert certificate <= 1e-6 * solver.delta_max * (1 + 1e-6) + 1e-12
        assert certificate == pytest.approx(solution.kkt_residual, abs=1e-10)
        assert solution.objective == pytest.approx(
            expected.objective(w, solution.delta, penalty), rel=1e-10
        )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_working_sets_are_the_full_solve_are_the_moments(
    reference, classes, penalty, one_minimum, n_classes
):
    """Both are stationary. With a concave penalty there are several such points, and letting
    features in a few or all at a time may end in different ones, of about the same objective."""
    m = 90
    blocks = classes(25, m, n_classes, seed=5)
    expected = reference(*_standardized(blocks), i=1, tau=1.0, pool=0.5)
    for rho in (0.6, 0.2, 0.05):
        rows, solver = _solve(_cov(blocks), 1, rho, penalty=penalty)
        moments, _ = _solve(_moments(blocks), 1, rho, penalty=penalty)
        for found in (rows, moments):
            w = _dense(found, m)
            b = found.bias.own - expected.means[1] @ w
            certificate = expected.certificate(w, b, found.delta, penalty)
            assert certificate <= 1e-6 * solver.delta_max * (1 + 1e-6) + 1e-12
        assert rows.objective == pytest.approx(moments.objective, rel=1e-3)
        same = np.array_equal(rows.features, moments.features)
        assert same or penalty not in one_minimum
        if same:
            np.testing.assert_allclose(rows.w, moments.w, atol=1e-6)
            assert rows.bias.own == pytest.approx(moments.bias.own, abs=1e-6)


def test_factors_in_place_of_gram_blocks_change_nothing(classes, monkeypatch):
    blocks = classes(25, 90, 3, seed=5)
    gram, _ = _solve(_cov(blocks), 0, 0.05)
    monkeypatch.setattr(working_set, "_MAX_GRAM", 4)
    factors, _ = _solve(_cov(blocks), 0, 0.05)
    np.testing.assert_array_equal(gram.features, factors.features)
    np.testing.assert_allclose(gram.w, factors.w, atol=1e-6)


@pytest.mark.parametrize(
    "kind", [np.asfortranarray, sp.csr_array, sp.csc_matrix, lambda X: X[::-1][::-1]]
)
def test_every_storage_has_the_same_solution(classes, kind):
    blocks = [np.round(X * 16) / 16 * (np.abs(X) > 0.6) for X in classes(25, 90, seed=6)]
    plain, _ = _solve(_cov(blocks), 0, 0.1)
    other, _ = _solve(_cov(blocks, kind), 0, 0.1)
    np.testing.assert_array_equal(plain.features, other.features)
    np.testing.assert_allclose(plain.w, other.w, atol=1e-9)


def test_few_passes_and_no_block_of_all_features():
    """At delta_max / 10 of a wide problem the data is read a few times only."""
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(30, 3000)), rng.normal(size=(30, 3000))]
    blocks[1][:, :6] += 1.5
    cov = _cov(blocks)
    solution, _ = _solve(cov, 0, 0.1)
    assert solution.converged
    assert cov.n_passes < 30
    assert all(len(gram) < 600 for gram in cov._gram)


def test_the_inner_solvers_agree(classes):
    blocks = classes(30, 60, seed=7)
    for rho in (0.5, 0.1):
        fast, _ = _solve(_cov(blocks), 0, rho, tau=3.0)
        plain, _ = _solve(_cov(blocks), 0, rho, tau=3.0, newton=False)
        assert plain.converged
        np.testing.assert_array_equal(fast.features, plain.features)
        np.testing.assert_allclose(fast.w, plain.w, atol=1e-5)


def test_where_the_inner_solver_stalls_the_search_ends(classes, monkeypatch):
    """Nothing is left to add to the set, so nothing is asked for again, and the result says so."""
    problem = Problem.of_class(_cov(classes(30, 40, seed=8)), 0, tau=1.0, pool=0.5, penalty=L1())
    solver = PathSolver(problem, tol=1e-6, max_iter=1000)
    start = solver.at(0.5 * solver.delta_max)

    def stalled(*arguments, **options):
        return minimize_with_newton(*arguments, **{**options, "max_iter": 0})

    monkeypatch.setattr(working_set, "minimize_with_newton", stalled)
    limits = Limits(tol=1e-6 * solver.delta_max, max_iter=1000)
    found = run_to_end(solve(problem, 0.4 * solver.delta_max, start, limits))
    assert not found.converged and found.kkt_residual > limits.tol
    assert found.n_iter == 0
    np.testing.assert_array_equal(found.w, start.w)
