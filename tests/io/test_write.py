"""Files and folders appear whole or not at all; no cell of a CSV is a formula."""

from __future__ import annotations

import csv
import errno
import io
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.io import (
    InputError,
    csv_text,
    harmless,
    prepare_output,
    whole_folder,
    workbook,
    write_atomic,
)


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


def test_output_is_tried_without_a_trace(tmp_path):
    prepare_output(tmp_path / "a.csv")
    prepare_output(tmp_path / "new" / "folder", owned=())
    assert names(tmp_path) == []
    with pytest.raises(InputError, match="nothing can be written there"):
        prepare_output(tmp_path / "none" / "a.csv")
    with pytest.raises(InputError, match="this is a folder"):
        prepare_output(tmp_path)
    (tmp_path / "a.csv").write_text("1")
    with pytest.raises(InputError, match=r"already \(a.csv of 20.*replace it with force=True"):
        prepare_output(tmp_path / "a.csv")
    prepare_output(tmp_path / "a.csv", force=True)
    assert (tmp_path / "a.csv").read_text() == "1"
    with pytest.raises(InputError, match=r"other files \('a.csv'\)"):
        prepare_output(tmp_path, force=True, owned=())
    with pytest.raises(InputError, match=r"earlier run \(a.csv of 20"):
        prepare_output(tmp_path, owned=["a.csv"])
    prepare_output(tmp_path, force=True, owned=["a.csv"])
    os.mkfifo(tmp_path / "pipe")
    prepare_output(tmp_path / "pipe")  # what is no regular file is there to be written to
    assert names(tmp_path) == ["a.csv", "pipe"]


def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "far").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "far" / "a.txt")  # to nothing yet
    for content in ("old", "new"):
        write_atomic(link, content)
        assert link.is_symlink() and (tmp_path / "far" / "a.txt").read_text() == content
    assert names(tmp_path / "far") == ["a.txt"]
    folder = tmp_path / "results"
    folder.symlink_to(tmp_path / "not" / "yet")
    for content in ("old", "new"):
        with whole_folder(folder, owned=["a"]) as partial:
            (partial / "a").write_text(content)
        assert folder.is_symlink() and (tmp_path / "not" / "yet" / "a").read_text() == content


