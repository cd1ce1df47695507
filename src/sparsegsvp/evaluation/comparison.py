"""The result of a comparison: one row per method and panel size, and the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import BoolArray, Float64Array
from ..metrics import Interval, StabilityIndex, average_jaccard, nogueira_stability
from .folds import Fold, holdout_ratio
from .intervals import (
    DEGENERATE_RATIO,
    PairedDifference,
    auc_interval,
    corrected_error,
    corrected_interval,
    counting_deviation,
    paired_differences,
    rate_interval,
)
from .journal import Journal, plain

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


def front_gaps(sizes: Sequence[int], scores: Sequence[float]) -> list[float]:
    """Return how far each score lies below the best score with at most as many features."""
    k, s = np.asarray(sizes), np.asarray(scores)
    return [float(s[k <= size].max() - score) for size, score in zip(k, s)]


# ----------------------------------------------------------------------- the rows, from the log


@dataclass(frozen=True)
class MethodAtSize:
    """What a method reached with panels of one size, over all folds."""

    entries: tuple[dict[str, Any], ...]
    n_classes: int
    n_first: int

    @classmethod
    def collect(
        cls, journal: Journal, name: str, size: int, folds: list[Fold], n_classes: int
    ) -> MethodAtSize:
        """Gather what the journal holds of a method at a size, in the order of the folds."""
        entries = []
        for fold in folds:
            record = journal.records[name, fold.repeat, fold.index]
            entries.append(next(e for e in record["sizes"] if e["size"] == size))
        return cls(tuple(entries), n_classes, sum(f.repeat == folds[0].repeat for f in folds))

    @property
    def complete(self) -> bool:
        """Whether every fold was finished."""
        return all(entry["status"] == "ok" for entry in self.entries)

    def values(self, name: str) -> Float64Array:
        found = [entry[name] for entry in self.entries]
        return np.array([np.nan if v is None else v for v in found], dtype=np.float64)

    def counts(self) -> list[tuple[int, int, int, int]]:
        total = np.sum([entry["counts"] for entry in self.entries[: self.n_first]], axis=0)
        return [tuple(int(v) for v in row) for row in total]  # type: ignore[misc]

    def floor(self) -> float:
        """Return the spread of fold scores below which they are not believed."""
        pairs = [(tp, p) for tp, p, _, _ in self.counts()]
        return DEGENERATE_RATIO * counting_deviation(pairs, self.n_first)

    def score(self, ratio: float, level: float) -> Interval:
        pairs = [(tp, p) for tp, p, _, _ in self.counts()]
        return rate_interval(self.values("score"), ratio, pairs, self.n_first, level=level)

    def auc(self, ratio: float, level: float) -> Interval:
        ones = self.counts()[1:] if self.n_classes == 2 else self.counts()
        return auc_interval(self.values("auc"), ratio, ones, self.n_first, level=level)

    def native(self, ratio: float, level: float) -> Interval | None:
        values = self.values("native")
        if not np.isfinite(values).all():
            return None
        return corrected_interval(values, ratio, level=level)

    def stability(
        self, n_features: int, level: float
    ) -> tuple[StabilityIndex | None, float | None]:
        panels = [entry["panel"] for entry in self.entries]
        if len(panels) < 2:
            return None, None
        return nogueira_stability(panels, n_features, level=level), average_jaccard(panels)


def comparison_rows(
    cells: dict[tuple[str, int], MethodAtSize],
    folds: list[Fold],
    reference: str,
    n_features: int,
    level: float,
) -> tuple[ComparisonRow, ...]:
    """Return a row for every method and size, the unfinished ones with their reason."""
    ratio = holdout_ratio(folds)
    complete = [key for key, cell in cells.items() if cell.complete]
    scores = {key: cells[key].score(ratio, level) for key in complete}
    sizes, values = [k for _, k in complete], [scores[key].value for key in complete]
    front = dict(zip(complete, pareto_front(sizes, values).tolist())) if complete else {}
    gaps = dict(zip(complete, front_gaps(sizes, values))) if complete else {}
    differences = _differences(cells, complete, reference, ratio, level)
    rows = []
    for key, cell in cells.items():
        finished = [entry for entry in cell.entries if entry["status"] == "ok"]
        problem = next((entry for entry in cell.entries if entry["status"] != "ok"), None)
        stability, jaccard = cell.stability(n_features, level) if problem is None else (None, None)
        rows.append(
            ComparisonRow(
                method=key[0],
                size=key[1],
                status="ok" if problem is None else problem["status"],
                error=None if problem is None else problem["error"],
                n_folds=len(finished),
                score=scores.get(key),
                standard_error=corrected_error(cell.values("score"), ratio)
                if problem is None
                else None,
                auc=cell.auc(ratio, level) if problem is None else None,
                native=cell.native(ratio, level) if problem is None else None,
                panel_size=float(np.mean([len(e["panel"]) for e in finished]))
                if finished
                else None,
                stability=stability,
                jaccard=jaccard,
                difference=differences.get(key),
                on_front=front.get(key, False),
                front_gap=gaps.get(key),
            )
        )
    return tuple(rows)


def _differences(
    cells: dict[tuple[str, int], MethodAtSize],
    complete: list[tuple[str, int]],
    reference: str,
    ratio: float,
    level: float,
) -> dict[tuple[str, int], PairedDifference]:
    """Return each method's difference to the reference at the same size, as one family."""
    keys = [
        (name, size)
        for name, size in complete
        if name != reference and (reference, size) in complete
    ]
    if not keys or len(cells[keys[0]].entries) < 2:
        return {}
    gaps = [cells[key].values("score") - cells[reference, key[1]].values("score") for key in keys]
    floors = [max(cells[key].floor(), cells[reference, key[1]].floor()) for key in keys]
    return dict(zip(keys, paired_differences(gaps, ratio, floors=floors, level=level)))


def mean_seconds(
    journal: Journal, methods: Mapping[str, Any], folds: list[Fold]
) -> dict[tuple[str, int], float]:
    """Return the mean seconds of a fit, by method and size."""
    found: dict[tuple[str, int], float] = {}
    for name in methods:
        times: dict[int, list[float]] = {}
        for fold in folds:
            key = (name, fold.repeat, fold.index)
            sizes = [entry["size"] for entry in journal.records[key]["sizes"]]
            for size, value in zip(sizes, journal.timings.get(key) or []):
                if value is not None:
                    times.setdefault(size, []).append(value)
        found.update({(name, size): float(np.mean(t)) for size, t in times.items()})
    return found
