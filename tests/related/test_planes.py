"""What every plane classifier of the folder promises."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsegsvp.datasets import data_folder
from sparsegsvp.related import (
    GEPSVM,
    IGEPSVM,
    IRQM,
    NPSVM,
    L1ReGEC,
    ReGEC,
    SparsePSVM,
    TruncatedRayleighFlow,
)
from sparsegsvp.related.base import order_features
from sparsegsvp.related.base import RowSpace

PLANES = [
    GEPSVM(),
    IGEPSVM(),
    ReGEC(),
    ReGEC(shift="cross"),
    L1ReGEC(),
    NPSVM(),
    NPSVM("l2"),
    NPSVM("lp"),
    NPSVM("lp", p=0.5),
    SparsePSVM(),
    IRQM(0.3),
    TruncatedRayleighFlow(5, tau=0.1),
]
ITERATIVE = [estimator for estimator in PLANES if hasattr(estimator, "max_iter")]
each = pytest.mark.parametrize("estimator", PLANES, ids=repr)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 0, 0, 0, 0], "one class only, .*add samples"),
        ([0, 1, 1, 1, 1, 1], "has one sample only, .*fewer folds"),
        ([0, 0, 1, 1, 2, 2], "3 classes.*OneVsRestClassifier"),
        ([0, 0, 0.5, 0.5, 1.5, 1.5], "Unknown label type"),
        ([0, 0, np.nan, 1, 1, 1], "contains NaN"),
    ],
)
def test_labels_that_are_not_two_classes_are_refused_with_a_remedy(labels, message):
    with pytest.raises(ValueError, match=message):
        GEPSVM().fit(np.arange(12.0).reshape(6, 2) ** 2, labels)


def test_tables_without_information_are_refused_with_a_remedy():
    y = [0, 0, 1, 1]
    with pytest.raises(ValueError, match="every feature of X is constant"):
        GEPSVM().fit(np.full((4, 3), 0.1), y)
    with pytest.raises(ValueError, match="NaN"):
        GEPSVM().fit([[1.0], [2.0], [np.nan], [3.0]], y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (GEPSVM(delta=0), "delta must be a number above 0, got 0"),
        (GEPSVM(n_features=0), "n_features must be an integer of at least 1"),
        (ReGEC(delta=(1, 2, 3)), "delta must be a number or a pair"),
        (ReGEC(delta=(0.5, 4), shift="cross"), "product of the two deltas"),
        (ReGEC(shift="both"), "shift must be"),
        (L1ReGEC(l1=1.5), "l1 must be a number above 0 and at most 1"),
        (NPSVM("l1"), "penalty must be"),
        (NPSVM("lp", p=3), "p must be .* at most 2"),
        (SparsePSVM(max_iter=0), "max_iter must be an integer of at least 1"),
        (TruncatedRayleighFlow(2.5), "n_nonzero must be an integer"),
    ],
)
def test_senseless_parameters_are_named(table, estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*table())


def test_row_space_without_the_bias_keeps_every_product_too(blocks):
    for m in (12, 13, 40):
        A, B = blocks(n_a=5, n_b=7, m=m)
        space = RowSpace.of([A, B], bias=False)
        assert (space.basis is None) == (m == 12)
        u = np.random.default_rng(1).normal(size=(12, 3))
        np.testing.assert_allclose(A @ space.lift(u), space.blocks[0] @ u, atol=1e-12)
        np.testing.assert_allclose(B @ space.lift(u), space.blocks[1] @ u, atol=1e-12)


def test_row_space_is_an_isometry_that_keeps_every_product(blocks):
    A, B = blocks(n_a=5, n_b=7, m=40)
    space = RowSpace.of([A, B])
    u = np.random.default_rng(1).normal(size=12)
    z = space.lift(u)
    np.testing.assert_allclose(A @ z[:-1] + z[-1], space.blocks[0] @ u, atol=1e-12)
    np.testing.assert_allclose(B @ z[:-1] + z[-1], space.blocks[1] @ u, atol=1e-12)
    assert np.linalg.norm(z) == pytest.approx(np.linalg.norm(u))


def test_order_puts_equal_columns_in_their_order_in_spite_of_rounding():
    weight = np.array([0.1, 0.7, 0.7 * (1 + 1e-15), 0.0, 0.0])
    assert order_features(weight, np.array([9, 9, 9, 1.0, 2.0])).tolist() == [1, 2, 0, 4, 3]
    assert order_features(np.array([0.0, 2.0, 1.0, 2.0])).tolist() == [1, 3, 2, 0]
    alone, score = np.array([0.0, 2.0, 0.0, 0.0]), np.array([1.0, 0.0, 3.0, 1.0])
    assert order_features(alone, score).tolist() == [1, 2, 0, 3]


# Equal means, and less spread in the first class. Seen from the second the bias alone is best, by
# whatever method: no l1 weight, however small, lets the feature in, and what eigenvectors have for
# it is rounding, which no two processors share.
FIRST = [0, 1, 1, 1, 2, -1, -1, -1, 0, 1, 0, 0]
SECOND = [-2, 0, -1, 2, 1, 1, 0, 1, 1, 0, 0, 0]


@pytest.mark.timeout(60)
@each
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_equal_class_means_that_leave_no_direction_are_said_to(estimator, unit):
    X, y = unit * np.array([FIRST + SECOND], dtype=float).T, np.repeat([0, 1], 12)
    with pytest.raises(ValueError, match="without a direction"):
        clone(estimator).fit(X, y)


@pytest.mark.parametrize("estimator", [GEPSVM(), ReGEC(), TruncatedRayleighFlow()], ids=repr)
@pytest.mark.parametrize("m", [1, 2, 5])
def test_a_class_and_its_mirror_image_leave_no_direction(estimator, m):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(6, m)), 4.0 * rng.normal(size=(7, m))  # the bias is best for B
    X = 1e8 * np.vstack([A, -A, B, -B])
    with pytest.raises(ValueError, match="without a direction"):
        clone(estimator).fit(X, np.repeat([0, 1], [12, 14]))


def test_a_plane_far_from_the_origin_keeps_its_direction():
    """What counts is how far x'w reaches beside b, whatever the units of the features."""
    X = np.array([[0.0, 0.1, 0.3, 1.0, 1.1, 1.4]]).T
    y = np.repeat([0, 1], 3)
    for unit, offset in ((1e-12, 0.0), (1e12, 0.0), (1.0, 1e3)):
        model = GEPSVM(standardize=False, delta=1e-6 * min(unit, 1.0) ** 2).fit(
            unit * X + offset, y
        )
        np.testing.assert_array_equal(np.abs(model.planes_), 1.0)
        assert model.score(unit * X + offset, y) == 1.0


