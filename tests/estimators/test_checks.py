"""scikit-learn's own checks at the defaults, without expected failures, and how deep a fit goes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import sparsegsvp
from sparsegsvp import GSVPSVM, GSVPSVMCV, Panel
from sparsegsvp.estimators.base import DECISIONS


# the tables of the checks have fewer features than the default panel
@pytest.mark.filterwarnings("ignore:n_features=", "ignore:moments hold no rows")
@parametrize_with_checks(
    [
        *(GSVPSVM(decision=decision) for decision in DECISIONS),
        GSVPSVM(n_features=2, clip=None),
        GSVPSVMCV(),
        Panel([0]),
    ]
)
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("model", [GSVPSVM(n_features=5), GSVPSVMCV()], ids=["fit", "search"])
def test_a_fit_reaches_its_loop_in_few_calls(model, wide) -> None:
    """How many of the package's functions lie between `fit` and the forward selection."""
    home = str(Path(sparsegsvp.__file__).parent)
    stack: list[str] = []
    depths = []

    def watch(frame, event, arg) -> None:
        if frame.f_code.co_filename.startswith(home):
            if event == "call":
                stack.append(frame.f_code.co_name)
                if stack[-1] == "forward":
                    depths.append(len(stack))
            elif event == "return":
                stack.pop()

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        model.fit(*wide)
    finally:
        sys.setprofile(before)
    assert depths and max(depths) <= 6
