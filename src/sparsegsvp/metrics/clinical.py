r"""Probabilities: their prior, calibration, thresholds and the use of acting on them.

A probability is for some shares of the classes: those of the training samples, unless the model
weights the classes. Before probabilities are compared with what was observed they are moved to the
shares of the samples observed (`move_prior`). A study seldom holds as many positives as the world
does, so everything that depends on the prevalence :math:`\pi` is put together from what does not:
sensitivity and specificity. Tables are dictionaries of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_consistent_length, column_or_1d

from .._typing import BoolArray, Float64Array, Record
from .._validate import check_real
from .intervals import Interval, normal_interval, proportion_interval

# Probabilities of exactly 0 or 1 have no log odds; these stand for them.
_CLOSEST = 1e-10
#: Probabilities that a table of thresholds shows.
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MOST = 200  # thresholds, evenly spread, that are listed where none are given


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
    k = table.shape[1]
    old, new = class_shares("prior", prior, k), class_shares("to", to, k)
    moved = table * (new / old)
    total = moved.sum(axis=1, keepdims=True)
    moved = np.divide(moved, total, out=table.copy(), where=total > 0)
    return moved[:, 1] if given.ndim == 1 else moved


def class_shares(name: str, given: Any, n_classes: int) -> Float64Array:
    """Return the share of each class, given as in `move_prior`."""
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
    """

    intercept: Interval
    slope: Interval | None


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
        return Calibration(intercept, None)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:, None], y)
    slope, offset = float(model.coef_[0, 0]), float(model.intercept_[0])
    mean = expit(slope * x + offset)
    design = np.column_stack([np.ones(y.size), x]) * np.sqrt(weight * mean * (1 - mean))[:, None]
    error = float(np.linalg.inv(design.T @ design)[1, 1])
    return Calibration(intercept, normal_interval(slope, error, level=level))


def predictive_values(
    sensitivity: Interval, specificity: Interval, prevalence: float, *, correlation: float = 0.0
) -> dict[str, Interval]:
    r"""Return positive and negative predictive value at a prevalence, with intervals.

    By Bayes' rule from sensitivity s and specificity c: :math:`\pi s / (\pi s + (1-\pi)(1-c))`
    and :math:`(1-\pi) c / ((1-\pi) c + \pi (1-s))`. The log odds of both are sums, as
    :math:`\log s - \log (1 - c)`; the limits of a sum follow from those of its parts, a and b away
    from the values, as :math:`\sqrt{a^2 + b^2 + 2 \rho a b}`.

    Parameters
    ----------
    sensitivity, specificity : Interval
        The rates.
    prevalence : float
        Share of the positive class where the model is used.
    correlation : float, default=0.0
        That of the two rates, :math:`\rho`: 0 for one model and samples that it has not seen, more
        where both depend on how the model came out. At 1 the intervals run from the values at both
        lower to those at both upper ends.

    Returns
    -------
    dict
        ``ppv`` and ``npv``; one is left out where no sample at all is called so.

    References
    ----------
    Zou, Donner (2008), Construction of confidence limits about effect measures: a general approach,
    Statistics in Medicine 27(10), 1693-1702.

    Examples
    --------
    >>> from sparsegsvp.metrics import exact_interval, predictive_values
    >>> rates = [exact_interval(18, 20), exact_interval(38, 40)]
    >>> found = predictive_values(*rates, 0.05)
    >>> round(found["ppv"].value, 3), round(found["npv"].value, 3)
    (0.486, 0.994)
    """
    check_real("prevalence", prevalence, above=0, below=1)
    check_real("correlation", correlation, least=-1, most=1)
    odds = float(logit(prevalence))
    result = {}
    for name, a, b, prior in (
        ("ppv", sensitivity, specificity, odds),
        ("npv", specificity, sensitivity, -odds),
    ):
        if a.value == 0 and b.value == 1:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.log([a.value, a.low, a.high])
            wrong = np.log1p([-b.value, -b.low, -b.high])
            value, *ends = right - wrong + prior
            first, second = np.abs(right[1:] - right[0]), np.abs(wrong[1:] - wrong[0])
            away = np.sqrt(first**2 + second**2 + 2 * correlation * first * second)
            low, high = value - away[0], value + away[1]
        # a rate of 0 or 1 has no log odds: then the ends of both rates
        low, high = (expit(x if np.isfinite(x) else end) for x, end in zip((low, high), ends))
        result[name] = Interval(float(expit(value)), float(low), float(high), sensitivity.level)
    return result


def net_benefit(
    sensitivity: Any, specificity: Any, prevalence: float, threshold: Any
) -> Float64Array:
    r"""Return :math:`\pi s - (1 - \pi) (1 - c)\, t / (1 - t)`, in true positives per sample.

    Whoever acts from a probability t on holds one true positive worth (1 - t) / t false ones.

    Examples
    --------
    >>> from sparsegsvp.metrics import net_benefit
    >>> round(float(net_benefit(0.9, 0.8, 0.1, 0.2)), 3)
    0.045
    """
    t = np.asarray(threshold, dtype=np.float64)
    alarms = (1 - np.asarray(specificity)) * (1 - prevalence)
    return np.asarray(prevalence * np.asarray(sensitivity) - alarms * t / (1 - t))


