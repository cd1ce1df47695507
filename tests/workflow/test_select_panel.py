"""`select_panel`: one path from a table to a page, the same from Python and the command line."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sparsegsvp
from sparsegsvp import Selection, load_model, select_panel
from sparsegsvp.cli.app import app
from sparsegsvp.cli.command import values
from sparsegsvp.cli.options import (
    Folds,
    Given,
    Method,
    Permutations,
    Planning,
    Resamples,
    Transform,
)
from sparsegsvp.evaluation import EvaluationResult, nested_evaluate
from sparsegsvp.io import InputError, read_table
from sparsegsvp.report import draw_figures, validate
from sparsegsvp.workflow import results
from sparsegsvp.workflow.run import Cancelled

CHEAP = {"tau": 1.0, "n_deltas": 5, "folds": 3, "repeats": 1}
WORDS = ["--tau", "1", "--deltas", "5", "--folds", "3", "--repeats", "1"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 8)).round(4)
    X[:20, 2] += 3
    X[5, 4] = np.nan
    table = pd.DataFrame(X, columns=[f"g{j}" for j in range(8)])
    return table.assign(state=np.repeat(["ill", "well"], 20))


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("select") / "t.csv"
    frame.to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def found(path) -> Selection:
    return select_panel(path, target="state", permutations=3, resamples=4, **CHEAP)


def test_python_and_the_command_line_give_the_same_document(found, path, tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setattr(results, "draw_figures", lambda document: {})
    words = ["select", path, "-t", "state", *WORDS, "--permutations", "3", "--resamples", "4"]
    result = CliRunner().invoke(
        app, [str(w) for w in [*words, "--figures", "--jobs", "1", "--out", out]]
    )
    assert result.exit_code == 0, result.stderr
    assert (out / "figures").is_dir() and not (tmp_path / "saved" / "figures").exists()
    written = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert written["run"].pop("command").startswith("sparsegsvp select ")
    mine = json.loads(json.dumps(found.document))
    assert mine["run"].pop("command") == ""
    assert written == mine
    found.save(tmp_path / "saved")
    for name in ("panel.csv", "predictions.csv", "model.skops"):
        assert (tmp_path / "saved" / name).read_bytes() == (out / name).read_bytes()
    page = (tmp_path / "saved" / "report.html").read_text(encoding="utf-8")
    assert page == found.to_html()


def test_figures_and_workbook_are_written_and_replaced(found, tmp_path, monkeypatch):
    import openpyxl

    few = {name: draw_figures(found.document)[name] for name in ("roc", "boxes")}
    monkeypatch.setattr(results, "draw_figures", lambda document: few)
    out = tmp_path / "out"
    found.save(out, figures=True)
    names = {f"{name}.{kind}" for name in few for kind in ("svg", "png", "csv")}
    assert {p.name for p in (out / "figures").iterdir()} == names
    assert (out / "figures" / "roc.csv").read_text(encoding="utf-8") == few["roc"].csv()
    book = openpyxl.load_workbook(out / "panel.xlsx")
    header, *rows = book["panel"].iter_rows(values_only=True)
    assert header[0] == "feature" and [row[0] for row in rows] == found.panel.index.tolist()
    assert rows[0][2] == found.document["panel"][0]["weights"][0]
    scores = {row[1]: row[2] for row in book["scores"].iter_rows(min_row=2, values_only=True)}
    assert scores["auc"] == found.evaluation.scores["auc"].value
    monkeypatch.setattr(results.importlib.util, "find_spec", lambda name: None)
    results.write_figures(tmp_path / "plain", found.document)
    assert {p.suffix for p in (tmp_path / "plain").iterdir()} == {".svg", ".csv"}
    monkeypatch.undo()
    found.save(out, force=True)
    assert not (out / "figures").exists() and (out / "panel.xlsx").exists()
    (out / "notes").mkdir()
    with pytest.raises(InputError, match="other files"):
        found.save(out, force=True)


def test_every_kind_of_table_gives_the_same_panel(found, frame, path):
    features = frame.drop(columns="state")
    tables = {
        "frame": (frame, {"target": "state"}),
        "frame and labels": (features, {"y": frame["state"]}),
        "array": (features.to_numpy(), {"y": frame["state"], "feature_names": features.columns}),
        "table": (read_table(path, target="state"), {}),
    }
    expected = [(row["feature"], row["weights"]) for row in found.document["panel"]]
    for name, (data, given) in tables.items():
        other = select_panel(data, **given, fast=True, **CHEAP)
        panel = [(row["feature"], row["weights"]) for row in other.document["panel"]]
        assert panel == expected, name
        assert other.evaluation.scores["auc"].value == found.evaluation.scores["auc"].value


def test_what_is_fitted_is_what_is_evaluated(found, path):
    """Evaluating the fitted procedure from outside gives the estimate that was reported."""
    table = read_table(path, target="state")
    again = nested_evaluate(
        found.model, table.X, table.labels, cv=3, n_repeats=1, n_permutations=0, final_fit=False
    )
    assert [name for name, _ in found.model.steps] == ["impute", "model"]
    assert again.scores["balanced_accuracy"] == found.evaluation.scores["balanced_accuracy"]
    described = again.description["estimator"]
    assert described == found.evaluation.description["estimator"]
    assert list(found.model.feature_names_in_) == list(table.feature_names)


def test_a_selection_says_what_it_found(found):
    assert found.panel.index[0] == "g2"
    assert found.to_frame().equals(found.panel)
    headline, score, sizes = repr(found).splitlines()
    assert headline == f"Selection: {found.document['verdict']['headline']}"
    value = found.evaluation.scores["balanced_accuracy"].value
    assert score.startswith(f"  balanced accuracy {value:.2f} (95% interval ")
    assert sizes.startswith(f"  panels: {len(found.panel)} on all samples, ")
    assert str(max(found.evaluation.panel_sizes)) in sizes
    assert {"higher_in", "weight_ill", "weight_well", "frequency"} <= set(found.panel.columns)
    assert found.verdict == found.evaluation.verdict == "not tested"  # 3 draws decide nothing
    codes = [notice.code for notice in found.notices]
    assert "not tested" in codes
    assert [n["code"] for n in found.document["notices"]] == codes
    assert [n["title"] for n in found.document["notices"]] == [n.title for n in found.notices]
    assert found.stability is not None and found.stability.selections_.shape == (4, 8)
    assert set(found.seconds) >= {"tuning and fitting", "nested cross-validation", "summary"}


def test_a_notebook_shows_the_page_in_a_sandbox(found):
    shown = found._repr_html_()
    assert shown.startswith(
        '<iframe sandbox="allow-scripts allow-downloads" srcdoc="&lt;!doctype html&gt;'
    )
    assert "allow-same-origin" not in shown
    assert shown.count("<") == 2  # nothing of the page is outside of the frame


def test_progress_names_every_stage_and_can_end_the_run(frame):
    seen: list[tuple[str, int, int]] = []
    select_panel(
        frame, target="state", permutations=2, resamples=2,
        progress=lambda *step: seen.append(step), **CHEAP,
    )  # fmt: skip
    stages = list(dict.fromkeys(stage for stage, _, _ in seen))
    assert stages == [
        "tuning and fitting",
        "nested cross-validation",
        "permutation test",
        "stability in half samples",
        "summary",
    ]
    assert all(seen[-1][1:] == (1, 1) or done <= total for _, done, total in seen)
    count = iter(range(100))
    with pytest.raises(Cancelled):
        select_panel(
            frame, target="state", permutations=0, resamples=0,
            cancel=lambda: next(count) >= 3, **CHEAP,
        )  # fmt: skip


def test_the_largest_number_of_draws_reaches_the_test(frame):
    found = select_panel(frame, target="state", fast=True, max_permutations=120, **CHEAP)
    assert found.evaluation.description["max_permutations"] == 120
    assert found.document["run"]["parameters"]["max_permutations"] == 120


def test_an_interrupted_run_resumes_to_the_same_bytes(frame, tmp_path):
    log = tmp_path / "run.jsonl"
    options = {"target": "state", "permutations": 3, "resamples": 4, "log": log, **CHEAP}

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "stability in half samples" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select_panel(frame, progress=stop, **options)
    with pytest.raises(ValueError, match="exists already"):
        select_panel(frame, **options)
    done = []
    resumed = select_panel(frame, resume=True, progress=lambda *step: done.append(step), **options)
    whole = select_panel(frame, **{**options, "log": None})
    assert json.dumps(resumed.document) == json.dumps(whole.document)
    # folds and draws that the log holds are not computed again
    assert ("nested cross-validation", 3, 3) in done
    assert ("nested cross-validation", 1, 3) not in done
    with pytest.raises(ValueError, match="other work"):
        select_panel(frame, resume=True, **{**options, "random_state": 1})
    finished = log.read_bytes()
    select_panel(frame, resume=True, **options)
    assert log.read_bytes() == finished


def test_a_plan_reaches_document_page_files_and_log(frame, tmp_path, monkeypatch):
    log = tmp_path / "run.jsonl"
    options = {"target": "state", "fast": True, "plan": True, "log": log, **CHEAP}
    found = select_panel(frame, **options)
    validate(found.document)
    assert found.document["learning"] == found.learning.to_dict()
    assert found.document["learning"]["sizes"] == [12, 16, 20, 26, 32]
    assert found.document["learning"]["stability"][-1] is not None
    shown = found.document["figures"]["learning"]
    assert shown["measured"]["value"] == [a.value for a in found.learning.accuracy]
    page = found.to_html()
    assert 'id="plan"' in page and found.learning.sentence() in page
    found.save(tmp_path / "out")
    checklist = (tmp_path / "out" / "checklist.md").read_text(encoding="utf-8")
    assert found.learning.sentence() in checklist
    written = found.document["methods"]
    assert "nested parts of 12, 16, 20, 26 and 32 samples, 10 times each" in written["paragraph"]
    assert found.learning.sentence() in written["paragraph"]
    assert any("Mukherjee" in citation for citation in written["citations"])
    seen = []
    again = select_panel(frame, resume=True, progress=lambda *s: seen.append(s), **options)
    assert again.document == found.document
    assert ("learning curve", 50, 50) in seen and ("learning curve", 1, 50) not in seen
    monkeypatch.setattr(EvaluationResult, "verdict", "none")  # it outweighs the curve
    overruled = select_panel(frame, resume=True, **options).learning
    assert overruled.reason == "chance" and not overruled.forecast


def test_a_recalibrated_selection_says_so_in_everything_it_writes(frame, tmp_path):
    found = select_panel(frame, target="state", fast=True, **CHEAP)
    assert not any("Mukherjee" in citation for citation in found.document["methods"]["citations"])
    cohort = frame.iloc[::2]
    again = found.recalibrated(cohort, prevalence=0.1)
    validate(again.document)
    assert again.document["model"]["recalibration"]["n_samples"] == len(cohort)
    assert "recalibrated to a prevalence of 10%" in again.document["methods"]["paragraph"]
    assert again.document["evaluation"] == found.document["evaluation"]
    assert found.document["model"]["recalibration"] is None  # left as it was
    again.save(tmp_path / "out")
    for name in ("checklist.md", "report.html"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "recalibrated to a prevalence of 10%" in text, name
    saved = load_model(tmp_path / "out" / "model.skops")
    p, q = found.model.predict_proba(frame)[:, 1], saved.predict_proba(frame)[:, 1]
    np.testing.assert_array_less(np.ptp(np.log(q / (1 - q)) - np.log(p / (1 - p))), 1e-9)
    assert not np.allclose(p, q)


def test_defaults_are_the_same_on_the_command_line():
    parameters = inspect.signature(select_panel).parameters
    groups = (Method(), Transform(), Folds(), Given(), Permutations(), Resamples(), Planning())
    for name, value in values(*groups).items():
        default = parameters[name].default
        assert (list(default) if isinstance(default, tuple) else default) == value, name


# What would be mathematics, estimation or summary in the command line.
WORK = {
    "fit",
    "fit_transform",
    "transform",
    "predict",
    "predict_proba",
    "score",
    "decision_function",
}
MAY_IMPORT = {"", "io", "io.errors", "reproduce", "workflow"}


def test_the_command_line_adds_words_and_files_only():
    """No module of `cli` fits, evaluates or summarises: it imports nothing that could."""
    for file in (Path(sparsegsvp.__file__).parent / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert (node.module or "") in MAY_IMPORT, f"{file.name} imports {node.module}"
            elif isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += [alias.name for alias in node.names]
                heavy = {"numpy", "scipy", "sklearn", "joblib", "pandas"}
                assert not heavy & {name.split(".")[0] for name in names}, file.name
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in WORK, f"{file.name} calls .{node.func.attr}"
