"""Drawing: from what a figure shows to SVG, as text.

Colours are classes of the page's style sheet, so that one drawing serves light, dark and
print. ``data-tip`` holds what a pointer shows. No number is computed here but positions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

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

#: Shapes of the classes, so that colour is not the only difference.
SHAPES = (
    "M-3.6 0A3.6 3.6 0 1 0 3.6 0A3.6 3.6 0 1 0 -3.6 0Z",
    "M0 -4.6L4.6 0L0 4.6L-4.6 0Z",
    "M0 -4.6L4.3 3.4L-4.3 3.4Z",
    "M-3.3 -3.3H3.3V3.3H-3.3Z",
    "M0 4.6L4.3 -3.4L-4.3 -3.4Z",
    "M-1.4 -4.2H1.4V-1.4H4.2V1.4H1.4V4.2H-1.4V1.4H-4.2V-1.4H-1.4Z",
)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover a range.

    Examples
    --------
    >>> from sparsegsvp.report.svg import ticks
    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if not span > 0.0:
        return [low]
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.10g}") for i in range(first, last + 1)]


def short(value: float) -> str:
    """Write a number in few characters.

    Examples
    --------
    >>> from sparsegsvp.report.svg import short
    >>> short(0.25), short(12345.6), short(0.00001234)
    ('0.25', '12,346', '1.2e-05')
    """
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-3:
        return f"{value:.2g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def cut(text: str, most: int = 26) -> str:
    """Shorten a name to fit beside a drawing."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


