"""Every kind of rows answers the same questions with the same numbers.

A new kind joins by one entry in KINDS.
"""

from __future__ import annotations

import operator
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from sparsegsvp.linalg import rows as rows_module
from sparsegsvp.linalg.rows import BLOCK, SparseRows, as_rows, read_rows, repetitions


def _every_other(X):
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _reversed(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def _dask(X, chunks=(9, 6)):
    da = pytest.importorskip("dask.array")
    # chunks grow with the data, so that a large array does not make thousands of them
    factor = max(1, X.size // 5000)
    return da.from_array(X, chunks=tuple(min(c * factor, s) for c, s in zip(chunks, X.shape)))


def _clipped(kind):
    """Rows that are X once they are clipped: some values lie beyond the limits of their class."""

    def make(X):
        codes = np.arange(len(X)) % 2
        high = np.stack([X[codes == k].max(axis=0) for k in (0, 1)])
        wild = np.where((high[codes] == X) & (X > 0.0), X + 4.0, X)
        return as_rows(kind(wild)).clipped(np.full_like(high, -np.inf), high, codes)

    return make


KINDS = {
    "float64": as_rows,
    "float32": lambda X: as_rows(X.astype(np.float32)),
    "fortran": lambda X: as_rows(np.asfortranarray(X)),
    "strided": lambda X: as_rows(_every_other(X)),
    "strided32": lambda X: as_rows(_every_other(X.astype(np.float32))),
    "reversed": lambda X: as_rows(_reversed(X)),
    "csr": lambda X: as_rows(sp.csr_matrix(X)),
    "csr32": lambda X: as_rows(sp.csr_array(X.astype(np.float32))),
    "csc": lambda X: as_rows(sp.csc_matrix(X)),
    "csc32": lambda X: as_rows(sp.csc_array(X.astype(np.float32))),
    "coo": lambda X: as_rows(sp.coo_array(X)),
    "dask_rows": lambda X: as_rows(_dask(X, (7, X.shape[1]))),
    "dask_columns": lambda X: as_rows(_dask(X, (len(X), 5))),
    "dask32": lambda X: as_rows(_dask(X.astype(np.float32), (17, 4))),
    "dask_csr": lambda X: as_rows(_dask(X, (9, 6)).map_blocks(sp.csr_matrix)),
    "clipped": _clipped(np.asarray),
    "clipped32": _clipped(np.float32),
    "clipped_csr": _clipped(sp.csr_array),
    "clipped_dask": _clipped(lambda X: _dask(X, (9, 6))),
}


def _data(n=41, m=13):
    """Half zeros, quarters elsewhere: exact in float32, so that all kinds hold the same."""
    rng = np.random.default_rng(0)
    X = np.round(4 * rng.normal(size=(n, m))) / 4 * (rng.random((n, m)) < 0.5)
    X[:, 4] = 0.0
    X[:, 5] += 3.0
    return X


@pytest.fixture(params=list(KINDS))
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def X():
    return _data()


@pytest.fixture
def rows(kind, X):
    return kind(X)


@pytest.mark.parametrize("exact", [False, True])
def test_products(rows, X, exact) -> None:
    rng = np.random.default_rng(1)
    v, u, several = (rng.normal(size=shape) for shape in (13, 41, (3, 41)))
    tol = 1e-12 if exact or rows.dtype == np.float64 else 2e-6
    assert rows.shape == X.shape and rows.dtype in (np.float32, np.float64)
    for product, expected in (
        (rows.dot(v, exact=exact), X @ v),
        (rows.tdot(u, exact=exact), X.T @ u),
        (rows.tdot(several, exact=exact), several @ X),
    ):
        assert product.dtype == np.float64
        assert_allclose(product, expected, rtol=tol, atol=10 * tol)
    codes, centers = np.arange(41) % 2, rng.normal(size=(3, 2))
    index, sets = np.array([5, 0, 12]), np.array([2, 0, 2])
    w = several[sets]
    assert_allclose(
        rows.cross(
            index, centers, codes, several, sets, w * centers[:, codes] @ X, exact=exact
        ),
        (w * (X[:, index].T - centers[:, codes])) @ X,
        rtol=tol, atol=100 * tol,
    )  # fmt: skip


def test_columns_are_dense_float64_in_the_order_asked_for(rows, X) -> None:
    index = np.array([5, 0, 12, 4])
    columns = rows.columns(index)
    assert columns.dtype == np.float64
    assert_array_equal(columns, X[:, index])
    columns[:] = -1.0  # a copy: the data is not the caller's to lose
    assert_array_equal(rows.columns(index), X[:, index])
    assert_array_equal(rows.take(index).columns(np.arange(4)), X[:, index])


def test_blocks_of_rows_cover_all_once_in_order(kind) -> None:
    X = _data(n=3 * BLOCK // 2000, m=700)  # more than one block
    sizes = kind(X).map_rows(lambda block: np.full(len(block), len(block)))
    assert len(sizes) == len(X) > sizes.max()
    assert_array_equal(kind(X).map_rows(np.array), X)


def test_every_row_is_visited_once_with_what_belongs_to_it(rows, X) -> None:
    codes = np.arange(len(X))[::-1].copy()
    weight = np.linspace(0.0, 1.0, len(X))

    def visit(state, block, code, weight):
        assert block.dtype == np.float64 and len(block) == len(code) == len(weight)
        return [*(state or []), *zip(code.tolist(), weight.tolist(), block.tolist())]

    seen = rows.reduce_rows(visit, operator.add, (codes, weight))
    assert [code for code, _, _ in seen] == codes.tolist()
    assert [w for _, w, _ in seen] == weight.tolist()
    assert_array_equal([row for _, _, row in seen], X)
    sums = rows.map_rows(lambda block, code: block[:, :2].sum(axis=1) + code, (codes,))
    assert_array_equal(sums, X[:, :2].sum(axis=1) + codes)


@pytest.mark.parametrize("shape", [(41, 13), (300, 520)])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_statistics(kind, shape, weighted) -> None:
    X = _data(*shape)
    rng = np.random.default_rng(2)
    codes = rng.permutation(np.arange(len(X)) % 3)
    weight = rng.integers(0, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    mean, var = kind(X).class_statistics(codes, weight, 4)  # the fourth has no rows
    for k in range(3):
        part, w = X[codes == k], weight[codes == k] / weight[codes == k].sum()
        assert_allclose(mean[k], w @ part, rtol=1e-12, atol=1e-13)
        assert_allclose(var[k], w @ (part - w @ part) ** 2, rtol=1e-11, atol=1e-13)
    assert_array_equal([mean[3], var[3]], 0.0)


def test_class_statistics_survive_a_large_mean(kind) -> None:
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(400, 3)) * 64) / 64 + 2.0**17  # exact in float32
    codes = np.arange(400) % 2
    _, var = kind(X).class_statistics(codes, np.ones(400), 2)
    expected = [(X[codes == k] - 2.0**17).var(axis=0) for k in range(2)]
    assert_allclose(var, expected, rtol=1e-9)


def test_a_constant_column_has_no_variance_however_many_rows(kind) -> None:
    n = 30_000  # sums of this many equal numbers have visible rounding errors
    X = np.full((n, 2), np.float32(-0.1), dtype=np.float64)
    X[:, 1] = np.float32(-1e3 / 3)
    mean, var = kind(X).class_statistics(np.arange(n) % 2, np.ones(n), 2)
    assert_allclose(mean, np.tile(X[0], (2, 1)), rtol=1e-14)
    assert (np.sqrt(var) <= 2 * np.finfo(float).eps * np.abs(X[0])).all()


@pytest.mark.parametrize("name", [name for name in KINDS if "clipped" not in name])
def test_clipping_moves_values_into_the_limits_of_their_class(name) -> None:
    X = _data(60, 20)
    codes, weight = np.arange(60) % 3, np.linspace(0.5, 2.0, 60)
    rng = np.random.default_rng(5)
    low = rng.choice([-1.5, -0.25, 0.5], (3, 20))
    high = low + rng.choice([0.5, 1.25], (3, 20))
    rows = KINDS[name](X)
    clipped = rows.clipped(low, high, codes)
    expected = np.where(X == 0.0, 0.0, np.clip(X, low[codes], high[codes]))  # zeros stay
    assert (expected != X).any()
    assert_array_equal(clipped.columns(np.arange(20)), expected)
    assert_array_equal(rows.columns(np.arange(20)), X)
    reference = as_rows(expected).class_statistics(codes, weight, 3)
    before = rows.class_statistics(codes, weight, 3)
    for statistics in (
        clipped.class_statistics(codes, weight, 3),
        clipped.corrected(*before, codes, weight),
    ):
        assert_allclose(statistics, reference, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("bad", "message"),
    [(np.nan, "NaN.*impute"), (-np.inf, "infinity.*impute"), (-1e160, "overflow.*rescale")],
)
@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csr_array, sp.csc_matrix, _dask])
def test_bad_values_are_refused(kind, X, bad, message) -> None:
    X[25, 3] = bad
    with pytest.raises(ValueError, match=f"table contains .*{message}"):
        # at once, or in the first pass that is made anyway
        rows = read_rows(kind(X), "table", ensure_all_finite=False)
        rows.class_statistics(np.arange(41) % 2, np.ones(41), 2)


