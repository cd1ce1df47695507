"""The columns of a table by their roles, and `RawTable`, a table before it is checked.

`lay_out` gives the columns of a header the roles that a caller named; `from_arrays` and
`from_matrix` make a `RawTable` of arrays, as `rows.from_rows` does of rows of cells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from .._notices import Notice
from .cells import as_label, as_role, looks_numeric
from .errors import InputError, listed, no_such, option, quote, role_option, suggestion
from .structure import check_texts

UNNAMED = ""  # the header cell that pandas and R leave above row names
_READ_BACK = "Unnamed: 0"  # what pandas makes of it when it reads the file and writes it again
_BATCH = "batch:"
IS, VERSUS = "=", " vs "  # in the name of a feature that is a level of a column
ADJUST, CATEGORICAL = "adjust:", "categorical:"
# Labels ("target"), identifiers ("id"), groups ("group"), batches ("batch:" and their name), what
# is adjusted for ("adjust:" and its name) and other categories ("categorical:" and their name),
# None where a cell is empty.
RoleText = dict[str, list[str | None]]
Role = Literal["target", "id", "group", "batch", "covariate", "ignored", "feature"]


@dataclass(frozen=True)
class ColumnRole:
    """The role of a column, and why it has it.

    Attributes
    ----------
    column : str
        Its name; empty for names of samples that are no column of the table.
    role : {"target", "id", "group", "batch", "covariate", "ignored", "feature"}
        What it is for. Columns of the roles batch, covariate and ignored are left out.
    reason : str
        Why, in a few words.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sparsegsvp.io import make_table
    >>> genes = np.random.default_rng(0).normal(size=(6, 60))
    >>> frame = pd.DataFrame(genes, columns=[f"G{j}" for j in range(60)])
    >>> frame = frame.assign(age=[61, 45, 70, 52, 66, 58], type=list("ababab"))
    >>> [(c.column, c.role) for c in make_table(frame, target="type").roles]
    [('type', 'target'), ('age', 'covariate')]
    """

    column: str
    role: Role
    reason: str


@dataclass
class RawTable:
    """What a reader of any format returns, and what the checks find out about it.

    `dropped` says why a column was left out, `notes` what was decided and not asked for;
    `lines` has the place of each sample in the file, if it has lines, and `place` is what
    messages call that place. `beside` has the columns of text that nobody gave a role,
    `first_column` the name of the first column of all, and `roles` what became of the columns.
    `titles` are other names of the samples, if they have any; `covariates` and `categories` are the
    features that were made of columns to adjust for, and of other columns of categories. `digest`
    tells what was read from other data.
    """

    X: Any
    names: list[str]
    kind: str
    text: RoleText = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lines: Sequence[int] | None = None
    place: str = "row"
    notices: tuple[Notice, ...] = ()
    n_missing: int = 0
    beside: dict[str, list[str | None]] = field(default_factory=dict)
    first_column: str | None = None
    roles: list[ColumnRole] = field(default_factory=list)
    titles: list[str | None] | None = None
    covariates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    digest: str = ""

    def line_of(self, row: int) -> str:
        """Say where a sample is in the file, or in the table if that has no lines."""
        return f"{self.place} {row + 1 if self.lines is None else self.lines[row]}"


@dataclass(frozen=True)
class Roles:
    """The columns a caller named: labels, identifiers, groups, what to drop, what to read.

    `features` are the columns to read as numbers; None is every column without another role.
    `collapse` says how features that share a name will be made one; None refuses them.
    Those of `keep` are features whatever they look like, those of `text` hold text. Those of
    `adjust` and `categorical` are read as text and made features at the end, those of
    `categorical` by their levels.
    """

    target: str | None = None
    id: str | None = None
    group: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    collapse: str | None = None
    keep: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    batch: tuple[str, ...] = ()
    adjust: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Return the columns of text that were named, by the key they have in `RoleText`."""
        pairs = (("target", self.target), ("id", self.id), ("group", self.group))
        found = {role: name for role, name in pairs if name is not None}
        # groups that are batches too are read once, and written down twice by `checked_table`
        found |= {batch_role(name): name for name in self.batch if name != self.group}
        return found | self.coded()

    def coded(self) -> dict[str, str]:
        """Return the columns that features are made of at the end, by their key in `RoleText`."""
        others = [name for name in self.categorical if name not in self.adjust]
        found = {f"{ADJUST}{name}": name for name in self.adjust}
        return found | {f"{CATEGORICAL}{name}": name for name in others}

    def with_levels(self, there: Collection[str]) -> Roles:
        """Return the roles with the columns ``there`` whose levels are among `features`."""
        behind = columns_behind(self.features or (), there)
        return replace(self, categorical=tuple(dict.fromkeys((*self.categorical, *behind))))

    def measured(self) -> tuple[str, ...] | None:
        """Return the columns to read as numbers: those of `features` that are not `coded`."""
        coded = self.coded().values()
        if self.features is None or not coded:
            return self.features
        return tuple(n for n in self.features if not any(made_of(n, column) for column in coded))

    def asked(self) -> set[str]:
        """Return all names the caller gave."""
        return {*self.named().values(), *self.drop, *(self.features or ())}

    def check(self) -> None:
        """Refuse one column in two roles."""
        seen: dict[str, str] = {}
        more = [
            (role, name) for role in ("drop", "keep") for name in dict.fromkeys(getattr(self, role))
        ]
        for role, name in [*self.named().items(), *more]:
            first, second = seen.setdefault(name, role), role
            if first != second:
                both = f"{role_option(first)} and as {role_option(second)}"
                raise InputError(
                    f"column {quote(name)} is given as {both}", remedy="give each column one role"
                )


