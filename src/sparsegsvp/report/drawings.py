"""The figures of a page, each a function from the document to a chart.

To add a figure: a function here under `figure` or `judged`, which returns None where the document
has no numbers for it, and its line ``{% call figure("name") %}caption{% endcall %}`` in a template.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, product
from typing import Any

import numpy as np

from .charts import N_TONES, Axis, Chart, Drawing, Sheet, cut, names_room, padded, short, ticks
from .words import (
    MANY_CLASSES,
    RANDOM_PANEL,
    Part,
    interval,
    number,
    own_rung,
    percent,
    plural,
    range_words,
)

_FIGURES: dict[str, Callable[[Part], Drawing | None]] = {}

_SHARES = [(v, f"{v:.0%}") for v in (0.0, 0.25, 0.5, 0.75, 1.0)]
_LEVELS, _FULL = 6, 3.0  # shades on either side, and the standard deviations of the strongest
_BINS = 24
_FULL_CELLS = 0.8  # values of which fewer are above zero look like counts of single cells


def figure(draw: Any) -> Any:
    """Register a figure under the name of its function."""
    _FIGURES[draw.__name__] = draw
    return draw


def judged(draw: Any) -> Any:
    """Register a figure that is drawn of the outer folds and of another cohort."""
    name = draw.__name__
    _FIGURES[name] = lambda d: draw(d, d["data"]["positive"])
    _FIGURES[f"cohort-{name}"] = lambda d: (
        d["cohort"] and draw(d["cohort"], d["cohort"]["positive"])
    )
    return draw


def draw_figures(document: Part) -> dict[str, Drawing]:
    """Draw every figure that a document has numbers for, by name, in the order of the page.

    ``svg()`` of each is the text of a file, ``csv()`` its numbers.
    """
    drawn = {name: draw(document) for name, draw in _FIGURES.items()}
    for i, audit in enumerate(document["batches"]):
        drawn[f"batches-{i + 1}"] = batch_chart(audit, tones_of(document))
    return {name: chart for name, chart in drawn.items() if chart is not None}


def tones_of(document: Part) -> dict[str, int]:
    """The colour of each class; of two, the positive one gets the warm one."""
    classes, positive = document["data"]["classes"], document["data"]["positive"]
    if len(classes) == 2 and positive == classes[0]:
        return {classes[0]: 1, classes[1]: 0}
    return {name: k % N_TONES for k, name in enumerate(classes)}


@figure
def ladder(document: Part) -> Sheet | None:
    """Score with its interval above, stability below, against the number of features."""
    rungs = document["ladder"]
    if not rungs:
        return None
    sizes, size = [rung["size"] for rung in rungs], len(document["panel"])
    ends = (0.8 * min(sizes[0], size or sizes[0]), 1.25 * max(sizes[-1], size))
    marks = [(s, str(s), "tick bold" if s == size else "tick") for s in sizes]
    if size and size not in sizes:
        marks = sorted([*marks, (size, str(size), "tick bold")])
        marks = [m for m in marks if m[0] == size or abs(math.log(m[0] / size)) > 0.16]
    values, low, high = ([rung["score"][key] for rung in rungs] for key in ("value", "low", "high"))
    chance, overall = document["verdict"]["chance"], document["scores"]["balanced_accuracy"]
    bottom = min([*low, overall["low"]]) - 0.03
    bottom = min(bottom, chance - 0.03) if bottom - chance < 0.15 else bottom
    top = min(1.02, max(*high, overall["high"]) + 0.03)
    known = [rung for rung in rungs if rung["stability"] is not None]
    noise = [rung["stability_noise"] for rung in known]
    lowest = min([0.0, *(v for v in noise if v is not None)])
    axis, wide = Axis(*ends, "features in the panel", marks, log=True), (50.0, 60.0)
    above = Chart(
        replace(axis, title="", ticks=[(at, "") for at, *_ in marks]) if known else axis,
        Axis(max(0.0, bottom), top, "balanced accuracy", grid=True),
        "balanced accuracy of panels by size",
        *(460.0, 220.0 if known else 280.0, *wide, 14.0, 12.0 if known else 46.0),
    )
    steps = [(0.0, "0"), (0.5, "0.5"), (1.0, "1")]
    below = Chart(
        axis,
        Axis(lowest, 1.02, "stability", steps, grid=True),
        "stability of panels by size",
        *(460.0, 150.0, *wide, 10.0),
    )
    charts = [above, below] if known else [above]
    if size:
        for chart in charts:
            shaded = (size / 1.09, chart.y.low, size * 1.09, chart.y.high)
            chart.rects([shaded], "chosen", radius=3)
    if bottom < chance:
        above.rule("chance", y=chance)
        above.text(ends[1], chance, "guessing", "tick start", dx=6, dy=4)
    above.whiskers(sizes, low, high, "series fine")
    above.line(sizes, values, "curve")
    above.points(sizes, values, "dot", radius=4.5, label="exactly so many features")
    across, steady = ([rung[key] for rung in known] for key in ("size", "stability"))
    shuffled = [math.nan if v is None else v for v in noise]
    below.line(across, shuffled, "chance", label="with shuffled labels")
    below.line(across, steady, "curve")
    below.points(across, steady, "dot", radius=4.5)
    if size and own_rung(document) is None:
        away = [size * (1.035 if size in sizes else 1.0)]
        above.whiskers(away, [overall["low"]], [overall["high"]], "observed")
        tip, key = f"as chosen: {interval(overall)}", "as chosen by the run"
        above.points(away, [overall["value"]], "knot", radius=5.5, tips=[tip], label=key)
        own = document["stability"] and document["stability"]["index"]
        if own is not None:
            tip = f"as chosen: stability {number(own)}"
            below.points(away, [own], "knot", radius=5.5, tips=[tip])
    # stripes that the page lets readers click
    edges = [ends[0], *(math.sqrt(a * b) for a, b in pairwise(sizes)), ends[1]]
    for chart, (rung, left, right) in product(charts, zip(rungs, edges, edges[1:])):
        tip = f"{plural(rung['size'], 'feature')}: {interval(rung['score'])}"
        stripe, link = (left, chart.y.low, right, chart.y.high), f' data-rung="{rung["size"]}"'
        chart.rects([stripe], "rung", tips=[tip], attributes=link)
    above.table = {
        "features": sizes, "balanced accuracy": values, "low": low, "high": high,
        "stability": [rung["stability"] for rung in rungs],
        "stability with shuffled labels": [rung["stability_noise"] for rung in rungs],
        "panel": ["; ".join(row["feature"] for row in rung["features"]) for rung in rungs],
    }  # fmt: skip
    return Sheet([[chart] for chart in charts], "score and stability against panel size")


def box_chart(row: Part, tones: Mapping[str, int]) -> Chart:
    """Box plots of one feature by class, on the feature's own axis."""
    found = row["boxes"]
    values = [v for b in found for v in (b["low"], b["high"], *b["outliers"])]
    low, high = min(values, default=0.0), max(values, default=1.0)
    line, floor = 17, 17 * len(found) + 3
    axis, down = Axis(*padded((low, high), 0.02), ticks=()), Axis(floor + 16, 0, ticks=())
    said, size = f"box plot of {row['feature']} by class", (250, floor + 16, 5, 5, 0, 0)
    chart = Chart(axis, down, said, *size, css="boxes")
    chart.line([axis.low, axis.high], [floor, floor], "axis")
    for i, b in enumerate(found):
        y, tone = line * i + 3, tones[b["label"]]
        words = (
            f"{row['feature']}, {b['label']} (n = {b['n']:,}): median {short(b['median'])}, middle "
            f"half {short(b['q1'])} to {short(b['q3'])}"
        )
        words += f", {b['n_outliers']} beyond the whiskers" if b["n_outliers"] else ""
        chart.line([b["low"], b["high"]], [y + 6, y + 6], f"whisker s{tone}")
        chart.rects([(b["q1"], y, b["q3"], y + 12)], f"body f{tone} s{tone}", radius=2)
        chart.line([b["median"], b["median"]], [y, y + 12], f"median s{tone}")
        chart.points(b["outliers"], [y + 6] * len(b["outliers"]), f"out f{tone}", radius=1.6)
        chart.rects([(-math.inf, y - 2, math.inf, y - 2 + line)], "hit", tips=[words])
    shown = ticks(low, high, 4)
    for value in dict.fromkeys((shown[0], shown[-1]) if len(shown) > 1 else (low, high)):
        at = chart.sx(value)
        chart.line([value, value], [floor, floor + 3], "mark")
        chart.text(value, floor + 12, short(value), "tick mid", dx=min(max(at, 16), 234) - at)
    keys = ("n", "low", "q1", "median", "q3", "high", "mean", "n_outliers")
    chart.table = {"feature": [row["feature"]] * len(found), "class": [b["label"] for b in found]}
    chart.table |= {key.replace("n_", ""): [b[key] for b in found] for key in keys}
    return chart


