"""`BatchCenterer`: its laws, inside folds, with routed batches, and from the panel alone."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVM, load_model, nested_evaluate, save_model
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import BatchCenterer, MedianImputer, PanelPipeline
from sparsegsvp.estimators import pipeline as pipelines
from sparsegsvp.estimators.pipeline import prepared_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6))
BATCH = np.repeat(["a", "b", "c"], [10, 14, 16])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_batch_changes_nothing(dtype, order) -> None:
    values = np.asarray(X, dtype=dtype, order=order)
    centred = BatchCenterer().fit_transform(values, batch=["one"] * 40)
    assert centred.dtype == dtype
    np.testing.assert_array_equal(centred, values)


def test_training_batches_end_with_one_mean_and_keep_their_spread() -> None:
    step = BatchCenterer(skip=(5,)).fit(X, batch=BATCH)
    centred = step.transform(X, batch=BATCH)
    for b in "abc":
        rows = b == BATCH
        np.testing.assert_allclose(centred[rows, :5].mean(axis=0), X[:, :5].mean(axis=0))
        np.testing.assert_allclose(np.ptp(centred[rows], axis=0), np.ptp(X[rows], axis=0))
    np.testing.assert_array_equal(centred[:, 5], X[:, 5])
    # a shift of a whole batch, in training and after, is no matter
    moved = X + 100.0 * (BATCH == "b")[:, None]
    again = BatchCenterer(skip=(5,)).fit(moved, batch=BATCH)
    rest = again.transform(moved, batch=BATCH) - centred
    np.testing.assert_allclose(rest[:, :5], np.full((40, 5), 100 * 14 / 40))


def test_known_batches_are_centred_by_training_rows_and_new_ones_by_their_own() -> None:
    step = BatchCenterer().fit(X[BATCH != "c"], batch=BATCH[BATCH != "c"])
    known = step.transform(X[:3], batch=["b"] * 3)
    shift = step.mean_ - X[BATCH == "b"].mean(axis=0)
    np.testing.assert_allclose(known, X[:3] + shift)
    # one by one as together
    np.testing.assert_array_equal(known[:1], step.transform(X[:1], batch=["b"]))
    fresh = step.transform(X[BATCH == "c"] + 7.0, batch=["c"] * 16)
    np.testing.assert_allclose(fresh.mean(axis=0), step.mean_)
    np.testing.assert_array_equal(fresh, step.transform(X[BATCH == "c"] + 7.0))
    assert step.batches_.tolist() == ["a", "b"]  # nothing is learnt from them
    with pytest.warns(UserWarning, match=r"the mean of 2 row\(s\): transform whole batches"):
        step.transform(X[:2], batch=["new", "new"])


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (None, "batch is needed"),
        (["a"] * 3, "inconsistent numbers of samples"),
        ([["a"]] * 40, "one value for each row"),
    ],
)
def test_wrong_batches_are_refused(batch, message) -> None:
    with pytest.raises(ValueError, match=message):
        BatchCenterer().fit(X, batch=batch)


# --- in folds


@pytest.fixture(scope="module")
def shifted():
    """60 samples whose three even batches are far apart: without centring nothing is found."""
    data = make_planted(60, 20, 3, effect=2.0, random_state=1)
    batch = np.empty(60, dtype=object)
    for k in (0, 1):
        rows = np.flatnonzero(data.y == k)
        batch[rows] = np.resize(["p1", "p2", "p3"], rows.size)
    offsets = dict(zip(["p1", "p2", "p3"], 6 * np.random.default_rng(3).normal(size=(3, 20))))
    return data.X + np.array([offsets[b] for b in batch]), data.y, batch, data.X


def procedure():
    return make_pipeline(BatchCenterer(), GSVPSVM(n_features=3))


def test_folds_hand_the_first_batch_variable_to_the_step(shifted) -> None:
    rows, y, batch, clean = shifted
    options = {"n_repeats": 1, "n_permutations": 0, "n_random_panels": 0, "final_fit": True}
    drawn = {"n_random_panels": 3, "audit": False}
    other = np.roll(batch, 1)
    found = nested_evaluate(procedure(), rows, y, batch={"plate": batch, "other": other}, **options)
    by_hand = []
    for fold in found.folds:
        step = BatchCenterer().fit(rows[fold.train], batch=batch[fold.train])
        model = GSVPSVM(n_features=3).fit(
            step.transform(rows[fold.train], batch=batch[fold.train]), y[fold.train]
        )
        by_hand.append(model.predict(step.transform(rows[fold.test], batch=batch[fold.test])))
        assert fold.panel.tolist() == np.flatnonzero(model.get_support()).tolist()
    for fold, predicted in zip(found.folds, by_hand):
        np.testing.assert_array_equal(found.classes[0] + fold.predicted, predicted)
    # panels drawn at random, and its own, are looked at with the batches centred too
    one = nested_evaluate(procedure(), rows, y, batch=batch, cv=3, **{**options, **drawn})
    assert all(fold.control["selected"] > fold.control["random"] + 0.1 for fold in one.folds)
    plain = nested_evaluate(GSVPSVM(n_features=3), rows, y, **options)
    ideal = nested_evaluate(GSVPSVM(n_features=3), clean, y, **options)
    score, without, best = (r.scores["balanced_accuracy"].value for r in (found, plain, ideal))
    assert without + 0.15 < score >= best - 0.05
    # without each batch too, which is then centred by its own samples
    assert found.batches[0].unseen.score.value >= best - 0.05
    with pytest.raises(ValueError, match="batch is needed"):
        nested_evaluate(procedure(), rows, y, **options)


def test_batches_of_one_class_take_the_class_away() -> None:
    """What hangs together with the class is subtracted with it: centring is no free lunch."""
    data = make_planted(60, 8, 3, effect=2.0, random_state=1)
    batch = np.array(["p1", "p2"])[data.y]
    options = {"n_repeats": 1, "n_permutations": 0, "n_random_panels": 0, "final_fit": False}
    model = make_pipeline(BatchCenterer(), GSVPSVM())
    found = nested_evaluate(model, data.X, data.y, batch=batch, audit=False, **options)
    assert found.batches == ()
    assert found.scores["balanced_accuracy"].value < 0.75


def test_batches_are_routed_as_scikit_learn_does(shifted) -> None:
    rows, y, batch, _ = shifted
    model = procedure().fit(rows, y, batchcenterer__batch=batch)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = procedure().fit(rows, y, batch=batch)
        np.testing.assert_array_equal(routed[-1].coef_, model[-1].coef_)
        centred = model[0].transform(rows, batch=batch)
        np.testing.assert_array_equal(routed.predict(rows, batch=batch), model[-1].predict(centred))


def test_a_panel_alone_is_centred_over_all_rows_and_not_block_by_block(
    shifted, tmp_path, monkeypatch
) -> None:
    rows, y, batch, _ = shifted
    frame = pd.DataFrame(rows, columns=[f"g{j}" for j in range(20)])
    steps = [("impute", MedianImputer()), ("center", BatchCenterer()),
             ("model", GSVPSVM(n_features=3))]  # fmt: skip
    model = PanelPipeline(steps).fit(frame, y, center__batch=batch)
    path = save_model(model, tmp_path / "model.skops")
    new = frame + np.random.default_rng(9).normal(size=20)
    panel = frame.columns[model.get_support()]
    expected = model.predict(new)  # all columns, all rows as one batch
    monkeypatch.setattr(pipelines, "_BLOCK", 20 * 7)  # 7 rows at a time
    for known in (model, load_model(path)):
        np.testing.assert_array_equal(known.predict(new[panel]), expected)
    # batches that are named are new ones, even where training has the name
    values, lots = new[panel].to_numpy(), np.repeat(["p1", "q"], 30)
    seen = np.concatenate([full[:, model.get_support()] for full in
                           prepared_rows(model, values, lots)])  # fmt: skip
    for lot in ("p1", "q"):
        grand = model[1].mean_[model.get_support()]
        np.testing.assert_allclose(seen[lots == lot].mean(axis=0), grand)


def test_no_warning_where_batches_are_whole(shifted) -> None:
    rows, _, batch, _ = shifted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BatchCenterer().fit(rows, batch=batch).transform(rows, batch=batch)
