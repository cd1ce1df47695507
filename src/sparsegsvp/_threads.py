"""Threads of the linear algebra beneath a piece of work."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
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
