"""`center_batches`: inside every fold and stage, and what it asks of another cohort."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsegsvp import select_panel
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import learning_curve, nested_evaluate
from sparsegsvp.io import InputError, make_table
from sparsegsvp.workflow import evaluate_table, plan_selection, predict_table, selection
from sparsegsvp.workflow.procedure import make_procedure
from sparsegsvp.workflow.settings import settings_from

QUICK = {"repeats": 1, "permutations": 0, "folds": 3, "tau": 1.0, "n_deltas": 4}


@pytest.fixture(scope="module")
def frame():
    data = make_planted(60, 60, 3, effect=2.0, random_state=1)
    rng = np.random.default_rng(3)
    plate = rng.permutation(np.arange(60) % 3)
    frame = pd.DataFrame(data.X + 3 * rng.normal(size=(3, 60))[plate])
    frame.columns = [f"g{j}" for j in range(60)]
    frame["age"] = rng.integers(40, 80, 60)
    frame["plate"] = np.array(["p1", "p2", "p3"])[plate]
    frame["class"] = np.array(["ill", "well"])[data.y]
    return frame


@pytest.fixture(scope="module")
def table(frame):
    return make_table(frame, target="class", batch="plate", adjust="age")


def test_evaluation_centres_in_every_fold_and_leaves_covariates_alone(table) -> None:
    found = evaluate_table(table, center_batches=True, **QUICK)
    factors = np.r_[np.ones(60), 0.0]
    settings = settings_from(center_batches=True, tau=1.0, n_deltas=4)
    procedure = make_procedure(settings, factors, table)
    assert procedure.named_steps["center"].skip == (60,)
    by_hand = nested_evaluate(
        procedure, table.X, table.labels, batch=table.batches, cv=3, n_repeats=1,
        n_permutations=0, final_fit=False, n_random_panels=0, pos_label="ill",
    )  # fmt: skip
    assert found.evaluation.scores == by_hand.scores
    [notice] = [n for n in found.document["notices"] if n["code"] == "centred"]
    assert "each value of 'plate'" in notice["text"]
    assert found.document["beside"][0]["features"] == ["age"]


def test_every_stage_gets_the_batches_and_the_log_keeps_runs_apart(
    frame, tmp_path, monkeypatch
) -> None:
    """Half samples, the learning curve and full permutations fail without them."""
    few = partial(learning_curve, n_repeats=3, fractions=(0.4, 0.6, 0.8))
    monkeypatch.setattr(selection, "learning_curve", few)
    given = {"target": "class", "batch": "plate", "drop": ["age"], "center_batches": True}
    log = tmp_path / "log.jsonl"
    found = select_panel(frame, **given, resamples=2, plan=True, log=log, **QUICK)
    assert found.stability is not None and found.learning is not None
    with pytest.raises(ValueError, match="holds other work: parameters differ"):
        select_panel(frame, **{**given, "center_batches": False}, log=log, resume=True,
                     resamples=2, plan=True, **QUICK)  # fmt: skip
    table = make_table(frame, target="class", batch="plate", drop=["age"])
    options = {**QUICK, "center_batches": True, "permutations": 1, "n_features": 2}
    full = evaluate_table(table, full_permutation=True, **options)
    assert len(full.evaluation.permutation.distribution) == 1
    assert plan_selection(table, fast=True, center_batches=True, tau=1.0, n_deltas=4).fits
    # another cohort is one batch, or those that it names: whole ones
    cohort = frame.assign(**{f"g{j}": frame[f"g{j}"] + 50.0 for j in range(60)})
    features = found.table.feature_names
    one = predict_table(found.model, make_table(cohort, target="class", features=features))
    assert one.centred == [60] and "as one batch of 60" in one.centred_text()
    new = make_table(cohort, target="class", features=features, batch="plate")
    some = predict_table(found.model, new)
    assert "in 3 batches of 20, 20, 20" in some.centred_text()
    assert np.mean(some.labels == new.labels) > 0.9
    # a shift of whole batches, whatever their names, changes no prediction
    np.testing.assert_array_equal(
        some.labels,
        predict_table(found.model, make_table(frame, target="class", features=features,
                                              batch="plate")).labels,
    )  # fmt: skip
    with pytest.raises(InputError, match="there are only 9 samples, and this model centres"):
        predict_table(found.model, make_table(cohort[:9], target="class", features=features))


@pytest.mark.parametrize("run", [evaluate_table, plan_selection])
def test_what_cannot_be_centred_is_refused_before_the_work(frame, run) -> None:
    with pytest.raises(InputError, match="center_batches needs batches; name the column"):
        run(make_table(frame, target="class"), center_batches=True, **QUICK)
    X = sparse.csr_matrix(frame[[f"g{j}" for j in range(60)]].to_numpy())
    lots = {"plate": frame["plate"]}
    with pytest.raises(InputError, match="center_batches would fill every zero"):
        run(make_table(X, frame["class"], batch=lots), center_batches=True, **QUICK)