@each
def test_distances_decide_and_do_not_depend_on_the_batch(table, estimator):
    X, y = table()
    model = clone(estimator).fit(X, np.where(y == 0, "a", "b"))
    decision = model.decision_function(X)
    distance = np.abs(X @ model.planes_.T + model.plane_intercepts_)
    np.testing.assert_allclose(decision, distance[:, 0] - distance[:, 1])
    assert (model.predict(X) == np.where(decision > 0, "b", "a")).all()
    alone = np.concatenate([model.predict(row[None]) for row in X])
    assert (alone == model.predict(X)).all()
    # The rows of planes_ are unit vectors in standardised units.
    np.testing.assert_allclose(np.linalg.norm(model.planes_ * X.std(axis=0), axis=1), 1.0)


@each
def test_units_and_constant_columns_change_nothing(table, estimator):
    X, y = table()
    plain = clone(estimator).fit(X, y)
    scale, shift = 10.0 ** np.arange(-3, 3), np.array([0, 5, -3, 100, 0, 1.0])
    dressed = np.insert(X * scale + shift, [0, 3, 6], [7.0, 0.1, 0.0], axis=1)
    model = clone(estimator).fit(dressed, y)
    there = np.array([1, 2, 3, 5, 6, 7])
    assert not model.support_[[0, 4, 8]].any()
    assert (model.support_[there] == plain.support_).all()
    assert (model.feature_order_[:6] == there[plain.feature_order_]).all()
    np.testing.assert_allclose(model.planes_[:, there] * scale, plain.planes_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-6)


@each
def test_a_panel_of_the_size_asked_for(table, estimator):
    X, y = table(m=12)
    model = clone(estimator).set_params(n_features=4).fit(X, y)
    panel = model.get_support(indices=True)
    assert sorted(model.feature_order_[:4]) == panel.tolist()
    assert sorted(model.feature_order_) == list(range(12))
    assert (model.transform(X) == X[:, panel]).all()
    assert not model.planes_[:, ~model.support_].any()


