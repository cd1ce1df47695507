"""Scores of classifiers and of the stability of feature panels, with their intervals."""

from .calibration import Calibration, calibration_curve, calibration_line, move_prior
from .clinical import (
    decision_curve,
    net_benefit,
    predictive_values,
    threshold_table,
)
from .clinical import (
    threshold_counts as threshold_counts,
)
from .intervals import (
    Difference,
    Interval,
    exact_interval,
    holm,
    paired_differences,
    recall_mean_interval,
)
from .intervals import (
    auc_interval as auc_interval,
)
from .intervals import (
    fold_variance as fold_variance,
)
from .intervals import (
    mean_interval as mean_interval,
)
from .intervals import (
    proportion_interval as proportion_interval,
)
from .intervals import (
    rate_interval as rate_interval,
)
from .intervals import (
    sequential_p_value as sequential_p_value,
)
from .roc import delong_interval, delong_variance
from .stability import (
    StabilityIndex,
    average_jaccard,
    nogueira_stability,
)
from .stability import (
    error_bound as error_bound,
)

__all__ = [
    "Calibration",
    "Difference",
    "Interval",
    "StabilityIndex",
    "average_jaccard",
    "calibration_curve",
    "calibration_line",
    "decision_curve",
    "delong_interval",
    "delong_variance",
    "exact_interval",
    "holm",
    "move_prior",
    "net_benefit",
    "nogueira_stability",
    "paired_differences",
    "predictive_values",
    "recall_mean_interval",
    "threshold_table",
]
