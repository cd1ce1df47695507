"""The workflow: from a table to a panel, an honest estimate and a page.

`select_panel` does everything that ``sparsegsvp select`` does; `evaluate_table` and
`compare_table` stand behind ``evaluate`` and ``compare``, `predict_table` behind ``predict``.
They read nothing but their arguments and print nothing.
"""

from ..evaluation.compare import method_lines
from ..evaluation.recalibration import (
    recalibration_effect,
    recalibration_of,
    recalibration_text,
)
from ..report.words import cohort_lines, out_of_fold_lines, paired_lines
from .evidence import ComparedMethods, EvaluatedMethod, compare_table, evaluate_table
from .lazy import LazySelection, select_lazily
from .plan import RunEstimate, plan_comparison, plan_evaluation, plan_selection
from .predict import (
    Predictions,
    compare_models,
    needed_features,
    predict_table,
    predictions_csv,
    recalibrate_model,
    validate_table,
)
from .results import Selection, command_of, json_text, results_folder
from .selection import demo_table, select_panel

__all__ = [
    "ComparedMethods",
    "EvaluatedMethod",
    "LazySelection",
    "Predictions",
    "RunEstimate",
    "Selection",
    "cohort_lines",
    "command_of",
    "compare_models",
    "compare_table",
    "demo_table",
    "evaluate_table",
    "json_text",
    "method_lines",
    "needed_features",
    "out_of_fold_lines",
    "paired_lines",
    "plan_comparison",
    "plan_evaluation",
    "plan_selection",
    "predict_table",
    "predictions_csv",
    "recalibrate_model",
    "recalibration_effect",
    "recalibration_of",
    "recalibration_text",
    "results_folder",
    "select_lazily",
    "select_panel",
    "validate_table",
]
