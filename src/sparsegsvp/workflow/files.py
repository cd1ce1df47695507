"""Results as files: a folder is written whole or not at all."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..io import Table, csv_text, prepare_output, whole_folder, workbook
from ..io.errors import naming
from ..io.files import finish_replacement
from ..report import draw_figures

_EXTRAS = {"jinja2": "report", "skops": "persist"}


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
    with naming(path):
        finish_replacement(path)
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
    for i, code in enumerate(evaluation["y"]):
        predicted = first["predicted"][i]
        name = str(i + 1) if table.ids is None else str(table.ids[i])
        cells: list[Any] = [name, classes[code]]
        if predicted < 0:
            cells += [None, None, None]
        else:
            right = "yes" if predicted == code else "no"
            cells += [classes[predicted], right, first["fold"][i] + 1]
        rows.append([*cells, *(v for _, values in parts for v in values[i])])
    return csv_text(header, rows)
