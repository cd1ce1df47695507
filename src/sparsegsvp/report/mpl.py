"""The figures with matplotlib: axes in, axes out.

What each shows is computed in `figures` and `projections`; here it is only drawn. Without
``ax`` a new pyplot figure is opened, otherwise pyplot is not touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import figures, projections
from .schema import StabilityBar

# Methods beyond which intervals would hide each other.
_MAX_INTERVALS = 6
_LINES = ("-", "--", "-.")
_COLORS = ("#2a66ac", "#cf5f16", "#23805a", "#86549c", "#a47a00", "#bb3367", "#4a7f9b", "#6b6b6b")
_MARKERS = ("o", "D", "^", "s", "v", "P")
_ACCENT, _WARM, _QUIET = "#0c6a61", "#b4540a", "#9aa3ab"


def path(
    model: Any, *, feature_names: Sequence[str] | None = None, label: int = 8, ax: Any = None
) -> Any:
    """Draw the weight of every feature along the path, the chosen step marked.

    Parameters
    ----------
    model : GSVPSVMCV
        Fitted.
    feature_names : sequence of str, optional
        By default those seen in fit, or column numbers.
    label : int, default=8
        How many of the chosen panel's heaviest features are named in the legend.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sparsegsvp import GSVPSVMCV, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(data.X, data.y)
    >>> ax = plots.path(model, ax=Figure().subplots())
    >>> ax.get_xscale(), ax.get_ylabel()
    ('log', 'largest |weight|')
    """
    ax = _axes(ax)
    shown = figures.path(model, _names(model, feature_names))
    steps, table = shown["steps"], np.asarray(shown["weights"])
    rho = [step["rho"] for step in steps]
    panel = steps[shown["chosen"]]["panel"]
    named = sorted(panel, key=lambda f: -table[f, shown["chosen"]])[:label]
    for f, row in enumerate(table):
        style = {"color": _QUIET, "lw": 0.8, "alpha": 0.6, "zorder": 1}
        if f in panel:
            style = {"color": _ACCENT, "lw": 1.4, "alpha": 0.8, "zorder": 2}
        if f in named:
            style |= {"color": f"C{named.index(f)}", "label": shown["features"][f]}
        ax.plot(rho, row, **style)
    ax.axvline(rho[shown["chosen"]], color=_WARM, ls="--", lw=1.2)
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set(
        xlabel="penalty, as a share of its largest value", ylabel="largest |weight|", ylim=(0, None)
    )
    if named:
        ax.legend(frameon=False, fontsize="small")
    return _finish(ax)


def weights(
    model: Any, *, plane: int = 0, feature_names: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Draw the sorted weights of one plane with their elbow.

    Parameters
    ----------
    model : GSVPSVMCV
        Fitted.
    plane : int, default=0
        Which class's plane, by its position in ``classes_``.
    feature_names : sequence of str, optional
        By default those seen in fit, or column numbers.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sparsegsvp import GSVPSVMCV, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(data.X, data.y)
    >>> plots.weights(model, plane=1, ax=Figure().subplots()).get_title()
    'plane of 1'
    """
    ax = _axes(ax)
    curves = figures.weight_curves(model, _names(model, feature_names))
    if not 0 <= plane < len(curves):
        raise ValueError(f"plane={plane} must be between 0 and {len(curves) - 1}.")
    shown = curves[plane]
    values, elbow = shown["weights"], shown["elbow"]
    kept = len(values) if elbow is None else elbow
    color = _COLORS[plane % len(_COLORS)]
    ax.bar(
        range(1, len(values) + 1),
        values,
        color=[color if i < kept else _QUIET for i in range(len(values))],
    )
    if elbow is not None:
        ax.axvline(elbow + 0.5, color=_WARM, lw=1.5)
        ax.annotate(
            f"elbow after {elbow}", (elbow + 0.5, 1.0), (5, -12), fontsize="small",
            xycoords=("data", "axes fraction"), textcoords="offset points",
        )  # fmt: skip
    if len(shown["features"]) <= 20:
        ticks = range(1, len(shown["features"]) + 1)
        ax.set_xticks(ticks, shown["features"], rotation=60, ha="right", fontsize="small")
    ax.set(xlabel="features, heaviest first", ylabel="|weight|", title=f"plane of {shown['label']}")
    return _finish(ax)


