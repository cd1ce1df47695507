"""Splits of the samples: outer folds, subsets to select again on, repeated samples.

Folds are repeated, stratified, and keep groups whole; the same seed gives the same folds.

Subsets are drawn in units: groups where they are given, samples otherwise. Units whose label
is constant are stratified by it; groups of mixed labels belong to no class, and are drawn
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from .._notices import Notice
from .._typing import IntArray
from .._validate import check_integer, check_seed, derive_seed

#: Shares of the samples and repeats of a learning curve.
FRACTIONS = (0.3, 0.4, 0.5, 0.65, 0.8)
REPEATS = 10
_PARTS = 21  # seed stream of its parts
_LEAST = 3  # samples of a class that a part needs, to be tuned on


@dataclass(frozen=True)
class Fold:
    """One split of the samples.

    Attributes
    ----------
    repeat, index : int
        Which repeat, and which fold in it.
    train, test : ndarray of int
        Row numbers, ascending.
    """

    repeat: int
    index: int
    train: IntArray
    test: IntArray


def check_labels(
    y: ArrayLike, groups: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Check labels and groups; return labels, sorted classes and groups."""
    labels = column_or_1d(y, warn=True)
    check_classification_targets(labels)
    classes = np.unique(labels)
    if classes.size < 2:
        raise ValueError("y holds a single class; at least two are needed.")
    if groups is None:
        return labels, classes, None
    ids = column_or_1d(groups)
    check_consistent_length(labels, ids)
    return labels, classes, ids


