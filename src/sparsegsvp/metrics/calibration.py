r"""Calibration of probabilities, and probabilities for another share of a class.

Probabilities of this package are for equal class shares. Where a model is used, the positive class
has another share, its prevalence; :func:`at_prevalence` moves probabilities there. Curve, line and
score of a calibration can be had for any share, whatever that of the samples is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.utils import check_consistent_length, column_or_1d

from .._typing import BoolArray, Float64Array, Record
from .._validate import check_choice, check_integer, check_real
from .scores import Interval, _class_weights, normal_interval

# Probabilities of exactly 0 or 1 have no log odds; these stand for them.
_CLOSEST = 1e-10


def check_probabilities(
    y_true: ArrayLike, y_proba: ArrayLike, prevalence: float | None = None
) -> tuple[BoolArray, Float64Array, float]:
    """Return which samples are positive, their probabilities, and the share of positives to use.

    Both classes must be there; the share is by default that of the samples.
    """
    y = np.asarray(column_or_1d(y_true)).astype(bool)
    p = np.asarray(column_or_1d(y_proba), dtype=np.float64)
    check_consistent_length(y, p)
    if y.all() or not y.any():
        raise ValueError("y_true holds one class; both are needed.")
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("y_proba must hold probabilities between 0 and 1.")
    share = float(y.mean()) if prevalence is None else prevalence
    check_real("prevalence", share, above=0, below=1)
    return y, p, share


def log_odds(y_proba: ArrayLike) -> Float64Array:
    """Return log(p / (1 - p)), finite also where a probability is 0 or 1."""
    return logit(np.clip(np.asarray(y_proba, dtype=np.float64), _CLOSEST, 1 - _CLOSEST))


def at_prevalence(y_proba: ArrayLike, prevalence: float, *, prior: float = 0.5) -> Float64Array:
    """Move probabilities of the positive class to another share of it.

    The odds are multiplied by the ratio of the odds of both shares.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive class.
    prevalence : float
        The share that they are to be for.
    prior : float, default=0.5
        The share that they are for.

    Examples
    --------
    >>> from sparsegsvp.metrics import at_prevalence
    >>> at_prevalence([0.5, 0.9], 0.1).round(2).tolist()
    [0.1, 0.5]
    """
    check_real("prevalence", prevalence, above=0, below=1)
    check_real("prior", prior, above=0, below=1)
    p = np.asarray(y_proba, dtype=np.float64)
    positive = p * prevalence / prior
    return positive / (positive + (1 - p) * (1 - prevalence) / (1 - prior))


# ----------------------------------------------------------------------- curve and line


@dataclass(frozen=True)
class CalibrationCurve(Record):
    """Observed against predicted frequency of the positive class, classes weighted equally.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Weighted mean predicted probability of each non-empty bin, and weighted share of the
        positive class in it.
    weight, count : ndarray of shape (n_bins,)
        Share of the total weight (sums to 1) and number of samples in each bin.
    """

    predicted: Float64Array
    observed: Float64Array
    weight: Float64Array
    count: NDArray[np.int64]


def balanced_calibration_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: str = "quantile",
    sample_weight: ArrayLike | None = None,
) -> CalibrationCurve:
    """Return the calibration curve of two classes, each carrying half of the weight.

    Probabilities for equal priors are calibrated when, in a population with as many
    positives as negatives, the share of positives among samples given probability p is p.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, two classes; the last in sorted order is positive.
    y_proba, sample_weight
        As in :func:`balanced_log_loss`.
    n_bins : int, default=10
        Number of bins; empty ones, and those that ties make equal, are left out.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with equal counts, or of equal width.

    Examples
    --------
    >>> from sparsegsvp.metrics import balanced_calibration_curve
    >>> curve = balanced_calibration_curve([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.75], n_bins=2)
    >>> curve.observed.tolist(), curve.weight.tolist()
    ([0.0, 1.0], [0.5, 0.5])
    """
    check_integer("n_bins", n_bins, least=1)
    check_choice("strategy", strategy, ("quantile", "uniform"))
    p = column_or_1d(y_proba).astype(np.float64)
    codes, _, w = _class_weights(y_true, p, None, sample_weight)
    grid = np.linspace(0, 1, n_bins + 1)[1:-1]
    edges = np.unique(np.quantile(p, grid)) if strategy == "quantile" else grid
    bins = np.searchsorted(edges, p)
    count = np.bincount(bins, minlength=edges.size + 1)
    totals: Float64Array = np.array(
        [np.bincount(bins, values, minlength=edges.size + 1) for values in (w, w * p, w * codes)]
    )
    keep = totals[0] > 0
    weight, predicted, observed = totals[:, keep]
    return CalibrationCurve(predicted / weight, observed / weight, weight, count[keep])


@dataclass(frozen=True)
class CalibrationLine(Record):
    """A logistic regression of the class on the log odds that were predicted.

    Attributes
    ----------
    intercept : Interval
        With the slope held at 1: 0 where probabilities are right on the whole, above 0 where
        they are too low. Its exponential multiplies the odds.
    slope : Interval or None
        1 where probabilities are spread as they should be, below 1 where they are too extreme.
        None where no slope fits best: the log odds separate the classes, or are all equal.
    slope_intercept : float or None
        The intercept that belongs to the slope.
    """

    intercept: Interval
    slope: Interval | None
    slope_intercept: float | None


def calibration_line(
    y_true: ArrayLike, y_proba: ArrayLike, *, prior: float = 0.5, level: float = 0.95
) -> CalibrationLine:
    r"""Return intercept and slope of the calibration of probabilities.

    Maximum likelihood of :math:`\operatorname{logit} P(y = 1) = a + b \operatorname{logit} p + o`,
    where :math:`o = \log(n_1 / n_0) - \operatorname{logit}(\mathrm{prior})` takes up that the
    samples hold another share of positives than the probabilities are for. The slope is the usual
    one whatever the shares are. The variance of an intercept is lessened by
    :math:`1 / n_1 + 1 / n_0`, since it does not depend on how many samples of each class there
    happen to be (Prentice and Pyke, 1979).

    Parameters
    ----------
    y_true, y_proba
        As in :func:`brier_score`.
    prior : float, default=0.5
        The share of the positive class that the probabilities are for.
    level : float, default=0.95
        Nominal coverage of the intervals.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression, Biometrika 45, 562-565.

    Prentice, Pyke (1979), Logistic disease incidence models and case-control studies, Biometrika
    66(3), 403-411.

    Examples
    --------
    >>> from sparsegsvp.metrics import calibration_line
    >>> y = [0] * 10 + [1] * 10
    >>> line = calibration_line(y, ([0.01] * 8 + [0.99] * 2) + ([0.01] * 2 + [0.99] * 8))
    >>> round(line.intercept.value, 6), round(line.slope.value, 2)
    (0.0, 0.3)
    """
    check_real("level", level, above=0, below=1)
    check_real("prior", prior, above=0, below=1)
    y, p, share = check_probabilities(y_true, y_proba)
    x, offset = log_odds(p), float(logit(share) - logit(prior))
    theta, covariance = _logistic(np.ones((y.size, 1)), y, offset + x)
    counted = 1 / int(y.sum()) + 1 / int((~y).sum())
    intercept = normal_interval(theta[0], max(covariance[0, 0] - counted, 0.0), level=level)
    if x[y].min() >= x[~y].max() or x[y].max() <= x[~y].min():  # also where all are equal
        return CalibrationLine(intercept, None, None)
    theta, covariance = _logistic(np.column_stack([np.ones(y.size), x]), y, offset)
    slope = normal_interval(theta[1], covariance[1, 1], level=level)
    return CalibrationLine(intercept, slope, float(theta[0]))


def _logistic(
    design: Float64Array, y: BoolArray, offset: Float64Array | float
) -> tuple[Float64Array, Float64Array]:
    """Coefficients of a logistic regression with their covariance, by Newton's method."""

    def loss(theta: Float64Array) -> float:
        eta = design @ theta + offset
        return float(np.sum(np.logaddexp(0.0, np.where(y, -eta, eta))))

    def mean_and_curvature(theta: Float64Array) -> tuple[Float64Array, Any]:
        mean = expit(design @ theta + offset)
        return mean, design.T @ (design * (mean * (1 - mean))[:, None])

    theta: Float64Array = np.zeros(design.shape[1])
    for _ in range(100):
        mean, curvature = mean_and_curvature(theta)
        # far out, where nothing curves, a step goes down the gradient
        curvature += 1e-12 * np.eye(len(theta))
        step = np.linalg.solve(curvature, design.T @ (y - mean))
        length, before = min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300)), loss(theta)
        while loss(theta + length * step) > before and length > 1e-10:
            length /= 2
        theta = theta + length * step
        if np.abs(step).max() <= 1e-10 * (1 + np.abs(theta).max()):
            break
    return theta, np.linalg.inv(mean_and_curvature(theta)[1])


