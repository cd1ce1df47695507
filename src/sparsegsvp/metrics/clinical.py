r"""Predictive values, thresholds and net benefit: the use of acting on a probability.

A study seldom holds as many positives as the world does, so everything here that depends on the
prevalence :math:`\pi` is put together from what does not: sensitivity and specificity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from .._typing import Float64Array, IntArray, Record
from .._validate import check_real
from .calibration import check_probabilities
from .scores import Interval, clopper_pearson

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

    found: list[Interval | None] = []
    parts = zip(*(values(*(getattr(r, end) for r in rates)) for end in ("value", "low", "high")))
    for value, low, high in parts:
        # at the ends of the intervals one of the rates lies within (0, 1), so both exist
        known = value is not None and low is not None and high is not None
        found.append(Interval(value, low, high, level) if known else None)
    return found[0], found[1]


# ------------------------------------------------------------------------- net benefit


@dataclass(frozen=True)
class DecisionCurve(Record):
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

    Examples
    --------
    >>> from sparsegsvp.metrics import net_benefit
    >>> round(float(net_benefit(0.9, 0.8, 0.1, 0.2)), 3)
    0.045
    """
    t = np.asarray(threshold, dtype=np.float64)
    alarms = (1 - np.asarray(specificity)) * (1 - prevalence)
    return np.asarray(prevalence * np.asarray(sensitivity) - alarms * t / (1 - t))


def decision_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    prevalence: float | None = None,
    thresholds: Sequence[float] | None = None,
) -> DecisionCurve:
    """Return the decision curve of probabilities.

    Parameters
    ----------
    y_true, y_proba, prevalence
        As in :func:`brier_score`.
    thresholds : sequence of float, optional
        From 0.01 to 0.99 in steps of 0.01 by default.

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
    y, p, share = check_probabilities(y_true, y_proba, prevalence)
    t = np.arange(1, 100) / 100 if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    found = threshold_counts(y, p, thresholds=t)
    s, c, odds = found.sensitivity, found.specificity, t / (1 - t)
    benefit = net_benefit(s, c, share, t)
    variance = (
        share**2 * s * (1 - s) / y.sum() + ((1 - share) * odds) ** 2 * c * (1 - c) / (~y).sum()
    )
    half = float(norm.ppf(0.975)) * np.sqrt(variance)
    everyone = net_benefit(1.0, 0.0, share, t)
    return DecisionCurve(share, t, benefit, benefit - half, benefit + half, everyone)


# -------------------------------------------------------------------------- thresholds

#: Probabilities that a table of thresholds shows.
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MOST = 200  # thresholds that are listed where none are given


@dataclass(frozen=True)
class ThresholdCounts(Record):
    """How many samples are called positive by acting from each of some probabilities on.

    All that depends on the prevalence follows from these counts, for any prevalence.

    Attributes
    ----------
    threshold : ndarray of shape (n,)
        Probabilities, rising.
    tp, fp, tn, fn : ndarray of shape (n,)
        True and false positives, true and false negatives.
    """

    threshold: Float64Array
    tp: IntArray
    fp: IntArray
    tn: IntArray
    fn: IntArray

    @property
    def sensitivity(self) -> Float64Array:
        """Share of the positives that are called so."""
        return self.tp / (self.tp + self.fn)

    @property
    def specificity(self) -> Float64Array:
        """Share of the negatives that are called so."""
        return self.tn / (self.tn + self.fp)


def threshold_counts(
    y_true: ArrayLike, y_proba: ArrayLike, *, thresholds: ArrayLike | None = None
) -> ThresholdCounts:
    """Count who is called positive by acting from each of some probabilities on.

    Parameters
    ----------
    y_true, y_proba
        As in :func:`brier_score`, for any prevalence.
    thresholds : array-like, optional
        Rising, between 0 and 1. By default every probability that occurs, since nothing changes
        between them; of more than 200, so many evenly spread ones.

    Examples
    --------
    >>> from sparsegsvp.metrics import threshold_counts
    >>> found = threshold_counts([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.6])
    >>> found.threshold.tolist(), found.tp.tolist(), found.fp.tolist()
    ([0.1, 0.4, 0.6], [2, 2, 1], [2, 1, 1])
    """
    y, p, _ = check_probabilities(y_true, y_proba)
    if thresholds is None:
        t = np.unique(p)
        t = t[np.unique(np.linspace(0, t.size - 1, min(t.size, _MOST)).round().astype(np.intp))]
    else:
        t = np.asarray(thresholds, dtype=np.float64)
        if not np.all((t > 0) & (t < 1)):
            raise ValueError("thresholds must lie between 0 and 1.")
    fn, tn = (np.searchsorted(np.sort(p[own]), t, side="left") for own in (y, ~y))
    return ThresholdCounts(t, y.sum() - fn, (~y).sum() - tn, tn, fn)


@dataclass(frozen=True)
class ThresholdRow:
    """Rates, predictive values and net benefit of acting from a probability on.

    Attributes
    ----------
    threshold : float
        The probability of the positive class, at the prevalence.
    own : bool
        Whether this is the threshold of the model's own labels.
    sensitivity, specificity : Interval
        Exact.
    ppv, npv : Interval or None
        Predictive values at the prevalence; None where no sample is called so.
    net_benefit : float
        In true positives per sample (`sparsegsvp.metrics.net_benefit`).
    """

    threshold: float
    own: bool
    sensitivity: Interval
    specificity: Interval
    ppv: Interval | None
    npv: Interval | None
    net_benefit: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return dict(vars(self))


def threshold_table(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    prevalence: float | None = None,
    own: float | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    level: float = 0.95,
) -> tuple[ThresholdRow, ...]:
    """Return rates, predictive values and net benefit at each of some thresholds.

    Parameters
    ----------
    y_true, y_proba, prevalence
        As in :func:`brier_score`.
    own : float, optional
        The threshold of the model's own labels, shown too and marked: the prevalence, if they
        are those that are likelier at equal class shares.
    thresholds : sequence of float, default=(0.05, 0.1, 0.2, ..., 0.9)
        Between 0 and 1.
    level : float, default=0.95
        Coverage of the intervals.

    Examples
    --------
    >>> from sparsegsvp.metrics import threshold_table
    >>> row, = threshold_table([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.6], thresholds=[0.5])
    >>> row.sensitivity.value, row.ppv.value, row.net_benefit
    (0.5, 0.5, 0.0)
    """
    y, p, share = check_probabilities(y_true, y_proba, prevalence)
    at = sorted({*thresholds, *([] if own is None else [own])})
    counts = threshold_counts(y, p, thresholds=at)
    ones, zeros = int(y.sum()), int((~y).sum())
    rows = []
    for t, tp, tn in zip(at, counts.tp.tolist(), counts.tn.tolist()):
        positive, negative = predictive_values((tp, ones), (tn, zeros), share, level=level)
        rows.append(
            ThresholdRow(
                threshold=t,
                own=t == own,
                sensitivity=clopper_pearson(tp, ones, level=level),
                specificity=clopper_pearson(tn, zeros, level=level),
                ppv=positive,
                npv=negative,
                net_benefit=float(net_benefit(tp / ones, tn / zeros, share, t)),
            )
        )
    return tuple(rows)
