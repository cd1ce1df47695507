"""Notices of a run: what speaks against its score, its data and the stability of its panel.

When a notice is due is decided here; what it says is in ``notices.toml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from .._notices import Notice, Severity, notice
from .words import POOR, TEXTS, Part, comes_back, joined, number, p_value, plural, range_words

# Conventions for readers, not tests.
_FEW = 20  # samples of the smallest class
_IMBALANCE = 3.0
_MISSING = 0.05
_PERFECT = 0.99
_IN_GROUPS = ", and those of a group with several classes within the group"


def notices_of(
    document: Part, flags: Sequence[Any], *parts: Iterable[Notice]
) -> list[dict[str, Any]]:
    """All notices of a run, its flags and those in ``parts``, the most serious first."""
    said = [
        *_about_score(document),
        *(said for flag in flags for said in _from_flag(flag.code, flag.numbers)),
        *_about_data(document["data"]),
        *_about_panel(document),
        *(said for part in parts for said in part),
        *(notice("skipped", text=text) for text in document["run"]["skipped"]),
    ]
    order = get_args(Severity)
    return [n.to_dict() for n in sorted(said, key=lambda each: order.index(each.severity))]


def _about_score(document: Part) -> Iterator[Notice]:
    verdict, score = document["verdict"], document["scores"]["balanced_accuracy"]
    if verdict["answer"] != "signal":
        yield notice(
            "not tested: fixed" if verdict["reason"] == "labels fixed" else verdict["answer"],
            p="" if verdict["p_value"] is None else p_value(verdict),
            range=range_words(score),
            low=number(score["low"]),
            chance=verdict["chance"],
            groups=_IN_GROUPS if "groups" in verdict["scheme"] else "",
        )
    if score["value"] >= _PERFECT:
        yield notice("perfect")


def _from_flag(code: str, numbers: Mapping[str, Any]) -> Iterator[Notice]:
    """Put a flag of the evaluation into words; "perfect" and "few" are said of all runs."""
    if code in ("duplicates", "twins"):
        kind = "repeats: twins" if code == "twins" else "repeats: equal"
        yield notice(kind, samples=plural(numbers["n_samples"], "sample"))
    elif code == "confounded":
        yield notice("confounded: closely" if numbers["closely"] else code, **numbers)
    elif code == "new batch":
        yield notice("new batch: below chance" if numbers["below_chance"] else code, **numbers)
    elif code in ("sizes", "fits"):
        yield notice(code, **numbers)


def _about_data(data: Part) -> Iterator[Notice]:
    smallest, largest = min(data["class_counts"]), max(data["class_counts"])
    if smallest < _FEW:
        rare = data["classes"][data["class_counts"].index(smallest)]
        yield notice("few", rare=rare, samples=plural(smallest, "sample"), step=1 / smallest)
    if largest >= _IMBALANCE * smallest:
        yield notice("imbalance", times=largest / smallest)
    share = data["n_missing"] / (data["n_samples"] * data["n_features"])
    if share > _MISSING:
        yield notice("missing", share=share)


def _about_panel(document: Part) -> Iterator[Notice]:
    stability, panel = document["stability"], document["panel"]
    if stability is None or document["verdict"]["answer"] == "none":
        return
    index, noise = stability["index"], stability["index_noise"]
    if index is not None and index < POOR and not comes_back(document):
        steadier = [
            str(rung["size"])
            for rung in document["ladder"]
            if (rung["stability"] or 0.0) > index + 0.1 and not rung["chosen"]
        ]
        yield notice(
            "unstable",
            index=number(index),
            shuffled="" if noise is None else f"; with shuffled labels {number(noise)}",
            better=f" Panels of {joined(steadier)} agree more." if steadier else "",
        )
        return
    rare = [
        row["feature"]
        for row in panel
        if row["with_stand_ins"] is not None
        and row["with_stand_ins"] < 0.5
        and not (row["must"] or row["covariate"])
    ]
    if rare:
        yield notice("rare", names=joined(rare))


def cohort_remarks(flags: Sequence[Any]) -> list[str]:
    """What is to be known about the scores of another cohort, a sentence each."""
    return [TEXTS["cohort"][flag.code].format(**flag.numbers) for flag in flags]
