"""Threads and processes of a piece of work, and the memory there is for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Run the work inside on one thread of BLAS, as joblib's processes do.

    The limit is the process's, so this is for the main thread alone: fits never call it.
    """
    return _controller(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Return what knows the loaded libraries: looked for again when modules were imported since."""
    return ThreadpoolController()


@contextmanager
def started_workers(n_jobs: int | None) -> Iterator[Callable[[], None]]:
    """Start joblib's processes, which import the package while this one reads its input.

    Yields a function that waits until they have.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    count = effective_n_jobs(n_jobs)
    calls = (delayed(_load)() for _ in range(count if count > 1 else 0))
    loaded = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    try:
        yield lambda: list(loaded).clear()
    finally:
        with suppress(Exception):  # an error ends the run, whatever became of them
            list(loaded)


def _load() -> None:
    from .evaluation import nested  # noqa: F401


def memory_size() -> int:
    """Return the bytes of memory of this machine; very many where that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # pragma: no cover  (not on this platform)
        return 1 << 40
