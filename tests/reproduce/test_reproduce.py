"""The whole reproduction in small: the same bytes, resumed, on a page that opens."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from sparsegsvp.datasets import load_breast_cancer
from sparsegsvp.io import InputError
from sparsegsvp.reproduce import Plan, Reproduction, reproduce, runs
from sparsegsvp.reproduce.runs import STUDIES, pieces
from sparsegsvp.reproduce.tables import CODE, TEXT, _spread

TINY = Plan(
    n_starts=2, n_splits=2, n_orders=1, n_claims=1, n_searches=0, searched=("l1",),
    max_iter=40, qs=(0.2, 0.9), eps=(10**-2.5,),
)  # fmt: skip
FIGURES = ("convergence", "sorted-weights", "weights", "top-features",
           "features-by-q", "pca")  # fmt: skip


class Interrupted(Exception):
    """Stands for someone who stops the run."""


@pytest.fixture(scope="module")
def resumed(tmp_path_factory) -> tuple[Reproduction, int]:
    """A run that was stopped half-way and started again."""
    folder = tmp_path_factory.mktemp("resumed")

    def stop(stage: str, done: int, total: int) -> None:
        if done == 5:
            raise Interrupted

    with pytest.raises(Interrupted):
        reproduce("breast", out=folder, progress=stop, n_jobs=1, plan=TINY)
    log = folder / "breast.jsonl"
    kept = len(log.read_text().splitlines())
    with open(log, "ab") as file:  # killed in the middle of a line
        file.write(b'{"key":"0123\n')
    return reproduce("breast", out=folder, n_jobs=1, plan=TINY), kept


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.suffix != ".jsonl"
    }


def test_an_interrupted_run_resumes(resumed) -> None:
    made, kept = resumed
    assert kept == 6  # five pieces, and what they were made with
    assert made.computed == len(pieces(STUDIES["breast"], TINY)) - 5  # nothing twice


def test_the_versions_are_those_of_the_run_and_not_of_the_writing(tmp_path, monkeypatch) -> None:
    data, study = load_breast_cancer(), STUDIES["breast"]
    small = [piece for piece in pieces(study, TINY) if piece[0] in ("own", "selectors")]
    made = []
    for version, count in (("1", 1), ("2", 1), ("2", 2)):
        monkeypatch.setattr(runs, "versions", lambda version=version: {"numpy": version})
        monkeypatch.setattr(runs, "pieces", lambda study, plan, n=count: small[:n])
        made.append(runs.run(study, data, TINY, tmp_path / "kept.jsonl")[1:])
    assert [(new, versions["numpy"]) for new, versions in made] == [
        (1, "1"),
        (0, "1"),
        (1, "1 and 2"),
    ]


def test_runs_give_the_same_bytes(resumed, tmp_path: Path) -> None:
    made, _ = resumed
    states: list[tuple[str, int, int]] = []
    reproduce("breast", out=tmp_path, progress=lambda *s: states.append(s), n_jobs=1, plan=TINY)
    first, second = _files(made.page.parent), _files(tmp_path)
    assert {"index.html", "breast.md", "breast-rows.csv", "figures/breast-pca.svg"} <= set(first)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert [done for _, done, _ in states] == list(range(len(states)))
    again = reproduce("breast", out=tmp_path, n_jobs=1, plan=TINY)
    assert again.computed == 0 and _files(tmp_path) == second


def test_the_tables_hold_what_was_obtained_beside_what_is_published(resumed) -> None:
    tables = resumed[0].tables["breast"]
    for method in STUDIES["breast"].methods.values():
        mine = [row for row in tables["rows"] if row["method"] == method["label"]]
        assert mine[0]["source"] == "published"
        assert mine[0]["elbows"] == ", ".join(map(str, method["elbows"]))
        assert mine[0]["test"] == " ".join(map(str, method["test"]))
        assert {CODE, TEXT} <= {row["source"] for row in mine}
        spread = next(row for row in mine if row["source"] == f"{CODE}, any rounding")
        assert all(re.search("· (inside, .* of 4|outside)$", spread[c]) for c in ("elbows", "test"))
        assert spread["as published"] == "all in 0 of 4"
    # at 40 iterations the published numbers are not there, and nothing says they are
    assert all(r["as published"] != "all" for r in tables["rows"] if r["source"] == CODE)
    fair = {row["method"]: row for row in tables["fair"]}
    assert fair["l1"]["splits"] == 2 and fair["l1"]["splits retuned"] == "the published one"
    assert fair["GSVPSVMCV"]["printed rule"] > 0.85
    assert fair["GSVPSVMCV"]["authors' scoring"] is None
    assert len(tables["sweep"]) == 2 and len(tables["claims"]) == 3
    assert [row["published"] for row in tables["split"]] == [249, 64, 44, 148, 38, 26]
    assert fair["l1"]["panels of other starts"].startswith("2 of 2")
    assert fair["GSVPSVMCV"]["panels of other starts"].startswith("1 of 2; 1.00;")


@pytest.mark.parametrize(
    "published, said",
    [([101, 94], "inside, 1 of 3"), ([100, 94], "inside, none of 3"), ([67, 42], "outside")],
)
def test_a_range_says_whether_the_published_value_is_inside(published, said) -> None:
    values = [[101, 94], [98, 76], [563, 94]]
    assert _spread(values, published, ", ") == f"98–563, 76–94 · {said}"
    assert _spread(values[:1] * 2, [101, 94], ", ") == "101, 94 · inside, 2 of 2"


def test_the_files_hold_the_tables(resumed) -> None:
    made, _ = resumed
    for name, rows in made.tables["breast"].items():
        with open(made.page.parent / f"breast-{name}.csv", encoding="utf-8") as file:
            read = list(csv.DictReader(file))
        assert [list(row) for row in read] == [list(row) for row in rows]
    text = (made.page.parent / "breast.md").read_text()
    assert re.search(r"with sparsegsvp \d+\.\d+", text) and "max_iter 40" in text
    assert "lq, q = 0.1" in text and "| published |" in text


def test_the_page_is_whole_and_says_that_it_is_a_quick_look(resumed) -> None:
    made, _ = resumed
    page = made.page.read_text(encoding="utf-8")
    assert "A quick look" in page and "2.5e-3" in page
    for name in FIGURES:
        assert f'id="figure-breast-{name}"' in page
        drawing = (made.page.parent / "figures" / f"breast-{name}.svg").read_text()
        assert drawing.startswith("<svg") and not re.search(r"\bnan\b", drawing, re.I)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)  # nothing from the network
    assert "{{" not in page and "{%" not in page


def test_other_folders_and_other_studies_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        reproduce("breast", out=tmp_path, plan=TINY)
    with pytest.raises(ValueError, match="which must be"):
        reproduce("lung", out=tmp_path / "new")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        reproduce("ovarian", tmp_path / "nothing.npz", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()