def batch_role(name: str) -> str:
    """Return the key of a batch variable among the columns of text."""
    return f"{_BATCH}{name}"


def batches_of(text: RoleText) -> dict[str, list[str | None]]:
    """Return the batch variables among the columns of text, by their names."""
    return {r.removeprefix(_BATCH): v for r, v in text.items() if r.startswith(_BATCH)}


def names_in(given: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Take apart "a,b,c" into three names, unless a name is written so."""
    found: list[str] = []
    for text in given:
        parts = [part.strip() for part in text.split(",")]
        found += [text] if text in known else [part for part in parts if part] or [text]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Layout:
    """Positions of the columns by role: numbers and their names, and text.

    Columns without a name (`blank`) must be empty; those of `beside` hold text that nobody gave
    a role.
    """

    features: list[int]
    names: list[str]
    text: dict[str, int]
    blank: list[int] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    beside: dict[str, int] = field(default_factory=dict)


def made_of(feature: str, column: str) -> bool:
    """Whether a feature is a column, or one of its levels."""
    return feature == column or feature.startswith(f"{column}{IS}")


def columns_behind(features: Iterable[str], there: Collection[str]) -> tuple[str, ...]:
    """Return the columns whose levels are among some features: sex, of a feature sex=M vs F."""
    found: dict[str, None] = {}
    for name in features:
        if name in there or IS not in name or VERSUS not in name:
            continue
        parts = name.split(IS)
        heads = (IS.join(parts[:i]) for i in range(1, len(parts)))
        found.update((head, None) for head in heads if head in there)
    return tuple(found)


def lay_out(header: Sequence[str], roles: Roles, what: str = "column") -> Layout:
    """Give every column of a header its role, or say which name is wrong."""
    roles = replace(roles, drop=names_in(roles.drop, set(header)))
    roles = roles.with_levels(set(header))
    roles.check()
    refuse_shared_names(header, roles, what=what)
    position = {name: i for i, name in reversed(list(enumerate(header)))}
    asked = [*roles.named().items(), *(("drop", name) for name in roles.drop)]
    for role, name in asked:
        if name not in position:
            raise no_such_line(name, role, header)
    text = {role: position[name] for role, name in roles.named().items()}
    notes: list[str] = []
    blank = [i for i, name in enumerate(header) if name == UNNAMED]
    read_back = what == "column" and list(header[:1]) == [_READ_BACK]
    if read_back and _READ_BACK not in roles.asked():
        blank.insert(0, 0)
    first = blank.pop(0) if blank and blank[0] == 0 else None
    if first is not None and "id" not in text:
        text["id"] = first
        notes.append("the first column has no name and was taken for sample identifiers")
    elif first is not None:
        notes.append("the first column has no name and was left out, as names of rows")
    if roles.features is not None:
        features = positions_of(roles.measured() or (), header, "columns")
        return Layout(features, [header[i] for i in features], text, notes=notes)
    beside = {name: position[name] for name in roles.text}
    skip, out = {*text.values(), *blank, first}, {*roles.drop, *beside}
    features = [i for i, name in enumerate(header) if i not in skip and name not in out]
    dropped = dict.fromkeys(roles.drop, "asked for")
    names = [header[i] for i in features]
    return Layout(features, names, text, blank, dropped, notes, beside)


def refuse_shared_names(
    names: Sequence[str], roles: Roles, what: str = "column", lines: Sequence[int] | None = None
) -> None:
    """Refuse features that share a name, unless they will be made one."""
    if roles.collapse is None:
        ways = f"or make them one with {option('collapse', 'mean')}, 'max' or 'first'"
        refuse_duplicates(names, what=what, ignore=roles.drop, lines=lines, remedy=ways)
        return
    others = set(names).difference(roles.named().values())
    refuse_duplicates(names, what=what, ignore=others, lines=lines)


def refuse_duplicates(
    names: Sequence[str],
    *,
    what: str = "column",
    ignore: Collection[str] = (),
    lines: Sequence[int] | None = None,
    remedy: str = "since a panel is a list of names",
) -> None:
    """Refuse names that occur twice, saying where, before any reader renames them."""
    if len(set(names)) == len(names):
        return
    found: dict[str, list[int]] = {}
    for place, name in zip(lines or range(1, len(names) + 1), names):
        found.setdefault(name, []).append(place)
    twice = {n: p for n, p in found.items() if len(p) > 1 and n != UNNAMED and n not in ignore}
    if twice:
        name, at = next(iter(twice.items()))
        others = f", and {len(twice) - 1} other names repeat" if len(twice) > 1 else ""
        raise InputError(
            f"{what} name {quote(name)} appears {len(at)} times "
            f"({'lines' if lines else what + 's'} {', '.join(map(str, at[:4]))}){others}",
            remedy=f"rename or remove the repeats, {remedy}",
        )


def no_such_line(name: str, role: str, names: Sequence[str], what: str = "column") -> InputError:
    """Return the error for a column or row that there is not, with the remedy for tables."""
    there = [n for n in names if n != UNNAMED]
    remedy = suggestion(name, there)
    if there and all(looks_numeric(n) for n in there):
        remedy = "the first line holds only numbers: add a line with the column names"
    if what == "row":
        remedy += f"; labels may also come from a second file ({option('labels')})"
    return InputError(f"there is no {what} {quote(name)} ({role_option(role)})", remedy=remedy)


def positions_of(wanted: Sequence[str], names: Sequence[str], what: str) -> list[int]:
    """Return all places of the wanted names among the names, or list those that are missing."""
    places: dict[str, list[int]] = {name: [] for name in wanted}
    for i, name in enumerate(names):
        if name in places:
            places[name].append(i)
    absent = [name for name, found in places.items() if not found]
    if absent:
        raise InputError(
            f"{len(absent)} of the {len(wanted)} {what} needed are missing: {listed(absent)}",
            remedy="add them; names must match exactly, their order does not matter",
        )
    return [i for name in wanted for i in places[name]]


# --- matrices and arrays ----------------------------------------------------------------


def from_matrix(X: Any, names: Sequence[str], roles: Roles, kind: str, text: RoleText) -> RawTable:
    """Make a table of a matrix whose columns are all features, and of the text beside it."""
    named = [name or f"column {i}" for i, name in enumerate(names)]
    own = replace(
        roles, target=None, id=None, group=None, batch=(), adjust=(), categorical=(),
        features=roles.measured(),
    )  # fmt: skip
    layout = lay_out(named, own, "feature")
    if layout.features != list(range(len(named))):
        X = X[:, layout.features]
    return RawTable(X, layout.names, kind, text, layout.dropped)


def from_arrays(
    X: Any, arrays: Mapping[str, Any], roles: Roles, kind: str, remedy: str = ""
) -> RawTable:
    """Make a table of a matrix and of arrays that name its columns or have a role."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            f"X is {X.ndim}-dimensional of type {X.dtype}", remedy="it must be numbers"
        )
    names, notes = feature_names(arrays.get("feature_names"), X.shape[1], remedy)
    others = [name for name in arrays if name != "feature_names"]
    text: RoleText = {}
    for role, name in roles.named().items():
        if name not in others:
            raise no_such("array", name, role, others)
        values = check_texts(np.asarray(arrays[name][...]), name)
        if values.shape != X.shape[:1]:
            raise InputError(
                f"array {quote(name)} has shape {values.shape}, X has {X.shape[0]} rows"
            )
        text[role] = [as_role(role, value) for value in values.tolist()]
    raw = from_matrix(X, names, roles, kind, text)
    raw.notes += notes
    return raw


