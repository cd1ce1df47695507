"""The paper's trends in q and eps on the ovarian data, at a short cap on iterations.

The published study runs to 10,000 iterations, minutes for each setting. These tests stop at
500, where the trends can be seen already: in q at the smallest eps, in eps at q = 1. At
q = 0.1 the features do not yet fall with eps: small weights are pulled to zero at the rate
eps^(q - 2), so a larger eps is slower there.
"""

from __future__ import annotations

import pytest

from sparsegsvp.datasets import Dataset, data_folder, load_ovarian
from sparsegsvp.reproduce.protocol import OVARIAN
from sparsegsvp.reproduce.runs import sweep_points

pytestmark = pytest.mark.skipif(
    data_folder() is None, reason="SPARSEGSVP_DATA does not name a data folder"
)
SMALL, _, LARGE = OVARIAN.sweep.eps


@pytest.fixture(scope="module")
def features() -> dict[tuple[float, float], int]:
    """Number of features selected with the published settings, by (q, eps)."""
    data: Dataset = load_ovarian()  # the split of the file's order, on which the bounds were set
    settings = {"delta": OVARIAN.sweep.delta, "step_size": OVARIAN.sweep.step_size}
    found = {
        **sweep_points(data, "ovarian", [0.1, 1.0], SMALL, **settings, max_iter=500),
        **sweep_points(data, "ovarian", [1.0], LARGE, **settings, max_iter=500),
    }
    return {(point["q"], point["eps"]): len(point["panel"]) for point in found.values()}


def test_smaller_q_fewer_features(features) -> None:
    assert features[0.1, SMALL] < 0.5 * features[1.0, SMALL]


def test_larger_eps_fewer_features(features) -> None:
    assert features[1.0, LARGE] < features[1.0, SMALL]
