r"""Calibration of probabilities, and probabilities for other shares of the classes.

A probability is for some shares of the classes: those of the training samples, unless the model
weights the classes. Before probabilities are compared with what was observed they are moved to the
shares of the samples observed (`move_prior`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn import calibration as sk_calibration
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_consistent_length, column_or_1d

from .._typing import BoolArray, Float64Array, Record
from .intervals import Interval, normal_interval

# Probabilities of exactly 0 or 1 have no log odds; these stand for them.
_CLOSEST = 1e-10


def check_probabilities(y_true: ArrayLike, y_proba: ArrayLike) -> tuple[BoolArray, Float64Array]:
    """Return which samples are positive and their probabilities; both classes must be there."""
    y = np.asarray(column_or_1d(y_true)).astype(bool)
    p = np.asarray(column_or_1d(y_proba), dtype=np.float64)
    check_consistent_length(y, p)
    if y.all() or not y.any():
        raise ValueError("y_true holds one class; both are needed.")
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("y_proba must hold probabilities between 0 and 1.")
    return y, p


def move_prior(y_proba: ArrayLike, prior: Any, to: Any) -> Float64Array:
    """Move probabilities from one share of the classes to another.

    Each is multiplied by the ratio of the shares, and those of a sample are scaled to sum to 1;
    for two classes that multiplies the odds.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of all classes, or of the positive one of two.
    prior, to : "equal", float or array-like of shape (n_classes,)
        The shares that they are for, and that they are to be for; a number is the share of the
        last of two classes.

    Returns
    -------
    ndarray of the shape of `y_proba`

    Examples
    --------
    >>> from sparsegsvp.metrics import move_prior
    >>> move_prior([0.5, 0.9], "equal", 0.1).round(2).tolist()
    [0.1, 0.5]
    """
    given = np.asarray(y_proba, dtype=np.float64)
    table = np.column_stack([1 - given, given]) if given.ndim == 1 else given
    old, new = (_shares(name, s, table.shape[1]) for name, s in (("prior", prior), ("to", to)))
    moved = table * (new / old)
    total = moved.sum(axis=1, keepdims=True)
    moved = np.divide(moved, total, out=table.copy(), where=total > 0)
    return moved[:, 1] if given.ndim == 1 else moved


def _shares(name: str, given: Any, n_classes: int) -> Float64Array:
    if isinstance(given, str):
        if given != "equal":
            raise ValueError(f'{name} must be "equal", a share or one share for each class.')
        return np.full(n_classes, 1 / n_classes)
    shares = np.asarray(given, dtype=np.float64)
    if shares.ndim == 0 and n_classes == 2:
        shares = np.array([1 - shares, shares])
    if shares.shape != (n_classes,) or not np.all(shares > 0) or abs(shares.sum() - 1) > 1e-6:
        raise ValueError(
            f"{name} must hold {n_classes} shares above 0 that sum to 1, got {given!r}."
        )
    return shares


@dataclass(frozen=True)
class Calibration(Record):
    """A logistic regression of the class on the log odds that were predicted.

    Attributes
    ----------
    intercept : Interval
        With the slope held at 1: 0 where probabilities are right on the whole, above 0 where they
        are too low. Its exponential multiplies the odds.
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
    y_true: ArrayLike, y_proba: ArrayLike, *, weight: float = 1.0, level: float = 0.95
) -> Calibration:
    r"""Return intercept and slope of the calibration of probabilities.

    Maximum likelihood of :math:`\operatorname{logit} P(y = 1) = a + b \operatorname{logit} p`. The
    variance of the intercept is lessened by :math:`1 / n_1 + 1 / n_0`: it does not depend on how
    many samples of each class there happen to be (Prentice and Pyke, 1979).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Which samples are positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive class, for its share among these samples (`move_prior`).
    weight : float, default=1.0
        What each row counts for, where rows repeat samples: 1 over the number of repeats.
    level : float, default=0.95
        Nominal coverage of the intervals.

    Examples
    --------
    >>> from sparsegsvp.metrics import calibration_line
    >>> y = [0] * 10 + [1] * 10
    >>> line = calibration_line(y, ([0.01] * 8 + [0.99] * 2) + ([0.01] * 2 + [0.99] * 8))
    >>> round(line.intercept.value, 6), round(line.slope.value, 2)
    (0.0, 0.3)
    """
    y, p = check_probabilities(y_true, y_proba)
    x = logit(np.clip(p, _CLOSEST, 1 - _CLOSEST))
    reach = float(np.abs(x).max()) + 50.0
    shift = float(brentq(lambda a: float(expit(x + a).sum()) - y.sum(), -reach, reach))
    curvature = weight * float(np.sum(expit(x + shift) * expit(-x - shift)))
    counted = (1 / int(y.sum()) + 1 / int((~y).sum())) / weight
    variance = max(1 / max(curvature, 1e-300) - counted, 0.0)
    intercept = normal_interval(shift, variance, level=level)
    if x[y].min() >= x[~y].max() or x[y].max() <= x[~y].min():  # also where all are equal
        return Calibration(intercept, None, None)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:, None], y)
    slope, offset = float(model.coef_[0, 0]), float(model.intercept_[0])
    mean = expit(slope * x + offset)
    design = np.column_stack([np.ones(y.size), x]) * np.sqrt(weight * mean * (1 - mean))[:, None]
    error = float(np.linalg.inv(design.T @ design)[1, 1])
    return Calibration(intercept, normal_interval(slope, error, level=level), offset)


def calibration_curve(
    y_true: ArrayLike, y_proba: ArrayLike, *, n_bins: int = 5
) -> dict[str, Float64Array]:
    """Return observed against predicted share of positives, in bins of equal counts.

    Parameters
    ----------
    y_true, y_proba
        As in `calibration_line`.
    n_bins : int, default=5
        Number of bins; those that ties make equal are left out.

    Returns
    -------
    dict of columns
        ``predicted``, ``observed`` and ``count``.

    Examples
    --------
    >>> from sparsegsvp.metrics import calibration_curve
    >>> curve = calibration_curve([0, 0, 1, 1], [0.2, 0.2, 0.7, 0.7], n_bins=2)
    >>> curve["observed"].tolist(), curve["count"].tolist()
    ([0.0, 1.0], [2, 2])
    """
    y, p = check_probabilities(y_true, y_proba)
    observed, predicted = sk_calibration.calibration_curve(y, p, n_bins=n_bins, strategy="quantile")
    # the bins of scikit-learn's strategy, for the counts that it does not return
    edges = np.percentile(p, np.linspace(0, 100, n_bins + 1))
    count = np.bincount(np.searchsorted(edges[1:-1], p), minlength=n_bins)
    return {"predicted": predicted, "observed": observed, "count": count[count > 0]}
