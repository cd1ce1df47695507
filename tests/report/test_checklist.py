"""The TRIPOD+AI checklist: complete, filled from the document, and nothing but text."""

from __future__ import annotations

import json
import re

import pytest

from sparsegsvp.report import build_report, checklist, checklist_markdown
from sparsegsvp.report.checklist_run import checklist_answers

# items with parts, by the number of their last letter
LETTERS = {3: "c", 5: "b", 6: "c", 8: "c", 9: "c", 12: "g", 18: "f", 20: "c", 23: "b", 27: "c"}


def by_number(results):
    return {part.number: part for part in checklist(results)}


def test_every_item_and_part_is_there_once_and_in_order(results):
    numbers = [part.number for part in checklist(results)]
    expected = []
    for item in range(1, 28):
        last = LETTERS.get(item)
        letters = "abcdefg"[: "abcdefg".index(last) + 1] if last else [""]
        expected += [f"{item}{letter}" for letter in letters]
    assert numbers == expected
    assert len(numbers) == 52 and len({re.match(r"\d+", n).group() for n in numbers}) == 27
    assert set(checklist_answers(results)) <= set(numbers)


def test_every_part_says_something_to_someone(results):
    for part in checklist(results):
        assert part.text or part.authors, part.number
        assert part.status == ("authors" if not part.text else "both" if part.authors else "run")
    found = by_number(results)
    for number in ("3a", "6b", "8c", "14", "17", "18a", "19", "20b"):
        assert found[number].status == "authors"
    for number in ("4", "11", "12a", "12b", "12e", "13", "21", "22"):
        assert found[number].status == "run"


def test_the_run_fills_what_it_knows(results):
    results["test"] = None
    found = by_number(results)
    score = results["scores"]["balanced_accuracy"]
    assert f"balanced accuracy {score['value']:.2f} (95% interval" in found["23a"].text
    assert "60 samples (30 " in found["21"].text and "each predicted 2 times" in found["21"].text
    assert all(feature["feature"] in found["9b"].text for feature in results["panel"])
    assert "sparsegsvp" in found["18f"].text and "Seed 0." in found["18f"].text
    assert results["run"]["command"] in found["18f"].text
    assert "0" * 64 in found["5a"].text
    assert all(notice["text"] in found["26"].text for notice in results["notices"])
    assert found["11"].text == "No value was missing."
    assert "no learning curve" in found["10"].text
    assert found["12d"].status == found["16"].status == found["20c"].status == "authors"


def test_missing_values_groups_logarithm_and_a_cohort_show(results):
    results["data"] |= {"n_missing": 18, "n_groups": 12}
    results["run"]["parameters"] = {"log2": True, "floor": 16.0, "impute": "none"}
    results["test"] |= {"source": "other.csv", "n_samples": 5, "class_counts": [3, 2]}
    found = by_number(results)
    assert found["11"].text.startswith("18 values (1.00%) were missing")
    assert "12 groups were kept whole" in found["12d"].text
    assert "groups whole" in found["12a"].text
    assert "log2(max(x, 16))" in found["12b"].text and "log2(max(x, 16))" in found["7"].text
    assert found["27a"].text.startswith("Missing values are refused.")
    assert "5 samples (3 " in found["16"].text and found["20c"].status == "both"
    assert "other.csv" in found["5a"].text and "Independent cohort: " in found["23a"].text
    assert "No independent cohort" not in found["26"].text


@pytest.mark.parametrize("method", ["prevalence", "slope"])
def test_a_recalibrated_model_fills_the_items_on_updating(results, method):
    found = by_number(results)
    for number in ("12f", "24"):
        assert "not updated or recalibrated" in found[number].text
    assert "equal shares" in found["13"].text and "equal shares" in found["15"].text
    results["model"]["recalibration"] = {
        "prevalence": 0.05, "positive": "ill", "method": method, "slope": 0.8, "intercept": -0.3,
        "n_samples": None if method == "prevalence" else 40, "source": "site 3", "digest": "",
    }  # fmt: skip
    found = by_number(results)
    assert "recalibrated to a prevalence of 5% of 'ill'" in found["12f"].text
    assert ("40 samples of site 3" in found["12f"].text) == (method == "slope")
    assert ("multiplied by 0.80 and moved by -0.30" in found["24"].text) == (method == "slope")
    assert "12f" in found["13"].text and "a prevalence of 5%" in found["15"].text
    assert all(found[number].status == "run" for number in ("12f", "13", "24"))
    assert "recalibrated to a prevalence of 5%" in build_report(results)


def test_batches_fill_the_items_on_clusters(results):
    audit = {
        "name": "site", "batches": ["A", "B"], "classes": ["ill", "well"], "counts": [[9, 9]] * 2,
        "sentences": ["Class and site have nothing to do with each other."], "panel": None,
        "unseen": {
            "score": {"value": 0.8, "low": 0.7, "high": 0.9, "level": 0.95}, "ordinary": 0.85,
            "recalls": [[0.75, None], [1.0, 0.5]],
        },
    }  # fmt: skip
    assert by_number(results)["23b"].status == "authors"
    results["evaluation"]["batches"] = [audit]
    found = by_number(results)
    assert "site (2 values) was audited" in found["12d"].text
    assert "nothing to do with each other" in found["12d"].text
    assert "0.80 (95% interval 0.70 to 0.90)" in found["23b"].text
    assert "A: 75% of ill and B: 100% of ill, 50% of well" in found["23b"].text


def test_a_document_without_an_estimate_makes_a_checklist(results):
    results |= {"scores": {}, "stability": None, "evaluation": None, "notices": [], "panel": []}
    results["test"] = None
    results["thresholds"] = []
    results["figures"] = dict.fromkeys(results["figures"]) | {"weights": [], "stability": []}
    found = by_number(results)
    assert found["23a"].text == "Not estimated in this run."
    assert "without an estimate" in found["4"].text


def test_markdown_is_the_same_each_time_and_its_names_are_text(results):
    results["data"]["source"] = "a|b\n# *not* a [title](x) `code` \x1b[31m.csv"
    text = checklist_markdown(results)
    assert text == checklist_markdown(json.loads(json.dumps(results)))
    boxes = re.findall(r"^- \[(.)\] \*\*(\d+[a-g]?)\*\* ", text, flags=re.MULTILINE)
    status = {part.number: part.status for part in checklist(results)}
    assert len(boxes) == 52
    assert all((box == "x") == (status[number] == "run") for box, number in boxes)
    assert "<" not in text and "\x1b" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert r"a\|b \# \*not\* a \[title\](x) \`code\`" in text
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1
    ticked = sum(box == "x" for box, _ in boxes)
    assert f"\n{ticked} of 52 parts are filled from the run" in text


def test_the_page_folds_the_same_checklist(results):
    page = build_report(results)
    folded = page[page.index('<details id="checklist">') :]
    folded = folded[: folded.index("</details>")]
    rows = re.findall(r'<tr class="(run|both|authors)"><th scope="row">(\w+)</th>', folded)
    assert rows == [(part.status, part.number) for part in checklist(results)]
    assert "<script" not in folded and "&lt;script&gt;alert(1)" in folded


@pytest.mark.parametrize("word", ["TRIPOD", "BMJ 2024;385:e078378"])
def test_the_statement_is_cited(results, word):
    assert word in checklist_markdown(results)
