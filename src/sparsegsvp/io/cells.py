"""Cells: one parser reads numbers, labels and missing values, or refuses with both readings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import notice
from .._validate import counted, first_few, listed, quote
from .errors import InputError, option
from .roles import IS, VERSUS, WORDS, ColumnRole, Roles, identifies, look_of, made_of
from .text import ReadOptions, looks_numeric

if TYPE_CHECKING:
    from .frame import Frame

_BLANKS = " \u00a0\u2009\u202f"  # also those that do not break
_MARKS = {".": ".", ",": ",", "'": "'\u2019", " ": _BLANKS}
THOUSANDS = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}([{mark}]\d{{3}})+") for mark in ".,"}
# How numbers are written; the last have digits in groups of three, whatever the marks.
_FORMS = {
    kind: re.compile(form, re.ASCII)
    for kind, form in {
        "number": r"[+-]?\d{1,19}",
        ".": r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?",
        ",": r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?",
        "grouped": rf"[+-]?\d{{1,3}}([.,'\u2019{_BLANKS}])\d{{3}}(\1\d{{3}})*([.,]\d+)?",
    }.items()
}

BELOW_DETECTION = frozenset(WORDS["missing"]["below detection"])
NOT_AVAILABLE = frozenset(WORDS["missing"]["everywhere"])
MISSING = BELOW_DETECTION.union(NOT_AVAILABLE, WORDS["missing"]["among numbers"])


def as_label(cell: Any, strip: bool = True) -> str | None:
    """Read a cell as text: None if it is empty; 1.0 is the same as 1."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, float | np.floating):
        if math.isnan(cell):
            return None
        return str(int(cell)) if float(cell).is_integer() else repr(float(cell))
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
    return (text.strip() if strip else text) if text.strip() else None


def spelling_key(label: str) -> str:
    """Return what all spellings of a label share: Tumor, TUMOR and "tumor " are one, 1 and 1.0."""
    return re.sub(r"^([+-]?\d+)\.0*$", r"\1", " ".join(label.split()).casefold())


class Codes:
    """Codes for missing values: the usual ones, and those that a caller gave."""

    def __init__(self, given: str | Sequence[str] | None = ()) -> None:
        texts = given.split(",") if isinstance(given, str) else given or ()
        self.given = frozenset(str(code).strip().lower() for code in texts) - {""}
        self.missing = MISSING | self.given
        cases = (str.lower, str.upper, str.capitalize)
        self.usual = {case(code) for code in self.missing for case in cases}
        numbers = (float(code) for code in sorted(self.given) if looks_numeric(code))
        self.numbers = [value for value in numbers if math.isfinite(value)]

    def label(self, cell: Any, *, strip: bool = True) -> str | None:
        """Read a label, a group or a category; None where it is missing."""
        text = as_label(cell, strip)
        if text is None or text.strip().lower() in NOT_AVAILABLE | self.given:
            return None
        is_code = self.numbers and looks_numeric(text) and float(text) in self.numbers
        return None if is_code else text

    def column(self, role: str, cells: Sequence[Any]) -> list[str | None]:
        """Read a column with a role; blanks around labels stay until they are counted."""
        if role == "id":
            return [as_label(cell) for cell in cells]
        return [self.label(cell, strip=role != "target") for cell in cells]

    def kind(self, cell: Any) -> str:
        """Say how a cell is written: "missing", "text" or one of `_FORMS`."""
        if isinstance(cell, int | float | Decimal | np.number | np.bool_):
            return "missing" if math.isnan(cell) else "number"
        text = cell.strip() if isinstance(cell, str) else as_label(cell)
        if text is None or text.lower() in self.missing:
            return "missing"
        if not isinstance(cell, str):
            return "text"
        forms = (kind for kind, form in _FORMS.items() if form.fullmatch(text))
        return next(forms, "number" if looks_numeric(text) else "text")  # as 1e5 and inf are

    def number(self, cell: Any, decimal: str, thousands: str | None = None) -> float | None:
        """Read a number; NaN where it is missing, None if it is none."""
        kind = self.kind(cell)
        if kind in ("missing", "text"):
            return math.nan if kind == "missing" else None
        if not isinstance(cell, str):
            return float(cell)
        text, marks = cell.strip(), _MARKS.get(thousands or "", "")
        if marks and re.fullmatch(rf"[+-]?\d{{1,3}}([{marks}]\d{{3}})+([{decimal}]\d*)?", text):
            text = re.sub(f"[{marks}]", "", text)
        if decimal == ",":
            text = text.replace(".", "_").replace(",", ".")
        return float(text) if looks_numeric(text) else None


