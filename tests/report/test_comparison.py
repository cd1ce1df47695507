"""The page of a comparison: what it says first, what it escapes, what it links."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sklearn.feature_selection import SelectKBest

from sparsegsvp import GSVPSVM, compare
from sparsegsvp.datasets import make_planted
from sparsegsvp.report import build_comparison, comparison_verdict

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def _document():
    data = make_planted(48, 20, 3, effect=2.5, random_state=0)
    methods = {"GSVPSVM": GSVPSVM(), HOSTILE: SelectKBest(), "broken": SelectKBest(k="some")}
    found = compare(methods, data.X, data.y, sizes=(2, 4), n_splits=3, n_repeats=1)
    return {
        "format": "sparsegsvp-comparison",
        "command": f"sparsegsvp compare '{HOSTILE}.csv'",
        "data": {"record": [f"read {HOSTILE}"], "digest": "0" * 64},
        "parameters": {"folds": 3},
        "versions": {"sparsegsvp": "0.1.0"},
        "comparison": found.to_dict(),
        "verdict": comparison_verdict(found.to_dict()),
    }


@pytest.fixture
def document(_document):
    return copy.deepcopy(_document)


def test_every_row_is_there_and_names_stay_text(document):
    document["comparison"]["rows"][4]["error"] = HOSTILE
    document["comparison"]["rows"][4]["status"] = "failed"
    document["comparison"]["rows"][4]["score"] = None
    page = build_comparison(document)
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 6
    for row in document["comparison"]["rows"]:
        if row["score"] is not None:
            assert f"{row['score']['value']:.3f}" in page
    assert 'id="problems"' in page and "failed" in page
    assert page == build_comparison(json.loads(json.dumps(document)))


def row(method, size, value, error=0.02):
    score = {"value": value, "low": value - 0.1, "high": min(value + 0.1, 1.0), "level": 0.95}
    return {"method": method, "size": size, "score": score, "standard_error": error}


def test_the_headline_is_the_smallest_panel_near_the_best():
    rows = [row("a", 2, 0.70), row("b", 2, 0.80), row("a", 4, 0.90), row("b", 4, 0.89)]
    rows += [row("a", 8, 0.91), row("b", 8, 0.85)]
    rows += [row("random panel", k, 0.6) for k in (2, 4, 8)]
    found = comparison_verdict({"rows": rows})
    headline, sentences = found["headline"], found["sentences"]
    assert headline == "4 features will do: a and b (0.90)"
    assert "a with 8 features: balanced accuracy 0.91" in sentences[0]
    assert sentences[1] == "A random panel of 4 scores 0.60."
    # the best on few features, nothing near it: no smaller panel is named
    rows[1] = row("b", 2, 0.95)
    assert comparison_verdict({"rows": rows})["headline"] == "2 features will do: b (0.95)"


def test_a_random_panel_that_does_as_well_is_said_first():
    rows = [row("a", 2, 0.70), row("a", 4, 0.71), row("random panel", 2, 0.70)]
    headline = comparison_verdict({"rows": rows})["headline"]
    assert headline == "A random panel of 2 features does as well as any method"


def test_nothing_finished():
    lost = {"method": "a", "size": 2, "score": None, "standard_error": None}
    found = comparison_verdict({"rows": [lost, row("random panel", 2, 0.6)]})
    assert found["headline"] == "No method finished"


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda d: d.update(format="sparsegsvp-results"), r"sparsegsvp compare"),
        (lambda d: d.pop("comparison"), r"results\['comparison'\] is missing"),
        (lambda d: d["comparison"]["rows"][0].pop("on_front"), r"rows'\]\[0\]\['on_front'\]"),
        (lambda d: d["comparison"].update(sizes="all"), r"sizes'\] must be a list"),
    ],
)
def test_another_document_is_refused_by_place(document, break_it, said):
    break_it(document)
    with pytest.raises(ValueError, match=said):
        build_comparison(document)


def test_pointing_at_a_row_lights_its_line(browser, document, tmp_path):
    path = tmp_path / "comparison.html"
    path.write_text(build_comparison(document), encoding="utf-8")
    browser.get(path.as_uri())
    browser.get_log("browser")
    point = (
        "document.querySelector('tr[data-link=\"1\"] th')"
        ".dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));"
    )
    browser.execute_script(point)
    lit = browser.find_elements("css selector", "svg .thread.lit")
    assert [line.get_attribute("data-tip") for line in lit] == [HOSTILE]
    assert len(browser.find_elements("css selector", "svg .bead.lit")) == 2
    # a cell that has more to say is reached by the keyboard
    cell = browser.find_element("css selector", "td[data-tip]")
    browser.execute_script("arguments[0].focus({focusVisible: true})", cell)
    tip = browser.find_element("id", "tip").get_attribute("textContent")
    assert tip == cell.get_attribute("data-tip") != ""
    allow = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
    for kind in ("csv", "svg"):
        browser.execute_script(f"document.querySelector('[data-as={kind}]').click()")
    deadline = time.monotonic() + 20
    while len(list(tmp_path.glob("accuracy.[cs]*[vg]"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert HOSTILE in (tmp_path / "accuracy.csv").read_text(encoding="utf-8")
    root = ElementTree.parse(tmp_path / "accuracy.svg").getroot()
    assert not [e for e in root.iter() if e.tag.endswith(("img", "script"))]
    assert HOSTILE in [e.text for e in root.iter() if e.tag.endswith("title")]
    assert browser.execute_script("return document.images.length") == 0
    contrast = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
    assert browser.execute_script(contrast) == []
    assert browser.get_log("browser") == []
