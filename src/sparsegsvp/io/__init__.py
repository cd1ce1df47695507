"""Files in and out: tables, models, and folders written whole or not at all.

The walk of a file to a `Table`, a module for each step: `formats` knows a file by its name, and
`text`, `geo` or a library reads it; `frame` holds any input as one data frame of cells; `table`
makes the table of it, where `cells` makes numbers and labels, `roles` decides what columns are
for, and `checks` refuses what cannot be used. `files` and `models` write. Names are loaded when
first used, so that the command line answers ``--help`` at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..estimators.log2 import Log2 as Log2
    from .errors import InputError as InputError
    from .errors import need as need
    from .files import csv_text as csv_text
    from .files import harmless as harmless
    from .files import prepare_output as prepare_output
    from .files import whole_folder as whole_folder
    from .files import workbook as workbook
    from .files import write_atomic as write_atomic
    from .models import load_model as load_model
    from .models import save_model as save_model
    from .roles import Candidate as Candidate
    from .roles import ColumnRole as ColumnRole
    from .roles import guess_positive as guess_positive
    from .table import Table as Table
    from .table import check_cohort as check_cohort
    from .table import find_targets as find_targets
    from .table import known_labels as known_labels
    from .table import make_table as make_table
    from .table import preview_table as preview_table
    from .table import read_table as read_table
    from .text import listed_names as listed_names

_MODULES = {
    ".errors": ("InputError", "need"),
    ".files": (
        "csv_text", "harmless", "prepare_output", "whole_folder", "workbook", "write_atomic"
    ),
    ".models": ("load_model", "save_model"),
    ".roles": ("Candidate", "ColumnRole", "guess_positive"),
    ".table": (
        "Table", "check_cohort", "find_targets", "known_labels", "make_table", "preview_table",
        "read_table",
    ),
    ".text": ("listed_names",),
    "..estimators.log2": ("Log2",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
