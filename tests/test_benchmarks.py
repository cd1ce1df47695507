"""The benchmarks' tiny configurations run, so that they do not rot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_selection import f_classif

FOLDER = Path(__file__).parent.parent / "benchmarks"
# of the longest the quick parts; the processes of a cluster are tested in test_dask
PARTS = {"scale": ("--part", "cells", "markers")}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("scale", "| select_markers, 50 genes | 3,000 | 400 | 4 |"),
        ("panels", "| independent | 3 of 3 | 0.0% |"),
        ("search", "ours / fastest |"),
        ("compare", "| PGDGSVPSVM, l1 |"),
        ("select_panel", "| planted |"),
    ],
)
def test_tiny_configuration_runs(script: str, said: str) -> None:
    if not FOLDER.exists():
        pytest.skip("the benchmarks are not part of an installed package")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, FOLDER / f"{script}.py", "--tiny", *PARTS.get(script, ())],
        capture_output=True,
        text=True,
        env=environment,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    path = FOLDER.parent / "artifacts" / f"{script}-tiny.json"
    assert json.loads(path.read_text())["versions"]["numpy"]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test import the benchmarks."""
    if not FOLDER.exists():
        pytest.skip("the benchmarks are not part of an installed package")
    monkeypatch.syspath_prepend(FOLDER)


@pytest.mark.usefixtures("folder")
def test_every_method_gives_panels_of_the_sizes_that_find_the_signal() -> None:
    from _selectors import methods
    from sparsegsvp.datasets import make_planted

    for n_classes in (2, 3):
        data = make_planted(150, 60, 3, effect=2.5, n_classes=n_classes, random_state=1)
        X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
        for name, method in methods().items():
            panels = method(X, data.y, [1, 3, 8])
            assert {k: len(set(panel)) for k, panel in panels.items()} == {1: 1, 3: 3, 8: 8}
            hits = len(set(panels[8]) & set(data.support))
            assert hits == 3 or name == "random", name


@pytest.mark.usefixtures("folder")
def test_marker_genes_are_ranked_as_definitions_say() -> None:
    from scipy.stats import ranksums, ttest_ind

    from _markers import METHODS, t_test, wilcoxon
    from sparsegsvp.datasets import make_cells

    X, obs = make_cells(400, 60, 3, n_markers=3, density=0.3, as_anndata=False)
    y, dense = obs["cell_type"].cat.codes.to_numpy(), X.toarray()
    tests = {
        t_test: lambda a, b: ttest_ind(a, b, equal_var=False).statistic,
        wilcoxon: lambda a, b: [ranksums(u, v).statistic for u, v in zip(a.T, b.T)],
    }
    for method, statistic in tests.items():
        best = [np.argmax(statistic(dense[y == k], dense[y != k])) for k in range(3)]
        assert list(method(X, y, 5, 0)[: len(set(best))]) == list(dict.fromkeys(best))
    for name, method in METHODS.items():
        order = method(X, y, 5, 0)
        assert len(set(order[:5])) == 5, name


@pytest.mark.usefixtures("folder")
def test_mrmr_is_what_its_definition_says() -> None:
    from _selectors import mrmr

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 12)) @ rng.normal(size=(12, 12)) + np.outer(y, np.linspace(0, 3, 12))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    F, correlations = f_classif(X, y)[0], np.abs(np.corrcoef(X.T)).clip(0.001)
    chosen = [int(F.argmax())]
    while len(chosen) < 11:
        score = {j: F[j] / correlations[j, chosen].mean() for j in set(range(12)) - set(chosen)}
        chosen.append(max(score, key=score.__getitem__))
    assert mrmr(X, y, 11, quotient=True).tolist() == chosen
