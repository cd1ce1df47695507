"""The benchmarks' tiny configurations run, so that they do not rot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("solver", "written to"),
        ("starts", "| made-up | 1 | 0.5 |"),
        ("accuracy", "within 0.01 of l1 logistic"),
        ("search", "held-out log loss"),
        ("batches", "| planted | tied | blind 1 |"),
    ],
)
def test_tiny_configuration_runs(script: str, said: str) -> None:
    if not FOLDER.exists():
        pytest.skip("the benchmarks are not part of an installed package")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, FOLDER / f"{script}.py", "--tiny"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    results = json.loads((FOLDER / "results" / f"{script}-tiny.json").read_text())
    assert results["versions"]["numpy"]
