"""Run pieces of work in processes that can be stopped when they take too long."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from joblib import Parallel, delayed

from .._parallel import on_cluster, sharing
from ._threads import one_thread
from ._worker import cloudpickle, read_message, write_message

#: One thread per process: fits are timed alike, and workers do not fight over cores.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}


@dataclass(frozen=True)
class Task:
    """A piece of work: ``function(shared, *arguments)`` yields its parts."""

    key: tuple[Any, ...]
    function: Callable[..., Iterator[Any]]
    arguments: tuple[Any, ...]


@dataclass
class Outcome:
    """What became of a task: the parts it finished, and why it ended early if it did."""

    task: Task
    parts: list[Any] = field(default_factory=list)
    status: str = "ok"  # or "failed", "timeout", "died", "cancelled"
    error: str | None = None


class _Worker:
    """A child process and the thread that reads its answers."""

    def __init__(self, shared: bytes) -> None:
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            "from sparsegsvp.evaluation._worker import main; main()"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_ENVIRONMENT},
        )
        self.answers: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._send(shared)

    def _read(self) -> None:
        assert self.process.stdout is not None
        while (payload := read_message(self.process.stdout)) is not None:  # type: ignore[arg-type]
            self.answers.put(cloudpickle.loads(payload))
        self.answers.put(("died", None))

    def _send(self, payload: bytes) -> None:
        assert self.process.stdin is not None
        write_message(self.process.stdin, payload)  # type: ignore[arg-type]

    def run(self, task: Task, time_limit: float | None) -> Outcome:
        outcome = Outcome(task)
        try:
            self._send(cloudpickle.dumps(("task", (task.function, task.arguments))))
        except OSError:
            self.answers.put(("died", None))
        deadline = None if time_limit is None else time.monotonic() + time_limit
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                kind, content = self.answers.get(timeout=left)
            except queue.Empty:
                outcome.status, outcome.error = "timeout", f"stopped after {time_limit:g} s"
                return outcome
            if kind == "part":
                outcome.parts.append(content)
                continue
            if kind == "error":
                outcome.status, outcome.error = "failed", content
            elif kind == "died":
                code = self.process.wait()
                outcome.status, outcome.error = "died", f"its process ended with code {code}"
            return outcome

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def run_tasks(
    tasks: Sequence[Task],
    shared: Any,
    *,
    n_jobs: int = 1,
    time_limit: float | None = None,
    cancelled: Callable[[Task], bool] = lambda task: False,
) -> Iterator[Outcome]:
    """Yield the outcome of each task as it ends.

    Under joblib's Dask backend the tasks go to its cluster.

    Parameters
    ----------
    tasks : sequence of Task
        The work; begun in this order.
    shared : object
        Sent to each process once, and given to every task.
    n_jobs : int, default=1
        Processes. With one and no time limit, the work is done in this process.
    time_limit : float, optional
        Seconds for each task, after which its process is killed.
    cancelled : callable
        Asked before a task begins whether it is still wanted.
    """
    if on_cluster():
        if time_limit is not None:
            raise ValueError(
                "time_limit stops processes of this machine, not those of a cluster: "
                "leave it out, or leave joblib's Dask backend"
            )
        yield from _run_on_cluster(tasks, shared, cancelled)
        return
    if n_jobs == 1 and time_limit is None:
        for task in tasks:
            yield Outcome(task, status="cancelled") if cancelled(task) else _run_here(task, shared)
        return
    yield from _run_apart(tasks, shared, n_jobs, time_limit, cancelled)


def _run_here(task: Task, shared: Any) -> Outcome:
    outcome = Outcome(task)
    try:
        with one_thread():
            for part in task.function(shared, *task.arguments):
                outcome.parts.append(part)
    except Exception as error:
        outcome.status, outcome.error = "failed", f"{type(error).__name__}: {error}"
    return outcome


def _run_on_cluster(
    tasks: Sequence[Task], shared: Any, cancelled: Callable[[Task], bool]
) -> Iterator[Outcome]:
    left_out: list[Task] = []

    def wanted(sent: Any) -> Iterator[Any]:
        for task in tasks:
            if cancelled(task):
                left_out.append(task)
            else:
                yield delayed(_run_here)(task, sent)

    with sharing(shared) as (sent,):
        yield from Parallel(return_as="generator_unordered")(wanted(sent))
    for task in left_out:
        yield Outcome(task, status="cancelled")


def _run_apart(
    tasks: Sequence[Task],
    shared: Any,
    n_jobs: int,
    time_limit: float | None,
    cancelled: Callable[[Task], bool],
) -> Iterator[Outcome]:
    payload = cloudpickle.dumps(("shared", shared))
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    outcomes: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    workers: dict[int, _Worker] = {}
    closing = threading.Event()

    def serve(slot: int) -> None:
        try:
            while not closing.is_set():
                try:
                    task = waiting.get_nowait()
                except queue.Empty:
                    return
                if cancelled(task):
                    outcomes.put(Outcome(task, status="cancelled"))
                    continue
                if slot not in workers:
                    workers[slot] = _Worker(payload)
                    workers[slot].run(Task((), _nothing, ()), None)  # imports are not timed
                outcome = workers[slot].run(task, time_limit)
                if outcome.status in ("timeout", "died"):
                    workers.pop(slot).stop()
                outcomes.put(outcome)
        except BaseException as error:
            outcomes.put(error)

    threads = [
        threading.Thread(target=serve, args=(slot,), daemon=True)
        for slot in range(min(n_jobs, len(tasks)))
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in tasks:
            outcome = outcomes.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
    finally:
        closing.set()
        for worker in list(workers.values()):
            worker.stop()
        for thread in threads:
            thread.join(timeout=5)
        for worker in list(workers.values()):  # one may have been started meanwhile
            worker.stop()


def _nothing(shared: Any) -> Iterator[Any]:
    yield from ()
