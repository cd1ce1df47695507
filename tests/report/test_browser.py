"""The page, alive in a real browser: ladder, sliders, sorting, downloads, the keyboard, paper."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
import report_fakes as fakes

from sparsegsvp.report import draw_figures, render_page

ARTIFACTS = Path(__file__).parents[2] / "artifacts"


@pytest.fixture
def opened(browser, document, tmp_path):
    """The page, open in the browser; console and requests are checked when the test ends."""
    yield from _open(browser, document, tmp_path)


def _open(browser, document, tmp_path):
    still = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", still)
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    path = tmp_path / "index.html"
    path.write_text(render_page(document), encoding="utf-8")
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


_SHOWN = "#panel-table tbody tr:not([hidden])"


def test_any_rung_of_the_ladder_shows_its_panel(opened, document):
    chosen = [row["feature"] for row in document["panel"]]
    assert len(texts(opened, f"{_SHOWN} th")) == len(chosen)
    click = "document.querySelector(arguments[0]).dispatchEvent(new Event('click'))"
    for rung, place in zip(document["ladder"], ("tr", ".rung", "tr", ".rung", "tr", ".rung") * 2):
        opened.execute_script(click, f"{place}[data-rung='{rung['size']}']")
        names = [text.removesuffix(" adjusted for").removesuffix(" by request")
                 for text in texts(opened, f"{_SHOWN} th")]  # fmt: skip
        assert names == [row["feature"] for row in rung["features"]]
        assert texts(opened, f"{_SHOWN} .rank") == [str(i + 1) for i in range(rung["size"])]
        again = [f"{round(100 * row['with_stand_ins'])}%" for row in rung["features"]]
        assert texts(opened, f"{_SHOWN} .again b") == again
        words = texts(opened, "#rung-words")[0]
        assert f"the panel of {rung['size']} feature" in words
        assert f"{rung['score']['value']:.2f}" in words
        lit = "return [...document.querySelectorAll('.lit')].map((e) => e.dataset.rung)"
        assert set(opened.execute_script(lit)) == {str(rung["size"])}
    opened.find_element("id", "rung-back").click()
    assert len(texts(opened, f"{_SHOWN} th")) == len(chosen)
    assert not opened.find_element("id", "rungbar").is_displayed()


def test_the_table_sorts_both_ways(opened, document):
    panel = document["panel"]

    def click(column):
        selector = f"#panel-table thead th:nth-child({column}) button"
        opened.execute_script("document.querySelector(arguments[0]).click()", selector)
        return texts(opened, f"{_SHOWN} .rank")

    effects = {str(row["rank"]): max(row["effects"]) for row in panel}
    order = sorted(effects, key=lambda rank: -effects[rank])
    assert click(4) == order
    assert click(4) == order[::-1]
    assert click(1) == [str(row["rank"]) for row in panel]


def test_hostile_names_are_shown_and_do_nothing(opened, document):
    assert {row["feature"] for row in document["panel"]} & set(fakes.HOSTILE)
    assert opened.execute_script("return document.images.length") == 0
    assert opened.execute_script("return document.querySelectorAll('main b b').length") == 0
    assert document["data"]["positive"] in opened.find_element("tag name", "h1").text


def _at_threshold(counts, evidence, prevalence):
    """What acting from a threshold on gives, computed here from the counts."""
    import math

    cut = 1 / (1 + math.exp(-evidence))
    at = next((i for i, v in enumerate(counts["threshold"]) if v >= cut), None)
    sensitivity, specificity = 0.0, 1.0
    if at is not None:
        tp, fn, tn, fp = (counts[key][at] for key in ("tp", "fn", "tn", "fp"))
        sensitivity, specificity = tp / (tp + fn), tn / (tn + fp)
    right, wrong = prevalence * sensitivity, (1 - prevalence) * (1 - specificity)
    odds = math.exp(evidence) * prevalence / (1 - prevalence)
    rest = 1 - prevalence - wrong
    ppv = f"{100 * right / (right + wrong):.1f}%" if right + wrong else "–"
    npv = f"{100 * rest / (rest + prevalence - right):.1f}%"
    rates = [f"{100 * v:.1f}%" for v in (odds / (1 + odds), sensitivity, specificity)]
    return [*rates, ppv, npv, f"{right - wrong * odds:.3f}"]


def test_the_threshold_moves_every_number(opened, document):
    counts, prevalence = document["slider"], document["prevalence"]
    move = (
        "for (const [id, value] of Object.entries(arguments[0])) { const e ="
        " document.getElementById(id); e.value = value; e.dispatchEvent(new Event('input')); }"
    )
    hidden = "return document.querySelector('.cursor').hasAttribute('hidden')"
    keys = ("threshold", "sensitivity", "specificity", "ppv", "npv", "net_benefit")

    def shown():
        return [opened.find_element("id", f"at-{key}").get_attribute("textContent") for key in keys]

    assert shown() == _at_threshold(counts, 0.0, prevalence)
    assert not opened.execute_script(hidden)
    for evidence, percent in ((1.5, 12), (-2.0, 3.5), (6, 40)):
        opened.execute_script(move, {"threshold": evidence, "prevalence": percent})
        assert shown() == _at_threshold(counts, evidence, percent / 100)
        assert opened.execute_script(hidden)  # the curve is of another prevalence
    before = shown()
    opened.execute_script(move, {"prevalence": 0})
    field = opened.find_element("id", "prevalence")
    assert shown() == before and field.get_attribute("aria-invalid") == "true"
    opened.execute_script(move, {"threshold": 0.5, "prevalence": 100 * prevalence})
    assert not opened.execute_script(hidden)
    assert "Of 1,000 samples" in texts(opened, "#at-words")[0]


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


def test_every_figure_can_be_taken_away(opened, document):
    drawn = draw_figures(document)
    # what the buttons make, without the browser's limit on downloads in a row
    opened.execute_script(_CATCH)
    for name in drawn:
        opened.execute_script(_GIVE, name, "svg")
        opened.execute_script(_GIVE, name, "csv")
    taken = opened.execute_async_script(_TAKEN, 2 * len(drawn))
    for name, chart in drawn.items():
        assert taken[f"{name}.csv"] == chart.csv()
        mine, file = (_shapes(text) for text in (taken[f"{name}.svg"], chart.svg()))
        assert mine == file, (name, [p for p in zip(mine, file) if p[0] != p[1]][:2])


def _shapes(text):
    """What an SVG shows: style, then elements with their geometry, classes, texts and tips."""
    root = ElementTree.fromstring(text)
    found = []
    for element in root.iter():
        if element.get("class") in ("rung", "cursor"):
            continue  # the page's own handles
        tip = [child.text for child in element if child.tag.endswith("title")]
        if not element.tag.endswith("title"):
            keys = ("d", "x", "y", "width", "height", "class", "transform", "cx", "cy", "r")
            found.append((element.tag, [element.get(key) for key in keys], element.text, tip))
    return sorted(found[1:], key=str)


def test_a_download_is_a_file_of_its_name(opened, document, tmp_path):
    allow = {"behavior": "allow", "downloadPath": str(tmp_path / "taken")}
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
    wanted = {"heatmap.csv", "heatmap.svg", "heatmap.png"}
    for kind in ("csv", "svg", "png"):
        opened.execute_script(_GIVE, "heatmap", kind)
    deadline, folder = time.monotonic() + 20, tmp_path / "taken"
    while {p.name for p in folder.glob("*")} != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    found = {p.suffix: p.read_bytes() for p in folder.iterdir()}
    assert found[".csv"].decode() == draw_figures(document)["heatmap"].csv()
    assert found[".svg"].startswith(b"<svg") and found[".png"].startswith(b"\x89PNG")
    width, height = (int.from_bytes(found[".png"][k : k + 4]) for k in (16, 20))
    assert width == 3 * 860 and height > 300
    # a picture in colour: the rules inside the drawing were followed
    count = opened.execute_async_script(_COLOURS, base64.b64encode(found[".png"]).decode())
    assert count > 20


_COLOURS = """
const [content, done] = arguments;
const image = new Image();
image.onload = () => {
  const canvas = document.createElement("canvas");
  canvas.width = image.width; canvas.height = image.height;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const data = context.getImageData(0, 0, image.width, image.height).data, seen = new Set();
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b] = [data[i], data[i + 1], data[i + 2]];
    if (Math.max(r, g, b) - Math.min(r, g, b) > 40) seen.add(r * 65536 + g * 256 + b);
  }
  done(seen.size);
};
image.src = `data:image/png;base64,${content}`;
"""


def test_the_keyboard_reaches_what_a_pointer_shows(opened, document):
    tip = "const t = document.getElementById('tip'); return t.hidden ? null : t.textContent"
    press = (
        "const svg = document.querySelector(arguments[0]); svg.focus();"
        "svg.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[1], bubbles: true}))"
    )
    svg = "#figure-scatter svg"
    tips = re.findall(r"<title>([^<]*)</title>", draw_figures(document)["scatter"].__html__())
    for key, at in (("ArrowRight", 0), ("ArrowDown", 1), ("End", -1), ("ArrowLeft", -2)):
        opened.execute_script(press, svg, key)
        assert opened.execute_script(tip) == ElementTree.fromstring(f"<a>{tips[at]}</a>").text
    assert len(opened.find_elements("css selector", ".here")) == 1
    opened.execute_script(press, svg, "Escape")
    assert opened.execute_script(tip) is None
    # Enter chooses a rung
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        opened.execute_script(press, "#figure-ladder svg", key)
    here = opened.execute_script("return document.querySelector('.here').dataset.rung ?? ''")
    assert len(texts(opened, f"{_SHOWN} th")) == int(here or len(document["panel"]))
    labels = [e.get_attribute("aria-label") for e in opened.find_elements("css selector", ".boxes")]
    rows = [*document["panel"], *document["more"]]
    assert labels == [f"box plot of {row['feature']} by class" for row in rows]


@pytest.mark.parametrize("case", ["hostile", "twelve", "none"])
def test_text_can_be_read_in_light_and_dark(browser, documents, tmp_path, case):
    for opened in _open(browser, documents[case], tmp_path):
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            assert opened.execute_script(script("contrast")) == [], scheme


def test_it_prints_without_split_words_or_cut_figures(opened):
    paper = {"width": 702, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert opened.execute_script("return document.documentElement.scrollWidth") <= 702
    assert opened.execute_script(script("split")) == []
    heights = "return [...document.querySelectorAll('figure')].map((f) => f.offsetHeight)"
    assert max(opened.execute_script(heights)) < 900  # whole on a page
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    made = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    content = base64.b64decode(made["data"])
    assert content.startswith(b"%PDF")
    assert 4 < len(re.findall(rb"/Type /Page\b", content)) < 16
    ARTIFACTS.mkdir(exist_ok=True)
    (ARTIFACTS / "report.pdf").write_bytes(content)


@pytest.mark.parametrize("case", ["hostile", "three", "twelve"])
def test_nothing_sticks_out_sideways(browser, documents, tmp_path, case):
    """In light, dark and on a phone; the pictures are kept to be looked at."""
    ARTIFACTS.mkdir(exist_ok=True)
    for opened in _open(browser, documents[case], tmp_path):
        seen = set()
        for name, width, scheme in (
            ("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light"),
        ):  # fmt: skip
            size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
            opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            assert opened.execute_script("return document.documentElement.scrollWidth") <= width
            colour = "return getComputedStyle(document.body).backgroundColor"
            seen.add(opened.execute_script(colour))
            shot = opened.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
            (ARTIFACTS / f"{case}-{name}.png").write_bytes(base64.b64decode(shot["data"]))
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        assert len(seen) == 2
