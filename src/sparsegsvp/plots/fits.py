"""Plots of a fit: its path, weights and planes, its panel in the data, and how steady that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from ..evaluation import find_substitutes
from ..report import drawings, features, figures, panel_charts, projections
from ..report.charts import Chart
from .shared import names_of, panel_and_samples, plain_of, plot, search_of, tones


@plot
def path(
    model: Any, *, feature_names: Sequence[str] | None = None, label: int = 8, ax: Any = None
) -> Chart:
    """Draw the weight of every feature along the path, the chosen step marked.

    Parameters
    ----------
    model : GSVPSVMCV
        Fitted; or a pipeline that ends in one, such as ``Selection.model``.
    feature_names : sequence of str, optional
    label : int, default=8
        How many of the chosen panel's heaviest features are named in the legend.
    %(drawn)s

    %(example)s
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(X, y)
    >>> plots.path(model, ax=False).description
    'weights along the path'
    >>> from matplotlib.figure import Figure
    >>> ax = plots.path(model, ax=Figure().subplots())
    >>> ax.get_xscale(), ax.get_ylabel()
    ('log', 'largest |weight|')
    """
    search, names = search_of(model, "path", feature_names)
    return drawings.path_weights(figures.path(search, names), by_penalty=True, label=label)


@plot
def weights(
    model: Any, *, plane: int = 0, feature_names: Sequence[str] | None = None, ax: Any = None
) -> Chart:
    """Draw the sorted weights of one plane with their elbow.

    Parameters
    ----------
    model : GSVPSVMCV
        Fitted; or a pipeline that ends in one.
    plane : int, default=0
        Which class's plane, by its position in ``classes_``.
    feature_names : sequence of str, optional
    %(drawn)s

    %(example)s
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(X, y)
    >>> plots.weights(model, plane=1, ax=False).title
    'plane of 1'
    """
    search, names = search_of(model, "weights", feature_names)
    curves = figures.weight_curves(search, names)
    if not 0 <= plane < len(curves):
        raise ValueError(f"plane={plane} must be between 0 and {len(curves) - 1}.")
    return drawings.weights_chart(curves[plane], plane % 8)


@plot
def planes(evaluation: Any, *, pair: tuple[int, int] = (0, 1), ax: Any = None) -> Chart:
    """Draw out-of-fold samples in the plane of their distances to two planes.

    Parameters
    ----------
    evaluation : EvaluationResult or its ``to_dict()``
        Of an estimator with planes, such as `GSVPSVMCV`.
    pair : (int, int), default=(0, 1)
        Classes whose planes span the picture.
    %(drawn)s

    %(example)s
    >>> model = GSVPSVM(n_features=2)
    >>> found = nested_evaluate(model, X, y, cv=3, n_repeats=1, n_permutations=0)
    >>> plots.planes(found, ax=False).x.title
    'distance to the plane of 0'
    """
    found = plain_of(evaluation, "planes", "out_of_fold", "what nested_evaluate returns")
    shown = projections.planes(found, pair=pair)
    if shown is None:
        raise ValueError(
            "the evaluation holds no distances to planes: evaluate GSVPSVM, GSVPSVMCV or a "
            "pipeline that ends in one."
        )
    return drawings.scatter_chart(shown, diagonal=True)


@plot
def stability(
    found: Any, *, feature_names: Sequence[str] | None = None, most: int = 25, ax: Any = None
) -> Chart:
    """Draw how often each feature is selected, most often first.

    Parameters
    ----------
    found : StabilitySelection or EvaluationResult
        A fitted selection, or a nested evaluation, whose panel is that of the final fit.
    feature_names : sequence of str, optional
    most : int, default=25
        Largest number of bars.
    %(drawn)s

    %(example)s
    >>> stable = StabilitySelection(GSVPSVM(n_features=2), n_resamples=4).fit(X, y)
    >>> plots.stability(stable, ax=False).x.title
    'share of refits that choose the feature'
    """
    if hasattr(found, "selection_frequencies_"):
        bars = figures.stability_bars(
            found.selection_frequencies_,
            names_of(found, feature_names),
            found.get_support(indices=True).tolist(),
            group_frequencies=found.group_frequencies_,
        )
        return drawings.stability_chart(bars[:most], float(found.threshold))
    if getattr(found, "selection_frequencies", None) is None:
        raise ValueError(
            "plots.stability draws a fitted StabilitySelection, or what nested_evaluate returns, "
            f"got a {type(found).__name__}."
        )
    names = found.feature_names if feature_names is None else feature_names
    names = [str(j) for j in range(found.n_features)] if names is None else names
    bars = figures.stability_bars(found.selection_frequencies, names, found.final_panel or ())
    return drawings.stability_chart(bars[:most])


# ---------------------------------------------------------------------- the panel in the data


@plot
def heatmap(
    selector: Any,
    X: Any,
    y: ArrayLike,
    *,
    evaluation: Any = None,
    feature_names: Sequence[str] | None = None,
    ax: Any = None,
) -> Chart:
    """Draw the panel's values over the samples, like beside like, with a bar for the classes.

    Parameters
    ----------
    selector : estimator with ``get_support``
        Fitted, such as `GSVPSVM`; or a pipeline that ends in one.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        The table it was fitted on.
    y : array-like of shape (n_samples,)
        Labels.
    evaluation : EvaluationResult or its ``to_dict()``, optional
        Of the same samples: marks those that fits without them predict wrongly.
    feature_names : sequence of str, optional
    %(drawn)s

    %(example)s
    >>> plots.heatmap(GSVPSVM(n_features=3).fit(X, y), X, y, ax=False).x.title
    'samples, like beside like'
    """
    panel, samples = panel_and_samples(selector, X, y, feature_names, "heatmap")
    found = None
    if evaluation is not None:
        found = plain_of(evaluation, "heatmap", "out_of_fold", "what nested_evaluate returns")
    shown = features.heatmap(samples, panel, found)
    if shown is None:
        raise ValueError("the selector has selected no feature.")
    return panel_charts.heatmap_chart(shown, tones(samples))


@plot
def volcano(
    selector: Any,
    X: Any,
    y: ArrayLike,
    *,
    pos_label: Any = None,
    feature_names: Sequence[str] | None = None,
    ax: Any = None,
) -> Chart:
    """Draw every feature's difference between two classes against its q-value, the panel named.

    Parameters
    ----------
    selector, X, y
        As for `heatmap`.
    pos_label : label, optional
        The class whose larger values are on the right, by default the last.
    feature_names : sequence of str, optional
    %(drawn)s

    %(example)s
    >>> plots.volcano(GSVPSVM(n_features=3).fit(X, y), X, y, ax=False).x.title
    'mean 1 − 0, in units of the table'
    """
    panel, samples = panel_and_samples(selector, X, y, feature_names, "volcano", pos_label)
    shown = features.volcano(samples, panel)
    if shown is None:
        raise ValueError("plots.volcano takes two classes and features that vary.")
    return panel_charts.volcano_chart(shown, tones(samples))


@plot
def boxes(
    selector: Any,
    X: Any,
    y: ArrayLike,
    *,
    feature: int | str = 0,
    feature_names: Sequence[str] | None = None,
    ax: Any = None,
) -> Chart:
    """Draw the values of one feature by class as box plots.

    Parameters
    ----------
    selector, X, y
        As for `heatmap`.
    feature : int or str, default=0
        The name of any feature, or a position in the panel.
    feature_names : sequence of str, optional
    %(drawn)s

    %(example)s
    >>> plots.boxes(GSVPSVM(n_features=3).fit(X, y), X, y, feature="7", ax=False).title
    '7'
    """
    panel, samples = panel_and_samples(selector, X, y, feature_names, "boxes")
    if isinstance(feature, str):
        if feature not in samples.names:
            raise ValueError(f"there is no feature {feature!r}.")
        at = list(samples.names).index(feature)
    elif 0 <= feature < len(panel):
        at = panel[feature]
    else:
        raise ValueError(f"feature={feature} must be a name, or below {len(panel)}.")
    found = features.boxes_by_class(features.column(samples.X, at), samples.codes, samples.classes)
    if not found:
        raise ValueError(f"all values of {samples.names[at]} are missing.")
    return panel_charts.boxes(samples.names[at], found, tones(samples))


@plot
def correlations(
    selector: Any,
    X: Any,
    y: ArrayLike,
    *,
    stability: Any = None,
    feature_names: Sequence[str] | None = None,
    ax: Any = None,
) -> Chart:
    """Draw the correlations of the panel within the classes, with its substitutes.

    Parameters
    ----------
    selector, X, y
        As for `heatmap`.
    stability : StabilitySelection, optional
        Fitted on the same table: adds the features that stand in for those of the panel.
    feature_names : sequence of str, optional
    %(drawn)s

    %(example)s
    >>> plots.correlations(GSVPSVM(n_features=3).fit(X, y), X, y, ax=False).description
    'correlations of the panel within the classes'
    """
    panel, samples = panel_and_samples(selector, X, y, feature_names, "correlations")
    found = {}
    if stability is not None:
        found = find_substitutes(samples.X, samples.codes, stability.selections_)
    rows = [
        {
            "index": j,
            "feature": samples.names[j],
            "substitutes": [{"index": other.feature} for other in found.get(j, ())],
        }
        for j in panel
    ]
    shown = features.correlations(samples, rows)
    if shown is None:
        raise ValueError("correlations take a panel of two features at least.")
    return panel_charts.correlations_chart(shown)
