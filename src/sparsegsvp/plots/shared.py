"""What plots share: where they draw, and how they read what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.pipeline import last_step
from ..report.charts import Chart, matplotlib
from ..report.figures import SampleTable

Given = ParamSpec("Given")

# Passages that the docstrings of plots have in common: these refer to them as %(name)s.
_PASSAGES = {
    "drawn": """\
ax : matplotlib axes, None or False

    Returns
    -------
    matplotlib axes or Chart""",
    "example": """\
Examples
    --------
    >>> from sparsegsvp import GSVPSVM, GSVPSVMCV, StabilitySelection, nested_evaluate, plots
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)""",
}


def plot(make_chart: Callable[Given, Chart]) -> Callable[Given, Any]:
    """Make a plot of a function that makes a chart: its parameter ``ax`` says where to draw it."""

    @wraps(make_chart)
    def drawn(*args: Given.args, **kwargs: Given.kwargs) -> Any:
        ax: Any = kwargs.get("ax")
        if ax is None:
            matplotlib("pyplot")  # where it is missing, say so before anything is computed
        chart = make_chart(*args, **kwargs)
        return chart if ax is False else chart.draw(ax)

    drawn.__signature__ = signature(make_chart).replace(return_annotation=Any)  # type: ignore[attr-defined]
    for name, text in _PASSAGES.items():
        drawn.__doc__ = (drawn.__doc__ or "").replace(f"%({name})s", text)
    return drawn


def search_of(model: Any, plot: str, names: Sequence[str] | None) -> tuple[Any, Sequence[str]]:
    """The fitted GSVPSVMCV that a model is or ends in, and the names of the features."""
    last = last_step(model)
    if not hasattr(last, "path_"):
        raise ValueError(
            f"plots.{plot} draws a GSVPSVMCV after fit, which holds its path, or a pipeline that "
            f"ends in one, got a {type(model).__name__}."
        )
    return last, names_of(model, names)


def plain_of(found: Any, plot: str, key: str, needed: str) -> Mapping[str, Any]:
    """A result as a dictionary, which must hold the key that the plot reads."""
    if not isinstance(found, Mapping) and hasattr(found, "to_dict"):
        found = found.to_dict()
    if not isinstance(found, Mapping) or key not in found:
        kind = type(found).__name__
        raise ValueError(f"plots.{plot} draws {needed}, or its to_dict(), got a {kind}.")
    return found


def names_of(fitted: Any, given: Sequence[str] | None) -> Sequence[str]:
    """The names of the features: those given, those seen in fit, or column numbers."""
    if given is None:
        given = getattr(fitted, "feature_names_in_", None)
    if given is None:
        return [str(j) for j in range(fitted.n_features_in_)]
    if len(given) != fitted.n_features_in_:
        raise ValueError(
            f"feature_names has {len(given)} entries for {fitted.n_features_in_} features."
        )
    return [str(name) for name in given]


def panel_and_samples(
    selector: Any,
    X: Any,
    y: ArrayLike,
    names: Sequence[str] | None,
    plot: str,
    positive: Any = None,
) -> tuple[list[int], SampleTable]:
    """The panel of a fitted selector, and the samples of a table of any kind with its labels."""
    last = selector if hasattr(selector, "get_support") else last_step(selector)
    if not hasattr(last, "get_support") or not hasattr(selector, "n_features_in_"):
        raise ValueError(
            f"plots.{plot} draws the panel of a fitted selector with get_support(), such as "
            f"GSVPSVM, or a pipeline that ends in one, got a {type(selector).__name__}."
        )
    panel = np.flatnonzero(last.get_support()).tolist()
    names = names_of(selector, getattr(X, "columns", None) if names is None else names)
    ids = None
    if hasattr(X, "iloc"):
        ids, X = [str(name) for name in X.index], X.to_numpy()
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    known, codes = np.unique(np.asarray(y), return_inverse=True)
    if X.ndim != 2 or X.shape != (codes.size, len(names)):
        raise ValueError(
            f"plots.{plot} wants the table that the selector was fitted on: {codes.size} labels "
            f"and {len(names)} features, got the shape {X.shape}."
        )
    classes, positive = [str(label) for label in known], None if positive is None else str(positive)
    return panel, SampleTable(X, codes.astype(np.intp), classes, names, ids, positive)


def tones(samples: SampleTable) -> dict[str, int]:
    """The colour of each class."""
    return {name: k % 8 for k, name in enumerate(samples.classes)}
