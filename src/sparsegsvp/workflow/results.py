"""Results as objects and files: `Selection`, and folders written whole or not at all."""

from __future__ import annotations

import html
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from .._notices import Notice
from ..evaluation import EvaluationResult, ExternalValidation, LearningCurve, StabilitySelection
from ..io import (
    Table,
    check_cohort,
    csv_text,
    make_table,
    prepare_output,
    save_model,
    whole_folder,
    workbook,
    write_atomic,
)
from ..io.errors import naming
from ..report import build_report, checklist_markdown, describe_model, draw_figures
from ..report.methods import methods
from ..report.words import interval
from .predict import Predictions, names_or_numbers, predictions_csv, recalibrate_model

if TYPE_CHECKING:
    import pandas as pd

_EXTRAS = {"jinja2": "report", "skops": "persist"}


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """What `select_panel` found.

    Attributes
    ----------
    model : estimator
        The procedure fitted on all samples: a `GSVPSVMCV`, or a `PanelPipeline` that ends in
        one. It predicts from a data frame that has the panel's columns alone.
    evaluation : EvaluationResult
        How well the procedure predicts samples it has not seen.
    stability : StabilitySelection or None
        Panels of half samples; None where that was left out.
    document : dict
        Everything the page shows, as ``results.json`` holds it
        (`sparsegsvp.report.schema.Results`).
    table : Table
        The samples.
    cohort : Predictions or None
        Predictions of the independent cohort, if one was given.
    validation : ExternalValidation or None
        What that cohort says of the model.
    seconds : dict of str to float
        How long each stage took; not part of `document`, which repeats byte for byte.
    learning : LearningCurve or None
        Accuracy and stability at growing parts of the samples, where that was asked for.
    """

    model: Any
    evaluation: EvaluationResult
    stability: StabilitySelection | None
    document: dict[str, Any]
    table: Table
    cohort: Predictions | None
    cohort_table: Table | None
    seconds: dict[str, float]
    learning: LearningCurve | None = None
    validation: ExternalValidation | None = None

    FILES = (
        "report.html",
        "checklist.md",
        "panel.csv",
        "panel.xlsx",
        "figures/",
        "model.skops",
        "results.json",
        "predictions.csv",
        "test-predictions.csv",
        "timings.json",
    )
    NEEDS = ("jinja2", "skops")

    @property
    def panel(self) -> pd.DataFrame:
        """The panel, one row per feature, the heaviest first."""
        import pandas as pd

        rows = []
        for row in self.document["panel"]:
            cells = {"higher_in": row["higher_in"]}
            for label, weight in zip(self.document["data"]["classes"], row["weights"]):
                cells[f"weight_{label}"] = weight
            cells |= {name: row[name] for name in ("auc", "frequency", "group_frequency")}
            cells["substitutes"] = "; ".join(s["feature"] for s in row["substitutes"])
            rows.append(cells)
        names = [row["feature"] for row in self.document["panel"]]
        return pd.DataFrame(rows, index=pd.Index(names, name="feature", dtype=object))

    def to_frame(self) -> pd.DataFrame:
        """Return the panel, one row per feature, the heaviest first."""
        return self.panel

    def __repr__(self) -> str:
        """Say in a few lines what was found: the headline, the score and the sizes."""
        score = self.evaluation.scores["balanced_accuracy"].to_dict()
        sizes = self.evaluation.panel_sizes
        lines = [
            self.document["verdict"]["headline"],
            f"balanced accuracy {interval(score)}",
            f"panels: {len(self.document['panel'])} on all samples, {min(sizes)} to {max(sizes)} "
            f"in the outer folds, {median(sizes):g} in the median",
        ]
        return "Selection: " + "\n  ".join(lines)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the reader has to know, the most serious first."""
        return tuple(Notice(n["code"], n["severity"], n["text"]) for n in self.document["notices"])

    @property
    def verdict(self) -> str:
        """Whether there is signal: "signal", "inconclusive", "none" or "not tested"."""
        return str(self.document["verdict"]["level"])

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the page, and write it if a path is given."""
        page = build_report(self.document)
        if path is not None:
            write_atomic(path, page)
        return page

    def save(
        self, folder: str | os.PathLike[str], *, force: bool = False, figures: bool = False
    ) -> None:
        """Write page, checklist, panel, predictions, results and model into a folder, all or none.

        Results of an earlier run are replaced only with `force`, other files never. With
        `figures` every figure is written too, as SVG, PNG and CSV.
        """
        with results_folder(folder, type(self), force=force) as part:
            self.write(part, figures=figures)

    def write(self, folder: Path, *, figures: bool = False) -> None:
        """Write the files into a folder that exists, one after the other."""
        cohort = None
        if self.cohort is not None and self.cohort_table is not None:
            cohort = predictions_csv(self.cohort_table, self.cohort)
        write_texts(
            folder,
            {
                "results.json": json_text(self.document),
                "panel.csv": csv_text(*panel_rows(self.document)),
                "predictions.csv": out_of_fold_csv(self.table, self.document["evaluation"]),
                "test-predictions.csv": cohort,
                "report.html": self.to_html(),
                "checklist.md": checklist_markdown(self.document),
                "timings.json": timings_text(self.seconds),
            },
        )
        write_atomic(folder / "panel.xlsx", panel_workbook(self.document))
        if figures:
            write_figures(folder / "figures", self.document)
        save_model(self.model, folder / "model.skops")

    def recalibrated(
        self,
        cohort: Any = None,
        *,
        prevalence: float | None = None,
        method: str = "intercept",
        **reading: Any,
    ) -> Selection:
        """Return the same with probabilities fitted to a prevalence, to a cohort, or both.

        The estimates stay those of before; page, checklist and methods paragraph say what was
        done. See `sparsegsvp.evaluation.recalibrate`.

        Parameters
        ----------
        cohort : like the data of `select_panel`, optional
            Samples with labels.
        prevalence : float, optional
            Share of the positive class that probabilities are to be for.
        method : {"intercept", "slope"}, default="intercept"
            What the cohort sets: an intercept of the log odds, or slope and intercept.
        **reading
            How to read `cohort`, as in `select_panel`.

        Returns
        -------
        Selection
        """
        model = recalibrate_model(
            self.model,
            None if cohort is None else cohort_table(cohort, self.table, reading),
            positive=self.table.positive_class,
            prevalence=prevalence,
            method=method,
        )
        document = {**self.document, "model": describe_model(model)}
        return replace(self, model=model, document={**document, "methods": methods(document)})

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame that can reach neither it nor the network."""
        page = html.escape(self.to_html(), quote=True)
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{page}" '
            'style="width: 100%; height: 720px; border: 1px solid #ccc"></iframe>'
        )


def cohort_table(test: Any, table: Table, reading: dict[str, Any]) -> Table:
    """Read an independent cohort: the same features, and labels the table knows."""
    if isinstance(test, Table):
        cohort = test
    else:
        same = ("id", "transpose", "layer", "sheet", "separator", "decimal", "na", "collapse")
        kept = {name: reading[name] for name in same if name in reading}
        kept |= {"adjust": tuple(table.covariates)}
        kept |= {"features": table.feature_names}
        cohort = make_table(test, target=table.target, **kept)
    return check_cohort(cohort, table)


@contextmanager
def results_folder(
    path: str | os.PathLike[str] | None, kind: Any, *, force: bool = False
) -> Iterator[Any]:
    """Open a folder for results that appears whole, at the end, or not at all.

    What writing needs, and whether the folder holds files of others or the results of an
    earlier run, is found out before any work is done.

    Parameters
    ----------
    path : path-like or None
        The folder; None gives None.
    kind : type
        What will be written: its ``FILES`` are the names it may replace, its ``NEEDS`` the
        modules that writing takes.
    force : bool, default=False
        Replace the results of an earlier run. Files of others are never touched.

    Yields
    ------
    Path or None
        Where to write.
    """
    if path is None:
        yield None
        return
    for module in kind.NEEDS:
        if importlib.util.find_spec(module) is None:
            raise ImportError(
                f'writing the results needs {module}: pip install "sparsegsvp[{_EXTRAS[module]}]"'
            )
    # files of these names are an earlier run's only if its results are among them
    ours = kind.FILES if command_of(path) is not None else ()
    prepare_output(path, force=force, owned=ours)
    with whole_folder(path, owned=ours if force else ()) as folder:
        yield folder


def command_of(folder: str | os.PathLike[str]) -> str | None:
    """Return the command that wrote the results in a folder; None if they are none of ours."""
    try:
        with open(Path(folder) / "results.json", encoding="utf-8") as file:
            found = json.load(file)
        if not found["format"].startswith("sparsegsvp"):
            return None
        return str(found.get("run", found).get("command", ""))
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return None


def json_text(value: Any) -> str:
    """Format a value as JSON, ended by a line break."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_texts(folder: Path, texts: Mapping[str, str | None]) -> None:
    """Write the texts that there are, each under its name.

    A file's name in them may be of bytes that are no text: a mark stands for each.
    """
    for name, text in texts.items():
        if text is not None:
            with naming(folder / name):
                (folder / name).write_text(text, encoding="utf-8", errors="replace")


