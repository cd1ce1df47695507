"""The audit of batches: the sums against slow ones, the words against planted effects."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline

from sparsegsvp.evaluation import nested_evaluate
from sparsegsvp.evaluation.batches import batch_folds, folds_without
from sparsegsvp.metrics import batches
from sparsegsvp.metrics.batches import (
    _areas,
    _ranks,
    _regressions,
    _shuffle,
    _units,
    batch_from_panel,
    check_batches,
    class_from_batch,
)

PROCEDURE = make_pipeline(SelectKBest(k=3), LogisticRegression())
QUICK = {"n_repeats": 1, "n_permutations": 0, "final_fit": False, "n_random_panels": 0}


def planted(together=0.0, shift=0.0, n=80, m=40, n_batches=4, seed=0):
    """Labels and batches that go together to a degree, batches shifted along random directions."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    own = y * (n_batches // 2) + rng.integers(0, n_batches // 2, n)
    batch = np.where(rng.random(n) < together, own, np.tile(np.arange(n_batches), n // n_batches))
    X = rng.normal(size=(n, m))
    X[y == 1, :3] += 1.5
    return X + shift * rng.normal(size=(n_batches, m))[batch], y, batch


def audit(X, y, batch, **options):
    found = nested_evaluate(PROCEDURE, X, y, batch=batch, **{**QUICK, **options})
    return found, found.batches[0]


def codes_of(found):
    return [notice.code for notice in found.notices if notice.code != "not tested"]


# ------------------------------------------------------------------------- what is said


def test_harmless_batches_are_called_harmless():
    found, got = audit(*planted())
    assert codes_of(found) == []
    assert not (got.confounded or got.shown or got.lost or got.complete)
    assert abs(got.unseen.score.value - got.unseen.ordinary) < 0.1
    assert got.unseen.ordinary == pytest.approx(found.scores["balanced_accuracy"].value)


def test_a_shift_is_seen_in_the_panel_though_labels_are_even():
    found, got = audit(*planted(shift=1.5))
    assert codes_of(found) == ["batch shows"]
    assert got.labels.p_value > 0.5 and got.panel.p_value <= 0.01 and got.panel.auc > 0.8


def test_labels_that_go_with_batches_are_serious_and_unseen_batches_are_predicted_worse():
    found, got = audit(*planted(together=0.8, shift=1.5))
    assert codes_of(found) == ["confounded", "batch shows", "new batch"]
    first = found.notices[0]
    assert first.severity == "serious" and "may show the batch, not the class" in first.text
    assert got.labels.accuracy > 0.8 and got.labels.p_value == 0.001
    assert got.unseen.loss.low > 0 and got.unseen.score.value < 0.7 < got.unseen.ordinary


def test_one_class_per_batch_is_complete_and_each_class_is_still_scored():
    X, y, batch = planted(together=1.0, shift=1.5)
    _, got = audit(X, y, batch)
    assert got.complete and got.labels.accuracy == 1.0 and got.labels.strength == 1.0
    # two batches of each class: a left-out one has one class, and its recall counts
    assert [sum(r is not None for r in row) for row in got.unseen.recalls] == [1, 1, 1, 1]
    two = audit(X, y, y)[1]  # nothing can be left out, and no class is in two batches
    assert two.unseen is None and two.panel is None
    assert "can be left out" in two.sentences()[-1] and "cannot be asked" in two.sentences()[1]


def test_the_chance_of_a_false_alarm(monkeypatch):
    # 120 tables without any tie of batch and label or batch and panel
    monkeypatch.setattr(batches, "_LABEL_DRAWS", 99)
    rng = np.random.default_rng(5)
    labels, panels = [], []
    for seed in range(120):
        X, codes = rng.normal(size=(40, 6)), rng.permutation(np.repeat([0, 1], 20))
        member, unit = rng.permutation(np.arange(40) % 4), np.arange(40)
        labels.append(class_from_batch(codes, member, unit, rng).p_value)
        found = batch_from_panel(X, codes, member, unit, [np.arange(3)], seed, 99)
        panels.append(found.p_value)
    for p_values in (labels, panels):
        share = np.mean(np.array(p_values) <= 0.05)
        assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    assert np.mean(panels) > 0.35


def test_three_classes_and_a_procedure_that_names_no_features(nearest_mean):
    X, _, batch = planted(shift=1.0, n=60)
    y = np.arange(60) % 3
    X[:, :3] += 3 * np.eye(3)[y]
    found = nested_evaluate(nearest_mean, X, y, batch=batch, **QUICK)
    got = found.batches[0]
    assert got.panel is None and "cannot be asked" in got.sentences()[1]
    assert np.shape(got.counts) == (4, 3) and np.shape(got.unseen.recalls) == (4, 3)
    assert audit(X, y, batch)[1].panel.auc > 0.7


# --------------------------------------------------------------------------- the sums


def test_the_rule_that_knows_the_batch_alone():
    codes = np.array([0] * 8 + [1] * 4)
    member = np.array([0] * 6 + [1] * 2 + [0, 1, 1, 1])
    best = max(
        balanced_accuracy_score(codes, np.array(rule)[member])
        for rule in ([0, 0], [0, 1], [1, 0], [1, 1])
    )
    found = class_from_batch(codes, member, np.arange(12), np.random.default_rng(0))
    assert found.accuracy == pytest.approx(best) == pytest.approx((6 / 8 + 3 / 4) / 2)


def test_areas_are_those_of_pairs_within_folds_and_classes():
    X, codes, member = planted(shift=0.7, n=40, m=8)
    X[3, 2] = np.nan  # becomes its class's mean
    rows = np.arange(40)
    folds = [(rows[rows % 3 != f], rows[rows % 3 == f]) for f in range(3)]
    stratum = (rows % 3) * 2 + codes
    found = _areas([_regressions(X, codes, rows[:8], folds)], folds, stratum, member)
    for b in range(4):
        won = pairs = 0.0
        for train, test in folds:
            centred = X.copy()
            for k in (0, 1):
                centred[codes == k] -= np.nanmean(X[train[codes[train] == k]], axis=0)
            centred = np.nan_to_num(centred)
            centred /= centred[train].std(axis=0)
            target = (member[train] == b).astype(float)
            A = centred[train]
            w = np.linalg.solve(A.T @ A + np.eye(8), A.T @ (target - target.mean()))
            for k in (0, 1):
                own = test[codes[test] == k]
                mine, n_own = member[own] == b, int((member[own] == b).sum())
                if 0 < n_own < own.size:
                    weight = n_own * (own.size - n_own)
                    won += weight * roc_auc_score(mine, centred[own] @ w)
                    pairs += weight
        assert found[b] == pytest.approx(won / pairs)


def test_wide_and_narrow_panels_are_read_alike():
    X, codes, _ = planted(n=24, m=40)
    rows = np.arange(24)
    folds = [(rows[rows % 2 == 0], rows[rows % 2 == 1])]
    wide = _regressions(X, codes, np.arange(40), folds)
    narrow = _regressions(np.hstack([X, X[:, :0]]), codes, np.arange(10), folds)
    assert wide[0][1].shape == (12, 12) and narrow[0][1].shape == (10, 12)
    # the same regression, written the other way round
    A = X[:, :10].copy()
    for k in (0, 1):
        A[codes == k] -= A[folds[0][0]][codes[::2] == k].mean(axis=0)
    A /= A[::2].std(axis=0)
    dual = A[1::2] @ A[::2].T @ np.linalg.inv(A[::2] @ A[::2].T + np.eye(12))
    np.testing.assert_allclose(narrow[0][0] @ narrow[0][1], dual, atol=1e-10)


def test_ranks_within_strata_share_ties():
    values = np.array([3.0, 1.0, 1.0, 5.0, 2.0, 2.0, 2.0])
    stratum = np.array([0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(_ranks(values, stratum), [2, 0.5, 0.5, 3, 1, 1, 1])


def test_shuffling_keeps_units_whole_and_stays_within_strata():
    unit = np.repeat(np.arange(8), 3)
    member, stratum = np.repeat([0, 1, 2, 0, 1, 2, 0, 1], 3), np.repeat([0, 1], 12)
    stratum[0] = 1  # a unit of both strata is a stratum of its own
    for seed in range(20):
        drawn = _shuffle(member, unit, stratum, np.random.default_rng(seed))
        assert all(np.unique(drawn[unit == u]).size == 1 for u in range(8))
        assert (drawn[unit == 0] == 0).all()
        for rows in (slice(3, 12), slice(12, 24)):
            np.testing.assert_array_equal(np.sort(drawn[rows]), np.sort(member[rows]))


def test_patients_within_batches_are_the_units_but_batches_are_not():
    member = np.repeat([0, 1], 6)
    patients = np.repeat(np.arange(6), 2)
    np.testing.assert_array_equal(_units(member, patients), patients)
    np.testing.assert_array_equal(_units(member, member), np.arange(12))
    across = np.tile(np.arange(6), 2)  # patients measured in both
    np.testing.assert_array_equal(_units(member, across), np.arange(12))


def test_folds_leave_out_each_batch_that_can_be_spared_and_the_patients_in_it():
    codes = np.array([0, 1] * 12)
    member = np.repeat([0, 1, 2], 8)
    codes[member == 2], codes[member < 2] = 1, np.tile([0, 0, 0, 1], 4)
    folds = batch_folds(member, codes, None)
    assert [f.index for f in folds] == [0, 1, 2]
    assert np.unique(member[np.concatenate([f.test for f in folds])]).tolist() == [0, 1, 2]
    codes[member == 1] = 1  # class 0 is in batch 0 alone
    folds = batch_folds(member, codes, None)
    assert [f.index for f in folds] == [1, 2]
    assert np.unique(member[np.concatenate([f.test for f in folds])]).tolist() == [1, 2]
    patients = np.arange(24)
    patients[8] = patients[0]  # one patient was measured in batches 0 and 1
    first, _ = batch_folds(member, codes, patients)
    assert first.test.tolist() == list(range(8, 16)) and 0 not in first.train


def test_many_batches_are_left_out_together():
    codes, member = np.tile([0, 1], 45), np.repeat(np.arange(30), 3)
    folds = batch_folds(member, codes, None)
    assert len(folds) == 20
    np.testing.assert_array_equal(np.sort(np.concatenate([f.test for f in folds])), np.arange(90))
    assert all(not np.intersect1d(member[f.test], member[f.train]).size for f in folds)


def test_the_score_on_unseen_batches_is_that_of_fits_without_them():
    X, y, batch = planted(together=0.5, shift=1.0)
    _, got = audit(X, y, batch)
    predicted = np.empty_like(y)
    for b in range(4):
        out = batch == b
        predicted[out] = PROCEDURE.fit(X[~out], y[~out]).predict(X[out])
        for k in (0, 1):
            rows = out & (y == k)
            assert got.unseen.recalls[b][k] == pytest.approx(np.mean(predicted[rows] == k))
    assert got.unseen.score.value == pytest.approx(balanced_accuracy_score(y, predicted))
    assert got.unseen.n_train == min(np.sum(batch != b) for b in range(4))


# -------------------------------------------------------------------------- the input


def test_several_batches_in_any_form_and_the_folds_stay_as_they_are():
    X, y, batch = planted()
    day = np.tile(["mo", "tu"], 40)
    plain = nested_evaluate(PROCEDURE, X, y, **QUICK)
    frame = pd.DataFrame({"plate": batch, "day": day})
    found = nested_evaluate(PROCEDURE, X, y, batch=frame, **QUICK)
    assert [a.name for a in found.batches] == ["plate", "day"]
    assert found.scores == plain.scores and plain.batches == ()
    same = nested_evaluate(PROCEDURE, X, y, batch={"plate": batch, "day": day}, **QUICK)
    assert same.to_dict() == found.to_dict()
    columns = nested_evaluate(PROCEDURE, X, y, batch=np.column_stack([batch, batch]), **QUICK)
    assert [a.name for a in columns.batches] == ["batch 1", "batch 2"]
    assert columns.batches[0].labels == found.batches[0].labels
    json.dumps(found.to_dict()["batches"], allow_nan=False)
    assert "unseen plate" in repr(found) and "Batches of day: 2 in 80" in repr(found.batches[1])


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ([1] * 8, "one value"),
        (list(range(8)), "a different value for every sample"),
        ([1, 1, 2, 2, None, 1, 1, 1], "missing values"),
        ([1, 1, 2, 2, float("nan"), 1, 1, 1], "missing values"),
        (pd.array([1, 1, 2, 2, None, 1, 1, 1], dtype="Int64"), "missing values"),
        ([1, 2], "inconsistent numbers of samples"),
    ],
)
def test_what_is_no_batch_is_refused(batch, said):
    with pytest.raises(ValueError, match=said):
        check_batches(batch, 8)


def test_the_same_after_a_kill(tmp_path):
    X, y, batch = planted(shift=1.0)
    log = tmp_path / "log.jsonl"
    whole = audit(X, y, batch, log=log)[0].to_dict()
    lines = log.read_text().splitlines(keepends=True)
    assert sum('"key":["batch","batch",' in line for line in lines) == 4
    log.write_text("".join(lines[:-2]))
    assert audit(X, y, batch, log=log, resume=True)[0].to_dict() == whole
    assert log.read_text() == "".join(lines)
    with pytest.raises(ValueError, match="batches differ"):
        audit(X, y, np.roll(batch, 1), log=log, resume=True)


def test_progress_counts_the_batches():
    seen = []
    audit(*planted(), progress=lambda *said: seen.append(said))
    assert ("leaving batches out", 4, 4) in seen
    assert list(folds_without({}, np.array([0, 1]), None)) == []