@dataclass(frozen=True)
class Frame:
    """A drawing with axes: data ranges, size and margins."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float = 440.0
    height: float = 320.0
    left: float = 50.0
    right: float = 14.0
    top: float = 14.0
    bottom: float = 46.0

    def sx(self, value: float) -> float:
        """Position of an abscissa."""
        low, high = self.x
        inner = self.width - self.left - self.right
        return self.left + inner * (value - low) / ((high - low) or 1.0)

    def sy(self, value: float) -> float:
        """Position of an ordinate."""
        low, high = self.y
        inner = self.height - self.top - self.bottom
        return self.height - self.bottom - inner * (value - low) / ((high - low) or 1.0)

    def line(self, xs: Iterable[float], ys: Iterable[float], kind: str) -> str:
        """A polyline."""
        points = " ".join(f"{self.sx(x):.1f},{self.sy(y):.1f}" for x, y in zip(xs, ys))
        return f'<polyline class="{kind}" points="{points}"/>'

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
        """An area between two curves."""
        there = [f"{self.sx(x):.1f},{self.sy(y):.1f}" for x, y in zip(xs, high)]
        back = [f"{self.sx(x):.1f},{self.sy(y):.1f}" for x, y in zip(xs, low)]
        return f'<polygon class="band" points="{" ".join(there + back[::-1])}"/>'

    def segment(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
        """A straight line between two points of the data."""
        return (
            f'<line class="{kind}" x1="{self.sx(x1):.1f}" y1="{self.sy(y1):.1f}" '
            f'x2="{self.sx(x2):.1f}" y2="{self.sy(y2):.1f}"/>'
        )

    def axes(
        self,
        x_title: str,
        y_title: str,
        x_ticks: Sequence[tuple[float, str]] | None = None,
        y_ticks: Sequence[tuple[float, str]] | None = None,
    ) -> str:
        """Grid lines, tick labels and titles."""
        floor, ceiling = self.height - self.bottom, self.top
        xs = [(v, short(v)) for v in ticks(*self.x)] if x_ticks is None else x_ticks
        ys = [(v, short(v)) for v in ticks(*self.y)] if y_ticks is None else y_ticks
        parts = []
        for value, label in ys:
            at = self.sy(value)
            parts.append(
                f'<line class="grid" x1="{self.left:g}" x2="{self.width - self.right:g}" '
                f'y1="{at:.1f}" y2="{at:.1f}"/>'
                f'<text class="tick end" x="{self.left - 7:g}" y="{at + 4:.1f}">{escape(label)}</text>'
            )
        for value, label in xs:
            at = self.sx(value)
            parts.append(
                f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{floor:g}" y2="{floor + 4:g}"/>'
                f'<text class="tick mid" x="{at:.1f}" y="{floor + 17:g}">{escape(label)}</text>'
            )
        parts.append(
            f'<line class="axis" x1="{self.left:g}" x2="{self.width - self.right:g}" '
            f'y1="{floor:g}" y2="{floor:g}"/>'
        )
        middle = (self.left + self.width - self.right) / 2
        parts.append(
            f'<text class="title mid" x="{middle:g}" y="{self.height - 8:g}">'
            f"{escape(cut(x_title, 60))}</text>"
        )
        up = (floor + ceiling) / 2
        parts.append(
            f'<text class="title mid" transform="rotate(-90 13 {up:g})" x="13" y="{up:g}">'
            f"{escape(cut(y_title, 44))}</text>"
        )
        return "".join(parts)

    def drawing(self, body: str, description: str, kind: str = "chart") -> str:
        """The whole picture."""
        return (
            f'<svg class="{kind}" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{escape(description)}">{body}</svg>'
        )


def padded(values: Iterable[float], share: float = 0.06) -> tuple[float, float]:
    """A range with some air around it."""
    known = [v for v in values if math.isfinite(v)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    pad = share * (high - low) or max(abs(high) * share, 1e-9)
    return low - pad, high + pad


def tip(text: str) -> str:
    """The attribute that a pointer shows."""
    return f' data-tip="{escape(text)}"'


# --------------------------------------------------------------------------- one number


def gauge(found: IntervalDict, chance: float) -> str:
    """An estimate and its interval between 0 and 1, with chance marked."""
    frame = Frame((0.0, 1.0), (0.0, 1.0), 200, 30, 4, 4, 0, 0)
    low, high, at, luck = (frame.sx(v) for v in (found["low"], found["high"], found["value"], chance))
    body = (
        f'<rect class="track" x="4" y="8" width="192" height="6" rx="3"/>'
        f'<rect class="range" x="{low:.1f}" y="8" width="{max(high - low, 2):.1f}" height="6" rx="3"/>'
        f'<line class="chance" x1="{luck:.1f}" x2="{luck:.1f}" y1="3" y2="19"/>'
        f'<circle class="dot" cx="{at:.1f}" cy="11" r="5"/>'
        f'<text class="tick mid" x="{luck:.1f}" y="29">chance</text>'
    )
    return frame.drawing(body, "estimate, interval and chance", "gauge")


def boxes(found: Sequence[Box], tones: Sequence[int]) -> str:
    """Box plots of one feature by class, side by side on the feature's own axis."""
    values = [v for b in found for v in (b["low"], b["high"], *b["outliers"])]
    low, high = min(values), max(values)
    row = 17
    floor = row * len(found) + 3
    frame = Frame(padded((low, high), 0.02), (0, 1), 250, floor + 16, 5, 5, 0, 0)
    parts = [f'<line class="axis" x1="5" x2="245" y1="{floor}" y2="{floor}"/>']
    for i, b in enumerate(found):
        y = row * i + 3
        a, q1, median, q3, z = (frame.sx(b[k]) for k in ("low", "q1", "median", "q3", "high"))  # type: ignore[literal-required]
        text = (
            f"{b['label']} (n = {b['n']}): median {short(b['median'])}, middle half "
            f"{short(b['q1'])} to {short(b['q3'])}"
        )
        if b["n_outliers"]:
            text += f", {b['n_outliers']} beyond the whiskers"
        parts.append(
            f'<g class="box c{tones[i]}"{tip(text)}>'
            f'<rect class="hit" x="0" y="{y - 2}" width="250" height="{row}"/>'
            f'<line x1="{a:.1f}" x2="{z:.1f}" y1="{y + 6}" y2="{y + 6}"/>'
            f'<rect x="{q1:.1f}" y="{y}" width="{max(q3 - q1, 1):.1f}" height="12" rx="2"/>'
            f'<line class="median" x1="{median:.1f}" x2="{median:.1f}" y1="{y}" y2="{y + 12}"/>'
        )
        parts += [f'<circle cx="{frame.sx(v):.1f}" cy="{y + 6}" r="1.6"/>' for v in b["outliers"]]
        parts.append("</g>")
    shown = ticks(low, high, 3)
    ends = (shown[0], shown[-1]) if len(shown) > 1 else (low, high)
    for value in dict.fromkeys(ends):
        at = min(max(frame.sx(value), 16), 234)
        parts.append(f'<text class="tick mid" x="{at:.1f}" y="{floor + 12}">{short(value)}</text>')
        parts.append(
            f'<line class="mark" x1="{frame.sx(value):.1f}" x2="{frame.sx(value):.1f}" '
            f'y1="{floor}" y2="{floor + 3}"/>'
        )
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
        body += (
            f'<text class="value end" x="{frame.width - 24:g}" y="{frame.height - 84:g}">'
            f"AUC {auc['value']:.2f}</text>"
            f'<text class="tick end" x="{frame.width - 24:g}" y="{frame.height - 66:g}">'
            f"{auc['level']:.0%} interval {auc['low']:.2f} to {auc['high']:.2f}</text>"
        )
    return frame.drawing(body, f"ROC curve for {found['label']}, averaged over folds")


