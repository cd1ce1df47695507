"""The whole reproduction: compute or resume, then write tables, figures and one page."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from .. import __version__
from .._typing import Progress
from .._versions import versions
from ..datasets import Dataset, load_breast_cancer, load_ovarian
from ..evaluation.journal import Journal, run_logged
from ..evaluation.values import digest
from ..io import InputError, write_atomic
from ..io.errors import listed
from ..report.page import render, template_environment
from .figures import make_figures
from .plan import PLANS, Experiment, Plan, stages
from .protocol import STUDIES, Row, Study, paper_split
from .tables import CODE, KINDS, make_tables

Which = Literal["breast", "ovarian", "all"]

CAPTIONS = {
    "sorted_weights": (
        "Sorted weights with the number kept",
        "The paper's method keeps the weights up to the elbow of each curve. The weights of "
        "GSVPSVM end in exact zeros, so there is no elbow to find.",
    ),
    "convergence": (
        "Objective and relative change by iteration",
        "The quotient does not change when the solution is scaled, so the iteration lowers its "
        "objective by shrinking (dotted) until the fixed step is too long for it, and then "
        "jumps about. It stops where one relative change happens to fall below 1e-4, or at the "
        "cap.",
    ),
    "features_by_q": (
        "Features against q, and how alike the panels are",
        "Features kept by either plane. The Jaccard index is the mean over all pairs of values "
        "of q; the formula printed in the paper has another denominator.",
    ),
    "weights": (
        "The weights of both planes",
        "Kept features in colour, the others faint. Only the heaviest 400 are drawn.",
    ),
    "top_features": (
        "The heaviest selected features of each plane",
        "Weights relative to the largest, in standardised units; at most ten.",
    ),
    "pca": (
        "Test samples by two principal components",
        "Components of the training samples, all features or the selected ones. Only test "
        "samples are drawn: after a selection, training samples look separated even in noise.",
    ),
}


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
        Folder for the page (``index.html``), the results (``<study>.json``, ``<study>.md``,
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
        jinja2 is missing.

    Examples
    --------
    >>> from sparsegsvp.reproduce import reproduce
    >>> made = reproduce("breast", out="reproduction")  # doctest: +SKIP
    >>> made.page  # doctest: +SKIP
    PosixPath('reproduction/index.html')
    """
    if which not in (*STUDIES, "all"):
        raise ValueError(f"which must be 'breast', 'ovarian' or 'all', got {which!r}.")
    template_environment(__package__)  # says at once what is missing
    studies = list(STUDIES.values()) if which == "all" else [STUDIES[which]]
    loaded = [
        load_breast_cancer() if study.key == "breast" else load_ovarian(data, order="authors")
        for study in studies
    ]
    plans = {study.key: plan or PLANS[study.key] for study in studies}
    work = {study.key: list(stages(study, plans[study.key])) for study in studies}
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    there = sorted(path.name for path in folder.iterdir())
    if there and not any(name.endswith(".jsonl") for name in there):
        raise InputError(
            f"the folder holds other files ({listed(there, 3)}), and no reproduction to continue",
            where=str(out),
            remedy="choose a new or empty folder",
        )
    began, made_with = time.perf_counter(), {**versions(), **_commit()}
    contexts, files, timings, every, computed = [], {}, {}, {}, 0
    report = _progress_by_cost(progress, work)
    for study, dataset in zip(studies, loaded):
        key, chosen = study.key, plans[study.key]
        results, timings[key], new = _experiments(folder, study, dataset, work[key], report, n_jobs)
        computed += new
        parts = paper_split(dataset.X, dataset.y, study.second_split)
        tables = make_tables(study, dataset, parts, chosen, results)
        every[key] = tables
        for name, rows in tables.items():
            write_atomic(folder / f"{key}-{name}.csv", to_csv(rows))
        files[key] = folder / f"{key}.json"
        content = {"study": asdict(study), "plan": asdict(chosen), "versions": made_with}
        write_atomic(files[key], _json({**content, "tables": tables, "results": results}))
        write_atomic(folder / f"{key}.md", _markdown(study, chosen, tables, made_with))
        figures = make_figures(study, chosen, results, tables)
        (folder / "figures").mkdir(exist_ok=True)
        for name, svg in figures.items():
            write_atomic(folder / "figures" / f"{key}-{name}.svg", svg)
        contexts.append(_context(study, chosen, tables, figures))
    page = folder / "index.html"
    about = {"versions": made_with}
    write_atomic(page, render("page.html", {}, package=__package__, studies=contexts, r=about))
    seconds = {"this_run_seconds": time.perf_counter() - began, "seconds_per_experiment": timings}
    write_atomic(folder / "timings.json", _json(seconds))
    return Reproduction(page=page, results=files, tables=every, computed=computed)


