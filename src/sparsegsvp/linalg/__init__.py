"""Products and moments of class blocks, and exact decompositions."""

from .covariances import Covariances, DataCovariances, MomentCovariances, Standardization
from .gsvd import gsvd
from .hogsvd import hogsvd
from .matrix import DenseMatrix, Matrix, SparseMatrix, as_matrix
from .moments import ClassMoments
from .stacked import StackedMatrix

__all__ = [
    "ClassMoments",
    "Covariances",
    "DataCovariances",
    "DenseMatrix",
    "Matrix",
    "MomentCovariances",
    "SparseMatrix",
    "StackedMatrix",
    "Standardization",
    "as_matrix",
    "gsvd",
    "hogsvd",
]
