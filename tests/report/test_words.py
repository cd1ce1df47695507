"""Words: the verdict, notices, methods, checklist, and the console's lines."""

from __future__ import annotations

import re

import pytest
import report_fakes as fakes

from sparsegsvp._notices import Notice
from sparsegsvp.report import (
    build_document,
    checklist,
    checklist_markdown,
    cohort_lines,
    ladder_lines,
    methods,
)
from sparsegsvp.report.words import interval, joined, number, p_value


def _of(answer, **more):
    table = fakes.make_table(n=60)
    evaluation = fakes.Evaluation(table, answer)
    for name, value in more.items():
        setattr(evaluation.verdict, name, value)
    return build_document(table, evaluation)


@pytest.mark.parametrize(
    ("answer", "title", "trust"),
    [
        ("signal", "4 of 60 features tell ill from well", "beyond chance (p at most 0.01"),
        ("weak", "A weak signal: 4 of 60 features may tell ill from well", "reaches down to"),
        ("inconclusive", "Not decided yet: whether 4 of 60 features", "is open (p = 0.08"),
        ("none", "No signal: ill cannot be told from well", "must not be read as markers"),
        ("not tested", "4 of 60 features selected, not tested", "was not tested"),
    ],
)
def test_the_verdict_leads(answer, title, trust):
    document = _of(answer)
    assert document["verdict"]["headline"].startswith(title)
    found, trusted = document["verdict"]["sentences"]
    score = document["scores"]["balanced_accuracy"]
    assert interval(score)[:-1] in found and "guessing gives 0.50" in found
    assert trust in trusted
    named = document["panel"][0]["feature"] in found
    assert named == (answer != "none")  # noise is not advertised
    codes = [notice["code"] for notice in document["notices"]]
    assert (answer in codes) == (answer != "signal")


@pytest.mark.parametrize("case", fakes.CASES)
def test_no_sentence_of_the_opening_is_a_table(documents, case):
    for sentence in documents[case]["verdict"]["sentences"]:
        for part in re.split(r"(?<=[.;:]) ", sentence):
            # an interval is one statement
            part = re.sub(r"\(?[-−]?\d[\d.]* (to|–|-) [-−]?\d[\d.]*\)?", "", part)
            assert len(re.findall(r"(?<![\w.])\d[\d.,]*(?!\w)", part)) <= 4, part


def test_why_it_was_not_decided_is_said():
    few = _of("inconclusive", n_draws=9, reason="few draws")
    assert "With only 9 shuffled labellings" in few["verdict"]["sentences"][1]
    fixed = _of("not tested", reason="labels fixed")
    assert "no labels to shuffle" in fixed["verdict"]["sentences"][1]
    assert fixed["notices"][0]["severity"] == "serious"


def test_one_feature_and_many_classes_read_well(documents):
    table = fakes.make_table()
    assert build_document(table, fakes.Evaluation(table, size=1))["verdict"]["headline"].startswith(
        "1 of 60 f"
    )
    assert "tell the 3 classes apart" in documents["three"]["verdict"]["headline"]


def test_reasons_for_doubt_come_from_flags_table_and_panel(documents):
    table = fakes.make_table(n=30, n_missing=400)
    table.notices = (Notice("raw", "serious", "Values up to 60,000."),)
    keep = [i for i, y in enumerate(table.y) if y == "well" or i % 4 == 0]
    table.X, table.y, table.sample_names = table.X[keep], table.y[keep], table.sample_names[keep]
    flags = [
        ("duplicates", {"n_samples": 2, "n_rows": 30}),
        ("sizes", {"size": 4, "median": 9.0, "low": 7, "high": 30}),
        ("fits", {"n_fits": 3, "kind": "ConvergenceWarning", "first": "stopped {early}"}),
        ("new batch", {"name": "site", "score": 0.4, "ordinary": 0.8, "below_chance": True,
                       "n_train": 20}),
        ("few", {"class": "ill", "count": 4}),
    ]  # fmt: skip
    evaluation = fakes.Evaluation(
        table, flags=tuple(fakes.Record(code=code, numbers=numbers) for code, numbers in flags)
    )
    evaluation.stability.index = 0.2
    steady = build_document(table, evaluation)  # the panel comes back, with others beside it
    assert "would give these features among others" in steady["verdict"]["sentences"][1]
    assert "unstable" not in [notice["code"] for notice in steady["notices"]]
    evaluation.stability.share = 0.6
    document = build_document(table, evaluation, notices=[Notice("steered", "note", "By request.")])
    assert "some of these features among others" in document["verdict"]["sentences"][1]
    evaluation.stability.share = 0.45
    fewer = build_document(table, evaluation)["verdict"]["sentences"]
    assert "mostly other features" in fewer[1]
    said = {notice["code"]: notice["text"] for notice in document["notices"]}
    assert {"raw", "repeats", "sizes", "fits", "new batch", "few", "imbalance", "missing",
            "unstable", "steered"} <= said.keys()  # fmt: skip
    assert "stopped {early}" in said["fits"] and "7 to 30" in said["sizes"]
    assert "Panels of 1, 2" in said["unstable"]  # steadier sizes of the ladder are named
    order = [notice["severity"] for notice in document["notices"]]
    assert order == sorted(order, key=["serious", "caution", "note"].index)
    assert documents["signal"]["notices"] == []
    assert "hang together" in documents["batches"]["verdict"]["sentences"][1]


