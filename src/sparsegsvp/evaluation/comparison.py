"""The result of a comparison: a row per method and panel size, made from its log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import BoolArray, Float64Array
from ..metrics import Interval, StabilityIndex, average_jaccard
from .folds import Fold, holdout_ratio
from .intervals import (
    PairedDifference,
    auc_interval,
    corrected_error,
    least_spread,
    paired_differences,
    rate_interval,
)
from .journal import Journal
from .panels import panel_stability
from .values import Shown, data_frame, html_table, plain, ranged

RANDOM_PANEL = "random panel"

COMPARISON_NOTES = (
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
        Whether it is on the Pareto front of sizes and scores (:func:`pareto_front`).
    front_gap, front_gap_error : float or None
        How far the score lies below the best with at most as many features, and the standard
        error of that, over paired folds and corrected; 0 on the front.
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
class Comparison(Shown):
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
        From (method, size) to the mean seconds of a fit, on one thread; not in :meth:`to_dict`,
        whose bytes are the same in every run.
    """

    rows: tuple[ComparisonRow, ...]
    reference: str
    sizes: tuple[int, ...]
    n_samples: int
    n_features: int
    n_folds: int
    description: dict[str, Any]
    seconds: dict[tuple[str, int], float] = field(compare=False)

    def _lines(self) -> list[tuple[str, str]]:
        lines = []
        for size in self.sizes:
            done = [(r.score, r.method) for r in self.rows if r.size == size and r.score]
            score, name = max(done, key=lambda d: d[0].value, default=(None, "no method finished"))
            lines.append((f"{size} features", f"{name} {ranged(score)}"))
        return lines

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
                "notes": COMPARISON_NOTES,
            }
        )

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with the seconds of a fit."""
        return data_frame([self._flat(row) for row in self.rows])

    def _flat(self, row: ComparisonRow) -> dict[str, Any]:
        nan = float("nan")

        def known(estimate: Any, name: str = "value") -> float:
            return nan if estimate is None else getattr(estimate, name)

        return {
            "method": row.method,
            "size": row.size,
            "status": row.status,
            "balanced_accuracy": known(row.score),
            "low": known(row.score, "low"),
            "high": known(row.score, "high"),
            "auc": known(row.auc),
            "native": known(row.native),
            "difference": known(row.difference),
            "difference_low": known(row.difference, "low"),
            "difference_high": known(row.difference, "high"),
            "p_adjusted": known(row.difference, "p_adjusted"),
            "stability": known(row.stability),
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
        names = ("size", "score", "low", "high", "on_front")
        methods: dict[str, dict[str, list[Any]]] = {}
        front = []
        for row in self.rows:
            if row.score is None:
                continue
            curve = methods.setdefault(row.method, {name: [] for name in names})
            point = (row.size, row.score.value, row.score.low, row.score.high, row.on_front)
            for name, value in zip(names, point):
                curve[name].append(value)
            if row.on_front:
                front.append({"size": row.size, "score": row.score.value, "method": row.method})
        front.sort(key=lambda point: tuple(point.values()))
        return {"methods": methods, "front": front}


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


# ------------------------------------------------------------------------ from the log to rows


@dataclass(frozen=True)
class MethodAtSize:
    """The scores and panels of a method at one size, over all folds."""

    entries: tuple[dict[str, Any], ...]
    n_repeats: int

    @classmethod
    def collect(cls, journal: Journal, name: str, size: int, folds: list[Fold]) -> MethodAtSize:
        """Gather what the journal holds of a method at a size, in the order of the folds."""
        entries = []
        for fold in folds:
            record = journal.records[name, fold.repeat, fold.index]
            entries.append(next(e for e in record["sizes"] if e["size"] == size))
        return cls(tuple(entries), len({f.repeat for f in folds}))

    @property
    def complete(self) -> bool:
        """Whether every fold was finished."""
        return all(entry["status"] == "ok" for entry in self.entries)

    def values(self, name: str) -> Float64Array:
        found = [entry[name] for entry in self.entries]
        return np.array([np.nan if v is None else v for v in found], dtype=np.float64)

    def counts(self, name: str = "counts") -> list[list[float]]:
        """Return the counts of each class in a repeat, the mean over repeats."""
        return (np.sum([e[name] for e in self.entries], axis=0) / self.n_repeats).tolist()

    def least_spread(self) -> float:
        """Return the spread of fold scores below which they are not believed."""
        return least_spread(self.counts(), len(self.entries) / self.n_repeats)

    def rate(self, name: str, ratio: float, level: float) -> Interval:
        """Return the mean over the folds of the score or the native score, with its interval."""
        counts = self.counts("counts" if name == "score" else "native_counts")
        return rate_interval(
            self.values(name), ratio, [(right, total) for right, total, *_ in counts], level=level
        )

    def estimates(self, ratio: float, level: float, n_features: int) -> dict[str, Any]:
        """Return what a finished row tells beside its score: areas, native score, stability."""
        panels = [entry["panel"] for entry in self.entries]
        return {
            "standard_error": corrected_error(self.values("score"), ratio),
            "auc": auc_interval(
                self.values("auc"),
                ratio,
                self.values("auc_variance"),
                len(self.entries) / self.n_repeats,
                min(total for _, total, _, _ in self.counts()),
                level=level,
            ),
            "native": self.rate("native", ratio, level)
            if np.isfinite(self.values("native")).all()
            else None,
            "stability": panel_stability(panels, n_features),
            "jaccard": average_jaccard(panels),
        }


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
    scores = {key: cells[key].rate("score", ratio, level) for key in complete}
    values = [scores[key].value for key in complete]
    front = pareto_front([size for _, size in complete], values).tolist() if complete else []
    on_front: dict[tuple[str, int], bool] = dict(zip(complete, front))
    differences = _differences(cells, complete, reference, ratio, level)
    rows = []
    for key, cell in cells.items():
        finished = [entry for entry in cell.entries if entry["status"] == "ok"]
        problem = next((entry for entry in cell.entries if entry["status"] != "ok"), None)
        row = ComparisonRow(
            *key,
            status="ok" if problem is None else problem["status"],
            error=None if problem is None else problem["error"],
            n_folds=len(finished),
            score=scores.get(key),
            panel_size=float(np.mean([len(e["panel"]) for e in finished])) if finished else None,
            difference=differences.get(key),
            on_front=on_front.get(key, False),
        )
        if problem is None:
            # the best with at most as many features; of several, the row itself if it is one
            rivals = [other for other in complete if other[1] <= key[1]]
            best = max(rivals, key=lambda other: (scores[other].value, other == key))
            gap, gap_error = _front_gap(cell, cells[best], ratio)
            more = cell.estimates(ratio, level, n_features)
            row = replace(row, front_gap=gap, front_gap_error=gap_error, **more)
        rows.append(row)
    return tuple(rows)


def _front_gap(cell: MethodAtSize, best: MethodAtSize, ratio: float) -> tuple[float, float]:
    """Return how far a method lies below the best, and the paired standard error of that."""
    gaps = best.values("score") - cell.values("score")
    gap = float(gaps.mean())
    if gap <= 0:
        return max(gap, 0.0), 0.0
    least = max(cell.least_spread(), best.least_spread()) * np.sqrt(1 / gaps.size + ratio)
    return gap, max(corrected_error(gaps, ratio), float(least))


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
    gaps = [cells[key].values("score") - cells[reference, key[1]].values("score") for key in keys]
    floors = [
        max(cells[key].least_spread(), cells[reference, key[1]].least_spread()) for key in keys
    ]
    return dict(zip(keys, paired_differences(gaps, ratio, floors=floors, level=level)))


def mean_seconds(
    journal: Journal, methods: Iterable[str], sizes: Sequence[int], folds: list[Fold]
) -> dict[tuple[str, int], float]:
    """Return the mean seconds of a fit, by method and size, over the folds that have them."""
    found = {}
    unknown = [None] * len(sizes)
    for name in methods:
        by_fold = [journal.timings.get((name, f.repeat, f.index)) or unknown for f in folds]
        for size, times in zip(sizes, zip(*by_fold)):
            known = [seconds for seconds in times if seconds is not None]
            if known:
                found[name, size] = float(np.mean(known))
    return found
