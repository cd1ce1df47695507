"""Data sets: embedded, external and simulated.

Every loader returns a `Dataset`, or the pair ``(X, y)`` with ``return_X_y=True``.
"""

from .base import Dataset, data_folder, load_breast_cancer, make_planted
from .ovarian import load_ovarian

__all__ = ["Dataset", "data_folder", "load_breast_cancer", "load_ovarian", "make_planted"]
