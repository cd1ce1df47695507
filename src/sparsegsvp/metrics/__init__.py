"""Scores of classifiers and of the stability of feature panels, with their intervals."""

from .clinical import (
    Calibration,
    calibration_line,
    decision_curve,
    move_prior,
    net_benefit,
    predictive_values,
    threshold_table,
)
from .intervals import (
    Difference,
    Interval,
    delong_interval,
    exact_interval,
    holm,
    paired_differences,
    recall_mean_interval,
)
from .stability import average_jaccard, nogueira_stability

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
