"""The elbow rule: planted knees, no knees, ties, zeros, and the library the paper used."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.estimators import elbow_features, find_elbow


@pytest.mark.parametrize("knee", [2, 5, 17])
def test_a_planted_knee_is_found(knee: int) -> None:
    """Steep to the knee, shallow after it: the corner is the farthest point from the chord."""
    steep = np.linspace(10.0, 1.0, knee)
    shallow = np.linspace(1.0, 0.1, 31)[1:]
    curve = np.concatenate([steep, shallow])
    assert find_elbow(curve) == knee
    shuffled = np.random.default_rng(0).permutation(curve) * np.resize([1, -1], curve.size)
    assert find_elbow(shuffled) == knee
    np.testing.assert_array_equal(np.abs(shuffled)[elbow_features(shuffled)], curve[:knee])


@pytest.mark.parametrize(
    "curve",
    [[1.0], [2.0, 1.0], [3.0, 3.0, 3.0], np.zeros(5), np.linspace(7.0, 0.0, 1000),
     0.1 * np.arange(3, 60) + 0.7, [3.0, 3.0, 1.0, 1.0]],  # two points without the flat ends
)  # fmt: skip
def test_no_elbow(curve: list[float]) -> None:
    assert find_elbow(curve) is None
    # then every feature with a weight is kept
    assert elbow_features(curve).size == np.count_nonzero(curve)


def test_ties_go_to_the_first_point_and_the_lower_index() -> None:
    # the points 3 and 1 of this symmetric curve are equally far from the chord
    assert find_elbow([4.0, 2.0, 2.0, 0.0]) == 2
    np.testing.assert_array_equal(elbow_features([0.0, 5.0, 0.1, -5.0, 5.0, 0.05]), [1, 3, 4, 2])


def test_zeros_are_never_selected_and_do_not_move_the_elbow() -> None:
    curve = np.array([9.0, 8.5, 1.0, 0.8, 0.5, 0.2])
    kept = find_elbow(np.append(curve, 0.0))
    assert kept == 3
    assert find_elbow(np.append(curve, np.zeros(10_000))) == kept
    # The chord of the whole curve ends at the far zero: the elbow is then the first zero,
    # and with it every weight, however small, would be kept.
    whole = np.append(curve, np.zeros(10_000))
    assert find_elbow(whole, rule="full-chord") > kept
    assert elbow_features(whole, rule="full-chord").size <= curve.size


@given(
    st.lists(st.floats(0.0, 1e3, allow_subnormal=False), min_size=3, max_size=40),
    st.floats(1e-3, 1e3),
)
@settings(max_examples=60, deadline=None)
def test_scale_and_order_do_not_matter(values: list[float], scale: float) -> None:
    weights = np.round(values, 3)
    # rounding by the scaling may break or make a tie: a power of two does neither
    power = 2.0 ** np.round(np.log2(scale))
    assert find_elbow(weights * power) == find_elbow(weights)
    assert find_elbow(-weights[::-1]) == find_elbow(weights)


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
def test_agreement_with_kneefinder() -> None:
    matplotlib.use("Agg")  # the package imports pyplot
    kneefinder = pytest.importorskip("kneefinder")
    rng = np.random.default_rng(5)
    for trial in range(40):
        size = rng.integers(4, 300)
        curve = np.sort(rng.exponential(size=size) ** rng.uniform(0.5, 6))[::-1]
        if trial % 2:
            curve[rng.integers(3, size) :] = 0.0  # a flat tail
        if trial % 5 == 0:
            curve[: rng.integers(1, 3)] = curve[0]  # a flat head
        knee = kneefinder.KneeFinder(np.arange(size), curve).find_knee()
        assert find_elbow(curve) == int(knee[0]) + 1


@pytest.mark.parametrize("bad", [[], [[1.0, 2.0]], [1.0, np.nan], [np.inf, 1.0]])
def test_bad_weights(bad: list) -> None:
    with pytest.raises(ValueError, match="weights"):
        find_elbow(bad)
    with pytest.raises(ValueError, match="rule"):
        find_elbow([3.0, 1.0, 0.0], rule="kneedle")  # type: ignore[arg-type]