@dataclass
class Column:
    """A column that is not all numbers yet: numbers, and the cells that are still as written."""

    name: str
    values: NDArray[np.float64]
    cells: dict[int, Any]
    codes: Codes

    @cached_property
    def kinds(self) -> dict[str, list[int]]:
        """The rows of the cells, by how these are written."""
        kinds: dict[str, list[int]] = {kind: [] for kind in (*_FORMS, "missing", "text")}
        for i, cell in self.cells.items():
            kinds[self.codes.kind(cell)].append(i)
        return kinds

    @property
    def holds_text(self) -> bool:
        """Whether at least half of its cells are no numbers."""
        n_filled = np.count_nonzero(~np.isnan(self.values)) + len(self.cells)
        n_text, n_missing = len(self.kinds["text"]), len(self.kinds["missing"])
        return bool(n_text and 2 * n_text >= n_filled - n_missing)

    def texts(self, kind: str) -> list[str]:
        """Return the cells that are written in some way."""
        return [str(self.cells[i]).strip() for i in self.kinds[kind]]

    def may_be_thousands(self, mark: str) -> bool:
        """Whether marks stand before three digits only, beside whole numbers of three digits."""
        others = [self.codes.number(self.cells[i], mark) for i in self.kinds["number"]]
        sizes = np.abs([*self.values.tolist(), *others])
        hundreds = 100 <= sizes[sizes % 1 == 0].max(initial=0) < 1000
        return bool(hundreds and all(map(THOUSANDS[mark].fullmatch, self.texts(mark))))

    def to_numbers(self, decimal: str, thousands: str | None, frame: Frame) -> NDArray[np.float64]:
        """Return the numbers, or refuse cells that are none; codes go into the frame's count."""
        values, bad = self.values.copy(), dict[int, str]()
        for i, cell in self.cells.items():
            value, text = self.codes.number(cell, decimal, thousands), str(cell).strip()
            values[i] = math.nan if value is None else value
            if value is None:
                bad[i] = text
            elif math.isnan(value) and isinstance(cell, str) and text:
                frame.codes[text] += 1
        for i, text in bad.items():
            what = f"{quote(text)} is not a number"
            out = f"leave the {frame.column} out with {option('drop', [self.name])}"
            remedy = f"correct it, leave the cell empty, or {out}"
            if grouped := _FORMS["grouped"].fullmatch(text):
                mark = next(m for m, variants in _MARKS.items() if grouped[1] in variants)
                what += " (it has a thousands separator)"
                remedy = f"use {option('thousands', mark)}, or remove the separators"
            elif len(bad) > 1:
                what += f" ({len(bad)} cells like this)"
            if not grouped and len({*bad.values()}) == 1 and len(text) <= 20:  # longer is no code
                remedy += f"; if it stands for a missing value, use {option('na', text)}"
            raise InputError(what, frame.where(i, self.name), remedy)
        return values


