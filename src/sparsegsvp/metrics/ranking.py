r"""Areas under the ROC curve on one set of samples, and two models on the same samples.

DeLong, DeLong and Clarke-Pearson (1988) write an area as a mean of structural components: for
each positive the share of the negatives that it is ranked above, and for each negative the share
of the positives that it is ranked below, ties counting one half. The spread of the components
gives the variance of the area, and their joint spread that of a difference of two areas. Ranks
give all of them at once in O(n log n) (Sun and Xu, 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, norm, rankdata

from .._typing import BoolArray, Float64Array, Record
from .._validate import check_real
from .scores import Interval, _label_pair, normal_interval, proportion_interval


def structural_components(
    positive: BoolArray, score: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Share of the other class that each positive, then each negative, is ranked right against.

    Either's mean is the area under the curve.
    """
    ranks = rankdata(score)
    own, others = ranks[positive], ranks[~positive]
    above = (own - rankdata(score[positive])) / others.size
    below = 1 - (others - rankdata(score[~positive])) / own.size
    return above, below


def _area(positive: BoolArray, score: Float64Array) -> float:
    """The area from whole and half ranks, so that one of 1 or 1/2 is that to the last bit."""
    own, others = int(positive.sum()), int((~positive).sum())
    total = float(rankdata(score)[positive].sum())
    return (total - own * (own + 1) / 2) / (own * others)


def delong_variance(positive: BoolArray, decision: Float64Array) -> float:
    """Return DeLong's variance of an area under the curve; ``nan`` with one sample of a class.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_samples,)
        Which samples are positive.
    decision : ndarray of shape (n_samples,)
        Values that rank the samples, higher for positives.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988), Comparing the areas under two or more correlated
    receiver operating characteristic curves, Biometrics 44(3), 837-845.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.metrics import delong_variance
    >>> delong_variance(np.array([True, True, False, False]), np.array([4.0, 2.0, 3.0, 1.0]))
    0.125
    """
    if min(positive.sum(), (~positive).sum()) < 2:
        return float("nan")
    parts = structural_components(positive, decision)
    return float(sum(part.var(ddof=1) / part.size for part in parts))


def _ranked(y_true: ArrayLike, *scores: ArrayLike) -> tuple[BoolArray, list[Float64Array]]:
    """Return which samples are positive and the values that rank them, checked."""
    positive = np.asarray(y_true).astype(bool).ravel()
    values = [np.asarray(score, dtype=np.float64).ravel() for score in scores]
    for value in values:
        if value.size != positive.size:
            raise ValueError(f"there are {positive.size} labels and {value.size} scores.")
        if not np.isfinite(value).all():
            raise ValueError("scores must be finite numbers.")
    if positive.all() or not positive.any():
        raise ValueError("y_true holds one class; an area under the curve needs both.")
    return positive, values


def delong_interval(y_true: ArrayLike, y_score: ArrayLike, *, level: float = 0.95) -> Interval:
    r"""Return the area under the ROC curve of an independent test set with its interval.

    DeLong's variance V, turned into a number of trials: the area A is treated as a proportion in
    :math:`\min(A (1 - A) / V, 2 n_{min})` trials, where :math:`n_{min}` is the size of the
    smaller class (:func:`sparsegsvp.evaluation.auc_interval` says why). The usual
    :math:`A \pm z \sqrt V` leaves [0, 1], and has no width at all at a perfect area.
    ``benchmarks/coverage.py --delong`` simulates what both cover.

    Parameters
    ----------
    y_true, y_score
        As `positive` and `decision` of :func:`delong_variance`; any array-like.
    level : float, default=0.95
        Nominal coverage.

    Examples
    --------
    >>> from sparsegsvp.metrics import delong_interval
    >>> found = delong_interval([0] * 20 + [1] * 20, range(40))
    >>> found.value, round(found.low, 3), found.high
    (1.0, 0.912, 1.0)
    """
    check_real("level", level, above=0, below=1)
    positive, (score,) = _ranked(y_true, y_score)
    return mean_area([(positive, score)], level=level)


