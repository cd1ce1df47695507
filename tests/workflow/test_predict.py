"""`predict_table`: columns by name, gaps by medians, class shares on request."""

from __future__ import annotations

import numpy as np
import pytest

from sparsegsvp import GSVPSVM
from sparsegsvp.io import InputError, make_table
from sparsegsvp.metrics import move_prior
from sparsegsvp.workflow import needed_features, predict_table, validate_table


@pytest.fixture(scope="module")
def model(selection):
    return selection.model


@pytest.fixture
def samples(frame, model):
    return frame[needed_features(model)]


def test_order_and_other_columns_do_not_matter(model, frame, samples):
    expected = predict_table(model, make_table(frame.drop(columns="class")))
    mixed = samples.iloc[:, ::-1].assign(other=3.0)
    result = predict_table(model, make_table(mixed, ids=[f"p{i}" for i in range(len(mixed))]))
    assert (result.labels == expected.labels).all()
    np.testing.assert_allclose(result.proba, expected.proba, rtol=1e-12)
    assert result.frame().index[:2].tolist() == ["p0", "p1"]
    assert expected.frame().index[:2].tolist() == ["1", "2"]
    assert result.csv().startswith(
        "sample,prediction,probability of ill,probability of well\n"
    ) or ("\r\n" in result.csv())


def test_missing_columns_are_named(model, samples):
    name = samples.columns[0]
    with pytest.raises(InputError, match=f"1 of the {samples.shape[1]} features.*'{name}'"):
        predict_table(model, make_table(samples.drop(columns=name)))
    unnamed = GSVPSVM(n_features=2).fit(samples.to_numpy(), np.arange(len(samples)) % 2)
    with pytest.raises(InputError, match="does not know the names of its features"):
        needed_features(unnamed)


def test_gaps_are_filled_and_counted(model, samples, frame):
    gappy = samples.copy()
    gappy.iloc[0, 0] = gappy.iloc[3, 0] = np.nan
    result = predict_table(model, make_table(gappy))
    assert result.imputed == {samples.columns[0]: 2}
    assert "2 missing values were replaced" in " ".join(result.remarks())
    filled = gappy.fillna({samples.columns[0]: frame[samples.columns[0]].median()})
    np.testing.assert_allclose(result.proba, predict_table(model, make_table(filled)).proba)
    bare = GSVPSVM(n_features=2).fit(samples, frame["class"])
    gappy = samples.copy()
    gappy[needed_features(bare)[0]] = np.nan
    gappy.iloc[1:] = samples.iloc[1:]
    with pytest.raises(InputError, match="is missing in sample '1'; fill it"):
        predict_table(bare, make_table(gappy))


def test_a_prevalence_multiplies_the_odds(model, samples):
    """Defect 37: `predict` had no switch for the prior."""
    table = make_table(samples)
    base = predict_table(model, table)
    ill = base.classes.index("ill")
    np.testing.assert_allclose(base.shares, 0.5)
    moved = predict_table(model, table, prevalence=0.1, positive="ill")
    p, q = base.proba[:, ill], moved.proba[:, ill]
    np.testing.assert_allclose(q / (1 - q), p / (1 - p) * 0.1 / 0.9, rtol=1e-6)
    assert ((moved.labels == "ill") == (q > 0.5)).all()
    shares = [0.1 if label == "ill" else 0.9 for label in base.classes]
    np.testing.assert_allclose(move_prior(base.proba, base.shares, shares), moved.proba)
    for wrong in (0, 1, 1.5, "often", {"ill": 0.5}):
        with pytest.raises(InputError, match="prevalence"):
            predict_table(model, table, prevalence=wrong)
    with pytest.raises(InputError, match="no class 'sick'"):
        predict_table(model, table, prevalence=0.1, positive="sick")


def test_the_shares_of_training_mend_rare_classes():
    """Defect 37: of 5 positives in 100, equal shares call far more positive than there are."""
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], [950, 50])
    X = rng.normal(size=(1000, 5))
    X[y == "yes", 0] += 1.5
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcde"))
    model = GSVPSVM(n_features=2).fit(frame, y)
    table = make_table(frame)
    equal, trained = (predict_table(model, table, prevalence=p) for p in (None, "training"))
    np.testing.assert_allclose(trained.shares, [0.95, 0.05])
    assert (equal.labels == "yes").mean() > 0.15 and (trained.labels == "yes").mean() < 0.07
    assert trained.proba[:, 1].mean() == pytest.approx(0.05, abs=0.02)
    three = np.where(X[:, 1] > 1, "maybe", y)
    many = GSVPSVM(n_features=2).fit(frame, three)
    shares = predict_table(many, table, prevalence="training").shares
    assert shares.sum() == pytest.approx(1) and len(shares) == 3
    with pytest.raises(InputError, match="is for two classes"):
        predict_table(many, table, prevalence=0.1)


def test_values_of_another_kind_are_noticed(model, samples):
    assert not any("differ" in text for text in predict_table(model, make_table(samples)).remarks())
    other = samples.copy()
    other.iloc[:, 0] += 6.0
    remarks = " ".join(predict_table(model, make_table(other)).remarks())
    assert "differ from those of the training samples" in remarks and samples.columns[0] in remarks


def test_labels_validate_the_model(model, frame):
    table = make_table(frame, target="class")
    cohort = validate_table(model, table, positive="ill")
    right = model.predict(frame.drop(columns="class")) == frame["class"]
    assert cohort.scores["accuracy"].value == pytest.approx(right.mean())
    assert cohort.positive == "ill" and cohort.n_samples == len(frame)
    assert not any(feature.shifted for feature in cohort.shift)
    strange = make_table(frame.replace({"class": {"ill": "sick"}}), target="class")
    with pytest.raises(InputError, match="sick"):
        validate_table(model, strange)
