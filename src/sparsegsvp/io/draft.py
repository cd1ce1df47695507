"""From a frame of cells to a draft of a table: `draft_of` is the one function that makes it.

It turns a table with features in rows, gives the columns that a caller named their roles, joins
labels of a second file, and makes numbers of cells. `collapse` and `append_covariates` make
features of several columns, or of the levels of one.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice
from .._validate import first_few
from .cells import (
    Codes,
    Column,
    as_label,
    below_detection,
    describe_codes,
    find_decimal,
    look_at,
    may_be_thousands,
    not_a_number,
    to_numbers,
)  # fmt: skip
from .checks import spelling_key
from .errors import (
    InputError,
    counted,
    did_you_mean,
    listed,
    locating,
    no_such,
    one_line,
    option,
    quote,
    role_option,
    suggestion,
)  # fmt: skip
from .formats import read_frame, shown_name
from .frame import Frame, refuse_unnamed
from .geo import refuse_without_numbers
from .roles import (
    IS,
    VERSUS,
    ColumnRole,
    Draft,
    Roles,
    columns_behind,
    look_of,
    made_of,
    names_samples,
)  # fmt: skip
from .text import ReadOptions, looks_numeric, names_in

_READ_BACK = "Unnamed: 0"  # what pandas makes of an index when it reads a file and writes it again
COLLAPSE = {
    "mean": "the mean of each",
    "max": "of each the one with the largest mean",
    "first": "the first of each",
}


def draft_of(
    frame: Frame, roles: Roles, options: ReadOptions, joined: Labels | None, source: str
) -> tuple[Draft, Roles]:
    """Make a draft of any frame; what goes wrong is said of `source` or of the labels' file."""
    with locating(source):
        frame, roles, turned = _stand_up(frame, roles, options, joined)
        draft, roles = _draft(frame, roles, options, joined)
        draft.notes[:0] = turned
    if joined is not None:
        with locating(joined.source):
            _join(draft, joined, roles, options)
    return draft, roles


def as_text(role: str, cells: Sequence[Any], codes: Codes) -> list[str | None]:
    """Return cells of a column with a role; blanks around labels stay until they are counted."""
    if role == "id":
        return [as_label(cell) for cell in cells]
    return [codes.label(cell, strip=role != "target") for cell in cells]


# --- which way a table lies ----------------------------------------------------------------


def _stand_up(
    frame: Frame, roles: Roles, options: ReadOptions, joined: Labels | None
) -> tuple[Frame, Roles, list[str]]:
    """Return the frame with samples in rows, the roles, and what to put on record.

    Samples are in rows unless the names a caller gave are found in the first column and not in
    the header (a target, features of a model), or the other way round (identifiers).
    """
    notes: list[str] = []
    by_nature = frame.meta is not None and frame.turns
    if by_nature and len(frame) == 0:
        raise refuse_without_numbers()
    turn = by_nature or options.transpose
    in_doubt = turn is None and frame.turns and len(frame.names) > 1
    if in_doubt and (why := _why_turned(frame, roles, joined)):
        turn = True
        notes.append(f"features are in rows, samples in columns: {why}")
    if not turn:
        return frame, roles, notes
    if frame.ids is not None and frame.names:  # an index names the features
        frame = _index_first(frame)
    rows = {as_label(cell) for cell in frame.column(0)}
    roles = replace(roles, drop=names_in(roles.drop, {*frame.names, *map(str, rows)}))
    if roles.id is not None and roles.id not in rows and frame.meta is None:
        if roles.id != frame.names[0] and options.transpose is None:
            notes.append(f"the header names the samples; there is no row {quote(roles.id)}")
        if roles.id == frame.names[0] or options.transpose is None:
            roles = replace(roles, id=None)
    if by_nature and roles.id == frame.names[0]:
        roles = replace(roles, id=None)
    elsewhere = () if joined is None else joined.columns
    for role, name in roles.named().items() if frame.meta is None else ():
        if name in frame.names[1:] and name not in rows and name not in elsewhere:
            raise InputError(
                f"{quote(name)} names a column, not a row ({role_option(role)})",
                remedy=f"the table has samples in rows: leave {option('transpose', True)} out",
            )
    _refuse_duplicates(frame.names, "column", roles.drop)
    skip = {name for name in roles.drop if name in frame.names[1:]}
    dropped = dict.fromkeys(skip, "asked for")
    if joined is not None:
        named = [name for name in frame.names[1:] if name]
        known = {*joined.rows}
        if frame.titles:
            known |= {n for n, t in zip(frame.names[1:], frame.titles) if t in joined.rows}
        strange = [name for name in named if name not in known and name not in skip]
        if strange and len(strange) + len(skip) < len(named):
            notes.append(f"left out, being columns of no labelled sample: {listed(strange)}")
            dropped |= dict.fromkeys(strange, "no label")
            skip |= set(strange)
    kept = [j for j, name in enumerate(frame.names[1:]) if name and name not in skip]
    meta = frame.meta and {n: [cells[j] for j in kept] for n, cells in frame.meta.items()}
    titles = frame.titles and [frame.titles[j] for j in kept]
    made = replace(frame.turned(options, skip), meta=meta, titles=titles)
    made.dropped = dropped
    return made, replace(roles, drop=tuple(n for n in roles.drop if n not in skip)), notes


