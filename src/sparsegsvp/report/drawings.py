"""Drawing: from what a figure shows to SVG. No number is computed here but positions.

``data-tip`` holds what a pointer shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .schema import (
    Box,
    Calibration,
    Histogram,
    IntervalDict,
    PathFigure,
    Roc,
    Scatter,
    StabilityBar,
    WeightCurve,
)
from .svg import SHAPES, Frame, circle, cut, padded, rect, rule, short, text, ticks, tip
from .words import number

# --------------------------------------------------------------------------- one number


def gauge(found: IntervalDict, chance: float) -> str:
    """An estimate and its interval, from a little below chance up to 1."""
    start = max(0.0, min(chance, found["low"]) - 0.1)
    frame = Frame((start, 1.0), (0.0, 1.0), 300, 32, 4, 4, 0, 0)
    low, high, luck = (frame.sx(v) for v in (found["low"], found["high"], chance))
    body = (
        rect(4, 8, 292, 6, "track", radius=3)
        + rect(low, 8, max(high - low, 2), 6, "range", radius=3)
        + rule(luck, 3, luck, 19, "chance")
        + circle(frame.sx(found["value"]), 11, 4.5, "dot")
        + text(max(luck, 20), 31, "chance", "tick mid")
        + text(296, 31, "1", "tick end")
    )
    return frame.drawing(body, "estimate, interval and chance", "gauge")


def boxes(found: Sequence[Box], tones: Sequence[int]) -> str:
    """Box plots of one feature by class, on the feature's own axis."""
    values = [v for b in found for v in (b["low"], b["high"], *b["outliers"])]
    low, high = min(values), max(values)
    row = 17
    floor = row * len(found) + 3
    frame = Frame(padded((low, high), 0.02), (0, 1), 250, floor + 16, 5, 5, 0, 0)
    parts = [rule(5, floor, 245, floor, "axis")]
    for i, b in enumerate(found):
        y = row * i + 3
        words = (
            f"{b['label']} (n = {b['n']}): median {short(b['median'])}, middle half "
            f"{short(b['q1'])} to {short(b['q3'])}"
        )
        if b["n_outliers"]:
            words += f", {b['n_outliers']} beyond the whiskers"
        q1, median, q3 = (frame.sx(v) for v in (b["q1"], b["median"], b["q3"]))
        parts += [
            f'<g class="box c{tones[i]}"{tip(words)}>',
            rect(0, y - 2, 250, row, "hit"),
            rule(frame.sx(b["low"]), y + 6, frame.sx(b["high"]), y + 6, "whisker"),
            rect(q1, y, max(q3 - q1, 1), 12, "body", radius=2),
            rule(median, y, median, y + 12, "median"),
            *(circle(frame.sx(v), y + 6, 1.6, "out") for v in b["outliers"]),
            "</g>",
        ]
    shown = ticks(low, high, 4)
    ends = (shown[0], shown[-1]) if len(shown) > 1 else (low, high)
    for value in dict.fromkeys(ends):
        at = frame.sx(value)
        parts += [
            rule(at, floor, at, floor + 3, "mark"),
            text(min(max(at, 16), 234), floor + 12, short(value), "tick mid"),
        ]
    return frame.drawing("".join(parts), "box plot by class", "boxes")


# -------------------------------------------------------------------------- the estimate


def roc_chart(found: Roc) -> str:
    """The mean ROC curve with the middle 80% of the folds."""
    frame = Frame((0.0, 1.0), (0.0, 1.0))
    fpr, tpr = found["fpr"], found["tpr"]
    body = (
        frame.axes("1 − specificity", "sensitivity")
        + frame.segment(0, 0, 1, 1, "chance")
        + frame.band(fpr, found["low"], found["high"])
        + frame.line([0.0, *fpr], [0.0, *tpr], "curve")
    )
    if found["auc"] is not None:
        auc = found["auc"]
        right, floor = frame.width - 24, frame.height - 66
        span = f"{auc['level']:.0%} interval {auc['low']:.2f} to {auc['high']:.2f}"
        body += text(right, floor - 18, f"AUC {number(auc['value'])}", "value end")
        body += text(right, floor, span, "tick end")
    return frame.drawing(body, f"ROC curve for {found['label']}, averaged over folds")


def calibration_chart(found: Calibration) -> str:
    """Observed against predicted share, point size by count."""
    frame = Frame((0.0, 1.0), (0.0, 1.0))
    total = sum(found["count"]) or 1
    body = frame.axes(f"predicted probability of {found['label']}", "observed share")
    body += frame.segment(0, 0, 1, 1, "chance")
    body += frame.line(found["predicted"], found["observed"], "curve")
    for p, o, n in zip(found["predicted"], found["observed"], found["count"]):
        words = f"predicted {p:.2f}, observed {o:.2f} ({n} samples)"
        size = 4 + round(6 * math.sqrt(n / total), 1)
        body += circle(frame.sx(p), frame.sy(o), size, "dot", tip(words))
    return frame.drawing(body, f"calibration of the probability of {found['label']}")


