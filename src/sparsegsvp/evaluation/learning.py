r"""The learning curve: accuracy and stability on growing parts of the samples, and a forecast.

The procedure is fitted on nested parts of the samples and predicts all that a part leaves out.
An inverse power law :math:`a - b n^{-c}` is fitted to the mean accuracies; draws of the repeats
give its interval. Nothing is foretold where the samples do not say enough for it: see
`learning_curve`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from .._parallel import Task
from .._typing import Float64Array, IntArray, Progress
from .._validate import check_integer, check_real, check_seed
from ..metrics import Interval
from .folds import check_samples, derive_seed, growing_parts
from .journal import Journal, open_journal, run_logged
from .panels import Procedure, describe, panel_stability, selected_features
from .power_law import Forecast, PowerLaw, Reason, look_ahead
from .values import Shown, identity, number, plain, ranged

LEARNING = "learning curve"
FRACTIONS = (0.3, 0.4, 0.5, 0.65, 0.8)
REPEATS = 10
_PARTS, _FIT, _DRAWS = 21, 22, 23  # seed streams
_LEAST = 3  # samples of a class that a part needs, to be tuned on


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
        return plain(
            {
                "n_samples": self.n_samples,
                "n_repeats": self.scores.shape[0],
                "fractions": self.fractions,
                "sizes": self.sizes,
                "scores": self.scores,
                "accuracy": self.accuracy,
                "stability": self.stability,
                "panel_sizes": self.panel_sizes,
                "chance": self.chance,
                "law": None if self.law is None else asdict(self.law),
                "forecast": [
                    {"n_samples": f.n_samples, "accuracy": f.accuracy} for f in self.forecast
                ],
                "reason": self.reason,
                "sentence": self.sentence(),
            }
        )


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
    X : array-like of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        Labels.
    groups : array-like of shape (n_samples,), optional
        Samples of one group are never divided between a part and what it leaves out.
    fractions : sequence of float, default=(0.3, 0.4, 0.5, 0.65, 0.8)
        Shares of the samples, at least three.
    n_repeats : int, default=10
        How often the parts are drawn, at least 3.
    level : float, default=0.95
        Nominal coverage of the intervals.
    random_state : int, default=0
        Seed; also given to every ``random_state`` of the procedure that is None.
    n_jobs : int, optional
        Fits at a time. The result does not depend on it.
    log : path or Journal, optional
        Append-only log of finished parts, as in :func:`~sparsegsvp.nested_evaluate`.
    resume : bool, default=False
        Continue ``log`` where it ends.
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
        records = [journal.read(task.key, _Piece.from_record) for task in tasks]
        seconds = {
            "/".join(map(str, task.key)): journal.timings[task.key]
            for task in tasks
            if task.key in journal.timings
        }
    by_repeat = [records[r * len(shares) : (r + 1) * len(shares)] for r in range(len(parts))]
    scores = np.array([[np.mean(p.right / p.total) for p in row] for row in by_repeat])
    sizes = np.mean([[rows.size for rows in drawn] for drawn in parts], axis=0)
    class_counts = np.unique(labels, return_counts=True)[1]
    counting = _counting_error([row[-1] for row in by_repeat], class_counts)
    rng = np.random.default_rng(derive_seed(seed, _DRAWS))
    found = look_ahead(scores, sizes, labels.size, 1 / classes.size, counting, level, rng)
    accuracy, law, forecast, reason = found
    panels = [[row[i].panel for row in by_repeat] for i in range(len(shares))]
    return LearningCurve(
        n_samples=labels.size,
        n_features=n_features,
        fractions=shares,
        sizes=tuple(round(size) for size in sizes.tolist()),
        scores=scores,
        accuracy=accuracy,
        stability=tuple(_stability(of_size, n_features) for of_size in panels),
        panel_sizes=tuple(_mean_size(of_size) for of_size in panels),
        chance=1 / classes.size,
        law=law,
        forecast=forecast,
        reason=reason,
        seconds=seconds,
    )


# --------------------------------------------------------------------------------- the parts


def _check_fractions(fractions: Sequence[float]) -> tuple[float, ...]:
    shares = tuple(check_real("fractions", f, above=0, below=1) for f in fractions)
    if len(shares) < 3 or any(b <= a for a, b in pairwise(shares)):
        raise ValueError(f"fractions must be at least three rising shares, got {shares}.")
    return shares


def draw_parts(
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    *,
    fractions: Sequence[float] = FRACTIONS,
    n_repeats: int = REPEATS,
    random_state: int = 0,
) -> list[list[IntArray]]:
    """Draw the parts of a learning curve: rows by repeat and size; ValueError if too few.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.evaluation.learning import draw_parts
    >>> draw_parts(np.repeat(["ill", "well"], [7, 20]), None)
    Traceback (most recent call last):
        ...
    ValueError: a part of 8 samples has 2 of class 'ill' and at least 3 are needed...
    """
    check_integer("n_repeats", n_repeats, least=3)
    seed = derive_seed(random_state, _PARTS)
    parts = growing_parts(y, groups, fractions, n_repeats, seed)
    for rows in (rows for drawn in parts for rows in drawn):
        outside = np.delete(y, rows)
        for label in np.unique(y).tolist():
            inside = int(np.sum(y[rows] == label))
            if inside < _LEAST:
                raise ValueError(
                    f"a part of {rows.size} samples has {inside} of class {label!r} and at least "
                    f"{_LEAST} are needed: there are too few samples (or groups) of it for a "
                    "learning curve"
                )
            if not np.any(outside == label):
                raise ValueError(
                    f"a part of {rows.size} samples leaves none of class {label!r} to predict: "
                    "there are too few samples (or groups) of it for a learning curve"
                )
    return parts


@dataclass(frozen=True)
class _Piece:
    """What a fit on one part gave: samples predicted rightly and at all, by class; its panel."""

    right: Float64Array
    total: Float64Array
    panel: IntArray | None

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> _Piece:
        right, total = (np.array(record[name], dtype=np.float64) for name in ("right", "total"))
        panel = record["panel"]
        return cls(right, total, None if panel is None else np.array(panel, dtype=np.intp))


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


def _stability(panels: list[IntArray | None], n_features: int) -> float | None:
    known = [panel for panel in panels if panel is not None]
    if len(known) < len(panels):
        return None
    value = panel_stability(known, n_features).value
    return float(value) if np.isfinite(value) else None


def _mean_size(panels: list[IntArray | None]) -> float | None:
    sizes = [panel.size for panel in panels if panel is not None]
    return float(np.mean(sizes)) if len(sizes) == len(panels) else None


def _counting_error(largest: list[_Piece], class_counts: IntArray) -> float:
    """Return the standard error of a balanced accuracy counted once on every sample.

    Half a hit and half a miss are added, so that a perfect score has one too.
    """
    right = np.sum([piece.right for piece in largest], axis=0)
    total = np.sum([piece.total for piece in largest], axis=0)
    p = (right / total * class_counts + 0.5) / (class_counts + 1)
    return float(np.sqrt(np.sum(p * (1 - p) / class_counts)) / class_counts.size)