def _index_first(frame: Frame) -> Frame:
    """Return a frame whose index is its first column."""
    texts = {p + 1: cells for p, cells in frame.texts.items()} | {0: list(frame.ids or ())}
    names = [frame.id_name, *frame.names]
    return replace(frame, names=names, texts=texts, at=frame.at + 1, ids=None)


def _why_turned(frame: Frame, roles: Roles, joined: Labels | None) -> str:
    """Return why the features must be in rows; empty where they need not be."""
    header = frame.names
    first = frame.ids if frame.ids is not None else frame.column(0)
    down_names = [as_label(cell) for cell in first]
    if roles.features is not None:
        across = len(set(header).intersection(roles.features))
        if across == len(set(roles.features)):
            return ""
        down = len(set(down_names).intersection(roles.features))
        return "the rows have the names of the features" if down > across else ""
    if joined is not None:
        keys = joined.rows
        across = len(set(header[0 if frame.ids is not None else 1 :]).intersection(keys))
        if not across:
            return ""
        name = next((n for n in (roles.id, joined.on) if n in header), None)
        cells = down_names if name is None else frame.column(header.index(name))
        down = len({as_label(cell) for cell in cells}.intersection(keys))
        if down and across >= down:
            raise InputError(
                f"the identifiers of the labels name columns ({listed(list(keys)[:2])}) as well as "
                "rows",
                remedy=f"say {option('transpose', True)} if the samples are in columns, "
                f"{option('transpose', False)} if they are in rows",
            )
        return "" if down else "the columns have the names of labelled samples"
    if roles.target is None or roles.target in header or roles.target not in down_names:
        return ""
    i = down_names.index(roles.target)
    row = frame.text_rows.get(i) or [frame.column(p)[i] for p in range(1, len(header))]
    numbers = [float(t) for t in map(as_label, row) if t and looks_numeric(t)]
    if any(np.isfinite(v) and not v.is_integer() for v in numbers):
        return ""  # measurements, those of a sample or of a feature, are no labels
    return f"{quote(roles.target)} names a row"


# --- roles, and numbers of cells -----------------------------------------------------------


