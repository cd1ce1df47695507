"""Fixed panels beside the selection: scored on the same folds, with the paired difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..evaluation import EvaluationResult, paired_difference
from ..evaluation.paired import ALONE
from ..io import InputError, Table
from ..io.errors import option
from ..report.words import interval, listed, number, plural
from .settings import Settings
from .steering import columns_of

GIVEN, COVARIATES = "given panel", ALONE
_LEVEL = 0.95


@dataclass(frozen=True)
class FixedPanel:
    """Columns that are scored as they are, beside those that a procedure selects.

    ``kind`` is `GIVEN` for a panel that the caller names, `COVARIATES` for what is adjusted for.
    It is also the stage, and the part of the log, in which the panel is scored. ``adjusted`` says
    that the last of the columns are what is adjusted for, which ``names`` leaves out.
    """

    kind: str
    names: tuple[str, ...]
    columns: tuple[int, ...]
    adjusted: bool = False
    published: bool = False

    def describe(self, own: EvaluationResult, selected: EvaluationResult) -> dict[str, Any]:
        """Set the scores of the panel beside those of the selection, as JSON and in words.

        The difference is what the given panel has more than the selection, or what the selection,
        which has the covariates too, has more than these alone.
        """
        pair = (own, selected) if self.kind == GIVEN else (selected, own)
        found = paired_difference(*pair, level=_LEVEL)
        ends = {"value": found.value, "low": found.low, "high": found.high}
        scores = {name: score.to_dict() for name, score in own.scores.items()}
        mine, other = (
            interval(result.scores["balanced_accuracy"].to_dict()) for result in (own, selected)
        )
        apart = found.low > 0 or found.high < 0
        words = _given_words if self.kind == GIVEN else _covariate_words
        return {
            "kind": self.kind,
            "features": list(self.names),
            "published": self.published,
            "scores": {name: score for name, score in scores.items() if score["low"] is not None},
            "difference": {**ends, "level": _LEVEL},
            "p_value": found.p_value,
            "sentences": words(self, mine, other, ends, apart),
        }


def _given_words(
    panel: FixedPanel, mine: str, other: str, difference: dict[str, float], apart: bool
) -> list[str]:
    more = difference["value"] >= 0
    told = "the two cannot be told apart on these samples"
    if apart:
        told = f"the {'given panel' if more else 'selection'} predicts better here"
    origin = (
        "This judges the panel after the fact: if it was chosen with these samples, or some of "
        "them, its score is too good, because the folds leave out samples from fitting its "
        "weights but not from choosing its features."
    )
    if panel.published:
        origin = (
            "It is stated that the panel was chosen without any of these samples; if that is so, "
            "its score is as honest as that of the selection."
        )
    what = f"{plural(len(panel.names), 'feature')}: {listed(panel.names)}"
    what += "; and what is adjusted for" if panel.adjusted else ""
    return [
        f"The given panel ({what}) reaches a balanced accuracy of {mine}, the selection {other}, "
        "both on the same folds.",
        f"Fold by fold that is {number(abs(difference['value']))} {'more' if more else 'less'} "
        f"({_range(difference)}): {told}.",
        origin,
    ]


def _covariate_words(
    panel: FixedPanel, mine: str, other: str, difference: dict[str, float], apart: bool
) -> list[str]:
    told = "whether it adds anything cannot be told on these samples"
    if apart:
        told = "it adds to them" if difference["value"] > 0 else "with it the prediction is worse"
    reach = "reaches" if len(panel.names) == 1 else "reach"
    return [
        f"Alone, {listed(panel.names)} {reach} a balanced accuracy of {mine}, and {other} "
        "together with the panel, both on the same folds.",
        f"Fold by fold the panel adds {difference['value']:+.2f} ({_range(difference)}): {told}.",
    ]


def _range(difference: dict[str, float]) -> str:
    return (
        f"{_LEVEL:.0%} interval of the difference {difference['low']:+.2f} to "
        f"{difference['high']:+.2f}"
    )


def fixed_panels(settings: Settings, table: Table) -> list[FixedPanel]:
    """Return what is to be scored beside the selection.

    What is adjusted for is part of a given panel too: the two differ in the rest alone.
    """
    adjusted = table.covariate_columns
    found = []
    if adjusted:
        names = tuple(table.feature_names[j] for j in adjusted)
        found.append(FixedPanel(COVARIATES, names, tuple(adjusted)))
    if settings.panel:
        columns = [j for j in columns_of(settings.panel, table, "panel") if j not in adjusted]
        if not columns:
            raise InputError(
                f"{option('panel')} names nothing but what is adjusted for ({option('adjust')})",
                remedy="name its features, or leave it out",
            )
        names = tuple(table.feature_names[j] for j in columns)
        every = (*columns, *adjusted)
        found.append(FixedPanel(GIVEN, names, every, bool(adjusted), settings.published))
    return found
