"""Plots of a fit: its path, weights and planes, and how often features are selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..report import drawings, figures, projections
from ..report.charts import Chart
from .shared import kind_of, names_of, plain_of, plot, search_of


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
    search, names = search_of(model, "path", feature_names)
    shown = figures.path(search, names)
    return drawings.path_weights(shown, by_penalty=True, label=label)


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

    Examples
    --------
    >>> from sparsegsvp import GSVPSVMCV, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
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

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM, StabilitySelection, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
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
            f"got {kind_of(found)}."
        )
    names = found.feature_names if feature_names is None else feature_names
    names = [str(j) for j in range(found.n_features)] if names is None else names
    bars = figures.stability_bars(found.selection_frequencies, names, found.final_panel or ())
    return drawings.stability_chart(bars[:most])
