"""Intervals of rates from counts on independent samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta
from sklearn.utils import check_consistent_length, column_or_1d

from .._validate import check_real


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes
    ----------
    value : float
        The point estimate.
    low, high : float
        The ends of the interval.
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

    def to_dict(self) -> dict[str, float]:
        """Return the fields as a dictionary."""
        return asdict(self)


def clopper_pearson(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Return the exact (conservative) interval of a proportion.

    Parameters
    ----------
    successes, trials : int
        Counts, with ``0 <= successes <= trials`` and ``trials >= 1``.
    level : float, default=0.95
        Coverage, guaranteed for every true proportion.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from sparsegsvp.metrics import clopper_pearson
    >>> interval = clopper_pearson(10, 10)
    >>> round(interval.low, 4), interval.high
    (0.6915, 1.0)
    """
    check_real("level", level, above=0, below=1)
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"successes={successes} and trials={trials} are not counts of a sample.")
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, successes, trials - successes + 1)) if successes else 0.0
    high = (
        float(beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    )
    return Interval(successes / trials, low, high, level)


def balanced_accuracy_interval(
    y_true: ArrayLike, y_pred: ArrayLike, *, level: float = 0.95
) -> Interval:
    r"""Return the balanced accuracy on an independent test set with its interval.

    Balanced accuracy is the mean of the K recalls. Each recall gets a Clopper-Pearson
    interval at level :math:`\text{level}^{1/K}` (:math:`\sqrt{0.95}` for two classes);
    the classes are independent, so all K hold together with probability at least
    ``level``, and then so does their mean. Conservative, and right at 0 and 1.

    Not for cross-validation, where the predictions of different folds share training
    samples; see :func:`sparsegsvp.nested_evaluate`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    level : float, default=0.95
        Coverage.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from sparsegsvp.metrics import balanced_accuracy_interval
    >>> interval = balanced_accuracy_interval([0] * 20 + [1] * 20, [0] * 20 + [1] * 20)
    >>> interval.value, round(interval.low, 3), interval.high
    (1.0, 0.804, 1.0)
    """
    check_real("level", level, above=0, below=1)
    y, predicted = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y, predicted)
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError("y_true holds one class; balanced accuracy needs at least two.")
    parts = [
        clopper_pearson(
            int(np.sum(predicted[y == label] == label)),
            int(np.sum(y == label)),
            level=level ** (1 / classes.size),
        )
        for label in classes
    ]
    return Interval(
        float(np.mean([part.value for part in parts])),
        float(np.mean([part.low for part in parts])),
        float(np.mean([part.high for part in parts])),
        level,
    )
