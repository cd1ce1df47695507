"""A table with three informative features of forty, and one run on it that many tests look at."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sparsegsvp import select_panel
from sparsegsvp.datasets import make_planted


def planted(n=60, m=40, informative=3, effect=2.0, seed=1):
    """A frame of features g0, g1, ... and a column of classes; the names of the informative."""
    data = make_planted(n, m, informative, effect=effect, random_state=seed)
    frame = pd.DataFrame(data.X, columns=[f"g{j}" for j in range(m)])
    frame["class"] = np.array(["ill", "well"])[data.y]
    return frame, [f"g{j}" for j in data.support]


@pytest.fixture(scope="session")
def frame():
    return planted()[0]


@pytest.fixture(scope="session")
def informative():
    return planted()[1]


@pytest.fixture(scope="session")
def selection(frame):
    """A run that leaves nothing out."""
    return select_panel(frame, target="class", repeats=2, permutations=19)


@pytest.fixture
def kit():
    """What tests share without importing each other."""
    return SimpleNamespace(planted=planted)
