r"""Batches: whether a panel may show where or when samples were measured, not their class.

Two questions are asked of every batch variable that is given.

1. Can the class be told from the batch alone? The best rule that knows nothing else predicts
   in batch b the class with the largest :math:`n_{bk} / n_k`; its balanced accuracy is

   .. math:: a = \frac{1}{K} \sum_b \max_k \frac{n_{bk}}{n_k}.

   It is computed on all samples, which flatters it the more the more batches there are, so the
   mean over shuffled batches stands beside it, and the p-value compares it with them. No folds
   are needed, so it means the same where folds keep batches whole.
2. Can the batch be told from the panel? A ridge regression of batch indicators on the panel's
   columns, of which the class means are subtracted, ranks held-out samples. Only samples of one
   class and one fold are compared, so that the class cannot stand in for the batch. Batches took
   no part in choosing the panels.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_consistent_length, column_or_1d

from .._typing import Float64Array, IntArray
from .._validate import derive_seed
from .draws import MAX_EXCEEDANCES, sequential_p_value
from .ties import BatchFromPanel, BatchTies, ClassFromBatch

_LABEL_DRAWS, _PANEL_DRAWS = 999, 199  # of the second, fewer where chance does as well
_RIDGE = 1.0  # per standardised column
_STREAM = 31  # keeps these seeds apart from those of folds and permutations


def batch_ties(
    name: str,
    values: NDArray[np.str_],
    matrix: Any,
    codes: IntArray,
    classes: Sequence[Any],
    groups: NDArray[Any] | None,
    panels: Sequence[IntArray | None],
    seed: int,
) -> BatchTies:
    """Ask both questions of one batch variable, of panels of the matrix's columns."""
    found, member = np.unique(values, return_inverse=True)
    unit = _units(member, groups)
    rng = np.random.default_rng(derive_seed(seed, _STREAM, 0))
    return BatchTies(
        name,
        tuple(str(batch) for batch in found),
        tuple(str(label) for label in classes),
        tuple(tuple(row) for row in _counts(member, codes).tolist()),
        class_from_batch(codes, member, unit, rng),
        batch_from_panel(matrix, codes, member, unit, panels, seed),
    )


# --------------------------------------------------------------------------------- the input


def check_batches(batch: Any, n_samples: int) -> dict[str, NDArray[np.str_]]:
    """Return batch variables by name, as text; refuse what is no batch.

    Parameters
    ----------
    batch : array-like, data frame, mapping from name to array-like, or None
        One value per sample; columns of a two-dimensional array are several variables.
    n_samples : int
        Number of samples.

    Examples
    --------
    >>> from sparsegsvp.metrics.batches import check_batches
    >>> check_batches([1, 1, 2, 2], 4)
    {'batch': array(['1', '1', '2', '2'], dtype='<U1')}
    """
    if batch is None:
        return {}
    if isinstance(batch, Mapping) or hasattr(batch, "columns"):
        given = {str(name): batch[name] for name in batch}
    elif np.ndim(batch) == 2:
        columns = np.asarray(batch, dtype=object).T
        given = {f"batch {j}": column for j, column in enumerate(columns, start=1)}
    else:
        given = {str(getattr(batch, "name", None) or "batch"): batch}
    found = {}
    for name, values in given.items():
        column = np.asarray(column_or_1d(np.asarray(values, dtype=object)))
        check_consistent_length(np.empty(n_samples), column)
        if any(map(_is_missing, column)):
            raise ValueError(f"batch {name!r} has missing values; name them, as 'unknown'.")
        texts = np.array([str(value) for value in column])
        n_batches = np.unique(texts).size
        if n_batches < 2:
            raise ValueError(f"batch {name!r} has one value; at least two are needed.")
        if n_batches == n_samples:
            raise ValueError(
                f"batch {name!r} has a different value for every sample; give what several share."
            )
        found[name] = texts
    return found


def _is_missing(value: Any) -> bool:
    # pandas' NA, which pandas need not be imported to know, is not even unequal to itself
    gone = value is None or type(value).__name__ in ("NAType", "NaTType")
    return gone or bool(value != value)


