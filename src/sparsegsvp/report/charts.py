"""Charts: two axes and marks in data coordinates, shown wherever they are needed.

A drawing function makes a `Chart` from computed numbers, and the chart shows itself:

==========================  ===============================================================
``chart.svg()``             for a page with ``chart.css``: classes, tooltips
``chart`` in a notebook     SVG complete in itself, with title and legend
``chart.save("x.svg")``     the same, in a file; nothing else is needed
``chart.save("x.png")``     with matplotlib; PDF and its other formats likewise
``chart.draw(ax)``          on matplotlib axes, to be worked on
``chart.csv()``             its numbers, for another program
==========================  ===============================================================

`ChartSheet` puts several charts side by side.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat, zip_longest
from pathlib import Path
from typing import Any

from ..io import csv_text
from .marks import (
    POINT,
    Line,
    Mark,
    Points,
    Put,
    Rects,
    Text,
    cut,
    escape,
    font,
    in_file,
    line_element,
    look,
    on_page,
    power,
    short,
    text_element,
    ticks,
)

_HEADER = 22.0  # pixels for a title or a line of the legend


@dataclass(frozen=True)
class Axis:
    """A range from left to right or from below, with its title and ticks.

    ``ticks`` are (value, label) or (value, label, classes), by default round numbers; ``grid``
    draws a line across the picture at each; ``slanted`` writes names below an abscissa aslant;
    ``kind`` are the classes of the title.
    """

    low: float
    high: float
    title: str = ""
    ticks: Sequence[tuple[float, str] | tuple[float, str, str]] | None = None
    grid: bool = False
    log: bool = False
    slanted: bool = False
    kind: str = "title"

    def share(self, value: float) -> float:
        """Where a value lies, from 0 at ``low`` to 1 at ``high``."""
        low, high = self.low, self.high
        if self.log:
            low, high = math.log10(low), math.log10(high)
            value = math.log10(value) if value > 0 else math.nan
        return (value - low) / ((high - low) or 1.0)

    def labelled(self) -> list[tuple[float, str, str]]:
        """Ticks with their labels and the classes of these."""
        if self.ticks is not None:
            return [(tick[0], tick[1], tick[2] if len(tick) > 2 else "tick") for tick in self.ticks]
        low, high = sorted((self.low, self.high))
        if not self.log:
            return [(v, short(v), "tick") for v in ticks(low, high)]
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / 6))
        return [(10.0**p, power(10.0**p), "tick") for p in range(first, last + 1, step)]


@dataclass
class Chart:
    """A picture with two axes; sizes and margins are in pixels.

    ``table`` are the numbers behind it, columns by their names.

    Examples
    --------
    >>> from sparsegsvp.report.charts import Axis, Chart
    >>> chart = Chart(Axis(0, 2, "time"), Axis(0, 1, "dose", grid=True), "dose by time")
    >>> chart.line([0, 1, 2], [0.1, 0.8, 0.4], "curve")
    >>> chart.text(1, 0.8, "peak", "value mid", dy=-8)
    >>> chart.svg()[:44]
    '<svg class="chart" viewBox="0 0 440 320" rol'
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
    marks: list[Mark] = field(default_factory=list, repr=False)
    table: dict[str, Sequence[Any]] = field(default_factory=dict, repr=False)

    def line(self, x: Sequence[float], y: Sequence[float], kind: str, **more: Any) -> None:
        """Add a `Line`."""
        self.marks.append(Line(x, y, kind, **more))

    def rule(self, kind: str, *, x: float | None = None, y: float | None = None) -> None:
        """Add a straight line across the picture, at an x or at a y."""
        if x is not None:
            self.line([x, x], [self.y.low, self.y.high], kind)
        if y is not None:
            self.line([self.x.low, self.x.high], [y, y], kind)

    def band(self, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
        """Add the area between two curves."""
        self.line([*x, *x[::-1]], [*high, *low[::-1]], "band", area=True)

    def whiskers(
        self, x: Sequence[float], low: Sequence[float], high: Sequence[float], kind: str
    ) -> None:
        """Add a vertical line at each x, from low to high."""
        ends = [v for a, b in zip(low, high) for v in (a, b, math.nan)]
        self.line([v for at in x for v in (at, at, math.nan)], ends, kind)

    def points(self, x: Sequence[float], y: Sequence[float], kind: str, **more: Any) -> None:
        """Add `Points`."""
        self.marks.append(Points(x, y, kind, **more))

    def rects(
        self, corners: Sequence[tuple[float, float, float, float]], kind: str, **more: Any
    ) -> None:
        """Add `Rects`."""
        self.marks.append(Rects(corners, kind, **more))

    def text(self, x: float, y: float, content: str, kind: str, **more: Any) -> None:
        """Add a `Text`."""
        self.marks.append(Text(x, y, content, kind, **more))

    def flag(self, x: float, words: str) -> None:
        """Mark an x, its label on the side with more room."""
        self.rule("observed", x=x)
        side, step = ("end", -7) if self.sx(x) > self.width / 2 else ("start", 7)
        self.text(x, self.y.high, words, f"value {side}", dx=step, dy=12)

    def sx(self, value: float) -> float:
        """Position of an abscissa, in pixels; an infinite one lies on the picture's edge."""
        if math.isinf(value):
            return self.width if value > 0 else 0.0
        return self.left + (self.width - self.left - self.right) * self.x.share(value)

    def sy(self, value: float) -> float:
        """Position of an ordinate, in pixels from the top."""
        floor = self.height - self.bottom
        return floor - (floor - self.top) * self.y.share(value)

    def svg(self) -> str:
        """SVG for a page that has ``chart.css`` and defines `SHAPES`.

        Title and legend are in it for files made of it, and hidden on the page. Where something
        has a tooltip, the keyboard reaches it.
        """
        keys, height = ChartSheet([[self]], "").legend(self.width, on_page)
        legend = f'<g class="keys" data-height="{height:g}">{keys}</g>' if keys else ""
        title = f' data-title="{escape(self.title)}"' if self.title else ""
        focus = ' tabindex="0"' if any(mark.tips for mark in self.marks) else ""
        return (
            f'<svg class="{self.css}" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{escape(self.description)}"{title}{focus}>'
            f"{legend}{self.body(on_page)}</svg>"
        )

    def csv(self) -> str:
        """The numbers behind the picture as CSV; text in it cannot be run by a spreadsheet."""
        return ChartSheet([[self]], "").csv()

    __html__ = svg  # what templates ask for, instead of escaping

    def body(self, put: Put) -> str:
        """Axes and marks, without the element around them."""
        floor, end = self.height - self.bottom, self.width - self.right
        parts, across = [], self.x.labelled()
        for value, label, kind in self.y.labelled():
            at = self.sy(value)
            if self.y.grid:
                parts.append(line_element(self.left, at, end, at, "grid", put))
            parts.append(text_element(self.left - 7, at + 4, cut(label), f"{kind} end", put))
        for value, label, kind in across:
            at = self.sx(value)
            if self.x.grid:
                parts.append(line_element(at, self.top - 2, at, floor, "grid", put))
            else:
                parts.append(line_element(at, floor, at, floor + 4, "mark", put))
            if self.x.slanted:
                name = text_element(at + 4, floor + 12, cut(label), f"{kind} end", put)
                parts.append(f'<g transform="rotate(-55 {at:.1f} {floor + 12:.1f})">{name}</g>')
            else:
                parts.append(text_element(at, floor + 17, label, f"{kind} mid", put))
        if across and not self.x.grid:
            parts.append(line_element(self.left, floor, end, floor, "axis", put))
        at, name = (self.left + end) / 2, cut(self.x.title, 60)
        parts.append(text_element(at, self.height - 8, name, f"{self.x.kind} mid", put))
        at, name = (self.top + floor) / 2, cut(self.y.title, 44)
        side = text_element(13, at, name, f"{self.y.kind} mid", put)
        parts.append(f'<g transform="rotate(-90 13 {at:g})">{side}</g>' if side else "")
        return "".join(parts) + "".join(mark.svg(self, put) for mark in self.marks)

    def draw(self, ax: Any = None, *, legend: bool = True) -> Any:
        """Draw on matplotlib axes, by default those of a new pyplot figure, and return them."""
        if ax is None:
            size = (self.width / 72, self.height / 72)
            ax = matplotlib("pyplot").subplots(figsize=size, layout="constrained")[1]
        for mark in self.marks:
            mark.draw(ax)
        tick, frame = font("tick"), look("axis")["stroke"]
        for side, axis in (("x", self.x), ("y", self.y)):
            ax.set(**{f"{side}scale": "log" if axis.log else "linear"})
            ax.set(**{f"{side}lim": (axis.low, axis.high)})
            getattr(ax, f"set_{side}label")(axis.title, **font(axis.kind))
            ax.tick_params(axis=side, which="both", color=frame, labelcolor=tick["color"])
            ax.tick_params(axis=side, labelsize=tick["fontsize"])
            if axis.ticks is not None:
                found = axis.labelled()
                style = {"rotation": 55, "ha": "right", "rotation_mode": "anchor"}
                getattr(ax, f"set_{side}ticks")([at for at, *_ in found])
                labels = getattr(ax, f"set_{side}ticklabels")([cut(name) for _, name, _ in found])
                for label, (*_, kind) in zip(labels, found):
                    label.set(color=font(kind)["color"], **(style if axis.slanted else {}))
            if axis.grid:
                ax.grid(axis=side, color=look("grid")["stroke"], lw=POINT)
                ax.tick_params(axis=side, length=0)
        ax.set_axisbelow(True)
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(frame)
        ax.spines["left"].set_visible(not self.y.grid and self.y.ticks is None)
        ax.spines["bottom"].set_visible(not self.x.grid and self.x.ticks != ())
        if self.title:
            ax.set_title(self.title, **font("head"))
        if legend and any(mark.label for mark in self.marks):
            ax.legend(frameon=False, fontsize="small")
        return ax

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart to a file whose ending says the format: svg, or one of matplotlib's."""
        ChartSheet([[self]], self.description).save(path)

    def _repr_svg_(self) -> str:
        return ChartSheet([[self]], self.description).svg()


@dataclass(frozen=True)
class ChartSheet:
    """Charts in rows, with titles, headings of the columns and one legend; complete in itself.

    The first row is the longest. ``description`` is for readers who do not see it.
    """

    rows: Sequence[Sequence[Chart]]
    description: str
    heads: Sequence[str] = ()

    def _sizes(self) -> tuple[list[float], list[float]]:
        """Widths of the columns, heights of the rows."""
        columns = zip_longest(*self.rows)
        widths = [max(chart.width for chart in column if chart) for column in columns]
        return widths, [max(chart.height for chart in row) for row in self.rows]

    def svg(self) -> str:
        """SVG that needs no style sheet; one on its page outweighs its own colours."""
        widths, heights = self._sizes()
        width, lefts = sum(widths), [sum(widths[:k]) for k in range(len(widths))]
        legend, top = self.legend(width)
        parts = [legend]
        for left, head in zip(lefts, self.heads):
            parts.append(text_element(left + 26, top + 15, head, "value start", in_file))
        top += _HEADER if self.heads else 0.0
        for row, height in zip(self.rows, heights):
            top += _HEADER if any(chart.title for chart in row) else 0.0
            for left, chart in zip(lefts, row):
                title = text_element(chart.left, -6, chart.title, "head start", in_file)
                inside = f"{title}{chart.body(in_file)}"
                parts.append(f'<g transform="translate({left:g} {top:g})">{inside}</g>')
            top += height
        size = f'width="{width:g}" height="{top:g}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" {size} role="img" '
            f'viewBox="0 0 {width:g} {top:g}" aria-label="{escape(self.description)}" '
            'font-family="Inter, Segoe UI, Helvetica, Arial, sans-serif">'
            f'<rect class="paper" {size} fill="#ffffff"/>{"".join(parts)}</svg>'
        )

    _repr_svg_ = svg

    def charts(self) -> list[Chart]:
        """The charts, one row after the other."""
        return [chart for row in self.rows for chart in row]

    def csv(self) -> str:
        """The numbers behind the charts as CSV, one chart's after the other's."""
        tables = [chart.table for chart in self.charts() if chart.table]
        header = list(dict.fromkeys(name for table in tables for name in table))
        rows = []
        for table in tables:
            columns = [table[name] if name in table else repeat(None) for name in header]
            rows += [[_rounded(cell) for cell in row] for row in zip(*columns)]
        return csv_text(header, rows)

    def legend(self, width: float, put: Put = in_file) -> tuple[str, float]:
        """The keys of all labelled marks in lines from the top, and the height they take."""
        keys: dict[str, Mark] = {}
        for mark in (mark for chart in self.charts() for mark in chart.marks):
            if mark.label:
                keys.setdefault(mark.label, mark)
        left = self.rows[0][0].left
        parts, x, y = [], left, _HEADER / 2
        for label, mark in keys.items():
            needed = 46 + 6.6 * len(label)
            if x + needed > width and x > left:
                x, y = left, y + 0.8 * _HEADER
            parts.append(mark.key(x, y, put))
            parts.append(text_element(x + 24, y + 4, label, "name start", put))
            x += needed
        return "".join(parts), y + _HEADER / 2 if keys else 0.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sheet to a file, as `Chart.save` does."""
        file = Path(path)
        if file.suffix.lower() == ".svg":
            file.write_text(self.svg(), encoding="utf-8", newline="\n")
        else:
            self.figure().savefig(file, dpi=200)

    def figure(self) -> Any:
        """A matplotlib figure, free of pyplot."""
        widths, heights = self._sizes()
        size = (sum(widths) / 96, (sum(heights) + _HEADER * len(heights)) / 96)
        figure = matplotlib("figure").Figure(figsize=size, layout="constrained")
        ratios = {"width_ratios": widths, "height_ratios": heights}
        grid = figure.subplots(len(heights), len(widths), squeeze=False, **ratios)
        keys: dict[str, Any] = {}
        for i, (row, axes) in enumerate(zip(self.rows, grid)):
            for ax in axes[len(row) :]:
                ax.axis("off")
            for k, (chart, ax) in enumerate(zip(row, axes)):
                chart.draw(ax, legend=False)
                for part in (*ax.lines, *ax.collections):
                    part.set_clip_on(False)  # points on the edge stay whole
                if i == 0 and self.heads:
                    ax.set_title(f"{self.heads[k]}\n{chart.title}", **font("head"))
                for handle, label in zip(*ax.get_legend_handles_labels()):
                    keys.setdefault(label, handle)
        if keys:
            columns = max(1, int(sum(widths) / (46 + 6.6 * max(map(len, keys)))))
            style = {"frameon": False, "fontsize": "small", "ncols": min(columns, len(keys))}
            figure.legend(list(keys.values()), list(keys), loc="outside upper left", **style)
        return figure


def _rounded(cell: Any) -> Any:
    """A cell with six digits, which are more than a picture shows."""
    return float(f"{cell:.6g}") if isinstance(cell, float) else cell


def matplotlib(part: str) -> Any:
    """Import a module of matplotlib, or say what to install."""
    try:
        return importlib.import_module(f"matplotlib.{part}")
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "sparsegsvp[report]"') from error
