"""Charts: two axes and what is drawn between them, as SVG.

One renderer serves the page and files. Elements carry classes; ``templates/chart.css`` says how a
class looks, in the colours of ``palette.toml``. The page has these rules once and gives the colours
a light and a dark side; a file carries the rules inside, with the light colours written out.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape as html_escape
from importlib import resources
from itertools import accumulate, chain, repeat, zip_longest
from typing import Any

from ..io.text import looks_numeric

N_TONES = 8

#: Outlines of the classes' points around their centre, so that colour is not the only difference.
SHAPES = (
    "m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
    "m0-4.6l4.6 4.6l-4.6 4.6l-4.6-4.6z",
    "m0-4.6l4.3 8h-8.6z",
    "m-3.3-3.3h6.6v6.6h-6.6z",
    "m0 4.6l4.3-8h-8.6z",
    "m-1.4-4.2h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8z",
)
_HEADER = 22.0  # pixels of a title or of a line of the legend
# Characters that XML cannot hold.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Escape a text for HTML and XML."""
    return html_escape(_UNWRITABLE.sub("\ufffd", str(text)))


@cache
def asset(name: str) -> str:
    """The text of a file among the templates."""
    file = resources.files(__package__) / "templates" / name
    return file.read_text(encoding="utf-8").strip("\n")


@cache
def toml_asset(name: str) -> dict[str, Any]:
    """The values of a TOML file among the templates."""
    return tomllib.loads(asset(name))


def palette_css() -> str:
    """The palette as CSS variables: light, dark by the system or by choice, light on paper."""
    pairs = toml_asset("palette.toml").items()
    light, dark = ("".join(f"--{name}:{pair[side]};" for name, pair in pairs) for side in (0, 1))
    return (
        f":root{{{light}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f':root[data-theme="dark"]{{{dark}}}\n'
        f"@media print{{:root:root:root{{{light}}}}}"
    )


@cache
def file_css() -> str:
    """The rules of charts with the light colours written out, for files."""
    colours = toml_asset("palette.toml")
    return re.sub(r"var\(--([\w-]+)\)", lambda name: colours[name[1]][0], asset("chart.css"))


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers inside a range."""
    span = high - low
    if not span > 0.0:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= span / about * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.10g}") for i in range(first, last + 1)]


def short(value: float) -> str:
    """Write a number in few characters."""
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-3:
        return f"{value:.2g}"
    return f"{value:,.0f}" if size >= 1000 else f"{float(f'{value:.3g}'):g}"


def cut(text: str, most: int = 26) -> str:
    """Shorten a name to fit beside a drawing."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def names_room(names: Iterable[str]) -> float:
    """Pixels that names to the left of a drawing take."""
    return 24 + 6.7 * max((len(cut(name)) for name in names), default=0)


