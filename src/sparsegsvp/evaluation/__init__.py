"""Honest evaluation: what the numbers of a report mean is decided here."""

from ._baselines import default_methods
from ._checks import repeated_samples
from ._compare import compare
from ._comparison import Comparison, ComparisonRow, pareto_front
from ._folds import Fold, make_folds
from ._intervals import (
    PairedDifference,
    auc_interval,
    corrected_interval,
    holm,
    paired_differences,
    rate_interval,
)
from ._nested import nested_evaluate
from ._panels import selected_features
from ._permutation import PermutationResult, Verdict, permutation_test, verdict
from ._result import EvaluationResult, FoldResult
from ._stability import StabilitySelection, error_bound
from ._substitutes import Substitute, find_substitutes

__all__ = [
    "Comparison",
    "ComparisonRow",
    "EvaluationResult",
    "Fold",
    "FoldResult",
    "PairedDifference",
    "PermutationResult",
    "StabilitySelection",
    "Substitute",
    "Verdict",
    "auc_interval",
    "compare",
    "corrected_interval",
    "default_methods",
    "error_bound",
    "find_substitutes",
    "holm",
    "make_folds",
    "nested_evaluate",
    "paired_differences",
    "pareto_front",
    "permutation_test",
    "rate_interval",
    "repeated_samples",
    "selected_features",
    "verdict",
]
