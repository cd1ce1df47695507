"""Tables shared by the tests of the estimators."""

from __future__ import annotations

import numpy as np
import pytest

from sparsegsvp.datasets import load_breast_cancer, make_planted
from sparsegsvp.estimators import folds as folds_module


@pytest.fixture(scope="session")
def breast() -> tuple[np.ndarray, np.ndarray]:
    """569 x 30 in units from 1e-3 to 1e3: solved from moments."""
    X, y = load_breast_cancer(return_X_y=True)
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture(scope="session")
def wide() -> tuple[np.ndarray, np.ndarray]:
    """70 x 400, uneven classes, weak signal: solved on working sets."""
    X, y = make_planted(70, 400, 6, effect=1.2, weights=(3, 2), random_state=3, return_X_y=True)
    X = X * np.logspace(-2, 2, 400) + np.linspace(-5, 5, 400)
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture(scope="session")
def three() -> tuple[np.ndarray, np.ndarray]:
    """120 x 300 in three classes."""
    X, y = make_planted(120, 300, 9, effect=1.8, n_classes=3, random_state=5, return_X_y=True)
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture
def fold_panels(monkeypatch):
    """The panels of all points of all folds, as they are solved."""
    seen = []
    solve = folds_module.solve_fold

    def watched(*args):
        planes = solve(*args)
        seen.extend(p.panel for setting in planes for p in setting if p is not None)
        return planes

    monkeypatch.setattr(folds_module, "solve_fold", watched)
    return seen
