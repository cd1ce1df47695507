"""Threads and workers: one thread for small products, and joblib's Dask backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from joblib import parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

# Workers that may die while they are sent the data.
_ATTEMPTS = 4


@cache
def _controller() -> ThreadpoolController:
    # looking for the loaded libraries takes longer than a small fit, so it is done once
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP use one thread.

    Small products are faster so, and the same whatever the number of threads and workers.
    """
    return _controller().limit(limits=1)


def on_cluster() -> bool:
    """Whether joblib's Dask backend is active."""
    return type(get_active_backend()[0]).__name__ == "DaskDistributedBackend"


@contextmanager
def sharing(*data: Any) -> Iterator[tuple[Any, ...]]:
    """What to pass for data that all calls of a joblib loop share.

    On a cluster that is a future for each: the data is sent once, and to every worker, so
    that one that dies takes nothing with it. joblib would leave large arguments on a single
    worker; what differs from call to call should therefore come in tuples, which travel
    with the call. Inside of a task of the cluster, loops are run where they are.
    """
    if not on_cluster():
        yield data
    elif _in_task():
        with parallel_config(backend="sequential"):
            yield data
    else:
        yield tuple(None if value is None else _scattered(value) for value in data)


def _scattered(value: Any) -> Any:
    client = get_active_backend()[0].client
    for attempt in range(_ATTEMPTS):
        try:
            # a name of its own: equal data may be about to be forgotten under the same name
            return client.scatter(value, broadcast=True, hash=False)
        except OSError:  # a worker died while it was sent the data
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _in_task() -> bool:
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True
