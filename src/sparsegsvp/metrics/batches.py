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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_consistent_length, column_or_1d

from .._notices import Notice
from .._typing import Float64Array, IntArray
from .._validate import derive_seed
from .scores import MAX_EXCEEDANCES, sequential_p_value

_LABEL_DRAWS, _PANEL_DRAWS = 999, 199  # of the second, fewer where chance does as well
_RIDGE = 1.0  # per standardised column
_STREAM = 31  # keeps these seeds apart from those of folds and permutations
# Conventions for readers, not tests: the share of the way from chance to certainty at which
# class and batch hang closely together, and the area at which a panel shows the batch.
_CLOSELY, _SHOWS = 0.5, 0.7

Regressions = list[tuple[Float64Array, Float64Array]]  # of one panel: left and right by fold


@dataclass(frozen=True)
class ClassFromBatch:
    """How well the class is told from the batch alone.

    Attributes
    ----------
    accuracy : float
        Balanced accuracy of the best rule that knows the batch only, on all samples.
    shuffled : float
        The mean of the same where batches are shuffled: what chance gives with these batches.
    p_value : float
        Share of the shuffled batches that do as well.
    strength : float or None
        ``(accuracy - shuffled) / (1 - shuffled)``: 0 is chance, 1 complete; None where chance
        gives 1, as with batches of one sample each.
    """

    accuracy: float
    shuffled: float
    p_value: float
    strength: float | None


@dataclass(frozen=True)
class BatchFromPanel:
    """How well the batch is told from the panel, among samples of one class.

    Attributes
    ----------
    auc : float
        Probability that a held-out sample of a batch ranks above one of the same class from
        another batch, the mean over the batches; 0.5 is chance.
    by_batch : tuple of (float or None)
        The same for each batch; None for one that shares no class with another.
    p_value : float
        Share of batches shuffled within the classes that do as well.
    """

    auc: float
    by_batch: tuple[float | None, ...]
    p_value: float


@dataclass(frozen=True, repr=False)
class BatchTies:
    """What one batch variable has to do with the labels and with a panel.

    Attributes
    ----------
    name : str
        Name of the variable.
    batches, classes : tuple of str
        Its values, and the classes.
    counts : tuple of tuple of int
        Samples of each batch (rows) and class (columns).
    labels : ClassFromBatch
        Can the class be told from the batch alone?
    panel : BatchFromPanel or None
        Can the batch be told from the panel? None where that cannot be asked: every batch has
        a class for itself, or the procedure does not say which features it uses.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 50, 2, effect=2.0, random_state=0, return_X_y=True)
    >>> plate = np.tile(["p1", "p2", "p3"], 20)
    >>> X[plate == "p3"] += 3  # shifted as a whole
    >>> ties = GSVPSVM(n_features=3).fit(X, y, batch={"plate": plate}).batch_audit_["plate"]
    >>> ties.confounded, ties.shown
    (False, True)
    """

    name: str
    batches: tuple[str, ...]
    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    labels: ClassFromBatch
    panel: BatchFromPanel | None

    @property
    def confounded(self) -> bool:
        """Whether class and batch hang together more than shuffled ones do."""
        return self.labels.p_value <= 0.05 and (self.labels.strength or 0.0) > 0

    @property
    def complete(self) -> bool:
        """Whether every batch has samples of one class only."""
        return all(sum(n > 0 for n in row) == 1 for row in self.counts)

    @property
    def shown(self) -> bool:
        """Whether the panel tells the batches apart within the classes."""
        return self.panel is not None and self.panel.p_value <= 0.05 and self.panel.auc >= _SHOWS

    def sentences(self) -> list[str]:
        """Say what was found: one sentence for each question."""
        labels = self.labels
        said = [
            f"From {self.name} alone, the class is told with a balanced accuracy of "
            f"{labels.accuracy:.2f} at best, where shuffled batches give {labels.shuffled:.2f} "
            f"(p = {labels.p_value:.3f})."
        ]
        if self.panel is not None:
            said.append(
                f"From the panel, {self.name} is told within the classes with an area under the "
                f"ROC curve of {self.panel.auc:.2f}, where 0.50 is chance "
                f"(p = {self.panel.p_value:.3f})."
            )
        else:
            said.append(f"Whether {self.name} can be told from the panel cannot be asked here.")
        return said

    def notices(self) -> list[Notice]:
        """Return what the reader has to know of it; nothing where all is well."""
        return list(self._notices())

    def _notices(self) -> Iterator[Notice]:
        first, second, *_ = self.sentences()
        if self.confounded:
            closely = self.complete or (self.labels.strength or 0.0) >= _CLOSELY
            what = "hang closely together" if closely else "hang together"
            yield Notice(
                "confounded",
                "serious" if closely else "caution",
                f"{first} Classes and batches {what}: the panel may show the batch, not the "
                "class. No method can tell the two apart where they go together; measure samples "
                "of every class in every batch.",
            )
        if self.shown:
            yield Notice(
                "batch shows",
                "caution",
                f"{second} Part of what its features measure is where or when a sample was "
                "measured.",
            )

    def __repr__(self) -> str:
        title = f"Batches of {self.name}: {len(self.batches)} in {sum(map(sum, self.counts))}"
        return "\n  ".join([f"{title} samples", *self.sentences()])


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

    Given is one value per sample, or several variables: a data frame, a mapping from name to
    values, or the columns of a two-dimensional array.

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


def _counts(rows: IntArray, columns: IntArray) -> IntArray:
    """Count the samples of each pair of two groupings, such as batch and class."""
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    return np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape)


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
    readers = [_regressions(matrix, codes, panel, folds) for panel in known]
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


def _regressions(
    matrix: Any, codes: IntArray, panel: IntArray, folds: Sequence[tuple[IntArray, ...]]
) -> Regressions:
    """Prepare ridge regressions of batch indicators on a panel less its class means.

    The scores of a fold's test samples are ``left @ (right @ indicators)``: no indicator is part
    of either, so that shuffled batches need no new fit.
    """
    columns = matrix[:, np.sort(panel)]
    columns = columns.toarray() if hasattr(columns, "toarray") else np.asarray(columns, float)
    found = []
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
            found.append((others, np.linalg.solve(gram, rows.T)))
        else:
            gram = rows @ rows.T + _RIDGE * np.eye(rows.shape[0])
            found.append((others @ rows.T, np.linalg.inv(gram)))
    return found


def _areas(
    readers: Sequence[Regressions],
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
    own = _counts(stratum, member)
    others = own.sum(axis=1, keepdims=True) - own
    pairs = len(readers) * (known * own * others).sum(axis=0)
    won = np.zeros(n_batches)
    for reader in readers:
        scores = np.empty((member.size, n_batches))
        for (train, test), (left, right) in zip(folds, reader):
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
