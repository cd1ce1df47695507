"""The report: from an evaluation to one document, and from that to one page.

`build_document` gathers what a run found into plain values, which ``results.json`` holds;
`render_page`, `draw_figures`, `methods` and `checklist` are made from it alone.

- `document` builds and checks it; `numbers` are those of pictures; `notices` are reasons for doubt;
- `words` writes numbers and the verdict, `texts` fills templates;
- `charts` draws SVG, `drawings` has the figures, `page` puts everything together.
"""

from .charts import Axis, Chart, Sheet
from .document import (
    GivenPanel,
    build_comparison,
    build_document,
    check_document,
    describe_cohort,
)
from .drawings import draw_figures
from .page import render, render_comparison, render_page
from .texts import ChecklistPart, checklist, checklist_markdown, methods
from .words import cohort_lines, headline, ladder_lines, sentences

__all__ = [
    "Axis",
    "Chart",
    "ChecklistPart",
    "GivenPanel",
    "Sheet",
    "build_comparison",
    "build_document",
    "check_document",
    "checklist",
    "checklist_markdown",
    "cohort_lines",
    "describe_cohort",
    "draw_figures",
    "headline",
    "ladder_lines",
    "methods",
    "render",
    "render_comparison",
    "render_page",
    "sentences",
]
