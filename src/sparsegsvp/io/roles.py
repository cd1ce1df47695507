"""Which column of a table has which role: labels, identifiers, groups, features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .cells import as_label, looks_numeric
from .errors import InputError, listed, option, quote, suggestion

UNNAMED = ""  # the header cell that pandas and R leave above row names


@dataclass(frozen=True)
class Roles:
    """The columns a caller named: labels, identifiers, groups, what to drop, what to read.

    `features` are the columns to read as numbers; None is every column without another role.
    """

    target: str | None = None
    id: str | None = None
    group: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None

    def named(self) -> dict[str, str]:
        """Return the column of each of "target", "id" and "group" that has one."""
        pairs = (("target", self.target), ("id", self.id), ("group", self.group))
        return {role: name for role, name in pairs if name is not None}

    def check(self) -> None:
        """Refuse one column in two roles."""
        seen: dict[str, str] = {}
        for role, name in self.named().items():
            if name in seen:
                raise InputError(
                    f"column {quote(name)} is given as {option(seen[name])} and as {option(role)}",
                    remedy="name a different column for each",
                )
            if name in self.drop:
                raise InputError(
                    f"column {quote(name)} is given as {option(role)} and as {option('drop')}",
                    remedy="remove one of the two",
                )
            seen[name] = role


@dataclass(frozen=True)
class Layout:
    """Positions of the columns by role: numbers and their names, text, unnamed, dropped.

    Columns without a name (`blank`) must be empty; `dropped` says why each was left out, and
    `notes` what was decided and not asked for.
    """

    features: list[int]
    names: list[str]
    text: dict[str, int] = field(default_factory=dict)
    blank: list[int] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def refuse_duplicates(
    names: Sequence[str],
    where: str,
    *,
    what: str = "column",
    ignore: Sequence[str] = (),
    places: Sequence[int] | None = None,
) -> None:
    """Refuse names that occur twice, saying where, before any reader renames them."""
    if len(set(names)) == len(names):
        return
    found: dict[str, list[int]] = {}
    for place, name in zip(places or range(1, len(names) + 1), names):
        found.setdefault(name, []).append(place)
    twice = {n: p for n, p in found.items() if len(p) > 1 and n != UNNAMED and n not in ignore}
    if twice:
        name, at = next(iter(twice.items()))
        others = f", and {len(twice) - 1} other names repeat" if len(twice) > 1 else ""
        raise InputError(
            f"{what} name {quote(name)} appears {len(at)} times "
            f"({'lines' if places else what + 's'} {', '.join(map(str, at[:4]))}){others}",
            where=where,
            remedy="rename or remove the repeats, since a panel is a list of names",
        )


def lay_out(header: Sequence[str], roles: Roles, where: str) -> Layout:
    """Give every column of a header its role, or say which name is wrong."""
    roles.check()
    refuse_duplicates(header, where, ignore=roles.drop)
    position = {name: i for i, name in reversed(list(enumerate(header)))}
    text: dict[str, int] = {}
    notes: list[str] = []
    for role, name in roles.named().items():
        if name not in position:
            raise missing_column(name, role, header, where)
        text[role] = position[name]
    for name in roles.drop:
        if name not in position:
            raise missing_column(name, "drop", header, where)
    blank = [i for i, name in enumerate(header) if name == UNNAMED]
    if blank and blank[0] == 0 and "id" not in text:
        text["id"] = blank.pop(0)
        notes.append("the first column has no name and was taken for sample identifiers")
    if roles.features is not None:
        absent = [name for name in roles.features if name not in position]
        if absent:
            raise InputError(
                f"{len(absent)} of the {len(roles.features)} columns needed are missing: "
                f"{listed(absent)}",
                where=where,
                remedy="add them; names must match exactly, their order does not matter",
            )
        features = [position[name] for name in roles.features]
        return Layout(features, list(roles.features), text, notes=notes)
    skip = {*text.values(), *blank}
    features = [i for i, name in enumerate(header) if i not in skip and name not in roles.drop]
    dropped = dict.fromkeys(roles.drop, "asked for")
    return Layout(features, [header[i] for i in features], text, blank, dropped, notes)


def missing_column(name: str, role: str, header: Sequence[str], where: str) -> InputError:
    """Return the error for a name that no column has, with the one probably meant."""
    named = [h for h in header if h != UNNAMED]
    remedy = suggestion(name, named)
    if named and all(looks_numeric(h) for h in named):
        remedy = "the first line holds only numbers: add a line with the column names"
    what = f"there is no column {quote(name)} ({option(role)})"
    return InputError(what, where=where, remedy=remedy)


def choose_features(
    names: Sequence[str], roles: Roles, where: str
) -> tuple[list[int] | None, list[str], dict[str, str]]:
    """Choose among the names of a matrix: positions (None for all), names, what was dropped."""
    only = Roles(drop=roles.drop, features=roles.features)
    named = [name if name else f"column {i}" for i, name in enumerate(names)]
    refuse_duplicates(named, where, what="feature", ignore=roles.drop)
    layout = lay_out(named, only, where)
    everything = layout.features == list(range(len(names)))
    return None if everything else layout.features, layout.names, layout.dropped


def columns_of_samples(obs: Any, roles: Roles, where: str) -> dict[str, list[str | None]]:
    """Return the names of the samples and the columns of obs that have a role, as text."""
    text: dict[str, list[str | None]] = {"id": [str(name) for name in obs.index]}
    for role, name in roles.named().items():
        if name not in obs.columns:
            raise InputError(
                f"there is no column {quote(name)} in obs ({option(role)})",
                where=where,
                remedy=suggestion(name, [str(c) for c in obs.columns]),
            )
        column = obs[name]
        text[role] = [
            None if gone else as_label(value)
            for gone, value in zip(column.isna(), column.astype(object))
        ]
    return text


def arrays_of_samples(
    arrays: Mapping[str, Any], named: Mapping[str, str], n: int, where: str
) -> dict[str, Any]:
    """Return the arrays of a store that have a role, one value for each of n samples."""
    found = {}
    for role, name in named.items():
        if name not in arrays:
            raise InputError(
                f"there is no array {quote(name)} ({option(role)})",
                where=where,
                remedy=suggestion(name, list(arrays)),
            )
        values = np.asarray(arrays[name][:])
        if values.shape != (n,):
            raise InputError(
                f"array {quote(name)} has shape {values.shape}, X has {n} rows", where=where
            )
        found[role] = values
    return found


def numbered(m: int) -> tuple[list[str], str]:
    """Return names for m features without any, and the sentence that says so."""
    return [f"f{j}" for j in range(m)], "the features have no names and were numbered f0, f1, …"