def planes(evaluation: Any, *, pair: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
    """Draw out-of-fold samples in the plane of their distances to two planes.

    Parameters
    ----------
    evaluation : EvaluationResult or its ``to_dict()``
        Of an estimator with planes, such as `GSVPSVMCV`.
    pair : (int, int), default=(0, 1)
        Classes whose planes span the picture.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sparsegsvp import GSVPSVM, nested_evaluate, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> found = nested_evaluate(
    ...     GSVPSVM(n_features=2), data.X, data.y, cv=3, n_repeats=1, n_permutations=0
    ... )
    >>> plots.planes(found, ax=Figure().subplots()).get_xlabel()
    'distance to the plane of 0'
    """
    found = evaluation if isinstance(evaluation, Mapping) else evaluation.to_dict()
    shown = projections.planes(found, pair=pair)
    if shown is None:
        raise ValueError(
            "the evaluation holds no distances to planes: evaluate GSVPSVM, GSVPSVMCV or a "
            "pipeline that ends in one."
        )
    ax = _axes(ax)
    x, y = np.asarray(shown["x"]), np.asarray(shown["y"])
    labels, wrong = np.asarray(shown["label"]), np.asarray(shown["wrong"])
    for k, name in enumerate(shown["classes"]):
        mine = labels == k
        style = {"color": _COLORS[k % len(_COLORS)], "marker": _MARKERS[k % len(_MARKERS)]}
        ax.scatter(x[mine], y[mine], s=22, alpha=0.75, linewidths=0, label=name, **style)
    if wrong.any():
        ax.scatter(
            x[wrong], y[wrong], s=90, facecolors="none", edgecolors="black", linewidths=0.9,
            label="predicted wrongly",
        )  # fmt: skip
    ax.axline((0, 0), slope=1, color=_QUIET, ls="--", lw=1)
    ax.set(xlabel=shown["x_title"], ylabel=shown["y_title"])
    ax.legend(frameon=False, fontsize="small")
    return _finish(ax)


def stability(
    found: Any, *, feature_names: Sequence[str] | None = None, most: int = 25, ax: Any = None
) -> Any:
    """Draw how often each feature is selected, most often first.

    Parameters
    ----------
    found : StabilitySelection or EvaluationResult
        A fitted selection, or a nested evaluation, whose panel is that of the final fit.
    feature_names : sequence of str, optional
        By default those the object knows, or column numbers.
    most : int, default=25
        Largest number of bars.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sparsegsvp import GSVPSVM, StabilitySelection, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> stable = StabilitySelection(GSVPSVM(n_features=2), n_resamples=4).fit(data.X, data.y)
    >>> plots.stability(stable, ax=Figure().subplots()).get_xlabel()
    'share of refits that choose the feature'
    """
    ax = _axes(ax)
    bars, threshold = _bars(found, feature_names)
    bars = bars[:most]
    at = np.arange(len(bars))
    colors = [_ACCENT if bar["in_panel"] else _QUIET for bar in bars]
    groups = [bar["group_frequency"] for bar in bars]
    if any(group is not None for group in groups):
        ax.barh(at, [group or 0.0 for group in groups], color=colors, alpha=0.3)
    ax.barh(at, [bar["frequency"] for bar in bars], color=colors)
    if threshold is not None:
        ax.axvline(threshold, color=_WARM, lw=1.5)
    ax.set_yticks(at, [bar["feature"] for bar in bars])
    ax.invert_yaxis()
    ax.set(xlabel="share of refits that choose the feature", xlim=(0, 1))
    return _finish(ax)


def accuracy(comparison: Any, *, ax: Any = None) -> Any:
    """Draw accuracy against panel size, one line per method, with the Pareto front.

    Parameters
    ----------
    comparison : Comparison or its ``to_dict()``
        Result of `sparsegsvp.compare`.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sparsegsvp import plots
    >>> found = {"curves": {
    ...     "methods": {"a": {"size": [2, 4], "score": [0.8, 0.9], "low": [0.7, 0.8],
    ...                       "high": [0.9, 1.0], "on_front": [True, True]}},
    ...     "front": [{"size": 2, "score": 0.8, "method": "a"},
    ...               {"size": 4, "score": 0.9, "method": "a"}]}}
    >>> ax = plots.accuracy(found, ax=Figure().subplots())
    >>> [line.get_label() for line in ax.lines][-1]
    'Pareto front'
    """
    ax = _axes(ax)
    shown = figures.accuracy_curves(comparison)
    curves = shown["methods"]
    sizes = sorted({size for curve in curves.values() for size in curve["size"]})
    for i, (name, curve) in enumerate(curves.items()):
        # a small shift keeps intervals of different methods apart; of many only lines are drawn
        few = len(curves) <= _MAX_INTERVALS
        shift = 1.0 + 0.02 * (i - (len(curves) - 1) / 2) if few else 1.0
        score = np.asarray(curve["score"])
        spread = [score - np.asarray(curve["low"]), np.asarray(curve["high"]) - score]
        style = {"color": f"C{i % 10}", "marker": _MARKERS[i % len(_MARKERS)], "ms": 4}
        ax.errorbar(
            np.asarray(curve["size"]) * shift, score, np.clip(spread, 0.0, None) if few else None,
            lw=1.2, elinewidth=0.7, alpha=0.85, label=name, ls=_LINES[i // 10 % len(_LINES)],
            **style,
        )  # fmt: skip
    front = shown["front"]
    ax.plot(
        [point["size"] for point in front], [point["score"] for point in front],
        color="black", lw=1.6, ls=":", drawstyle="steps-post", label="Pareto front",
    )  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.set(xlabel="features in the panel", ylabel="balanced accuracy")
    ax.legend(frameon=False, fontsize="small", ncols=1 if len(curves) <= _MAX_INTERVALS else 2)
    return _finish(ax)


# ------------------------------------------------------------------------------- helpers


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "sparsegsvp[report]"') from error
    return plt.subplots(layout="constrained")[1]


def _finish(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


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


def _bars(found: Any, given: Sequence[str] | None) -> tuple[list[StabilityBar], float | None]:
    if hasattr(found, "selection_frequencies_"):
        bars = figures.stability_bars(
            found.selection_frequencies_,
            _names(found, given),
            found.get_support(indices=True).tolist(),
            group_frequencies=found.group_frequencies_,
        )
        return bars, float(found.threshold)
    frequencies = getattr(found, "selection_frequencies", None)
    if frequencies is None:
        raise ValueError("the object holds no selection frequencies.")
    names = given if given is not None else found.feature_names
    if names is None:
        names = [str(j) for j in range(found.n_features)]
    return figures.stability_bars(frequencies, names, found.final_panel or ()), None
