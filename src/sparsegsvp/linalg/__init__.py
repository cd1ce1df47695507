"""Products and moments of class blocks, and exact decompositions."""

from .gsvd import gsvd, hogsvd
from .moments import ClassMoments

__all__ = ["ClassMoments", "gsvd", "hogsvd"]
