"""The report: from an evaluation to one document, and from that to one page.

`build_document` gathers what a run found into plain values, which ``results.json`` holds;
`render_page`, `draw_figures`, `methods` and `checklist` are made from it alone.

- `document` builds and checks it; `numbers` are those of pictures; `notices` are reasons for doubt;
- `words` writes numbers, the verdict and longer texts;
- `charts` draws SVG, `drawings` has the figures, `page` puts everything together.
"""

from .charts import Axis as Axis
from .charts import Chart
from .charts import Sheet as Sheet
from .document import build_comparison as build_comparison
from .document import build_document, check_document
from .document import describe_cohort as describe_cohort
from .document import describe_given as describe_given
from .document import role_lines as role_lines
from .drawings import draw_figures
from .page import render as render
from .page import render_comparison as render_comparison
from .page import render_page
from .words import checklist as checklist
from .words import checklist_markdown as checklist_markdown
from .words import cohort_lines as cohort_lines
from .words import ladder_lines as ladder_lines
from .words import methods as methods

__all__ = ["Chart", "build_document", "check_document", "draw_figures", "render_page"]
