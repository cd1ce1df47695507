"""Outer folds: repeated, stratified, grouped where asked, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets


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
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def derive_seed(random_state: int, *keys: int) -> int:
    """Return a seed for one piece of work, independent of how the others are scheduled.

    Examples
    --------
    >>> from sparsegsvp.evaluation._folds import derive_seed
    >>> derive_seed(0, 1, 2) == derive_seed(0, 1, 2) != derive_seed(0, 2, 1)
    True
    """
    return int(np.random.SeedSequence([random_state, *keys]).generate_state(1)[0])


def check_seed(random_state: Any) -> int:
    """Return a non-negative integer seed, or say why there is none."""
    if not isinstance(random_state, Integral) or random_state < 0:
        raise ValueError(
            f"random_state={random_state!r} must be a non-negative integer: "
            "an evaluation that cannot be repeated cannot be checked."
        )
    return int(random_state)


def check_labels(
    y: ArrayLike, groups: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Validate labels and groups; return labels, sorted classes and groups."""
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
    if n_splits < 2 or n_repeats < 1:
        raise ValueError("n_splits must be at least 2 and n_repeats at least 1.")
    counts = np.array([np.sum(labels == c) for c in classes])
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
    """Refuse folds whose training part cannot teach every class."""
    classes = np.unique(y)
    for fold in folds:
        present, counts = np.unique(y[fold.train], return_counts=True)
        if present.size < classes.size or counts.min() < 2:
            raise ValueError(
                f"fold {fold.index} of repeat {fold.repeat} would train with fewer than two "
                "samples of a class: use more folds, or merge the groups that hold a whole class."
            )


def holdout_ratio(folds: list[Fold]) -> float:
    """Return the mean ratio of test to training samples."""
    return float(np.mean([fold.test.size / fold.train.size for fold in folds]))
