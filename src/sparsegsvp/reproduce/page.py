"""The whole reproduction: compute or resume, then write tables, figures and one page."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from .._typing import Progress
from .._versions import versions
from ..datasets import load_breast_cancer, load_ovarian
from ..io import InputError, csv_text, write_atomic
from ..report.page import render
from ..report.words import environment
from .figures import make_figures
from .runs import PLANS, STUDIES, Plan, Row, Study, run
from .tables import CODE, SCORED, make_tables

Which = Literal["breast", "ovarian", "all"]


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

    Every piece is kept in ``out/<study>.jsonl`` when it is finished: an interrupted run resumes
    where it was, and a second run only writes its files again, byte for byte the same.

    Parameters
    ----------
    which : {"breast", "ovarian", "all"}, default="breast"
        The breast cancer data come with scikit-learn and take a quarter of an hour; the ovarian
        data take more than an hour, most of it in runs of the paper's method that do not settle.
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

    Raises
    ------
    FileNotFoundError, ValueError
        The ovarian data are missing, or the file is another one; or ``out`` holds other files.
        Checked before anything is computed.
    ImportError
        jinja2 is missing.

    Examples
    --------
    >>> from sparsegsvp.reproduce import reproduce
    >>> reproduce("breast", out="reproduction").page  # doctest: +SKIP
    PosixPath('reproduction/index.html')
    """
    if which not in (*STUDIES, "all"):
        raise ValueError(f"which must be 'breast', 'ovarian' or 'all', got {which!r}.")
    environment(__package__)  # says at once what is missing
    studies = list(STUDIES.values()) if which == "all" else [STUDIES[which]]
    loaded = [
        load_breast_cancer() if study.key == "breast" else load_ovarian(data, order="authors")
        for study in studies
    ]
    folder = Path(out)
    if folder.is_dir() and any(folder.iterdir()) and not list(folder.glob("*.jsonl")):
        raise InputError(
            "the folder holds other files, and no reproduction to continue",
            where=str(out),
            remedy="choose a new or empty folder",
        )
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    made_with, computed = {**versions(), **_commit()}, 0
    contexts, every = [], {}
    charts: dict[str, Any] = {}
    for study, dataset in zip(studies, loaded):
        key, chosen = study.key, plan or PLANS[study.key]
        cache = folder / f"{key}.jsonl"
        results, new = run(study, dataset, chosen, cache, n_jobs=n_jobs, progress=progress)
        computed += new
        every[key] = tables = make_tables(study, dataset, chosen, results)
        figures = make_figures(study, chosen, results, tables)
        for name, rows in tables.items():
            text = csv_text(list(rows[0]), [list(row.values()) for row in rows])
            write_atomic(folder / f"{key}-{name}.csv", text)
        for name, sheet in figures.items():
            write_atomic(folder / "figures" / f"{key}-{name}.svg", sheet.svg())
        charts |= {f"{key}-{name}": sheet for name, sheet in figures.items()}
        write_atomic(folder / f"{key}.md", _markdown(study, chosen, tables, made_with))
        contexts.append({"study": study, "plan": chosen, "tables": tables, "tiles": _tiles(tables)})
    page = folder / "index.html"
    write_atomic(
        page,
        render("page.html", charts, package=__package__, studies=contexts, versions=made_with),
    )
    return Reproduction(page, every, computed)


def _commit() -> dict[str, str]:
    """The commit this package was imported from; nothing where it is installed."""
    here = Path(__file__).parent
    try:
        say = [
            subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True)
            for words in (["rev-parse", "HEAD"], ["status", "-s", "--", str(here.parent)])
        ]
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"commit": say[0].stdout[:12] + ("-changed" if say[1].stdout else "")}


def _cell(value: Any) -> str:
    """A cell as text: numbers short, nothing for None."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return "" if value is None else text


def _markdown(
    study: Study, plan: Plan, tables: Mapping[str, list[Row]], made_with: Mapping[str, str]
) -> str:
    """The tables of one study as Markdown."""
    with_what = ", ".join(f"{name} {version}" for name, version in made_with.items())
    parts = [
        f"# {study.title}: the paper's tables, published and obtained\n",
        f"Written by `sparsegsvp reproduce {study.key}` with {with_what}.\n",
        f"The plan: {json.dumps(asdict(plan))}.\n",
    ]
    for name, rows in tables.items():
        lines = [list(rows[0]), ["---"] * len(rows[0])]
        lines += [[_cell(row[c]).replace("|", r"\|") for c in rows[0]] for row in rows]
        table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        parts.append(f"## {name}\n\n{table}")
    return "\n".join(parts)


def _tiles(tables: Mapping[str, list[Row]]) -> list[tuple[str, str, list[str]]]:
    """The findings that fit into a few words each: number, what it is, numbers beside it."""
    plain = [row for row in tables["rows"] if row["source"] == CODE]
    ranges = [row for row in tables["rows"] if row["source"].startswith(f"{CODE}, any")]
    n, fair = len(plain), tables.get("fair", [])
    same, inside = (sum(r["as published"] == "all" for r in rows) for rows in (plain, ranges))

    def span(column: str) -> str:
        values = [row[column] for row in fair[:n] if row[column] is not None]
        ends = [f"{pick(values):.2f}" for pick in (min, max)] if values else ["not run"]
        return "–".join(dict.fromkeys(ends))

    tiles: list[tuple[str, str, list[str]]] = [
        (f"{same} of {n}", "rows obtained to the last count", []),
        (f"{inside} of {n}", "rows inside the range over roundings", []),
    ]
    if fair:
        more = [
            f"{span('published, one split')}: published, of one split",
            f"{span(SCORED)}: published settings on {fair[0]['splits']} splits, authors' scoring",
            f"{span('printed rule')}: the same, printed rule",
            f"{fair[-1]['printed rule']:.2f}: GSVPSVMCV on the same splits",
        ]
        tuned = [row["splits retuned"] for row in fair[:n] if row["splits retuned"]]
        where = f"{tuned[0]} splits" if tuned and isinstance(tuned[0], int) else "one split"
        said = f"balanced accuracy, retuned ({len(tuned)} of {n} of the paper's methods, {where})"
        tiles.append((span(f"retuned, {SCORED}"), said, more))
    return tiles
