"""Pictures of features, and the threshold's numbers, against answers known by other means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import false_discovery_control, ttest_ind

from sparsegsvp.metrics import at_prevalence
from sparsegsvp.report import features, figures
from sparsegsvp.report.answers import addresses, answers, next_steps
from sparsegsvp.report.figures import SampleTable


@pytest.fixture(scope="module")
def table():
    """Sixty samples of two hundred features, a few of which differ."""
    rng = np.random.default_rng(4)
    codes = np.repeat([0, 1], [25, 35])
    X = rng.normal(size=(60, 200))
    X[:, :8] += 1.2 * codes[:, None]
    X[:, 9] = X[:, 0] + 0.1 * rng.normal(size=60)
    return X, codes, [f"gene {j}" for j in range(200)]


def test_a_volcano_is_welchs_test_adjusted_for_all_features(table):
    X, codes, names = table
    X = X.copy()
    X[3, 5] = np.nan
    X[:, 7] = 1.0  # never varies, so it is not tested
    found = features.volcano(SampleTable(X, codes, ["a", "b"], names, positive="b"), [0, 150])
    kept = [j for j in range(200) if j != 7]
    tests = [ttest_ind(*(X[codes == k, j] for k in (1, 0)), equal_var=False, nan_policy="omit")
             for j in kept]  # fmt: skip
    q = dict(zip([names[j] for j in kept], false_discovery_control([t.pvalue for t in tests])))
    np.testing.assert_allclose(found["q"], [q[name] for name in found["feature"]], rtol=1e-9)
    assert found["q"] == sorted(found["q"]) and found["n_total"] == 199
    assert found["n_below"] == sum(v <= 0.05 for v in q.values()) > 3
    at = found["feature"].index("gene 0")
    assert found["difference"][at] == pytest.approx(
        X[codes == 1, 0].mean() - X[codes == 0, 0].mean()
    )
    assert (found["higher_in"][at], found["contrast"]) == ("b", "b − a")
    assert [n for n, mine in zip(found["feature"], found["in_panel"]) if mine] == [
        "gene 0",
        "gene 150",
    ]
    turned = features.volcano(SampleTable(X, codes, ["a", "b"], names, positive="a"), [0])
    assert turned["difference"][at] == -found["difference"][at]
    sparse = features.volcano(
        SampleTable(csr_matrix(np.nan_to_num(X)), codes, ["a", "b"], names), [0]
    )
    assert len(sparse["feature"]) == len(found["feature"])
    assert features.volcano(SampleTable(X, codes, ["a", "b", "c"], names), [0]) is None
    assert features.volcano(SampleTable(np.ones((60, 4)), codes, ["a", "b"], names), []) is None


def test_unlike_columns_are_compared_in_standard_deviations(table):
    X, codes, names = table
    assert (
        features.volcano(SampleTable(X, codes, ["a", "b"], names), [])["unit"]
        == "units of the table"
    )
    unlike = X * 10.0 ** np.arange(-2, 2).repeat(50)
    other = features.volcano(SampleTable(unlike, codes, ["a", "b"], names), [])
    assert other["unit"] == "within-class standard deviations"
    at = other["feature"].index("gene 0")
    effect = features.effect_sizes(X[:, 0], codes, 2)[1]
    assert other["difference"][at] == pytest.approx(effect)


def test_a_volcano_of_many_features_stays_small_and_keeps_the_panel():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(40, 15_000)), np.repeat([0, 1], 20)
    panel = [7, 14_999]
    found = features.volcano(
        SampleTable(X, codes, ["a", "b"], [str(j) for j in range(15_000)]), panel
    )
    assert len(found["q"]) < 2500 and found["n_total"] == 15_000
    assert {n for n, mine in zip(found["feature"], found["in_panel"]) if mine} == {"7", "14999"}


def test_a_heatmap_holds_the_panels_values_and_marks_errors(fitted):
    t, model = fitted.table, fitted.model
    classes = [str(c) for c in model.classes_]
    codes = np.searchsorted(model.classes_, t.y)
    panel = np.flatnonzero(model.support_).tolist()
    evaluation = fitted.evaluation.to_dict()
    X = t.X.copy()
    X[4, panel[0]] = np.nan
    samples = SampleTable(X, codes, classes, t.feature_names, t.ids)
    found = features.heatmap(samples, panel, evaluation)
    assert sorted(found["name"]) == sorted(t.ids) and len(found["feature"]) == len(panel)
    rows = [int(name[1:]) for name in found["name"]]
    assert found["label"] == codes[rows].tolist()
    i = found["feature"].index(t.feature_names[panel[0]])
    x = X[:, panel[0]]
    z = ((x - np.nanmean(x)) / np.nanstd(x))[rows]
    gap = rows.index(4)
    assert found["values"][i][gap] is None
    np.testing.assert_allclose(
        [v for v in found["values"][i] if v is not None], np.delete(z, gap), atol=6e-4
    )
    out = fitted.evaluation.out_of_fold(0)
    assert found["wrong"] == (out["predicted"] != codes)[rows].tolist()
    one = classes.index(t.positive)
    np.testing.assert_allclose(found["probability"], out["proba"][rows, one])

    # neighbours are more alike than samples in the order of the table
    def steps(values):
        return np.abs(np.diff(np.nan_to_num(np.array(values, dtype=float)), axis=1)).mean()

    order = np.argsort(rows)
    assert steps(found["values"]) < 0.8 * steps(np.array(found["values"], dtype=float)[:, order])
    assert features.heatmap(samples, []) is None


def test_correlations_are_within_the_classes(table):
    X, codes, names = table
    substitute = {"feature": "gene 9", "index": 9, "correlation": 0.99, "frequency": 0.2}
    panel = [
        {"feature": "gene 0", "index": 0, "substitutes": [substitute]},
        {"feature": "gene 1", "index": 1, "substitutes": []},
    ]
    samples = SampleTable(X, codes, ["a", "b"], names)
    found = features.correlations(samples, panel)
    assert found["feature"] == ["gene 0", "gene 9", "gene 1"]
    assert found["stands_for"] == [None, "gene 0", None]
    centred = X.copy()
    for k in (0, 1):
        centred[codes == k] -= X[codes == k].mean(axis=0)
    expected = np.corrcoef(centred[:, [0, 9, 1]].T)
    np.testing.assert_allclose(found["values"], expected, atol=1e-4)
    assert features.correlations(samples, panel[1:]) is None


def test_a_threshold_says_what_the_first_repeat_would_have_called(fitted):
    evaluation = fitted.evaluation.to_dict()
    counts, first = evaluation["threshold_counts"], evaluation["out_of_fold"][0]
    one = evaluation["classes"].index(fitted.table.positive)
    y = np.array(evaluation["y"]) == one
    p = np.array(first["proba"])[:, one]
    own = figures.at_threshold(counts, 0.0, 0.3)
    called = np.array(first["predicted"]) == one  # the labels of the model
    assert own["threshold"] == pytest.approx(0.3)
    assert own["sensitivity"] == pytest.approx(called[y].mean())
    assert own["specificity"] == pytest.approx(1 - called[~y].mean())
    for evidence, prevalence in ((-1.3, 0.05), (0.4, 0.3), (30.0, 0.5)):
        at = figures.at_threshold(counts, evidence, prevalence)
        called = at_prevalence(p, prevalence) >= at["threshold"] * (1 - 1e-12)
        sensitivity, false = called[y].mean(), called[~y].mean()
        assert at["sensitivity"] == pytest.approx(sensitivity)
        assert at["specificity"] == pytest.approx(1 - false)
        if called.any():
            odds = at["threshold"] / (1 - at["threshold"])
            worth = prevalence * sensitivity - (1 - prevalence) * false * odds
            assert at["net_benefit"] == pytest.approx(worth)
            right = prevalence * sensitivity
            assert at["ppv"] == pytest.approx(right / (right + (1 - prevalence) * false))


@pytest.mark.parametrize(
    ("names", "kind", "first"),
    [
        (["TP53", "HLA-A", "age at visit"], "gene symbols", "gene=TP53"),
        (
            ["TP53", "HLA-A", "age"],
            "gene symbols",
            "www.genecards.org/cgi-bin/carddisp.pl?gene=TP53",
        ),
        (["mean radius", "g7"], None, ""),
        (["ENSG00000141510.17"], "Ensembl identifiers", "id/ENSG00000141510"),
        (["P04637", "A0A024R1R8"], "UniProt accessions", "uniprotkb/P04637"),
        (["<script>", "f1", "TP53"], None, ""),
    ],
)
def test_names_that_databases_know_get_an_address(names, kind, first):
    found = addresses(names)
    assert (found is None) == (kind is None)
    if found is not None:
        assert found[0] == kind and found[1][0].endswith(first)
        assert not any(part in line for line in found[1] for part in (" ", "<", ":"))


def test_the_next_step_depends_on_what_was_found(results):
    titles = [title for title, _ in next_steps(results)]
    assert not any("elsewhere" in title and "Try" in title for title in titles)  # there is a cohort
    results["test"] = None
    assert any("from elsewhere" in title for title, _ in next_steps(results))
    has = any(row["substitutes"] for row in results["panel"])
    assert has == any("substitutes" in title for title, _ in next_steps(results))
    results["verdict"]["level"] = "none"
    assert next_steps(results)[0][0].startswith("Do not follow up")
    which = answers(results)["which"]
    steady = [row["feature"] for row in results["panel"] if row["frequency"] >= 0.5]
    assert which.startswith(f"{len(steady)} of the {len(results['panel'])} are chosen")
    assert steady[0] in which and which.endswith("None of them is to be read as a marker.")
    results["notices"].append(
        {"code": "confounded", "severity": "serious", "title": "", "text": ""}
    )
    assert "batches" in next_steps(results)[1][0]
    results["verdict"]["level"] = "signal"
    results["notices"] += [{"code": code} for code in ("raw", "unstable")]
    titles = [title for title, _ in next_steps(results)]
    assert titles[1].startswith("Take logarithms") and "Do not single out one feature" in titles
