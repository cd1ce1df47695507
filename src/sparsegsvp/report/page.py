"""Pages: one HTML file each, complete in itself, made from a document alone."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import words
from .charts import asset, file_css, palette_css
from .document import COMPARISON_FORMAT, FORMAT, check_document
from .drawings import box_chart, comparison_chart, draw_figures, tones_of
from .words import MANY_CLASSES, answers, checklist, environment, methods, own_rung


def render_page(document: Mapping[str, Any]) -> str:
    """Write the page of a run: HTML that needs no other file and no network."""
    d = check_document(document, formats=[FORMAT])
    tones = tones_of(d)
    rows = [*d["panel"], *d["more"]]
    few = len(tones) <= MANY_CLASSES
    return render(
        "report.html",
        draw_figures(d),
        {
            "rungs": _rungs(d),
            "slider": d["slider"],
            "act": {"label": d["data"]["positive"], "prevalence": d["prevalence"]},
        },
        d=d,
        versions=d["versions"],
        answers=answers(d),
        methods=methods(d),
        checklist=checklist(d),
        tones=tones,
        rows=rows,
        fixed=own_rung(d) is not None,
        boxes=[box_chart(row, tones) if few and row["boxes"] else "" for row in rows],
    )


def render_comparison(document: Mapping[str, Any]) -> str:
    """Write the page of a comparison."""
    d = check_document(document, formats=[COMPARISON_FORMAT])
    found = d["comparison"]
    cells = {(row["method"], row["size"]): row for row in found["rows"]}
    problems = {row["method"]: row["error"] for row in found["rows"] if row["error"]}
    return render(
        "comparison.html",
        {"accuracy": comparison_chart(found)},
        d=d,
        versions=d["versions"],
        found=found,
        cells=cells,
        middle=found["sizes"][len(found["sizes"]) // 2],
        control=words.RANDOM_PANEL,
        problems=problems,
    )


def _rungs(d: Mapping[str, Any]) -> dict[str, Any]:
    """What the script needs to show the panel of another size, by size; "" is the chosen one."""

    def rung(score: Any, features: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        shown = [[f["index"], f["frequency"], f["with_stand_ins"]] for f in features]
        return {"score": words.interval(score), "features": shown}

    rungs = {str(r["size"]): rung(r["score"], r["features"]) for r in d["ladder"]}
    return {"": rung(d["scores"]["balanced_accuracy"], d["panel"]), **rungs}


def render(
    template: str,
    charts: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
    *,
    package: str | None = None,
    **context: Any,
) -> str:
    """Fill a template that extends ``base.html``.

    ``charts`` are shown by ``figure(name)``, and their numbers go to the script, as does ``data``.
    ``package`` is that of the template, if it is another one. Values of ``context``, ``versions``
    among them, are escaped. The page has its style sheet, its script and the policy that allows
    exactly these.
    """
    style = f"{palette_css()}\n{asset('chart.css')}\n{asset('report.css')}"
    script = asset("report.js")
    numbers = {name: chart.csv() for name, chart in charts.items()}
    page = environment(package).get_template(template).render(
        policy=_policy(style, script),
        style=style,
        script=script,
        draw=charts,
        data_block=_json({**(data or {}), "numbers": numbers, "css": file_css()}),
        **context,
    )  # fmt: skip
    return str(page)


def _json(parts: Mapping[str, Any]) -> str:
    """What the script needs, as JSON that cannot end its own element."""
    text = json.dumps(parts, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for character in "&<>\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(style: str, script: str) -> str:
    """Allow exactly this style sheet and this script."""

    def hashed(text: str) -> str:
        digest = hashlib.sha256(text.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