def permutation_chart(found: Histogram) -> str:
    """The permutation distribution and the observed statistic."""
    edges, counts = found["edges"], found["counts"]
    frame = Frame((edges[0], edges[-1]), (0.0, max(counts) * 1.18 or 1.0))
    whole = [(v, short(v)) for v in ticks(*frame.y) if v == int(v)]
    body = frame.axes("balanced accuracy (test statistic)", "shuffled labellings", y_ticks=whole)
    for a, b, n in zip(edges, edges[1:], counts):
        if n:
            words = f"{n} of {found['n']} between {a:.2f} and {b:.2f}"
            body += _bar(frame, frame.sx(a) + 0.5, frame.sx(b) - 0.5, n, "bar quiet", words)
    body += _flag(frame, frame.sx(found["observed"]), f"true labels {found['observed']:.2f}")
    return frame.drawing(body, "permutation distribution of the test statistic")


def _bar(frame: Frame, left: float, right: float, value: float, kind: str, words: str) -> str:
    """A column that stands on the axis."""
    top = frame.sy(value)
    return rect(left, top, right - left, frame.sy(0) - top, kind, radius=1, extra=tip(words))


def _flag(frame: Frame, at: float, words: str) -> str:
    """A marked position, its label on the side with more room."""
    side, step = ("end", -7) if at > frame.width / 2 else ("start", 7)
    return rule(at, frame.top, at, frame.height - frame.bottom, "observed") + text(
        at + step, frame.top + 12, words, f"value {side}"
    )


# --------------------------------------------------------------------------- the samples


def scatter_chart(found: Scatter, tones: Sequence[int], *, diagonal: bool = False) -> str:
    """Samples as points; wrong predictions get a ring."""
    xs, ys = found["x"], found["y"]
    both = padded([*xs, *ys])
    if diagonal:
        frame = Frame(both, both, height=400)
    else:
        frame = Frame(padded(xs), padded(ys), height=330)
    parts = [frame.axes(found["x_title"], found["y_title"])]
    if diagonal:
        parts.append(frame.segment(both[0], both[0], both[1], both[1], "chance"))
    for x, y, k, wrong, name in zip(xs, ys, found["label"], found["wrong"], found["name"]):
        tone = tones[k]
        words = f"{name}: {found['classes'][k]}{', predicted wrongly' if wrong else ''}"
        at = f'x="{frame.sx(x):.1f}" y="{frame.sy(y):.1f}"'
        if wrong:
            parts.append(circle(frame.sx(x), frame.sy(y), 7, "ring"))
        parts.append(f'<use href="#s{tone % len(SHAPES)}" class="pt c{tone}" {at}{tip(words)}/>')
    return frame.drawing("".join(parts), f"{found['x_title']} against {found['y_title']}")


# ------------------------------------------------------------------------------ the path

_PATH_TITLE = "features in the panel (penalty falls →)"


def path_charts(found: PathFigure) -> list[str]:
    """Inner cross-validation, and weights, along the path; a cursor marks one step."""
    n = len(found["steps"])
    every = max(1, math.ceil(n / 7))
    labels = [(i, str(len(found["steps"][i]["panel"]))) for i in range(0, n, every)]
    return [_path_score(found, labels), _path_weights(found, labels)]


def _path_score(found: PathFigure, labels: list[tuple[int, str]]) -> str:
    steps, chosen = found["steps"], found["chosen"]
    known = all(s["accuracy"] is not None for s in steps)
    values = [(s["accuracy"] if known else s["score"]) or 0.0 for s in steps]
    errors = [(s["accuracy_error"] if known else s["score_error"]) or 0.0 for s in steps]
    low = [v - e for v, e in zip(values, errors)]
    high = [min(v + e, 1.0) if known else v + e for v, e in zip(values, errors)]
    xs = list(range(len(steps)))
    frame = Frame((-0.4, len(steps) - 0.6), padded([*low, *high], 0.1), height=300)
    name = "balanced accuracy, inner folds" if known else _score_title(found["score_name"])
    body = frame.axes(_PATH_TITLE, name, x_ticks=labels) + _cursor(frame, chosen, len(steps))
    body += frame.band(xs, low, high) + frame.line(xs, values, "curve")
    for i, value in enumerate(values):
        words = f"{len(steps[i]['panel'])} features: {value:.3f} ± {errors[i]:.3f}"
        kind, size = ("dot chosen", 5.5) if i == chosen else ("dot", 3)
        body += circle(frame.sx(i), frame.sy(value), size, kind, tip(words))
    return frame.drawing(body, name)


