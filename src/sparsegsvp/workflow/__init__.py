"""The workflow: from a table to a panel, an honest estimate and a page.

`select_panel` does everything that ``sparsegsvp select`` does, `compare_table` stands behind
``compare`` and `predict_table` behind ``predict``. They read nothing but their arguments and print
nothing.
"""

from .predict import Predictions, predict_table
from .predict import needed_features as needed_features
from .predict import validate_table as validate_table
from .results import ComparedMethods, Selection
from .results import command_of as command_of
from .results import json_text as json_text
from .results import results_folder as results_folder
from .run import compare_table, demo_table, select_panel
from .run import read_cohort as read_cohort

__all__ = [
    "ComparedMethods",
    "Predictions",
    "Selection",
    "compare_table",
    "demo_table",
    "predict_table",
    "select_panel",
]
