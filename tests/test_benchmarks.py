"""The benchmarks' tiny configurations run, so that they do not rot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_selection import f_classif

FOLDER = Path(__file__).parent.parent / "benchmarks"


def run(script: str, *options: str) -> str:
    """What a script prints in its tiny configuration."""
    done = subprocess.run(
        [sys.executable, FOLDER / f"{script}.py", "--tiny", *options],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("panels", "| independent | 3 of 3 | 0.0% |"),
        ("search", "ours / fastest |"),
        ("compare", "| PGDGSVPSVM, l1 |"),
        ("select_panel", "| planted |"),
    ],
)
def test_tiny_configuration_runs(script: str, said: str) -> None:
    if not FOLDER.exists():
        pytest.skip("the benchmarks are not part of an installed package")
    assert said in run(script)
    path = FOLDER.parent / "artifacts" / f"{script}-tiny.json"
    assert json.loads(path.read_text())["versions"]["numpy"]


def test_tables_of_the_pages_are_written_by_one_command(tmp_path: Path) -> None:
    if not FOLDER.exists():
        pytest.skip("the benchmarks are not part of an installed package")
    pytest.importorskip("anndata")
    pytest.importorskip("distributed")
    pages, marks = {}, r"<!-- scale: (.*?) -->\n(.*?)<!-- end -->"
    for name in ("scale.md", "single-cell.md"):
        pages[name] = (FOLDER.parent / "docs" / name).read_text()
        (tmp_path / name).write_text(pages[name])
    printed = run("scale", "--out", str(tmp_path), "--docs", str(tmp_path))
    assert "| select_markers, 50 genes | 3,000 | 400 | 4 |" in printed
    written = {}
    for name, before in pages.items():
        after = (tmp_path / name).read_text()
        assert re.sub(marks, "", after, flags=re.S) == re.sub(marks, "", before, flags=re.S)
        written |= dict(re.findall(marks, after, flags=re.S))
    results = json.loads((tmp_path / "scale-tiny.json").read_text())
    assert set(written) == set(results) - {"versions", "cores"}
    assert all(table.strip() in printed for table in written.values())


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
    pytest.importorskip("anndata")
    from scipy.stats import ranksums, ttest_ind

    from _markers import METHODS, ours, t_test, wilcoxon
    from sparsegsvp.datasets import make_cells
    from sparsegsvp.scverse import select_markers

    adata = make_cells(400, 60, 3, n_markers=3, density=0.3)
    X, obs = adata.X, adata.obs
    y, dense = obs["cell_type"].cat.codes.to_numpy(), X.toarray()
    tests = {
        t_test: lambda a, b: ttest_ind(a, b, equal_var=False).statistic,
        wilcoxon: lambda a, b: [ranksums(u, v).statistic for u, v in zip(a.T, b.T)],
    }
    for method, statistic in tests.items():
        best = [np.argmax(statistic(dense[y == k], dense[y != k])) for k in range(3)]
        assert list(method(X, y, 5, 0)[: len(set(best))]) == list(dict.fromkeys(best))
    chosen = select_markers(adata, "cell_type", 5)["gene"]
    assert list(adata.var_names[ours(X, y, 5, 0)]) == list(chosen)
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
