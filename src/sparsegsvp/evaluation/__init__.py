"""Nested evaluation, permutation test, stability selection and comparison of methods."""

# ruff: noqa: F401  (what is not in __all__ is for other rooms)
from .baselines import default_methods, find_method, method_names
from .compare import Comparison, compare
from .external import (
    BatchAudit,
    ExternalValidation,
    FeatureShift,
    UnseenBatches,
    check_shift,
    validate_external,
)
from .nested import nested_evaluate
from .permutation import Verdict, permutation_test
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
    "PanelStability",
    "StabilitySelection",
    "UnseenBatches",
    "Verdict",
    "compare",
    "default_methods",
    "method_names",
    "nested_evaluate",
    "paired_difference",
    "permutation_test",
    "validate_external",
]
