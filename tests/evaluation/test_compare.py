"""Comparison at equal size: exact panels, failures set aside, resuming after a kill."""

import json
import os
import runpy
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SelectorMixin, chi2
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp.evaluation import compare, default_methods, pareto_front
from sparsegsvp.evaluation.baselines import (
    ElasticNetSelector,
    L1Logistic,
    RandomPanel,
    RecursiveElimination,
    TreeImportance,
    l1_logistic,
)
from sparsegsvp.evaluation.compare import KNOWN_AS, method_lines
from sparsegsvp.evaluation.panels import exact_panel, ranked_features, size_is_a_cut, with_size

SMALL = {"sizes": (2, 5), "n_splits": 3, "n_repeats": 1}
TINY = {"sizes": (2, 5), "n_splits": 2, "n_repeats": 1}


@parametrize_with_checks(
    [
        L1Logistic(1),
        RecursiveElimination(1),
        RandomPanel(1, random_state=0),
        ElasticNetSelector(1),
        TreeImportance(1, n_trees=3, random_state=0),
        TreeImportance(1, boosted=True, n_trees=3, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "method",
    [
        SelectKBest(),
        make_pipeline(MinMaxScaler(), SelectKBest(chi2)),
        make_pipeline(StandardScaler(), SelectKBest(), LogisticRegression()),
        RFE(LinearSVC(), step=0.5),
        SelectFromModel(l1_logistic(0.2)),
        l1_logistic(0.1),
        make_pipeline(StandardScaler(), L1Logistic()),
        make_pipeline(StandardScaler(), RecursiveElimination()),
        make_pipeline(StandardScaler(), ElasticNetSelector()),
        TreeImportance(n_trees=20, random_state=0),
        TreeImportance(boosted=True, n_trees=20, random_state=0),
        RandomForestClassifier(10, random_state=0),
    ],
    ids=lambda m: type(m[-1] if hasattr(m, "steps") else m).__name__,
)
@pytest.mark.parametrize("size", [1, 4, 7])
def test_every_kind_of_method_gives_exactly_k(planted_small, method, size):
    X, y = planted_small
    fitted = with_size(method, size).fit(X, y)
    panel = exact_panel(fitted, size, X.shape[1])
    order = ranked_features(fitted, X.shape[1])
    # a sparse model that ranks fewer features than asked for gives what it has
    assert panel.size == min(size, order.size)
    assert np.unique(panel).size == panel.size and panel.max() < X.shape[1]
    assert {0, 1, 2} & set(order[:4].tolist())


def test_a_panel_is_cut_and_filled_by_the_methods_own_order(planted_small):
    class Fixed(SelectorMixin, BaseEstimator):
        def fit(self, X, y):
            self.n_features_in_ = X.shape[1]
            self.feature_order_ = np.array([9, 4, 7, 1, 3])
            return self

        def _get_support_mask(self):
            return np.isin(np.arange(self.n_features_in_), [4, 7, 1])

    fitted = Fixed().fit(*planted_small)
    assert exact_panel(fitted, 2, 60).tolist() == [4, 7]
    assert exact_panel(fitted, 4, 60).tolist() == [1, 4, 7, 9]
    assert exact_panel(fitted, 9, 60).tolist() == [1, 3, 4, 7, 9]


def test_one_fit_serves_all_sizes_only_where_the_order_is_the_same():
    assert size_is_a_cut(SelectKBest())
    assert size_is_a_cut(make_pipeline(MinMaxScaler(), SelectKBest(chi2)))
    assert not size_is_a_cut(make_pipeline(SelectKBest(), LogisticRegression()))
    assert not size_is_a_cut(make_pipeline(StandardScaler(), L1Logistic()))


def test_l1_logistic_finds_the_penalty_at_which_k_features_enter(planted_small):
    X, y = planted_small
    for size in (1, 3, 10):
        model = L1Logistic(size).fit(X, y)
        assert np.count_nonzero(model.coef_) >= size
        fewer = l1_logistic(model.C_ / 2**0.25).fit(X, y == "control")
        assert np.count_nonzero(fewer.coef_) < size or size == 1
    assert set(model.predict(X)) == {"case", "control"}
    three = L1Logistic(2).fit(X, np.arange(40) % 3)
    assert three.coef_.shape[0] == 3 and three.decision_function(X).shape == (40, 3)


def test_elastic_net_stops_where_k_features_have_entered_and_is_optimal(planted_small):
    X, y = planted_small
    X = X + 100  # the mean is taken off inside
    code = np.where(y == "control", 1.0, -1.0)
    weight = np.where(y == "control", 40 / 48, 40 / 32)
    for size in (1, 3, 10):
        model = ElasticNetSelector(size, l1_ratio=0.7).fit(X, y)
        assert np.count_nonzero(model.coef_) >= size
        assert model.get_support().sum() == size
        # stationarity, recomputed: |gradient| <= alpha * rho, with equality where w is not zero
        w = model.coef_[0]
        residual = code - model.decision_function(X)
        gradient = (X - np.average(X, axis=0, weights=weight)).T @ (weight * residual) / 40
        gradient -= model.alpha_ * 0.3 * w
        bound = model.alpha_ * 0.7
        assert np.abs(gradient).max() <= bound * (1 + 1e-3)
        np.testing.assert_allclose(gradient[w != 0], bound * np.sign(w[w != 0]), rtol=1e-2)
        before = ElasticNetSelector(1, l1_ratio=0.7).fit(X, y)
        assert before.alpha_ >= model.alpha_
    assert np.mean(model.predict(X) == y) > 0.9
    three = ElasticNetSelector(2).fit(X, np.arange(40) % 3)
    assert three.coef_.shape[0] == 3 and three.decision_function(X).shape == (40, 3)
    with pytest.raises(ValueError, match="l1_ratio"):
        ElasticNetSelector(l1_ratio=0.0).fit(X, y)


def test_elastic_net_takes_copies_together_where_the_lasso_takes_one(planted_small):
    X, y = planted_small
    X = np.column_stack([X, X[:, 0] + 1e-3 * np.random.default_rng(0).normal(size=40)])
    assert {0, 60} <= set(ElasticNetSelector(4, l1_ratio=0.2).fit(X, y).feature_order_.tolist())


@pytest.mark.parametrize("boosted", [False, True])
def test_trees_order_features_by_importance_the_same_for_a_seed(planted_small, boosted):
    X, y = planted_small
    model = TreeImportance(3, boosted, 60, random_state=1).fit(X, y)
    assert {0, 1, 2} & set(np.flatnonzero(model.get_support()).tolist())
    same = TreeImportance(3, boosted, 60, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.feature_importances_, same.feature_importances_)
    other = TreeImportance(3, boosted, 60, random_state=2).fit(X, y)
    assert (model.feature_importances_ != other.feature_importances_).any()
    order = model.feature_importances_[model.feature_order_]
    assert (np.diff(order) <= 0).all() and order.min() > 0
    assert size_is_a_cut(model)


def test_every_method_has_a_line_and_other_names_lead_to_one():
    lines = method_lines()
    assert list(lines) == list(default_methods())
    assert all(line.endswith(".") and len(line) < 90 for line in lines.values())
    assert len(set(lines.values())) == len(lines)
    assert set(KNOWN_AS.values()) <= set(lines)
    folded = {"".join(c for c in name.lower() if c.isalnum()) for name in lines}
    assert not folded & KNOWN_AS.keys()  # such a name would never be looked up


def test_recursive_elimination_agrees_with_rfe_below_64_features(planted_small):
    X, y = planted_small
    svm = LinearSVC(class_weight="balanced", random_state=0)
    theirs = RFE(svm, n_features_to_select=5, step=1).fit(X, y).get_support()
    np.testing.assert_array_equal(RecursiveElimination(5).fit(X, y).get_support(), theirs)


def test_table_and_front(planted_small):
    X, y = planted_small
    methods = {"F": SelectKBest(), "own": make_pipeline(SelectKBest(), LogisticRegression())}
    found = compare(methods, X, y, sizes=(2, 3, 20), n_splits=4, n_repeats=2)
    assert found.methods == ("F", "own", "random panel") and found.reference == "F"
    assert [row.status for row in found.rows] == ["ok"] * 9
    f, own, random = (found.row(name, 3) for name in found.methods)
    # the same panels and the same judge: the same primary score, and only one decides itself
    assert f.score == own.score and f.native is None and own.native is not None
    assert own.difference.value == 0 and random.difference.high < 0
    assert random.difference.n_comparisons == 6
    assert f.stability.value > 0.5 > random.stability.value
    assert f.score.value > 0.8 and f.panel_size == 3
    assert f.near_front and not random.on_front
    front = found.curves()["front"]
    assert front and all(a["score"] < b["score"] for a, b in zip(front, front[2:]))
    frame = found.to_frame()
    assert len(frame) == 9 and (frame["seconds_per_fit"] > 0).all()
    page = json.dumps(found.to_dict(), allow_nan=False)
    assert "seconds" not in page


def test_near_the_front_by_the_paired_gap(planted_small):
    X, y = planted_small
    methods = {"F": SelectKBest(), "chi2": make_pipeline(MinMaxScaler(), SelectKBest(chi2))}
    found = compare(methods, X, y, sizes=(2, 3), n_splits=4, n_repeats=2)
    scores = {
        (row.method, row.size): (row.score.value, row.front_gap, row.front_gap_error)
        for row in found.rows
    }
    for (method, size), (value, gap, error) in scores.items():
        best = max(v for (_, k), (v, _, _) in scores.items() if k <= size)
        assert gap == pytest.approx(best - value) and (error > 0) == (gap > 0)
        assert found.row(method, size).near_front == (gap <= error)
    assert "front_gap_error" in found.to_dict()["rows"][0]
    # paired: folds that are hard for one are hard for the other
    same = compare({"F": SelectKBest(), "again": SelectKBest()}, X, y, **SMALL)
    assert same.row("again", 2).front_gap == same.row("F", 2).front_gap


def test_text_and_html(planted_small):
    found = compare({"F": SelectKBest(), "<b>": SelectKBest(chi2)}, *planted_small, **TINY)
    lines = repr(found).splitlines()
    assert lines[0].startswith("Comparison of 3 methods") and len(lines) == 3
    score = found.row("F", 5).score
    assert lines[2] == f"  5 features: F {score.value:.2f} ({score.low:.2f} to {score.high:.2f})"
    page = found._repr_html_()
    assert "&lt;b&gt;" in page and page.count("<tr>") == 4


def test_pareto_front_by_brute_force():
    rng = np.random.default_rng(0)
    sizes, scores = rng.integers(1, 5, 30), rng.integers(0, 8, 30) / 8
    for i, marked in enumerate(pareto_front(sizes, scores)):
        beaten = any(
            sizes[j] <= sizes[i]
            and scores[j] >= scores[i]
            and (sizes[j] < sizes[i] or scores[j] > scores[i])
            for j in range(30)
        )
        assert marked != beaten


def test_a_failing_method_is_reported_and_the_rest_goes_on(planted_small):
    X, y = planted_small

    class Broken(SelectKBest):
        def fit(self, X, y):
            if self.k == 5:
                raise RuntimeError("no convergence at five")
            return super().fit(X, y)

    class Silent(BaseEstimator):
        def fit(self, X, y):
            return self

    methods = {
        "F": SelectKBest(),
        "broken": make_pipeline(Broken(), LogisticRegression()),
        "silent": Silent(),
    }
    found = compare(methods, X, y, **SMALL)
    assert found.row("broken", 5).status == "failed" and found.row("broken", 2).status == "ok"
    assert "no convergence at five" in found.row("broken", 5).error
    assert "neither which features" in found.row("silent", 2).error
    assert found.row("F", 5).status == "ok" and found.row("broken", 5).score is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_time_limit_crashes_and_workers(planted_small, tmp_path):
    X, y = planted_small

    class Slow(SelectKBest):
        def fit(self, X, y):
            if self.k == 5:
                time.sleep(3600)
            return super().fit(X, y)

    class Crash(SelectKBest):
        def fit(self, X, y):
            print("this must not reach the pipe", flush=True)
            os._exit(3)

    methods = {
        "F": SelectKBest(),
        "slow": make_pipeline(Slow(), LogisticRegression()),
        "crash": Crash(),
    }
    found = compare(methods, X, y, time_limit=4, n_jobs=2, log=tmp_path / "a.jsonl", **TINY)
    assert found.row("slow", 5).status == "timeout"
    assert "stopped after 4 s" in found.row("slow", 5).error
    assert found.row("slow", 2).n_folds >= 1  # what it finished before is kept
    assert found.row("crash", 2).status == "failed" and "code 3" in found.row("crash", 2).error
    here = compare({"F": SelectKBest()}, X, y, **TINY)
    assert found.row("F", 5).score == here.row("F", 5).score  # wherever it runs
    again = compare(methods, X, y, time_limit=4, log=tmp_path / "a.jsonl", resume=True, **TINY)
    assert again.to_dict() == found.to_dict()


def test_a_larger_time_limit_tries_again_what_was_stopped(planted_small, tmp_path):
    X, y = planted_small
    hurry = tmp_path / "hurry"

    class Slow(SelectKBest):
        def fit(self, X, y):
            if not hurry.exists():
                time.sleep(3600)
            return super().fit(X, y)

    methods = {"F": SelectKBest(), "slow": Slow()}
    log = tmp_path / "a.jsonl"
    stopped = compare(methods, X, y, time_limit=3, log=log, **TINY)
    assert stopped.row("slow", 2).status == "timeout"
    hurry.touch()
    same = compare(methods, X, y, time_limit=3, log=log, resume=True, **TINY)
    assert same.to_dict() == stopped.to_dict()
    found = compare(methods, X, y, time_limit=60, log=log, resume=True, **TINY)
    assert found.row("slow", 2).score == found.row("F", 2).score
    at_once = compare(methods, X, y, time_limit=60, log=tmp_path / "b.jsonl", **TINY)
    assert found.to_dict() == at_once.to_dict()
    assert log.read_bytes() == (tmp_path / "b.jsonl").read_bytes()


SCRIPT = """
import os, signal, sys
import numpy as np
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sparsegsvp.evaluation import compare

rng = np.random.default_rng(0)
y = np.repeat([0, 1], 15)
X = rng.normal(size=(30, 25))
X[:, :2] += 1.5 * y[:, None]
methods = {"F": SelectKBest(), "own": make_pipeline(SelectKBest(), LogisticRegression())}

def progress(stage, done, total):
    if done == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

compare(methods, X, y, sizes=(2, 4), n_splits=3, n_repeats=2, log=sys.argv[1],
        resume=True, progress=progress)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_comparison_resumes_to_the_same_bytes(tmp_path, monkeypatch):
    script = tmp_path / "work.py"
    script.write_text(textwrap.dedent(SCRIPT))
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"

    def finish(log):
        monkeypatch.setattr(sys, "argv", [str(script), str(log), "-1"])
        runpy.run_path(str(script))

    finish(whole)
    ended = subprocess.run([sys.executable, script, killed, "7"], timeout=200).returncode
    assert ended == -signal.SIGKILL
    assert len(killed.read_bytes().splitlines()) == 8
    with open(killed, "ab") as handle:  # killed in the middle of a line
        handle.write(b'{"key":["F",1,0],"val')
    finish(killed)
    assert killed.read_bytes() == whole.read_bytes()
    assert b"seconds" not in whole.read_bytes()


def test_a_log_cut_anywhere_resumes_to_the_same_bytes(planted_small, tmp_path):
    X, y = planted_small
    methods = {"F": SelectKBest()}
    whole = compare(methods, X, y, log=tmp_path / "whole.jsonl", **SMALL)
    log = (tmp_path / "whole.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(log) if byte == 10]
    repeated = []
    for number, cut in enumerate([0, 5, ends[0], ends[1] - 1, ends[1], ends[-2] + 3, len(log)]):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(log[:cut])
        repeated.clear()
        found = compare(
            methods, X, y, log=path, resume=True, progress=lambda *a: repeated.append(a), **SMALL
        )
        assert path.read_bytes() == log
        assert found.to_dict() == whole.to_dict()
        finished = max(sum(end <= cut for end in ends) - 1, 0)
        assert repeated == [("comparison", done, 6) for done in range(finished, 7)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": {}}, "methods is empty"),
        ({"methods": {"F": SelectKBest}}, "not an estimator"),
        ({"sizes": (0, 2)}, r"1\.\.60"),
        ({"sizes": (2, 61)}, r"1\.\.60"),
        ({"reference": "G"}, "reference"),
        ({"time_limit": 0}, "time_limit"),
    ],
)
def test_bad_arguments(planted_small, change, message):
    X, y = planted_small
    arguments = {"methods": {"F": SelectKBest()}, "X": X, "y": y, **change}
    with pytest.raises(ValueError, match=message):
        compare(**arguments)


def test_three_classes_missing_values_and_groups(planted_small):
    X, _ = planted_small
    y, groups = np.arange(40) % 3, np.arange(40) // 2
    X[:, 0] += 3 * y
    X[::5, 1] = np.nan
    found = compare({"F": SelectKBest()}, X, y, groups=groups, **SMALL)
    assert found.row("F", 2).score.value > 0.5 and found.description["grouped"]


def test_defaults_hold_the_scikit_learn_peers():
    names = set(default_methods())
    peers = {"GSVPSVM", "l1 logistic", "RFE", "F test", "chi-squared", "mutual information"}
    assert peers <= names
