"""Intervals of rates, areas and scores; p-values of several comparisons or of many draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betaincinv
from scipy.stats import binomtest, norm
from scipy.stats import t as student
from sklearn.utils import check_consistent_length

from .._typing import BoolArray, Float64Array, IntArray, Record

#: Exceedances after which more draws would not change the conclusion.
MAX_EXCEEDANCES = 10
#: The luck with the training samples (`training_luck`) of an area and of a Brier score, in units of
#: that of a rate; what it adds to paired differences for each fold but one; and how much of it two
#: samples of one class share. Found by simulation: docs/intervals.md.
AREA_LUCK, BRIER_LUCK, WITHIN_CLASS = 1.2, 1.8, 0.58
DIFFERENCE_LUCK = {"balanced_accuracy": 0.065, "roc_auc": 0.125}


@dataclass(frozen=True)
class Interval(Record):
    """An estimate with its confidence interval.

    Attributes
    ----------
    value, low, high : float
        The point estimate, and the ends of the interval.
    level : float
        Its nominal coverage.

    Examples
    --------
    >>> from sparsegsvp.metrics import Interval
    >>> Interval(0.8, 0.7, 0.9).to_dict()
    {'value': 0.8, 'low': 0.7, 'high': 0.9, 'level': 0.95}
    """

    value: float
    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True)
class Difference(Interval):
    """A paired difference: an `Interval` with p-values.

    Of several comparisons the intervals hold jointly (Bonferroni), and `p_adjusted` is Holm's.
    """

    p_value: float = 1.0
    p_adjusted: float = 1.0


def exact_interval(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Return Clopper and Pearson's interval of a proportion, which covers at least `level`.

    Examples
    --------
    >>> from sparsegsvp.metrics import exact_interval
    >>> round(exact_interval(10, 10).low, 4)
    0.6915
    """
    ends = binomtest(int(successes), int(trials)).proportion_ci(level, method="exact")
    return Interval(successes / trials, float(ends.low), float(ends.high), level)


def recall_mean_interval(
    correct: Sequence[int], totals: Sequence[int], *, level: float = 0.95
) -> Interval:
    """Return the balanced accuracy of an independent test set with its interval.

    The mean of exact intervals of the K recalls at the level to the power 1/K: classes are
    independent, so that all hold together with probability `level`, and then so does their mean.
    """
    each = level ** (1 / len(totals))
    recalls = [exact_interval(c, n, level=each) for c, n in zip(correct, totals)]
    value, low, high = np.mean([(r.value, r.low, r.high) for r in recalls], axis=0).tolist()
    return Interval(value, low, high, level)


def proportion_interval(value: float, trials: float, *, level: float = 0.95) -> Interval:
    """Return the interval of a proportion in any number of trials, whole or not.

    Jeffreys' limits; where there is less than one hit or one miss they go over into Clopper and
    Pearson's, which are exact for a proportion of 0 or 1 (Brown, Cai and DasGupta, 2001).
    """
    tail = (1 - level) / 2
    hits, misses = value * trials, (1 - value) * trials
    half = min(hits, misses, 1.0) / 2
    low = float(betaincinv(hits + half, misses + 1 - half, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1 - half, misses + half, 1 - tail)) if misses > 0 else 1.0
    return Interval(value, low, high, level)


def normal_interval(value: float, variance: float, *, level: float = 0.95) -> Interval:
    """Return an estimate with the interval of the normal distribution."""
    half = float(norm.ppf((1 + level) / 2) * np.sqrt(variance))
    return Interval(float(value), value - half, value + half, level)


def training_luck(accuracy: float, n_classes: int, n_folds: int, *, above: bool = False) -> float:
    r"""Return how much the luck with the training samples adds to the variance of a rate.

    In units of :math:`p (1 - p) / n`, where `accuracy` is the true balanced accuracy:
    :math:`(\sqrt{J - 1} + 1.5 s) (1 - s^3) / 5`, J being the number of folds, and s the accuracy
    on a scale where guessing is 0 and perfection 1. All folds share most of their training samples,
    so that no spread between folds shows it. A table that misses a weak signal falls further below
    the mean of all tables than any rises above it: where the truth lies above what a table shows,
    there is :math:`24 s (1 - s)^3` more. Form and size were found by simulation
    (docs/intervals.md).
    """
    s = max(0.0, (n_classes * accuracy - 1) / (n_classes - 1))
    luck = (np.sqrt(n_folds - 1) + 1.5 * s) * (1 - s**3) / 5
    return float(luck + 24 * s * (1 - s) ** 3 if above else luck)


