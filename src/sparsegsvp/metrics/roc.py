"""Areas under the ROC curve with DeLong's variance, from ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from .._typing import BoolArray, Float64Array
from .intervals import Interval, proportion_interval


def _ranked(y_true: ArrayLike, y_score: ArrayLike) -> tuple[BoolArray, Float64Array]:
    positive = np.asarray(y_true).astype(bool).ravel()
    score = np.asarray(y_score, dtype=np.float64).ravel()
    if score.size != positive.size:
        raise ValueError(f"there are {positive.size} labels and {score.size} scores.")
    if not np.isfinite(score).all():
        raise ValueError("scores must be finite numbers.")
    if positive.all() or not positive.any():
        raise ValueError("y_true holds one class; an area under the curve needs both.")
    return positive, score


def delong_variance(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Return DeLong's variance of an area under the curve; ``nan`` with one sample of a class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Which samples are positive: booleans, or 0 and 1.
    y_score : array-like of shape (n_samples,)
        Values that rank the samples, higher for positives.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988), Biometrics 44(3), 837-845.

    Examples
    --------
    >>> from sparsegsvp.metrics import delong_variance
    >>> delong_variance([1, 1, 0, 0], [4.0, 2.0, 3.0, 1.0])
    0.125
    """
    positive, score = _ranked(y_true, y_score)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if min(ones, zeros) < 2:
        return float("nan")
    ranks = rankdata(score)
    above = (ranks[positive] - rankdata(score[positive])) / zeros
    below = (ranks[~positive] - rankdata(score[~positive])) / ones
    return float(above.var(ddof=1) / ones + below.var(ddof=1) / zeros)


def delong_interval(y_true: ArrayLike, y_score: ArrayLike, *, level: float = 0.95) -> Interval:
    r"""Return the area under the ROC curve of an independent test set with its interval.

    The area A is treated as a proportion in :math:`\min(A (1 - A) / V, 2 n_{min})` trials, V being
    DeLong's variance and :math:`n_{min}` the size of the smaller class: the usual :math:`A \pm z
    \sqrt V` leaves [0, 1], and has no width at all at a perfect area.

    Parameters
    ----------
    y_true, y_score
        As in `delong_variance`.
    level : float, default=0.95
        Nominal coverage.

    Examples
    --------
    >>> from sparsegsvp.metrics import delong_interval
    >>> found = delong_interval([0] * 20 + [1] * 20, range(40))
    >>> found.value, round(found.low, 3), found.high
    (1.0, 0.912, 1.0)
    """
    return mean_area([_ranked(y_true, y_score)], level=level)


def area(positive: BoolArray, score: Float64Array) -> float:
    """Return the area under the curve, ties counting one half."""
    ones, zeros = int(positive.sum()), int((~positive).sum())
    return (float(rankdata(score)[positive].sum()) - ones * (ones + 1) / 2) / (ones * zeros)


def mean_area(parts: Sequence[tuple[BoolArray, Float64Array]], *, level: float = 0.95) -> Interval:
    """Return the mean of areas on the same samples, each by its positives and its scores.

    The variance of a mean is at most the mean of the variances, which is taken.
    """
    value = float(np.mean([area(*part) for part in parts]))
    variance = float(np.mean([delong_variance(*part) for part in parts]))
    smallest = min(min(positive.sum(), (~positive).sum()) for positive, _ in parts)
    if np.isnan(variance):
        variance = value * (1 - value) / smallest  # the largest that is possible
    trials = 2.0 * float(smallest)
    if variance > 0 and 0 < value < 1:
        trials = min(trials, value * (1 - value) / variance)
    return proportion_interval(value, trials, level=level)
