"""Half samples: chosen again, stand-ins, the noise level, and stability selection."""

import numpy as np
import pytest
import sklearn
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, GSVPSVMCV, StabilitySelection, nested_evaluate
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import within_class_correlations
from sparsegsvp.evaluation.splits import complementary_pair, read_samples
from sparsegsvp.metrics import nogueira_stability


@pytest.fixture(scope="module")
def twenty_peaks():
    """Twenty copies of one marker with little noise, among 100 features."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 100))
    peak = rng.normal(size=60) + 2.0 * y
    X[:, :20] = peak[:, None] + 0.25 * rng.normal(size=(60, 20))
    return X, y


# ------------------------------------------------------------------------- chosen again


def test_stand_ins_count_where_neighbours_split_the_vote(twenty_peaks):
    """Defect 13: substitutes were empty although partners with r > .9 were there."""
    X, y = twenty_peaks
    found = nested_evaluate(GSVPSVM(2), X, y, n_repeats=1, n_permutations=0, n_pairs=10)
    first = found.stability.chosen_again().iloc[0]
    assert first["feature"] < 20 and first["frequency"] < 0.7
    assert first["with_stand_ins"] == 1.0
    assert len(first["stand_ins"]) >= 15
    assert all(abs(s["correlation"]) >= 0.8 for s in first["stand_ins"])
    assert any(s["loss"] is not None for s in first["stand_ins"])


def test_copies_are_never_in_one_panel(twenty_peaks):
    """Defect 14: an exact copy entered a panel of three."""
    X, y = twenty_peaks
    doubled = np.c_[X, X]
    found = nested_evaluate(GSVPSVM(3), doubled, y, n_repeats=1, n_permutations=0, n_pairs=0)
    for panel in (*found.fold_panels, found.panel):
        assert len({f % 100 for f in panel}) == 3


def test_noise_shows_its_level_beside():
    """Defect 11: over folds a noise gene was "chosen again" in 72%."""
    levels, shown = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(50, 300)), np.repeat([0, 1], 25)
        found = nested_evaluate(
            GSVPSVM(5), X, y, n_repeats=1, n_permutations=0, n_pairs=6, sizes=(5,)
        )
        table = found.stability.chosen_again()
        shown.append(table["with_stand_ins"].mean())
        levels.append(table["noise"].iloc[0])
        assert found.stability.index < 0.3 and abs(found.stability.index_noise) < 0.3
    assert np.mean(shown) < 0.5
    assert np.mean(shown) == pytest.approx(np.mean(levels), abs=0.15)


def test_halves_serve_stability_and_chosen_again_alike():
    X, y = make_planted(60, 80, 3, effect=2.5, random_state=0, return_X_y=True)
    found = nested_evaluate(GSVPSVMCV(), X, y, n_repeats=1, n_permutations=0, n_pairs=6)
    stability = found.stability
    panels = [half.at(3).tolist() for half in stability.halves]
    samples = read_samples(X, y, None)
    rows = complementary_pair(samples, 0)[0]
    assert len(panels) == 12 and all(len(p) == 3 for p in panels) and rows.size == 30
    row = found.ladder[found.ladder["size"] == 3].iloc[0]
    assert row["stability"] == pytest.approx(nogueira_stability(panels, 80))
    again = stability.chosen_again(3)
    for feature, share in zip(again["feature"], again["frequency"]):
        assert share == np.mean([feature in p for p in panels])
    assert row["chosen_again"] == pytest.approx(again["with_stand_ins"].mean())
    assert row["chosen_again"] > 0.8 > row["chosen_again_noise"]
    assert list(stability.sizes) == found.ladder["size"].tolist()
    assert stability.error_bound is None or stability.error_bound < stability.n_stable
    with pytest.raises(ValueError, match="must be one of"):
        stability.chosen_again(4)


def test_nothing_of_the_whole_table_reaches_a_half():
    """Defect 10: tau chosen on all samples was used in the half samples."""
    X, y = make_planted(40, 30, 3, effect=1.0, random_state=3, return_X_y=True)
    found = nested_evaluate(GSVPSVM(4), X, y, n_repeats=1, n_permutations=0, n_pairs=3)
    # the same halves by hand: each panel is that of a fit that knows its half alone
    panels = {frozenset(half.panel.tolist()) for half in found.stability.halves}
    from sparsegsvp._validate import derive_seed

    samples = read_samples(X, y, None)
    seed = derive_seed(0, 11)
    for i in range(3):
        for rows in complementary_pair(samples, derive_seed(seed, 0, i)):
            model = GSVPSVM(4).fit(X[rows], y[rows])
            assert frozenset(model.feature_order_.tolist()) in panels


def test_other_procedures_can_be_halved_too(planted, procedure):
    X, y = planted
    found = nested_evaluate(procedure, X, y, n_repeats=1, n_permutations=0, n_pairs=4)
    table = found.stability.chosen_again()
    assert table["frequency"].between(0, 1).all() and len(table) == 3
    assert np.isfinite(found.stability.index_noise) and found.ladder is None


def test_too_few_samples_to_halve_are_refused():
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.repeat([0, 1], 10)
    groups = np.r_[np.zeros(10), np.arange(1, 11)]
    with pytest.raises(ValueError, match=r"lacks a class|fewer"):
        nested_evaluate(GSVPSVM(2), X, y, groups=groups, n_permutations=0, n_pairs=2)


# ---------------------------------------------------------------------------- correlations


@pytest.mark.parametrize("kind", ["dense", "csr", "frame", "missing"])
def test_correlations_are_those_within_the_classes(kind, twenty_peaks):
    X, y = twenty_peaks
    X = X.copy()
    X[:, 50] = 5.0 * y  # constant within each class
    centred = X - np.array([X[y == k].mean(axis=0) for k in (0, 1)])[y]
    expected = np.corrcoef(centred[:, np.r_[:50, 51:100]].T)[0]
    given = X
    if kind == "csr":
        given = pytest.importorskip("scipy.sparse").csr_array(X)
    elif kind == "frame":
        given = pytest.importorskip("pandas").DataFrame(X)
    elif kind == "missing":
        given = X.copy()
        given[3, 70] = np.nan
    found = dict(within_class_correlations(given, y, [0])[0])
    assert set(found) == set(range(1, 20)) - {j for j in range(1, 20) if abs(expected[j]) < 0.8}
    for j, r in found.items():
        assert r == pytest.approx(expected[j])


# ------------------------------------------------------------------- stability selection


def test_stable_features_are_found_with_a_bound_that_says_something():
    data = make_planted(80, 200, 3, effect=1.8, random_state=0)
    stable = StabilitySelection(SelectKBest(k=4), n_pairs=25, n_jobs=1).fit(data.X, data.y)
    assert stable.get_support(indices=True).tolist() == data.support.tolist()
    assert stable.error_bound_ == pytest.approx(16 / 200 / 0.2)
    assert stable.selections_.shape == (50, 200) and stable.mean_panel_size_ == 4
    assert stable.transform(data.X).shape == (80, 3)
    weak = StabilitySelection(SelectKBest(k=60), n_pairs=5).fit(data.X, data.y)
    assert weak.error_bound_ is None  # 90 wrong ones are no news


def test_pairs_are_disjoint_halves_and_the_result_is_repeatable():
    X, y = make_planted(40, 20, 2, effect=1.0, random_state=1, return_X_y=True)
    a, b = (StabilitySelection(SelectKBest(k=3), n_pairs=4, n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(a.selections_, b.selections_)
    rows = np.random.default_rng(0).permutation(40)
    c = StabilitySelection(SelectKBest(k=3), n_pairs=4).fit(X[rows], y[rows])
    assert np.array_equal(a.selections_, c.selections_)


def test_weights_reach_the_estimator():
    """Defect 32: fit took no sample_weight and routed nothing."""
    X, y = make_planted(60, 30, 2, effect=2.0, random_state=0, return_X_y=True)
    weight = np.where(np.arange(60) % 2, 1.0, 1e-12)
    pipe = make_pipeline(
        StandardScaler(), LogisticRegression(C=0.5, l1_ratio=1, solver="liblinear")
    )
    for model in (GSVPSVM(3), pipe):
        plain = StabilitySelection(model, n_pairs=6).fit(X, y)
        given = StabilitySelection(model, n_pairs=6).fit(X, y, sample_weight=weight)
        assert not np.array_equal(plain.selections_, given.selections_)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        StabilitySelection(SelectKBest(k=2)).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="metadata routing"):
        StabilitySelection(GSVPSVM(3)).fit(X, y, colour=weight)


def test_metadata_is_routed():
    X, y = make_planted(60, 30, 2, effect=2.0, random_state=0, return_X_y=True)
    weight = np.where(np.arange(60) % 2, 1.0, 1e-12)
    by_hand = StabilitySelection(GSVPSVM(3), n_pairs=4).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        model = GSVPSVM(3).set_fit_request(sample_weight=True)
        routed = StabilitySelection(model, n_pairs=4).fit(X, y, sample_weight=weight)
    assert np.array_equal(by_hand.selections_, routed.selections_)


def test_groups_are_halved_whole():
    X, y = make_planted(40, 20, 2, effect=2.0, random_state=0, return_X_y=True)
    order = np.argsort(y, kind="stable")
    groups = np.empty(40, dtype=int)
    groups[order] = np.arange(40) // 4
    stable = StabilitySelection(GSVPSVM(2), n_pairs=3).fit(X, y, groups)
    assert stable.selections_.sum(axis=1).tolist() == [2] * 6


def test_dask_and_estimators_without_a_panel_are_refused():
    """Defect 36: +956 MB for a Dask table."""
    X, y = make_planted(30, 5, 2, effect=2.0, random_state=0, return_X_y=True)
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="compute"):
        StabilitySelection(GSVPSVM(2)).fit(da.from_array(X), y)
    from sklearn.naive_bayes import GaussianNB

    with pytest.raises(ValueError, match="does not say which features"):
        StabilitySelection(GaussianNB(), n_pairs=2).fit(X, y)
    with pytest.raises(ValueError, match="n_pairs"):
        StabilitySelection(GSVPSVM(2), n_pairs=0).fit(X, y)
