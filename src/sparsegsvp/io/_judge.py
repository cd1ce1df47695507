"""Judge a table that has been read: what cannot be used, what is left out, what looks odd."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._notices import Notice
from . import _checks
from ._assemble import Parts
from .errors import InputError, listed, option, quote, suggestion


@dataclass(frozen=True)
class Judgement:
    """What `judge` found: sentences for the record, notices, and the number of gaps."""

    notes: list[str]
    notices: tuple[Notice, ...]
    n_missing: int


def judge(
    parts: Parts, where: str, *, target: str | None, positive: str | None, fixed: bool
) -> Judgement:
    """Check the parts of a table, leaving out in place what cannot serve.

    With `fixed` features none is left out, since a model waits for each of them.
    """
    if parts.X.shape[0] == 0:
        raise InputError("there is a header but no sample", where=where, remedy="check the file")
    if parts.X.shape[1] == 0:
        raise InputError(
            "no column of numbers is left", where=where, remedy=f"check {option('drop')}"
        )
    notes = list(parts.notes)
    _leave_out_unlabelled(parts, where, notes)
    labels = parts.text.get("target")
    if labels is not None and target is not None:
        _checks.refuse_labels([str(v) for v in labels], target, where)
    check_positive(positive, labels, target, where)
    groups = parts.text.get("group")
    if groups is not None and None in groups:
        at = _place(parts, groups.index(None))
        raise InputError(
            "a sample has no group",
            where=f"{where}, {at}",
            remedy=f"fill the cell of {option('group')}",
        )
    low, high = _checks.column_range(parts.X)
    _checks.refuse_overflow(parts.X, low, high, parts.names, where, parts.place, parts.lines)
    if not fixed:
        _leave_out_empty(parts, low, where, notes)
        filled = ~np.isnan(low)
        constant = [n for n, same in zip(parts.names, low[filled] == high[filled]) if same]
        if constant:
            notes.append(f"{_count(len(constant), 'feature')} constant: {listed(constant)}")
    missing = _checks.missing_per_column(parts.X)
    if missing.any():
        affected = [parts.names[j] for j in np.flatnonzero(missing)]
        features = "1 feature" if len(affected) == 1 else f"{len(affected)} features"
        notes.append(
            f"{_count(int(missing.sum()), 'value')} missing in {features}: {listed(affected)}"
        )
    ids = parts.text.get("id")
    notices = (*_repeats(parts.X, ids, groups), *_orientation(parts, ids))
    return Judgement(notes, notices, int(missing.sum()))


def _count(n: int, noun: str) -> str:
    return f"1 {noun} is" if n == 1 else f"{n} {noun}s are"


def _place(parts: Parts, row: int) -> str:
    if parts.lines is not None:
        return f"{parts.place} {parts.lines[row]}"
    ids = parts.text.get("id")
    if ids is not None and ids[row] is not None:
        return f"sample {quote(ids[row])}"
    return f"{parts.place} {row + 1}"


def _leave_out_unlabelled(parts: Parts, where: str, notes: list[str]) -> None:
    labels = parts.text.get("target")
    if labels is None or None not in labels:
        return
    keep = np.array([label is not None for label in labels])
    if not keep.any():
        raise InputError("no sample has a label", where=where, remedy=f"check {option('target')}")
    gone = [_place(parts, int(i)) for i in np.flatnonzero(~keep)]
    shown = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
    what = (
        "1 sample has no label and was"
        if len(gone) == 1
        else (f"{len(gone)} samples have no label and were")
    )
    notes.append(f"{what} left out ({shown})")
    parts.X = parts.X[keep]
    parts.text = {
        role: [v for v, k in zip(values, keep) if k] for role, values in parts.text.items()
    }
    if parts.lines is not None:
        parts.lines = [line for line, k in zip(parts.lines, keep) if k]


def _leave_out_empty(parts: Parts, low: NDArray[Any], where: str, notes: list[str]) -> None:
    """Leave out columns without a single value: there is nothing to impute from."""
    empty = np.isnan(low)
    if not empty.any():
        return
    names = [parts.names[j] for j in np.flatnonzero(empty)]
    if empty.all():
        raise InputError("there is not a single number in the table", where=where)
    notes.append(f"{_count(len(names), 'feature')} left out, having no value: {listed(names)}")
    parts.dropped.update(dict.fromkeys(names, "no value"))
    parts.X = parts.X[:, ~empty]
    parts.names = [name for name, e in zip(parts.names, empty) if not e]


def check_positive(
    positive: str | None, labels: list[str | None] | None, target: str | None, where: str
) -> None:
    """Refuse a class of interest that no sample has."""
    if positive is None:
        return
    if labels is None:
        raise InputError(f"{option('positive')} needs {option('target')}", where=where)
    if positive not in labels:
        raise InputError(
            f"no sample has the label {quote(positive)} ({option('positive')}) in {quote(target)}",
            where=where,
            remedy=suggestion(positive, sorted({str(v) for v in labels})),
        )


def _repeats(
    X: Any, ids: list[str | None] | None, groups: list[str | None] | None
) -> Iterator[Notice]:
    """Say which identifiers and which rows occur again.

    A sample and its copy on both sides of a split make every score too good. Groups keep
    copies together, unless they are in different groups.
    """
    if ids is not None:
        members: dict[str, list[int]] = {}
        for i, key in enumerate(ids):
            if key:
                members.setdefault(key, []).append(i)
        again = [(rows[0], i) for rows in members.values() for i in rows[1:]]
        again, apart = _apart(again, groups)
        if again:
            twice = list(dict.fromkeys(ids[first] for first, _ in again))
            text = f"{_count(len(twice), 'identifier')} repeated ({listed(twice)})"
            yield _repeats_notice(text, groups is not None, apart)
    pairs, apart = _apart(_checks.repeated_rows(X), groups)
    if pairs:
        first, second = pairs[0]
        names = (
            f"{quote(ids[first])} and {quote(ids[second])}"
            if ids is not None
            else f"Samples {first + 1} and {second + 1}"
        )
        more = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
        text = f"{names}{more} have exactly the same values"
        yield _repeats_notice(text, groups is not None, apart)


def _apart(
    pairs: list[tuple[int, int]], groups: list[str | None] | None
) -> tuple[list[tuple[int, int]], bool]:
    """Return the pairs that a split may take apart, or all of them if none can be."""
    apart = pairs if groups is None else [(i, j) for i, j in pairs if groups[i] != groups[j]]
    return apart or pairs, bool(apart)


def _repeats_notice(text: str, grouped: bool, apart: bool) -> Notice:
    if not apart:
        return Notice("repeats", "note", f"{text}, within a group.")
    if grouped:
        return Notice("repeats", "serious", f"{text} in different groups.")
    remedy = "if they are one patient, name the patients as groups"
    return Notice("repeats", "serious", f"{text}: {remedy}.")


def _orientation(parts: Parts, ids: list[str | None] | None) -> Iterator[Notice]:
    """Suspect features in rows: many rows, few columns, and a distinct name on every row."""
    n, m = parts.X.shape
    if parts.place == "column" or ids is None or n < 500 or n < 5 * m or len(set(ids)) < n:
        return
    yield Notice(
        "orientation",
        "note",
        f"There are {n} samples with only {m} features, each with its own name: if the features "
        "are in rows, the table has to be read transposed.",
    )
