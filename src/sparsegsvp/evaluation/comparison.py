"""The result of a comparison: one row per method and panel size, and the Pareto front."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import BoolArray
from ..metrics import Interval, StabilityIndex
from .intervals import PairedDifference
from .values import data_frame, html_table, plain, ranged

RANDOM_PANEL = "random panel"

NOTES = (
    "Every method gives exactly as many features as the row says, cut or filled by its own "
    "order; then one common classifier (balanced logistic regression) judges the panel.",
    "Native scores are those of the method's own decision, and are secondary.",
    "Folds are the same for all methods; nothing is tuned, except what a method does inside.",
    "Differences are to the reference at the same size, over paired folds, corrected for "
    "overlapping training sets and adjusted by Holm over the whole table.",
    "The Pareto front holds the rows that no other row beats with as few features; near it are "
    "those whose gap to it is within one standard error of the paired difference.",
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
    front_gap_error : float or None
        Standard error of that gap, over paired folds and corrected; 0 on the front.
    """

    method: str
    size: int
    status: str
    error: str | None
    n_folds: int
    score: Interval | None = None
    standard_error: float | None = None
    auc: Interval | None = None
    native: Interval | None = None
    panel_size: float | None = None
    stability: StabilityIndex | None = None
    jaccard: float | None = None
    difference: PairedDifference | None = None
    on_front: bool = False
    front_gap: float | None = None
    front_gap_error: float | None = None

    @property
    def near_front(self) -> bool:
        """Whether it lies on the front, or below it by at most the gap's standard error."""
        if self.front_gap is None or self.front_gap_error is None:
            return False
        return self.front_gap <= self.front_gap_error

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return plain({**self.__dict__, "near_front": self.near_front})


@dataclass(frozen=True, repr=False)
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

    rows: tuple[ComparisonRow, ...]
    reference: str
    sizes: tuple[int, ...]
    n_samples: int
    n_features: int
    n_folds: int
    description: dict[str, Any]
    seconds: dict[tuple[str, int], float] = field(compare=False)

    def __repr__(self) -> str:
        lines = [self._title()]
        for size in self.sizes:
            done = [(r.score, r.method) for r in self.rows if r.size == size and r.score]
            score, name = max(done, key=lambda d: d[0].value, default=(None, "no method finished"))
            lines.append(f"  {size} features: {name} {ranged(score)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            [name, *(ranged(self.row(name, size).score) for size in self.sizes)]
            for name in self.methods
        ]
        return html_table(self._title(), ["method", *map(str, self.sizes)], rows)

    def _title(self) -> str:
        return (
            f"Comparison of {len(self.methods)} methods: balanced accuracy by panel size "
            f"({self.n_samples} samples, {self.n_features} features, {self.n_folds} folds)"
        )

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
        return data_frame([self._flat(row) for row in self.rows])

    def _flat(self, row: ComparisonRow) -> dict[str, Any]:
        nan = float("nan")
        score, difference = row.score, row.difference
        return {
            "method": row.method,
            "size": row.size,
            "status": row.status,
            "balanced_accuracy": score.value if score else nan,
            "low": score.low if score else nan,
            "high": score.high if score else nan,
            "auc": row.auc.value if row.auc else nan,
            "native": row.native.value if row.native else nan,
            "difference": difference.value if difference else nan,
            "difference_low": difference.low if difference else nan,
            "difference_high": difference.high if difference else nan,
            "p_adjusted": difference.p_adjusted if difference else nan,
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
        names = ("size", "score", "low", "high", "on_front")
        methods: dict[str, dict[str, list[Any]]] = {}
        for row, score in finished:
            curve = methods.setdefault(row.method, {name: [] for name in names})
            point = (row.size, score.value, score.low, score.high, row.on_front)
            for name, value in zip(names, point):
                curve[name].append(value)
        front = sorted(
            (row.size, score.value, row.method) for row, score in finished if row.on_front
        )
        return {
            "methods": methods,
            "front": [{"size": k, "score": s, "method": name} for k, s, name in front],
        }


def pareto_front(sizes: ArrayLike, scores: ArrayLike) -> BoolArray:
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