def _draft(
    frame: Frame, roles: Roles, options: ReadOptions, joined: Labels | None
) -> tuple[Draft, Roles]:
    """Give the columns that a caller named their roles, and make numbers of the others."""
    codes, header = Codes(options.na), frame.names
    line = "row" if frame.place == "column" else "column"
    there: Collection[str] = header if frame.meta is None else frame.meta
    elsewhere: Collection[str] = () if joined is None else joined.columns
    known = {*header, *there, *elsewhere}
    roles = replace(roles, drop=names_in(roles.drop, known))
    if roles.features is not None:
        behind = columns_behind(roles.features, {*there, *elsewhere})
        roles = replace(roles, adjust=tuple(dict.fromkeys((*roles.adjust, *behind))))
    if joined is not None:
        if frame.meta is None and joined.target in header and joined.target not in roles.drop:
            raise InputError(
                f"column {quote(joined.target)} is in the table and in {one_line(joined.source)}",
                remedy=f"leave {option('labels')} out, or drop the table's with "
                f"{option('drop', [joined.target])}",
            )
        if roles.id is None and joined.on in header and frame.ids is None:
            roles = replace(roles, id=joined.on)
    roles.check()
    _refuse_shared(frame, roles, line)
    named = {r: n for r, n in roles.named().items() if r == "id" or n not in elsewhere}
    if joined is not None:
        named.pop("target", None)
    position = {name: i for i, name in reversed(list(enumerate(header)))}
    draft = Draft(None, [], frame.kind, place=frame.place, lines=frame.lines)
    draft.titles, draft.dropped = frame.titles, dict(frame.dropped)
    draft.notes, draft.notices = [*frame.notes], [*frame.notices]
    taken: set[int] = set()
    columns: dict[str, Column] = {}
    for role, name in named.items():
        if frame.meta is not None:
            cells = frame.meta[_in_meta(frame, name, role)]
        elif name in position:
            taken.add(position[name])
            cells = frame.column(position[name])
        elif frame.ids is not None and name == frame.id_name:
            cells = frame.ids
        else:
            raise _no_such_line(frame, name, role, line)
        if role.startswith("adjust:"):
            columns[role] = look_at(cells, codes)
        else:
            draft.text[role] = as_text(role, cells, codes)
    for name in roles.drop:
        if name in position:
            taken.update(i for i, n in enumerate(header) if n == name)
            draft.dropped[name] = "asked for"
        elif name not in (frame.meta or ()):
            raise _no_such_line(frame, name, "drop", line)
    _name_samples(frame, draft, roles, taken)
    wanted = roles.features
    if wanted is not None:
        wanted = tuple(n for n in wanted if not any(made_of(n, c) for c in roles.adjust))
        places = _positions_of(wanted, header, line)
    else:
        for p in range(len(header)):
            if p not in taken:
                refuse_unnamed(frame, p)
        places = [p for p, name in enumerate(header) if name and p not in taken]
    fixed = wanted is not None or frame.meta is not None  # all else in it are features
    _fill(frame.upright(options), draft, places, columns, options, codes, fixed=fixed)
    return draft, roles


def _in_meta(frame: Frame, name: str, role: str) -> str:
    """Return the key of what is said of the samples, with or without GEO's ``!Sample_``."""
    meta = frame.meta or {}
    for known in (name, re.sub(r"^!?Sample_", "", name)):
        if known in meta:
            return known
    if frame.place != "column":
        raise no_such("column", name, role, list(meta), " in obs")
    parts = []
    for key, column in meta.items():
        values = list(dict.fromkeys(value for value in column if value is not None))
        if 1 < len(values) < len(column):
            parts.append(f"{quote(key)} ({listed(values, shown=3, limit=24)})")
    usable = f"usable are {first_few(parts, most=8, between='; ')}"
    if not parts:
        usable = "nothing in it tells groups of samples apart"
    close = did_you_mean(name, list(meta))
    raise InputError(
        f"there is no {quote(name)} among what the file says of its samples ({role_option(role)})",
        remedy=f"{close} {usable}".lstrip(),
    )


def _no_such_line(frame: Frame, name: str, role: str, line: str) -> InputError:
    """Return the error for a column or row that there is not, with the remedy for tables."""
    header = [n for n in frame.names if n]
    first = [as_label(c) for c in frame.column(0)] if frame.names and line == "column" else []
    if role == "target" and name in first:
        return InputError(
            f"{quote(name)} names a row, not a column",
            remedy=f"the table has features in rows: use {option('transpose', True)}",
        )
    remedy = suggestion(name, header)
    if header and all(map(looks_numeric, header)):
        remedy = "the first line holds only numbers: add a line with the column names"
    elif line == "row":
        remedy += f"; labels may also come from a second file ({option('labels')})"
    elif role == "target" and len(first) > 1 and not did_you_mean(name, header):
        named = all(cell is not None and not looks_numeric(cell) for cell in first)
        turn = f"; if the features are in rows, use {option('transpose', True)} and give the labels"
        remedy += f"{turn} in a second file ({option('labels')})" if named else ""
    return InputError(f"there is no {line} {quote(name)} ({role_option(role)})", remedy=remedy)


