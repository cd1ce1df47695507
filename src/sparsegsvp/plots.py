"""Plots of fitted models and evaluations.

================  ======================================================
`path`            weights along the path of a `GSVPSVMCV`
`weights`         sorted weights of one plane, with the elbow
`planes`          out-of-fold samples in the plane of two distances
`stability`       how often each feature is selected
`accuracy`        accuracy against panel size of several methods
`learning_curve`  accuracy and stability against the number of samples
================  ======================================================

Every function takes ``ax`` and returns what it drew on: matplotlib axes to draw on, None (the
default) for those of a new pyplot figure, or False for the `sparsegsvp.report.charts.Chart`
itself, which shows itself in a notebook and writes itself to a file (``save("x.svg")``,
``"x.png"``, ``"x.pdf"``). matplotlib (``pip install "sparsegsvp[report]"``) is needed for axes
and for formats other than SVG. ``feature_names`` are by default those seen in fit, or column
numbers.

To add a plot: a function in `sparsegsvp.report.figures` that computes what it shows as plain
numbers, and one here that makes a `Chart` of them and returns ``_shown(chart, ax)``. Drawings that
the report's page shows too stand in `sparsegsvp.report.drawings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .estimators.pipeline import last_step
from .report import drawings, figures, projections
from .report.charts import Chart, matplotlib
from .report.comparison import accuracy_curves, accuracy_lines

__all__ = ["accuracy", "learning_curve", "path", "planes", "stability", "weights"]


def path(
    model: Any, *, feature_names: Sequence[str] | None = None, label: int = 8, ax: Any = None
) -> Any:
    """Draw the weight of every feature along the path, the chosen step marked.

    Parameters
    ----------
    model : GSVPSVMCV
        Fitted; or a pipeline that ends in one, such as ``Selection.model``.
    feature_names : sequence of str, optional
    label : int, default=8
        How many of the chosen panel's heaviest features are named in the legend.
    ax : matplotlib axes, None or False

    Returns
    -------
    matplotlib axes or Chart

    Examples
    --------
    >>> from sparsegsvp import GSVPSVMCV, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(X, y)
    >>> plots.path(model, ax=False).description
    'weights along the path'
    >>> from matplotlib.figure import Figure
    >>> ax = plots.path(model, ax=Figure().subplots())
    >>> ax.get_xscale(), ax.get_ylabel()
    ('log', 'largest |weight|')
    """
    _check(ax)
    search, names = _search(model, "path", feature_names)
    shown = figures.path(search, names)
    return _shown(drawings.path_weights(shown, by_penalty=True, label=label), ax)


def weights(
    model: Any, *, plane: int = 0, feature_names: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Draw the sorted weights of one plane with their elbow.

    Parameters
    ----------
    model : GSVPSVMCV
        Fitted; or a pipeline that ends in one.
    plane : int, default=0
        Which class's plane, by its position in ``classes_``.
    feature_names : sequence of str, optional
    ax : matplotlib axes, None or False

    Returns
    -------
    matplotlib axes or Chart

    Examples
    --------
    >>> from sparsegsvp import GSVPSVMCV, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(X, y)
    >>> plots.weights(model, plane=1, ax=False).title
    'plane of 1'
    """
    _check(ax)
    search, names = _search(model, "weights", feature_names)
    curves = figures.weight_curves(search, names)
    if not 0 <= plane < len(curves):
        raise ValueError(f"plane={plane} must be between 0 and {len(curves) - 1}.")
    return _shown(drawings.weights_chart(curves[plane], plane % 8), ax)


