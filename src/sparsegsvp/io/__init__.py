"""Files in and out: tables, models, and folders written whole or not at all.

Nothing here is needed to fit a model in Python; the command line reads and writes through
it, and `save_model` and `load_model` are also public in the package itself. Names are
loaded when first used, so that the command line answers ``--help`` at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import InputError as InputError
    from .files import csv_text as csv_text
    from .files import harmless as harmless
    from .files import prepare_output as prepare_output
    from .files import whole_folder as whole_folder
    from .files import write_atomic as write_atomic
    from .guards import end_at_once as end_at_once
    from .lazy import open_table as open_table
    from .lists import listed_names as listed_names
    from .memory import make_table as make_table
    from .models import Log2 as Log2
    from .models import load_model as load_model
    from .models import save_model as save_model
    from .roles import ColumnRole as ColumnRole
    from .table import Table as Table
    from .table import check_cohort as check_cohort
    from .table import guess_positive as guess_positive
    from .table import known_labels as known_labels
    from .table import read_table as read_table

_MODULES = {
    "errors": ("InputError",),
    "files": ("csv_text", "harmless", "prepare_output", "whole_folder", "write_atomic"),
    "guards": ("end_at_once",),
    "lazy": ("open_table",),
    "lists": ("listed_names",),
    "memory": ("make_table",),
    "models": ("Log2", "load_model", "save_model"),
    "roles": ("ColumnRole",),
    "table": ("Table", "check_cohort", "guess_positive", "known_labels", "read_table"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
