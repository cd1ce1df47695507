"""The learning curve: its law, its parts, and when it looks ahead."""

from __future__ import annotations

import json

import numpy as np
import pytest
from joblib import parallel_config
from scipy.optimize import lsq_linear
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectKBest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from sparsegsvp.evaluation import PowerLaw, learning_curve
from sparsegsvp.evaluation.folds import draw_parts, growing_parts
from sparsegsvp.evaluation.learning import EXPONENTS, fit_power_laws

SIZES = np.array([30.0, 40, 50, 65, 80])

# ----------------------------------------------------------------------------------- the law


def test_an_exact_law_is_found_again():
    at = [5, 20, 33]
    exact = [PowerLaw(0.9, 1.2, EXPONENTS[k]) for k in at]
    rows = np.array([[law(n) for n in SIZES] for law in exact])
    a, b, best = fit_power_laws(SIZES, rows)
    np.testing.assert_array_equal(best, at)
    np.testing.assert_allclose(a, 0.9, atol=1e-9)
    np.testing.assert_allclose(b * SIZES[-1] ** EXPONENTS[best], 1.2, rtol=1e-8)


def test_the_fit_is_the_best_within_its_bounds():
    """Against bounded least squares at every exponent, which knows nothing of the closed form."""
    rng = np.random.default_rng(0)
    rising = np.linspace(0.6, 0.95, 5)
    rows = np.clip(rising + rng.normal(scale=0.1, size=(7, 5)), 0, 1)
    rows[:2] = rows[:2, ::-1]  # falling
    a, b, best = fit_power_laws(SIZES, rows)
    assert (a <= 1).all() and (b >= 0).all() and (b == 0).any() and (a == 1).any()
    for row, *found, k in zip(rows, a, b, best):
        least = np.inf
        for c in EXPONENTS:
            A = np.column_stack([np.ones(5), -((SIZES / 80) ** -c)])
            least = min(least, 2 * lsq_linear(A, row, bounds=([0, 0], [1, np.inf])).cost)
        A = np.column_stack([np.ones(5), -((SIZES / 80) ** -EXPONENTS[k])])
        assert np.sum((A @ found - row) ** 2) <= least + 1e-9


# --------------------------------------------------------------------------------- the parts


@pytest.mark.parametrize("grouped", [False, True])
def test_parts_grow_within_each_other_and_leave_out_everyone_alike(grouped):
    y = np.repeat([0, 1, 1], 20)
    groups = np.repeat(np.arange(30), 2) if grouped else None
    parts = growing_parts(y, groups, (0.3, 0.5, 0.8), 10, 0)
    for drawn in parts:
        assert [p.size for p in drawn] == [18, 30, 48]
        assert [np.sum(y[p] == 0) for p in drawn] == [6, 10, 16]
        assert set(drawn[0]) < set(drawn[1]) < set(drawn[2])
        if groups is not None:
            for part in drawn:
                outside = np.setdiff1d(np.arange(60), part)
                assert not np.intersect1d(groups[part], groups[outside]).size
    for turn in (parts[:5], parts[5:]):
        assert np.bincount(np.concatenate([p[2] for p in turn]), minlength=60).tolist() == [4] * 60
    assert any((p[0] != q[0]).any() for p, q in zip(parts[:5], parts[5:]))
    assert (growing_parts(y, groups, (0.3, 0.5, 0.8), 3, 0)[2][1] == parts[2][1]).all()


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the samples it was fitted on, and says of all others what they are not."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen_ = set(X[:, 0].tolist())
        return self

    def predict(self, X):
        truth = X[:, 1].astype(int)
        known = np.array([x in self.seen_ for x in X[:, 0].tolist()])
        return np.where(known, truth, 1 - truth)


def test_only_samples_outside_of_a_part_are_predicted():
    y = np.tile([0, 1], 15)
    found = learning_curve(Memory(), np.column_stack([np.arange(30), y]), y, n_repeats=3)
    assert (found.scores == 0).all() and found.reason == "chance"
    assert found.stability == found.panel_sizes == (None,) * 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fractions": (0.3, 0.8)}, "at least three rising shares"),
        ({"fractions": (0.5, 0.3, 0.8)}, "at least three rising shares"),
        ({"fractions": (0.3, 0.5, 1.0)}, "fractions must be a number above 0 and below 1"),
        ({"n_repeats": 2}, "n_repeats must be an integer of at least 3"),
        ({"fractions": (0.05, 0.5, 0.8)}, "has 1 of class 'case' and at least 3"),
        ({"fractions": (0.3, 0.5, 0.99)}, "leaves none of class 'case' to predict"),
        ({"groups": np.repeat([0, 1, 2, 3], 10)}, "too few samples \\(or groups\\) of it"),
    ],
)
def test_what_cannot_be_done_is_said(planted_small, nearest_mean, given, said):
    X, y = planted_small
    with pytest.raises(ValueError, match=said):
        learning_curve(nearest_mean, X, y, **given)


# --------------------------------------------------------------------------- looking ahead


