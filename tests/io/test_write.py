"""Files and folders appear whole or not at all, and no cell becomes a formula."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp._validate import one_line
from sparsegsvp.io import InputError
from sparsegsvp.io.files import prepare_output, whole_folder, write_atomic
from sparsegsvp.report.charts import csv_text, harmless
from sparsegsvp.workflow.results import workbook

OWNED = ("a.txt", "b.txt", "more/")


def put(folder: Path, mark: str) -> None:
    (folder / "a.txt").write_text(mark)
    (folder / "more").mkdir(exist_ok=True)
    (folder / "more" / "c.txt").write_text(mark)


def marks(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*.txt")}


def whole(mark: str) -> dict[str, str]:
    return {"a.txt": mark, "more/c.txt": mark}


# --- files -------------------------------------------------------------------------------


def test_a_file_is_replaced_whole_or_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o600)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(OSError, match=r"disk full: .*a\.txt"):
        write_atomic(path, "new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]
    monkeypatch.undo()
    assert write_atomic(path, "new\r\nß") == path
    assert path.read_bytes() == "new\r\nß".encode() and path.stat().st_mode & 0o777 == 0o600
    link = tmp_path / "link"
    link.symlink_to(path)
    write_atomic(link, b"newer")
    assert link.is_symlink() and path.read_bytes() == b"newer"
    for bad in (tmp_path, tmp_path / "none" / "a.txt", tmp_path / ("x" * 300)):
        with pytest.raises(OSError, match=re.escape(str(bad))):
            write_atomic(bad, "x")


def test_what_is_no_regular_file_is_written_through(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    code = f"print(open({str(tmp_path / 'pipe')!r}).read())"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as reader:
        write_atomic(tmp_path / "pipe", "through")
        assert reader.communicate()[0].strip() == b"through"
    prepare_output(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


# --- folders -----------------------------------------------------------------------------


def test_results_are_replaced_whole_and_nothing_else_is_touched(tmp_path, monkeypatch):
    out = tmp_path / "deep" / "out"
    with whole_folder(out) as folder:
        put(folder, "1")
        assert not out.exists()
    assert marks(out) == whole("1")
    (out / "b.txt").write_text("old")
    with whole_folder(out, owned=OWNED) as folder:
        put(folder, "2")
    assert marks(out) == whole("2") and os.listdir(tmp_path / "deep") == ["out"]
    with pytest.raises(ZeroDivisionError), whole_folder(out, owned=OWNED) as folder:
        put(folder, "3")
        _ = 1 / 0
    assert marks(out) == whole("2") and sorted(os.listdir(out)) == ["a.txt", "more"]
    (out / "mine.txt").write_text("mine")
    with (
        pytest.raises(InputError, match=r"holds other files .'mine.txt'"),
        whole_folder(out, owned=OWNED),
    ):
        raise AssertionError
    assert (out / "mine.txt").read_text() == "mine"
    monkeypatch.chdir(out)
    with (
        pytest.raises(InputError, match="cannot be replaced as a whole"),
        whole_folder(".", owned=(*OWNED, "mine.txt")),
    ):
        raise AssertionError


@pytest.mark.parametrize("k", [0, 1, 2])
def test_old_results_survive_whatever_fails(tmp_path, monkeypatch, k):
    out = tmp_path / "out"
    with whole_folder(out) as folder:
        put(folder, "1")
    calls, rename = [], os.rename

    def failing(*paths):
        calls.append(paths)
        if len(calls) == k + 1:
            raise OSError(5, "broken")
        rename(*paths)

    monkeypatch.setattr("os.rename", failing)
    if k < 2:
        with pytest.raises(OSError, match="broken"), whole_folder(out, owned=OWNED) as folder:
            put(folder, "2")
        assert marks(out) == whole("1")
    else:
        with whole_folder(out, owned=OWNED) as folder:
            put(folder, "2")
        assert marks(out) == whole("2")
    assert os.listdir(tmp_path) == ["out"]


KILLED = """
import os, sys, pathlib
from sparsegsvp.io import files
out, where = pathlib.Path(sys.argv[1]), int(sys.argv[2])
rename, calls = os.rename, []
def counted(*paths):
    if len(calls) == where: os.kill(os.getpid(), 9)
    calls.append(paths); rename(*paths)