def test_duplicate_entries_of_a_sparse_matrix_are_summed_on_a_copy() -> None:
    entries = np.array([1.0, 2.0, 4.0, 1.0]), np.array([1, 1, 0, 1]), np.array([0, 2, 3, 4])
    X = sp.csr_matrix(entries, shape=(3, 2))
    rows = SparseRows(X)
    mean, var = rows.class_statistics(np.zeros(3, dtype=int), np.ones(3), 1)
    dense = np.array([[0.0, 3.0], [4.0, 0.0], [0.0, 1.0]])
    assert_allclose(mean[0], dense.mean(axis=0))
    assert_allclose(var[0], dense.var(axis=0))
    assert X.nnz == 4  # the caller's matrix is as it was


def test_an_unknown_array_is_refused_by_its_type() -> None:
    with pytest.raises(TypeError, match=r"list.*NumPy array, a SciPy"):
        as_rows([[1.0, 2.0]])


def test_repetitions_are_whole_multiples_of_the_lightest_weight() -> None:
    for scale in (1.0, 0.1, 7e-5, 1e6):
        assert_array_equal(repetitions(scale * np.array([2.0, 0.0, 1.0, 3.0])), [2, 0, 1, 3])
    assert_array_equal(repetitions(np.array([0.5, 0.0, 0.7, 2.0])), [1, 0, 1, 1])
    assert_array_equal(repetitions(np.zeros(3)), 0.0)


