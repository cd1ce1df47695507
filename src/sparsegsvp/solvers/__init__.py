"""The sparse generalized singular vector problem and the ways to solve it."""

from .api import GSVPResult, sparse_gsvp, sparse_gsvp_path
from .pgd import PGDHistory, PGDResult, l1_pgd_gsvp, lq_pgd_gsvp, lq_prox
from .subset import SubsetResult, subset_gsvp

__all__ = [
    "GSVPResult",
    "PGDHistory",
    "PGDResult",
    "SubsetResult",
    "l1_pgd_gsvp",
    "lq_pgd_gsvp",
    "lq_prox",
    "sparse_gsvp",
    "sparse_gsvp_path",
    "subset_gsvp",
]
