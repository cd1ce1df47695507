"""Roles, dry runs and results that are never overwritten, as the command line shows them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsegsvp.cli.command import flag


@pytest.fixture
def cohort(tmp_path):
    """A table as a biologist has it: ids, genes, patients, clinical columns, labels."""
    rng = np.random.default_rng(2)
    names = ["sample", *(f"GENE{j}" for j in range(60)), "patient", "age", "sex", "batch"]
    lines = [",".join([*names, "os_months", "type"])]
    for i in range(24):
        genes = rng.normal(8, 1, 60).round(3)
        genes[7] += 3 * (i % 2)
        cells = [f"S{i}", *genes, f"P{i // 2}", 40 + i, "MF"[i % 2], i % 3, i * 1.5]
        lines.append(",".join(map(str, [*cells, ["well", "ill"][i % 2]])))
    path = tmp_path / "cohort.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["select", "--fast", "--tau", "1", "--deltas", "4"],
        ["evaluate", "--repeats", "1", "--permutations", "3", "--tau", "1", "--deltas", "4"],
        ["compare", "--repeats", "1", "-m", "GEPSVM", "--sizes", "2"],
    ],
    ids=lambda words: words[0],
)
def test_a_dry_run_shows_the_roles_and_the_time_and_writes_nothing(cohort, kit, words):
    out = cohort.parent / "out"
    result = kit.run(words[0], cohort, "-t", "type", *words[1:], "--jobs", "1", "--out", out,
                     "--dry-run")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    for role, column in [("target", "type"), ("id", "sample"), ("batch", "batch"),
                         ("covariate", "sex,"), ("ignored", "patient"), ("ignored", "os_months"),
                         ("feature", "60")]:  # fmt: skip
        assert any(row[:2] == [role, column] for row in rows), (role, result.stdout)
    assert "--keep COLUMNS" in result.stdout and "--group COLUMN" in result.stdout
    assert "in 1 process, an estimate" in result.stdout and "fits)" in result.stdout
    assert "Nothing was run or written" in result.stdout
    assert names(cohort.parent) == ["cohort.csv"]


def test_the_plan_as_json(cohort, kit):
    words = ["select", cohort, "-t", "type", "--keep", "age,batch", "--tau", "1", "--deltas", "4"]
    result = kit.run(*words, "--folds", "3", "--repeats", "2", "--resamples", "4",
                     "--permutations", "3", "--jobs", "1", "--dry-run", "--json")  # fmt: skip
    plan = json.loads(result.stdout)
    assert plan["data"]["n_features"] == 62
    assert plan["fits"] == {
        "tuning and fitting": 1, "nested cross-validation": 6, "permutation test": 20,
        "stability in half samples": 4,
    }  # fmt: skip
    assert plan["seconds"].keys() == plan["fits"].keys()
    assert 0 < plan["total_seconds"] < 60


def test_roles_are_kept_in_the_results_and_in_the_command(cohort, kit):
    out = cohort.parent / "out"
    words = ["select", cohort, "-t", "type", "--keep", "age", *kit.fast, "--out", out]
    result = kit.run(*words)
    assert result.exit_code == 0, result.stderr
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    roles = {c: line["role"] for line in results["data"]["roles"] for c in line["columns"]}
    assert roles == {
        "type": "target", "sample": "id", "sex": "covariate", "batch": "batch", "age": "feature",
        "patient": "ignored", "os_months": "ignored",
    }  # fmt: skip
    assert results["data"]["dropped"].keys() == {"sex", "batch", "patient", "os_months"}
    assert "--keep age" in results["run"]["command"]
    assert {"patients"} <= {n["code"] for n in results["notices"]}
    # the model asks for no more than its panel, so that roles do not matter
    prediction = kit.run("predict", out / "model.skops", cohort, "--id", "sample")
    assert prediction.exit_code == 0, prediction.stderr


def test_results_are_replaced_only_with_force(cohort, kit):
    out = cohort.parent / "out"
    words = ["select", cohort, "-t", "type", *kit.fast, "--out", out, "--quiet"]
    assert kit.run(*words).exit_code == 0
    before = (out / "results.json").read_bytes()
    again = kit.run(*words)
    assert again.exit_code == 2 and again.stderr.count("\n") == 1
    assert "holds the results of an earlier run (" in again.stderr
    assert " of 20" in again.stderr and again.stderr.rstrip().endswith(flag("force"))
    assert kit.run(*words, "--keep", "age", "--force").exit_code == 0
    assert (out / "results.json").read_bytes() != before
    (out / "thesis.tex").write_text("mine")
    refused = kit.run(*words, "--force")
    assert refused.exit_code == 2 and "other files ('thesis.tex')" in refused.stderr
    assert (out / "thesis.tex").read_text() == "mine"


def test_files_that_only_have_our_names_are_not_ours(cohort, kit):
    out = cohort.parent / "out"
    out.mkdir()
    for content in ("{}", "not json", '["sparsegsvp"]', '{"format": "something"}'):
        (out / "results.json").write_text(content)
        words = ["select", cohort, "-t", "type", "--out", out, "--quiet", "--force"]
        result = kit.run(*words)
        assert result.exit_code == 2 and "other files ('results.json')" in result.stderr
        assert (out / "results.json").read_text() == content


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_evidence_is_replaced_only_with_force(cohort, kit, command):
    out = cohort.parent / "out"
    out.mkdir()
    (out / "results.json").write_text('{"format": "sparsegsvp-evaluation"}')
    result = kit.run(command, cohort, "-t", "type", "--out", out)
    assert result.exit_code == 2 and "earlier run (results.json of 20" in result.stderr


def test_a_demo_replaces_a_demo_and_nothing_else(tmp_path, kit, monkeypatch):
    from sparsegsvp.cli import panels

    seen = []
    monkeypatch.setattr(panels, "_select", lambda *_, force, **__: seen.append(force))
    for command in ("sparsegsvp demo --seed 1", "sparsegsvp select t.csv -t demo"):
        text = json.dumps({"format": "sparsegsvp-results", "run": {"command": command}})
        (tmp_path / "results.json").write_text(text)
        kit.run("demo", "--out", tmp_path)
    kit.run("demo", "--out", tmp_path, "--force")
    assert seen == [True, False, True]


def test_predictions_are_replaced_only_with_force(finished, tmp_path, kit):
    out = tmp_path / "p.csv"
    words = ["predict", finished.out / "model.skops", finished.path, "--id", "sample", "-o", out]
    assert kit.run(*words).exit_code == 0
    written = out.read_bytes()
    out.write_text("mine")
    result = kit.run(*words)
    assert result.exit_code == 2 and "there is such a file already (p.csv of 20" in result.stderr
    assert out.read_text() == "mine"
    assert kit.run(*words, "--force").exit_code == 0
    assert out.read_bytes() == written


def test_output_and_log_are_tried_before_the_work(cohort, tmp_path, kit, monkeypatch):
    import sparsegsvp.io.table

    def read(*_, **__):
        raise AssertionError("the table was read")

    monkeypatch.setattr(sparsegsvp.io.table, "read_table", read)
    words = ["select", cohort, "-t", "type", "--out", tmp_path / "out"]
    (tmp_path / "old.jsonl").write_text("x")
    for log, said in {
        tmp_path / "out" / "log.jsonl": "lies in the folder for the results (--out)",
        tmp_path / "none" / "log.jsonl": "nothing can be written there",
        tmp_path / "old.jsonl": "continue it with --resume",
        tmp_path: "this is a folder",
    }.items():
        result = kit.run(*words, "--log", log)
        assert result.exit_code == 2 and said in result.stderr, result.stderr
    result = kit.run(*words[:-1], cohort)
    assert result.exit_code == 2 and "this is a file, not a folder" in result.stderr
    result = kit.run(*words[:-1], cohort / "out")
    assert result.exit_code == 2 and "sparsegsvp: " in result.stderr
    assert names(tmp_path) == ["cohort.csv", "old.jsonl"]
    result = kit.run("predict", tmp_path / "no.skops", cohort, "-o", tmp_path / "none" / "p.csv")
    assert result.exit_code == 2 and "nothing can be written there" in result.stderr


def test_a_run_that_was_interrupted_is_resumed_without_force(cohort, tmp_path, kit):
    words = ["select", cohort, "-t", "type", *kit.cheap, "--permutations", "0", "--resamples", "0",
             "--out", tmp_path / "out", "--log", tmp_path / "log.jsonl", "--quiet"]  # fmt: skip
    assert kit.run(*words).exit_code == 0
    whole = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    lines = (tmp_path / "log.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "log.jsonl").write_text("".join(lines[:-1]))
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    assert kit.run(*words, "--resume").exit_code == 0
    for name, content in whole.items():
        if name != "timings.json":
            assert (tmp_path / "out" / name).read_bytes() == content, name
    # other features are other work
    other = kit.run(*words, "--resume", "--force", "--keep", "age")
    assert other.exit_code == 2 and "features differ" in other.stderr
