"""Options declared once: flags, help, the line that repeats a run, the spelling in errors."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.main import get_command

from sparsegsvp import select_panel
from sparsegsvp.cli.app import app
from sparsegsvp.cli.options import COMMANDS, OPTIONS, RARE, command_line, flag, options_of
from sparsegsvp.io import read_table

PARSERS = get_command(app).commands


def parsed(words):
    """The options that a command would be called with, those of ``--set`` read."""
    from sparsegsvp.cli.options import _settings

    command = PARSERS[words[0]]
    context = command.make_context(words[0], list(words[1:]))
    found = {n: list(v) or None if isinstance(v, tuple) else v for n, v in context.params.items()}
    rare = {item.name: item for item in options_of(words[0]) if item.section == RARE}
    return found | _settings(found.pop("settings", None) or (), rare)


def test_there_are_few_and_the_everyday_ones_come_first(kit):
    assert list(PARSERS) == ["select", "predict", "compare", "reproduce", "demo", "app"]
    flags = [p for p in PARSERS["select"].params if p.param_type_name == "option"]
    assert len(flags) + 1 <= 24  # and --help
    shown = kit.run("select", "--help").stdout
    order = ["--target", "--n-features", "--must", "--out", "--group", "--labels", "--seed"]
    places = [shown.index(name) for name in order]
    assert places == sorted(places)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(kit, name):
    result = kit.run(name, "--help")
    assert result.exit_code == 0 and f"Example: sparsegsvp {name}" in result.stdout


_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("C",)), min_size=1, max_size=12
).filter(lambda text: text.strip() == text and not text.startswith("-"))
_VALUES = {
    str: _TEXT,
    int: st.integers(1, 10**6),
    float: st.floats(1e-6, 1e6),
    bool: st.booleans(),
    Path: st.sampled_from([Path("a b.csv"), Path("dir/it's.csv")]),
}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_line_that_repeats_a_run_says_the_same(data):
    """Through the shell and back, whatever the names of columns and files."""
    item = {}
    for option in options_of("select"):
        if data.draw(st.booleans()):
            value = data.draw(_VALUES[option.kind])
            item[option.name] = [value, value] if option.many else value
    line = shlex.join(["sparsegsvp", *command_line("select", ["-a b.csv"], item)])
    found = parsed(shlex.split(line)[1:])
    assert found["table"] == Path("./-a b.csv")
    for option in options_of("select"):
        assert found[option.name] == item.get(option.name, option.default), option.name


def test_options_are_parameters_of_the_library_with_the_same_defaults():
    known = {
        **inspect.signature(read_table).parameters,
        **inspect.signature(select_panel).parameters,
    }
    for option in options_of("select"):
        name = {"group": "groups"}.get(option.name, option.name)
        if option.says_what:
            none_or_same = (None, ()) if option.many else (option.default,)
            assert known[name].default in none_or_same, name


def test_errors_spell_parameters_as_options():
    assert flag("n_features", 3) == "--n-features 3" and flag("groups") == "--group"
    assert flag("random_state") == "--seed" and flag("keep", "a b") == "--set 'keep=a b'"
    assert flag("transpose", False) == "--set transpose=no"
    assert flag("drop", ["a", "b"]) == "--drop a --drop b"
    assert all(flag(name).startswith("--") for name in OPTIONS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "folds"], "'folds' is no NAME=VALUE (--set)"),
        (["--set", "fodls=3"], "there is no 'fodls' (--set); did you mean 'folds'?"),
        (["--set", "folds=three"], "--set folds is 'three'; give a number"),
        (["--set", "transpose=perhaps"], "give yes or no"),
        (["--set", "folds=3", "--set", "folds=4"], "--set folds is given twice"),
        (["--seed", "1", "--seed", "2"], "2 times"),
        (["-t", "y", "--target", "z"], "2 times"),
    ],
)
def test_options_that_make_no_sense(kit, words, said):
    result = kit.run("select", "a.csv", *words)
    assert result.exit_code == 2 and said in " ".join(result.stderr.split())
