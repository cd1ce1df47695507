"""What a reader has to know about a table, an evaluation or a panel.

A notice is recognised by its code, never by its words, which are in ``notices.toml``. Console, page
and results file print the same title and text.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Severity = Literal["serious", "caution", "note"]

_KINDS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("notices.toml").read_text(encoding="utf-8")
)


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
        What kind of notice it is.
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

    @property
    def title(self) -> str:
        """The title of its kind."""
        return _KINDS[self.code]["title"]

    def __str__(self) -> str:
        return f"{self.title}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; actions are there if there are any."""
        described: dict[str, Any] = {"code": self.code, "severity": self.severity}
        described |= {"title": self.title, "text": self.text}
        if self.actions:
            described["actions"] = [asdict(action) for action in self.actions]
        return described


def notice(kind: str, /, *values: Any, severity: Severity | None = None, **words: Any) -> Notice:
    """Return a notice in the words of its kind; each of the values has an action of its own."""
    said: Any = _KINDS[kind]
    actions = [
        Action(said["option"], value, said["action"].format(name=value, **words))
        for value in (values if "option" in said else ())
    ]
    text = said["text"].format(**words)
    return Notice(kind.partition(":")[0], severity or said["severity"], text, tuple(actions))
