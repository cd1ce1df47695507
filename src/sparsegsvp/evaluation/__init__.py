"""Nested evaluation, permutation test, stability selection and comparison of methods."""

from .audit import BatchAudit, BatchFromPanel, ClassFromBatch, UnseenBatches
from .bounds import ErrorControl, error_bound, error_control
from .catalogue import default_methods
from .compare import compare
from .comparison import Comparison, ComparisonRow, pareto_front
from .folds import Fold, make_folds, repeated_samples
from .intervals import (
    PairedDifference,
    auc_interval,
    corrected_interval,
    delong_variance,
    holm,
    paired_differences,
    rate_interval,
    score_interval,
)
from .learning import LearningCurve, learning_curve
from .nested import nested_evaluate
from .paired import paired_difference
from .panels import selected_features
from .permutation import PermutationResult, Verdict, permutation_test, verdict
from .power_law import Forecast, PowerLaw
from .result import EvaluationResult, FoldResult
from .stability import StabilitySelection
from .substitutes import Substitute, find_substitutes
from .summary import sizes_notice

__all__ = [
    "BatchAudit",
    "BatchFromPanel",
    "ClassFromBatch",
    "Comparison",
    "ComparisonRow",
    "ErrorControl",
    "EvaluationResult",
    "Fold",
    "FoldResult",
    "Forecast",
    "LearningCurve",
    "PairedDifference",
    "PermutationResult",
    "PowerLaw",
    "StabilitySelection",
    "Substitute",
    "UnseenBatches",
    "Verdict",
    "auc_interval",
    "compare",
    "corrected_interval",
    "default_methods",
    "delong_variance",
    "error_bound",
    "error_control",
    "find_substitutes",
    "holm",
    "learning_curve",
    "make_folds",
    "nested_evaluate",
    "paired_difference",
    "paired_differences",
    "pareto_front",
    "permutation_test",
    "rate_interval",
    "repeated_samples",
    "score_interval",
    "selected_features",
    "sizes_notice",
    "verdict",
]
