"""The page, alive in a real browser: sliders, sorting, downloads, the keyboard, paper."""

from __future__ import annotations

import base64
import json
import re
import time
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from sparsegsvp.report import draw_figures, drawings, figures

ARTIFACTS = Path(__file__).parents[2] / "artifacts"
HOSTILE = ("<script>alert(1)</script>", "=cmd|'/c calc'!A1", '"><img src=x onerror=alert(1)>')


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
    # figures that are taken away never leave the page: data: and blob: are made in it
    assert [url for url in sent if not url.startswith(("data:", "blob:"))] == [path.as_uri()]


def script(name):
    return Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8")


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
        places.add(opened.find_element("css selector", ".cursor:not(.act)").get_attribute("x1"))
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


def test_the_threshold_moves_every_number(opened, results):
    counts = results["evaluation"]["threshold_counts"]
    found = results["figures"]["decision"]
    move = (
        "for (const [id, value] of Object.entries(arguments[0])) { const e ="
        " document.getElementById(id); e.value = value; e.dispatchEvent(new Event('input')); }"
    )
    hidden = "return document.querySelector('.cursor.act').hasAttribute('hidden')"
    keys = ("threshold", "sensitivity", "specificity", "ppv", "npv", "net_benefit")

    def shown():
        return [opened.find_element("id", f"at-{key}").get_attribute("textContent") for key in keys]

    def expected(evidence, prevalence):
        at = figures.at_threshold(counts, evidence, prevalence)
        said = ["–" if at[key] is None else f"{100 * at[key]:.1f}%" for key in keys[:-1]]
        return [*said, f"{at['net_benefit']:.3f}"]

    assert shown() == expected(0.0, found["prevalence"])
    assert not opened.execute_script(hidden)
    for evidence, percent in ((1.5, 12), (-2.0, 3.5), (6, 40)):
        opened.execute_script(move, {"threshold": evidence, "prevalence": percent})
        assert shown() == expected(evidence, percent / 100)
        assert opened.execute_script(hidden)  # the curve is of another prevalence
    before = shown()
    opened.execute_script(move, {"prevalence": 0})
    field = opened.find_element("id", "prevalence")
    assert shown() == before and field.get_attribute("aria-invalid") == "true"
    back = 100 * found["prevalence"]
    opened.execute_script(move, {"threshold": 0.5, "prevalence": back})
    assert not opened.execute_script(hidden)
    assert "Of 1,000 samples" in texts(opened, "#at-words")[0]


def test_every_figure_can_be_taken_away(opened, results):
    drawn = draw_figures(results)
    names = texts(opened, ".give span")
    assert sorted(names) == sorted(drawn)
    # what the buttons make, without the browser's limit on downloads in a row
    opened.execute_script(_CATCH)
    for kind in ("svg", "csv", "png"):
        for name in names if kind != "png" else ("heatmap", "planes"):
            opened.execute_script(_GIVE, name, kind)
    taken = opened.execute_async_script(_TAKEN, 2 * len(names) + 2)
    for name, chart in drawn.items():
        assert taken[f"{name}.csv"] == chart.csv()
        root = ElementTree.fromstring(taken[f"{name}.svg"])
        kinds = {element.tag.split("}")[1] for element in root.iter()}
        assert kinds <= {"svg", "g", "rect", "path", "line", "circle", "text", "title"}, name
        written = ElementTree.tostring(root, encoding="unicode")
        assert "var(" not in written and "class=" not in written and "NaN" not in written
    planes = taken["planes.svg"]
    assert escape(results["data"]["positive"]) in planes  # the legend is in the file
    assert planes.count("<title>") == 60 and "rgb(28, 33, 39)" in planes
    assert all(taken[f"{name}.png"].startswith("\ufffdPNG") for name in ("heatmap", "planes"))


_CATCH = """
window.taken = {};
let last;
URL.createObjectURL = (blob) => { last = blob; return "#"; };
HTMLAnchorElement.prototype.click = function () { window.taken[this.download] = last.text(); };
"""
_GIVE = "document.querySelector(`[data-give='${arguments[0]}'][data-as='${arguments[1]}']`).click()"
_TAKEN = """
const [n, done] = arguments;
const look = async () => {
  if (Object.keys(window.taken).length < n) { setTimeout(look, 20); return; }
  const found = {};
  for (const [name, text] of Object.entries(window.taken)) found[name] = await text;
  done(found);
};
look();
"""


def test_a_download_is_a_file_of_its_name(opened, results, tmp_path):
    allow = {"behavior": "allow", "downloadPath": str(tmp_path / "taken")}
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
    wanted = {"roc.csv", "roc.svg", "roc.png"}
    for kind in ("csv", "svg", "png"):
        opened.execute_script(_GIVE, "roc", kind)
    deadline = time.monotonic() + 20
    while {
        p.name for p in (tmp_path / "taken").glob("*")
    } != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    found = {p.suffix: p.read_bytes() for p in (tmp_path / "taken").iterdir()}
    assert found[".csv"].decode() == draw_figures(results)["roc"].csv()
    assert found[".svg"].startswith(b"<svg") and found[".png"].startswith(b"\x89PNG")


def test_the_keyboard_reaches_what_a_pointer_shows(opened, results):
    tip = "const t = document.getElementById('tip'); return t.hidden ? null : t.textContent"
    press = (
        "const svg = document.querySelector('#figure-planes svg'); svg.focus();"
        "svg.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))"
    )
    found = results["figures"]["planes"]
    said = [drawings.sample_words(found, i) for i in np.argsort(found["label"], kind="stable")]
    for key, at in (
        ("ArrowRight", 0),
        ("ArrowDown", 1),
        ("End", -1),
        ("ArrowLeft", -2),
        ("Home", 0),
    ):
        opened.execute_script(press, key)
        assert opened.execute_script(tip) == said[at]
    assert "probability of" in said[0] and said[0].startswith("P")
    assert len(opened.find_elements("css selector", ".here")) == 1
    opened.execute_script(press, "Escape")
    assert opened.execute_script(tip) is None
    reached = "return document.querySelectorAll('svg[data-title]:not([tabindex])').length"
    assert opened.execute_script(reached) == 0  # every box plot, named in its label
    labels = [e.get_attribute("aria-label") for e in opened.find_elements("css selector", ".boxes")]
    assert labels == [f"box plot of {row['feature']} by class" for row in results["panel"]]


def test_text_can_be_read_in_light_and_dark(opened):
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        assert opened.execute_script(script("contrast")) == [], scheme


def test_it_prints_without_split_words_or_cut_figures(opened, results):
    paper = {"width": 702, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert opened.execute_script("return document.documentElement.scrollWidth") <= 702
    assert opened.execute_script(script("split")) == []
    heights = "return [...document.querySelectorAll('figure')].map((f) => f.offsetHeight)"
    assert max(opened.execute_script(heights)) < 900  # whole on a page
    long = "return document.documentElement.scrollHeight / 1020"  # were every page full
    pages = opened.execute_script(long)
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    made = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    content = base64.b64decode(made["data"])
    assert content.startswith(b"%PDF")
    n = len(re.findall(rb"/Type /Page\b", content))
    assert pages - 1 < n <= 1.35 * pages + 1, (n, pages)  # no page is half empty on average
    ARTIFACTS.mkdir(exist_ok=True)
    (ARTIFACTS / "report.pdf").write_bytes(content)


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
