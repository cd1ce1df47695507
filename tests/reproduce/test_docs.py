"""The commands of docs/paper.md do what the page says they do."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

PAGE = Path(__file__).parents[2] / "docs" / "paper.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this copy")
def test_the_snippets_run(capsys) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 6
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for block in blocks:
            exec(block, names)
    assert len(names["panels"]) > 5  # of 20 starts
    alone = names["batch_normalised_predict"](
        names["Z"][:1], names["model"].weights_, names["model"].biases_
    )
    assert alone == [0]
    elbows = capsys.readouterr().out.splitlines()
    assert elbows[-2:] == ["[5 3]", "[5 4]"]  # the step that was run, the step that is printed
