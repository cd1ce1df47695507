"""What each column of a table is for: its role, decided from name, type and values.

A caller's word always wins. Of the other columns those of numbers are features, but for

- columns named like identifiers whose whole numbers all differ, or repeat for people;
- in a *wide* table, columns whose names look clinical, technical or like an outcome. A table is
  wide if more than 50 other columns hold numbers, at least four for each that looks so, and nine
  in ten of them are alike: all with fractions, or all whole numbers. In a smaller table of unlike
  columns an age is a measurement like the others, and stays a feature, with a notice.

Columns of text are never features: in a wide table they get a role and are left out, in a small
one, where they may be meant as predictors, they are refused unless they can only be names.

Names are taken word by word, so that MAGEA1 is no age and BMI1, RIN2, OS9 and ID3 stay genes. A
name is `plain` if it consists of known words alone ("Age at diagnosis", "OS.time"); if one word is
unknown ("Age (Jahre)") the values have to speak for it too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Action, Notice, Severity
from .cells import column_of, column_slices
from .errors import InputError, listed, no_such, option, quote, role_option
from .text import looks_numeric, names_in

LookRole = Literal["covariate", "batch", "ignored"]
Keys = Mapping[LookRole, tuple[str, str]]

# A word that names a column by itself: what it is called, and the role it has. Of several in one
# name the first counts; those below, which often only qualify another, count after them.
_KEYS: Keys = {
    "covariate": (
        "clinical",
        """age ages alter edad dob birth sex sexe sexo gender geschlecht male female bmi weight
        height stage staging grade grading gleason ecog karnofsky tnm race ethnicity smoking smoker
        smokers alcohol menopause menopausal parity treatment treated therapy chemotherapy
        radiotherapy dose pack packs comorbidity comorbidities diabetes hypertension education
        purity cellularity""",
    ),
    "batch": (
        "technical",
        """batch batches plate plates run runs lane flowcell date site sites center centre hospital
        clinic cohort study dataset institution institute country operator technician instrument
        machine scanner platform slide well rin dv200 injection acquisition storage protocol""",
    ),
    "ignored": (
        "like an outcome",
        """os pfs dfs rfs efs dss survival survived event death dead died alive deceased vital
        censor censored censoring censorship followup follow relapse relapsed recurrence recurred
        progression mortality outcome prognosis""",
    ),
}
_WEAK_KEYS: Keys = {
    "covariate": ("clinical", "status score"),
    "batch": ("technical", "year years order"),
    "ignored": ("like an outcome", "time day days week weeks month months response responder"),
}
_LABELS = """class label labels target diagnosis diagnose subtype histology phenotype condition
    disease"""
# Words that may stand beside those: units, places, people, kinds.
_BESIDE = """a and at by coded for from in is of on or per since the to up with no nr num number
    code group groups category cat level value val total last first initial final baseline current
    dx onset entry enrollment enrolment inclusion surgery resection operation biopsy collection
    sampling sample patient patients pt subject donor participant case individual animal mouse
    tumor tumour cancer path pathologic pathological pathology ajcc figo who ecog binary bin dummy
    numeric int index id ids name f m n t x y z yr yrs mo mos wk d h hour hours min kg g lb lbs cm
    mm m2 er pr her2 type range squared free overall specific progression contact known rna dna seq
    sequencing experiment exp processing processed preparation prep freezing draw visit exam
    examination death ps performance raw years old i ii iii iv risk nodal"""
_IDENTIFIERS = """id ids sample samples patient patients subject subjects participant participants
    donor donors individual individuals person case specimen barcode accession mrn index idx row
    rownames obs observation uid uuid gsm unnamed record animal mouse name names"""
#: Whose samples must not be split between training and test.
_PEOPLE = """patient patients subject subjects participant participants donor donors individual
    individuals person animal mouse family litter twin household mrn pt"""
_BESIDE_ID = "no nr num number code ref key the of x y study tumor tumour hospital pt"
# Words that still count, given values to match, where one other word is unknown.
_TELLING = "age sex gender bmi batch plate stage grade survival date"
# Genes of worms (age-1, sex-1) and how others are often written (BMI-1, OS-9, ID-3).
_HYPHENED_GENE = re.compile(r"[A-Za-z]{2,4}-\d+(\.\d+)?")
_SHORTEST = 4  # letters of a word that may have a number glued to it: batch2, but BMI1 is a gene
# More names than this that differ in their number alone are a series of measurements: of strong
# words (batch 1 to batch 12 are no measurements), and of those that often count something else.
_SERIES, _WEAK_SERIES = 20, 3
_ALSO_GENES = ("run", "efs")
_OF_SURVIVAL = re.compile(
    r"(?i)\b(os|pfs|dfs|rfs|efs|dss)(months?|mos?|days?|years?|time|status|event|censor)\b"
)
_CHANGE_OF_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+\d*|\d+")


@dataclass(frozen=True)
class Look:
    """What a name looks like: the role it suggests, in words too, and how sure that is.

    Of more than `most` names that differ in their number alone none looks so.
    """

    role: LookRole
    words: str
    plain: bool
    most: int = _SERIES


def _table_of(keys: Keys) -> dict[str, tuple[LookRole, str]]:
    return {w: (role, said) for role, (said, text) in keys.items() for w in text.split()}


_STRONG, _WEAK = _table_of(_KEYS), _table_of(_WEAK_KEYS)
_WEAK |= dict.fromkeys(_LABELS.split(), ("ignored", "like another label"))
_KNOWN = {*_STRONG, *_WEAK, *_BESIDE.split()}
_SURE = frozenset(_TELLING.split())
_IDS, _PERSONS = frozenset(_IDENTIFIERS.split()), frozenset(_PEOPLE.split())
_KNOWN_BESIDE_ID = {*_IDS, *_PERSONS, *_BESIDE_ID.split()}


@lru_cache(maxsize=1 << 15)
def words_of(name: str) -> tuple[str, ...]:
    """Split a name into words in lower case: at other characters, and where case changes.

    PlateID is plate and id, batch2 is batch and 2.
    """
    if _HYPHENED_GENE.fullmatch(name):
        return (name.lower(),)
    parted = _OF_SURVIVAL.sub(r"\1 \2", name)
    parted = _CHANGE_OF_CASE.sub(" ", parted)
    words: list[str] = []
    for word in _WORD.findall(parted.lower()):
        stem = word.rstrip("0123456789")
        if len(stem) >= _SHORTEST and stem != word:
            words += [stem, word[len(stem) :]]
        else:
            words.append(word)
    return tuple(words)


def look_of(name: str) -> Look | None:
    """Say what a name looks like, if it looks like anything but a measurement."""
    words = [word for word in words_of(name) if not word.isdigit()]
    unknown = sum(word not in _KNOWN for word in words)
    strong = [word for word in words if word in _STRONG]
    weak = [word for word in words if word in _WEAK]
    if unknown == 0 and strong:
        return Look(*_STRONG[strong[0]], plain=len(words) > 1 or words[0] not in _ALSO_GENES)
    if unknown == 0 and weak:
        return Look(*_WEAK[weak[0]], plain=True, most=_WEAK_SERIES)
    if unknown == 1 and _SURE.intersection(strong):
        word = next(word for word in strong if word in _SURE)
        return Look(*_STRONG[word], plain=False)
    return None


def names_samples(name: str) -> bool:
    """Whether a column is named like identifiers: sample, patient_id, Unnamed: 0."""
    words = [word for word in words_of(name) if not word.isdigit()]
    return bool(words) and not _IDS.isdisjoint(words) and _KNOWN_BESIDE_ID.issuperset(words)


def names_people(name: str) -> bool:
    """Whether a column is named like the people or animals that samples come from."""
    words = [word for word in words_of(name) if not word.isdigit()]
    return not _PERSONS.isdisjoint(words) and _KNOWN_BESIDE_ID.issuperset(words)


def looks_of(names: Sequence[str]) -> dict[int, Look]:
    """Return what the names that look clinical or technical look like, by position.

    Where many names differ in their numbers alone (day 1, day 2, ...) they are a series of
    measurements, and look like nothing.
    """
    found = {i: look for i, name in enumerate(names) if (look := look_of(name)) is not None}
    counts = Counter(stem_of(names[i]) for i in found)
    return {i: look for i, look in found.items() if counts[stem_of(names[i])] <= look.most}


def stem_of(name: str) -> str:
    """Return a name without its numbers: what the names of a series have in common."""
    return re.sub(r"\d+", "#", name)


# --- what values say ---------------------------------------------------------------------

_FEWEST = 4  # samples of a class below which equal values say nothing
_RARE = 0.1  # share of the samples that have the rarer of two codes


def is_code(column: NDArray[np.float64]) -> bool:
    """Whether a column holds 0 and 1, or 1 and 2, each of them often enough to be a code."""
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return values.tolist() in ([0, 1], [1, 2]) and bool(counts.min() >= _RARE * len(column))


def whole_columns(X: Any) -> NDArray[np.bool_]:
    """Return which columns hold whole numbers alone, missing ones aside."""
    if sparse.issparse(X):
        part = np.flatnonzero(~np.isnan(X.data) & (X.data != np.floor(X.data)))
        return np.bincount(X.indices[part], minlength=X.shape[1]) == 0
    blocks = (X[:, part] for part in column_slices(X))
    return np.concatenate([~(np.isfinite(b) & (b != np.floor(b))).any(axis=0) for b in blocks])


def constant_within(X: Any, codes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the columns that have one value in each class, and more than one in all."""
    members = [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]
    found: list[NDArray[np.intp]] = []
    if min(map(len, members)) < _FEWEST:
        return np.array(found, dtype=np.intp)
    for part in column_slices(X):
        block = X[:, part]
        ends = [_ends(block[rows]) for rows in members]
        low, high = (np.array(part) for part in zip(*ends))
        same = (low == high).all(axis=0) & (low.min(axis=0) < high.max(axis=0))
        found.append(part.start + np.flatnonzero(same))
    return np.concatenate(found)


