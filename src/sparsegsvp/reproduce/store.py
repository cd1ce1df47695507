"""Work in pieces: each computed once, kept on disk, and never computed again."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from .. import __version__
from ..datasets import Dataset

Progress = Callable[[str, int, int], None]
Result = dict[str, Any]

# Raise when a task returns something else than it did for the same arguments.
_FORMAT = 1


@dataclass(frozen=True)
class Task:
    """A function of a data set and of plain arguments that returns plain values.

    Attributes
    ----------
    name : str
        Readable and unique within a study, such as ``"starts/l1/7"``.
    function : callable
        Called as ``function(data, **arguments)``; importable by name.
    arguments : dict
        Values that JSON can hold.
    """

    name: str
    function: Callable[..., Result]
    arguments: dict[str, Any] = field(default_factory=dict)


class Store:
    """Results of tasks on one data set, one file each.

    A file is written under another name and then renamed, so that an interrupted run leaves
    whole files only; a damaged one counts as absent. The name holds a digest of the data,
    the arguments and the version, so a changed experiment never reads an old result.

    Parameters
    ----------
    folder : Path
    data : Dataset

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.reproduce.store import Store, Task
    >>> def count(data, times):
    ...     return {"samples": times * len(data.y)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder), make_planted(20, 5))
    ...     first = store.run([Task("twice", count, {"times": 2})])
    ...     again = store.run([Task("twice", count, {"times": 2})])
    ...     first == again, store.computed
    (True, 1)
    """

    def __init__(self, folder: Path, data: Dataset) -> None:
        self.folder = folder
        self.data = data
        self.seconds: dict[str, float] = {}
        self.computed = 0
        self._digest = _digest(data)

    def run(
        self,
        tasks: Iterable[Task],
        *,
        stage: str = "",
        progress: Progress | None = None,
        n_jobs: int | None = None,
    ) -> dict[str, Result]:
        """Return the result of each task by name, computing what is missing.

        Parameters
        ----------
        tasks : iterable of Task
        stage : str
            What to call this work in reports of progress.
        progress : callable, optional
            Called with the stage, the number of finished tasks and their total.
        n_jobs : int, optional
            Worker processes, as in joblib.

        Returns
        -------
        dict
            In the order of the tasks.
        """
        wanted = list(tasks)
        found = {task.name: self._read(task) for task in wanted}
        missing = [task for task in wanted if found[task.name] is None]
        report = progress or (lambda stage, done, total: None)
        done = len(wanted) - len(missing)
        report(stage, done, len(wanted))
        for task, result, seconds in self._compute(missing, n_jobs):
            found[task.name] = self._write(task, result, seconds)
            self.computed += 1
            done += 1
            report(stage, done, len(wanted))
        return {task.name: found[task.name]["result"] for task in wanted}  # type: ignore[index]

    def _compute(
        self, tasks: list[Task], n_jobs: int | None
    ) -> Iterator[tuple[Task, Result, float]]:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        outcomes = parallel(
            delayed(_timed)(index, task, self.data) for index, task in enumerate(tasks)
        )
        for index, result, seconds in outcomes:
            yield tasks[index], result, seconds

    def _path(self, task: Task) -> Path:
        function = f"{task.function.__module__}.{task.function.__qualname__}"
        identity = json.dumps(
            [_FORMAT, __version__, self._digest, function, task.arguments], sort_keys=True
        )
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return self.folder / f"{task.name.replace('/', '-')}-{digest}.json"

    def _read(self, task: Task) -> Result | None:
        try:
            entry = json.loads(self._path(task).read_text(encoding="utf-8"))
            self.seconds[task.name] = float(entry["seconds"])
            return entry if isinstance(entry["result"], dict) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, task: Task, result: Result, seconds: float) -> Result:
        entry = {"result": result, "seconds": seconds}
        path = self._path(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(entry, sort_keys=True, allow_nan=False), encoding="utf-8")
        partial.replace(path)
        self.seconds[task.name] = seconds
        return entry


def _timed(index: int, task: Task, data: Dataset) -> tuple[int, Result, float]:
    # One BLAS thread: the long iterations amplify rounding, which depends on their number.
    with threadpool_limits(limits=1, user_api="blas"):
        start = time.perf_counter()
        result = task.function(data, **task.arguments)
    # Through JSON and back, so that a fresh result and a stored one are the same values.
    return index, json.loads(json.dumps(result)), time.perf_counter() - start


def _digest(data: Dataset) -> str:
    digest = hashlib.sha256()
    for array in (data.X, data.y, data.feature_names):
        contiguous = np.ascontiguousarray(array)
        digest.update(f"{contiguous.dtype.str}{contiguous.shape}".encode())
        digest.update(contiguous.tobytes())
    return digest.hexdigest()
