"""The workflow: from a table to a panel, an honest estimate and a page.

`select_panel` does everything that ``sparsegsvp select`` does, `compare_table` stands behind
``compare`` and `predict_table` behind ``predict``. They read nothing but their arguments and print
nothing.
"""

from .predict import Predictions, needed_features, predict_table, validate_table
from .results import ComparedMethods, Selection, command_of, json_text, results_folder
from .run import compare_table, demo_table, read_cohort, select_panel

__all__ = [
    "ComparedMethods",
    "Predictions",
    "Selection",
    "command_of",
    "compare_table",
    "demo_table",
    "json_text",
    "needed_features",
    "predict_table",
    "read_cohort",
    "results_folder",
    "select_panel",
    "validate_table",
]
