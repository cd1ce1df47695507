"""What an evaluation says in plain words: whether there is signal, and what the fits warned of."""

from __future__ import annotations

from collections import Counter

from ..metrics import Interval
from ._permutation import PermutationResult
from ._result import FoldResult


def has_signal(test: PermutationResult | None, score: Interval, n_classes: int) -> bool:
    """Return whether the test, or the interval where that cannot decide, speaks for signal."""
    if test is not None and _decides(test):
        return test.p_value <= 0.05
    return score.low > 1 / n_classes


def _decides(test: PermutationResult) -> bool:
    """Whether the test could have gone either way: below 19 draws no p reaches 0.05."""
    return test.stopped_early or len(test.distribution) >= 19


def signal_notices(
    signal: bool,
    test: PermutationResult | None,
    score: Interval,
    control: dict[str, Interval] | None,
) -> list[str]:
    """Say where the panel is not one of markers: no signal, or signal everywhere."""
    found = []
    if not signal:
        reason = (
            f"permuted labels score as well in a share of p = {test.p_value:.2g} of the draws"
            if test is not None and _decides(test)
            else f"the interval of the balanced accuracy, {score.low:.2f} to {score.high:.2f}, "
            "does not lie above chance"
        )
        found.append(
            f"No signal was found: {reason}. The panel should not be read as a set of markers."
        )
    if signal and control is not None and control["random"].value >= control["selected"].low:
        found.append(
            "Random panels of the same size predict about as well "
            f"({control['random'].value:.2f} against {control['selected'].value:.2f}): many "
            "features carry the signal, and these are not special."
        )
    return found


def fit_notices(folds: tuple[FoldResult, ...]) -> list[str]:
    """Say once what the fits warned about, and in how many folds."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for fold in folds:
        for kind in {text.split(":")[0] for text in fold.warnings}:
            counts[kind] += 1
        for text in fold.warnings:
            first.setdefault(text.split(":")[0], text)
    return [
        f"{counts[kind]} of {len(folds)} fits warned, the first with {first[kind]}"
        for kind in sorted(counts)
    ]
