"""The whole reproduction in small: the same bytes, resumed, on a page that opens."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sparsegsvp.datasets import load_breast_cancer
from sparsegsvp.reproduce import Plan, Reproduction, reproduce
from sparsegsvp.reproduce.page import to_markdown
from sparsegsvp.reproduce.protocol import OVARIAN, classification_report, paper_split
from sparsegsvp.reproduce.tables import make_tables

TINY = Plan(
    n_starts=2,
    n_splits=2,
    n_row_orders=2,
    n_tuned=0,
    n_searches=0,
    max_iter=40,
    rules=("1se",),
    qs=(0.2, 0.9),
    eps=(10**-2.5,),
)


class Interrupted(Exception):
    """Stands for someone who stops the run."""


@pytest.fixture(scope="module")
def resumed(tmp_path_factory) -> tuple[Reproduction, int]:
    """A run that was stopped half-way and started again."""
    folder = tmp_path_factory.mktemp("resumed")

    def stop(stage: str, done: int, total: int) -> None:
        if "rounding" in stage:
            stages.append(stage)
            if len(stages) == 3:
                raise Interrupted

    stages: list[str] = []

    with pytest.raises(Interrupted):
        reproduce("breast", out=folder, progress=stop, n_jobs=1, plan=TINY)
    kept = len(_logged(folder))
    log = folder / "breast.jsonl"
    with open(log, "ab") as file:  # killed in the middle of a line
        file.write(b'{"key":["rows/l1/2","0123')
    return reproduce("breast", out=folder, n_jobs=1, plan=TINY), kept


def _logged(folder: Path) -> list[list[str]]:
    """Keys of the experiments in the log."""
    lines = (folder / "breast.jsonl").read_text().splitlines()
    return [json.loads(line)["key"] for line in lines[1:]]


def _files(folder: Path) -> dict[str, bytes]:
    """Everything but the timings."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "timings" not in file.name
    }


def test_an_interrupted_run_resumes(resumed) -> None:
    made, kept = resumed
    assert kept > 10
    total = len(_logged(made.page.parent))
    assert made.computed == total - kept  # nothing twice


def test_runs_give_the_same_bytes(resumed, tmp_path: Path) -> None:
    made, _ = resumed
    stages: list[tuple[str, int, int]] = []
    fresh = reproduce(
        "breast", out=tmp_path, progress=lambda *state: stages.append(state), n_jobs=1, plan=TINY
    )
    first, second = _files(made.page.parent), _files(tmp_path)
    assert first.keys() == second.keys()
    assert {"index.html", "breast.json", "breast-reports.csv", "figures/breast-pca.svg"} <= set(
        first
    )
    assert [name for name in first if first[name] != second[name]] == []
    # one scale for the whole, from nothing done to all done, whatever the stage
    assert len(dict.fromkeys(stage for stage, _, _ in stages)) == 7
    done, totals = [state[1] for state in stages], {state[2] for state in stages}
    assert done[0] == 0 and {done[-1]} == totals and done == sorted(done)
    assert fresh.computed == len(_logged(tmp_path))


def test_the_results_file_holds_what_the_page_shows(resumed) -> None:
    made, _ = resumed
    content = json.loads(made.results["breast"].read_text())
    assert content["tables"] == made.tables["breast"]
    assert "seconds" not in made.results["breast"].read_text()
    sources = [row["source"] for row in made.tables["breast"]["elbows"] if row["method"] == "l1"]
    assert sources == ["published", "authors' conventions", "the text, literally"]
    for row in made.tables["breast"]["reports"]:
        if row["verdict"] == "differs":
            assert row["reason"], row  # no difference without a reason
    starts = [
        row
        for row in made.tables["breast"]["sensitivity"]
        if (row["kind"], row["method"]) == ("starts", "GSVPSVM")
    ]
    assert starts[0]["distinct"] == 1 and starts[0]["capped"] == 0
    timings = json.loads((made.page.parent / "timings.json").read_text())
    assert len(timings["seconds_per_experiment"]["breast"]) == len(_logged(made.page.parent))