def _units(member: IntArray, groups: NDArray[Any] | None) -> IntArray:
    """Return what may be shuffled: groups that lie within batches, else the samples."""
    if groups is not None:
        unit = np.unique(groups, return_inverse=True)[1]
        pairs = np.unique(np.stack([unit, member]), axis=1).shape[1]
        if pairs == unit.max() + 1 > member.max() + 1:
            return np.asarray(unit)
    return np.arange(member.size)


def _shuffle(
    member: IntArray, unit: IntArray, stratum: IntArray, rng: np.random.Generator
) -> IntArray:
    """Exchange the batches of units of one stratum; units of several form one of their own."""
    _, first = np.unique(unit, return_index=True)
    own = stratum[first].copy()
    own[np.unique(unit[stratum != own[unit]])] = -1
    drawn = member[first].copy()
    for s in np.unique(own):
        inside = np.flatnonzero(own == s)
        drawn[inside] = drawn[rng.permutation(inside)]
    return np.asarray(drawn[unit])


def _counts(member: IntArray, codes: IntArray) -> IntArray:
    shape = int(member.max()) + 1, int(codes.max()) + 1
    return np.bincount(member * shape[1] + codes, minlength=shape[0] * shape[1]).reshape(shape)


# --------------------------------------------------------------------------- the questions


def class_from_batch(
    codes: IntArray, member: IntArray, unit: IntArray, rng: np.random.Generator
) -> ClassFromBatch:
    """Ask whether the class can be told from the batch alone."""
    per_class = np.bincount(codes)

    def accuracy(batches: IntArray) -> float:
        return float((_counts(batches, codes) / per_class).max(axis=1).sum() / per_class.size)

    one = np.zeros_like(codes)
    observed = accuracy(member)
    drawn = np.array([accuracy(_shuffle(member, unit, one, rng)) for _ in range(_LABEL_DRAWS)])
    expected = float(drawn.mean())
    p = (1 + int((drawn >= observed - 1e-12).sum())) / (_LABEL_DRAWS + 1)
    room = 1 - expected
    strength = None if room < 1e-9 else max(0.0, (observed - expected) / room)
    return ClassFromBatch(observed, expected, p, strength)


def batch_from_panel(
    matrix: Any,
    codes: IntArray,
    member: IntArray,
    unit: IntArray,
    panels: Sequence[IntArray | None],
    seed: int,
    n_draws: int = _PANEL_DRAWS,
) -> BatchFromPanel | None:
    """Ask whether the batch can be told from panels, among samples of one class."""
    folds = _folds_by_batch(codes, member, unit, seed)
    known = [panel for panel in panels if panel is not None and panel.size]
    if folds is None or not known:
        return None
    readers = [_Readers.of(matrix, codes, panel, folds) for panel in known]
    stratum = np.empty(codes.size, dtype=np.intp)
    for i, (_, test) in enumerate(folds):
        stratum[test] = i * (codes.max() + 1) + codes[test]
    observed = _areas(readers, folds, stratum, member)
    if np.isnan(observed).all():
        return None
    rng = np.random.default_rng(derive_seed(seed, _STREAM, 2))
    area = float(np.nanmean(observed))
    exceeds: list[bool] = []
    while len(exceeds) < n_draws and sum(exceeds) < MAX_EXCEEDANCES:
        drawn = _areas(readers, folds, stratum, _shuffle(member, unit, codes, rng))
        exceeds.append(bool(np.nanmean(drawn) >= area - 1e-12))
    by_batch = tuple(None if np.isnan(value) else float(value) for value in observed)
    return BatchFromPanel(area, by_batch, sequential_p_value(exceeds)[0])


def _folds_by_batch(
    codes: IntArray, member: IntArray, unit: IntArray, seed: int
) -> list[tuple[IntArray, IntArray]] | None:
    """Split the samples so that every fold has its share of each class in each batch."""
    cells = member * (codes.max() + 1) + codes
    n_units = np.unique(unit).size
    counts = _counts(member, codes)
    if (np.count_nonzero(counts, axis=0) < 2).all():
        return None  # no class is in two batches
    n_splits = min(5, n_units, int(counts.max()))
    if n_splits < 2:
        return None
    options: dict[str, Any] = {"shuffle": True, "random_state": derive_seed(seed, _STREAM, 1)}
    whole = n_units < codes.size
    splitter = (StratifiedGroupKFold if whole else StratifiedKFold)(n_splits, **options)
    with warnings.catch_warnings():
        # samples of a cell smaller than the number of folds are in some of them only
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(cells, cells, unit if whole else None))