def _name_samples(frame: Frame, draft: Draft, roles: Roles, taken: set[int]) -> None:
    """Take an index, or a first column without a name, for identifiers."""
    header = frame.names
    named = "id" in draft.text
    if frame.ids is not None:
        used = frame.id_name in roles.named().values()
        if not named and not used and frame.id_name not in header:
            draft.text["id"] = [as_label(cell) for cell in frame.ids]
            if frame.meta is None and frame.place == "row":
                draft.notes.append("the index was taken for sample identifiers")
        return
    if header and header[0] in ("", _READ_BACK) and 0 not in taken and frame.meta is None:
        taken.add(0)
        if named:
            draft.notes.append("the first column has no name and was left out, as names of rows")
        else:
            draft.text["id"] = [as_label(cell) for cell in frame.column(0)]
            draft.notes.append("the first column has no name and was taken for sample identifiers")
    elif frame.place != "column" and header:
        draft.first_column = header[0]
        # a model lists its features, so that any other column of names is of the samples
        others = [] if named or roles.features is None else set(header).difference(roles.features)
        for p, name in enumerate(header):
            if name in others and ((p == 0 and p in frame.texts) or names_samples(name)):
                labels = [as_label(cell) for cell in frame.column(p)]
                if p not in taken and len(set(labels)) == len(labels):
                    draft.text["id"] = labels
                    break


def _refuse_shared(frame: Frame, roles: Roles, line: str) -> None:
    """Refuse names that occur twice, saying where, unless features are made one."""
    what = "feature" if frame.meta is not None and frame.place == "row" else line
    lines = frame.name_lines if line == "row" else None
    if roles.collapse is None:
        ways = f"or make them one with {option('collapse', 'mean')}, 'max' or 'first'"
        _refuse_duplicates(frame.names, what, roles.drop, lines, ways)
    else:
        others = set(frame.names).difference(roles.named().values())
        _refuse_duplicates(frame.names, what, others, lines)


def _refuse_duplicates(
    names: Sequence[str],
    what: str,
    ignore: Collection[str] = (),
    lines: Sequence[int] | None = None,
    remedy: str = "since a panel is a list of names",
) -> None:
    if len(set(names)) == len(names):
        return
    counts = Counter(names)
    twice = [n for n in counts if counts[n] > 1 and n and n not in ignore]
    if twice:
        places = lines or range(1, len(names) + 1)
        at = [str(place) for place, name in zip(places, names) if name == twice[0]]
        others = f", and {len(twice) - 1} other names repeat" if len(twice) > 1 else ""
        raise InputError(
            f"{what} name {quote(twice[0])} appears {len(at)} times "
            f"({'lines' if lines else what + 's'} {', '.join(at[:4])}){others}",
            remedy=f"rename or remove the repeats, {remedy}",
        )


def _positions_of(wanted: Sequence[str], names: Sequence[str], line: str) -> list[int]:
    """Return all places of the wanted names among the names, or list those that are missing."""
    places: dict[str, list[int]] = {name: [] for name in wanted}
    for i, name in enumerate(names):
        if name in places:
            places[name].append(i)
    absent = [name for name, at in places.items() if not at]
    if absent:
        raise InputError(
            f"{len(absent)} of the {len(wanted)} {line}s needed are missing: {listed(absent)}",
            remedy="add them; names must match exactly, their order does not matter",
        )
    return [i for name in wanted for i in places[name]]


