"""Calibration: predicted probabilities against observed frequencies."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from ._scores import class_weights


@dataclass(frozen=True)
class CalibrationCurve:
    """Observed against predicted frequency of the positive class, classes weighted equally.

    Attributes
    ----------
    predicted : ndarray of shape (n_bins,)
        Weighted mean predicted probability of each non-empty bin.
    observed : ndarray of shape (n_bins,)
        Weighted share of the positive class in each bin.
    weight : ndarray of shape (n_bins,)
        Share of the total weight in each bin; sums to 1.
    count : ndarray of shape (n_bins,)
        Number of samples in each bin.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    weight: NDArray[np.float64]
    count: NDArray[np.int64]

    def to_dict(self) -> dict[str, list[float]]:
        """Return the fields as lists."""
        return {name: np.asarray(value).tolist() for name, value in asdict(self).items()}


def balanced_calibration_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: str = "quantile",
    sample_weight: ArrayLike | None = None,
) -> CalibrationCurve:
    """Calibration curve of two classes, each class carrying half of the weight.

    Probabilities for equal priors are calibrated when, in a population with as many
    positives as negatives, the share of positives among samples given probability p is p.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, two classes; the last in sorted order is positive.
    y_proba : array-like of shape (n_samples,)
        Probability of the positive class.
    n_bins : int, default=10
        Number of bins; empty ones, and those that ties make equal, are left out.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with equal counts, or of equal width.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples within their class.

    Returns
    -------
    CalibrationCurve

    Examples
    --------
    >>> from sparsegsvp.metrics import balanced_calibration_curve
    >>> curve = balanced_calibration_curve([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.75], n_bins=2)
    >>> curve.observed.tolist(), curve.weight.tolist()
    ([0.0, 1.0], [0.5, 0.5])
    """
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins} must be at least 1.")
    p = column_or_1d(y_proba).astype(np.float64)
    codes, _, w = class_weights(y_true, p, None, sample_weight)
    grid = np.linspace(0, 1, n_bins + 1)[1:-1]
    if strategy == "quantile":
        edges = np.unique(np.quantile(p, grid))
    elif strategy == "uniform":
        edges = grid
    else:
        raise ValueError(f"strategy={strategy!r} must be 'quantile' or 'uniform'.")
    bins = np.searchsorted(edges, p)
    size = edges.size + 1
    weight: NDArray[np.float64] = np.bincount(bins, weights=w, minlength=size).astype(np.float64)
    keep = weight > 0
    predicted = np.bincount(bins, weights=w * p, minlength=size)[keep] / weight[keep]
    observed = np.bincount(bins, weights=w * codes, minlength=size)[keep] / weight[keep]
    count = np.bincount(bins, minlength=size)[keep].astype(np.int64)
    return CalibrationCurve(predicted, observed, weight[keep], count)
