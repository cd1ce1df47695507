"""Files in and out: tables, models, and folders written whole or not at all."""

from ._errors import InputError
from ._table import Table, read_table

__all__ = ["InputError", "Table", "read_table"]
