"""The paper's split, rules and scores."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, precision_score, recall_score

from sparsegsvp.datasets import data_folder, load_breast_cancer, load_ovarian
from sparsegsvp.reproduce import claims
from sparsegsvp.reproduce.claims import filters, search_rows, searched
from sparsegsvp.reproduce.plan import PLANS, stages
from sparsegsvp.reproduce.protocol import (
    STUDIES,
    batch_normalised_predict,
    classification_report,
    confusion_counts,
    nearest_plane_predict,
    paper_split,
)
from sparsegsvp.reproduce.runs import published_row

# Of the sorted rows of the public table that solve for the authors' training mean.
TRAINING_ROWS = 509018034
needs_data = pytest.mark.skipif(
    data_folder() is None, reason="SPARSEGSVP_DATA does not name a data folder"
)


@pytest.mark.parametrize("key", ["breast", pytest.param("ovarian", marks=needs_data)])
def test_the_split_is_the_published_one(key: str) -> None:
    study = STUDIES[key]
    X, y = (
        load_breast_cancer(return_X_y=True)
        if key == "breast"
        else load_ovarian(order="authors", return_X_y=True)
    )
    assert X.shape == study.shape
    parts = paper_split(X, y, study.second_split)
    for label, name in enumerate(study.class_names):
        counts = [
            int(np.sum(part[1] == label)) for part in (parts.train, parts.validation, parts.test)
        ]
        assert tuple(counts) == study.split[name]
    rows = np.vstack([parts.train[0], parts.validation[0], parts.test[0]])
    np.testing.assert_array_equal(np.sort(rows.sum(1)), np.sort(X.sum(1)))  # each row once


@needs_data
def test_the_ovarian_split_is_the_recovered_one() -> None:
    """The training rows of the authors, whose mean their public history holds."""
    file = load_ovarian()
    known = {total: row for row, total in enumerate(file.X.sum(axis=1).tolist())}
    parts = paper_split(*load_ovarian(order="authors", return_X_y=True), second_split=0.3)
    rows = [
        {known[total] for total in part[0].sum(axis=1).tolist()}
        for part in (parts.train, parts.validation, parts.test)
    ]
    assert [len(part) for part in rows] == [176, 53, 24]
    assert len(set.union(*rows)) == 253  # no overlap
    train = sorted(rows[0])
    assert np.bincount(file.y[train]).tolist() == [63, 113]
    assert zlib.crc32(str(train).encode()) == TRAINING_ROWS


def test_published_counts_fit_the_published_split() -> None:
    for study in STUDIES.values():
        negative, positive = (study.split[name] for name in study.class_names)
        for method in study.methods:
            row = study.rows[method.key]
            for part, counts in ((1, row.validation), (2, row.test)):
                assert sum(counts[:2]) == negative[part]
                assert sum(counts[2:]) == positive[part]
            assert row.features[0] + row.features[2] == row.elbows[0]
            assert row.features[1] + row.features[2] == row.elbows[1]
            if method.key in study.notebook:
                printed = study.notebook[method.key]
                assert sum(printed.validation) == negative[1] + positive[1]
                assert sum(printed.test) == negative[2] + positive[2]
        for _, _, point in study.sweep.notebook:
            assert sum(point.validation[:2]) == negative[1]
            assert sum(point.validation[2:]) == positive[1]


@pytest.fixture
def planes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 5)), rng.standard_normal((2, 5)), np.array([0.3, -0.2])


def test_the_batch_rule_depends_on_the_batch(planes) -> None:
    Z, weights, biases = planes
    together = batch_normalised_predict(Z, weights, biases)
    assert 0 < together.sum() < len(Z)
    alone = [batch_normalised_predict(row[None], weights, biases)[0] for row in Z]
    assert not any(alone)  # a sample by itself is always class 0
    # and it does not see the length of the normals, which the printed rule divides by
    stretched = np.array([1.0, 7.0])
    np.testing.assert_array_equal(
        batch_normalised_predict(Z, weights * stretched[:, None], biases * stretched), together
    )


def test_the_printed_rule_does_not(planes) -> None:
    Z, weights, biases = planes
    together = nearest_plane_predict(Z, weights, biases)
    alone = [nearest_plane_predict(row[None], weights, biases)[0] for row in Z]
    np.testing.assert_array_equal(alone, together)
    distances = np.abs(Z @ weights.T + biases) / np.linalg.norm(weights, axis=1)
    np.testing.assert_array_equal(together, distances.argmin(axis=1))


def test_reports_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    y, predicted = rng.integers(0, 2, (2, 50))
    counts = confusion_counts(y, predicted)
    assert counts == tuple(confusion_matrix(y, predicted).ravel())
    report = classification_report(counts)
    assert report["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert report["recall"] == pytest.approx(recall_score(y, predicted))
    assert report["specificity"] == pytest.approx(recall_score(y, predicted, pos_label=0))
    assert report["precision"] == pytest.approx(precision_score(y, predicted))
    assert classification_report((3, 0, 2, 0))["precision"] is None


@pytest.mark.parametrize("method", ["l1", "q=0.1"])
def test_the_two_reproducible_rows(method: str) -> None:
    """Elbows, feature counts and both confusion matrices, as published."""
    published = STUDIES["breast"].rows[method]
    result = published_row(load_breast_cancer(), "breast", method, "code", 10_000)
    assert tuple(result["elbows"]) == published.elbows
    assert tuple(result["counts"]) == published.features
    validation = result["reports"]["validation"]["batch"]["selected"]
    test = result["reports"]["test"]["batch"]["all"]
    assert validation == classification_report(published.validation)
    assert test == classification_report(published.test)
    # by the same rule, no patient who comes alone is ever called ill
    assert result["class_1_when_alone"] == {"validation": 0, "test": 0}


@needs_data
def test_the_ovarian_row_of_the_notebook_and_not_the_published_one() -> None:
    """q = 0.1 on the recovered split, at 1,500 of 10,000 iterations.

    Elbows and validation counts, which are of the selected features, are there by then and
    stay. The test counts, which are of all weights, still move (7 2 0 15 at 2,200, the
    notebook's 8 1 0 15 at the end), but never came to the published 9 0 0 15.
    """
    result = published_row(load_ovarian(order="authors"), "ovarian", "q=0.1", "code", 1500)
    published = STUDIES["ovarian"].rows["q=0.1"]
    assert result["converged"] == [False, True]
    assert tuple(result["elbows"]) == published.elbows == (2, 2)
    validation = result["reports"]["validation"]["batch"]["selected"]
    assert validation == classification_report((19, 0, 0, 34))
    test = result["reports"]["test"]["batch"]["all"]
    assert test != classification_report(published.test)
    assert (test["TP"], test["FP"] > 0) == (15, True)


def test_the_printed_step_does_not_give_the_published_row() -> None:
    result = published_row(load_breast_cancer(), "breast", "q=0.1", "paper", 10_000)
    assert tuple(result["elbows"]) != STUDIES["breast"].rows["q=0.1"].elbows


def test_filters_put_a_feature_that_tells_the_class_first() -> None:
    data = load_breast_cancer()
    X = data.X.copy()
    X[:, 4] = data.y + 0.01 * X[:, 4]
    X[:, 9] = 1.0  # and one that is constant nowhere
    found = filters(replace(data, X=X), "breast", top=29, size=1, seeds=[42, 3])
    for name, ranked in found["top"].items():
        assert ranked[0] == 4 and 9 not in ranked, name
        assert found["scores"][name] == [1.0, 1.0]


def test_a_search_goes_on_without_settings_whose_iterate_vanishes(monkeypatch) -> None:
    alone = searched(load_breast_cancer(), "breast", "l1", seed=3, max_iter=30)
    monkeypatch.setattr(claims, "STEPS", (1e-3,))
    for deltas in ((0.8, 0.9), (0.8, 1e9, 0.9)):
        monkeypatch.setattr(claims, "DELTAS", (deltas, deltas))
        found = searched(load_breast_cancer(), "breast", "l1", seed=3, max_iter=30)
        assert found["tried"] == 4 and found["step_size"] == 1e-3
    assert alone["tried"] == 7 * 6**2 and alone["validation"] >= found["validation"] - 0.1


def test_searches_on_other_splits_are_averaged_beside_the_published_one() -> None:
    run = {"features": 4, "tried": 252, "validation": 1.0, "test": 0.9, "delta": [0.1, 0.2]}
    results = {"search/l1/42": run}
    results |= {f"search/l1/{i}": {**run, "features": i, "test": i / 4} for i in (1, 3)}
    first, others = search_rows({"l1": "l1", "q=1": "lq, q = 1"}, results)
    assert (first["split"], first["delta"], first["tried"]) == ("published", "0.1 0.2", 252)
    assert (others["split"], others["features"], others["test"]) == ("mean of 2 others", 2.0, 0.5)
    assert others["delta"] is None and others["test_printed"] is None


@pytest.mark.parametrize("key", ["breast", "ovarian"])
def test_every_experiment_of_a_plan_is_known_by_a_key_of_its_own(key: str) -> None:
    experiments = [e for _, staged in stages(STUDIES[key], PLANS[key]) for e in staged]
    names = [experiment.name for experiment in experiments]
    assert len(set(names)) == len(names) == len({e.key[1] for e in experiments})
    assert ("claim/filters" in names) == (key == "ovarian")
    assert all(e.cost >= 1 and e.keywords["study"] == key for e in experiments)
