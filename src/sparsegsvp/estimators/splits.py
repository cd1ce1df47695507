"""The folds of a search: what `cv` stands for, and the metadata that goes to a splitter."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.metadata_routing import process_routing

from .._typing import IntArray
from .scoring import LabelledRows


def given_splitter(estimator: Any) -> bool:
    """Whether `cv` is more than a number of folds."""
    return not isinstance(estimator.cv, int | np.integer)


def split_rows(
    estimator: Any, rows: LabelledRows, routed: dict[str, Any]
) -> list[tuple[IntArray, IntArray]]:
    """Training and test rows of each fold, checked; ``routed`` goes to the splitter."""
    labels, k = rows.classes.tolist(), len(rows.classes)
    groups = routed.get("groups")
    splitter = _splitter(estimator, rows, groups)
    splits = [
        (_narrow(train), _narrow(test))
        for train, test in splitter.split(np.zeros(len(rows.codes)), rows.y, **routed)
    ]
    for train, _ in splits:
        counts = np.bincount(rows.codes[train], minlength=k)
        totals = np.bincount(rows.codes[train], rows.weight_of(train), minlength=k)
        short = np.flatnonzero((counts < 2) | (totals == 0.0))
        if len(short):
            raise ValueError(
                f"a training fold has {counts[short[0]]} samples of class "
                f"{labels[short[0]]!r}, of total weight {totals[short[0]]:g}: use fewer "
                "folds or other groups"
            )
    return splits


def _splitter(estimator: Any, rows: LabelledRows, groups: Any) -> Any:
    """The splitter that `cv` stands for."""
    if given_splitter(estimator):
        return check_cv(estimator.cv, rows.y, classifier=True)
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    n_splits = _possible_folds(int(estimator.cv), rows, groups)
    return kind(n_splits, shuffle=True, random_state=estimator.random_state)


def _possible_folds(asked: int, rows: LabelledRows, groups: Any) -> int:
    """As many folds as were asked for or, with a warning, as classes and groups allow."""
    counts = np.bincount(rows.codes)
    most = int(counts.min())
    what = f"class {rows.classes.tolist()[counts.argmin()]!r} has {most} samples"
    n_groups = most if groups is None else len(np.unique(groups))
    if n_groups < most:
        most, what = n_groups, f"there are {n_groups} groups"
    if most >= asked:
        return asked
    if most < 2:
        raise ValueError("all rows are in one group: cross-validation needs at least two")
    warnings.warn(
        f"{what}: cross-validation uses {most} folds instead of cv={asked}",
        UserWarning,
        stacklevel=5,
    )
    return most


def _narrow(index: Any) -> IntArray:
    """Indices in half the memory: all folds together hold as many as rows times folds."""
    index = np.asarray(index)
    small = index.dtype.kind == "i" and len(index) and index.max() < np.iinfo(np.int32).max
    return index.astype(np.int32) if small else index


def route(estimator: Any, groups: Any, params: dict[str, Any]) -> dict[str, Any]:
    """The part of the metadata of `fit` that goes to the splitter."""
    given = {key: value for key, value in params.items() if value is not None}
    if groups is not None:
        given["groups"] = groups
    if given_splitter(estimator) and get_config()["enable_metadata_routing"]:
        routed = dict(process_routing(estimator, "fit", **given).splitter.split)
        if groups is not None and "groups" not in routed:
            raise TypeError(
                f"fit got groups, which cv={estimator.cv!r} does not request: use a splitter "
                "that does, such as GroupKFold, or an integer"
            )
        return routed
    unknown = sorted(set(given) - {"groups"})
    if unknown:
        raise TypeError(f"fit got unexpected arguments {unknown}: only groups is known")
    return given
