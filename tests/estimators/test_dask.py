"""Dask arrays and frames give what the same rows in memory give, in few passes.

Everything runs on the threaded scheduler and on a LocalCluster of two processes.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal

from sparsegsvp import (
    GSVPSVM,
    GSVPSVMCV,
    ClassMoments,
    StabilitySelection,
    compare,
    nested_evaluate,
    sparse_gsvp,
    sparse_gsvp_path,
)
from sparsegsvp.linalg import StackedMatrix
from sparsegsvp.linalg.lazy import DaskMatrix

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

# name -> shape, dtype, chunks
TABLES = {
    "tall, rows": ((1500, 12), np.float64, (400, 12)),
    "tall, columns": ((1500, 12), np.float32, (1500, 5)),
    "wide, rows": ((110, 900), np.float64, (40, 900)),
    "wide, both": ((110, 900), np.float32, (60, 250)),
}


def make_rows(shape, dtype, seed=0):
    """Classes a (60%) and b, five features that differ; the fourth has a mean of 1000."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(shape[0]) % 5 < 3, "a", "b")
    X = rng.normal(size=shape)
    X[:, :5] += 0.8 * (y == "b")[:, None]
    X[:, 3] += 1000.0
    return X.astype(dtype), y


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["threads", "distributed"])
def scheduler(request):
    """The scheduler of the test: the default one, or a cluster as a context."""
    if request.param == "threads":
        yield
        return
    with request.getfixturevalue("cluster").as_current():
        yield


def assert_same_model(found, expected):
    assert_array_equal(found.support_, expected.support_)
    for name in ("coef_", "intercept_", "scale_", "objective_", "delta_"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-12)
    for mine, theirs in zip(found.calibrator_, expected.calibrator_):
        assert_allclose(mine, theirs, rtol=1e-8)


@pytest.mark.parametrize("name", TABLES)
def test_a_fit_equals_the_one_in_memory(name, scheduler):
    shape, dtype, chunks = TABLES[name]
    X, y = make_rows(shape, dtype)
    lazy = da.from_array(X, chunks=chunks)
    model, expected = GSVPSVM(delta=0.05).fit(lazy, y), GSVPSVM(delta=0.05).fit(X, y)
    assert_same_model(model, expected)
    assert_allclose(model.predict_proba(lazy), expected.predict_proba(X), rtol=1e-8)
    predicted = model.predict(lazy)
    assert isinstance(predicted, np.ndarray)
    assert_array_equal(predicted, expected.predict(X))
    assert model.score(lazy, y) == expected.score(X, y)


@pytest.mark.parametrize("name", TABLES)
def test_a_search_equals_the_one_in_memory(name, scheduler):
    shape, dtype, chunks = TABLES[name]
    X, y = make_rows(shape, dtype)
    search = GSVPSVMCV(tau=1.0, n_deltas=3, ratio=0.2, cv=2)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    lazy = da.from_array(X, chunks=chunks)
    expected = GSVPSVMCV(**search.get_params()).fit(X, y, sample_weight=weight)
    found = search.fit(lazy, da.from_array(y), sample_weight=da.from_array(weight))
    assert_same_model(found, expected)
    assert found.best_index_ == expected.best_index_
    assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-8
    )


