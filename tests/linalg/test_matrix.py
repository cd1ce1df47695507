"""Every kind of array answers the same questions with the same numbers.

A new kind of array joins by one entry in KINDS.
"""

import operator
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sparsegsvp.linalg import SparseMatrix, StackedMatrix, as_matrix
from sparsegsvp.linalg.matrix import BLOCK


def _every_other(X):
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _reversed(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def _dask(X, chunks):
    da = pytest.importorskip("dask.array")
    # chunks grow with the data, so that a large array does not make thousands of them
    factor = max(1, X.size // 5000)
    return da.from_array(X, chunks=tuple(min(c * factor, s) for c, s in zip(chunks, X.shape)))


KINDS = {
    "float64": lambda X: as_matrix(X),
    "float32": lambda X: as_matrix(X.astype(np.float32)),
    "fortran": lambda X: as_matrix(np.asfortranarray(X)),
    "fortran32": lambda X: as_matrix(np.asfortranarray(X, dtype=np.float32)),
    "strided": lambda X: as_matrix(_every_other(X)),
    "strided32": lambda X: as_matrix(_every_other(X.astype(np.float32))),
    "reversed": lambda X: as_matrix(_reversed(X)),
    "csr": lambda X: as_matrix(sp.csr_matrix(X)),
    "csr_array": lambda X: as_matrix(sp.csr_array(X)),
    "csr32": lambda X: as_matrix(sp.csr_matrix(X.astype(np.float32))),
    "csc": lambda X: as_matrix(sp.csc_matrix(X)),
    "csc32": lambda X: as_matrix(sp.csc_array(X.astype(np.float32))),
    "coo": lambda X: as_matrix(sp.coo_array(X)),
    "dask_rows": lambda X: as_matrix(_dask(X, (7, X.shape[1]))),
    "dask_columns": lambda X: as_matrix(_dask(X, (len(X), 5))),
    "dask32": lambda X: as_matrix(_dask(X.astype(np.float32), (17, 4))),
    "dask_csr": lambda X: as_matrix(_dask(X, (9, 6)).map_blocks(sp.csr_matrix)),
    "stacked": lambda X: StackedMatrix([as_matrix(X[:3]), as_matrix(X[3:])]),
    "stacked_mixed": lambda X: StackedMatrix(
        [as_matrix(X[:7]), as_matrix(sp.csr_array(X[7:20])), as_matrix(np.asfortranarray(X[20:]))]
    ),
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
def matrix(kind, X):
    return kind(X)


def _tolerance(matrix):
    return 1e-12 if matrix.dtype == np.float64 else 2e-6


def test_shape_and_type_are_kept(matrix, X):
    assert matrix.shape == X.shape
    assert matrix.dtype in (np.float32, np.float64)


@pytest.mark.parametrize("exact", [False, True])
def test_products(matrix, X, exact):
    rng = np.random.default_rng(1)
    v, u = rng.normal(size=X.shape[1]), rng.normal(size=X.shape[0])
    tol = 1e-12 if exact else _tolerance(matrix)
    right, left = matrix.dot(v, exact=exact), matrix.tdot(u, exact=exact)
    assert right.dtype == left.dtype == np.float64
    np.testing.assert_allclose(right, X @ v, rtol=tol, atol=10 * tol)
    np.testing.assert_allclose(left, X.T @ u, rtol=tol, atol=10 * tol)


def test_columns_are_dense_float64_in_the_order_asked_for(matrix, X):
    index = np.array([5, 0, 12, 4])
    columns = matrix.columns(index)
    assert columns.dtype == np.float64
    np.testing.assert_array_equal(columns, X[:, index])
    columns[:] = -1.0  # a copy: the data is not the caller's to lose
    np.testing.assert_array_equal(matrix.columns(index), X[:, index])


def test_rows_are_the_rows_asked_for_and_of_their_kind(kind, matrix, X):
    index = np.array([7, 0, 40])
    rows = matrix.rows(index)
    if hasattr(rows, "compute"):
        rows = rows.compute()
    dense = rows.toarray() if sp.issparse(rows) else rows
    np.testing.assert_array_equal(dense, X[index])
    assert rows.dtype == matrix.dtype


def test_row_blocks_cover_all_rows_once(kind):
    X = _data(n=3 * BLOCK // 2000, m=700)  # more than one block
    blocks = list(kind(X).row_blocks())
    assert len(blocks) > 1
    rows = np.concatenate([np.arange(span.start, span.stop) for span, _ in blocks])
    np.testing.assert_array_equal(rows, np.arange(len(X)))
    assert all(block.dtype == np.float64 for _, block in blocks)
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), X)


def test_combinations_of_columns(matrix, X):
    index, coef = np.array([5, 0, 12]), np.random.default_rng(1).normal(size=(3, 2))
    found = matrix.combine(index, coef)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, X[:, index] @ coef, rtol=1e-12, atol=1e-12)


def test_every_row_is_visited_once_with_what_belongs_to_it(matrix, X):
    codes = np.arange(len(X))[::-1].copy()
    weight = np.linspace(0.0, 1.0, len(X))

    def visit(state, block, code, absent, weight):
        assert absent is None and len(block) == len(code) == len(weight)
        return [*(state or []), *zip(code.tolist(), weight.tolist(), block.tolist())]

    rows = matrix.reduce_rows(visit, operator.add, (codes, None, weight))
    assert [code for code, _, _ in rows] == codes.tolist()
    assert [w for _, w, _ in rows] == weight.tolist()
    np.testing.assert_array_equal([row for _, _, row in rows], X)


@pytest.mark.parametrize("shape", [(41, 13), (300, 520)])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_statistics(kind, shape, weighted):
    X = _data(*shape)
    rng = np.random.default_rng(2)
    codes = rng.permutation(np.arange(len(X)) % 3)
    weight = rng.integers(0, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    weight /= np.bincount(codes, weight)[codes]
    mean, var = kind(X).class_statistics(codes, weight, 3)
    for k in range(3):
        rows, w = X[codes == k], weight[codes == k]
        np.testing.assert_allclose(mean[k], w @ rows, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(var[k], w @ (rows - w @ rows) ** 2, rtol=1e-11, atol=1e-13)


def test_class_statistics_survive_a_large_mean(kind):
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(400, 3)) * 64) / 64 + 2.0**17  # exact in float32
    codes = np.arange(400) % 2
    _, var = kind(X).class_statistics(codes, np.full(400, 1 / 200), 2)
    expected = [(X[codes == k] - 2.0**17).var(axis=0) for k in range(2)]
    np.testing.assert_allclose(var, expected, rtol=1e-9)


def test_a_constant_column_has_no_variance_however_many_rows(kind):
    n = 30_000  # sums of this many equal numbers have visible rounding errors
    X = np.full((n, 2), np.float32(0.1), dtype=np.float64)
    X[:, 1] = np.float32(1e3 / 3)
    codes = np.arange(n) % 2
    mean, var = kind(X).class_statistics(codes, np.full(n, 2 / n), 2)
    np.testing.assert_allclose(mean, np.tile(X[0], (2, 1)), rtol=1e-14)
    assert (np.sqrt(var) <= 2 * np.finfo(float).eps * X[0]).all()


def test_extremes(matrix, X):
    assert matrix.extremes() == (X.min(), X.max())


@pytest.mark.parametrize("where", [0, 25])
@pytest.mark.parametrize(
    ("bad", "message"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_values_that_are_not_finite_are_refused(kind, X, bad, message, where):
    X[where, 3] = bad
    with pytest.raises(ValueError, match=rf"table contains {message}.*impute"):
        _check(kind(X))


def _check(matrix):
    """Values are looked at at once, or in the first pass that is made anyway."""
    matrix.check_values("table")
    if matrix.costly_passes:
        codes = np.arange(matrix.shape[0]) % 2
        matrix.class_statistics(codes, 1.0 / np.bincount(codes)[codes], 2)


def test_values_whose_squares_overflow_are_refused(kind, X):
    X[2, 3] = -1e30
    matrix = kind(X)
    if matrix.dtype == np.float64:
        _check(matrix)
        X[2, 3] = -1e160
        matrix = kind(X)
    with pytest.raises(ValueError, match=r"table contains values up to .*overflow.*rescale"):
        _check(matrix)


def test_duplicate_entries_of_a_sparse_matrix_are_summed_on_a_copy():
    rows, cols = np.array([0, 0, 1, 2]), np.array([1, 1, 0, 1])
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0, 1.0]), cols, np.array([0, 2, 3, 4])), shape=(3, 2))
    dense = np.zeros((3, 2))
    np.add.at(dense, (rows, cols), [1.0, 2.0, 4.0, 1.0])
    matrix = SparseMatrix(X)
    mean, var = matrix.class_statistics(np.zeros(3, dtype=int), np.full(3, 1 / 3), 1)
    np.testing.assert_allclose(mean[0], dense.mean(axis=0))
    np.testing.assert_allclose(var[0], dense.var(axis=0))
    assert X.nnz == 4  # the caller's matrix is as it was


def test_an_unknown_array_is_refused_by_its_type():
    with pytest.raises(TypeError, match=r"list.*NumPy array, a SciPy"):
        as_matrix([[1.0, 2.0]])


@pytest.mark.parametrize("name", ["float64", "float32", "fortran", "strided", "csr", "csc32"])
def test_no_product_copies_the_matrix(name):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 3000)) * (rng.random((600, 3000)) < 0.3)
    matrix = KINDS[name](X)
    codes, weight = np.arange(600) % 2, np.full(600, 1 / 300)
    v, u = rng.normal(size=3000), rng.normal(size=600)
    tracemalloc.start()
    try:
        matrix.dot(v)
        matrix.tdot(u)
        matrix.tdot(u, exact=True)
        matrix.class_statistics(codes, weight, 2)
        matrix.extremes()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    held = X.size * 4 if "32" in name else X.size * 8
    if name.startswith("cs"):
        held = matrix.X.data.nbytes + matrix.X.indices.nbytes
    assert peak < 0.75 * held
