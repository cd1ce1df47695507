"""The matplotlib figures draw what the figure functions say, and touch nothing else."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix
from sklearn.calibration import CalibrationDisplay
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, GSVPSVMCV, plots
from sparsegsvp.evaluation import validate_external
from sparsegsvp.report import build_report, figures, marks


@pytest.fixture
def ax():
    return Figure().subplots()


def test_path_draws_every_feature_and_the_choice(fitted, ax):
    shown = figures.path(fitted.model, fitted.table.feature_names)
    assert plots.path(fitted.model, feature_names=fitted.table.feature_names, ax=ax) is ax
    *threads, choice = ax.lines
    assert len(threads) == len(shown["features"])
    np.testing.assert_array_equal(threads[0].get_ydata(), shown["weights"][0])
    assert choice.get_xdata()[0] == shown["steps"][shown["chosen"]]["rho"]


def test_weights_draws_the_curve(fitted, ax):
    shown = figures.weight_curves(fitted.model, fitted.table.feature_names)[1]
    plots.weights(fitted.model, plane=1, feature_names=fitted.table.feature_names, ax=ax)
    lengths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(lengths, shown["weights"])
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:-1] == [marks.cut(name) for name in shown["features"]]
    with pytest.raises(ValueError, match="plane=2 must be between 0 and 1"):
        plots.weights(fitted.model, plane=2, ax=ax)


def test_planes_draws_every_sample(fitted, ax):
    plots.planes(fitted.evaluation, ax=ax)
    drawn = sum(len(part.get_offsets()) for part in ax.collections[:2])
    assert drawn == 60
    with pytest.raises(ValueError, match="no distances"):
        plots.planes({**fitted.evaluation.to_dict(), "out_of_fold": []}, ax=ax)


def test_stability_draws_either_source(fitted, ax):
    plots.stability(fitted.stability, feature_names=fitted.table.feature_names, most=5, ax=ax)
    own = np.sort(fitted.stability.selection_frequencies_)[::-1][:5]
    own = own[own > 0]
    widths = [bar.get_width() for bar in ax.patches[-len(own) :]]
    np.testing.assert_array_equal(widths, own)
    other = Figure().subplots()
    plots.stability(fitted.evaluation, ax=other)
    assert other.get_yticklabels()[0].get_text() in fitted.table.feature_names


def law_of(n):
    return 0.9 - 1.2 * n**-0.5


@pytest.fixture
def curve():
    """A learning curve that looks ahead, as its to_dict() would give it."""

    def score(n):
        return {
            "value": law_of(n),
            "low": law_of(n) - 0.05,
            "high": law_of(n) + 0.05,
            "level": 0.95,
        }

    return {
        "n_samples": 100,
        "n_repeats": 10,
        "fractions": [0.3, 0.5, 0.8],
        "sizes": [30, 50, 80],
        "scores": [[law_of(n) for n in (30, 50, 80)]],
        "accuracy": [score(n) for n in (30, 50, 80)],
        "stability": [0.3, None, 0.6],
        "panel_sizes": [4.0, None, 4.2],
        "chance": 0.5,
        "law": {"a": 0.9, "b": 1.2, "c": 0.5},
        "forecast": [{"n_samples": n, "accuracy": score(n)} for n in (30, 80, 100, 200)],
        "reason": None,
        "sentence": "Twice the samples & more.",
    }


def test_the_learning_curve_goes_on_only_where_it_may(curve, ax):
    plots.learning_curve(curve, ax=ax)
    lines = {tuple(line.get_xdata()): line for line in ax.lines}
    assert (30, 80) in lines and (80, 100, 200) in lines and (30, 80) in lines
    np.testing.assert_allclose(lines[80, 100, 200].get_ydata(), [law_of(n) for n in (80, 100, 200)])
    assert ax.get_xlim()[1] > 200 and len(ax.patches) == 1  # the band
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["foretold", "stability", "accuracy"]
    chart = plots.learning_curve(
        {**curve, "forecast": [], "law": None, "stability": [None] * 3}, ax=False
    )
    assert chart.x.high < 120
    assert [mark.label for mark in chart.marks if mark.label] == ["accuracy"]
    assert "nan" not in chart.svg()


def test_the_page_shows_the_learning_curve(curve, results):
    assert 'id="plan"' not in build_report(results)
    results["learning"], results["figures"]["learning"] = curve, figures.learning(curve)
    page = build_report(results)
    section = page[page.index('id="plan"') : page.index("<footer>")]
    assert "Twice the samples &amp; more." in section and "the law 0.90" in section
    assert section.count("<svg") == 1 and "nan" not in section


def test_a_new_figure_only_when_none_is_given(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    plots.planes(fitted.evaluation, ax=Figure().subplots())
    with pytest.raises(ImportError, match=r"sparsegsvp\[report\]"):
        plots.planes(fitted.evaluation)


@pytest.mark.parametrize("draw", [plots.path, plots.weights])
def test_a_model_without_a_path_is_refused_in_words(fitted, draw):
    for model in (GSVPSVM(), GSVPSVMCV(), make_pipeline(StandardScaler(), GSVPSVM())):
        with pytest.raises(ValueError, match=r"draws a GSVPSVMCV after fit.*got a "):
            draw(model, ax=False)
    piped = make_pipeline(StandardScaler(), GSVPSVMCV(tau=1.0, n_deltas=4, cv=3))
    piped.fit(fitted.table.X, fitted.table.y)
    assert draw(piped, ax=False).svg() == draw(piped[-1], ax=False).svg()


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (plots.planes, "what nested_evaluate returns"),
        (plots.stability, "a fitted StabilitySelection"),
        (plots.accuracy, "what compare returns"),
    ],
)
def test_what_a_plot_cannot_draw_is_refused_in_words(draw, needed):
    for other in (GSVPSVM(), {"a": 1}):
        with pytest.raises(ValueError, match=f"plots.{draw.__name__} draws {needed}.* got a "):
            draw(other, ax=False)


def test_estimates_are_drawn_from_an_evaluation_or_a_model_and_data(fitted, ax):
    t, evaluation = fitted.table, fitted.evaluation
    assert plots.roc(evaluation, ax=ax) is ax
    shown = figures.roc(evaluation.to_dict())
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), [0.0, *shown["tpr"]])
    cohort = validate_external(fitted.model, t.X, t.y, pos_label=t.positive, prevalence=0.2)
    data = {"pos_label": t.positive}
    for draw, more in (
        (plots.roc, {}),
        (plots.calibration, {}),
        (plots.decision_curve, {"prevalence": 0.2}),
    ):
        mine = draw(fitted.model, t.X, t.y, **data, **more, ax=False).svg()
        assert mine == draw(cohort, ax=False).svg() == draw(cohort.to_dict(), ax=False).svg()
        assert t.positive in draw(evaluation, ax=False).description
    assert (
        "prevalence of 0.1"
        in plots.decision_curve(evaluation, prevalence=0.1, ax=False).description
    )
    bars = plots.permutation(evaluation, ax=Figure().subplots()).patches
    assert sum(bar.get_height() for bar in bars) == 39
    with pytest.raises(ValueError, match="no permutation test"):
        plots.permutation({**evaluation.to_dict(), "permutation": None}, ax=False)
    three = np.repeat([0, 1, 2], 20)
    model = GSVPSVM(n_features=3).fit(t.X, three)
    with pytest.raises(ValueError, match="no calibration curve: it takes two classes"):
        plots.calibration(model, t.X, three, ax=False)
    with pytest.raises(ValueError, match=r"plots.roc draws what .* with X and y, got a GSVPSVM"):
        plots.roc(model, ax=False)


def test_scikit_learns_displays_take_these_estimators(fitted):
    t = fitted.table
    given = {"ax": Figure().subplots(), "pos_label": t.positive}
    display = RocCurveDisplay.from_estimator(fitted.model, t.X, t.y, **given)
    assert display.roc_auc > 0.9
    given["ax"] = Figure().subplots()
    assert len(CalibrationDisplay.from_estimator(fitted.model, t.X, t.y, **given).prob_true)
    shown = ConfusionMatrixDisplay.from_estimator(fitted.model, t.X, t.y, ax=Figure().subplots())
    assert shown.confusion_matrix.sum() == 60


@pytest.mark.parametrize("kind", ["array", "frame", "sparse", "pipeline", "other selector"])
def test_a_panel_is_drawn_from_any_selector_and_table(fitted, kind):
    t, names = fitted.table, list(fitted.table.feature_names)
    X, model, given = t.X, fitted.model, {"feature_names": names}
    if kind == "frame":
        X, given = pd.DataFrame(t.X, columns=names, index=t.ids), {}
    elif kind == "sparse":
        X = csr_matrix(t.X)
    elif kind == "pipeline":
        model = make_pipeline(StandardScaler(), GSVPSVM(n_features=4)).fit(t.X, t.y)
    elif kind == "other selector":
        model = SelectKBest(k=4).fit(t.X, t.y)
    last = model[-1] if kind == "pipeline" else model
    panel = [names[j] for j in np.flatnonzero(last.get_support())]
    ax = Figure().subplots()
    assert plots.heatmap(model, X, t.y, evaluation=fitted.evaluation, ax=ax, **given) is ax
    assert sorted(label.get_text() for label in ax.get_yticklabels()) == sorted(
        marks.cut(name) for name in panel
    )
    heat = plots.heatmap(model, X, t.y, evaluation=fitted.evaluation, ax=False, **given)
    assert heat.table["sample"][0][0] == ("P" if kind == "frame" else "s")
    wrong = fitted.evaluation.out_of_fold(0)["predicted"] != fitted.evaluation.y
    assert heat.table["predicted wrongly"].count("yes") == wrong.sum()
    volcano = plots.volcano(model, X, t.y, pos_label="well", ax=Figure().subplots(), **given)
    assert volcano.get_xlabel().startswith("mean well − ill")
    shown = {text.get_text() for text in volcano.texts}
    assert shown & {marks.cut(name, 22) for name in panel}
    matrix = plots.correlations(model, X, t.y, stability=fitted.stability, ax=False, **given)
    assert set(panel) <= set(matrix.table["feature"])
    one = plots.boxes(model, X, t.y, feature=1, ax=Figure().subplots(), **given)
    assert one.get_title() == marks.cut(panel[1], 40)
    assert plots.boxes(model, X, t.y, feature="gene 20", ax=False, **given).title == "gene 20"


def test_a_panel_that_cannot_be_drawn_is_refused_in_words(fitted):
    t = fitted.table
    for draw in (plots.heatmap, plots.volcano, plots.boxes, plots.correlations):
        with pytest.raises(ValueError, match=rf"plots.{draw.__name__} draws the panel of a fitted"):
            draw(StandardScaler().fit(t.X), t.X, t.y, ax=False)
        with pytest.raises(ValueError, match=r"wants the table .* got the shape \(60, 4\)"):
            draw(fitted.model, t.X[:, :4], t.y, ax=False)
    for feature, said in ((99, "feature=99 must be a name"), ("gene x", "no feature 'gene x'")):
        with pytest.raises(ValueError, match=said):
            plots.boxes(fitted.model, t.X, t.y, feature=feature, ax=False)
    one = SelectKBest(k=1).fit(t.X, t.y)
    with pytest.raises(ValueError, match="two features at least"):
        plots.correlations(one, t.X, t.y, ax=False)
    with pytest.raises(ValueError, match="takes two classes"):
        plots.volcano(one, t.X, np.repeat([0, 1, 2], 20), ax=False)
