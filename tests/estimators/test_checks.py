"""scikit-learn's own checks, on every estimator of the folder that has no file of its own."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp import GSVPSVM, GSVPSVMCV, Panel


@parametrize_with_checks(
    [GSVPSVM(), GSVPSVM(decision="scaled"), GSVPSVMCV(), Panel([0])],
)
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)