def test_what_is_no_regular_file_is_written_through(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomic(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo() and names(tmp_path) == ["pipe"]
    write_atomic(os.devnull, "nowhere")
    assert not os.path.isfile(os.devnull)


def test_a_private_file_stays_private(tmp_path):
    path = write_atomic(tmp_path / "a.txt", "old")
    path.chmod(0o600)
    write_atomic(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_to_which_nothing_can_be_moved(tmp_path, monkeypatch):
    """A volume of a container: renames across its border fail, as does the parent's mkdir."""
    out = tmp_path / "volume"
    out.mkdir()
    rename, mkdir = os.rename, os.mkdir

    def within(a, b):
        if (out in Path(a).parents) != (out in Path(b).parents):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(a, b)

    def inside(path, *args):
        if out not in Path(path).parents:
            raise OSError(errno.EROFS, "Read-only file system")
        mkdir(path, *args)

    monkeypatch.setattr(os, "rename", within)
    monkeypatch.setattr(os, "mkdir", inside)
    for content in ("old", "new"):
        with whole_folder(out, owned=["a"]) as partial:
            (partial / "a").write_text(content)
        assert names(out) == ["a"] and (out / "a").read_text() == content
    with pytest.raises(InputError, match="Read-only"), whole_folder(tmp_path / "b"):
        raise AssertionError("found out at the start")


@pytest.mark.parametrize("mode", ["once", "for ever", "term", "term twice"])
@pytest.mark.parametrize("k", range(1, 8))
def test_old_results_survive_whatever_fails(tmp_path, monkeypatch, mode, k):
    """Let the k-th rename fail, all from there on, or a request to end come: old or new, whole."""
    out = tmp_path / "out"
    out.mkdir()
    for name in "abc":
        (out / name).write_text("old")
    rename, calls = os.rename, []
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def bad(a, b):
        calls.append(a)
        n = len(calls)
        if (mode == "once" and n == k) or (mode == "for ever" and n >= k):
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(a, b)
        if mode.startswith("term") and n in ((k,) if mode == "term" else (k, k + 1)):
            os.kill(os.getpid(), signal.SIGTERM)

    try:
        with suppress(OSError, SystemExit), whole_folder(out, owned=["a", "b", "c"]) as folder:
            for name in "abc":
                (folder / name).write_text("new")
            monkeypatch.setattr(os, "rename", bad)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert names(tmp_path) == ["out"] and names(out) == ["a", "b", "c"]
    assert len({(out / name).read_text() for name in "abc"}) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("k", range(1, 9))
def test_a_replacement_that_was_cut_in_two_is_finished_by_the_next(tmp_path, k):
    """The process ends at the k-th rename of seven: old if not all old ones were out, else new."""
    out = tmp_path / "out"
    out.mkdir()
    for name in "abc":
        (out / name).write_text("old")
    pid = os.fork()
    if pid == 0:
        rename, calls = os.rename, []

        def last(a, b):
            calls.append(a)
            if len(calls) == k:
                os._exit(1)
            rename(a, b)

        with whole_folder(out, owned=["a", "b", "c"]) as folder:
            for name in "abd":
                (folder / name).write_text("new")
            os.rename = last
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == (k < 8)
    with whole_folder(out, owned=["a", "b", "c", "d"]) as folder:
        shown = [path for path in out.iterdir() if path != folder]
        assert sorted(path.name for path in shown) == list("abc" if k < 5 else "abd")
        assert {path.read_text() for path in shown} == {"old" if k < 5 else "new"}
        (folder / "a").write_text("newer")
    assert names(out) == ["a"] and names(tmp_path) == ["out"]


def test_old_results_that_cannot_be_put_back_are_kept_and_named(tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "a").write_text("old")
    rename, calls = os.rename, []

    def only_the_first(a, b):
        calls.append(a)
        if len(calls) > 1:
            raise OSError(errno.EIO, "Input/output error")
        rename(a, b)

    with (
        pytest.raises(InputError, match=r"nor the old ones back .*the old ones are in (\S+): move"),
        whole_folder(out, owned=["a"]) as folder,
    ):
        (folder / "a").write_text("new")
        monkeypatch.setattr(os, "rename", only_the_first)
        monkeypatch.setattr("shutil.move", lambda *_: only_the_first(*_))
    (kept,) = out.iterdir()
    assert (kept / "a").read_text() == "old"
    monkeypatch.undo()
    with whole_folder(out, owned=["a"]) as folder:
        (folder / "a").write_text("new")
        assert (out / "a").read_text() == "old"  # put back, until there is something better
    assert names(out) == ["a"]


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    code = (
        "import sys, time\n"
        "from sparsegsvp.io import whole_folder\n"
        "with whole_folder(sys.argv[1]) as folder:\n"
        "    (folder / 'a').write_text('1')\n"
        "    print(folder, flush=True)\n"
        "    time.sleep(60)\n"
    )
    out = tmp_path / "out"
    child = subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE)
    theirs = Path(child.stdout.readline().decode().strip())
    with whole_folder(out) as folder:
        assert theirs.exists()  # its process is alive
        (folder / "a").write_text("2")
    assert theirs.exists() and names(out) == ["a"]
    child.kill()
    child.wait()
    write_atomic(tmp_path / "b", "3")
    assert names(tmp_path) == ["b", "out"]


def test_names_as_long_as_the_disk_allows(tmp_path):
    name = "x" * 255
    write_atomic(tmp_path / name, "whole")
    with whole_folder(tmp_path / ("y" * 255)) as folder:
        (folder / "a").write_text("1")
    assert names(tmp_path) == [name, "y" * 255]
    with pytest.raises(InputError, match="too long"):
        write_atomic(tmp_path / ("x" * 300), "whole")
    with pytest.raises(InputError, match="too long"), whole_folder(tmp_path / ("y" * 300)):
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


def test_a_workbook_reads_back_and_runs_nothing():
    import openpyxl

    cells = ["=1+1", "<b>&amp;", "a\x00b", " two  blanks ", "Ünï \U0001f600"]
    rows = [[text, 0.1 + 0.2, 7, None, float("nan")] for text in cells]
    content = workbook({"a": (["text", "x", "n", "none", "nan"], rows), "b & c": (["y"], [])})
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.sheetnames == ["a", "b & c"]
    read = list(book["a"].iter_rows(min_row=2))
    assert [row[0].value for row in read] == [text.replace("\x00", "\ufffd") for text in cells]
    assert {row[0].data_type for row in read} == {"s"}  # text, none of it a formula
    assert [cell.value for cell in read[0][1:]] == [0.1 + 0.2, 7, None, None]


def test_a_folder_of_an_earlier_run_is_replaced_with_it(tmp_path):
    out = tmp_path / "out"
    for text in ("1", "2"):
        with whole_folder(out, owned=["a", "figures/"]) as folder:
            (folder / "a").write_text(text)
            (folder / "figures").mkdir()
            (folder / "figures" / f"{text}.svg").write_text(text)
    assert sorted(p.name for p in out.rglob("*")) == ["2.svg", "a", "figures"]
    with pytest.raises(InputError, match="other files"), whole_folder(out, owned=["a", "figures"]):
        pass
