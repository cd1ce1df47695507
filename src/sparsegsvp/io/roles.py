"""What each column of a table is for: its role, decided from name, type and values.

A caller's word always wins. Of the other columns those of numbers are features, but for

- columns named like identifiers whose whole numbers all differ, or repeat for people;
- in a *wide* table, columns whose names look clinical, technical or like an outcome. A table is
  wide if more than 50 other columns hold numbers, at least four for each that looks so, and nine
  in ten of them are alike: all with fractions, or all whole numbers. In a smaller table of unlike
  columns an age is a measurement like the others, and stays a feature, with a notice.

Columns of text are never features: in a wide table they get a role and are left out, in a small
one, where they may be meant as predictors, they are refused unless they can only be names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import Any, get_args

import numpy as np

from .._notices import Notice, Severity
from .cells import if_a_code, looks_numeric
from .errors import InputError, listed, no_such, option, quote
from .layout import ColumnRole, RawTable, Role, Roles, batches_of, names_in
from .looks import (
    column_of,
    constant_within,
    determines,
    is_code,
    look_of,
    looks_of,
    names_people,
    names_samples,
    stem_of,
    whole_columns,
)

_MANY = 50  # features above which a table may be wide
_PER_LOOK = 4  # other features for each that looks clinical or technical
_ALIKE = 0.9  # share of them that are alike
_FEW_LEVELS = 12  # different texts of a column that sorts samples rather than naming them
_FEW_ODD = 10  # columns of two codes among fractions that are worth a word
_FEW_ALIKE = 3  # names that differ in their numbers alone, of columns that are no series


def role_lines(roles: Sequence[ColumnRole], n_features: int) -> list[dict[str, Any]]:
    """Return the roles as JSON holds them: columns of one role and reason together.

    Features are counted, and listed only where there is something to say about them.
    """
    found: dict[tuple[Role, str], list[str]] = {}
    for role in get_args(Role):
        for column in roles:
            if column.role == role:
                found.setdefault((role, column.reason), []).append(column.column)
    lines = [
        {"role": role, "columns": names, "count": len(names), "reason": reason}
        for (role, reason), names in found.items()
    ]
    rest = n_features - sum(len(names) for (role, _), names in found.items() if role == "feature")
    if rest:
        lines.append({"role": "feature", "columns": [], "count": rest, "reason": "numbers"})
    return lines


def asked_names(given: Iterable[str], there: Sequence[str], role: str) -> list[str]:
    """Return names of columns that are there, taking "a,b" apart where it is no name itself."""
    known = set(there)
    names = list(names_in(given, known))
    for name in names:
        if name not in known:
            raise no_such("column", name, role, there)
    return names


def asked_roles(raw: RawTable, roles: Roles, target: str | None) -> list[ColumnRole]:
    """Return the roles that the caller gave, and that of names which are no column."""
    found = [] if target is None else [ColumnRole(target, "target", "as asked")]
    if "id" in raw.text and all(column.role != "id" for column in raw.roles):
        reason = "names of the samples" if roles.id is None else "as asked"
        found.append(ColumnRole(roles.id or "", "id", reason))
    if "group" in raw.text:
        found.append(ColumnRole(roles.group or "groups", "group", "as asked: never split"))
    found += [ColumnRole(name, "batch", "asked for") for name in batches_of(raw.text)]
    found += [ColumnRole(n, "ignored", why) for n, why in raw.dropped.items()]
    return found


def match_names(raw: RawTable, known: Set[str | None]) -> None:
    """Take for identifiers a column of text that has some of those that are known."""
    for name, cells in raw.beside.items():
        if "id" not in raw.text and len(set(cells)) == len(cells) and known & set(cells):
            raw.text["id"] = cells
            raw.roles.append(ColumnRole(name, "id", "has the names that the labels have"))
    raw.beside = {name: cells for name, cells in raw.beside.items() if cells != raw.text.get("id")}


def assign_roles(raw: RawTable, roles: Roles, target: str | None) -> None:
    """Give every column of a table its role, and leave out in place what is no feature."""
    columns = _Columns(raw, roles)
    raw.roles += asked_roles(raw, roles, target)
    columns.text(target)
    if raw.X.shape[1] == 0:
        raise InputError("no column of numbers is left", remedy=f"check {option('drop')}")
    columns.identifiers()
    columns.clinical()
    raw.notices = (*raw.notices, *columns.notices, *_giveaways(raw, columns))
    left = [i for i in range(len(raw.names)) if i not in columns.gone]
    if not left:
        raise InputError(
            "no column of numbers is left as a feature",
            remedy=f"name those to use with {option('keep')}",
        )
    _keep_columns(raw, left)


def assign_roles_by_name(raw: RawTable, roles: Roles, target: str | None) -> None:
    """Give the columns of a table that stays on disk their roles, from their names alone."""
    raw.roles += asked_roles(raw, roles, target)
    keep = set(asked_names(roles.keep, raw.names, "keep"))
    looks = {i: look for i, look in looks_of(raw.names).items() if look.plain}
    looks = {i: look for i, look in looks.items() if raw.names[i] not in keep}
    left = [i for i in range(len(raw.names)) if i not in looks]
    if not looks or not _enough_others(len(left), len(looks)):
        return
    for i, look in looks.items():
        _record_role(raw, raw.names[i], look.role, f"looks {look.words}")
    _keep_columns(raw, left)


def _enough_others(n_others: int, n_looks: int) -> bool:
    """Whether there are enough columns besides those that look clinical for a wide table."""
    return n_others > _MANY and n_others >= _PER_LOOK * n_looks


def _record_role(raw: RawTable, name: str, role: Role, reason: str) -> None:
    """Write down the role of a column that is no feature."""
    raw.roles.append(ColumnRole(name, role, reason))
    if role != "id":
        raw.dropped[name] = f"{role}: {reason}"


def _keep_columns(raw: RawTable, left: list[int]) -> None:
    """Keep the columns at some positions, and put on record all that got another role."""
    if len(left) < len(raw.names):
        raw.X, raw.names = raw.X[:, left], [raw.names[i] for i in left]
    out = [c.column for c in raw.roles if raw.dropped.get(c.column, "").startswith(c.role)]
    if out:
        s = "column was" if len(out) == 1 else "columns were"
        raw.notes.append(f"{len(out)} {s} left out, not being features: {listed(out)}")


class _Columns:
    """The columns of a table while their roles are found.

    `looks` are the columns of numbers that look clinical or technical, `gone` those that are no
    features, both by position. `whole` says which columns of a `wide` table hold whole numbers.
    """

    def __init__(self, raw: RawTable, roles: Roles) -> None:
        self.raw = raw
        self.notices: list[Notice] = []
        self.gone: set[int] = set()
        self.keep = set(asked_names(roles.keep, [*raw.names, *raw.beside], "keep"))
        looks = looks_of(raw.names)
        self.looks = {i: look for i, look in looks.items() if raw.names[i] not in self.keep}
        self.wide = _enough_others(len(raw.names) - len(self.looks), len(self.looks))
        self.whole = whole_columns(raw.X) if self.wide else np.zeros(0, dtype=bool)
        if self.wide:
            share = self._share_of_whole()
            self.wide = max(share, 1 - share) >= _ALIKE
        for name in raw.names:
            if name in self.keep and (look_of(name) or names_samples(name)):
                raw.roles.append(ColumnRole(name, "feature", "kept as asked"))

    def _share_of_whole(self) -> float:
        """Return the share of whole numbers among the columns that do not look clinical."""
        return float(np.delete(self.whole, list(self.looks)).mean())

    def text(self, target: str | None) -> None:
        """Give columns of text a role, or refuse them."""
        raw = self.raw
        refused = []
        for name, cells in raw.beside.items():
            self._refuse_numbers(name, cells)
            look, named = look_of(name), names_samples(name)
            first = raw.first_column == name
            levels = len(set(cells) - {None})
            if levels == len(cells) > 2:
                role: Role = "ignored"
                if "id" not in raw.text and (first or named):
                    if target is None and first:
                        raise InputError(
                            f"column {quote(name)} holds text ({_first_text(raw, name)})",
                            remedy=f"if it names the samples use {option('id', name)}, "
                            f"if it names the features {option('transpose', True)}",
                        )
                    role, raw.text["id"] = "id", list(cells)
                _record_role(raw, name, role, "a different text in every row")
            elif levels <= 1:
                _record_role(raw, name, "ignored", "the same text in every row")
            elif not self.wide:
                refused.append(name)
            elif named or names_people(name):
                self._people(name, levels)
            elif look is not None:
                _record_role(raw, name, look.role, f"looks {look.words}")
            else:
                role = "covariate" if levels <= _FEW_LEVELS else "ignored"
                _record_role(raw, name, role, f"text with {levels} levels")
        if refused:
            raise _holds_text(raw, refused)

    def _refuse_numbers(self, name: str, cells: list[str | None]) -> None:
        """Refuse text that is to be a feature, or is numbers for the most part."""
        if name in self.keep:
            raise InputError(
                f"column {quote(name)} ({option('keep')}) holds text "
                f"({_first_text(self.raw, name)})",
                remedy="code it as numbers",
            )
        filled = [cell for cell in cells if cell is not None]
        others = [cell for cell in filled if not looks_numeric(cell)]
        if 2 * len(others) < len(filled) and look_of(name) is None and not names_samples(name):
            wrong, code = "its text is in samples without a label", ""
            if others:
                first = _first_text(self.raw, name, numbers=False)
                wrong = f"{first} is not a number ({len(others)} cells like this)"
                code = if_a_code(others[0]) if len(set(others)) == 1 else ""
            raise InputError(
                wrong,
                where=f"column {quote(name)}",
                remedy="correct them, leave the cells empty, or leave the column out with "
                f"{option('drop', [name])}{code}",
            )

    def _people(self, name: str, levels: int) -> None:
        """Leave out identifiers that repeat, and say what they may be for."""
        _record_role(self.raw, name, "ignored", "repeats, as patients do")
        if "group" not in self.raw.text:
            self._notice(
                "patients",
                "serious",
                f"Column {quote(name)} has {levels} values in {self.raw.X.shape[0]} samples. If "
                "they are patients, name it as the groups: samples of one patient in training "
                "and in test make every score too good.",
            )

    def _notice(self, code: str, severity: Severity, text: str) -> None:
        self.notices.append(Notice(code, severity, text))

    def identifiers(self) -> None:
        """Find whole numbers that only name samples or the people they come from."""
        raw = self.raw
        for i, name in enumerate(raw.names):
            if name in self.keep or not names_samples(name):
                continue
            column = column_of(raw.X, i)
            if not np.array_equal(column, np.floor(column)):
                continue
            levels = len(np.unique(column))
            if levels == len(column) > 2:
                role: Role = "ignored" if "id" in raw.text else "id"
                raw.text.setdefault("id", [f"{value:.0f}" for value in column])
                self.gone.add(i)
                _record_role(raw, name, role, "a different whole number in every row")
            elif levels > 2 and names_people(name):
                self.gone.add(i)
                self._people(name, levels)

    def clinical(self) -> None:
        """Leave out what looks clinical or technical among like columns; else list it."""
        raw = self.raw
        found = {i: look for i, look in self.looks.items() if i not in self.gone}
        if self.wide:
            fractions = self._share_of_whole() <= 0.5
            for i, look in found.items():
                if look.plain or (fractions and self.whole[i] and not self._constant(i)):
                    self.gone.add(i)
                    _record_role(raw, raw.names[i], look.role, f"looks {look.words}")
            if fractions:
                self._odd(found)
            return
        plain = {raw.names[i]: look for i, look in found.items() if look.plain}
        for name, look in plain.items():
            raw.roles.append(ColumnRole(name, "feature", f"looks {look.words}"))
        if plain:
            outcome = any(look.role == "ignored" for look in plain.values())
            words = " or ".join(dict.fromkeys(look.words for look in plain.values()))
            one = len(plain) == 1
            look_like = f"{listed(plain)} {'looks' if one else 'look'} {words}"
            are = "it is a feature" if one else "they are features"
            self._notice(
                "roles",
                "caution" if outcome else "note",
                f"{look_like}. In a table of few or unlike columns {are} like the others; drop "
                "what is not to be predicted from.",
            )

    def _odd(self, found: Collection[int]) -> None:
        """Name the few columns of two codes among columns with fractions; they stay features."""
        raw = self.raw
        odd: list[str] = []
        series = Counter(map(stem_of, raw.names)) if self.whole.any() else Counter()
        for i in np.flatnonzero(self.whole).tolist():
            name = raw.names[i]
            if i in found or i in self.gone or name in self.keep:
                continue
            if series[stem_of(name)] <= _FEW_ALIKE and is_code(column_of(raw.X, i)):
                odd.append(name)
            if len(odd) > _FEW_ODD:
                return
        for name in odd:
            raw.roles.append(ColumnRole(name, "feature", "two codes only"))
        if odd:
            self._notice(
                "roles",
                "caution",
                f"{listed(odd)} {'has' if len(odd) == 1 else 'have'} two codes only, unlike the "
                "other features: if that is no measurement, drop it.",
            )

    def _constant(self, i: int) -> bool:
        column = column_of(self.raw.X, i)
        return bool(np.nanmin(column) == np.nanmax(column))


# --- columns that give the class away ----------------------------------------------------


def _giveaways(raw: RawTable, columns: _Columns) -> Iterator[Notice]:
    """Name columns whose values say the class: copies of the label, or batches of one class."""
    labels = raw.text.get("target")
    if labels is None:
        return
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1]
    copies = [int(i) for i in constant_within(raw.X, codes)]
    codes_of_few = [i for i in {*columns.looks, *columns.gone} if i not in copies]
    copies += [i for i in codes_of_few if determines(column_of(raw.X, i), codes)]
    features = [raw.names[i] for i in sorted(copies) if i not in columns.gone]
    others = [raw.names[i] for i in sorted(copies) if i in columns.gone]
    others += [name for name, cells in raw.beside.items() if determines(cells, codes)]
    if features:
        yield Notice(
            "leak",
            "serious",
            f"The values of {listed(features)} tell the class of every sample: if this is the "
            "label under another name, or was measured after it was known, drop it.",
        )
    for name in others:
        look = look_of(name)
        if look is not None and look.role == "batch":
            yield Notice(
                "leak",
                "serious",
                f"Each value of {quote(name)} occurs in one class only: what is found may tell "
                "these apart rather than the classes.",
            )


# --- refusals ----------------------------------------------------------------------------


def _first_text(raw: RawTable, name: str, *, numbers: bool = True) -> str:
    """Quote the first text of a column, and say where it is."""
    cells = raw.beside[name]
    rows = [i for i, cell in enumerate(cells) if cell is not None]
    row = next(i for i in rows if numbers or not looks_numeric(str(cells[i])))
    return f"{quote(cells[row])} on {raw.line_of(row)}"


def _holds_text(raw: RawTable, names: list[str]) -> InputError:
    """Refuse text that may be meant as a feature; the remedy depends on what it looks like."""
    one = len(names) == 1
    line = "row" if raw.place == "column" else "column"
    what = f"{line} {listed(names)} holds" if one else f"{line}s {listed(names)} hold"
    remedy = f"leave each out with {option('drop')}"
    if one:
        remedy = f"drop it with {option('drop', names)}"
    remedy += " or code it as numbers"
    people = [name for name in names if names_people(name) or names_samples(name)]
    if people:
        remedy = f"{option('group', people[0])} keeps the samples of each together; else {remedy}"
    return InputError(f"{what} text ({_first_text(raw, names[0])})", remedy=remedy)
