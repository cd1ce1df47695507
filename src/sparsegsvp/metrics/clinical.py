r"""Predictive values, thresholds and net benefit: the use of acting on a probability.

A study seldom holds as many positives as the world does, so everything that depends on the
prevalence :math:`\pi` is put together from what does not: sensitivity and specificity. Tables are
dictionaries of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from .._typing import Float64Array
from .._validate import check_real
from .calibration import check_probabilities, move_prior
from .intervals import Interval, proportion_interval

#: Probabilities that a table of thresholds shows.
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MOST = 200  # thresholds that are listed where none are given


def predictive_values(
    sensitivity: Interval, specificity: Interval, prevalence: float
) -> dict[str, Interval]:
    r"""Return positive and negative predictive value at a prevalence, with intervals.

    By Bayes' rule from sensitivity s and specificity c: :math:`\pi s / (\pi s + (1-\pi)(1-c))`
    and :math:`(1-\pi) c / ((1-\pi) c + \pi (1-s))`. Both rise with either rate, and the rates come
    from different samples: the intervals run from the values at both lower to those at both upper
    ends. Give the rates at the level :math:`\sqrt{0.95}` for a level of 0.95.

    Parameters
    ----------
    sensitivity, specificity : Interval
        The rates.
    prevalence : float
        Share of the positive class where the model is used.

    Returns
    -------
    dict
        ``ppv`` and ``npv``; one is left out where no sample at all is called so.

    Examples
    --------
    >>> from sparsegsvp.metrics import exact_interval, predictive_values
    >>> rates = [exact_interval(18, 20, level=0.975), exact_interval(38, 40, level=0.975)]
    >>> found = predictive_values(*rates, 0.05)
    >>> round(found["ppv"].value, 3), round(found["npv"].value, 3)
    (0.486, 0.994)
    """
    check_real("prevalence", prevalence, above=0, below=1)
    ends = ("value", "low", "high")
    values: dict[str, list[float]] = {"ppv": [], "npv": []}
    for s, c in ((getattr(sensitivity, end), getattr(specificity, end)) for end in ends):
        hits, alarms = prevalence * s, (1 - prevalence) * (1 - c)
        clear, missed = (1 - prevalence) * c, prevalence * (1 - s)
        values["ppv"].append(hits / (hits + alarms) if hits + alarms > 0 else np.nan)
        values["npv"].append(clear / (clear + missed) if clear + missed > 0 else np.nan)
    level = sensitivity.level**2
    return {
        name: Interval(value, low, high, level)
        for name, (value, low, high) in values.items()
        if np.isfinite([value, low, high]).all()
    }


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
    """Return tp, fp, tn and fn of acting from each of some probabilities on.

    The thresholds are by default every probability that occurs, since nothing changes between
    them; of more than 200, so many evenly spread ones.
    """
    y, p = check_probabilities(y_true, y_proba)
    if thresholds is None:
        t = np.unique(p)
        t = t[np.unique(np.linspace(0, t.size - 1, min(t.size, _MOST)).round().astype(np.intp))]
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
    level: float = 0.95,
) -> dict[str, Float64Array]:
    """Return net benefit against the probability from which on one would act.

    Parameters
    ----------
    y_true, y_proba
        As in `threshold_counts`.
    prior : "equal" or float
        The share of the positive class that the probabilities are for.
    prevalence : float
        The share where the model is used: probabilities are moved there.
    trials : (float, float), optional
        Independent positives and negatives, where rows repeat samples or come in groups.
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
    variance = prevalence**2 * s * (1 - s) / ones
    variance = variance + ((1 - prevalence) * t / (1 - t)) ** 2 * c * (1 - c) / zeros
    half = float(norm.ppf((1 + level) / 2)) * np.sqrt(variance)
    everyone = net_benefit(1.0, 0.0, prevalence, t)
    return {
        "threshold": t,
        "net_benefit": benefit,
        "low": benefit - half,
        "high": benefit + half,
        "treat_all": everyone,
    }


def threshold_table(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    prior: Any,
    prevalence: float,
    own: float | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    trials: tuple[float, float] | None = None,
    level: float = 0.95,
) -> dict[str, list[Any]]:
    """Return rates, predictive values and net benefit at each of some thresholds.

    Parameters
    ----------
    y_true, y_proba, prior, prevalence, trials, level
        As in `decision_curve`.
    own : float, optional
        The threshold of the model's own labels, at the prevalence: shown too and marked.
    thresholds : sequence of float, default=(0.05, 0.1, 0.2, ..., 0.9)
        Between 0 and 1.

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
    at = sorted({*thresholds, *(() if own is None else (own,))})
    s, c = _rates(threshold_counts(y, move_prior(p, prior, prevalence), at))
    ones, zeros = trials or (float(y.sum()), float((~y).sum()))
    rows = []
    for t, sensitivity, specificity in zip(at, s.tolist(), c.tolist()):
        pairs = ((sensitivity, ones), (specificity, zeros))
        rates = [proportion_interval(*pair, level=level) for pair in pairs]
        each = [proportion_interval(*pair, level=level**0.5) for pair in pairs]
        named = {"sensitivity": rates[0], "specificity": rates[1]}
        values = predictive_values(each[0], each[1], prevalence)
        row: dict[str, Any] = {"threshold": t, "own": t == own}
        for name in ("sensitivity", "specificity", "ppv", "npv"):
            interval = {**named, **values}.get(name, Interval(np.nan, np.nan, np.nan))
            row |= {
                name: interval.value,
                f"{name}_low": interval.low,
                f"{name}_high": interval.high,
            }
        row["net_benefit"] = float(net_benefit(sensitivity, specificity, prevalence, t))
        rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]}


def _rates(counts: dict[str, Any]) -> tuple[Float64Array, Float64Array]:
    """Return sensitivity and specificity of counts at thresholds."""
    sensitivity = counts["tp"] / (counts["tp"] + counts["fn"])
    return sensitivity, counts["tn"] / (counts["tn"] + counts["fp"])
