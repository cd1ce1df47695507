"""The whole reproduction: compute or resume, then write tables, figures and the page."""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from .. import __version__
from .._typing import Progress
from .._versions import versions
from ..datasets import Dataset, load_breast_cancer, load_ovarian
from ..evaluation.journal import Journal, digest, run_logged
from .plan import PLANS, Plan, stages
from .protocol import STUDIES, Study, paper_split
from .tables import Table, make_tables

Which = Literal["breast", "ovarian", "all"]


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction wrote.

    Attributes
    ----------
    page : Path
        The page, complete in itself.
    results : dict of str to Path
        Study -> JSON file with every table and every result behind the figures.
    tables : dict of str to dict
        Study -> table name -> rows.
    computed : int
        Experiments computed in this run; the others were taken from an earlier one.
    """

    page: Path
    results: dict[str, Path]
    tables: dict[str, dict[str, list[dict[str, Any]]]]
    computed: int


def reproduce(
    which: Which = "breast",
    data: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] = "reproduction",
    progress: Progress | None = None,
    *,
    n_jobs: int | None = -1,
    plan: Plan | None = None,
) -> Reproduction:
    """Run the paper's experiments and write published and obtained numbers side by side.

    Every experiment is logged in ``out/<study>.jsonl`` as soon as it is finished, so an
    interrupted run resumes where it was and a second run only writes its files again, byte for
    byte the same. Timings go to ``timings.json`` and, while it runs, beside the log.

    Parameters
    ----------
    which : {"breast", "ovarian", "all"}, default="breast"
        The breast cancer data come with scikit-learn and take a minute or two; the ovarian
        data take hours, most of them in runs of the paper's method that do not settle.
    data : path-like, optional
        Where the ovarian data are; see `sparsegsvp.datasets.load_ovarian`.
    out : path-like, default="reproduction"
        Folder for the page (``index.html``), the results (``<study>.json``,
        ``<study>-<table>.csv``), the figures and the log.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` when a stage begins and whenever an
        experiment is finished.
    n_jobs : int or None, default=-1
        Worker processes, as in joblib; -1 is one per core. Results do not depend on it.
    plan : Plan, optional
        How much to run; the full reproduction by default.

    Returns
    -------
    Reproduction

    Raises
    ------
    FileNotFoundError, ValueError
        The ovarian data are missing, or the file is another one; or ``out`` holds the log of
        another version or other data. Checked before anything is computed.
    ImportError
        matplotlib or jinja2 is missing.

    Examples
    --------
    >>> from sparsegsvp.reproduce import reproduce
    >>> made = reproduce("breast", out="reproduction")  # doctest: +SKIP
    >>> made.page  # doctest: +SKIP
    PosixPath('reproduction/index.html')
    """
    if which not in (*STUDIES, "all"):
        raise ValueError(f"which must be 'breast', 'ovarian' or 'all', got {which!r}.")
    _require_report()
    from .figures import make_figures
    from .page import StudyPage, render

    studies = list(STUDIES.values()) if which == "all" else [STUDIES[which]]
    loaded = [_load(study, data) for study in studies]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    pages, files, timings, every, computed = [], {}, {}, {}, 0
    for study, dataset in zip(studies, loaded):
        chosen = plan or PLANS[study.key]
        run = _run_experiments(folder, study, dataset, chosen, progress, n_jobs)
        results = run.results
        parts = paper_split(dataset.X, dataset.y, study.second_split)
        tables = make_tables(study, dataset, parts, chosen, results)
        figures = make_figures(study, chosen, results, tables)
        files[study.key] = _write_results(folder, study, chosen, tables, results)
        _write_figures(folder / "figures", study, figures)
        pages.append(StudyPage(study, chosen, tables, figures))
        timings[study.key] = dict(sorted(run.seconds.items()))
        every[study.key] = {name: table.rows for name, table in tables.items()}
        computed += run.computed
    page = folder / "index.html"
    _write(page, render(pages, versions()))
    elapsed = time.perf_counter() - began
    _write(
        folder / "timings.json",
        _json({"this_run_seconds": elapsed, "seconds_per_experiment": timings}),
    )
    return Reproduction(page=page, results=files, tables=every, computed=computed)


@dataclass(frozen=True)
class _Experiments:
    """Results and times of all experiments of a study by name, and how many are new."""

    results: dict[str, dict[str, Any]]
    seconds: dict[str, float]
    computed: int


def _run_experiments(
    folder: Path,
    study: Study,
    dataset: Dataset,
    plan: Plan,
    progress: Progress | None,
    n_jobs: int | None,
) -> _Experiments:
    header = {
        "kind": "reproduce",
        "study": study.key,
        "version": __version__,
        "data": digest(dataset.X, dataset.y, dataset.feature_names),
    }
    results, seconds, computed = {}, {}, 0
    with Journal(folder / f"{study.key}.jsonl", header, resume=True) as journal:
        for title, tasks in stages(study, plan):
            stage = f"{study.title}: {title}"
            computed += run_logged(
                tasks, dataset, journal, stage=stage, progress=progress, n_jobs=n_jobs
            )
            for task in tasks:
                name = task.key[0]
                results[name] = journal.read(task.key, dict)
                seconds[name] = journal.timings.get(task.key, 0.0)
        journal.finish(keep_others=True)  # a smaller plan throws nothing of a larger one away
    return _Experiments(results, seconds, computed)


def _load(study: Study, data: str | os.PathLike[str] | None) -> Dataset:
    return load_breast_cancer() if study.key == "breast" else load_ovarian(data)


def _require_report() -> None:
    for name in ("matplotlib", "jinja2"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ImportError(
                f'The reproduction needs {name}: pip install "sparsegsvp[report]".'
            ) from error


def _write_results(
    folder: Path,
    study: Study,
    plan: Plan,
    tables: Mapping[str, Table],
    results: Mapping[str, Any],
) -> Path:
    for name, table in tables.items():
        _write(folder / f"{study.key}-{name}.csv", table.to_csv())
    file = folder / f"{study.key}.json"
    content = {
        "study": asdict(study),
        "plan": asdict(plan),
        "versions": versions(),
        "tables": {name: table.rows for name, table in tables.items()},
        "results": results,
    }
    _write(file, _json(content))
    return file


def _write_figures(folder: Path, study: Study, figures: Mapping[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, svg in figures.items():
        _write(folder / f"{study.key}-{name}.svg", svg)


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="\n")