@pytest.mark.parametrize("name", ["float64", "float32", "fortran", "strided", "csr", "csc32"])
def test_no_product_copies_the_rows(name, monkeypatch) -> None:
    monkeypatch.setattr(rows_module, "BLOCK", 1 << 12)  # so that the rows are many blocks
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 3000)) * (rng.random((600, 3000)) < 0.3)
    rows = KINDS[name](X)
    codes, weight = np.arange(600) % 2, np.ones(600)
    v, u = rng.normal(size=3000), rng.normal(size=600)
    tracemalloc.start()
    try:
        rows.dot(v)
        rows.tdot(u)
        rows.tdot(u, exact=True)
        mean, var = rows.class_statistics(codes, weight, 2)
        if name.startswith("cs"):  # clipped sparse rows have values of their own, and share places
            clipped = rows.clipped(mean - 6 * np.sqrt(var), mean + 6 * np.sqrt(var), codes)
            assert np.shares_memory(clipped.X.indices, rows.X.indices)
            del clipped
            tracemalloc.reset_peak()
        else:
            rows.clipped(mean - 6 * np.sqrt(var), mean + 6 * np.sqrt(var), codes)
        rows.dot(v)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    held = X.size * (4 if "32" in name else 8)
    if name.startswith("cs"):
        held = rows.X.data.nbytes + rows.X.indices.nbytes
    assert peak < 0.75 * held