StagedWork = list[tuple[str, list[Experiment]]]
Report = Callable[[Study, str, Journal], None]


def _progress_by_cost(progress: Progress | None, work: Mapping[str, StagedWork]) -> Report:
    """What to call when an experiment is finished: progress over all studies, by their costs."""
    costs = {
        study: {e.key: e.cost for _, experiments in staged for e in experiments}
        for study, staged in work.items()
    }
    total = sum(sum(mine.values()) for mine in costs.values())

    def report(study: Study, title: str, journal: Journal) -> None:
        if progress is None:
            return
        before = list(costs)[: list(costs).index(study.key)]  # these studies are finished
        done = sum(sum(costs[key].values()) for key in before)
        done += sum(cost for key, cost in costs[study.key].items() if key in journal)
        progress(f"{study.title}: {title}", done, total)

    return report


def _experiments(
    folder: Path,
    study: Study,
    dataset: Dataset,
    work: StagedWork,
    report: Report,
    n_jobs: int | None,
) -> tuple[dict[str, dict[str, Any]], dict[str, float], int]:
    """Results by name and seconds of all experiments of a study, and how many are new."""
    header = {
        "kind": "reproduce",
        "study": study.key,
        "version": __version__,
        "data": digest(dataset.X, dataset.y, dataset.feature_names),
    }
    results: dict[str, dict[str, Any]] = {}
    seconds, computed = {}, 0
    with Journal(folder / f"{study.key}.jsonl", header, resume=True) as journal:
        for title, experiments in work:

            def finished(*_: object, title: str = title) -> None:
                report(study, title, journal)

            computed += run_logged(experiments, dataset, journal, progress=finished, n_jobs=n_jobs)
            for experiment in experiments:
                results |= experiment.by_name(journal.read(experiment.key, dict))
                seconds[experiment.name] = journal.timings.get(experiment.key, 0.0)
        journal.finish(keep_others=True)  # a smaller plan throws nothing of a larger one away
    return results, seconds, computed