@figure
def boxes(document: Part) -> Sheet | None:
    """The box plots of the whole panel, three beside each other."""
    panel, tones = document["panel"], tones_of(document)
    if not panel or len(tones) > MANY_CLASSES:
        return None
    charts = [box_chart(row, tones) for row in panel]
    for row, chart in zip(panel, charts):
        chart.title = cut(row["feature"], 34)
    for label, tone in tones.items():
        charts[0].rects([], f"body f{tone} s{tone}", label=label)
    rows = [charts[i : i + 3] for i in range(0, len(charts), 3)]
    return Sheet(rows, "box plots of the panel by class")


@figure
def dots(document: Part) -> Chart | None:
    """Mean and share of values above zero, by feature and class: many classes, or counts."""
    labels = document["data"]["classes"]
    classes = [labels[k] for k in document["confusion"]["order"]]
    # features of a class stand together
    panel = sorted((row for row in document["panel"] if row["higher_in"] is not None),
                   key=lambda row: classes.index(row["higher_in"]))  # fmt: skip
    shown = [b for row in panel for b in row["boxes"]]
    counted = all(min([b["low"], *b["outliers"]]) >= 0 for b in shown)
    sparse = counted and sum(b["positive"] for b in shown) < _FULL_CELLS * len(shown)
    if not panel or not (sparse or len(classes) > MANY_CLASSES):
        return None
    names = [row["feature"] for row in panel]
    left, below = names_room(classes), 26 + 5.6 * max(len(cut(name)) for name in names)
    step, high = max(20.0, min(30.0, 640 / len(names))), 24
    width, most = max(760, left + step * len(names) + 20), min(step, high) / 2 - 1
    chart = Chart(
        Axis(0, len(names), ticks=_names(names), slanted=True),
        Axis(len(classes), 0, ticks=_names(classes)),
        f"mean{' and share above zero' * counted} of each feature in each class",
        *(width, high * len(classes) + below + 36, left, width - left - step * len(names), 36),
        bottom=below,
    )  # fmt: skip
    for j, row in enumerate(panel):
        means = [b["mean"] for b in row["boxes"]]
        low, span = min(means), (max(means) - min(means)) or 1.0
        for b in row["boxes"]:
            level = max(1, round(_LEVELS * (b["mean"] - low) / span))
            radius = max(1.2, most * math.sqrt(b["positive"])) if counted else most
            words = f"{row['feature']} in {b['label']}: mean {short(b['mean'])}"
            words += f", above zero in {b['positive']:.0%}" if counted else ""
            at = ([j + 0.5], [classes.index(b["label"]) + 0.5])
            chart.points(*at, f"cell high l{level}", radius=radius, tips=[words])
    legend = [(6.0, level, "") for level in range(1, _LEVELS + 1)]
    legend[-1] = (6.0, _LEVELS, "lowest to highest mean")
    if counted:
        shares = (0.1, 0.5, 1.0)
        legend += [(most * math.sqrt(v), 4, f"{v:.0%}" + " above zero" * (v == 1)) for v in shares]
    edge = left + 8
    for radius, level, words in legend:
        dot = f'cx="{edge:.0f}" cy="14" r="{radius:.1f}"'
        chart.parts.append(f'<circle class="cell high l{level}" {dot}/>')
        if words:
            chart.parts.append(
                f'<text class="tick start" x="{edge + 13:.0f}" y="18">{words}</text>'
            )
        edge += 42 + 5.6 * len(words) if words else 14
    every = [(row["feature"], b["label"], b["mean"], b["positive"]) for row in panel
             for b in row["boxes"]]  # fmt: skip
    chart.table = dict(zip(("feature", "class", "mean", "share above zero"), zip(*every)))
    return chart


