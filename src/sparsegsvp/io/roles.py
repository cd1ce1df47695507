"""What each column of a table is for: its role, decided from name, type and values.

A caller's word always wins. Of the other columns those of numbers are features, but for those named
like identifiers, whose whole numbers all differ or repeat for people, and, in a *wide* table, those
whose names look clinical, technical or like an outcome. In a small table of unlike columns an age
is a measurement like the others, and named in a notice. Columns of text are never features: a wide
table leaves them out, a small one, which may mean them as predictors, is refused.

Names are taken word by word, so that MAGEA1 is no age and BMI1, RIN2, OS9 and ID3 stay genes. A
name is `plain` if it consists of known words alone ("Age at diagnosis", "OS.time"); if one word is
unknown ("Age (Jahre)") the values have to speak for it too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from .._validate import quote
from .errors import InputError, option

Role = Literal["target", "id", "group", "batch", "covariate", "ignored", "feature"]

WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
STRONG, _WEAK = (
    {word: look for look, text in WORDS[kind].items() for word in text.split()}
    for kind in ("strong", "weak")
)
_NAMES = {kind: frozenset(text.split()) for kind, text in WORDS["names"].items()}
_KNOWN = _NAMES["beside"].union(STRONG, _WEAK)
PEOPLE, SAMPLES = _NAMES["people"] | _NAMES["groups"], _NAMES["people"] | _NAMES["samples"]
_IDENTIFIERS = PEOPLE | SAMPLES | _NAMES["beside ids"]
_ROLES: dict[str, Role] = {"clinical": "covariate", "technical": "batch"}  # others are ignored
# Genes of worms (age-1, sex-1) and how others are often written (BMI-1, OS-9, ID-3).
_HYPHENED_GENE = re.compile(r"[A-Za-z]{2,4}-\d+(\.\d+)?")
_OF_SURVIVAL = re.compile(
    r"(?i)\b(os|pfs|dfs|rfs|efs|dss)(months?|mos?|days?|years?|time|status|event|censor)\b"
)
_CHANGE_OF_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Words, and numbers glued to those of four letters or more: batch2, but BMI1 is a gene.
_WORD = re.compile(r"[^\W\d_]{4,}(?=\d*)|[^\W\d_]+\d*|\d+")


class Look(NamedTuple):
    """What a name looks like, in words; whether that is sure; and the role that this suggests."""

    words: str
    plain: bool
    role: Role


@lru_cache(maxsize=1 << 15)
def words_of(name: str) -> tuple[str, ...]:
    """Split a name into words in lower case: at other characters, and where case changes."""
    if _HYPHENED_GENE.fullmatch(name):
        return (name.lower(),)
    parted = _CHANGE_OF_CASE.sub(" ", _OF_SURVIVAL.sub(r"\1 \2", name))
    return tuple(word for word in _WORD.findall(parted.lower()) if not word.isdigit())


def look_of(name: str) -> Look | None:
    """Say what a name looks like, if it looks like anything but a measurement."""
    words = words_of(name)
    unknown = sum(word not in _KNOWN for word in words)
    telling = STRONG.keys() if unknown == 0 else _NAMES["telling"] & STRONG.keys()
    strong = [STRONG[word] for word in words if word in telling and unknown <= 1]
    looks = strong or [_WEAK[word] for word in words if word in _WEAK and not unknown]
    if not looks:
        return None
    gene = bool(strong) and len(words) == 1 and words[0] in _NAMES["genes"]
    return Look(looks[0], not unknown and not gene, _ROLES.get(looks[0], "ignored"))


def identifies(name: str, by: frozenset[str] = PEOPLE | SAMPLES) -> bool:
    """Whether a column is named like samples, or people: sample, patient_id, Unnamed: 0."""
    words = words_of(name)
    return not by.isdisjoint(words) and _IDENTIFIERS.issuperset(words)


IS, VERSUS = "=", " vs "  # in the name of a feature that is a level of a column


@dataclass(frozen=True)
class ColumnRole:
    """The role of a column, and why it has it; those of "batch" to "ignored" are left out."""

    column: str  # empty for names of samples that are no column of the table
    role: Role
    reason: str


LISTS = ("batch", "adjust", "drop", "keep")  # parameters that may name several columns


@dataclass(frozen=True)
class Roles:
    """The columns a caller named."""

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
        more = [(role, name) for role in ("drop", "keep") for name in getattr(self, role)]
        for second, name in [*self.named().items(), *more]:
            first = seen.setdefault(name, second)
            if first != second:
                both = " and as ".join(option(role.partition(":")[0]) for role in (first, second))
                what = f"column {quote(name)} is given as {both}"
                raise InputError(what, remedy="give each column one role")


def made_of(feature: str, column: str) -> bool:
    """Whether a feature is a column, or one of its levels."""
    return feature == column or feature.startswith(f"{column}{IS}")


def columns_behind(features: Iterable[str], there: Collection[str]) -> tuple[str, ...]:
    """Return the columns whose levels are among some features: sex, of a feature sex=M vs F."""
    levels = [name for name in features if VERSUS in name and name not in there]
    return tuple(sorted(c for c in there if any(n.startswith(f"{c}{IS}") for n in levels)))


FEW_LEVELS = 12  # different texts of a column that sorts samples rather than naming them
REPEATS = "repeats, as patients do"


@dataclass
class Facts:
    """What the rules ask of a column: its name and cells, whether they are text; and the answer."""

    name: str
    cells: list[str | None]
    look: Look | None
    text: bool = True
    whole: bool = True
    first: bool = False
    role: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        self.levels = len({*self.cells} - {None})


def role_of(c: Facts, wide: bool, fractions: bool, nameless: bool) -> tuple[str, str]:
    """Return the role of a column and why, by the first rule that fits; or "refused"."""
    unique, repeated = c.levels == len(c.cells) > 2, 2 < c.levels < len(c.cells)
    sample, person = identifies(c.name, SAMPLES), identifies(c.name, PEOPLE)
    look, looks = (c.look.role, f"looks {c.look.words}") if c.look else ("", "")
    plain = c.look is not None and c.look.plain
    name = "id" if nameless and (sample or c.first) else "ignored"
    sort = "covariate" if c.levels <= FEW_LEVELS else "ignored"
    rules = (
        (c.text and unique, name, "a different text in every row"),
        (c.text and c.levels <= 1, "ignored", "the same text in every row"),
        (c.text and not wide, "refused", ""),
        (c.text and (sample or person), "ignored", REPEATS),
        (c.text and look, look, looks),
        (c.text, sort, f"text with {c.levels} levels"),
        (c.whole and unique and sample, name, "a different whole number in every row"),
        (c.whole and repeated and person, "ignored", REPEATS),
        (wide and (plain or (look and fractions and c.whole and c.levels > 1)), look, looks),
        (not wide and plain, "feature", looks),
    )
    return next(((role, reason) for fits, role, reason in rules if fits), ("feature", ""))


def guess_positive(classes: Sequence[str]) -> str:
    """Guess from their names which of two classes, sorted, is of interest: else the last."""
    interest, comparison = (WORDS["classes"][k].split() for k in ("interest", "comparison"))
    words = [set(re.findall(r"[a-z]+|[0-9]+|[+-]$", name.lower().strip())) for name in classes]
    others = [w.isdisjoint(comparison) for w in words]
    wanted = [o and not w.isdisjoint(interest) for w, o in zip(words, others)]
    for marks in (wanted, others):
        if marks.count(True) == 1:
            return classes[marks.index(True)]
    return classes[-1]
