r"""Intervals of cross-validated scores and of paired differences.

A score is of the procedure on new samples of the same source. Two things move it: the samples
that it was trained on and those that it was tested on. Fold scores share training samples, so
their spread understates the first; Nadeau and Bengio (2003) correct the variance to
:math:`(1/J + n_{test}/n_{train}) s^2`. The second is what counting gives: with recalls
:math:`p_k` of :math:`n_k` samples, :math:`K^{-2} \sum_k p_k (1 - p_k) / n_k`, and for an area
under the curve the mean of DeLong's variances of the folds over the number of folds in a repeat.

The sum of both is turned into a number of trials, and the interval is that of a proportion
(Korn and Graubard, 1998): it stays within [0, 1], leans the right way near its ends, and is the
exact one of the samples counted where there is nothing to add up, at a perfect score.
``benchmarks/coverage.py`` simulates what these intervals cover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from scipy.stats import t as student

from .._typing import Float64Array, Record
from ..metrics import Interval, proportion_interval


@dataclass(frozen=True)
class PairedDifference(Record):
    """A difference of two methods over the same folds.

    Attributes
    ----------
    value : float
        Mean difference, method minus reference.
    low, high : float
        Corrected interval, at the level that Holm's procedure gives this comparison.
    p_value : float
        Two-sided, corrected for overlapping training sets, not for multiplicity.
    p_adjusted : float
        After Holm's procedure over the whole family.
    n_comparisons : int
        Size of that family.
    """

    value: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    n_comparisons: int


def corrected_error(scores: Float64Array, test_train_ratio: float) -> float:
    """Return the corrected standard error of the mean of J fold scores."""
    return float(np.sqrt((1 / scores.size + test_train_ratio) * np.var(scores, ddof=1)))


def corrected_interval(
    scores: ArrayLike,
    test_train_ratio: float,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    r"""Nadeau-Bengio interval of a mean fold score, clipped to its range.

    .. math:: \bar s \pm t_{J-1} \sqrt{\left(\frac1J + \frac{n_{test}}{n_{train}}\right) s^2}

    Parameters
    ----------
    scores : array-like of shape (J,)
        Fold scores; those that are ``nan`` (undefined in their fold) are left out.
    test_train_ratio : float
        :math:`n_{test}/n_{train}`.
    level : float, default=0.95
        Nominal coverage.
    bounds : (float, float), default=(0, 1)
        Range of the score.

    Returns
    -------
    Interval
        With one fold or none the ends are those of the range.

    Examples
    --------
    >>> from sparsegsvp.evaluation import corrected_interval
    >>> interval = corrected_interval([0.8, 0.9, 0.7, 0.8, 0.8], 0.25)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.668, 0.932)
    """
    s = np.asarray(scores, dtype=np.float64)
    s = s[np.isfinite(s)]
    if s.size < 2:
        return Interval(float(s.mean()) if s.size else float("nan"), *bounds, level)
    half = float(student.ppf((1 + level) / 2, s.size - 1)) * corrected_error(s, test_train_ratio)
    mean = float(s.mean())
    return Interval(mean, max(bounds[0], mean - half), min(bounds[1], mean + half), level)


def score_interval(
    scores: ArrayLike,
    test_train_ratio: float,
    sampling_variance: float,
    trials: float,
    *,
    value: float | None = None,
    level: float = 0.95,
) -> Interval:
    r"""Interval of a score between 0 and 1, of the procedure on new samples.

    With :math:`V = (1/J + n_{test}/n_{train}) s^2 + V_{sampling}`, the score p is treated as a
    proportion in

    .. math:: n^* = \min\Bigl(n,\; \frac{p (1 - p)}{V} \Bigl(\frac{z}{t_{J-1}}\Bigr)^2\Bigr)

    trials, n being those that were counted (:func:`sparsegsvp.metrics.proportion_interval`).

    Parameters
    ----------
    scores, test_train_ratio, level
        As in :func:`corrected_interval`.
    sampling_variance : float
        :math:`V_{sampling}`, of the score on as many samples as one repeat tests.
    trials : float
        n: how many trials a perfect score would stand for.
    value : float, optional
        The estimate p; the mean of the scores by default.

    Returns
    -------
    Interval
        From 0 to 1 with one fold or none, whose spread is unknown.

    References
    ----------
    Korn, Graubard (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data, Survey Methodology 24(2), 193-201.

    Examples
    --------
    >>> from sparsegsvp.evaluation import score_interval
    >>> found = score_interval([0.8, 0.9, 0.7, 0.8, 0.8], 0.25, 0.8 * 0.2 / 50, 50)
    >>> round(found.low, 2), round(found.high, 2)
    (0.55, 0.94)
    """
    s = np.asarray(scores, dtype=np.float64)
    s = s[np.isfinite(s)]
    if value is None:
        value = float(s.mean()) if s.size else float("nan")
    if s.size < 2:
        return Interval(value, 0.0, 1.0, level)
    variance = corrected_error(s, test_train_ratio) ** 2 + sampling_variance
    tail = (1 - level) / 2
    if variance > 0:
        shrink = float(norm.ppf(tail) / student.ppf(tail, s.size - 1)) ** 2
        trials = min(trials, value * (1 - value) / variance * shrink)
    return proportion_interval(value, trials, level=level)


def rate_interval(
    scores: ArrayLike,
    test_train_ratio: float,
    counts: Sequence[tuple[float, float]],
    *,
    value: float | None = None,
    level: float = 0.95,
) -> Interval:
    """Interval of a mean of rates (balanced accuracy, sensitivity, specificity).

    :func:`score_interval` with the variance of counting. A perfect mean of K rates stands for K
    times as many trials as the smallest class has samples: errors might all be in that one.

    Parameters
    ----------
    scores, test_train_ratio, value, level
        As in :func:`score_interval`.
    counts : sequence of (correct, total)
        One pair per rate, over one repeat, or the mean over repeats.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from sparsegsvp.evaluation import rate_interval
    >>> perfect = rate_interval([1.0] * 5, 0.25, [(30, 30), (20, 20)])
    >>> round(perfect.low, 3), perfect.high
    (0.912, 1.0)
    """
    right, total = np.asarray(counts, dtype=np.float64).T
    rates = right / total
    variance = float(np.sum(rates * (1 - rates) / total)) / rates.size**2
    trials = rates.size * float(total.min())
    return score_interval(scores, test_train_ratio, variance, trials, value=value, level=level)


def auc_interval(
    scores: ArrayLike,
    test_train_ratio: float,
    variances: ArrayLike,
    n_folds: float,
    n_smallest: float,
    *,
    level: float = 0.95,
) -> Interval:
    r"""Interval of the mean area under the curve over folds.

    :func:`score_interval` with DeLong's variance. A perfect area stands for twice as many
    trials as the smaller class has samples. The reason: a curve that is concave, as that of any
    sensible score is, lies above the two lines from its corners to a point with sensitivity a
    and specificity b, so that the area is at least (a + b) / 2. A sample that is not separated
    lies among the other class and is misranked against half of it. So an area near 1 is a mean
    of two rates near 1.

    Parameters
    ----------
    scores, test_train_ratio, level
        As in :func:`score_interval`; the scores are the areas of the folds.
    variances : array-like of shape (J,)
        DeLong's variance of each (:func:`delong_variance`); ``nan`` where a fold has one sample
        of a class. If all are, the largest possible one, A (1 - A) / n_smallest, is taken.
    n_folds : float
        Folds in a repeat.
    n_smallest : float
        Samples of the smallest class.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from sparsegsvp.evaluation import auc_interval
    >>> areas = [1.0] * 24 + [0.975]
    >>> found = auc_interval(areas, 0.25, [0.0] * 24 + [0.0006], 5, 30)
    >>> round(found.value, 4), round(found.low, 2)
    (0.999, 0.94)
    """
    known = np.asarray(variances, dtype=np.float64)
    known = known[np.isfinite(known)]
    if known.size:
        variance = float(known.mean()) / n_folds
    else:
        area = float(np.nanmean(np.asarray(scores, dtype=np.float64)))
        variance = area * (1 - area) / n_smallest
    return score_interval(scores, test_train_ratio, variance, 2 * n_smallest, level=level)


def counting_deviation(counts: ArrayLike, n_folds: float) -> float:
    """Return the standard deviation that a fold's mean rate would have by counting alone.

    ``counts`` holds (correct, total, ...) of each class over all folds of one repeat; rates are
    smoothed (Laplace), so that a perfect count still has a deviation.
    """
    right, total = np.asarray(counts, dtype=np.float64)[:, :2].T
    rates = (right + 1) / (total + 2)
    return float(np.sqrt(np.sum(rates * (1 - rates) / (total / n_folds)))) / total.size


def least_spread(counts: ArrayLike, n_folds: float) -> float:
    """Return the spread of fold-wise differences below which it is not believed.

    Half of `counting_deviation`: two folds with the same difference are no proof of it.
    """
    return 0.5 * counting_deviation(counts, n_folds)


def holm(p_values: ArrayLike) -> Float64Array:
    """Adjust p-values by Holm's step-down procedure.

    Parameters
    ----------
    p_values : array-like of shape (m,)

    Returns
    -------
    ndarray of shape (m,)
        Adjusted p-values, in the same order.

    Examples
    --------
    >>> from sparsegsvp.evaluation import holm
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    factors = p.size - np.arange(p.size)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return adjusted


def paired_differences(
    differences: Sequence[ArrayLike],
    test_train_ratio: float,
    *,
    floors: Sequence[float] | None = None,
    level: float = 0.95,
) -> list[PairedDifference]:
    """Corrected intervals of several paired differences, adjusted together by Holm.

    In order of their p-values the i-th of m comparisons gets an interval at level
    ``1 - (1 - level) / (m - i)`` (i from 0) up to the first that is not rejected, and all
    later ones the level of that one: an interval leaves out zero exactly when Holm's
    procedure rejects.

    Parameters
    ----------
    differences : sequence of array-like of shape (J,)
        Fold-wise differences of each comparison, folds shared by both sides.
    test_train_ratio : float
        :math:`n_{test}/n_{train}`.
    floors : sequence of float, optional
        Smallest believable standard deviation of each comparison's differences. Two folds
        with the same difference are no proof of it; differences that are all zero are left
        as they are.
    level : float, default=0.95
        Joint level.

    Returns
    -------
    list of PairedDifference

    Examples
    --------
    >>> from sparsegsvp.evaluation import paired_differences
    >>> a, b = paired_differences([[0.1, 0.12, 0.09, 0.11], [0.0, 0.1, -0.1, 0.05]], 0.25)
    >>> a.low > 0, b.low < 0 < b.high
    (True, True)
    """
    alpha = 1 - level
    found = []
    for i, values in enumerate(differences):
        d = np.asarray(values, dtype=np.float64)
        d = d[np.isfinite(d)]
        if d.size < 2:
            raise ValueError("a paired difference needs at least two folds in common.")
        mean, error = float(d.mean()), corrected_error(d, test_train_ratio)
        if floors is not None and mean != 0:
            error = max(error, floors[i] * float(np.sqrt(1 / d.size + test_train_ratio)))
        p_value = float(mean == 0)  # without any spread
        if error > 0:
            p_value = float(2 * student.sf(abs(mean) / error, d.size - 1))
        found.append((mean, error, d.size - 1, p_value))
    p_values = [p for *_, p in found]
    adjusted = holm(p_values)
    halves = np.empty(len(found))
    divisor, rejecting = len(found), True  # as long as no comparison was kept
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        if rejecting:
            divisor = len(found) - rank
            rejecting = p_values[i] <= alpha / divisor
        _, error, dof, _ = found[i]
        halves[i] = student.ppf(1 - alpha / divisor / 2, dof) * error
    return [
        PairedDifference(mean, mean - half, mean + half, p, p_adjusted, len(found))
        for (mean, _, _, p), half, p_adjusted in zip(found, halves.tolist(), adjusted.tolist())
    ]
