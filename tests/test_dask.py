"""Tables that Dask holds, across the package: read in part, by workers that end, or refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsegsvp import GSVPSVM, GSVPSVMCV, PGDGSVPSVM, gsvd, hogsvd, nested_evaluate
from sparsegsvp.datasets import make_cells, make_planted
from sparsegsvp.related import GEPSVM, GSVDSelector

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


def read_chunk(X, log, block_info=None):
    """A chunk of a table, and a mark in a file that it was read."""
    rows, columns = block_info[None]["array-location"]
    with open(log, "ab") as file:
        file.write(b".")
    return X[slice(*rows), slice(*columns)]


def lazily(X, chunks, log):
    """A Dask array whose readings are counted across processes."""
    chunks = da.core.normalize_chunks(chunks, X.shape)
    return da.map_blocks(read_chunk, X, log, chunks=chunks, dtype=X.dtype, meta=X[:0, :0])


@pytest.mark.filterwarnings("ignore:.*constant feature")
@pytest.mark.parametrize(
    "chunks", [(100, -1), (-1, 70), (110, 150)], ids=["rows", "columns", "both"]
)
def test_sparse_cells_in_chunks_equal_those_in_memory(chunks) -> None:
    X, obs = make_cells(330, 400, 4, n_donors=4, weights=(4, 3, 2, 1), as_anndata=False)
    y, donor = obs["cell_type"].to_numpy(), obs["donor"].to_numpy()
    lazy = da.from_array(X, chunks=chunks, asarray=False)
    model, expected = (GSVPSVM(8).fit(table, y) for table in (lazy, X))
    assert_array_equal(model.feature_order_, expected.feature_order_)
    assert_allclose(model.panel_coef_, expected.panel_coef_, atol=1e-5)
    assert_array_equal(model.predict(lazy), expected.predict(X))
    model, expected = (GSVPSVMCV(8).fit(table, y, groups=donor) for table in (lazy, X))
    assert_allclose(model.path_["loss"], expected.path_["loss"], atol=1e-6)
    assert_array_equal(model.feature_order_, expected.feature_order_)


def test_transform_and_predict_read_the_chunks_of_the_panel_alone(tmp_path) -> None:
    X, y = make_planted(300, 800, 3, effect=3.0, random_state=0, return_X_y=True)
    log = tmp_path / "log"
    lazy = lazily(X, (100, 50), log)
    model = GSVPSVM(3).fit(lazy, y)
    held = 3 * len(set(np.flatnonzero(model.support_) // 50))  # chunks with some of the panel
    log.unlink()
    panel = model.transform(lazy)
    assert isinstance(panel, da.Array) and not log.exists()
    assert_array_equal(panel.compute(), X[:, model.support_])
    assert log.stat().st_size == held
    model.predict_proba(lazy)
    assert log.stat().st_size == 2 * held


def test_of_files_only_the_columns_of_the_panel_are_read(tmp_path) -> None:
    """What else the files hold is destroyed after the fit, and nobody notices."""
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = make_planted(400, 9, 3, random_state=0, return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    for i, part in enumerate(np.array_split(np.arange(400), 4)):
        frame.iloc[part].to_parquet(tmp_path / f"part{i}.parquet", row_group_size=60)
    model = GSVPSVM(n_features=3).fit(dd.read_parquet(tmp_path), y)
    panel = set(model.get_feature_names_out())
    for path in tmp_path.iterdir():
        metadata, data = parquet.read_metadata(path), bytearray(path.read_bytes())
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                if column.path_in_schema not in panel | {"__index_level_0__"}:
                    start = min(
                        filter(None, (column.dictionary_page_offset, column.data_page_offset))
                    )
                    data[start : start + column.total_compressed_size] = bytes(
                        column.total_compressed_size
                    )
        path.write_bytes(data)
    lazy = dd.read_parquet(tmp_path)
    with pytest.raises(Exception, match=r"(?i)page|thrift|deserial|eof|decod"):
        lazy.compute()
    assert_array_equal(model.transform(lazy).compute(), frame[model.get_feature_names_out()])
    assert_array_equal(model.predict(lazy), model.predict(frame))


LIMITED = """
import resource
import dask
import dask.array as da
import numpy as np
from sparsegsvp import GSVPSVM, StabilitySelection, compare, nested_evaluate, select_panel
from sparsegsvp.evaluation import permutation_test

