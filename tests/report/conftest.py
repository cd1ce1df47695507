"""One small fitted problem, with hostile names, that every test of the report shares."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from sparsegsvp import GSVPSVM, GSVPSVMCV, StabilitySelection, nested_evaluate
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import check_shift, permutation_test, validate_external
from sparsegsvp.report import summarize, summarize_test

HOSTILE = ("<script>alert(1)</script>", "=cmd|'/c calc'!A1", '"><img src=x onerror=alert(1)>')


@pytest.fixture(scope="session")
def fitted() -> SimpleNamespace:
    """A model, its evaluation and its stability; informative features have hostile names."""
    data = make_planted(60, 30, 3, effect=2.5, random_state=1)
    names = [f"gene {j}" for j in range(30)]
    for j, name in zip(data.support, HOSTILE):
        names[j] = name
    table = SimpleNamespace(
        X=data.X,
        y=np.array(["well", "ill & <b>weak</b>"])[data.y],
        feature_names=tuple(names),
        ids=np.array([f"P{i:02d}" for i in range(60)], dtype=object),
        groups=None,
        target="state",
        positive="ill & <b>weak</b>",
        source="planted.csv",
        digest="0" * 64,
        record=("read 60 samples and 30 features from planted.csv (CSV)",),
        notices=(),
        dropped={"<i>note</i>": "text"},
        n_missing=0,
        role_lines=lambda: [
            {"role": "target", "columns": ["state"], "count": 1, "reason": "as asked"},
            {"role": "feature", "columns": [], "count": 30, "reason": "numbers"},
        ],
    )
    procedure = GSVPSVMCV(tau=1.0, n_deltas=8, cv=3)
    evaluation = nested_evaluate(
        procedure,
        table.X,
        table.y,
        cv=3,
        n_repeats=2,
        n_permutations=0,
        pos_label=table.positive,
        feature_names=table.feature_names,
    )
    # a statistic that costs next to nothing: the page shows any
    permutation = permutation_test(table.X, table.y, estimator=GaussianNB(), n_permutations=39)
    evaluation = replace(evaluation, permutation=permutation)
    stability = StabilitySelection(GSVPSVM(delta=0.2), n_resamples=6).fit(table.X, table.y)
    model = procedure.fit(table.X, table.y)
    # a cohort like the table, with noise of its own and one feature in other units
    X = data.X + np.random.default_rng(2).normal(size=data.X.shape)
    X[:, data.support[0]] += 9.0
    panel = model.get_support()
    cohort = replace(
        validate_external(model, X, table.y, pos_label=table.positive, prevalence=0.2),
        shift=tuple(check_shift(model, X[:, panel], table.y)),
    )
    return SimpleNamespace(
        data=data,
        table=table,
        model=model,
        evaluation=evaluation,
        stability=stability,
        cohort=cohort,
    )


@pytest.fixture(scope="session")
def _results(fitted: SimpleNamespace) -> dict[str, Any]:
    return summarize(  # type: ignore[return-value]
        fitted.table,
        fitted.model,
        evaluation=fitted.evaluation,
        stability=fitted.stability,
        test=summarize_test(fitted.cohort, source="<u>site 2</u>.csv"),
        seed=0,
        command="sparsegsvp select planted.csv --target state",
    )


@pytest.fixture
def results(_results: dict[str, Any]) -> dict[str, Any]:
    """The document, a fresh copy for each test."""
    return copy.deepcopy(_results)


@pytest.fixture(scope="session")
def page_of() -> Any:
    """Write a page for a document into a folder and return its path."""

    def write(document: dict[str, Any], folder: Path) -> Path:
        from sparsegsvp.report import build_report

        path = folder / "report.html"
        path.write_text(build_report(json.loads(json.dumps(document))), encoding="utf-8")
        return path

    return write
