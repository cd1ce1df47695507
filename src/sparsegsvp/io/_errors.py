"""The one error of this package that a person without Python has to understand."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

SHOWN = 5  # names listed in a sentence before "and n more"


class InputError(ValueError):
    """A file, a column or a value that cannot be used, said in one line.

    Parameters
    ----------
    what : str
        What is wrong.
    where : str, default=""
        The file, and the line or column if known.
    remedy : str, default=""
        What to do about it.

    Examples
    --------
    >>> from sparsegsvp.io import InputError
    >>> print(InputError("there is no column 'Class'", where="a.csv", remedy="try --target class"))
    a.csv: there is no column 'Class'; try --target class
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        message = f"{where}: {what}" if where else what
        if remedy:
            message = f"{message}; {remedy}"
        super().__init__(one_line(message))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.what, self.where, self.remedy)


def _rebuild(what: str, where: str, remedy: str) -> InputError:
    return InputError(what, where=where, remedy=remedy)


def one_line(text: str) -> str:
    """Replace line breaks and control characters: what comes from a file may hold any."""
    return "".join(c if c.isprintable() else " " for c in text)


def quote(value: object, limit: int = 40) -> str:
    """Name a value from a file: in quotes, shortened, printable."""
    text = one_line(str(value))
    return f"'{text}'" if len(text) <= limit else f"'{text[: limit - 1]}…'"


def listed(values: Iterable[object], shown: int = SHOWN, limit: int = 40) -> str:
    """Join names into ``'a', 'b' and 3 more``."""
    items = [quote(v, limit) for v in values]
    if len(items) == 1:
        return items[0]
    if len(items) <= shown:
        return ", ".join(items[:-1]) + f" and {items[-1]}"
    return ", ".join(items[:shown]) + f" and {len(items) - shown} more"


def suggestion(name: str, candidates: Sequence[str]) -> str:
    """Say which of the candidates was probably meant, or what there is."""
    lowered: dict[str, str] = {}
    for candidate in candidates:
        lowered.setdefault(candidate.lower().strip(), candidate)
    close = difflib.get_close_matches(name.lower().strip(), list(lowered), n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(quote(lowered[c]) for c in close)}?"
    return f"there are {listed(candidates)}" if candidates else "there are none"
