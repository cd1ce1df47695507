"""The audit of batches: class told from batch, and each batch left out."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVM, Panel, nested_evaluate
from sparsegsvp.estimators import BatchCenterer
from sparsegsvp.evaluation.external import batch_folds, class_from_batch
from sparsegsvp.evaluation.splits import read_samples

QUICK = {"n_repeats": 1, "n_permutations": 0, "n_pairs": 0}


def table(seed=0, share=0.5):
    """90 samples on three plates; class "ill" has another share on plate c."""
    rng = np.random.default_rng(seed)
    plate = np.repeat(list("abc"), 30)
    y = np.where(rng.random(90) < np.where(plate == "c", share, 0.5), "ill", "well")
    X = rng.normal(size=(90, 6))
    X[y == "ill", :2] += 2.5
    return X, y, plate


def test_balanced_batches_are_not_confounded_and_others_are():
    rng = np.random.default_rng(0)
    X, y, plate = table()
    samples = read_samples(X, y, None)
    accuracy, shuffled, p = class_from_batch(samples, np.unique(plate, return_inverse=True)[1], rng)
    assert p > 0.05 and abs(accuracy - shuffled) < 0.15
    X, y, plate = table(share=0.95)
    found = nested_evaluate(GaussianNB(), X, y, batch={"plate": plate}, **QUICK)
    audit = found.batches[0]
    assert audit.confounded and not audit.complete
    flag = next(f for f in found.flags if f.code == "confounded")
    assert flag.numbers["name"] == "plate" and flag.numbers["p_value"] <= 0.05
    best = sum(
        max(row[0] / (y == "ill").sum(), row[1] / (y == "well").sum()) for row in audit.counts
    )
    assert audit.accuracy == pytest.approx(best / 2)


def test_complete_confounding_is_said():
    X, y, _ = table()
    found = nested_evaluate(GaussianNB(), X, y, batch=np.where(y == "ill", "p1", "p2"), **QUICK)
    audit = found.batches[0]
    assert audit.complete and audit.accuracy == 1.0 and audit.unseen is None
    assert next(f for f in found.flags if f.code == "confounded").numbers["closely"]


def test_false_alarms_of_confounding_have_their_level():
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        samples = read_samples(rng.normal(size=(40, 2)), np.repeat([0, 1], 20), None)
        alarms += class_from_batch(samples, rng.integers(0, 8, 40), rng)[2] <= 0.05
    assert alarms <= 8


def test_an_unseen_batch_that_is_shifted_is_predicted_worse():
    X, y, plate = table()
    X[plate == "c", :2] += 4.0
    estimator = make_pipeline(Panel([0, 1]), GaussianNB())
    found = nested_evaluate(estimator, X, y, batch={"plate": plate}, **QUICK)
    unseen = found.batches[0].unseen
    assert found.batches[0].lost and unseen.score.value < unseen.ordinary
    assert unseen.loss.value == pytest.approx(unseen.ordinary - unseen.score.value)
    flag = next(f for f in found.flags if f.code == "new batch")
    assert flag.numbers["score"] == unseen.score.value
    assert len(unseen.recalls) == 3 and min(r for r in unseen.recalls[2] if r is not None) < 0.3


def test_folds_leave_each_batch_out_once_with_their_groups():
    X, y, plate = table()
    groups = np.arange(90) // 2
    samples = read_samples(X, y, groups, plate)
    folds = batch_folds(samples, samples.batches["batch"])
    assert sorted(row for fold in folds for row in fold.test) == list(range(90))
    for fold in folds:
        assert len(set(plate[fold.test])) == 1
        assert not set(groups[fold.train]) & set(groups[fold.test])
    many = read_samples(X, y, None, np.arange(90) // 3)
    assert len(batch_folds(many, many.batches["batch"])) == 20
    rare = read_samples(X[:40], np.r_[[0] * 37, [1] * 3], None, np.arange(40) % 2)
    assert batch_folds(rare, rare.batches["batch"]) == []


def test_a_step_that_centres_batches_is_told_them():
    X, y, plate = table()
    X[plate == "c"] += 3.0
    pipe = make_pipeline(BatchCenterer(), GSVPSVM(2))
    found = nested_evaluate(pipe, X, y, batch={"plate": plate}, **QUICK)
    assert found.scores["balanced_accuracy"].value > 0.75
    assert found.batches[0].unseen.score.value > 0.75
    assert len(found.ladder) == 4
