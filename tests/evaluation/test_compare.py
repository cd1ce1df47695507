"""Comparison at equal size: the same judge for all, native decisions apart, one cache."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest

from sparsegsvp import GSVPSVM, compare
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import default_methods, find_method, method_names
from sparsegsvp.evaluation.baselines import Baseline
from sparsegsvp.evaluation.cache import Cache, digest
from sparsegsvp.evaluation.compare import RANDOM_PANEL
from sparsegsvp.evaluation.procedure import ranked_features
from sparsegsvp.metrics import holm


@pytest.fixture(scope="module")
def data():
    return make_planted(60, 40, 4, effect=1.8, random_state=0)


@pytest.fixture(scope="module")
def found(data):
    methods = {
        "GSVPSVM": GSVPSVM(),
        "F test": SelectKBest(),
        "l1": Baseline("l1 logistic"),
    }
    return compare(methods, data.X, data.y, sizes=(2, 4), n_repeats=2)


def same(a, b):
    return a.table.drop(columns="seconds").equals(b.table.drop(columns="seconds"))


def test_every_method_gives_exactly_k_features_to_one_judge(found):
    table = found.table
    assert found.methods == ("GSVPSVM", "F test", "l1", RANDOM_PANEL)
    assert (table["panel_size"] == table["size"]).all() and (table["status"] == "ok").all()
    random = table[table["method"] == RANDOM_PANEL]["balanced_accuracy"].max()
    for name in ("GSVPSVM", "F test", "l1"):
        assert found.row(name, 4)["balanced_accuracy"] > random
    assert table["low"].le(table["balanced_accuracy"]).all()
    assert (table["seconds"] >= 0).all()


def test_a_native_score_is_of_that_many_features_or_absent(data, found):
    """Defect 12: L1Logistic(4) predicted with 5 features in a row called 4."""
    table = found.table.set_index(["method", "size"])
    assert np.isfinite(table.loc[("GSVPSVM", 2), "native"])
    assert np.isnan(table.loc[("F test", 2), "native"])  # it decides nothing

    class TooMany(GSVPSVM):
        def fit(self, X, y):
            wanted, self.n_features = self.n_features, self.n_features + 1
            super().fit(X, y)
            self.n_features = wanted
            return self

    other = compare({"too many": TooMany()}, data.X, data.y, sizes=(3,), n_repeats=1)
    assert (
        np.isnan(other.row("too many", 3)["native"]) and other.row("too many", 3)["panel_size"] == 3
    )


def test_differences_are_those_of_the_scores_jointly(found):
    table = found.table
    compared = table[table["difference"].notna()]
    assert len(compared) == 6 and "GSVPSVM" not in set(compared["method"])
    for _, row in compared.iterrows():
        reference = found.row("GSVPSVM", row["size"])["balanced_accuracy"]
        assert row["difference"] == pytest.approx(row["balanced_accuracy"] - reference)
        assert row["difference_low"] <= row["difference"] <= row["difference_high"]
    assert compared["p_adjusted"].to_numpy() == pytest.approx(holm(compared["p_value"]))
    assert table["on_front"].any()


def test_finished_pieces_are_kept_and_a_cut_line_is_done_again(data, tmp_path):
    path = tmp_path / "deep" / "pieces.jsonl"
    calls = []
    options = {"sizes": (2,), "n_repeats": 1, "cache": path}
    a = compare(["F test"], data.X, data.y, **options)
    assert len(path.read_text().splitlines()) == 10
    b = compare(["F test"], data.X, data.y, progress=lambda *p: calls.append(p), **options)
    assert same(a, b) and calls == [("comparison", 0, 0)]
    path.write_text(path.read_text()[:-30])
    calls.clear()
    c = compare(["F test"], data.X, data.y, progress=lambda *p: calls.append(p), **options)
    assert same(a, c) and calls[-1] == ("comparison", 1, 1)
    compare(["F test"], data.X, data.y, random_state=1, **options)
    assert len(path.read_text().splitlines()) > 15
    assert Cache(None).get(digest("nothing")) is None


def test_neither_workers_nor_row_order_matter(data):
    a = compare(["F test"], data.X, data.y, sizes=(3,), n_repeats=1)
    rows = np.random.default_rng(0).permutation(60)
    b = compare(["F test"], data.X[rows], data.y[rows], sizes=(3,), n_repeats=1, n_jobs=2)
    assert same(a, b)


def test_a_method_that_fails_is_a_row_that_says_so(data):
    class Broken(SelectKBest):
        def fit(self, X, y):
            raise RuntimeError("out of order")

    found = compare(
        {"broken": Broken(), "F test": SelectKBest()}, data.X, data.y, (2,), n_repeats=1
    )
    row = found.row("broken", 2)
    assert row["status"] == "failed" and row["error"] == "RuntimeError: out of order"
    assert np.isnan(row["balanced_accuracy"]) and found.row("F test", 2)["status"] == "ok"


def test_missing_values_groups_and_three_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 16)
    X = rng.normal(size=(48, 12)) + 2.0 * np.eye(12)[np.repeat([0, 1, 2], 16)]
    X[rng.random(X.shape) < 0.05] = np.nan
    found = compare({"sel": SelectKBest()}, X, y, (3,), groups=np.arange(48) // 2, n_repeats=1)
    assert (
        found.row("sel", 3)["balanced_accuracy"] > found.row(RANDOM_PANEL, 3)["balanced_accuracy"]
    )


def test_gaps_are_filled_by_what_the_training_part_knows(data):
    raw = np.c_[np.arange(60), data.X]  # the first column tells the rows
    raw[::3, 5] = raw[1::4, 7] = np.nan

    class Checked(SelectKBest):
        def fit(self, X, y):
            known = raw[X[:, 0].astype(int)]
            expected = np.where(np.isnan(known), np.nanmedian(known, axis=0), known)
            np.testing.assert_array_equal(X, expected)
            return super().fit(X, y)

    found = compare({"checked": Checked()}, raw, data.y, (3,), n_repeats=1)
    assert found.row("checked", 3)["status"] == "ok"


def test_names_of_methods():
    names = method_names()
    assert set(names) == set(default_methods()) and all(names.values())
    assert {"GSVPSVM", "mRMR", "RFE", "random forest", "GEPSVM"} <= set(names)
    assert (find_method("Random-Forest"), find_method("svm rfe")) == ("random forest", "RFE")
    with pytest.raises(ValueError, match="Did you mean 'F test'"):
        find_method("F tost")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sizes": (0, 2)}, "must lie in 1..40"),
        ({"sizes": (41,)}, "must lie in 1..40"),
        ({"reference": "nobody"}, "not among the methods"),
        ({"methods": {}}, "empty"),
        ({"methods": {"a": SelectKBest}}, "not an estimator"),
    ],
)
def test_bad_requests_are_refused(data, options, words):
    given = {"methods": {"F test": SelectKBest()}, **options}
    with pytest.raises(ValueError, match=words):
        compare(given.pop("methods"), data.X, data.y, **given)


@pytest.mark.parametrize("kind", ["mRMR", "RFE", "l1 logistic", "elastic net"])
def test_baselines_find_the_planted_features(kind):
    data = make_planted(120, 30, 4, effect=2.5, random_state=1)
    selector = Baseline(kind, 4).fit(data.X, data.y)
    assert len(set(selector.feature_order_[:4].tolist()) & set(data.support.tolist())) >= 3
    assert selector.transform(data.X).shape[1] == 4
    three = np.digitize(data.X[:, 0], [-0.5, 0.5])
    assert selector.fit(data.X, three).feature_order_[0] == 0


def test_trees_rank_features_once_for_all_sizes():
    data = make_planted(100, 30, 4, effect=2.5, random_state=1)
    for name in ("random forest", "gradient boosting"):
        method = clone(default_methods()[name]).set_params(estimator__random_state=0)
        order = ranked_features(method.fit(data.X, data.y), 30)
        assert len(set(order[:4].tolist()) & set(data.support.tolist())) >= 3
    found = compare(["boosting"], data.X, data.y, (2, 4), n_repeats=1)
    assert found.row("gradient boosting", 4)["panel_size"] == 4


def test_mrmr_leaves_out_copies_that_the_f_test_takes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 50)
    a, b = rng.normal(size=100) + 2.0 * y, rng.normal(size=100) + 1.8 * y
    X = np.c_[a, a + 0.01 * rng.normal(size=100), b, rng.normal(size=(100, 5))]
    assert set(ranked_features(SelectKBest(k=2).fit(X, y), 8)[:2].tolist()) == {0, 1}
    assert 2 in Baseline("mRMR", 2).fit(X, y).feature_order_[:2]


@pytest.mark.parametrize(
    "selector", [Baseline("mRMR", 9), Baseline(RANDOM_PANEL, 0), Baseline("l1 logistic", 9)]
)
def test_baselines_refuse_what_has_no_answer(selector):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match="n_features"):
        selector.fit(X, y)
    with pytest.raises(ValueError, match="varies by less"):
        Baseline("mRMR", 1).fit(np.ones((20, 3)), y)
