"""Commands made of functions that take groups of options, and options spelled as text.

`command` makes a command of a function that takes groups, `spell` writes the command that repeats
a run, and `flag` gives the spelling of a parameter in errors.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from .options import GROUPS, Showing


class Groups(tuple[Any, ...]):
    """The groups of a command but for what it shows, in the order of its parameters."""


def _flags(annotation: Any) -> list[str]:
    option = get_args(annotation)[1]
    # typer takes the first flag for a default until it meets the function
    words = [option.default, *(option.param_decls or ())]
    parts = [part for word in words if isinstance(word, str) for part in word.split("/")]
    return [part for part in parts if part.startswith("--")]


@functools.cache
def _spellings() -> dict[str, list[str]]:
    """Return the flags that are not the field's name with dashes; the second says no."""
    found = {}
    for group in GROUPS:
        for name, annotation in get_type_hints(group, include_extras=True).items():
            if _flags(annotation):
                found[name] = _flags(annotation)
    return found


def flag(name: str, value: Any = None) -> str:
    """Spell a parameter of the library as the option of this command line.

    Examples
    --------
    >>> from sparsegsvp.cli.command import flag
    >>> flag("n_deltas"), flag("impute", "median"), flag("transpose", False)
    ('--deltas', '--impute median', '--no-transpose')
    """
    word, *no = _spellings().get(name, ["--" + name.replace("_", "-")])
    if value is None or value is True:
        return word
    if value is False and no:
        return no[0]
    items = value if isinstance(value, list | tuple) else [value]
    return " ".join(f"{word} {shlex.quote(str(item))}" for item in items)


def values(*groups: Any) -> dict[str, Any]:
    """Return the values of some groups by the names that the library gives them."""
    return {f.name: getattr(g, f.name) for g in groups for f in dataclasses.fields(g)}


def changed(*groups: Any) -> Iterator[tuple[str, Any]]:
    """Yield the options of some groups that are not at their defaults."""
    for group in groups:
        for f in dataclasses.fields(group):
            value = getattr(group, f.name)
            default = f.default
            if f.default_factory is not dataclasses.MISSING:
                default = f.default_factory()
            if value != default and value is not None and value != []:
                yield f.name, value


# What changes no result is not part of the command that repeats it.
_WITHOUT_EFFECT = {"n_jobs", "log", "resume"}


def spell(name: str, path: Path | None, *groups: Any, **more: Any) -> str:
    """Write the command that repeats a run: only what differs from the defaults."""
    words = ["sparsegsvp", name] + ([] if path is None else [str(path)])
    options = [*changed(*groups), *((k, v) for k, v in more.items() if v not in (None, False))]
    for option, value in options:
        if option in _WITHOUT_EFFECT:
            continue
        if isinstance(value, bool):
            words.append(flag(option, value))
            continue
        for item in value if isinstance(value, list | tuple) else [value]:
            words += [flag(option), f"{item:g}" if isinstance(item, float) else str(item)]
    return shlex.join(words)


def refuse_repeats(command: Any, context: Any, args: list[str]) -> None:
    """Refuse an option that takes one value and is given twice, since the last would win."""
    given = command.make_parser(context).parse_args(args=list(args))[2]
    counts = Counter(id(parameter) for parameter in given)
    for parameter in given:
        single = parameter.param_type_name == "option" and not parameter.multiple
        if single and counts[id(parameter)] > 1:
            raise typer.BadParameter(
                f"it is given {counts[id(parameter)]} times and takes one value: give it once.",
                ctx=context,
                param=parameter,
            )


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function: a parameter that is a group becomes its options.

    A parameter of type `Groups` is no option: `command` fills it in.
    """
    hints = get_type_hints(function, include_extras=True)
    required: list[inspect.Parameter] = []
    optional: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    whole = next((name for name, kind in hints.items() if kind is Groups), None)
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if kind is Groups:
            continue
        fields = [(parameter.replace(annotation=kind), parameter.default)]
        if dataclasses.is_dataclass(kind):
            groups[name] = kind
            inner = get_type_hints(kind, include_extras=True)
            fields = [
                (_parameter(f.name, inner[f.name]), _default(f)) for f in dataclasses.fields(kind)
            ]
        for made, default in fields:
            made = made.replace(default=default, kind=inspect.Parameter.KEYWORD_ONLY)
            (required if default is inspect.Parameter.empty else optional).append(made)

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in dataclasses.fields(kind)})
        if whole is not None:
            asked = [name for name, kind in groups.items() if kind is not Showing]
            given[whole] = Groups(given[name] for name in asked)
        function(**given)

    parameters = [*required, *optional]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
