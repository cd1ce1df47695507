"""Checks of a table in the making: what is refused, left out, or looks odd.

`NOTICES` has the words of what looks odd; `check` leaves out in place what cannot serve.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Action, Notice, Severity
from .._validate import LARGEST, first_few
from .cells import BELOW_DETECTION, MISSING, Codes, as_label, column_of, column_slices
from .errors import InputError, counted, listed, locating, option, quote, suggestion
from .formats import read_frame, shown_name
from .frame import Frame, Labels, refuse_duplicates
from .roles import (
    CODES,
    REPEATS,
    ColumnRole,
    Facts,
    Role,
    Roles,
    look_of,
    looks_of,
    names_people,
    names_samples,
    role_of,
)
from .text import ReadOptions, looks_numeric, names_in

_PATIENT = "if they are one patient, name the patients as groups."
# Severity, words, and the option that would see to it with the words for that.
NOTICES: dict[str, tuple[Severity, str, str, str]] = {
    "patients": (
        "serious",
        "Column {names} has {levels} values in {n} samples. If they are patients, name it as the "
        "groups: samples of one patient in training and in test make every score too good.",
        "group", "Keep the samples of each {name} together",
    ),
    "batch column": (
        "note",
        "{names} looks like a batch and is left out. Name it as the batch to see whether the panel "
        "tells batches rather than classes.",
        "batch", "Audit {name} as a batch",
    ),
    "roles": (
        "note",
        "{names} {look} {words}. In a table of few or unlike columns {are} like the others; drop "
        "what is not to be predicted from.",
        "drop", "Leave {name} out",
    ),
    "roles: codes": (
        "caution",
        "{names} {has} two codes only, unlike the other features: if that is no measurement, drop "
        "it.",
        "drop", "Leave {name} out",
    ),
    "leak": (
        "serious",
        "The values of {names} tell the class of every sample: if this is the label under another "
        "name, or was measured after it was known, drop it.",
        "drop", "Leave {name} out",
    ),
    "leak: batch": (
        "serious",
        "Each value of {names} occurs in one class only: what is found may tell these apart rather "
        "than the classes.",
        "", "",
    ),
    "repeats: ids": ("serious", "{text}: " + _PATIENT, "group",
                     "Keep the samples of each {name} together"),
    "repeats": ("serious", "{text}: " + _PATIENT, "", ""),
    "repeats: within": ("note", "{text}, within a group.", "", ""),
    "repeats: across": ("serious", "{text} in different groups.", "", ""),
    "orientation": (
        "note",
        "There are {n} samples with only {m} features, each with its own name: if the features are "
        "in rows, the table has to be read transposed.",
        "transpose", "Read the features from rows",
    ),
    "identifiers": (
        "serious",
        "The identifiers in {names} are stored as numbers of more than 15 digits, of which the "
        "last were lost: store them as text.",
        "", "",
    ),
    "thousands": (
        "note",
        "All numbers with a mark have three digits after it, such as {text} in '{where}': it is "
        "read as the decimal mark. If it separates thousands, say so with the option thousands.",
        "thousands", "Read {text} as {whole}",
    ),
    "detection": (
        "caution",
        "Some values are marked as too low to be detected, or may be ({listing}). They are treated "
        "as missing and filled with medians, which are too high for them, and whether a value "
        "could be measured may itself differ between the classes. If there are many, write a low "
        "number in their place, such as half of the limit of detection.",
        "", "",
    ),
    "codes": (
        "serious",
        "{listing} in {where} lies far from all other values, as codes for missing values do. If "
        "it is one, name it with the option na: as a number it decides everything.",
        "na", "Treat {name} as missing",
    ),
    "raw": (
        "caution",
        "The values reach {high:,.0f} and differ by orders of magnitude, as raw intensities and "
        "counts do. On that scale a few large values decide everything: take logarithms first, "
        "with the option log2, unless you know better.",
        "log2", "Take logarithms",
    ),
    "missing labels": ("note", "{what} left out.", "", ""),
    "missing labels: code": (
        "caution",
        "{names} is taken as a class. If it stands for a label that is missing, name it with the "
        "option na.",
        "na", "Treat {name} as missing",
    ),
    "spelling": (
        "note",
        "Labels that differ in capitals, blanks or as 1 and 1.0 are taken as one class: {text}. If "
        "they are different classes, give them different names.",
        "", "",
    ),
}  # fmt: skip


def notice(kind: str, *values: Any, severity: Severity | None = None, **words: Any) -> Notice:
    """Return a notice of `NOTICES`; each of the values has an action of its own."""
    usual, text, name, label = NOTICES[kind]
    made = [Action(name, v, label.format(name=v, **words)) for v in values] if name else []
    text = text.format(names=listed(values), **words)
    return Notice(kind.partition(":")[0], severity or usual, text, tuple(made))


def check(
    frame: Frame, roles: Roles, target: str | None, positive: str | None, first: str
) -> str | None:
    """Check a table, leaving out in place what cannot serve; notices and notes go into it.

    Where the caller listed the features none is left out, since a model waits for each. `first`
    is the name of the first column. Returns the class of interest as it is spelled.
    """
    nothing = InputError("no column of numbers is left", remedy=f"check {option('drop')}")
    if len(frame) == 0:
        raise InputError("there is a header but no sample", remedy="check the file")
    if not (frame.names or frame.texts or roles.features or frame.adjust):
        raise nothing
    positive = _check_labels(frame, target, positive, one_class=roles.features is not None)
    _check_groups(frame)
    low, high = column_range(frame.X)
    _refuse_overflow(frame, low, high)
    _note_asked(frame, roles, target)
    if roles.features is not None:
        return positive
    if np.isnan(low).any():
        empty = [frame.names[j] for j in np.flatnonzero(np.isnan(low))]
        if len(empty) == len(frame.names):
            raise InputError("there is not a single number in the table")
        said = f"{counted(len(empty), 'feature')} left out, having no value: {listed(empty)}"
        frame.notes.append(said)
        frame.dropped |= dict.fromkeys(empty, "no value")
        frame.take(np.flatnonzero(~np.isnan(low)).tolist())
    if not (frame.names or frame.texts or frame.adjust):
        raise nothing
    _assign_roles(frame, roles, target, first)
    low, high = column_range(frame.X)
    if constant := [name for name, same in zip(frame.names, low == high) if same]:
        frame.notes.append(f"{counted(len(constant), 'feature')} constant: {listed(constant)}")
    frame.notices[:0] = [*_repeats(frame), *_orientation(frame)]
    frame.notices += _raw_intensities(frame.X, low, high)
    return positive


# --- labels and groups -----------------------------------------------------------------


def _check_labels(
    frame: Frame, target: str | None, positive: str | None, *, one_class: bool
) -> str | None:
    """Leave samples without a label out, take spellings as one class, refuse what is no class.

    Samples to test a model on may be of one class. Returns the class of interest in the spelling
    that its class has got.
    """
    if "target" not in frame.text:
        if positive is not None:
            raise InputError(f"{option('positive')} needs {option('target')}")
        return None
    labels = frame.text["target"]
    kept = [i for i, label in enumerate(labels) if label is not None]
    if not kept:
        raise InputError("no sample has a label", remedy=f"check {option('target')}")
    if gone := [_place(frame, i) for i, label in enumerate(labels) if label is None]:
        one = len(gone) == 1
        what = (
            "1 sample has no label and was"
            if one
            else f"{len(gone)} samples have no label and were"
        )
        frame.notes.append(f"{what} left out ({first_few(gone, most=3)})")
        frame.notices.append(notice("missing labels", what=what))
        frame.pick(kept)
    positive = _unify_spelling(frame, positive)
    y = [str(label) for label in frame.text["target"]]
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
    if len(distinct) == len(y) > 2:
        raise InputError(
            f"{what} has a different value in every row",
            remedy=f"it looks like identifiers: use {option('id')} for it and name the classes as "
            f"{option('target')}",
        )
    if positive is not None and positive not in y:
        raise InputError(
            f"no sample has the label {quote(positive)} ({option('positive')}) in {quote(target)}",
            remedy=suggestion(positive, distinct),
        )
    if codes := [label for label in distinct if label.strip().lower() in MISSING - {"-"}]:
        frame.notices.append(notice("missing labels: code", *codes))
    return positive


_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def spelling_key(label: str) -> str:
    """Return what all spellings of a label share: Tumor, TUMOR and "tumor " are one, 1 and 1.0."""
    text = " ".join(label.split()).casefold()
    whole = _WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def read_labels(file: Path, on: str | None, target: str | None, options: ReadOptions) -> Labels:
    """Read a second file; its first column identifies the samples unless `on` is another."""
    source, codes = shown_name(file), Codes(options.na)
    with locating(source):
        frame = read_frame(file, ReadOptions(encoding=options.encoding, na=options.na), None)
        columns = {} if frame.ids is None else {frame.id_name: frame.ids}
        if not frame.all_features:
            refuse_duplicates(frame.names, "column")
            columns |= {name: frame.cells(p) for p, name in enumerate(frame.names)}
        columns |= frame.beside
        names = list(columns)
        on = names[0] if on is None else on
        others = [name for name in names if name != on]
        if target is None and len(others) != 1 and on in names:
            what = f"it has the columns {listed(others)} besides {quote(on)}"
            remedy = f"say which holds the labels with {option('target')}"
            raise InputError(what, remedy=remedy)
        target = others[0] if target is None else target
        for name, role in ((on, "on"), (target, "target")):
            if name not in columns:
                what = f"there is no column {quote(name)} ({option(role)})"
                raise InputError(what, remedy=suggestion(name, names))
        labels = [codes.label(cell) for cell in columns[target]]
        rows: dict[str, int] = {}
        for row, key in enumerate(map(as_label, columns[on])):
            label, other = labels[row], labels[rows.setdefault(key or "", row)]
            if key and spelling_key(label or "") != spelling_key(other or ""):
                what = f"{quote(key)} is labelled {quote(other)} and {quote(label)}"
                raise InputError(what, remedy="keep one label for each sample")
        rows.pop("", None)
    return Labels(columns, rows, on, target, source)


def _unify_spelling(frame: Frame, positive: str | None) -> str | None:
    """Take labels that differ in spelling as one class, by the most frequent, or first, of them."""
    labels = [str(label) for label in frame.text["target"]]
    counts, stripped = Counter(labels), Counter(label.strip() for label in labels)
    best: dict[str, str] = {}
    for label in sorted(stripped, key=lambda label: (-stripped[label], label)):
        best.setdefault(spelling_key(label), label)
    chosen = {label: best[spelling_key(label)] for label in sorted(counts)}
    frame.text["target"] = [chosen[label] for label in labels]
    parts = []
    for name in dict.fromkeys(chosen.values()):
        several = sorted((s for s in chosen if chosen[s] == name), key=lambda s: (s != name, s))
        listing = ", ".join(f"{quote(label)} {counts[label]}" for label in several)
        parts += [f"{quote(name)} ({listing})"] if len(several) > 1 else []
    if parts:
        text = "; ".join(parts)
        frame.notes.append(f"labels in several spellings are one class: {text}")
        frame.notices.append(notice("spelling", text=text))
    return None if positive is None else chosen.get(positive, positive)


def _check_groups(frame: Frame) -> None:
    """Refuse groups with gaps, and batches with gaps, one value only, or another in every row."""
    for role, cells in frame.text.items():
        role, _, name = role.partition(":")
        if role not in ("group", "batch"):
            continue
        what, levels = f"column {quote(name)} ({option('batch')})", len(set(cells))
        if None in cells:
            raise InputError(
                f"a sample has no {'group' if role == 'group' else f'value in {what}'}",
                where=_place(frame, cells.index(None)),
                remedy=f"fill the cell of {option(role)}, with a word such as unknown if need be",
            )
        if role == "batch" and levels == 1:
            raise InputError(f"{what} has only the value {quote(cells[0])}", remedy="leave it out")
        if role == "batch" and levels == len(cells):
            raise InputError(
                f"{what} has a different value in every row",
                remedy="name a column whose values several samples share, such as plate or day",
            )


def _place(frame: Frame, row: int) -> str:
    """Say where a sample is: by its line, by its identifier, or by its number."""
    named = frame.lines is None and frame.text.get("id")
    return f"sample {quote(frame.name_of(row))}" if named else frame.row(row)


# --- roles -----------------------------------------------------------------------------

_MANY = 50  # features above which a table may be wide
_PER_LOOK = 4  # other features for each that looks clinical or technical
_ALIKE = 0.9  # share of them that are alike
_FEW_ODD = 10  # columns of two codes among fractions that are worth a word
_RARE = 0.1  # share of the samples that have the rarer of two codes
_FEWEST = 4  # samples of a class below which equal values say nothing


def _note_asked(frame: Frame, roles: Roles, target: str | None) -> None:
    """Write down the roles that the caller gave, and that of names which are no column."""
    given = [] if target is None else [ColumnRole(target, "target", "as asked")]
    if "id" in frame.text and all(column.role != "id" for column in frame.roles):
        reason = "names of the samples" if roles.id is None else "as asked"
        given.append(ColumnRole(roles.id or "", "id", reason))
    if "group" in frame.text:
        given.append(ColumnRole(roles.group or "groups", "group", "as asked: never split"))
    batches = [role[6:] for role in frame.text if role.startswith("batch:")]
    given += [ColumnRole(name, "batch", "asked for") for name in batches]
    frame.roles += given
    frame.roles += [ColumnRole(name, "ignored", why) for name, why in frame.dropped.items()]


def _assign_roles(frame: Frame, roles: Roles, target: str | None, first: str) -> None:
    """Give every column of a table its role, and leave out in place what is no feature."""
    names, position = frame.names, {name: i for i, name in enumerate(frame.names)}
    keep = set(names_in(roles.keep, {*names, *frame.texts}))
    for name in sorted(keep - position.keys()):
        if name in frame.texts:
            what, remedy = f"{_first_text(frame, name, 'keep')}", "code it as numbers"
            raise InputError(what, remedy=remedy)
        what = f"there is no column {quote(name)} ({option('keep')})"
        raise InputError(what, remedy=suggestion(name, [*names, *frame.texts]))
    frame.roles += [
        ColumnRole(name, "feature", "kept as asked")
        for name in names if name in keep and (look_of(name) or names_samples(name))
    ]  # fmt: skip
    looks = {i: look for i, look in looks_of(names).items() if names[i] not in keep}
    whole = whole_columns(frame.X)
    others = np.delete(whole, list(looks))
    share = float(others.mean()) if len(others) else 0.0
    wide = len(others) > _MANY and len(others) >= _PER_LOOK * len(looks)
    wide, fractions = wide and max(share, 1 - share) >= _ALIKE, share <= 0.5
    facts = [
        Facts(
            name,
            True,
            len(frame),
            len(set(cells) - {None}),
            first=name == first,
            look=look_of(name),
        )
        for name, cells in frame.texts.items()
    ]
    for i, name in enumerate(names):
        if name in keep:
            continue
        if i in looks or (
            whole[i] and ((wide and fractions) or names_samples(name) or names_people(name))
        ):
            facts.append(_facts(frame, i, bool(whole[i]), looks.get(i)))
    given: dict[Facts, tuple[str, str]] = {}
    for c in facts:
        role, reason = given[c] = role_of(c, wide, fractions, "id" not in frame.text)
        if role == "id":
            if c.text and c.first and target is None:
                raise InputError(
                    _first_text(frame, c.name),
                    remedy=f"if it names the samples use {option('id', c.name)}, if it names the "
                    f"features {option('transpose', True)}",
                )
            cells = frame.texts[c.name] if c.text else frame.cells(position[c.name])
            frame.text["id"] = [as_label(cell) for cell in cells]
            if any(isinstance(cell, float) and abs(cell) >= 2**53 for cell in cells):
                frame.notices.append(notice("identifiers", c.name))
    codes = [c for c, (_, reason) in given.items() if reason == CODES]
    if len(codes) > _FEW_ODD:  # a kind of measurement
        given |= dict.fromkeys(codes, ("feature", ""))
    if refused := [c.name for c, (role, _) in given.items() if role == "refused"]:
        raise _holds_text(frame, refused)
    gone = {c.name for c, (role, reason) in given.items() if role != "feature"}
    for c, (role, reason) in given.items():
        if reason:
            frame.roles.append(ColumnRole(c.name, cast(Role, role), reason))
        if c.name in gone and role != "id":
            frame.dropped[c.name] = f"{role}: {reason}"
    frame.notices += [*_notice_roles(frame, given), *_giveaways(frame, given, gone)]
    left = [i for i, name in enumerate(names) if name not in gone]
    if not left and not frame.adjust:
        raise InputError(
            "no column of numbers is left as a feature",
            remedy=f"name those to use with {option('keep')}",
        )
    frame.take(left)
    if out := [c.name for c, (role, _) in given.items() if role not in ("feature", "id")]:
        s = "column was" if len(out) == 1 else "columns were"
        frame.notes.append(f"{len(out)} {s} left out, not being features: {listed(out)}")


def _facts(frame: Frame, i: int, whole: bool, look: Any) -> Facts:
    """Return what the rules ask of a column of numbers."""
    column = column_of(frame.X, i)
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    coded = values.tolist() in ([0, 1], [1, 2]) and bool(counts.min() >= _RARE * len(column))
    levels = len(values)
    if len(values) and np.abs(values).max() >= 2**53 and i in frame.raw:  # digits were lost
        levels = len({as_label(cell) for cell in frame.cells(i)})
    gaps = bool(np.isnan(column).any()) and look is None
    return Facts(frame.names[i], False, len(column), levels, whole and not gaps, coded, look=look)


def _notice_roles(frame: Frame, given: dict[Facts, tuple[str, str]]) -> Iterator[Notice]:
    """Say of which columns more is to be decided."""
    for c, (role, reason) in given.items():
        if reason == REPEATS and "group" not in frame.text:
            yield notice("patients", c.name, levels=c.levels, n=c.n)
        batches = any(role.startswith("batch:") for role in frame.text)
        if role == "batch" and reason.startswith("looks") and not batches:
            yield notice("batch column", c.name)
    plain = [c for c, (role, reason) in given.items() if role == "feature" and c.look and reason]
    if plain:
        kinds = [c.look for c in plain if c.look is not None]
        one, outcome = len(plain) == 1, any(look.role == "ignored" for look in kinds)
        yield notice(
            "roles", *(c.name for c in plain), severity="caution" if outcome else "note",
            look="looks" if one else "look", are="it is a feature" if one else "they are features",
            words=" or ".join(dict.fromkeys(look.words for look in kinds)),
        )  # fmt: skip
    if coded := [c.name for c, (_, reason) in given.items() if reason == CODES]:
        yield notice("roles: codes", *coded, has="has" if len(coded) == 1 else "have")


def whole_columns(X: Any) -> NDArray[np.bool_]:
    """Return which columns hold whole numbers alone, missing ones aside."""
    if sparse.issparse(X):
        part = np.flatnonzero(~np.isnan(X.data) & (X.data != np.floor(X.data)))
        return np.bincount(X.indices[part], minlength=X.shape[1]) == 0
    blocks = (X[:, part] for part in column_slices(X))
    whole = [~(np.isfinite(b) & (b != np.floor(b))).any(axis=0) for b in blocks]
    return np.concatenate([np.zeros(0, dtype=bool), *whole])


def _giveaways(
    frame: Frame, given: dict[Facts, tuple[str, str]], gone: set[str]
) -> Iterator[Notice]:
    """Name columns whose values say the class: copies of the label, or batches of one class."""
    if "target" not in frame.text:
        return
    classes = np.unique([str(label) for label in frame.text["target"]], return_inverse=True)[1]
    position = {name: i for i, name in enumerate(frame.names)}
    copies = [frame.names[int(j)] for j in _constant_within(frame.X, classes)]
    for c in given:
        cells = frame.texts[c.name] if c.text else column_of(frame.X, position[c.name])
        few = c.look is not None or c.name in gone
        if few and c.name not in copies and _determines(cells, classes):
            copies.append(c.name)
    if features := sorted((n for n in copies if n not in gone), key=position.__getitem__):
        yield notice("leak", *features)
    for name in copies:
        look = look_of(name) if name in gone else None
        if look is not None and look.role == "batch":
            yield notice("leak: batch", name)


def _constant_within(X: Any, codes: NDArray[Any]) -> list[int]:
    """Return the columns that have one value in each class, and more than one in all."""
    members = [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]
    columns: list[int] = []
    for part in column_slices(X) if min(map(len, members)) >= _FEWEST else ():
        ends = [column_range(X[rows][:, part], gaps=True) for rows in members]
        low, high = (np.array(end) for end in zip(*ends))
        same = (low == high).all(axis=0) & (low.min(axis=0) < high.max(axis=0))
        columns += (part.start + np.flatnonzero(same)).tolist()
    return columns


def _determines(values: Any, codes: NDArray[Any]) -> bool:
    """Whether few values, each of them in one class only, say the class of every sample."""
    cells = [str(value) for value in values]
    levels, pairs = len(set(cells)), len(set(zip(cells, codes.tolist())))
    return 1 < levels == pairs and 3 * levels <= len(cells) >= 2 * _FEWEST


def _first_text(frame: Frame, name: str, role: str = "") -> str:
    """Say that a column holds text, and where the first is."""
    cells = frame.texts[name]
    row = next(i for i, cell in enumerate(cells) if cell is not None)
    line = "row" if frame.place == "column" else "column"
    of = f" ({option(role)})" if role else ""
    return f"{line} {quote(name)}{of} holds text ({quote(cells[row])} on {frame.row(row)})"


def _holds_text(frame: Frame, names: list[str]) -> InputError:
    """Refuse text that may be meant as a feature; the remedy depends on what it looks like."""
    what, it = _first_text(frame, names[0]), "it"
    if len(names) > 1:
        line, _, where = what.partition(f" {quote(names[0])} holds text")
        what, it = f"{line}s {listed(names)} hold text{where}", "them"
    remedy = f"leave {it} out with {option('drop', names)}, have {it} in every panel with "
    remedy += f"{option('adjust', names)}, or code {it} as numbers"
    people = [name for name in names if names_people(name) or names_samples(name)]
    if people:
        remedy = f"{option('group', people[0])} keeps the samples of each together; else {remedy}"
    return InputError(what, remedy=remedy)


# --- samples ---------------------------------------------------------------------------


def _repeats(frame: Frame) -> Iterator[Notice]:
    """Say which identifiers and which rows occur again.

    A sample and its copy on both sides of a split make every score too good. Groups keep
    copies together, unless they are in different groups.
    """
    ids, groups = frame.text.get("id"), frame.text.get("group")
    rows = [_row_digest(frame.X, i) for i in range(len(frame) if frame.names else 0)]
    for keys, kind in ((ids or [], "repeats: ids"), (rows, "repeats")):
        first_of: dict[Any, int] = {}
        pairs = [(first_of.setdefault(key, i), i) for i, key in enumerate(keys) if key]
        pairs = sorted((i, j) for i, j in pairs if i != j)
        apart = pairs if groups is None else [(i, j) for i, j in pairs if groups[i] != groups[j]]
        if not pairs:
            continue
        first, second = (apart or pairs)[0]
        twice = list(dict.fromkeys(keys[i] for i, _ in apart or pairs))
        text = f"{counted(len(twice), 'identifier')} repeated ({listed(twice)})"
        if kind == "repeats":
            text = f"Samples {first + 1} and {second + 1}"
            if ids is not None:
                text = f"{quote(ids[first])} and {quote(ids[second])}"
            n_more = len(apart or pairs) - 1
            text += f"{f' and {n_more} more' if n_more else ''} have exactly the same values"
        if groups is not None:
            kind = "repeats: across" if apart else "repeats: within"
        named = [c.column for c in frame.roles if c.role == "id" and c.column]
        yield notice(kind, *named, text=text)


def _row_digest(X: Any, i: int) -> bytes:
    row = X[[i]]
    parts = (row.indices, row.data) if sparse.issparse(row) else (row,)
    return hashlib.blake2b(b"".join(p.tobytes() for p in parts), digest_size=16).digest()


def _orientation(frame: Frame) -> Iterator[Notice]:
    """Suspect features in rows: many rows, few columns, and a distinct name on every row."""
    n, m = frame.X.shape
    ids = frame.text.get("id")
    if frame.place == "column" or ids is None or n < 500 or n < 5 * m or len(set(ids)) < n:
        return
    if not all(looks_numeric(name or "") for name in ids):  # no feature is called 842302
        yield notice("orientation", True, n=n, m=m)


# --- numbers ---------------------------------------------------------------------------


def column_range(X: Any, gaps: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and the largest value of each column, NaN only where all are missing.

    With `gaps` it is NaN where any is missing.
    """
    if sparse.issparse(X):
        low, high = (np.asarray(m.todense()).ravel() for m in (X.min(axis=0), X.max(axis=0)))
        for j in () if gaps else np.flatnonzero(np.isnan(low) | np.isnan(high)):
            low[j], high[j] = (end[0] for end in column_range(X[:, [int(j)]].toarray()))
        return low, high
    if gaps:
        return X.min(axis=0), X.max(axis=0)
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def note_values(frame: Frame) -> int:
    """Count the missing values, and say which others may be codes for them."""
    X = frame.X
    if frame.codes:
        counts = sorted(frame.codes.items(), key=lambda pair: (-pair[1], pair[0]))
        listing = first_few((f"{quote(code)} {n}" for code, n in counts), most=8)
        frame.notes.append(f"taken as missing: {listing}")
        low = [f"{quote(code)} {n}" for code, n in counts if code.lower() in BELOW_DETECTION]
        frame.notices += [notice("detection", listing=first_few(low))] if low else []
    frame.notices += _suspected_codes(X, frame.names)
    if sparse.issparse(X):
        missing = np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    else:
        missing = np.isnan(X).sum(axis=0)
    n_missing = int(missing.sum())
    if n_missing:
        affected = [frame.names[j] for j in np.flatnonzero(missing)]
        features = "1 feature" if len(affected) == 1 else f"{len(affected)} features"
        said = f"{counted(n_missing, 'value')} missing in {features}: {listed(affected)}"
        frame.notes.append(said)
    return n_missing


