"""Products and moments of class blocks, and exact decompositions."""

from .gsvd import gsvd
from .hogsvd import hogsvd
from .matrix import DenseMatrix, Matrix, SparseMatrix, as_matrix
from .moments import ClassMoments

__all__ = [
    "ClassMoments",
    "DenseMatrix",
    "Matrix",
    "SparseMatrix",
    "as_matrix",
    "gsvd",
    "hogsvd",
]
