"""From a comparison of methods to one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from ..evaluation.comparison import RANDOM_PANEL
from .drawings import accuracy_chart
from .figures import accuracy_curves
from .page import render
from .schema import IntervalDict, check
from .words import interval, listed, number, plural

COMPARISON_FORMAT = "sparsegsvp-comparison"


class _Row(TypedDict):
    """A method at a size: what the page shows of `sparsegsvp.evaluation.ComparisonRow`."""

    method: str
    size: int
    status: str
    error: str | None
    score: IntervalDict | None
    standard_error: float | None
    native: IntervalDict | None
    stability: dict[str, Any] | None
    difference: dict[str, Any] | None
    on_front: bool
    near_front: bool


class _Found(TypedDict):
    """What the page shows of `sparsegsvp.evaluation.Comparison`."""

    reference: str
    sizes: list[int]
    n_samples: int
    n_features: int
    n_folds: int
    rows: list[_Row]
    curves: dict[str, Any]
    notes: list[str]


class _Verdict(TypedDict):
    headline: str
    sentences: list[str]


class _Document(TypedDict):
    command: str
    data: dict[str, Any]
    parameters: dict[str, Any]
    verdict: _Verdict
    comparison: _Found
    versions: dict[str, str]


def build_comparison(results: Mapping[str, Any]) -> str:
    """Draw the page of a comparison: accuracy against panel size, and the table.

    Parameters
    ----------
    results : dict
        ``results.json`` of ``sparsegsvp compare``: ``format``, ``command``, ``data``,
        ``parameters``, ``versions``, as ``comparison``
        ``sparsegsvp.evaluation.Comparison.to_dict()``, and as ``verdict`` what
        `comparison_verdict` says of it.

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
    >>> page = build_comparison({
    ...     "format": "sparsegsvp-comparison", "command": "", "data": {}, "parameters": {},
    ...     "versions": {"sparsegsvp": "0.1"}, "comparison": found.to_dict(),
    ...     "verdict": comparison_verdict(found.to_dict())})
    >>> page.startswith("<!doctype html>"), "http://" in page
    (True, False)
    """
    if not isinstance(results, Mapping) or results.get("format") != COMPARISON_FORMAT:
        raise ValueError(
            f"results['format'] must be {COMPARISON_FORMAT!r}: pass results.json of "
            "`sparsegsvp compare`"
        )
    check(results, _Document, "results", open_ended=True)
    document = cast(_Document, results)
    found = document["comparison"]
    methods = list(dict.fromkeys(row["method"] for row in found["rows"]))
    rows = {(row["method"], row["size"]): row for row in found["rows"]}
    return render(
        "comparison.html",
        {"chart": accuracy_chart(accuracy_curves(found))},
        r=document,
        found=found,
        headline=document["verdict"]["headline"],
        sentences=document["verdict"]["sentences"],
        middle=found["sizes"][len(found["sizes"]) // 2],
        lines=[
            {"name": name, "link": i, "cells": [rows[name, size] for size in found["sizes"]]}
            for i, name in enumerate(methods)
        ],
        control=RANDOM_PANEL,
        problems=list(
            dict.fromkeys(
                (row["method"], row["error"]) for row in found["rows"] if row["error"] is not None
            )
        ),
    )


def comparison_verdict(found: Mapping[str, Any]) -> dict[str, Any]:
    """Say how small a panel does as well as the best, and by what method.

    The headline names the smallest panel within one standard error of the best score of
    ``Comparison.to_dict()``; the sentences say what stands behind it, and what to beware of.
    """
    done = [row for row in found["rows"] if row["score"] is not None]
    tried = [row for row in done if row["method"] != RANDOM_PANEL]
    if not tried:
        return {
            "headline": "No method finished",
            "sentences": ["Why each of them did not is said below."],
        }
    best = max(tried, key=_value)
    reach = _value(best) - (best["standard_error"] or 0.0)
    near = [row for row in tried if _value(row) >= reach]
    smallest = min(row["size"] for row in near)
    peers = sorted((row for row in near if row["size"] == smallest), key=_value, reverse=True)
    names = listed([row["method"] for row in peers], 3)
    score = number(_value(peers[0]))
    sentences = [
        f"The best of {plural(len(tried), 'row')} is {best['method']} with "
        f"{plural(best['size'], 'feature')}: balanced accuracy {interval(best['score'])}; "
        f"the panels named here lie within one standard error of it.",
        "The best of many is flattered by being picked: estimate the one you choose "
        "on folds of another seed or on other samples.",
    ]
    control = next((r for r in done if r["method"] == RANDOM_PANEL and r["size"] == smallest), None)
    if control is not None:
        sentences.insert(1, f"A random panel of {smallest} scores {number(_value(control))}.")
    headline = f"{plural(smallest, 'feature').capitalize()} will do: {names} ({score})"
    if control is not None and _value(control) >= reach:
        headline = f"A random panel of {plural(smallest, 'feature')} does as well as any method"
    return {"headline": headline, "sentences": sentences}


def _value(row: Mapping[str, Any]) -> float:
    return float(row["score"]["value"])
