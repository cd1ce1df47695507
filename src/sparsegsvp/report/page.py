"""From the document to one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .schema import validate


def build_report(results: Mapping[str, Any]) -> str:
    """Draw the page."""
    validate(results)
    return "<!doctype html>"
