"""Names, labels, ids and paths of any characters: nothing is injected, nothing obeyed, all kept.

Some are chosen for what they did elsewhere, others are drawn by hypothesis. They go through the
reader, a whole run and its files; and, by the hundred, into a finished document, from which page,
checklist, figures, CSV and workbook are made anew.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import unicodedata
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from sparsegsvp import load_model
from sparsegsvp.io import InputError, csv_text, read_table
from sparsegsvp.report import build_report, checklist_markdown, draw_figures
from sparsegsvp.workflow import select_panel
from sparsegsvp.workflow.results import json_text, panel_rows, panel_workbook

for module in ("typer", "pandas", "skops", "jinja2", "openpyxl"):
    pytest.importorskip(module)


CHEAP = {"tau": 1, "n_deltas": 3, "folds": 2, "fast": True, "n_jobs": 1}
WORDS = ["--separator", ",", "--tau", "1", "--deltas", "3", "--folds", "2", "--repeats", "1"]
WORDS += ["--jobs", "1", "--fast"]

HOSTILE = {
    "escape codes": "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "turned": "\u202egnp.exe\u2066 abc\u200f",
    "combining": "e" + "\u0301\u0328" * 30,
    "emoji": "👩‍🔬🏳️‍🌈\U0001f1e9\U0001f1ea",
    "line breaks": "a\nb\r\nc\u2028d\x0be",
    "quotes": "\"'`“’\\",
    "script": "</script><script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)" x="',
    "image": "'><img src=x onerror=alert(1)>",
    "comment": "<!-- ]]> --><![CDATA[",
    "title": "</title></style></textarea><svg/onload=alert(1)>",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "link": "[x](javascript:alert(1)) ![](//evil)",
    "formula": "=cmd|'/c calc'!A1",
    "formulas": "@SUM(A1);=1+1\t+2,-3+A1",
    "path": "../../etc/passwd",
    "option": "--force",
    "entity": "&lt;b&gt;&#0;&nbsp;",
    "percent": "%s%n{0}{x!r}",
    "mark of ours": "\ue000target\ue001[]\ue002",
    "nothing": "\u200b\u2060\ufeff",
    "not a character": "\ufffe\uffff\U0010ffff",
    "long": "L" * 10_000,
}
ONLY_IN_PYTHON = {"lone surrogate": "\ud800x\udfff", "NUL": "a\x00b"}


def planted(names: list[str], labels: tuple[str, str], n: int = 24) -> tuple[Any, list[str]]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, len(names))).round(3)
    X[: n // 2, 0] += 3
    X[: n // 2, 1] -= 3
    return X, [labels[0]] * (n // 2) + [labels[1]] * (n // 2)


class Structure(HTMLParser):
    """The elements of a page and the names of their attributes; and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.links += [str(v) for name, v in attrs if name in ("href", "src", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def no_cell_is_a_formula(text: str) -> None:
    """Cells as any program takes them, whatever separates cells where it runs."""
    for row in csv.reader(io.StringIO(text, newline="")):
        for cell in row:
            for part in re.split("[;\t\r\n]", cell):
                first = part.lstrip(" ")[:1]
                safe = unicodedata.normalize("NFKC", first) not in ("=", "+", "-", "@")
                assert safe or _is_number(part), f"{part!r} of {cell!r}"


def _is_number(text: str) -> bool:
    try:
        float(text)
        return True
    except ValueError:
        return False


def no_sheet_has_formulas(content: bytes) -> None:
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(content))
    assert all(cell.data_type != "f" for sheet in book for row in sheet.rows for cell in row)


def printable(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


# --- documents -----------------------------------------------------------------------------

PLAIN = ["gene-alpha", "gene-beta", "gene-gamma", "gene-delta"]
LABELS = ("label-one", "label-two")


@pytest.fixture(scope="module")
def plain():
    """A document of harmless names, and the structure of its page."""
    import pandas as pd

    X, y = planted(PLAIN, LABELS)
    frame = pd.DataFrame(X, columns=PLAIN).assign(kind=y, name=[f"sample-{i}" for i in range(24)])
    document = select_panel(frame, target="kind", id="name", **CHEAP).document
    document = json.loads(json_text(document))
    return document, Structure(build_report(document))


def renamed(value: Any, new: dict[str, str]) -> Any:
    """A document in which names stand for others, wherever they occur."""
    if isinstance(value, dict):
        return {key: renamed(item, new) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, new) for item in value]
    if isinstance(value, str):
        for old, name in new.items():
            value = value.replace(old, name)
    return value


def check_document(plain: tuple[Any, Structure], *names: str) -> None:
    """Give two features, two labels and the samples other names, and make everything anew."""
    document, structure = plain
    new = dict(zip((*PLAIN[:2], *LABELS, "sample-"), names))
    found = renamed(document, new)
    text = build_report(found)
    made = Structure(text.encode("utf-8", "replace").decode())
    assert set(made.tags) <= set(structure.tags), set(made.tags) - set(structure.tags)
    scripts = [[tag for tag, _ in page.tags].count("script") for page in (made, structure)]
    assert scripts[0] == scripts[1]
    assert all(link.startswith(("#", "data:", "https://")) for link in made.links)
    for figure in draw_figures(found).values():
        ElementTree.fromstring(figure.svg().encode("utf-8", "replace"))
        no_cell_is_a_formula(figure.csv())
    listing = checklist_markdown(found)
    assert not re.search(r"<(script|img|svg)|(?<!\\)\]\(javascript", listing)
    no_cell_is_a_formula(csv_text(*panel_rows(found)))
    no_sheet_has_formulas(panel_workbook(found))
    json.loads(json_text(found).encode("utf-8", "replace"))


# Five at a time, each once in every place in the campaign.
@pytest.mark.parametrize("first", range(0, len(HOSTILE) + len(ONLY_IN_PYTHON), 5))
def test_no_name_changes_the_page(plain, first, campaign):
    names = [*HOSTILE.values(), *ONLY_IN_PYTHON.values()]
    five = [names[(first + i) % len(names)] for i in range(5)]
    for turn in range(campaign.count(1, 5)):
        check_document(plain, *five[turn:], *five[:turn])
        campaign.record("hostile names", 5)


TEXT = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs", "Cc", "Cf", "Co", "Mn"]),
        st.sampled_from(list("<>&\"'`=+-@;,\t\r\n{}[]()|\\/%\x00\x1b")),
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.timeout(3600)
def test_no_drawn_name_changes_the_page(plain, campaign):
    @seeded(campaign.seed)
    @settings(
        max_examples=campaign.count(3, 300),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(TEXT, min_size=5, max_size=5, unique=True))
    def trial(names):
        check_document(plain, *names)
        campaign.record("hostile names", 5)

    trial()


# --- whole runs ----------------------------------------------------------------------------


def run(*words: Any) -> Any:
    from typer.testing import CliRunner

    from sparsegsvp.cli.app import app

    return CliRunner().invoke(app, [str(word) for word in words])


def write_csv(path: Any, name: str) -> None:
    names = [f"{name}0", f"{name}1", "g2", "g3"]
    labels = (f"{name} ill", f"{name} well")
    X, y = planted(names, labels)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sample", *names, "class"])
        for i, row in enumerate(X):
            writer.writerow([f"{name}{i}", *map(repr, row.tolist()), y[i]])


def check_run(folder: Any, name: str, file: str = "table.csv") -> bool:
    """Select, look at every file, predict; whether the names were taken."""
    write_csv(folder / file, name)
    asked = run("select", folder / file, "-t", "class", "--id", "sample", *WORDS,
                "--out", folder / "out")  # fmt: skip
    assert printable(asked.stdout) and printable(asked.stderr), (asked.stdout, asked.stderr)
    if asked.exit_code == 2:
        assert asked.stderr.splitlines()[-1].startswith("sparsegsvp: ")
        assert not (folder / "out").exists()
        return False
    assert asked.exit_code == 0, asked.stderr
    out = folder / "out"
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    read = read_table(folder / file, target="class", id="sample", separator=",")
    assert {row["feature"] for row in document["panel"]} <= set(read.feature_names)
    assert document["data"]["classes"] == sorted(set(read.labels))
    scripts = (out / "report.html").read_text(encoding="utf-8")
    tags = [tag for tag, _ in Structure(scripts).tags]
    assert tags.count("script") == 2 and "img" not in tags
    for csv_file in out.glob("*.csv"):
        no_cell_is_a_formula(csv_file.read_bytes().decode("utf-8"))
    no_sheet_has_formulas((out / "panel.xlsx").read_bytes())
    assert [str(c) for c in load_model(out / "model.skops").classes_] == sorted(set(read.labels))
    calls = run("predict", out / "model.skops", folder / file, "--id", "sample", "-t", "class",
                "--separator", ",", "--out", folder / "calls.csv")  # fmt: skip
    assert calls.exit_code == 0, calls.stderr
    assert printable(calls.stdout) and printable(calls.stderr)
    no_cell_is_a_formula((folder / "calls.csv").read_bytes().decode("utf-8"))
    shown = run("look", folder / file, "--separator", ",")
    assert shown.exit_code == 0 and printable(shown.stdout), shown.stdout
    return True


# One of each sort in `make test`; what is on the page is tried above for all.
@pytest.mark.parametrize("kind", ["escape codes", "formulas"])
def test_a_whole_run_with_hostile_names(tmp_path, kind, campaign):
    assert check_run(tmp_path, HOSTILE[kind])
    campaign.record("runs with hostile names")


@pytest.mark.campaign
@pytest.mark.parametrize("kind", sorted(HOSTILE.keys() - {"escape codes", "formulas"}))
def test_whole_runs_with_hostile_names(tmp_path, kind, campaign):
    assert check_run(tmp_path, HOSTILE[kind])
    campaign.record("runs with hostile names")


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_whole_runs_with_drawn_names(tmp_path, campaign):
    taken = []

    @seeded(campaign.seed)
    @settings(max_examples=60, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(TEXT.filter(lambda text: not re.search("[\ud800-\udfff]", text)))
    def trial(name):
        folder = tmp_path / str(len(taken))
        folder.mkdir(exist_ok=True)
        taken.append(check_run(folder, name))
        campaign.record("runs with hostile names")

    trial()
    assert np.mean(taken) > 0.5


# --- paths, and names that only Python can give --------------------------------------------

PATHS = {
    "not UTF-8": os.fsdecode(b"caf\xe9.csv"),
    "turned": "\u202evsc.csv",
    "escape codes": "\x1b[31m.csv",
    "line break": "a\nb.csv",
    "markup": "<img src=x onerror=alert(1)>.csv",
    "formula": "=1+1.csv",
    "option": "--out.csv",
    "quotes": "a'b\"c.csv",
    "long": "x" * 251 + ".csv",
}


@pytest.mark.parametrize(
    "kind",
    [
        kind
        if kind in ("not UTF-8", "line break")
        else pytest.param(kind, marks=pytest.mark.campaign)
        for kind in PATHS
    ],
)
def test_paths(tmp_path, kind, campaign):
    """The table, the folder of results and a log in it have such names; predict finds them."""
    folder = tmp_path / PATHS[kind]
    folder.mkdir()
    table = folder / PATHS[kind]
    X, y = planted(PLAIN, LABELS)
    lines = [",".join([*PLAIN, "class"])]
    lines += [",".join([*map(repr, row.tolist()), label]) for row, label in zip(X, y)]
    table.write_text("\n".join(lines) + "\n")
    out, log = folder / ("out" + PATHS[kind][:200]), folder / (PATHS[kind][:200] + ".jsonl")
    words = ["evaluate", table, "-t", "class", *WORDS[:-1], "--permutations", "0"]
    done = run(*words, "--out", out, "--log", log)
    assert done.exit_code == 0, done.stderr
    assert printable(done.stdout) and printable(done.stderr)
    json.loads((out / "results.json").read_text(encoding="utf-8"))
    again = run(*words, "--out", out, "--log", log)
    assert again.exit_code == 2 and printable(again.stderr) and len(again.stderr.splitlines()) == 1
    lost = run("evaluate", folder / f"x{kind}", "-t", "class")
    assert lost.exit_code == 2 and printable(lost.stderr)
    campaign.record("hostile paths")


@pytest.mark.parametrize("kind", ONLY_IN_PYTHON)
def test_names_of_a_frame(tmp_path, kind, campaign):
    import pandas as pd

    name = (HOSTILE | ONLY_IN_PYTHON)[kind]
    names = [f"{name}0", f"{name}1", "g2", "g3"]
    X, y = planted(names, (f"{name}ill", f"{name}well"))
    frame = pd.DataFrame(X, columns=pd.Index(names, dtype=object))
    frame["kind"] = pd.Series(y, dtype=object)
    try:
        found = select_panel(frame, target="kind", **CHEAP)
    except InputError as error:
        assert str(error).isprintable()
        return
    found.save(tmp_path / "out")
    json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert load_model(tmp_path / "out" / "model.skops").predict(frame[names]).shape == (24,)
    campaign.record("hostile names")
