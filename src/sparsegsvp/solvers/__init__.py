"""The sparse generalized singular vector problem and the ways to solve it."""

from ._api import GSVPResult, sparse_gsvp, sparse_gsvp_path

__all__ = ["GSVPResult", "sparse_gsvp", "sparse_gsvp_path"]
