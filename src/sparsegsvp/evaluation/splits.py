"""Samples, and the ways they are split: outer folds, complementary halves, batches left out.

Splits depend on the data, not on the order of rows in a file: rows are put in a canonical order
first, by keys that depend neither on the order of rows nor on that of columns. Fits see their rows
in that order too, so that sums round the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_consistent_length, column_or_1d, gen_batches
from sklearn.utils.multiclass import check_classification_targets

from .._typing import Float64Array, IntArray
from .._validate import check_integer, derive_seed, refuse_dask

_BLOCK = 4_000_000  # numbers looked at at a time
_MOST_TWINS = 3000  # rows above which samples are not searched for twins
_TWIN_LEVEL = 0.01  # chance that a table without twins shows one, and share that is worth a word


@dataclass(frozen=True)
class Fold:
    """A split of the samples: row numbers of X, in canonical order."""

    repeat: int
    index: int
    train: IntArray
    test: IntArray


@dataclass(frozen=True)
class Samples:
    """A table with its labels, groups and batches, checked, and the canonical order of its rows."""

    X: Any  # as given: frames reach the estimator as frames
    y: NDArray[Any]
    codes: IntArray  # places of the labels among the classes
    classes: NDArray[Any]
    groups: IntArray | None  # numbered in canonical order
    batches: dict[str, NDArray[np.str_]]  # by name
    order: IntArray
    keys: NDArray[np.uint64]  # of the rows, equal for equal rows

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.classes.size)

    @property
    def shares(self) -> Float64Array:
        """Share of each class."""
        return np.bincount(self.codes, minlength=self.n_classes) / self.codes.size

    @property
    def units(self) -> Float64Array:
        """Independent samples of each class: groups that hold it, where there are groups."""
        if self.groups is None:
            return np.bincount(self.codes, minlength=self.n_classes).astype(np.float64)
        pairs = np.unique(np.stack([self.groups, self.codes]), axis=1)
        return np.bincount(pairs[1], minlength=self.n_classes).astype(np.float64)


def read_samples(X: Any, y: ArrayLike, groups: ArrayLike | None, batch: Any = None) -> Samples:
    """Check a table, its labels, groups and batches, and put its rows in canonical order."""
    refuse_dask(X)
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if sparse.issparse(X):
        X = X.tocsr()
    if len(X.shape) != 2:
        raise ValueError(f"X must be a table, samples by features, got shape {tuple(X.shape)}.")
    labels = column_or_1d(y, warn=True)
    check_classification_targets(labels)
    check_consistent_length(X, labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError("y holds a single class; at least two are needed.")
    names = None
    if groups is not None:
        names = as_texts(groups)
        check_consistent_length(labels, names)
    keys = row_keys(X)
    order = np.lexsort((np.zeros(codes.size) if names is None else names, keys, codes))
    members = None
    if names is not None:
        _, first, inverse = np.unique(names[order], return_index=True, return_inverse=True)
        members = np.empty(codes.size, dtype=np.intp)
        members[order] = np.argsort(np.argsort(first))[inverse]
    batches = check_batches(batch, codes.size)
    return Samples(X, labels, codes, classes, members, batches, order, keys)


def as_texts(values: Any) -> NDArray[np.str_]:
    """Return groups or batches as text, whole numbers alike whether stored as 1 or 1.0."""
    column = np.asarray(column_or_1d(np.asarray(values, dtype=object)))
    # pandas' NA, which pandas need not be imported to know, is not even unequal to itself
    if any(v is None or type(v).__name__ == "NAType" or v != v for v in column):
        raise ValueError("groups and batches must not be missing; name them, as 'unknown'.")
    whole = (isinstance(v, float | np.floating) and float(v).is_integer() for v in column)
    return np.array([str(int(v)) if w else str(v) for v, w in zip(column, whole)])


def check_batches(batch: Any, n_samples: int) -> dict[str, NDArray[np.str_]]:
    """Return batch variables by name, as text; refuse what is no batch."""
    if batch is None:
        return {}
    if isinstance(batch, Mapping) or hasattr(batch, "columns"):
        given = {str(name): batch[name] for name in batch}
    elif np.ndim(batch) == 2:
        columns = np.asarray(batch, dtype=object).T
        given = {f"batch {j}": column for j, column in enumerate(columns, start=1)}
    else:
        given = {str(getattr(batch, "name", None) or "batch"): batch}
    result = {}
    for name, values in given.items():
        texts = as_texts(values)
        check_consistent_length(np.empty(n_samples), texts)
        n_batches = np.unique(texts).size
        if not 1 < n_batches < n_samples:
            what = "one value" if n_batches < 2 else "a different value for every sample"
            raise ValueError(f"batch {name!r} has {what}; give what several samples share.")
        result[name] = texts
    return result


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers (the finaliser of splitmix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _bits(values: Any) -> NDArray[np.uint64]:
    """Return numbers as scrambled bits, the same for 0 and -0, for float32 and float64."""
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    return _mix(numbers.view(np.uint64))


def row_keys(X: Any) -> NDArray[np.uint64]:
    """Return one key per row, equal for equal rows, whatever the order of rows and columns.

    A column is known by the sum of its scrambled values, and a row by the sum of its values
    scrambled with their columns; sums do not depend on an order. Texts are scrambled by letters.
    """
    table: Any = X if sparse.issparse(X) else np.asarray(X)
    keys = np.zeros(table.shape[0], dtype=np.uint64)
    if table.dtype.kind not in "biuf":
        texts = np.ascontiguousarray(table.astype(str)).view(np.uint32)
        bits = np.zeros(table.shape, dtype=np.uint64)
        for letter in np.moveaxis(texts.reshape(*table.shape, -1), -1, 0):
            bits = _mix(bits ^ letter)
        return _mix(bits ^ _mix(bits.sum(axis=0))).sum(axis=1)
    columns = np.zeros(table.shape[1], dtype=np.uint64)
    if sparse.issparse(table):
        table = table.tocsr(copy=True)
        table.sum_duplicates()
        table.eliminate_zeros()
        bits, rows = _bits(table.data), np.repeat(np.arange(keys.size), np.diff(table.indptr))
        np.add.at(columns, table.indices, bits)
        np.add.at(keys, rows, _mix(bits ^ _mix(columns)[table.indices]))
        return keys
    blocks = list(gen_batches(keys.size, max(1, _BLOCK // max(1, table.shape[1]))))
    for block in blocks:
        columns += _bits(table[block]).sum(axis=0, dtype=np.uint64)
    columns = _mix(columns)
    for block in blocks:
        bits = _bits(table[block])  # of zeros they are zero: a sparse table does not have them
        cells = np.where(bits == 0, np.uint64(0), _mix(bits ^ columns))
        keys[block] = cells.sum(axis=1, dtype=np.uint64)
    return keys


def make_folds(
    samples: Samples, n_splits: int, n_repeats: int, seed: int, codes: IntArray | None = None
) -> list[Fold]:
    """Return repeated folds, stratified by class or other labels (``codes``), groups whole."""
    check_integer("n_splits", n_splits, least=2)
    check_integer("n_repeats", n_repeats, least=1)
    codes = (samples.codes if codes is None else codes)[samples.order]
    groups = None if samples.groups is None else samples.groups[samples.order]
    counts = np.bincount(codes)
    what, least = f"samples of class {samples.classes.tolist()[counts.argmin()]!r}", counts.min()
    if least >= n_splits and groups is not None:
        what, least = "groups", groups.max() + 1
    if least < n_splits:
        raise ValueError(f"n_splits={n_splits} exceeds the {least} {what}: use fewer.")
    folds = []
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    for repeat in range(n_repeats):
        parts = kind(n_splits, shuffle=True, random_state=derive_seed(seed, repeat))
        for index, (train, test) in enumerate(parts.split(codes, codes, groups)):
            if np.bincount(codes[train], minlength=counts.size).min() < 2:
                raise ValueError(
                    f"fold {index} of repeat {repeat} would train with fewer than two samples of "
                    "a class: use more folds, or merge the groups that hold a whole class."
                )
            folds.append(Fold(repeat, index, samples.order[train], samples.order[test]))
    return folds


def complementary_pair(
    samples: Samples, seed: int, codes: IntArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return two disjoint halves of exactly floor(n / 2) units each, classes even.

    Units are groups where they are given, samples otherwise. Units whose label is constant are
    stratified by it; groups of mixed labels belong to no class and are drawn together. The odd
    units of the strata are dealt alternately; if their number is odd, one of them sits out.
    """
    rng = np.random.default_rng(seed)
    codes = samples.codes if codes is None else codes
    unit_of = np.argsort(samples.order) if samples.groups is None else samples.groups
    pairs = np.unique(np.stack([unit_of, codes]), axis=1)  # units ascending
    pure = np.bincount(pairs[0]) == 1
    stratum, side = np.full(pure.size, -1), np.full(pure.size, -1)
    stratum[pure] = pairs[1][pure[pairs[0]]]
    odd: list[int] = []
    for s in np.unique(stratum):
        drawn = rng.permutation(np.flatnonzero(stratum == s))
        half = drawn.size // 2
        side[drawn[:half]], side[drawn[half : 2 * half]] = 0, 1
        odd.extend(drawn[2 * half :].tolist())
    odd = rng.permutation(np.array(odd, dtype=np.intp)).tolist()
    for i, unit in enumerate(odd[: len(odd) - len(odd) % 2]):
        side[unit] = i % 2
    rows = side[unit_of[samples.order]]
    return samples.order[rows == 0], samples.order[rows == 1]


