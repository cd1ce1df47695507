"""The page: safe as text, whole, and small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from sparsegsvp.evaluation import validate_predictions
from sparsegsvp.report import (
    build_report,
    features,
    figures,
    projections,
    summarize_test,
    words,
)


class Elements(HTMLParser):
    """Collects tags, scripts and styles, and anything that could run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.inline: dict[str, list[str]] = {"script": [], "style": []}
        self.suspects: list[tuple[str, str, str | None]] = []
        self._open: str | None = None

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attrs:
            local = (value or "").startswith(("#", "data:"))
            if name.startswith("on") or name in ("style", "src"):
                self.suspects.append((tag, name, value))
            if name == "href" and not local:
                self.suspects.append((tag, name, value))
        if tag in self.inline and ("type", "application/json") not in attrs:
            self._open = tag
            self.inline[tag].append("")

    def handle_endtag(self, tag):
        if tag == self._open:
            self._open = None

    def handle_data(self, data):
        if self._open:
            self.inline[self._open][-1] += data


def test_names_stay_text_and_nothing_else_can_run(results):
    page = build_report(results)
    found = Elements()
    found.feed(page)
    assert found.suspects == []
    assert "img" not in found.tags
    assert found.tags["script"] == 2  # the data of the path, and the page's own
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    policy = policy.replace("&#39;", "'")
    for kind in ("script", "style"):
        (text,) = found.inline[kind]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "http:" not in page and "https:" not in page


def test_the_same_document_gives_the_same_page(results):
    assert build_report(results) == build_report(json.loads(json.dumps(results)))


def test_sections_come_in_the_order_of_the_argument(results):
    page = build_report(results)
    places = [
        page.index(f'id="{name}"')
        for name in (
            [
                "answer",
                "which",
                "panel",
                "pictures",
                "good",
                "accuracy",
                "thresholds",
                "cohort",
                "trust",
                "warnings",
                "stability",
                "samples",
                "path",
                "weights",
                "write",
                "methods",
                "next",
                "take",
            ]
        )
    ]
    assert places == sorted(places)
    assert len(page) < 400_000


def test_a_page_of_many_features_stays_below_two_megabytes(results):
    rng = np.random.default_rng(0)
    found, names = results["figures"], [f"ENSG{j:011d}.7" for j in range(15_000)]
    codes = np.repeat([0, 1], 600)
    X = rng.normal(size=(1200, 40))
    classes = results["data"]["classes"]
    many = figures.SampleTable(X, codes, classes, names, names)
    wide = figures.SampleTable(rng.normal(size=(40, 15_000)), codes[580:620], classes, names)
    found["heatmap"] = features.heatmap(replace(many, ids=None), range(40))
    found["volcano"] = features.volcano(wide, range(40))
    for name in ("planes", "pca_before", "pca_after"):
        found[name] = projections.pca_before(many)
    steps = found["path"]["steps"][:1] * 30
    found["path"] |= {
        "features": names[:300],
        "weights": rng.random((300, 30)).tolist(),
        "steps": [{**step, "panel": list(range(0, 300, 30 - i))} for i, step in enumerate(steps)],
        "chosen": 5,
    }
    results["panel"] = [
        {**results["panel"][0], "feature": name, "rank": i} for i, name in enumerate(names[:60])
    ]
    assert len(build_report(results).encode()) < 2_000_000


def test_another_cohort_has_a_tile_a_section_and_its_own_curves(results):
    page = build_report(results)
    part = page[page.index('<section id="cohort">') : page.index('id="trust"')]
    assert part.count("<svg") >= 3 and "&lt;u&gt;site 2&lt;/u&gt;.csv" in part
    assert part.count("the labels of the model") == 1
    assert part.count("<b>differs</b>") == sum(
        f["shifted"] or f["scaled"] for f in results["test"]["shift"]
    )
    assert "prevalence of 20%" in part
    results["test"] = None
    without = build_report(results)
    assert 'id="cohort"' not in without and "<h3>In another cohort</h3>" not in without
    assert '"numbers five"' in page and '"numbers five"' not in without


def test_a_cohort_of_one_class_still_makes_a_page(results):
    found = validate_predictions(["a"] * 3, ["a", "a", "b"], ["a", "b"], positive="b")
    results["test"] = summarize_test(found)
    page = build_report(results)
    assert "The cohort has no sample of b" in page and "accuracy, 3 samples" in page
    said = words.cohort_sentence(results["test"])
    assert "an accuracy of 0.67" in said and "one class is missing" in said


def test_chance_is_said_first(results):
    results["verdict"] = {
        "level": "none",
        "headline": "No signal: ill cannot be told from well better than by chance",
        "sentences": ["What was done.", "What was found."],
    }
    page = build_report(results)
    top = page[page.index("<h1>") : page.index('id="panel"')]
    assert "No better than chance" in page[: page.index("<h1>")]
    assert "better than by chance" in top
    assert "Signal found" not in page


def test_a_document_with_nothing_but_a_panel_still_makes_a_page(results):
    results |= {
        "scores": {},
        "thresholds": [],
        "stability": None,
        "evaluation": None,
        "notices": [],
    }
    empty = dict.fromkeys(results["figures"]) | {"weights": [], "stability": []}
    results["figures"] = empty
    page = build_report(results)
    assert "Not estimated in this run" in page
    results["panel"] = []
    assert "No feature was selected" in build_report(results)


def test_a_missing_template_engine_names_the_extra(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"sparsegsvp\[report\]"):
        build_report(results)
