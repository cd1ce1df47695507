"""`Selection`: what `select_panel` found, as an object, a page and files."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from .._notices import Notice
from ..evaluation import EvaluationResult, ExternalValidation, LearningCurve, StabilitySelection
from ..io import Table, check_cohort, csv_text, make_table, save_model, write_atomic
from ..report import build_report, checklist_markdown, describe_model
from ..report.methods import methods
from ..report.words import interval
from .files import (
    json_text,
    out_of_fold_csv,
    panel_rows,
    panel_workbook,
    results_folder,
    timings_text,
    write_figures,
    write_texts,
)
from .predict import Predictions, predictions_csv, recalibrate_model

if TYPE_CHECKING:
    import pandas as pd


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
        kept |= {"adjust": tuple(table.covariates), "categorical": tuple(table.categories)}
        kept |= {"features": table.feature_names}
        cohort = make_table(test, target=table.target, **kept)
    return check_cohort(cohort, table)
