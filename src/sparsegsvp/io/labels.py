"""Labels: their spellings, the class of interest, those of another cohort or a second file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._notices import Notice
from .cells import as_label
from .errors import InputError, listed, locating, no_such, one_line, option, quote
from .formats import column_names, format_of, read_file, rows_of
from .guards import shown_name
from .layout import RawTable, Roles, batch_role, names_in, refuse_duplicates
from .roles import match_names
from .rows import find_orientation
from .text import ReadOptions

if TYPE_CHECKING:
    from .table import Table

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def spelling_key(label: str) -> str:
    """Return what all spellings of a label share: Tumor, TUMOR and "tumor " are one, 1 and 1.0."""
    text = " ".join(label.split()).casefold()
    whole = _WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def unify_spelling(raw: RawTable, positive: str | None) -> str | None:
    """Take labels that differ in spelling as one class, by the most frequent, or first, of them.

    Returns the class of interest in the spelling that its class has got.
    """
    labels = raw.text.get("target")
    if labels is None:
        return positive
    counts = Counter(map(str, labels))
    stripped: Counter[str] = Counter()
    for label, n in counts.items():
        stripped[label.strip()] += n
    best: dict[str, str] = {}
    for label in sorted(stripped, key=lambda label: (-stripped[label], label)):
        best.setdefault(spelling_key(label), label)
    chosen: dict[str, str] = {}
    spellings: dict[str, list[str]] = {}
    for label in sorted(counts, key=spelling_key):
        chosen[label] = best[spelling_key(label)]
        spellings.setdefault(chosen[label], []).append(label)
    raw.text["target"] = [chosen[str(label)] for label in labels]
    parts = []
    for name, several in spellings.items():
        if len(several) > 1:
            several.sort(key=lambda label: (label != name, label))
            listing = [f"{quote(label)} {counts[label]}" for label in several]
            parts.append(f"{quote(name)} ({', '.join(listing)})")
    if parts:
        described = "; ".join(parts)
        raw.notes.append(f"labels in several spellings are one class: {described}")
        said = "Labels that differ in capitals, blanks or as 1 and 1.0 are taken as one class"
        remedy = "If they are different classes, give them different names."
        raw.notices += (Notice("spelling", "note", f"{said}: {described}. {remedy}"),)
    return None if positive is None else chosen.get(positive, positive)


# --- classes ---------------------------------------------------------------------------

# Words in the name of a class that say which of two is the one of interest.
_OF_INTEREST = """1 abnormal active affected bad cancer carcinoma case cases dead death died disease
    diseased event failure ill infected malignant metastasis metastatic patient patients poor pos
    positive present progression recurrence relapse relapsed resistant responder sick t true tumor
    tumors tumour tumours yes"""
_OF_COMPARISON = """0 absent alive benign censored control controls ctrl false good healthy n neg
    negative no non none normal not reference sensitive survived uninfected well wildtype wt"""


def guess_positive(classes: Sequence[str]) -> str:
    """Guess from their names which of two classes is the one of interest.

    Parameters
    ----------
    classes : sequence of str
        Two names, sorted.

    Returns
    -------
    str
        The one whose name says so (case, cancer, died, positive, yes, 1, ...), the other than
        the one to compare with (control, normal, healthy, no, 0, ...), or the last.

    Examples
    --------
    >>> from sparsegsvp.io.labels import guess_positive
    >>> guess_positive(["cancer", "normal"]), guess_positive(["no relapse", "relapse"])
    ('cancer', 'relapse')
    >>> guess_positive(["A", "B"])
    'B'
    """
    words = [set(re.findall(r"[a-z]+|[0-9]+", name.lower())) for name in classes]
    compared = [not found.isdisjoint(_OF_COMPARISON.split()) for found in words]
    wanted = [
        not found.isdisjoint(_OF_INTEREST.split()) and not other
        for found, other in zip(words, compared)
    ]
    for marks in (wanted, [not c for c in compared]):
        if marks.count(True) == 1:
            return classes[marks.index(True)]
    return classes[-1]


def check_cohort(cohort: Table, table: Table) -> Table:
    """Refuse a cohort that is the training table, or has labels which that table lacks.

    Labels that differ from those of the table in capitals, blanks or as 1 and 1.0 are the
    same classes.

    Parameters
    ----------
    cohort : Table
        Samples to test a model on.
    table : Table
        The samples it was trained on.

    Returns
    -------
    Table
        The cohort, its labels spelled as the table spells them.

    Raises
    ------
    InputError
        If they are the same file, or the cohort has other classes.

    Examples
    --------
    >>> from sparsegsvp.io import check_cohort, make_table
    >>> table = make_table([[1.0], [2.0], [3.0]], ["ill", "well", "ill"])
    >>> check_cohort(make_table([[4.0], [5.0], [6.0]], ["ill", "sick", "sick"]), table)
    Traceback (most recent call last):
        ...
    sparsegsvp.io.errors.InputError: array: label 'sick' does not occur in array; ...
    >>> cohort = make_table([[4.0], [5.0], [6.0]], ["ILL", "Well", "Well"])
    >>> check_cohort(cohort, table).class_counts()
    {'ill': 1, 'well': 2}
    """
    if cohort.digest == table.digest:
        raise InputError(
            f"the cohort ({option('test')}) is the training table itself",
            where=cohort.source,
            remedy="give samples that took no part in training",
        )
    return known_labels(cohort, list(table.class_counts()), table.source)


def known_labels(cohort: Table, known: Sequence[str], source: str) -> Table:
    """Return a table with its labels spelled as those that are known; refuse others.

    Parameters
    ----------
    cohort : Table
        Samples with labels.
    known : sequence of str
        The classes.
    source : str
        Where they come from, for messages.

    Returns
    -------
    Table
    """
    # a class that is spelled in two ways there cannot be told from the other by its key
    often = Counter(map(spelling_key, known))
    spelling = {spelling_key(label): label for label in known if often[spelling_key(label)] == 1}
    here = cohort.class_counts()
    same = {label: spelling.get(spelling_key(label), label) for label in here if label not in known}
    changed = {label: name for label, name in same.items() if label != name}
    strange = [label for label in same if label not in changed]
    if strange:
        raise InputError(
            f"label {listed(strange)} does not occur in {one_line(source)}",
            where=cohort.source,
            remedy=f"rename it, or leave these samples out; the classes are {listed(known)}",
        )
    if not changed or cohort.y is None:
        return cohort
    pairs = ", ".join(f"{quote(old)} is taken for {quote(new)}" for old, new in changed.items())
    said = f"labels are spelled otherwise than in {one_line(source)}: {pairs}"
    notice = Notice("spelling", "note", f"In {one_line(cohort.source)}, {said}.")
    y = np.array([changed.get(str(label), label) for label in cohort.y], dtype=object)
    record, notices = (*cohort.record, said), (*cohort.notices, notice)
    return replace(cohort, y=y, record=record, notices=notices)


# --- a second file ---------------------------------------------------------------------


@dataclass(frozen=True)
class LabelSheet:
    """Labels in a second file: its columns as text, and the row of each identifier."""

    columns: dict[str, list[str | None]]
    rows: dict[str, int]
    on: str
    target: str
    source: str


def read_labels(file: Path, on: str | None, target: str | None, encoding: str | None) -> LabelSheet:
    """Read the file; its first column identifies the samples unless `on` is another."""
    with locating(file.name):
        with rows_of(file, ReadOptions(encoding=encoding))() as opened:
            names, lines = opened.names, [cells for _, cells in opened.rows]
        refuse_duplicates(names)
        on = names[0] if on is None else on
        columns = {
            name: [as_label(c[i], strip=name != target or name == on) for c in lines]
            for i, name in enumerate(names)
        }
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
        rows: dict[str, int] = {}
        for row, (key, label) in enumerate(zip(columns[on], columns[target])):
            if key is None:
                continue
            other = columns[target][rows.setdefault(key, row)]
            if spelling_key(label or "") != spelling_key(other or ""):
                raise InputError(
                    f"{quote(key)} is labelled {quote(other)} and {quote(label)}",
                    remedy="keep one label for each sample",
                )
    return LabelSheet(columns, rows, on, target, shown_name(file))


def read_labelled(
    file: Path, roles: Roles, options: ReadOptions, sheet: LabelSheet | None
) -> tuple[RawTable, Roles]:
    """Read a table, whichever way it lies, and put the labels of a sheet, if any, beside it.

    Returns the roles too: an `id` may be no row of a table with features in rows.
    """
    with locating(file.name):
        form, turned = format_of(file), list[str]()
        if options.transpose is None and form.transposes and form.rows is not None:
            keys, key = ((), None) if sheet is None else (sheet.rows, sheet.on)
            roles, options, turned = find_orientation(
                rows_of(file, options), roles, options, keys, key
            )
        if sheet is None:
            raw = read_file(file, roles, options)
        else:
            raw = _read_to_label(sheet, file, roles, options)
    if sheet is not None:
        with locating(sheet.source):
            _attach_labels(raw, sheet, roles)
    raw.notes[:0] = turned
    return raw, roles


def _read_to_label(sheet: LabelSheet, file: Path, roles: Roles, options: ReadOptions) -> RawTable:
    """Read the table whose labels a sheet has, with identifiers to match them by."""
    header = column_names(file, options)
    left = _roles_left(sheet, roles, [] if options.transpose else header)
    strange = _other_columns(sheet, header) if options.transpose else []
    raw = read_file(file, replace(left, drop=(*left.drop, *strange)), options)
    asked = names_in(left.drop, set(strange))
    unlabelled = [name for name in strange if name not in asked]
    if unlabelled:
        raw.dropped.update(dict.fromkeys(unlabelled, "no label"))
        raw.notes.append(f"left out, being columns of no labelled sample: {listed(unlabelled)}")
    match_names(raw, sheet.rows.keys())
    if "id" not in raw.text:
        raise InputError(
            "the samples have no identifiers to match the labels by",
            remedy=f"name the column that holds them with {option('id')}, or use "
            f"{option('transpose', True)} if the features are in rows",
        )
    return raw


def _roles_left(sheet: LabelSheet, roles: Roles, names: Sequence[str]) -> Roles:
    """Return the roles that columns of the table itself, of these names, have.

    Labels in both are refused. The column that identifies the labels identifies the samples of
    the table too, if it is there.
    """

    def here(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in sheet.columns)

    roles = replace(
        roles,
        target=None,
        group=None if roles.group in sheet.columns else roles.group,
        batch=here(roles.batch),
        adjust=here(roles.adjust),
        categorical=here(roles.categorical),
        features=roles.measured(),  # what is not read from the table is no column of it either
    )
    if sheet.target in names and sheet.target not in names_in(roles.drop, names):
        raise InputError(
            f"column {quote(sheet.target)} is in the table and in {one_line(sheet.source)}",
            remedy=f"leave {option('labels')} out, or drop the table's with "
            f"{option('drop', [sheet.target])}",
        )
    return replace(roles, id=sheet.on) if roles.id is None and sheet.on in names else roles


def _other_columns(sheet: LabelSheet, names: Sequence[str]) -> list[str]:
    """Return the columns of a table with features in rows that are no labelled samples.

    They may hold text, as descriptions of the genes do.
    """
    named = [name for name in names[1:] if name]
    strange = [name for name in named if name not in sheet.rows]
    return strange if len(strange) < len(named) else []


def _attach_labels(raw: RawTable, sheet: LabelSheet, asked: Roles) -> None:
    """Put the labels (and groups and batches) of the sheet beside the samples of a table."""
    ids = raw.text["id"]
    for names in (ids, raw.titles or ()):
        rows = [None if key is None else sheet.rows.get(key) for key in names]
        if any(row is not None for row in rows):
            break
    else:
        here = [key for key in ids if key is not None]
        raise InputError(
            f"no sample has a label: the table has {listed(here[:2])}, the labels "
            f"{listed(list(sheet.rows)[:2])}",
            remedy="identifiers must match exactly; if they are column names of the table, "
            f"use {option('transpose', True)}",
        )
    unused = len(sheet.rows) - len({row for row in rows if row is not None})
    if unused:
        raw.notes.append(f"{unused} rows of {sheet.source} belong to no sample of the table")
    raw.notes.append(f"labels come from {sheet.source}, matched by {quote(sheet.on)}")
    beside = {"target": sheet.target, "group": asked.group}
    beside |= {batch_role(name): name for name in asked.batch}
    beside |= asked.coded()
    for role, name in beside.items():
        if name in sheet.columns:
            column = sheet.columns[name]
            raw.text[role] = [None if row is None else column[row] for row in rows]
