"""The report: from fitted objects to one document, and from that to one page.

`summarize` gathers numbers into a JSON-ready document, `build_report` turns the document
into a self-contained HTML page, and `build_comparison` does so for a comparison of methods.
Nothing is fitted here, and nothing is computed on the way from the document to the page.
"""

from .checklist import ChecklistPart, checklist, checklist_markdown
from .document import describe_model, known_scores, summarize, summarize_test
from .features import describe_panel
from .page import build_comparison, build_report, draw_figures
from .schema import FORMAT, FORMAT_VERSION, Results, validate
from .words import comparison_verdict, describe_verdict

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "ChecklistPart",
    "Results",
    "build_comparison",
    "build_report",
    "checklist",
    "checklist_markdown",
    "comparison_verdict",
    "describe_model",
    "describe_panel",
    "describe_verdict",
    "draw_figures",
    "known_scores",
    "summarize",
    "summarize_test",
    "validate",
]
