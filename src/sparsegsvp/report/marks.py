"""Marks of a chart, and how they look: lines and areas, points, rectangles, texts.

How a kind of mark looks is said once, by class, in ``templates/chart.css``: the palette, light and
dark, and the rules for charts. A page includes that file; SVG that stands alone and matplotlib read
its rules through `look`. A new mark is a class with the methods of `Mark`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape as html_escape
from importlib import resources
from typing import Any

import numpy as np

#: Shapes of the classes, so that colour is not the only difference, and matplotlib's names.
SHAPES = (
    "M-3.6 0A3.6 3.6 0 1 0 3.6 0A3.6 3.6 0 1 0 -3.6 0Z",
    "M0 -4.6L4.6 0L0 4.6L-4.6 0Z",
    "M0 -4.6L4.3 3.4L-4.3 3.4Z",
    "M-3.3 -3.3H3.3V3.3H-3.3Z",
    "M0 4.6L4.3 -3.4L-4.3 -3.4Z",
    "M-1.4 -4.2H1.4V-1.4H4.2V1.4H1.4V4.2H-1.4V1.4H-4.2V-1.4H-1.4Z",
)
_MARKERS = "oD^svP"
_MANY = 100  # marks of one kind that are drawn as one
# Characters that XML, and so a drawing in a file of its own, cannot hold.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
POINT = 0.75  # points in a pixel of 1/96 inch: matplotlib measures in points


def escape(text: str) -> str:
    """Write a text so that neither HTML nor XML takes any of it for its own."""
    return html_escape(_UNWRITABLE.sub("\ufffd", text))


# ------------------------------------------------------------------------------- numbers


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover a range."""
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
    """Write a number in few characters."""
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-3:
        return f"{value:.2g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def power(value: float) -> str:
    """Write a power of ten with its exponent raised."""
    raised = str.maketrans("-.0123456789", "⁻·⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "10" + f"{math.log10(value):.3g}".translate(raised)


def cut(text: str, most: int = 26) -> str:
    """Shorten a name to fit beside a drawing."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def names_room(names: Iterable[str]) -> float:
    """The pixels that names to the left of a drawing take."""
    return 24 + 6.7 * max((len(cut(name)) for name in names), default=0)


def padded(values: Iterable[float], share: float = 0.06) -> tuple[float, float]:
    """The range of the finite values with some air around it."""
    known = [v for v in values if math.isfinite(v)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    pad = share * (high - low) or max(abs(high) * share, 1e-9)
    return low - pad, high + pad


# --------------------------------------------------------------------------------- style


@cache
def asset(name: str) -> str:
    """The text of a file among the templates: a style sheet or a script."""
    file = resources.files(__package__) / "templates" / name
    return file.read_text(encoding="utf-8").strip("\n")


@cache
def _rules() -> tuple[dict[str, str], list[tuple[frozenset[str], dict[str, str]]]]:
    """The light palette, and the properties that each set of classes has, weakest first."""
    palette: dict[str, str] = {}
    rules = []
    plain = re.sub(r"/\*.*?\*/", "", asset("chart.css"), flags=re.DOTALL)
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", plain):
        pairs = (part.split(":", 1) for part in body.split(";") if part.strip())
        values = {name.strip(): value.strip() for name, value in pairs}
        for selector in (s.strip() for s in selectors.split(",")):
            if selector == ":root":
                palette |= values
            elif ":" not in selector:
                classes = selector.removeprefix("svg ").lstrip(".").split(".")
                rules.append((frozenset(classes), values))
    return palette, sorted(rules, key=lambda rule: len(rule[0]))


@cache
def look(kind: str) -> Mapping[str, str]:
    """The CSS properties of some classes (and of an element's name) in the light palette."""
    palette, rules = _rules()
    mine: dict[str, str] = {}
    for classes, values in rules:
        if classes <= set(kind.split()):
            mine |= values
    known = palette | {name: value for name, value in mine.items() if name.startswith("--")}

    def value_of(text: str) -> str:
        found = re.fullmatch(r"var\((--[\w-]+)(?:, *(.+))?\)", text)
        if found is None:
            return text
        return value_of(known.get(found[1]) or found[2])

    return {name: value_of(text) for name, text in mine.items() if not name.startswith("--")}


# A function that writes one SVG element: name, classes, geometry, then tooltip, link, content.
Put = Callable[..., str]


def on_page(
    name: str, kind: str, geometry: str, tip: str = "", link: int | None = None, inner: str = ""
) -> str:
    """Write an element that the style sheet and the script of a page find."""
    geometry += "" if link is None else f' data-link="{link}"'
    geometry += f' data-tip="{escape(tip)}"' if tip else ""
    return f'<{name} class="{kind}" {geometry}' + (f">{inner}</{name}>" if inner else "/>")


def in_file(
    name: str, kind: str, geometry: str, tip: str = "", link: int | None = None, inner: str = ""
) -> str:
    """Write an element that looks right alone; a style sheet still outweighs its attributes."""
    found = {k: v for k, v in look(f"{name} {kind}").items() if k != "font-family"}
    painted = " ".join(f'{k}="{escape(v)}"' for k, v in found.items())
    title = f"<title>{escape(tip)}</title>" if tip else ""
    return on_page(name, kind, f"{geometry} {painted}", inner=title + inner)


def line_element(x1: float, y1: float, x2: float, y2: float, kind: str, put: Put) -> str:
    """A straight line, in pixels."""
    return put("line", kind, f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"')


def text_element(x: float, y: float, content: str, kind: str, put: Put) -> str:
    """A text, in pixels; nothing if it is empty."""
    return put("text", kind, f'x="{x:.1f}" y="{y:.1f}"', inner=escape(content)) if content else ""


def font(kind: str) -> dict[str, Any]:
    """What matplotlib calls the properties of a text."""
    found = look(f"text {kind}")
    size = POINT * float(found["font-size"].removesuffix("px"))
    weight = "bold" if "font-weight" in found else "normal"
    return {"color": found["fill"], "fontsize": size, "fontweight": weight}


def _opacity(found: Mapping[str, str]) -> float:
    return float(found.get("opacity", 1)) * float(found.get("fill-opacity", 1))


# --------------------------------------------------------------------------------- marks


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something drawn in a chart, in data coordinates.

    ``tips`` are tooltips, one for each part or one for all, ``link`` connects it with a row of
    a page's table, ``label`` names it in the legend.
    """

    tips: Sequence[str] = ()
    link: int | None = None
    label: str = ""

    def svg(self, chart: Any, put: Put) -> str:
        """SVG; ``chart`` has ``sx`` and ``sy``, which turn data into pixels."""
        raise NotImplementedError

    def draw(self, ax: Any) -> None:
        """Draw on matplotlib axes."""
        raise NotImplementedError

    def key(self, x: float, y: float, put: Put) -> str:
        """SVG of the key in a legend, 18 pixels wide."""
        raise NotImplementedError


@dataclass(frozen=True)
class Line(Mark):
    """A line through points, which a NaN breaks, or the area it encloses.

    ``places`` are the abscissae to which a page's script may move a vertical line.
    """

    x: Sequence[float]
    y: Sequence[float]
    kind: str
    area: bool = False
    places: Sequence[float] = ()

    def svg(self, chart: Any, put: Put) -> str:
        points = [(chart.sx(x), chart.sy(y)) for x, y in zip(self.x, self.y)]
        tip = "".join(self.tips[:1])
        if len(points) == 2:
            (x1, y1), (x2, y2) = points
            shape = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
            places = " ".join(f"{chart.sx(v):.1f}" for v in self.places)
            shape += f' data-places="{places}"' if places else ""
            return put("line", self.kind, shape, tip, self.link)
        path, pen = "", "M"
        for x, y in points:
            broken = math.isnan(x + y)
            path += "" if broken else f"{pen}{x:.1f} {y:.1f}"
            pen = "M" if broken else "L"
        if not path:
            return ""
        return put("path", self.kind, f'd="{path}{"Z" if self.area else ""}"', tip, self.link)

    def draw(self, ax: Any) -> None:
        found = look(self.kind)
        if self.area:
            ax.fill(self.x, self.y, color=found["fill"], alpha=_opacity(found), lw=0)
            return
        width = POINT * float(found.get("stroke-width", 1))
        dash = [POINT * float(v) / width for v in found.get("stroke-dasharray", "").split()]
        ax.plot(
            self.x, self.y, color=found["stroke"], lw=width, ls=(0, dash) if dash else "-",
            alpha=_opacity(found), label=self.label or None,
        )  # fmt: skip

    def key(self, x: float, y: float, put: Put) -> str:
        return line_element(x, y, x + 18, y, self.kind, put)


@dataclass(frozen=True)
class Points(Mark):
    """Circles, or one of `SHAPES`; ``radius`` in pixels, one for all or one each."""

    x: Sequence[float]
    y: Sequence[float]
    kind: str
    radius: float | Sequence[float] = 3.0
    shape: int | None = None

    def _radii(self) -> list[float]:
        return np.broadcast_to(self.radius, len(self.x)).tolist()

    def svg(self, chart: Any, put: Put) -> str:
        if not self.tips and self.shape is None and len(self.x) > _MANY:  # one element for all
            ring = "M{:.1f} {:.1f}a{r:g} {r:g} 0 1 0 {d:g} 0a{r:g} {r:g} 0 1 0 -{d:g} 0"
            places = zip(self.x, self.y, self._radii())
            dots = [ring.format(chart.sx(x) - r, chart.sy(y), r=r, d=2 * r) for x, y, r in places]
            return put("path", self.kind, f'd="{"".join(dots)}"', link=self.link)
        tips = self.tips or [""] * len(self.x)
        return "".join(
            self._one(chart.sx(x), chart.sy(y), r, tip, put)
            for x, y, r, tip in zip(self.x, self.y, self._radii(), tips)
        )

    def _one(self, x: float, y: float, radius: float, tip: str, put: Put) -> str:
        if self.shape is None:
            at = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"'
            return put("circle", self.kind, at, tip, self.link)
        shape = self.shape % len(SHAPES)
        if put is on_page:  # the page defines each shape once
            at = f'href="#s{shape}" x="{x:.1f}" y="{y:.1f}"'
            return put("use", self.kind, at, tip, self.link)
        at = f'd="{SHAPES[shape]}" transform="translate({x:.1f} {y:.1f})"'
        return put("path", self.kind, at, tip, self.link)

    def draw(self, ax: Any) -> None:
        found = look(self.kind)
        ax.scatter(
            self.x, self.y, s=[(2.0 * POINT * r) ** 2 for r in self._radii()],
            marker=_MARKERS[(self.shape or 0) % len(_MARKERS)], facecolors=found["fill"],
            edgecolors=found.get("stroke", "none"), alpha=_opacity(found), zorder=3,
            linewidths=POINT * float(found.get("stroke-width", 0)), label=self.label or None,
        )  # fmt: skip

    def key(self, x: float, y: float, put: Put) -> str:
        return self._one(x + 9, y, min([*self._radii(), 5.0]), "", put)


@dataclass(frozen=True)
class Rects(Mark):
    """Rectangles ``(x0, y0, x1, y1)``; an infinite corner lies on the picture's edge.

    Without tooltips and without ``radius`` they are one element, however many.
    """

    corners: Sequence[tuple[float, float, float, float]]
    kind: str
    radius: float = 1.0

    def svg(self, chart: Any, put: Put) -> str:
        places = []
        for x0, y0, x1, y1 in self.corners:
            left, right = sorted((chart.sx(x0), chart.sx(x1)))
            top, bottom = sorted((chart.sy(y0), chart.sy(y1)))
            places.append((left, top, max(right - left, 0.8), bottom - top))
        if not self.tips and not self.radius:
            path = "".join(f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h{-w:.1f}z" for x, y, w, h in places)
            return put("path", self.kind, f'd="{path}"')
        shape = 'x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"'
        shape += f' rx="{self.radius:g}"' if self.radius else ""
        tips = self.tips or [""] * len(places)
        return "".join(
            put("rect", self.kind, shape.format(*place), tip) for place, tip in zip(places, tips)
        )

    def draw(self, ax: Any) -> None:
        from matplotlib.patches import Rectangle

        found = look(self.kind)
        if found["fill"] == "none":  # there for the pointer only
            return
        if len(self.corners) > _MANY:
            from matplotlib.collections import PolyCollection

            boxes = [[(a, b), (c, b), (c, d), (a, d)] for a, b, c, d in self.corners]
            many = PolyCollection(boxes, alpha=_opacity(found), label=self.label or None)
            many.set(facecolor=found["fill"], edgecolor=found.get("stroke", "none"))
            ax.add_collection(many, autolim=False)
            return
        for i, (x0, y0, x1, y1) in enumerate(self.corners):
            part = Rectangle((x0, y0), x1 - x0, y1 - y0, label=None if i else self.label or None)
            part.set(fc=found["fill"], ec=found.get("stroke", "none"), alpha=_opacity(found))
            ax.add_patch(part)

    def key(self, x: float, y: float, put: Put) -> str:
        return put("rect", self.kind, f'x="{x + 4:.1f}" y="{y - 5:.1f}" width="11" height="10"')


@dataclass(frozen=True)
class Text(Mark):
    """A text at a point, moved by pixels; its classes say how it is anchored."""

    x: float
    y: float
    content: str
    kind: str
    dx: float = 0.0
    dy: float = 0.0

    def svg(self, chart: Any, put: Put) -> str:
        x, y = chart.sx(self.x) + self.dx, chart.sy(self.y) + self.dy
        return text_element(x, y, self.content, self.kind, put)

    def draw(self, ax: Any) -> None:
        side = look(self.kind).get("text-anchor", "start")
        ax.annotate(
            self.content, (self.x, self.y), (POINT * self.dx, -POINT * self.dy),
            textcoords="offset points", va="baseline", **font(self.kind),
            ha={"middle": "center", "end": "right", "start": "left"}[side],
        )  # fmt: skip