def _names(names: Iterable[str]) -> list[tuple[float, str, str]]:
    """Names as ticks, each in the middle of its cell."""
    return [(i + 0.5, name, "name") for i, name in enumerate(names)]


@figure
def scatter(document: Part) -> Chart | None:
    """The samples in the plane of the first two features, with a line for each class."""
    found = document["pictures"]["scatter"]
    if found is None or len(document["data"]["classes"]) > MANY_CLASSES:
        return None
    x, y = padded(found["x"]), padded(found["y"])
    names, tones = found["features"], tones_of(document)
    chart = Chart(Axis(*x, names[0]), Axis(*y, names[1], grid=True),
                  f"{names[0]} against {names[1]}", height=360)  # fmt: skip
    for line in found["lines"]:
        ends = _inside(line["weights"], line["intercept"], x, y)
        kind = f"series dashes s{tones[line['label']]}"
        chart.line(*ends, kind, tip=f"the line of {line['label']}")
    for k, name in enumerate(document["data"]["classes"]):
        mine, tone = [i for i, label in enumerate(found["label"]) if label == k], tones[name]
        tips = [sample_words(found, i, document) for i in mine]
        at = _places(found["x"], found["y"], mine)
        chart.points(*at, f"pt f{tone}", shape=tone, tips=tips, label=name)
    wrong = [i for i, share in enumerate(found["wrong"]) if share >= 0.5]
    at = _places(found["x"], found["y"], wrong)
    chart.points(*at, "ring", radius=7, label="predicted wrongly out of fold")
    chart.table = _sample_table(found, document) | dict(zip(names, (found["x"], found["y"])))
    return chart


