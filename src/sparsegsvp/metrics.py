r"""Scores of classifiers and of the stability of feature panels.

Every class counts the same in these scores, whatever its share of the samples: the
probabilities of this package are for equal priors, and a score that follows the
prevalence of one study does not carry over to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, norm
from sklearn.utils import check_consistent_length, column_or_1d

__all__ = [
    "CalibrationCurve",
    "Interval",
    "StabilityIndex",
    "average_jaccard",
    "balanced_accuracy_interval",
    "balanced_brier_score",
    "balanced_calibration_curve",
    "balanced_log_loss",
    "clopper_pearson",
    "nogueira_stability",
    "specificity_score",
]


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


@dataclass(frozen=True)
class StabilityIndex:
    """Nogueira's stability index with its asymptotic confidence interval.

    Attributes
    ----------
    value : float
        1 for identical panels, about 0 for panels drawn at random; ``nan`` where it is
        undefined (every panel empty, or every panel full).
    variance : float
        Estimated variance of ``value``.
    low, high : float
        Ends of the interval, not clipped above 1.
    level : float
        Nominal coverage of the interval.

    Examples
    --------
    >>> from sparsegsvp.metrics import nogueira_stability
    >>> nogueira_stability([[0, 1], [0, 1], [0, 1]], n_features=10).value
    1.0
    """

    value: float
    variance: float
    low: float
    high: float
    level: float = 0.95

    def to_dict(self) -> dict[str, float]:
        """Return the fields as a dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class CalibrationCurve:
    """Observed against predicted frequency of the positive class, classes weighted equally.

    Attributes
    ----------
    predicted : ndarray of shape (n_bins,)
        Weighted mean predicted probability of each non-empty bin.
    observed : ndarray of shape (n_bins,)
        Weighted share of the positive class in each bin.
    weight : ndarray of shape (n_bins,)
        Share of the total weight in each bin; sums to 1.
    count : ndarray of shape (n_bins,)
        Number of samples in each bin.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    weight: NDArray[np.float64]
    count: NDArray[np.int64]

    def to_dict(self) -> dict[str, list[float]]:
        """Return the fields as lists."""
        return {name: np.asarray(value).tolist() for name, value in asdict(self).items()}


# --------------------------------------------------------------------------- stability


def _is_indicator(selections: Any) -> bool:
    return isinstance(selections, np.ndarray) and selections.ndim == 2


def _indicator(selections: Any, n_features: int | None) -> NDArray[np.bool_]:
    """Return the (n_panels, n_features) indicator matrix of a collection of panels."""
    if _is_indicator(selections):
        Z = np.asarray(selections)
        if Z.dtype != bool and not np.isin(Z, (0, 1)).all():
            raise ValueError(
                "selections given as a matrix must hold booleans or 0/1, one row per panel; "
                "pass lists of feature indices with n_features otherwise."
            )
        if n_features is not None and n_features != Z.shape[1]:
            raise ValueError(
                f"n_features={n_features} contradicts the {Z.shape[1]} columns of selections."
            )
        return Z.astype(bool)
    if n_features is None:
        raise ValueError(
            "n_features is needed when panels are given as lists of feature indices: "
            "the index depends on how many features there were to choose from."
        )
    panels = [np.asarray(list(panel), dtype=np.intp) for panel in selections]
    Z = np.zeros((len(panels), n_features), dtype=bool)
    for row, panel in zip(Z, panels):
        if panel.size and (panel.min() < 0 or panel.max() >= n_features):
            raise ValueError(f"feature indices must lie in 0..{n_features - 1}.")
        row[panel] = True
    return Z


def average_jaccard(selections: Sequence[Iterable[Any]] | NDArray[Any]) -> float:
    r"""Mean Jaccard similarity over all pairs of panels.

    .. math:: J = \frac{2}{N(N-1)} \sum_{i<j} \frac{|S_i \cap S_j|}{|S_i \cup S_j|}

    Two empty panels are identical, so their similarity is 1; an empty and a non-empty
    one have nothing in common, so theirs is 0. Unlike :func:`nogueira_stability` it is
    not corrected for chance: large panels agree by accident.

    Parameters
    ----------
    selections : sequence of N collections, or boolean ndarray of shape (N, n_features)
        The panels, as collections of feature indices or names, or as an indicator matrix.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from sparsegsvp.metrics import average_jaccard
    >>> average_jaccard([{"TP53", "KRAS"}, {"TP53"}, {"TP53"}])
    0.666...
    """
    if _is_indicator(selections):
        panels = [frozenset(np.flatnonzero(row)) for row in _indicator(selections, None)]
    else:
        panels = [frozenset(panel) for panel in selections]
    n = len(panels)
    if n < 2:
        raise ValueError("average_jaccard needs at least two panels to compare.")
    total = 0.0
    for i, left in enumerate(panels):
        for right in panels[i + 1 :]:
            union = len(left | right)
            total += len(left & right) / union if union else 1.0
    return total / (n * (n - 1) / 2)


def nogueira_stability(
    selections: Sequence[Iterable[int]] | NDArray[Any],
    n_features: int | None = None,
    *,
    level: float = 0.95,
) -> StabilityIndex:
    r"""Chance-corrected stability of feature selection, with its interval.

    With :math:`p_f` the frequency of feature f over M panels of mean size
    :math:`\bar k` among d features,

    .. math::
        \hat\Phi = 1 - \frac{\frac1d \sum_f \frac{M}{M-1} p_f (1 - p_f)}
                            {\frac{\bar k}{d} (1 - \frac{\bar k}{d})}

    which is 1 for identical panels and has expectation 0 for random ones, of any sizes.
    Its variance is estimated by

    .. math::
        v = \frac{4}{M^2} \sum_i (\hat\Phi_i - \bar\Phi)^2, \quad
        \hat\Phi_i = \frac{\frac1d \sum_f z_{if} p_f - \frac{k_i \bar k}{d^2}
            + \frac{\hat\Phi}{2}\bigl(\frac{2 k_i \bar k}{d^2} - \frac{k_i}{d}
            - \frac{\bar k}{d} + 1\bigr)}{\frac{\bar k}{d}(1 - \frac{\bar k}{d})}

    The interval supposes independent panels. Panels from overlapping resamples of the same
    samples (folds, subsamples, bootstraps) are not, and then it is too narrow.

    Parameters
    ----------
    selections : sequence of M collections of indices, or boolean ndarray (M, n_features)
        The panels.
    n_features : int, optional
        Number of features that could be chosen; needed when panels are index collections.
    level : float, default=0.95
        Nominal coverage of the interval.

    Returns
    -------
    StabilityIndex
        Value, variance and interval. All are ``nan`` when every panel is empty or every
        panel holds all features, where the index is undefined.

    References
    ----------
    Nogueira, Sechidis, Brown (2018), On the stability of feature selection algorithms,
    JMLR 18(174), 1-54, definition 4 (the index) and corollary 9 (its interval).

    Examples
    --------
    >>> from sparsegsvp.metrics import nogueira_stability
    >>> index = nogueira_stability([[0, 1], [0, 2], [0, 1]], n_features=20)
    >>> round(index.value, 3)
    0.63
    """
    _check_level(level)
    Z = _indicator(selections, n_features)
    M, d = Z.shape
    if M < 2:
        raise ValueError("nogueira_stability needs at least two panels to compare.")
    p = Z.mean(axis=0)
    sizes = Z.sum(axis=1)
    k = float(sizes.mean())
    chance = k / d * (1 - k / d)
    if chance == 0:
        return StabilityIndex(np.nan, np.nan, np.nan, np.nan, level)
    value = 1 - float(np.mean(p * (1 - p))) * M / (M - 1) / chance
    terms = (
        Z @ p / d - sizes * k / d**2 + value / 2 * (2 * sizes * k / d**2 - sizes / d - k / d + 1)
    ) / chance
    variance = 4 / M**2 * float(np.sum((terms - terms.mean()) ** 2))
    half = float(norm.ppf((1 + level) / 2)) * np.sqrt(variance)
    return StabilityIndex(value, variance, float(value - half), float(value + half), level)


# ------------------------------------------------------------------------- counts


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must lie strictly between 0 and 1.")


def clopper_pearson(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Exact (conservative) interval of a proportion.

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
    _check_level(level)
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
    r"""Balanced accuracy on an independent test set, with an interval.

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
    _check_level(level)
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


