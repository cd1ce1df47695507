"""One answer from any start, on real data."""

import numpy as np
import pytest

from sparsegsvp import sparse_gsvp, sparse_gsvp_path
from sparsegsvp._parallel import one_thread
from sparsegsvp.datasets import data_folder, load_breast_cancer
from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import L1, working_set
from sparsegsvp.solvers.path import PathSolver, walk_together
from sparsegsvp.solvers.sphere import minimize_on_sphere
from sparsegsvp.solvers.working_set import Problem

RHOS = np.geomspace(0.7, 0.03, 8)
FILES = {
    "leukemia": "leukemia_golub.npz",
    "colon": "colon_alon.npz",
    "prostate": "prostate_singh.npz",
}


def _load(name):
    folder = data_folder()
    if folder is None or not (folder / FILES[name]).exists():
        pytest.skip("set SPARSEGSVP_DATA to the folder of the microarrays")
    with np.load(folder / FILES[name]) as arrays:
        return np.log2(np.maximum(arrays["X"], 16)), arrays["y"].astype(np.intp)


def _starts(varying, dense, sparse, seed):
    """Random unit vectors on all features, and on fifty of them, which is cheaper."""
    rng = np.random.default_rng(seed)
    features = np.flatnonzero(varying)
    for size in [len(features)] * dense + [50] * sparse:
        w = np.zeros(len(varying))
        w[rng.choice(features, size, replace=False)] = rng.normal(size=size)
        yield w / np.linalg.norm(w)


# To save time, eight starts at each delta for tau = 1, four from either plane, and two for
# the easier tau = 10. benchmarks/starts.py takes twenty from either, at every setting.
@pytest.mark.parametrize(("tau", "n_starts"), [(1.0, 4), (10.0, 1)])
@pytest.mark.parametrize("name", list(FILES))
def test_random_starts_agree_with_the_path(name, tau, n_starts):
    X, y = _load(name)
    with one_thread():
        cov = DataCovariances(as_matrix(X), y, None, 2, standardize=True)
        for plane in (0, 1):
            problem = Problem.of_class(cov, plane, tau=tau, pool=0.5, penalty=L1())
            solver = PathSolver(problem, tol=1e-6, max_iter=1000)
            path = solver.run(RHOS * solver.delta_max)
            assert all(solution.converged for solution in path)
            for index, (rho, best) in enumerate(zip(RHOS, path)):
                dense = int(tau == 1.0 and index == 4)
                for w in _starts(cov.standardization.varying, dense, n_starts - dense, index):
                    found = solver.solve_from(best.delta, w)
                    assert found.converged
                    apart = found.objective / best.objective - 1.0
                    assert apart >= -5e-3
                    if rho <= 0.15:
                        assert abs(apart) <= 1e-3


def test_a_start_is_what_the_public_function_takes():
    X, y = _load("colon")
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    A, B = Z[y == 0], Z[y == 1]
    path = sparse_gsvp_path(A, B, n_deltas=6, ratio=0.05, pool=0.5)
    for w in _starts(np.ones(Z.shape[1], dtype=bool), 1, 1, 0):
        found = sparse_gsvp(A, B, path[-1].delta, pool=0.5, w0=w)
        np.testing.assert_array_equal(found.support, path[-1].support)
        np.testing.assert_allclose(found.w, path[-1].w, atol=1e-5)


def test_moments_and_working_sets_agree_on_the_breast_data(penalty):
    dataset = load_breast_cancer()
    Z = (dataset.X - dataset.X.mean(axis=0)) / dataset.X.std(axis=0)
    for own in (0, 1):
        A, B = Z[dataset.y == own], Z[dataset.y != own]
        paths = [
            sparse_gsvp_path(A, B, n_deltas=10, penalty=penalty, pool=0.5, method=method)
            for method in ("moments", "working_set")
        ]
        for moments, rows in zip(*paths):
            np.testing.assert_array_equal(moments.support, rows.support)
            np.testing.assert_allclose(moments.w, rows.w, atol=1e-6)
            assert moments.b == pytest.approx(rows.b, abs=1e-6)


@pytest.mark.parametrize("name", list(FILES))
def test_newton_steps_end_where_the_plain_loop_does(name, monkeypatch):
    """The panels and objectives of a path are those of the loop that forms no blocks."""
    X, y = _load(name)

    def paths():
        cov = DataCovariances(as_matrix(X), y, None, 2, standardize=True)
        problems = [
            Problem.of_class(cov, plane, tau=1.0, pool=0.5, penalty=L1()) for plane in (0, 1)
        ]
        return walk_together(problems, RHOS, tol=1e-6, max_iter=1000, final=True)

    with one_thread():
        fast = paths()
        monkeypatch.setattr(working_set, "minimize_with_newton", minimize_on_sphere)
        plain = paths()
    for one, other in zip(fast, plain):
        for a, b in zip(one, other):
            assert a.converged and b.converged
            np.testing.assert_array_equal(a.features, b.features)
            assert a.objective == pytest.approx(b.objective, rel=1e-8)