def _inside(
    weights: Sequence[float], intercept: float, x: tuple[float, float], y: tuple[float, float]
) -> tuple[list[float], list[float]]:
    """The ends of the line ``w0 x + w1 y + b = 0`` in a rectangle; nothing if it misses it."""
    (a, b), ends = weights, []
    if b:
        ends += [(v, -(a * v + intercept) / b) for v in x]
    if a:
        ends += [(-(b * v + intercept) / a, v) for v in y]
    inside = sorted((u, v) for u, v in ends if x[0] <= u <= x[1] and y[0] <= v <= y[1])
    return [u for u, _ in inside], [v for _, v in inside]


def _places(
    x: Sequence[float], y: Sequence[float], rows: Sequence[int]
) -> tuple[list[float], list[float]]:
    return [x[i] for i in rows], [y[i] for i in rows]


def sample_words(found: Part, i: int, document: Part) -> str:
    """Name a sample with its class and, out of fold, its probability and fate."""
    own = document["data"]["classes"][found["label"][i]]
    text, probability = f"{found['name'][i]}: {own}", found["probability"][i]
    if probability is not None:
        text += f", probability of {document['data']['positive'] or own} {probability:.2f}"
    return text + (", predicted wrongly" if found["wrong"][i] >= 0.5 else "")


def _sample_table(found: Part, document: Part) -> dict[str, Any]:
    of = document["data"]["positive"] or "own class"
    known = {f"probability of {of}": found["probability"]}
    return {
        "sample": found["name"],
        "class": [document["data"]["classes"][k] for k in found["label"]],
        **(known if any(p is not None for p in found["probability"]) else {}),
        "share of repeats predicted wrongly": found["wrong"],
    }


def shade(value: float, full: float = 1.0) -> str:
    """Classes of a coloured cell: high or low, and how much of the strongest shade."""
    level = min(math.ceil(abs(value) / full * _LEVELS - 0.5), _LEVELS)
    return f"cell {'high' if value > 0 else 'low'} l{level}"


@figure
def heatmap(document: Part) -> Chart | None:
    """The panel over the samples; a bar for the classes, marks for errors, a colour scale."""
    found = document["pictures"]["heatmap"]
    if found is None:
        return None
    rows, names, tones = found["values"], found["feature"], tones_of(document)
    n, m, high = len(found["name"]), len(names), 18
    shown = "" if n == found["n_total"] else f" ({n} of {found['n_total']:,})"
    left, classes = names_room(names), document["data"]["classes"]
    many, marks, below = len(classes) > MANY_CLASSES, [], 30.0
    bars = _runs(found["label"], -1.0, -0.2)
    if many:  # too many for colours: the samples stand by class, and the classes are named
        blocks = sorted((x0, x1, classes[k]) for k, ((x0, _, x1, _),) in bars.items())
        marks = [((x0 + x1) / 2, label, "name") for x0, x1, label in blocks]
        below += 6 + 5.6 * max(len(cut(label)) for label in classes)
    chart = Chart(
        Axis(0, n, f"samples{shown}, like beside like", ticks=marks, slanted=many),
        Axis(m, -1.7, ticks=_names(names)),
        "heatmap of the panel over the samples",
        *(860, high * (m + 1.7) + below + 30, left, 14, 30, below),
    )
    parts = sorted(bars.items(), key=(lambda part: part[1]) if many else None)
    for i, (k, bar) in enumerate(parts):
        tone = f"f{6 + i % 2}" if many else f"f{tones[classes[k]]}"
        chart.rects(bar, f"bar {tone}", label="" if many else classes[k])
    cells: dict[str, list[Any]] = {}
    for i, values in enumerate(rows):
        kinds = ["" if v is None else shade(v, _FULL) for v in values]
        for kind, runs in _runs(kinds, i, i + 1).items():
            cells.setdefault(kind, []).extend(runs)
    for kind in sorted(cells.keys() - {""}):
        chart.rects(cells[kind], kind)
    wrong = [i + 0.5 for i, share in enumerate(found["wrong"]) if share >= 0.5]
    at = wrong, [-1.4] * len(wrong)
    chart.points(*at, "miss", radius=2.6, label="predicted wrongly out of fold")
    tips = [sample_words(found, i, document) for i in range(n)]
    chart.rects([(i, -1.7, i + 1, m) for i in range(n)], "hit", tips=tips)
    _colour_scale(chart, left)
    chart.table = _sample_table(found, document) | {f"{s} (z)": v for s, v in zip(names, rows)}
    return chart