def mean_area(parts: Sequence[tuple[BoolArray, Float64Array]], *, level: float) -> Interval:
    """Return the mean of areas on the same samples, each by its positives and its scores.

    The variance of a mean is at most the mean of the variances, which is taken.
    """
    area = float(np.mean([_area(*part) for part in parts]))
    variance = float(np.mean([delong_variance(*part) for part in parts]))
    smallest = min(min(positive.sum(), (~positive).sum()) for positive, _ in parts)
    if np.isnan(variance):
        variance = area * (1 - area) / smallest  # the largest that is possible
    trials = 2.0 * float(smallest)
    if variance > 0:
        trials = min(trials, area * (1 - area) / variance)
    return proportion_interval(area, trials, level=level)


@dataclass(frozen=True)
class PairedAreas(Record):
    """Two areas under the ROC curve on the same samples.

    Attributes
    ----------
    first, second : float
        The areas.
    difference : Interval
        First minus second.
    p_value : float or None
        Two-sided test of equal areas. None where the components do not spread at all although
        the areas differ: then DeLong's variance is zero, and says nothing.
    """

    first: float
    second: float
    difference: Interval
    p_value: float | None


def delong_test(
    y_true: ArrayLike, first: ArrayLike, second: ArrayLike, *, level: float = 0.95
) -> PairedAreas:
    """Compare two areas under the ROC curve on the same samples by DeLong's test.

    For models that were not fitted on these samples, and of which none is a part of the other
    with features added: for such nested models the test has too little power.

    Parameters
    ----------
    y_true : array-like of bool of shape (n_samples,)
        Which samples are positive; at least two of each class.
    first, second : array-like of shape (n_samples,)
        What the two models rank the samples by.
    level : float, default=0.95
        Nominal coverage of the interval.

    Examples
    --------
    >>> from sparsegsvp.metrics import delong_test
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> found = delong_test(y, [1, 2, 3, 5, 4, 6, 7, 8], [1, 2, 6, 4, 3, 5, 8, 7])
    >>> found.first, found.second, round(found.p_value, 2)
    (0.9375, 0.8125, 0.39)
    """
    check_real("level", level, above=0, below=1)
    positive, (a, b) = _ranked(y_true, first, second)
    if min(positive.sum(), (~positive).sum()) < 2:
        raise ValueError("the test needs at least two samples of each class.")
    parts = list(zip(structural_components(positive, a), structural_components(positive, b)))
    areas = [_area(positive, score) for score in (a, b)]
    gap = areas[0] - areas[1]
    error = float(np.sqrt(sum((x - z).var(ddof=1) / x.size for x, z in parts)))
    if error > 1e-12:
        p_value: float | None = float(2 * norm.sf(abs(gap) / error))
    else:
        p_value = 1.0 if abs(gap) <= 1e-12 else None
    difference = normal_interval(gap, error**2, level=level, bounds=(-1.0, 1.0))
    return PairedAreas(areas[0], areas[1], difference, p_value)


@dataclass(frozen=True)
class PairedLabels(Record):
    """Labels that two models gave to the same samples.

    Attributes
    ----------
    only_first, only_second : int
        Samples that only the first, or only the second, got right.
    n_samples : int
    p_value : float
        McNemar's exact test that both are right equally often.
    """

    only_first: int
    only_second: int
    n_samples: int
    p_value: float


def mcnemar_test(y_true: ArrayLike, first: ArrayLike, second: ArrayLike) -> PairedLabels:
    """Compare the labels of two models on the same samples by McNemar's exact test.

    Where both are right or both wrong, nothing is learnt; of the other samples each model should
    be right on half (two-sided binomial test).

    Parameters
    ----------
    y_true, first, second : array-like of shape (n_samples,)
        True labels, and those that the two models gave.

    Examples
    --------
    >>> from sparsegsvp.metrics import mcnemar_test
    >>> found = mcnemar_test([1] * 10, [1] * 10, [0] * 6 + [1] * 4)
    >>> found.only_first, found.only_second, found.p_value
    (6, 0, 0.03125)
    """
    y, a = _label_pair(y_true, first)
    _, b = _label_pair(y_true, second)
    right_a, right_b = a == y, b == y
    only_a, only_b = int(np.sum(right_a & ~right_b)), int(np.sum(~right_a & right_b))
    discordant = only_a + only_b
    p_value = float(binomtest(only_a, discordant).pvalue) if discordant else 1.0
    return PairedLabels(only_a, only_b, int(y.size), p_value)
