"""The methods that the sparse generalized singular value problem grew out of.

Each is a scikit-learn estimator, and a file is all that a new one takes: every estimator that a
module of this package defines is in `__all__`, which the estimator checks and `compare` go through.
`base` holds what the methods share.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from . import base

_MODULES = [import_module(f"{__name__}.{entry.name}") for entry in iter_modules(__path__)]
_METHODS = {
    name: kind
    for module in _MODULES
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, base.PanelMethod) and name not in vars(base)
}
__all__ = sorted(_METHODS, key=lambda name: (not name.isupper(), name))  # acronyms first
globals().update(_METHODS)


def __getattr__(name: str) -> Any:
    """Raise AttributeError; type checkers learn from it that names are added at run time."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
