"""Work in processes: one runner for folds, draws, resamples, methods and experiments.

Processes are joblib's. Where a task may be stopped or may take its process down, each slot has
a worker of its own from loky, the library behind joblib. Under joblib's Dask backend the work
goes to its cluster.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from inspect import isgenerator
from multiprocessing import resource_tracker as _tracker
from pathlib import Path
from typing import Any, Literal

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

try:
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.backend import resource_tracker as _loky_tracker
except ImportError:  # pragma: no cover  (a joblib that has loky as a dependency)
    from loky import ProcessPoolExecutor
    from loky.backend import resource_tracker as _loky_tracker

# How often a worker asks whether its parent is still there, in seconds.
_WATCH = 0.5
# Workers that may die while they are sent the data.
_ATTEMPTS = 4
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1"
)

Status = Literal["ok", "failed", "timeout", "died", "cancelled"]


@dataclass(frozen=True)
class Task:
    """A piece of work: the call ``function(shared, *arguments, **keywords)``."""

    key: tuple[Any, ...]  # unique among its kind; its record in a journal has the same
    function: Callable[..., Any]  # returns the result, or is a generator that yields it in parts
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Its status is other than "ok" only where failures are kept apart: it raised, took too long,
    lost its process, or was not begun.
    """

    task: Task
    value: Any = None  # of a generator, the list of its parts, also when it was stopped
    seconds: float = 0.0
    status: Status = "ok"
    error: str | None = None  # why it is not "ok"


Outcomes = Generator[Outcome, None, None]
Unwanted = Callable[[Task], bool]  # says of a task that has not begun whether to leave it out


def run_tasks(
    tasks: Sequence[Task],
    shared: Any = None,
    *,
    n_jobs: int | None = None,
    isolate: bool = False,
    time_limit: float | None = None,
    cancelled: Unwanted | None = None,
) -> Outcomes:
    """Yield the outcome of each task as it ends, in no particular order.

    Tasks begin in their order, each on one thread, so that results depend neither on the number
    of workers nor on the machine. Closing the generator, or an interrupt, ends the workers; use
    it in ``contextlib.closing``, so that an exception between two outcomes does so too.

    Parameters
    ----------
    shared : object
        First argument of every call. On a cluster it is sent to each worker once.
    n_jobs : int, optional
        Workers, as in joblib. With one, or for one task, the work is done in this process.
    isolate : bool, default=False
        Keep failures apart: what a task raises, or the death of its process, is its outcome,
        and the others go on. Otherwise the first exception is raised here.
    time_limit : float, optional
        Seconds for each task, after which its process is ended. Implies ``isolate``.
    cancelled : callable, optional
        Asked before a task begins whether it is no longer wanted.

    Examples
    --------
    >>> from sparsegsvp._parallel import Task, run_tasks
    >>> tasks = [Task((i,), pow, (i,)) for i in range(3)]
    >>> sorted(outcome.value for outcome in run_tasks(tasks, 2))
    [1, 2, 4]
    """
    unwanted = cancelled or (lambda task: False)
    isolate = isolate or time_limit is not None
    cluster = on_cluster()
    if cluster and time_limit is not None:
        raise ValueError(
            "time_limit stops processes of this machine, not those of a cluster: "
            "leave it out, or leave joblib's Dask backend"
        )
    workers = min(effective_n_jobs(n_jobs), len(tasks))
    if time_limit is None and (workers <= 1 or (cluster and _in_task())):
        return _run_here(tasks, shared, isolate, unwanted)
    if isolate and not cluster:
        return _run_apart(tasks, shared, max(workers, 1), time_limit, unwanted)
    return _run_with_joblib(tasks, shared, n_jobs if cluster else workers, isolate, unwanted)


# ------------------------------------------------------------------------------ one thread


