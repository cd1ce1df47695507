"""The logarithm in a pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp.estimators.pipeline import Log2


@parametrize_with_checks([Log2()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_known_values():
    X = np.array([[16.0, -5.0, np.nan], [1024.0, 20.0, 0.0]], dtype=np.float32)
    before = X.copy()
    got = Log2(floor=16).fit_transform(X)
    np.testing.assert_allclose(got, [[4, 4, np.nan], [10, np.log2(20), 4]], rtol=1e-6)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(X, before)


def test_sparse_stays_sparse_where_it_can():
    X = sparse.random(20, 10, density=0.2, random_state=0, format="csr") * 100
    got = Log2().fit_transform(X)
    assert sparse.issparse(got)
    np.testing.assert_array_equal(got.toarray(), Log2().fit_transform(X.toarray()))
    with pytest.raises(ValueError, match="floor=16 would make every zero"):
        Log2(floor=16).fit_transform(X)
    with pytest.raises(ValueError, match="floor must be a number above 0, got 0"):
        Log2(floor=0).fit(X)