def check_samples(
    X: Any, y: ArrayLike, groups: ArrayLike | None
) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Check a table with its labels; return it as numbers, labels, sorted classes and groups.

    An array or CSR matrix of numbers is not copied.
    """
    labels, classes, ids = check_labels(y, groups)
    check_consistent_length(X, labels)
    try:
        matrix = check_array(X, accept_sparse="csr", ensure_all_finite="allow-nan")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must be a table of numbers: {error} Encode other columns beforehand, "
            "without looking at the labels."
        ) from error
    return matrix, labels, classes, ids


def make_folds(
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_splits: int = 5,
    n_repeats: int = 1,
    random_state: int = 0,
) -> list[Fold]:
    """Repeated stratified folds, with groups whole when they are given.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.
    groups : array-like of shape (n_samples,), optional
        Samples of one group (a subject, a family, a batch) never appear on both sides.
    n_splits, n_repeats : int
        Folds per repeat, and repeats.
    random_state : int, default=0
        Seed; each repeat derives its own.

    Returns
    -------
    list of Fold

    Examples
    --------
    >>> from sparsegsvp.evaluation import make_folds
    >>> folds = make_folds([0] * 6 + [1] * 6, n_splits=3, n_repeats=2)
    >>> len(folds), folds[3].repeat, folds[3].test.size
    (6, 1, 4)
    """
    labels, classes, ids = check_labels(y, groups)
    seed = check_seed(random_state)
    check_integer("n_splits", n_splits, least=2)
    check_integer("n_repeats", n_repeats, least=1)
    counts = np.unique(labels, return_counts=True)[1]
    if counts.min() < n_splits:
        raise ValueError(
            f"n_splits={n_splits} exceeds the {counts.min()} samples of class "
            f"{classes[counts.argmin()]!r}; use fewer folds, so that every fold tests each class."
        )
    if ids is not None and np.unique(ids).size < n_splits:
        raise ValueError(
            f"n_splits={n_splits} exceeds the number of groups ({np.unique(ids).size}); "
            "use fewer folds."
        )
    folds = []
    for repeat in range(n_repeats):
        repeat_seed = derive_seed(seed, repeat)
        if ids is None:
            splitter: Any = StratifiedKFold(n_splits, shuffle=True, random_state=repeat_seed)
        else:
            splitter = StratifiedGroupKFold(n_splits, shuffle=True, random_state=repeat_seed)
        for index, (train, test) in enumerate(splitter.split(labels, labels, ids)):
            folds.append(Fold(repeat, index, train, test))
    check_folds(folds, labels)
    return folds


def folds_from(
    cv: Any, y: NDArray[Any], groups: NDArray[Any] | None, X: Any, n_repeats: int, seed: int
) -> list[Fold]:
    """Turn ``cv`` (a number of folds, a splitter, or an iterable of splits) into folds.

    A new repeat starts where a sample would be tested again.
    """
    if isinstance(cv, Integral):
        return make_folds(
            y, groups=groups, n_splits=int(cv), n_repeats=n_repeats, random_state=seed
        )
    splits: Iterable[Any] = cv.split(X, y, groups) if hasattr(cv, "split") else cv
    folds: list[Fold] = []
    repeat = index = 0
    tested = np.zeros(y.shape[0], dtype=bool)
    for train, test in splits:
        train, test = np.sort(np.asarray(train)), np.sort(np.asarray(test))
        if tested[test].any():
            repeat, index = repeat + 1, 0
            tested[:] = False
        tested[test] = True
        if np.intersect1d(train, test).size:
            raise ValueError("cv gives a split whose training and test samples overlap.")
        if groups is not None and np.intersect1d(groups[train], groups[test]).size:
            raise ValueError(
                "cv gives a split with the same group on both sides; use a grouped splitter, "
                "or pass the number of folds as cv."
            )
        folds.append(Fold(repeat, index, train, test))
        index += 1
    if not folds:
        raise ValueError("cv gives no split.")
    check_folds(folds, y)
    return folds


def check_folds(folds: list[Fold], y: NDArray[Any]) -> None:
    """Raise ValueError where folds leave too little of a class to train with or to test on."""
    classes = np.unique(y)
    for fold in folds:
        present, counts = np.unique(y[fold.train], return_counts=True)
        if present.size < classes.size or counts.min() < 2:
            raise ValueError(
                f"fold {fold.index} of repeat {fold.repeat} would train with fewer than two "
                "samples of a class: use more folds, or merge the groups that hold a whole class."
            )
    if all(np.unique(y[fold.test]).size < classes.size for fold in folds):
        raise ValueError(
            "no fold tests samples of every class, so that none can be scored: use fewer folds, "
            "stratified by class, or pass their number as cv."
        )


def holdout_ratio(folds: Sequence[Fold]) -> float:
    """Return the mean ratio of test to training samples."""
    return float(np.mean([fold.test.size / fold.train.size for fold in folds]))


# ------------------------------------------------------------------- subsets to select again on


def _units(y: NDArray[Any], groups: NDArray[Any] | None) -> tuple[list[IntArray], list[IntArray]]:
    """Return the rows of each unit, and the units of each stratum."""
    codes = np.unique(y, return_inverse=True)[1]
    if groups is None:
        rows = [np.array([i]) for i in range(y.size)]
        stratum = codes
    else:
        member = np.unique(groups, return_inverse=True)[1]
        rows = [np.flatnonzero(member == g) for g in range(member.max() + 1)]
        stratum = np.array([codes[r[0]] if np.ptp(codes[r]) == 0 else -1 for r in rows])
    return rows, [np.flatnonzero(stratum == s) for s in np.unique(stratum)]


def _join(rows: list[IntArray], units: Iterable[int]) -> IntArray:
    return np.sort(np.concatenate([rows[u] for u in units]))


def complementary_pair(
    y: NDArray[Any], groups: NDArray[Any] | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return two disjoint halves of exactly floor(n / 2) units each, classes even.

    The odd units of the strata are dealt alternately to the halves; if their number is odd,
    one of them sits out.
    """
    rows, strata = _units(y, groups)
    left: list[int] = []
    right: list[int] = []
    odd: list[int] = []
    for units in strata:
        drawn = rng.permutation(units)
        half = drawn.size // 2
        left.extend(drawn[:half])
        right.extend(drawn[half : 2 * half])
        odd.extend(drawn[2 * half :])
    odd = list(rng.permutation(odd)) if odd else []
    even = len(odd) - len(odd) % 2
    left.extend(odd[:even:2])
    right.extend(odd[1:even:2])
    return _join(rows, left), _join(rows, right)


def subsample(
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    fraction: float,
    rng: np.random.Generator,
    *,
    replace: bool = False,
) -> IntArray:
    """Draw a share of the units of each stratum; with replacement, rows repeat with their unit."""
    rows, strata = _units(y, groups)
    drawn = [rng.choice(u, max(1, round(fraction * u.size)), replace=replace) for u in strata]
    return _join(rows, np.concatenate(drawn).tolist())


