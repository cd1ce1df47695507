"""Drawing panels as `Chart`: their features, and how accurate panels of each size are.

``tones`` are the numbers of the classes' colours, by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from ..evaluation.comparison import RANDOM_PANEL
from .charts import Axis, Chart, ChartSheet
from .drawings import places, sample_table, sample_words, strip, yes_or_no
from .marks import cut, names_room, padded, short, ticks
from .words import Part, interval, joined, plural

_LEVELS = 6  # shades on either side of the mean
_FULL = 3.0  # standard deviations of the strongest shade
# Methods beyond which intervals would hide each other.
_MAX_INTERVALS = 6


def boxes(feature: str, found: Sequence[Part], tones: Mapping[str, int]) -> Chart:
    """Box plots of one feature by class, on the feature's own axis."""
    values = [v for b in found for v in (b["low"], b["high"], *b["outliers"])]
    low, high = min(values), max(values)
    row = 17
    floor = row * len(found) + 3
    axis = Axis(*padded((low, high), 0.02), ticks=())
    chart = strip(axis, 250, floor + 16, 5, f"box plot of {feature} by class", "boxes")
    chart.title = cut(feature, 40)
    chart.line([axis.low, axis.high], [floor, floor], "axis")
    for i, b in enumerate(found):
        y, tone = row * i + 3, tones[b["label"]]
        words = (
            f"{feature}, {b['label']} (n = {b['n']}): median {short(b['median'])}, middle half "
            f"{short(b['q1'])} to {short(b['q3'])}"
        )
        if b["n_outliers"]:
            words += f", {b['n_outliers']} beyond the whiskers"
        chart.line([b["low"], b["high"]], [y + 6, y + 6], f"whisker c{tone}")
        body = [(b["q1"], y, b["q3"], y + 12)]
        chart.rects(body, f"body c{tone}", radius=2, label=b["label"])
        chart.line([b["median"], b["median"]], [y, y + 12], f"median c{tone}")
        chart.points(b["outliers"], [y + 6] * len(b["outliers"]), f"out c{tone}", radius=1.6)
        chart.rects([(-math.inf, y - 2, math.inf, y - 2 + row)], "hit", tips=[words], radius=0)
    shown = ticks(low, high, 4)
    ends = (shown[0], shown[-1]) if len(shown) > 1 else (low, high)
    for value in dict.fromkeys(ends):
        at = chart.sx(value)
        chart.line([value, value], [floor, floor + 3], "mark")
        chart.text(value, floor + 12, short(value), "tick mid", dx=min(max(at, 16), 234) - at)
    keys = ("n", "low", "q1", "median", "q3", "high", "mean", "n_outliers")
    chart.table = {"feature": [feature] * len(found), "class": [b["label"] for b in found]}
    chart.table |= {key.replace("n_", ""): [b[key] for b in found] for key in keys}
    return chart


def all_boxes(panel: Sequence[Part], tones: Mapping[str, int]) -> ChartSheet:
    """The box plots of the whole panel, two beside each other."""
    charts = [boxes(row["feature"], row["boxes"], tones) for row in panel]
    return ChartSheet([charts[i : i + 2] for i in range(0, len(charts), 2)], "box plots by class")


# ----------------------------------------------------------------------------- all features


def volcano_chart(found: Part, tones: Mapping[str, int]) -> Chart:
    """Difference against q-value, the panel coloured by class and named."""
    x, y = found["difference"], [-math.log10(q) for q in found["q"]]
    low, high = padded([*x, 0.0], 0.12)
    chart = Chart(
        Axis(low, high, f"mean {found['contrast']}, in {found['unit']}"),
        Axis(0.0, max(*y, 2.0) * 1.08, "−log₁₀ q", grid=True),
        f"difference {found['contrast']} against q-value of {found['n_total']:,} features",
    )
    chart.rule("chance", y=-math.log10(0.05))
    chart.text(low, -math.log10(0.05), "q = 0.05", "tick start", dx=4, dy=-4)
    words = [
        f"{name}: {short(d)} (q = {short(q)}), higher in {where}"
        for name, d, q, where in zip(found["feature"], x, found["q"], found["higher_in"])
    ]
    rest = [i for i, mine in enumerate(found["in_panel"]) if not mine]
    panel = [i for i, mine in enumerate(found["in_panel"]) if mine]
    near, far = rest[:60], rest[60:]  # the smallest q-values come first
    chart.points(*places(x, y, far), "bead", radius=2)
    tips = [words[i] for i in near]
    chart.points(*places(x, y, near), "bead", radius=2.4, tips=tips, label="other features")
    for label, tone in tones.items():
        mine = [i for i in panel if found["higher_in"][i] == label]
        if mine:
            tips, key = [words[i] for i in mine], f"in the panel, higher in {label}"
            chart.points(*places(x, y, mine), f"dot c{tone}", radius=4.5, tips=tips, label=key)
    _name_points(chart, [(x[i], y[i], found["feature"][i]) for i in panel])
    keys = ("feature", "difference", "p", "q")
    chart.table = {key: found[key] for key in keys}
    chart.table["in the panel"] = yes_or_no(found["in_panel"])
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


