"""The page: safe as text, and alive in a real browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sparsegsvp.evaluation import validate_predictions
from sparsegsvp.report import build_report, summarize_test, words

ARTIFACTS = Path(__file__).parents[2] / "artifacts"
HOSTILE = ("<script>alert(1)</script>", "=cmd|'/c calc'!A1", '"><img src=x onerror=alert(1)>')


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
    results |= {"scores": {}, "stability": None, "evaluation": None, "notices": []}
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


@pytest.fixture
def opened(browser, results, page_of, tmp_path):
    """The page, open in the browser; console and requests are checked when the test ends."""
    still = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", still)
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    path = page_of(results, tmp_path)
    browser.get(path.as_uri())
    yield browser
    assert browser.get_log("browser") == []
    sent = [
        message["params"]["request"]["url"]
        for message in (json.loads(e["message"])["message"] for e in browser.get_log("performance"))
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in sent if not url.startswith("data:")] == [path.as_uri()]


def texts(browser, selector):
    return [e.get_attribute("textContent") for e in browser.find_elements("css selector", selector)]


def test_the_slider_changes_the_panel(opened, results):
    steps, names = results["figures"]["path"]["steps"], results["figures"]["path"]["features"]
    move = (
        "const s = document.getElementById('slider'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input'));"
    )
    places = set()
    for at in (0, len(steps) - 1, results["figures"]["path"]["chosen"]):
        opened.execute_script(move, at)
        shown = texts(opened, "#path-panel li")
        assert shown == [names[f] for f in steps[at]["panel"]]
        size = len(steps[at]["panel"])
        assert texts(opened, "#path-size") == [f"{size} feature{'' if size == 1 else 's'}"]
        assert texts(opened, "#path-score")[0].startswith(f"{steps[at]['accuracy']:.3f}")
        entering = [names[f] for f in steps[at]["entering"]]
        assert texts(opened, "#path-panel li.new") == entering
        places.add(opened.find_element("css selector", ".cursor").get_attribute("x1"))
    assert len(places) == 3


def test_the_table_sorts_both_ways(opened, results):
    panel = results["panel"]
    assert texts(opened, "#panel-table tbody th") == [f["feature"] for f in panel]

    def click(column):
        opened.find_element(
            "css selector", f"#panel-table thead th:nth-child({column}) button"
        ).click()
        return texts(opened, "#panel-table tbody th")

    effects = {f["feature"]: max(e for e in f["effects"]) for f in panel}
    order = sorted(effects, key=lambda name: -effects[name])
    assert click(4) == order
    assert click(4) == order[::-1]
    assert click(1) == [f["feature"] for f in panel]


def test_hostile_names_are_shown_and_do_nothing(opened, fitted):
    shown = texts(opened, "#panel-table tbody th")
    assert set(HOSTILE) <= set(shown)
    assert opened.execute_script("return document.images.length") == 0
    assert opened.execute_script("return document.querySelectorAll('main b b').length") == 0
    assert fitted.table.positive in opened.find_element("tag name", "h1").text


def test_it_looks_right_in_light_dark_and_on_a_phone(opened):
    """Nothing sticks out sideways; the pictures are kept to be looked at."""
    ARTIFACTS.mkdir(exist_ok=True)
    background = "return getComputedStyle(document.body).backgroundColor"
    seen = set()
    for name, width, scheme in (
        ("light", 1280, "light"),
        ("dark", 1280, "dark"),
        ("phone", 390, "light"),
    ):
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        wide = opened.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width
        seen.add(opened.execute_script(background))
        shot = opened.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        (ARTIFACTS / f"report-{name}.png").write_bytes(base64.b64decode(shot["data"]))
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(seen) == 2
