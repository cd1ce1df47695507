r"""Features that stand in for one another.

Twenty neighbouring peaks split the vote, so that none is selected often although one of
them nearly always is. A feature g is a substitute of f when their pooled within-class
correlation is at least 0.8 in size (the total correlation would link any two features that
discriminate) and g is selected more often where f is not (Fisher's exact test at 0.05). That is
a description of these resamples, not a proof that one can replace the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from .._typing import BoolArray, Float64Array, IntArray, Record
from ..linalg.matrix import dense

MIN_CORRELATION = 0.8
#: Largest p-value at which g is taken to be selected more often where f is not.
SUBSTITUTE_LEVEL = 0.05
_BLOCK = 512  # features whose correlations are computed at a time


@dataclass(frozen=True)
class Substitute(Record):
    """A feature that stands in for another.

    Attributes
    ----------
    feature : int
        Its column.
    correlation : float
        Pooled within-class correlation of the two.
    frequency : float
        How often it is selected.
    frequency_with, frequency_without : float
        How often it is selected where the other is, and where the other is not.
    """

    feature: int
    correlation: float
    frequency: float
    frequency_with: float
    frequency_without: float


def within_class_scores(X: Any, y: NDArray[Any], columns: IntArray) -> Float64Array:
    """Return columns centred per class and scaled to unit length; constant ones are zero.

    The products of these columns are the pooled within-class correlations.
    """
    C = np.array(dense(X[:, columns]), dtype=np.float64)
    missing = np.isnan(C)
    C[missing] = 0.0
    # a column constant within each class keeps only rounding errors, which must not correlate
    floor = 1e-12 * np.sqrt(C.shape[0]) * np.abs(C).max(axis=0)
    for label in np.unique(y):
        rows = y == label
        counts = np.maximum((~missing[rows]).sum(axis=0), 1)
        C[rows] -= C[rows].sum(axis=0) / counts
    C[missing] = 0.0
    norms = np.linalg.norm(C, axis=0)
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > floor)
    return C * scale


def find_substitutes(
    X: Any,
    y: NDArray[Any],
    selections: BoolArray,
    *,
    min_correlation: float = MIN_CORRELATION,
) -> dict[int, tuple[Substitute, ...]]:
    """Find the substitutes of every feature that was ever selected.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        The table.
    y : ndarray of shape (n_samples,)
        Labels.
    selections : boolean ndarray of shape (n_resamples, n_features)
        Which features each resample selected.
    min_correlation : float, default=0.8
        Smallest size of the pooled within-class correlation.

    Returns
    -------
    dict
        From a feature to its substitutes, most frequent first; features without any are
        left out.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.evaluation import find_substitutes
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 20)
    >>> x = rng.normal(size=40)
    >>> X = np.column_stack([x, x + 0.1 * rng.normal(size=40), rng.normal(size=40)])
    >>> Z = np.array([[1, 0, 1], [0, 1, 1]] * 4, dtype=bool)
    >>> [s.feature for s in find_substitutes(X, y, Z)[0]]
    [1]
    """
    used = np.flatnonzero(selections.any(axis=0))
    Z = selections[:, used].astype(np.float64)
    C = within_class_scores(X, y, used)
    times = Z.sum(axis=0)
    total = Z.shape[0]
    found: dict[int, tuple[Substitute, ...]] = {}
    for start in range(0, used.size, _BLOCK):
        block = slice(start, min(start + _BLOCK, used.size))
        correlation = C[:, block].T @ C
        together = Z[:, block].T @ Z
        with_f = times[block, None]
        share_with = together / with_f
        without_f = total - with_f
        share_without = np.divide(
            times - together, without_f, out=np.zeros_like(together), where=without_f > 0
        )
        hits = (np.abs(correlation) >= min_correlation) & (share_without > share_with)
        f, g = np.nonzero(hits)
        # Fisher: how rarely would both be selected together, if the one did not matter to the other
        rarely = hypergeom.cdf(together[f, g], total, times[block][f], times[g])
        hits[f, g] = rarely <= SUBSTITUTE_LEVEL + 1e-9  # 1 in 20 is at the level
        for i in np.flatnonzero(hits.any(axis=1)):
            others = np.flatnonzero(hits[i])
            others = others[np.lexsort((others, -times[others]))]
            found[int(used[start + i])] = tuple(
                Substitute(
                    int(used[g]),
                    float(correlation[i, g]),
                    float(times[g] / total),
                    float(share_with[i, g]),
                    float(share_without[i, g]),
                )
                for g in others
            )
    return found


def group_frequency(
    selections: BoolArray, feature: int, substitutes: Sequence[Substitute]
) -> float:
    """Return how often a feature or any of its substitutes was selected."""
    columns = [feature, *(s.feature for s in substitutes)]
    return float(selections[:, columns].any(axis=1).mean())
