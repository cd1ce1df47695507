"""The median imputer: scikit-learn's results, at less cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp import GSVPSVM, load_model, save_model
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import MedianImputer


@parametrize_with_checks([MedianImputer()])
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


def gaps(n: int, m: int, dtype: type, share: float) -> np.ndarray:
    """Numbers of every size, some missing; one column constant, one empty, one with a value."""
    rng = np.random.default_rng(n * m)
    X = (rng.normal(size=(n, m)) * np.logspace(-3, 3, m)).astype(dtype)
    X[rng.random((n, m)) < share] = np.nan
    X[:, 1] = 7.0
    if share:
        X[:, 0] = np.nan
        X[1:, 2] = np.nan
    return X


def reference() -> SimpleImputer:
    return SimpleImputer(strategy="median", keep_empty_features=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 31, 32])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("order", ["C", "F"])
def test_results_are_those_of_scikit_learn(n, dtype, share, order) -> None:
    X = np.asarray(gaps(n, 40, dtype, share), order=order)
    before = X.copy()
    ours, theirs = MedianImputer().fit(X), reference().fit(X)
    assert_array_equal(ours.statistics_, theirs.statistics_)
    fresh = gaps(50, 40, dtype, 0.3)
    for rows in (X, fresh):
        found = ours.transform(rows)
        assert found.dtype == dtype
        assert_array_equal(found, theirs.transform(rows))
    assert_array_equal(X, before)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix])
@pytest.mark.parametrize("density", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("n", [9, 10])
def test_zeros_of_sparse_data_are_values(container, density, n) -> None:
    rng = np.random.default_rng(n)
    dense = rng.normal(size=(n, 60)) - np.linspace(-2, 2, 60)
    dense[rng.random(dense.shape) >= density] = 0.0
    dense[rng.random(dense.shape) < 0.2] = np.nan
    dense[:, 0] = np.nan
    X = container(dense)
    X.data[0] = 0.0  # stored, and no less a zero
    ours, theirs = MedianImputer().fit(X), reference().fit(X)
    assert_array_equal(ours.statistics_, theirs.statistics_)
    assert_array_equal(ours.statistics_, MedianImputer().fit(X.toarray()).statistics_)
    found = ours.transform(X)
    assert found.format == X.format
    assert_array_equal(found.toarray(), theirs.transform(X).toarray())


def test_rows_without_gaps_are_not_copied() -> None:
    X = gaps(20, 30, np.float32, 0.0)
    imputer = MedianImputer().fit(X)
    assert imputer.transform(X) is X
    frame = pd.DataFrame(X)  # itself a copy since pandas 3
    assert np.shares_memory(imputer.transform(frame), frame.to_numpy())
    # a sum that overflows is no gap
    huge = np.full((2, 30), 1e308)
    assert imputer.transform(huge) is huge


def test_names_pass_through_and_gaps_reach_no_model(tmp_path) -> None:
    X, y = make_planted(40, 12, 3, return_X_y=True)
    X[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(12)])
    model = make_pipeline(MedianImputer(), GSVPSVM(n_features=3)).fit(frame, y)
    assert_array_equal(model[0].get_feature_names_out(), frame.columns)
    filled = MedianImputer().set_output(transform="pandas").fit_transform(frame)
    assert list(filled.columns) == list(frame.columns)
    pytest.importorskip("skops")
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
