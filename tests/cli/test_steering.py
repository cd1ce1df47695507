"""`--must`, `--ban` and `--costs`, and the commands of the page that explains them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "steering.md"
QUICK = ["--fast", "--tau", "1", "--deltas", "4", "--folds", "3", "--jobs", "1"]


def test_what_must_and_may_not_be_in_the_panel(table, kit, tmp_path) -> None:
    header = table.read_text().splitlines()[0].split(",")
    features = [name for name in header if name not in ("sample", "class")]
    wanted, banned = features[:2], features[2:5]
    names, costs, out = tmp_path / "names.txt", tmp_path / "costs.csv", tmp_path / "out"
    names.write_text("\n".join(banned) + "\n")
    costs.write_text(f"feature,cost\n{features[6]},3\n")
    words = ["select", table, "-t", "class", *QUICK, "--must", ",".join(wanted), "--ban"]
    words += [f"@{names}", "--costs", costs, "--out", out]
    result = kit.run(*words)
    assert result.exit_code == 0, result.stderr
    document = json.loads((out / "results.json").read_text())
    panel = {row["feature"] for row in document["panel"]}
    assert set(wanted) <= panel and not set(banned) & panel
    for fold in document["evaluation"]["folds"]:
        chosen = {features[j] for j in fold["panel"]}
        assert set(wanted) <= chosen and not set(banned) & chosen
    said = shlex.split(document["run"]["command"])
    assert said[said.index("--must") + 1] == ",".join(wanted) and f"@{names}" in said
    assert document["run"]["parameters"]["costs"] == {features[6]: 3.0}
    assert "In every panel by request" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--must", "no such gene"], "there is no feature 'no such gene' (--must)"),
        (["--ban", "@missing.txt"], "missing.txt: the list cannot be read"),
        (["--costs", "missing.csv"], "missing.csv: the list cannot be read"),
        (["--panel", "@missing.txt"], "missing.txt: the list cannot be read"),
        (["--published"], "--published says where a given panel comes from"),
    ],
)
def test_errors_name_the_option_and_come_before_the_work(table, kit, words, message) -> None:
    out = table.parent / "out"
    for command in ("select", "evaluate"):
        rest = QUICK if command == "select" else QUICK[1:]
        result = kit.run(command, table, "-t", "class", *rest, *words, "--out", out)
        assert result.exit_code != 0 and message in " ".join(result.stderr.split())
        assert not out.exists()


def test_a_given_panel_is_scored_beside_the_selection(table, kit, tmp_path) -> None:
    features = table.read_text().splitlines()[0].split(",")[1:4]
    names, out = tmp_path / "names.txt", tmp_path / "out"
    names.write_text("\n".join(features) + "\n")
    words = ["evaluate", table, "-t", "class", *QUICK[1:], "--repeats", "1", "--permutations", "0"]
    result = kit.run(*words, "--panel", f"@{names}", "--published", "--out", out)
    assert result.exit_code == 0, result.stderr
    document = json.loads((out / "results.json").read_text())
    [other] = document["beside"]
    assert other["features"] == features and other["published"]
    assert all(sentence in result.stdout for sentence in other["sentences"][1:])
    assert document["command"].endswith(f"--panel @{names} --published --permutations 0")


def test_age_and_sex_are_adjusted_for_and_coded_alike_in_another_file(table, kit, tmp_path) -> None:
    lines = table.read_text().splitlines()
    path, other, out = tmp_path / "table.csv", tmp_path / "other.csv", tmp_path / "out"
    more = [f"{40 + 7 * i % 31},{'FM'[i // 2 % 2]}" for i in range(len(lines) - 1)]
    path.write_text("\n".join(f"{a},{b}" for a, b in zip(lines, ["age,sex", *more])) + "\n")
    words = ["select", path, "-t", "class", "--id", "sample", *QUICK, "--adjust", "age,sex"]
    result = kit.run(*words, "--out", out)
    assert result.exit_code == 0, result.stderr
    document = json.loads((out / "results.json").read_text())
    names = [row["feature"] for row in document["panel"]]
    assert {"age", "sex=M vs F"} < set(names)
    [alone] = document["beside"]
    assert alone["kind"] == "covariates alone" and alone["sentences"][1] in result.stdout
    assert "Beside it: covariates alone" in (out / "report.html").read_text()
    predicted = kit.run("predict", out / "model.skops", path)
    assert predicted.exit_code == 0, predicted.stderr
    other.write_text(path.read_text().replace(",M\n", ",male\n"))
    refused = kit.run("predict", out / "model.skops", other)
    assert refused.exit_code == 2
    assert "column 'sex' has the value 'male', which training has not" in refused.stderr


def test_a_category_is_chosen_as_a_whole_and_coded_alike_in_another_file(
    table, kit, tmp_path
) -> None:
    lines = table.read_text().splitlines()
    place = lines[0].split(",").index("class")
    path, other, out = tmp_path / "table.csv", tmp_path / "other.csv", tmp_path / "out"
    classes = [line.split(",")[place] for line in lines[1:]]
    own = dict(zip(sorted(set(classes)), ("I", "III")))
    stage = ["II" if i % 7 == 0 else own[label] for i, label in enumerate(classes)]
    path.write_text("\n".join(f"{a},{b}" for a, b in zip(lines, ["stage", *stage])) + "\n")
    words = ["select", path, "-t", "class", "--id", "sample", *QUICK, "--categorical", "stage"]
    result = kit.run(*words, "--n-features", "2", "--out", out)
    assert result.exit_code == 0, result.stderr
    document = json.loads((out / "results.json").read_text())
    levels = {"stage=II vs I", "stage=III vs I"}
    names = {row["feature"] for row in document["panel"]}
    assert levels < names and len(names) == 3
    for fold in document["evaluation"]["folds"]:
        assert len(fold["panel"]) in (2, 3)
    assert "--categorical stage" in document["run"]["command"]
    # a level that came into the panel with another one has no weight on the path
    assert any(not any(row) for row in document["figures"]["path"]["weights"])
    page = (out / "report.html").read_text()
    assert "(2 features)" in page and "stage=II vs I" in page
    predicted = kit.run("predict", out / "model.skops", path)
    assert predicted.exit_code == 0, predicted.stderr
    other.write_text(path.read_text().replace(",II\n", ",V\n"))
    refused = kit.run("predict", out / "model.skops", other)
    assert refused.exit_code == 2
    assert "column 'stage' has the value 'V', which training has not" in refused.stderr


PLANNED = ["--tau", "1", "--deltas", "4", "--permutations", "0", "--jobs", "1", "--dry-run"]


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this copy")
def test_the_commands_of_the_page_are_accepted_for_its_table(kit, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(snippet, {})
    commands = re.findall(r"^    sparsegsvp (.*)$", text, flags=re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        result = kit.run(*shlex.split(command), *PLANNED)
        assert result.exit_code == 0, result.stderr
        assert "The run would take" in result.stdout
        for part in ("given panel", "covariates alone"):
            asked = {"given panel": "--panel", "covariates alone": "--adjust"}[part]
            assert (part in result.stdout) == (asked in command)
