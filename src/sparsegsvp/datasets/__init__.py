"""Data sets: embedded, external and simulated.

Every loader returns a `Dataset`, or the pair ``(X, y)`` with ``return_X_y=True``.
"""

from .loaders import Dataset, load_breast_cancer, load_ovarian
from .simulated import make_cells, make_planted

__all__ = ["Dataset", "load_breast_cancer", "load_ovarian"]
__all__ += ["make_cells", "make_planted"]
