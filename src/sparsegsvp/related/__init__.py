"""The methods that the sparse generalised singular value problem grew out of.

Each is a scikit-learn estimator in a file of its own. A new file joins by being here: every
estimator that a module of this package defines is a name of the package, and the estimator
checks, `sparsegsvp.evaluation.default_methods` and with it `compare` go through `__all__`. What
the methods share is in `problem` (the two classes), `base` (panels, planes) and `lasso`.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from . import base


def _methods() -> dict[str, type]:
    """Return the estimators of the package's modules by name, acronyms first."""
    found = {}
    for entry in iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        for name, kind in vars(module).items():
            own = isinstance(kind, type) and kind.__module__ == module.__name__
            if own and module is not base and issubclass(kind, base.PanelMethod):
                found[name] = kind
    return dict(sorted(found.items(), key=lambda item: (not item[0].isupper(), item[0])))


_found = _methods()
globals().update(_found)
__all__ = list(_found)


def __getattr__(name: str) -> Any:
    """Raise AttributeError; type checkers take from it that names are added at run time."""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
