"""What loops over folds, resamples and methods need of joblib's Dask backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from joblib import parallel_config
from joblib.parallel import get_active_backend

_ATTEMPTS = 4


def on_cluster() -> bool:
    """Whether joblib's Dask backend is active."""
    return type(get_active_backend()[0]).__name__ == "DaskDistributedBackend"


@contextmanager
def sharing(*data: Any) -> Iterator[None]:
    """Send data once to a cluster, if there is one, before a loop that is run on it.

    Every worker gets a copy, so that one that dies takes nothing with it. joblib would
    leave large arguments on a single worker; what differs from task to task should come in
    tuples, which travel with the task. Inside of a task, loops are run where they are.
    """
    if not on_cluster():
        context: Any = nullcontext()
    elif _in_task():
        context = parallel_config(backend="sequential")
    else:
        context = _scattered([value for value in data if value is not None])
    with context:
        yield


def _scattered(data: list[Any]) -> Any:
    client = get_active_backend()[0].client
    for attempt in range(_ATTEMPTS):
        try:
            return parallel_config(backend="dask", client=client, scatter=data)
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
