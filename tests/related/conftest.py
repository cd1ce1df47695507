"""Small tables with a known structure, shared by the tests of the related methods."""

import numpy as np
import pytest


@pytest.fixture
def blocks():
    """Two class blocks (n_A x m, n_B x m) that differ in position and in spread."""

    def make(n_a=30, n_b=25, m=6, seed=0):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(n_a, m)) * rng.uniform(0.5, 2.0, m)
        B = rng.normal(size=(n_b, m)) * rng.uniform(0.5, 2.0, m)
        B[:, : max(m // 3, 1)] += 1.5
        return A, B

    return make


@pytest.fixture
def table(blocks):
    """The same as a table X with labels y."""

    def make(**kwargs):
        A, B = blocks(**kwargs)
        return np.vstack([A, B]), np.repeat([0, 1], [len(A), len(B)])

    return make


@pytest.fixture
def planted():
    """A table with its first features shifted in the second class, and its labels."""

    def make(n=40, m=60, informative=6, shift=2.0, seed=0):
        rng = np.random.default_rng(seed)
        y = np.arange(n) % 2
        X = rng.normal(size=(n, m))
        X[:, :informative] += shift * y[:, None]
        return X, y

    return make
