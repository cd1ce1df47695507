"""Checks of parameters and packages, in one wording: what it must be, and what it is."""

from __future__ import annotations

import difflib
import importlib
import math
import operator
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

Choice = TypeVar("Choice")

# Largest values in a table, by the type of its numbers: the bias needs their fourth powers,
# products in float32 their second.
LARGEST = {"float32": 1e18, "float64": 1e75}


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """Return a finite number within bounds as a float, or raise ValueError.

    ``name`` is what the caller calls the parameter; ``above`` and ``below`` are excluded, ``least``
    and ``most`` included.

    Examples
    --------
    >>> from sparsegsvp._validate import check_real
    >>> check_real("q", 0.5, above=0, most=1)
    0.5
    >>> check_real("q", 2, above=0, most=1)
    Traceback (most recent call last):
        ...
    ValueError: q must be a number above 0 and at most 1, got 2
    """
    bounds = {"above": above, "of at least": least, "below": below, "at most": most}
    _check_bounds(name, value, "a number", isinstance(value, Real) and math.isfinite(value), bounds)
    return float(value)


def check_integer(
    name: str, value: Any, *, least: int | None = None, most: int | None = None
) -> int:
    """Return an integer within bounds (both included), or raise ValueError."""
    bounds: dict[str, float | None] = {"of at least": least, "at most": most}
    _check_bounds(name, value, "an integer", isinstance(value, Integral), bounds)
    return int(value)


_HOLDS = {
    "above": operator.gt,
    "of at least": operator.ge,
    "below": operator.lt,
    "at most": operator.le,
}


def _check_bounds(
    name: str, value: Any, kind: str, right: bool, bounds: Mapping[str, float | None]
) -> None:
    """Raise ValueError unless a value is of the right kind and within bounds, by their words."""
    given = {words: bound for words, bound in bounds.items() if bound is not None}
    right = right and not isinstance(value, bool)
    if not right or not all(_HOLDS[words](value, bound) for words, bound in given.items()):
        limits = " and ".join(f"{words} {bound:g}" for words, bound in given.items())
        raise ValueError(f"{name} must be {f'{kind} {limits}'.strip()}, got {value!r}")


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of the package that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("sparsegsvp."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_n_features(n_features: int, n_varying: int) -> int:
    """Return how many features to select; with a warning all that vary, if these are fewer."""
    n_features = check_integer("n_features", n_features, least=1)
    if n_features > n_varying:
        warn_caller(
            f"n_features={n_features} is more than the {n_varying} features that vary: "
            "all of them are selected"
        )
    return min(n_features, n_varying)


def warn_constant(constant: Any, names: Any = None) -> None:
    """Warn of features that are left out because they do not vary, by name or number."""
    if len(constant):
        shown = first_few(constant if names is None else [names[i] for i in constant])
        warn_caller(f"{len(constant)} constant feature(s) are left out: {shown}")


def check_choice(name: str, value: Choice, choices: Sequence[Choice]) -> Choice:
    """Return the value if it is one of the choices, or raise ValueError."""
    for choice in choices:
        # an array compares element by element, so only values of the choices' types are compared
        if type(value) is type(choice) and value == choice:
            return value
    words = [repr(choice) for choice in choices]
    among = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    raise ValueError(f"{name} must be {among}, got {value!r}")


def check_seed(value: Any, name: str = "random_state") -> int:
    """Return a seed that makes a run repeatable: a non-negative integer."""
    return check_integer(name, value, least=0)


def derive_seed(random_state: int, *keys: int) -> int:
    """Return a seed for one piece of work, independent of how the others are scheduled."""
    return int(np.random.SeedSequence([random_state, *keys]).generate_state(1)[0])


def first_few(items: Iterable[object], most: int = 5, between: str = ", ") -> str:
    """Join the first few of some words, and say how many more there are."""
    words = [str(item) for item in items]
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return between.join(words[:most]) + more


def close_names(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three of the known names that a mistyped one may stand for."""
    lowered: dict[str, str] = {}
    for candidate in known:
        lowered.setdefault(candidate.lower().strip(), candidate)
    close = difflib.get_close_matches(name.lower().strip(), list(lowered), n=3, cutoff=0.6)
    return [lowered[candidate] for candidate in close]


def one_line(text: object) -> str:
    """Replace what is not printable: line breaks, control characters, the marks of `option`."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def quote(value: object, limit: int = 40) -> str:
    """Name a value from a file: in quotes, shortened, printable."""
    text = one_line(value)
    return f"'{text}'" if len(text) <= limit else f"'{text[: limit - 1]}…'"


def shown_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name as text that can be written anywhere, whatever bytes it is of."""
    return os.fsencode(os.path.basename(path)).decode("utf-8", "replace")


def listed(values: Iterable[object], shown: int = 5, limit: int = 40) -> str:
    """Join names into ``'a', 'b' and 3 more``."""
    items = [quote(v, limit) for v in values]
    if len(items) > shown:
        items[shown:] = [f"{len(items) - shown} more"]
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part) or "none"


def counted(n: int, noun: str, verb: str = "is") -> str:
    """Return ``1 value is``, or ``3 values are``; also with "was", or without a verb."""
    several = {"is": "are", "was": "were"}
    return (f"1 {noun} {verb}" if n == 1 else f"{n} {noun}s {several.get(verb, '')}").rstrip()


def did_you_mean(name: str, candidates: Sequence[str]) -> str:
    """Ask whether one of the candidates was meant; empty if none is like the name."""
    close = close_names(name, candidates)
    return f"did you mean {' or '.join(quote(c) for c in close)}?" if close else ""


def suggestion(name: str, candidates: Sequence[str]) -> str:
    """Say which of the candidates was probably meant, or what there is."""
    return did_you_mean(name, candidates) or f"there are {listed(candidates)}"


def find_columns(
    given: Iterable[Any], names: Sequence[str] | None, n_columns: int = 0
) -> tuple[list[int], list[Any]]:
    """Return the places of columns given by name or number, and what is given of no column.

    ``names`` are those of the columns, where they have any; ``n_columns`` is how many may be given
    by number, from 0, by default none.
    """
    places = {name: place for place, name in enumerate(names or ())}
    numbers, found, absent = range(n_columns), [], []
    for item in given:
        if isinstance(item, str) and item in places:
            found.append(places[item])
        elif isinstance(item, Integral) and not isinstance(item, bool) and int(item) in numbers:
            found.append(int(item))
        else:
            absent.append(item)
    return found, absent


def need(module: str, extra: str) -> Any:
    """Import an optional module, or name the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{module.partition(".")[0]} is needed here: pip install "sparsegsvp[{extra}]"'
        ) from error


def refuse_dask(X: Any) -> None:
    """Raise TypeError for a Dask table where NumPy would gather it in silence."""
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            "a Dask table would be gathered in memory: call compute() on it if it fits, or take a "
            "sample of its rows. GSVPSVM, GSVPSVMCV and LqGSVPSVM fit it chunk by chunk"
        )


def forget_fit(estimator: Any) -> None:
    """Take from an estimator what an earlier fit has set.

    A fit begins with it: one that is refused half way leaves an estimator that is not fitted, and
    not one with the labels or names of one table and the planes of another.
    """
    for name in list(vars(estimator)):
        if name.endswith("_") and name[0] != "_":
            delattr(estimator, name)
