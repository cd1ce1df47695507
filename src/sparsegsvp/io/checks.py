"""Checks of a table in the making: what is refused, left out in place, or looks odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice, notice
from .._validate import LARGEST, counted, first_few, listed, quote, suggestion
from .cells import BELOW_DETECTION, MISSING, as_label, column_of, spelling_key
from .errors import InputError, option
from .frame import Frame
from .roles import REPEATS, ColumnRole, Facts, Role, Roles, identifies, look_of, role_of
from .text import looks_numeric


def _notice(kind: str, *values: Any, **words: Any) -> Notice:
    """Return a notice that lists the values it is about."""
    return notice(kind, *values, names=listed(values), **words)


def check(
    frame: Frame, roles: Roles, target: str | None, positive: str | None, first: str
) -> str | None:
    """Check a table, leaving out in place what cannot serve; notices and notes go into it."""
    if len(frame) == 0:
        raise InputError("there is a header but no sample", remedy="check the file")
    positive = _check_labels(frame, target, positive, one_class=roles.features is not None)
    _check_groups(frame)
    _note_asked(frame, roles, target)
    if roles.features is not None:
        return positive
    values = ~np.isnan(column_range(frame.X)[0])
    if empty := [name for name, some in zip(frame.names, values) if not some]:
        said = f"{counted(len(empty), 'feature')} left out, having no value: {listed(empty)}"
        frame.notes.append(said)
        frame.dropped |= dict.fromkeys(empty, "no value")
        frame.take(np.flatnonzero(values).tolist())
    _assign_roles(frame, roles, target, first)
    low, high = column_range(frame.X)
    if constant := [name for name, same in zip(frame.names, low == high) if same]:
        frame.notes.append(f"{counted(len(constant), 'feature')} constant: {listed(constant)}")
    frame.notices[:0] = _repeated_names(frame)
    frame.notices += _raw_intensities(frame.X, low, high)
    return positive


def _check_labels(
    frame: Frame, target: str | None, positive: str | None, *, one_class: bool
) -> str | None:
    """Leave samples without a label out, take spellings as one class, refuse what is no class."""
    if "target" not in frame.text:
        if positive is not None:
            raise InputError(f"{option('positive')} needs {option('target')}")
        return None
    labels = frame.text["target"]
    kept = [i for i, label in enumerate(labels) if label is not None]
    if not kept:
        raise InputError("no sample has a label", remedy=f"check {option('target')}")
    if gone := [frame.row(i) for i, label in enumerate(labels) if label is None]:
        text = f"{counted(len(gone), 'sample', 'was')} left out, having no label"
        frame.notes.append(f"{text} ({first_few(gone, most=3)})")
        frame.notices.append(_notice("missing labels", text=text))
        frame.pick(kept)
    spelling = _spellings(frame)
    y = [spelling[str(label)] for label in frame.text["target"]]
    frame.text["target"], positive = [*y], spelling.get(positive or "", positive)
    distinct, what, remedy = sorted(set(y)), "", ""
    if len(distinct) == 1 and not one_class:
        what = f"has only the value {quote(distinct[0])}"
        remedy = "a classifier needs at least two classes"
    elif all(map(looks_numeric, distinct)) and any(not float(v).is_integer() for v in distinct):
        what, remedy = f"holds measurements such as {listed(distinct[:3])}", "cut it into classes"
    elif len(distinct) == len(y) > 2:
        what = "has a different value in every row"
        remedy = f"it looks like identifiers: use {option('id')} for it"
    if what:
        raise InputError(f"column {quote(target)} ({option('target')}) {what}", remedy=remedy)
    if positive not in (None, *y):
        what = f"no sample has the label {quote(positive)} ({option('positive')}) in "
        raise InputError(f"{what}{quote(target)}", remedy=suggestion(str(positive), distinct))
    if codes := [label for label in distinct if label.strip().lower() in MISSING - {"-"}]:
        frame.notices.append(_notice("missing labels: code", *codes))
    return positive


def _spellings(frame: Frame) -> dict[str, str]:
    """Return for each label the most frequent, or first, of those that differ in spelling only."""
    counts = Counter(map(str, frame.text["target"]))
    best: dict[str, str] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        best.setdefault(spelling_key(label), label.strip())
    chosen = {label: best[spelling_key(label)] for label in counts}
    several = Counter(chosen.values())
    ordered = sorted(counts, key=lambda label: (chosen[label], -counts[label], label))
    said = [f"{quote(label)} {counts[label]}" for label in ordered if several[chosen[label]] > 1]
    if said:
        frame.notes.append(f"labels in several spellings are one class: {', '.join(said)}")
        frame.notices.append(_notice("spelling", text=", ".join(said)))
    return chosen


def _check_groups(frame: Frame) -> None:
    """Refuse groups with gaps, and batches with gaps, one value only, or another in every row."""
    for key, cells in frame.text.items():
        role, _, name = key.partition(":")
        column = f"column {quote(name)} ({option(role)})" if name else role
        if role in ("group", "batch") and None in cells:
            remedy = "fill the cell, with a word such as unknown if need be"
            raise InputError(f"there is no value in {column}", frame.row(cells.index(None)), remedy)
        if role == "batch" and len({*cells}) in (1, len(cells)):
            some = "only the value" if len({*cells}) == 1 else "a different value in every row, as"
            raise InputError(f"{column} has {some} {quote(cells[0])}")


_MANY = 50  # features above which a table may be wide, or all of a kind


def _note_asked(frame: Frame, roles: Roles, target: str | None) -> None:
    """Write down the roles that the caller gave, and that of names which are no column."""
    asked = [(target, "target", "as asked")] if target is not None else []
    if "id" in frame.text and all(column.role != "id" for column in frame.roles):
        asked.append((roles.id or "", "id", "as asked" if roles.id else "names of the samples"))
    if "group" in frame.text:
        asked.append((roles.group or "groups", "group", "as asked: never split"))
    asked += [(role[6:], "batch", "asked for") for role in frame.text if role[:6] == "batch:"]
    asked += [(name, "ignored", why) for name, why in frame.dropped.items()]
    frame.roles += [ColumnRole(name, cast(Role, role), why) for name, role, why in asked]


def _assign_roles(frame: Frame, roles: Roles, target: str | None, first: str) -> None:
    """Give every column of a table its role, and leave out in place what is no feature."""
    names, position = frame.names, {name: i for i, name in enumerate(frame.names)}
    keep = set(roles.keep)
    for name in sorted(keep - position.keys()):
        why, remedy = "is not there", suggestion(name, names)
        if name in frame.texts:
            why, remedy = "holds text", "code it as numbers"
        raise InputError(f"{frame.column} {quote(name)} ({option('keep')}) {why}", remedy=remedy)
    odd = [n for n in names if n in keep and (look_of(n) or identifies(n))]
    frame.roles += [ColumnRole(name, "feature", "kept as asked") for name in odd]
    all_looks = ((i, look_of(name)) for i, name in enumerate(names) if name not in keep)
    looks = {i: look for i, look in all_looks if look}
    whole = whole_columns(frame.X)
    plain = np.delete(whole, list(looks))
    share = float(plain.mean()) if len(plain) else 0.0
    # nine in ten are alike, and four for each that looks clinical or technical
    wide = len(plain) > _MANY and len(plain) >= 4 * len(looks) and max(share, 1 - share) >= 0.9
    texts = frame.texts.items()
    columns = [Facts(name, cells, look_of(name), first=name == first) for name, cells in texts]
    named = {i for i, name in enumerate(names) if identifies(name) and name not in keep}
    for i in sorted({*looks, *(i for i in named if whole[i])}):
        cells = [as_label(cell) for cell in frame.cells(i)]  # as they are written
        entire = bool(whole[i]) and (i in looks or None not in cells)
        columns.append(Facts(names[i], cells, looks.get(i), text=False, whole=entire))
    for c in columns:
        c.role, c.reason = role_of(c, wide, share <= 0.5, "id" not in frame.text)
        if c.role == "id":
            if c.first and target is None:
                remedy = f"if it names the samples use {option('id', c.name)}, if it names the "
                raise _holds_text(frame, [c], f"{remedy}features {option('transpose', True)}")
            frame.text["id"] = c.cells
            read = not c.text and position[c.name] not in frame.raw  # as numbers of 53 bits
            if read and any(len(cell or "") > 15 for cell in c.cells):
                frame.notices.append(_notice("identifiers", c.name))
    if refused := [c for c in columns if c.role == "refused"]:
        drop, adjust = (option(name, [c.name for c in refused]) for name in ("drop", "adjust"))
        remedy = f"leave text out with {drop}, have it in every panel with {adjust}, or "
        people = [option("group", c.name) for c in refused if identifies(c.name)]
        keeps = f"{people[0]} keeps the samples of each together; else " if people else ""
        raise _holds_text(frame, refused, f"{keeps}{remedy}code it as numbers")
    frame.roles += [ColumnRole(c.name, cast(Role, c.role), c.reason) for c in columns if c.reason]
    out = {c.name: f"{c.role}: {c.reason}" for c in columns if c.role not in ("feature", "id")}
    frame.dropped |= out
    gone = {c.name for c in columns if c.role != "feature"}
    frame.notices += [*_notice_roles(frame, columns), *_giveaways(frame, columns, gone)]
    left = [i for i, name in enumerate(names) if name not in gone]
    if not left and not frame.adjust:
        what = "no column of numbers is left as a feature"
        remedy = f"check {option('drop')}, or name those to use with {option('keep')}"
        raise InputError(what, remedy=remedy)
    frame.take(left)
    if out:
        some = counted(len(out), "column", "was")
        frame.notes.append(f"{some} left out, not being features: {listed(out)}")


def _notice_roles(frame: Frame, columns: list[Facts]) -> Iterator[Notice]:
    """Say of which columns more is to be decided."""
    batches = any(role.startswith("batch:") for role in frame.text)
    for c in columns:
        if c.reason == REPEATS and "group" not in frame.text:
            yield _notice("patients", c.name, levels=c.levels, n=len(frame))
        if c.role == "batch" and not batches:
            yield _notice("batch column", c.name)
    plain = {c.name: c.look for c in columns if c.role == "feature" and c.look and c.reason}
    if plain:
        ignored = any(look.role == "ignored" for look in plain.values())
        words = " or ".join(dict.fromkeys(look.words for look in plain.values()))
        yield _notice("roles", *plain, severity="caution" if ignored else "note", words=words)


def whole_columns(X: Any) -> NDArray[np.bool_]:
    """Return which columns hold whole numbers alone, missing ones aside."""
    if sparse.issparse(X):
        return np.bincount(X.indices[X.data > np.floor(X.data)], minlength=X.shape[1]) == 0
    step = max(1, (1 << 20) // max(1, len(X)))  # columns of which a copy stays small
    blocks = (X[:, j : j + step] for j in range(0, max(1, X.shape[1]), step))
    return np.concatenate([~(block > np.floor(block)).any(axis=0) for block in blocks])


def _giveaways(frame: Frame, columns: list[Facts], gone: set[str]) -> Iterator[Notice]:
    """Name columns whose values say the class: copies of the label, or batches of one class."""
    labels, X, names = np.array(frame.text.get("target", [])), frame.X, frame.names
    copies: list[str] = []
    counts = Counter(labels.tolist())
    if min(counts.values(), default=0) >= 4:  # equal values of fewer samples say nothing
        ends = [column_range(X[labels == label]) for label in counts]
        low, high = np.array(ends).swapaxes(0, 1)
        same = (low == high).all(axis=0) & (low.min(axis=0) < high.max(axis=0))
        copies = [names[j] for j in np.flatnonzero(same)]
    for c in columns:
        # few values, each of them in one class only
        few = 1 < c.levels == len({*zip(c.cells, labels)}) and 3 * c.levels <= len(labels)
        copies += [c.name] if few and len(labels) >= 8 and c.name not in copies else []
    if features := [name for name in names if name in copies and name not in gone]:
        yield _notice("leak", *features)
    for c in columns:
        if c.name in copies and c.name in gone and c.look and c.look.role == "batch":
            yield _notice("leak: batch", c.name)


def _holds_text(frame: Frame, columns: list[Facts], remedy: str) -> InputError:
    """Refuse text that may be meant as a feature, saying where the first is."""
    cells, names = columns[0].cells, listed(c.name for c in columns)
    row = next(i for i, cell in enumerate(cells) if cell is not None)
    what = f"{frame.column}s {names} hold" if len(columns) > 1 else f"{frame.column} {names} holds"
    return InputError(f"{what} text ({quote(cells[row])} on {frame.row(row)})", remedy=remedy)


def _repeated_names(frame: Frame) -> Iterator[Notice]:
    """Say which samples share a name and are not kept together; the evaluation looks for copies."""
    groups = frame.text.get("group")
    pairs: set[tuple[Any, Any]] = {*zip(frame.text.get("id", []), groups or range(len(frame)))}
    times = Counter(str(name) for name, _ in pairs if name)
    if again := sorted(name for name, k in times.items() if k > 1):
        named = [c.column for c in frame.roles if c.role == "id" and c.column]
        text = f"{counted(len(again), 'identifier')} repeated ({listed(again)})"
        kind = "repeats: ids" if groups is None else "repeats: across"
        yield _notice(kind, *named, text=text)


def column_range(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and the largest value of each column, NaN only where all are missing."""
    if sparse.issparse(X):
        return X.nanmin(axis=0).toarray().ravel(), X.nanmax(axis=0).toarray().ravel()
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def note_values(frame: Frame) -> int:
    """Count the missing values, and say which others may be codes for them."""
    X, names = frame.X, frame.names
    if frame.codes:
        counts = sorted(frame.codes.items(), key=lambda pair: (-pair[1], pair[0]))
        listing = first_few((f"{quote(code)} {n}" for code, n in counts), most=8)
        frame.notes.append(f"taken as missing: {listing}")
        below = [f"{quote(code)} {n}" for code, n in counts if code.lower() in BELOW_DETECTION]
        frame.notices += [_notice("detection", text=first_few(below))] if below else []
    low, high = column_range(X)
    _refuse_overflow(frame, low, high)
    frame.notices += _suspected_codes(frame, low, high)
    missing = np.asarray((X != X).sum(axis=0)).ravel()
    if missing.any():
        affected = [names[j] for j in np.flatnonzero(missing)]
        features = counted(len(affected), "feature", "")
        said = f"{counted(int(missing.sum()), 'value')} missing in {features}: {listed(affected)}"
        frame.notes.append(said)
    return int(missing.sum())