def growing_parts(
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    fractions: Sequence[float],
    n_repeats: int,
    random_state: int,
) -> list[list[IntArray]]:
    """Draw parts of growing size, in each repeat every part within the next.

    The units of each stratum are put in a circle, and a part is an arc of it. The repeats turn
    the circle, so that the largest parts of a round leave out every unit about equally often;
    each round deals the circle anew.
    """
    rows, strata = _units(y, groups)
    turns = int(1 / (1 - max(fractions)) + 1e-9)
    drawn = []
    for repeat in range(n_repeats):
        turn = repeat % turns
        if turn == 0:
            rng = np.random.default_rng(derive_seed(random_state, repeat // turns))
            circles = [rng.permutation(units) for units in strata]
        turned = [np.roll(c, -round(turn * c.size / turns)) for c in circles]
        arcs = ([c[: max(1, round(f * c.size))] for c in turned] for f in fractions)
        drawn.append([_join(rows, np.concatenate(arc).tolist()) for arc in arcs])
    return drawn


def draw_parts(
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    *,
    fractions: Sequence[float] = FRACTIONS,
    n_repeats: int = REPEATS,
    random_state: int = 0,
) -> list[list[IntArray]]:
    """Draw the parts of a learning curve: rows by repeat and size; ValueError if too few."""
    check_integer("n_repeats", n_repeats, least=3)
    seed = derive_seed(random_state, _PARTS)
    parts = growing_parts(y, groups, fractions, n_repeats, seed)
    for rows in (rows for drawn in parts for rows in drawn):
        outside = np.delete(y, rows)
        for label in np.unique(y).tolist():
            inside = int(np.sum(y[rows] == label))
            if inside < _LEAST:
                raise ValueError(
                    f"a part of {rows.size} samples has {inside} of class {label!r} and at least "
                    f"{_LEAST} are needed: there are too few samples (or groups) of it for a "
                    "learning curve"
                )
            if not np.any(outside == label):
                raise ValueError(
                    f"a part of {rows.size} samples leaves none of class {label!r} to predict: "
                    "there are too few samples (or groups) of it for a learning curve"
                )
    return parts


# ------------------------------------------------------------ samples that occur more than once


def _row_keys(X: Any) -> list[bytes]:
    """Return one key per row, equal for rows with equal bytes."""
    if sparse.issparse(X):
        X = X.tocsr().copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        return [
            X.indices[a:b].tobytes() + X.data[a:b].tobytes()
            for a, b in zip(X.indptr[:-1], X.indptr[1:])
        ]
    rows = np.asarray(X)
    if rows.dtype == object:
        return [repr(row.tolist()).encode() for row in rows]
    return [np.ascontiguousarray(row).tobytes() for row in rows]


def _repeats(keys: list[Any], groups: NDArray[Any] | None) -> int:
    """Count the samples whose key also occurs in another group (any other sample without)."""
    seen: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        seen.setdefault(key, []).append(i)
    total = 0
    for members in seen.values():
        apart = len(members) if groups is None else np.unique(groups[members]).size
        total += len(members) if apart > 1 else 0
    return total


def repeated_samples(
    X: Any, ids: ArrayLike | None = None, groups: NDArray[Any] | None = None
) -> list[Notice]:
    """Look for samples that may occur on both sides of a split.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The table.
    ids : array-like of shape (n_samples,), optional
        Sample or subject identifiers.
    groups : ndarray of shape (n_samples,), optional
        Groups; repeats within one group are harmless.

    Returns
    -------
    list of Notice
        Of the code "repeats"; empty when nothing was found.

    Examples
    --------
    >>> from sparsegsvp.evaluation import repeated_samples
    >>> repeated_samples([[1, 2], [1, 2], [3, 4]])[0].text
    '2 of 3 rows are exact duplicates of another row...
    """
    remedy = (
        "If they come from the same subject, pass that column as groups, "
        "so that a sample is never tested on its own copy."
    )
    texts = []
    keys = _row_keys(X)
    if rows := _repeats(keys, groups):
        where = "" if groups is None else " in another group"
        texts.append(f"{rows} of {len(keys)} rows are exact duplicates of another row{where}.")
    if ids is not None and (rows := _repeats(np.asarray(ids).tolist(), groups)):
        texts.append(f"{rows} of {len(keys)} rows share an identifier.")
    return [Notice("repeats", "serious", f"{text} {remedy}") for text in texts]
