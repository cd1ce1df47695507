"""From what is chosen on the page to the words of a command.

The fields of the form are the options of the command line: the same names, help and defaults.
Options that are files are not among them. Files are uploaded, and no path that comes from the
browser is ever opened.
"""

from __future__ import annotations

import shlex
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from ...io.errors import InputError
from ..command import EMPTY, options_of, spell
from ..options import SELECTING, Columns

# Options that are files, by the name under which a file is uploaded.
FILES = ("labels", "test", "test_labels", "costs")
_OWN = {"n_jobs"}  # the server's to decide
# where a word that begins with @ names a file
_LISTS_OR_FILES = {"must", "ban", "panel", "adjust", "categorical"}
_LONGEST = 10_000  # characters of a text, words of a list


def fields() -> list[dict[str, Any]]:
    """Describe the options that the page may set: name, help, kind, default and section."""
    found = []
    for option in (option for group in SELECTING for option in options_of(group)):
        kind, many = _kind(option.type)
        if kind is Path or option.name in _OWN:
            continue
        found.append(
            {
                "name": option.name,
                "help": option.info.help,
                "section": option.info.rich_help_panel,
                "kind": kind.__name__,
                "many": many,
                "default": None if option.default is EMPTY else option.default,
            }
        )
    return found


def command_words(
    command: str, path: str, choices: Mapping[str, Any], files: Mapping[str, str], **more: Any
) -> list[str]:
    """Return the words of a command, after ``sparsegsvp``, for what was chosen.

    ``choices`` are values by the names of options, ``files`` uploaded files by the same; ``path``
    is the table, as they are in the folder where the command runs. ``more`` are further options
    that the server sets.

    Examples
    --------
    >>> from sparsegsvp.cli.web.forms import command_words
    >>> command_words("select", "a.csv", {"target": "class", "n_features": 4}, {}, fast=True)
    ['select', 'a.csv', '--target', 'class', '--n-features', '4', '--fast']
    """
    known = {field["name"] for field in fields()}
    strange = sorted(set(choices) - known)
    if strange:
        raise InputError(f"there is no option {strange[0]!r}", remedy="reload the page")
    groups = []
    for group in SELECTING:
        given: dict[str, Any] = {}
        for option in options_of(group):
            if option.name in files:
                given[option.name] = Path(files[option.name])
            elif choices.get(option.name) not in (None, "", []):
                kind, many = _kind(option.type)
                given[option.name] = _value(option.name, choices[option.name], kind, many)
        if group is Columns and "target" not in given:
            raise InputError("no column of labels is chosen", remedy="choose one")
        groups.append(group(**given))
    return shlex.split(spell(command, Path(path), *groups, **more))[1:]


def _kind(annotation: Any) -> tuple[type, bool]:
    """Return the type of an option's value, and whether it takes several."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is list:
        return typing.cast("type", get_args(annotation)[0]), True
    return annotation, False


def _value(name: str, value: Any, kind: type, many: bool) -> Any:
    """Check a value from the browser, and return it as the option takes it."""
    if many:
        if not isinstance(value, list) or len(value) > _LONGEST:
            raise InputError(f"{name} takes a list", remedy="reload the page")
        return [_value(name, item, kind, False) for item in value]
    if kind is bool:
        right = isinstance(value, bool)
    elif kind in (int, float):
        right = isinstance(value, int | float) and not isinstance(value, bool)
        right = right and (kind is float or value == int(value))
    else:
        right = isinstance(value, str) and "\0" not in value and len(value) <= _LONGEST
    if not right:
        raise InputError(f"{value!r} is no value of {name}", remedy="correct it")
    if name in _LISTS_OR_FILES and value.startswith("@"):
        raise InputError(f"{value!r} would name a file", remedy="give the names themselves")
    return kind(value)
