"""What a run would do is counted as the run does it; results are saved once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsegsvp import select_panel
from sparsegsvp.io import InputError, make_table
from sparsegsvp.workflow import plan as plan_module
from sparsegsvp.workflow import plan_comparison, plan_evaluation, plan_selection
from sparsegsvp.workflow.plan import in_words

CHEAP = {"tau": 1.0, "n_deltas": 4, "folds": 3, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 12))
    X[:12, 3] += 3
    return make_table(X, np.repeat(["ill", "well"], 12))


def counted(run):
    """Return how many pieces each stage of a run reports."""
    totals = {}
    run(lambda stage, done, total: totals.update({stage: total}))
    return totals


def test_a_selection_does_what_its_plan_says(table):
    asked = {**CHEAP, "repeats": 2, "permutations": 4, "resamples": 3, "plan": True}
    plan = plan_selection(table, n_jobs=1, **asked)
    done = counted(lambda p: select_panel(table, n_jobs=1, progress=p, **asked))
    assert plan.fits == {
        "tuning and fitting": done["tuning and fitting"],
        "nested cross-validation": done["nested cross-validation"],
        "permutation test": (done["permutation test"] + 1) * 5,  # folds; true labels are a draw
        "stability in half samples": done["stability in half samples"],
        "learning curve": done["learning curve"],
    }
    assert plan.total == pytest.approx(sum(plan.seconds.values())) and plan.total > 0
    assert json.loads(json.dumps(plan.to_dict()))["data"]["n_samples"] == 24
    fast = plan_selection(table, fast=True, n_jobs=1, **asked | {"plan": False})
    assert fast.fits == {"tuning and fitting": 1, "nested cross-validation": 3}


def test_the_estimate_is_shared_among_processes(table, monkeypatch):
    monkeypatch.setattr(plan_module._Estimate, "time", lambda *_: 2.0)
    asked = {**CHEAP, "repeats": 20, "permutations": 0}
    one, four = (plan_evaluation(table, n_jobs=n, **asked) for n in (1, 4))
    assert one.fits == four.fits == {"nested cross-validation": 60}
    assert (one.total, four.total) == (120, 30)
    full = plan_evaluation(table, n_jobs=1, **{**asked, "permutations": 9}, full_permutation=True)
    assert full.seconds["permutation test"] == 10 * 5 * 2
    assert "in 4 processes, an estimate" in four.sentence()


def test_a_comparison(table):
    plan = plan_comparison(table, methods=["gepsvm", "F test"], sizes=(2, 4, 99), folds=3,
                           repeats=1, n_jobs=1)  # fmt: skip
    assert plan.fits == {"GEPSVM": 6, "F test": 3}  # an order of features is only cut
    with pytest.raises(InputError, match="there is no method 'gepsv'; did you mean 'GEPSVM'"):
        plan_comparison(table, methods=["gepsv"])


def test_what_a_run_refuses_its_plan_refuses(table):
    few = make_table(np.eye(6), list("aaabbb"))
    with pytest.raises(InputError, match="has only 3 samples"):
        plan_selection(few)
    with pytest.raises(InputError, match="plan must be False or True"):
        plan_selection(table, plan="yes")
    small = make_table(np.eye(16), np.repeat(["a", "b"], 8))
    for run in (plan_selection, select_panel):
        with pytest.raises(InputError, match=r"2 of class 'a' and at least 3 .*leave out plan"):
            run(small, plan=True, progress=lambda *_: pytest.fail("it was too late"))
    with pytest.raises(InputError, match="folds must be an integer"):
        plan_selection(table, folds=1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "1 s"), (89, "89 s"), (100, "2 min"), (5399, "90 min"), (5400, "1.5 h")],
)
def test_times_in_words(seconds, words):
    assert in_words(seconds) == words


def test_saved_results_are_replaced_only_with_force(table, tmp_path):
    found = select_panel(table, fast=True, n_jobs=1, **CHEAP)
    found.save(tmp_path / "out")
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    with pytest.raises(InputError, match=r"results of an earlier run .* with force=True"):
        found.save(tmp_path / "out")
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()} == before
    found.save(tmp_path / "out", force=True)
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    assert after.keys() == before.keys() and after != before
