"""`Panel`: given columns as a selector."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVM, Panel, load_model, nested_evaluate, save_model
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import paired_difference

NAMES = [f"gene {j}" for j in range(8)]


@pytest.fixture
def table():
    X, y = make_planted(60, 8, 2, effect=2.0, random_state=0, return_X_y=True)
    return pd.DataFrame(X, columns=NAMES), y


def test_columns_by_name_and_by_number(table) -> None:
    frame, _ = table
    X = frame.to_numpy()
    by_name = Panel(["gene 5", "gene 2"]).fit(frame)
    by_number = Panel(np.array([5, 2])).fit(X)
    for panel, rows in ((by_name, frame), (by_number, X)):
        assert panel.get_support(indices=True).tolist() == [2, 5]
        np.testing.assert_array_equal(panel.transform(rows), X[:, [2, 5]])
    assert by_name.get_feature_names_out().tolist() == ["gene 2", "gene 5"]
    mixed = Panel(["gene 5", 2, "gene 5"]).fit(frame).set_output(transform="pandas")
    pd.testing.assert_frame_equal(mixed.transform(frame), frame[["gene 2", "gene 5"]])
    np.testing.assert_array_equal(by_number.transform(sp.csr_array(X)).toarray(), X[:, [2, 5]])


def test_missing_values_are_for_others_to_see_to(table) -> None:
    X = table[0].to_numpy().copy()
    X[3, 2] = np.nan
    assert np.isnan(Panel([2]).fit_transform(X)[3, 0])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["gene 5", "Gen 7"], r"1 column\(s\) of the panel are not in the data: 'Gen 7'; did you"),
        (["xyz"], "not in the data: 'xyz'$"),
        ([1, 8], "not in the data: 8; there are 8, numbered from 0"),
        ([-1], "not in the data: -1"),
        ([], r"a list of names or numbers of columns, got \[\]"),
        ("gene 5", "a list of names or numbers of columns, got 'gene 5'"),
        (3, "a list of names or numbers of columns, got 3"),
        ([True, False], "names or numbers of columns, got True"),
        ([1.0], r"names or numbers of columns, got 1\.0"),
    ],
    ids=str,
)
def test_bad_panels_are_refused(table, names, message) -> None:
    with pytest.raises(ValueError, match=message):
        Panel(names).fit(table[0])


def test_names_need_names_that_differ(table) -> None:
    frame, _ = table
    with pytest.raises(ValueError, match="the panel names 'gene 5', but the data has no names"):
        Panel(["gene 5"]).fit(frame.to_numpy())
    twice = frame.set_axis(["a", "a", *NAMES[2:]], axis=1)
    with pytest.raises(ValueError, match=r"unique column names|so do several columns"):
        Panel(["a"]).fit(twice)


def test_a_model_on_a_panel_is_one_of_its_columns(table, tmp_path) -> None:
    pytest.importorskip("skops")
    frame, y = table
    model = clone(make_pipeline(Panel(["gene 1", "gene 6"]), GSVPSVM(n_features=2))).fit(frame, y)
    alone = GSVPSVM(n_features=2).fit(frame[["gene 1", "gene 6"]].to_numpy(), y)
    np.testing.assert_array_equal(model[-1].coef_, alone.coef_)
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


# --- evaluated on the folds of another


def _evaluate(estimator, table, **options):
    options = {"n_repeats": 2, "n_permutations": 0, "cv": 4, **options}
    return nested_evaluate(estimator, *table, **options)


def test_a_given_panel_is_scored_on_the_same_folds(table) -> None:
    frame, _ = table
    given = _evaluate(make_pipeline(Panel(["gene 3", "gene 4"]), LogisticRegression()), table)
    assert given.final_panel == (3, 4)
    assert all(fold.panel.tolist() == [3, 4] for fold in given.folds)
    calibrated = CalibratedClassifierCV(LogisticRegression(), cv=3)
    found = _evaluate(make_pipeline(Panel([3, 4]), calibrated), (frame.to_numpy(), table[1]))
    assert found.final_panel == (3, 4) and "log_loss" in found.scores


def test_the_paired_difference_is_that_of_the_folds(table) -> None:
    selected = _evaluate(GSVPSVM(n_features=2), table)
    given = _evaluate(make_pipeline(Panel(["gene 3", "gene 4"]), LogisticRegression()), table)
    for score in ("balanced_accuracy", "auc"):
        found = paired_difference(selected, given, score)
        folds = np.array(
            [a.scores[score] - b.scores[score] for a, b in zip(selected.folds, given.folds)]
        )
        assert found.value == pytest.approx(folds.mean())
        assert found.low < found.value < found.high
        # Nadeau and Bengio's error, or more where the folds agree by chance
        ratio = np.mean([f.test.size / f.train.size for f in selected.folds])
        error = np.sqrt((1 / 8 + ratio) * folds.var(ddof=1))
        assert found.high - found.value >= 2.3646 * error * (1 - 1e-4)
        other = paired_difference(given, selected, score)
        assert (other.value, other.low, other.high) == pytest.approx(
            (-found.value, -found.high, -found.low)
        )
        assert (found.p_value < 0.05) == (found.low > 0)
        assert paired_difference(selected, given, score, level=0.5).low > found.low
    nothing = paired_difference(selected, selected)
    assert (nothing.value, nothing.low, nothing.high, nothing.p_value) == (0, 0, 0, 1)


def test_differences_of_other_folds_samples_or_scores_are_refused(table) -> None:
    frame, y = table
    model = make_pipeline(Panel([0, 1]), LogisticRegression())
    first = _evaluate(model, table)
    for other in (
        _evaluate(model, table, random_state=1),
        _evaluate(model, table, cv=5),
        _evaluate(model, table, n_repeats=1),
        _evaluate(model, (frame.iloc[:-1], y[:-1])),
        _evaluate(model, (frame, np.array(["a", "b"])[y])),
    ):
        with pytest.raises(ValueError, match="differ in their samples or folds"):
            paired_difference(first, other)
    with pytest.raises(ValueError, match="there is no score 'accuracy' in both evaluations"):
        paired_difference(first, first, "accuracy")
