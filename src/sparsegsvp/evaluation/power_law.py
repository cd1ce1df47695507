r"""The inverse power law :math:`a - b n^{-c}` of a learning curve, and when it may be continued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import t as student

from .._typing import Float64Array, IntArray, Record
from ..metrics import Interval

_N_DRAWS = 999
#: Exponents that are tried. Excess errors of classifiers fall about like 1/n to 1/sqrt(n).
EXPONENTS = np.geomspace(0.1, 2.0, 41)
#: Wider intervals say too little to be printed as a forecast.
_WIDEST = 0.25
_FURTHEST = 2.0  # times the samples there are

Reason = Literal["chance", "flat", "no bend", "early bend", "wide"]


@dataclass(frozen=True)
class PowerLaw(Record):
    """The law a - b n^-c, with 0 < a <= 1 and b >= 0.

    Attributes
    ----------
    a : float
        What ever more samples would reach.
    b, c : float
        How far below it one sample would be, and how fast that falls.

    Examples
    --------
    >>> from sparsegsvp.evaluation import PowerLaw
    >>> PowerLaw(0.9, 1.0, 0.5)(100)
    0.8
    """

    a: float
    b: float
    c: float

    def __call__(self, n: float) -> float:
        """Return the accuracy with n samples."""
        return self.a - self.b * float(n) ** -self.c


@dataclass(frozen=True)
class Forecast(Record):
    """The accuracy that a number of samples would reach.

    Attributes
    ----------
    n_samples : int
        How many samples.
    accuracy : Interval
        Their balanced accuracy.
    """

    n_samples: int
    accuracy: Interval


def fit_power_laws(
    sizes: Float64Array, accuracies: Float64Array
) -> tuple[Float64Array, Float64Array, IntArray]:
    """Fit a - b (n / n_max)^-c to each row by least squares; return a, b, and which exponent.

    For a given c the law is linear in a and b, so every exponent is tried: no optimiser that
    could fail, and all rows at once.
    """
    x = (sizes / sizes[-1])[:, None] ** -EXPONENTS
    mean_x, mean_y = x.mean(axis=0), accuracies.mean(axis=1, keepdims=True)
    b = -(accuracies - mean_y) @ (x - mean_x) / ((x - mean_x) ** 2).sum(axis=0)
    a = mean_y + b * mean_x
    # beyond a = 1 the best is on that edge, and below b = 0 it is flat
    above = a > 1
    b = np.where(above, (1 - accuracies) @ x / (x**2).sum(axis=0), b)
    a = np.where(above, 1.0, a)
    falling = b <= 0
    a, b = np.where(falling, np.minimum(mean_y, 1.0), a), np.where(falling, 0.0, b)
    errors = ((accuracies[:, :, None] - a[:, None, :] + b[:, None, :] * x) ** 2).sum(axis=1)
    best, row = errors.argmin(axis=1), np.arange(accuracies.shape[0])
    return a[row, best], b[row, best], best


def look_ahead(
    scores: Float64Array,
    sizes: Float64Array,
    n_samples: int,
    chance: float,
    counting: float,
    level: float,
    rng: np.random.Generator,
) -> tuple[tuple[Interval, ...], PowerLaw | None, tuple[Forecast, ...], Reason | None]:
    """Return the interval at every size and, where that is known, the law and its forecast."""
    n_repeats = scores.shape[0]
    tails = [(1 - level) / 2, (1 + level) / 2]
    drawn = scores[rng.integers(0, n_repeats, (_N_DRAWS, n_repeats))].mean(axis=1)
    drawn = drawn + counting * rng.standard_normal((_N_DRAWS, 1))
    means = scores.mean(axis=0)
    accuracy = _intervals(means, np.quantile(drawn, tails, axis=0), level)
    if accuracy[-1].low <= chance:
        return accuracy, None, (), "chance"
    if not _rises(scores, sizes):
        return accuracy, None, (), "flat"
    a, b, best = fit_power_laws(sizes, means[None])
    if best[0] in (0, EXPONENTS.size - 1):
        return accuracy, None, (), "no bend" if best[0] == 0 else "early bend"
    ends = [*sizes.tolist(), float(n_samples), _FURTHEST * n_samples]
    grid = np.unique([*np.geomspace(sizes[0], ends[-1], 25).round(), *np.round(ends)])
    ahead = (grid / sizes[-1])[:, None]
    at = a[0] - b[0] * ahead[:, 0] ** -EXPONENTS[best[0]]
    many_a, many_b, many = fit_power_laws(sizes, drawn)
    limits = np.quantile(many_a - many_b * ahead ** -EXPONENTS[many], tails, axis=1)
    # that more samples bring nothing is always possible; where a rise by accident was taken for
    # a true one, it is the case
    limits[0] = np.minimum(limits[0], np.where(grid > sizes[-1], accuracy[-1].low, 1.0))
    if np.ptp(limits[:, -1]) > _WIDEST:
        return accuracy, None, (), "wide"
    c = float(EXPONENTS[best[0]])
    law = PowerLaw(float(a[0]), float(b[0] * sizes[-1] ** c), c)
    found = _intervals(at, limits, level)
    forecast = tuple(Forecast(round(n), score) for n, score in zip(grid.tolist(), found))
    return accuracy, law, forecast, None


def _rises(scores: Float64Array, sizes: Float64Array) -> bool:
    """Test over the repeats whether the accuracy rises with log n."""
    trend = np.log(sizes) - np.log(sizes).mean()
    slopes = scores @ trend
    error = float(slopes.std(ddof=1)) / np.sqrt(slopes.size)
    least = float(student.ppf(0.975, slopes.size - 1)) * error
    return bool(slopes.mean() > max(least, 1e-12))


def _intervals(values: Float64Array, limits: Float64Array, level: float) -> tuple[Interval, ...]:
    """Return estimates with their limits, within 0 and 1 and around the estimate."""
    low = np.clip(np.minimum(limits[0], values), 0, 1)
    high = np.clip(np.maximum(limits[1], values), 0, 1)
    return tuple(
        Interval(v, a, b, level) for v, a, b in zip(values.tolist(), low.tolist(), high.tolist())
    )