def feature_names(given: Any, m: int, remedy: str) -> tuple[list[str], list[str]]:
    """Return a name for each of m features, and a note if they had to be numbered."""
    if given is None:
        note = "the features have no names and were numbered f0, f1, …"
        return [f"f{j}" for j in range(m)], [note]
    if len(getattr(given, "shape", (m,))) != 1:
        raise InputError("feature_names is not one-dimensional", remedy=remedy)
    given = check_texts(given[:], "feature_names") if hasattr(given, "dtype") else given
    names = [as_label(name) or "" for name in given]
    if len(names) != m:
        raise InputError(f"{len(names)} feature_names for {m} columns of X", remedy=remedy)
    return names, []


def from_anndata(X: Any, obs: Any, names: Iterable[Any], roles: Roles, kind: str) -> RawTable:
    """Make a table of AnnData: a matrix, its samples and their columns in obs, its features."""
    roles = roles.with_levels(set(obs.columns))
    text: RoleText = {"id": [str(name) for name in obs.index]}
    for role, name in roles.named().items():
        if name not in obs.columns:
            raise no_such("column", name, role, [str(c) for c in obs.columns], " in obs")
        column = obs[name]
        cells = zip(column.isna(), column.astype(object))
        text[role] = [None if gone else as_role(role, value) for gone, value in cells]
    return from_matrix(X, [str(name) for name in names], roles, kind, text)


def stored_matrix(root: Any, layer: str | None) -> Any:
    """Return X or a layer of AnnData as its file, store or object holds it."""
    # anndata 0.13 has X among the layers too, under None
    layers = [name for name in root["layers"] if name is not None] if "layers" in root else []
    if layer is not None and layer not in layers:
        raise no_such("layer", layer, "layer", layers)
    if layer is None and "X" not in root:
        raise InputError(
            "X is empty", remedy=f"name a layer with {option('layer')}: {listed(layers)}"
        )
    return root["X"] if layer is None else root["layers"][layer]


def as_floating(X: Any) -> Any:
    """Return a matrix as it is if it is float32 or float64, else as float64."""
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
