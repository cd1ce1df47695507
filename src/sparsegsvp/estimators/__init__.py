"""scikit-learn estimators: this package's methods and the paper's own."""

from .gsvpsvm import GSVPSVM
from .gsvpsvm_cv import GSVPSVMCV
from .lq import LqGSVPSVM
from .pgd import PGDGSVPSVM, elbow_features, find_elbow
from .pipeline import BatchCenterer, Panel, PanelPipeline

__all__ = [
    "GSVPSVM",
    "GSVPSVMCV",
    "PGDGSVPSVM",
    "BatchCenterer",
    "LqGSVPSVM",
    "Panel",
    "PanelPipeline",
    "elbow_features",
    "find_elbow",
]
