"""`PanelPipeline` predicts from the panel's columns, `Panel` keeps given ones, `BatchCenterer`."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from sparsegsvp import GSVPSVM, Panel
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import BatchCenterer, PanelPipeline, pipeline

METHODS = ("predict", "predict_proba", "decision_function")
NAMES = [f"gene {j}" for j in range(30)]


@pytest.fixture
def frame(breast) -> pd.DataFrame:
    X = pd.DataFrame(breast[0].copy(), columns=NAMES)
    X.iloc[::7, ::3] = np.nan
    return X


@pytest.fixture
def fitted(frame, breast) -> PanelPipeline:
    steps = [
        ("log", FunctionTransformer(np.log1p)),
        ("impute", SimpleImputer(strategy="median")),
        ("scale", StandardScaler()),
        ("model", GSVPSVM(n_features=4)),
    ]
    return PanelPipeline(steps).fit(frame, breast[1])


def test_it_is_a_pipeline_that_selects(fitted, frame, breast) -> None:
    plain = clone(Pipeline(fitted.steps)).fit(frame, breast[1])
    for method in METHODS:
        assert_array_equal(getattr(fitted, method)(frame), getattr(plain, method)(frame))
    assert_array_equal(fitted.get_support(), plain[-1].support_)
    assert_array_equal(fitted.get_support(indices=True), np.flatnonzero(plain[-1].support_))
    assert isinstance(clone(fitted), PanelPipeline)
    assert not hasattr(fitted[:-1], "predict") and not hasattr(fitted[:-1], "get_support")
    assert not hasattr(PanelPipeline([("model", GSVPSVM(decision="scaled"))]), "predict_proba")
    passing = PanelPipeline([("none", "passthrough"), *clone(fitted).steps]).fit(frame, breast[1])
    assert_array_equal(passing.predict_proba(frame), fitted.predict_proba(frame))


@pytest.mark.parametrize("block", [4_000_000, 300])
def test_the_panel_is_enough(fitted, frame, block, monkeypatch) -> None:
    monkeypatch.setattr(pipeline, "_BLOCK", block)  # 10 rows of 30 columns at a time
    panel = list(frame.columns[fitted.get_support()])
    assay = frame[panel[::-1]].assign(site="north")  # by their names, in any order
    as_wide = frame.rename(columns={f: f"other {f}" for f in frame if f not in panel})
    whole, reordered = frame.assign(site="north"), frame.iloc[:, ::-1]
    for rows in (frame[panel], assay, pl.from_pandas(assay), whole, as_wide, reordered):
        for method in METHODS:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = getattr(fitted, method)(rows)
            if method == "predict":
                assert_array_equal(result, fitted.predict(frame))
            else:
                assert_allclose(result, getattr(fitted, method)(frame), atol=1e-12)
    for rows in (assay, as_wide):
        with pytest.raises(ValueError, match=f"columns of the panel are missing: {panel[0]}$"):
            fitted.predict(rows.rename(columns={panel[0]: "another"}))


def test_steps_that_mix_or_drop_columns_are_refused(frame, breast) -> None:
    filled = frame.fillna(1.0)
    mixed = PanelPipeline([("rows", Normalizer()), ("model", GSVPSVM(n_features=3))])
    mixed.fit(filled, breast[1])
    mixed.predict(filled)  # all columns are fine
    with pytest.raises(ValueError, match=r"a step before the last mixes columns.*pass all columns"):
        mixed.predict(filled[filled.columns[mixed.get_support()]])
    dropped = PanelPipeline([("some", Panel(list(range(1, 30)))), ("model", GSVPSVM())])
    with pytest.raises(ValueError, match="must keep the columns, but they turn 30 into 29"):
        dropped.fit(filled, breast[1]).get_support()


# --- a given panel -------------------------------------------------------------------------


def test_panels_by_name_and_by_number(breast) -> None:
    X = breast[0]
    frame = pd.DataFrame(X, columns=NAMES)
    by_name, by_number = Panel(["gene 5", "gene 2"]).fit(frame), Panel(np.array([5, 2])).fit(X)
    for panel, rows in ((by_name, frame), (by_number, X)):
        assert panel.get_support(indices=True).tolist() == [2, 5]
        assert_array_equal(panel.transform(rows), X[:, [2, 5]])
    mixed = Panel(["gene 5", 2, "gene 5"]).fit(frame).set_output(transform="pandas")
    pd.testing.assert_frame_equal(mixed.transform(frame), frame[["gene 2", "gene 5"]])
    assert_array_equal(by_number.transform(sp.csr_array(X)).toarray(), X[:, [2, 5]])
    missing = np.where(np.arange(30) == 2, np.nan, X)  # for others to see to
    assert np.isnan(Panel([2]).fit_transform(missing)).all()
    model = make_pipeline(Panel([1, 6]), GSVPSVM(n_features=2)).fit(X, breast[1])
    alone = GSVPSVM(n_features=2).fit(X[:, [1, 6]], breast[1])
    assert_array_equal(model.predict_proba(X), alone.predict_proba(X[:, [1, 6]]))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["gene 5", "Gen 7"], r"1 column\(s\) of the panel are not in the data: 'Gen 7'; did you"),
        (["xyz"], "not in the data: 'xyz'$"),
        ([1, 30], "not in the data: 30; there are 30, numbered from 0"),
        ([-1], "not in the data: -1"),
        ([], r"a list of names or numbers of columns, got \[\]"),
        ("gene 5", "a list of names or numbers of columns, got 'gene 5'"),
        ([True, False], "names or numbers of columns, got True"),
        ([1.0], r"names or numbers of columns, got 1\.0"),
    ],
    ids=str,
)
def test_bad_panels_are_refused(breast, names, message) -> None:
    with pytest.raises(ValueError, match=message):
        Panel(names).fit(pd.DataFrame(breast[0], columns=NAMES))


# --- batches -------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(40, 6))
BATCH = np.repeat(["a", "b", "c"], [10, 14, 16])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_batch_changes_nothing(dtype) -> None:
    values = X.astype(dtype)
    # 1 and 1.0 are one batch, as a file may have it either way
    for batch in (["one"] * 40, [1] * 20 + [1.0] * 20, np.ones(40)):
        centred = BatchCenterer().fit_transform(values, batch=batch)
        assert centred.dtype == dtype
        assert_array_equal(centred, values)
    step = BatchCenterer().fit(values, batch=np.repeat([1, 2], 20))
    assert_array_equal(
        step.transform(values, batch=np.repeat([1, 2], 20)),
        step.transform(values, batch=np.repeat([1.0, 2.0], 20)),
    )


def test_training_batches_end_with_one_mean_and_keep_their_spread() -> None:
    step = BatchCenterer(skip=(5,)).fit(X, batch=BATCH)
    centred = step.transform(X, batch=BATCH)
    for b in "abc":
        rows = b == BATCH
        assert_allclose(centred[rows, :5].mean(axis=0), X[:, :5].mean(axis=0))
        assert_allclose(np.ptp(centred[rows], axis=0), np.ptp(X[rows], axis=0))
    assert_array_equal(centred[:, 5], X[:, 5])
    # a shift of a whole batch, in training and after, is no matter
    moved = X + 100.0 * (BATCH == "b")[:, None]
    again = BatchCenterer(skip=(5,)).fit(moved, batch=BATCH)
    rest = again.transform(moved, batch=BATCH) - centred
    assert_allclose(rest[:, :5], np.full((40, 5), 100 * 14 / 40))


def test_known_batches_are_centred_by_training_rows_and_new_ones_by_their_own() -> None:
    step = BatchCenterer().fit(X[BATCH != "c"], batch=BATCH[BATCH != "c"])
    known = step.transform(X[:3], batch=["b"] * 3)
    assert_allclose(known, X[:3] + step.mean_ - X[BATCH == "b"].mean(axis=0))
    assert_array_equal(known[:1], step.transform(X[:1], batch=["b"]))  # one by one as together
    fresh = step.transform(X[BATCH == "c"] + 7.0, batch=["c"] * 16)
    assert_allclose(fresh.mean(axis=0), step.mean_)
    assert_array_equal(fresh, step.transform(X[BATCH == "c"] + 7.0))
    assert step.batches_.tolist() == ["a", "b"]  # nothing is learnt from them
    with pytest.warns(UserWarning, match=r"the mean of 2 row\(s\): transform whole batches"):
        step.transform(X[:2], batch=["new", "new"])


def test_centring_finds_what_batches_hide_and_is_routed() -> None:
    """Three even batches that lie far apart: without centring nothing is found."""
    data = make_planted(240, 20, 3, effect=2.0, random_state=1)
    plates = np.random.default_rng(2).integers(0, 3, 240)
    rows = data.X + (6 * np.random.default_rng(3).normal(size=(3, 20)))[plates]
    inside, outside = slice(0, 120), slice(120, None)
    model = make_pipeline(BatchCenterer(), GSVPSVM(n_features=3))
    with sklearn.config_context(enable_metadata_routing=True):
        model.fit(rows[inside], data.y[inside], batch=plates[inside])
        predicted = model.predict(rows[outside], batch=plates[outside])
    assert_array_equal(np.flatnonzero(model[-1].support_), data.support)
    plain = GSVPSVM(n_features=3).fit(rows[inside], data.y[inside]).predict(rows[outside])
    scores = [balanced_accuracy_score(data.y[outside], p) for p in (predicted, plain)]
    assert scores[0] > 0.9 and scores[0] > scores[1] + 0.1
    named = make_pipeline(BatchCenterer(), GSVPSVM(n_features=3)).fit(
        rows[inside], data.y[inside], batchcenterer__batch=plates[inside]
    )
    assert_array_equal(named[-1].planes_, model[-1].planes_)
