"""What a run tells whoever is waiting for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..io import Table

# The stages of a run, in order, as they are named to the user.
TUNING = "tuning and fitting"
FOLDS = "nested cross-validation"
PERMUTATIONS = "permutation test"
RESAMPLES = "stability in half samples"
SUMMARY = "summary"
PAGE = "writing the page"


class Listener:
    """Hears how a run is doing; this one keeps the times and says nothing.

    Examples
    --------
    >>> from sparsegsvp.cli._listener import Listener
    >>> listener = Listener()
    >>> with listener.stage("a stage"):
    ...     pass
    >>> list(listener.seconds)
    ['a stage']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[None]:
        """Enclose one stage, of a known number of pieces or not."""
        start = time.perf_counter()
        self.stage_started(name, total)
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - start, 3)
            self.stage_ended(name)

    def stage_started(self, name: str, total: int | None) -> None:
        """Hear that a stage begins."""

    def stage_ended(self, name: str) -> None:
        """Hear that a stage ends, well or not."""

    def advanced(self, name: str, done: int, total: int) -> None:
        """Hear that pieces of a stage are done."""

    def table_read(self, table: Table) -> None:
        """Hear what was read."""

    def panel_found(self, results: dict[str, Any]) -> None:
        """Hear the panel, long before the estimate is known."""

    def estimated(self, results: dict[str, Any]) -> None:
        """Hear the estimate."""
