"""Small products are faster on one BLAS thread, and then the same on every machine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # looking for the loaded libraries takes milliseconds, so it is done once
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager:
    """A context in which BLAS uses one thread."""
    return _controller().limit(limits=1, user_api="blas")
