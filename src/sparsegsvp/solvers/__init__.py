"""The sparse generalized singular vector problem and the ways to solve it."""

from .subset import SubsetResult, subset_gsvp

__all__ = ["SubsetResult", "subset_gsvp"]
