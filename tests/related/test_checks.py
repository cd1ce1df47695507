"""scikit-learn's own checks, on every estimator of the folder."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp import related

# These two come with checks in files of their own.
ELSEWHERE = {"GSVDSelector", "GeneShaving"}


@parametrize_with_checks(
    [getattr(related, name)() for name in related.__all__ if name not in ELSEWHERE]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
