"""Scores of labels and probabilities, every class counting the same; intervals and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, norm
from sklearn.utils import check_consistent_length, column_or_1d

from .._typing import Float64Array, IntArray, Record
from .._validate import check_real

#: Exceedances after which more draws would not change the conclusion.
MAX_EXCEEDANCES = 10

# --- intervals and p-values --------------------------------------------------------------


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


def clopper_pearson(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Return the exact (conservative) interval of a proportion.

    Parameters
    ----------
    successes, trials : int
        Counts, with ``0 <= successes <= trials`` and ``trials >= 1``.
    level : float, default=0.95
        Coverage, guaranteed for every true proportion.

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
    failures = trials - successes
    low = float(beta.ppf(tail, successes, failures + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, failures)) if failures else 1.0
    return Interval(successes / trials, low, high, level)


def proportion_interval(value: float, trials: float, *, level: float = 0.95) -> Interval:
    """Return the interval of a proportion in any number of trials, whole or not.

    Jeffreys' limits; where there is less than one hit or one miss they go over into Clopper and
    Pearson's, which are exact for a proportion of 0 or 1 (Brown, Cai and DasGupta, 2001, modify
    Jeffreys' interval like that).

    Parameters
    ----------
    value : float
        The proportion, from 0 to 1.
    trials : float
        The number of trials that it stands for, above 0.
    level : float, default=0.95
        Nominal coverage.

    References
    ----------
    Brown, Cai, DasGupta (2001), Interval estimation for a binomial proportion, Statistical
    Science 16(2), 101-133.

    Examples
    --------
    >>> from sparsegsvp.metrics import proportion_interval
    >>> found = proportion_interval(1.0, 40)
    >>> round(found.low, 3), found.high
    (0.912, 1.0)
    """
    tail = (1 - level) / 2
    hits, misses = value * trials, (1 - value) * trials
    half = min(hits, misses, 1.0) / 2
    low = float(beta.ppf(tail, hits + half, misses + 1 - half)) if hits > 0 else 0.0
    high = float(beta.ppf(1 - tail, hits + 1 - half, misses + half)) if misses > 0 else 1.0
    return Interval(value, low, high, level)


def normal_interval(
    value: float,
    variance: float,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """Return an estimate with the interval of the normal distribution, within bounds."""
    half = float(norm.ppf((1 + level) / 2) * np.sqrt(variance))
    low, high = max(bounds[0], value - half), min(bounds[1], value + half)
    return Interval(float(value), float(low), float(high), level)


def sequential_p_value(exceeds: Sequence[bool]) -> tuple[float, int, bool]:
    """Return p-value, number of draws it rests on, and whether the 10th exceedance ended them.

    ``exceeds`` says of each draw, in order, whether it scores at least as well as what was
    observed.

    Examples
    --------
    >>> from sparsegsvp.metrics.scores import sequential_p_value
    >>> sequential_p_value([False] * 18 + [True])
    (0.1, 19, False)
    >>> sequential_p_value([True] * 12)
    (1.0, 10, True)
    """
    hits = np.cumsum(exceeds, dtype=int)
    if hits.size and hits[-1] >= MAX_EXCEEDANCES:
        draws = int(np.argmax(hits >= MAX_EXCEEDANCES)) + 1
        return MAX_EXCEEDANCES / draws, draws, True
    return (1 + int(hits[-1] if hits.size else 0)) / (hits.size + 1), hits.size, False


# --- predicted labels --------------------------------------------------------------------


def _label_pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return true and predicted labels as vectors of one length."""
    y, predicted = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y, predicted)
    return y, predicted


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
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted labels.
    level : float, default=0.95
        Coverage.

    Examples
    --------
    >>> from sparsegsvp.metrics import balanced_accuracy_interval
    >>> interval = balanced_accuracy_interval([0] * 20 + [1] * 20, [0] * 20 + [1] * 20)
    >>> interval.value, round(interval.low, 3), interval.high
    (1.0, 0.804, 1.0)
    """
    check_real("level", level, above=0, below=1)
    y, predicted = _label_pair(y_true, y_pred)
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError("y_true holds one class; balanced accuracy needs at least two.")
    recalls = []
    for label in classes:
        own = predicted[y == label]
        right = int(np.sum(own == label))
        recalls.append(clopper_pearson(right, own.size, level=level ** (1 / classes.size)))
    value, low, high = (
        float(np.mean([getattr(recall, end) for recall in recalls]))
        for end in ("value", "low", "high")
    )
    return Interval(value, low, high, level)


def specificity_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the share of the negatives that are called negative, TN / (TN + FP).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted labels.
    pos_label : label, optional
        The positive class. By default the last of the sorted labels when there are two;
        with more than two, the mean over the classes of each one's specificity against
        the rest.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float
        ``nan`` when there are no negatives.

    Examples
    --------
    >>> from sparsegsvp.metrics import specificity_score
    >>> specificity_score([0, 0, 0, 1], [0, 0, 1, 1])
    0.666...
    """
    y, predicted = _label_pair(y_true, y_pred)
    w = _weights(sample_weight, y)
    labels = np.unique(np.concatenate([y, predicted]))
    if pos_label is not None:
        if pos_label not in labels:
            raise ValueError(f"pos_label={pos_label!r} is not among the labels {labels.tolist()}.")
        positives = labels[labels == pos_label]
    else:
        positives = labels[-1:] if labels.size <= 2 else labels
    values = []
    for label in positives:
        negative = y != label
        total = w[negative].sum()
        kept = w[negative & (predicted != label)].sum()
        values.append(kept / total if total > 0 else np.nan)
    return float(np.mean(values))