def _fill(
    frame: Frame,
    draft: Draft,
    places: list[int],
    columns: dict[str, Column],
    options: ReadOptions,
    codes: Codes,
    *,
    fixed: bool,
) -> None:
    """Make numbers of the columns at some places, and of those to adjust for (`columns`).

    Columns of text stay beside. All cells are read by one parser, with one decimal mark.
    """
    texts: dict[int, Column] = {}
    for p in places:
        if p in frame.texts:
            column, name = look_at(frame.texts[p], codes), frame.names[p]
            if fixed or not _is_text(column, name):
                texts[p] = column
            else:
                draft.beside[name] = [codes.label(cell) for cell in column.cells]
    adjusted = {role: column for role, column in columns.items() if not column.holds_text}
    numeric = {frame.names[p]: column for p, column in texts.items()}
    numeric |= {role.partition(":")[2]: column for role, column in adjusted.items()}
    decimal = find_decimal(numeric, options, frame, frame.fraction())
    if decimal == "," and (frame.decimal == "," or any(c.marked[","] for c in numeric.values())):
        draft.notes.append("numbers are written with decimal commas")
    in_doubt = frame.in_doubt or frame.fraction() is None
    if in_doubt and options.decimal is None and options.thousands is None:
        draft.notices += may_be_thousands(numeric, decimal)
    met, parsed = frame.codes.copy(), dict[int, NDArray[np.float64]]()
    for p, column in texts.items():
        parsed[p], more, bad = to_numbers(column.cells, decimal, options.thousands, codes)
        met += more
        if bad:
            raise not_a_number(column, bad, frame.names[p], frame)
        if names_samples(frame.names[p]):
            draft.written[frame.names[p]] = [as_label(cell) for cell in column.cells]
            _note_rounded(draft, frame.names[p], column.cells)
    for role, column in columns.items():
        name = role.partition(":")[2]
        if role in adjusted:
            values, more, bad = to_numbers(column.cells, decimal, options.thousands, codes)
            if bad:
                raise not_a_number(column, bad, name, frame)
            draft.adjust[name] = values
            met += more
        else:
            draft.adjust[name] = [codes.label(cell) for cell in column.cells]
    if met:
        draft.notes.append(describe_codes(met))
        draft.notices += below_detection(met)
    left = [p for p in places if p in parsed or p not in frame.texts]
    draft.names = [frame.names[p] for p in left]
    at = {int(p): j for j, p in enumerate(frame.at)}
    if not parsed:
        picked = [at[p] for p in left]
        whole = picked == list(range(frame.numbers.shape[1]))
        draft.X = frame.numbers if whole else frame.numbers[:, picked]
        return
    X = np.empty((len(frame), len(left)), np.float64)
    stored = [j for j, p in enumerate(left) if p not in parsed]
    if stored:
        X[:, stored] = frame.numbers[:, [at[left[j]] for j in stored]]
    for j, p in enumerate(left):
        if p in parsed:
            X[:, j] = parsed[p]
    draft.X = X


def _is_text(column: Column, name: str) -> bool:
    """Whether a column holds text: most cells, or some of one that is clinical or of names."""
    if not column.bad or 2 * len(column.bad) >= column.n_filled:
        return bool(column.bad)
    return look_of(name) is not None or names_samples(name)


def _note_rounded(draft: Draft, name: str, cells: Sequence[Any]) -> None:
    """Warn of identifiers that were stored as numbers of too many digits."""
    if any(isinstance(cell, float) and abs(cell) >= 2**53 for cell in cells):
        draft.notices.append(
            Notice(
                "identifiers",
                "serious",
                f"The identifiers in {quote(name)} are stored as numbers of more than 15 digits, "
                "of which the last were lost: store them as text.",
            )
        )


# --- features that share a name, and what is adjusted for ----------------------------------


