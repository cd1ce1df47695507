"""The workflow: from a table to a panel, an honest estimate and a page.

`select_panel` does everything that ``sparsegsvp select`` does, `compare_table` stands behind
``compare`` and `predict_table` behind ``predict``. They read nothing but their arguments and print
nothing.
"""

# ruff: noqa: F401  (what is not in __all__ is for other rooms)
from .predict import Predictions, needed_features, predict_table, validate_table
from .results import ComparedMethods, Selection, command_of, results_folder
from .run import compare_table, demo_table, read_cohort, select_panel

__all__ = [
    "ComparedMethods",
    "Predictions",
    "Selection",
    "compare_table",
    "demo_table",
    "predict_table",
    "select_panel",
]