def _weights(sample_weight: ArrayLike | None, y: NDArray[Any]) -> Float64Array:
    """Return the weights of the samples, by default ones."""
    if sample_weight is None:
        return np.ones(y.size)
    w = np.asarray(sample_weight, dtype=np.float64)
    check_consistent_length(y, w)
    return w


# --- predicted probabilities -------------------------------------------------------------


def _class_weights(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[IntArray, Float64Array, Float64Array]:
    """Return class codes, probabilities (n, K) and weights that sum to 1/K' in each class."""
    y = column_or_1d(y_true)
    P = np.asarray(y_proba, dtype=np.float64)
    if P.ndim == 1:
        P = np.column_stack([1 - P, P])
    check_consistent_length(y, P)
    classes = np.unique(y) if labels is None else np.unique(np.asarray(labels))
    if classes.size != P.shape[1]:
        raise ValueError(
            f"y_proba has {P.shape[1]} columns but there are {classes.size} classes; "
            "pass labels with every class, in sorted order of the columns."
        )
    codes = np.searchsorted(classes, y)
    if not np.array_equal(classes[np.minimum(codes, classes.size - 1)], y):
        raise ValueError("y_true holds a label that is not in labels.")
    if not np.all((P >= 0) & (P <= 1)):
        raise ValueError("y_proba must hold probabilities between 0 and 1.")
    w = _weights(sample_weight, y)
    totals = np.bincount(codes, weights=w, minlength=classes.size)
    present = totals > 0
    if not present.any():
        raise ValueError("sample_weight leaves no sample to score.")
    share = np.divide(1.0, totals, out=np.zeros_like(totals), where=present) / present.sum()
    return codes, P, w * share[codes]


def balanced_log_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    eps: float | None = None,
) -> float:
    r"""Return the balanced log loss: the mean over classes of each one's mean log loss.

    .. math:: \frac1K \sum_k \frac{1}{n_k} \sum_{i: y_i = k} -\log p_{ik}

    A constant guess of 1/K costs :math:`\log K` whatever the class sizes. Classes absent
    from ``y_true`` are left out of the mean.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probability of the last class, or of every class in sorted order. Rows are
        normalised to sum to 1.
    labels : array-like, optional
        All classes, needed when ``y_true`` may lack one.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples within their class.
    eps : float, optional
        Probabilities are kept within [eps, 1 - eps]; by default the rounding unit of the
        dtype of ``y_proba``.

    Returns
    -------
    float
        At least 0; smaller is better.

    Examples
    --------
    >>> from sparsegsvp.metrics import balanced_log_loss
    >>> round(balanced_log_loss([0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]), 4)
    0.6931
    """
    raw = np.asarray(y_proba)
    if eps is None:
        eps = float(np.finfo(raw.dtype if raw.dtype.kind == "f" else np.float64).eps)
    codes, P, w = _class_weights(y_true, raw, labels, sample_weight)
    P = P / P.sum(axis=1, keepdims=True)
    own = np.clip(P[np.arange(codes.size), codes], eps, 1 - eps)
    return float(-(w @ np.log(own)))


def balanced_brier_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the balanced Brier score: the mean over classes of each one's squared error.

    .. math:: \frac1K \sum_k \frac{1}{n_k} \sum_{i: y_i = k}
              \frac12 \sum_l (p_{il} - [l = k])^2

    For two classes the inner sum is :math:`(p_{i1} - y_i)^2`, so a constant 1/2 scores
    0.25; the range is 0 to 1 for any K.

    Parameters
    ----------
    y_true, y_proba, labels, sample_weight
        As in :func:`balanced_log_loss`, but rows are not normalised.

    Returns
    -------
    float
        Smaller is better.

    Examples
    --------
    >>> from sparsegsvp.metrics import balanced_brier_score
    >>> balanced_brier_score([0, 0, 0, 1], [0.0, 0.0, 0.0, 0.0])
    0.5
    """
    codes, P, w = _class_weights(y_true, y_proba, labels, sample_weight)
    target = np.eye(P.shape[1])[codes]
    return float(w @ np.sum((P - target) ** 2, axis=1) / 2)
