"""Dask arrays and frames give what the same rows in memory give, in few passes, never gathered."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from sparsegsvp import GSVPSVM, GSVPSVMCV

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# name -> shape, dtype, chunks
TABLES = {
    "tall, rows": ((1500, 12), np.float64, (400, 12)),
    "tall, columns": ((1500, 12), np.float32, (1500, 5)),
    "wide, rows": ((110, 900), np.float64, (40, 900)),
    "wide, columns": ((110, 900), np.float64, (110, 200)),
    "wide, both": ((110, 900), np.float32, (60, 250)),
}


def make_rows(shape, dtype=np.float64, seed=0):
    """Classes a (60%) and b, five features that differ; the fourth has a mean of 1000."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(shape[0]) % 5 < 3, "a", "b")
    X = rng.normal(size=shape)
    X[:, :5] += 0.8 * (y == "b")[:, None]
    X[:, 3] += 1000.0
    return X.astype(dtype), y


class Counted:
    """Chunks made on the spot, and how often."""

    def __init__(self, X, chunks) -> None:
        self.X, self.reads = X, 0
        shape = da.core.normalize_chunks(chunks, X.shape)
        self.lazy = da.map_blocks(self._read, dtype=X.dtype, chunks=shape)

    def _read(self, block_info=None):
        rows, cols = block_info[None]["array-location"]
        self.reads += 1
        return self.X[slice(*rows), slice(*cols)]

    def __dask_tokenize__(self) -> str:
        return "counted"

    @property
    def passes(self) -> float:
        return self.reads / self.lazy.npartitions


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("model", [GSVPSVM(n_features=6), GSVPSVMCV(max_features=10)])
def test_a_fit_equals_the_one_in_memory(name, model, same_model) -> None:
    shape, dtype, chunks = TABLES[name]
    X, y = make_rows(shape, dtype)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    lazy = da.from_array(X, chunks=chunks)
    expected = type(model)(**model.get_params()).fit(X, y, sample_weight=weight)
    model = type(model)(**model.get_params())
    model.fit(lazy, da.from_array(y), sample_weight=da.from_array(weight))
    same_model(model, expected, X, tol=1e-8 if dtype == np.float64 else 1e-5)
    if isinstance(model, GSVPSVMCV):
        assert model.n_features_ == expected.n_features_
        assert_allclose(model.path_["loss"], expected.path_["loss"], atol=1e-7)
    predicted = model.predict(lazy)
    assert isinstance(predicted, np.ndarray)
    assert_array_equal(predicted, expected.predict(X))
    assert_allclose(model.predict_proba(lazy), model.predict_proba(X), rtol=1e-10)
    assert model.score(lazy, y) == expected.score(X, y)


def test_nothing_is_gathered() -> None:
    X, y = make_rows((300, 800))
    data = Counted(X, (100, 800))
    model = GSVPSVM(n_features=5).fit(data.lazy, y)
    before = data.reads
    panel = model.transform(data.lazy)
    assert isinstance(panel, da.Array) and panel.shape == (300, 5) and data.reads == before
    assert_array_equal(panel.compute(), X[:, model.support_])
    before = data.reads
    model.predict_proba(data.lazy)
    assert data.reads - before == 3  # one pass


@pytest.mark.parametrize("chunks", [(4000, 40), (7000, 15)], ids=str)
def test_tall_tables_are_read_twice_whatever_the_size(chunks, same_model) -> None:
    X, y = make_rows((24_000, 40), np.float32)  # more rows than a decision is fitted to
    for k in (2, 10, 25):
        data = Counted(X, chunks)
        model = GSVPSVM(n_features=k).fit(data.lazy, y)
        assert data.passes == 2  # limits of clipping; moments with rows for the decision
    same_model(model, GSVPSVM(n_features=25).fit(X, y), X, tol=1e-5)
    data = Counted(X, chunks)
    search = GSVPSVMCV().fit(data.lazy, y)
    assert data.passes == 5  # and folds by content, their moments, held-out rows
    same_model(search, GSVPSVMCV().fit(X, y), X, tol=1e-5)
    many = np.arange(len(y)) % 30  # too many classes to keep the moments of each
    data = Counted(X, chunks)
    model = GSVPSVM(n_features=2).fit(data.lazy, many)
    assert 2 < data.passes <= 3  # the third of the chunks that hold the panel
    same_model(model, GSVPSVM(n_features=2).fit(X, many), X, tol=1e-5)


def test_a_search_holds_some_numbers_a_row_whatever_the_columns_and_sizes(monkeypatch) -> None:
    """Labels, weights, folds: not a row's errors with 30 sizes, nor its weight in every fold."""
    from sparsegsvp.estimators import gsvpsvm

    monkeypatch.setattr(gsvpsvm, "SAMPLE", 500)  # rows that are kept for the decision
    peaks = []
    for n in (6_000, 60_000, 120_000):  # the first imports what a search needs
        X, y = make_rows((n, 40), np.float32)
        data = Counted(X, (3000, 40))
        tracemalloc.start()
        try:
            with dask.config.set(scheduler="synchronous"):
                search = GSVPSVMCV().fit(data.lazy, y)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert len(search.path_["loss"]) == 30 and data.passes == 5
    assert peaks[2] - peaks[1] < 60_000 * 160  # bytes: as many as a row of 40 columns has


