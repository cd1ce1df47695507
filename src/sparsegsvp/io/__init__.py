"""Files in and out: tables, models, and folders written whole or not at all.

Nothing here is needed to fit a model in Python; the command line reads and writes through
it, and `save_model` and `load_model` are also public in the package itself. Names are
loaded when first used, so that the command line answers ``--help`` at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# public name -> module that defines it
_EXPORTS = {
    "InputError": ".errors",
    "Log2": ".transform",
    "Table": ".table",
    "check_cohort": ".table",
    "csv_text": ".files",
    "harmless": ".files",
    "load_model": ".models",
    "make_table": ".memory",
    "open_table": ".lazy",
    "read_table": ".table",
    "save_model": ".models",
    "whole_folder": ".files",
    "write_atomic": ".files",
}

__all__ = [
    "InputError",
    "Log2",
    "Table",
    "check_cohort",
    "csv_text",
    "harmless",
    "load_model",
    "make_table",
    "open_table",
    "read_table",
    "save_model",
    "whole_folder",
    "write_atomic",
]

if TYPE_CHECKING:
    from .errors import InputError
    from .files import csv_text, harmless, whole_folder, write_atomic
    from .lazy import open_table
    from .memory import make_table
    from .models import load_model, save_model
    from .table import Table, check_cohort, read_table
    from .transform import Log2


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
