"""A chart is the same picture on a page, in a file and on matplotlib axes."""

from __future__ import annotations

import csv
import math
import sys
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from sparsegsvp import plots
from sparsegsvp.report import draw_figures, drawings, marks, panel_charts
from sparsegsvp.report.charts import Axis, Chart, ChartSheet

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def charts(results) -> dict[str, Chart]:
    """Every kind of drawing of the report's page."""
    drawn = {name: chart for name, chart in draw_figures(results).items() if name != "boxes"}
    row, tones = results["panel"][0], {name: k for k, name in enumerate(results["data"]["classes"])}
    return {
        "gauge": drawings.gauge(results["scores"]["balanced_accuracy"], 0.5),
        "boxes": panel_charts.boxes(row["feature"], row["boxes"], tones),
        **drawn,
    }


def test_a_file_needs_no_style_sheet_and_keeps_names_as_text(charts):
    for name, chart in charts.items():
        root = ElementTree.fromstring(chart._repr_svg_())
        drawn = [e for e in root.iter() if e.get("class") and e.tag != root.tag]
        for element in drawn:
            paint = {"fill", "stroke"} & set(element.keys())
            assert paint, (name, element.get("class"))
            assert not any("var(" in value for value in element.attrib.values())
        assert not list(root.iter(f"{SVG}img")) and not list(root.iter(f"{SVG}script"))
        places = [element.get(key, "") for element in drawn for key in ("d", "x", "y", "cx", "x1")]
        assert not any("nan" in place or "inf" in place for place in places)


def test_page_and_file_hold_the_same_marks(charts):
    for chart in charts.values():
        file = ElementTree.fromstring(chart._repr_svg_())
        page = ElementTree.fromstring(chart.svg())
        count = {}
        for where, tree in (("page", page), ("file", file)):
            kinds = [e.get("class") for e in tree.iter() if e.get("class")]
            count[where] = {kind: kinds.count(kind) for kind in set(kinds) if kind in KINDS}
        assert count["page"].items() <= count["file"].items()
        tips = [e.get("data-tip") for e in page.iter() if e.get("data-tip")]
        assert tips == [e.text for e in file.iter(f"{SVG}title")]


KINDS = {"bar quiet", "curve", "thread", "thread mine", "hit", "grid", "ring", "whisker c0"}


def test_every_format_is_written(charts, tmp_path):
    for suffix, head in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        for name in ("gauge", "heatmap", "stability") if suffix != "svg" else charts:
            file = tmp_path / f"{name}.{suffix}"
            charts[name].save(file)
            assert file.read_bytes().startswith(head)


def test_svg_needs_no_matplotlib(fitted, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    chart = plots.planes(fitted.evaluation, ax=False)
    chart.save(tmp_path / "planes.svg")
    assert (tmp_path / "planes.svg").read_text(encoding="utf-8") == chart._repr_svg_()
    with pytest.raises(ImportError, match=r"sparsegsvp\[report\]"):
        chart.save(tmp_path / "planes.png")


def test_axes_place_values(tmp_path):
    chart = Chart(Axis(100, 1, log=True), Axis(0, 2), "", 200, 100, 0, 0, 0, 0)
    assert [chart.sx(v) for v in (100, 10, 1)] == [0, 100, 200]
    assert [chart.sy(v) for v in (0, 1, 2)] == [100, 50, 0]
    assert [label for _, label, _ in chart.x.labelled()] == ["10⁰", "10¹", "10²"]
    chart.line([1, 10, math.nan, 100, 1], [0, 1, math.nan, 1, 0], "curve", label="broken")
    assert "M200.0 100.0L100.0 50.0M0.0 50.0L200.0 100.0" in chart.svg()
    chart.draw(ax := Figure().subplots())
    assert ax.get_xlim() == (100, 1) and ax.get_xscale() == "log"


def test_a_sheet_names_each_label_once():
    def chart(title: str) -> Chart:
        made = Chart(Axis(0, 1), Axis(0, 1), title, title=title)
        made.line([0, 0.5, 1], [0, 1, 0], "series c0", label="same")
        return made

    sheet = ChartSheet([[chart("a"), chart("b")], [chart("c")]], "three", heads=("left", "right"))
    texts = [e.text for e in ElementTree.fromstring(sheet.svg()).iter(f"{SVG}text")]
    assert texts.count("same") == 1
    assert {"a", "b", "c", "left", "right"} <= set(texts)
    figure = sheet.figure()
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["same"]
    assert sheet.svg() == sheet.svg()


def test_the_style_sheet_is_read_as_a_browser_reads_it():
    assert marks.look("bar group quiet")["opacity"] == ".18"
    assert marks.look("thread mine")["stroke"] == marks.look("curve")["stroke"]
    assert marks.look("thread mine c1")["stroke"] == marks.look("bar c1")["fill"]
    assert "opacity" not in marks.look("bar")  # hover and the dark palette play no part


def test_a_figure_gives_the_numbers_it_draws(charts, results):
    roc = list(csv.reader(charts["roc"].csv().splitlines()))
    assert [float(row[1]) for row in roc[1:]] == pytest.approx(results["figures"]["roc"]["tpr"])
    for name, chart in charts.items():
        lengths = {len(column) for column in chart.table.values()}
        assert len(lengths) == (name != "gauge"), name
    formulas = [line for line in charts["stability"].csv().splitlines() if line[0] in "=+-@"]
    assert formulas == [] and "'=cmd|" in charts["stability"].csv()
    sheet = draw_figures(results)["boxes"]
    assert len(sheet.csv().splitlines()) == 1 + 2 * len(results["panel"])


def test_many_marks_are_one_element_and_look_alike():
    chart = Chart(Axis(0, 200), Axis(0, 1), "many")
    chart.points(range(200), [0.5] * 200, "bead", radius=2)
    chart.rects([(i, 0, i + 1, 1) for i in range(200)], "cell high l3", radius=0)
    assert chart.svg().count('class="bead"') == chart.svg().count('class="cell high l3"') == 1
    chart.draw(ax := Figure().subplots())
    assert not ax.patches and len(ax.collections) == 2


def test_numbers_names_and_colours_of_marks():
    assert marks.ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] and marks.ticks(3, 3) == [3]
    shown = [marks.short(value) for value in (0.25, 12345.6, 0.00001234)]
    assert shown == ["0.25", "12,346", "1.2e-05"]
    assert marks.escape("a<b\x07") == "a&lt;b\ufffd"
    assert marks.look("bar quiet c1") == {"fill": "#b64e0b", "opacity": ".38"}
