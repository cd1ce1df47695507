"""What a search computes for all points at once is what it would compute for each."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import decision, refit, scoring
from sparsegsvp.estimators.decision import fit_calibrator, fit_calibrators
from sparsegsvp.estimators.planes import PlaneProblems, PlaneSettings
from sparsegsvp.estimators.refit import balanced_scale, refit_pair
from sparsegsvp.estimators.scoring import LabelledRows, score_fold
from sparsegsvp.estimators.search import Search, points_of, solve_fold
from sparsegsvp.linalg import as_matrix
from sparsegsvp.metrics import balanced_log_loss
from sparsegsvp.solvers import L1
from sparsegsvp.solvers.exact import solve_unpenalized

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibrators_of_many_models_are_logistic_regressions(n_classes, monkeypatch) -> None:
    codes = np.arange(60) % n_classes
    # from noise to classes far apart, where the likelihood alone has no maximum
    apart = np.linspace(0.0, 30.0, 12)[:, None] * RNG.normal(size=(12, n_classes))
    features = RNG.normal(size=(60, 12, n_classes)) + codes[:, None, None] * apart
    weight = RNG.uniform(0.0, 2.0, 60)
    coef, intercept = fit_calibrators(features, codes, n_classes, weight)
    balanced = weight / np.bincount(codes, weight)[codes] * weight.sum() / n_classes
    for j in range(12):
        tol = 1e-10 if n_classes == 2 else 1e-8
        peer = LogisticRegression(tol=tol, max_iter=1000, solver="newton-cholesky")
        peer.fit(features[:, j], codes, sample_weight=balanced)
        expected = peer.coef_ if n_classes > 2 else peer.coef_[0]
        assert_allclose(coef[j], expected, atol=1e-7)
        assert_allclose(intercept[j], np.squeeze(peer.intercept_), atol=1e-6)
        # a model's calibrator does not depend on what it is fitted with
        alone = fit_calibrator(features[:, j], codes, n_classes, weight)
        assert_array_equal(alone.coef, coef[j])
        assert_array_equal(alone.intercept, intercept[j])
    monkeypatch.setattr(decision, "_MOST_VALUES", 60 * 5)
    for found, expected in zip(
        fit_calibrators(features, codes, n_classes, weight), (coef, intercept)
    ):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("tau", [0.1, 10.0])
@pytest.mark.parametrize("pool", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("k", [1, 2, 25, 90])
@pytest.mark.parametrize("m", [90, 300], ids=["moments", "rows"])
def test_one_eigenproblem_gives_both_planes(tau, pool, k, m) -> None:
    X, y = make_planted(70, m, 5, weights=(2, 1), random_state=k, return_X_y=True)
    rows = LabelledRows(as_matrix(X), y.astype(np.intp), None, np.arange(2))
    cov = rows.covariances(True)
    problems = PlaneProblems(cov, PlaneSettings(L1(), tau, pool)).problems
    panel = np.sort(RNG.choice(m, k, replace=False))
    found = refit_pair(cov, problems[0].plane, tau, panel)
    alone = [solve_unpenalized(cov, problem.plane, tau, panel) for problem in problems]
    if found is None:
        assert None in alone
        return
    for i, solution in enumerate(alone):
        assert_allclose(np.linalg.norm(found.w[i]), 1.0)
        assert_allclose(abs(found.w[i, np.isin(panel, solution.features)] @ solution.w), 1.0)
        # the other class lies on the positive side, at the distance the bias has
        centers = cov.means[:, panel] @ found.w[i] + found.b[i]
        assert_allclose(centers[1 - i], abs(solution.bias.other), atol=1e-7)
    assert_allclose(found.scale, balanced_scale(cov, panel, found.w, found.b))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_in_one_product_are_those_of_each_point(n_classes, weighted, monkeypatch) -> None:
    X, y = make_planted(80, 250, 6, n_classes=n_classes, return_X_y=True)
    weight = RNG.uniform(0.1, 2.0, 80) if weighted else None
    rows = LabelledRows(as_matrix(X), y.astype(np.intp), weight, np.arange(n_classes))
    search = Search(
        settings=[PlaneSettings(L1(), tau, 0.5) for tau in (0.5, 2.0)],
        rhos=np.geomspace(1, 0.05, 6),
        points=points_of(6, n_classes, False),
        decisions=["calibrated"],
        scorer=None,
        standardize=True,
        max_features=15,
    )
    train, test = np.arange(0, 60), np.arange(60, 80)
    held_in = np.zeros(80)
    held_in[train] = 1.0 if weight is None else weight[train]
    planes = solve_fold(rows.covariances(True, held_in), search, 60)
    reached = np.array([[plane is not None for plane in points] for points in planes])
    assert reached[:, 0].all() and not reached.all()

    def loss(model, rows_of_test, labels):
        test_weight = None if weight is None else weight[test]
        p = model.predict_proba(rows_of_test)
        return -balanced_log_loss(labels, p, labels=model.classes_, sample_weight=test_weight)

    at_once = score_fold(planes, rows, search.decisions, None, train, test)
    one_by_one = score_fold(planes, rows, search.decisions, loss, train, test)
    monkeypatch.setattr(scoring, "_MOST_DISTANCES", 3 * 80 * n_classes)
    in_parts = score_fold(planes, rows, search.decisions, None, train, test)
    for found in (at_once, one_by_one, in_parts):
        assert_array_equal(np.isnan(found.scores[:, :, 0]), ~reached)
        assert_array_equal(found.sizes > 0, reached)
        assert_allclose(found.scores, one_by_one.scores, rtol=1e-9)
        assert_allclose(found.accuracies, one_by_one.accuracies, rtol=1e-12)
        assert_allclose(found.features, one_by_one.features, atol=1e-9)


@pytest.mark.parametrize("n", [6, 30])
def test_end_vectors_are_found_again_where_lapack_fails(n, monkeypatch) -> None:
    """By way of SciPy's own solver, which refuses what nobody can solve."""
    half = RNG.normal(size=(2, n, n))
    A, B = half @ half.transpose(0, 2, 1) + np.eye(n)
    expected = refit._end_vectors(A, B)

    def stalled(plain, at):
        """The same answer, but said to have failed."""

        def call(*args, **kwargs):
            found = list(plain(*args, **kwargs))
            found[at] = 1
            return tuple(found)

        return call

    monkeypatch.setattr(refit, "dsygvd", stalled(refit.dsygvd, -1))
    monkeypatch.setattr(refit, "dstein", stalled(refit.dstein, -1))
    found = refit._end_vectors(A, B)
    signs = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * signs, expected, atol=1e-8)
    with pytest.raises(np.linalg.LinAlgError):
        refit._end_vectors(A, -B)
