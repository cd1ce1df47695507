"""The stages of a run: how far it has come, how long each took, and a way to end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .._typing import Progress

TUNING = "tuning and fitting"
SUMMARY = "summary"


class Cancelled(Exception):
    """The run was ended by its caller; nothing was written."""


class Stages:
    """Passes progress on, keeps the seconds of each stage, and asks whether to go on.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    cancel : callable, optional
        Asked after each piece of work; the run ends with `Cancelled` once it returns True.

    Examples
    --------
    >>> from sparsegsvp.workflow.stages import Stages
    >>> stages = Stages(print)
    >>> with stages.stage("counting"):
    ...     pass
    counting 0 1
    counting 1 1
    >>> list(stages.seconds)
    ['counting']
    """

    def __init__(
        self, progress: Progress | None = None, cancel: Callable[[], bool] | None = None
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._progress, self._cancel = progress, cancel
        self._started: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Take the report of a piece of work."""
        now = time.perf_counter()
        self.seconds[stage] = round(now - self._started.setdefault(stage, now), 3)
        if self._progress is not None:
            self._progress(stage, done, total)
        if self._cancel is not None and self._cancel():
            raise Cancelled("the run was cancelled; nothing was written")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Enclose a stage that is one piece."""
        self(name, 0, 1)
        yield
        self(name, 1, 1)
