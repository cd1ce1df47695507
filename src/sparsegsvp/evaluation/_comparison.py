"""What a comparison found: one row per method and panel size, and the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics import Interval, StabilityIndex
from ._intervals import PairedDifference
from .journal import plain

RANDOM_PANEL = "random panel"

NOTES = (
    "Every method gives exactly as many features as the row says, cut or filled by its own "
    "order; then one common classifier (balanced logistic regression) judges the panel.",
    "Native scores are those of the method's own decision, and are secondary.",
    "Folds are the same for all methods; nothing is tuned, except what a method does inside.",
    "Differences are to the reference at the same size, over paired folds, corrected for "
    "overlapping training sets and adjusted by Holm over the whole table.",
    "The Pareto front holds the rows that no other row beats with as few features.",
)


@dataclass(frozen=True)
class ComparisonRow:
    """One method at one panel size.

    Attributes
    ----------
    method : str
        Its name.
    size : int
        Features asked for.
    status : {"ok", "failed", "timeout"}
        Whether it finished in every fold.
    error : str or None
        The first reason why not.
    n_folds : int
        Folds it finished.
    score : Interval or None
        Balanced accuracy of the common classifier on its panels: the primary number.
    standard_error : float or None
        Corrected for overlapping training sets.
    auc : Interval or None
        Area under the curve of the common classifier.
    native : Interval or None
        Balanced accuracy of its own decision, when it has one.
    panel_size : float or None
        Mean number of features it gave; below ``size`` only when it ranks fewer.
    stability : StabilityIndex or None
        Nogueira's index of its panels.
    jaccard : float or None
        Mean Jaccard similarity of its panels.
    difference : PairedDifference or None
        Score minus that of the reference at the same size.
    on_front : bool
        Whether no other row is at least as accurate with at most as many features, and
        better in one of the two.
    front_gap : float or None
        How far the score lies below the best with at most as many features.
    """

    method: str
    size: int
    status: str
    error: str | None
    n_folds: int
    score: Interval | None
    standard_error: float | None
    auc: Interval | None
    native: Interval | None
    panel_size: float | None
    stability: StabilityIndex | None
    jaccard: float | None
    difference: PairedDifference | None
    on_front: bool
    front_gap: float | None

    @property
    def near_front(self) -> bool:
        """Whether it lies on the front or within one standard error of it."""
        if self.front_gap is None or self.standard_error is None:
            return False
        return self.front_gap <= self.standard_error

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return plain({**self.__dict__, "near_front": self.near_front})


@dataclass(frozen=True)
class Comparison:
    """Result of :func:`~sparsegsvp.compare`.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        Every method at every size, in the order given, the random panel last.
    reference : str
        The method differences are taken to.
    sizes : tuple of int
        Panel sizes.
    n_samples, n_features, n_folds : int
        Size of the table, and number of folds.
    description : dict
        Methods, folds and seeds.
    seconds : dict
        From (method, size) to the mean seconds of a fit, on one thread; kept out of
        :meth:`to_dict`, so that results can be compared byte for byte.
    """

    rows: tuple[ComparisonRow, ...] = field(repr=False)
    reference: str
    sizes: tuple[int, ...]
    n_samples: int
    n_features: int
    n_folds: int
    description: dict[str, Any] = field(repr=False)
    seconds: dict[tuple[str, int], float] = field(repr=False, compare=False)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the order of the rows."""
        return tuple(dict.fromkeys(row.method for row in self.rows))

    def row(self, method: str, size: int) -> ComparisonRow:
        """Return the row of a method at a size."""
        for row in self.rows:
            if row.method == method and row.size == size:
                return row
        raise ValueError(f"there is no row for {method!r} with {size} features.")

    def to_dict(self) -> dict[str, Any]:
        """Return everything but timings, as JSON can hold it."""
        return plain(
            {
                "reference": self.reference,
                "sizes": self.sizes,
                "n_samples": self.n_samples,
                "n_features": self.n_features,
                "n_folds": self.n_folds,
                "description": self.description,
                "rows": [row.to_dict() for row in self.rows],
                "curves": self.curves(),
                "notes": NOTES,
            }
        )

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with the seconds of a fit."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                'to_frame needs pandas: pip install "sparsegsvp[cli]". to_dict needs nothing.'
            ) from error
        return pd.DataFrame([self._flat(row) for row in self.rows])

    def _flat(self, row: ComparisonRow) -> dict[str, Any]:
        nan = float("nan")
        return {
            "method": row.method,
            "size": row.size,
            "status": row.status,
            "balanced_accuracy": row.score.value if row.score else nan,
            "low": row.score.low if row.score else nan,
            "high": row.score.high if row.score else nan,
            "auc": row.auc.value if row.auc else nan,
            "native": row.native.value if row.native else nan,
            "difference": row.difference.value if row.difference else nan,
            "difference_low": row.difference.low if row.difference else nan,
            "difference_high": row.difference.high if row.difference else nan,
            "p_adjusted": row.difference.p_adjusted if row.difference else nan,
            "stability": row.stability.value if row.stability else nan,
            "jaccard": nan if row.jaccard is None else row.jaccard,
            "panel_size": nan if row.panel_size is None else row.panel_size,
            "seconds_per_fit": self.seconds.get((row.method, row.size), nan),
            "on_front": row.on_front,
            "near_front": row.near_front,
            "error": row.error,
        }

    def curves(self) -> dict[str, Any]:
        """Return what a plot of accuracy against panel size needs.

        Returns
        -------
        dict
            ``methods``: per name the lists ``size``, ``score``, ``low``, ``high`` and
            ``on_front``; ``front``: the points of the Pareto front, by size.
        """
        finished = [(row, row.score) for row in self.rows if row.score is not None]
        methods: dict[str, dict[str, list[Any]]] = {}
        for row, score in finished:
            curve = methods.setdefault(
                row.method, {"size": [], "score": [], "low": [], "high": [], "on_front": []}
            )
            curve["size"].append(row.size)
            curve["score"].append(score.value)
            curve["low"].append(score.low)
            curve["high"].append(score.high)
            curve["on_front"].append(row.on_front)
        front = sorted(
            (row.size, score.value, row.method) for row, score in finished if row.on_front
        )
        return {
            "methods": methods,
            "front": [{"size": k, "score": s, "method": name} for k, s, name in front],
        }


def pareto_front(sizes: ArrayLike, scores: ArrayLike) -> NDArray[np.bool_]:
    """Mark the points that no other point beats: fewer features, or a higher score.

    Parameters
    ----------
    sizes : array-like of shape (n,)
        Panel sizes; smaller is better.
    scores : array-like of shape (n,)
        Scores; larger is better.

    Returns
    -------
    boolean ndarray of shape (n,)

    Examples
    --------
    >>> from sparsegsvp.evaluation import pareto_front
    >>> pareto_front([2, 2, 4, 8], [0.7, 0.6, 0.9, 0.9]).tolist()
    [True, False, True, False]
    """
    k, s = np.asarray(sizes), np.asarray(scores)
    no_worse = (k[:, None] <= k) & (s[:, None] >= s)
    better = (k[:, None] < k) | (s[:, None] > s)
    return ~np.any(no_worse & better, axis=0)


def front_gaps(sizes: Sequence[int], scores: Sequence[float]) -> list[float]:
    """Return how far each score lies below the best score with at most as many features."""
    k, s = np.asarray(sizes), np.asarray(scores)
    return [float(s[k <= size].max() - score) for size, score in zip(k, s)]