def specificity_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Share of the negatives that are called negative, TN / (TN + FP).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    pos_label : label, optional
        The positive class. By default the last of the sorted labels when there are two;
        with more than two, the mean over the classes of each one's specificity against
        the rest.
    sample_weight : array-like of shape (n_samples,), optional
        Sample weights.

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
    y, predicted = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y, predicted)
    w = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    check_consistent_length(y, w)
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


# ------------------------------------------------------------------- probabilities


def _class_weights(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
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
    w = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    check_consistent_length(y, w)
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
    r"""Class-balanced log loss: the mean over classes of each class's mean log loss.

    .. math:: \frac1K \sum_k \frac{1}{n_k} \sum_{i: y_i = k} -\log p_{ik}

    A constant guess of 1/K costs :math:`\log K` whatever the class sizes. Classes absent
    from ``y_true`` are left out of the mean.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
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
    r"""Class-weighted Brier score: the mean over classes of each class's squared error.

    .. math:: \frac1K \sum_k \frac{1}{n_k} \sum_{i: y_i = k}
              \frac12 \sum_l (p_{il} - [l = k])^2

    For two classes the inner sum is :math:`(p_{i1} - y_i)^2`, so a constant 1/2 scores
    0.25; the range is 0 to 1 for any K.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probability of the last class, or of every class in sorted order.
    labels : array-like, optional
        All classes, needed when ``y_true`` may lack one.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples within their class.

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
    target = np.zeros_like(P)
    target[np.arange(codes.size), codes] = 1
    return float(w @ np.sum((P - target) ** 2, axis=1) / 2)


def balanced_calibration_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: str = "quantile",
    sample_weight: ArrayLike | None = None,
) -> CalibrationCurve:
    """Calibration curve of two classes, each class carrying half of the weight.

    Probabilities for equal priors are calibrated when, in a population with as many
    positives as negatives, the share of positives among samples given probability p is p.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, two classes; the last in sorted order is positive.
    y_proba : array-like of shape (n_samples,)
        Probability of the positive class.
    n_bins : int, default=10
        Number of bins; empty ones, and those that ties make equal, are left out.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with equal counts, or of equal width.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples within their class.

    Returns
    -------
    CalibrationCurve

    Examples
    --------
    >>> from sparsegsvp.metrics import balanced_calibration_curve
    >>> curve = balanced_calibration_curve([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.75], n_bins=2)
    >>> curve.observed.tolist(), curve.weight.tolist()
    ([0.0, 1.0], [0.5, 0.5])
    """
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins} must be at least 1.")
    p = column_or_1d(y_proba).astype(np.float64)
    codes, _, w = _class_weights(y_true, p, None, sample_weight)
    grid = np.linspace(0, 1, n_bins + 1)[1:-1]
    if strategy == "quantile":
        edges = np.unique(np.quantile(p, grid))
    elif strategy == "uniform":
        edges = grid
    else:
        raise ValueError(f"strategy={strategy!r} must be 'quantile' or 'uniform'.")
    bins = np.searchsorted(edges, p)
    size = edges.size + 1
    weight: NDArray[np.float64] = np.bincount(bins, weights=w, minlength=size).astype(np.float64)
    keep = weight > 0
    predicted = np.bincount(bins, weights=w * p, minlength=size)[keep] / weight[keep]
    observed = np.bincount(bins, weights=w * codes, minlength=size)[keep] / weight[keep]
    count = np.bincount(bins, minlength=size)[keep].astype(np.int64)
    return CalibrationCurve(predicted, observed, weight[keep], count)
