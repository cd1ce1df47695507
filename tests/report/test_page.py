"""The page: everything escaped, nothing from elsewhere, one renderer for page and files."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import report_fakes as fakes

from sparsegsvp.io import InputError
from sparsegsvp.report import build_document, draw_figures, render_comparison, render_page
from sparsegsvp.report.drawings import _FIGURES

TEMPLATES = Path(render_page.__code__.co_filename).parent / "templates"


class Reader(HTMLParser):
    """Elements with their attributes, and the text outside folded parts, scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.hidden, self.text = 0, ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.hidden += tag in ("details", "script", "style", "template")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("details", "script", "style", "template")

    def handle_data(self, data):
        self.text += "" if self.hidden else data


@pytest.fixture(scope="module")
def _pages():
    return {}


@pytest.fixture
def page_of(documents, _pages):
    """The page of a case, made once."""

    def make(case: str) -> str:
        if case not in _pages:
            _pages[case] = render_page(documents[case])
        return _pages[case]

    return make


@pytest.mark.parametrize("case", fakes.CASES)
def test_every_kind_of_run_has_a_page(documents, page_of, case):
    page, document = page_of(case), documents[case]
    assert len(page.encode()) < 450_000
    read = Reader(page)
    assert html.unescape(document["verdict"]["headline"]) in read.text
    for sentence in document["verdict"]["sentences"]:
        assert sentence in read.text
    for notice in document["notices"]:
        assert notice["text"] in read.text
    assert not re.search(r"\bNone\b(?! of| was)|\bnan\b", read.text)
    hero = next(a["class"] for tag, a in read.elements if a.get("id") == "answer")
    assert hero == f"hero {document['verdict']['answer']}"
    assert ".hero.weak, .hero.inconclusive { --mood: var(--warm); }" in page  # amber


@pytest.mark.parametrize("case", fakes.CASES)
def test_method_words_are_folded_away(page_of, case):
    words = r"\b(delta|tau|planes?|elbow|hyperplanes?|penalty|quotient)\b|[δτ]"
    assert re.findall(words, Reader(page_of(case)).text, re.IGNORECASE) == []


def test_names_from_a_file_stay_text(page_of, document):
    page = page_of("hostile")
    read = Reader(page)
    tags = [tag for tag, _ in read.elements]
    assert tags.count("script") == 2 and "img" not in tags and "u" not in tags and "em" not in tags
    assert all(name in read.text for name in fakes.HOSTILE)
    assert document["data"]["positive"] in read.text
    assert not any(key.startswith("on") for _, attrs in read.elements for key in attrs)
    assert "<i>note</i>" not in page


