"""Nested evaluation, permutation test, stability selection and comparison of methods."""

from .batches import BatchAudit, UnseenBatches
from .nested import nested_evaluate
from .permutation import Verdict, decide, permutation_test
from .procedure import class_scores, describe, estimator_prior, selected_features
from .result import Adjustment, EvaluationResult, Flag, paired_difference
from .stability import PanelStability, StabilitySelection, within_class_correlations

__all__ = [
    "Adjustment",
    "BatchAudit",
    "EvaluationResult",
    "Flag",
    "PanelStability",
    "StabilitySelection",
    "UnseenBatches",
    "Verdict",
    "class_scores",
    "decide",
    "describe",
    "estimator_prior",
    "nested_evaluate",
    "paired_difference",
    "permutation_test",
    "selected_features",
    "within_class_correlations",
]