@dataclass(frozen=True)
class _Readers:
    """Ridge regressions on a panel, one per fold, which read off indicators of batches.

    The scores of a fold's test samples are ``left @ (right @ indicators)``: no indicator is part
    of either, so that shuffled batches need no new fit.
    """

    left: list[Float64Array]
    right: list[Float64Array]

    @classmethod
    def of(
        cls, matrix: Any, codes: IntArray, panel: IntArray, folds: Sequence[tuple[IntArray, ...]]
    ) -> _Readers:
        """Prepare the regressions on columns less the training part's class means."""
        columns = matrix[:, np.sort(panel)]
        columns = columns.toarray() if hasattr(columns, "toarray") else np.asarray(columns, float)
        found = cls([], [])
        for train, test in folds:
            centred = np.empty_like(columns)
            for k in range(int(codes.max()) + 1):
                inside = train[codes[train] == k]
                known = ~np.isnan(columns[inside])
                total = np.where(known, columns[inside], 0.0).sum(axis=0)
                centred[codes == k] = columns[codes == k] - total / np.maximum(known.sum(axis=0), 1)
            centred = np.nan_to_num(centred)  # a missing value becomes its class's mean
            scale = centred[train].std(axis=0)
            centred /= np.where(scale > 0, scale, np.inf)
            rows, others = centred[train], centred[test]
            if rows.shape[1] <= rows.shape[0]:
                gram = rows.T @ rows + _RIDGE * np.eye(rows.shape[1])
                parts = others, np.linalg.solve(gram, rows.T)
            else:
                gram = rows @ rows.T + _RIDGE * np.eye(rows.shape[0])
                parts = others @ rows.T, np.linalg.inv(gram)
            found.left.append(parts[0])
            found.right.append(parts[1])
        return found


def _areas(
    readers: Sequence[_Readers],
    folds: Sequence[tuple[IntArray, ...]],
    stratum: IntArray,
    member: IntArray,
) -> Float64Array:
    """Return the area under the ROC curve of each batch, over pairs of samples of one stratum."""
    n_batches, n_strata = int(member.max()) + 1, int(stratum.max()) + 1
    indicators = np.eye(n_batches)[member]
    known = np.zeros((n_strata, n_batches), dtype=bool)  # a batch not learned of has no score
    for train, test in folds:
        known[np.unique(stratum[test])] = indicators[train].any(axis=0)
    size = np.bincount(stratum, minlength=n_strata)[:, None]
    own = np.bincount(stratum * n_batches + member, minlength=n_strata * n_batches)
    own = own.reshape(n_strata, n_batches)
    pairs = len(readers) * (known * own * (size - own)).sum(axis=0)
    won = np.zeros(n_batches)
    for reader in readers:
        scores = np.empty((member.size, n_batches))
        for (train, test), left, right in zip(folds, reader.left, reader.right):
            y = indicators[train]
            scores[test] = left @ (right @ (y - y.mean(axis=0)))
        for b in range(n_batches):
            mine = member == b
            ranks = _ranks(scores[:, b], stratum)
            total = np.bincount(stratum[mine], ranks[mine], minlength=n_strata)
            won[b] += (known[:, b] * (total - own[:, b] * (own[:, b] - 1) / 2)).sum()
    return np.divide(won, pairs, out=np.full(n_batches, np.nan), where=pairs > 0)


def _ranks(values: Float64Array, stratum: IntArray) -> Float64Array:
    """Return the ranks of values within strata from 0 on, ties sharing the mean of theirs."""
    order = np.lexsort((values, stratum))
    inner, ordered = stratum[order], values[order]
    first = np.searchsorted(inner, inner)  # where the stratum of each begins
    place = np.arange(values.size) - first
    new = np.r_[True, (np.diff(ordered) != 0) | (np.diff(inner) != 0)]
    run = np.cumsum(new) - 1
    mean = np.bincount(run, place) / np.bincount(run)
    ranks = np.empty(values.size)
    ranks[order] = mean[run]
    return ranks
