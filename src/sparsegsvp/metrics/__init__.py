"""Scores of classifiers and of the stability of feature panels.

Every class counts the same in these scores, whatever its share of the samples: the
probabilities of this package are for equal priors, and a score that follows the
prevalence of one study does not carry over to the next.
"""

from .scores import (
    CalibrationCurve,
    Interval,
    balanced_accuracy_interval,
    balanced_brier_score,
    balanced_calibration_curve,
    balanced_log_loss,
    clopper_pearson,
    specificity_score,
)
from .stability import StabilityIndex, average_jaccard, nogueira_stability

__all__ = [
    "CalibrationCurve",
    "Interval",
    "StabilityIndex",
    "average_jaccard",
    "balanced_accuracy_interval",
    "balanced_brier_score",
    "balanced_calibration_curve",
    "balanced_log_loss",
    "clopper_pearson",
    "nogueira_stability",
    "specificity_score",
]
