"""Features that share a name, such as the probes of a gene, made one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from .._validate import check_choice
from .errors import InputError, listed, option
from .rows import RawTable

WAYS = ("mean", "max", "first")


def check_way(how: str | None) -> None:
    """Refuse what is none of the ways."""
    if how is not None:
        try:
            check_choice(option("collapse"), how, WAYS)
        except ValueError as error:
            raise InputError(str(error)) from None


def make_one(raw: RawTable, how: str | None) -> None:
    """Make one feature of those that share a name, in the place of the first.

    "mean" is the mean of the values that are there, "max" the feature with the largest mean
    over the samples (the habit for probes of one gene), "first" the first. No label is looked
    at. Names that occur twice were refused already where no way was given.
    """
    places: dict[str, list[int]] = {}
    for j, name in enumerate(raw.names):
        places.setdefault(name, []).append(j)
    if how is None or len(places) == len(raw.names):
        return
    shared = {name: at for name, at in places.items() if len(at) > 1}
    kept = [at[0] for at in places.values()]
    merged: list[Any] = []
    for k, at in enumerate(places.values()):
        if len(at) == 1 or how == "first":
            continue
        columns = raw.X[:, at]
        columns = columns.toarray() if sparse.issparse(columns) else columns
        if how == "max":
            means = _mean(columns, axis=0)
            kept[k] = at[0] if np.isnan(means).all() else at[int(np.nanargmax(means))]
        else:
            merged.append((k, _mean(columns, axis=1)))
    X = raw.X[:, kept]
    if merged and sparse.issparse(X):
        X = X.tolil()
    for k, column in merged:
        X[:, [k]] = column[:, None]
    raw.X = X.tocsr() if sparse.issparse(X) else X
    raw.names = list(places)
    ways = {
        "mean": "the mean of each",
        "max": "of each the one with the largest mean",
        "first": "the first of each",
    }
    n = sum(map(len, shared.values()))
    names = "1 name is" if len(shared) == 1 else f"{len(shared)} names are"
    raw.notes.append(f"{names} shared by {n} features, {ways[how]} was kept: {listed(shared)}")


def _mean(columns: Any, axis: int) -> Any:
    """Average the values that are there; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(columns, axis=axis)
