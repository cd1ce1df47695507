"""The comparison of methods: its curves, charts and verdict, and its page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..evaluation.comparison import RANDOM_PANEL
from .charts import Axis, Chart
from .marks import cut, padded
from .page import render
from .schema import check
from .words import Part, interval, listed, number, plural

COMPARISON_FORMAT = "sparsegsvp-comparison"
# Methods beyond which intervals would hide each other.
_MAX_INTERVALS = 6


def accuracy_curves(comparison: Any) -> dict[str, Any]:
    """Accuracy against panel size: a curve per method, and the Pareto front.

    ``comparison`` is the result of `sparsegsvp.compare`, or its ``to_dict()``. To ``methods`` and
    ``front`` of ``Comparison.curves()`` come ``sizes``, ``reference``, the ``level`` of the
    intervals, and in each curve as ``link`` its place among all methods.
    """
    found = comparison if isinstance(comparison, Mapping) else comparison.to_dict()
    curves, rows = found["curves"], found.get("rows", ())
    every = list(dict.fromkeys([*(row["method"] for row in rows), *curves["methods"]]))
    sizes = {size for curve in curves["methods"].values() for size in curve["size"]}
    return {
        "methods": {
            name: {**curve, "link": every.index(name)} for name, curve in curves["methods"].items()
        },
        "front": sorted(curves["front"], key=lambda at: (at["size"], every.index(at["method"]))),
        "sizes": list(found.get("sizes", sorted(sizes))),
        "reference": found.get("reference"),
        "level": next((row["score"]["level"] for row in rows if row["score"]), 0.95),
    }


# ------------------------------------------------------------------------------ charts


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
        names = cut(listed([point["method"] for point in there], 2), 36)
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


# ---------------------------------------------------------------------------- the page


def comparison_verdict(found: Part) -> dict[str, Any]:
    """Say how small a panel does as well as the best, and by what method.

    The headline names the smallest panel within one standard error of the best score of
    ``Comparison.to_dict()``; the sentences say what stands behind it, and what to beware of.
    """

    def value(row: Part) -> float:
        return float(row["score"]["value"])

    done = [row for row in found["rows"] if row["score"] is not None]
    tried = [row for row in done if row["method"] != RANDOM_PANEL]
    if not tried:
        return {
            "headline": "No method finished",
            "sentences": ["Why each of them did not is said below."],
        }
    best = max(tried, key=value)
    reach = value(best) - (best["standard_error"] or 0.0)
    near = [row for row in tried if value(row) >= reach]
    smallest = min(row["size"] for row in near)
    peers = sorted((row for row in near if row["size"] == smallest), key=value, reverse=True)
    names = listed([row["method"] for row in peers], 3)
    score = number(value(peers[0]))
    sentences = [
        f"The best of {plural(len(tried), 'row')} is {best['method']} with "
        f"{plural(best['size'], 'feature')}: balanced accuracy {interval(best['score'])}; "
        f"the panels named here lie within one standard error of it.",
        "The best of many is flattered by being picked: estimate the one you choose "
        "on folds of another seed or on other samples.",
    ]
    control = next((r for r in done if r["method"] == RANDOM_PANEL and r["size"] == smallest), None)
    if control is not None:
        sentences.insert(1, f"A random panel of {smallest} scores {number(value(control))}.")
    headline = f"{plural(smallest, 'feature').capitalize()} will do: {names} ({score})"
    if control is not None and value(control) >= reach:
        headline = f"A random panel of {plural(smallest, 'feature')} does as well as any method"
    return {"headline": headline, "sentences": sentences}


def build_comparison(results: Mapping[str, Any]) -> str:
    """Draw the page of a comparison: accuracy against panel size, and the table.

    Parameters
    ----------
    results : dict
        ``results.json`` of ``sparsegsvp compare``: ``comparison`` is
        ``sparsegsvp.evaluation.Comparison.to_dict()``, ``verdict`` what `comparison_verdict`
        says of it.

    Returns
    -------
    str
        HTML, complete in itself. The same document gives the same text; timings, which never
        repeat, are not on it.

    Raises
    ------
    ValueError
        If the document is of another kind.
    ImportError
        If jinja2 is missing.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sparsegsvp import GSVPSVM, compare
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.report import build_comparison, comparison_verdict
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> methods = {"GSVPSVM": GSVPSVM(), "F test": SelectKBest()}
    >>> found = compare(methods, data.X, data.y, sizes=(2, 4), n_repeats=1)
    >>> results = {"format": "sparsegsvp-comparison", "versions": {"sparsegsvp": "0.1"},
    ...            "command": "", "data": {}, "parameters": {}, "comparison": found.to_dict(),
    ...            "verdict": comparison_verdict(found.to_dict())}
    >>> page = build_comparison(results)
    >>> page.startswith("<!doctype html>"), "http://" in page
    (True, False)
    """
    if not isinstance(results, Mapping) or results.get("format") != COMPARISON_FORMAT:
        raise ValueError(
            f"results['format'] must be {COMPARISON_FORMAT!r}: pass results.json of "
            "`sparsegsvp compare`"
        )
    check(results, "Comparison", "results", open_ended=True)
    found = results["comparison"]
    methods = list(dict.fromkeys(row["method"] for row in found["rows"]))
    rows = {(row["method"], row["size"]): row for row in found["rows"]}
    return render(
        "comparison.html",
        {"accuracy": accuracy_chart(accuracy_curves(found))},
        r=results,
        found=found,
        headline=results["verdict"]["headline"],
        sentences=results["verdict"]["sentences"],
        middle=found["sizes"][len(found["sizes"]) // 2],
        lines=[
            {"name": name, "link": i, "cells": [rows[name, size] for size in found["sizes"]]}
            for i, name in enumerate(methods)
        ],
        control=RANDOM_PANEL,
        problems=list(
            dict.fromkeys((r["method"], r["error"]) for r in found["rows"] if r["error"])
        ),
    )
