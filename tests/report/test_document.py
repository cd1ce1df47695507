"""The document: true to the data, whole, and refused where it is not."""

from __future__ import annotations

import json

import numpy as np
import pytest
import report_fakes as fakes
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix
from scipy.stats import ttest_ind
from sklearn.metrics import roc_auc_score, roc_curve

from sparsegsvp.io import InputError
from sparsegsvp.report import build_document, check_document, draw_figures
from sparsegsvp.report.numbers import order_of_classes, thin, whole_counts


@pytest.mark.parametrize("case", fakes.CASES)
def test_every_kind_of_run_gives_a_document_that_is_whole(documents, case):
    assert check_document(documents[case]) == documents[case]


def test_the_same_run_gives_the_same_bytes():
    made = []
    for _ in range(2):
        table = fakes.make_table()
        made.append(json.dumps(build_document(table, fakes.Evaluation(table), seed=0)))
    assert made[0] == made[1]


def test_features_are_described_as_they_are(documents):
    table, document = fakes.make_table(), documents["signal"]
    ill = table.y == "ill"
    for row in [*document["panel"], *document["more"]]:
        x = table.X[:, row["index"]]
        a, b = x[ill], x[~ill]
        pooled = np.sqrt((a.var() * a.size + b.var() * b.size) / (x.size - 2))
        d = (a.mean() - b.mean()) / pooled
        assert row["effects"] == pytest.approx([d, -d])
        assert row["higher_in"] == ("ill" if d > 0 else "well")
        area = roc_auc_score(ill, x)
        assert row["auc"] == pytest.approx(max(area, 1 - area))
        for box, part in zip(row["boxes"], (a, b)):
            quartiles = np.quantile(part, [0.25, 0.5, 0.75])
            assert [box["q1"], box["median"], box["q3"]] == pytest.approx(quartiles)
            assert box["n"] == part.size and box["mean"] == pytest.approx(part.mean())
            assert box["positive"] == pytest.approx((part > 0).mean())
            beyond = part[(part < box["low"]) | (part > box["high"])]
            assert box["n_outliers"] == beyond.size
            assert set(box["outliers"]) <= set(beyond)


def test_the_volcano_is_welchs_test(documents):
    table, found = fakes.make_table(), documents["signal"]["pictures"]["volcano"]
    ill = table.y == "ill"
    p = ttest_ind(table.X[ill], table.X[~ill], equal_var=False).pvalue
    at = [table.feature_names.index(name) for name in found["feature"]]
    assert found["p"] == pytest.approx(p[at], rel=1e-4)
    assert found["difference"] == pytest.approx(
        (table.X[ill].mean(axis=0) - table.X[~ill].mean(axis=0))[at], rel=1e-4
    )
    assert found["n_total"] == 60 and found["q"] == sorted(found["q"])
    panel = {row["feature"] for row in documents["signal"]["panel"]}
    assert {n for n, mine in zip(found["feature"], found["in_panel"]) if mine} == panel
    document, titles = documents["signal"], []
    for units, standardized in ((None, False), ("log2(x)", False), ("log2(x)", True)):
        document["data"]["units"], found["standardized"] = units, standardized
        titles.append(draw_figures(document)["volcano"].x.title.split(", in ")[1])
    assert titles == ["units of the table", "log2(x)", "within-class standard deviations"]


def test_each_of_a_few_classes_has_a_curve_against_the_rest(documents):
    table = fakes.make_table(n=90, classes=("basal", "luminal", "normal"), seed=3)
    evaluation = fakes.Evaluation(table, size=6)
    folds = [part for _, part in evaluation.predictions.groupby(["repeat", "fold"])]
    curves = documents["three"]["roc"]
    assert [curve["label"] for curve in curves] == ["basal", "luminal", "normal"]
    for curve in curves:
        mine = [(part["truth"] == curve["label"], part[f"decision_{curve['label']}"])
                for part in folds]  # fmt: skip
        assert curve["area"] == pytest.approx(np.mean([roc_auc_score(*part) for part in mine]))
        rates = [np.interp(curve["fpr"], *roc_curve(*part)[:2]) for part in mine]
        assert curve["tpr"][1:] == pytest.approx(np.mean(rates, axis=0)[1:], abs=1e-5)
    assert documents["twelve"]["roc"] == []
    for rung in documents["three"]["ladder"]:
        assert rung["recalls"] == evaluation.sized[rung["size"]].recalls(3).tolist()
        assert np.mean(rung["recalls"]) == pytest.approx(rung["score"]["value"])


def test_classes_taken_for_each_other_are_neighbours(documents):
    assert documents["three"]["confusion"]["order"] == [0, 1, 2]
    assert sorted(documents["twelve"]["confusion"]["order"]) == list(range(12))
    shares = np.eye(8)
    for a, b in ((0, 5), (1, 7), (2, 6), (3, 4)):
        shares[a, b] = shares[b, a] = 0.3
    order = order_of_classes(shares)
    assert {frozenset(order[i : i + 2]) for i in (0, 2, 4, 6)} == {
        frozenset(pair) for pair in ((0, 5), (1, 7), (2, 6), (3, 4))
    }


