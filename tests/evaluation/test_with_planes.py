"""The package's own classifier under its own evaluation."""

import json

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sparsegsvp import GSVPSVM, GSVPSVMCV
from sparsegsvp.evaluation import (
    StabilitySelection,
    compare,
    default_methods,
    nested_evaluate,
    permutation_test,
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_noise_is_at_chance_and_called_so(noise):
    X, y = noise
    found = nested_evaluate(GSVPSVM(n_features=10), X, y, n_repeats=1, n_permutations=19)
    score = found.scores["balanced_accuracy"]
    assert score.low <= 0.5 <= score.high
    assert found.permutation.statistic == "fixed" and found.permutation.p_value > 0.05
    assert found.verdict == "none" and "none" in [notice.code for notice in found.notices]
    assert found.stability.value < 0.5
    assert abs(found.control["selected"].value - found.control["random"].value) < 0.25


def test_planted_signal_with_planes(planted_small):
    X, y = planted_small
    found = nested_evaluate(
        make_pipeline(StandardScaler(), GSVPSVM(n_features=3)), X, y, n_repeats=1, n_permutations=19
    )
    assert found.permutation.p_value == 0.05 and found.signal
    assert found.scores["balanced_accuracy"].value > 0.8
    assert set(found.final_panel) == {0, 1, 2}
    distances = found.out_of_fold()["distances"]
    assert distances.shape == (40, 2) and np.isfinite(distances).all()
    # the nearer plane wins more often than not, also out of fold
    assert np.mean(np.abs(distances).argmin(axis=1) == found.y) > 0.6
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_fixed_statistic_takes_missing_values_and_narrow_tables(planted_small):
    X, y = planted_small
    X = X[:, :5].copy()
    X[::9, 4] = np.nan
    found = permutation_test(X, y, n_permutations=9, n_splits=2)
    assert found.p_value == 0.1 and found.statistic == "fixed"


def test_stability_selection_of_planes(planted_small):
    X, y = planted_small
    model = StabilitySelection(GSVPSVM(n_features=4), n_resamples=12).fit(X, y)
    assert set(model.get_support(indices=True)) >= {0, 1, 2}


def test_tuning_happens_within_the_folds_with_their_groups(planted_small):
    X, y = planted_small
    groups = np.r_[np.arange(16) // 2, 100 + np.arange(24) // 2]
    given = []

    class Watched(GSVPSVMCV):
        def fit(self, X, y, sample_weight=None, **params):
            given.append(params["groups"])
            return super().fit(X, y, sample_weight, **params)

    tuned = Watched(tau=(1.0,), n_deltas=5, cv=GroupKFold(3))
    found = nested_evaluate(tuned, X, y, cv=3, groups=groups, n_repeats=1, n_permutations=0)
    for fold, seen in zip(found.folds, given):
        np.testing.assert_array_equal(seen, groups[fold.train])
    assert len(given) == 4  # three folds, and the final fit
    assert {"brier", "log_loss", "auc"} <= found.scores.keys()
    assert found.calibration is not None


@pytest.mark.filterwarnings("ignore")
def test_every_default_method_gives_its_panel(planted_small):
    X, y = planted_small
    found = compare(None, X, y, sizes=(3,), n_splits=2, n_repeats=1)
    assert found.reference == "GSVPSVM" and set(default_methods()) < set(found.methods)
    assert {row.method: row.error for row in found.rows if row.status != "ok"} == {}
    assert {row.method: row.panel_size for row in found.rows if row.panel_size != 3} == {}
    scores = {row.method: row.score.value for row in found.rows}
    assert scores["GSVPSVM"] > scores["random panel"]


@pytest.mark.filterwarnings("ignore")
def test_no_method_sees_the_test_samples():
    # test rows are marked by a huge column: a selector that saw them would pick it
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 12)
    X = rng.normal(size=(24, 20))
    X[:, 0] += 2 * y
    sums = []

    def record(X):
        sums.append(float(np.abs(X).sum()))
        return X

    method = make_pipeline(FunctionTransformer(record), GSVPSVM(n_features=2))
    compare({"seen": method}, X, y, sizes=(2,), n_splits=2, n_repeats=1)
    whole = float(np.abs(X).sum())
    assert len(sums) == 4 and all(total < 0.8 * whole for total in sums)