@pytest.mark.parametrize("chunks", [(40, 1500), (60, 250)], ids=str)
def test_wide_tables_take_fewer_passes_than_features(chunks, same_model) -> None:
    X, y = make_rows((120, 1500))
    data = Counted(X, chunks)
    model = GSVPSVM(n_features=30).fit(data.lazy, y)
    assert data.passes <= 8
    same_model(model, GSVPSVM(n_features=30).fit(X, y), X, tol=1e-7)
    data = Counted(X, chunks)
    GSVPSVMCV().fit(data.lazy, y)  # 30 sizes, five folds and all rows
    assert data.passes <= 16


def test_reading_ahead_changes_nothing(monkeypatch, same_bits) -> None:
    """Where the guess of the next features fails, they are read when they are needed."""
    from sparsegsvp.solvers import subset

    X, y = make_rows((120, 700))
    lazy = da.from_array(X, chunks=(50, 700))
    model = GSVPSVM(n_features=12).fit(lazy, y)
    monkeypatch.setattr(subset, "_AHEAD", 1)
    data = Counted(X, (50, 700))
    same_bits(model, GSVPSVM(n_features=12).fit(data.lazy, y))
    assert data.passes > 10


def test_sparse_chunks_stay_sparse(monkeypatch, same_model) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    X = sp.random(90, 3000, density=0.05, format="csr", random_state=rng).tolil()
    X[y == 1, 3] = 2.0
    X = X.tocsr()
    lazy = da.from_array(X.toarray(), chunks=(40, 3000)).map_blocks(sp.csr_matrix)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*constant feature")
        expected = GSVPSVM(n_features=4, tau=1.0).fit(X, y)
        sizes, plain = [], sp.csr_matrix.toarray
        monkeypatch.setattr(
            sp.csr_matrix, "toarray", lambda self, *a, **k: sizes.append(self.shape) or plain(self)
        )
        model = GSVPSVM(n_features=4, tau=1.0).fit(lazy, y)
    same_model(model, expected, X, tol=1e-8)
    assert max(columns for _, columns in sizes) < 100


def test_a_sample_of_sparse_rows_is_one_whatever_their_storage(same_model) -> None:
    """Counts: most rows are equal on the panel, and rounding differs between storages."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 24_000)  # more rows than a decision is fitted to
    X = np.log1p(rng.poisson(0.2 + 0.4 * (np.arange(300) % 40 == y[:, None]))).astype(np.float32)
    lazy = da.from_array(X, chunks=(5000, 300)).map_blocks(sp.csr_matrix)
    expected = GSVPSVM(n_features=6).fit(X, y)
    same_model(GSVPSVM(n_features=6).fit(sp.csr_matrix(X), y), expected, X)
    same_model(GSVPSVM(n_features=6).fit(lazy, y), expected, X)


def test_frames_of_several_files_keep_their_names(tmp_path, same_model) -> None:
    pytest.importorskip("pyarrow")
    X, y = make_rows((300, 8))
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    for i, part in enumerate(np.array_split(np.arange(300), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"part{i}.parquet")
    lazy = dd.read_parquet(tmp_path)
    model, expected = (GSVPSVMCV(max_features=6).fit(rows, y) for rows in (lazy, frame))
    assert_array_equal(model.feature_names_in_, list("abcdefgh"))
    same_model(model, expected, frame, tol=1e-8)
    assert_allclose(model.decision_function(lazy), expected.decision_function(frame), rtol=1e-8)
    panel = list(model.get_feature_names_out())
    assert_allclose(model.decision_function(lazy[panel]), expected.decision_function(frame))
    assert list(model.transform(lazy).columns) == panel
    assert_array_equal(model.transform(lazy[panel]).compute(), frame[panel])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(lazy[panel[::-1]] if len(panel) > 1 else lazy[["a"]])
    with pytest.raises(ValueError, match=r"column .i. of X holds .*drop or encode"):
        GSVPSVM().fit(lazy.assign(i="text"), y)


@pytest.mark.parametrize("shape", [(400, 6), (60, 700)], ids=str)
@pytest.mark.parametrize(
    ("bad", "message"), [(np.nan, "NaN"), (np.inf, "infinity"), (1e30, "overflow")]
)
def test_bad_values_are_refused_early(shape, bad, message) -> None:
    X, y = make_rows(shape, np.float32)
    X[shape[0] // 2, 1] = bad
    data = Counted(X, (shape[0] // 3, shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=f"X contains .*{message}"):
            GSVPSVM().fit(data.lazy, y)
    assert data.passes <= 3


def test_what_cannot_be_read_lazily_is_refused_with_a_remedy() -> None:
    X, y = make_rows((60, 700))
    lazy = da.from_array(X, chunks=(20, 700))
    model = GSVPSVM(n_features=2).fit(lazy, y)
    for rows, labels, message in (
        (lazy[da.from_array(y) == "a"], y, "compute_chunk_sizes"),
        (lazy, y[:-1], "inconsistent numbers of samples"),
        (lazy[:, 0], y, "2D array"),
        (lazy.astype("U8"), y, "not numbers"),
        (lazy[:, :0], y, r"0 feature\(s\)"),
    ):
        with pytest.raises(ValueError, match=message):
            GSVPSVM().fit(rows, labels)
    with pytest.raises(ValueError, match="700 features"):
        model.predict(lazy[:, :5])
    with pytest.raises(ValueError, match="700 features"):
        model.transform(lazy[:, :5])


def test_processes_of_a_cluster_change_nothing_to_the_last_bit(same_bits) -> None:
    distributed = pytest.importorskip("distributed")
    X, y = make_rows((1000, 12), np.float32)
    lazy = da.from_array(X, chunks=(250, 12))
    expected = GSVPSVM(n_features=4).fit(lazy, y)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster):
        same_bits(GSVPSVM(n_features=4).fit(lazy, y), expected)
