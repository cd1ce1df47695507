"""Curves and thresholds of the probabilities of two classes, out of fold or in another cohort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import BoolArray, Float64Array
from ..metrics import (
    CalibrationCurve,
    CalibrationLine,
    DecisionCurve,
    Interval,
    ThresholdCounts,
    ThresholdRow,
    at_prevalence,
    balanced_calibration_curve,
    brier_score,
    calibration_line,
    decision_curve,
    threshold_counts,
    threshold_table,
)


@dataclass(frozen=True)
class PositiveProbabilities:
    """Which samples are of the positive class, and how probable that was said to be.

    Samples of both classes are there. Calibration is that at equal class shares; what depends on a
    prevalence is by default for the share of the positive class among the samples.
    """

    y: BoolArray
    p: Float64Array
    prior: float = 0.5  # the share of the positive class that the probabilities are for

    @classmethod
    def known(cls, y: BoolArray, p: Float64Array) -> PositiveProbabilities | None:
        """Return those of the samples that have one; None unless both classes are among them."""
        known = np.isfinite(p)
        if y[known].all() or not y[known].any():
            return None
        return cls(y[known], np.clip(p[known], 0.0, 1.0))

    def share(self, prevalence: float | None = None) -> float:
        """Return a prevalence as it is given, or that of the samples."""
        return float(self.y.mean()) if prevalence is None else prevalence

    def at(self, prevalence: float) -> Float64Array:
        """Return the probabilities moved to a prevalence."""
        return at_prevalence(self.p, prevalence, prior=self.prior)

    def brier(self, prevalence: float, level: float) -> Interval:
        """Return the Brier score at a prevalence."""
        return brier_score(self.y, self.at(prevalence), prevalence=prevalence, level=level)

    def calibration_line(self, level: float = 0.95) -> CalibrationLine:
        """Return calibration intercept and slope."""
        return calibration_line(self.y, self.at(0.5), level=level)

    def calibration_curve(self, n_bins: int) -> CalibrationCurve:
        """Return the calibration curve."""
        return balanced_calibration_curve(self.y, self.at(0.5), n_bins=n_bins)

    def decision_curve(self, prevalence: float | None = None) -> DecisionCurve:
        """Return the decision curve at a prevalence."""
        share = self.share(prevalence)
        return decision_curve(self.y, self.at(share), prevalence=share)

    def thresholds(
        self, prevalence: float | None = None, level: float = 0.95
    ) -> tuple[ThresholdRow, ...]:
        """Return rates, predictive values and net benefit at thresholds, for a prevalence."""
        share = self.share(prevalence)
        # labels change where the model's probabilities are one half
        own = share if self.prior == 0.5 else float(at_prevalence(0.5, share, prior=self.prior))
        return threshold_table(self.y, self.at(share), prevalence=share, own=own, level=level)

    def threshold_counts(self) -> ThresholdCounts:
        """Return true and false positives by probability, for equal class shares."""
        return threshold_counts(self.y, self.at(0.5))
