"""From a document to one self-contained HTML page, of a selection or of a comparison.

The page carries its drawings as SVG, its style sheet and a short script, and a policy that
lets nothing else run or load: it opens from disk, and asks the network for nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ..evaluation.recalibration import recalibration_words
from . import drawings, figures, marks, words
from .checklist import checklist
from .schema import check, validate

COMPARISON_FORMAT = "sparsegsvp-comparison"
_HERO_FEATURES = 14
_BATCHES = 30  # rows of a table of batches


def build_report(results: Mapping[str, Any]) -> str:
    """Draw the report page.

    Parameters
    ----------
    results : dict
        The document of `summarize`, or ``results.json`` as read by `json.load`.

    Returns
    -------
    str
        HTML, complete in itself. The same document gives the same text.

    Raises
    ------
    ValueError
        If the document does not have the shape of a report's; see `validate`.
    ImportError
        If jinja2 is missing.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from sparsegsvp import GSVPSVMCV
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.report import build_report, summarize
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(data.X, data.y)
    >>> table = SimpleNamespace(X=data.X, y=data.y, feature_names=data.feature_names)
    >>> page = build_report(summarize(table, model))
    >>> page.startswith("<!doctype html>"), "http://" in page
    (True, False)
    """
    validate(results)
    classes, positive = results["data"]["classes"], results["data"]["positive"]
    # of two classes, the positive one gets the warm colour
    tones = [1, 0] if positive == classes[0] else [k % 8 for k in range(len(classes))]
    return render(
        "report.html",
        _drawings(results, tones),
        r=results,
        tones=tones,
        contrast=words.contrast(classes, positive),
        path_score=words.path_score,
        stability_word=words.stability_word,
        line_words=words.line_words,
        prevalence_words=words.prevalence_words,
        recalibration_words=recalibration_words,
        hero=results["panel"][:_HERO_FEATURES],
        chance=1.0 / len(classes),
        shown_batches=_BATCHES,
        checklist=checklist(results),
    )


def _drawings(results: Mapping[str, Any], tones: list[int]) -> dict[str, Any]:
    """Draw what the document shows; None or nothing where it has no numbers for it."""
    classes, scores, found = results["data"]["classes"], results["scores"], results["figures"]
    drawn: dict[str, Any] = {
        "gauge": None,
        "boxes": [
            drawings.boxes(f["boxes"], [tones[classes.index(b["label"])] for b in f["boxes"]])
            for f in results["panel"]
        ],
        "roc": found["roc"] and drawings.roc_chart(found["roc"]),
        "calibration": found["calibration"] and drawings.calibration_chart(found["calibration"]),
        "decision": found["decision"] and drawings.decision_chart(found["decision"]),
        "cohort": _cohort_drawings(results["test"]),
        "permutation": found["permutation"] and drawings.permutation_chart(found["permutation"]),
        "planes": found["planes"] and drawings.scatter_chart(found["planes"], tones, diagonal=True),
        "pca_before": found["pca_before"] and drawings.scatter_chart(found["pca_before"], tones),
        "pca_after": found["pca_after"] and drawings.scatter_chart(found["pca_after"], tones),
        "path": found["path"] and drawings.path_charts(found["path"]),
        "path_data": _data_block(found["path"]),
        "weights": [
            drawings.weights_chart(curve, tone) for curve, tone in zip(found["weights"], tones)
        ],
        "stability": None,
        "learning": found["learning"] and drawings.learning_chart(found["learning"]),
    }
    if "balanced_accuracy" in scores:
        drawn["gauge"] = drawings.gauge(scores["balanced_accuracy"], 1.0 / len(classes))
    if found["stability"]:
        threshold = (results["stability"] or {"threshold": None})["threshold"]
        drawn["stability"] = drawings.stability_chart(found["stability"], threshold)
    return drawn


def _cohort_drawings(test: Mapping[str, Any] | None) -> dict[str, Any]:
    """Draw what an independent cohort shows; None for what it cannot."""
    charts = {
        "roc": drawings.roc_chart,
        "calibration": drawings.calibration_chart,
        "decision": drawings.decision_chart,
    }
    shown: Mapping[str, Any] = test or dict.fromkeys(charts)
    return {name: shown[name] and draw(shown[name]) for name, draw in charts.items()}


def _data_block(path: Mapping[str, Any] | None) -> str:
    """What the slider needs, as JSON that cannot end its own element."""
    if path is None:
        return "null"
    kept = {key: path[key] for key in ("features", "steps", "chosen", "score_name")}
    text = json.dumps(kept, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


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
        {"chart": drawings.accuracy_chart(figures.accuracy_curves(found))},
        r=results,
        found=found,
        headline=results["verdict"]["headline"],
        sentences=results["verdict"]["sentences"],
        middle=found["sizes"][len(found["sizes"]) // 2],
        lines=[
            {"name": name, "link": i, "cells": [rows[name, size] for size in found["sizes"]]}
            for i, name in enumerate(methods)
        ],
        control=words.RANDOM_PANEL,
        problems=list(
            dict.fromkeys((r["method"], r["error"]) for r in found["rows"] if r["error"])
        ),
    )


def render(template: str, drawn: Mapping[str, Any], **context: Any) -> str:
    """Fill a template with plain values, which are escaped, and with charts, which are not.

    ``drawn`` is available as ``draw``; every name in a chart was escaped where it was written.
    The page has its style sheet, its script and the policy that allows exactly these.
    """
    environment = template_environment(__package__)
    environment.filters.update(
        score=words.number, short=marks.short, p=words.p_value, plural=words.plural
    )
    style, script = f"{marks.style_sheet()}\n{_asset('report.css')}", _asset("report.js")
    return environment.get_template(template).render(
        policy=_policy(style, script),
        style=style,
        script=script,
        shapes=marks.SHAPES,
        draw=drawn,
        **context,
    )


def template_environment(package: str) -> Any:
    """The templates of a package for jinja2: values are escaped, an unknown name is an error."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('the page needs jinja2: pip install "sparsegsvp[report]"') from error
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _asset(name: str) -> str:
    folder = resources.files(__package__) / "templates"
    return (folder / name).read_text(encoding="utf-8").strip("\n")


def _policy(style: str, script: str) -> str:
    """Allow exactly this style sheet and this script."""

    def hashed(text: str) -> str:
        digest = hashlib.sha256(text.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
