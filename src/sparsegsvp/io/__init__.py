"""Files in and out: tables, models, and folders written whole or not at all.

Nothing here is needed to fit a model in Python; the command line reads and writes through
it, and `save_model` and `load_model` are also public in the package itself.
"""

from ._errors import InputError
from ._models import load_model, save_model
from ._table import Table, read_table
from ._transform import Log2
from ._write import csv_text, harmless, whole_folder, write_atomic

__all__ = [
    "InputError",
    "Log2",
    "Table",
    "csv_text",
    "harmless",
    "load_model",
    "read_table",
    "save_model",
    "whole_folder",
    "write_atomic",
]
