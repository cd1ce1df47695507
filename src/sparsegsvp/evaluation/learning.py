r"""The learning curve: accuracy and stability on growing parts of the samples, and a forecast.

The procedure is fitted on nested parts of the samples and predicts all that a part leaves out.
An inverse power law :math:`a - b n^{-c}` is fitted to the mean accuracies; draws of the repeats
give its interval. Nothing is foretold where the samples do not say enough for it: see
`learning_curve`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from sklearn.utils import column_or_1d

from .._parallel import Task
from .._typing import Float64Array, IntArray, Progress, Record
from .._validate import check_real, check_seed
from ..metrics import Interval
from .folds import FRACTIONS, REPEATS, check_samples, derive_seed, draw_parts
from .journal import Journal, open_journal, run_logged, seconds_of
from .panels import Procedure, describe, panel_stability, selected_features
from .values import Shown, identity, number, plain, ranged

LEARNING = "learning curve"
_FIT, _DRAWS = 22, 23  # seed streams
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


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(Shown):
    """The result of `learning_curve`; one entry per size of the parts, the smallest first.

    Attributes
    ----------
    n_samples, n_features : int
        Shape of the table.
    fractions : tuple of float
        Shares of the samples.
    sizes : tuple of int
        Samples in a part; with groups, the mean.
    scores : ndarray of shape (n_repeats, n_sizes)
        Balanced accuracy on the samples that the part leaves out.
    accuracy : tuple of Interval
        Their mean, with the interval of the procedure trained on so many new samples.
    stability : tuple of float or None
        Nogueira's index of the panels of one size; None where there are none. Larger parts
        share more samples, which alone makes their panels more alike.
    panel_sizes : tuple of float or None
        Mean number of features.
    chance : float
        Balanced accuracy of guessing.
    law : PowerLaw or None
        The fitted law; None where nothing is foretold.
    forecast : tuple of Forecast
        The law from the smallest part to twice the samples; empty where nothing is foretold.
    reason : {"chance", "flat", "no bend", "early bend", "wide"} or None
        Why nothing is foretold.
    """

    n_samples: int
    n_features: int
    fractions: tuple[float, ...]
    sizes: tuple[int, ...]
    scores: Float64Array
    accuracy: tuple[Interval, ...]
    stability: tuple[float | None, ...]
    panel_sizes: tuple[float | None, ...]
    chance: float
    law: PowerLaw | None
    forecast: tuple[Forecast, ...]
    reason: Reason | None
    seconds: dict[str, float] = field(default_factory=dict)

    _heads = ("samples", "balanced accuracy")

    def _title(self) -> str:
        return f"Learning curve: {self.sentence()}"

    def _lines(self) -> list[tuple[str, str]]:
        return [(f"{n} samples", ranged(score)) for n, score in zip(self.sizes, self.accuracy)]

    def sentence(self) -> str:
        """Say what more samples would bring, or that these do not tell."""
        first, last = self.sizes[0], self.sizes[-1]
        if self.forecast:
            end = self.forecast[-1]
            now = min(self.forecast, key=lambda f: abs(f.n_samples - self.n_samples))
            found = end.accuracy
            return (
                f"Twice the samples ({end.n_samples:,}) would reach a balanced accuracy of about "
                f"{number(found.value)} ({found.level:.0%} interval {number(found.low)} to "
                f"{found.high:.2f}), where all {self.n_samples:,} that there are reach about "
                f"{number(now.accuracy.value)}."
            )
        why = {
            "chance": f"with {last:,} of them the procedure is not clearly better than guessing",
            "flat": f"accuracy does not clearly rise from {first:,} to {last:,} samples",
            "no bend": f"accuracy rises from {first:,} to {last:,} samples without a sign of "
            "where it will level off",
            "early bend": f"accuracy rises from {first:,} to {last:,} samples, but most of that "
            "lies among the smallest parts, and the law does not follow it",
            "wide": f"accuracy rises from {first:,} to {last:,} samples, but too unevenly to be "
            "continued",
            None: "",
        }[self.reason]
        return f"These samples do not tell what more of them would bring: {why}."

    def without_forecast(self, reason: Reason) -> LearningCurve:
        """Return the same with nothing foretold, for a reason that the parts do not know of."""
        return replace(self, law=None, forecast=(), reason=reason)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but timings, as JSON can hold it."""
        known = {k: v for k, v in vars(self).items() if k not in ("n_features", "seconds")}
        first = {"n_samples": self.n_samples, "n_repeats": self.scores.shape[0]}
        return plain({**first, **known, "sentence": self.sentence()})


