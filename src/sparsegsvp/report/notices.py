"""What the reader has to know, in plain words.

Thresholds are conventions for readers, not tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .schema import Data, IntervalDict, PanelFeature, StabilityDict, Verdict
from .schema import Warning as Notice
from .wording import POOR, listed, number, plural

_FEW = 20  # samples of the smallest class
_IMBALANCE = 3.0
_BATCH = 0.5  # Cramer's V of group and class
_MISSING = 0.05


def notices(
    data: Data,
    panel: Sequence[PanelFeature],
    found: Verdict,
    scores: Mapping[str, IntervalDict],
    permutation: Mapping[str, Any] | None,
    stability: StabilityDict | None,
    others: Sequence[str] = (),
    skipped: Sequence[str] = (),
) -> list[Notice]:
    """Say what the reader has to know, the most serious first.

    Parameters
    ----------
    data, panel, found, scores, permutation, stability
        See `verdict`.
    others : sequence of str
        Sentences of the evaluation.
    skipped : sequence of str
        What was left out of this run.

    Returns
    -------
    list of Warning
    """
    listing = [
        *_about_signal(found, scores, permutation, len(data["classes"])),
        *_about_data(data),
        *_about_stability(panel, stability),
    ]
    listing += [
        _from_evaluation(text)
        for text in others
        if not text.startswith("No signal was found")  # said already, and more plainly
    ]
    listing += [
        _notice("table", "note", "About the table", _sentence(text)) for text in data["hints"]
    ]
    listing += [
        _notice("skipped", "note", "Left out of this run", _sentence(text)) for text in skipped
    ]
    rank = {"serious": 0, "caution": 1, "note": 2}
    return sorted(listing, key=lambda notice: rank[notice["severity"]])


def _notice(kind: str, severity: str, title: str, text: str) -> Notice:
    return {"kind": kind, "severity": severity, "title": title, "text": text}  # type: ignore[typeddict-item]


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _from_evaluation(text: str) -> Notice:
    """Give a sentence of the evaluation a title, by what it is about."""
    if "duplicates of another row" in text or "share an identifier" in text:
        return _notice("repeats", "serious", "Samples occur more than once", text)
    if text.startswith("Random panels"):
        return _notice("random", "caution", "Random panels do about as well", text)
    if "fits warned" in text:
        return _notice("fits", "note", "Some fits warned", text)
    return _notice("evaluation", "caution", "From the evaluation", text)


def _about_signal(
    found: Verdict,
    scores: Mapping[str, IntervalDict],
    permutation: Mapping[str, Any] | None,
    n_classes: int,
) -> list[Notice]:
    level = found["level"]
    if level == "chance":
        return [
            _notice(
                "chance",
                "serious",
                "The estimate is not above chance",
                "A method that selects features always returns some. Here the evidence does not "
                "show that they predict anything: treat the panel as noise unless other data "
                "say otherwise.",
            )
        ]
    if level == "unclear" and permutation is not None:
        return [
            _notice(
                "unclear",
                "serious",
                "Too few permutations to decide",
                f"With {plural(len(permutation['distribution']), 'draw')} the permutation test "
                "cannot reach p = 0.05; run it with 99 or more.",
            )
        ]
    if level == "weak":
        score = scores["balanced_accuracy"]
        return [
            _notice(
                "weak",
                "caution",
                "The signal is weak",
                f"The interval of the balanced accuracy begins at {number(score['low'])}, close "
                f"to chance ({1 / n_classes:.2f}). The panel may help a little, or hardly at all.",
            )
        ]
    score_ = scores.get("balanced_accuracy")
    if score_ is not None and score_["value"] >= 0.99:
        return [
            _notice(
                "perfect",
                "note",
                "Almost perfect separation",
                "This is rare in biology and common where the classes were measured on other "
                "days, machines or sites. Check how the samples were run before believing it.",
            )
        ]
    return []


def _about_data(data: Data) -> list[Notice]:
    found = []
    smallest, largest = min(data["class_counts"]), max(data["class_counts"])
    rare = data["classes"][data["class_counts"].index(smallest)]
    if smallest < _FEW:
        found.append(
            _notice(
                "few",
                "caution",
                "Few samples",
                f"Class {rare} has {plural(smallest, 'sample')}. One sample more or less on the "
                f"right side moves its recall by {1 / smallest:.0%}, and panels chosen from so "
                "few samples tend to change.",
            )
        )
    if largest >= _IMBALANCE * smallest:
        found.append(
            _notice(
                "imbalance",
                "caution",
                "Unequal classes",
                f"The largest class has {largest / smallest:.1f} times the samples of the "
                "smallest. Scores here count both alike; plain accuracy would flatter, and "
                "probabilities are for equal shares, so adjust them to the prevalence you expect.",
            )
        )
    association, groups = data["group_association"], data["n_groups"]
    batch_like = groups is not None and groups <= max(8, data["n_samples"] // 10)
    if association is not None and batch_like and association >= _BATCH:
        found.append(
            _notice(
                "batch",
                "serious",
                "The groups nearly explain the classes",
                f"Group and class go together (Cramér's V = {number(association)}, 1 is "
                "complete). If groups are batches or sites, the panel may tell batches apart "
                "and not the classes; no method can separate the two in these data.",
            )
        )
    cells = data["n_samples"] * data["n_features"]
    if data["n_missing"] > _MISSING * cells:
        found.append(
            _notice(
                "missing",
                "caution",
                "Many missing values",
                f"{data['n_missing'] / cells:.0%} of the values are missing. They were filled "
                "within each training part; if values are missing more often in one class, "
                "that alone can look like signal.",
            )
        )
    return found


def _about_stability(
    panel: Sequence[PanelFeature], stability: StabilityDict | None
) -> list[Notice]:
    found = []
    if stability is not None and stability["index"] is not None and stability["index"] < POOR:
        found.append(
            _notice(
                "unstable",
                "caution",
                "The panel is unstable",
                f"Selected anew on other samples, the panels agree little (stability "
                f"{number(stability['index'])} of 1). Other panels predict about as well; look "
                "at the substitutes before following up single features.",
            )
        )
    rare = [f["feature"] for f in panel if _support(f) is not None and (_support(f) or 0.0) < 0.5]
    if rare:
        found.append(
            _notice(
                "rare",
                "note",
                "Features that are seldom chosen",
                f"{listed(rare)} {'is' if len(rare) == 1 else 'are'} in the panel but, even with "
                "substitutes counted, chosen in fewer than half of the refits.",
            )
        )
    return found


def _support(feature: PanelFeature) -> float | None:
    group = feature["group_frequency"]
    return feature["frequency"] if group is None else group