def calibration_chart(found: Calibration) -> str:
    """Observed against predicted share, point size by count."""
    frame = Frame((0.0, 1.0), (0.0, 1.0))
    total = sum(found["count"]) or 1
    body = frame.axes(f"predicted probability of {found['label']}", "observed share")
    body += frame.segment(0, 0, 1, 1, "chance")
    body += frame.line(found["predicted"], found["observed"], "curve")
    for p, o, n in zip(found["predicted"], found["observed"], found["count"]):
        text = f"predicted {p:.2f}, observed {o:.2f} ({n} samples)"
        body += (
            f'<circle class="dot" cx="{frame.sx(p):.1f}" cy="{frame.sy(o):.1f}" '
            f'r="{4 + 6 * math.sqrt(n / total):.1f}"{tip(text)}/>'
        )
    return frame.drawing(body, f"calibration of the probability of {found['label']}")


def permutation_chart(found: Histogram) -> str:
    """The permutation distribution and the observed statistic."""
    edges, counts = found["edges"], found["counts"]
    frame = Frame((edges[0], edges[-1]), (0.0, max(counts) * 1.18 or 1.0))
    body = frame.axes("balanced accuracy (test statistic)", "shuffled labellings")
    for a, b, n in zip(edges, edges[1:], counts):
        if n:
            top = frame.sy(n)
            text = f"{n} of {found['n']} between {a:.2f} and {b:.2f}"
            body += (
                f'<rect class="bar quiet" x="{frame.sx(a) + 0.5:.1f}" y="{top:.1f}" '
                f'width="{frame.sx(b) - frame.sx(a) - 1:.1f}" '
                f'height="{frame.sy(0) - top:.1f}"{tip(text)}/>'
            )
    at = frame.sx(found["observed"])
    side, step = ("end", -7) if at > frame.width / 2 else ("start", 7)
    body += (
        f'<line class="observed" x1="{at:.1f}" x2="{at:.1f}" y1="{frame.top:g}" '
        f'y2="{frame.sy(0):.1f}"/>'
        f'<text class="value {side}" x="{at + step:.1f}" y="{frame.top + 14:g}">'
        f"true labels {found['observed']:.2f}</text>"
    )
    return frame.drawing(body, "permutation distribution of the test statistic")


# --------------------------------------------------------------------------- the samples


