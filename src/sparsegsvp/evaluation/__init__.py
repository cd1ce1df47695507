"""Honest evaluation: what the numbers of a report mean is decided here."""

from ._checks import repeated_samples
from ._folds import Fold, make_folds
from ._intervals import (
    PairedDifference,
    auc_interval,
    corrected_interval,
    holm,
    paired_differences,
    rate_interval,
)
from ._panels import selected_features
from ._permutation import PermutationResult, permutation_test
from ._stability import StabilitySelection, error_bound
from ._substitutes import Substitute, find_substitutes

__all__ = [
    "Fold",
    "PairedDifference",
    "PermutationResult",
    "StabilitySelection",
    "Substitute",
    "auc_interval",
    "corrected_interval",
    "error_bound",
    "find_substitutes",
    "holm",
    "make_folds",
    "paired_differences",
    "permutation_test",
    "rate_interval",
    "repeated_samples",
    "selected_features",
]
