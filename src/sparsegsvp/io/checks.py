"""Checks of a table in the making: what is refused, left out, or looks odd."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Action, Notice
from .._validate import LARGEST, first_few
from .cells import MISSING, column_of, column_slices, suspected_codes
from .errors import InputError, counted, listed, option, quote, suggestion
from .roles import Draft, Roles, asked_roles, assign_roles
from .text import looks_numeric

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def check(draft: Draft, roles: Roles, target: str | None, positive: str | None) -> str | None:
    """Check a table, leaving out in place what cannot serve; notices and notes go into it.

    Where the caller listed the features none is left out, since a model waits for each. Returns
    the class of interest as it is spelled.
    """
    fixed = roles.features is not None
    if draft.X.shape[0] == 0:
        raise InputError("there is a header but no sample", remedy="check the file")
    if draft.X.shape[1] == 0 and not (draft.beside or roles.features or draft.adjust):
        raise InputError("no column of numbers is left", remedy=f"check {option('drop')}")
    positive = _check_labels(draft, target, positive, one_class=fixed)
    _check_groups(draft)
    low, high = column_range(draft.X)
    _refuse_overflow(draft, low, high)
    if fixed:
        draft.roles += asked_roles(draft, roles, target)
        return positive
    _leave_out_empty(draft, low)
    assign_roles(draft, roles, target)
    low, high = column_range(draft.X)
    constant = [name for name, same in zip(draft.names, low == high) if same]
    if constant:
        draft.notes.append(f"{counted(len(constant), 'feature')} constant: {listed(constant)}")
    draft.notices[:0] = [*_repeats(draft), *_orientation(draft)]
    draft.notices += _raw_intensities(draft.X, low, high)
    return positive


# --- labels ----------------------------------------------------------------------------


def _check_labels(
    draft: Draft, target: str | None, positive: str | None, *, one_class: bool
) -> str | None:
    """Leave samples without a label out, take spellings as one class, refuse what is no class.

    Samples to test a model on may be of one class. Returns the class of interest in the spelling
    that its class has got.
    """
    labels = draft.text.get("target")
    if labels is None:
        if positive is not None:
            raise InputError(f"{option('positive')} needs {option('target')}")
        return None
    if None in labels:
        _leave_out_unlabelled(draft, labels)
    positive = _unify_spelling(draft, positive)
    y = [str(label) for label in draft.text["target"]]
    _refuse_labels(y, str(target), one_class)
    if positive is not None and positive not in y:
        raise InputError(
            f"no sample has the label {quote(positive)} ({option('positive')}) in {quote(target)}",
            remedy=suggestion(positive, sorted(set(y))),
        )
    codes = sorted({label for label in y if label.strip().lower() in MISSING - {"-"}})
    if codes:
        draft.notices.append(
            Notice(
                "missing labels",
                "caution",
                f"{listed(codes)} is taken as a class. If it stands for a label that is missing, "
                "name it with the option na.",
                tuple(Action("na", code, f"Treat {code} as missing") for code in codes),
            )
        )
    return positive


def _leave_out_unlabelled(draft: Draft, labels: list[str | None]) -> None:
    keep = np.array([label is not None for label in labels])
    if not keep.any():
        raise InputError("no sample has a label", remedy=f"check {option('target')}")
    gone = [_place(draft, int(i)) for i in np.flatnonzero(~keep)]
    what = "1 sample has no label and was"
    if len(gone) > 1:
        what = f"{len(gone)} samples have no label and were"
    draft.notes.append(f"{what} left out ({first_few(gone, most=3)})")
    draft.notices.append(Notice("missing labels", "note", f"{what} left out."))
    rows = np.flatnonzero(keep)
    draft.X = draft.X[rows]
    for part in (draft.text, draft.beside, draft.written):
        part.update({name: [cells[i] for i in rows] for name, cells in part.items()})
    for name, cells in draft.adjust.items():
        picked = [cells[i] for i in rows]
        draft.adjust[name] = np.array(picked) if isinstance(cells, np.ndarray) else picked
    if draft.lines is not None:
        draft.lines = [draft.lines[int(i)] for i in rows]


def spelling_key(label: str) -> str:
    """Return what all spellings of a label share: Tumor, TUMOR and "tumor " are one, 1 and 1.0."""
    text = " ".join(label.split()).casefold()
    whole = _WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def _unify_spelling(draft: Draft, positive: str | None) -> str | None:
    """Take labels that differ in spelling as one class, by the most frequent, or first, of them."""
    labels = [str(label) for label in draft.text["target"]]
    counts = Counter(labels)
    stripped: Counter[str] = Counter()
    for label, n in counts.items():
        stripped[label.strip()] += n
    best: dict[str, str] = {}
    for label in sorted(stripped, key=lambda label: (-stripped[label], label)):
        best.setdefault(spelling_key(label), label)
    chosen = {label: best[spelling_key(label)] for label in sorted(counts)}
    draft.text["target"] = [chosen[label] for label in labels]
    parts = []
    for name in dict.fromkeys(chosen.values()):
        several = sorted((s for s in chosen if chosen[s] == name), key=lambda s: (s != name, s))
        if len(several) > 1:
            listing = [f"{quote(label)} {counts[label]}" for label in several]
            parts.append(f"{quote(name)} ({', '.join(listing)})")
    if parts:
        described = "; ".join(parts)
        draft.notes.append(f"labels in several spellings are one class: {described}")
        said = "Labels that differ in capitals, blanks or as 1 and 1.0 are taken as one class"
        remedy = "If they are different classes, give them different names."
        draft.notices.append(Notice("spelling", "note", f"{said}: {described}. {remedy}"))
    return None if positive is None else chosen.get(positive, positive)


def _refuse_labels(y: Sequence[str], target: str, one_class: bool) -> None:
    """Refuse labels that are no classes: one value only, identifiers, measurements."""
    distinct = sorted(set(y))
    what = f"column {quote(target)} ({option('target')})"
    if len(distinct) == 1 and not one_class:
        raise InputError(
            f"{what} has only the value {quote(distinct[0])}",
            remedy="a classifier needs at least two classes",
        )
    if all(map(looks_numeric, distinct)) and any(not float(v).is_integer() for v in distinct):
        raise InputError(
            f"{what} holds measurements such as {listed(distinct[:3])}",
            remedy="cut it into classes first",
        )
    if len(distinct) == len(y) and len(y) > 2:
        raise InputError(
            f"{what} has a different value in every row",
            remedy=f"it looks like identifiers: use {option('id')} for it and name the classes as "
            f"{option('target')}",
        )


def _check_groups(draft: Draft) -> None:
    """Refuse groups with gaps, and batches with gaps, one value only, or another in every row."""
    groups = draft.text.get("group")
    if groups is not None and None in groups:
        raise InputError(
            "a sample has no group",
            where=_place(draft, groups.index(None)),
            remedy=f"fill the cell of {option('group')}",
        )
    for name, cells in draft.batches().items():
        what, levels = f"column {quote(name)} ({option('batch')})", len(set(cells))
        if None in cells:
            raise InputError(
                f"a sample has no value in {what}",
                where=_place(draft, cells.index(None)),
                remedy="fill the cell, with a word such as unknown if need be",
            )
        if levels == 1:
            raise InputError(f"{what} has only the value {quote(cells[0])}", remedy="leave it out")
        if levels == len(cells):
            raise InputError(
                f"{what} has a different value in every row",
                remedy="name a column whose values several samples share, such as plate or day",
            )


def _place(draft: Draft, row: int) -> str:
    """Say where a sample is: by its line, by its identifier, or by its number."""
    ids = draft.text.get("id")
    if draft.lines is None and ids is not None and ids[row] is not None:
        return f"sample {quote(ids[row])}"
    return draft.row(row)


# --- samples ---------------------------------------------------------------------------


def _repeats(draft: Draft) -> Iterator[Notice]:
    """Say which identifiers and which rows occur again.

    A sample and its copy on both sides of a split make every score too good. Groups keep
    copies together, unless they are in different groups.
    """
    ids, groups = draft.text.get("id"), draft.text.get("group")
    first_of: dict[str, int] = {}
    same_id = [(first_of.setdefault(key, i), i) for i, key in enumerate(ids or ()) if key]
    same_id = sorted((first, again) for first, again in same_id if first != again)
    for pairs, describe in ((same_id, _same_identifier), (_repeated_rows(draft.X), _same_values)):
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
            id_roles = [c.column for c in draft.roles if c.role == "id" and c.column]
            actions = [
                Action("group", n, f"Keep the samples of each {n} together") for n in id_roles
            ]
            named = tuple(actions) if describe is _same_identifier else ()
            yield Notice("repeats", "serious", f"{text}: {remedy}.", named)


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


def _repeated_rows(X: Any) -> list[tuple[int, int]]:
    """Return pairs (first, repeat) of samples whose numbers agree to the last bit."""
    seen: dict[bytes, int] = {}
    pairs = []
    for i in range(X.shape[0] if X.shape[1] else 0):
        if sparse.issparse(X):
            part = slice(X.indptr[i], X.indptr[i + 1])
            row = X.indices[part].tobytes() + X.data[part].tobytes()
        else:
            row = X[i].tobytes()
        first = seen.setdefault(hashlib.blake2b(row, digest_size=16).digest(), i)
        if first != i:
            pairs.append((first, i))
    return pairs


def _orientation(draft: Draft) -> Iterator[Notice]:
    """Suspect features in rows: many rows, few columns, and a distinct name on every row."""
    n, m = draft.X.shape
    ids = draft.text.get("id")
    if draft.place == "column" or ids is None or n < 500 or n < 5 * m or len(set(ids)) < n:
        return
    if all(looks_numeric(name or "") for name in ids):
        return  # no feature is called 842302
    yield Notice(
        "orientation",
        "note",
        f"There are {n} samples with only {m} features, each with its own name: if the features "
        "are in rows, the table has to be read transposed.",
        (Action("transpose", True, "Read the features from rows"),),
    )


# --- numbers ---------------------------------------------------------------------------


def column_range(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and the largest value of each column, NaN only where all are missing."""
    if sparse.issparse(X):
        low, high = (np.asarray(m.todense()).ravel() for m in (X.min(axis=0), X.max(axis=0)))
        for j in np.flatnonzero(np.isnan(low) | np.isnan(high)):
            column = X[:, [int(j)]].toarray()
            low[j], high[j] = np.fmin.reduce(column)[0], np.fmax.reduce(column)[0]
        return low, high
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def note_values(draft: Draft) -> None:
    """Count the missing values, and say which others may be codes for them."""
    X = draft.X
    draft.notices += suspected_codes(X, draft.names, *column_range(X))
    if sparse.issparse(X):
        missing = np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    else:
        parts = [np.isnan(X[:, part]).sum(axis=0) for part in column_slices(X)]
        missing = np.concatenate([np.zeros(0, dtype=np.intp), *parts])
    draft.n_missing = int(missing.sum())
    if draft.n_missing:
        affected = [draft.names[j] for j in np.flatnonzero(missing)]
        features = "1 feature" if len(affected) == 1 else f"{len(affected)} features"
        draft.notes.append(
            f"{counted(draft.n_missing, 'value')} missing in {features}: {listed(affected)}"
        )


