"""One thread per fit, so that results do not depend on how many workers there are."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    # finding the libraries takes longer than a small fit: look once
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP use one thread."""
    return _controller().limit(limits=1)
