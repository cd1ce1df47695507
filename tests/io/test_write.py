"""Files and folders appear whole or not at all; no cell of a CSV is a formula."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.io import InputError, csv_text, harmless, whole_folder, write_atomic


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a.txt"
    write_atomic(path, "old")
    write_atomic(path, b"new\r\n")
    assert path.read_bytes() == b"new\r\n"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_atomic(path, "old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(InputError, match="No space left"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_that_cannot_be_there(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        write_atomic(tmp_path / "nowhere" / "a.txt", "x")
    with pytest.raises(InputError, match="this is a folder"):
        write_atomic(tmp_path, "x")


def test_a_folder_appears_when_complete(tmp_path):
    out = tmp_path / "new" / "out"
    with whole_folder(out) as folder:
        (folder / "a").write_text("1")
        assert not out.parent.exists()
    assert names(out) == ["a"]
    assert names(tmp_path) == ["new"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failed_folder_leaves_nothing(tmp_path, error):
    with pytest.raises(error), whole_folder(tmp_path / "new" / "out") as folder:
        (folder / "a").write_text("1")
        raise error
    assert names(tmp_path) == []


def test_an_earlier_run_is_replaced_and_anything_else_is_not(tmp_path):
    out = tmp_path / "out"
    for content in ("1", "2"):
        with whole_folder(out, owned=["a", "b"]) as folder:
            (folder / "a").write_text(content)
            if content == "1":
                (folder / "b").write_text("stale")
    assert names(out) == ["a"]
    assert (out / "a").read_text() == "2"
    assert names(tmp_path) == ["out"]
    (out / "thesis.docx").write_text("mine")
    reached = False
    with (
        pytest.raises(InputError, match=r"other files \('thesis.docx'\); choose a new or empty"),
        whole_folder(out, owned=["a", "b"]),
    ):
        reached = True
    assert not reached
    assert names(out) == ["a", "thesis.docx"]


def test_a_failed_replacement_restores_the_earlier_run(tmp_path, monkeypatch):
    out = tmp_path / "out"
    with whole_folder(out, owned=["a", "b"]) as folder:
        (folder / "a").write_text("1")
    rename, calls = os.rename, []

    def fails_at_the_third(*paths):
        calls.append(paths)
        if len(calls) == 3:
            raise OSError("pulled the plug")
        rename(*paths)

    with pytest.raises(OSError, match="plug"), whole_folder(out, owned=["a", "b"]) as folder:
        (folder / "a").write_text("2")
        (folder / "b").write_text("2")
        monkeypatch.setattr(os, "rename", fails_at_the_third)
    assert names(out) == ["a"]
    assert (out / "a").read_text() == "1"
    assert names(tmp_path) == ["out"]


def test_a_folder_that_cannot_be_there(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="this is a file"), whole_folder(tmp_path / "file"):
        pass
    with pytest.raises(InputError, match="cannot be made"), whole_folder(tmp_path / "file" / "out"):
        pass


def test_control_c_in_a_real_process(tmp_path):
    code = (
        "import pathlib, time\n"
        "from sparsegsvp.io import whole_folder\n"
        f"with whole_folder({str(tmp_path / 'out')!r}) as folder:\n"
        "    (folder / 'a').write_text('1')\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout.readline() == b"ready\n"
    time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode != 0 and b"KeyboardInterrupt" in errors
    assert names(tmp_path) == []


def test_interrupts_during_the_renames_wait(tmp_path, monkeypatch):
    rename = os.rename

    def interrupted(*paths):
        signal.raise_signal(signal.SIGINT)
        rename(*paths)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("1")
    assert names(tmp_path / "out") == ["a"]  # the interrupt came after, not between


FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", " =1", "=cmd|'/c calc'!A1", "＝1+1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_become_text(text):
    assert harmless(text) == "'" + text
    rows = list(csv.reader(io.StringIO(csv_text([text], [[text, 1.5]]), newline="")))
    assert rows[1][0].startswith("'")
    assert rows[0][0].startswith("'")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("x;=1+1", "x;'=1+1"),
        ("x; @SUM(A1);-1", "x;' @SUM(A1);-1"),
        ("x\t=1", "x\t'=1"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("\nTP53", "'\nTP53"),
        ("a\r\n+cmd", "a\r\n'+cmd"),
    ],
)
def test_cells_that_begin_within_a_cell_in_other_locales_become_text(text, safe):
    assert harmless(text) == safe
    written = csv_text(["s", "t"], [["1", text]])
    for separator in ",;\t":
        cells = [c.strip(' "') for line in written.splitlines() for c in line.split(separator)]
        assert not any(cell.startswith(("=", "+", "@")) for cell in cells)


@pytest.mark.parametrize("text", ["-1", "+1", "-1.5e-3", "TP53", "a=b", "", "<script>", "HLA-A"])
def test_what_is_no_formula_stays(text):
    assert harmless(text) == text


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.text())
def test_csv_reads_back(numbers, text):
    """Law: numbers come back to the last bit, text as it was but for apostrophes."""
    written = csv_text(["t", *map(str, range(len(numbers)))], [[text, *numbers]])
    row = list(csv.reader(io.StringIO(written, newline="")))[1]
    assert [float(cell) for cell in row[1:]] == numbers
    assert row[0].replace("'", "") == text.replace("'", "")