def scatter_chart(found: Scatter, tones: Sequence[int], *, diagonal: bool = False) -> str:
    """Samples as points; wrong predictions get a ring."""
    xs, ys = found["x"], found["y"]
    if diagonal:
        both = padded([*xs, *ys])
        frame = Frame(both, both, height=400)
    else:
        frame = Frame(padded(xs), padded(ys), height=340)
    body = frame.axes(found["x_title"], found["y_title"])
    if diagonal:
        body += frame.segment(both[0], both[0], both[1], both[1], "chance")
    for x, y, k, wrong, name in zip(xs, ys, found["label"], found["wrong"], found["name"]):
        tone = tones[k]
        text = f"{name}: {found['classes'][k]}{', predicted wrongly' if wrong else ''}"
        at = f'x="{frame.sx(x):.1f}" y="{frame.sy(y):.1f}"'
        if wrong:
            body += f'<circle class="ring" cx="{frame.sx(x):.1f}" cy="{frame.sy(y):.1f}" r="7"/>'
        body += f'<use href="#s{tone % len(SHAPES)}" class="pt c{tone}" {at}{tip(text)}/>'
    return frame.drawing(body, f"{found['x_title']} against {found['y_title']}")


# ------------------------------------------------------------------------------ the path


def path_charts(found: PathFigure) -> tuple[str, str]:
    """Inner cross-validation, and weights, along the path; a cursor marks one step."""
    steps = found["steps"]
    n = len(steps)
    known = all(s["accuracy"] is not None for s in steps)
    values = [(s["accuracy"] if known else s["score"]) or 0.0 for s in steps]
    errors = [(s["accuracy_error"] if known else s["score_error"]) or 0.0 for s in steps]
    low = [v - e for v, e in zip(values, errors)]
    high = [min(v + e, 1.0) if known else v + e for v, e in zip(values, errors)]
    xs = list(range(n))
    every = max(1, math.ceil(n / 7))
    labels = [(i, str(len(steps[i]["panel"]))) for i in range(0, n, every)]
    title = "features in the panel  (penalty falls →)"
    frame = Frame((-0.4, n - 0.6), padded([*low, *high], 0.1), height=300)
    name = "balanced accuracy, inner folds" if known else _score_title(found["score_name"])
    body = frame.axes(title, name, x_ticks=labels)
    body += frame.band(xs, low, high) + frame.line(xs, values, "curve")
    for i, value in enumerate(values):
        text = f"{len(steps[i]['panel'])} features: {value:.3f} ± {errors[i]:.3f}"
        kind = "dot chosen" if i == found["chosen"] else "dot"
        body += (
            f'<circle class="{kind}" cx="{frame.sx(i):.1f}" cy="{frame.sy(value):.1f}" '
            f'r="{5.5 if i == found["chosen"] else 3}"{tip(text)}/>'
        )
    score = frame.drawing(_cursor(frame, found["chosen"], n) + body, name)

    largest = max((max(row) for row in found["weights"]), default=1.0)
    frame = Frame((-0.4, n - 0.6), (0.0, largest * 1.06 or 1.0), height=300)
    body = frame.axes(title, "largest |weight|", x_ticks=labels)
    mine = set(steps[found["chosen"]]["panel"])
    order = sorted(range(len(found["features"])), key=lambda f: f in mine)
    for f in order:
        row = found["weights"][f]
        first = next(i for i, v in enumerate(row) if v > 0.0)
        span = range(max(first - 1, 0), n)
        kind = "thread mine" if f in mine else "thread"
        body += frame.line(span, [row[i] for i in span], kind).replace(
            "/>", f"{tip(found['features'][f])}/>"
        )
    return score, frame.drawing(_cursor(frame, found["chosen"], n) + body, "weights along the path")


def _score_title(name: str) -> str:
    return "minus balanced log loss" if name == "balanced_log_loss" else name.replace("_", " ")


def _cursor(frame: Frame, at: int, n: int) -> str:
    """A line that the slider moves; its positions are those of the steps."""
    places = " ".join(f"{frame.sx(i):.1f}" for i in range(n))
    x = f"{frame.sx(at):.1f}"
    return (
        f'<line class="cursor" data-places="{places}" x1="{x}" x2="{x}" '
        f'y1="{frame.top:g}" y2="{frame.height - frame.bottom:g}"/>'
    )


