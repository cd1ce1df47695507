"""Thousands of tables with known values, as other programs write them: all are read right."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from read_right import case


def test_values_come_back_or_the_file_is_refused_or_the_loss_is_named(tmp_path):
    """`read_right.py` runs any number of these."""
    pytest.importorskip("anndata")  # one of the formats
    outcomes: Counter[tuple[str, str]] = Counter()
    wrong = []
    for k in range(2000):
        dialect, damage, outcome = case(7, k, tmp_path)
        outcomes["clean" if damage == "none" else "damaged", outcome.partition(":")[0]] += 1
        if outcome.startswith("WRONG"):
            wrong.append((k, dialect, damage, outcome))
    assert not wrong
    clean = {outcome: n for (kind, outcome), n in outcomes.items() if kind == "clean"}
    assert clean["refused"] < 0.08 * sum(clean.values())  # what may be read in two ways
    assert outcomes["damaged", "refused"] > 100  # the damage is real
