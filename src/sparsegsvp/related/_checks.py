"""Checks of parameters: each names the parameter and what it takes."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_real(
    name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False
) -> None:
    """Raise ValueError unless ``value`` is a finite number in [low, high], or (low, high].

    Examples
    --------
    >>> check_real("delta", -1.0, 0, open_low=True)
    Traceback (most recent call last):
        ...
    ValueError: delta must be a finite number > 0, got -1.0.
    """
    fine = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value))
    if not fine or not low <= value <= high or (open_low and value == low):
        upper = "" if high == np.inf else f" and <= {high:g}"
        raise ValueError(
            f"{name} must be a finite number {'>' if open_low else '>='} {low:g}{upper}, "
            f"got {value!r}."
        )


def pair_of(name: str, value: Any) -> tuple[float, float]:
    """Return a number twice, or a pair as it is.

    Examples
    --------
    >>> pair_of("delta", 0.5)
    (0.5, 0.5)
    """
    values: NDArray[Any] = np.atleast_1d(np.asarray(value))
    if values.shape == (1,):
        return values[0].item(), values[0].item()
    if values.shape == (2,):
        return values[0].item(), values[1].item()
    raise ValueError(f"{name} must be a number or a pair of numbers, got {value!r}.")


def check_count(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is an integer of at least 1.

    Examples
    --------
    >>> check_count("max_iter", 0)
    Traceback (most recent call last):
        ...
    ValueError: max_iter must be an integer of at least 1, got 0.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
