"""The commands of the pages about the paper do what the pages say they do."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.skipif(
    not DOCS.exists(), reason="the documentation is not part of this copy"
)


def _run(page: str) -> dict:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), flags=re.DOTALL)
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for block in blocks:
            exec(block, names)
    return names


def test_the_snippets_of_the_paper_run(capsys) -> None:
    names = _run("paper.md")
    assert len(names["panels"]) > 5  # of 20 starts
    model, rule = names["model"], names["batch_normalised_predict"]
    assert rule(names["Z"][:1], model.weights_, model.biases_) == [0]
    elbows = capsys.readouterr().out.splitlines()
    assert elbows[-2:] == ["[5 3]", "[5 4]"]  # the step that was run, the step that is printed


def test_the_snippet_of_choosing_prints_its_table(capsys) -> None:
    names = _run("choosing.md")
    printed = capsys.readouterr().out
    assert printed.count("\n") == 12
    for row in (
        "[756, 10000] | [-1, 2478] | [4, 4] | 0.945 | 0.977",
        "[90, 163] | [-1, -1] | [5, 3]",
    ):
        assert row in printed  # as published, on every processor
    model, warned = names["runs"][6]  # q = 1
    assert model.cycles_.tolist()[0] == -1 < model.cycles_[1]
    assert any("2-cycle" in text for text in warned)


def test_the_pictures_of_the_lesson_are_there() -> None:
    shown = re.findall(r"\]\((lesson/.*?\.svg)\)", (DOCS / "lesson.md").read_text("utf-8"))
    assert len(shown) == 5
    for name in shown:
        assert (DOCS / name).read_text("utf-8").startswith("<svg")