# -------------------------------------------------------------------------------- the panel


def shade(value: float, full: float = 1.0) -> str:
    """Classes of a coloured cell: high or low, and how much of the strongest shade."""
    level = min(math.ceil(abs(value) / full * _LEVELS - 0.5), _LEVELS)
    return f"cell {'high' if value > 0 else 'low'} l{level}"


def heatmap_chart(found: Part, tones: Mapping[str, int]) -> Chart:
    """The panel over the samples; a bar for the classes, marks for errors out of fold."""
    rows, names = found["values"], found["feature"]
    n, m, row = len(found["name"]), len(names), 18
    shown = "" if n == found["n_total"] else f" ({n} of {found['n_total']:,})"
    chart = Chart(
        Axis(0, n, f"samples{shown}, like beside like", ticks=()),
        Axis(m, -1.7, ticks=[(i + 0.5, name, "name") for i, name in enumerate(names)]),
        "heatmap of the panel over the samples",
        *(860, row * (m + 1.7) + 34, names_room(names), 14, 4, 30),
    )
    for k, label in enumerate(found["classes"]):
        bar = _runs([code == k for code in found["label"]], -1.0, -0.2)
        chart.rects(bar.get(True, []), f"bar c{tones[label]}", radius=0, label=label)
    cells: dict[str, list[tuple[float, float, float, float]]] = {}
    for i, values in enumerate(rows):
        kinds = [None if v is None else shade(v, _FULL) for v in values]
        for kind, runs in _runs(kinds, i, i + 1).items():
            if kind is not None:
                cells.setdefault(kind, []).extend(runs)
    for kind in sorted(cells):
        # the strongest shade of each side stands in the legend
        side = kind.rsplit(" ", 1)[0]
        last = kind == max(other for other in cells if other.startswith(side))
        chart.rects(cells[kind], kind, radius=0, label=_SIDES[side] if last else "")
    wrong = [i + 0.5 for i, lost in enumerate(found["wrong"]) if lost]
    if wrong:
        at = wrong, [-1.4] * len(wrong)
        chart.points(*at, "miss", radius=2.6, label="predicted wrongly out of fold")
    for i in range(n):
        column = [(i, -1.7, i + 1, m)]
        chart.rects(column, "hit", tips=[sample_words(found, i)], radius=0)
    chart.table = sample_table(found) | {f"{s} (z)": v for s, v in zip(names, rows)}
    return chart


_SIDES = {"cell low": "lower", "cell high": "higher"}


def _runs(
    kinds: Sequence[Any], low: float, high: float
) -> dict[Any, list[tuple[float, float, float, float]]]:
    """Neighbours of one kind as one rectangle, by kind."""
    found: dict[Any, list[tuple[float, float, float, float]]] = {}
    start = 0
    for end in range(1, len(kinds) + 1):
        if end == len(kinds) or kinds[end] != kinds[start]:
            found.setdefault(kinds[start], []).append((start, low, end, high))
            start = end
    return found