def true_accuracy(n: int, p: int, shift: float) -> float:
    """Mean accuracy of the nearest of two estimated means, from its weights: no sampling of X."""
    rng = np.random.default_rng(1)
    first = rng.normal(size=(1500, p)) / np.sqrt(n / 2)
    second = rng.normal(size=(1500, p)) / np.sqrt(n / 2)
    second[:, 0] += shift
    w, middle = second - first, (first + second) / 2
    at, size = (w * middle).sum(axis=1), np.linalg.norm(w, axis=1)
    return float(np.mean(norm.cdf(at / size) + norm.cdf((shift * w[:, 0] - at) / size)) / 2)


def planted(seed: int, n: int, p: int, shift: float):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    X = rng.normal(size=(n, p))
    X[y == 1, 0] += shift
    return X, y


def test_a_known_curve_is_foretold(nearest_mean):
    n, p, shift = 160, 200, 2.0
    found = [
        learning_curve(nearest_mean, *planted(seed, n, p, shift), random_state=seed)
        for seed in range(10)
    ]
    for place, size in ((0, 48), (-1, 128)):
        truth = true_accuracy(size, p, shift)
        assert found[0].sizes[place] == size
        held = [f.accuracy[place].low <= truth <= f.accuracy[place].high for f in found]
        assert sum(held) >= 9
    ahead = [f.forecast[-1] for f in found if f.forecast]
    assert len(ahead) >= 6 and {f.n_samples for f in ahead} == {320}
    truth = true_accuracy(320, p, shift)
    assert truth > true_accuracy(128, p, shift) + 0.04  # there is something to foretell
    assert sum(f.accuracy.low <= truth <= f.accuracy.high for f in ahead) >= len(ahead) - 1
    assert abs(np.mean([f.accuracy.value for f in ahead]) - truth) < 0.04
    one = next(f for f in found if f.forecast)
    end = one.forecast[-1].accuracy
    assert one.law is not None and one.law(320) == pytest.approx(end.value, abs=1e-9)
    assert end.low <= one.accuracy[-1].low  # more samples may bring nothing
    assert one.sentence().startswith(
        f"Twice the samples (320) would reach a balanced accuracy of about {end.value:.2f} (95%"
    )
    assert one.without_forecast("chance").to_dict()["forecast"] == []


def test_noise_and_a_curve_that_has_ended_foretell_nothing(nearest_mean):
    for seed in range(10):
        found = learning_curve(nearest_mean, *planted(seed, 60, 100, 0.0), random_state=seed)
        assert found.reason is not None and found.law is None and not found.forecast
        assert found.sentence().startswith("These samples do not tell")
    perfect = learning_curve(nearest_mean, *planted(0, 60, 5, 12.0))
    assert (perfect.scores == 1).all() and perfect.reason == "flat"
    assert perfect.accuracy[-1].low < 1  # sixty samples prove no perfection


# ------------------------------------------------------------------------ panels, logs, jobs


@pytest.fixture
def selecting():
    return make_pipeline(SelectKBest(k=3), GaussianNB())


def test_panels_become_stable(planted_small, selecting):
    found = learning_curve(selecting, *planted_small)
    assert found.panel_sizes == (3.0,) * 5
    assert -0.1 < found.stability[0] < found.stability[-1] <= 1
    json.dumps(found.to_dict(), allow_nan=False)
    assert f"{found.sizes[0]} samples: {found.accuracy[0].value:.2f}" in repr(found)
    assert found._repr_html_().startswith("<table>")


def test_an_interrupted_curve_resumes_to_the_same(planted_small, selecting, tmp_path):
    log, seen = tmp_path / "curve.jsonl", []

    def stop(stage, done, total):
        seen.append((stage, done, total))
        if done == 7:
            raise KeyboardInterrupt

    options = {"n_repeats": 3, "random_state": 4}
    with pytest.raises(KeyboardInterrupt):
        learning_curve(selecting, *planted_small, log=log, progress=stop, **options)
    assert seen == [("learning curve", i, 15) for i in range(8)]
    seen.clear()
    with parallel_config(backend="threading"):
        resumed = learning_curve(
            selecting, *planted_small, log=log, resume=True, n_jobs=2,
            progress=lambda *said: seen.append(said), **options,
        )  # fmt: skip
    assert seen[0] == ("learning curve", 7, 15) and seen[-1] == ("learning curve", 15, 15)
    whole = learning_curve(selecting, *planted_small, **options)
    assert resumed.to_dict() == whole.to_dict()
    more = learning_curve(selecting, *planted_small, log=log, resume=True, n_repeats=4,
                          random_state=4)  # fmt: skip
    np.testing.assert_array_equal(more.scores[:3], whole.scores)
    with pytest.raises(ValueError, match="other work"):
        learning_curve(selecting, *planted_small, log=log, resume=True)


def test_groups_reach_parts_and_procedure(planted_small, nearest_mean):
    X, y = planted_small
    groups = np.repeat(np.arange(20), 2)
    found = learning_curve(nearest_mean, X, y, groups, n_repeats=3)
    parts = draw_parts(y, groups, n_repeats=3)
    assert found.sizes == tuple(round(np.mean([d[i].size for d in parts])) for i in range(5))
    assert all(size % 2 == 0 for size in found.sizes)
