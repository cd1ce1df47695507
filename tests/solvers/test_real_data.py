"""One answer from any start and by any way, on real data."""

import os
from pathlib import Path

import numpy as np
import pytest

from sparsegsvp import sparse_gsvp, sparse_gsvp_path
from sparsegsvp.solvers import newton

FILES = {
    "leukemia": "leukemia_golub.npz",
    "colon": "colon_alon.npz",
    "prostate": "prostate_singh.npz",
}


def _load(name):
    folder = Path(os.environ.get("SPARSEGSVP_DATA", ""))
    if not (folder / FILES[name]).exists():
        pytest.skip("set SPARSEGSVP_DATA to the folder of the microarrays")
    with np.load(folder / FILES[name]) as arrays:
        X, y = np.log2(np.maximum(arrays["X"], 16)).astype(np.float64), arrays["y"]
    X = X[:, X.std(axis=0) > 0.0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return Z[y == 0], Z[y == 1]


@pytest.mark.parametrize("tau", [1.0, 10.0])
@pytest.mark.parametrize("name", list(FILES))
def test_random_starts_agree_with_the_path(name, tau):
    A, B = _load(name)
    m = A.shape[1]
    path = sparse_gsvp_path(A, B, n_deltas=8, ratio=0.05, pool=0.5, tau=tau)
    assert all(result.converged for result in path)
    rng = np.random.default_rng(0)
    for result in path[2::2]:
        for size in (50, m):
            w = np.zeros(m)
            w[rng.choice(m, size, replace=False)] = rng.normal(size=size)
            other = sparse_gsvp(A, B, result.delta, pool=0.5, tau=tau, w0=w)
            assert other.converged
            assert other.objective == pytest.approx(result.objective, rel=1e-3)


@pytest.mark.parametrize("name", list(FILES))
def test_newton_steps_end_where_gradient_steps_do(name, monkeypatch):
    A, B = _load(name)
    options = {"n_deltas": 5, "ratio": 0.2, "pool": 0.5, "tol": 1e-5, "max_iter": 5000}
    fast = sparse_gsvp_path(A, B, **options)
    monkeypatch.setattr(newton, "_newton_step", lambda it, tol: None)
    plain = sparse_gsvp_path(A, B, **options)
    for one, two in zip(fast, plain, strict=True):
        assert one.converged and two.converged
        np.testing.assert_array_equal(one.support, two.support)
        assert one.objective == pytest.approx(two.objective, rel=1e-8)