def _colour_scale(chart: Chart, left: float) -> None:
    """The shades of a heatmap with the standard deviations that they stand for."""
    levels = range(-_LEVELS, _LEVELS + 1)
    for i, level in enumerate(levels):
        kind = shade(level / _LEVELS)
        place = f'x="{left + 16 * i:.1f}" y="2" width="16" height="10"'
        chart.parts.append(f'<rect class="{kind}" {place}/>')
    for share, words in ((0, "−3 or less"), (0.5, "mean"), (1, "+3 or more")):
        at = left + 16 * 13 * share
        chart.parts.append(f'<text class="tick mid" x="{at:.1f}" y="23">{words}</text>')
    at = left + 16 * 13 + 40
    chart.parts.append(f'<text class="tick start" x="{at:.1f}" y="11">standard deviations</text>')


def _runs(kinds: Sequence[Any], top: float, bottom: float) -> dict[Any, list[Any]]:
    """Rectangles of neighbours of one kind, by kind."""
    found: dict[Any, list[Any]] = {}
    for kind, run in groupby(range(len(kinds)), kinds.__getitem__):
        places = list(run)
        found.setdefault(kind, []).append((places[0], top, places[-1] + 1, bottom))
    return found


@figure
def volcano(document: Part) -> Chart | None:
    """Difference against q-value of all features, the panel coloured by class and named."""
    found = document["pictures"]["volcano"]
    if found is None:
        return None
    x, y = found["difference"], [-math.log10(q) for q in found["q"]]
    low, high = padded([*x, 0.0], 0.12)
    pair = f"{found['positive']} − {found['other']}"
    unit = document["data"]["units"] or "units of the table"
    unit = "within-class standard deviations" if found["standardized"] else unit
    chart = Chart(
        Axis(low, high, f"mean {pair}, in {unit}"),
        Axis(0.0, max(*y, 2.0) * 1.08, "−log₁₀ q", grid=True),
        f"difference {pair} against q-value of {found['n_total']:,} features",
        height=360,
    )
    chart.rule("chance", y=-math.log10(0.05))
    chart.text(low, -math.log10(0.05), "q = 0.05", "tick start", dx=4, dy=-4)
    where = [found["positive"] if d > 0 else found["other"] for d in x]
    words = [
        f"{name}: {short(d)} (q = {short(q)}), higher in {label}"
        for name, d, q, label in zip(found["feature"], x, found["q"], where)
    ]
    rest = [i for i, mine in enumerate(found["in_panel"]) if not mine]
    panel = [i for i, mine in enumerate(found["in_panel"]) if mine]
    near, far = rest[:60], rest[60:]  # the smallest q-values come first
    chart.points(*_places(x, y, far), "bead", radius=2)
    tips = [words[i] for i in near]
    chart.points(*_places(x, y, near), "bead", radius=2.4, tips=tips, label="other features")
    for label, tone in tones_of(document).items():
        mine = [i for i in panel if where[i] == label]
        tips, key = [words[i] for i in mine], f"panel, higher in {label}"
        chart.points(*_places(x, y, mine), f"dot f{tone}", radius=4.5, tips=tips, label=key)
    _name_points(chart, [(x[i], y[i], found["feature"][i]) for i in panel])
    chart.table = {key: found[key] for key in ("feature", "difference", "p", "q")}
    chart.table["in the panel"] = ["yes" if mine else "no" for mine in found["in_panel"]]
    return chart


def _name_points(chart: Chart, points: Sequence[tuple[float, float, str]]) -> None:
    """Name points where there is room for it, beside them or a little above or below."""
    dots = [(chart.sx(x), chart.sy(y)) for x, y, _ in points]
    taken = [(px - 5, py - 5, px + 5, py + 5) for px, py in dots]
    for x, y, name in points:
        text, px, py = cut(name, 22), chart.sx(x), chart.sy(y)
        width = 6.3 * len(text)
        for dy, side in product((4, 16, -8, 28, -20), ("start", "end")):
            left = px + 8 if side == "start" else px - 8 - width
            right, top, bottom = left + width, py + dy - 11, py + dy + 2
            inside = chart.left < left and right < chart.width and top > 0
            if inside and all(
                right < a or c < left or bottom < b or d < top for a, b, c, d in taken
            ):
                taken.append((left, top, right, bottom))
                chart.text(x, y, text, f"name {side}", dx=8 if side == "start" else -8, dy=dy)
                break


