"""The panel in numbers: every selected feature by itself, and groups beside classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..evaluation import Substitute, find_substitutes
from ..evaluation._substitutes import group_frequency
from . import figures as feature
from .schema import PanelFeature


def describe_panel(
    table: Any,
    final: Any,
    inner_X: Any,
    names: list[str],
    classes: list[str],
    codes: NDArray[np.intp],
    support: NDArray[np.intp],
    selections: NDArray[np.bool_] | None,
    stability: Any,
) -> list[PanelFeature]:
    """Describe each selected feature, the heaviest first."""
    k = len(classes)
    weights = np.array(final.coef_[:, support])
    if final.standardize and support.size:
        weights *= np.array([np.nanstd(feature.column(inner_X, int(j))) for j in support])
        norms = np.linalg.norm(weights, axis=1, keepdims=True)
        weights /= np.where(norms > 0.0, norms, 1.0)
    substitutes = _substitutes(table, codes, selections, stability)
    listing: list[PanelFeature] = []
    for rank, i in enumerate(np.argsort(-np.abs(weights).max(axis=0, initial=0.0), kind="stable")):
        j = int(support[i])
        values = feature.column(table.X, j)
        effects = feature.effect_sizes(values, codes, k)
        others = substitutes.get(j, ())
        boxes = [feature.box(values[codes == c], classes[c]) for c in range(k)]
        known = [abs(e) if e is not None and e > 0 else -1.0 for e in effects]
        listing.append(
            {
                "feature": names[j],
                "index": j,
                "rank": rank + 1,
                "weights": weights[:, i].tolist(),
                "coefficients": final.coef_[:, j].tolist(),
                "effects": effects,
                "higher_in": classes[int(np.argmax(known))] if max(known) > 0 else None,
                "auc": feature.single_auc(values, codes, k),
                "frequency": None if selections is None else float(selections[:, j].mean()),
                "group_frequency": None
                if selections is None
                else group_frequency(selections, j, others),
                "substitutes": [
                    {
                        "feature": names[s.feature],
                        "index": s.feature,
                        "correlation": s.correlation,
                        "frequency": s.frequency,
                    }
                    for s in others
                ],
                "boxes": [b for b in boxes if b is not None],
            }
        )
    return listing


def _substitutes(
    table: Any, codes: NDArray[np.intp], selections: NDArray[np.bool_] | None, stability: Any
) -> dict[int, tuple[Substitute, ...]]:
    if stability is not None:
        return dict(stability.substitutes_)
    return {} if selections is None else find_substitutes(table.X, codes, selections)


def group_association(codes: NDArray[np.intp], groups: ArrayLike) -> float | None:
    """Cramér's V of group and class, corrected for bias (Bergsma 2013).

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class codes.
    groups : array-like of shape (n,)

    Returns
    -------
    float or None
        Between 0 and 1; None where every sample is a group of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.report.panel import group_association
    >>> codes = np.repeat([0, 1], 20)
    >>> round(group_association(codes, np.repeat(["a", "b"], 20)), 6)
    1.0
    >>> group_association(codes, np.tile(["a", "b"], 20))
    0.0
    """
    _, member = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    n, k, r = codes.size, int(codes.max()) + 1, int(member.max()) + 1
    table = np.zeros((r, k))
    np.add.at(table, (member, codes), 1.0)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi2 = float((((table - expected) ** 2) / expected).sum() / n)
    phi2 = max(0.0, phi2 - (k - 1) * (r - 1) / (n - 1))
    room = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return None if room <= 1e-9 else float(min(1.0, np.sqrt(phi2 / room)))
