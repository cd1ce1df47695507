"""`batch` of `fit`: the same model, and an audit of what batches have to do with it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, GSVPSVMCV, load_model, nested_evaluate, save_model
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import BatchCenterer
from sparsegsvp.metrics import batches as sums

MODELS = [GSVPSVM(n_features=3), GSVPSVMCV(tau=1.0, n_deltas=4, cv=3)]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(sums, "_LABEL_DRAWS", 99)


@pytest.fixture
def plates():
    """60 rows; plates that have nothing to do with the classes, one of them shifted; the labels."""
    X, y = make_planted(60, 40, 3, effect=2.0, random_state=0, return_X_y=True)
    plate = np.tile(["p1", "p2", "p3"], 20)
    return X + 4.0 * (plate == "p3")[:, None], y, plate


@pytest.mark.parametrize("model", MODELS)
def test_the_fit_is_the_same_and_the_audit_is_that_of_an_evaluation(model, plates) -> None:
    X, y, plate = plates
    plain = clone(model).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the plates do not tell the classes
        found = clone(model).fit(X, y, batch={"plate": plate, "half": np.arange(60) // 30})
    for name in ("coef_", "intercept_", "scale_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    np.testing.assert_array_equal(found.predict_proba(X), plain.predict_proba(X))
    assert not hasattr(plain, "batch_audit_") and list(found.batch_audit_) == ["plate", "half"]
    ties = found.batch_audit_["plate"]
    assert ties.shown and not ties.confounded and ties.classes == ("0", "1")
    assert ties.panel.by_batch[2] > 0.9 and np.sum(ties.counts) == 60
    options = {"n_repeats": 1, "n_permutations": 0, "n_random_panels": 0, "final_fit": False}
    [audit] = nested_evaluate(clone(model), X, y, batch={"plate": plate}, **options).batches
    assert audit.labels == ties.labels and audit.counts == ties.counts
    assert audit.sentences()[0] == ties.sentences()[0] and len(ties.sentences()) == 2
    assert "Batches of plate: 3 in 60 samples" in repr(ties)
    # another fit forgets it
    assert not hasattr(found.fit(X, y), "batch_audit_")


@pytest.mark.parametrize("model", MODELS)
def test_labels_that_are_nearly_the_batches_are_warned_of(model, plates) -> None:
    X, y, _ = plates
    nearly = np.where(np.arange(60) % 20 == 0, 1 - y, y).astype(str)
    with pytest.warns(
        UserWarning, match=r"From batch alone.*Classes and batches hang closely"
    ) as w:
        found = clone(model).fit(X, y, batch=nearly)
    assert w[0].filename == __file__
    assert found.batch_audit_["batch"].confounded and not found.batch_audit_["batch"].complete
    with pytest.warns(UserWarning, match="hang closely together"):
        found = clone(model).fit(X, y, batch=pd.Series(y, name="day"))
    assert found.batch_audit_["day"].complete and found.batch_audit_["day"].panel is None


def test_batches_are_no_groups_and_groups_are_the_units(plates) -> None:
    X, y, plate = plates
    model = MODELS[1]
    plain = clone(model).fit(X, y)
    found = clone(model).fit(X, y, batch=plate)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"],
                                  plain.cv_results_["mean_test_score"])  # fmt: skip
    pairs = np.arange(60) // 2
    by_pair = np.array(["p1", "p2", "p3"])[pairs % 3]
    grouped = clone(model).fit(X, y, groups=pairs, batch=by_pair).batch_audit_["batch"]
    alone = clone(model).fit(X, y, batch=by_pair).batch_audit_["batch"]
    assert grouped.labels.accuracy == alone.labels.accuracy
    assert grouped.labels.shuffled != alone.labels.shuffled  # pairs are shuffled as a whole


@pytest.mark.parametrize("kind", ["sparse", "frame", "dask"])
def test_kinds_of_data_agree(kind, plates) -> None:
    X, y, plate = plates
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    plain = clone(MODELS[0]).fit(X, y, batch=plate).batch_audit_["batch"]
    given = {"sparse": sp.csr_array, "frame": pd.DataFrame}.get(kind)
    if kind == "dask":
        da = pytest.importorskip("dask.array")
        given, plate = (lambda rows: da.from_array(rows, chunks=(20, 40))), da.from_array(plate)
    found = clone(MODELS[0]).fit(given(X), y, batch=plate).batch_audit_["batch"]
    assert found.labels == plain.labels
    assert found.panel.auc == pytest.approx(plain.panel.auc)


def test_through_pipelines_and_searches_it_is_routed(plates) -> None:
    X, y, plate = plates
    for model in MODELS:
        piped = make_pipeline(StandardScaler(), clone(model))
        name = piped.steps[-1][0]
        before = piped.fit(X, y, **{f"{name}__batch": plate})[-1].batch_audit_["batch"]
        centred = make_pipeline(BatchCenterer(), clone(model))
        with config_context(enable_metadata_routing=True):
            assert piped.fit(X, y, batch=plate)[-1].batch_audit_["batch"] == before
            after = centred.fit(X, y, batch=plate)[-1].batch_audit_["batch"]
            refusing = clone(model).set_fit_request(batch=False)
            silent = make_pipeline(BatchCenterer(), refusing).fit(X, y, batch=plate)
            scored = cross_validate(
                clone(model), X, y, params={"batch": plate}, return_estimator=True, cv=3
            )
        assert before.shown and not after.shown  # asked of the values that reach the model
        assert not hasattr(silent[-1], "batch_audit_")
        assert all(sum(map(sum, m.batch_audit_["batch"].counts)) == 40
                   for m in scored["estimator"])  # fmt: skip


def test_the_audit_is_saved_with_the_model(plates, tmp_path) -> None:
    pytest.importorskip("skops")
    X, y, plate = plates
    model = clone(MODELS[0]).fit(X, y, batch={"plate": plate})
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert loaded.batch_audit_ == model.batch_audit_


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (["a"] * 60, "batch 'batch' has one value"),
        (np.arange(60), "a different value for every sample"),
        ([None] + ["a", "b"] * 29 + ["a"], "has missing values"),
        (["a", "b"], "inconsistent numbers of samples"),
    ],
    ids=["one", "all", "missing", "short"],
)
def test_bad_batches_are_refused_before_the_work(model, plates, batch, message) -> None:
    X, y, _ = plates
    with pytest.raises(ValueError, match=message):
        found = clone(model)
        found.fit(X, y, batch=batch)
    assert not hasattr(found, "coef_")