def weights_chart(found: WeightCurve, tone: int) -> str:
    """Sorted weights of one plane and their elbow."""
    values = found["weights"]
    n = len(values)
    frame = Frame((0.4, n + 0.6), (0.0, max(values, default=1.0) * 1.12 or 1.0), height=270)
    body = frame.axes(
        "features, heaviest first", "|weight|", [(v, short(v)) for v in ticks(1, n, 6) if v >= 1]
    )
    elbow = found["elbow"]
    width = max(2.0, min(14.0, 0.6 * (frame.sx(2) - frame.sx(1))))
    for i, value in enumerate(values):
        name = found["features"][i] if i < len(found["features"]) else "all others: zero"
        text = f"{name}: {value:.3f}" if value else name
        quiet = " quiet" if elbow is not None and i >= elbow else ""
        top = frame.sy(value)
        body += (
            f'<rect class="bar c{tone}{quiet}" x="{frame.sx(i + 1) - width / 2:.1f}" '
            f'y="{top:.1f}" width="{width:.1f}" height="{frame.sy(0) - top:.1f}" rx="1.5"'
            f"{tip(text)}/>"
        )
    if elbow is not None and elbow <= n:
        at = frame.sx(elbow + 0.5)
        side, step = ("end", -6) if at > frame.width * 0.6 else ("start", 6)
        body += (
            f'<line class="observed" x1="{at:.1f}" x2="{at:.1f}" y1="{frame.top:g}" '
            f'y2="{frame.sy(0):.1f}"/><text class="value {side}" x="{at + step:.1f}" '
            f'y="{frame.top + 14:g}">elbow after {elbow}</text>'
        )
    return frame.drawing(body, f"sorted weights of the plane of {found['label']}")


# ------------------------------------------------------------------------- the stability


def stability_chart(found: Sequence[StabilityBar], threshold: float | None = None) -> str:
    """Selection frequencies as horizontal bars, with those of the group behind them."""
    row, left, width = 22, 190, 440
    height = row * len(found) + 42
    frame = Frame((0.0, 1.0), (0.0, 1.0), width, height, left, 16, 4, 38)
    body = ""
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = frame.sx(value)
        body += (
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="2" y2="{height - 36}"/>'
            f'<text class="tick mid" x="{at:.1f}" y="{height - 20}">{value:.0%}</text>'
        )
    for i, bar in enumerate(found):
        y = row * i + 5
        group = bar["group_frequency"]
        text = f"{bar['feature']}: chosen in {bar['frequency']:.0%} of refits"
        if group is not None and group > bar["frequency"]:
            text += f", it or a substitute in {group:.0%}"
        quiet = "" if bar["in_panel"] else " quiet"
        body += f'<g class="lane{quiet}"{tip(text)}>'
        body += f'<rect class="hit" x="0" y="{y - 3}" width="{width}" height="{row}"/>'
        body += (
            f'<text class="name end" x="{left - 8}" y="{y + 11}">{escape(cut(bar["feature"]))}</text>'
        )
        if group is not None:
            span = frame.sx(group) - left
            body += f'<rect class="bar group" x="{left}" y="{y}" width="{span:.1f}" height="14" rx="2"/>'
        span = max(frame.sx(bar["frequency"]) - left, 1)
        body += f'<rect class="bar" x="{left}" y="{y}" width="{span:.1f}" height="14" rx="2"/></g>'
    if threshold is not None:
        at = frame.sx(threshold)
        body += f'<line class="observed" x1="{at:.1f}" x2="{at:.1f}" y1="2" y2="{height - 36}"/>'
    body += f'<text class="title mid" x="{(left + width - 16) / 2:g}" y="{height - 4}">share of refits that choose the feature</text>'
    return frame.drawing(body, "selection frequency of each feature", "chart lanes")
