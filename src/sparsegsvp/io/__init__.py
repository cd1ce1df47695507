"""Files in and out: tables, models, and folders written whole or not at all.

The walk to a `Table`: `formats` knows a file by its name, `text`, `geo` or a library reads it;
`frame` holds any input as one data frame of cells; `table` makes the table: `cells` reads numbers
and labels, `roles` says what columns are for, `checks` refuses. `files` and `models` write.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import InputError as InputError
    from .models import load_model as load_model
    from .models import save_model as save_model
    from .table import Table as Table
    from .table import make_table as make_table
    from .table import read_table as read_table

_MODULE_OF = {"InputError": "errors", "load_model": "models", "save_model": "models"}
_MODULE_OF |= dict.fromkeys(("Table", "make_table", "read_table"), "table")
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
