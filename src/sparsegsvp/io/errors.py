"""`InputError`, whose parameters the command line spells as flags, and `guarded` for libraries."""

from __future__ import annotations

import json
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from .._validate import one_line

# Private-use characters mark parameters. They are not printable, so `one_line` takes them out of
# any text of a file: only `option` can put them into a message.
_OPEN, _BETWEEN, _CLOSE = "\ue000", "\ue001", "\ue002"
_OPTION = re.compile(f"{_OPEN}([a-z][a-z0-9_]*)(?:{_BETWEEN}([^{_OPEN}-{_CLOSE}]*))?{_CLOSE}")
_DEFECTS = (AssertionError, AttributeError, IndexError, KeyError, NameError, TypeError)


class InputError(ValueError):
    """A file, a column or a value that cannot be used, said in one line.

    Parameters
    ----------
    what, where, remedy : str
        What is wrong; the file, line or column; what to do about it. Text of a file goes into them
        by `quote` or `one_line`, parameters by `option`.

    Examples
    --------
    >>> from sparsegsvp.io import InputError
    >>> print(InputError("no column 'Class'", "a.csv", "try 'class'"))
    a.csv: no column 'Class'; try 'class'
    """

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def spelled(self, spell: Callable[[str, Any], str]) -> str:
        """Return the message with its parameters written by ``spell(name, value)``."""
        # a file's name may hold any character, marks among them
        message = f"{one_line(self.where)}: {self.what}" if self.where else self.what
        return one_line(spelled(f"{message}; {self.remedy}" if self.remedy else message, spell))

    def __str__(self) -> str:
        return self.spelled(lambda name, value: name if value is None else f"{name}={value!r}")


@contextmanager
def locating(name: str) -> Iterator[None]:
    """Put the name of a file before the place that an `InputError` of the block names."""
    try:
        yield
    except InputError as error:
        error.where = ", ".join(part for part in (name, error.where) if part)
        raise


@contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """Name a file in what the system refuses in a block: a write that fails does not."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def option(name: str, value: Any = None) -> str:
    """Refer to a parameter, and to the value a message proposes, which may come from a file."""
    # JSON in ASCII: whatever the value holds, no mark is among it; what is long is not proposed
    text = "" if value is None else _BETWEEN + json.dumps(value)
    return f"{_OPEN}{name}{text if len(text) <= 300 else ''}{_CLOSE}"


def spelled(text: str, spell: Callable[[str, Any], str]) -> str:
    """Write the parameters that `option` marked in a text by ``spell(name, value)``."""
    return _OPTION.sub(lambda m: spell(m[1], None if m[2] is None else json.loads(m[2])), text)


@contextmanager
def guarded(kind: str) -> Iterator[None]:
    """Turn what a library raises while it reads into an `InputError`; what is ours passes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (InputError, ImportError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of a Rust library is no Exception
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        where = str(frame.f_globals.get("__name__"))
        if isinstance(error, _DEFECTS) and where.startswith(__name__.partition(".")[0]):
            raise
        said = f"{type(error).__name__}: {one_line(error).strip()[:100]}".removesuffix(": ")
        what, remedy = f"damaged, or not {kind} ({said})", "copy or save it again"
        if isinstance(error, MemoryError):
            what, remedy = "larger than there is more memory for", "read it on a larger machine"
        elif isinstance(error, OSError) and error.errno:
            what, remedy = f"not to be read ({error.strerror})", "check the path, and whose it is"
        raise InputError(f"it is {what}", remedy=remedy) from error
