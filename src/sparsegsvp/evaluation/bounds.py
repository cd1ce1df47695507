"""Bounds on the number of wrong features among those that stability selection keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._typing import Float64Array, Record


def error_bound(
    mean_size: float, n_features: int, threshold: float, *, n_pairs: int | None = None
) -> float | None:
    r"""Bound the expected number of rarely chosen features among the stable ones.

    .. math:: E\,\bigl|\hat S \cap \{f : p_f \le q/m\}\bigr| \le \frac{q^2}{(2\pi - 1)\,m}

    for complementary pairs, with q the mean panel size, m the number of features,
    :math:`\pi` the threshold and :math:`p_f` the probability that f is chosen on half of
    the samples. Calling those features false needs exchangeable noise features.

    With the number of pairs B given, the smaller bound for unimodal distributions of the share
    of pairs whose halves both choose a feature,

    .. math:: \frac{q^2}{m} \cdot \begin{cases}
        \frac{1}{2 (2\pi - 1 - 1/(2B))} & \pi \le 3/4 \\
        \frac{4 (1 - \pi + 1/(2B))}{1 + 1/B} & \pi > 3/4 \end{cases}

    where :math:`q/m \le 1/\sqrt3` and :math:`\pi > \frac12 + \min\bigl((q/m)^2,
    \frac{1}{2B} + \frac34 (q/m)^2\bigr)`.

    Parameters
    ----------
    mean_size : float
        q.
    n_features : int
        m.
    threshold : float
        :math:`\pi`; at or below 0.5 theory gives no bound.
    n_pairs : int, optional
        B, for the unimodal bound.

    Returns
    -------
    float or None

    References
    ----------
    Shah, Samworth (2013), Variable selection with error control: another look at stability
    selection, JRSS B 75(1), 55-80: equation 8, and theorem 3 with its constant as in the
    authors' and the R package stabs' code.

    Examples
    --------
    >>> from sparsegsvp.evaluation import error_bound
    >>> round(error_bound(10, 5000, 0.6), 3), round(error_bound(10, 5000, 0.9, n_pairs=50), 3)
    (0.1, 0.009)
    """
    share = mean_size / n_features
    if n_pairs is None:
        return mean_size * share / (2 * threshold - 1) if threshold > 0.5 else None
    # frequencies are multiples of 1/(2B), so the threshold that counts is the next of them
    step = 1 / (2 * n_pairs)
    threshold = math.ceil(threshold / step - 1e-9) * step
    least = 0.5 + min(share**2, step + 0.75 * share**2)
    if share > 1 / math.sqrt(3) or threshold <= max(least, 0.5 + step):
        return None
    if threshold <= 0.75:
        return mean_size * share / (2 * (2 * threshold - 1 - step))
    return mean_size * share * 4 * (1 - threshold + step) / (1 + 2 * step)


@dataclass(frozen=True)
class ErrorControl(Record):
    """A bound on the expected number of wrong features among those found.

    Attributes
    ----------
    threshold : float
        Selection frequency that the features reach.
    n_found : int
        How many reach it.
    bound : float
        Expected number of them that are rarely chosen, at most; below ``n_found``.
    assumption : {"none", "unimodal"}
        What the bound supposes beyond complementary pairs.
    is_raised : bool
        Whether the threshold had to be raised for the bound to say something.
    """

    threshold: float
    n_found: int
    bound: float
    assumption: str
    is_raised: bool


def error_control(
    frequencies: Float64Array, threshold: float, n_pairs: int
) -> tuple[ErrorControl | None, str]:
    r"""Find a bound on the number of wrong features that is below the number of features found.

    In this order: the bound at ``threshold``; at the raised threshold
    :math:`\pi^* = (1 + q^2/m)/2` where at most one wrong feature is expected, if that is at
    most 1; the unimodal bound at ``threshold``.

    Parameters
    ----------
    frequencies : ndarray of shape (m,)
        Selection frequencies over complementary pairs.
    threshold : float
        Smallest frequency of a feature that is kept.
    n_pairs : int
        Number of pairs.

    Returns
    -------
    ErrorControl or None
    str
        It in a sentence, or why there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.evaluation import error_control
    >>> control, words = error_control(np.r_[np.ones(2), np.full(198, 0.045)], 0.6, 50)
    >>> round(control.threshold, 3), control.n_found, control.bound
    (0.798, 2, 1.0)
    >>> words
    '2 features are chosen in at least 80% of the halves; at most 1 rarely chosen one is expected...
    """
    m = frequencies.size
    q = float(frequencies.sum())

    def found(level: float) -> int:
        return int(np.sum(frequencies >= level - 1e-12))

    raised = (1 + q * q / m) / 2
    candidates = [
        (threshold, error_bound(q, m, threshold), "none"),
        (raised, 1.0 if threshold < raised <= 1 else None, "none"),
        (threshold, error_bound(q, m, threshold, n_pairs=n_pairs), "unimodal"),
    ]
    for level, bound, assumption in candidates:
        if bound is not None and bound < found(level):
            control = ErrorControl(
                level, found(level), bound, assumption, is_raised=level > threshold
            )
            return control, _control_words(control)
    if not found(threshold):
        return None, f"No feature is chosen in at least {threshold:.0%} of the halves."
    if threshold <= 0.5:
        return None, "A threshold of at most 50% allows no bound on wrong features."
    return None, (
        f"With {q:.1f} features chosen on average out of only {m}, the number of wrong ones among "
        f"the {found(threshold)} found cannot be bounded below it."
    )


def _control_words(control: ErrorControl) -> str:
    bound = f"{_rounded_up(control.bound):g}"
    text = (
        f"{control.n_found} feature{' is' if control.n_found == 1 else 's are'} chosen in at least "
        f"{100 * _rounded_up(control.threshold):g}% of the halves; at most {bound} rarely chosen "
        f"{'one is' if bound == '1' else 'ones are'} expected among them"
    )
    if control.assumption == "unimodal":
        text += ", if the frequencies of such features are unimodal"
    return f"{text}."


def _rounded_up(value: float) -> float:
    """Return a bound with two decimals that is still one."""
    return math.ceil(100 * value - 1e-9) / 100
