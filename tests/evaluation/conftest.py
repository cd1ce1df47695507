"""Small tables and procedures shared by the tests of the evaluation."""

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


@pytest.fixture(scope="session")
def planted():
    """40 x 60, features 0 to 2 shifted between two named classes of unequal size."""
    rng = np.random.default_rng(7)
    y = np.repeat(["case", "control"], [16, 24])
    X = rng.normal(size=(40, 60))
    X[y == "case", :3] += 1.8
    return X, y


@pytest.fixture(scope="session")
def noise():
    """60 x 500 with random labels."""
    rng = np.random.default_rng(11)
    return rng.normal(size=(60, 500)), rng.permutation(np.repeat([0, 1], 30))


@pytest.fixture
def procedure():
    """A selector and a classifier in one."""
    return make_pipeline(SelectKBest(k=3), LogisticRegression())
