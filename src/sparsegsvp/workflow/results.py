"""Results as objects and files: `Selection`, `ComparedMethods`, and folders written whole."""

from __future__ import annotations

import datetime
import html
import io
import json
import math
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._notices import Notice
from .._validate import need, one_line
from ..evaluation import Comparison, EvaluationResult, ExternalValidation
from ..evaluation.cache import Clock
from ..io.errors import InputError, naming
from ..io.files import whole_folder, write_atomic
from ..io.models import save_model
from ..io.table import Table
from ..report import checklist_markdown, draw_figures, render_comparison, render_page
from ..report.charts import csv_text
from .predict import frame_csv, predict_table, sample_names

if TYPE_CHECKING:
    import pandas as pd

_ENDS = ("value", "low", "high")


def json_text(value: Any) -> str:
    """Format a value as JSON, ended by a line break."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _stand_ins(row: Mapping[str, Any]) -> str:
    return "; ".join(s["feature"] for s in row["stand_ins"])


def panel_rows(selection: Selection) -> tuple[list[str], list[list[Any]]]:
    """The panel as a table: feature, direction, effects, how often chosen again, stand-ins."""
    classes = selection.document["data"]["classes"]
    header = ["feature", "higher in", *(f"effect in {label}" for label in classes), "AUC alone"]
    header += ["chosen again", "it or a stand-in", "by chance", "stand-ins"]
    names = ("auc", "frequency", "with_stand_ins", "noise")
    rows = [
        [row["feature"], row["higher_in"], *row["effects"], *(row[name] for name in names),
         _stand_ins(row)]
        for row in selection.document["panel"]
    ]  # fmt: skip
    return header, rows


def ladder_rows(selection: Selection) -> tuple[list[str], list[list[Any]]]:
    """The ladder as a table, a row for each size."""
    header = [
        "size", "balanced accuracy", "low", "high", "AUC", "AUC low", "AUC high", "stability",
        "stability by chance", "chosen again", "chosen again by chance", "features",
    ]  # fmt: skip
    names = ("stability", "stability_noise", "chosen_again", "chosen_again_noise")
    rows = []
    for rung in selection.document["ladder"]:
        scores = [rung["score"], rung["roc_auc"] or dict.fromkeys(_ENDS)]
        cells = [rung["size"], *(score[end] for score in scores for end in _ENDS)]
        features = "; ".join(row["feature"] for row in rung["features"])
        rows.append([*cells, *(rung[name] for name in names), features])
    return header, rows


_SAVED = re.compile(rb"(<dcterms:modified[^>]*>)[^<]*")  # when, as openpyxl writes it


def workbook(sheets: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]) -> bytes:
    """Return an .xlsx file of (header, rows) by name: the same bytes every time, no formulas."""
    book = need("openpyxl", "cli").Workbook()
    book.remove(book.active)
    book.properties.created = datetime.datetime(1980, 1, 1)
    for name, (header, rows) in sheets.items():
        page = book.create_sheet(name)
        page.freeze_panes, page.column_dimensions["A"].width = "A2", 32
        for row in (header, *rows):
            cells = [one_line(cell) if isinstance(cell, str) else cell for cell in row]
            page.append([None if c in (math.inf, -math.inf) or c != c else c for c in cells])
        for cell in (cell for row in page.iter_rows() for cell in row):
            cell.data_type = "s" if cell.data_type == "f" else cell.data_type
    written, content = io.BytesIO(), io.BytesIO()
    book.save(written)
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(content, "w") as target:
        for entry in source.infolist():
            data = _SAVED.sub(rb"\g<1>1980-01-01T00:00:00Z", source.read(entry))
            target.writestr(zipfile.ZipInfo(entry.filename), data, zipfile.ZIP_DEFLATED)  # of 1980
    return content.getvalue()


def panel_workbook(selection: Selection) -> bytes:
    """The panel, its stand-ins, the ladder, the scores and the notices as sheets of a workbook."""
    document = selection.document
    judged = {"out of fold": document, "another cohort": document["cohort"]}
    ends = (*_ENDS, "level")
    scores = [
        [where, name, *(score[end] for end in ends)]
        for where, part in judged.items()
        for name, score in (part or {"scores": {}})["scores"].items()
    ]
    stand_ins = [
        [row["feature"], s["feature"], s["correlation"], s["loss"]]
        for row in document["panel"]
        for s in row["stand_ins"]
    ]
    notices = [[n["severity"], n["title"], n["text"]] for n in document["notices"]]
    sheets: dict[str, tuple[list[str], list[list[Any]]]] = {
        "panel": panel_rows(selection),
        "stand-ins": (["feature", "stand-in", "correlation", "loss"], stand_ins),
        "ladder": ladder_rows(selection),
        "scores": (["samples", "score", *ends], scores),
        "notices": (["severity", "notice", "text"], notices),
    }
    return workbook({name: sheet for name, sheet in sheets.items() if sheet[1]})


def out_of_fold_csv(selection: Selection) -> str:
    """Write every prediction of every repeat: all rates of the page come from these."""
    frame, names = selection.evaluation.predictions, sample_names(selection.table)
    samples = [names[i] for i in frame["sample"]]
    return frame_csv(
        frame.assign(sample=samples, repeat=frame["repeat"] + 1, fold=frame["fold"] + 1)
    )


_WRITERS: dict[str, Callable[[Selection], str | bytes | None]] = {
    "index.html": lambda selection: render_page(selection.document),
    "results.json": lambda selection: json_text(selection.document),
    "panel.csv": lambda selection: csv_text(*panel_rows(selection)),
    "panel.xlsx": panel_workbook,
    "ladder.csv": lambda selection: csv_text(*ladder_rows(selection)),
    "predictions.csv": out_of_fold_csv,
    "test-predictions.csv": lambda selection: (
        predict_table(selection.model, selection.cohort).csv() if selection.cohort else None
    ),
    "checklist.md": lambda selection: checklist_markdown(selection.document),
}


def write_files(folder: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Write files under their names; what is no text in the name of a feature becomes a mark."""
    for name, content in files.items():
        data = content.encode(errors="replace") if isinstance(content, str) else content
        if data is not None:
            with naming(folder / name):
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(data)


