"""Exit codes, help, and what is shown where."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer

from sparsegsvp import __version__
from sparsegsvp.cli.app import guarded
from sparsegsvp.cli.screen import Screen
from sparsegsvp.io import InputError
from sparsegsvp.io.errors import option

HOSTILE = "s\x1b[31m\x9b\u202e\x07"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("it is empty", remedy=option("sheet", "b")), 2, "it is empty; --sheet b"),
        (FileNotFoundError(2, "gone", "a.csv"), 2, "sparsegsvp: a.csv: gone"),
        (OSError(28, "Disk full", "out"), 2, "sparsegsvp: out: Disk full; make room, or choose"),
        (OSError(30, "Read-only", "out"), 2, "sparsegsvp: out: Read-only; choose a folder that"),
        (KeyboardInterrupt(), 130, "sparsegsvp: interrupted; nothing was written"),
        (ImportError("needs x"), 1, "sparsegsvp: needs x"),
        (MemoryError(), 1, "sparsegsvp: there is not enough memory"),
        # what nobody foresaw is ours, whatever its kind
        (ValueError("two\nlines"), 1, "ValueError: two lines; this is a fault of sparsegsvp"),
        (RuntimeError(HOSTILE), 1, "not of your file: SPARSEGSVP_DEBUG=1 shows where"),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_exit_codes(capsys, monkeypatch, error, code, said, debug):
    @guarded
    def command():
        raise error

    monkeypatch.setenv("SPARSEGSVP_DEBUG", str(int(debug)))
    with pytest.raises(typer.Exit) as caught:
        command()
    assert caught.value.exit_code == code
    printed = capsys.readouterr()
    assert printed.out == "" and "\x1b" not in printed.err
    assert said in printed.err
    assert ("Traceback" in printed.err) == debug
    assert debug or printed.err.count("\n") == 1


def test_help_is_fast():
    code = (
        "import sys; from sparsegsvp.cli.app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'sklearn', 'scipy', 'pandas'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in ("select", "predict", "compare", "reproduce", "demo", "app"):
        assert word in done.stdout


def test_version_and_usage(kit):
    assert kit.run("--version").stdout == f"sparsegsvp {__version__}\n"
    assert kit.run("select").exit_code == 2
    assert kit.run("evaluate").exit_code == 2


def test_no_name_moves_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    with Screen() as screen:
        screen.say(f"[bold red]{HOSTILE}[/]")
        screen.remark(HOSTILE)
        screen.progress(HOSTILE, 0, 1)
    screen.pass_on(f"sample,label\n{HOSTILE},{HOSTILE}\n")
    printed = capsys.readouterr()
    assert "[bold red]s [31m   [/]" in printed.out
    assert printed.out.splitlines()[1:] == ["sample,label", "s [31m   ,s [31m   "]
    for text in (printed.out, printed.err):
        assert not any(c in text for c in ("\x1b[31m", "\x9b", "\u202e", "\x07"))
    monkeypatch.delenv("FORCE_COLOR")
    Screen().pass_on(HOSTILE)  # a file or another program gets what there is
    assert capsys.readouterr().out == HOSTILE


def test_bars_on_a_terminal_lines_elsewhere_and_a_file_for_programs(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sparsegsvp.cli.screen._EVERY", 0.0)
    monkeypatch.setattr("sparsegsvp.cli.screen._WORTH_SAYING", 0.0)
    monkeypatch.setenv("SPARSEGSVP_PROGRESS", str(tmp_path / "p.jsonl"))
    with Screen() as plain:
        plain.progress("work", 0, 4)
        plain.progress("work", 1, 4)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "work ..." and lines[2].startswith("work: 1 of 4, about ")
    assert lines[3].startswith("work: ") and lines[3].endswith(" s")
    steps = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert steps == [{"stage": "work", "done": done, "total": 4} for done in (0, 1)]

    monkeypatch.setenv("FORCE_COLOR", "1")
    bar = Screen()
    with bar:
        bar.progress("work", 0, 4)
        bar.progress("work", 3, 4)
        assert bar.bar.tasks[0].completed == 3
        bar.progress("more work", 0, 2)
        assert bar.bar.tasks[0].description == "more work"
    assert bar.bar is None
    with pytest.raises(KeyboardInterrupt), bar, bar.stage("work"):
        assert bar.bar is not None
        raise KeyboardInterrupt
    assert bar.bar is None
