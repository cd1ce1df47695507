"""Documents of every kind of run, made once, and a page of each."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests are imported without their folder

import report_fakes as fakes

from sparsegsvp.report import build_comparison, build_document, describe_cohort, describe_given

COMMAND = "sparsegsvp select planted.csv --target state --out report"


def _signal(**more: Any) -> dict[str, Any]:
    table = fakes.make_table()
    return build_document(table, fakes.Evaluation(table), command=COMMAND, seed=0, **more)


def _weak() -> dict[str, Any]:
    table = fakes.make_table(n=60, effect=0.25)
    return build_document(table, fakes.Evaluation(table, "weak"))


def _none() -> dict[str, Any]:
    table = fakes.make_table(n=60, effect=0.0)
    return build_document(table, fakes.Evaluation(table, "none"))


def _three() -> dict[str, Any]:
    table = fakes.make_table(n=90, classes=("basal", "luminal", "normal"), seed=3)
    return build_document(table, fakes.Evaluation(table, size=6))


def _twelve() -> dict[str, Any]:
    names = tuple(f"type {chr(65 + k)}" for k in range(12))
    table = fakes.make_table(n=360, m=40, effect=3.0, classes=names)
    table.X = np.maximum(table.X, 0.0)
    return build_document(table, fakes.Evaluation(table, size=13))


def _batches() -> dict[str, Any]:
    table = fakes.make_table()
    numbers = {"name": "plate", "accuracy": 0.68, "shuffled": 0.52, "p_value": 0.01}
    flags = (
        fakes.Record(code="confounded", numbers={**numbers, "closely": False}),
        fakes.Record(code="twins", numbers={"n_samples": 2, "n_rows": 120}),
    )
    evaluation = fakes.Evaluation(table, batches=(fakes.audit(table),), flags=flags)
    return build_document(table, evaluation)


def _hostile() -> dict[str, Any]:
    """Everything at once, with names that try to be something else."""
    positive = "ill & <b>weak</b>"
    names = [*fakes.HOSTILE, *(f"gene {j}" for j in range(57))]
    table = fakes.make_table(
        classes=(positive, "well"), feature_names=tuple(names), positive_class=positive,
        dropped={"<i>note</i>": "text"}, covariates={"age": ("gene 1",)},
    )  # fmt: skip
    evaluation = fakes.Evaluation(table, batches=(fakes.audit(table),))
    alone = fakes.Evaluation(table, size=1)
    added = fakes.Record(value=0.1, low=0.02, high=0.2, level=0.95, p_value=0.01)
    evaluation.adjusted = fakes.Record(names=("age",), alone=alone, added=added)
    cohort = fakes.Cohort(table, evaluation)
    return build_document(
        table, evaluation, command=COMMAND, seed=0, settings={"must": [fakes.HOSTILE[0]]},
        cohort=describe_cohort(cohort, source="<u>site 2</u>.csv"),
        given=describe_given(fakes.HOSTILE, alone, added), prevalence=0.2,
        skipped=("No <em>halves</em>.",),
    )  # fmt: skip


_MAKERS = {
    "signal": _signal, "weak": _weak, "none": _none, "three": _three, "twelve": _twelve,
    "batches": _batches, "hostile": _hostile,
}  # fmt: skip
assert list(_MAKERS) == list(fakes.CASES)


@pytest.fixture(scope="session")
def _documents() -> dict[str, Any]:
    return {name: make() for name, make in _MAKERS.items()}


@pytest.fixture
def documents(_documents: dict[str, Any]) -> dict[str, Any]:
    """The document of every case, fresh copies as they come back from a file."""
    return json.loads(json.dumps(_documents, allow_nan=False))


@pytest.fixture
def document(documents: dict[str, Any]) -> dict[str, Any]:
    """The one with everything in it."""
    return documents["hostile"]


@pytest.fixture(scope="session")
def _comparison() -> dict[str, Any]:
    table = fakes.make_table()
    return build_comparison(fakes.comparison(), table, command="sparsegsvp compare", seed=0)


@pytest.fixture
def comparison(_comparison: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(_comparison)