def brier_score(
    y_true: ArrayLike, y_proba: ArrayLike, *, prevalence: float | None = None, level: float = 0.95
) -> Interval:
    """Return the Brier score at a prevalence: the mean squared error of probabilities.

    Parameters
    ----------
    y_true : array-like of bool of shape (n_samples,)
        Which samples are positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive class, for this prevalence (:func:`at_prevalence`).
    prevalence : float, optional
        The classes are weighted to this share of positives; by default that of the samples. At
        0.5 it is `balanced_brier_score`.
    level : float, default=0.95
        Nominal coverage, by the normal distribution; the range where a class has one sample.

    Examples
    --------
    >>> from sparsegsvp.metrics import brier_score
    >>> round(brier_score([0, 0, 0, 1], [0.1, 0.2, 0.6, 0.7]).value, 3)
    0.125
    """
    y, p, share = check_probabilities(y_true, y_proba, prevalence)
    errors = (y - p) ** 2
    return mean_by_class([errors[y], errors[~y]], [share, 1 - share], level=level)


def mean_by_class(
    errors: Sequence[Float64Array], shares: Sequence[float], *, level: float
) -> Interval:
    """Return the mean of errors within 0 and 1, the classes weighted to the shares given."""
    value = float(sum(share * own.mean() for share, own in zip(shares, errors)))
    if min(own.size for own in errors) < 2:
        return Interval(value, 0.0, 1.0, level)
    variance = sum(share**2 * own.var(ddof=1) / own.size for share, own in zip(shares, errors))
    return normal_interval(value, variance, level=level, bounds=(0.0, 1.0))
