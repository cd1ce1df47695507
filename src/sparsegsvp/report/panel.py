"""The panel, feature by feature: weight, effect, values, how often it is chosen again."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.pipeline import last_step
from ..evaluation import find_substitutes
from ..evaluation.substitutes import group_frequency
from . import features

Part = dict[str, Any]


def classes_of(table: Any, model: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the classes, and the code of each sample."""
    known = last_step(model).classes_
    codes = np.searchsorted(known, np.asarray(table.y)).astype(np.intp)
    return [str(c) for c in known.tolist()], codes


def describe_panel(table: Any, model: Any) -> list[Part]:
    """Describe each selected feature by weight, effect and values, the heaviest first.

    How often it is chosen again, and what stands in for it, is added by `summarize`.

    Parameters
    ----------
    table : object
        As for `summarize`.
    model : GSVPSVMCV or Pipeline that ends in one

    Returns
    -------
    list of dict
        Each a ``Feature`` of `sparsegsvp.report.schema.DOCUMENT`.
    """
    final = last_step(model)
    classes, codes = classes_of(table, model)
    support = np.flatnonzero(final.support_)
    inner_X = _seen_by_the_planes(model, table.X)
    # a plane has the other classes on its positive side: turned round, a weight is positive
    # where larger values speak for the class
    weights = -np.array(final.coef_[:, support])
    if final.standardize and support.size:
        weights *= np.array([np.nanstd(features.column(inner_X, int(j))) for j in support])
        norms = np.linalg.norm(weights, axis=1, keepdims=True)
        weights /= np.where(norms > 0.0, norms, 1.0)
    listing = []
    for rank, i in enumerate(np.argsort(-np.abs(weights).max(axis=0, initial=0.0), kind="stable")):
        j = int(support[i])
        values = features.column(table.X, j)
        effects = features.effect_sizes(values, codes, len(classes))
        boxes = [features.box(values[codes == k], name) for k, name in enumerate(classes)]
        above = [-1.0 if effect is None else effect for effect in effects]
        listing.append(
            {
                "feature": str(table.feature_names[j]),
                "index": j,
                "rank": rank + 1,
                "weights": weights[:, i].tolist(),
                "coefficients": final.coef_[:, j].tolist(),
                "effects": effects,
                "higher_in": classes[int(np.argmax(above))] if max(above) > 0 else None,
                "auc": features.single_auc(values, codes, len(classes)),
                "frequency": None,
                "group_frequency": None,
                "substitutes": [],
                "boxes": [found for found in boxes if found is not None],
            }
        )
    return listing


def _seen_by_the_planes(model: Any, X: Any) -> Any:
    """Return the table as the last step of a pipeline saw it."""
    if not hasattr(model, "steps") or len(model.steps) == 1:
        return X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a model that knows names is given none
        inner = model[:-1].transform(X)
    if inner.shape[1] != X.shape[1]:
        raise ValueError(
            "the steps before the estimator must keep the columns, but they turn "
            f"{X.shape[1]} into {inner.shape[1]}."
        )
    return inner


def with_frequencies(
    panel: list[Part],
    table: Any,
    codes: NDArray[np.intp],
    selections: NDArray[np.bool_] | None,
    stability: Any,
) -> list[Part]:
    """Add how often refits chose each feature, and which others stand in for it."""
    if selections is None:
        return panel
    if stability is None:
        substitutes = find_substitutes(table.X, codes, selections)
    else:
        substitutes = stability.substitutes_
    rows = []
    for row in panel:
        others = substitutes.get(row["index"], ())
        added = {
            "frequency": float(selections[:, row["index"]].mean()),
            "group_frequency": group_frequency(selections, row["index"], others),
            "substitutes": [
                {
                    "feature": str(table.feature_names[other.feature]),
                    "index": other.feature,
                    "correlation": other.correlation,
                    "frequency": other.frequency,
                }
                for other in others
            ],
        }
        rows.append({**row, **added})
    return rows
