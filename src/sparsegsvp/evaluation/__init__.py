"""Nested evaluation, permutation test, stability selection and comparison of methods."""

from ..metrics import delong_variance
from .baselines import default_methods
from .bounds import ErrorControl, error_bound, error_control
from .compare import compare
from .comparison import Comparison, ComparisonRow, pareto_front
from .external import (
    ExternalValidation,
    ThresholdRow,
    validate_external,
    validate_predictions,
)
from .folds import Fold, make_folds, repeated_samples
from .intervals import (
    PairedDifference,
    auc_interval,
    corrected_interval,
    holm,
    paired_differences,
    rate_interval,
    score_interval,
)
from .nested import nested_evaluate
from .paired import PairedModels, compare_external
from .panels import selected_features
from .permutation import PermutationResult, Verdict, permutation_test, verdict
from .recalibration import recalibrate
from .result import EvaluationResult, FoldResult
from .shift import FeatureShift, check_shift, shift_notice
from .stability import StabilitySelection
from .substitutes import Substitute, find_substitutes
from .summary import sizes_notice

__all__ = [
    "Comparison",
    "ComparisonRow",
    "ErrorControl",
    "EvaluationResult",
    "ExternalValidation",
    "FeatureShift",
    "Fold",
    "FoldResult",
    "PairedDifference",
    "PairedModels",
    "PermutationResult",
    "StabilitySelection",
    "Substitute",
    "ThresholdRow",
    "Verdict",
    "auc_interval",
    "check_shift",
    "compare",
    "compare_external",
    "corrected_interval",
    "default_methods",
    "delong_variance",
    "error_bound",
    "error_control",
    "find_substitutes",
    "holm",
    "make_folds",
    "nested_evaluate",
    "paired_differences",
    "pareto_front",
    "permutation_test",
    "rate_interval",
    "recalibrate",
    "repeated_samples",
    "score_interval",
    "selected_features",
    "shift_notice",
    "sizes_notice",
    "validate_external",
    "validate_predictions",
    "verdict",
]