def _path_weights(found: PathFigure, labels: list[tuple[int, str]]) -> str:
    n = len(found["steps"])
    largest = max((max(row) for row in found["weights"]), default=1.0)
    frame = Frame((-0.4, n - 0.6), (0.0, largest * 1.06 or 1.0), height=300)
    parts = [
        frame.axes(_PATH_TITLE, "largest |weight|", x_ticks=labels),
        _cursor(frame, found["chosen"], n),
    ]
    mine = set(found["steps"][found["chosen"]]["panel"])
    for f in sorted(range(len(found["features"])), key=lambda f: f in mine):
        row = found["weights"][f]
        first = next(i for i, v in enumerate(row) if v > 0.0)
        span = range(max(first - 1, 0), n)
        kind = "thread mine" if f in mine else "thread"
        parts.append(frame.line(span, [row[i] for i in span], kind, tip(found["features"][f])))
    return frame.drawing("".join(parts), "weights along the path")


def _score_title(name: str) -> str:
    return "minus balanced log loss" if name == "balanced_log_loss" else name.replace("_", " ")


def _cursor(frame: Frame, at: int, n: int) -> str:
    """A line that the slider moves; its positions are those of the steps."""
    places = " ".join(f"{frame.sx(i):.1f}" for i in range(n))
    x, floor = frame.sx(at), frame.height - frame.bottom
    return rule(x, frame.top, x, floor, "cursor").replace("/>", f' data-places="{places}"/>')


def weights_chart(found: WeightCurve, tone: int) -> str:
    """Sorted weights of one plane and their elbow."""
    values, elbow = found["weights"], found["elbow"]
    n = len(values)
    frame = Frame((0.4, n + 0.6), (0.0, max(values, default=1.0) * 1.12 or 1.0), height=270)
    whole = [(v, short(v)) for v in ticks(0, n, 6) if v >= 1 and v == int(v)]
    body = frame.axes("features, heaviest first", "|weight|", whole)
    half = max(1.0, min(8.0, 0.3 * (frame.sx(2) - frame.sx(1))))
    for i, value in enumerate(values):
        name = found["features"][i] if i < len(found["features"]) else "all others: zero"
        words = f"{name}: {value:.3f}" if value else name
        quiet = " quiet" if elbow is not None and i >= elbow else ""
        at = frame.sx(i + 1)
        body += _bar(frame, at - half, at + half, value, f"bar c{tone}{quiet}", words)
    if elbow is not None and elbow <= n:
        body += _flag(frame, frame.sx(elbow + 0.5), f"elbow after {elbow}")
    return frame.drawing(body, f"sorted weights of the plane of {found['label']}")


# ------------------------------------------------------------------------- the stability


def stability_chart(found: Sequence[StabilityBar], threshold: float | None = None) -> str:
    """Selection frequencies as horizontal bars, with those of the group behind them."""
    longest = max(len(cut(bar["feature"])) for bar in found)
    row, left, width = 22, 24 + 6.7 * longest, 480
    height = row * len(found) + 42
    frame = Frame((0.0, 1.0), (0.0, 1.0), width, height, left, 22, 4, 38)
    parts = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = frame.sx(value)
        parts += [
            rule(at, 2, at, height - 36, "grid"),
            text(at, height - 20, f"{value:.0%}", "tick mid"),
        ]
    for i, bar in enumerate(found):
        y = row * i + 5
        group = bar["group_frequency"]
        words = f"{bar['feature']}: chosen in {bar['frequency']:.0%} of refits"
        if group is not None and group > bar["frequency"]:
            words += f", it or a substitute in {group:.0%}"
        parts += [
            f'<g class="lane{"" if bar["in_panel"] else " quiet"}"{tip(words)}>',
            rect(0, y - 3, width, row, "hit"),
            text(left - 8, y + 11, cut(bar["feature"]), "name end"),
            ""
            if group is None
            else rect(left, y, frame.sx(group) - left, 14, "bar group", radius=2),
            rect(left, y, max(frame.sx(bar["frequency"]) - left, 1), 14, "bar", radius=2),
            "</g>",
        ]
    if threshold is not None:
        parts.append(rule(frame.sx(threshold), 2, frame.sx(threshold), height - 36, "observed"))
    title = "share of refits that choose the feature"
    parts.append(text((left + width - 22) / 2, height - 4, title, "title mid"))
    return frame.drawing("".join(parts), "selection frequency of each feature", "chart lanes")