def correlations_chart(found: Part) -> Chart:
    """Correlations of the panel's features with each other and with their substitutes."""
    names, values = found["feature"], found["values"]
    n, row = len(names), max(14, min(30, 420 // len(names)))
    kinds = ["name" if of is None else "name quiet" for of in found["stands_for"]]
    marks = [(i + 0.5, name, kind) for i, (name, kind) in enumerate(zip(names, kinds))]
    longest = max(len(cut(name)) for name in names)
    left, below = names_room(names), 16 + 5.6 * longest
    width = max(440, left + row * n + 14)
    chart = Chart(
        Axis(0, n, ticks=marks, slanted=True),
        Axis(n, 0, ticks=marks),
        "correlations of the panel within the classes",
        *(width, row * n + below + 6, left, width - left - row * n, 4, below),
    )
    for i in range(n):
        for j in range(i + 1):
            value = 1.0 if i == j else values[i][j]
            words = f"{names[i]} and {names[j]}: r = {value:.2f}" if i != j else names[i]
            if found["stands_for"][i] == names[j] or found["stands_for"][j] == names[i]:
                words += ", a substitute"
            cell = [(j, i, j + 1, i + 1)]
            chart.rects(cell, "own" if i == j else shade(value), tips=[words], radius=0)
            if row >= 26 and i != j:
                kind = "figure mid strong" if shade(value)[-1] > "4" else "figure mid"
                chart.text(j + 0.5, i + 0.5, f"{value:.2f}".replace("0.", "."), kind, dy=4)
    stands = [of or "in the panel" for of in found["stands_for"]]
    chart.table = {"feature": names, "substitute of": stands}
    chart.table |= {f"r with {name}": column for name, column in zip(names, zip(*values))}
    return chart


# -------------------------------------------------------------------- panels of several methods


def accuracy_axes(found: Part, *scores: str) -> Chart:
    """The empty chart of accuracy against panel size, with room for these values of a curve."""
    values = [v for curve in found["methods"].values() for key in scores for v in curve[key]]
    sizes = [(float(i), str(size)) for i, size in enumerate(found["sizes"])]
    x = Axis(-0.25, len(sizes) - 0.75, "features in the panel", sizes)
    y = Axis(*padded(values), "balanced accuracy", grid=True)
    chart = Chart(x, y, "balanced accuracy against panel size, by method", 560, 400)
    curves = found["methods"]
    every = [(name, i) for name, curve in curves.items() for i in range(len(curve["size"]))]
    keys = {"features": "size", "balanced accuracy": "score", "low": "low", "high": "high"}
    chart.table = {"method": [name for name, _ in every]}
    chart.table |= {title: [curves[m][key][i] for m, i in every] for title, key in keys.items()}
    return chart


def mark_front(chart: Chart, found: Part, label: str = "") -> None:
    """Put a ring around each size's point of the Pareto front, and name its methods."""
    for size in dict.fromkeys(point["size"] for point in found["front"]):
        there = [point for point in found["front"] if point["size"] == size]
        at = found["sizes"].index(size), there[0]["score"]
        chart.points([at[0]], [at[1]], "ring", radius=7, label=label)
        names = cut(joined([point["method"] for point in there], 2), 36)
        chart.text(*at, names, "name mid", dy=-12)


def accuracy_chart(found: Part) -> Chart:
    """Accuracy against panel size on a page: a thread per method, names where they matter."""
    sizes, reference, curves = found["sizes"], found["reference"], found["methods"]
    chart = accuracy_axes(found, "score")
    chart.y = replace(chart.y, high=min(chart.y.high, 1.03))
    chart.width, chart.height, chart.right, chart.top = 780, 420, 118, 26
    # the reference last, so that it lies on top
    for name in sorted(curves, key=lambda name: name == reference):
        curve = curves[name]
        mine = " mine" if name == reference else " control" if name == RANDOM_PANEL else ""
        xs = [sizes.index(size) for size in curve["size"]]
        words = [
            f"{name}, {plural(size, 'feature')}: "
            + interval({"value": v, "low": a, "high": b, "level": found["level"]})
            for size, v, a, b in zip(curve["size"], curve["score"], curve["low"], curve["high"])
        ]
        link = curve["link"]
        chart.line(xs, curve["score"], f"thread{mine}", tips=[name], link=link)
        chart.points(xs, curve["score"], f"bead{mine}", radius=3.4, tips=words, link=link)
    mark_front(chart, found)
    ends = []
    for name in (RANDOM_PANEL, reference):
        if name in curves:
            at = sizes.index(curves[name]["size"][-1]), curves[name]["score"][-1]
            ends.append((chart.sy(at[1]), at, name))
    last = -math.inf
    for y, at, name in sorted(ends):  # kept apart
        last = max(y, last + 15.0)
        chart.text(*at, cut(name, 20), "name start", dx=10, dy=last - y + 4)
    return chart


def accuracy_lines(found: Part) -> Chart:
    """Accuracy against panel size on paper: colours, intervals where they fit, and a legend."""
    sizes, curves, front = found["sizes"], found["methods"], found["front"]
    few = len(curves) <= _MAX_INTERVALS
    chart = accuracy_axes(found, *(("score", "low", "high") if few else ("score",)))
    for i, (name, curve) in enumerate(curves.items()):
        # a small shift keeps intervals of different methods apart; of many only lines are drawn
        shift = 0.04 * (i - (len(curves) - 1) / 2) if few else 0.0
        xs = [sizes.index(size) + shift for size in curve["size"]]
        tone = f"c{i % 8}"
        if few:
            chart.whiskers(xs, curve["low"], curve["high"], f"series fine {tone}")
        dash = ("", " dashes", " dots")[i // 8 % 3]
        chart.line(xs, curve["score"], f"series {tone}{dash}", label=name, tips=[name])
        chart.points(xs, curve["score"], f"pt {tone}", shape=i)
    at = [sizes.index(point["size"]) for point in front]
    stairs = [(x, point["score"]) for k, point in enumerate(front) for x in at[k : k + 2]]
    chart.line([x for x, _ in stairs], [y for _, y in stairs], "series dots", label="Pareto front")
    return chart
