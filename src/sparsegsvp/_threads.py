"""Threads of the linear algebra beneath a piece of work."""

from __future__ import annotations

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits


def one_thread() -> AbstractContextManager[object]:
    """Run the work inside on one thread of BLAS, as joblib's processes do.

    The limit is the process's, so this is for the main thread alone: fits never call it.
    """
    return threadpool_limits(limits=1)
