"""What the reader of an evaluation has to know."""

from __future__ import annotations

from collections import Counter

from .._notices import Notice
from ..metrics import Interval
from ._permutation import FEWEST_DRAWS, PermutationResult, verdict
from ._result import FoldResult


def signal_notices(
    test: PermutationResult | None,
    score: Interval,
    n_classes: int,
    control: dict[str, Interval] | None,
) -> list[Notice]:
    """Say where the panel is not one of markers: no proven signal, or signal everywhere."""
    found = []
    decided = verdict(test, score, n_classes)
    if decided == "none":
        assert test is not None
        reason = (
            f"Permuted labels score as well in a share of p = {test.p_value:.2g} of the draws."
            if test.p_value > 0.05
            else f"The balanced accuracy, {score.value:.2f}, is not above chance."
        )
        text = f"{reason} The panel should not be read as a set of markers."
        found.append(Notice("none", "serious", text))
    elif decided == "inconclusive":
        assert test is not None
        text = (
            f"The interval of the balanced accuracy, {score.low:.2f} to {score.high:.2f}, lies "
            f"above chance, but permuted labels score as well in a share of p = "
            f"{test.p_value:.2g} of {len(test.distribution)} draws. More draws may decide."
        )
        found.append(Notice("inconclusive", "caution", text))
    elif decided == "not tested":
        text = (
            "There was no permutation test"
            if test is None
            else f"{len(test.distribution)} permutations cannot decide; it takes {FEWEST_DRAWS}"
        )
        text += ", so it is open whether the score, however high, is more than chance."
        found.append(Notice("not tested", "caution", text))
    looks_good = decided == "signal" or score.low > 1 / n_classes
    if looks_good and control is not None and control["random"].value >= control["selected"].low:
        text = (
            "Random panels of the same size predict about as well "
            f"({control['random'].value:.2f} against {control['selected'].value:.2f}): many "
            "features carry the signal, and these are not special."
        )
        found.append(Notice("random", "caution", text))
    return found


def fit_notices(folds: tuple[FoldResult, ...]) -> list[Notice]:
    """Say once what the fits warned about, and in how many folds."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for fold in folds:
        for kind in {text.split(":")[0] for text in fold.warnings}:
            counts[kind] += 1
        for text in fold.warnings:
            first.setdefault(text.split(":")[0], text)
    return [
        Notice(
            "fits",
            "note",
            f"{counts[kind]} of {len(folds)} fits warned, the first with {first[kind]}",
        )
        for kind in sorted(counts)
    ]
