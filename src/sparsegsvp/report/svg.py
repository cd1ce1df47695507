"""Marks on paper: the few SVG elements that the drawings are made of, as text.

Colours are classes of the page's style sheet, so that one drawing serves light, dark and
print. Every text goes through `html.escape` where it is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

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


def text(x: float, y: float, content: str, kind: str) -> str:
    """A text."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(content)}</text>'


def rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    *,
    radius: float = 0,
    extra: str = "",
) -> str:
    """A rectangle, never narrower than a hairline."""
    size = f'width="{max(width, 0.5):.1f}" height="{max(height, 0):.1f}"'
    round_ = f' rx="{radius:g}"' if radius else ""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}{round_}{extra}/>'


def circle(x: float, y: float, radius: float, kind: str, extra: str = "") -> str:
    """A circle."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"{extra}/>'


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

    def line(self, xs: Iterable[float], ys: Iterable[float], kind: str, extra: str = "") -> str:
        """A polyline."""
        points = " ".join(f"{self.sx(x):.1f},{self.sy(y):.1f}" for x, y in zip(xs, ys))
        return f'<polyline class="{kind}" points="{points}"{extra}/>'

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
        """An area between two curves."""
        there = [f"{self.sx(x):.1f},{self.sy(y):.1f}" for x, y in zip(xs, high)]
        back = [f"{self.sx(x):.1f},{self.sy(y):.1f}" for x, y in zip(xs, low)]
        return f'<polygon class="band" points="{" ".join(there + back[::-1])}"/>'

    def segment(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
        """A straight line between two points of the data."""
        return rule(self.sx(x1), self.sy(y1), self.sx(x2), self.sy(y2), kind)

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
        end = self.width - self.right
        parts = []
        for value, label in ys:
            at = self.sy(value)
            parts += [
                rule(self.left, at, end, at, "grid"),
                text(self.left - 7, at + 4, label, "tick end"),
            ]
        for value, label in xs:
            at = self.sx(value)
            parts += [
                rule(at, floor, at, floor + 4, "mark"),
                text(at, floor + 17, label, "tick mid"),
            ]
        up = (floor + ceiling) / 2
        parts += [
            rule(self.left, floor, end, floor, "axis"),
            text((self.left + end) / 2, self.height - 8, cut(x_title, 60), "title mid"),
            f'<g transform="rotate(-90 13 {up:g})">',
            text(13, up, cut(y_title, 44), "title mid"),
            "</g>",
        ]
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