def test_numbers_are_never_flattered():
    """Defect 26: a p-value of 1e-6 read "p = 0.000"."""
    assert p_value({"p_value": 1e-6}) == p_value({"p_value": 1e-4, "at_most": True}) == "p < 0.001"
    assert [number(v) for v in (0.994, 0.997, 0.9997, 1.0)] == ["0.99", "0.997", ">0.999", "1.00"]
    assert p_value({"p_value": 0.05, "at_most": True}) == "p at most 0.05"
    assert p_value({"p_value": 0.001}) == "p = 0.001" and p_value({"p_value": 0.5}) == "p = 0.50"
    assert joined(["a"]) == "a" and joined(list("abc")) == "a, b and c"
    assert joined(list("abcdefgh"), 3) == "a, b, c and 5 more"


def test_the_console_shows_the_ladder(documents):
    *lines, last = ladder_lines(documents["signal"])
    assert last.startswith("* as chosen, by the whole procedure")
    starred = [line for line in lines if line.startswith("*")]
    assert len(lines) == 10 and len(starred) == 1 and starred[0].split()[1] == "4"
    assert len({line.index(" 0.") for line in lines[1:]}) == 1  # columns stand below each other
    three = documents["three"]
    rung = three["ladder"][2]
    three["panel"], rung["chosen"] = rung["features"], True
    lines = ladder_lines(three)  # both: of exactly so many, and of the procedure
    assert [line.split()[0] for line in lines[3:5]] == ["3", "*"] and lines[4].split()[1] == "3"
    three["sizes"] = {"median": 3, "low": 3, "high": 3}  # as with --n-features
    *lines, last = ladder_lines(three)
    assert last.startswith("* the size chosen") and lines[3].startswith("* ")
    three["ladder"] = []
    assert ladder_lines(three) == []


def test_the_console_shows_a_cohort(document):
    lines = cohort_lines(document["cohort"])
    assert lines[0].startswith("Balanced accuracy: 0.")
    assert any("prevalence of 50%, as in the cohort" in line for line in lines)
    assert any(line.startswith("Calibration: intercept -0.05") for line in lines)
    assert lines[-1] == "The cohort has few samples of class ill: 8."


@pytest.mark.parametrize("case", fakes.CASES)
def test_the_methods_paragraph_fits_the_run(documents, case):
    document = documents[case]
    said = methods(document)
    text = said["paragraph"]
    assert "  " not in text and "None" not in text and "{" not in text
    assert interval(document["scores"]["balanced_accuracy"]) in text
    assert f"{document['data']['n_samples']:,} samples" in text
    assert ("independent cohort" in text) == (document["cohort"] is not None)
    assert ("positive class" in text) == (len(document["data"]["classes"]) == 2)
    assert any("DeLong" in c for c in said["citations"]) == (document["cohort"] is not None)
    assert len(said["citations"]) == len(set(said["citations"])) >= 5


@pytest.mark.parametrize("case", fakes.CASES)
def test_the_checklist_has_all_parts(documents, case):
    parts = checklist(documents[case])
    assert len(parts) == 52 and len({part["number"] for part in parts}) == 52
    by = {part["number"]: part for part in parts}
    assert list(by)[:4] == ["1", "2", "3a", "3b"] and list(by)[-1] == "27c"
    assert by["17"]["status"] == "authors" and by["11"]["status"] == "run"
    assert by["11"]["text"] == "No value was missing."
    assert all("None" not in part["text"] and "{" not in part["text"] for part in parts)
    assert ("Evaluation" in by["21"]["text"]) == (documents[case]["cohort"] is not None)
    assert ("plate" in by["23b"]["text"]) == bool(documents[case]["batches"])
    # a column of text that is adjusted for is not passed over
    assert ("enter as 0 or 1" in by["12b"]["text"]) == bool(documents[case]["data"]["covariates"])


def test_the_checklist_in_markdown_is_only_text(document):
    text = checklist_markdown(document)
    assert text.count("- [") == 52 and text.startswith("# TRIPOD+AI checklist\n\n")
    assert "<script>" not in text and "&lt;script&gt;" in text
    assert "<u>site 2" not in text and text.endswith("place.\n")
    assert text.count("\n## ") == 7
