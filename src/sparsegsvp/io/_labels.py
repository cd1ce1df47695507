"""Labels that come in a second file, matched by sample identifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ._assemble import Parts, text_columns
from ._layout import Request
from ._source import TextOptions, kind_of, rows_of
from .errors import InputError, listed, one_line, option, quote, suggestion


@dataclass(frozen=True)
class LabelSheet:
    """A sheet of labels: every column as text, and which one identifies the samples."""

    columns: dict[str, list[str | None]]
    on: str
    target: str
    where: str

    @classmethod
    def read(
        cls, file: Path, on: str | None, target: str | None, encoding: str | None
    ) -> LabelSheet:
        """Read a sheet; its first column identifies the samples unless `on` says otherwise."""
        kind = kind_of(file)
        if kind in ("npz", "h5ad"):
            raise InputError(
                "labels are read from CSV, TSV, Excel, Parquet or ARFF", where=file.name
            )
        opener, _ = rows_of(file, kind, TextOptions(encoding=encoding))
        columns = text_columns(opener, file.name)
        names = list(columns)
        if on is None:
            on = names[0]
        for name, role in ((on, "on"), (target, "target")):
            if name is not None and name not in columns:
                raise InputError(
                    f"there is no column {quote(name)} ({option(role)})",
                    where=file.name,
                    remedy=suggestion(name, names),
                )
        if target is None:
            others = [name for name in names if name != on]
            if len(others) != 1:
                raise InputError(
                    f"it has the columns {listed(others)} besides {quote(on)}",
                    where=file.name,
                    remedy=f"say which holds the labels with {option('target')}",
                )
            target = others[0]
        return cls(columns, on, target, file.name)

    def join(self, parts: Parts, group: str | None, where: str) -> None:
        """Put the labels (and groups) of the sheet beside the samples of a table."""
        ids = parts.text.get("id")
        if ids is None:
            raise InputError(
                "the samples have no identifiers to match the labels by",
                where=where,
                remedy=f"name the column that holds them with {option('id')}",
            )
        by_id: dict[str, int] = {}
        labels = self.columns[self.target]
        for row, key in enumerate(self.columns[self.on]):
            if key is None:
                continue
            first = by_id.setdefault(key, row)
            if labels[first] != labels[row]:
                raise InputError(
                    f"{quote(key)} is labelled {quote(labels[first])} and {quote(labels[row])}",
                    where=self.where,
                    remedy="keep one label for each sample",
                )
        rows = [by_id.get(key) if key is not None else None for key in ids]
        if all(row is None for row in rows):
            here = [key for key in ids if key is not None]
            raise InputError(
                f"no sample has a label: the table has {listed(here[:2])}, the labels "
                f"{listed(list(by_id)[:2])}",
                where=self.where,
                remedy="identifiers must match exactly; if they are column names of the table, "
                f"use {option('transpose', True)}",
            )
        unused = len(by_id) - len({row for row in rows if row is not None})
        if unused:
            parts.notes.append(f"{unused} rows of {self.where} belong to no sample of the table")
        parts.notes.append(f"labels come from {self.where}, matched by {quote(self.on)}")
        parts.text["target"] = [None if row is None else labels[row] for row in rows]
        if group is not None and group in self.columns:
            column = self.columns[group]
            parts.text["group"] = [None if row is None else column[row] for row in rows]


def with_identifiers(
    request: Request, sheet: LabelSheet, file: Path, kind: str, options: TextOptions
) -> Request:
    """Use the labels' identifier column in the table too, and refuse labels in both."""
    opener, _ = rows_of(file, kind, options)
    with opener() as rows:
        names = rows.names
    if sheet.target in names and sheet.target not in request.drop:
        raise InputError(
            f"column {quote(sheet.target)} is in the table and in {one_line(sheet.where)}",
            where=file.name,
            remedy=f"leave {option('labels')} out, or drop the table's with "
            f"{option('drop', [sheet.target])}",
        )
    if request.id is None and sheet.on in names:
        return replace(request, id=sheet.on)
    return request