def test_samples_carry_what_fits_without_them_said(documents):
    table, document = fakes.make_table(), documents["signal"]
    found, predictions = document["pictures"]["scatter"], fakes.Evaluation(table).predictions
    at = [list(table.sample_names).index(name) for name in found["name"]]
    wrong = predictions["truth"] != predictions["prediction"]
    share = wrong.groupby(predictions["sample"]).mean()
    assert found["wrong"] == pytest.approx(share[at].tolist())
    mean = predictions.groupby("sample")["probability_ill"].mean()
    assert found["probability"] == pytest.approx(mean[at].tolist(), abs=1e-3)
    first = table.feature_names.index(found["features"][0])
    assert found["x"] == pytest.approx(table.X[at, first], rel=1e-4)
    # the line of a class is the plane of the fit on the two features
    model = fakes.Evaluation(table).models[2]
    second = table.feature_names.index(found["features"][1])
    for line, plane, b in zip(found["lines"], model.planes_, model.plane_intercepts_):
        assert line["weights"] == pytest.approx(plane[[first, second]])
        assert line["intercept"] == pytest.approx(b)


def test_sparse_tables_and_missing_values_say_the_same():
    table = fakes.make_table(n=60, m=35)
    table.X = np.maximum(table.X, 0.0)
    evaluation = fakes.Evaluation(table)
    dense = build_document(table, evaluation)
    sparse = build_document(table, evaluation, values=csr_matrix(table.X))
    assert sparse == dense
    holes = table.X.copy()
    first = evaluation.panel[0]
    holes[::7, first] = np.nan
    found = build_document(table, evaluation, values=holes)["panel"][0]
    known = holes[np.isfinite(holes[:, first]) & (table.y == "ill"), first]
    assert found["boxes"][0]["n"] == known.size
    assert found["boxes"][0]["mean"] == pytest.approx(known.mean())


def test_a_fixed_size_is_a_rung_of_its_own():
    table = fakes.make_table()
    evaluation = fakes.Evaluation(table, size=5, size_range=(5.0, 5, 5))
    document = build_document(table, evaluation)
    rung = next(rung for rung in document["ladder"] if rung["chosen"])
    assert rung["size"] == 5
    assert document["stability"]["index"] == rung["stability"]
    assert [row["index"] for row in document["panel"]] == [row["index"] for row in rung["features"]]


@given(
    arrays(float, (3, 4), elements=st.floats(0, 40).map(lambda v: round(v, 1))),
    st.lists(st.integers(1, 60), min_size=3, max_size=3),
)
def test_counts_are_whole_samples(table, totals):
    sums = table.sum(axis=1, keepdims=True)
    table = np.where(sums > 0, table / np.maximum(sums, 1e-9), 0.25) * np.array(totals)[:, None]
    counts = whole_counts(table)
    assert [sum(row) for row in counts] == totals
    assert np.abs(np.array(counts) - table).max() < 1 + 1e-6


@given(st.lists(st.integers(0, 4), min_size=1, max_size=300), st.integers(20, 100))
def test_thinning_keeps_every_class(codes, limit):
    codes = np.array(codes)
    rows = thin(codes, limit)
    assert rows.size <= max(limit, 0) or codes.size <= limit
    assert np.array_equal(rows, np.unique(rows))
    assert set(codes[rows]) == set(codes)


def _paths(value, before=()):
    """Every place in a document, the first of each list."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield (*before, key)
            yield from _paths(part, (*before, key))
    elif isinstance(value, list) and value:
        yield from _paths(value[0], (*before, 0))


_FREE = {"settings", "parameters", "dropped", "covariates", "versions", "scores", "folds", "curve"}
_FREE |= {"decision", "slider"}


def test_a_missing_or_false_part_is_named(document):
    tried = 0
    for path in list(_paths(document)):
        if _FREE & set(path[:-1]) or path[-1] in ("actions", "name") or "unseen" in path[:-1]:
            continue
        part = document
        for key in path[:-1]:
            part = part[key]
        place = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path).lstrip(".")
        if path[-1] == "interval":  # of the verdict: the scores hold it
            continue
        whole = part.pop(path[-1])
        with pytest.raises(InputError) as caught:
            check_document(document, "results.json")
        words = str(caught.value)
        if path[-1] not in ("format", "version"):
            assert f"{place} is missing" in words and words.startswith("results.json"), path
            part[path[-1]] = object()
            with pytest.raises(InputError, match="must be"):
                check_document(document)
        part[path[-1]] = whole
        tried += 1
    assert tried > 150


def test_other_documents_are_refused_with_a_remedy(document, comparison):
    for wrong in (None, [], {}, {"format": ["x"]}, {**document, "format": "skim"}):
        with pytest.raises(InputError, match="sparsegsvp results"):
            check_document(wrong)
    with pytest.raises(InputError, match=r"version 2.*run it again"):
        check_document({**document, "version": 2})
    with pytest.raises(InputError, match="n_samples must be a whole number"):
        check_document({**document, "data": {**document["data"], "n_samples": True}})
    check_document(comparison)
