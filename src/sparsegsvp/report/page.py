"""From a document to one self-contained HTML page, of a selection or of a comparison.

The page carries its drawings as SVG, its style sheet and a short script, and a policy that
lets nothing else run or load: it opens from disk, and asks the network for nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ..evaluation.comparison import RANDOM_PANEL
from ..evaluation.recalibration import recalibration_words
from . import drawings, figures, panel_charts, words
from .answers import QUESTIONS, addresses, answers, next_steps
from .checklist import checklist
from .marks import SHAPES, asset, short
from .schema import check_kind, fitting_together, validate

COMPARISON_FORMAT = "sparsegsvp-comparison"
_HERO_FEATURES = 14
_BATCHES = 30  # rows of a table of batches


@fitting_together()
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
    >>> from sparsegsvp import select_panel
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.report import build_report
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> selection = select_panel(X, y, fast=True, folds=3, n_deltas=5)
    >>> page = build_report(selection.document)
    >>> page.startswith("<!doctype html>"), "http://" in page
    (True, False)
    """
    validate(results)
    classes, positive = results["data"]["classes"], results["data"]["positive"]
    drawn = draw_figures(results)
    scores, found = results["scores"].get("balanced_accuracy"), results["figures"]
    counts, decision = (results["evaluation"] or {}).get("threshold_counts"), drawn.get("decision")
    now = None
    if counts is not None and decision is not None:
        now = figures.at_threshold(counts, 0.0, found["decision"]["prevalence"])
        # a line that the slider moves between both ends of the axis
        at, ends = [now["threshold"]] * 2, [decision.y.low, decision.y.high]
        decision.line(at, ends, "cursor act", places=[0.0, 1.0])
    names = [row["feature"] for row in results["panel"]]
    return render(
        "report.html",
        drawn,
        {
            "path": found["path"] and {**found["path"], "weights": None},
            "counts": now and counts,
            "decision": now and {key: found["decision"][key] for key in ("prevalence", "label")},
        },
        r=results,
        tones=_tones(results),
        boxes=drawn["boxes"].charts() if "boxes" in drawn else [],
        gauge=scores and drawings.gauge(scores, 1.0 / len(classes)),
        now=now,
        questions=QUESTIONS,
        answers=answers(results),
        steps=next_steps(results),
        addresses=addresses(names),
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
        As of `build_report`. Timings, which never repeat, are not on it.

    Raises
    ------
    ValueError, ImportError
        As by `build_report`.

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
    check_kind(results, "Comparison", "results", open_ended=True)
    found = results["comparison"]
    methods = list(dict.fromkeys(row["method"] for row in found["rows"]))
    rows = {(row["method"], row["size"]): row for row in found["rows"]}
    return render(
        "comparison.html",
        {"accuracy": panel_charts.accuracy_chart(figures.accuracy_curves(found))},
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


@fitting_together()
def draw_figures(results: Mapping[str, Any]) -> dict[str, Any]:
    """Draw every figure that a document has numbers for.

    Parameters
    ----------
    results : dict
        As for `build_report`.

    Returns
    -------
    dict of str to Chart or ChartSheet
        By name, in the order of the page. Each can be saved (``save("roc.svg")``, ``"roc.png"``)
        and gives its numbers (``csv()``).

    Examples
    --------
    >>> from sparsegsvp import select_panel
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.report import draw_figures
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> selection = select_panel(X, y, fast=True, folds=3, n_deltas=5)
    >>> list(draw_figures(selection.document))[:4]
    ['boxes', 'heatmap', 'volcano', 'correlations']
    """
    tones, found, test = _tones(results), results["figures"], results["test"] or {}
    threshold = (results["stability"] or {"threshold": None})["threshold"]
    kinds: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "boxes": (results["panel"], lambda part: panel_charts.all_boxes(part, tones)),
        "heatmap": (found["heatmap"], lambda part: panel_charts.heatmap_chart(part, tones)),
        "volcano": (found["volcano"], lambda part: panel_charts.volcano_chart(part, tones)),
        "correlations": (found["correlations"], panel_charts.correlations_chart),
        **{name: (found[name], draw) for name, draw in _CURVES.items()},
        **{f"cohort-{name}": (test.get(name), draw) for name, draw in _CURVES.items()},
        "permutation": (found["permutation"], drawings.permutation_chart),
        "stability": (found["stability"], lambda part: drawings.stability_chart(part, threshold)),
        "planes": (
            found["planes"], lambda part: drawings.scatter_chart(part, tones, diagonal=True)
        ),
        "pca-before": (found["pca_before"], lambda part: drawings.scatter_chart(part, tones)),
        "pca-after": (found["pca_after"], lambda part: drawings.scatter_chart(part, tones)),
        "path-score": (found["path"], drawings.path_scores),
        "path-weights": (found["path"], drawings.path_weights),
        "learning": (found["learning"], drawings.learning_chart),
    }  # fmt: skip
    drawn = {name: draw(part) for name, (part, draw) in kinds.items() if part}
    for k, (curve, tone) in enumerate(zip(found["weights"], tones.values())):
        drawn[f"weights-{k + 1}"] = drawings.weights_chart(curve, tone)
    return drawn


_CURVES: dict[str, Callable[[Any], Any]] = {
    "roc": drawings.roc_chart,
    "calibration": drawings.calibration_chart,
    "decision": drawings.decision_chart,
}


def _tones(results: Mapping[str, Any]) -> dict[str, int]:
    """The colour of each class; of two, the positive one gets the warm one."""
    classes, positive = results["data"]["classes"], results["data"]["positive"]
    if positive == classes[0]:
        return {classes[0]: 1, classes[1]: 0}
    return {name: k % 8 for k, name in enumerate(classes)}


def _data_block(parts: Mapping[str, Any]) -> str:
    """What the script needs, as JSON that cannot end its own element."""
    text = json.dumps(parts, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for character in "&<>\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def render(
    template: str,
    drawn: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
    *,
    package: str | None = None,
    **context: Any,
) -> str:
    """Fill a template with plain values, which are escaped, and with charts, which are not.

    ``drawn`` is available as ``draw``; every name in a chart was escaped where it was written.
    ``data`` is for the script, which also gets the numbers behind the charts. The page has its
    style sheet, its script and the policy that allows exactly these. ``package`` is that of the
    template, if it is another one.
    """
    environment = template_environment(package or __package__)
    numbers = {name: chart.csv() for name, chart in drawn.items()}
    style, script = f"{asset('chart.css')}\n{asset('report.css')}", asset("report.js")
    return environment.get_template(template).render(
        policy=_policy(style, script),
        style=style,
        script=script,
        shapes=SHAPES,
        draw=drawn,
        data_block=_data_block({**(data or {}), "numbers": numbers}),
        **context,
    )


def template_environment(package: str) -> Any:
    """The templates of a package and of this one; an error names the extra that has jinja2."""
    try:
        import jinja2  # noqa: F401  # asked for each time: the environment is made once
    except ImportError as error:
        raise ImportError('the page needs jinja2: pip install "sparsegsvp[report]"') from error
    return _environment(package)


@cache
def _environment(package: str) -> Any:
    """Make the environment, which compiles each template once.

    Values are escaped, and an unknown name is an error.
    """
    import jinja2

    places = dict.fromkeys([package, __package__])
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(place) for place in places]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "score": words.number,
        "short": short,
        "p": words.p_value,
        "plural": words.plural,
        "shell": shlex.quote,
    }
    return environment


def _policy(style: str, script: str) -> str:
    """Allow exactly this style sheet and this script."""

    def hashed(text: str) -> str:
        digest = hashlib.sha256(text.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
