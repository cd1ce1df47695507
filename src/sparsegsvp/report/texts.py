"""Longer texts from templates: the methods paragraph, the answers of the page, the checklist.

A template sees the document as ``d``. Values are put in as one line of plain text; the page escapes
what comes out, and so does Markdown.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import words
from .charts import asset, short
from .drawings import MANY_CLASSES
from .words import Part

TRIPOD = (
    "Collins GS and others. TRIPOD+AI statement: updated guidance for reporting clinical "
    "prediction models that use regression or machine learning methods. BMJ 2024;385:e078378."
)


@cache
def environment(package: str | None = None, *, text: bool = False) -> Any:
    """The templates of this package, and of another before them.

    ``text`` is for plain text: values become one line and nothing is escaped. Otherwise values are
    escaped for HTML. An unknown name is an error.
    """
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('the page needs jinja2: pip install "sparsegsvp[report]"') from error
    places = dict.fromkeys([package or __package__, __package__])
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(place) for place in places]),
        autoescape=not text,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_one_line if text else None,
    )
    made.filters |= {
        "number": words.number,
        "interval": words.interval,
        "ends": words.range_words,
        "signed": words.signed,
        "p": words.p_value,
        "plural": words.plural,
        "joined": words.joined,
        "percent": words.percent,
        "counts": words.class_counts,
        "contrast": words.contrast,
        "title_of": words.score_title,
        "calibration": words.calibration_words,
        "prevalence": words.prevalence_words,
        "steady": words.stability_word,
        "short": short,
        "markdown": _markdown,
        "shell": shlex.quote,
    }
    made.globals |= {"many_classes": MANY_CLASSES}
    return made


def _one_line(value: Any) -> Any:
    return re.sub(r"\s+", " ", value) if isinstance(value, str) else value


def _said(template: str, document: Part) -> dict[str, str]:
    """The blocks of a text template, by name."""
    found = environment(text=True).get_template(template)
    context = found.new_context({"d": document})
    return {name: " ".join("".join(block(context)).split()) for name, block in found.blocks.items()}


def answers(document: Part) -> dict[str, str]:
    """Answer each question of the page in a line or two."""
    return _said("answers.txt", document)


def methods(document: Part) -> dict[str, Any]:
    """Write the ``paragraph`` on methods for a paper, and the list of ``citations``."""
    text = environment(text=True).get_template("methods.txt").render(d=document)
    paragraph, _, citations = text.partition("\n---\n")
    lines = [line.strip() for line in citations.splitlines() if line.strip()]
    return {"paragraph": " ".join(paragraph.split()), "citations": lines}


# ---------------------------------------------------------------------------- the checklist


@dataclass(frozen=True)
class ChecklistPart:
    """One part of the checklist: what is to be reported, by the run and by the authors."""

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


def checklist(document: Part) -> list[ChecklistPart]:
    """Fill all 52 parts of the TRIPOD+AI checklist from a document, in order."""
    made, said = environment(text=True), methods(document)["paragraph"]
    parts = []
    for section in tomllib.loads(asset("checklist.toml"))["section"]:
        for part in section["part"]:
            text = made.from_string(part.get("run", "")).render(d=document, methods=said)
            authors = part.get("authors", "")
            line = " ".join(text.split())
            parts.append(
                ChecklistPart(part["number"], section["title"], part["topic"], line, authors)
            )
    return parts


def checklist_markdown(document: Part) -> str:
    """Write the checklist as Markdown, a box to tick for every part."""
    made = environment(text=True).get_template("checklist.md")
    return f"{made.render(parts=checklist(document), tripod=TRIPOD).rstrip()}\n"


def _markdown(text: str) -> str:
    """Make a text nothing but text in Markdown with HTML."""
    line = "".join(c if c.isprintable() else " " for c in text)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", line)