_NINES = [sign * (10.0**k - 1) for k in range(2, 8) for sign in (1, -1)]
_FAR = 10  # times the largest other value of a column


def _suspected_codes(X: Any, names: Sequence[str]) -> Iterator[Notice]:
    """Warn of -9999 and the like far from all other values of a feature."""
    met: Counter[float] = Counter()
    where: list[str] = []
    low, high = column_range(X)
    for j in np.flatnonzero(np.isin(low, _NINES) | np.isin(high, _NINES)):
        column = column_of(X, int(j))
        codes = {float(v) for v in (low[j], high[j]) if v in _NINES}
        others = np.abs(column[~np.isin(column, list(codes)) & ~np.isnan(column)])
        if others.any():
            far = [code for code in codes if abs(code) > _FAR * others.max()]
            met.update({code: int((column == code).sum()) for code in far})
            where += [names[int(j)]] if far else []
    if met:
        listing = ", ".join(f"{code:g} ({n} times)" for code, n in met.items())
        together = ",".join(f"{code:g}" for code in met)
        yield notice("codes", together, listing=listing, where=listed(where))


def _refuse_overflow(frame: Frame, low: NDArray[Any], high: NDArray[Any]) -> None:
    """Refuse infinities and numbers whose squares overflow, by column and line."""
    limit = LARGEST[frame.X.dtype.name]
    for j in np.flatnonzero(np.fmax(np.abs(low), np.abs(high)).astype(np.float64) > limit):
        column = column_of(frame.X, int(j))
        i = int(np.flatnonzero(np.abs(column) > limit)[0])
        what = "is infinite" if np.isinf(column[i]) else f"is too large (at most {limit:g})"
        raise InputError(
            f"{column[i]:g} {what}",
            where=f"{frame.row(i)}, column {quote(frame.names[int(j)])}",
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
    some = X[:: max(1, X.shape[0] // _LOOKED_AT), :: max(1, m // _LOOKED_AT)]
    some = some.toarray() if sparse.issparse(some) else some
    some = some[:, ~np.isnan(some).any(axis=0)]
    if np.nanmedian(high) <= _FEATURE_HIGH or not (some > 0).any():
        return
    skewed = np.mean(some.mean(axis=0) > np.median(some, axis=0)) > 0.6
    weak, strong = np.quantile(some[some > 0], [0.01, 0.99])
    if skewed and some.mean() > _SKEW * np.median(some) and strong > _SPAN * weak:
        yield notice("raw", True, high=np.nanmax(high))
