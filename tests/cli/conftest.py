"""A small table with two informative features, one named like a formula, one like markup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from sparsegsvp.cli.app import app

FORMULA = "=cmd|'/c calc'!A1"
MARKUP = "<script>alert(1)</script>"
# As small as a run can be that does everything.
WHOLE = ["--set", "folds=3", "--set", "repeats=1", "--set", "permutations=19", "--jobs", "1"]
FAST = ["--fast", "--set", "folds=3", "--jobs", "1"]


def write_table(path: Path, X: np.ndarray, labels, names, ids=None) -> Path:
    ids = [f"s{i}" for i in range(len(X))] if ids is None else ids
    with open(path, "w") as handle:
        handle.write(",".join(["sample", *names, "class"]) + "\n")
        for i, row in enumerate(X):
            handle.write(",".join([ids[i], *map(repr, row.tolist()), labels[i]]) + "\n")
    return path


def planted(n: int = 36, m: int = 10, seed: int = 1, shift: float = 3.0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(["ill", "well"], n // 2)
    X = rng.normal(size=(n, m)).round(4)
    X[: n // 2, 0] += shift
    X[: n // 2, 3] -= shift
    names = [f"g{j}" for j in range(m)]
    names[0], names[3] = FORMULA, MARKUP
    return X, labels, names


def run(*words):
    """Run a command in this process; stdout and stderr are kept apart."""
    return CliRunner().invoke(app, [str(word) for word in words])


def start(*words, **variables):
    """Start a command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "sparsegsvp.cli", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
    )


@pytest.fixture
def kit():
    """Everything a test of a command needs, without importing another test module."""
    return SimpleNamespace(
        run=run,
        start=start,
        write_table=write_table,
        planted=planted,
        formula=FORMULA,
        markup=MARKUP,
        whole=WHOLE,
        fast=FAST,
    )


@pytest.fixture
def table(tmp_path) -> Path:
    return write_table(tmp_path / "table.csv", *planted())


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """One whole run, looked at by many tests."""
    folder = tmp_path_factory.mktemp("finished")
    path = write_table(folder / "table.csv", *planted())
    out = folder / "out"
    words = ["select", path, "-t", "class", "--positive", "ill", *WHOLE]
    result = run(*words, "--out", out)
    assert result.exit_code == 0, result.stderr
    return SimpleNamespace(path=path, out=out, words=words, result=result)
