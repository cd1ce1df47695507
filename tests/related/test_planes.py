"""What every plane classifier of the folder promises."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsegsvp.related import (
    GEPSVM,
    IGEPSVM,
    IRQM,
    NPSVM,
    GeneShaving,
    GSVDSelector,
    HOGSVDSelector,
    L1ReGEC,
    ReGEC,
    SparsePSVM,
    TruncatedRayleighFlow,
)

PLANES = [
    *(GEPSVM(), IGEPSVM(), ReGEC(), ReGEC(shift="cross"), L1ReGEC(), SparsePSVM(), IRQM(0.3)),
    *(
        NPSVM(),
        NPSVM("l2"),
        NPSVM("lp"),
        NPSVM("lp", p=0.5),
        TruncatedRayleighFlow(n_features=5, tau=0.1),
    ),
]
ITERATIVE = [estimator for estimator in PLANES if hasattr(estimator, "max_iter")]
each = pytest.mark.parametrize("estimator", PLANES, ids=repr)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (GEPSVM(delta=0), "delta must be a number above 0, got 0"),
        (GEPSVM(n_features=0), "n_features must be an integer of at least 1"),
        (ReGEC(delta=(1, 2, 3)), "delta must be a number or a pair"),
        (ReGEC(delta=(0.5, 4), shift="cross"), "product of the two deltas"),
        (L1ReGEC(l1=1.5), "l1 must be a number above 0 and at most 1"),
        (NPSVM("lp", p=3), "p must be .* at most 2"),
        (SparsePSVM(max_iter=0), "max_iter must be an integer of at least 1"),
        (TruncatedRayleighFlow(n_features=2.5), "n_features must be an integer"),
        (IRQM(1.5), "rho must be a number above 0 and at most 1"),
        (GSVDSelector(threshold=1.0), "threshold must be"),
        (HOGSVDSelector(kind="both"), "kind must be 'exclusive' or 'shared'"),
        (GeneShaving(n_permutations=0), "n_permutations must be"),
    ],
)
def test_senseless_parameters_are_named(table, estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*table())


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


@pytest.mark.timeout(120)
@pytest.mark.parametrize("estimator", ITERATIVE, ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_small_integers_end(estimator):
    """Ties and equal means, on which the search of SparsePSVM once did not end."""
    rng, y = np.random.default_rng(4), np.repeat([0, 1], 12)
    for _ in range(30):
        X = rng.integers(-2, 3, size=(24, int(rng.integers(1, 6)))).astype(float)
        try:
            model = clone(estimator).fit(X, y)
        except ValueError as error:
            assert "without a direction" in str(error)
        else:
            assert np.isfinite(model.planes_).all() and model.n_iter_ <= model.max_iter


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
    np.testing.assert_allclose(np.linalg.norm(model.planes_ * X.std(axis=0), axis=1), 1.0)
    assert not hasattr(model, "coef_")  # the decision is not linear


@each
def test_units_change_nothing_and_a_panel_has_the_size_asked_for(table, estimator):
    X, y = table()
    plain = clone(estimator).fit(X, y)
    scale, shift = 10.0 ** np.arange(-3, 3), np.array([0, 5, -3, 100, 0, 1.0])
    model = clone(estimator).fit(X * scale + shift, y)
    assert (model.feature_order_ == plain.feature_order_).all()
    np.testing.assert_allclose(model.planes_ * scale, plain.planes_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-6)
    model.set_params(n_features=4).fit(X, y)
    panel = model.get_support(indices=True)
    assert sorted(model.feature_order_[:4]) == panel.tolist()
    assert (model.transform(X) == X[:, panel]).all()
    assert not model.planes_[:, ~model.support_].any()


@pytest.mark.parametrize("estimator", ITERATIVE, ids=repr)
@pytest.mark.parametrize("m", [6, 120])
def test_the_objective_never_gets_worse(table, estimator, m):
    model = clone(estimator).fit(*table(m=m))
    assert max(len(history) for history in model.history_) > 1
    for history, objective in zip(model.history_, model.objective_):
        assert (np.diff(history) <= 1e-12 * np.abs(history[1:])).all()
        assert objective == history[-1]
    assert model.n_iter_ >= 1


@pytest.mark.parametrize("estimator", [L1ReGEC(), NPSVM("lp"), SparsePSVM(), IRQM(0.1)], ids=repr)
def test_stopping_early_warns_with_advice(table, estimator):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        clone(estimator).set_params(max_iter=1, tol=0.0).fit(*table(m=40))


@pytest.mark.parametrize(
    "estimator",
    # Left to itself the lp plane also takes a noise feature here; its five heaviest are right.
    [L1ReGEC(), NPSVM("lp", p=0.5, n_features=5), TruncatedRayleighFlow(n_features=5), IRQM()],
    ids=repr,
)
def test_five_informative_features_among_three_thousand(planted, estimator):
    model = clone(estimator).fit(*planted(n=100, m=3000, informative=5, shift=2.5))
    assert model.get_support(indices=True).tolist() == [0, 1, 2, 3, 4]
    assert model.score(*planted(n=100, m=3000, informative=5, shift=2.5, seed=1)) > 0.9


def test_sparse_psvm_finds_a_correlated_block():
    # Independent noise is preferred by the method's own quotient (see its notes), so the
    # informative features here share a factor that only the second class has. The plane that
    # is far from that class must find it; nothing is planted for the other.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3000))
    X[50:, 700:900] += 6.0 * rng.normal(size=(50, 1))
    model = SparsePSVM(l1=0.7).fit(X, np.repeat([0, 1], 50))
    assert np.flatnonzero(model.planes_[0]).tolist() == list(range(700, 900))
