"""Every method at the size of a mass spectrum, in memory that forbids a square of features."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from sparsegsvp import related

N, M = 200, 15_000
# Rounds of an alternation take the same memory; few are enough to see it.
QUICK = {"SparsePSVM": {"l1": 0.9, "tol": 1e-2}}


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], N // 2)
    X = rng.normal(size=(N, M))
    X[:, :20] += 1.5 * y[:, None]
    return X, y


@pytest.mark.parametrize("name", related.__all__)
def test_two_hundred_samples_of_fifteen_thousand_features(wide, name):
    X, y = wide
    estimator = getattr(related, name)(n_features=20, **QUICK.get(name, {}))
    tracemalloc.start()
    try:
        estimator.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert estimator.get_support().sum() == 20
    # a square of the features alone would be 75 times X
    assert peak < 6 * X.nbytes, f"{peak / X.nbytes:.1f} times X"