def two_ends(value: float, interval_if: Callable[[float, bool], Interval]) -> Interval:
    """Return the interval of the truths from which the value is not too far.

    Its variance depends on the truth: ``interval_if(truth, above)`` is the interval that would hold
    if the truth was this, above the value or not. Each end is the truth that is its own end.
    """
    low = brentq(lambda truth: interval_if(truth, False).low - truth, 0.0, value)
    high = brentq(lambda truth: interval_if(truth, True).high - truth, value, 1.0)
    return replace(interval_if(value, False), low=float(low), high=float(high))


def rate_covariance(
    rates: ArrayLike,  # of each class, pooled over all folds and repeats
    totals: ArrayLike,  # independent samples of each class: groups, where there are groups
    sampling: ArrayLike | None = None,  # covariances of the rates; p (1 - p) / n unless given
) -> tuple[Float64Array, Float64Array, Float64Array]:
    r"""Return rates that are never quite 0 or 1, and their covariances by sampling and by luck.

    By sampling a class has the variance of its samples, where one that several repeats judge
    differently counts with its mean. The luck with the training samples is in units of
    :math:`p (1 - p) / n`: its covariances are to be multiplied by `training_luck`.
    """
    p, n = (np.asarray(part, dtype=np.float64) for part in (rates, totals))
    spread = p * (1 - p) / n
    covariance = np.diag(spread) if sampling is None else np.array(sampling, dtype=np.float64)
    smooth, own = never_certain(p, n, np.diag(covariance))
    np.fill_diagonal(covariance, own)
    return smooth, covariance, shared(spread)


def never_certain(means: Any, totals: Any, variances: Any) -> tuple[Any, Any]:
    """Return means and their variances with half an error and half a hit more.

    So that what was perfect in a few samples has a variance, too.
    """
    p, n = np.asarray(means), np.asarray(totals)
    smooth = (p * n + 0.5) / (n + 1)
    return smooth, ((n * (n * variances + p**2) + 0.5) / (n + 1) - smooth**2) / n


def shared(spreads: Float64Array) -> Float64Array:
    """Return what the luck adds to the covariances of several means, for each unit of it.

    Two classes share all of it; each of more shares as much with all others together.
    """
    root, one = np.sqrt(spreads), np.eye(spreads.size)
    return np.outer(root, root) * (WITHIN_CLASS * one + (1 - one) / max(spreads.size - 1, 1))


def influences(values: Float64Array, units: IntArray, n_units: int = 0) -> Float64Array:
    """Return how far each unit (sample or patient) moves a mean, whatever the order of rows."""
    mean = fsum(values) / max(values.size, 1)
    sums: Float64Array = np.bincount(units, values - mean, minlength=n_units).astype(np.float64)
    return sums / max(values.size, 1)


def auc_interval(
    area: float, variance: float, totals: ArrayLike, *, level: float = 0.95
) -> Interval:
    """Return the interval of an area under the ROC curve with some variance V.

    The area A is treated as a proportion in A (1 - A) / V trials, at most as many as there would be
    samples if all classes were as small as the smallest: near 1 it is a mean of rates near 1.
    """
    smallest = float(np.min(totals))
    if not np.isfinite(variance):  # a class of one sample
        variance = area * (1 - area) / smallest
    trials = np.size(totals) * smallest
    if variance > 0 and area * (1 - area) > 0:
        trials = min(trials, area * (1 - area) / variance)
    return proportion_interval(area, trials, level=level)


