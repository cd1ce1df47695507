"""A search in processes: none outlives its parent, and results do not depend on the machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sparsegsvp.datasets import data_folder

SEARCH = """
import os, sys, time
import numpy as np
from sparsegsvp import GSVPSVMCV

folder, parent = sys.argv[1], os.getpid()

def slow(model, X, y):
    if os.getpid() == parent:
        time.sleep(0.5)  # long enough for the other folds to be worth a pool
        return 0.0
    open(os.path.join(folder, str(os.getpid())), "w").close()
    end = time.monotonic() + 120
    while time.monotonic() < end:
        pass

rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 20)), np.repeat([0, 1], 30)
GSVPSVMCV(tau=1.0, n_deltas=2, cv=6, n_jobs=2, scoring=slow).fit(X, y)
"""


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:  # a zombie does not run
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not os.path.isdir("/proc")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signals here")
def test_workers_end_with_a_search_that_is_killed(tmp_path) -> None:
    script, pids = tmp_path / "work.py", tmp_path / "pids"
    script.write_text(SEARCH)
    pids.mkdir()
    child = subprocess.Popen([sys.executable, script, pids], start_new_session=True)
    try:
        deadline = time.monotonic() + 90
        while len(os.listdir(pids)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = [int(name) for name in os.listdir(pids)]
        assert len(workers) == 2 and child.pid not in workers
        child.kill()
        child.wait(timeout=30)
        deadline = time.monotonic() + 30
        while any(map(_running, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(_running, workers))
    finally:
        child.kill()


PANELS = """
import json, sys, warnings
import numpy as np
from sparsegsvp import GSVPSVMCV
from sparsegsvp.datasets import data_folder, make_planted
from sparsegsvp.estimators import folds

folds._WORTH_A_POOL = 0.0
n_jobs, real = int(sys.argv[1]), sys.argv[2] == "real"
X, y = make_planted(60, 500, 6, effect=1.2, random_state=1, return_X_y=True)
if real:
    with np.load(data_folder() / "colon_alon.npz") as file:
        X, y = np.log2(np.maximum(file["X"], 16)).astype(np.float32), file["y"]
found = GSVPSVMCV(n_jobs=n_jobs, n_deltas=12).fit(X, y)
sizes = [found.cv_results_[f"split{f}_n_features"].tolist() for f in range(5)]
print(json.dumps([found.get_support(indices=True).tolist(), found.best_index_, sizes]))
"""


@pytest.mark.parametrize(
    "data",
    [
        "made-up",
        pytest.param(
            "real",
            marks=pytest.mark.skipif(data_folder() is None, reason="SPARSEGSVP_DATA is not set"),
        ),
    ],
)
def test_panels_are_the_same_with_other_workers_and_on_other_processors(data) -> None:
    """OpenBLAS rounds otherwise for each kind of processor; the environment picks the kind."""
    found = []
    for n_jobs, kernel in ((1, None), (2, None), (1, "Nehalem"), (2, "Haswell")):
        environment = dict(os.environ)
        if kernel is not None:
            environment["OPENBLAS_CORETYPE"] = kernel
        done = subprocess.run(
            [sys.executable, "-c", PANELS, str(n_jobs), data],
            capture_output=True,
            text=True,
            env=environment,
            timeout=280,
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[1:] == found[:1] * 3