def test_the_authors_notebook_stands_beside_published_and_obtained(resumed) -> None:
    """The tables of the ovarian study, filled with other results: the layout is what counts."""
    results = json.loads(resumed[0].results["breast"].read_text())["results"]
    data = load_breast_cancer()
    results["claim/filters"] = {
        "top": {"F": [0, 1]},
        "size": 6,
        "scores": {"F": [1.0, 0.9, 0.8]},
    }
    printed = results["row/q=0.1/code"]["reports"]["test"]["batch"]
    printed["all"] = classification_report((8, 1, 0, 15))  # as the notebook prints it
    parts = paper_split(data.X, data.y, 0.4)
    tables = make_tables(OVARIAN, data, parts, TINY, results)
    for name in ("elbows", "reports"):
        sources = [row["source"] for row in tables[name] if row["method"] == "lq, q = 1"]
        assert sources[:3] == ["published", "authors' notebook", "authors' conventions"]
    rows = {
        row["source"]: row
        for row in tables["reports"]
        if (row["part"], row["method"]) == ("test", "lq, q = 0.1")
    }
    assert rows["published"]["balanced_accuracy"] == 1.0
    assert rows["authors' notebook"]["verdict"] == "differs"
    assert rows["authors' notebook"]["FP"] == rows["authors' conventions"]["FP"] == 1
    assert "notebook, which is not the published" in rows["authors' conventions"]["reason"]
    sweep = {row["q"]: row for row in tables["sweep"]}
    assert sweep[0.2]["notebook_smaller_elbow"] == 135
    assert sweep[0.9]["notebook_validation"] == "18 1 9 25"
    assert tables["jaccard"][0]["published"] == 0.4260
    assert [row["claim"][:4] for row in tables["claims"][:2]] == ["14 o", "[EE]"]
    text = to_markdown(tables["reports"])
    assert text.count("\n") == len(tables["reports"]) + 2 and "authors' notebook" in text


def test_the_claims_and_the_search_are_in_the_tables(resumed) -> None:
    made, _ = resumed
    search = made.tables["breast"]["search"]
    assert [row["split"] for row in search] == ["published"] * 4
    for row in search:
        assert 0.5 <= row["validation"] <= 1.0 and 0.0 <= row["test"] <= 1.0 and row["features"]
    # the best of so many settings on the samples that chose it
    assert all(row["tried"] > 50 and row["tied"] >= 1 for row in search[:3])
    claims = made.tables["breast"]["claims"]
    assert len(claims) == 3 and all(all(row.values()) for row in claims)
    text = (made.page.parent / "breast.md").read_text()
    assert all(name in text for name in ("## claims", "## search", "scikit-learn "))
    assert "Not the full plan: n_starts = 2, " in text


def test_the_page_asks_for_nothing(resumed) -> None:
    html = resumed[0].page.read_text()
    links = re.findall(r"""(?:src|href|action)\s*=\s*["']([^"']*)""", html)
    assert links and all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"url\(\s*['\"]?(?!#)|@import|<iframe", html)
    assert html.count("<script") == 2  # data, and the script that the policy allows
    assert "default-src 'none'" in html.replace("&#39;", "'") and 'class="top"' in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    used = set(re.findall(r"url\(#([^)]+)\)", html)) | {
        link[1:] for link in links if link[0] == "#"
    }
    assert used <= set(ids)
    assert all(ids.count(name) == 1 for name in used)  # figures share no identifier


# --- a real browser -------------------------------------------------------------------------

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def _open(page: Path, folder: Path) -> tuple[str, list[str], set[str]]:
    """The document, its console messages, and what it asked of the network.

    The browser has requests of its own; those of a page carry the annotation of its resource
    loader.
    """
    log = folder / "net.json"
    run = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--no-proxy-server",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder / 'profile'}",
            f"--log-net-log={log}",
            "--enable-logging=stderr",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    loader = r'"traffic_annotation":101845102,"url":"(\w+://[^"]+)"'
    asked = {url for url in re.findall(loader, log.read_text()) if not url.startswith("file:")}
    return run.stdout, console, asked