def test_a_panel_larger_than_the_table_warns(table):
    with pytest.warns(UserWarning, match="n_features=99 is more than the 6 features that vary"):
        model = GEPSVM(n_features=99).fit(*table())
    assert model.support_.all()


@pytest.mark.parametrize("estimator", ITERATIVE, ids=repr)
@pytest.mark.parametrize("m", [6, 120])
def test_the_objective_never_gets_worse(table, estimator, m):
    model = clone(estimator).fit(*table(m=m))
    assert max(len(history) for history in model.history_) > 1
    for history, objective in zip(model.history_, model.objective_):
        assert (np.diff(history) <= 1e-12 * np.abs(history[1:])).all()
        assert objective == history[-1]
    assert model.n_iter_ >= 1


@pytest.mark.parametrize("estimator", [L1ReGEC(), NPSVM("lp"), SparsePSVM()], ids=repr)
def test_stopping_early_warns_with_advice(table, estimator):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        clone(estimator).set_params(max_iter=1, tol=0.0).fit(*table(m=40))


def planted(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 3000))
    y = np.repeat([0, 1], 50)
    X[y == 1, 700:705] += 2.5
    return X, y


@pytest.mark.parametrize(
    "estimator",
    # Left to itself the lp plane also takes a noise feature here; its five heaviest are right.
    [L1ReGEC(), NPSVM("lp", p=0.5, n_features=5), TruncatedRayleighFlow(5)],
    ids=repr,
)
def test_five_informative_features_among_three_thousand(estimator):
    model = clone(estimator).fit(*planted())
    assert model.get_support(indices=True).tolist() == [700, 701, 702, 703, 704]
    assert model.score(*planted(seed=1)) > 0.9


def test_sparse_psvm_finds_a_correlated_block():
    # Independent noise is preferred by the method's own quotient (see its notes), so the
    # informative features here share a factor that only the second class has. The plane that
    # is far from that class must find it; nothing is planted for the other.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3000))
    y = np.repeat([0, 1], 50)
    X[50:, 700:900] += 6.0 * rng.normal(size=(50, 1))
    found = np.flatnonzero(SparsePSVM(l1=0.7).fit(X, y).planes_[0])
    assert found.tolist() == list(range(700, 900))


@pytest.mark.skipif(data_folder() is None, reason="SPARSEGSVP_DATA does not name a data folder")
def test_sparse_psvm_fits_its_own_training_samples():
    """With a ridge that does not scale with the quotient it gave 0.72 on these."""
    with np.load(data_folder() / "leukemia_golub.npz") as arrays:
        X, y = arrays["X"], arrays["y"]
    assert SparsePSVM().fit(X, y).score(X, y) >= 0.9


def test_small_integers_with_equal_means_end():
    """Data on which the halving of the penalty once went on for ever."""
    x = [0, 1, 1, 1, 2, -1, -1, -1, 0, 1, 0, 0, -2, 0, -1, 2, 1, 1, 0, 1, 1, 0, 0, 0]
    X, y = np.array(x, dtype=float)[:, None], np.repeat([0, 1], 12)
    with pytest.raises(ValueError, match="a plane came out without a direction"):
        SparsePSVM().fit(X, y)
    rng = np.random.default_rng(4)
    for _ in range(20):
        X = rng.integers(-2, 3, size=(24, int(rng.integers(1, 5)))).astype(float)
        try:
            model = SparsePSVM().fit(X, y)
        except ValueError as error:
            assert "without a direction" in str(error)
        else:
            assert np.isfinite(model.planes_).all() and np.max(model.n_iter_) <= 1000


def test_the_exact_lasso_ends_where_rounding_hides_every_fall():
    """Columns equal but for their last bits: sets of them must not take turns."""
    from sparsegsvp.related.lasso import lasso

    rng = np.random.default_rng(0)
    for scale in (1e-9, 1.0, 1e9):
        F = np.repeat(rng.normal(size=(8, 3)), 20, axis=1)
        F *= 1 + rng.choice([-1, 1], size=F.shape) * np.finfo(float).eps
        F = np.column_stack([F, np.ones(8)]) * scale
        c = F.T @ rng.normal(size=8)
        l1 = 1e-9 * np.abs(c).max()
        z, gradient, _ = lasso(F, 1e-12 * scale**2, c, l1, np.zeros(61))
        zero = z[:-1] == 0
        assert (np.abs(gradient[:-1][zero]) <= 1.0001 * l1 + 1e-12 * np.abs(c).max()).all()
