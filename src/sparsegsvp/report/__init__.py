"""The report: from fitted objects to one document, and from that to one page.

`summarize` gathers numbers into a JSON-ready document, `build_report` turns the document
into a self-contained HTML page, and `build_comparison` does so for a comparison of methods.
Nothing is computed on the way to a page.
"""

from .comparison import build_comparison
from .page import build_report
from .schema import FORMAT, FORMAT_VERSION, Results, validate
from .summary import summarize, summarize_test

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "Results",
    "build_comparison",
    "build_report",
    "summarize",
    "summarize_test",
    "validate",
]
