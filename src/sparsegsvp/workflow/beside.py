"""Fixed panels beside the selection: scored on the same folds, with the paired difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..evaluation import EvaluationResult, paired_difference
from ..io import Table
from ..report.words import interval, listed, number, plural
from .settings import Settings
from .steering import columns_of

GIVEN = "given panel"
_LEVEL = 0.95


@dataclass(frozen=True)
class FixedPanel:
    """Columns that are scored as they are, beside those that a procedure selects.

    ``kind`` is `GIVEN` for a panel that the caller names. It is also the stage, and the part of
    the log, in which the panel is scored.
    """

    kind: str
    names: tuple[str, ...]
    columns: tuple[int, ...]
    published: bool = False

    def describe(self, own: EvaluationResult, selected: EvaluationResult) -> dict[str, Any]:
        """Set the scores of the panel beside those of the selection, as JSON and in words."""
        scores = {name: found.to_dict() for name, found in own.scores.items()}
        difference = paired_difference(own, selected, level=_LEVEL)
        return {
            "kind": self.kind,
            "features": list(self.names),
            "published": self.published,
            "scores": {name: found for name, found in scores.items() if found["low"] is not None},
            "difference": {
                "value": difference.value,
                "low": difference.low,
                "high": difference.high,
                "level": _LEVEL,
            },
            "p_value": difference.p_value,
            "sentences": [*self._compared(own, selected, difference), self._origin()],
        }

    def _compared(
        self, own: EvaluationResult, selected: EvaluationResult, difference: Any
    ) -> list[str]:
        mine, other = (
            interval(found.scores["balanced_accuracy"].to_dict()) for found in (own, selected)
        )
        size, low, high = abs(difference.value), difference.low, difference.high
        told = "the two cannot be told apart on these samples"
        if low > 0 or high < 0:
            told = f"the {self.kind if low > 0 else 'selection'} predicts better here"
        return [
            f"The {self.kind} ({plural(len(self.names), 'feature')}: {listed(self.names)}) reaches "
            f"a balanced accuracy of {mine}, the selection {other}, both on the same folds.",
            f"Fold by fold that is {number(size)} {'more' if difference.value >= 0 else 'less'} "
            f"({_LEVEL:.0%} interval of the difference {low:+.2f} to {high:+.2f}): {told}.",
        ]

    def _origin(self) -> str:
        """Say how far the score can be trusted."""
        if self.published:
            return (
                "It is stated that the panel was chosen without any of these samples; if that is "
                "so, its score is as honest as that of the selection."
            )
        return (
            "This judges the panel after the fact: if it was chosen with these samples, or some "
            "of them, its score is too good, because the folds leave out samples from fitting its "
            "weights but not from choosing its features."
        )


def fixed_panels(settings: Settings, table: Table) -> list[FixedPanel]:
    """Return what is to be scored beside the selection."""
    if not settings.panel:
        return []
    columns = columns_of(settings.panel, table, "panel")
    names = tuple(table.feature_names[j] for j in columns)
    return [FixedPanel(GIVEN, names, tuple(columns), settings.published)]