def planes(evaluation: Any, *, pair: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
    """Draw out-of-fold samples in the plane of their distances to two planes.

    Parameters
    ----------
    evaluation : EvaluationResult or its ``to_dict()``
        Of an estimator with planes, such as `GSVPSVMCV`.
    pair : (int, int), default=(0, 1)
        Classes whose planes span the picture.
    ax : matplotlib axes, None or False

    Returns
    -------
    matplotlib axes or Chart

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM, nested_evaluate, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> model = GSVPSVM(n_features=2)
    >>> found = nested_evaluate(model, X, y, cv=3, n_repeats=1, n_permutations=0)
    >>> plots.planes(found, ax=False).x.title
    'distance to the plane of 0'
    """
    _check(ax)
    found = _plain(evaluation, "planes", "out_of_fold", "what nested_evaluate returns")
    shown = projections.planes(found, pair=pair)
    if shown is None:
        raise ValueError(
            "the evaluation holds no distances to planes: evaluate GSVPSVM, GSVPSVMCV or a "
            "pipeline that ends in one."
        )
    return _shown(drawings.scatter_chart(shown, diagonal=True), ax)


def stability(
    found: Any, *, feature_names: Sequence[str] | None = None, most: int = 25, ax: Any = None
) -> Any:
    """Draw how often each feature is selected, most often first.

    Parameters
    ----------
    found : StabilitySelection or EvaluationResult
        A fitted selection, or a nested evaluation, whose panel is that of the final fit.
    feature_names : sequence of str, optional
    most : int, default=25
        Largest number of bars.
    ax : matplotlib axes, None or False

    Returns
    -------
    matplotlib axes or Chart

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM, StabilitySelection, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> stable = StabilitySelection(GSVPSVM(n_features=2), n_resamples=4).fit(X, y)
    >>> plots.stability(stable, ax=False).x.title
    'share of refits that choose the feature'
    """
    _check(ax)
    if hasattr(found, "selection_frequencies_"):
        bars = figures.stability_bars(
            found.selection_frequencies_,
            _names(found, feature_names),
            found.get_support(indices=True).tolist(),
            group_frequencies=found.group_frequencies_,
        )
        return _shown(drawings.stability_chart(bars[:most], float(found.threshold)), ax)
    if getattr(found, "selection_frequencies", None) is None:
        raise ValueError(
            "plots.stability draws a fitted StabilitySelection, or what nested_evaluate returns, "
            f"got {_short(found)}."
        )
    names = found.feature_names if feature_names is None else feature_names
    names = [str(j) for j in range(found.n_features)] if names is None else names
    bars = figures.stability_bars(found.selection_frequencies, names, found.final_panel or ())
    return _shown(drawings.stability_chart(bars[:most]), ax)


def accuracy(comparison: Any, *, ax: Any = None) -> Any:
    """Draw accuracy against panel size, one line per method, with the Pareto front.

    Parameters
    ----------
    comparison : Comparison or its ``to_dict()``
        Result of `sparsegsvp.compare`.
    ax : matplotlib axes, None or False

    Returns
    -------
    matplotlib axes or Chart

    Examples
    --------
    >>> from sparsegsvp import plots
    >>> curve = {"size": [2, 4], "score": [0.8, 0.9], "low": [0.7, 0.8], "high": [0.9, 1.0]}
    >>> front = [{"size": 2, "score": 0.8, "method": "a"}]
    >>> found = {"curves": {"methods": {"a": curve}, "front": front}}
    >>> [mark.label for mark in plots.accuracy(found, ax=False).marks if mark.label]
    ['a', 'Pareto front']
    """
    _check(ax)
    found = _plain(comparison, "accuracy", "curves", "what compare returns")
    return _shown(accuracy_lines(accuracy_curves(found)), ax)


def learning_curve(curve: Any, *, ax: Any = None) -> Any:
    """Draw accuracy and stability against the number of samples, and the law beyond them.

    Parameters
    ----------
    curve : LearningCurve or its ``to_dict()``
        Result of `sparsegsvp.evaluation.learning_curve`, or ``Selection.learning``.
    ax : matplotlib axes, None or False

    Returns
    -------
    matplotlib axes or Chart

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import learning_curve
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> found = learning_curve(GSVPSVM(n_features=2), X, y, n_repeats=3)
    >>> plots.learning_curve(found, ax=False).x.title
    'samples'
    """
    _check(ax)
    found = _plain(curve, "learning_curve", "forecast", "what learning_curve returns")
    return _shown(drawings.learning_chart(figures.learning(found)), ax)


def _check(ax: Any) -> None:
    """Say that matplotlib is missing before anything is computed."""
    if ax is None:
        matplotlib("pyplot")


def _shown(chart: Chart, ax: Any) -> Any:
    return chart if ax is False else chart.draw(ax)


def _search(model: Any, plot: str, names: Sequence[str] | None) -> tuple[Any, Sequence[str]]:
    """The fitted GSVPSVMCV that a model is or ends in, and the names of the features."""
    last = last_step(model)
    if not hasattr(last, "path_"):
        raise ValueError(
            f"plots.{plot} draws a GSVPSVMCV after fit, which holds its path, or a pipeline that "
            f"ends in one, got {_short(model)}."
        )
    return last, _names(model, names)


def _plain(found: Any, plot: str, key: str, needed: str) -> Mapping[str, Any]:
    """A result as a dictionary, which must hold the key that the plot reads."""
    if not isinstance(found, Mapping) and hasattr(found, "to_dict"):
        found = found.to_dict()
    if not isinstance(found, Mapping) or key not in found:
        raise ValueError(f"plots.{plot} draws {needed}, or its to_dict(), got {_short(found)}.")
    return found


def _short(found: Any) -> str:
    return f"a {type(found).__name__}"


def _names(fitted: Any, given: Sequence[str] | None) -> Sequence[str]:
    if given is None:
        given = getattr(fitted, "feature_names_in_", None)
    if given is None:
        return [str(j) for j in range(fitted.n_features_in_)]
    if len(given) != fitted.n_features_in_:
        raise ValueError(
            f"feature_names has {len(given)} entries for {fitted.n_features_in_} features."
        )
    return [str(name) for name in given]