@judged
def roc(part: Part, label: str | None) -> Chart | None:
    """The ROC curve of the positive class, or of each class against the rest."""
    curves = part["roc"]
    if not curves:
        return None
    said = f"ROC curve of {label}" if label else "ROC curves, each class against the rest"
    chart = _unit_square("1 − specificity", "sensitivity", said)
    for k, curve in enumerate(curves):
        kind, key = ("curve", "") if label else (f"series s{k}", curve["label"])
        key += f": {number(curve['area'])}" if key and curve["area"] is not None else ""
        chart.line([0.0, *curve["fpr"]], [0.0, *curve["tpr"]], kind, label=key, tip=key)
    area = part["scores"].get("roc_auc")
    if area is not None:
        span = f"{area['level']:.0%} interval {range_words(area)}"
        words = f"{'area' if label else 'mean area'} {number(area['value'])}"
        chart.text(1, 0, words, "value end", dx=-10, dy=-38)
        chart.text(1, 0, span, "tick end", dx=-10, dy=-20)
    every = [(c["label"], *at) for c in curves for at in zip(c["fpr"], c["tpr"])]
    names = ("class", "false positive rate", "true positive rate")
    chart.table = dict(zip(names, zip(*every)))
    return chart


def _unit_square(x: str, y: str, description: str) -> Chart:
    chart = Chart(Axis(0.0, 1.0, x), Axis(0.0, 1.0, y, grid=True), description)
    chart.line([0, 1], [0, 1], "chance")
    return chart


@judged
def confusion(part: Part, _: str | None) -> Chart:
    """Whole samples and shares, rows being true classes; with many classes shares alone."""
    classes, counts, shares = (part["confusion"][key] for key in ("classes", "counts", "shares"))
    order, n = part["confusion"]["order"], len(classes)
    names = [classes[k] for k in order]
    left, room = names_room(names) + 18, 426 if n <= 12 else 786
    step = max(24.0, min(150.0, (room - left) / n))
    high = min(step, 64.0)
    slanted = n > 4 or max(map(len, names)) * 6.7 > step
    below = 44 + (5.6 * max(len(cut(name)) for name in names) if slanted else 0)
    chart = Chart(
        Axis(0, n, "predicted", _names(names), slanted=slanted),
        Axis(n, 0, "true", _names(names)),
        "predicted against true classes",
        *(max(room, left + step * n) + 14, high * n + below + 8, left),
        *(max(room - left - step * n, 0) + 14, 8, below),
    )  # fmt: skip
    for (y, i), (x, j) in product(enumerate(order), enumerate(order)):
        share, count = shares[i][j], counts[i][j]
        # few errors are to be seen, too
        level = math.ceil(_LEVELS * (share if i == j else math.sqrt(share)) - 0.5)
        kind = f"cell {'right' if i == j else 'wrong'} l{level}"
        tip = f"{classes[i]} predicted as {classes[j]}: {count:,} ({share:.0%})"
        chart.rects([(x + 0.02, y + 0.02, x + 0.98, y + 0.98)], kind, radius=3, tips=[tip])
        strong = " strong" if level > 4 else ""
        if step >= 60:
            chart.text(x + 0.5, y + 0.5, f"{count:,}", f"value mid figure{strong}", dy=1)
            chart.text(x + 0.5, y + 0.5, f"{share:.0%}", f"figure mid{strong}", dy=16)
        elif share >= 0.005:
            chart.text(x + 0.5, y + 0.5, f"{100 * share:.0f}", f"figure mid{strong}", dy=4)
    cells = [(classes[i], classes[j], counts[i][j], shares[i][j]) for i, j in np.ndindex(n, n)]
    chart.table = dict(zip(("true", "predicted", "samples", "share"), zip(*cells)))
    return chart