def timings_text(seconds: Mapping[str, float]) -> str:
    """Format times, which never repeat and so stay apart from results, which do."""
    return json_text({"seconds": dict(seconds)})


def panel_rows(document: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """The panel as a table: feature, direction and weight per class, frequencies, substitutes."""
    classes = document["data"]["classes"]
    header = ["feature"]
    for label in classes:
        header += [f"direction in {label}", f"weight for {label}", f"effect in {label}"]
    header += ["selection frequency", "frequency with substitutes", "substitutes"]
    rows = []
    for row in document["panel"]:
        cells: list[Any] = [row["feature"]]
        for effect, weight in zip(row["effects"], row["weights"]):
            cells += [_direction(effect), weight, effect]
        cells += [row["frequency"], row["group_frequency"]]
        cells.append("; ".join(s["feature"] for s in row["substitutes"]))
        rows.append(cells)
    return header, rows


def panel_workbook(document: Mapping[str, Any]) -> bytes:
    """The panel, its substitutes, the scores and the notices as sheets of a workbook."""
    keys = ("value", "low", "high", "level")
    scores = [("out of fold", n, s) for n, s in document["scores"].items()]
    test = document["test"]
    scores += [] if test is None else [("another cohort", n, s) for n, s in test["scores"].items()]
    stand_ins = [
        [row["feature"], s["feature"], s["correlation"], s["frequency"]]
        for row in document["panel"]
        for s in row["substitutes"]
    ]
    sheets = {
        "panel": panel_rows(document),
        "substitutes": (["feature", "substitute", "correlation", "frequency"], stand_ins),
        "scores": (
            ["samples", "score", *keys],
            [[where, name, *(s[k] for k in keys)] for where, name, s in scores],
        ),
        "notices": (
            ["severity", "notice", "text"],
            [[n["severity"], n["title"], n["text"]] for n in document["notices"]],
        ),
    }
    return workbook({name: sheet for name, sheet in sheets.items() if sheet[1]})


def write_figures(folder: Path, document: Mapping[str, Any]) -> None:
    """Write every figure of a document as SVG and, where matplotlib is installed, as PNG.

    The numbers behind each are beside it as CSV.
    """
    folder.mkdir()
    painted = importlib.util.find_spec("matplotlib") is not None
    for name, figure in draw_figures(document).items():
        for kind in ("svg", "png") if painted else ("svg",):
            with naming(folder / f"{name}.{kind}"):
                figure.save(folder / f"{name}.{kind}")
        write_texts(folder, {f"{name}.csv": figure.csv()})


def _direction(effect: float | None) -> str:
    if not effect:
        return "same"
    return "higher" if effect > 0 else "lower"


def out_of_fold_csv(table: Table, evaluation: Mapping[str, Any]) -> str:
    """Write the predictions of the first repeat, each by a fit that has not seen the sample."""
    classes = [str(c) for c in evaluation["classes"]]
    first = evaluation["out_of_fold"][0]
    parts = [("probability of", first["proba"]), ("distance to", first["distances"])]
    parts = [(title, values) for title, values in parts if values is not None]
    header = ["sample", "label", "prediction", "correct", "fold"]
    header += [f"{title} {label}" for title, _ in parts for label in classes]
    rows = []
    for i, (name, code) in enumerate(zip(names_or_numbers(table), evaluation["y"])):
        predicted = first["predicted"][i]
        cells: list[Any] = [name, classes[code]]
        if predicted < 0:
            cells += [None, None, None]
        else:
            right = "yes" if predicted == code else "no"
            cells += [classes[predicted], right, first["fold"][i] + 1]
        rows.append([*cells, *(v for _, values in parts for v in values[i])])
    return csv_text(header, rows)
