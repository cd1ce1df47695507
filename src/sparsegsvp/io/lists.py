"""Lists that people keep in files: names of features, and what each costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path

from .errors import InputError, locating, option, quote, said
from .text import _open_text

# In this order: a comma may be a decimal mark where there is another separator.
_SEPARATORS = ("\t", ";", ",")
_EACH_LINE = "write a name, a comma and its cost in each line"


def names_or_files(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names, those of a file where ``@file`` stands for it: one in each line.

    Examples
    --------
    >>> from sparsegsvp.io.lists import names_or_files
    >>> names_or_files(["TP53", "BRCA1"])
    ('TP53', 'BRCA1')
    """
    found: list[str] = []
    for text in [given] if isinstance(given, str) else given:
        if text.startswith("@"):
            with locating(text[1:]):
                found += [line for _, line in _lines(text[1:])]
        else:
            found.append(text)
    return tuple(found)


def listed_names(given: Sequence[str]) -> tuple[str, ...]:
    """Return names that stand in texts with commas between them, or one in each line of a file.

    Examples
    --------
    >>> from sparsegsvp.io.lists import listed_names
    >>> listed_names(["age, sex", "stage"])
    ('age', 'sex', 'stage')
    """
    parts = [[text] if text.startswith("@") else text.split(",") for text in given]
    names = [name.strip() for part in parts for name in part]
    return names_or_files([name for name in names if name])


def read_costs(path: str | PathLike[str]) -> dict[str, float]:
    """Read what features cost: in each line a name and a number, perhaps below a header."""
    with locating(str(path)):
        costs = dict(_costs(_lines(path)))
        if not costs:
            raise InputError("there is no cost in it", remedy=_EACH_LINE)
    return costs


def _costs(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, float]]:
    for number, line in lines:
        separator = next((s for s in _SEPARATORS if s in line), None)
        name, _, cell = line.rpartition(separator) if separator else (line, "", "")
        try:
            cost = float(cell.strip(' "').replace(",", "."))
        except ValueError:
            if number == 1 and separator:
                continue  # a header
            raise InputError(
                f"{quote(line)} is not a name and a number",
                where=f"line {number}",
                remedy=_EACH_LINE,
            ) from None
        name = name.strip(' "')
        if not 0.0 <= cost < math.inf:
            raise InputError(
                f"the cost of {quote(name)} is {quote(cell.strip())}",
                where=f"line {number}",
                remedy=f"costs are 0 or more, and finite: what is too dear is for {option('ban')}",
            )
        yield name, cost


def _lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold anything, with their numbers, without blanks and quotes."""
    try:
        with _open_text(Path(path).expanduser(), None) as (handle, _):
            for number, line in enumerate(handle, 1):
                text = line.strip()
                quoted = text.count('"') == 2 and text[0] == text[-1] == '"'
                if text:
                    yield number, text.strip('"') if quoted else text
    except OSError as error:
        raise InputError(
            f"the list cannot be read ({said(error)})", remedy="check the path"
        ) from None
