"""A preview of a file: its columns, first rows, and columns that may hold the classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from .cells import as_label, looks_numeric
from .errors import locating
from .formats import format_of, open_h5ad, rows_of
from .guards import existing_file, guarded, without_warnings
from .text import ReadOptions, RowStream

_SHOWN = 8  # rows, and columns of each, that are shown
_FEW = 12  # different values of a column that may hold classes
_LIKELY = re.compile(
    r"class|label|target|diagnos|disease|status|outcome|condition|response|type|subtype|group"
    r"|phenotype|case|tumou?r|cancer",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Candidate:
    """A column, or a row, that may hold the classes, and how often each occurs."""

    name: str
    counts: dict[str, int]
    in_row: bool = False


@dataclass(frozen=True)
class Preview:
    """The columns and first rows of a file, and what may hold the classes.

    Attributes
    ----------
    source, kind : str
        The file's name and format.
    names : list of str
        The columns.
    shown : list of str
        Some columns: those that may hold the classes, and the first of the others.
    rows : list of list of str
        The cells of these columns in the first rows, as text.
    n_rows : int
        How many rows there are.
    candidates : list of Candidate
        What may hold the classes: few values, each of them more than once. The likeliest,
        by name and by being text, comes first.
    """

    source: str
    kind: str
    names: list[str]
    shown: list[str]
    rows: list[list[str]]
    n_rows: int
    candidates: list[Candidate]

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)


def preview_table(path: str | PathLike[str], **options: Any) -> Preview:
    """Say what is in a file: its columns, its first rows, and what may hold the classes.

    Parameters
    ----------
    path : path-like
        A file that `read_table` reads.
    **options
        ``separator``, ``decimal``, ``encoding``, ``sheet`` and ``layer``, as in `read_table`.

    Returns
    -------
    Preview

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import preview_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("g1,g2,state\\n1.5,2,ill\\n2.5,3,well\\n1,2,ill\\n2,4,well\\n")
    ...     found = preview_table(path)
    >>> found.names, found.candidates[0].name, found.candidates[0].counts
    (['g1', 'g2', 'state'], 'state', {'ill': 2, 'well': 2})
    """
    file = existing_file(path)
    with locating(file.name), _open_for_preview(file, ReadOptions(**options)) as stream:
        head: list[list[Any]] = []
        few = {j: Counter[str]() for j in range(len(stream.names))}
        across: list[Candidate] = []
        n_rows = 0
        for _, cells in stream.rows:
            n_rows += 1
            if n_rows <= _SHOWN:
                head.append(cells)
            for j in list(few):
                label = as_label(cells[j])
                if label:
                    few[j][label] += 1
                    if len(few[j]) > _FEW:
                        del few[j]
            row = _classes(cells[1:]) if len(cells) > 2 else None
            if row is not None:
                across.append(Candidate(as_label(cells[0]) or "", row, in_row=True))
    few = {j: counts for j, counts in few.items() if _may_be(counts)}
    found = [Candidate(stream.names[j], dict(counts)) for j, counts in few.items()]
    if not any(map(_is_text, (one.counts for one in found))):
        found += across[:_SHOWN]  # as where features are in rows
    found.sort(key=lambda one: (not _LIKELY.search(one.name), not _is_text(one.counts)))
    first = [j for j, counts in few.items() if _is_text(counts)][:3]
    first = list(dict.fromkeys([*first, *range(len(stream.names))]))[:_SHOWN]
    return Preview(
        file.name,
        stream.kind,
        stream.names,
        [stream.names[j] for j in first],
        [[as_label(cells[j]) or "" for j in first] for cells in head],
        n_rows,
        found,
    )


@contextmanager
def _open_for_preview(file: Path, options: ReadOptions) -> Iterator[RowStream]:
    """Open a file as rows; of AnnData these are what is known of its samples."""
    form = format_of(file)
    if form.rows is not None:
        with rows_of(file, options)() as stream:
            yield stream
    elif form.layers:
        with without_warnings(), guarded(form.name), open_h5ad(file, options.layer) as (obs, _, _):
            rows = enumerate(obs.astype(object).to_numpy().tolist(), start=1)
            yield RowStream([str(name) for name in obs.columns], rows, form.name)
    else:
        yield RowStream([], iter(()), form.name)


def _classes(cells: Iterable[Any]) -> dict[str, int] | None:
    """Count the cells of a row, if they may be classes that are text."""
    counts: Counter[str] = Counter()
    for cell in cells:
        label = as_label(cell)
        if label:
            counts[label] += 1
            if len(counts) > _FEW or looks_numeric(label):
                return None
    return dict(counts) if _may_be(counts) else None


def _may_be(counts: dict[str, int]) -> bool:
    return len(counts) >= 2 and min(counts.values()) >= 2


def _is_text(counts: dict[str, int]) -> bool:
    return not all(map(looks_numeric, counts))
