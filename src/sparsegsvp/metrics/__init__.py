"""Scores of classifiers and of the stability of feature panels, with their intervals."""

# ruff: noqa: F401  (what is not in __all__ is for other rooms)
from .clinical import (
    Calibration,
    calibration_line,
    decision_curve,
    move_prior,
    net_benefit,
    predictive_values,
    threshold_counts,
    threshold_table,
)
from .intervals import (
    Difference,
    Interval,
    area_and_variance,
    auc_interval,
    delong_interval,
    exact_interval,
    fold_variance,
    holm,
    mean_interval,
    mean_variance,
    paired_differences,
    placements,
    proportion_interval,
    rate_trials,
    recall_mean_interval,
    sequential_p_value,
)
from .stability import average_jaccard, error_bound, nogueira_stability

__all__ = [
    "Calibration",
    "Difference",
    "Interval",
    "average_jaccard",
    "calibration_line",
    "decision_curve",
    "delong_interval",
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
