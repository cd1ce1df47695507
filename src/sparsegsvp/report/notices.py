"""Notices of a run: what speaks against its score, its data and the stability of its panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._notices import Notice
from .words import POOR, Part, joined, number, plural

# Conventions for readers, not tests.
_FEW = 20  # samples of the smallest class
_IMBALANCE = 3.0
_BATCH = 0.5  # Cramer's V of group and class
_MISSING = 0.05
_WEAK = 0.1  # a lower end less than this above chance is a weak signal
_PERFECT = 0.99


def notices_about(
    data: Part, panel: Sequence[Part], level: str, scores: Part, stability: Part | None
) -> list[Notice]:
    """Gather the reasons for doubt; ``level`` is the verdict's."""
    return [
        *_about_score(level, scores.get("balanced_accuracy"), 1 / len(data["classes"])),
        *_about_data(data),
        *_about_stability(panel, stability),
    ]


def _about_score(level: str, score: Part | None, chance: float) -> Iterator[Notice]:
    if score is None:
        return
    if level == "signal" and score["low"] <= chance + _WEAK:
        yield Notice(
            "weak",
            "caution",
            f"The interval of the balanced accuracy begins at {number(score['low'])}, close "
            f"to chance ({chance:.2f}). The panel may help a little, or hardly at all.",
        )
    elif score["value"] >= _PERFECT:
        yield Notice(
            "perfect",
            "note",
            "This is rare in biology and common where the classes were measured on other "
            "days, machines or sites. Check how the samples were run before believing it.",
        )


def _about_data(data: Part) -> Iterator[Notice]:
    smallest, largest = min(data["class_counts"]), max(data["class_counts"])
    rare = data["classes"][data["class_counts"].index(smallest)]
    if smallest < _FEW:
        yield Notice(
            "few",
            "caution",
            f"Class {rare} has {plural(smallest, 'sample')}. One sample more or less on the "
            f"right side moves its recall by {1 / smallest:.0%}, and panels chosen from so "
            "few samples tend to change.",
        )
    if largest >= _IMBALANCE * smallest:
        yield Notice(
            "imbalance",
            "caution",
            f"The largest class has {largest / smallest:.1f} times the samples of the "
            "smallest. Scores here count both alike; plain accuracy would flatter, and "
            "probabilities are for equal shares, so adjust them to the prevalence you expect.",
        )
    association, groups = data["group_association"], data["n_groups"]
    batch_like = groups is not None and groups <= max(8, data["n_samples"] // 10)
    if association is not None and batch_like and association >= _BATCH:
        yield Notice(
            "batch",
            "serious",
            f"Group and class go together (Cramér's V = {number(association)}, 1 is "
            "complete). If groups are batches or sites, the panel may tell batches apart "
            "and not the classes; no method can separate the two in these data.",
        )
    cells = data["n_samples"] * data["n_features"]
    if data["n_missing"] > _MISSING * cells:
        yield Notice(
            "missing",
            "caution",
            f"{data['n_missing'] / cells:.0%} of the values are missing. They were filled "
            "within each training part; if values are missing more often in one class, "
            "that alone can look like signal.",
        )


def _about_stability(panel: Sequence[Part], stability: Part | None) -> Iterator[Notice]:
    if stability is not None and stability["index"] is not None and stability["index"] < POOR:
        yield Notice(
            "unstable",
            "caution",
            f"Selected anew on other samples, the panels agree little (stability "
            f"{number(stability['index'])} of 1). Other panels may predict about as well"
            + (
                "; look at the substitutes before following up single features."
                if any(feature["substitutes"] for feature in panel)
                else ", so do not follow up single features of this one alone."
            ),
        )
    rare = []
    for feature in panel:
        group = feature["group_frequency"]
        chosen = feature["frequency"] if group is None else group
        if chosen is not None and chosen < 0.5:
            rare.append(feature["feature"])
    if rare:
        yield Notice(
            "rare",
            "note",
            f"{joined(rare)} {'is' if len(rare) == 1 else 'are'} in the panel but, even with "
            "substitutes counted, chosen in fewer than half of the refits.",
        )