@needs_chromium
def test_the_page_opens_in_a_browser(resumed, tmp_path: Path) -> None:
    html, console, asked = _open(resumed[0].page, tmp_path)
    assert html.count('class="chart"') == 7
    assert "Does the answer depend on things that should not matter?" in html
    assert console == []
    assert asked == set()


@needs_chromium
def test_the_browser_would_have_told(tmp_path: Path) -> None:
    """The check above can fail: a page with an error and a request shows both."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<img src='http://reproduction.invalid/a.png'><script>console.error('no')</script>"
    )
    _, console, asked = _open(page, tmp_path)
    assert any("no" in line for line in console)
    assert "http://reproduction.invalid/a.png" in asked


# --- the log ---------------------------------------------------------------------------------


def test_a_finished_log_is_read_and_a_smaller_plan_loses_nothing(resumed, tmp_path: Path) -> None:
    made, _ = resumed
    for name in ("breast.jsonl", "breast.timings.jsonl"):
        shutil.copy(made.page.parent / name, tmp_path)
    smaller = replace(TINY, n_splits=1, n_row_orders=1, n_searches=None)
    again = reproduce("breast", out=tmp_path, n_jobs=1, plan=smaller)
    assert again.computed == 0
    assert sorted(_logged(tmp_path)) == sorted(_logged(made.page.parent))
    changed = replace(smaller, n_starts=1, n_row_orders=0, n_splits=0, max_iter=41)
    assert reproduce("breast", out=tmp_path, n_jobs=1, plan=changed).computed > 0


def test_no_plotting_library_is_needed(resumed, tmp_path: Path, monkeypatch) -> None:
    shutil.copy(resumed[0].page.parent / "breast.jsonl", tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    made = reproduce("breast", out=tmp_path, n_jobs=1, plan=TINY)
    assert made.page.read_bytes() == resumed[0].page.read_bytes()


@pytest.mark.parametrize("name", ["version", "data", "study"])
def test_a_log_of_another_version_or_other_data_is_refused(resumed, tmp_path, name) -> None:
    log = tmp_path / "breast.jsonl"
    first, rest = (resumed[0].page.parent / "breast.jsonl").read_bytes().split(b"\n", 1)
    header = json.loads(first)["header"]
    content = json.dumps({"header": {**header, name: "another"}}).encode() + b"\n" + rest
    log.write_bytes(content)
    with pytest.raises(ValueError, match=rf"breast\.jsonl .*{name} differ.* folder, or delete"):
        reproduce("breast", out=tmp_path, n_jobs=1, plan=TINY)
    assert log.read_bytes() == content and list(tmp_path.iterdir()) == [log]


def test_damage_and_foreign_files_are_named(resumed, tmp_path: Path) -> None:
    log = tmp_path / "breast.jsonl"
    log.write_text("notes of somebody")
    with pytest.raises(ValueError, match=r"breast\.jsonl is not a log"):
        reproduce("breast", out=tmp_path, n_jobs=1, plan=TINY)
    assert log.read_text() == "notes of somebody"
    lines = (resumed[0].page.parent / "breast.jsonl").read_bytes().splitlines()
    key = json.loads(lines[2])["key"]
    for damage in ("", "{", json.dumps({"key": key, "value": 3})):
        log.write_bytes(b"\n".join([*lines[:2], damage.encode(), *lines[3:]]) + b"\n")
        with pytest.raises(ValueError, match=r"line 3 of .* is damaged; remove that line"):
            reproduce("breast", out=tmp_path, n_jobs=1, plan=TINY)


def test_what_is_asked_for_is_checked_first(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(ValueError, match="'breast', 'ovarian' or 'all'"):
        reproduce("lung", out=tmp_path / "out")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"csse\.szu\.edu\.cn"):
        reproduce("all", data=tmp_path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"sparsegsvp\[report\]"):
        reproduce("breast", out=tmp_path / "out")


def test_files_of_others_are_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(
        ValueError, match=r"holds other files \('index.html'\).*new or empty folder"
    ):
        reproduce("breast", out=tmp_path, n_jobs=1, plan=TINY)
    assert (tmp_path / "index.html").read_text() == "mine"
