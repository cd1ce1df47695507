"""Nested evaluation, permutation test, stability selection and comparison of methods."""

from .batches import BatchAudit, UnseenBatches
from .compare import Comparison, compare, default_methods, find_method, method_names
from .external import (
    ExternalValidation,
    FeatureShift,
    check_shift,
    validate_external,
    validate_predictions,
)
from .nested import nested_evaluate
from .permutation import Verdict, decide, permutation_test
from .procedure import class_scores, describe, estimator_prior, selected_features
from .result import Adjustment, EvaluationResult, Flag, paired_difference
from .stability import PanelStability, StabilitySelection, within_class_correlations

__all__ = [
    "Adjustment",
    "BatchAudit",
    "Comparison",
    "EvaluationResult",
    "ExternalValidation",
    "FeatureShift",
    "Flag",
    "PanelStability",
    "StabilitySelection",
    "UnseenBatches",
    "Verdict",
    "check_shift",
    "class_scores",
    "compare",
    "decide",
    "default_methods",
    "describe",
    "estimator_prior",
    "find_method",
    "method_names",
    "nested_evaluate",
    "paired_difference",
    "permutation_test",
    "selected_features",
    "validate_external",
    "validate_predictions",
    "within_class_correlations",
]
