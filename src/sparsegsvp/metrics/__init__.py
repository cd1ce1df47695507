"""Scores of classifiers and of the stability of feature panels.

Every class counts the same in these scores, whatever its share of the samples: the
probabilities of this package are for equal priors, and a score that follows the
prevalence of one study does not carry over to the next.
"""

from .batches import BatchTies
from .calibration import (
    CalibrationCurve,
    CalibrationLine,
    at_prevalence,
    balanced_calibration_curve,
    brier_score,
    calibration_line,
)
from .clinical import (
    DecisionCurve,
    ThresholdCounts,
    ThresholdRow,
    decision_curve,
    net_benefit,
    predictive_values,
    threshold_counts,
    threshold_table,
)
from .ranking import (
    PairedAreas,
    PairedLabels,
    delong_interval,
    delong_test,
    delong_variance,
    mcnemar_test,
)
from .scores import (
    Interval,
    balanced_accuracy_interval,
    balanced_brier_score,
    balanced_log_loss,
    clopper_pearson,
    proportion_interval,
    specificity_score,
)
from .stability import StabilityIndex, average_jaccard, nogueira_stability

__all__ = [
    "BatchTies",
    "CalibrationCurve",
    "CalibrationLine",
    "DecisionCurve",
    "Interval",
    "PairedAreas",
    "PairedLabels",
    "StabilityIndex",
    "ThresholdCounts",
    "ThresholdRow",
    "at_prevalence",
    "average_jaccard",
    "balanced_accuracy_interval",
    "balanced_brier_score",
    "balanced_calibration_curve",
    "balanced_log_loss",
    "brier_score",
    "calibration_line",
    "clopper_pearson",
    "decision_curve",
    "delong_interval",
    "delong_test",
    "delong_variance",
    "mcnemar_test",
    "net_benefit",
    "nogueira_stability",
    "predictive_values",
    "proportion_interval",
    "specificity_score",
    "threshold_counts",
    "threshold_table",
]
