"""Checks of a table that has been read: what is refused, left out, or looks odd."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice
from .._validate import LARGEST, first_few
from .cells import column_slices, looks_numeric
from .derived import append_covariates
from .errors import InputError, counted, listed, option, quote, suggestion
from .labels import unify_spelling
from .layout import RawTable, Roles, batches_of
from .looks import column_of
from .roles import asked_roles, assign_roles


def check(raw: RawTable, roles: Roles, target: str | None, positive: str | None) -> str | None:
    """Check a table, leaving out in place what cannot serve; notices and notes go into it.

    Where the caller listed the features none is left out, since a model waits for each. Returns
    the class of interest as it is spelled.
    """
    fixed = roles.features is not None
    if raw.X.shape[0] == 0:
        raise InputError("there is a header but no sample", remedy="check the file")
    if raw.X.shape[1] == 0 and not raw.beside and not roles.features:
        raise InputError("no column of numbers is left", remedy=f"check {option('drop')}")
    positive = check_roles(raw, target, positive, one_class=fixed)
    low, high = _column_range(raw.X)
    _refuse_overflow(raw, low, high)
    if fixed:
        raw.roles += asked_roles(raw, roles, target)
    else:
        _leave_out_empty(raw, low)
        filled = ~np.isnan(low)
        same = {n for n, same in zip(raw.names, low[filled] == high[filled]) if same}
        assign_roles(raw, roles, target)
        constant = [name for name in raw.names if name in same]
        if constant:
            raw.notes.append(f"{counted(len(constant), 'feature')} constant: {listed(constant)}")
    scale = () if fixed else raw_intensities(raw.X, *_column_range(raw.X))
    append_covariates(raw, roles)
    missing = _missing_per_column(raw.X)
    raw.n_missing = int(missing.sum())
    if raw.n_missing:
        affected = [raw.names[j] for j in np.flatnonzero(missing)]
        features = "1 feature" if len(affected) == 1 else f"{len(affected)} features"
        raw.notes.append(
            f"{counted(raw.n_missing, 'value')} missing in {features}: {listed(affected)}"
        )
    raw.notices = (*_repeats(raw), *_orientation(raw), *raw.notices, *scale)
    return positive


def check_roles(
    raw: RawTable, target: str | None, positive: str | None, *, one_class: bool = False
) -> str | None:
    """Check labels and groups; leave samples without a label out. Looks at no number.

    Samples to test a model on may be of one class. Returns the class of interest in the spelling
    that its class has got.
    """
    _leave_out_unlabelled(raw)
    positive = unify_spelling(raw, positive)
    labels = raw.text.get("target")
    if labels is not None and target is not None:
        _refuse_labels([str(v) for v in labels], target, one_class)
    if positive is not None and labels is None:
        raise InputError(f"{option('positive')} needs {option('target')}")
    if positive is not None and labels is not None and positive not in labels:
        raise InputError(
            f"no sample has the label {quote(positive)} ({option('positive')}) in {quote(target)}",
            remedy=suggestion(positive, sorted({str(v) for v in labels})),
        )
    groups = raw.text.get("group")
    if groups is not None and None in groups:
        raise InputError(
            "a sample has no group",
            where=_place(raw, groups.index(None)),
            remedy=f"fill the cell of {option('group')}",
        )
    for name, cells in batches_of(raw.text).items():
        _refuse_batches(raw, name, cells)
    return positive


def _refuse_batches(raw: RawTable, name: str, cells: list[str | None]) -> None:
    """Refuse a batch variable that has gaps, one value only, or another in every row."""
    what, levels = f"column {quote(name)} ({option('batch')})", len(set(cells))
    if None in cells:
        raise InputError(
            f"a sample has no value in {what}",
            where=_place(raw, cells.index(None)),
            remedy="fill the cell, with a word such as unknown if need be",
        )
    if levels == 1:
        raise InputError(f"{what} has only the value {quote(cells[0])}", remedy="leave it out")
    if levels == len(cells):
        raise InputError(
            f"{what} has a different value in every row",
            remedy="name a column whose values several samples share, such as plate or day",
        )


def _place(raw: RawTable, row: int) -> str:
    """Say where a sample is: by its line, by its identifier, or by its number."""
    ids = raw.text.get("id")
    if raw.lines is None and ids is not None and ids[row] is not None:
        return f"sample {quote(ids[row])}"
    return raw.line_of(row)


def _leave_out_unlabelled(raw: RawTable) -> None:
    labels = raw.text.get("target")
    if labels is None or None not in labels:
        return
    keep = np.array([label is not None for label in labels])
    if not keep.any():
        raise InputError("no sample has a label", remedy=f"check {option('target')}")
    gone = [_place(raw, int(i)) for i in np.flatnonzero(~keep)]
    shown = first_few(gone, most=3)
    one = len(gone) == 1
    what = "1 sample has no label and was" if one else f"{len(gone)} samples have no label and were"
    raw.notes.append(f"{what} left out ({shown})")
    raw.X = raw.X[np.flatnonzero(keep)]
    for part in (raw.text, raw.beside):
        part.update({name: [v for v, k in zip(cells, keep) if k] for name, cells in part.items()})
    if raw.lines is not None:
        raw.lines = [line for line, k in zip(raw.lines, keep) if k]


def _leave_out_empty(raw: RawTable, low: NDArray[Any]) -> None:
    """Leave out columns without a single value: there is nothing to impute from."""
    empty = np.isnan(low)
    if not empty.any():
        return
    names = [raw.names[j] for j in np.flatnonzero(empty)]
    if empty.all():
        raise InputError("there is not a single number in the table")
    raw.notes.append(f"{counted(len(names), 'feature')} left out, having no value: {listed(names)}")
    raw.dropped.update(dict.fromkeys(names, "no value"))
    raw.X = raw.X[:, ~empty]
    raw.names = [name for name, e in zip(raw.names, empty) if not e]


def _repeats(raw: RawTable) -> Iterator[Notice]:
    """Say which identifiers and which rows occur again.

    A sample and its copy on both sides of a split make every score too good. Groups keep
    copies together, unless they are in different groups.
    """
    ids, groups = raw.text.get("id"), raw.text.get("group")
    first_of: dict[str, int] = {}
    same_id = [(first_of.setdefault(key, i), i) for i, key in enumerate(ids or ()) if key]
    same_id = sorted((first, again) for first, again in same_id if first != again)
    for pairs, describe in ((same_id, _same_identifier), (_repeated_rows(raw.X), _same_values)):
        if not pairs:
            continue
        apart = pairs if groups is None else [(i, j) for i, j in pairs if groups[i] != groups[j]]
        text = describe(apart or pairs, ids)
        if not apart:
            yield Notice("repeats", "note", f"{text}, within a group.")
        elif groups is not None:
            yield Notice("repeats", "serious", f"{text} in different groups.")
        else:
            remedy = "if they are one patient, name the patients as groups"
            yield Notice("repeats", "serious", f"{text}: {remedy}.")


def _same_identifier(pairs: list[tuple[int, int]], ids: Any) -> str:
    twice = list(dict.fromkeys(ids[first] for first, _ in pairs))
    return f"{counted(len(twice), 'identifier')} repeated ({listed(twice)})"


def _same_values(pairs: list[tuple[int, int]], ids: Any) -> str:
    first, second = pairs[0]
    names = f"Samples {first + 1} and {second + 1}"
    if ids is not None:
        names = f"{quote(ids[first])} and {quote(ids[second])}"
    more = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
    return f"{names}{more} have exactly the same values"


def _orientation(raw: RawTable) -> Iterator[Notice]:
    """Suspect features in rows: many rows, few columns, and a distinct name on every row."""
    n, m = raw.X.shape
    ids = raw.text.get("id")
    if raw.place == "column" or ids is None or n < 500 or n < 5 * m or len(set(ids)) < n:
        return
    if all(looks_numeric(name or "") for name in ids):
        return  # no feature is called 842302
    yield Notice(
        "orientation",
        "note",
        f"There are {n} samples with only {m} features, each with its own name: if the features "
        "are in rows, the table has to be read transposed.",
    )


# --- labels and numbers ----------------------------------------------------------------


def _column_range(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and the largest value of each column, NaN only where all are missing."""
    if sparse.issparse(X):
        low, high = (np.asarray(m.todense()).ravel() for m in (X.min(axis=0), X.max(axis=0)))
        for j in np.flatnonzero(np.isnan(low) | np.isnan(high)):
            column = X[:, [int(j)]].toarray()
            low[j], high[j] = np.fmin.reduce(column)[0], np.fmax.reduce(column)[0]
        return low, high
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def _missing_per_column(X: Any) -> NDArray[np.intp]:
    """Count the missing values in each column, without a second matrix for dense data."""
    if sparse.issparse(X):
        return np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    return np.concatenate([np.isnan(X[:, part]).sum(axis=0) for part in column_slices(X)])


