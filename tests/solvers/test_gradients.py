"""Gradients over all features are those of the definition, and bounds on them hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg import ClassMoments, DataCovariances, MomentCovariances, as_matrix, matrix
from sparsegsvp.solvers import L1
from sparsegsvp.solvers.gradients import (
    GradientRequest,
    References,
    cached_gradient,
    full_gradient,
    run_to_end,
    together,
)
from sparsegsvp.solvers.path import PathSolver
from sparsegsvp.solvers.quotient import GramQuotient, OneVsRest, evaluate
from sparsegsvp.solvers.working_set import Problem

RHOS = np.geomspace(1.0, 0.05, 12)


@pytest.fixture
def large(monkeypatch):
    """Matrices of any size count as large."""
    monkeypatch.setattr(matrix, "_LARGE", 0)
    return monkeypatch


def _problem(blocks, i, dtype=np.float64, standardize=True, weight=None, penalty=L1()):  # noqa: B008
    X, codes = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
    data = as_matrix(X.astype(dtype))
    cov = DataCovariances(data, codes, weight, len(blocks), standardize)
    return Problem.of_class(cov, i, tau=1.0, pool=0.5, penalty=penalty)


def _covariances(blocks, moments=False):
    X, codes = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
    if moments:
        return MomentCovariances(ClassMoments.from_data(X, codes), standardize=False)
    return DataCovariances(as_matrix(X), codes, None, len(blocks), standardize=False)


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_full_gradient_from_a_few_features(reference, classes, n_classes, moments):
    blocks = classes(20, 9, n_classes)
    features, values = np.array([1, 4, 6]), np.array([0.6, 0.0, -0.8])
    w = np.zeros(9)
    w[features] = values
    expected = reference(*blocks, i=1, tau=0.5, pool=0.3)
    cov = _covariances(blocks, moments)
    plane = OneVsRest.of_class(1, cov.share, 0.3)
    cov.extend(features)
    bias = evaluate(GramQuotient(cov, plane, 0.5, features), values).bias
    g = full_gradient(cov, plane, 0.5, features, values, bias)
    np.testing.assert_allclose(g, expected.gradient(w), atol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_gradient_of_columns_in_memory_is_that_of_a_pass(classes, monkeypatch, n_classes):
    cov = _covariances(classes(20, 9, n_classes))
    plane = OneVsRest.of_class(1, cov.share, 0.3)
    features, w = np.array([1, 4]), np.array([0.6, -0.8])
    cov.extend(features)
    bias = evaluate(GramQuotient(cov, plane, 0.5, features), w).bias
    request = GradientRequest(cov, plane, 0.5, features, w, bias)
    (product,) = cov.products([request.term])
    index = np.array([0, 3, 8])
    monkeypatch.setattr(cov, "cached_product", lambda *_: (index, product[index]))
    found, g = cached_gradient(request)
    np.testing.assert_array_equal(found, index)
    whole = full_gradient(cov, plane, 0.5, features, w, bias)
    np.testing.assert_allclose(g, whole[index], atol=1e-13)
    monkeypatch.setattr(cov, "cached_product", lambda *_: None)
    assert cached_gradient(request) is None


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n_classes=st.sampled_from([2, 3]),
    standardize=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    quantile=st.sampled_from([0.5, 0.95]),
)
def test_what_is_not_read_is_below_the_threshold(
    classes, seed, n_classes, standardize, dtype, quantile
):
    """Random vectors near a few others; weights of rows, some of them zero."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "_LARGE", 0)
        patch.setattr(matrix, "_FEW", 1.0)
        rng = np.random.default_rng(seed)
        blocks = classes(15, 60, n_classes, seed=seed)
        n = sum(len(block) for block in blocks)
        weight = rng.uniform(0.0, 2.0, n) * (rng.random(n) < 0.8)
        cov = _problem(blocks, 0, dtype, standardize, weight).cov
        Z = cov.columns(np.arange(60))
        references = References(cov)
        basis = [rng.normal(size=n) * cov.weight for _ in range(5)]
        assert references.gradient(basis[0], np.ones(60), np.arange(0)) is None
        for u in basis:
            references.add(u, u @ Z)
        u = basis[2] - 0.7 * basis[4] + 0.1 * rng.normal(size=n) * cov.weight
        exact = u @ Z
        threshold = np.full(60, np.quantile(np.abs(exact), quantile))
        known = np.array([3, 8])
        found = references.gradient(u, threshold, known)
        near = np.abs(found - exact) > 1e-9 * np.abs(exact).max()
        near[known] = False
        # not exact only where both are below
        assert (np.abs(found[near]) < threshold[near]).all()
        assert (np.abs(exact[near]) < threshold[near]).all()
        assert near.any() or quantile == 0.5


