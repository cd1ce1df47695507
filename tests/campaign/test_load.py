"""Large tables: how much time and memory they take, in multiples of what is unavoidable.

Each trial runs in a process of its own. Memory is what it needs beyond what it held before, as a
multiple of the table's bytes. Time is that of the processor, as a multiple of a yardstick that the
same process measures first: a product of the table with itself, or a pass that only reads it. The
bounds are about twice what was measured.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(1800)]

MEASURE = """
import json, resource, sys, time, warnings
import numpy as np

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

def seconds(work):
    start = time.process_time()
    found = work()
    return time.process_time() - start, found

def wide(n, m, dtype=np.float64):
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    X = rng.standard_normal((n, m), dtype=dtype)
    X[:, :6] += 2.0 * y[:, None]
    return X, y

def report(size, unit, work):
    before = peak()
    took, found = seconds(work)
    print(json.dumps({
        "memory": (peak() - before) / size, "time": took / unit, "seconds": took,
        "megabytes": peak() / 1e6, "found": found,
    }))
"""

WIDE_SEARCH = """
from sparsegsvp import GSVPSVMCV
X, y = wide(100, 200_000)
unit, _ = seconds(lambda: X @ X.T)
report(X.nbytes, unit, lambda: GSVPSVMCV().fit(X, y).get_support(indices=True).tolist())
"""

WIDE_FILE = """
import csv, os
from sparsegsvp import select_panel
X, y = wide(100, 200_000, np.float32)
unit, _ = seconds(lambda: X @ X.T)
path, size = sys.argv[1], 2 * X.nbytes
with open(path, "w", newline="") as file:
    write = csv.writer(file).writerow
    write(["class", *(f"gene{j}" for j in range(X.shape[1]))])
    for label, row in zip(y, X):
        write([("control", "case")[label], *(f"{v:.4f}" for v in row)])
del X

def work():
    chosen = select_panel(path, target="class", fast=True, permutations=0, resamples=0, repeats=1)
    return [int(row["feature"][4:]) for row in chosen.document["panel"]]

report(size, unit, work)
"""

TALL = """
import dask.array as da
from sparsegsvp import GSVPSVM
n, m, rows = 10_000_000, 30, 200_000
y = (np.arange(n) % 2).astype(np.int8)

def chunk(block_info=None):
    (start, stop), _ = block_info[None]["array-location"]
    X = np.random.default_rng(start).random((stop - start, m), dtype=np.float32)
    X[:, :6] += np.float32(0.3) * y[start:stop, None]
    return X

X = da.map_blocks(chunk, chunks=da.core.normalize_chunks((rows, -1), (n, m)),
                  dtype=np.float32, meta=np.empty((0, 0), np.float32))
unit, _ = seconds(lambda: X.max().compute())
report(n * m * 4, unit,
       lambda: GSVPSVM(n_features=6).fit(X, y).get_support(indices=True).tolist())
"""

CLASSES = """
from sparsegsvp import GSVPSVM
n, m, k = 2_000, 500, 100
rng, y = np.random.default_rng(0), np.arange(n) % k
X = rng.standard_normal((n, m))
X[:, :20] += 3.0 * rng.standard_normal((k, 20))[y]

def products():
    for _ in range(k):
        X.T @ X

unit, _ = seconds(products)
report(k * m * m * 8, unit, lambda: float(GSVPSVM(n_features=20).fit(X, y).score(X, y)))
"""

CLASS_OF_TWO = """
from sparsegsvp import GSVPSVM, GSVPSVMCV
X, _ = wide(100, 200_000)
y = (np.arange(100) < 2).astype(int)
X[:2, :6] += 8.0
unit, _ = seconds(lambda: X @ X.T)

def work():
    try:
        GSVPSVMCV().fit(X, y)
    except ValueError as error:
        assert "class 1" in str(error), error
        return GSVPSVM(n_features=6).fit(X, y).get_support(indices=True).tolist()

report(X.nbytes, unit, work)
"""


def measured(what: str, *words: str) -> dict[str, Any]:
    """Run a trial in a process of its own and return what it measured."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURE + what, *words],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check(campaign: Any, name: str, found: dict[str, Any], memory: float, time: float) -> None:
    """Record what was measured, and assert the bounds."""
    campaign.record(f"{name}: seconds of CPU", math.ceil(found["seconds"]))
    campaign.record(f"{name}: megabytes at most", math.ceil(found["megabytes"]))
    assert found["memory"] < memory, found
    assert found["time"] < time, found


def test_a_search_among_200_000_features(campaign: Any) -> None:
    """Measured: 1.5 times the table, 98 products of it with itself (6.5 s), 0.6 GB in all."""
    found = measured(WIDE_SEARCH)
    check(campaign, "200,000 features", found, memory=3.0, time=200.0)
    assert set(found["found"]) <= set(range(6)) and len(found["found"]) >= 3


def test_200_000_features_from_a_file(campaign: Any, tmp_path: Any) -> None:
    """Measured: 6.8 times the table as float64, 1,400 products of it (52 s), 1.4 GB in all."""
    found = measured(WIDE_FILE, str(tmp_path / "wide.csv"))
    check(campaign, "200,000 features from a file", found, memory=14.0, time=2800.0)
    assert set(found["found"]) <= set(range(6)) and len(found["found"]) >= 3


def test_10_000_000_rows_in_chunks(campaign: Any) -> None:
    """Measured: 0.31 times the table (1.2 GB, never held), 4.6 passes that make it (4.5 s)."""
    pytest.importorskip("dask.array")
    found = measured(TALL)
    check(campaign, "10,000,000 rows", found, memory=0.6, time=10.0)
    assert found["found"] == list(range(6))


def test_100_classes(campaign: Any) -> None:
    """Measured: 0.27 times the moments of all classes, 1.3 times forming these (1.6 s)."""
    found = measured(CLASSES)
    check(campaign, "100 classes", found, memory=0.6, time=3.0)
    assert found["found"] > 0.99


def test_a_class_of_two(campaign: Any) -> None:
    """It is fitted; a search, which would leave one of the two in a fold, refuses it by name.

    Measured: 0.33 times the table, 7 products of it with itself (0.5 s).
    """
    found = measured(CLASS_OF_TWO)
    check(campaign, "a class of two", found, memory=0.8, time=15.0)
    assert found["found"] == list(range(6))