def _refuse_overflow(raw: RawTable, low: NDArray[Any], high: NDArray[Any]) -> None:
    """Refuse infinities and numbers whose squares overflow, by column and line."""
    X, limit = raw.X, LARGEST[raw.X.dtype.name]
    extreme = np.flatnonzero(np.fmax(np.abs(low), np.abs(high)).astype(np.float64) > limit)
    if not len(extreme):
        return
    j = int(extreme[0])
    column = column_of(X, j)
    i = int(np.flatnonzero(np.abs(column) > limit)[0])
    value = float(column[i])
    what = "is infinite" if np.isinf(value) else f"is too large (at most {limit:g})"
    raise InputError(
        f"{value:g} {what}",
        where=f"{raw.line_of(i)}, column {quote(raw.names[j])}",
        remedy="correct it, rescale the column, or leave the cell empty",
    )


def _repeated_rows(X: Any) -> list[tuple[int, int]]:
    """Return pairs (first, repeat) of samples whose numbers agree to the last bit."""
    seen: dict[bytes, int] = {}
    pairs = []
    for i in range(X.shape[0]):
        digest = hashlib.blake2b(digest_size=16)
        if sparse.issparse(X):
            part = slice(X.indptr[i], X.indptr[i + 1])
            digest.update(X.indices[part].tobytes())
            digest.update(X.data[part].tobytes())
        else:
            digest.update(X[i].tobytes())
        first = seen.setdefault(digest.digest(), i)
        if first != i:
            pairs.append((first, i))
    return pairs


