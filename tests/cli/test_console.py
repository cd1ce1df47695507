"""Exit codes, help, and what is shown where."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import typer

from sparsegsvp import __version__
from sparsegsvp.cli.app import guarded
from sparsegsvp.cli.screen import Screen
from sparsegsvp.io import InputError


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("a.csv is empty"), 2, "sparsegsvp: a.csv is empty"),
        (ValueError("two\nlines"), 2, "sparsegsvp: two lines"),
        (FileNotFoundError("gone"), 2, "sparsegsvp: gone"),
        (OSError(28, "Disk full", "out"), 2, "sparsegsvp: out: Disk full; make room on the disk"),
        (OSError(30, "Read-only", "out"), 2, "sparsegsvp: out: Read-only; choose a folder that"),
        (KeyboardInterrupt(), 130, "sparsegsvp: interrupted; nothing was written"),
        (ImportError("needs x"), 1, "sparsegsvp: needs x"),
        (MemoryError(), 1, "sparsegsvp: there is not enough memory"),
        (RuntimeError("odd"), 1, "sparsegsvp: RuntimeError: odd; --debug shows where"),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_exit_codes(capsys, error, code, said, debug):
    @guarded
    def command(debug=False):
        raise error

    with pytest.raises(typer.Exit) as caught:
        command(debug=debug)
    assert caught.value.exit_code == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert ("Traceback" in printed.err) == debug
    assert debug or printed.err.count("\n") == 1


def test_help_reads_well_and_fast():
    code = (
        "import sys; from sparsegsvp.cli.app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "assert 'sklearn' not in sys.modules and 'scipy' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for word in ("select", "predict", "evaluate", "compare", "reproduce", "demo"):
        assert word in done.stdout


@pytest.mark.parametrize(
    "command", ["select", "predict", "evaluate", "compare", "reproduce", "demo"]
)
def test_every_command_has_help(kit, command):
    result = kit.run(command, "--help")
    assert result.exit_code == 0
    for word in ("--quiet", "--json", "--debug"):
        assert word in result.stdout


def test_version_and_usage(kit):
    assert kit.run("--version").stdout == f"sparsegsvp {__version__}\n"
    assert kit.run("select").exit_code == 2
    assert kit.run("slect").exit_code == 2


def test_names_are_never_markup(capsys):
    screen = Screen()
    screen.say("[bold red]a[/] \x1b[31m")
    assert capsys.readouterr().out == "[bold red]a[/]  [31m\n"
    Screen(quiet=True).say("nothing")
    Screen(as_json=True).say("nothing")
    Screen(as_json=True).give({"a": None})
    assert capsys.readouterr().out == '{\n "a": null\n}\n'


HOSTILE = "s\x1b[31m\x9b\u202e\x07"


def test_no_name_moves_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    screen = Screen()
    with screen:
        screen.say(HOSTILE)
        screen.remark(HOSTILE)
        screen.progress(HOSTILE, 0, 1)
    screen.pass_on(f"sample,label\n{HOSTILE},{HOSTILE}\n")
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1:] == ["sample,label", "s [31m   ,s [31m   "]
    for text in (printed.out, printed.err):
        assert not any(c in text for c in ("\x1b[31m", "\x9b", "\u202e", "\x07"))
    monkeypatch.delenv("FORCE_COLOR")
    Screen().pass_on(HOSTILE)  # a file or another program gets what there is
    assert capsys.readouterr().out == HOSTILE


def test_errors_of_libraries_are_shown_without_escapes(capsys):
    @guarded
    def command(debug=False):
        raise RuntimeError(HOSTILE)

    with pytest.raises(typer.Exit):
        command(debug=True)
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_terminal_that_knows_only_ascii(tmp_path, kit, as_json):
    X, labels, names = kit.planted()
    names[1] = "β-actin"
    labels = ["gesünd" if label == "well" else label for label in labels]
    path = kit.write_table(tmp_path / "table.csv", X, labels, names)
    path = path.rename(os.fsdecode(os.path.join(os.fsencode(tmp_path), b"caf\xe9.csv")))
    words = ["select", str(path), "-t", "class", "--id", "sample", *kit.fast]
    words += ["--out", str(tmp_path / "out")] + (["--json"] if as_json else [])
    done = subprocess.run(
        [sys.executable, "-m", "sparsegsvp.cli", *words],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    if as_json:
        assert json.loads(text)["classes"] == ["gesünd", "ill"]
    else:
        assert "ges\\xfcnd" in text
    for file in (tmp_path / "out").iterdir():
        if file.suffix not in (".skops", ".xlsx"):
            file.read_text(encoding="utf-8")


def test_a_log_among_the_results_is_refused_at_once(table, tmp_path, kit):
    words = ["select", table, "-t", "class", "--id", "sample", *kit.fast, "--out", tmp_path / "out"]
    result = kit.run(*words, "--log", tmp_path / "out" / "deep" / "log.jsonl")
    assert result.exit_code == 2
    assert "(--log) lies in the folder for the results (--out)" in result.stderr
    assert not (tmp_path / "out").exists()


def test_bars_on_a_terminal_and_lines_elsewhere(capsys, monkeypatch):
    plain = Screen()
    monkeypatch.setattr("sparsegsvp.cli.screen._EVERY", 0.0)
    monkeypatch.setattr("sparsegsvp.cli.screen._WORTH_SAYING", 0.0)
    with plain:
        plain.progress("work", 0, 4)
        plain.progress("work", 1, 4)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "work ..."
    assert lines[2].startswith("work: 1 of 4, about ")
    assert lines[3].startswith("work: ") and lines[3].endswith(" s")

    monkeypatch.setenv("FORCE_COLOR", "1")
    bar = Screen()
    with bar:
        bar.progress("work", 0, 4)
        assert bar.bar is not None
        bar.progress("work", 3, 4)
        assert bar.bar.tasks[0].completed == 3
        bar.progress("more work", 0, 2)
        assert bar.bar.tasks[0].description == "more work"
    assert bar.bar is None
    with pytest.raises(KeyboardInterrupt), bar, bar.stage("work"):
        assert bar.bar is not None
        raise KeyboardInterrupt
    assert bar.bar is None


def test_what_an_earlier_run_did_takes_no_part_in_the_estimate(capsys, monkeypatch):
    clock = iter([100.0, 100.0, 130.0, 130.0, 160.0, 160.0])
    monkeypatch.setattr("sparsegsvp.cli.screen.time.perf_counter", lambda: next(clock, 160.0))
    with Screen() as screen:
        screen.progress("work", 90, 100)  # resumed
        screen.progress("work", 95, 100)  # five in 30 seconds: as long again for the rest
    assert "work: 95 of 100, about 30 s left" in capsys.readouterr().err