def count_duplicates(samples: Samples) -> int:
    """Count the samples whose key also occurs in another group (any other sample without)."""
    _, member, counts = np.unique(samples.keys, return_inverse=True, return_counts=True)
    if samples.groups is None:
        return int(counts[counts > 1].sum())
    pairs = np.unique(np.stack([member, samples.groups]), axis=1)
    return int(counts[np.bincount(pairs[0]) > 1].sum())


def count_twins(X: Any, groups: IntArray | None) -> int:
    r"""Count the samples that have a twin: one that is far more alike to them than chance.

    With distances :math:`d_1 < d_2 < d_3` to the nearest samples of other groups,
    :math:`\log(d_2 / d_1)` is exponential with rate D in D dimensions, and :math:`\log(d_3 /
    d_2)` with rate 2 D, however dense the samples are (Facco and others, 2017). D comes from the
    second, which a twin does not change; a twin is a mutual nearest neighbour where the first is
    so large that n samples would show one by chance with probability 0.01.

    Returns 0 for tables of more than 3,000 rows or with cells that are no numbers.
    """
    n = X.shape[0]
    if not 10 <= n <= _MOST_TWINS or X.shape[1] < 2:
        return 0
    table: Any = X if sparse.issparse(X) else np.asarray(X)
    if table.dtype.kind not in "biuf":
        return 0
    gram = np.zeros((n, n))
    for columns in gen_batches(table.shape[1], max(1, _BLOCK // n)):
        block = table[:, columns]
        Z = np.array(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column with no value at all
            Z -= np.nanmean(Z, axis=0)
            spread = np.sqrt(np.nanmean(Z * Z, axis=0))
            Z /= np.where(spread > 0, spread, np.inf)
        Z[~np.isfinite(Z)] = 0.0
        gram += Z @ Z.T
    squares = np.diag(gram)
    distances = squares[:, None] + squares - 2 * gram
    same = np.eye(n, dtype=bool) if groups is None else groups[:, None] == groups
    distances[same] = np.inf
    nearest = np.argsort(distances, axis=1)[:, :4]
    floor = 1e-12 * max(float(squares.max()), 1e-300)
    logs = np.log(np.maximum(np.take_along_axis(distances, nearest, axis=1), floor)) / 2
    if not np.isfinite(logs).all():
        return 0
    # the median withstands samples that are alone, or come in threes
    dimension = np.log(2) / max(2 * float(np.median(logs[:, 2] - logs[:, 1])), 1e-12)
    alike = logs[:, 1] - logs[:, 0] > np.log(n / _TWIN_LEVEL) / dimension
    mutual = nearest[nearest[:, 0], 0] == np.arange(n)
    count = int(np.sum(mutual & (alike | alike[nearest[:, 0]])))
    return count if count >= _TWIN_LEVEL * n else 0
