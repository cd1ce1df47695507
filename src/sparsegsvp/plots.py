"""Plots on matplotlib axes that scikit-learn does not have: axes in, axes out.

==========  ==============================================================================
`ladder`    score and stability against the number of features
`elbow`     sorted weights of a plane, and where their elbow cuts them
`history`   the course of the paper's iteration
==========  ==============================================================================

Without ``ax`` a new pyplot figure is made. scikit-learn's displays take these estimators too
(``RocCurveDisplay``, ``CalibrationDisplay``, ...); the page's figures are SVG, from
`sparsegsvp.report.draw_figures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._validate import need
from .estimators import find_elbow

__all__ = ["elbow", "history", "ladder"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return need("matplotlib.pyplot", "report").subplots(layout="constrained")[1]


def ladder(result: Any, *, score: str = "balanced_accuracy", ax: Any = None) -> Any:
    """Plot the score of exactly k features with its interval, and the stability, against k.

    Parameters
    ----------
    result : EvaluationResult, Selection or DataFrame
        Something with a ``ladder``, or the ladder itself.
    score : {"balanced_accuracy", "roc_auc"}, default="balanced_accuracy"
        The score.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsegsvp import plots
    >>> rungs = pd.DataFrame({"size": [1, 3], "balanced_accuracy": [0.7, 0.8],
    ...                       "low": [0.6, 0.7], "high": [0.8, 0.9], "stability": [0.9, 0.6]})
    >>> plots.ladder(rungs).get_xlabel()
    'features in the panel'
    """
    frame = getattr(result, "ladder", result)
    if frame is None or not len(frame):
        raise ValueError("there is no ladder: the estimator has no path of panels by size")
    ax, before = _axes(ax), "" if score == "balanced_accuracy" else f"{score}_"
    sizes, values = (np.asarray(frame[name], dtype=float) for name in ("size", score))
    low, high = (np.asarray(frame[f"{before}{name}"], dtype=float) for name in ("low", "high"))
    ends = np.maximum([values - low, high - values], 0.0)
    ax.errorbar(sizes, values, yerr=ends, marker="o", capsize=3, label=score.replace("_", " "))
    if "stability" in frame and np.isfinite(np.asarray(frame["stability"], dtype=float)).any():
        ax.plot(sizes, frame["stability"], marker="s", ls="--", label="stability")
    ax.set(xscale="log", xlabel="features in the panel", ylim=(None, 1.02))
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.minorticks_off()
    ax.legend(frameon=False)
    return ax


def elbow(
    values: ArrayLike, *, names: Sequence[str] | None = None, most: int = 30, ax: Any = None
) -> Any:
    """Plot the sizes of a plane's weights in descending order, and where the elbow cuts them.

    Parameters
    ----------
    values : array-like of shape (n_features,)
        The weights, such as ``PGDGSVPSVM.weights_[0]`` or ``LqGSVPSVM.planes_[0]``.
    names : sequence of str, optional
        Of the features; those up to the elbow are written out.
    most : int, default=30
        How many weights are shown at most; zeros are left out, but for one.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sparsegsvp import plots
    >>> plots.elbow([0.1, 0.9, 0.0, 0.8, 0.05]).get_title()
    'elbow after 3'
    """
    size = np.abs(np.asarray(values, dtype=float))
    if size.ndim != 1 or not size.size:
        raise ValueError("values must be the weights of one plane, a number a feature")
    ax, order = _axes(ax), np.argsort(-size, kind="stable")
    cut = find_elbow(size)
    shown = order[: min(most, int((size > 0.0).sum()) + 1)]
    places = np.arange(1, shown.size + 1)
    ax.plot(places, size[shown], marker="o")
    ax.set(xlabel="features by weight", ylabel="|weight|", title="no elbow")
    if cut is not None:
        ax.axvline(cut + 0.5, color="C1", ls="--")
        ax.set_title(f"elbow after {cut}")
        for place, f in zip(places[:cut], shown):
            text = "" if names is None else f" {names[f]}"
            ax.annotate(text, (place, size[f]), rotation=45, fontsize="small")
    return ax


def history(model: Any, *, part: str = "objective", ax: Any = None) -> Any:
    """Plot the course of the paper's iteration, a curve a class.

    Parameters
    ----------
    model : PGDGSVPSVM
        Fitted.
    part : {"objective", "fidelity", "penalty", "relative_error"}, default="objective"
        What is plotted.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sparsegsvp import PGDGSVPSVM, plots
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PGDGSVPSVM(q=0.1, delta=0.02, step_size=0.025, conventions="code").fit(X, y)
    >>> len(plots.history(model).lines)
    2
    """
    ax = _axes(ax)
    for label, course in zip(model.classes_, model.history_):
        values = np.asarray(course[part], dtype=float)
        first = 1 if part == "relative_error" else 0  # there is none at the start
        ax.plot(np.arange(first, first + values.size), values, label=f"plane of {label}")
    ax.set(xlabel="iteration", ylabel=part.replace("_", " "), yscale="log")
    ax.legend(frameon=False)
    return ax
