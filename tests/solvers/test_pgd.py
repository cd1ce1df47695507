"""Algorithms 1 and 2 do what the paper prints, or what the authors ran, and no more work."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsegsvp.solvers import l1_pgd_gsvp, lq_pgd_gsvp, lq_prox
from sparsegsvp.solvers.pgd import PGDPlane, pgd_planes


@pytest.fixture
def pair():
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((30, 6)), rng.standard_normal((20, 6))
    B[:, 1] += 2.0
    return A, B


def _with_ones(A: np.ndarray) -> np.ndarray:
    return np.column_stack([A, np.ones(len(A))])


def _start(size: int) -> np.ndarray:
    z = np.random.RandomState(42).uniform(size=size)
    return z / np.linalg.norm(z)


def _quotient(A: np.ndarray, B: np.ndarray, z: np.ndarray) -> float:
    return np.sum((A @ z) ** 2) / np.sum((B @ z) ** 2)


def _numerical_gradient(A: np.ndarray, B: np.ndarray, z: np.ndarray) -> np.ndarray:
    h = 1e-6
    return np.array(
        [
            (_quotient(A, B, z + h * e) - _quotient(A, B, z - h * e)) / (2 * h)
            for e in np.eye(z.size)
        ]
    )


def test_one_step_of_algorithm_1(pair):
    A, B = map(_with_ones, pair)
    z, step, delta = _start(7), 0.1, 3.0
    y = z - step * _numerical_gradient(A, B, z)
    # equation 12: soft thresholding at step * delta / 2
    expected = np.sign(y) * np.maximum(np.abs(y) - step * delta / 2, 0)
    assert np.count_nonzero(expected) < 7  # the threshold bites
    result = l1_pgd_gsvp(*pair, delta, step_size=step, max_iter=1)
    assert_allclose(np.append(result.w, result.b), expected, atol=1e-8)
    history = result.history
    assert_allclose(history.fidelity, [_quotient(A, B, z), _quotient(A, B, expected)], rtol=1e-7)
    assert_allclose(history.penalty, delta * np.array([z.sum(), np.abs(expected).sum()]), rtol=1e-7)


@pytest.mark.parametrize("conventions", ["paper", "code"])
def test_one_step_of_algorithm_2(pair, conventions: str):
    A, B = map(_with_ones, pair)
    z, step, delta, q, eps = _start(7), 0.1, 0.4, 0.3, 0.05

    def D(at: np.ndarray) -> np.ndarray:
        return (at**2 + eps**2) ** ((q - 2) / 2)

    y = z - step * _numerical_gradient(A, B, z)
    expected = y / (1 + step * delta * D(z if conventions == "paper" else y))
    weights = D(expected if conventions == "paper" else z)
    result = lq_pgd_gsvp(
        *pair, delta, q=q, eps=eps, step_size=step, max_iter=1, conventions=conventions
    )
    assert_allclose(np.append(result.w, result.b), expected, atol=1e-8)
    assert_allclose(
        result.history.penalty,
        delta * np.array([np.sum(D(z) * z**2), np.sum(weights * expected**2)]),
        rtol=1e-7,
    )


def test_history_and_stopping_rule(pair):
    result = lq_pgd_gsvp(*pair, 0.05, q=0.5, step_size=0.05, tol=1e-3)
    history = result.history
    assert result.converged and 1 < result.n_iter < 10_000
    assert_allclose(history.objective, history.fidelity + history.penalty)
    change = np.abs(np.diff(history.objective)) / history.objective[:-1]
    assert_allclose(history.relative_error, change)
    assert change[-1] < 1e-3 <= change[:-1].min()  # it stops there and not before
    capped = lq_pgd_gsvp(*pair, 0.05, q=0.5, step_size=0.05, tol=1e-3, max_iter=result.n_iter - 1)
    assert not capped.converged
    assert capped.history.objective.size == result.n_iter


class Counting:
    """A matrix that counts its products."""

    def __init__(self, matrix: np.ndarray, name: str, counts: Counter[str]):
        self.matrix, self.name, self.counts = matrix, name, counts
        self.shape = matrix.shape

    @property
    def T(self) -> Counting:
        return Counting(self.matrix.T, self.name + "'", self.counts)

    def __matmul__(self, vector: np.ndarray) -> np.ndarray:
        assert vector.ndim == 1
        self.counts[self.name] += 1
        return self.matrix @ vector


@pytest.mark.parametrize("solve", [l1_pgd_gsvp, lq_pgd_gsvp])
@pytest.mark.parametrize("bias", [True, False])
def test_four_products_per_iteration(pair, solve, bias):
    counts: Counter[str] = Counter()
    A, B = (Counting(matrix, name, counts) for matrix, name in zip(pair, "AB"))
    result = solve(A, B, 0.1, step_size=0.01, max_iter=17, tol=0.0, bias=bias)
    assert result.n_iter == 17
    # one more of each for the start
    assert counts == {"A": 18, "B": 18, "A'": 18, "B'": 18}


@pytest.mark.parametrize("solve", [l1_pgd_gsvp, lq_pgd_gsvp])
def test_the_bias_is_the_coefficient_of_a_column_of_ones(pair, solve):
    folded = solve(*pair, 0.05, step_size=0.01, max_iter=50, tol=0.0)
    appended = solve(*map(_with_ones, pair), 0.05, step_size=0.01, max_iter=50, tol=0.0, bias=False)
    assert_allclose(np.append(folded.w, folded.b), appended.w, rtol=1e-10)


def test_inputs_are_left_alone_and_runs_agree(pair):
    z0 = _start(7)
    copies = [pair[0].copy(), pair[1].copy(), z0.copy()]
    first, second = (l1_pgd_gsvp(*pair, 0.2, z0=z0, max_iter=20) for _ in range(2))
    for now, before in zip([*pair, z0], copies):
        np.testing.assert_array_equal(now, before)
    np.testing.assert_array_equal(first.w, second.w)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": -1.0}, "delta"),
        ({"delta": np.nan}, "delta"),
        ({"q": 0.0}, "q must"),
        ({"q": 1.5}, "q must"),
        ({"eps": 0.0}, "eps"),
        ({"step_size": 0.0}, "step_size"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1e-4}, "tol"),
        ({"conventions": "mine"}, "conventions"),
        ({"prox": "none"}, "prox"),
        ({"z0": np.ones(3)}, "z0"),
        ({"A": np.ones((3, 5))}, "same features"),
        ({"A": np.full((3, 6), np.nan)}, "A holds NaN"),
        ({"B": np.ones((0, 6))}, "B must"),
        ({"B": np.zeros((3, 6)), "bias": False}, "vanished on the second class"),
        ({"A": np.full((3, 6), 1e200)}, "overflow"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_input_is_named(pair, change, message):
    arguments = {"A": pair[0], "B": pair[1], "delta": 0.1, **change}
    with pytest.raises(ValueError, match=message):
        lq_pgd_gsvp(**arguments)


@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_planes_side_by_side_are_those_found_alone(pair, count: int):
    """Both roles, both algorithms, other steps and starts: each as if it were alone."""
    rng = np.random.default_rng(5)
    ways = [(0.2, 1.0, "exact", 1e-3, "paper"), (0.05, 0.5, "weighted", 1e-2, "code")]
    planes = [
        PGDPlane(k % 2, rng.uniform(size=7), *ways[k % 2], 0.01 * (k + 1), 30 + 5 * k, 1e-5)
        for k in range(count)
    ]
    together = pgd_planes(*pair, planes)
    for plane, found in zip(planes, together):
        alone = pgd_planes(*pair, [plane])[0]
        assert (found.n_iter, found.converged) == (alone.n_iter, alone.converged)
        assert_allclose(np.append(found.w, found.b), np.append(alone.w, alone.b), rtol=1e-9)
        assert_allclose(found.history.objective, alone.history.objective, rtol=1e-9)
    if count > 1:  # a plane near B is one near A with the classes in the other order
        swapped = pgd_planes(*pair[::-1], [replace(planes[1], near=0)])[0]
        assert_allclose(together[1].w, swapped.w, rtol=1e-9)
        assert len({found.n_iter for found in together}) > 1  # one that ends leaves the others


@pytest.mark.parametrize("q", [0.1, 0.5, 2 / 3, 0.9, 1.0])
@pytest.mark.parametrize("weight", [1e-6, 0.3, 4.0])
def test_the_lq_prox_beats_a_fine_grid(q: float, weight: float):
    reach = 3.0 * (1.0 + weight)
    y = np.linspace(-reach, reach, 41)
    found = lq_prox(y, weight, q)

    def value(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return 0.5 * (x - at) ** 2 + weight * np.abs(x) ** q

    grid = np.append(np.linspace(-reach, reach, 20_001), 0.0)[:, None]
    best = value(grid, y).min(axis=0)
    assert np.all(value(found, y) <= best + 1e-12)
    assert_allclose(lq_prox(-y, weight, q), -found)
    kept = found != 0
    assert 0 < kept.sum() < y.size or weight < 1e-3
    # where it is not zero it is stationary, and shrunk
    slope = found[kept] - y[kept] + weight * q * np.sign(y[kept]) * np.abs(found[kept]) ** (q - 1)
    assert_allclose(slope, 0.0, atol=1e-9 * reach)
    assert np.all(np.abs(found) <= np.abs(y))


def test_the_lq_prox_at_its_ends():
    y = np.array([-2.0, -0.3, 0.0, 1.0])
    assert_allclose(lq_prox(y, 0.5, 1.0), [-1.5, 0.0, 0.0, 0.5])
    assert_allclose(lq_prox(y, 0.0, 0.5), y)
    # towards q = 0 it keeps or kills: the threshold of |x|^0 is sqrt(2 weight)
    assert_allclose(lq_prox(y, 0.4, 1e-9), [-2.0, 0.0, 0.0, 1.0], atol=1e-6)


def test_the_exact_step_at_q_1_is_algorithm_1(pair):
    settings = {"step_size": 0.05, "max_iter": 40, "tol": 0.0}
    one = l1_pgd_gsvp(*pair, 0.2, **settings)
    exact = lq_pgd_gsvp(*pair, 0.2, q=1.0, prox="exact", **settings)
    np.testing.assert_array_equal(exact.w, one.w)
    assert_allclose(exact.history.objective, one.history.objective)
    sparse = lq_pgd_gsvp(*pair, 0.2, q=0.5, prox="exact", **settings)
    assert 0 < np.count_nonzero(sparse.w) < 6  # zeros, where the weighted step has none


@pytest.mark.parametrize("q", [None, 0.5])
def test_backtracking_never_raises_what_the_step_aims_at(pair, q: float | None):
    """From a step far too long, which the fixed iteration does not survive descending."""
    settings = {"step_size": 50.0, "max_iter": 200, "tol": 0.0}

    def aim(backtracking: bool) -> np.ndarray:
        if q is None:
            found = l1_pgd_gsvp(*pair, 0.01, backtracking=backtracking, **settings)
        else:
            found = lq_pgd_gsvp(
                *pair, 0.01, q=q, prox="exact", backtracking=backtracking, **settings
            )
        return found.history.fidelity + found.history.penalty / 2

    assert np.all(np.diff(aim(True)) <= 1e-12)
    try:
        fixed = aim(False)
    except ValueError:
        return  # it vanished
    assert np.any(np.diff(fixed) > 1e-3)
