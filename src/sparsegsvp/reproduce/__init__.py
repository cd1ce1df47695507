"""The paper's tables and figures, published and obtained side by side."""

from .page import Reproduction, reproduce
from .runs import Plan

__all__ = ["Plan", "Reproduction", "reproduce"]
