"""scikit-learn estimators: this package's methods and the paper's own."""

from .gsvpsvm import GSVPSVM
from .gsvpsvm_cv import GSVPSVMCV

__all__ = ["GSVPSVM", "GSVPSVMCV"]