def test_what_is_read_is_what_the_bound_leaves_open(classes, large):
    """Of a known vector what rounding may have changed, of one in the span of several nothing."""
    large.setattr(matrix, "_FEW", 1.0)
    cov = _problem(classes(15, 60, seed=1), 0, standardize=False).cov
    cov.rounding = 1e-2
    Z, read = cov.columns(np.arange(60)), []
    some = cov.some_products
    large.setattr(cov, "some_products", lambda u, index: read.append(index) or some(u, index))
    rng = np.random.default_rng(1)
    basis = [rng.normal(size=cov.n_samples) * cov.weight for _ in range(3)]
    references = References(cov)
    references.add(basis[0], basis[0] @ Z)
    exact = basis[0] @ Z
    threshold = np.full(60, np.quantile(np.abs(exact), 0.8))
    band = 8 * cov.rounding * np.linalg.norm(cov.dual(basis[0])) * cov.column_norms
    open_ = np.flatnonzero(np.abs(exact) >= threshold - band)
    plain = np.flatnonzero(np.abs(exact) >= threshold)
    assert len(plain) < len(open_) < 60
    references.gradient(basis[0], threshold, open_[:2])
    np.testing.assert_array_equal(read[0], open_[2:])
    for u in basis[1:]:
        references.add(u, u @ Z)
    cov.rounding = 1e-16
    u = 0.3 * basis[0] - 0.7 * basis[1] + 2.0 * basis[2]
    found = references.gradient(u, np.full(60, np.inf), np.arange(0))
    assert len(read[1]) == 0
    np.testing.assert_allclose(found, u @ Z, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_certificates_are_true_and_take_fewer_passes(classes, penalty, large, n_classes, dtype):
    blocks = classes(40, 600, n_classes, seed=2)
    problem = _problem(blocks, 1, dtype, penalty=penalty)
    solver = PathSolver(problem, tol=1e-6, max_iter=1000)
    path = solver.run(RHOS * solver.delta_max)
    cov = problem.cov
    for solution in path:
        w = np.zeros(600)
        w[solution.features] = solution.w
        gradient = full_gradient(
            cov, problem.plane, 1.0, solution.features, solution.w, solution.bias
        )
        total = gradient + solution.delta * penalty.slope(np.abs(w)) * np.sign(w)
        on = np.abs(total - (w @ total) * w)
        off = np.abs(gradient) - solution.delta * penalty.slope(np.abs(w))
        residual = max(np.where(w != 0.0, on, off).max(), 0.0)
        assert solution.converged
        rounding = 1e-12 if dtype == np.float64 else 2e-6 * solver.delta_max
        assert residual == pytest.approx(solution.kkt_residual, abs=rounding)
    with_bounds = cov.n_passes - len(path)
    large.setattr(matrix, "_LARGE", 1 << 60)
    problem = _problem(blocks, 1, dtype, penalty=penalty)
    solver = PathSolver(problem, tol=1e-6, max_iter=1000)
    plain = solver.run(RHOS * solver.delta_max)
    assert with_bounds < 0.8 * problem.cov.n_passes
    for one, other in zip(path, plain):
        np.testing.assert_array_equal(one.features, other.features)
        np.testing.assert_allclose(one.w, other.w, atol=1e-6)


def test_single_solutions_come_with_their_gradient(classes, penalty, large):
    blocks = classes(30, 300, seed=4)
    for method in ("at", "continue_to"):
        problem = _problem(blocks, 0, penalty=penalty)
        solver = PathSolver(problem, tol=1e-6, max_iter=1000)
        found = getattr(solver, method)(0.1 * solver.delta_max)
        expected = full_gradient(
            problem.cov, problem.plane, 1.0, found.features, found.w, found.bias
        )
        np.testing.assert_allclose(found.gradient, expected, atol=1e-10)


def test_solvers_of_different_lengths_end_together():
    def counting(n):
        for _ in range(n):
            yield []
        return n

    assert run_to_end(together([counting(n) for n in (3, 0, 5)])) == [3, 0, 5]
    assert run_to_end(together([])) == []


def test_each_solver_is_sent_what_it_has_asked_for():
    def asking(n):
        return (yield [n] * n)

    both = together([asking(1), asking(2), asking(1)])
    assert next(both) == [1, 2, 2, 1]
    with pytest.raises(StopIteration) as stop:
        both.send(["a", "b", "c", "d"])
    assert stop.value.value == [["a"], ["b", "c"], ["d"]]
