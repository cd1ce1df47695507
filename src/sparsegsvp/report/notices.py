"""Notices of a run: what speaks against its score, its data and the stability of its panel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from .._notices import Notice, Severity
from .words import POOR, Part, joined, number, p_value, plural, range_words

# Conventions for readers, not tests.
_FEW = 20  # samples of the smallest class
_IMBALANCE = 3.0
_MISSING = 0.05
_PERFECT = 0.99


def notices_of(
    document: Part, flags: Sequence[Any], *parts: Iterable[Notice]
) -> list[dict[str, Any]]:
    """All notices of a run as the document holds them, the most serious first.

    ``flags`` are those of the evaluation; ``parts`` are notices of the table and of the run.
    """
    said = [
        *_about_score(document, flags),
        *(notice for flag in flags for notice in _from_flag(flag.code, flag.numbers)),
        *_about_data(document["data"]),
        *_about_panel(document),
        *(notice for part in parts for notice in part),
        *(Notice("skipped", "note", text) for text in document["run"]["skipped"]),
    ]
    order = get_args(Severity)
    return [n.to_dict() for n in sorted(said, key=lambda notice: order.index(notice.severity))]


def _about_score(document: Part, flags: Sequence[Any]) -> Iterator[Notice]:
    verdict, score = document["verdict"], document["scores"]["balanced_accuracy"]
    answer, chance = verdict["answer"], verdict["chance"]
    if answer == "none":
        text = (
            f"The interval of the balanced accuracy is {range_words(score)}, and shuffled labels "
            f"do about as well ({p_value(verdict)}). The panel must not be read as markers."
        )
        yield Notice("none", "serious", text)
    elif answer == "weak":
        text = (
            f"Shuffled labels seldom do as well ({p_value(verdict)}), but the interval of the "
            f"balanced accuracy begins at {number(score['low'])}, and guessing gives "
            f"{chance:.2f}. The panel may help a little, or hardly at all."
        )
        yield Notice("weak", "caution", text)
    elif answer == "inconclusive":
        text = (
            "The score and the test against shuffled labels do not agree, or there were too few "
            "draws. More samples, or more draws, would decide it."
        )
        yield Notice("inconclusive", "caution", text)
    elif answer == "not tested":
        fixed = verdict["reason"] == "labels fixed"
        text = (
            "Groups or batches leave no labels to shuffle: every one has its class alone. A study "
            "with both classes in each could be tested."
            if fixed
            else "Without the test against shuffled labels a score in a wide table is no evidence."
        )
        yield Notice("not tested", "serious" if fixed else "caution", text)
    if score["value"] >= _PERFECT or any(flag.code == "perfect" for flag in flags):
        text = (
            "This is rare in biology and common where the classes were measured on other days, "
            "machines or sites. Check how the samples were run before believing it."
        )
        yield Notice("perfect", "note", text)


def _from_flag(code: str, numbers: Mapping[str, Any]) -> Iterator[Notice]:
    """Put a flag of the evaluation into words; those said elsewhere give nothing."""
    n = numbers
    if code in ("duplicates", "twins"):
        alike = "are equal to" if code == "duplicates" else "are far more alike than chance allows"
        text = (
            f"{plural(n['n_samples'], 'sample')} {alike}"
            f"{' another' if code == 'duplicates' else ''}. If they come from one patient or one "
            "sample, copies stand on both sides of a fold and the score is too good: name the "
            "column that tells them apart as groups."
        )
        yield Notice("repeats", "serious", text)
    elif code == "sizes":
        text = (
            f"The score is of panels of {n['low']} to {n['high']} features (median "
            f"{n['median']:g}), and this one has {n['size']}. The ladder has the score of each "
            "size."
        )
        yield Notice("sizes", "caution", text)
    elif code == "fits":
        text = f"{plural(n['n_fits'], 'fit')} gave a warning ({n['kind']}): {n['first']}"
        yield Notice("fits", "note", text)
    elif code == "confounded":
        much = "nearly completely " if n["closely"] else ""
        text = (
            f"From {n['name']} alone the class is told with a balanced accuracy of "
            f"{number(n['accuracy'])}, from a shuffled one with {number(n['shuffled'])}: they "
            f"hang together {much}in these data. The panel may tell {n['name']} and not the class; "
            "no method can separate the two here."
        )
        yield Notice("confounded", "serious" if n["closely"] else "caution", text)
    elif code == "new batch":
        low = "; that is below chance" if n["below_chance"] else ""
        text = (
            f"Where all samples of a {n['name']} are left out of the fit, balanced accuracy is "
            f"{number(_value(n['score']))} instead of {number(n['ordinary'])}{low}. Expect the "
            f"lower one in a new {n['name']}."
        )
        yield Notice("new batch", "serious" if n["below_chance"] else "caution", text)


def _value(score: Any) -> float:
    """The estimate of an interval, given as an object, a mapping or a plain number."""
    if isinstance(score, Mapping):
        return float(score["value"])
    return float(getattr(score, "value", score))


def _about_data(data: Part) -> Iterator[Notice]:
    smallest, largest = min(data["class_counts"]), max(data["class_counts"])
    rare = data["classes"][data["class_counts"].index(smallest)]
    if smallest < _FEW:
        text = (
            f"Class {rare} has {plural(smallest, 'sample')}. One sample more or less on the right "
            f"side moves its recall by {1 / max(smallest, 1):.0%}, and panels chosen from so few "
            "samples tend to change."
        )
        yield Notice("few", "caution", text)
    if largest >= _IMBALANCE * smallest:
        text = (
            f"The largest class has {largest / max(smallest, 1):.1f} times the samples of the "
            "smallest. Balanced accuracy counts all classes alike; plain accuracy would flatter."
        )
        yield Notice("imbalance", "caution", text)
    cells = data["n_samples"] * data["n_features"]
    if data["n_missing"] > _MISSING * cells:
        text = (
            f"{data['n_missing'] / cells:.0%} of the values are missing. They were filled within "
            "each training part; if values are missing more often in one class, that alone can "
            "look like signal."
        )
        yield Notice("missing", "caution", text)


def _about_panel(document: Part) -> Iterator[Notice]:
    stability, panel = document["stability"], document["panel"]
    if stability is None or document["verdict"]["answer"] == "none":
        return
    index, noise = stability["index"], stability["index_noise"]
    if index is not None and index < POOR:
        shuffled = "" if noise is None else f"; with shuffled labels {number(noise)}"
        better = [
            rung["size"]
            for rung in document["ladder"]
            if (rung["stability"] or 0.0) > index + 0.1 and rung["size"] != len(panel)
        ]
        ladder = f" Panels of {joined([str(s) for s in better])} agree more." if better else ""
        text = (
            f"Halves of the samples choose other features (stability {number(index)} of "
            f"1{shuffled}). Other panels may predict about as well, so do not follow up single "
            f"features of this one alone.{ladder}"
        )
        yield Notice("unstable", "caution", text)
    rare = [
        row["feature"]
        for row in panel
        if row["with_stand_ins"] is not None
        and row["with_stand_ins"] < 0.5
        and not (row["must"] or row["covariate"])
    ]
    if rare and not (index is not None and index < POOR):
        text = (
            f"{joined(rare)} {'is' if len(rare) == 1 else 'are'} chosen by fewer than half of the "
            "half samples, stand-ins counted."
        )
        yield Notice("rare", "note", text)


def cohort_remarks(flags: Sequence[Any]) -> list[str]:
    """What is to be known about the scores of another cohort, a sentence each."""
    remarks = []
    for flag in flags:
        n = flag.numbers
        remarks.append(
            {
                "absent": "Class {class} does not occur in the cohort, so scores that need it are "
                "left out.",
                "few": "Class {class} has only {count} samples in the cohort.",
                "one call": "The model calls every sample {label}.",
                "equal ranks": "The model gives all samples the same score, so there is no ROC "
                "curve.",
                "no probabilities": "The model gives no probabilities, so calibration and decision "
                "curve are left out.",
                "no slope": "The calibration slope cannot be estimated: the probabilities separate "
                "the classes or are equal.",
            }[flag.code].format(**n)
        )
    return remarks
