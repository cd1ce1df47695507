"""Paths walked side by side are those walked alone, and share every pass over the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg import ClassMoments, DataCovariances, MomentCovariances, as_matrix
from sparsegsvp.solvers import L1
from sparsegsvp.solvers.path import PathSolver, walk_together
from sparsegsvp.solvers.working_set import Problem

RHOS = np.geomspace(1.0, 0.03, 8)
LIMITS = {"tol": 1e-3, "max_iter": 1000}


def _stack(blocks):
    return np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])


def _cov(blocks, kind=np.asarray, weight=None):
    X, codes = _stack(blocks)
    return DataCovariances(as_matrix(kind(X)), codes, weight, len(blocks), standardize=True)


def _problems(cov, penalty=L1(), taus=(0.3, 3.0), weights=None):  # noqa: B008
    return [
        Problem.of_class(cov, i, tau=tau, pool=0.5, penalty=penalty, weights=weights)
        for tau in taus
        for i in range(len(cov.share))
    ]


def _same(one, other, atol=1e-9):
    assert len(one) == len(other)
    for a, b in zip(one, other):
        np.testing.assert_array_equal(a.features, b.features)
        np.testing.assert_allclose(a.w, b.w, atol=atol)
        assert a.delta == pytest.approx(b.delta, rel=1e-12)
        assert a.objective == pytest.approx(b.objective, rel=max(1e-12, 1e-4 * atol))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_path_does_not_depend_on_those_beside_it(classes, penalty, kind, n_classes):
    blocks = classes(20, 150, n_classes, seed=3)
    together = walk_together(_problems(_cov(blocks, kind), penalty), RHOS, **LIMITS)
    for i, path in enumerate(together):
        problem = _problems(_cov(blocks, kind), penalty)[i]
        _same(path, walk_together([problem], RHOS, **LIMITS)[0])


def test_one_pass_serves_a_round_of_all(classes):
    blocks = classes(20, 400, seed=4)
    passes = []
    for taus in [(1.0,), (1.0,) * 4]:
        cov = _cov(blocks)
        walk_together(_problems(cov, taus=taus), RHOS, **LIMITS)
        passes.append(cov.n_passes)
    assert passes[0] == passes[1] <= 3 * len(RHOS)


@pytest.mark.parametrize("most", [None, 25])
def test_costly_passes_certify_several_points_each(classes, most):
    """A Dask array: the same solutions, in fewer passes than there are points."""
    da = pytest.importorskip("dask.array")
    blocks = classes(40, 2000, seed=9)
    lazy = _cov(blocks, lambda X: da.from_array(X, chunks=(-1, 500)))
    options = {"tol": 1e-6, "max_iter": 1000, "final": True, "max_features": most}
    rhos = np.geomspace(1.0, 0.05, 20)
    groups = [(0, 1), (2, 3)]
    found = walk_together(_problems(lazy), rhos, groups=groups, **options)
    expected = walk_together(_problems(_cov(blocks)), rhos, groups=groups, **options)
    for one, other in zip(found, expected):
        assert all(solution.converged for solution in one)
        _same(one, other, atol=1e-6)
    assert lazy.matrix.n_passes < len(rhos)


def test_a_final_walk_is_that_of_the_path_solver(classes, penalty):
    blocks = classes(20, 60, seed=5)
    cov = _cov(blocks)
    problems = _problems(cov, penalty)
    paths = walk_together(problems, RHOS, tol=1e-6, max_iter=1000, final=True)
    for problem, path in zip(problems, paths):
        solver = PathSolver(problem, tol=1e-6, max_iter=1000, first_above=False)
        _same(path, solver.run(RHOS * solver.linear_max))
        assert all(solution.converged for solution in path)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n_classes=st.sampled_from([2, 3]),
    tau=st.sampled_from([0.3, 1.0, 10.0]),
    weighted=st.booleans(),
)
def test_every_solution_is_certified_to_a_part_of_its_penalty(
    reference, classes, penalty, seed, n_classes, tau, weighted
):
    """Recomputed from the definition, on standardised rows."""
    rng = np.random.default_rng(seed)
    blocks = classes(20, 80, n_classes, seed=seed)
    X, codes = _stack(blocks)
    weight = rng.uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    weights = rng.uniform(0.5, 2.0, 80)
    cov = _cov(blocks, weight=weight)
    problems = _problems(cov, penalty, (tau,), weights)
    paths = walk_together(problems, RHOS, **LIMITS)
    center = weight @ X / weight.sum()
    scale = np.sqrt(weight @ (X - center) ** 2 / weight.sum())
    parts = [((X - center) / scale)[codes == k] for k in range(n_classes)]
    shares = [weight[codes == k] for k in range(n_classes)]
    for i, path in enumerate(paths):
        expected = reference(*parts, i=i, tau=tau, pool=0.5, weights=shares)
        for solution in path:
            if solution.bias.clipped:
                continue
            w = np.zeros(80)
            w[solution.features] = solution.w
            b = solution.bias.own - expected.means[i] @ w
            certificate = expected.certificate(w, b, solution.delta, penalty, weights)
            assert solution.converged
            assert certificate <= 1e-3 * solution.delta * (1 + 1e-6) + 1e-12
            assert certificate == pytest.approx(solution.kkt_residual, abs=1e-9)


def test_looser_paths_select_nearly_what_final_ones_do(classes):
    blocks = classes(30, 200, seed=8)
    loose = walk_together(_problems(_cov(blocks)), RHOS, **LIMITS)
    final = walk_together(_problems(_cov(blocks)), RHOS, tol=1e-6, max_iter=1000, final=True)
    for one, other in zip(loose, final):
        for a, b in zip(one, other):
            assert a.objective >= b.objective * (1 - 1e-9)
            assert a.objective <= b.objective * (1 + 1e-2)


def test_a_group_ends_with_the_first_panel_that_is_too_large(classes):
    blocks = classes(25, 300, seed=6)
    options = {**LIMITS, "groups": [(0, 1), (2, 3)]}
    whole = walk_together(_problems(_cov(blocks)), RHOS, **options)
    sizes = [
        [len(np.union1d(a.features, b.features)) for a, b in zip(whole[i], whole[i + 1])]
        for i in (0, 2)
    ]
    most = sizes[0][4]
    ended = walk_together(_problems(_cov(blocks)), RHOS, max_features=most, **options)
    for group, path_sizes in zip(((0, 1), (2, 3)), sizes):
        over = [k for k, size in enumerate(path_sizes) if size > most]
        length = over[0] + 1 if over else len(RHOS)
        for i in group:
            _same(ended[i], whole[i][:length])
    assert len({len(path) for path in ended}) > 1


def test_moments_need_no_pass(classes):
    blocks = classes(60, 20, seed=7)
    cov = MomentCovariances(ClassMoments.from_data(*_stack(blocks)), standardize=True)
    for moments, rows in zip(
        walk_together(_problems(cov), RHOS, **LIMITS),
        walk_together(_problems(_cov(blocks)), RHOS, **LIMITS),
    ):
        for a, b in zip(moments, rows):
            assert a.objective == pytest.approx(b.objective, rel=1e-5)