@cache
def _thread_pools() -> ThreadpoolController:
    # finding the loaded libraries takes longer than a small fit: look once
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP use one thread."""
    return _thread_pools().limit(limits=1)


def _work(task: Task, shared: Any, notes: str | None = None) -> Any:
    """Do the work of a task; parts of a generator are kept in the file ``notes`` as they come."""
    with one_thread():
        value = task.function(shared, *task.arguments, **task.keywords)
        if not isgenerator(value):
            return value
        if notes is None:
            return list(value)
        parts = []
        with open(notes, "wb") as file:
            for part in value:
                pickle.dump(part, file)
                file.flush()
                parts.append(part)
        return parts


# ---------------------------------------------------------------------------- in this process


def _call(task: Task, shared: Any, isolate: bool, parent: int | None = None) -> Outcome:
    """Do the work of a task, here or in a worker of ``parent``."""
    if parent is not None:
        _become_worker(parent)
    start = time.perf_counter()
    try:
        value = _work(task, shared)
    except Exception as error:
        if not isolate:
            raise
        seconds = time.perf_counter() - start
        return Outcome(task, None, seconds, "failed", f"{type(error).__name__}: {error}")
    return Outcome(task, value, time.perf_counter() - start)


def _run_here(tasks: Sequence[Task], shared: Any, isolate: bool, cancelled: Unwanted) -> Outcomes:
    for task in tasks:
        yield Outcome(task, status="cancelled") if cancelled(task) else _call(task, shared, isolate)


# -------------------------------------------------------------------------------- with joblib


def _run_with_joblib(
    tasks: Sequence[Task], shared: Any, n_jobs: int | None, isolate: bool, cancelled: Unwanted
) -> Outcomes:
    left_out: list[Task] = []
    # workers of a cluster are not this process's children
    parent = None if on_cluster() else os.getpid()
    data = _scattered(shared) if on_cluster() and shared is not None else shared
    filters = list(warnings.filters)  # what is ignored here is ignored in workers too

    def calls() -> Iterator[Any]:
        for index, task in enumerate(tasks):
            if cancelled(task):
                left_out.append(task)
            else:
                yield delayed(_numbered)(index, task, data, isolate, parent, filters)

    found: Any = iter(())
    try:
        with _interrupts_held():
            found = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls())
        for index, outcome in found:
            # the task that is here, not the copy that came back
            yield Outcome(tasks[index], *outcome)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of what is stopped: it was asked to
            if isgenerator(found):
                found.close()
    for task in left_out:
        yield Outcome(task, status="cancelled")


def _numbered(
    index: int, task: Task, shared: Any, isolate: bool, parent: int | None, filters: list[Any]
) -> tuple[int, tuple[Any, ...]]:
    with warnings.catch_warnings() if os.getpid() != parent else nullcontext():  # not in threads
        if os.getpid() != parent:
            warnings.filters = filters
        done = _call(task, shared, isolate, parent)
    return index, (done.value, done.seconds, done.status, done.error)


def on_cluster() -> bool:
    """Whether joblib's Dask backend is active."""
    return type(get_active_backend()[0]).__name__ == "DaskDistributedBackend"


def _scattered(value: Any) -> Any:
    """Send data to every worker of the cluster, so that one that dies takes nothing with it.

    joblib would leave large arguments on a single worker. What differs from task to task comes
    in tuples, which travel with the call.
    """
    client = get_active_backend()[0].client
    for attempt in range(_ATTEMPTS):
        try:
            # in a list, because a tuple would be sent in pieces; and with a name of its own:
            # equal data may be about to be forgotten under the same name
            return client.scatter([value], broadcast=True, hash=False)[0]
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


# ------------------------------------------------------------ in processes that can be stopped


