r"""Intervals of cross-validated scores and of paired differences.

Fold scores share training samples, so their spread understates the error of their mean.
Nadeau and Bengio (2003) correct the variance to :math:`(1/J + n_{test}/n_{train}) s^2`.
Where the folds hardly differ (perfect separation) this still collapses to a point; then
the counts of the first repeat, where every sample is predicted once, take over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from .._typing import Float64Array
from ..metrics import Interval, clopper_pearson

#: Fold scores that vary less than this share of what counting alone would produce are
#: taken as degenerate, and the interval from pooled counts is computed too.
DEGENERATE_RATIO = 0.5
#: The same for areas under the curve, whose expected spread is known less well. Both were
#: chosen among a few values by simulating fixed rules on 50 samples, where nominal intervals
#: of 0.95 covered 0.92 or more, for rates from 0.6 and areas from 0.7 up to perfection.
DEGENERATE_AREA_RATIO = 0.25


@dataclass(frozen=True)
class PairedDifference:
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

    def to_dict(self) -> dict[str, float | int]:
        """Return the fields as a dictionary."""
        return asdict(self)


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


def counting_deviation(counts: Sequence[tuple[int, int]], n_folds: int) -> float:
    """Return the standard deviation that a fold's mean rate would have by counting alone.

    ``counts`` holds (correct, total) of each class over all folds of one repeat; rates are
    smoothed (Laplace), so that a perfect count still has a deviation.
    """
    variance = 0.0
    for correct, total in counts:
        rate = (correct + 1) / (total + 2)
        variance += rate * (1 - rate) / (total / n_folds)
    return float(np.sqrt(variance) / len(counts))


def area_deviation(area: float, positives: int, negatives: int, n_folds: int) -> float:
    """Return the standard deviation of a fold's area under the curve (Hanley and McNeil, 1982).

    The area is drawn towards 1/2 by one sample's weight, so that a perfect one still has a
    deviation.
    """
    n = min(positives, negatives)
    a = (area * n + 0.5) / (n + 1)
    p, q = positives / n_folds, negatives / n_folds
    higher, lower = a / (2 - a), 2 * a**2 / (1 + a)
    variance = a * (1 - a) + (p - 1) * (higher - a**2) + (q - 1) * (lower - a**2)
    return float(np.sqrt(max(variance, 0.0) / (p * q)))


def is_degenerate(scores: ArrayLike, least: float) -> bool:
    """Tell whether fold scores vary too little for their spread to be believed."""
    s = np.asarray(scores, dtype=np.float64)
    s = s[np.isfinite(s)]
    return s.size < 2 or float(np.std(s, ddof=1)) < least


def rate_interval(
    scores: ArrayLike,
    test_train_ratio: float,
    counts: Sequence[tuple[int, int]],
    n_folds: int,
    *,
    level: float = 0.95,
) -> Interval:
    """Interval of a mean of rates (balanced accuracy, sensitivity, specificity).

    The corrected interval; where the fold scores hardly vary, the wider of it and the mean
    of the Clopper-Pearson intervals of the first repeat's pooled counts.

    Parameters
    ----------
    scores : array-like of shape (J,)
        Fold scores.
    test_train_ratio : float
        :math:`n_{test}/n_{train}`.
    counts : sequence of (correct, total)
        One pair per rate, over the first repeat.
    n_folds : int
        Folds in the first repeat.
    level : float, default=0.95
        Nominal coverage.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from sparsegsvp.evaluation import rate_interval
    >>> perfect = rate_interval([1.0] * 5, 0.25, [(30, 30), (20, 20)], 5)
    >>> perfect.low < 0.9
    True
    """
    corrected = corrected_interval(scores, test_train_ratio, level=level)
    if not is_degenerate(scores, DEGENERATE_RATIO * counting_deviation(counts, n_folds)):
        return corrected
    parts = [clopper_pearson(*pair, level=level ** (1 / len(counts))) for pair in counts]
    low = float(np.mean([part.low for part in parts]))
    high = float(np.mean([part.high for part in parts]))
    return Interval(corrected.value, *_wider(corrected, low, high), level)


def auc_interval(
    scores: ArrayLike,
    test_train_ratio: float,
    counts: Sequence[tuple[int, int, int, int]],
    n_folds: int,
    *,
    level: float = 0.95,
) -> Interval:
    r"""Interval of the mean area under the curve, with the same widening.

    A rule with sensitivity a and specificity b has an area between :math:`ab` and
    :math:`1 - (1-a)(1-b)`: where the fold scores hardly vary, the exact intervals of the
    two rates in the first repeat bound the area without pooling scores across folds.

    Parameters
    ----------
    scores : array-like of shape (J,)
        Fold scores.
    test_train_ratio : float
        :math:`n_{test}/n_{train}`.
    counts : sequence of (true positives, positives, true negatives, negatives)
        One entry, or one per class against the rest; the areas are averaged.
    n_folds : int
        Folds in the first repeat.
    level : float, default=0.95
        Nominal coverage.

    Returns
    -------
    Interval
    """
    corrected = corrected_interval(scores, test_train_ratio, level=level)
    spread = np.mean([area_deviation(corrected.value, p, n, n_folds) for _, p, _, n in counts])
    if not is_degenerate(scores, DEGENERATE_AREA_RATIO * float(spread)):
        return corrected
    share = level ** (1 / (2 * len(counts)))
    lows, highs = [], []
    for tp, p, tn, n in counts:
        a, b = clopper_pearson(tp, p, level=share), clopper_pearson(tn, n, level=share)
        lows.append(a.low * b.low)
        highs.append(1 - (1 - a.high) * (1 - b.high))
    low, high = float(np.mean(lows)), float(np.mean(highs))
    return Interval(corrected.value, *_wider(corrected, low, high), level)


def _wider(first: Interval, low: float, high: float) -> tuple[float, float]:
    """Return the wider of two intervals, stretched where needed to hold the estimate."""
    if high - low <= first.high - first.low:
        return first.low, first.high
    return min(low, first.value), max(high, first.value)


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
    arrays = [np.asarray(d, dtype=np.float64) for d in differences]
    arrays = [d[np.isfinite(d)] for d in arrays]
    means, errors, dofs, p_values = [], [], [], []
    for i, d in enumerate(arrays):
        if d.size < 2:
            raise ValueError("a paired difference needs at least two folds in common.")
        mean, error = float(d.mean()), corrected_error(d, test_train_ratio)
        if floors is not None and mean != 0:
            error = max(error, floors[i] * float(np.sqrt(1 / d.size + test_train_ratio)))
        means.append(mean)
        errors.append(error)
        dofs.append(d.size - 1)
        if error > 0:
            p_values.append(float(2 * student.sf(abs(mean) / error, d.size - 1)))
        else:
            p_values.append(1.0 if mean == 0 else 0.0)
    adjusted = holm(p_values)
    results: list[PairedDifference | None] = [None] * len(arrays)
    divisor = len(arrays)
    rejecting = True  # no comparison was kept so far
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        if rejecting:
            divisor = len(arrays) - rank
            rejecting = p_values[i] <= alpha / divisor
        half = float(student.ppf(1 - alpha / divisor / 2, dofs[i])) * errors[i]
        results[i] = PairedDifference(
            means[i],
            means[i] - half,
            means[i] + half,
            p_values[i],
            float(adjusted[i]),
            len(arrays),
        )
    return [r for r in results if r is not None]
