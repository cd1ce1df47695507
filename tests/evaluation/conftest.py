"""Small tables shared by the tests of the evaluation."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@pytest.fixture
def planted_small():
    """40 x 60, features 0..2 shifted between two named classes of unequal size."""
    rng = np.random.default_rng(7)
    y = np.repeat(["case", "control"], [16, 24])
    X = rng.normal(size=(40, 60))
    X[y == "case", :3] += 1.8
    return X, y


@pytest.fixture(scope="session")
def noise():
    """60 x 2000 with random labels."""
    rng = np.random.default_rng(11)
    return rng.normal(size=(60, 2000)), rng.permutation(np.repeat([0, 1], 30))


@pytest.fixture
def procedure():
    """Return a selector and a classifier in one."""
    return make_pipeline(StandardScaler(), SelectKBest(k=4), LogisticRegression())


class NearestMean(ClassifierMixin, BaseEstimator):
    """A classifier that costs next to nothing."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        distances = ((X[:, None] - self.means_) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


@pytest.fixture
def nearest_mean():
    """Return a classifier that costs next to nothing."""
    return NearestMean()
