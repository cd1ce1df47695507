"""One page, complete in itself: tables, figures and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ..report.marks import style_sheet
from .plan import Plan
from .protocol import Study
from .tables import KINDS, Row, Table

CAPTIONS = {
    "sorted_weights": (
        "Sorted weights with the number kept",
        "The paper's method keeps the weights up to the elbow of each curve. The weights of "
        "GSVPSVM end in exact zeros, so there is no elbow to find.",
    ),
    "convergence": (
        "Objective and relative change by iteration",
        "The quotient does not change when the solution is scaled, so the iteration lowers its "
        "objective by shrinking (dotted) until the fixed step is too long for it, and then "
        "jumps about. It stops where one relative change happens to fall below 1e-4, or at the "
        "cap.",
    ),
    "features_by_q": (
        "Features against q, and how alike the panels are",
        "Features kept by either plane. The Jaccard index is the mean over all pairs of values "
        "of q; the formula printed in the paper has another denominator.",
    ),
    "weights": (
        "The weights of both planes",
        "Kept features in colour, the others faint. Only the heaviest 400 are drawn.",
    ),
    "top_features": (
        "The heaviest selected features of each plane",
        "Weights relative to the largest, in standardised units; at most ten.",
    ),
    "pca": (
        "Test samples by two principal components",
        "Components of the training samples, all features or the selected ones. Only test "
        "samples are drawn: after a selection, training samples look separated even in noise.",
    ),
}


@dataclass(frozen=True)
class StudyPage:
    """What the page shows of one study."""

    study: Study
    plan: Plan
    tables: Mapping[str, Table]
    figures: Mapping[str, str]

    def context(self) -> dict[str, Any]:
        """Return what the template needs, as plain values."""
        from markupsafe import Markup

        tables = {name: table.rows for name, table in self.tables.items()}
        # The figures are this package's own drawings, so they may pass unescaped.
        figures = {name: Markup(svg) for name, svg in self.figures.items()}
        return {
            "key": self.study.key,
            "title": self.study.title,
            "shape": self.study.shape,
            "classes": self.study.class_names,
            "sweep": self.study.sweep,
            "plan": self.plan,
            "full": self.plan.max_iter >= 10_000,
            "tiles": tiles(self.study, tables),
            "tables": tables,
            "elbows": _grouped(tables["elbows"], "method"),
            "reports": {
                part: _grouped([row for row in tables["reports"] if row["part"] == part], "method")
                for part in ("validation", "test")
            },
            "changes": _grouped(tables["changes"], "method"),
            "sensitivity": [
                (KINDS[kind], list(rows))
                for kind, rows in groupby(tables.get("sensitivity", []), lambda row: row["kind"])
            ],
            "hero": figures.pop("sensitivity", None),
            "figures": [(*CAPTIONS[name], svg) for name, svg in figures.items()],
        }


def tiles(study: Study, tables: Mapping[str, list[Row]]) -> list[dict[str, str]]:
    """The findings that fit into one line each."""
    exact = sum(
        all(
            row["verdict"] == "identical"
            for name in ("elbows", "reports")
            for row in tables[name]
            if row["method"] == method.label and row["source"] == "authors' conventions"
        )
        for method in study.methods
    )
    found = [
        {
            "value": f"{exact} of {len(study.methods)}",
            "label": "published rows obtained exactly with the authors' conventions",
        }
    ]
    rows = {(row["kind"], row["method"]): row for row in tables.get("sensitivity", [])}
    labels = [method.label for method in study.methods]
    for kind, label in (
        ("starts", "distinct panels from as many random starts"),
        ("rows", "distinct panels from the same samples in other orders"),
    ):
        counts = [rows[kind, name]["distinct"] for name in labels if (kind, name) in rows]
        own = rows.get((kind, "GSVPSVM"))
        if counts and own is not None:
            total = own["runs"]
            found.append(
                {
                    "value": f"{_span(counts)} → {own['distinct']}",
                    "label": f"{label} ({total}): the paper's methods → GSVPSVM",
                }
            )
    scores = [rows["splits", name]["accuracy_mean"] for name in labels if ("splits", name) in rows]
    own = rows.get(("splits", "GSVPSVM"))
    if scores and own is not None:
        low, high = min(scores), max(scores)
        found.append(
            {
                "value": f"{low:.2f}–{high:.2f} → {own['accuracy_mean']:.2f}",
                "label": (
                    f"mean balanced accuracy over {own['runs']} random splits, equation 21: the "
                    "paper's methods → GSVPSVM"
                ),
            }
        )
    return found


def _span(counts: list[int]) -> str:
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"


def _grouped(rows: list[Row], column: str) -> list[tuple[str, list[Row]]]:
    return [(name, list(members)) for name, members in groupby(rows, lambda row: row[column])]


def render(pages: list[StudyPage], versions: Mapping[str, str]) -> str:
    """Render the page; it asks nothing of the network."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("sparsegsvp.reproduce"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda x: "–" if x is None else f"{100 * x:.2f}"
    environment.filters["number"] = lambda x: "–" if x is None else f"{x:.6g}"
    template = environment.get_template("page.html")
    studies = [page.context() for page in pages]
    return template.render(studies=studies, versions=versions, chart_style=style_sheet())