class _Slot:
    """A place for one worker process, which is replaced when it is stopped or dies."""

    def __init__(self, shared: Any, notes: Path, time_limit: float | None) -> None:
        self.shared = shared
        self.notes = notes  # where the worker keeps the parts it has finished
        self.time_limit = time_limit
        self.executor: Any = None
        self.process: Any = None
        self.task: Task | None = None
        self.future: Future[Any]
        self.began: float | None = None  # None while the worker starts: imports are not timed

    def begin(self, task: Task) -> None:
        self.task, self.began = task, None
        if self.executor is not None:
            self._submit()
            return
        with _interrupts_held():
            self.executor = ProcessPoolExecutor(
                1,
                initializer=_become_slot_worker,
                initargs=(os.getpid(), self.shared),
                env={**_ONE_THREAD, "PYTHONWARNINGS": "ignore"},
            )
            self.future = self.executor.submit(_import_for, task)

    def _submit(self) -> None:
        self.notes.unlink(missing_ok=True)
        self.began = time.monotonic()
        with _interrupts_held():
            self.future = self.executor.submit(_work_in_slot, self.task, str(self.notes))

    def seconds_left(self) -> float | None:
        if self.time_limit is None or self.began is None:
            return None
        return max(0.0, self.began + self.time_limit - time.monotonic())

    def poll(self) -> Outcome | None:
        """Return the outcome of the task, or None while it is under way."""
        if self.began is None:
            if self.future.done():
                self.future.result()  # a worker that cannot even start is nobody's failure
                self.process = next(iter(self.executor._processes.values()), None)
                self._submit()
            return None
        if self.future.done():
            error = self.future.exception()
            if error is None:
                return self._outcome("ok", None)
            if isinstance(error, BrokenExecutor):
                self.stop()
                code = getattr(self.process, "exitcode", None)
                return self._outcome("died", f"its process ended with code {code}")
            # SystemExit and its like would have ended a process without ours around it
            status: Status = "failed" if isinstance(error, Exception) else "died"
            return self._outcome(status, f"{type(error).__name__}: {error}")
        if self.seconds_left() == 0.0:
            self.stop()
            return self._outcome("timeout", f"stopped after {self.time_limit:g} s")
        return None

    def _outcome(self, status: Status, error: str | None) -> Outcome:
        assert self.task is not None and self.began is not None
        task, self.task = self.task, None
        seconds = time.monotonic() - self.began
        value = self.future.result() if status == "ok" else self._parts()
        return Outcome(task, value, seconds, status, error)

    def _parts(self) -> list[Any]:
        """Read the parts that a task finished before it ended early."""
        parts: list[Any] = []
        ends = (FileNotFoundError, EOFError, pickle.UnpicklingError)
        with suppress(*ends), open(self.notes, "rb") as file:
            while True:
                parts.append(pickle.load(file))
        return parts

    def stop(self) -> None:
        if self.executor is not None:
            executor, self.executor = self.executor, None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # without psutil and pgrep loky kills less deeply
                executor.shutdown(wait=True, kill_workers=True)


def _run_apart(
    tasks: Sequence[Task],
    shared: Any,
    n_slots: int,
    time_limit: float | None,
    cancelled: Unwanted,
) -> Outcomes:
    waiting = deque(tasks)
    with tempfile.TemporaryDirectory(prefix="sparsegsvp-") as folder:
        slots = [_Slot(shared, Path(folder, str(i)), time_limit) for i in range(n_slots)]
        try:
            while waiting or any(slot.task for slot in slots):
                for slot in slots:
                    while slot.task is None and waiting:
                        task = waiting.popleft()
                        if cancelled(task):
                            yield Outcome(task, status="cancelled")
                        else:
                            slot.begin(task)
                busy = [slot for slot in slots if slot.task]
                limits = [left for slot in busy if (left := slot.seconds_left()) is not None]
                wait(
                    [slot.future for slot in busy],
                    timeout=min(limits, default=None),
                    return_when=FIRST_COMPLETED,
                )
                for slot in busy:
                    outcome = slot.poll()
                    if outcome is not None:
                        yield outcome
        finally:
            for slot in slots:
                slot.stop()


# --------------------------------------------------------------------------- inside of a worker

_shared: Any = None
_watching = False


def _import_for(task: Task) -> None:
    """Do nothing: what the task needs was imported when it was unpickled."""


def _work_in_slot(task: Task, notes: str) -> Any:
    return _work(task, _shared, notes)


def _become_slot_worker(parent: int, shared: Any) -> None:
    """Keep the shared data, and what estimators print away from the terminal."""
    global _shared
    _shared = shared
    _become_worker(parent)
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _become_worker(parent: int) -> None:
    """Leave interrupts to the parent, and end when it is gone; once per process."""
    global _watching
    if _watching or os.getpid() == parent:
        return
    _watching = True
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    # prctl's signal on the parent's death follows the thread that made the child, which with
    # joblib may end long before the process; so the worker looks for itself
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block SIGINT in this thread, so that processes started meanwhile never see Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover  (Windows)
        yield
        return
    # starting them lifts the mask, and processes need them
    _loky_tracker.ensure_running()
    _tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