os.rename = counted
with files.whole_folder(out, owned=("a.txt", "more/")) as folder:
    (folder / "a.txt").write_text("2"); (folder / "more").mkdir()
    if where == 9: os.kill(os.getpid(), 9)
    (folder / "more" / "c.txt").write_text("2")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(("where", "left"), [(0, "1"), (1, "1"), (2, "2"), (9, "1")])
def test_a_kill_leaves_the_old_results_or_the_new(tmp_path, where, left):
    """Between the two renames the old ones are beside, and put back when next looked at."""
    out = tmp_path / "out"
    with whole_folder(out) as folder:
        put(folder, "1")
    done = subprocess.run([sys.executable, "-c", KILLED, str(out), str(where)], check=False)
    assert done.returncode == -signal.SIGKILL
    if where != 1:
        assert marks(out) == whole(left)
    with pytest.raises(InputError), whole_folder(out, owned=OWNED, force=False):
        raise AssertionError
    assert marks(out) == whole(left)
    with whole_folder(out, owned=OWNED) as folder:
        put(folder, "3")
    assert marks(out) == whole("3") and os.listdir(tmp_path) == ["out"]


def test_control_c_leaves_the_old_results(tmp_path):
    out = tmp_path / "out"
    code = (
        "import sys, time\nfrom sparsegsvp.io.files import whole_folder\n"
        "with whole_folder(sys.argv[1]) as folder:\n"
        "    (folder / 'a.txt').write_text('1'); print('go', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"go\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
    assert os.listdir(tmp_path) == []


def test_output_is_tried_without_a_trace(tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "out"
    prepare_output(path)
    assert not list(tmp_path.iterdir())
    path.write_text("1")
    with pytest.raises(InputError, match=r"there is such a file already.*force=True"):
        prepare_output(path)
    prepare_output(path, force=True)
    with whole_folder(out) as folder:
        put(folder, "1")
    for at, why in ((out, "holds the results of an earlier run.*force=True"), (path, "not a f")):
        with pytest.raises(InputError, match=why), whole_folder(at, owned=OWNED, force=False):
            raise AssertionError
    for bad in (path / "x", tmp_path / "none" / "x", tmp_path / ("x" * 300)):
        with pytest.raises(OSError, match=re.escape(str(bad))):
            prepare_output(bad)


# --- spreadsheets --------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1+1", "=cmd|'/c calc'!A1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_become_text(text):
    assert harmless(text).lstrip().startswith("'")
    for separator in (";", "\n"):
        cells = harmless(f"x{separator}{text}").split(separator, 1)
        assert not cells[1].lstrip(" ").startswith(("=", "+", "@"))


@pytest.mark.parametrize("text", ["", "-1", "+5", "1e-5", "TP53", "a-b", "x=1"])
def test_what_is_no_formula_stays(text):
    assert harmless(text) == text


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1), st.text(max_size=20))
def test_csv_reads_back(numbers, text):
    content = csv_text(["a", text], [[v, text] for v in numbers])
    rows = list(csv.reader(io.StringIO(content, newline="")))
    assert [float(row[0]) for row in rows[1:]] == numbers
    assert {row[1] for row in rows} == {harmless(text)}


def test_a_workbook_reads_back_and_runs_nothing():
    import openpyxl

    rows = [[text, 0.1 + 0.2, None] for text in FORMULAS] + [["bad\x00", float("nan"), "x"]]
    content = workbook({"a b": (["name", "weight", "z"], rows), "more": (["k"], [])})
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.sheetnames == ["a b", "more"]
    cells = list(book["a b"].iter_rows(min_row=2))
    for text, row in zip(FORMULAS, cells):
        assert row[0].data_type == "s" and row[0].value == one_line(text)
        assert row[1].value == pytest.approx(0.1 + 0.2, rel=1e-15)
    assert cells[-1][1].value is None
