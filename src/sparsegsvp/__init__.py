"""Small, stable feature panels and classifiers from sparse generalized singular vectors.

Names are loaded when first used, so ``import sparsegsvp`` costs next to nothing and
optional dependencies are needed only by the parts that use them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

# module -> the public names that it defines
_EXPORTS = {
    "estimators": ("GSVPSVM", "GSVPSVMCV", "LqGSVPSVM", "PGDGSVPSVM", "Panel"),
    "evaluation": ("StabilitySelection", "compare", "nested_evaluate"),
    "io": ("load_model", "save_model"),
    "linalg": ("ClassMoments", "gsvd", "hogsvd"),
    "solvers": ("GSVPResult", "sparse_gsvp", "sparse_gsvp_path", "subset_gsvp"),
    "workflow": ("Selection", "select_panel"),
}
_MODULES = ("datasets", "metrics", "plots", "related", "scverse")

__all__ = [
    "GSVPSVM",
    "GSVPSVMCV",
    "PGDGSVPSVM",
    "ClassMoments",
    "GSVPResult",
    "LqGSVPSVM",
    "Panel",
    "Selection",
    "StabilitySelection",
    "__version__",
    "compare",
    "datasets",
    "gsvd",
    "hogsvd",
    "load_model",
    "metrics",
    "nested_evaluate",
    "plots",
    "related",
    "save_model",
    "scverse",
    "select_panel",
    "sparse_gsvp",
    "sparse_gsvp_path",
    "subset_gsvp",
]

if TYPE_CHECKING:
    from . import datasets, metrics, plots, related, scverse
    from .estimators import GSVPSVM, GSVPSVMCV, PGDGSVPSVM, LqGSVPSVM, Panel
    from .evaluation import StabilitySelection, nested_evaluate
    from .evaluation.compare import compare
    from .io import load_model, save_model
    from .linalg import ClassMoments, gsvd, hogsvd
    from .solvers import GSVPResult, sparse_gsvp, sparse_gsvp_path, subset_gsvp
    from .workflow import Selection, select_panel


def __getattr__(name: str) -> Any:
    for module, names in _EXPORTS.items():
        if name in names:
            value = getattr(importlib.import_module(f".{module}", __name__), name)
            globals()[name] = value
            return value
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
