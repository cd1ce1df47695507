"""From the document to one self-contained HTML page.

The page carries its drawings as SVG, its style sheet and a short script, and a policy that
lets nothing else run or load: it opens from disk, and asks the network for nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, cast

from . import drawings, marks, words
from .schema import PathFigure, Results, validate

_HERO_FEATURES = 14


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
        If the document does not have the shape of `sparsegsvp.report.schema.Results`.
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
    document = cast(Results, results)
    return render(
        "report.html",
        _drawings(document) | {"path_data": _data_block(document["figures"]["path"])},
        r=document,
        tones=_tones(document),
        contrast=words.contrast(document["data"]["classes"], document["data"]["positive"]),
        stability_word=words.stability_word,
        hero=document["panel"][:_HERO_FEATURES],
        chance=1.0 / len(document["data"]["classes"]),
    )


def render(template: str, drawn: Mapping[str, Any], **context: Any) -> str:
    """Fill a template with plain values, which are escaped, and drawings, which are not.

    Parameters
    ----------
    template : str
        File name, in the folder of templates.
    drawn : mapping of str to Chart, str, list of these or None
        SVG or JSON of this package, available as ``draw``. Every name in it was escaped where
        it was written.
    **context
        Whatever else the template shows.

    Returns
    -------
    str
        HTML with its style sheet, its script and the policy that allows exactly these.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError('the report needs jinja2: pip install "sparsegsvp[report]"') from error
    style, script = f"{marks.style_sheet()}\n{_asset('report.css')}", _asset("report.js")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        score=words.number, short=marks.short, p=words.p_value, plural=words.plural
    )
    return environment.get_template(template).render(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        shapes=marks.SHAPES,
        draw={name: _marked(drawing, Markup) for name, drawing in drawn.items()},
        **context,
    )


def _asset(name: str) -> str:
    folder = resources.files(__package__) / "templates"
    return (folder / name).read_text(encoding="utf-8").strip("\n")


def _policy(style: str, script: str) -> str:
    """Allow exactly this style sheet and this script."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _data_block(path: PathFigure | None) -> str:
    """What the slider needs, as JSON that cannot end its own element."""
    if path is None:
        return "null"
    kept = {key: path[key] for key in ("features", "steps", "chosen", "score_name")}
    text = json.dumps(kept, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _tones(document: Results) -> list[int]:
    """The colour of each class; of two, the positive one gets the warm colour."""
    classes, positive = document["data"]["classes"], document["data"]["positive"]
    if len(classes) == 2 and positive == classes[0]:
        return [1, 0]
    return [k % 8 for k in range(len(classes))]


def _drawings(document: Results) -> dict[str, Any]:
    found, tones = document["figures"], _tones(document)
    classes = document["data"]["classes"]
    scores = document["scores"]
    chance = 1.0 / len(classes)
    drawn: dict[str, Any] = {
        "gauge": None,
        "boxes": [
            drawings.boxes(f["boxes"], [tones[classes.index(b["label"])] for b in f["boxes"]])
            for f in document["panel"]
        ],
        "roc": found["roc"] and drawings.roc_chart(found["roc"]),
        "calibration": found["calibration"] and drawings.calibration_chart(found["calibration"]),
        "permutation": found["permutation"] and drawings.permutation_chart(found["permutation"]),
        "planes": found["planes"] and drawings.scatter_chart(found["planes"], tones, diagonal=True),
        "pca_before": found["pca_before"] and drawings.scatter_chart(found["pca_before"], tones),
        "pca_after": found["pca_after"] and drawings.scatter_chart(found["pca_after"], tones),
        "path": found["path"] and drawings.path_charts(found["path"]),
        "weights": [
            drawings.weights_chart(curve, tone) for curve, tone in zip(found["weights"], tones)
        ],
        "stability": None,
    }
    if "balanced_accuracy" in scores:
        drawn["gauge"] = drawings.gauge(scores["balanced_accuracy"], chance)
    if found["stability"]:
        steady = document["stability"]
        drawn["stability"] = drawings.stability_chart(
            found["stability"], None if steady is None else steady["threshold"]
        )
    return drawn


def _marked(drawing: Any, mark: Any) -> Any:
    """Declare drawings safe: a chart gives its SVG."""
    if isinstance(drawing, list):
        return [mark(part) for part in drawing]
    return None if drawing is None else mark(drawing)
