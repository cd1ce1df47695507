"""scikit-learn estimators: this package's methods and the paper's own."""

from .center import BatchCenterer
from .elbow import elbow_features, find_elbow
from .gsvpsvm import GSVPSVM
from .gsvpsvm_cv import GSVPSVMCV
from .lq import LqGSVPSVM
from .pgd import PGDGSVPSVM
from .pipeline import Panel, PanelPipeline

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
