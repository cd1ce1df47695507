"""Stability of feature selection: how far panels agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import BoolArray


def _indicator(selections: Any, n_features: int | None) -> BoolArray:
    """Return the (n_panels, n_features) indicator matrix of a collection of panels."""
    if isinstance(selections, np.ndarray) and selections.ndim == 2:
        if not np.isin(selections, (0, 1)).all() or n_features not in (None, selections.shape[1]):
            raise ValueError(
                "selections given as a matrix must hold booleans or 0/1, one row per panel and "
                "n_features columns; pass lists of feature indices with n_features otherwise."
            )
        return selections.astype(bool)
    if n_features is None:
        raise ValueError(
            "n_features is needed when panels are given as lists of feature indices: "
            "the index depends on how many features there were to choose from."
        )
    panels = [np.asarray(list(panel), dtype=np.intp) for panel in selections]
    if any(panel.size and not 0 <= panel.min() <= panel.max() < n_features for panel in panels):
        raise ValueError(f"feature indices must lie in 0..{n_features - 1}.")
    Z = np.zeros((len(panels), n_features), dtype=bool)
    for row, panel in zip(Z, panels):
        row[panel] = True
    return Z


def average_jaccard(selections: Sequence[Iterable[Any]] | NDArray[Any]) -> float:
    r"""Return the mean Jaccard similarity over all pairs of panels.

    .. math:: J = \frac{2}{N(N-1)} \sum_{i<j} \frac{|S_i \cap S_j|}{|S_i \cup S_j|}

    Two empty panels agree entirely, an empty and another one not at all. Unlike
    `nogueira_stability` it is not corrected for chance: large panels agree by accident.

    Parameters
    ----------
    selections : sequence of N collections, or boolean ndarray of shape (N, n_features)
        The panels, as collections of feature indices or names, or as an indicator matrix.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from sparsegsvp.metrics import average_jaccard
    >>> average_jaccard([{"TP53", "KRAS"}, {"TP53"}, {"TP53"}])
    0.666...
    """
    if isinstance(selections, np.ndarray) and selections.ndim == 2:
        selections = [np.flatnonzero(row) for row in _indicator(selections, None)]
    panels = [frozenset(panel) for panel in selections]
    if len(panels) < 2:
        raise ValueError("average_jaccard needs at least two panels to compare.")
    pairs = [(len(a & b), len(a | b)) for a, b in combinations(panels, 2)]
    return sum(shared / union if union else 1.0 for shared, union in pairs) / len(pairs)


def nogueira_stability(
    selections: Sequence[Iterable[int]] | NDArray[Any], n_features: int | None = None
) -> float:
    r"""Return the chance-corrected stability of feature selection.

    With :math:`p_f` the frequency of feature f over M panels of mean size
    :math:`\bar k` among d features,

    .. math::
        \hat\Phi = 1 - \frac{\frac1d \sum_f \frac{M}{M-1} p_f (1 - p_f)}
                            {\frac{\bar k}{d} (1 - \frac{\bar k}{d})}

    which is 1 for identical panels and has expectation 0 for random ones, of any sizes; ``nan``
    where every panel is empty, or full. The published interval supposes independent panels, which
    those of overlapping resamples are not.

    Parameters
    ----------
    selections : sequence of M collections of indices, or boolean ndarray (M, n_features)
        The panels.
    n_features : int, optional
        Number of features that could be chosen; needed when panels are index collections.

    References
    ----------
    Nogueira, Sechidis, Brown (2018), On the stability of feature selection algorithms,
    JMLR 18(174), 1-54, definition 4.

    Examples
    --------
    >>> from sparsegsvp.metrics import nogueira_stability
    >>> round(nogueira_stability([[0, 1], [0, 2], [0, 1]], n_features=20), 3)
    0.63
    """
    Z = _indicator(selections, n_features)
    M, d = Z.shape
    if M < 2:
        raise ValueError("nogueira_stability needs at least two panels to compare.")
    p, k = Z.mean(axis=0), float(Z.sum(axis=1).mean())
    chance = k / d * (1 - k / d)
    return 1 - float(np.mean(p * (1 - p))) * M / (M - 1) / chance if chance else float("nan")


def error_bound(mean_size: float, n_features: int, threshold: float, n_stable: int) -> float | None:
    r"""Bound the expected number of rarely chosen features among the stable ones.

    .. math:: E\,\bigl|\hat S \cap \{f : p_f \le q/m\}\bigr| \le \frac{q^2}{(2\pi - 1)\,m}

    for complementary pairs of half samples, with q the mean panel size, m the number of features,
    :math:`\pi` the threshold and :math:`p_f` the probability that f is chosen on half of the
    samples. Calling those features false needs exchangeable noise features. None where it says
    nothing: for thresholds of 0.5 or less, and unless it is below the number of stable features.

    References
    ----------
    Shah, Samworth (2013), Variable selection with error control: another look at stability
    selection, JRSS B 75(1), 55-80, equation 8.
    """
    bound = mean_size**2 / n_features / (2 * threshold - 1) if threshold > 0.5 else np.inf
    return bound if bound < n_stable else None
