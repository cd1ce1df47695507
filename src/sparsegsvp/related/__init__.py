"""The methods that the sparse generalized singular value problem grew out of.

Each is a scikit-learn estimator in a file of its own, and a file is all that a new one takes:
every estimator defined in a module of this package is listed in `__all__`, which the estimator
checks and `compare` go through. `base` holds what the methods share.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from . import base


def _methods() -> dict[str, type]:
    """Return the estimators of the package's modules by name, acronyms first."""
    methods = {}
    for entry in iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        for name, kind in vars(module).items():
            here = isinstance(kind, type) and kind.__module__ == module.__name__
            if here and module is not base and issubclass(kind, base.PanelMethod):
                methods[name] = kind
    return dict(sorted(methods.items(), key=lambda item: (not item[0].isupper(), item[0])))


__all__ = list(_methods())
globals().update(_methods())


def __getattr__(name: str) -> Any:
    """Raise AttributeError; type checkers learn from it that names are added at run time."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
