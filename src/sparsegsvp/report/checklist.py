"""The TRIPOD+AI checklist of a run: filled from its document where it can be.

27 items, 52 with their parts (Collins and others, BMJ 2024;385:e078378), in words of our own:
what each asks for, what the run says about it, and what is left for the authors to write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .checklist_run import checklist_answers
from .schema import fitting_together
from .words import Part

REFERENCE = (
    "Collins GS and others. TRIPOD+AI statement: updated guidance for reporting clinical "
    "prediction models that use regression or machine learning methods. BMJ 2024;385:e078378."
)


@dataclass(frozen=True)
class ChecklistPart:
    """One part of the checklist.

    Attributes
    ----------
    number : str
        Its item and letter, such as "12c".
    section : str
        The section of a paper that it belongs to.
    topic : str
        What is to be reported.
    text : str
        What the run says about it; empty where it knows nothing.
    authors : str
        What the authors have to write; empty where the run says it all.
    """

    number: str
    section: str
    topic: str
    text: str
    authors: str

    @property
    def status(self) -> str:
        """Who fills it: "run", "both" or "authors"."""
        if not self.text:
            return "authors"
        return "both" if self.authors else "run"


@fitting_together()
def checklist(results: Part) -> list[ChecklistPart]:
    """Fill the checklist from a document.

    Parameters
    ----------
    results : dict
        As for `build_report`.

    Returns
    -------
    list of ChecklistPart
        All 52 parts, in order.

    Examples
    --------
    >>> from sparsegsvp import select_panel
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.report import checklist
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> selection = select_panel(X, y, fast=True, folds=3, n_deltas=5)
    >>> parts = {part.number: part for part in checklist(selection.document)}
    >>> len(parts), parts["17"].status
    (52, 'authors')
    >>> parts["11"].text
    'No value was missing.'
    """
    texts = checklist_answers(results)
    return [
        ChecklistPart(number, section, topic, texts.get(number, ""), authors)
        for section, lines in _PARTS.items()
        for number, topic, authors in lines
    ]


def checklist_markdown(results: Part) -> str:
    """Write the checklist as Markdown, a box to tick for every part.

    Parameters
    ----------
    results : dict
        As for `checklist`.

    Returns
    -------
    str
        The same document gives the same text.
    """
    parts = checklist(results)
    count = {s: sum(part.status == s for part in parts) for s in ("run", "both", "authors")}
    lines = [
        "# TRIPOD+AI checklist",
        "",
        f"{count['run']} of {len(parts)} parts are filled from the run (ticked), {count['both']} "
        f"in part, and {count['authors']} are left to the authors. Check every sentence before "
        "it goes into a paper: the run knows the table and what was done with it, and nothing "
        "about the study behind it.",
        "",
        REFERENCE,
    ]
    section = ""
    for part in parts:
        if part.section != section:
            section = part.section
            lines += ["", f"## {section}", ""]
        box = "x" if part.status == "run" else " "
        lines.append(f"- [{box}] **{part.number}** {part.topic}")
        if part.text:
            lines.append(f"  - From the run: {_escaped(part.text)}")
        if part.authors:
            lines.append(f"  - For the authors: {part.authors}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Make text from a file one line that is nothing but text, also in Markdown with HTML."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", line)


# ----------------------------------------------------------------------- what is asked for

# section -> (number, topic, what the authors write; empty where the run says it all)
_PARTS: dict[str, list[tuple[str, str, str]]] = {
    "Title and abstract": [
        ("1", "Title: that a prediction model is developed or evaluated, in whom, for what outcome",
         "Add the population and the setting."),
        ("2", "Abstract, by its own checklist (TRIPOD+AI for Abstracts)",
         "Add background, setting, participants and what follows from the numbers."),
    ],
    "Introduction": [
        ("3a", "The health question, why a model is needed, and the models that exist",
         "Describe the context, diagnostic or prognostic, and cite existing models."),
        ("3b", "Who the model is for: population, purpose in the care pathway, intended users",
         "Name the population, the decision that the model supports, and who uses it."),
        ("3c", "Known inequalities in health between groups of people",
         "Describe them, or say that none are known."),
        ("4", "Objectives: development, evaluation, or both", ""),
    ],
    "Methods": [
        ("5a", "Sources of the data, for development and evaluation, and whom they represent",
         "Say where the samples come from (trial, cohort, registry, biobank), why these data were "
         "used and how far they represent the population."),
        ("5b", "Dates: of recruitment and, where it applies, of the end of follow-up",
         "Give the dates."),
        ("6a", "Setting: kind of care, number and place of centres", "Describe the setting."),
        ("6b", "Who was eligible", "Give the criteria for taking part."),
        ("6c", "Treatments received, and how they were dealt with",
         "Describe them, or say that they do not matter here."),
        ("7", "Preparation of the data and checks of their quality, alike in all groups of people",
         "Add what was done before the table was made: normalisation, batch correction, filters; "
         "and whether it was the same for everyone."),
        ("8a", "The outcome: definition, time horizon, how and when it was assessed",
         "Define the outcome and its horizon, and say how and when it was assessed."),
        ("8b", "Who assessed the outcome, where that takes judgement",
         "Give the assessors' qualifications, or say that no judgement was needed."),
        ("8c", "Whether the outcome was assessed without knowledge of the predictors",
         "Say what was done for it."),
        ("9a", "The initial choice of predictors, and any selection before the model was built",
         "Say why these were measured, and whether any were preselected before the table was "
         "made (by labels: then the estimate is too good)."),
        ("9b", "The predictors: definition, how and when they were measured",
         "Describe platform, assay, units and time of the measurement."),
        ("9c", "Who assessed the predictors, where that takes judgement",
         "Give the assessors' qualifications, or say that no judgement was needed."),
        ("10", "Sample size: how it came about, and whether it is enough",
         "Say how the number of samples came about."),
        ("11", "Missing data: how they were handled, and why values were left out", ""),
        ("12a", "How the data were used: what for development, what for evaluation", ""),
        ("12b", "How predictors entered the analysis: form, scaling, transformation", ""),
        ("12c", "Type of model, why it was chosen, how it was built and tuned, internal validation",
         "Say why this kind of model was chosen."),
        ("12d", "Differences between clusters (hospitals, countries): how they were dealt with",
         "Say which clusters there are, and how they were looked at."),
        ("12e", "Measures and plots of performance, and why these", ""),
        ("12f", "Updating of the model after its evaluation, such as recalibration", ""),
        ("12g", "How predictions are computed when the model is evaluated", ""),
        ("13", "Class imbalance: methods used for it, why, and recalibration afterwards", ""),
        ("14", "Fairness: what was done for it, and why",
         "Say how performance was compared between groups of people (sex, age, ancestry), or that "
         "it was not; the out-of-fold predictions in predictions.csv allow it."),
        ("15", "Output of the model, and how thresholds were chosen",
         "Give the threshold that is meant for use, and why."),
        ("16", "Differences between development and evaluation data: setting, eligibility, "
         "outcome, predictors",
         "Describe how the cohorts differ, or say that there is one only."),
        ("17", "Ethics: approval, and consent or its waiver",
         "Name the committee, and say how consent was given."),
    ],
    "Open science": [
        ("18a", "Funding, and the role of the funders", "Name them."),
        ("18b", "Conflicts of interest of all authors", "State them."),
        ("18c", "Study protocol", "Say where it is, or that there is none."),
        ("18d", "Registration", "Give the register and number, or say that there is none."),
        ("18e", "Availability of the data",
         "Say where the data are, or why they cannot be shared."),
        ("18f", "Availability of the code",
         "Say where code of your own, for what came before the table, can be found."),
    ],
    "Patients and the public": [
        ("19", "Involvement of patients and the public in the study",
         "Describe it, or say that there was none."),
    ],
    "Results": [
        ("20a", "Flow of participants, with and without the outcome; length of follow-up",
         "Draw the flow from those asked to those in the table."),
        ("20b", "Characteristics of the participants, overall and by source or setting",
         "Give a table: demography, main predictors, treatments, missing values."),
        ("20c", "Development against evaluation data: distributions of the main predictors, "
         "demography, outcome",
         "Compare the cohorts, or say that there is one only."),
        ("21", "Participants and outcome events in each analysis", ""),
        ("22", "The whole model, so that others can predict with it", ""),
        ("23a", "Performance with intervals, also in groups of people",
         "Add the performance in the groups that matter."),
        ("23b", "Differences of performance between clusters",
         "Give them, or say that there are no clusters."),
        ("24", "Results of updating the model", ""),
    ],
    "Discussion": [
        ("25", "Interpretation of the main results, fairness included, beside earlier studies",
         "Interpret them in the light of the objectives and of other studies."),
        ("26", "Limitations: representativeness, sample size, overfitting, missing data",
         "Discuss them, and what they do to the results."),
        ("27a", "At use: how poor or missing input is found and handled", ""),
        ("27b", "At use: what users have to do, and the expertise that it takes",
         "Describe both."),
        ("27c", "Next steps: applicability, generalisability, further research",
         "Say what comes next: for instance another cohort from another place."),
    ],
}  # fmt: skip