@figure
def recalls(document: Part) -> Chart | None:
    """The share of each of several classes that panels of each size recognise."""
    rungs, classes = document["ladder"], document["data"]["classes"]
    if len(rungs) < 2 or len(classes) < 3:
        return None
    order = document["confusion"]["order"]
    names = [classes[k] for k in order]
    left, high = names_room(names), 24 if len(names) > 6 else 34
    chosen = [(i + 0.5, str(r["size"]), "tick bold" if r["chosen"] else "tick")
              for i, r in enumerate(rungs)]  # fmt: skip
    chart = Chart(
        Axis(0, len(rungs), "features in the panel", chosen),
        Axis(len(names), 0, ticks=_names(names)),
        "share of each class that is recognised, by panel size",
        *(440, high * len(names) + 54, left, 14, 8, 46),
    )
    for (x, rung), (y, k) in product(enumerate(rungs), enumerate(order)):
        share = rung["recalls"][k]
        level = math.ceil(_LEVELS * share - 0.5)
        tip = f"{classes[k]}, {plural(rung['size'], 'feature')}: {share:.0%} recognised"
        corners = [(x + 0.03, y + 0.03, x + 0.97, y + 0.97)]
        chart.rects(corners, f"cell right l{level}", radius=3, tips=[tip])
        strong = " strong" if level > 4 else ""
        chart.text(x + 0.5, y + 0.5, f"{100 * share:.0f}", f"figure mid{strong}", dy=4)
    every = [(rung["size"], *pair) for rung in rungs for pair in zip(classes, rung["recalls"])]
    chart.table = dict(zip(("features", "class", "share recognised"), zip(*every)))
    return chart


@judged
def calibration(part: Part, label: str) -> Chart | None:
    """Observed against predicted shares."""
    found = part["calibration"] and part["calibration"]["curve"]
    if not found:
        return None
    predicted, observed, count = found["predicted"], found["observed"], found["count"]
    title = f"predicted probability of {label}"
    chart = _unit_square(title, "observed share", f"calibration of the probability of {label}")
    total = sum(count) or 1
    tips = [
        f"predicted {p:.2f}, observed {o:.2f} ({n:,.0f} samples)"
        for p, o, n in zip(predicted, observed, count)
    ]
    radii = [4 + round(6 * math.sqrt(n / total), 1) for n in count]
    chart.line(predicted, observed, "curve")
    chart.points(predicted, observed, "dot", radius=radii, tips=tips)
    chart.table = {"predicted": predicted, "observed": observed, "samples": count}
    return chart


@judged
def decision(part: Part, label: str) -> Chart | None:
    """Net benefit by threshold; of the outer folds with the line that the slider moves."""
    found = part["decision"]
    if found is None:
        return None
    at, benefit, everyone = found["threshold"], found["net_benefit"], found["treat_all"]
    top = max(*benefit, *everyone, 0.01) * 1.15
    floor = -0.3 * top
    chart = Chart(
        Axis(0.0, 1.0, f"probability of {label} from which one would act", _SHARES),
        Axis(floor, top, "net benefit", grid=True),
        f"decision curve of {label} at a prevalence of {percent(part['prevalence'])}",
    )
    low, high = (np.clip(found[end], floor, top).tolist() for end in ("low", "high"))
    chart.line([*at, *at[::-1]], [*high, *low[::-1]], "band", area=True)
    lines = (benefit, "curve", "acting on the model"), (everyone, "series fine", "on all")
    for values, kind, key in lines:  # below the axis one would only run along its edge
        shown = [value if value >= floor else math.nan for value in values]
        chart.line(at, shown, kind, label=key)
    chart.line([0, 1], [0, 0], "chance", label="on no one")
    if "ladder" in part and part["slider"] and part["verdict"]["answer"] != "none":
        at_start = [part["prevalence"]] * 2
        ends = f' data-ends="{chart.sx(0):.1f} {chart.sx(1):.1f}"'
        chart.line(at_start, [floor, top], "cursor", attributes=ends)
    chart.table = {
        "threshold": at, "net benefit": benefit, "low": found["low"], "high": found["high"],
        "act on all": everyone,
    }  # fmt: skip
    return chart


@figure
def permutation(document: Part) -> Chart | None:
    """The statistic of shuffled labels, and that of the true ones."""
    verdict = document["verdict"]
    draws, observed = verdict["draws"], verdict["observed"]
    if not draws or observed is None:
        return None
    low, high = min(*draws, observed, verdict["chance"]), max(*draws, observed, verdict["chance"])
    pad = max(0.02, 0.04 * (high - low))
    edges = np.linspace(max(0.0, low - pad), min(1.0, high + pad), _BINS + 1)
    counts = np.histogram(draws, edges)[0].tolist()
    most = max(counts) * 1.18 or 1.0
    whole = [(v, short(v)) for v in ticks(0.0, most) if v == int(v)]
    chart = Chart(
        Axis(edges[0], edges[-1], "balanced accuracy (test statistic)"),
        Axis(0.0, most, "shuffled labellings", whole, grid=True),
        "balanced accuracy of shuffled and of true labels",
    )
    gap = 0.03 * (edges[1] - edges[0])
    bins = [(a, b, n) for a, b, n in zip(edges, edges[1:], counts) if n]
    tips = [f"{n} of {len(draws)} between {a:.2f} and {b:.2f}" for a, b, n in bins]
    bars = [(a + gap, 0.0, b - gap, n) for a, b, n in bins]
    chart.rects(bars, "bar faded", radius=1, tips=tips)
    chart.rule("observed", x=observed)
    side, dx = ("end", -7) if observed > (low + high) / 2 else ("start", 7)
    chart.text(observed, most, f"true labels {observed:.2f}", f"value {side}", dx=dx, dy=12)
    spans = {"from": edges[:-1].tolist(), "to": edges[1:].tolist()}
    chart.table = {**spans, "shuffled labellings": counts}
    return chart


