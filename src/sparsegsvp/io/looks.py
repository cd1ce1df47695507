"""Guesses from the name and the values of a column: age, batch, survival, a code, or nothing.

Only whole words count, so that MAGEA1 is no age and BMI1, RIN2, OS9 and ID3 stay genes. A name
is `plain` if it consists of known words alone ("Age at diagnosis", "OS.time"); if one word is
unknown ("Age (Jahre)") the values have to speak for it too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .cells import column_slices

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


def column_of(X: Any, i: int) -> NDArray[np.float64]:
    """Return one column as numbers."""
    column = X[:, [i]].toarray().ravel() if sparse.issparse(X) else X[:, i]
    return np.asarray(column, dtype=np.float64)


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