def _suspected_codes(frame: Frame, low: NDArray[Any], high: NDArray[Any]) -> Iterator[Notice]:
    """Warn of -9999 and the like far from all other values of a feature."""
    met: Counter[float] = Counter()
    where: list[str] = []
    codes = [sign * (10.0**k - 1) for k in range(2, 8) for sign in (1, -1)]
    for j in np.flatnonzero(np.isin(low, codes) | np.isin(high, codes)).tolist():
        column = column_of(frame.X, j)
        nines = np.isin(column, codes)
        others = np.nan_to_num(np.abs(column[~nines])).max(initial=0)
        if others and (far := column[nines & (np.abs(column) > 10 * others)].tolist()):
            met.update(far)
            where.append(frame.names[j])
    if met:
        text = ", ".join(f"{code:g} ({n} times)" for code, n in met.items())
        yield _notice("codes", ",".join(f"{c:g}" for c in met), text=text, where=listed(where))


def _refuse_overflow(frame: Frame, low: NDArray[Any], high: NDArray[Any]) -> None:
    """Refuse infinities and numbers whose squares overflow, by column and line."""
    limit = LARGEST[frame.X.dtype.name]
    for j in np.flatnonzero(np.fmax(np.abs(low), np.abs(high)).astype(np.float64) > limit):
        column = column_of(frame.X, int(j))
        i = int(np.flatnonzero(np.abs(column) > limit)[0])
        what = "is infinite" if np.isinf(column[i]) else f"is too large (at most {limit:g})"
        remedy = "correct it, rescale the column, or leave the cell empty"
        raise InputError(f"{column[i]:g} {what}", frame.where(i, frame.names[int(j)]), remedy)


def _raw_intensities(X: Any, low: NDArray[Any], high: NDArray[Any]) -> Iterator[Notice]:
    """Advise the logarithm where like features are positive, skewed and spread over decades."""
    n, m = X.shape
    # few features may be unlike things; logarithms stay below 50, pictures below 256
    if m < _MANY or np.nanmin(low) < 0 or not 256 < np.nanmax(high) < LARGEST[X.dtype.name]:
        return
    some = X[:: max(1, n // 1000), :: max(1, m // 1000)]  # enough of it
    some = some.toarray() if sparse.issparse(some) else some
    some = some[:, ~np.isnan(some).any(axis=0)]
    if np.nanmedian(high) <= 50 or not (some > 0).any():
        return
    skewed = np.mean(some.mean(axis=0) > np.median(some, axis=0)) > 0.6
    weak, strong = np.quantile(some[some > 0], [0.01, 0.99])
    if skewed and some.mean() > 1.5 * np.median(some) and strong > 100 * weak:
        yield _notice("raw", True, high=np.nanmax(high))
