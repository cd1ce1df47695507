"""Answers to five questions that readers ask of a run, and the next steps it suggests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from .words import Part, interval, joined, p_value, plural, stability_word

#: The questions, in the order in which the page answers them, and what the menu calls them.
QUESTIONS = {
    "which": ("Which features?", "Which features"),
    "good": ("How good is it?", "How good"),
    "trust": ("Can I trust it?", "Can I trust it"),
    "write": ("What do I write?", "What to write"),
    "next": ("What next?", "What next"),
}

_LEVELS = {
    "signal": "Beyond chance",
    "inconclusive": "Not decided yet",
    "none": "No: no better than chance",
    "not tested": "Not tested against chance",
}

_AGREEMENT = {"poor": "poorly", "fair": "fairly", "excellent": "excellently"}

# What names look like, and where to look them up; the first that half of a panel looks like.
_PLACES = (
    ("Ensembl identifiers", r"ENS[A-Z]*[GTP]\d{11}(?=\.|$)", "www.ensembl.org/id/{}"),
    (
        "UniProt accessions",
        r"(?:[OPQ]\d[A-Z0-9]{3}\d|[A-NR-Z]\d(?:[A-Z][A-Z0-9]{2}\d){1,2})$",
        "www.uniprot.org/uniprotkb/{}",
    ),
    (
        "gene symbols",
        r"(?=.*[A-Z])[A-Z][A-Z0-9]{1,9}(?:-[A-Z0-9]{1,4})?$",
        "www.genecards.org/cgi-bin/carddisp.pl?gene={}",
    ),
)


def answers(results: Part) -> dict[str, str]:
    """Answer each of `QUESTIONS` in a line; ``results`` is the document."""
    return {
        "which": _which(results),
        "good": _how_good(results),
        "trust": _trust(results),
        "write": "What follows is filled from this run; the checklist says what is left to you.",
        "next": "What these results suggest, the most important first.",
    }


def _which(results: Part) -> str:
    panel = results["panel"]
    if not panel:
        return "None was selected."
    text = f"{joined([row['feature'] for row in panel])}."
    if all(row["frequency"] is not None for row in panel):
        steady = [row["feature"] for row in panel if row["frequency"] >= 0.5]
        text = f"{len(steady)} of the {len(panel)} are chosen in at least half of the refits"
        text += f": {joined(steady, 8)}." if steady else "."
    if results["verdict"]["level"] == "none":
        text += " None of them is to be read as a marker."
    return text


def _how_good(results: Part) -> str:
    score, test = results["scores"].get("balanced_accuracy"), results["test"]
    if score is None:
        text = "Not estimated in this run."
    else:
        text = (
            f"Balanced accuracy {interval(score)} on samples that the procedure had not seen; "
            f"guessing gives {1 / len(results['data']['classes']):.2f}."
        )
    if test is not None and "balanced_accuracy" in test["scores"]:
        text += f" In another cohort {interval(test['scores']['balanced_accuracy'])}."
    return text


def _trust(results: Part) -> str:
    parts = [_LEVELS[results["verdict"]["level"]]]
    permutation, stability = results["figures"]["permutation"], results["stability"]
    if permutation is not None and results["verdict"]["level"] != "not tested":
        parts[0] += f" ({p_value(permutation['p_value'])} against shuffled labels)"
    if stability is not None and stability["index"] is not None:
        parts.append(
            f"panels selected anew agree {_AGREEMENT[stability_word(stability['index'])]} "
            f"({stability['index']:.2f} of 1)"
        )
    n = len(results["notices"])
    parts.append(f"{plural(n, 'reason')} for doubt below" if n else "no usual reason for doubt")
    return "; ".join(parts) + "."


# ------------------------------------------------------------------------ what to do next


# What may be suggested, the most important first: a title and a sentence each.
_STEPS = {
    "no signal": (
        "Do not follow up these features",
        "The procedure finds a panel in any table; in this one it predicts no better than "
        "chance. Other samples, other measurements or another question come first.",
    ),
    "batches": (
        "Separate the classes from the batches",
        "Measure samples of every class in every batch: no analysis of these data can tell "
        "the one from the other.",
    ),
    "raw values": (
        "Take logarithms and repeat the run",
        "The values look raw; on their scale a few large ones decide everything.",
    ),
    "not tested": (
        "Test it against chance",
        "Repeat the run with the permutation test.",
    ),
    "inconclusive": (
        "Test it against chance",
        "More samples, or more draws of the permutation test, would decide it.",
    ),
    "one data set": (
        "Try the panel on samples from elsewhere",
        "An estimate from one data set knows nothing of other sites, days and machines. "
        "The model needs the panel's columns alone.",
    ),
    "miscalibrated": (
        "Recalibrate before using probabilities elsewhere",
        "In the other cohort they are off; a few labelled samples of the place where the "
        "panel is to be used mend them.",
    ),
    "unstable": (
        "Do not single out one feature",
        "Other samples would have given another panel: what is shown to predict is the "
        "procedure, and features that come back are the ones to follow up.",
    ),
    "substitutes": (
        "Measure the substitutes too",
        "They stood in for features of the panel in other parts of the samples, and may do "
        "so in other samples.",
    ),
    "no learning curve": (
        "Ask whether more samples would help",
        "A learning curve tells before they are collected; this run did not draw one.",
    ),
}


def next_steps(results: Part) -> list[tuple[str, str]]:
    """What the results suggest to do, the most important first: a title and a sentence each."""
    codes = {notice["code"] for notice in results["notices"]}
    level, test = results["verdict"]["level"], results["test"]
    line = None if test is None or test["calibration"] is None else test["calibration"]["line"]
    holds = {
        "no signal": level == "none",
        "batches": bool(codes & {"confounded", "batch", "batch shows"}),
        "raw values": "raw" in codes,
        "not tested": level == "not tested",
        "inconclusive": level == "inconclusive",
        "one data set": test is None,
        "miscalibrated": line is not None and _miscalibrated(line),
        "unstable": "unstable" in codes and level != "none",
        "substitutes": any(row["substitutes"] for row in results["panel"]),
        "no learning curve": results["learning"] is None,
    }
    wanted = [step for case, step in _STEPS.items() if holds[case]]
    return wanted or [("Use it, and watch how it does", "The checklist names what is to be said.")]


def _miscalibrated(line: Part) -> bool:
    off = line["intercept"]["low"] > 0 or line["intercept"]["high"] < 0
    slope = line["slope"]
    return off or (slope is not None and (slope["low"] > 1 or slope["high"] < 1))


def addresses(names: Sequence[str]) -> tuple[str, list[str]] | None:
    """What names of features look like to public databases, and an address for each that does.

    None if most do not look like any.
    """
    for kind, pattern, place in _PLACES:
        found = [(name, re.match(pattern, name)) for name in names]
        known = [match[0] for _, match in found if match is not None]
        if known and 2 * len(known) >= len(names):
            return kind, [place.format(quote(name, safe="")) for name in known]
    return None