def write_timings(folder: Path, seconds: Mapping[str, float]) -> None:
    """Write times, which never repeat and so stay apart from results, which do."""
    rounded = {stage: round(value, 3) for stage, value in seconds.items()}
    write_files(folder, {"timings.json": json_text({"seconds": rounded})})


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """A panel with its estimate, as `select_panel` returns it.

    Attributes
    ----------
    model : PanelPipeline
        The procedure fitted on all samples. It takes the cells of a file, gaps among them, and
        predicts from a data frame that has the panel's columns alone.
    evaluation : EvaluationResult
        How well the procedure predicts samples it has not seen.
    validation : ExternalValidation or None
        How well the model predicts the independent cohort, if one was given.
    document : dict
        Everything the page shows, as ``results.json`` holds it.
    table, cohort : Table
        The samples, and those of the independent cohort (None without one).
    seconds : dict of str to float
        How long each stage took; not part of `document`, which repeats byte for byte.
    """

    model: Any
    evaluation: EvaluationResult
    validation: ExternalValidation | None
    document: dict[str, Any]
    table: Table
    cohort: Table | None
    seconds: dict[str, float]
    run: Any
    given: Any

    FILES = (*_WRITERS, "model.skops", "timings.json", "figures/", "sizes/")
    NEEDS = {"jinja2": "report", "skops": "persist"}  # noqa: RUF012

    @property
    def panel(self) -> pd.DataFrame:
        """The panel, one row per feature, in the order chosen."""
        import pandas as pd

        names = ["feature", "higher_in", "auc", "frequency", "with_stand_ins", "noise"]
        rows = [[*(row[name] for name in names), _stand_ins(row)] for row in self.document["panel"]]
        table = pd.DataFrame(rows, columns=[*names, "stand_ins"])
        return table.astype({"feature": object}).set_index("feature")

    @property
    def ladder(self) -> pd.DataFrame:
        """Panels of 1, 2, 3, 5, 8, ... features with their scores: `EvaluationResult.ladder`."""
        return self.evaluation.ladder

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the reader has to know, the most serious first."""
        return tuple(Notice(n["code"], n["severity"], n["text"]) for n in self.document["notices"])

    @property
    def verdict(self) -> str:
        """Whether there is signal: "signal", "weak", "inconclusive", "none" or "not tested"."""
        return str(self.document["verdict"]["answer"])

    def with_size(self, size: int) -> Selection:
        """Return another rung of the ladder, without a new run; `size` is in ``ladder["size"]``."""
        sizes = list(self.evaluation.models)
        if size not in sizes:
            raise InputError(
                f"the ladder has no panel of {size} features",
                remedy=f"it has those of {', '.join(map(str, sizes))}; another size takes a run",
            )
        rung: Selection = self.run.selection(self.evaluation.at_size(size), self.given, Clock())
        return rung

    def __repr__(self) -> str:
        """Say in a few lines what was found."""
        lines = [self.document["verdict"]["headline"], *self.document["verdict"]["sentences"]]
        return "Selection: " + "\n  ".join(lines)

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame that can reach neither it nor the network."""
        page = html.escape(self.to_html(), quote=True)
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{page}" '
            'style="width: 100%; height: 720px; border: 1px solid #ccc"></iframe>'
        )

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the page, and write it if a path is given."""
        page = render_page(self.document)
        if path is not None:
            write_atomic(path, page)
        return page

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        force: bool = False,
        figures: bool = False,
        rungs: bool = False,
    ) -> None:
        """Write page, panel, ladder, predictions, checklist, results and model into a folder.

        All of them are written or none. Results of an earlier run are replaced only with `force`,
        other files never. With `figures` every figure is written too, as SVG and CSV; with `rungs`
        a folder ``sizes/3`` and so on for every size of the ladder, with all of these files.
        """
        with results_folder(folder, type(self), force=force) as part:
            self.write(part, figures=figures, rungs=rungs)

    def write(self, folder: Path, *, figures: bool = False, rungs: bool = False) -> None:
        """Write the files into a folder that exists, one after the other."""
        start = time.perf_counter()
        write_files(folder, {name: content(self) for name, content in _WRITERS.items()})
        save_model(self.model, folder / "model.skops")
        for name, figure in draw_figures(self.document).items() if figures else ():
            drawn = {f"figures/{name}.svg": figure.svg(), f"figures/{name}.csv": figure.csv()}
            write_files(folder, drawn)
        for size in self.evaluation.models if rungs else ():
            (folder / "sizes" / str(size)).mkdir(parents=True)
            self.with_size(size).write(folder / "sizes" / str(size))
        self.seconds["page"] = time.perf_counter() - start
        write_timings(folder, self.seconds)


@dataclass(frozen=True, eq=False)
class ComparedMethods:
    """Methods side by side, as `compare_table` returns them.

    Attributes
    ----------
    comparison : Comparison
    document, seconds : dict
        What ``results.json`` holds, and how long the stages took.
    """

    comparison: Comparison
    document: dict[str, Any] = field(repr=False)
    seconds: dict[str, float] = field(repr=False)

    FILES = ("index.html", "results.json", "comparison.csv", "timings.json")
    NEEDS = {"jinja2": "report"}  # noqa: RUF012

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write page, table and results into a folder, all of them or none."""
        with results_folder(folder, type(self), force=force) as part:
            self.write(part)

    def write(self, folder: Path) -> None:
        """Write the files into a folder that exists."""
        # seconds never repeat, so they go where the other timings are
        frame = self.comparison.table.drop(columns="seconds")
        fits = {f"{m}, {k} features": s for (m, k), s in self.comparison.seconds.items()}
        files = {
            "index.html": render_comparison(self.document),
            "results.json": json_text(self.document),
            "comparison.csv": frame_csv(frame),
        }
        write_files(folder, files)
        write_timings(folder, {**self.seconds, **fits})


@contextmanager
def results_folder(
    path: str | os.PathLike[str], kind: Any, *, force: bool = False
) -> Iterator[Path]:
    """Open a folder for results that appears whole, at the end, or not at all.

    `kind` is what will be written: its ``FILES`` may be replaced, with `force`, and its ``NEEDS``
    are the modules that writing takes, by extra. What stands against it is found out before any
    work.
    """
    for module, extra in kind.NEEDS.items():
        need(module, extra)
    # files of these names are an earlier run's only if its results are among them
    ours = kind.FILES if command_of(path) is not None else ()
    with whole_folder(path, owned=ours, force=force) as folder:
        yield folder


def command_of(folder: str | os.PathLike[str]) -> str | None:
    """Return the command that wrote the results in a folder; None if they are none of ours."""
    try:
        with open(Path(folder) / "results.json", encoding="utf-8") as file:
            document = json.load(file)
        if not document["format"].startswith("sparsegsvp"):
            return None
        return str(document.get("run", document).get("command", ""))
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return None
