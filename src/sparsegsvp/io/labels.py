"""Labels that are spelled in several ways: which are one class, and what it is called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from .._notices import Notice
from .errors import quote

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def spelling_key(label: str) -> str:
    """Return what all spellings of a label share: Tumor, TUMOR and "tumor " are one, 1 and 1.0.

    Examples
    --------
    >>> from sparsegsvp.io.labels import spelling_key
    >>> spelling_key(" Stage  II "), spelling_key("1.0"), spelling_key("1.5")
    ('stage ii', '1', '1.5')
    """
    text = " ".join(label.split()).casefold()
    whole = _WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def one_spelling(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the spelling to use for each label: the most frequent one, or the first sorted.

    Examples
    --------
    >>> from sparsegsvp.io.labels import one_spelling
    >>> one_spelling({"Tumor": 1, "tumor": 9, "normal": 9})
    {'normal': 'normal', 'Tumor': 'tumor', 'tumor': 'tumor'}
    """
    stripped: Counter[str] = Counter()
    for label, n in counts.items():
        stripped[label.strip()] += n
    best: dict[str, str] = {}
    for label in sorted(stripped, key=lambda label: (-stripped[label], label)):
        best.setdefault(spelling_key(label), label)
    return {label: best[spelling_key(label)] for label in sorted(counts, key=spelling_key)}


def spelling_of(classes: Iterable[str]) -> dict[str, str]:
    """Return the one class that each key of `spelling_key` stands for, where it is but one."""
    keys = [(spelling_key(label), label) for label in classes]
    often = Counter(key for key, _ in keys)
    return {key: label for key, label in keys if often[key] == 1}


def describe_spellings(counts: Mapping[str, int], chosen: Mapping[str, str]) -> str:
    """Say which spellings were taken together; empty where there was one of each."""
    groups: dict[str, list[str]] = {}
    for label, name in chosen.items():
        groups.setdefault(name, []).append(label)
    parts = []
    for name, labels in groups.items():
        if len(labels) > 1:
            labels.sort(key=lambda label: (label != name, label))
            listing = [f"{quote(label)} {counts[label]}" for label in labels]
            parts.append(f"{quote(name)} ({', '.join(listing)})")
    return "; ".join(parts)


def spelling_notice(described: str) -> Notice:
    """Tell the reader that labels were taken together."""
    return Notice(
        "spelling",
        "note",
        f"Labels that differ in capitals, blanks or as 1 and 1.0 are taken as one class: "
        f"{described}. If they are different classes, give them different names.",
    )
