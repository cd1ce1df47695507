"""Features made of columns: one of several that share a name, or levels of categories."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._validate import check_choice
from .cells import MISSING, looks_numeric
from .errors import InputError, counted, listed, option, quote, role_option
from .layout import ADJUST, CATEGORICAL, IS, VERSUS, ColumnRole, RawTable, Roles, made_of

# --- features that share a name ---------------------------------------------------------

# What is kept of each name, in the words of the record.
WAYS = {
    "mean": "the mean of each",
    "max": "of each the one with the largest mean",
    "first": "the first of each",
}


def check_collapse(how: str | None) -> None:
    """Refuse what is none of the ways."""
    if how is not None:
        try:
            check_choice(option("collapse"), how, tuple(WAYS))
        except ValueError as error:
            raise InputError(str(error)) from None


def collapse_features(raw: RawTable, how: str | None) -> None:
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
    n = sum(map(len, shared.values()))
    names = counted(len(shared), "name")
    raw.notes.append(f"{names} shared by {n} features, {WAYS[how]} was kept: {listed(shared)}")


def _mean(columns: Any, axis: int) -> Any:
    """Average the values that are there; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(columns, axis=axis)


# --- what is adjusted for, and categories --------------------------------------------------
# Such columns are read as text, wherever they stand (in the table, in a second file of labels, in
# obs), and become features when the other columns have got their roles: numbers as they are, and
# of a column of text one of 0 and 1 for each level but the first. Its name says both levels,
# "sex=M vs F", so that a model which knows its features by name can tell a level it never met.


def mark_covariates(text: dict[str, list[str | None]], codes: Collection[str]) -> None:
    """Put None where one of these columns holds a code for missing values."""
    for role, cells in text.items():
        if role.startswith((ADJUST, CATEGORICAL)):
            text[role] = [None if cell in codes else cell for cell in cells]


def append_covariates(raw: RawTable, roles: Roles) -> None:
    """Make features of the columns to adjust for and of categories, after all other columns."""
    made: dict[str, NDArray[np.float64]] = {}
    for role, cells in raw.text.items():
        if not role.startswith((ADJUST, CATEGORICAL)):
            continue
        column, adjusted = role.partition(":")[2], role.startswith(ADJUST)
        what = f"column {quote(column)} ({role_option(role)})"
        known = [name for name in roles.features or () if made_of(name, column)]
        number = column in known or (adjusted and not known and column not in roles.categorical)
        values = _as_numbers(what, cells, sure=column in known) if number else None
        if values is None:
            found = _levels(column, what, cells, known)
        else:
            found = {column: values}
            if roles.features is None and len(set(cells)) == 1:
                raise _one_value(what, cells)
        taken = [name for name in found if name in raw.names]
        if taken:
            raise InputError(
                f"the table has a feature {quote(taken[0])} besides the column of "
                f"{role_option(role)}",
                remedy="rename one of the two",
            )
        made |= found
        (raw.covariates if adjusted else raw.categories)[column] = tuple(found)
        reason = "adjusted for: in every panel" if adjusted else "categories: in or out together"
        raw.roles += [ColumnRole(name, "feature", reason) for name in found]
    if not made:
        return
    block = np.column_stack(list(made.values())).astype(raw.X.dtype)
    if sparse.issparse(raw.X):
        raw.X = sparse.hstack([raw.X, block], format="csr")
    else:
        raw.X = np.hstack([raw.X, block])
    raw.names = [*raw.names, *made]
    if roles.features is not None:
        place = {name: i for i, name in enumerate(raw.names)}
        raw.X = raw.X[:, [place[name] for name in roles.features]]
        raw.names = list(roles.features)


def _one_value(what: str, cells: list[str | None]) -> InputError:
    value = "no value" if cells[0] is None else f"only the value {quote(cells[0])}"
    return InputError(f"{what} has {value}", remedy="leave out")


def _as_numbers(what: str, cells: list[str | None], *, sure: bool) -> NDArray[np.float64] | None:
    """Return a column as numbers, NaN where one is missing; None if it holds categories.

    Where most cells are numbers, or the column is known to hold them, others are refused.
    """
    texts = ["" if cell is None or cell.lower() in MISSING else cell for cell in cells]
    read = [text.replace(",", ".") if text.count(",") == 1 else text for text in texts]
    odd = [text for text, number in zip(texts, read) if text and not looks_numeric(number)]
    if odd and not sure and 2 * len(odd) >= sum(map(bool, texts)):
        return None
    values = np.array([float(text) if looks_numeric(text) else np.nan for text in read])
    wrong = odd or [text for text, value in zip(texts, values) if text and not np.isfinite(value)]
    if wrong:
        raise InputError(
            f"{quote(wrong[0])} is not a number ({len(wrong)} cells like this)",
            where=what,
            remedy="correct them, or leave the cells empty",
        )
    return values


def _levels(
    column: str, what: str, cells: list[str | None], known: list[str]
) -> dict[str, NDArray[np.float64]]:
    """Return a column of 0 and 1 for each level but the first, or for those that are known."""
    if None in cells:
        raise InputError(
            f"{what} has no value in row {cells.index(None) + 1}",
            remedy="fill the cell, with a word such as unknown if need be",
        )
    counts = Counter(str(cell) for cell in cells)
    if known:
        pairs = [name.removeprefix(f"{column}{IS}").rpartition(VERSUS) for name in known]
        levels = [pairs[0][2], *(level for level, _, _ in pairs)]
        strange = [level for level in counts if level not in levels]
        if strange:
            raise InputError(
                f"column {quote(column)} has the value {listed(strange)}, which training has not",
                remedy=f"write it as one of {listed(levels)}, or leave these samples out",
            )
    else:
        levels = sorted(counts)
        if len(levels) == 1:
            raise _one_value(what, cells)
        rare = min(levels, key=lambda level: counts[level])
        if counts[rare] == 1:
            raise InputError(
                f"{what} has the value {quote(rare)} in one sample only",
                remedy="merge it with another value",
            )
    first, *others = levels
    return {
        f"{column}{IS}{level}{VERSUS}{first}": np.array([float(c == level) for c in cells])
        for level in others
    }