def collapse(draft: Draft, how: str | None) -> None:
    """Make one feature of those that share a name, in the place of the first.

    "mean" is the mean of the values that are there, "max" the feature with the largest mean
    over the samples (the habit for probes of one gene), "first" the first. No label is looked
    at. Names that occur twice were refused already where no way was given.
    """
    places: dict[str, list[int]] = {}
    for j, name in enumerate(draft.names):
        places.setdefault(name, []).append(j)
    if how is None or len(places) == len(draft.names):
        return
    shared = {name: at for name, at in places.items() if len(at) > 1}
    kept = [at[0] for at in places.values()]
    merged: list[Any] = []
    for k, at in enumerate(places.values()):
        if len(at) == 1 or how == "first":
            continue
        columns = draft.X[:, at]
        columns = columns.toarray() if sparse.issparse(columns) else columns
        if how == "max":
            means = _mean(columns, axis=0)
            kept[k] = at[0] if np.isnan(means).all() else at[int(np.nanargmax(means))]
        else:
            merged.append((k, _mean(columns, axis=1)))
    X = draft.X[:, kept]
    if merged and sparse.issparse(X):
        X = X.tolil()
    for k, column in merged:
        X[:, [k]] = column[:, None]
    draft.X = X.tocsr() if sparse.issparse(X) else X
    draft.names = list(places)
    n = sum(map(len, shared.values()))
    names = counted(len(shared), "name")
    draft.notes.append(
        f"{names} shared by {n} features, {COLLAPSE[how]} was kept: {listed(shared)}"
    )


