"""Tables shared by the tests of the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsegsvp.datasets import load_breast_cancer, make_planted

Table = tuple[np.ndarray, np.ndarray]


def frozen(X: np.ndarray, y: np.ndarray) -> Table:
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture(scope="session")
def breast() -> Table:
    """569 x 30 in units from 1e-3 to 1e3: more rows than features, all covariances at once."""
    return frozen(*load_breast_cancer(return_X_y=True))


@pytest.fixture(scope="session")
def wide() -> Table:
    """70 x 400, uneven classes, weak signal: covariances as they are asked for."""
    X, y = make_planted(70, 400, 6, effect=1.2, weights=(3, 2), random_state=3, return_X_y=True)
    return frozen(X * np.logspace(-2, 2, 400) + np.linspace(-5, 5, 400), y)


@pytest.fixture(scope="session")
def three() -> Table:
    """120 x 300 in three classes."""
    return frozen(
        *make_planted(120, 300, 9, effect=1.8, n_classes=3, random_state=5, return_X_y=True)
    )


@pytest.fixture(params=["breast", "wide", "three"])
def table(request) -> Table:
    return request.getfixturevalue(request.param)


FITTED = (
    "support_", "feature_order_", "quotients_", "feature_importances_", "tau_", "planes_",
    "plane_intercepts_", "scale_", "panel_coef_", "panel_intercept_", "limits_", "class_counts_",
    "panel_means_", "panel_variances_",
)  # fmt: skip


@pytest.fixture(scope="session")
def same_bits():
    """Assert that two fitted models are one, to the bit."""

    def check(a, b) -> None:
        for name in FITTED:
            assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
        assert a.stand_ins_ == b.stand_ins_

    return check


@pytest.fixture(scope="session")
def same_model():
    """Assert that two models have one panel and decide alike on rows X."""

    def check(a, b, X, tol=1e-6) -> None:
        assert_array_equal(a.feature_order_, b.feature_order_)
        assert_allclose(a.quotients_, b.quotients_, rtol=tol)
        assert_allclose(a.distances(X), b.distances(X), rtol=tol, atol=tol)
        assert_allclose(a.decision_function(X), b.decision_function(X), rtol=tol, atol=tol)

    return check