def _refuse_labels(y: Sequence[str], target: str, one_class: bool) -> None:
    """Refuse labels that are no classes: one value only, identifiers, measurements."""
    distinct = sorted(set(y))
    if len(distinct) == 1 and not one_class:
        raise InputError(
            f"column {quote(target)} ({option('target')}) has only the value {quote(distinct[0])}",
            remedy="a classifier needs at least two classes",
        )
    numbers = [label for label in distinct if looks_numeric(label)]
    if len(numbers) == len(distinct) and any(not float(v).is_integer() for v in numbers):
        raise InputError(
            f"column {quote(target)} ({option('target')}) holds measurements such as "
            f"{listed(distinct[:3])}",
            remedy="cut it into classes first",
        )
    if len(distinct) == len(y) and len(y) > 2:
        raise InputError(
            f"column {quote(target)} ({option('target')}) has a different value in every row",
            remedy=f"it looks like identifiers: use {option('id')} for it and name the classes as "
            f"{option('target')}",
        )


# --- raw intensities -------------------------------------------------------------------

_LEAST_FEATURES = 50  # fewer may be measurements of unlike things, each on a scale of its own
_HIGH = 256.0  # 2 ** 8: logarithms and pictures stay below it
_FEATURE_HIGH = 50.0  # no feature of a table of logarithms comes near it
_SPAN = 100.0  # from the weak values to the strong ones
_SKEW = 1.5  # from the median of all values to their mean
_LOOKED_AT = 1000  # about as many features, and samples


def raw_intensities(X: Any, low: NDArray[Any], high: NDArray[Any]) -> Iterator[Notice]:
    """Advise the logarithm where like features are positive, skewed and spread over decades.

    `low` and `high` are the least and the largest value of each feature. Most features must
    reach high and be skewed to the right themselves, with a mean above the median.
    """
    m = X.shape[1]
    if m < _LEAST_FEATURES or not np.nanmin(low) >= 0 or not np.nanmax(high) > _HIGH:
        return
    if np.nanmedian(high) <= _FEATURE_HIGH:
        return
    some = X[:: max(1, X.shape[0] // _LOOKED_AT), :: max(1, m // _LOOKED_AT)]
    some = some.toarray() if sparse.issparse(some) else some
    some = some[:, ~np.isnan(some).any(axis=0)]
    if not (some > 0).any():
        return
    skewed = np.mean(some.mean(axis=0) > np.median(some, axis=0)) > 0.6
    weak, strong = np.quantile(some[some > 0], [0.01, 0.99])
    if skewed and some.mean() > _SKEW * np.median(some) and strong > _SPAN * weak:
        yield Notice(
            "raw",
            "caution",
            f"The values reach {np.nanmax(high):,.0f} and differ by orders of magnitude, as raw "
            "intensities and counts do. On that scale a few large values decide everything: take "
            "logarithms first, with the option log2, unless you know better.",
        )
