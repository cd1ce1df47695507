"""What a reader has to know about a table, an evaluation or a panel.

A notice is recognised by its code, never by its words. Console, page and results file print
the same title and text.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Severity = Literal["serious", "caution", "note"]

#: The title of each kind of notice.
TITLES = {
    # the table
    "repeats": "Samples that may be copies",
    "roles": "Columns that may be no measurements",
    "patients": "Several samples of one patient",
    "leak": "A column gives the class away",
    "spelling": "Labels in several spellings",
    "detection": "Values below detection",
    "raw": "The values look raw",
    "few": "Few samples",
    "imbalance": "Unequal classes",
    "missing": "Many missing values",
    "batch column": "A column that may be a batch",
    "thousands": "Numbers that may be read in two ways",
    "codes": "Values that look like codes",
    "encoding": "The encoding is a guess",
    "missing labels": "Samples without a label",
    "sheets": "A workbook with several sheets",
    "identifiers": "Identifiers that were rounded",
    # the evaluation
    "none": "No signal was found",
    "inconclusive": "Not decided yet",
    "not tested": "Not tested against chance",
    "weak": "The signal is weak",
    "perfect": "Almost perfect separation",
    "sizes": "The score is of panels of other sizes",
    "fits": "Some fits warned",
    "confounded": "Classes and batches hang together",
    "new batch": "Worse on an unseen batch",
    # the panel
    "unstable": "The panel is unstable",
    "rare": "Features that are seldom chosen",
    "steered": "Features in or out by request",
    # the run
    "skipped": "Left out of this run",
}


@dataclass(frozen=True)
class Action:
    """What would see to a notice: an option of reading the table, its value, and words for it."""

    option: str
    value: Any
    label: str


@dataclass(frozen=True)
class Notice:
    """Something the reader has to know.

    Attributes
    ----------
    code : str
        What kind of notice it is: a key of `TITLES`.
    severity : {"serious", "caution", "note"}
        How much it matters.
    text : str
        One or more sentences.
    actions : tuple of Action
        What would see to it, if anything does.

    Examples
    --------
    >>> from sparsegsvp._notices import Notice
    >>> print(Notice("few", "caution", "Class ill has 9 samples."))
    Few samples: Class ill has 9 samples.
    """

    code: str
    severity: Severity
    text: str
    actions: tuple[Action, ...] = ()

    def __post_init__(self) -> None:
        if self.code not in TITLES:
            raise ValueError(f"there is no notice of kind {self.code!r}; add it to TITLES")
        if self.severity not in get_args(Severity):
            raise ValueError(f"severity must be one of {get_args(Severity)}")

    @property
    def title(self) -> str:
        """The title of its kind."""
        return TITLES[self.code]

    def __str__(self) -> str:
        return f"{self.title}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; actions are there if there are any."""
        described: dict[str, Any] = {"code": self.code, "severity": self.severity}
        described |= {"title": self.title, "text": self.text}
        if self.actions:
            described["actions"] = [asdict(action) for action in self.actions]
        return described