def _leave_out_empty(draft: Draft, low: NDArray[Any]) -> None:
    """Leave out columns without a single value: there is nothing to impute from."""
    empty = np.isnan(low)
    if not empty.any():
        return
    names = [draft.names[j] for j in np.flatnonzero(empty)]
    if empty.all():
        raise InputError("there is not a single number in the table")
    said = f"{counted(len(names), 'feature')} left out, having no value: {listed(names)}"
    draft.notes.append(said)
    draft.dropped.update(dict.fromkeys(names, "no value"))
    draft.X = draft.X[:, np.flatnonzero(~empty)]
    draft.names = [name for name, e in zip(draft.names, empty) if not e]


def _refuse_overflow(draft: Draft, low: NDArray[Any], high: NDArray[Any]) -> None:
    """Refuse infinities and numbers whose squares overflow, by column and line."""
    X, limit = draft.X, LARGEST[draft.X.dtype.name]
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
        where=f"{draft.row(i)}, column {quote(draft.names[j])}",
        remedy="correct it, rescale the column, or leave the cell empty",
    )


_LEAST_FEATURES = 50  # fewer may be measurements of unlike things, each on a scale of its own
_HIGH = 256.0  # 2 ** 8: logarithms and pictures stay below it
_FEATURE_HIGH = 50.0  # no feature of a table of logarithms comes near it
_SPAN = 100.0  # from the weak values to the strong ones
_SKEW = 1.5  # from the median of all values to their mean
_LOOKED_AT = 1000  # about as many features, and samples


def _raw_intensities(X: Any, low: NDArray[Any], high: NDArray[Any]) -> Iterator[Notice]:
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
            (Action("log2", True, "Take logarithms"),),
        )
