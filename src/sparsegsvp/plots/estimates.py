"""Plots of how well something predicts: of an evaluation, a cohort, or a model and data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from ..evaluation import validate_external
from ..report import drawings, figures, panel_charts
from ..report.charts import Chart
from .shared import plain_of, plot


@plot
def roc(
    found: Any, X: Any = None, y: ArrayLike | None = None, *, pos_label: Any = None, ax: Any = None
) -> Chart:
    """Draw the ROC curve: of the outer folds, averaged, or of a model on other samples.

    Parameters
    ----------
    found : EvaluationResult, ExternalValidation or classifier
        What `nested_evaluate` or `sparsegsvp.evaluation.validate_external` returned, or its
        ``to_dict()``; or a fitted classifier, with `X` and `y`.
    X, y : array-like, optional
        Samples that the classifier was not fitted on, and their labels.
    pos_label : label, optional
        The positive class of a classifier's two, by default the last.
    %(drawn)s

    %(example)s
    >>> model = GSVPSVM(n_features=2).fit(X[:40], y[:40])
    >>> plots.roc(model, X[40:], y[40:], ax=False).description
    'ROC curve for 1'
    """
    return drawings.roc_chart(_curve("roc", found, X, y, pos_label))


@plot
def calibration(
    found: Any, X: Any = None, y: ArrayLike | None = None, *, pos_label: Any = None, ax: Any = None
) -> Chart:
    """Draw observed against predicted shares of the positive class, classes weighted equally.

    Parameters
    ----------
    found, X, y, pos_label
        As for `roc`.
    %(drawn)s

    %(example)s
    >>> model = GSVPSVM(n_features=2).fit(X[:40], y[:40])
    >>> plots.calibration(model, X[40:], y[40:], ax=False).y.title
    'observed share'
    """
    return drawings.calibration_chart(_curve("calibration", found, X, y, pos_label))


@plot
def decision_curve(
    found: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    pos_label: Any = None,
    prevalence: float | None = None,
    ax: Any = None,
) -> Chart:
    """Draw the net benefit of acting on the model, on everyone and on no one.

    Parameters
    ----------
    found, X, y, pos_label
        As for `roc`.
    prevalence : float, optional
        Share of the positive class that the curve is for; by default that of the samples. A
        validation that is given has its own.
    %(drawn)s

    %(example)s
    >>> model = GSVPSVM(n_features=2).fit(X[:40], y[:40])
    >>> plots.decision_curve(model, X[40:], y[40:], prevalence=0.1, ax=False).description
    'decision curve for 1 at a prevalence of 0.1'
    """
    return drawings.decision_chart(_curve("decision", found, X, y, pos_label, prevalence))


@plot
def permutation(evaluation: Any, *, ax: Any = None) -> Chart:
    """Draw the score of the true labels among those of shuffled ones.

    Parameters
    ----------
    evaluation : EvaluationResult or its ``to_dict()``
        With a permutation test.
    %(drawn)s

    %(example)s
    >>> model = GSVPSVM(n_features=2)
    >>> found = nested_evaluate(model, X, y, cv=3, n_repeats=1, n_permutations=9)
    >>> plots.permutation(found, ax=False).y.title
    'shuffled labellings'
    """
    found = plain_of(evaluation, "permutation", "out_of_fold", "what nested_evaluate returns")
    shown = figures.permutation_histogram(found)
    if shown is None:
        raise ValueError("the evaluation holds no permutation test: n_permutations was 0.")
    return drawings.permutation_chart(shown)


@plot
def accuracy(comparison: Any, *, ax: Any = None) -> Chart:
    """Draw accuracy against panel size, one line per method, with the Pareto front.

    Parameters
    ----------
    comparison : Comparison or its ``to_dict()``
        Result of `sparsegsvp.compare`.
    %(drawn)s

    Examples
    --------
    >>> from sparsegsvp import plots
    >>> curve = {"size": [2, 4], "score": [0.8, 0.9], "low": [0.7, 0.8], "high": [0.9, 1.0]}
    >>> front = [{"size": 2, "score": 0.8, "method": "a"}]
    >>> found = {"curves": {"methods": {"a": curve}, "front": front}}
    >>> [mark.label for mark in plots.accuracy(found, ax=False).marks if mark.label]
    ['a', 'Pareto front']
    """
    found = plain_of(comparison, "accuracy", "curves", "what compare returns")
    return panel_charts.accuracy_lines(figures.accuracy_curves(found))


@plot
def learning_curve(curve: Any, *, ax: Any = None) -> Chart:
    """Draw accuracy and stability against the number of samples, and the law beyond them.

    Parameters
    ----------
    curve : LearningCurve or its ``to_dict()``
        Result of `sparsegsvp.evaluation.learning_curve`, or ``Selection.learning``.
    %(drawn)s

    %(example)s
    >>> from sparsegsvp.evaluation import learning_curve
    >>> found = learning_curve(GSVPSVM(n_features=2), X, y, n_repeats=3)
    >>> plots.learning_curve(found, ax=False).x.title
    'samples'
    """
    found = plain_of(curve, "learning_curve", "forecast", "what learning_curve returns")
    return drawings.learning_chart(figures.learning(found))


def _curve(
    name: str,
    found: Any,
    X: Any,
    y: ArrayLike | None,
    pos_label: Any,
    prevalence: float | None = None,
) -> Mapping[str, Any]:
    """One of the curves that an evaluation, a validation, or a model and data have."""
    if X is not None and y is not None:
        found = validate_external(found, X, y, pos_label=pos_label, prevalence=prevalence)
    part = found.to_dict() if hasattr(found, "to_dict") else found
    if isinstance(part, Mapping) and "out_of_fold" in part:
        if name == "decision":
            shown = figures.decision(part, prevalence)
        else:
            shown = figures.roc(part) if name == "roc" else figures.calibration(part)
    elif isinstance(part, Mapping) and {"roc", "calibration", "decision", "line"} <= part.keys():
        shown = figures.cohort(part)[name]
    else:
        raise ValueError(
            f"plots.{'decision_curve' if name == 'decision' else name} draws what "
            "nested_evaluate or validate_external returns, or a fitted classifier with X and y, "
            f"got a {type(found).__name__}."
        )
    if shown is None:
        raise ValueError(f"there is no {name} curve: it takes two classes and scores for them.")
    return shown
