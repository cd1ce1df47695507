"""A look at a table before it is read: which columns may hold the classes, and what is in it.

`preview_table` reads in a process with limits, so that no file can bring down what asks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from .._threads import memory_size
from .._validate import shown_name
from ..io import InputError, read_table
from ..io.cells import as_label
from ..io.errors import locating
from ..io.formats import read_frame
from ..io.frame import Frame
from ..io.roles import FEW_LEVELS, STRONG, identifies, words_of
from ..io.table import requested
from ..io.text import existing_file, looks_numeric

_LIKELY = re.compile(
    r"class|label|target|diagnos|disease|status|outcome|condition|response|type|subtype|group"
    r"|phenotype|case|tumou?r|tissue|cancer",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Candidate:
    """A column, or a row, that may hold the classes; `proposed` is the one to begin with."""

    name: str
    counts: dict[str, int]
    in_row: bool = False
    proposed: bool = False


def _sorts_samples(name: str) -> bool:
    """Whether a column is named like a sex, an age, a batch or identifiers: no classes to tell."""
    looks = {STRONG.get(word) for word in words_of(name)}
    return identifies(name) or not looks.isdisjoint(("clinical", "technical"))


def _ranked(columns: Mapping[str, Sequence[str | None]], rows: bool = False) -> list[Candidate]:
    """Return the columns of labels that may hold the classes, the likeliest first."""
    ranked: list[tuple[tuple[bool, bool, bool], Candidate]] = []
    for name, cells in columns.items():
        counts = Counter(cell for cell in cells if cell is not None)
        if not 2 <= len(counts) <= FEW_LEVELS or min(counts.values()) < 2 or not name:
            continue
        likely = bool(_LIKELY.search(name))
        rank = (_sorts_samples(name), not likely, all(map(looks_numeric, counts)))
        ranked.append((rank, Candidate(name, dict(sorted(counts.items())), rows)))
    ranked.sort(key=lambda pair: pair[0])
    fit = [rank for rank, _ in ranked if not rank[0] and not (rank[1] and rank[2])]
    if fit and ranked[0][0] == fit[0] and (not fit[0][1] or len(fit) == 1):
        ranked[0] = (fit[0], replace(ranked[0][1], proposed=True))
    return [candidate for _, candidate in ranked]


_SHOWN = 8  # rows, and columns of each, that are shown
_CANDIDATES = 30


def find_targets(path: str | PathLike[str], **options: Any) -> list[Candidate]:
    """List the columns of a file that may hold the classes, the likeliest first.

    At most one is `proposed`: never a sex, an age, a batch or names.
    """
    file = existing_file(path)
    if options.get("labels") is not None:
        file, options = existing_file(options["labels"]), {"na": options.get("na")}
    return _look_at(file, options)[1]


def _look_at(file: Path, options: dict[str, Any]) -> tuple[Frame, list[Candidate]]:
    with locating(shown_name(file)):
        reading = requested(options)[1]
        frame = read_frame(file, reading)
        columns, codes = dict(frame.beside), reading.codes
        for p, name in enumerate(frame.names if not columns else ()):
            cells = frame.cells(p)
            few = p in frame.raw or (
                len({*cells[:32]}) <= FEW_LEVELS and all(v % 1 == 0 for v in cells[:32])
            )
            columns |= {name: cells} if few else {}
        listing = _ranked({n: [codes.label(c) for c in cells] for n, cells in columns.items()})
        if not any(c.proposed for c in listing) and frame.samples == "either" and len(frame):
            # a row of text, such as that of the labels where features are in rows
            turned = frame.turned()
            texts = [p for p, cells in turned.raw.items() if 2 * len(cells) > len(turned)]
            rows = {turned.names[p]: [codes.label(c) for c in turned.cells(p)] for p in texts}
            listing = _ranked(rows, rows=True) + listing
    return frame, listing[:_CANDIDATES]


def preview_table(
    path: str | PathLike[str], *, seconds: float = 60.0, memory: int | None = None, **options: Any
) -> dict[str, Any]:
    """Read a table in a process with limits, and say what is in it, for a program to show.

    Without a target the one that `find_targets` proposes is taken. ``table`` of the answer, which
    JSON can hold, is None if there is an ``error``; a file that cannot be read at all, or not
    within the limits, is an `InputError`.
    """
    source = shown_name(existing_file(path))
    request = json.dumps({"path": os.fspath(path), "options": options, "memory": memory})
    command = [sys.executable, "-c", "from sparsegsvp.cli.preview import _answer; _answer()"]
    remedy, answer = "check the file; it may be damaged", None
    try:
        done = subprocess.run(
            command, input=request, capture_output=True, encoding="utf-8", timeout=seconds,
            check=False,
        )  # fmt: skip
        answer = json.loads(done.stdout.strip().rpartition("\n")[2] or "null")
    except subprocess.TimeoutExpired:
        what = f"reading it takes more than {seconds:g} seconds"
        raise InputError(what, source, remedy) from None
    if answer is None:
        what = "reading it ended the process that read it, or took more memory than there is"
        raise InputError(what, source, remedy)
    if "refused" in answer:
        raise InputError(*answer["refused"])
    return dict(answer)


def _answer() -> None:
    """Answer a request of `preview_table` on the standard streams."""
    request = json.load(sys.stdin)
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = request["memory"] or memory_size() * 3 // 4
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        answer = _preview(existing_file(request["path"]), request["options"])
    except InputError as error:
        answer = {"refused": [error.what, error.where, error.remedy]}
    print("\n" + json.dumps(answer), flush=True)


def _preview(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    frame, listing = _look_at(file, options)
    listing = find_targets(file, **options) if options.get("labels") is not None else listing
    proposed = next((c.name for c in listing if c.proposed), None)
    target, logarithms = options.get("target"), options.pop("log2", False)
    shown = sorted(range(len(frame.names)), key=lambda p: p not in frame.raw)[:_SHOWN]
    cells = [frame.cells(p)[:_SHOWN] for p in shown]
    answer: dict[str, Any] = {
        "target": target or proposed,
        "proposed": target is None and proposed is not None,
        "candidates": [asdict(candidate) for candidate in listing],
        "n_columns": len(frame.names),
        "table": None,
        "columns": [],
        "notices": [notice.to_dict() for notice in frame.notices],
        "shown": [frame.names[p] for p in shown],
        "rows": [[as_label(cell) or "" for cell in row] for row in zip(*cells)],
    }
    try:
        table = read_table(file, **{**options, "target": answer["target"]})
    except InputError as error:
        return answer | {"error": [error.what, error.where, error.remedy]}
    counts = table.class_counts()
    answer["table"] = {
        "n_samples": table.X.shape[0], "n_features": len(table.feature_names), "classes": [*counts],
        "class_counts": [*counts.values()], "positive": table.positive_class,
        "positive_guessed": table.positive_guessed, "n_missing": table.n_missing,
    }  # fmt: skip
    table = table.without_notice("raw") if logarithms else table
    answer["notices"] = [n.to_dict() for n in table.notices]
    for c in table.roles:
        guess = c.role == "target" and answer["proposed"]
        reason = "a guess" if guess else c.reason
        answer["columns"].append({"name": c.column, "role": c.role, "reason": reason})
    rest = [n for n in table.feature_names if n not in {c.column for c in table.roles}][:200]
    answer["columns"] += [{"name": n, "role": "feature", "reason": "numbers"} for n in rest]
    return answer
