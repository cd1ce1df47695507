"""Files in and out: tables, models, and folders written whole or not at all.

The walk of a file to a `Table`, a module for each step:

- `formats` knows a file by its name and reads it: `text` and `geo` open text as rows of cells,
  `guards` and `structure` stand before what other libraries read, `lazy` leaves numbers on disk;
- `layout` gives the columns that a caller named their roles; `rows` turns rows of `cells` into
  numbers, whichever way the table lies; `memory` does so for data frames, arrays and AnnData.
  Each gives a `RawTable`;
- `labels` reads a table so, and matches labels of a second file with its samples;
- `checks` refuses what cannot be used, `roles` decides by name and values (`looks`) which of the
  other columns are features, and `derived` makes features of categories, of ages to adjust for,
  and one of several that share a name;
- `table` puts it together, with a record of what was done.

What is written goes through `files`, tables through `sheets`, models through `models` and
`archive`, which says what a model may be made of; `errors` has the one kind of error, and the
words of its messages. Names are loaded when first used, so that the command line answers
``--help`` at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import InputError as InputError
    from .errors import need as need
    from .files import prepare_output as prepare_output
    from .files import whole_folder as whole_folder
    from .files import write_atomic as write_atomic
    from .guards import end_at_once as end_at_once
    from .guards import machine_memory as machine_memory
    from .labels import check_cohort as check_cohort
    from .labels import guess_positive as guess_positive
    from .labels import known_labels as known_labels
    from .layout import ColumnRole as ColumnRole
    from .lazy import open_table as open_table
    from .memory import make_table as make_table
    from .models import Log2 as Log2
    from .models import load_model as load_model
    from .models import save_model as save_model
    from .preview import Preview as Preview
    from .preview import preview_table as preview_table
    from .sheets import csv_text as csv_text
    from .sheets import harmless as harmless
    from .sheets import workbook as workbook
    from .table import Table as Table
    from .table import read_table as read_table
    from .text import listed_names as listed_names

_MODULES = {
    "errors": ("InputError", "need"),
    "files": ("prepare_output", "whole_folder", "write_atomic"),
    "guards": ("end_at_once", "machine_memory"),
    "labels": ("check_cohort", "guess_positive", "known_labels"),
    "layout": ("ColumnRole",),
    "lazy": ("open_table",),
    "text": ("listed_names",),
    "memory": ("make_table",),
    "models": ("Log2", "load_model", "save_model"),
    "preview": ("Preview", "preview_table"),
    "sheets": ("csv_text", "harmless", "workbook"),
    "table": ("Table", "read_table"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