def padded(values: Iterable[float], share: float = 0.06) -> tuple[float, float]:
    """The range of the finite values with some air around it."""
    known = [v for v in values if math.isfinite(v)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    pad = share * (high - low) or max(abs(high) * share, 1e-9)
    return low - pad, high + pad


def element(name: str, kind: str, attributes: str, tip: str = "", inner: str = "") -> str:
    """One SVG element; a tip becomes its ``<title>``."""
    inner += f"<title>{escape(tip)}</title>" if tip else ""
    return f'<{name} class="{kind}" {attributes}' + (f">{inner}</{name}>" if inner else "/>")


def _text(x: float, y: float, content: str, kind: str, attributes: str = "") -> str:
    if not content:
        return ""
    return element("text", kind, f'x="{x:.1f}" y="{y:.1f}"{attributes}', inner=escape(content))


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, more: str = "") -> str:
    return element("line", kind, f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{more}')


@dataclass(frozen=True)
class Axis:
    """A range from left to right or from below, with its title and ticks.

    ``ticks`` are (value, label) or (value, label, classes), by default round numbers; ``grid``
    draws a line across the picture at each; ``slanted`` writes names below an abscissa aslant.
    """

    low: float
    high: float
    title: str = ""
    ticks: Sequence[tuple[Any, ...]] | None = None
    grid: bool = False
    log: bool = False
    slanted: bool = False

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high end."""
        low, high = self.low, self.high
        if self.log:
            low, high = math.log10(low), math.log10(high)
            value = math.log10(value) if value > 0 else math.nan
        return (value - low) / ((high - low) or 1.0)

    def labelled(self) -> list[tuple[float, str, str]]:
        """Ticks with their labels and the classes of these."""
        if self.ticks is not None:
            return [(t[0], t[1], t[2] if len(t) > 2 else "tick") for t in self.ticks]
        low, high = sorted((self.low, self.high))
        if not self.log:
            return [(v, short(v), "tick") for v in ticks(low, high)]
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / 6))
        raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
        return [
            (10.0**p, f"10{str(p).translate(raised)}", "tick") for p in range(first, last + 1, step)
        ]


class Drawing:
    """Charts in rows with one legend, as SVG and CSV; described for those who cannot see."""

    rows: Sequence[Sequence[Chart]]
    description: str
    css: str

    def _layout(self) -> tuple[float, float, str]:
        """Width, height and content."""
        columns = zip_longest(*self.rows)
        widths = [max(chart.width for chart in column if chart) for column in columns]
        legend, top = self._legend(sum(widths))
        parts = [legend]
        for row in self.rows:
            top += _HEADER if any(chart.title for chart in row) else 0.0
            for left, chart in zip(accumulate(widths, initial=0.0), row):
                title = _text(max(chart.left, 8), -6, chart.title, "head start")
                parts.append(f'<g transform="translate({left:g} {top:g})">')
                parts.append(f"{title}{chart.body()}</g>")
            top += max(chart.height for chart in row)
        return sum(widths), top, "".join(parts)

    def _legend(self, width: float) -> tuple[str, float]:
        """The keys of all labels in lines from the top, and the height they take."""
        keys: dict[str, str] = {}
        for chart in chain(*self.rows):
            keys |= {label: key for label, key in chart.keys.items() if label not in keys}
        left = max(self.rows[0][0].left, 8)
        parts, x, y = [], left, _HEADER / 2
        for label, key in keys.items():
            needed = 40 + 6.6 * len(cut(label, 40))
            if x + needed > width and x > left:
                x, y = left, y + 0.8 * _HEADER
            parts.append(f'<g transform="translate({x:g} {y:g})">{key}</g>')
            parts.append(_text(x + 24, y + 4, cut(label, 40), "name start"))
            x += needed
        return "".join(parts), y + _HEADER / 2 if keys else 0.0

    def svg(self) -> str:
        """SVG that is complete in itself, light."""
        width, height, content = self._layout()
        size = f'width="{width:g}" height="{height:g}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{self.css}" '
            f'viewBox="0 0 {width:g} {height:g}" {size} role="img" '
            f'aria-label="{escape(self.description)}"><style>{file_css()}</style>'
            f'<rect {size} fill="#ffffff"/>{content}</svg>'
        )

    def __html__(self) -> str:
        """The same for a page that has the rules already; the keyboard reaches what has a tip."""
        width, height, content = self._layout()
        focus = ' tabindex="0"' if "<title>" in content else ""
        return (
            f'<svg class="{self.css}" viewBox="0 0 {width:g} {height:g}" role="img" '
            f'aria-label="{escape(self.description)}"{focus}>{content}</svg>'
        )

    _repr_svg_ = svg

    def csv(self) -> str:
        """The numbers behind the charts as CSV; text in it cannot be run by a spreadsheet."""
        tables = [chart.table for chart in chain(*self.rows) if chart.table]
        header = list(dict.fromkeys(name for table in tables for name in table))
        rows: list[list[Any]] = []
        for table in tables:
            columns = [table[name] if name in table else repeat(None) for name in header]
            rows += [[_rounded(cell) for cell in row] for row in zip(*columns)]
        return csv_text(header, rows)


@dataclass
class Sheet(Drawing):
    """Several charts."""

    rows: Sequence[Sequence[Chart]]
    description: str
    css: str = "chart"


@dataclass
class Chart(Drawing):
    """A picture with two axes; sizes and margins are in pixels.

    What is drawn is given in data coordinates. ``table`` are the numbers behind the picture,
    columns by their names.

    Examples
    --------
    >>> from sparsegsvp.report.charts import Axis, Chart
    >>> chart = Chart(Axis(0, 2, "time"), Axis(0, 1, "dose", grid=True), "dose by time")
    >>> chart.line([0, 1, 2], [0.1, 0.8, 0.4], "curve")
    >>> chart.text(1, 0.8, "peak", "value mid", dy=-8)
    >>> chart.svg()[:60]
    '<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBo'
    """

    x: Axis
    y: Axis
    description: str
    width: float = 440.0
    height: float = 320.0
    left: float = 50.0
    right: float = 14.0
    top: float = 14.0
    bottom: float = 46.0
    title: str = ""
    css: str = "chart"
    table: dict[str, Any] = field(default_factory=dict, repr=False)
    parts: list[str] = field(default_factory=list, repr=False)
    keys: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.rows = [[self]]

    def sx(self, value: float) -> float:
        """Position of an abscissa, in pixels; an infinite one lies on the picture's edge."""
        if math.isinf(value):
            return self.width if value > 0 else 0.0
        return self.left + (self.width - self.left - self.right) * self.x.share(value)

    def sy(self, value: float) -> float:
        """Position of an ordinate, in pixels from the top."""
        floor = self.height - self.bottom
        return floor - (floor - self.top) * self.y.share(value)

    def line(
        self,
        x: Sequence[float],
        y: Sequence[float],
        kind: str,
        *,
        tip: str = "",
        label: str = "",
        area: bool = False,
        attributes: str = "",
    ) -> None:
        """Add a line through points, which a NaN breaks, or the area it encloses."""
        path, pen = "", "M"
        for a, b in zip(map(self.sx, x), map(self.sy, y)):
            broken = math.isnan(a + b)
            path += "" if broken else f"{pen}{a:.1f} {b:.1f}"
            pen = "M" if broken else "L"
        if path:
            shape = f'd="{path}{"Z" if area else ""}"{attributes}'
            self.parts.append(element("path", kind, shape, tip))
        if label:
            self.keys.setdefault(label, _line(0, 0, 18, 0, kind))

    def rule(self, kind: str, *, x: float | None = None, y: float | None = None) -> None:
        """Add a straight line across the picture, at an x or at a y."""
        if x is not None:
            self.line([x, x], [self.y.low, self.y.high], kind)
        if y is not None:
            self.line([self.x.low, self.x.high], [y, y], kind)

    def whiskers(
        self, x: Sequence[float], low: Sequence[float], high: Sequence[float], kind: str
    ) -> None:
        """Add a vertical line at each x, from low to high."""
        ends = [v for a, b in zip(low, high) for v in (a, b, math.nan)]
        self.line([v for at in x for v in (at, at, math.nan)], ends, kind)

    def points(
        self,
        x: Sequence[float],
        y: Sequence[float],
        kind: str,
        *,
        radius: float | Sequence[float] = 3.0,
        shape: int | None = None,
        tips: Sequence[str] = (),
        label: str = "",
    ) -> None:
        """Add circles, or one of `SHAPES`; without tips all are one element, without any no key."""
        radii = [radius] * len(x) if isinstance(radius, (int, float)) else list(radius)
        dots = [
            f"M{self.sx(a):.1f} {self.sy(b):.1f}{_outline(r, shape)}"
            for a, b, r in zip(x, y, radii)
        ]
        if tips:
            self.parts += [element("path", kind, f'd="{d}"', tip) for d, tip in zip(dots, tips)]
        elif dots:
            self.parts.append(element("path", kind, f'd="{"".join(dots)}"'))
        if label and dots:
            key = f"M9 0{_outline(min([*radii, 5.0]), shape)}"
            self.keys.setdefault(label, element("path", kind, f'd="{key}"'))

    def rects(
        self,
        corners: Sequence[tuple[float, float, float, float]],
        kind: str,
        *,
        radius: float = 0.0,
        tips: Sequence[str] = (),
        label: str = "",
        attributes: str = "",
    ) -> None:
        """Add rectangles ``(x0, y0, x1, y1)``; plain ones are one element, however many."""
        places = []
        for x0, y0, x1, y1 in corners:
            left, right = sorted((self.sx(x0), self.sx(x1)))
            top, bottom = sorted((self.sy(y0), self.sy(y1)))
            places.append((left, top, max(right - left, 0.8), bottom - top))
        if tips or radius or attributes:
            shape = 'x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"'
            shape += (f' rx="{radius:g}"' if radius else "") + attributes
            for place, tip in zip(places, tips or repeat("")):
                self.parts.append(element("rect", kind, shape.format(*place), tip))
        elif places:
            path = "".join(f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h{-w:.1f}z" for x, y, w, h in places)
            self.parts.append(element("path", kind, f'd="{path}"'))
        if label:
            key = 'x="4" y="-5" width="11" height="10"'
            self.keys.setdefault(label, element("rect", kind, key))

    def text(
        self, x: float, y: float, content: str, kind: str, dx: float = 0.0, dy: float = 0.0
    ) -> None:
        """Add a text at a point, moved by pixels; its classes say how it is anchored."""
        self.parts.append(_text(self.sx(x) + dx, self.sy(y) + dy, content, kind))

    def body(self) -> str:
        """Axes and what is drawn, without the element around them."""
        floor, end = self.height - self.bottom, self.width - self.right
        parts, across = [], self.x.labelled()
        for value, label, kind in self.y.labelled():
            at = self.sy(value)
            if self.y.grid:
                parts.append(_line(self.left, at, end, at, "grid"))
            parts.append(_text(self.left - 7, at + 4, cut(label), f"{kind} end"))
        for value, label, kind in across:
            at = self.sx(value)
            if self.x.grid:
                parts.append(_line(at, self.top - 2, at, floor, "grid"))
            else:
                parts.append(_line(at, floor, at, floor + 4, "mark"))
            if self.x.slanted:
                turned = f' transform="rotate(-55 {at:.1f} {floor + 12:.1f})"'
                parts.append(_text(at + 4, floor + 12, cut(label), f"{kind} end", turned))
            else:
                parts.append(_text(at, floor + 17, label, f"{kind} mid"))
        if across and not self.x.grid:
            parts.append(_line(self.left, floor, end, floor, "axis"))
        across_title = cut(self.x.title, int(self.width / 6.4))
        parts.append(_text((self.left + end) / 2, self.height - 8, across_title, "title mid"))
        at = (self.top + floor) / 2
        turned = f' transform="rotate(-90 13 {at:g})"'
        parts.append(_text(13, at, cut(self.y.title, int(self.height / 6.4)), "title mid", turned))
        return "".join(parts) + "".join(self.parts)


def _outline(radius: float, shape: int | None) -> str:
    """The outline of a point around the place where the pen is."""
    if shape is not None:
        return SHAPES[shape % len(SHAPES)]
    r, d = f"{radius:g}", f"{2 * radius:g}"
    return f"m-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0-{d} 0z"


def _rounded(cell: Any) -> Any:
    """A cell with six digits, which are more than a picture shows."""
    return float(f"{cell:.6g}") if isinstance(cell, float) else cell


# At the start, or where another locale or another line begins a cell.
_FORMULA = re.compile("(^|[;\t\r\n])([ \u00a0]*[-=+@＝＋－＠][^;\t\r\n]*)")


def harmless(text: str) -> str:
    """Put an apostrophe before all that a spreadsheet would run as a formula; -1 stays."""
    safe = _FORMULA.sub(lambda m: m[0] if looks_numeric(m[2]) else f"{m[1]}'{m[2]}", text)
    return f"'{safe}" if text.lstrip(" \u00a0").startswith(("\t", "\r", "\n")) else safe


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as CSV: text made harmless, numbers so that they read back exactly."""
    return "".join(",".join(map(_csv_cell, line)) + "\n" for line in (header, *rows))


def _csv_cell(cell: Any) -> str:
    if not isinstance(cell, str):
        return "" if cell is None else repr(cell.item() if hasattr(cell, "item") else cell)
    text = harmless(cell)
    # Python's writer leaves a lone carriage return unquoted, and its reader then fails.
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',;"\t\r\n') else text
