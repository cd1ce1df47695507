"""The rows of a comparison, from what the journal holds of every method, size and fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import Interval, StabilityIndex, average_jaccard, nogueira_stability
from ._comparison import ComparisonRow, front_gaps, pareto_front
from ._folds import Fold, holdout_ratio
from ._intervals import (
    DEGENERATE_RATIO,
    PairedDifference,
    auc_interval,
    corrected_error,
    corrected_interval,
    counting_deviation,
    paired_differences,
    rate_interval,
)
from .journal import Journal


@dataclass(frozen=True)
class Cell:
    """A method at a size, over all folds."""

    entries: tuple[dict[str, Any], ...]
    n_classes: int
    n_first: int

    @classmethod
    def collect(
        cls, journal: Journal, name: str, size: int, folds: list[Fold], n_classes: int
    ) -> Cell:
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

    def values(self, name: str) -> NDArray[np.float64]:
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
    cells: dict[tuple[str, int], Cell],
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
    cells: dict[tuple[str, int], Cell],
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
