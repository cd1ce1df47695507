"""The sparse generalized singular vector problem and the ways to solve it."""

from .api import GSVPResult, sparse_gsvp, sparse_gsvp_path
from .penalties import L1, Lq

__all__ = ["L1", "GSVPResult", "Lq", "sparse_gsvp", "sparse_gsvp_path"]
