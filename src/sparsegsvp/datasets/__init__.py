"""Data to learn and to measure with: embedded, external and simulated.

Every loader returns a `Dataset`, or the pair ``(X, y)`` with ``return_X_y=True``.
"""

from ._base import Dataset, data_folder
from ._breast import load_breast_cancer
from ._ovarian import load_ovarian
from ._planted import make_planted

__all__ = ["Dataset", "data_folder", "load_breast_cancer", "load_ovarian", "make_planted"]