def _mean(columns: Any, axis: int) -> Any:
    """Average the values that are there; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(columns, axis=axis)


def append_covariates(draft: Draft, roles: Roles, codes: Codes) -> None:
    """Make features of the columns to adjust for, after all other columns.

    Numbers stay as they are; of a column of text there is a feature of 0 and 1 for each level but
    the first. Its name says both levels, "sex=M vs F", so that a model which knows its features by
    name can tell a level it never met.
    """
    made: dict[str, NDArray[np.float64]] = {}
    for column, cells in draft.adjust.items():
        what = f"column {quote(column)} ({option('adjust')})"
        known = [name for name in roles.features or () if made_of(name, column)]
        if isinstance(cells, np.ndarray) and (column in known or not known):
            cells[np.isin(cells, codes.numbers)] = np.nan
            if np.isinf(cells).any():
                raise InputError("'inf' is not a number", where=what, remedy="leave the cell empty")
            if roles.features is None:
                _refuse_one_value(what, [None if np.isnan(v) else v for v in cells])
            features = {column: cells}
        elif column in known:
            raise InputError(
                f"{quote(next(c for c in cells if c is not None))} is not a number",
                where=what,
                remedy="correct it, or leave the cell empty",
            )
        else:
            features = _levels(column, what, [as_label(cell) for cell in cells], known)
        taken = [name for name in features if name in draft.names]
        if taken:
            raise InputError(
                f"the table has a feature {quote(taken[0])} besides the column of "
                f"{option('adjust')}",
                remedy="rename one of the two",
            )
        made |= features
        draft.covariates[column] = tuple(features)
        reason = "adjusted for: in every panel"
        draft.roles += [ColumnRole(name, "feature", reason) for name in features]
    if not made:
        return
    block = np.column_stack(list(made.values())).astype(draft.X.dtype)
    if sparse.issparse(draft.X):
        draft.X = sparse.hstack([draft.X, block], format="csr")
    else:
        draft.X = np.hstack([draft.X, block])
    draft.names = [*draft.names, *made]
    if roles.features is not None:
        place = {name: i for i, name in enumerate(draft.names)}
        draft.X = draft.X[:, [place[name] for name in roles.features]]
        draft.names = list(roles.features)


def _refuse_one_value(what: str, cells: Sequence[Any]) -> None:
    if len(set(cells)) == 1:
        value = "no value" if cells[0] is None else f"only the value {quote(as_label(cells[0]))}"
        raise InputError(f"{what} has {value}", remedy="leave it out")


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
        _refuse_one_value(what, levels)
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


# --- labels of a second file ---------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """Labels in a second file: its columns, and the row of each identifier."""

    columns: dict[str, list[Any]]
    rows: dict[str, int]
    on: str
    target: str
    source: str


def read_labels(file: Path, on: str | None, target: str | None, options: ReadOptions) -> Labels:
    """Read the file; its first column identifies the samples unless `on` is another."""
    source, codes = shown_name(file), Codes(options.na)
    with locating(source):
        frame = read_frame(file, ReadOptions(encoding=options.encoding, na=options.na), None)
        columns = _columns_of(frame)
        if frame.meta is None:
            _refuse_duplicates(frame.names, "column")
        names = list(columns)
        on = names[0] if on is None else on
        for name, role in ((on, "on"), (target, "target")):
            if name is not None and name not in columns:
                raise no_such("column", name, role, names)
        if target is None:
            others = [name for name in names if name != on]
            if len(others) != 1:
                raise InputError(
                    f"it has the columns {listed(others)} besides {quote(on)}",
                    remedy=f"say which holds the labels with {option('target')}",
                )
            target = others[0]
        labels = [codes.label(cell) for cell in columns[target]]
        rows: dict[str, int] = {}
        for row, key in enumerate(map(as_label, columns[on])):
            if key is None:
                continue
            label, other = labels[row], labels[rows.setdefault(key, row)]
            if spelling_key(label or "") != spelling_key(other or ""):
                raise InputError(
                    f"{quote(key)} is labelled {quote(other)} and {quote(label)}",
                    remedy="keep one label for each sample",
                )
    return Labels(columns, rows, on, target, source)


def _columns_of(frame: Frame) -> dict[str, list[Any]]:
    """Return all columns of a frame that may hold labels, by name."""
    ids = {} if frame.ids is None else {frame.id_name or "index": frame.ids}
    if frame.meta is not None:
        return (ids if not frame.turns else {}) | frame.meta
    return ids | {name: frame.column(p) for p, name in enumerate(frame.names)}


def _join(draft: Draft, joined: Labels, roles: Roles, options: ReadOptions) -> None:
    """Put the labels (and groups, batches, what is adjusted for) beside the samples of a table."""
    codes = Codes(options.na)
    for name, cells in draft.beside.items():
        if (
            "id" not in draft.text
            and len(set(cells)) == len(cells)
            and joined.rows.keys() & set(cells)
        ):
            draft.text["id"] = cells
            draft.roles.append(ColumnRole(name, "id", "has the names that the labels have"))
    draft.beside = {n: c for n, c in draft.beside.items() if c != draft.text.get("id")}
    if "id" not in draft.text:
        raise InputError(
            "the samples have no identifiers to match the labels by",
            remedy=f"name the column that holds them with {option('id')}, or use "
            f"{option('transpose', True)} if the features are in rows",
        )
    ids = draft.text["id"]
    for names in (ids, draft.titles or ()):
        rows = [None if key is None else joined.rows.get(key) for key in names]
        if any(row is not None for row in rows):
            break
    else:
        here = [key for key in ids if key is not None]
        raise InputError(
            f"no sample has a label: the table has {listed(here[:2])}, the labels "
            f"{listed(list(joined.rows)[:2])}",
            remedy="identifiers must match exactly; if they are column names of the table, "
            f"use {option('transpose', True)}",
        )
    unused = len(joined.rows) - len({row for row in rows if row is not None})
    if unused:
        draft.notes.append(f"{unused} rows of {joined.source} belong to no sample of the table")
    draft.notes.append(f"labels come from {joined.source}, matched by {quote(joined.on)}")
    beside = {"target": joined.target} | {r: n for r, n in roles.named().items() if r != "target"}
    columns: dict[str, Column] = {}
    for role, name in beside.items():
        if name not in joined.columns or role == "id":
            continue
        cells = [None if row is None else joined.columns[name][row] for row in rows]
        if role.startswith("adjust:"):
            columns[name] = look_at(cells, codes)
        else:
            draft.text[role] = as_text(role, cells, codes)
    numeric = {name: column for name, column in columns.items() if not column.holds_text}
    decimal = find_decimal(numeric, options, draft, None)
    for name, column in columns.items():
        draft.adjust[name] = [codes.label(cell) for cell in column.cells]
        if name in numeric:
            draft.adjust[name], _, bad = to_numbers(column.cells, decimal, options.thousands, codes)
            if bad:
                raise not_a_number(column, bad, name, draft)
