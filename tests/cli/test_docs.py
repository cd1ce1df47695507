"""The commands of docs/steering.md are accepted for the table that the page makes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "steering.md"
CHEAP = ["--tau", "1", "--deltas", "4", "--permutations", "0", "--jobs", "1", "--dry-run"]


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this copy")
def test_the_commands_are_accepted(kit, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(snippet, {})
    commands = re.findall(r"^    sparsegsvp (.*)$", text, flags=re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        result = kit.run(*shlex.split(command), *CHEAP)
        assert result.exit_code == 0, result.stderr
        assert "The run would take" in result.stdout
        for part in ("given panel", "covariates alone"):
            asked = {"given panel": "--panel", "covariates alone": "--adjust"}[part]
            assert (part in result.stdout) == (asked in command)
