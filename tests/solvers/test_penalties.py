"""Every penalty is concave, increasing, zero at zero, and majorised by its tangent.

A new penalty joins by one entry in PENALTIES.
"""

import numpy as np
import pytest

from sparsegsvp.solvers.penalties import L1, Lq, make_penalty

PENALTIES = {
    "l1": L1(),
    "l0.9": Lq(0.9, 1e-3),
    "l0.5": Lq(0.5, 1e-3),
    "l0.1": Lq(0.1, 1e-2),
    "l0.5 rough": Lq(0.5, 1e-6),
}
T = np.linspace(0.0, 1.0, 101)


@pytest.fixture(params=list(PENALTIES))
def penalty(request):
    return PENALTIES[request.param]


def test_value_is_zero_at_zero_and_increases(penalty):
    value = penalty.value(T)
    assert value[0] == 0.0
    assert (np.diff(value) > 0.0).all()


def test_slope_and_curvature_by_finite_differences(penalty):
    t, step = np.linspace(0.01, 1.0, 50), 1e-6
    slope = (penalty.value(t + step) - penalty.value(t - step)) / (2 * step)
    np.testing.assert_allclose(penalty.slope(t), slope, rtol=1e-7)
    bend = (penalty.slope(t + step) - penalty.slope(t - step)) / (2 * step)
    np.testing.assert_allclose(penalty.curvature(t), bend, rtol=1e-6, atol=1e-12)


def test_every_tangent_lies_above(penalty):
    assert (penalty.curvature(T) <= 0.0).all()
    for t in T:
        at = np.array([t])
        tangent = penalty.value(at) + penalty.slope(at) * (T - t)
        assert (penalty.value(T) <= tangent + 1e-12).all()


def test_the_slope_at_zero_is_finite(penalty):
    assert np.isfinite(penalty.slope(np.zeros(1))).all()


def test_convex_means_that_one_tangent_serves_everywhere(penalty):
    assert penalty.convex == bool(np.ptp(penalty.slope(T)) == 0.0)


def test_the_formula_of_lq():
    np.testing.assert_allclose(Lq(0.5, 0.01).value(np.array([0.15])), [0.4 - 0.1])
    np.testing.assert_allclose(Lq(0.5, 0.01).slope(np.array([0.15])), [0.5 / 0.4])


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_lq_goes_to_l1_as_q_goes_to_1(gap):
    near = Lq(1.0 - gap, 1e-3)
    np.testing.assert_allclose(near.value(T), T, atol=8 * gap)
    np.testing.assert_allclose(near.slope(T), 1.0, atol=8 * gap)


def test_make_penalty_picks_by_q():
    assert make_penalty(1.0, 1e-3) == L1()
    assert make_penalty(1, 1e-3) == L1()
    assert make_penalty(0.5, 1e-3) == Lq(0.5, 1e-3)


@pytest.mark.parametrize("q", [0.0, -0.5, 1.0001, np.nan, np.inf])
def test_q_outside_its_range_is_refused(q):
    with pytest.raises(ValueError, match=r"q must be in \(0, 1\]"):
        make_penalty(q, 1e-3)


@pytest.mark.parametrize("eps", [0.0, -1.0, np.nan, np.inf])
def test_eps_outside_its_range_is_refused(eps):
    with pytest.raises(ValueError, match="eps must be a positive number"):
        make_penalty(0.5, eps)
