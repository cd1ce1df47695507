"""Nested evaluation, permutation test, stability selection and comparison of methods."""

from .baselines import default_methods
from .compare import compare
from .comparison import Comparison, ComparisonRow, pareto_front
from .folds import Fold, make_folds, repeated_samples
from .intervals import (
    PairedDifference,
    auc_interval,
    corrected_interval,
    holm,
    paired_differences,
    rate_interval,
)
from .nested import nested_evaluate
from .panels import selected_features
from .permutation import PermutationResult, Verdict, permutation_test, verdict
from .result import EvaluationResult, FoldResult
from .stability import StabilitySelection, Substitute, error_bound, find_substitutes

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
