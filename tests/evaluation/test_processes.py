"""Workers: one runner, interrupted promptly and quietly, and none outlives its parent."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from contextlib import closing

import numpy as np
import pytest
from joblib import parallel_config

from sparsegsvp._parallel import Task, run_tasks
from sparsegsvp.evaluation import nested_evaluate

needs_signals = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signals here")


def _pid(shared, *arguments):
    return os.getpid()


def _fail(shared):
    raise KeyError("from a task")


def _warn(shared):
    warnings.warn("from a task", UserWarning, stacklevel=1)


def _parts(shared, number):
    for part in range(number):
        if part == 3:
            time.sleep(3600)
        yield shared + part


def _leave(shared):
    raise SystemExit(4)


def _pids(n_tasks, **options):
    tasks = [Task((i,), _pid) for i in range(n_tasks)]
    return {outcome.value for outcome in run_tasks(tasks, **options)}


def test_a_pool_is_started_for_several_tasks_and_workers_only():
    assert _pids(1, n_jobs=2) == {os.getpid()}
    assert _pids(3, n_jobs=1) == {os.getpid()}
    assert _pids(1, n_jobs=2, isolate=True) == {os.getpid()}
    assert os.getpid() not in _pids(3, n_jobs=2)
    assert os.getpid() not in _pids(2, n_jobs=2, isolate=True)
    assert os.getpid() not in _pids(1, time_limit=60)
    with parallel_config(backend="threading", n_jobs=2):
        assert _pids(3) == {os.getpid()}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_task_raises_is_raised_unless_failures_are_kept_apart(n_jobs):
    tasks = [Task(("bad",), _fail), Task(("good",), _pid)]
    with pytest.raises(KeyError, match="from a task"):
        list(run_tasks(tasks, n_jobs=n_jobs))
    found = {o.task.key[0]: o for o in run_tasks(tasks, n_jobs=n_jobs, isolate=True)}
    assert (found["bad"].status, found["good"].status) == ("failed", "ok")
    assert "from a task" in found["bad"].error


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_becomes_of_warnings_is_decided_by_the_caller(n_jobs):
    tasks = [Task((i,), _warn) for i in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="from a task"):
            list(run_tasks(tasks, n_jobs=n_jobs))
        warnings.simplefilter("ignore")
        assert [o.status for o in run_tasks(tasks, n_jobs=n_jobs)] == ["ok"] * 2


def test_parts_survive_a_time_limit_and_others_go_on():
    tasks = [Task((n,), _parts, (n,)) for n in (5, 2)]
    tasks += [Task(("leave",), _leave), Task(("unwanted",), _pid)]
    found = {
        outcome.task.key[0]: outcome
        for outcome in run_tasks(
            tasks, 10, n_jobs=2, time_limit=2, cancelled=lambda task: task.key == ("unwanted",)
        )
    }
    assert (found[5].status, found[5].value) == ("timeout", [10, 11, 12])
    assert found[5].error == "stopped after 2 s"
    assert (found[2].status, found[2].value) == ("ok", [10, 11])
    assert found["leave"].status == "died" and found["unwanted"].status == "cancelled"


def _gone(pids, seconds=15):
    """Wait until no process of these is left."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = [pid for pid in pids if _is_alive(pid)]
        if not left:
            return True
        time.sleep(0.05)
    return False


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:  # a child of a container's first process may stay on as a zombie
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return os.path.isdir("/proc") is False


def _slow_pid(folder, number):
    open(os.path.join(folder, f"{os.getpid()}-{number}"), "w").close()
    if number:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            pass
    return number


@needs_signals
@pytest.mark.parametrize("isolate", [False, True])
def test_leaving_early_ends_the_workers(tmp_path, isolate):
    tasks = [Task((i,), _slow_pid, (i,)) for i in range(3)]
    start = time.monotonic()
    with closing(run_tasks(tasks, str(tmp_path), n_jobs=2, isolate=isolate)) as outcomes:
        assert next(outcomes).value == 0
        # kept apart, a worker that was not up when the first outcome came begins at the next
        # call, which never comes here: what began has to end
        soon = time.monotonic() + (5 if isolate else 60)
        while len(os.listdir(tmp_path)) < 2 and time.monotonic() < soon:
            time.sleep(0.05)
    assert _gone([int(name.split("-")[0]) for name in os.listdir(tmp_path)])
    assert time.monotonic() - start < 60


@needs_signals
def test_what_progress_raises_ends_the_work(planted_small, nearest_mean):
    X, y = planted_small

    class Stop(Exception):
        pass

    def progress(stage, done, total):
        if done == 1:
            raise Stop

    with pytest.raises(Stop):
        nested_evaluate(nearest_mean, X, y, n_jobs=2, n_permutations=0, progress=progress)
    found = nested_evaluate(nearest_mean, X, y, n_repeats=1, n_jobs=2, n_permutations=0)
    assert np.isfinite(found.scores["balanced_accuracy"].value)


SCRIPT = """
import os, sys, time
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sparsegsvp.evaluation import compare, nested_evaluate

class Slow(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        open(os.path.join(sys_argv[1], str(os.getpid())), "w").close()
        end = time.monotonic() + 120
        while time.monotonic() < end:
            np.ones((50, 50)) @ np.ones((50, 50))
        return self

    def predict(self, X):
        return np.zeros(len(X))

sys_argv = sys.argv
rng = np.random.default_rng(0)
X, y = rng.normal(size=(40, 20)), np.repeat([0, 1], 20)
try:
    if sys.argv[2] == "nested":
        nested_evaluate(Slow(), X, y, n_jobs=2, log=sys.argv[3])
    else:
        compare({"slow": Slow()}, X, y, sizes=(2,), n_jobs=2, time_limit=100, log=sys.argv[3])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@needs_signals
@pytest.mark.parametrize("work", ["nested", "compare"])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGHUP", "SIGINT"])
def test_workers_end_with_their_parent(tmp_path, work, name):
    script, pids = tmp_path / "work.py", tmp_path / "pids"
    script.write_text(textwrap.dedent(SCRIPT))
    pids.mkdir()
    child = subprocess.Popen(
        [sys.executable, script, pids, work, tmp_path / "log.jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while len(os.listdir(pids)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = [int(number) for number in os.listdir(pids)]
        assert len(workers) == 2 and child.pid not in workers
        if name == "SIGINT":  # Ctrl-C reaches every process of the terminal
            os.killpg(child.pid, signal.SIGINT)
        else:
            child.send_signal(getattr(signal, name))
        out, err = child.communicate(timeout=30)
        assert _gone(workers)
        assert "Traceback" not in err
        if name == "SIGINT":
            assert (out, err, child.returncode) == ("interrupted\n", "", 0)
    finally:
        child.kill()