def threshold_counts(
    y_true: ArrayLike, y_proba: ArrayLike, thresholds: ArrayLike | None = None
) -> dict[str, Any]:
    """Return tp, fp, tn and fn of acting from each of some probabilities on."""
    y, p = check_probabilities(y_true, y_proba)
    if thresholds is None:  # all that occur, since nothing changes between them
        t = np.unique(p)
        kept = np.linspace(0, t.size - 1, min(t.size, _MOST)).round().astype(np.intp)
        middle = min(np.searchsorted(t, 0.5), t.size - 1)  # where labels change
        t = t[np.unique([*kept, middle])]
    else:
        t = np.asarray(thresholds, dtype=np.float64)
        if not np.all((t > 0) & (t < 1)):
            raise ValueError("thresholds must lie between 0 and 1.")
    fn, tn = (np.searchsorted(np.sort(p[part]), t, side="left") for part in (y, ~y))
    return {"threshold": t, "tp": y.sum() - fn, "fp": (~y).sum() - tn, "tn": tn, "fn": fn}


def decision_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    prior: Any,
    prevalence: float,
    trials: tuple[float, float] | None = None,
    correlation: float = 0.0,
    level: float = 0.95,
) -> dict[str, Float64Array]:
    """Return net benefit against the probability from which on one would act.

    Parameters
    ----------
    y_true, y_proba
        As in `calibration_line`.
    prior : "equal" or float
        The share of the positive class that the probabilities are for.
    prevalence : float
        The share where the model is used: probabilities are moved there.
    trials : (float, float), optional
        Independent positives and negatives, where rows repeat samples or come in groups.
    correlation : float, default=0.0
        That of sensitivity and specificity.
    level : float, default=0.95
        Pointwise coverage, by the normal distribution.

    Returns
    -------
    dict of columns
        ``threshold`` (0.01 to 0.99), ``net_benefit``, ``low``, ``high``, ``treat_all``; acting
        on no one has a net benefit of 0.

    Examples
    --------
    >>> from sparsegsvp.metrics import decision_curve
    >>> p = [0.1, 0.2, 0.6, 0.7]
    >>> curve = decision_curve([0, 0, 0, 1], p, prior=0.25, prevalence=0.25)
    >>> float(curve["net_benefit"][49]), float(curve["treat_all"][49])
    (0.0, -0.5)
    """
    check_real("prevalence", prevalence, above=0, below=1)
    y, p = check_probabilities(y_true, y_proba)
    t = np.arange(1, 100) / 100
    s, c = _rates(threshold_counts(y, move_prior(p, prior, prevalence), t))
    ones, zeros = trials or (float(y.sum()), float((~y).sum()))
    benefit = net_benefit(s, c, prevalence, t)
    right = prevalence * np.sqrt(s * (1 - s) / ones)
    wrong = (1 - prevalence) * t / (1 - t) * np.sqrt(c * (1 - c) / zeros)
    variance = right**2 + wrong**2 + 2 * correlation * right * wrong
    half = float(norm.ppf((1 + level) / 2)) * np.sqrt(variance)
    columns = {"threshold": t, "net_benefit": benefit, "low": benefit - half}
    return columns | {"high": benefit + half, "treat_all": net_benefit(1.0, 0.0, prevalence, t)}


def threshold_table(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    prior: Any,
    prevalence: float,
    own: float | None = None,
    trials: tuple[float, float] | None = None,
    correlation: float = 0.0,
    level: float = 0.95,
) -> dict[str, list[Any]]:
    """Return rates, predictive values and net benefit at thresholds of 0.05, 0.1, 0.2, ..., 0.9.

    Parameters
    ----------
    y_true, y_proba, prior, prevalence, trials, correlation, level
        As in `decision_curve`.
    own : float, optional
        The threshold of the model's own labels, at the prevalence: shown too and marked.

    Returns
    -------
    dict of columns
        ``threshold``, ``own``; ``sensitivity``, ``specificity``, ``ppv`` and ``npv``, each with
        ``_low`` and ``_high``, ``nan`` where no sample is called so; ``net_benefit``.

    Examples
    --------
    >>> from sparsegsvp.metrics import threshold_table
    >>> table = threshold_table([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.6], prior=0.5, prevalence=0.5)
    >>> at = table["threshold"].index(0.5)
    >>> table["sensitivity"][at], table["ppv"][at], table["net_benefit"][at]
    (0.5, 0.5, 0.0)
    """
    y, p = check_probabilities(y_true, y_proba)
    at = sorted({*THRESHOLDS, *(() if own is None else (own,))})
    s, c = _rates(threshold_counts(y, move_prior(p, prior, prevalence), at))
    ones, zeros = trials or (float(y.sum()), float((~y).sum()))
    rows = []
    for t, sensitivity, specificity in zip(at, s.tolist(), c.tolist()):
        pairs = ((sensitivity, ones), (specificity, zeros))
        rates = [proportion_interval(*pair, level=level) for pair in pairs]
        named = dict(zip(("sensitivity", "specificity"), rates))
        named |= predictive_values(rates[0], rates[1], prevalence, correlation=correlation)
        row: dict[str, Any] = {"threshold": t, "own": t == own}
        for name in ("sensitivity", "specificity", "ppv", "npv"):
            rate = named.get(name, Interval(np.nan, np.nan, np.nan))
            row |= {name: rate.value, f"{name}_low": rate.low, f"{name}_high": rate.high}
        benefit = net_benefit(sensitivity, specificity, prevalence, t)
        rows.append({**row, "net_benefit": float(benefit)})
    return {name: [row[name] for row in rows] for name in rows[0]}


def _rates(counts: dict[str, Any]) -> tuple[Float64Array, Float64Array]:
    """Return sensitivity and specificity of counts at thresholds."""
    sensitivity = counts["tp"] / (counts["tp"] + counts["fn"])
    return sensitivity, counts["tn"] / (counts["tn"] + counts["fp"])
