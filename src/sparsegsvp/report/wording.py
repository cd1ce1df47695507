"""How numbers become words, and the verdict at the top of the page.

Thresholds are conventions for readers, not tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .schema import Data, IntervalDict, PanelFeature, StabilityDict, Verdict

_ALPHA = 0.05
_WEAK = 0.1  # a lower end less than this above chance is a weak signal
# Fleiss's words for kappa, which Nogueira et al. (2018) suggest for their index too
POOR, EXCELLENT = 0.4, 0.75


def number(value: float, digits: int = 2) -> str:
    """Write a score, never rounding an imperfect one up to 1.

    Examples
    --------
    >>> from sparsegsvp.report.wording import number
    >>> number(0.914), number(0.998), number(1.0)
    ('0.91', '0.99', '1.00')
    """
    text = f"{value:.{digits}f}"
    if value < 1.0 and float(text) == 1.0:
        text = f"{1.0 - 10.0**-digits:.{digits}f}"
    return text


def interval(found: IntervalDict) -> str:
    """Write an estimate with its interval."""
    return (
        f"{number(found['value'])} ({found['level']:.0%} interval {number(found['low'])} to "
        f"{found['high']:.2f})"
    )


def p_value(p: float) -> str:
    """Write a p-value.

    Examples
    --------
    >>> from sparsegsvp.report.wording import p_value
    >>> p_value(0.01), p_value(0.234)
    ('p = 0.01', 'p = 0.23')
    """
    return f"p = {p:.3f}" if p < 0.01 else f"p = {p:.2f}"


def plural(n: int, noun: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> from sparsegsvp.report.wording import plural
    >>> plural(1, "feature"), plural(15154, "feature")
    ('1 feature', '15,154 features')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Write a few names in a row.

    Examples
    --------
    >>> from sparsegsvp.report.wording import listed
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a, b and c', 'a, b and 1 more')
    """
    names = list(names)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def contrast(data: Data) -> str:
    """Name what is told apart: the positive class from the other, or all of them."""
    classes = data["classes"]
    if len(classes) > 2:
        return f"the {len(classes)} classes apart"
    first = data["positive"] if data["positive"] in classes else classes[-1]
    other = next(c for c in classes if c != first)
    return f"{first} from {other}"


def stability_word(index: float) -> str:
    """Name a value of Nogueira's index."""
    if index < POOR:
        return "poor"
    return "excellent" if index > EXCELLENT else "fair"


# ------------------------------------------------------------------------- the verdict


def verdict(
    data: Data,
    panel: Sequence[PanelFeature],
    scores: Mapping[str, IntervalDict],
    permutation: Mapping[str, Any] | None,
    stability: StabilityDict | None,
) -> Verdict:
    """Say what was found, in a headline and two sentences.

    Parameters
    ----------
    data : Data
    panel : sequence of PanelFeature
    scores : dict of IntervalDict
        Of the outer folds; empty when nothing was estimated.
    permutation : dict or None
        ``PermutationResult.to_dict()``.
    stability : StabilityDict or None

    Returns
    -------
    Verdict
        ``level`` is "chance" whenever the estimate is not shown to be above chance.
    """
    level = _level(len(data["classes"]), scores.get("balanced_accuracy"), permutation)
    size, m = len(panel), data["n_features"]
    what = contrast(data)
    together = f"tell {what}"
    share = f"{size} of {m:,} features"
    headline = {
        "signal": f"{share} {together}",
        "weak": f"A weak signal: {share} {together} a little better than chance",
        "chance": "No signal: "
        + (
            "the classes cannot be told apart better than by chance"
            if len(data["classes"]) > 2
            else f"{what.replace(' from ', ' cannot be told from ')} better than by chance"
        ),
        "unclear": f"Undecided: whether {share} {together} was tested too little to say",
        "not estimated": f"A panel of {plural(size, 'feature')}, not yet tested",
    }[level]
    return {
        "level": level,  # type: ignore[typeddict-item]
        "headline": headline,
        "sentences": [
            _what_was_done(data, size),
            _what_was_found(level, data, scores, permutation, stability),
        ],
    }


def _level(
    n_classes: int, score: IntervalDict | None, permutation: Mapping[str, Any] | None
) -> str:
    if score is None:
        return "not estimated"
    chance = 1.0 / n_classes
    above = score["low"] > chance
    if permutation is None:
        significant = above
    else:
        significant = permutation["p_value"] <= _ALPHA
        smallest = 1.0 / (len(permutation["distribution"]) + 1)
        if not significant and above and smallest > _ALPHA:
            return "unclear"  # so few draws cannot give a small p-value
    if not significant or score["value"] <= chance:
        return "chance"
    return "signal" if score["low"] > chance + _WEAK else "weak"


def _what_was_done(data: Data, size: int) -> str:
    counts = [f"{n:,} {c}" for n, c in zip(data["class_counts"], data["classes"])]
    return (
        f"In {data['source'] or 'the table'}, {plural(data['n_samples'], 'sample')} "
        f"({', '.join(counts)}) with {plural(data['n_features'], 'feature')} each, "
        f"sparsegsvp selected a panel of {plural(size, 'feature')}."
    )


def _what_was_found(
    level: str,
    data: Data,
    scores: Mapping[str, IntervalDict],
    permutation: Mapping[str, Any] | None,
    stability: StabilityDict | None,
) -> str:
    if level == "not estimated":
        return (
            "How well it predicts new samples was not estimated in this run; until it is, "
            "the panel is a suggestion and not a result."
        )
    score = scores["balanced_accuracy"]
    chance = 1.0 / len(data["classes"])
    text = (
        "On samples kept out of selection, tuning and fitting, the whole procedure reaches a "
        f"balanced accuracy of {interval(score)}, where guessing gives {chance:.2f}"
    )
    if level == "chance":
        if permutation is not None:
            text += f" and shuffled labels do about as well ({p_value(permutation['p_value'])})"
        return text + ": this is no better than chance, so the panel must not be read as markers."
    if permutation is not None:
        text += f" ({p_value(permutation['p_value'])} against shuffled labels)"
    if stability is not None and stability["index"] is not None:
        text += (
            f"; selected anew on other samples, the panel's agreement is "
            f"{stability_word(stability['index'])} (stability {number(stability['index'])} of 1)"
        )
    return text + "."
