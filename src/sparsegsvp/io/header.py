"""The header of a sheet that people typed: titles and notes may stand above it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any

Line = tuple[int, Sequence[Any]]

_LOOKED_AT = 20  # lines


def skip_titles(lines: Iterator[Line]) -> tuple[list[int], Iterator[Line]]:
    """Pass over what stands above the header; return the lines left out, and the rest.

    `lines` are those with something in them. A title fills less than half of the cells that
    the widest line near it fills. What follows must look like a header, which holds no
    number: else nothing is passed over, and it is for the messages to say what is wrong.
    """
    head = list(itertools.islice(lines, _LOOKED_AT))
    filled = [sum(cell is not None for cell in cells) for _, cells in head]
    titles = 0
    while titles < len(head) and 2 * filled[titles] < max(filled):
        titles += 1
    if titles == len(head) or any(isinstance(cell, Number) for cell in head[titles][1]):
        titles = 0
    return [number for number, _ in head[:titles]], itertools.chain(head[titles:], lines)
