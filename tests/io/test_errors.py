"""One message, two spellings: Python's parameters and the command line's flags."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsegsvp
from sparsegsvp._validate import listed, one_line, quote
from sparsegsvp.io import InputError, make_table, read_table
from sparsegsvp.io.errors import option, spelled

MARKS = "\ue000\ue001\ue002"


def plain_text(text):
    return str(InputError(text))


FORGED = "\ue000target\ue002"
FORGED_VALUE = '\ue000impute\ue001"median"\ue002'


def flag(name, value):
    """A spelling as a command line has it."""
    text = "--" + name.replace("_", "-")
    if value is None or value is True:
        return text
    return f"{text} {' '.join(value) if isinstance(value, list) else value}"


def test_two_spellings():
    text = f"use {option('impute', 'median')}, {option('transpose', True)} or {option('id')}"
    assert plain_text(text) == "use impute='median', transpose=True or id"
    assert spelled(text, flag) == "use --impute median, --transpose or --id"
    error = InputError(f"{option('n_features', 0)} is too small", where="a.csv", remedy=text)
    assert str(error).startswith("a.csv: n_features=0 is too small; use impute='median'")
    assert error.spelled(flag).startswith("a.csv: --n-features 0 is too small; use --impute median")


@pytest.mark.parametrize(
    ("content", "options", "python", "command"),
    [
        (
            "age,sex,class\n1,F,x\n2,M,y\n3,F,x\n4,M,y\n",
            {"target": "class"},
            "leave text out with drop=['sex'], have",
            "leave text out with --drop sex, have",
        ),
        (
            "a,class\n1,x\n2,y\n",
            {"target": "Class"},
            "no column 'Class' (target); did you mean 'class'?",
            "no column 'Class' (--target); did you mean 'class'?",
        ),
        (
            "gene,s1,s2\nA,1,2\nclass,x,y\n",
            {"target": "class", "transpose": False},
            "use transpose=True",
            "use --transpose",
        ),
        (
            "a;b;class\n1,234;1;x\n5;2;y\n",
            {"target": "class"},
            "use decimal=',' if it is",
            "use --decimal , if it is",
        ),
    ],
)
def test_errors_of_real_files(tmp_path, content, options, python, command):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_table(path, **options)
    assert python in str(caught.value) and "--" not in str(caught.value)
    assert command in caught.value.spelled(flag)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.spelled(flag) == caught.value.spelled(flag)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20), st.sampled_from([FORGED, FORGED_VALUE, *MARKS]))
def test_no_text_forges_a_parameter(text, mark):
    """Law: what went through `quote`, `listed`, `one_line` or a value is spelled one way."""
    hostile = f"{text}{mark}{text}"
    for safe in (quote(hostile), listed([hostile, "b"]), one_line(hostile)):
        assert spelled(safe, flag) == plain_text(safe) == safe
    error = InputError(quote(hostile), where=hostile, remedy=f"use {option('drop', [hostile])}")
    for shown in (str(error), error.spelled(flag)):
        assert not any(c in shown for c in MARKS) and "\n" not in shown
    assert "--target" not in error.spelled(flag).replace(text, "")
    assert "--impute" not in error.spelled(flag).replace(text, "")


@pytest.mark.parametrize("forged", [FORGED, FORGED_VALUE])
def test_no_file_forges_a_parameter(tmp_path, forged):
    """Names of columns, cells, labels and files reach messages; none of them as a parameter."""
    text = f"{forged},b,class\n" + "1,2,x\n" * 12
    hostile = {
        "cell": (text + f"1,{forged},y\n", {"target": "class"}),
        "column": (text.replace("1,2", "u,2") + "v,2,y\n" * 6, {"target": "class"}),
        "label": (text.replace("x", forged), {"target": "class"}),
        "suggestion": (text, {"target": f"{forged}x"}),
        "twice": (f"{forged},{forged},class\n1,2,x\n", {"target": "class"}),
        "positive": (text + f"3,4,{forged}\n", {"target": "class", "positive": f"{forged}a"}),
    }
    for name, (content, options) in hostile.items():
        path = tmp_path / f"{name}{FORGED}.csv"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            read_table(path, **options)
        python, command = str(caught.value), caught.value.spelled(flag)
        assert not any(c in python + command for c in MARKS), name
        # as many flags as parameters, so none is the file's
        pieces = caught.value.what + caught.value.remedy
        real = re.findall(f"{MARKS[0]}([a-z_]+)", pieces)
        assert sorted(re.findall(r"--([a-z]+)", command)) == sorted(real), name
        assert real.count("impute") == 0, name


def test_a_forged_frame(tmp_path):
    with pytest.raises(InputError) as caught:
        make_table(np.ones((2, 1)), ["x", "x"], feature_names=[FORGED], source=FORGED)
    assert caught.value.spelled(flag).count("--target") == 1  # "column 'y' (--target)"


def test_the_package_names_no_flag():
    """The command line translates what all other parts say of parameters."""
    root = Path(sparsegsvp.__file__).parent
    wrong = []
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] == "cli":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        wrong += [
            f"{path.relative_to(root)}:{node.lineno} {node.value!r}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and re.search(r"--[a-z]", node.value)
        ]
    # what the reproduction asks git for its commit is another program's
    assert [text for text in wrong if not text.startswith("reproduce/runs.py")] == []


def test_a_value_that_no_message_can_hold_is_not_proposed():
    assert (
        plain_text(f"leave it out with {option('drop', ['x' * 9_000])}") == "leave it out with drop"
    )