def learning_curve(
    procedure: Any,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    fractions: Sequence[float] = FRACTIONS,
    n_repeats: int = REPEATS,
    level: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    log: str | os.PathLike[str] | Journal | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    batch: ArrayLike | None = None,
) -> LearningCurve:
    r"""Measure accuracy and stability at growing parts of the samples, and look ahead.

    In each repeat the procedure, with its scaling, selection and tuning, is fitted on nested
    parts of the samples, classes even and groups whole, and predicts all samples that the part
    leaves out. The law :math:`a - b n^{-c}`, with :math:`0 < a \le 1`, :math:`b \ge 0` and c
    from 0.1 to 2, is fitted to the mean accuracies by least squares.

    Intervals come from draws with replacement among the repeats. All repeats share one set of
    samples, so a draw also moves the whole curve by what counting so many samples leaves open.
    Beyond the largest part, the lower end is at most what that part has: more samples may bring
    nothing.

    Nothing is foretold (``forecast`` is empty and ``reason`` says why)

    - "chance": if the largest parts are not clearly better than guessing;
    - "flat": if the accuracies do not rise with log n (one-sided t test over the repeats at
      0.025);
    - "no bend", "early bend": if c is at an end of its range, so that the shape of the curve
      is not known (a = 1 is no such sign: no accuracy is higher);
    - "wide": if the interval at twice the samples is wider than 0.25.

    Parameters
    ----------
    procedure : classifier
        Everything that looks at the data; never changed.
    X, y, groups, level, random_state, n_jobs, log, resume
        As in :func:`~sparsegsvp.nested_evaluate`; a group is never divided between a part and
        what it leaves out.
    fractions : sequence of float, default=(0.3, 0.4, 0.5, 0.65, 0.8)
        Shares of the samples, at least three.
    n_repeats : int, default=10
        How often the parts are drawn, at least 3.
    progress : callable, optional
        Called as ``progress(stage, done, total)``; the stage is "learning curve".
    batch : array-like of shape (n_samples,), optional
        Batches, for a step of ``procedure`` that centres them.

    Returns
    -------
    LearningCurve

    References
    ----------
    Mukherjee and others (2003), Estimating dataset size requirements for classifying DNA
    microarray data, Journal of Computational Biology 10(2), 119-142.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import learning_curve
    >>> data = make_planted(80, 200, 5, effect=1.0)
    >>> found = learning_curve(make_pipeline(SelectKBest(k=5), GaussianNB()), data.X, data.y)
    >>> found.sizes
    (24, 32, 40, 52, 64)
    >>> found.accuracy[-1].value > found.accuracy[0].value
    True
    """
    seed = check_seed(random_state)
    check_real("level", level, above=0, below=1)
    matrix, labels, classes, ids = check_samples(X, y, groups)
    n_features = matrix.shape[1]
    shares = _check_fractions(fractions)
    parts = draw_parts(labels, ids, fractions=shares, n_repeats=n_repeats, random_state=seed)

    def header() -> dict[str, Any]:
        # a repeat depends on its number, not on how many there are: more may be added
        settings = {"estimator": describe(procedure), "fractions": shares, "random_state": seed}
        return identity("learning_curve", matrix, labels, ids, batch, **settings)

    tasks = [
        Task(("part", repeat, i), _learn, (rows, derive_seed(seed, _FIT, repeat, i), n_features))
        for repeat, drawn in enumerate(parts)
        for i, rows in enumerate(drawn)
    ]
    shared = Procedure(procedure, X, labels, ids, None if batch is None else column_or_1d(batch))
    with open_journal(log, header, resume=resume) as journal:
        run_logged(tasks, shared, journal, stage=LEARNING, progress=progress, n_jobs=n_jobs)
        records = [journal.read(task.key, _read_record) for task in tasks]
    sizes = np.mean([[rows.size for rows in drawn] for drawn in parts], axis=0)
    scores, counting = _accuracies(records, len(shares), labels)
    rng = np.random.default_rng(derive_seed(seed, _DRAWS))
    found = look_ahead(scores, sizes, labels.size, 1 / classes.size, counting, level, rng)
    accuracy, law, forecast, reason = found
    stability, panel_sizes = zip(
        *(_panels_of_size(records[i :: len(shares)], n_features) for i in range(len(shares)))
    )
    return LearningCurve(
        n_samples=labels.size,
        n_features=n_features,
        fractions=shares,
        sizes=tuple(round(size) for size in sizes.tolist()),
        scores=scores,
        accuracy=accuracy,
        stability=stability,
        panel_sizes=panel_sizes,
        chance=1 / classes.size,
        law=law,
        forecast=forecast,
        reason=reason,
        seconds=seconds_of(journal, ("part",)),
    )


