"""From what is chosen on the page to the words of a command.

The fields of the form are the options of the command line: the same names, help and defaults.
Options that are files are not among them. Files are uploaded, and no path that comes from the
browser is ever opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...io.errors import InputError, option, quote
from ..options import OPTIONS, Option, command_line, options_of

#: How careful an estimate is: what each level sets where nothing else is chosen.
CARE: dict[str, dict[str, Any]] = {
    "fast": {"fast": True},
    "usual": {},
    "paper": {"repeats": 10, "permutations": 999},
}
FILES = ("labels", "test")  # options that are files, by the name under which one is uploaded
_NOT_READ = {
    "n_features", "must", "ban", "fast", "prevalence", "panel", "floor", "folds", "repeats",
    "permutations", "random_state",
}  # fmt: skip
_LONGEST = 10_000  # characters of a text


def fields(command: str = "select") -> list[dict[str, Any]]:
    """Describe the options that a form may set: name, label, help, section, kind, many, default."""
    return [
        {"name": item.name, "label": item.label, "help": _plain(item.help), "section": item.section,
         "kind": item.kind.__name__, "many": item.many, "default": item.default}
        for item in options_of(command)
        if item.says_what and item.kind is not Path
    ]  # fmt: skip


def _plain(text: str) -> str:
    """Say a help without flags and files: in the form, options go by their labels."""
    labels = {item.flag: f"“{item.label}”" for item in OPTIONS.values()}
    text = text.replace(", or @FILE with one in each line", "").replace(" May be repeated.", "")
    return re.sub(r"--[a-z0-9-]+", lambda flag: labels.get(flag[0], flag[0]), text)


def command_words(
    command: str,
    paths: Sequence[Path | str],
    choices: Mapping[str, Any],
    files: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the words of a command, after ``sparsegsvp``, for what a form has set.

    ``paths`` are its arguments as they are called where it runs, ``choices`` values by the names of
    `fields`, which are checked, and ``files`` files by the options in `FILES`.

    Examples
    --------
    >>> from sparsegsvp.cli.web.forms import command_words
    >>> command_words("select", ["a.csv"], {"target": "class", "decimal": ","})
    ['select', 'a.csv', '--target', 'class', '--set', 'decimal=,']
    """
    known = {field["name"] for field in fields(command)}
    given: dict[str, Any] = {name: Path(path) for name, path in (files or {}).items()}
    for name, value in choices.items():
        if name not in known:
            raise InputError(f"there is no option {quote(name)}", remedy="reload the page")
        given[name] = _checked(OPTIONS[name], value)
    return command_line(command, paths, given)


def reading_options(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a preview of the table depends on, as `read_table` takes it."""
    given = {name: value for name, value in choices.items() if name not in _NOT_READ}
    for name, value in given.items():
        if OPTIONS[name].many:
            given[name] = [part.strip() for text in value for part in text.split(",")]
    return given


def explain(error: InputError) -> dict[str, Any]:
    """Say an error in the words of the form; each value that it proposes becomes an action."""
    actions: list[dict[str, Any]] = []

    def spell(name: str, value: Any) -> str:
        item = OPTIONS.get(name)
        if item is None:
            return name
        values = value if isinstance(value, list) else [value]
        shown = ", ".join("no" if v is False else str(v) for v in values if v not in (None, True))
        label = f"{item.label}: {shown}" if shown else item.label
        if value is not None and item.says_what and item.kind is not Path:
            actions.append({"option": name, "value": value, "label": label})
        return f"“{label}”"

    return {"error": error.spelled(spell), "actions": actions}


def _checked(item: Option, value: Any) -> Any:
    """Return a value from the browser, or refuse what the option does not take.

    In a list of names, the command line takes what begins with @ for a file.
    """
    kind: Any = {bool: bool, int: int, float: (int, float)}.get(item.kind, str)
    for part in value if item.many and isinstance(value, list) else [value]:
        right = isinstance(part, kind) and isinstance(part, bool) == (item.kind is bool)
        if kind is str:
            right = right and "\0" not in part and len(part) <= _LONGEST
        if not right or isinstance(value, list) != item.many:
            raise InputError(f"{quote(part)} is no value of {option(item.name)}")
        if item.many and re.search(r"(^|,)\s*@", part):
            raise InputError(f"{quote(part)} would name a file", remedy="give the names in it")
    return value
