"""Nested evaluation, permutation test, stability selection and comparison of methods."""

from ..metrics import ThresholdRow, delong_variance
from ..metrics.batches import BatchFromPanel, ClassFromBatch
from .batches import BatchAudit, UnseenBatches
from .bounds import ErrorControl, error_bound, error_control
from .compare import compare, default_methods
from .comparison import Comparison, ComparisonRow, pareto_front
from .external import ExternalValidation, validate_external, validate_predictions
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
from .learning import Forecast, LearningCurve, PowerLaw, learning_curve
from .nested import nested_evaluate
from .outer import sizes_notice
from .paired import Adjustment, PairedModels, compare_external, paired_difference
from .panels import selected_features
from .permutation import PermutationResult, Verdict, permutation_test, verdict
from .recalibration import recalibrate
from .result import EvaluationResult, FoldResult
from .shift import FeatureShift, check_shift, shift_notice
from .stability import StabilitySelection
from .substitutes import Substitute, find_substitutes

__all__ = [
    "Adjustment",
    "BatchAudit",
    "BatchFromPanel",
    "ClassFromBatch",
    "Comparison",
    "ComparisonRow",
    "ErrorControl",
    "EvaluationResult",
    "ExternalValidation",
    "FeatureShift",
    "Fold",
    "FoldResult",
    "Forecast",
    "LearningCurve",
    "PairedDifference",
    "PairedModels",
    "PermutationResult",
    "PowerLaw",
    "StabilitySelection",
    "Substitute",
    "ThresholdRow",
    "UnseenBatches",
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
    "learning_curve",
    "make_folds",
    "nested_evaluate",
    "paired_difference",
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