def batch_chart(audit: Part, tones: Mapping[str, int]) -> Chart:
    """Samples of each batch by class, and how many are recognised with the batch left out."""
    names, counts, unseen = audit["batches"][:30], audit["counts"], audit["unseen"]
    most = max(map(sum, counts))
    chart = Chart(
        Axis(0, most, "samples", [(v, short(v)) for v in ticks(0, most) if v == int(v)], grid=True),
        Axis(len(names), 0, ticks=_names(names)),
        f"samples by {audit['name']} and class",
        520, 24 * len(names) + 56, names_room(names), 120 if unseen else 18, 6, 46,
    )  # fmt: skip
    for k, label in enumerate(audit["classes"]):
        tone = tones.get(label, k % N_TONES)
        corners = [
            (sum(counts[i][:k]), i + 0.18, sum(counts[i][: k + 1]), i + 0.82)
            for i in range(len(names))
        ]
        tips = [f"{name}: {plural(counts[i][k], 'sample')} {label}" for i, name in enumerate(names)]
        chart.rects(corners, f"bar f{tone}", radius=1, tips=tips, label=label)
    if unseen:
        for i, found in enumerate(unseen["recalls"][: len(names)]):
            known = [share for share in found if share is not None]
            words = f"{sum(known) / len(known):.0%} recognised" if known else "not left out"
            chart.text(most, i + 0.5, words, "tick start", dx=8, dy=4)
    every = list(np.ndindex(len(names), len(audit["classes"])))
    cells = [(names[i], audit["classes"][k], counts[i][k]) for i, k in every]
    chart.table = dict(zip((audit["name"], "class", "samples"), zip(*cells)))
    if unseen:
        chart.table["recognised when left out"] = [unseen["recalls"][i][k] for i, k in every]
    return chart


def comparison_chart(found: Part) -> Chart:
    """Accuracy against panel size, a thread a method, names where they matter."""
    sizes, reference = found["sizes"], found["reference"]
    rows = [row for row in found["rows"] if row["balanced_accuracy"] is not None]
    marks = [(float(i), str(size)) for i, size in enumerate(sizes)]
    low, high = padded([row["balanced_accuracy"] for row in rows])
    chart = Chart(
        Axis(-0.25, len(sizes) - 0.75, "features in the panel", marks),
        Axis(low, min(high, 1.03), "balanced accuracy", grid=True),
        "balanced accuracy against panel size, by method", 780, 420, right=130, top=26,
    )  # fmt: skip
    ends = []
    # the reference last, so that it lies on top
    for name in sorted(found["methods"], key=lambda name: name == reference):
        mine = [row for row in rows if row["method"] == name]
        if not mine:
            continue
        kind = " mine" if name == reference else " dots" if name == RANDOM_PANEL else ""
        at = [sizes.index(row["size"]) for row in mine]
        values = [row["balanced_accuracy"] for row in mine]
        tips = [
            f"{name}, {plural(row['size'], 'feature')}: {number(row['balanced_accuracy'])} "
            f"(interval {range_words(row)})"
            for row in mine
        ]
        link = f' data-link="{found["methods"].index(name)}"'
        chart.line(at, values, f"thread{kind}", tip=name, attributes=link)
        chart.points(at, values, f"bead{kind}", radius=3.4, tips=tips)
        if kind:
            ends.append((chart.sy(values[-1]), at[-1], values[-1], name))
    for size in sizes:
        front = [row for row in rows if row["on_front"] and row["size"] == size]
        if front:
            place = (sizes.index(size), front[0]["balanced_accuracy"])
            chart.points([place[0]], [place[1]], "ring", radius=7, label="Pareto front")
            chart.text(*place, cut(front[0]["method"], 30), "name mid", dy=-12)
    last = -math.inf
    for pixel, x, y, name in sorted(ends):  # kept apart
        last = max(pixel, last + 15.0)
        chart.text(x, y, cut(name, 20), "name start", dx=10, dy=last - pixel + 4)
    keys = ("method", "size", "balanced_accuracy", "low", "high")
    chart.table = {key.replace("_", " "): [row[key] for row in rows] for key in keys}
    return chart