def test_nothing_comes_from_elsewhere_and_the_policy_allows_only_this(page_of):
    page = page_of("signal")
    read = Reader(page)
    links = [v for _, a in read.elements for k, v in a.items() if k in ("src", "href", "action")]
    assert all(v.startswith("#") or v == "data:," for v in links)
    assert "style" not in {key for _, attrs in read.elements for key in attrs}
    policy = next(a["content"] for t, a in read.elements if "http-equiv" in a)
    for tag in ("style", "script"):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(text) == 1
        digest = base64.b64encode(hashlib.sha256(text[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {v[1:] for v in links if v.startswith("#")} <= set(ids)


@pytest.mark.parametrize("case", fakes.CASES)
def test_a_figure_is_the_same_on_the_page_and_in_a_file(documents, page_of, case):
    page = page_of(case)
    drawn = draw_figures(documents[case])
    assert set(re.findall(r'data-give="([^"]+)"', page)) == set(drawn)
    for name, chart in drawn.items():
        file = chart.svg()
        root = ElementTree.fromstring(file)  # well-formed, whatever the names are
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        inside = file.split('fill="#ffffff"/>', 1)[1]
        assert inside in page, name
        assert "var(" not in file and "nan" not in re.sub(r">[^<]*<", "><", inside).lower()
        used = set(" ".join(re.findall(r'class="([^"]+)"', inside)).split())
        styled = set(re.findall(r"\.([a-z][\w-]*)", root[0].text)) | {"title", "out", "cell"}
        assert used <= styled, name
        rows = list(csv.reader(io.StringIO(chart.csv())))
        assert len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows)
        assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)


def test_a_figure_is_added_in_two_places():
    lines = "".join(file.read_text(encoding="utf-8") for file in TEMPLATES.rglob("*.html"))
    for name in _FIGURES:
        assert lines.count(f"figure('{name}'") + lines.count(f"give('{name}')") == 1, name


def test_what_is_drawn_fits_the_classes(documents):
    cases = ("signal", "three", "twelve")
    two, three, many = (set(draw_figures(documents[case])) for case in cases)
    assert {"ladder", "boxes", "scatter", "heatmap", "volcano", "roc", "calibration", "decision",
            "permutation", "confusion"} == two  # fmt: skip
    assert two - three == {"volcano", "calibration", "decision"} and three - two == {"recalls"}
    assert {"ladder", "dots", "heatmap", "permutation", "confusion", "recalls"} == many
    assert {f"cohort-{name}" for name in ("roc", "calibration", "decision", "confusion")} | {
        "batches-1"
    } <= set(draw_figures(documents["hostile"]))


def test_charts_place_what_they_are_given(document):
    drawn = draw_figures(document)
    rows = list(csv.DictReader(io.StringIO(drawn["ladder"].csv())))
    assert [int(row["features"]) for row in rows] == [r["size"] for r in document["ladder"]]
    assert [float(row["balanced accuracy"]) for row in rows] == pytest.approx(
        [rung["score"]["value"] for rung in document["ladder"]], abs=1e-5
    )
    assert "dots" not in drawn
    for row in document["panel"]:  # counts, most of them zero
        for box in row["boxes"]:
            box |= {"low": 0.0, "outliers": [], "positive": 0.3}
    assert "dots" in draw_figures(document)
    cells = list(csv.DictReader(io.StringIO(drawn["confusion"].csv())))
    counts = [count for row in document["confusion"]["counts"] for count in row]
    assert [int(cell["samples"]) for cell in cells] == counts
    chart = drawn["roc"]
    at = re.search(r'class="curve" d="M([\d.]+) ([\d.]+)', chart.svg())
    assert (float(at[1]), float(at[2])) == pytest.approx((chart.sx(0), chart.sy(0)), abs=0.06)


def test_the_ladder_without_stability_lies_on_its_axis():
    table = fakes.make_table()
    evaluation = fakes.Evaluation(table, stability=None)
    evaluation.ladder[["stability", "stability_noise"]] = None
    document = build_document(table, evaluation)
    sheet = draw_figures(document)["ladder"]
    ((chart,),) = sheet.rows
    drawn = re.search(r'class="curve" d="M([^"]+)"', sheet.svg())[1]
    heights = [float(place.split()[1]) for place in drawn.split("L")]
    scores = [rung["score"]["value"] for rung in document["ladder"]]
    assert heights == pytest.approx([chart.sy(score) for score in scores], abs=0.06)


def test_a_bare_run_has_a_page_too():
    """Without probabilities, ladder, stability or a test there is less to show."""
    table = fakes.make_table(n=60, sample_names=None)
    evaluation = fakes.Evaluation(table, "not tested", stability=None, ladder=None, models={})
    evaluation.panel_sizes, evaluation.size_range, evaluation.prior = (), None, "none"
    evaluation.predictions = evaluation.predictions[
        ["sample", "repeat", "fold", "truth", "prediction"]
    ]
    for name in ("thresholds", "slider", "decision_curve", "calibration_curve", "roc_curve"):
        setattr(evaluation, name, lambda *_: None)
    evaluation.calibration = None
    document = build_document(table, evaluation)
    page = Reader(render_page(document)).text
    assert "not tested against chance" in page and "How many features?" not in page
    assert set(draw_figures(document)) == {"boxes", "scatter", "heatmap", "volcano", "confusion"}
    evaluation.panel = ()
    assert "None was selected." in Reader(render_page(build_document(table, evaluation))).text


def test_a_heatmap_says_what_its_colours_mean(document):
    svg = draw_figures(document)["heatmap"].svg()
    for words in ("−3 or less", "mean", "+3 or more", "standard deviations"):
        assert f">{words}</text>" in svg


def test_a_page_of_the_wrong_document_is_refused(document, comparison):
    with pytest.raises(InputError, match="sparsegsvp results"):
        render_page(comparison)
    with pytest.raises(InputError, match="sparsegsvp comparison"):
        render_comparison(document)
    del document["panel"][0]["boxes"]
    with pytest.raises(InputError, match=r"panel\[0\]\.boxes is missing"):
        render_page(document)


def test_the_comparison_has_its_page(comparison):
    page = render_comparison(comparison)
    read = Reader(page)
    assert comparison["verdict"]["headline"] in read.text
    assert comparison["verdict"]["headline"].startswith("2 features will do: GSVPSVM")
    assert "<b>forest</b>" in read.text and "no convergence" in read.text
    assert "a random panel of 2 scores 0.66" in read.text
    chart = re.search(r'<svg class="chart".*?</svg>', page, re.DOTALL)[0]
    assert chart.count('class="thread') == 4 and chart.count("<title>") > 4
    rows = comparison["comparison"]["rows"]
    for row in rows:
        if row["method"] == "random panel":
            row["balanced_accuracy"] = 0.99
    from sparsegsvp.report.words import comparison_words

    said = comparison_words(comparison["comparison"])
    assert said["headline"] == "A random panel of 2 features does as well as any method"
    for row in rows:
        row["balanced_accuracy"] = None
    assert comparison_words(comparison["comparison"])["headline"] == "No method finished"
