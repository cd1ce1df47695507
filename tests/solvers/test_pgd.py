"""Algorithms 1 and 2 do what the paper prints, or what the authors ran, and no more work."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsegsvp.solvers.pgd import l1_pgd_gsvp, lq_pgd_gsvp


@pytest.fixture
def pair() -> tuple[np.ndarray, np.ndarray]:
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


def test_one_step_of_algorithm_1(pair: tuple[np.ndarray, np.ndarray]) -> None:
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
def test_one_step_of_algorithm_2(pair: tuple[np.ndarray, np.ndarray], conventions: str) -> None:
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


def test_history_and_stopping_rule(pair: tuple[np.ndarray, np.ndarray]) -> None:
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


def test_small_steps_descend(pair: tuple[np.ndarray, np.ndarray]) -> None:
    """From the start, a small step lowers r + (delta / 2)||z||_1, what the threshold aims at."""
    history = l1_pgd_gsvp(*pair, 0.2, step_size=1e-3, max_iter=300, tol=0.0).history
    assert np.all(np.diff(history.fidelity + history.penalty / 2) < 0)


def test_the_quotient_is_free_of_scale_and_the_penalty_is_not(
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    """Why there is no minimiser: halving z halves the penalty and leaves r alone."""
    z = _start(7)
    whole = l1_pgd_gsvp(*pair, 0.2, z0=z, max_iter=1).history
    half = l1_pgd_gsvp(*pair, 0.2, z0=z / 2, max_iter=1).history
    assert_allclose(half.fidelity[0], whole.fidelity[0])
    assert_allclose(half.penalty[0], whole.penalty[0] / 2)


class Counting:
    """A matrix that counts its products."""

    def __init__(self, matrix: np.ndarray, name: str, counts: Counter[str]) -> None:
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
def test_four_products_per_iteration(
    pair: tuple[np.ndarray, np.ndarray], solve, bias: bool
) -> None:
    counts: Counter[str] = Counter()
    A, B = (Counting(matrix, name, counts) for matrix, name in zip(pair, "AB"))
    result = solve(A, B, 0.1, step_size=0.01, max_iter=17, tol=0.0, bias=bias)
    assert result.n_iter == 17
    # one more with A and B to begin with
    assert counts == {"A": 18, "B": 18, "A'": 17, "B'": 17}


@pytest.mark.parametrize("solve", [l1_pgd_gsvp, lq_pgd_gsvp])
def test_the_bias_is_the_coefficient_of_a_column_of_ones(
    pair: tuple[np.ndarray, np.ndarray], solve
) -> None:
    folded = solve(*pair, 0.05, step_size=0.01, max_iter=50, tol=0.0)
    appended = solve(*map(_with_ones, pair), 0.05, step_size=0.01, max_iter=50, tol=0.0, bias=False)
    assert_allclose(np.append(folded.w, folded.b), appended.w, rtol=1e-10)


def test_feature_order_and_sign_do_not_matter(pair: tuple[np.ndarray, np.ndarray]) -> None:
    order, sign = np.array([3, 0, 5, 1, 4, 2]), np.array([1, -1, 1, 1, -1, -1.0])
    z = np.linspace(-1, 1, 7)
    plain = lq_pgd_gsvp(*pair, 0.05, q=0.5, z0=z, max_iter=50, tol=0.0)
    turned = lq_pgd_gsvp(
        *[(M * sign)[:, order] for M in pair],
        0.05,
        q=0.5,
        z0=np.append((z[:-1] * sign)[order], z[-1]),
        max_iter=50,
        tol=0.0,
    )
    assert_allclose(turned.w, (plain.w * sign)[order], rtol=1e-9)
    assert_allclose(turned.b, plain.b, rtol=1e-9)


def test_inputs_are_left_alone_and_runs_agree(pair: tuple[np.ndarray, np.ndarray]) -> None:
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
        ({"z0": np.ones(3)}, "z0"),
        ({"A": np.ones((3, 5))}, "same features"),
        ({"A": np.full((3, 6), np.nan)}, "A holds NaN"),
        ({"B": np.ones((0, 6))}, "B must"),
        ({"B": np.zeros((3, 6)), "bias": False}, "vanished on the second class"),
        ({"A": np.full((3, 6), 1e200)}, "overflow"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_input_is_named(
    pair: tuple[np.ndarray, np.ndarray], change: dict, message: str
) -> None:
    arguments = {"A": pair[0], "B": pair[1], "delta": 0.1, **change}
    with pytest.raises(ValueError, match=message):
        lq_pgd_gsvp(**arguments)


def test_a_step_that_wipes_everything_out_says_so(pair: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="smaller delta"):
        l1_pgd_gsvp(*pair, 1e6)
