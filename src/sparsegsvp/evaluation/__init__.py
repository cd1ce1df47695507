"""Nested evaluation, permutation test, stability selection and comparison of methods."""

from .batches import BatchAudit, UnseenBatches
from .compare import Comparison, compare, default_methods, method_names
from .compare import find_method as find_method
from .external import (
    ExternalValidation,
    FeatureShift,
    validate_external,
    validate_predictions,
)
from .external import (
    check_shift as check_shift,
)
from .nested import nested_evaluate
from .permutation import Verdict, permutation_test
from .permutation import decide as decide
from .procedure import (
    class_scores as class_scores,
)
from .procedure import (
    describe as describe,
)
from .procedure import (
    estimator_prior as estimator_prior,
)
from .procedure import (
    selected_features as selected_features,
)
from .result import Adjustment, EvaluationResult, paired_difference
from .result import Flag as Flag
from .stability import (
    PanelStability,
    StabilitySelection,
)
from .stability import (
    within_class_correlations as within_class_correlations,
)

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
    "validate_predictions",
]