# --------------------------------------------------------------------------------- the parts


def _check_fractions(fractions: Sequence[float]) -> tuple[float, ...]:
    shares = tuple(check_real("fractions", f, above=0, below=1) for f in fractions)
    if len(shares) < 3 or any(b <= a for a, b in pairwise(shares)):
        raise ValueError(f"fractions must be at least three rising shares, got {shares}.")
    return shares


def _learn(procedure: Procedure, rows: IntArray, seed: int, n_features: int) -> dict[str, Any]:
    """Fit a clone on a part and predict the other samples; return the record."""
    model = procedure.fit(rows, seed)
    outside = np.setdiff1d(np.arange(procedure.y.size), rows)
    classes, codes = np.unique(procedure.y, return_inverse=True)
    truth = codes[outside]
    right = procedure.predict(model, outside) == procedure.y[outside]
    return {
        "right": np.bincount(truth[right], minlength=classes.size),
        "total": np.bincount(truth, minlength=classes.size),
        "panel": selected_features(model, n_features),
    }


#: Samples predicted rightly and at all, by class, and the panel.
_PartRecord = tuple[Float64Array, Float64Array, IntArray | None]


def _read_record(record: dict[str, Any]) -> _PartRecord:
    """Return the samples predicted rightly and at all, by class, and the panel of a part."""
    right, total = (np.array(record[name], dtype=np.float64) for name in ("right", "total"))
    panel = record["panel"]
    return right, total, None if panel is None else np.array(panel, dtype=np.intp)


def _accuracies(
    records: Sequence[_PartRecord], n_sizes: int, labels: NDArray[Any]
) -> tuple[Float64Array, float]:
    """Return balanced accuracies by repeat and size, and the counting error of the largest."""
    class_counts = np.unique(labels, return_counts=True)[1]
    # arrays by repeat, size and class
    right, total = (
        np.array([record[k] for record in records]).reshape(-1, n_sizes, class_counts.size)
        for k in (0, 1)
    )
    largest = right[:, -1].sum(axis=0), total[:, -1].sum(axis=0)
    return (right / total).mean(axis=2), _counting_error(*largest, class_counts)


def _panels_of_size(
    records: Sequence[_PartRecord], n_features: int
) -> tuple[float | None, float | None]:
    """Return Nogueira's index and the mean size of panels; None where they are not all known."""
    known = [panel for _, _, panel in records if panel is not None]
    if len(known) < len(records):
        return None, None
    index = panel_stability(known, n_features).value
    mean_size = float(np.mean([panel.size for panel in known]))
    return float(index) if np.isfinite(index) else None, mean_size


def _counting_error(right: Float64Array, total: Float64Array, class_counts: IntArray) -> float:
    """Return the standard error of a balanced accuracy counted once on every sample.

    Half a hit and half a miss are added, so that a perfect score has one too.
    """
    p = (right / total * class_counts + 0.5) / (class_counts + 1)
    return float(np.sqrt(np.sum(p * (1 - p) / class_counts)) / class_counts.size)


# ---------------------------------------------------------------------------------- the law


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
