"""The rows of a comparison, from its log: the scores of each method at each size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._typing import Float64Array
from ..metrics import Interval, StabilityIndex, average_jaccard
from .comparison import ComparisonRow, pareto_front
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

    def score(self, ratio: float, level: float) -> Interval:
        pairs = [(tp, p) for tp, p, _, _ in self.counts()]
        return rate_interval(self.values("score"), ratio, pairs, level=level)

    def auc(self, ratio: float, level: float) -> Interval:
        return auc_interval(
            self.values("auc"),
            ratio,
            self.values("auc_variance"),
            len(self.entries) / self.n_repeats,
            min(p for _, p, _, _ in self.counts()),
            level=level,
        )

    def native(self, ratio: float, level: float) -> Interval | None:
        values = self.values("native")
        if not np.isfinite(values).all():
            return None
        pairs = [(tp, p) for tp, p, _, _ in self.counts("native_counts")]
        return rate_interval(values, ratio, pairs, level=level)

    def stability(self, n_features: int) -> tuple[StabilityIndex | None, float | None]:
        panels = [entry["panel"] for entry in self.entries]
        if len(panels) < 2:
            return None, None
        return panel_stability(panels, n_features), average_jaccard(panels)


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
            stability, jaccard = cell.stability(n_features)
            row = replace(
                row,
                standard_error=corrected_error(cell.values("score"), ratio),
                auc=cell.auc(ratio, level),
                native=cell.native(ratio, level),
                stability=stability,
                jaccard=jaccard,
                front_gap=gap,
                front_gap_error=gap_error,
            )
        rows.append(row)
    return tuple(rows)


def _front_gap(cell: MethodAtSize, best: MethodAtSize, ratio: float) -> tuple[float, float]:
    """Return how far a method lies below the best, and the paired standard error of that."""
    gaps = best.values("score") - cell.values("score")
    gap = float(gaps.mean())
    if gap <= 0 or gaps.size < 2:
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
    if not keys or len(cells[keys[0]].entries) < 2:
        return {}
    gaps = [cells[key].values("score") - cells[reference, key[1]].values("score") for key in keys]
    floors = [
        max(cells[key].least_spread(), cells[reference, key[1]].least_spread()) for key in keys
    ]
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