def delong_interval(y_true: ArrayLike, y_score: ArrayLike, *, level: float = 0.95) -> Interval:
    r"""Return the area under the ROC curve of an independent test set with its interval.

    The area A is treated as a proportion in :math:`\min(A (1 - A) / V, 2 n_{min})` trials, V being
    DeLong's variance and :math:`n_{min}` the size of the smaller class: the usual :math:`A \pm z
    \sqrt V` leaves [0, 1], and has no width at all at a perfect area.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Which samples are positive, and values that rank them, higher for positives.
    level : float, default=0.95
        Nominal coverage.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988), Biometrics 44(3), 837-845.

    Examples
    --------
    >>> from sparsegsvp.metrics import delong_interval
    >>> found = delong_interval([0] * 20 + [1] * 20, range(40))
    >>> found.value, round(found.low, 3), found.high
    (1.0, 0.912, 1.0)
    """
    positive = np.asarray(y_true).astype(bool).ravel()
    score = np.asarray(y_score, dtype=np.float64).ravel()
    check_consistent_length(positive, score)
    if not np.isfinite(score).all():
        raise ValueError("scores must be finite numbers.")
    if positive.all() or not positive.any():
        raise ValueError("y_true holds one class; an area under the curve needs both.")
    area, variance = area_and_variance(positive, score)
    totals = [positive.sum(), (~positive).sum()]
    return auc_interval(area, variance, totals, level=level)


def placements(positive: BoolArray, score: Float64Array) -> Float64Array:
    """Return the share of the other class that each sample lies on the right side of."""
    result = np.empty(score.size)
    for side, sign in ((positive, 1), (~positive, -1)):
        others, values = np.sort(sign * score[~side]), sign * score[side]
        left, right = (np.searchsorted(others, values, end) for end in ("left", "right"))
        result[side] = (left + right) / (2 * others.size)  # ties by half
    return result


def area_and_variance(positive: BoolArray, score: Float64Array) -> tuple[float, float]:
    """Return the area under the curve, ties counting one half, and DeLong's variance of it.

    The variance is ``nan`` with one sample of a class.
    """
    parts = [placements(positive, score)[side] for side in (positive, ~positive)]
    if min(part.size for part in parts) < 2:
        return float(parts[0].mean()), float("nan")
    return float(parts[0].mean()), float(sum(part.var(ddof=1) / part.size for part in parts))


def paired_differences(
    values: Sequence[float],
    variances: Sequence[float],
    degrees: Sequence[float],
    *,
    level: float = 0.95,
) -> list[Difference]:
    """Return differences with joint intervals (Bonferroni) and Holm's p-values.

    Given are their values, their variances and the degrees of freedom of these.
    """
    tail = (1 - level) / (2 * max(len(values), 1))
    errors = np.sqrt(np.asarray(variances, dtype=np.float64))
    p_values = [
        float(2 * student.sf(abs(value) / error, df)) if error > 0 else float(value == 0)
        for value, error, df in zip(values, errors, degrees)
    ]
    result = []
    for value, error, df, p, adjusted in zip(values, errors, degrees, p_values, holm(p_values)):
        half = float(student.ppf(1 - tail, df)) * float(error)
        low, high = max(-1.0, value - half), min(1.0, value + half)
        result.append(Difference(value, low, high, level, p, float(adjusted)))
    return result


def holm(p_values: ArrayLike) -> Float64Array:
    """Adjust p-values by Holm's step-down procedure.

    Examples
    --------
    >>> from sparsegsvp.metrics import holm
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    steps = (p.size - np.arange(p.size)) * p[order]
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def sequential_p_value(exceeds: Sequence[bool]) -> tuple[float, int, bool]:
    """Return p-value, number of draws it rests on, and whether the 10th exceedance ended them.

    ``exceeds`` says of each draw, in order, whether it reaches what was observed (Besag and
    Clifford, 1991, Biometrika 78(2), 301-304).
    """
    hits = np.cumsum(exceeds, dtype=int)
    if hits.size and hits[-1] >= MAX_EXCEEDANCES:
        draws = int(np.argmax(hits >= MAX_EXCEEDANCES)) + 1
        return MAX_EXCEEDANCES / draws, draws, True
    return (1 + int(hits[-1] if hits.size else 0)) / (hits.size + 1), hits.size, False
