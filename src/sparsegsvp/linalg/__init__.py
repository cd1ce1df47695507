"""Products and moments of class blocks, and exact decompositions."""

from .gsvd import gsvd
from .hogsvd import hogsvd
from .moments import ClassMoments
from .rows import DenseRows, Rows, SparseRows, as_rows

__all__ = ["ClassMoments", "DenseRows", "Rows", "SparseRows", "as_rows", "gsvd", "hogsvd"]