n, m = 16_000, 4_000  # 256 MB
some = np.random.default_rng(0).random((500, m), dtype=np.float32)
some[1::2, :4] += 0.5
X = da.map_blocks(lambda: some.copy(), chunks=((500,) * 32, (m,)), dtype=np.float32)
y = np.arange(n) % 2
dask.config.set(scheduler="synchronous")
GSVPSVM(3).fit(X[:1000, :50], y[:1000]).predict(X[:1000, :50])  # imports what it needs
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 180_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
model = GSVPSVM(4).fit(X, y)
print(model.support_[:4].all(), model.score(X, y) > 0.7, model.transform(X).shape)
for gathers in (
    lambda: nested_evaluate(model, X, y),
    lambda: StabilitySelection(model).fit(X, y),
    lambda: compare([("ours", model)], X, y),
    lambda: permutation_test(model, X, y),
    lambda: select_panel(X, y),
):
    try:
        gathers()
    except (TypeError, ValueError) as error:
        print("refused" if "compute" in str(error) else error)
try:
    X.compute()
except MemoryError:
    print("too large to gather")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits memory as Linux does")
def test_with_less_memory_than_the_table_all_works_or_refuses() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED],
        capture_output=True, text=True, env=environment, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = ["True True (16000, 4)", *["refused"] * 5, "too large to gather"]
    assert done.stdout.splitlines() == expected


def test_processes_files_a_killed_worker_and_joblib_change_nothing(tmp_path) -> None:
    """A worker ends in the middle of a fit, and Dask computes its chunks again."""
    distributed = pytest.importorskip("distributed")
    joblib = pytest.importorskip("joblib")
    pytest.importorskip("pyarrow")
    X, y = make_planted(240, 2200, 5, random_state=0, return_X_y=True)
    log = tmp_path / "log"
    lazy = lazily(X, (20, -1), log)
    expected, searched = GSVPSVM(10).fit(lazy, y), GSVPSVMCV(6).fit(lazy, y)
    frame = pd.DataFrame(X[:, :30], columns=[f"c{j}" for j in range(30)])
    for i, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"part{i}.parquet")
    of_frame = GSVPSVM(3).fit(frame, y)
    options = {"n_repeats": 1, "n_permutations": 0, "n_pairs": 0}
    evaluated = nested_evaluate(GSVPSVM(3), X[:, :50], y, **options)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        search = GSVPSVMCV(6).fit(lazy, y)
        assert_array_equal(search.path_["loss"], searched.path_["loss"])
        assert_array_equal(search.panel_coef_, searched.panel_coef_)
        assert_array_equal(search.predict(lazy), searched.predict(X))
        files = dd.read_parquet(tmp_path)
        model = GSVPSVM(3).fit(files, y)
        assert list(model.get_feature_names_out()) == list(of_frame.get_feature_names_out())
        assert_array_equal(model.predict(files), of_frame.predict(frame))
        log.unlink()
        pid = next(iter(client.run(os.getpid).values()))

        def kill() -> None:
            while not log.exists() or log.stat().st_size < 18:  # of twelve chunks a pass
                time.sleep(0.001)
            os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        model = GSVPSVM(10).fit(lazy, y)
        killer.join()
        assert pid not in client.run(os.getpid).values()
        assert_array_equal(model.feature_order_, expected.feature_order_)
        assert_array_equal(model.panel_coef_, expected.panel_coef_)
        with joblib.parallel_config(backend="dask"):
            again = nested_evaluate(GSVPSVM(3), X[:, :50], y, **options)
    assert again.scores["balanced_accuracy"] == evaluated.scores["balanced_accuracy"]


def test_what_numpy_would_gather_is_refused() -> None:
    X, y = make_planted(60, 8, 2, random_state=0, return_X_y=True)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    for lazy in (da.from_array(X, chunks=(30, 4)), frame):
        works = [lambda X, model=model: model().fit(X, y) for model in (GEPSVM, GSVDSelector)]
        works += [lambda X: PGDGSVPSVM().fit(X, y), lambda X: GSVPSVM().partial_fit(X, y)]
        for gathers in (*works, lambda X: gsvd(X, X), lambda X: hogsvd([X, X])):
            with pytest.raises(TypeError, match=r"would be gathered in memory: call compute\(\)"):
                gathers(lazy)
