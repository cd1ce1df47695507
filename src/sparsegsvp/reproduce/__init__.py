"""The paper's experiments: compute or resume, then write tables, figures and one page."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from .._typing import Progress
from ..datasets import load_breast_cancer, load_ovarian
from ..evaluation.cache import versions
from ..io.errors import InputError
from ..io.files import write_atomic
from ..report.charts import csv_text
from ..report.page import render
from ..report.words import environment
from .figures import make_figures
from .runs import PLANS, STUDIES, Plan, run
from .tables import Rows, make_tables

__all__ = ["Plan", "Reproduction", "reproduce"]


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction wrote.

    Attributes
    ----------
    page : Path
        The page, complete in itself.
    tables : dict of str to dict
        Study -> table name -> rows.
    computed : int
        Pieces computed in this run; the others were taken from an earlier one.
    """

    page: Path
    tables: dict[str, dict[str, Rows]]
    computed: int


def reproduce(
    which: Literal["breast", "ovarian", "all"] = "breast",
    data: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] = "reproduction",
    progress: Progress | None = None,
    *,
    n_jobs: int | None = -1,
    plan: Plan | None = None,
) -> Reproduction:
    """Run the paper's experiments and write published and obtained numbers side by side.

    Every piece is kept in ``out/<study>.jsonl`` when it is finished: an interrupted run resumes
    where it was, and a second run only writes its files again, byte for byte the same.

    Parameters
    ----------
    which : {"breast", "ovarian", "all"}, default="breast"
        The breast cancer data come with scikit-learn and take a quarter of an hour; the ovarian
        data take twice that, most of it in runs of the paper's method that do not settle.
    data : path-like, optional
        Where the ovarian data are; see `sparsegsvp.datasets.load_ovarian`.
    out : path-like, default="reproduction"
        Folder for the page (``index.html``), ``<study>.md``, the tables as
        ``<study>-<table>.csv``, the figures and the finished pieces.
    progress : callable, optional
        Called as ``progress(study, done, total)`` whenever a piece is finished.
    n_jobs : int or None, default=-1
        Worker processes, as in joblib. Results do not depend on it.
    plan : Plan, optional
        How much to run; the full reproduction by default.

    Returns
    -------
    Reproduction

    Examples
    --------
    >>> from sparsegsvp.reproduce import reproduce
    >>> reproduce("breast", out="reproduction").page  # doctest: +SKIP
    PosixPath('reproduction/index.html')
    """
    if which not in (*STUDIES, "all"):
        raise ValueError(f"which must be 'breast', 'ovarian' or 'all', got {which!r}.")
    markdown = environment(__package__, text=True).get_template("study.md")
    loaded = {
        key: load_breast_cancer() if key == "breast" else load_ovarian(data, order="authors")
        for key in (STUDIES if which == "all" else [which])
    }
    folder = Path(out)
    if folder.is_dir() and any(folder.iterdir()) and not list(folder.glob("*.jsonl")):
        raise InputError(
            "the folder holds other files, and no reproduction to continue", where=str(out),
            remedy="choose a new or empty folder",
        )  # fmt: skip
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    studies, charts, computed = list[dict[str, Any]](), dict[str, Any](), 0
    for key, dataset in loaded.items():
        study, chosen = STUDIES[key], plan or PLANS[key]
        kept = folder / f"{key}.jsonl"
        results, new, made = run(study, dataset, chosen, kept, n_jobs=n_jobs, progress=progress)
        computed += new
        tables = make_tables(study, dataset, chosen, results)
        for name, rows in tables.items():
            text = csv_text(list(rows[0]), [list(row.values()) for row in rows])
            write_atomic(folder / f"{key}-{name}.csv", text)
        for name, sheet in make_figures(study, dataset, chosen, results).items():
            charts[f"{key}-{name}"] = sheet
            write_atomic(folder / "figures" / f"{key}-{name}.svg", sheet.svg())
        studies.append({"study": study, "plan": asdict(chosen), "tables": tables, "versions": made})
        write_atomic(folder / f"{key}.md", markdown.render(studies[-1]))
    page = render("page.html", charts, package=__package__, studies=studies, versions=versions())
    written = write_atomic(folder / "index.html", page)
    return Reproduction(written, {s["study"].key: s["tables"] for s in studies}, computed)