def find_decimal(columns: Sequence[Column], options: ReadOptions, frame: Frame) -> str:
    """Return the decimal mark of all columns, or refuse what may be read in two ways."""
    if options.decimal is not None:
        return options.decimal
    kind = {".": "a decimal point", ",": "a decimal comma"}
    marked = {m: [c for c in columns if c.kinds[m]] for m in ",." if m != options.thousands}
    shown = [mark for mark in marked if marked[mark] or mark == frame.mark]
    if len(shown) == 2:
        mark, other = shown if marked[","] and frame.mark != "," else shown[::-1]
        column = marked[mark][0]
        what = f"{quote(column.texts(mark)[0])} has {kind[mark]}, other numbers have {kind[other]}"
        remedy = f"write all with points, or say which separates thousands: {option('thousands')}"
        raise InputError(what, frame.where(column.kinds[mark][0], column.name), remedy)
    mark = next(iter(shown), "," if options.thousands == "." else ".")
    texts = [text for column in columns for text in column.texts(mark)]
    doubtful = options.thousands is None and frame.doubtful
    doubtful = doubtful and all(map(THOUSANDS[mark].fullmatch, texts))
    for column in marked[mark]:
        text = column.texts(mark)[0]
        whole = text.replace(mark, "")
        # a comma that nothing shows to be the decimal mark is as often the other
        if (doubtful and mark == ",") or column.may_be_thousands(mark):
            what = f"{quote(text)} may have {kind[mark]} or a thousands separator: it is "
            what += f"{text.replace(',', '.')} or {whole}"
            remedy = f"use {option('decimal', mark)} if it is {kind[mark]}, "
            remedy += f"{option('thousands', mark)} if it separates thousands"
            raise InputError(what, frame.where(column.kinds[mark][0], column.name), remedy)
        if doubtful and column is marked[mark][0]:
            said = notice("thousands", mark, text=text, where=column.name, whole=whole)
            frame.notices.append(said)
    return mark


def make_numbers(
    frame: Frame, places: list[int], adjusted: Sequence[Column], options: ReadOptions, strict: bool
) -> None:
    """Make numbers of columns in place, by one decimal mark."""
    codes: Codes = options.codes
    columns: dict[int, Column] = {}
    for p in [p for p in places if frame.raw.get(p)]:
        column = Column(frame.names[p], column_of(frame.X, p), frame.raw[p], codes)
        named = look_of(column.name) is not None or identifies(column.name)
        if not strict and (column.holds_text or (column.kinds["text"] and named)):
            frame.texts[column.name] = [codes.label(cell) for cell in frame.cells(p)]
        else:
            columns[p] = column
    numeric = [*columns.values(), *(c for c in adjusted if not c.holds_text)]
    decimal = find_decimal(numeric, options, frame)
    if decimal == "," and (frame.mark == "," or any(c.kinds[","] for c in numeric)):
        frame.notes.append("numbers are written with decimal commas")
    for column in adjusted:
        cells: list[Any] = [codes.label(cell) for cell in column.cells.values()]
        if not column.holds_text:
            cells = column.to_numbers(decimal, options.thousands, frame).tolist()
        frame.adjust[column.name] = cells
    for p, column in columns.items():
        if not frame.ours:
            frame.X, frame.ours = np.array(frame.X, dtype=np.float64), True
        frame.X[:, p] = column.to_numbers(decimal, options.thousands, frame)
        if not identifies(column.name):
            del frame.raw[p]  # names of samples stay as they are written
    frame.take([p for p in places if p in columns or not frame.raw.get(p)])


def collapse_names(frame: Frame, how: str | None) -> None:
    """Make one feature of those that share a name, in the place of the first."""
    if how not in (None, "mean", "max"):
        raise InputError(f"{option('collapse')} must be 'mean' or 'max', got {how!r}")
    places: dict[str, list[int]] = {}
    for j, name in enumerate(frame.names):
        places.setdefault(name, []).append(j)
    shared = {name: at for name, at in places.items() if len(at) > 1}
    if how is None or not shared:
        return
    X = frame.X.tolil() if sparse.issparse(frame.X) else frame.X.copy()
    for at in shared.values():
        block = np.column_stack([column_of(frame.X, j) for j in at])
        known = np.ma.masked_where(np.isnan(block), block)
        best = known[:, known.mean(axis=0).filled(-np.inf).argmax()]
        X[:, at[0]] = (best if how == "max" else known.mean(axis=1)).filled(np.nan)
    frame.X, frame.ours = X.tocsr() if sparse.issparse(X) else X, True
    frame.take([at[0] for at in places.values()])
    n, names = sum(map(len, shared.values())), counted(len(shared), "name")
    frame.notes.append(f"{names} shared by {n} features, made one each ({how}): {listed(shared)}")


