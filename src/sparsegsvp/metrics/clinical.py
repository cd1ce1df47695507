r"""What a probability is worth in use: calibration, predictive values and net benefit.

Probabilities of this package are for equal class shares. Where a model is used, the positive
class has another share, its prevalence; :func:`at_prevalence` moves probabilities there. A study
seldom holds as many positives as the world does, so everything here that depends on the
prevalence :math:`\pi` is put together from what does not: sensitivity and specificity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.utils import check_consistent_length, column_or_1d

from .._typing import BoolArray, Float64Array, IntArray
from .._validate import check_real
from .scores import Interval, clopper_pearson

# Probabilities of exactly 0 or 1 have no log odds; these stand for them.
_CLOSEST = 1e-10


def _pair(y_true: ArrayLike, y_proba: ArrayLike) -> tuple[BoolArray, Float64Array]:
    """Return which samples are positive, both kinds being there, and their probabilities."""
    y = np.asarray(column_or_1d(y_true)).astype(bool)
    p = np.asarray(column_or_1d(y_proba), dtype=np.float64)
    check_consistent_length(y, p)
    if y.all() or not y.any():
        raise ValueError("y_true holds one class; both are needed.")
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("y_proba must hold probabilities between 0 and 1.")
    return y, p


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

    Returns
    -------
    ndarray of shape (n_samples,)

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


# -------------------------------------------------------------------------- calibration


@dataclass(frozen=True)
class CalibrationLine:
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)


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
    y_true : array-like of bool of shape (n_samples,)
        Which samples are positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive class.
    prior : float, default=0.5
        The share of the positive class that they are for.
    level : float, default=0.95
        Nominal coverage of the intervals.

    Returns
    -------
    CalibrationLine

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
    y, p = _pair(y_true, y_proba)
    x = log_odds(p)
    ones, zeros = int(y.sum()), int((~y).sum())
    counted = 1 / ones + 1 / zeros
    offset = float(np.log(ones / zeros) - logit(prior))
    z = float(norm.ppf((1 + level) / 2))
    theta, covariance = _logistic(np.ones((y.size, 1)), y, offset + x)
    half = z * np.sqrt(max(covariance[0, 0] - counted, 0.0))
    intercept = Interval(float(theta[0]), float(theta[0] - half), float(theta[0] + half), level)
    apart = x[y].min() >= x[~y].max() or x[y].max() <= x[~y].min()
    if apart:  # also where all are equal
        return CalibrationLine(intercept, None, None)
    theta, covariance = _logistic(np.column_stack([np.ones(y.size), x]), y, offset)
    half = z * np.sqrt(covariance[1, 1])
    slope = Interval(float(theta[1]), float(theta[1] - half), float(theta[1] + half), level)
    return CalibrationLine(intercept, slope, float(theta[0]))


def _logistic(
    design: Float64Array, y: BoolArray, offset: Float64Array | float
) -> tuple[Float64Array, Float64Array]:
    """Coefficients of a logistic regression with their covariance, by Newton's method."""

    def loss(theta: Float64Array) -> float:
        eta = design @ theta + offset
        return float(np.sum(np.logaddexp(0.0, np.where(y, -eta, eta))))

    theta = np.zeros(design.shape[1])
    for _ in range(100):
        mean = expit(design @ theta + offset)
        curvature = design.T @ (design * (mean * (1 - mean))[:, None])
        # far out, where nothing curves, a step goes down the gradient
        curvature += 1e-12 * np.eye(len(theta))
        step = np.linalg.solve(curvature, design.T @ (y - mean))
        length, before = min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300)), loss(theta)
        while loss(theta + length * step) > before and length > 1e-10:
            length /= 2
        theta = theta + length * step
        if np.abs(step).max() <= 1e-10 * (1 + np.abs(theta).max()):
            break
    mean = expit(design @ theta + offset)
    return theta, np.linalg.inv(design.T @ (design * (mean * (1 - mean))[:, None]))


