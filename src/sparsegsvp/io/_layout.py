"""Which column of a table plays which part, decided from the header alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ._cells import looks_numeric
from .errors import InputError, listed, option, quote, suggestion

UNNAMED = ""  # the header cell that pandas and R leave above row names


@dataclass(frozen=True)
class Request:
    """What the caller asked for, by name.

    Parameters
    ----------
    target, id, group : str or None
        Columns that hold labels, sample identifiers and groups.
    drop : tuple of str
        Columns to leave out.
    features : tuple of str or None
        The columns to read as numbers; None for every column without another part.
    """

    target: str | None = None
    id: str | None = None
    group: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None

    def roles(self) -> dict[str, str]:
        """Map each part that is asked for to its column."""
        pairs = (("target", self.target), ("id", self.id), ("group", self.group))
        return {role: name for role, name in pairs if name is not None}

    def check(self) -> None:
        """Refuse one column in two parts."""
        seen: dict[str, str] = {}
        for role, name in self.roles().items():
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
    """Positions of the columns by part.

    Parameters
    ----------
    features : list of int
        Positions of the numbers.
    names : list of str
        Their names.
    text : dict of str to int
        Positions of the labels, identifiers and groups.
    blank : list of int
        Columns without a name, which must be empty.
    dropped : dict of str to str
        Columns left out, with the reason.
    notes : list of str
        What was decided and not asked for.
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


def lay_out(header: Sequence[str], request: Request, where: str) -> Layout:
    """Assign every column of a header its part, or say which name is wrong."""
    request.check()
    refuse_duplicates(header, where, ignore=request.drop)
    position = {name: i for i, name in reversed(list(enumerate(header)))}
    text: dict[str, int] = {}
    notes: list[str] = []
    for role, name in request.roles().items():
        if name not in position:
            raise missing_column(name, role, header, where)
        text[role] = position[name]
    for name in request.drop:
        if name not in position:
            raise missing_column(name, "drop", header, where)
    blank = [i for i, name in enumerate(header) if name == UNNAMED]
    if blank and blank[0] == 0 and "id" not in text:
        text["id"] = blank.pop(0)
        notes.append("the first column has no name and was taken for sample identifiers")
    if request.features is not None:
        absent = [name for name in request.features if name not in position]
        if absent:
            raise InputError(
                f"{len(absent)} of the {len(request.features)} columns needed are missing: "
                f"{listed(absent)}",
                where=where,
                remedy="add them; names must match exactly, their order does not matter",
            )
        features = [position[name] for name in request.features]
        return Layout(features, list(request.features), text, notes=notes)
    skip = {*text.values(), *blank}
    features = [i for i, name in enumerate(header) if i not in skip and name not in request.drop]
    dropped = dict.fromkeys(request.drop, "asked for")
    return Layout(features, [header[i] for i in features], text, blank, dropped, notes)


def missing_column(name: str, role: str, header: Sequence[str], where: str) -> InputError:
    """Say that a column is not there, and which one was probably meant."""
    named = [h for h in header if h != UNNAMED]
    remedy = suggestion(name, named)
    if named and all(looks_numeric(h) for h in named):
        remedy = "the first line holds only numbers: add a line with the column names"
    what = f"there is no column {quote(name)} ({option(role)})"
    return InputError(what, where=where, remedy=remedy)
