"""Products and moments of class blocks, and exact decompositions."""

from ._classes import Covariances, DataCovariances, MomentCovariances, Standardization
from ._gsvd import gsvd
from ._hogsvd import hogsvd
from ._matrix import DenseMatrix, Matrix, SparseMatrix, StackedMatrix, as_matrix, is_dask
from ._moments import ClassMoments

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
    "is_dask",
]