def brier_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    prevalence: float | None = None,
    level: float = 0.95,
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

    Returns
    -------
    Interval

    Examples
    --------
    >>> from sparsegsvp.metrics import brier_score
    >>> round(brier_score([0, 0, 0, 1], [0.1, 0.2, 0.6, 0.7]).value, 3)
    0.125
    """
    y, p = _pair(y_true, y_proba)
    share = float(y.mean()) if prevalence is None else prevalence
    check_real("prevalence", share, above=0, below=1)
    errors = (y - p) ** 2
    parts = [(share, errors[y]), (1 - share, errors[~y])]
    value = float(sum(weight * part.mean() for weight, part in parts))
    if min(part.size for _, part in parts) < 2:
        return Interval(value, 0.0, 1.0, level)
    variance = sum(weight**2 * part.var(ddof=1) / part.size for weight, part in parts)
    half = float(norm.ppf((1 + level) / 2) * np.sqrt(variance))
    return Interval(value, max(0.0, value - half), min(1.0, value + half), level)


# -------------------------------------------------------------------- predictive values


def predictive_values(
    sensitivity: tuple[int, int],
    specificity: tuple[int, int],
    prevalence: float,
    *,
    level: float = 0.95,
) -> tuple[Interval | None, Interval | None]:
    r"""Return positive and negative predictive value at a prevalence, with intervals.

    By Bayes' rule from sensitivity s and specificity c: :math:`\pi s / (\pi s + (1-\pi)(1-c))`
    and :math:`(1-\pi) c / ((1-\pi) c + \pi (1-s))`. Both rise with either rate, and the rates come
    from different samples: the intervals run from the values at both lower to those at both upper
    ends of exact intervals at the level :math:`\sqrt{\text{level}}`. Conservative, and right where
    a rate is 0 or 1.

    Parameters
    ----------
    sensitivity, specificity : (int, int)
        How many were right, of how many.
    prevalence : float
        Share of the positive class where the model is used.
    level : float, default=0.95
        Coverage.

    Returns
    -------
    positive, negative : Interval or None
        None where no sample at all was called so.

    Examples
    --------
    >>> from sparsegsvp.metrics import predictive_values
    >>> positive, negative = predictive_values((18, 20), (38, 40), 0.05)
    >>> round(positive.value, 3), round(negative.value, 3)
    (0.486, 0.994)
    """
    check_real("prevalence", prevalence, above=0, below=1)
    rates = [clopper_pearson(*pair, level=level**0.5) for pair in (sensitivity, specificity)]

    def values(s: float, c: float) -> tuple[float | None, float | None]:
        hits, alarms = prevalence * s, (1 - prevalence) * (1 - c)
        clear, missed = (1 - prevalence) * c, prevalence * (1 - s)
        called, passed = hits + alarms, clear + missed
        return (hits / called if called > 0 else None, clear / passed if passed > 0 else None)

    found = []
    parts = zip(*(values(*(getattr(r, end) for r in rates)) for end in ("value", "low", "high")))
    for value, low, high in parts:
        # at the ends of the intervals one of the rates lies within (0, 1), so both exist
        known = value is not None and low is not None and high is not None
        found.append(Interval(value, low, high, level) if known else None)
    return found[0], found[1]


# ------------------------------------------------------------------------- net benefit


@dataclass(frozen=True)
class DecisionCurve:
    """Net benefit of acting on a model, against the probability at which one would act.

    Attributes
    ----------
    prevalence : float
        Share of the positive class that the curve is for.
    thresholds : ndarray of shape (n,)
        Probabilities from which on one would act.
    net_benefit, low, high : ndarray of shape (n,)
        Of acting on the model, in true positives per sample, with a pointwise 95% interval.
    treat_all : ndarray of shape (n,)
        Of acting on everyone; acting on no one has a net benefit of 0.
    """

    prevalence: float
    thresholds: Float64Array
    net_benefit: Float64Array
    low: Float64Array
    high: Float64Array
    treat_all: Float64Array

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as numbers and lists."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }


def net_benefit(
    sensitivity: Any, specificity: Any, prevalence: float, threshold: Any
) -> Float64Array:
    r"""Return :math:`\pi s - (1 - \pi) (1 - c)\, t / (1 - t)`, in true positives per sample.

    Whoever acts from a probability t on holds one true positive worth (1 - t) / t false ones.

    Parameters
    ----------
    sensitivity, specificity : float or array-like
        The rates s and c at the threshold.
    prevalence : float
        Share of the positive class.
    threshold : float or array-like
        Probability t from which on one would act, below 1.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from sparsegsvp.metrics import net_benefit
    >>> round(float(net_benefit(0.9, 0.8, 0.1, 0.2)), 3)
    0.045
    """
    t = np.asarray(threshold, dtype=np.float64)
    alarms = (1 - np.asarray(specificity)) * (1 - prevalence)
    return np.asarray(prevalence * np.asarray(sensitivity) - alarms * t / (1 - t))


def rates_at(y: BoolArray, p: Float64Array, thresholds: Float64Array) -> tuple[IntArray, IntArray]:
    """Return how many positives have p >= t, and how many negatives p < t, at each threshold."""
    ones, zeros = np.sort(p[y]), np.sort(p[~y])
    hits = ones.size - np.searchsorted(ones, thresholds, side="left")
    return hits.astype(np.intp), np.searchsorted(zeros, thresholds, side="left").astype(np.intp)


def decision_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    prevalence: float | None = None,
    thresholds: Sequence[float] | None = None,
) -> DecisionCurve:
    """Return the decision curve of probabilities (Vickers and Elkin, 2006).

    Parameters
    ----------
    y_true : array-like of bool of shape (n_samples,)
        Which samples are positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive class, for this prevalence (:func:`at_prevalence`).
    prevalence : float, optional
        The classes are weighted to this share of positives; by default that of the samples.
    thresholds : sequence of float, optional
        From 0.01 to 0.99 in steps of 0.01 by default.

    Returns
    -------
    DecisionCurve

    References
    ----------
    Vickers, Elkin (2006), Decision curve analysis: a novel method for evaluating prediction
    models, Medical Decision Making 26(6), 565-574.

    Examples
    --------
    >>> from sparsegsvp.metrics import decision_curve
    >>> found = decision_curve([0, 0, 0, 1], [0.1, 0.2, 0.6, 0.7], thresholds=[0.5])
    >>> found.net_benefit.tolist(), found.treat_all.tolist()
    ([0.0], [-0.5])
    """
    y, p = _pair(y_true, y_proba)
    share = float(y.mean()) if prevalence is None else prevalence
    check_real("prevalence", share, above=0, below=1)
    t = np.arange(1, 100) / 100 if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    if not np.all((t > 0) & (t < 1)):
        raise ValueError("thresholds must lie between 0 and 1.")
    hits, clear = rates_at(y, p, t)
    ones, zeros = int(y.sum()), int((~y).sum())
    s, c = hits / ones, clear / zeros
    benefit = net_benefit(s, c, share, t)
    odds = t / (1 - t)
    variance = share**2 * s * (1 - s) / ones + ((1 - share) * odds) ** 2 * c * (1 - c) / zeros
    half = float(norm.ppf(0.975)) * np.sqrt(variance)
    everyone = net_benefit(1.0, 0.0, share, t)
    return DecisionCurve(share, t, benefit, benefit - half, benefit + half, everyone)
