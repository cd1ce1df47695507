"""A table with three informative features of forty, for tests that need no other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsegsvp.datasets import make_planted
from sparsegsvp.io import make_table


@pytest.fixture(scope="session")
def frame():
    X, y = make_planted(50, 40, 3, effect=2.0, random_state=1, return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(40)])
    frame["class"] = np.array(["ill", "well"])[y]
    return frame


@pytest.fixture(scope="session")
def table(frame):
    return make_table(frame, target="class")
