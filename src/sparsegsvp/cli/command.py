"""Commands made of functions that take groups of options, and options spelled as text.

`command` makes a command of a function, which gets its options as `Groups`; `spell` writes the
command that repeats a run, and `flag` gives the spelling of a parameter in errors.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

from typer.models import OptionInfo

from .options import GROUPS, Showing

Group = TypeVar("Group")
EMPTY = inspect.Parameter.empty


class Option(NamedTuple):
    """A field of a group; its default is `EMPTY` where it must be given."""

    name: str
    type: Any
    default: Any
    info: OptionInfo
    flags: tuple[str, ...]


@functools.cache
def options_of(group: Any) -> tuple[Option, ...]:
    """Return the options of a group, in the order of its fields."""
    types = get_type_hints(group)
    found = []
    for field in dataclasses.fields(group):
        default = EMPTY if field.default is dataclasses.MISSING else field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        info, flags = field.metadata["option"], field.metadata["flags"]
        found.append(Option(field.name, types[field.name], default, info, flags))
    return tuple(found)


@functools.cache
def _spellings() -> dict[str, list[str]]:
    """Return the long flags that are not the field's name with dashes; the second says no."""
    found = {}
    for group in GROUPS:
        for option in options_of(group):
            parts = [part for flag in option.flags for part in flag.split("/")]
            if parts:
                found[option.name] = [part for part in parts if part.startswith("--")]
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
        for option in options_of(group.__class__):
            value = getattr(group, option.name)
            if value != option.default and value is not None and value != []:
                yield option.name, value


class Groups:
    """The groups of a command as they were given, found by their types."""

    def __init__(self, *groups: Any) -> None:
        self._groups = {type(group): group for group in groups}

    def __getitem__(self, kind: type[Group]) -> Group:
        found: Group = self._groups[kind]
        return found

    def __contains__(self, kind: type) -> bool:
        return kind in self._groups

    def values(self, *kinds: type) -> dict[str, Any]:
        """Return the values of some of the groups by the names that the library gives them."""
        return values(*(self._groups[kind] for kind in kinds))

    def asked(self) -> list[Any]:
        """Return the groups that say what is done: all but what is shown."""
        return [group for kind, group in self._groups.items() if kind is not Showing]


# What changes no result is not part of the command that repeats it.
_WITHOUT_EFFECT = {"n_jobs", "log", "resume"}


def spell(name: str, path: Path | None, *groups: Any, **more: Any) -> str:
    """Write the command that repeats a run: only what differs from the defaults."""
    words = ["sparsegsvp", name]
    if path is not None:  # a name that begins with a dash would be taken for an option
        words.append(f"./{path}" if str(path).startswith("-") else str(path))
    options = [*changed(*groups), *((k, v) for k, v in more.items() if v not in (None, False))]
    for option, value in options:
        if option in _WITHOUT_EFFECT:
            continue
        if isinstance(value, bool):
            words.append(flag(option, value))
            continue
        for item in value if isinstance(value, list | tuple) else [value]:
            words += [flag(option), _number(item) if isinstance(item, float) else str(item)]
    return shlex.join(words)


def _number(value: float) -> str:
    """Write a number as briefly as it can be without being another one."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def command(*kinds: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function: the options of some groups, and the function's own.

    The function takes the groups first, as `Groups`, and its own options after them, of which the
    help shows those that must be given first.
    """
    options = [option for kind in kinds for option in options_of(kind)]

    def make(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        parameters = [
            *((p.name, hints[p.name], p.default) for p in own if p.default is EMPTY),
            *((o.name, Annotated[o.type, o.info], o.default) for o in options),
            *((p.name, hints[p.name], p.default) for p in own if p.default is not EMPTY),
        ]

        @functools.wraps(function)
        def run(**given: Any) -> None:
            groups = [
                kind(**{option.name: given.pop(option.name) for option in options_of(kind)})
                for kind in kinds
            ]
            function(Groups(*groups), **given)

        made = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for name, kind, default in parameters
        ]
        run.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in made}
        return run

    return make
