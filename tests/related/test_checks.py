"""What every related method promises: scikit-learn's checks, labels, constant columns, memory."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp import related
from sparsegsvp.related import GEPSVM, HOGSVDSelector

OF_THE_PAPER = {
    *("GEPSVM", "IGEPSVM", "IRQM", "NPSVM", "GSVDSelector", "GeneShaving", "HOGSVDSelector"),
    *("L1ReGEC", "ReGEC", "SparsePSVM", "TruncatedRayleighFlow"),
}
each = pytest.mark.parametrize("name", related.__all__)


@parametrize_with_checks([getattr(related, name)() for name in related.__all__])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_methods_of_the_paper_are_there_and_documented():
    assert set(related.__all__) >= OF_THE_PAPER
    for name in related.__all__:
        text = getattr(related, name).__doc__
        assert "%(" not in text
        for entry in ("standardize : bool", "support_ : ndarray", "classes_ : ndarray"):
            assert f"\n{entry}" in text, (name, entry)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 0, 0, 0, 0], "one class only"),
        ([0, 1, 1, 1, 1, 1], "has one sample .*Add samples"),
        ([0, 0, 1, 1, 2, 2], "3 classes.*OneVsRestClassifier"),
        ([0, 0, 0.5, 0.5, 1.5, 1.5], "Unknown label type"),
        ([0, 0, np.nan, 1, 1, 1], "contains NaN"),
    ],
)
def test_labels_that_are_not_two_classes_are_refused_with_a_remedy(labels, message):
    X = np.arange(12.0).reshape(6, 2) ** 2
    with pytest.raises(ValueError, match=message):
        GEPSVM().fit(X, labels)
    if "OneVsRest" not in message:
        with pytest.raises(ValueError, match=message):
            HOGSVDSelector().fit(X, labels)


def test_tables_that_cannot_be_used_are_refused_with_a_remedy():
    y = [0, 0, 1, 1]
    with pytest.raises(ValueError, match="every feature of X is constant"):
        GEPSVM().fit(np.full((4, 3), 0.1), y)
    with pytest.raises(ValueError, match="squares overflow: rescale"):
        GEPSVM().fit([[1.0], [2e80], [4.0], [3.0]], y)
    with pytest.raises(TypeError, match="dense data is required"):
        GEPSVM().fit(sparse.eye_array(4, format="csr"), y)


@each
def test_constant_columns_are_left_out_and_too_large_a_panel_is_all_that_vary(planted, name):
    X, y = planted(m=7)
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    frame.insert(3, "flat", 0.1)
    frame.insert(0, "zero", 0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = getattr(related, name)(n_features=12).fit(frame, y)
    assert [(str(w.message), w.category, w.filename) for w in caught] == [
        (text, UserWarning, __file__)
        for text in (
            "2 constant feature(s) are left out: zero, flat",
            "n_features=12 is more than the 7 features that vary: all of them are selected",
        )
    ]
    assert model.get_feature_names_out().tolist() == list("abcdefg")
    assert sorted(model.feature_order_[-2:]) == [0, 4]


N, M = 200, 15_000
# Rounds of an alternation take the same memory; few are enough to see it.
QUICK = {"SparsePSVM": {"l1": 0.9, "tol": 1e-2}, "IRQM": {"rho": 0.9, "tol": 1e-2}}


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], N // 2)
    X = rng.normal(size=(N, M))
    X[:, :20] += 1.5 * y[:, None]
    return X, y


@each
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