def append_covariates(frame: Frame, roles: Roles, codes: Sequence[float]) -> None:
    """Make features of the columns to adjust for, after all other columns."""
    made: dict[str, NDArray[np.float64]] = {}
    for column, cells in frame.adjust.items():
        known = [name for name in roles.features or () if made_of(name, column)]
        labels, text = [*map(as_label, cells)], any(isinstance(cell, str) for cell in cells)
        levels = sorted({label for label in labels if label is not None})
        rare = [level for level in levels if text and labels.count(level) == 1]
        # a feature's name says both levels, "sex=M vs F": a model can tell a level it never met
        pairs = [name.removeprefix(f"{column}{IS}").rpartition(VERSUS) for name in known]
        trained = [pairs[0][2], *(pair[0] for pair in pairs)] if pairs else levels
        strange = f"{listed(sorted({*levels}.difference(trained)))}, not {listed(trained)}"
        gaps = [frame.row(i) for i, label in enumerate(labels) if label is None]
        numbers = column in known or not (known or text)
        names = tuple(f"{column}{IS}{level}{VERSUS}{trained[0]}" for level in trained[1:])
        names = (column,) if numbers else names
        problems = (
            (len(levels) < 2 and not known, f"needs two values or more, and has {listed(levels)}"),
            (rare and not known, f"has the value {listed(rare)} in one sample only"),
            (numbers and text, f"holds text ({listed(levels)})"),
            (gaps and not numbers, f"has no value on {first_few(gaps, 3)}"),
            (not numbers and not {*levels} <= {*trained}, f"has values that are new: {strange}"),
            ({*names}.intersection(frame.names), "becomes a feature that the table has already"),
        )
        for problem in [problem for found, problem in problems if found]:
            what = f"column {quote(column)} ({option('adjust')}) {problem}"
            remedy = "correct it, fill or merge such cells, or leave the column out"
            raise InputError(what, remedy=remedy)
        if numbers:
            made[column] = np.where(np.isin(cells, codes), np.nan, np.array(cells, dtype=float))
        else:
            made |= {n: np.array(labels) == level for n, level in zip(names, trained[1:])}
        frame.covariates[column] = names
        reason = "adjusted for: in every panel"
        frame.roles += [ColumnRole(name, "feature", reason) for name in names]
    if made:
        block = np.column_stack(list(made.values())).astype(frame.X.dtype)
        parts, header = [frame.X, block], [*frame.names, *made]
        X = sparse.hstack(parts, "csr") if sparse.issparse(frame.X) else np.hstack(parts)
        if roles.features is not None:
            X, header = X[:, [header.index(n) for n in roles.features]], [*roles.features]
        frame.X, frame.names = X, header


def mark_missing(frame: Frame, values: Sequence[float]) -> None:
    """Put NaN where the matrix of a frame holds one of some values, and count these."""
    packed = sparse.issparse(frame.X)
    if packed and 0.0 in values:
        what = f"0 cannot mark missing values in a sparse matrix ({option('na')})"
        raise InputError(what, remedy="what such a matrix leaves out are zeros")
    for value in values:
        if (hit := (frame.X.data if packed else frame.X) == value).any():
            frame.X, frame.ours = frame.X if frame.ours else frame.X.copy(), True
            (frame.X.data if packed else frame.X)[hit] = np.nan
            frame.codes[f"{value:g}"] += int(hit.sum())


def column_of(X: Any, i: int) -> NDArray[np.float64]:
    """Return one column of a matrix as numbers."""
    column = X[:, [i]].toarray().ravel() if sparse.issparse(X) else X[:, i]
    return np.asarray(column, dtype=np.float64)