@cache
def _commit() -> dict[str, str]:
    """The commit this package was imported from; nothing where it is installed."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        if not git("ls-files", __file__):
            return {}
        changed = "-dirty" if git("diff-index", "HEAD") else ""
        return {"commit": git("rev-parse", "HEAD")[:12] + changed}
    except (OSError, subprocess.CalledProcessError):
        return {}


# ------------------------------------------------------------------------- files of text


def to_csv(rows: list[Row]) -> str:
    """Write rows that share their columns as CSV; numbers to their last digit.

    Examples
    --------
    >>> from sparsegsvp.reproduce.page import to_csv
    >>> to_csv([{"q": 0.1, "features": 4}])
    'q,features\\n0.1,4\\n'
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def to_markdown(rows: list[Row]) -> str:
    """Write rows that share their columns as a Markdown table, numbers to six digits.

    Examples
    --------
    >>> from sparsegsvp.reproduce.page import to_markdown
    >>> print(to_markdown([{"q": 0.1, "verdict": None}, {"verdict": "||w||", "q": 1}]), end="")
    | q | verdict |
    | --- | --- |
    | 0.1 |  |
    | 1 | \\|\\|w\\|\\| |
    """

    def cell(value: Any) -> str:
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        return "" if value is None else text.replace("|", r"\|")

    columns = list(rows[0])  # a row may have them in another order
    lines = [columns, ["---"] * len(columns)]
    lines += [[cell(row[column]) for column in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown(
    study: Study, plan: Plan, tables: Mapping[str, list[Row]], made_with: Mapping[str, str]
) -> str:
    """The tables of one study as text, all but the list of single runs."""
    with_what = ", ".join(f"{name} {version}" for name, version in made_with.items())
    parts = [
        f"# {study.title}: the paper's tables, published and obtained\n",
        f"Written by `sparsegsvp reproduce {study.key}` with {with_what}.\n",
    ]
    full = asdict(PLANS[study.key])
    other = {name: value for name, value in asdict(plan).items() if value != full[name]}
    if other:
        said = ", ".join(f"{name} = {value}" for name, value in other.items())
        parts.append(f"Not the full plan: {said}.\n")
    parts += [f"## {name}\n\n{to_markdown(r)}" for name, r in tables.items() if name != "runs"]
    return "\n".join(parts)


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


# ----------------------------------------------------------------------------- the page


def _context(
    study: Study, plan: Plan, tables: Mapping[str, list[Row]], figures: Mapping[str, str]
) -> dict[str, Any]:
    """What the template shows of one study."""
    return {
        "key": study.key,
        "title": study.title,
        "shape": study.shape,
        "sweep": study.sweep,
        "plan": plan,
        "full": plan.max_iter >= 10_000,
        "tiles": _tiles(study, tables),
        "tables": tables,
        "elbows": _grouped(tables["elbows"], "method"),
        "reports": {
            part: _grouped([row for row in tables["reports"] if row["part"] == part], "method")
            for part in ("validation", "test")
        },
        "changes": _grouped(tables["changes"], "method"),
        "sensitivity": [
            (KINDS[kind], rows) for kind, rows in _grouped(tables.get("sensitivity", []), "kind")
        ],
        "hero": figures.get("sensitivity"),
        "figures": [(name, *CAPTIONS[name], figures[name]) for name in CAPTIONS],
    }


def _tiles(study: Study, tables: Mapping[str, list[Row]]) -> list[dict[str, str]]:
    """The findings that fit into one line each."""
    differing = {
        row["method"]
        for row in (*tables["elbows"], *tables["reports"])
        if row["source"] == CODE and row["verdict"] != "identical"
    }
    n = len(study.methods)
    label = "published rows obtained exactly with the authors' conventions"
    found = [{"value": f"{n - len(differing)} of {n}", "label": label}]
    rows = {(row["kind"], row["method"]): row for row in tables.get("sensitivity", [])}
    labels = [method.label for method in study.methods]
    for kind, column, label in (
        ("starts", "distinct", "distinct panels from as many random starts ({runs})"),
        ("rows", "distinct", "distinct panels from the same samples in other orders ({runs})"),
        (
            "splits",
            "accuracy_mean",
            "mean balanced accuracy over {runs} random splits, equation 21",
        ),
    ):
        values = [rows[kind, name][column] for name in labels if (kind, name) in rows]
        own = rows.get((kind, "GSVPSVM"))
        if values and own is not None:
            form = "{:.2f}" if kind == "splits" else "{}"
            low, high, mine = map(form.format, (min(values), max(values), own[column]))
            both = low if min(values) == max(values) else f"{low}–{high}"
            label = f"{label.format(**own)}: the paper's methods → GSVPSVM"
            found.append({"value": f"{both} → {mine}", "label": label})
    return found


def _grouped(rows: list[Row], column: str) -> list[tuple[str, list[Row]]]:
    return [(name, list(members)) for name, members in groupby(rows, lambda row: row[column])]