def test_the_number_of_workers_changes_nothing_to_the_last_bit(cluster):
    X, y = make_rows((1000, 12), np.float32)
    lazy = da.from_array(X, chunks=(150, 12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = GSVPSVMCV(tau=1.0, n_deltas=4, cv=3).fit(lazy, y)
        with cluster.as_current():
            processes = GSVPSVMCV(tau=1.0, n_deltas=4, cv=3).fit(lazy, y)
    assert_array_equal(threads.coef_, processes.coef_)
    assert_array_equal(threads.calibrator_[0], processes.calibrator_[0])
    for name, column in threads.cv_results_.items():
        assert_array_equal(column, processes.cv_results_[name])


def test_a_frame_keeps_its_names():
    X, y = make_rows((300, 4), np.float64)
    frame = pd.DataFrame(X, columns=list("abcd"))
    lazy = dd.from_pandas(frame, npartitions=3)
    model, expected = GSVPSVM(delta=0.05).fit(lazy, y), GSVPSVM(delta=0.05).fit(frame, y)
    assert_array_equal(model.feature_names_in_, list("abcd"))
    assert_same_model(model, expected)
    assert_allclose(model.decision_function(lazy), expected.decision_function(frame), rtol=1e-8)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(lazy[list("abdc")])
    with pytest.raises(ValueError, match=r"column .e. of X holds .*drop or encode"):
        GSVPSVM().fit(lazy.assign(e="text"), y)


def test_sparse_chunks_are_never_made_dense(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    X = sp.random(90, 3000, density=0.02, format="csr", random_state=rng).tolil()
    X[y == 1, 3] = 2.0
    X = X.tocsr()
    lazy = da.from_array(X.toarray(), chunks=(40, 3000)).map_blocks(sp.csr_matrix)
    expected = GSVPSVM(delta=0.3)
    with pytest.warns(UserWarning, match="constant"):
        expected.fit(X, y)
    largest = []
    plain = sp.csr_matrix.toarray
    monkeypatch.setattr(
        sp.csr_matrix, "toarray", lambda self, *a, **k: largest.append(self.shape[1]) or plain(self)
    )
    with pytest.warns(UserWarning, match="constant"):
        found = GSVPSVM(delta=0.3).fit(lazy, y)
    assert_same_model(found, expected)
    assert largest and max(largest) <= 1500  # columns that were asked for, not all of them


class Counted:
    """Chunks made on the spot, and how often."""

    def __init__(self, X, chunks):
        self.X, self.reads = X, 0
        self.lazy = da.map_blocks(
            self._read, dtype=X.dtype, chunks=da.core.normalize_chunks(chunks, X.shape)
        )
        self.n_chunks = self.lazy.npartitions

    def _read(self, block_info=None):
        (rows, cols) = block_info[None]["array-location"]
        self.reads += 1
        return self.X[slice(*rows), slice(*cols)]

    def __dask_tokenize__(self):
        return "counted"

    @property
    def passes(self):
        return self.reads / self.n_chunks


def test_tall_data_is_read_twice_by_a_fit_and_twice_by_a_search():
    X, y = make_rows((21_000, 6), np.float32)
    data = Counted(X, (5000, 6))
    found = GSVPSVM(delta=0.05).fit(data.lazy, y)
    assert data.passes == 2  # the issue allows 2
    assert_same_model(found, GSVPSVM(delta=0.05).fit(X, y))
    data = Counted(X, (5000, 6))
    GSVPSVMCV(tau=(1.0, 3.0), n_deltas=4, cv=3).fit(data.lazy, y)
    assert data.passes == 2  # the issue allows 3


def test_a_scorer_of_ones_own_takes_a_pass_per_fold_and_the_columns_of_the_panels():
    X, y = make_rows((900, 6), np.float64)
    options = {"tau": (1.0, 3.0), "n_deltas": 4, "cv": 3, "decision": "scaled"}
    search = GSVPSVMCV(scoring="balanced_accuracy", **options)
    expected = GSVPSVMCV(scoring="balanced_accuracy", **options).fit(X, y)
    data = Counted(X, (300, 6))
    search.fit(data.lazy, y)
    assert search.best_index_ == expected.best_index_
    assert_allclose(search.coef_, expected.coef_, rtol=1e-8)
    assert data.passes <= 3 + 3 + 1  # folds, columns not seen before, all rows


@pytest.mark.parametrize("chunks", [(60, 1500), (150, 200)])
def test_a_path_over_wide_data_takes_a_pass_per_point_and_counts_them(chunks):
    X, y = make_rows((150, 1500), np.float64)
    A, B = Counted(X[y == "a"], chunks), Counted(X[y == "b"], chunks)
    path = sparse_gsvp_path(A.lazy, B.lazy, n_deltas=10, ratio=0.1, pool=0.5)
    assert [len(point.support) for point in path][-1] > 20
    # statistics, the start, ten certificates, and columns fetched a batch at a time
    assert A.passes <= 16 and B.passes <= 16
    expected = sparse_gsvp_path(X[y == "a"], X[y == "b"], n_deltas=10, ratio=0.1, pool=0.5)
    for mine, theirs in zip(path, expected):
        assert_allclose(mine.w, theirs.w, atol=1e-8)
        assert_allclose(mine.objective, theirs.objective, rtol=1e-8)


def test_passes_are_counted_as_the_chunks_that_were_read():
    X, _ = make_rows((60, 40), np.float64)
    data = Counted(X, (20, 10))
    matrix = DaskMatrix(data.lazy)
    matrix.tdot(np.ones(60))
    matrix.columns(np.array([0, 5, 12]))  # two of the four chunks of columns
    matrix.columns(np.array([12, 0]))  # held
    matrix.combine(np.array([0, 5]), np.ones((2, 2)))  # held
    matrix.combine(np.array([39]), np.ones((1, 2)))
    assert matrix.n_passes == data.passes == 1 + 0.5 + 0.25
    stacked = StackedMatrix([matrix, DaskMatrix(data.lazy)])
    stacked.parts[1].columns(np.array([12, 30, 0]))
    u = np.linspace(-1.0, 1.0, 120)
    index, values = stacked.cached_tdot(u)  # what both hold
    assert_array_equal(index, [0, 12])
    assert_allclose(values, np.concatenate([X, X])[:, index].T @ u)


@pytest.mark.parametrize("shape", [(400, 6), (60, 700)])
@pytest.mark.parametrize(("bad", "message"), [(np.nan, "NaN"), (np.inf, "infinity"),
                                              (1e30, "overflow")])  # fmt: skip
def test_bad_values_are_refused_by_the_first_pass(shape, bad, message):
    X, y = make_rows(shape, np.float32)
    X[shape[0] // 2, 1] = bad
    data = Counted(X, (shape[0] // 3, shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=f"X contains .*{message}"):
            GSVPSVM().fit(data.lazy, y)
    assert data.passes <= 4 / 3


def test_what_cannot_be_read_lazily_is_refused_with_a_remedy():
    X, y = make_rows((60, 700), np.float64)
    lazy = da.from_array(X, chunks=(20, 700))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        GSVPSVM().fit(lazy[da.from_array(y) == "a"], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GSVPSVM().fit(lazy, y[:-1])
    with pytest.raises(ValueError, match="2D array"):
        GSVPSVM().fit(lazy[:, 0], y)
    with pytest.raises(ValueError, match="not numbers"):
        GSVPSVM().fit(lazy.astype("U8"), y)
    with pytest.raises(ValueError, match="700 features"):
        GSVPSVM(delta=0.3).fit(lazy, y).predict(lazy[:, :5])
    with pytest.raises(ValueError, match=r"delta = 0.*compute\(\)"):
        sparse_gsvp(lazy[:30], lazy[30:], 0.0)


def test_moments_of_lazy_rows_are_those_of_the_rows():
    X, y = make_rows((500, 4), np.float64)
    X[:, 2] += 1e6
    found = ClassMoments.from_data(da.from_array(X, chunks=(70, 3)), y)
    expected = ClassMoments.from_data(X, y)
    assert_array_equal(found.counts, expected.counts)
    assert_allclose(found.means, expected.means, rtol=1e-13)
    assert_allclose(found.scatters, expected.scatters, rtol=1e-9, atol=1e-7)


def test_the_benchmark_runs_at_small_size(tmp_path):
    script = Path(__file__).parents[2] / "benchmarks" / "scale.py"
    command = [sys.executable, script, "--tiny", "--only", "tall_fit", "wide", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "scale-tiny.json").read_text())["rows"]
    assert [row["passes"] <= row["most_passes"] for row in rows] == [True, True]
    assert "| (a) tall, GSVPSVM.fit | 50,000 x 20 |" in (tmp_path / "scale-tiny.md").read_text()


# --- outer loops on a cluster ---------------------------------------------------------------


def test_outer_loops_on_a_cluster_change_nothing(cluster):
    X, y = make_rows((80, 60), np.float64)
    model = GSVPSVM(n_features=3)

    def everything():
        stable = StabilitySelection(model, n_resamples=4).fit(X, y)
        honest = nested_evaluate(model, X, y, cv=3, n_permutations=2, final_fit=False)
        table = compare({"planes": model}, X, y, sizes=(2,), n_splits=3, n_repeats=1)
        return stable.selections_, honest.to_dict(), table.to_dict()

    here = everything()
    with cluster.as_current(), parallel_config(backend="dask"):
        there = everything()
        with pytest.raises(ValueError, match="time_limit stops processes of this machine"):
            compare({"planes": model}, X, y, sizes=(2,), n_splits=3, n_repeats=1, time_limit=9.0)
    assert_array_equal(here[0], there[0])
    for mine, theirs in zip(here[1:], there[1:]):
        assert {k: v for k, v in mine.items() if "seconds" not in k} == {
            k: v for k, v in theirs.items() if "seconds" not in k
        }


def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(cluster):
    # large enough that a fold is still being solved when the worker is found and killed
    X, y = make_rows((200, 8000), np.float64)
    search = GSVPSVMCV(tau=(0.3, 1.0, 3.0), n_deltas=30, cv=4)
    expected = GSVPSVMCV(**search.get_params()).fit(X, y)
    cluster.wait_for_workers(2)
    pids = cluster.run(os.getpid)
    killed = threading.Event()

    def kill():
        """Take down a worker as soon as one is busy with a fold."""
        while not killed.is_set():
            for address, tasks in cluster.processing().items():
                if any("_numbered" in str(task) for task in tasks):  # of run_tasks
                    os.kill(pids[address], signal.SIGKILL)
                    killed.set()
                    return
            time.sleep(0.01)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    with cluster.as_current(), parallel_config(backend="dask"):
        search.fit(X, y)
    assert killed.wait(0)
    thread.join()
    assert_array_equal(search.coef_, expected.coef_)
    assert_array_equal(search.calibrator_[0], expected.calibrator_[0])
    for name, column in expected.cv_results_.items():
        assert_array_equal(search.cv_results_[name], column)