def _ends(block: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and the largest value of each column; NaN if one is missing."""
    if sparse.issparse(block):
        return block.min(axis=0).toarray().ravel(), block.max(axis=0).toarray().ravel()
    return block.min(axis=0), block.max(axis=0)


def determines(values: Any, codes: NDArray[Any]) -> bool:
    """Whether few values, each of them in one class only, say the class of every sample."""
    cells = [str(value) for value in values]
    pairs = {(cell, int(code)) for cell, code in zip(cells, codes)}
    levels = len(set(cells))
    return 1 < levels == len(pairs) and 3 * levels <= len(cells) >= 2 * _FEWEST


# --- what a caller asks for ----------------------------------------------------------------

Role = Literal["target", "id", "group", "batch", "covariate", "ignored", "feature"]
IS, VERSUS = "=", " vs "  # in the name of a feature that is a level of a column


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


@dataclass(frozen=True)
class Roles:
    """The columns a caller named.

    `features` are the columns to read as numbers; None is every column without another role.
    `collapse` says how features that share a name will be made one; None refuses them.
    """

    target: str | None = None
    id: str | None = None
    group: str | None = None
    batch: tuple[str, ...] = ()
    adjust: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    collapse: str | None = None

    def named(self) -> dict[str, str]:
        """Return the columns with a role of their own, by "target", "id", "batch:plate", ..."""
        pairs = (("target", self.target), ("id", self.id), ("group", self.group))
        named = {role: name for role, name in pairs if name is not None}
        # groups that are batches too are read once
        named |= {f"batch:{name}": name for name in self.batch if name != self.group}
        return named | {f"adjust:{name}": name for name in self.adjust}

    def check(self) -> None:
        """Refuse one column in two roles."""
        seen: dict[str, str] = {}
        more = [(role, n) for role in ("drop", "keep") for n in dict.fromkeys(getattr(self, role))]
        for second, name in [*self.named().items(), *more]:
            first = seen.setdefault(name, second)
            if first != second:
                both = f"{role_option(first)} and as {role_option(second)}"
                raise InputError(
                    f"column {quote(name)} is given as {both}", remedy="give each column one role"
                )


def made_of(feature: str, column: str) -> bool:
    """Whether a feature is a column, or one of its levels."""
    return feature == column or feature.startswith(f"{column}{IS}")


def columns_behind(features: Iterable[str], there: Collection[str]) -> tuple[str, ...]:
    """Return the columns whose levels are among some features: sex, of a feature sex=M vs F."""
    behind: dict[str, None] = {}
    for name in features:
        if name in there or IS not in name or VERSUS not in name:
            continue
        parts = name.split(IS)
        heads = (IS.join(parts[:i]) for i in range(1, len(parts)))
        behind.update((head, None) for head in heads if head in there)
    return tuple(behind)


@dataclass
class Draft:
    """A table in the making: samples in rows, numbers in X, labels and names as text.

    `text` has labels ("target"), identifiers ("id"), groups ("group") and batches ("batch:" and
    their name), None where a cell is empty; `adjust` the cells of columns to adjust for; `beside`
    the columns of text that nobody gave a role. `row` says where a sample is.
    """

    X: Any
    names: list[str]
    kind: str
    text: dict[str, list[str | None]] = field(default_factory=dict)
    adjust: dict[str, Any] = field(default_factory=dict)
    written: dict[str, list[str | None]] = field(default_factory=dict)
    beside: dict[str, list[str | None]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    roles: list[ColumnRole] = field(default_factory=list)
    covariates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    first_column: str = ""
    place: str = "row"
    lines: Sequence[int] | None = None
    titles: list[str | None] | None = None
    n_missing: int = 0

    def row(self, i: int) -> str:
        """Say where a sample is in the file, or in the table if that has no lines."""
        return f"{self.place} {i + 1 if self.lines is None else self.lines[i]}"

    def where(self, i: int, name: str) -> str:
        """Say where a cell is."""
        return f"{self.row(i)}, column {quote(name)}"

    def leave_out(self, name: str, role: Role, reason: str) -> None:
        """Write down the role of a column that is no feature."""
        self.roles.append(ColumnRole(name, role, reason))
        if role != "id":
            self.dropped[name] = f"{role}: {reason}"

    def batches(self) -> dict[str, list[str | None]]:
        """Return the batch variables by their names."""
        return {r.partition(":")[2]: v for r, v in self.text.items() if r.startswith("batch:")}


# --- roles -------------------------------------------------------------------------------

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
    grouped: dict[tuple[Role, str], list[str]] = {}
    for role in get_args(Role):
        for column in roles:
            if column.role == role:
                grouped.setdefault((role, column.reason), []).append(column.column)
    lines = [
        {"role": role, "columns": names, "count": len(names), "reason": reason}
        for (role, reason), names in grouped.items()
    ]
    rest = n_features - sum(len(names) for (role, _), names in grouped.items() if role == "feature")
    if rest:
        lines.append({"role": "feature", "columns": [], "count": rest, "reason": "numbers"})
    return lines


def asked_roles(draft: Draft, roles: Roles, target: str | None) -> list[ColumnRole]:
    """Return the roles that the caller gave, and that of names which are no column."""
    given = [] if target is None else [ColumnRole(target, "target", "as asked")]
    if "id" in draft.text and all(column.role != "id" for column in draft.roles):
        reason = "names of the samples" if roles.id is None else "as asked"
        given.append(ColumnRole(roles.id or "", "id", reason))
    if "group" in draft.text:
        given.append(ColumnRole(roles.group or "groups", "group", "as asked: never split"))
    given += [ColumnRole(name, "batch", "asked for") for name in draft.batches()]
    given += [ColumnRole(n, "ignored", why) for n, why in draft.dropped.items()]
    return given


def assign_roles(draft: Draft, roles: Roles, target: str | None) -> None:
    """Give every column of a table its role, and leave out in place what is no feature."""
    columns = _Columns(draft, roles)
    draft.roles += asked_roles(draft, roles, target)
    columns.text(target)
    if draft.X.shape[1] == 0 and not draft.adjust:
        raise InputError("no column of numbers is left", remedy=f"check {option('drop')}")
    columns.identifiers()
    columns.clinical()
    draft.notices += [*columns.notices, *_giveaways(draft, columns)]
    left = [i for i in range(len(draft.names)) if i not in columns.gone]
    if not left and not draft.adjust:
        raise InputError(
            "no column of numbers is left as a feature",
            remedy=f"name those to use with {option('keep')}",
        )
    if len(left) < len(draft.names):
        draft.X, draft.names = draft.X[:, left], [draft.names[i] for i in left]
    out = [c.column for c in draft.roles if draft.dropped.get(c.column, "").startswith(c.role)]
    if out:
        s = "column was" if len(out) == 1 else "columns were"
        draft.notes.append(f"{len(out)} {s} left out, not being features: {listed(out)}")


class _Columns:
    """The columns of a table while their roles are found.

    `looks` are the columns of numbers that look clinical or technical, `gone` those that are no
    features, both by position. `whole` says which columns of a `wide` table hold whole numbers.
    """

    def __init__(self, draft: Draft, roles: Roles) -> None:
        self.draft = draft
        self.notices: list[Notice] = []
        self.gone: set[int] = set()
        there = [*draft.names, *draft.beside]
        self.keep = set(names_in(roles.keep, set(there)))
        for name in self.keep.difference(there):
            raise no_such("column", name, "keep", there)
        looks = looks_of(draft.names)
        self.looks = {i: look for i, look in looks.items() if draft.names[i] not in self.keep}
        n_others = len(draft.names) - len(self.looks)
        self.wide = n_others > _MANY and n_others >= _PER_LOOK * len(self.looks)
        self.whole = whole_columns(draft.X) if self.wide else np.zeros(0, dtype=bool)
        if self.wide:
            share = self._share_of_whole()
            self.wide = max(share, 1 - share) >= _ALIKE
        for name in draft.names:
            if name in self.keep and (look_of(name) or names_samples(name)):
                draft.roles.append(ColumnRole(name, "feature", "kept as asked"))

    def _share_of_whole(self) -> float:
        """Return the share of whole numbers among the columns that do not look clinical."""
        return float(np.delete(self.whole, list(self.looks)).mean())

    def text(self, target: str | None) -> None:
        """Give columns of text a role, or refuse them."""
        draft = self.draft
        refused = []
        for name, cells in draft.beside.items():
            if name in self.keep:
                raise InputError(
                    f"column {quote(name)} ({option('keep')}) holds text "
                    f"({_first_text(draft, name)})",
                    remedy="code it as numbers",
                )
            look, named = look_of(name), names_samples(name)
            first = draft.first_column == name
            levels = len(set(cells) - {None})
            if levels == len(cells) > 2:
                role: Role = "ignored"
                if "id" not in draft.text and (first or named):
                    if target is None and first:
                        raise InputError(
                            f"column {quote(name)} holds text ({_first_text(draft, name)})",
                            remedy=f"if it names the samples use {option('id', name)}, "
                            f"if it names the features {option('transpose', True)}",
                        )
                    role, draft.text["id"] = "id", list(cells)
                draft.leave_out(name, role, "a different text in every row")
            elif levels <= 1:
                draft.leave_out(name, "ignored", "the same text in every row")
            elif not self.wide:
                refused.append(name)
            elif named or names_people(name):
                self._people(name, levels)
            elif look is not None:
                self._left_out(name, look)
            else:
                role = "covariate" if levels <= _FEW_LEVELS else "ignored"
                draft.leave_out(name, role, f"text with {levels} levels")
        if refused:
            raise _holds_text(draft, refused)

    def _left_out(self, name: str, look: Look) -> None:
        """Leave out what looks clinical or technical; a batch may be worth an audit."""
        self.draft.leave_out(name, look.role, f"looks {look.words}")
        if look.role == "batch" and not self.draft.batches():
            self._notice(
                "batch column",
                "note",
                f"{quote(name)} looks like a batch and is left out. Name it as the batch to see "
                "whether the panel tells batches rather than classes.",
                Action("batch", name, f"Audit {name} as a batch"),
            )

    def _people(self, name: str, levels: int) -> None:
        """Leave out identifiers that repeat, and say what they may be for."""
        self.draft.leave_out(name, "ignored", "repeats, as patients do")
        if "group" not in self.draft.text:
            self._notice(
                "patients",
                "serious",
                f"Column {quote(name)} has {levels} values in {self.draft.X.shape[0]} samples. If "
                "they are patients, name it as the groups: samples of one patient in training "
                "and in test make every score too good.",
                Action("group", name, f"Keep the samples of each {name} together"),
            )

    def _notice(self, code: str, severity: Severity, text: str, *actions: Action) -> None:
        self.notices.append(Notice(code, severity, text, actions))

    def identifiers(self) -> None:
        """Find whole numbers that only name samples or the people they come from."""
        draft = self.draft
        for i, name in enumerate(draft.names):
            if name in self.keep or not (names_samples(name) or names_people(name)):
                continue
            column = column_of(draft.X, i)
            if not np.array_equal(column, np.floor(column)):
                continue
            written = draft.written.get(name) or [f"{value:.0f}" for value in column]
            levels = len(set(written))
            if levels == len(column) > 2 and names_samples(name):
                role: Role = "ignored" if "id" in draft.text else "id"
                draft.text.setdefault("id", list(written))
                self.gone.add(i)
                draft.leave_out(name, role, "a different whole number in every row")
            elif 2 < levels < len(column) and names_people(name):
                self.gone.add(i)
                self._people(name, levels)

    def clinical(self) -> None:
        """Leave out what looks clinical or technical among like columns; else list it."""
        draft = self.draft
        looks = {i: look for i, look in self.looks.items() if i not in self.gone}
        if self.wide:
            fractions = self._share_of_whole() <= 0.5
            for i, look in looks.items():
                if look.plain or (fractions and self.whole[i] and not self._constant(i)):
                    self.gone.add(i)
                    self._left_out(draft.names[i], look)
            if fractions:
                self._odd(looks)
            return
        plain = {draft.names[i]: look for i, look in looks.items() if look.plain}
        for name, look in plain.items():
            draft.roles.append(ColumnRole(name, "feature", f"looks {look.words}"))
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
                *(Action("drop", name, f"Leave {name} out") for name in plain),
            )

    def _odd(self, looks: Collection[int]) -> None:
        """Name the few columns of two codes among columns with fractions; they stay features."""
        draft = self.draft
        odd: list[str] = []
        series = Counter(map(stem_of, draft.names)) if self.whole.any() else Counter()
        for i in np.flatnonzero(self.whole).tolist():
            name = draft.names[i]
            if i in looks or i in self.gone or name in self.keep:
                continue
            if series[stem_of(name)] <= _FEW_ALIKE and is_code(column_of(draft.X, i)):
                odd.append(name)
            if len(odd) > _FEW_ODD:
                return
        for name in odd:
            draft.roles.append(ColumnRole(name, "feature", "two codes only"))
        if odd:
            self._notice(
                "roles",
                "caution",
                f"{listed(odd)} {'has' if len(odd) == 1 else 'have'} two codes only, unlike the "
                "other features: if that is no measurement, drop it.",
                *(Action("drop", name, f"Leave {name} out") for name in odd),
            )

    def _constant(self, i: int) -> bool:
        column = column_of(self.draft.X, i)
        return bool(np.nanmin(column) == np.nanmax(column))


def _giveaways(draft: Draft, columns: _Columns) -> Iterator[Notice]:
    """Name columns whose values say the class: copies of the label, or batches of one class."""
    labels = draft.text.get("target")
    if labels is None:
        return
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1]
    copies = [int(i) for i in constant_within(draft.X, codes)]
    codes_of_few = [i for i in {*columns.looks, *columns.gone} if i not in copies]
    copies += [i for i in codes_of_few if determines(column_of(draft.X, i), codes)]
    features = [draft.names[i] for i in sorted(copies) if i not in columns.gone]
    others = [draft.names[i] for i in sorted(copies) if i in columns.gone]
    others += [name for name, cells in draft.beside.items() if determines(cells, codes)]
    if features:
        yield Notice(
            "leak",
            "serious",
            f"The values of {listed(features)} tell the class of every sample: if this is the "
            "label under another name, or was measured after it was known, drop it.",
            tuple(Action("drop", name, f"Leave {name} out") for name in features),
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


def _first_text(draft: Draft, name: str) -> str:
    """Quote the first text of a column, and say where it is."""
    cells = draft.beside[name]
    row = next(i for i, cell in enumerate(cells) if cell is not None)
    return f"{quote(cells[row])} on {draft.row(row)}"


def _holds_text(draft: Draft, names: list[str]) -> InputError:
    """Refuse text that may be meant as a feature; the remedy depends on what it looks like."""
    one = len(names) == 1
    line = "row" if draft.place == "column" else "column"
    what = f"{line} {listed(names)} holds" if one else f"{line}s {listed(names)} hold"
    it = "it" if one else "them"
    remedy = f"leave {it} out with {option('drop', names)}, have {it} in every panel with "
    remedy += f"{option('adjust', names)}, or code {it} as numbers"
    people = [name for name in names if names_people(name) or names_samples(name)]
    if people:
        remedy = f"{option('group', people[0])} keeps the samples of each together; else {remedy}"
    return InputError(f"{what} text ({_first_text(draft, names[0])})", remedy=remedy)


# --- columns that may hold the classes -----------------------------------------------------

_LIKELY = re.compile(
    r"class|label|target|diagnos|disease|status|outcome|condition|response|type|subtype|group"
    r"|phenotype|case|tumou?r|tissue|cancer",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Candidate:
    """A column, or a row, that may hold the classes, and how often each occurs.

    `proposed` is whether it is the one to begin with: never a sex, an age, a batch or names.

    Examples
    --------
    >>> from sparsegsvp.io.roles import candidates
    >>> columns = {"Sex": list("mfmf"), "tissue": ["colon", "breast"] * 2}
    >>> [(c.name, c.proposed) for c in candidates(columns)]
    [('tissue', True), ('Sex', False)]
    """

    name: str
    counts: dict[str, int]
    in_row: bool = False
    proposed: bool = False


def candidates(columns: Mapping[str, Sequence[str | None]], rows: bool = False) -> list[Candidate]:
    """Return the columns of labels that may hold the classes, the likeliest first.

    They have few values, each of them more than once. Names that say so come first, then text,
    then codes; what looks clinical or technical and what names samples comes last.
    """
    ranked: list[tuple[tuple[bool, bool, bool], Candidate]] = []
    for name, cells in columns.items():
        counts = Counter(cell for cell in cells if cell is not None)
        if not 2 <= len(counts) <= _FEW_LEVELS or min(counts.values()) < 2 or not name:
            continue
        likely = bool(_LIKELY.search(name))
        strong = any(_STRONG.get(word, ("ignored",))[0] != "ignored" for word in words_of(name))
        other = strong or names_samples(name) or names_people(name)
        codes = all(map(looks_numeric, counts))
        rank = (other, not likely, codes)
        ranked.append((rank, Candidate(name, dict(sorted(counts.items())), rows)))
    ranked.sort(key=lambda pair: pair[0])
    fit = [rank for rank, _ in ranked if not rank[0] and not (rank[1] and rank[2])]
    sure = bool(fit) and ranked[0][0] == fit[0] and (not fit[0][1] or len(fit) == 1)
    return [
        Candidate(c.name, c.counts, c.in_row, proposed=sure and i == 0)
        for i, (_, c) in enumerate(ranked)
    ]


# --- the class of interest -----------------------------------------------------------------

_OF_INTEREST = """1 + abnormal active affected bad cancer carcinoma case cases dead death died
    disease diseased event failure ill infected malignant metastasis metastatic mutant patient
    patients poor pos positive present progression recurrence relapse relapsed resistant responder
    sick t true tumor tumors tumour tumours yes y"""
_OF_COMPARISON = """0 - absent alive benign censored control controls ctrl false good healthy n neg
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
        The one whose name says so (case, cancer, died, positive, +, yes, 1, ...), the other than
        the one to compare with (control, normal, healthy, no, 0, ...), or the last.

    Examples
    --------
    >>> from sparsegsvp.io import guess_positive
    >>> guess_positive(["cancer", "normal"]), guess_positive(["no relapse", "relapse"])
    ('cancer', 'relapse')
    >>> guess_positive(["ER+", "ER-"]), guess_positive(["A", "B"])
    ('ER+', 'B')
    """
    words = [set(re.findall(r"[a-z]+|[0-9]+|[+-]$", name.lower().strip())) for name in classes]
    compared = [not found.isdisjoint(_OF_COMPARISON.split()) for found in words]
    wanted = [
        not found.isdisjoint(_OF_INTEREST.split()) and not other
        for found, other in zip(words, compared)
    ]
    for marks in (wanted, [not c for c in compared]):
        if marks.count(True) == 1:
            return classes[marks.index(True)]
    return classes[-1]
