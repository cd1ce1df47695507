"""Threads of the linear algebra beneath a piece of work, and the processes that do it."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

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


def start_workers(n_jobs: int | None) -> Any:
    """Start joblib's processes and let them import the package while this one reads its input.

    Keep what is returned until they are needed.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    count = effective_n_jobs(n_jobs)
    if count < 2:
        return None
    return Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_load)() for _ in range(count))


def _load() -> None:
    from .evaluation import nested  # noqa: F401
