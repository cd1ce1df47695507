r"""Separable concave penalties :math:`\sum_f l_f\, p(|w_f|)`.

A penalty is its value, slope and curvature as functions of t = |w_f|, which is in [0, 1]. The
solver majorises p by its tangent, so every step is a weighted l1 problem and zeros are exact. To
add one, write a class like `Lq`; nothing else in the package depends on which it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._typing import Float64Array
from .._validate import check_real

#: Values of q and eps where nothing else is asked for.
DEFAULTS = {"q": 1.0, "eps": 1e-3}


class Penalty(Protocol):
    """A concave p with p(0) = 0 that does not fall and has a finite, positive slope at 0.

    It may level off (as the capped penalties MCP and SCAD do), and its curvature may jump. With
    any of these the solver ends at a certified stationary point and never raises the objective.
    Only for a linear p is that point nearly always the same whichever way it is reached: a
    concave one makes several, and working sets and the solve over all features may end in
    different ones, whose objectives differ little.
    """

    def value(self, t: Float64Array) -> Float64Array:
        """p(t), elementwise."""
        ...

    def slope(self, t: Float64Array) -> Float64Array:
        """p'(t), elementwise: the weight of the tangent l1 term."""
        ...

    def curvature(self, t: Float64Array) -> Float64Array:
        """p''(t) <= 0, elementwise."""
        ...

    @property
    def linear(self) -> bool:
        """Whether p(t) = t, so that the problem is its own tangent problem."""
        ...


@dataclass(frozen=True)
class L1:
    """The l1 penalty, p(t) = t.

    Examples
    --------
    >>> from sparsegsvp.solvers import L1
    >>> L1().value(0.25)
    0.25
    """

    @property
    def q(self) -> float:
        """The exponent, 1."""
        return 1.0

    def value(self, t: Float64Array) -> Float64Array:
        """p(t), elementwise."""
        return t

    def slope(self, t: Float64Array) -> Float64Array:
        """p'(t), elementwise."""
        return np.ones_like(t)

    def curvature(self, t: Float64Array) -> Float64Array:
        """p''(t), elementwise."""
        return np.zeros_like(t)

    @property
    def linear(self) -> bool:
        """True."""
        return True


@dataclass(frozen=True)
class Lq:
    """The smoothed lq penalty, p(t) = (t + eps)^q - eps^q.

    Parameters
    ----------
    q : float
        Exponent, above 0 and below 1.
    eps : float, default=1e-3
        Smoothing: without it the slope at 0 would be infinite.

    Examples
    --------
    >>> from sparsegsvp.solvers import Lq
    >>> round(Lq(0.5, 0.01).value(0.15), 6)
    0.3
    """

    q: float
    eps: float = DEFAULTS["eps"]

    def __post_init__(self) -> None:
        check_real("q", self.q, above=0, below=1)
        check_real("eps", self.eps, above=0)

    def value(self, t: Float64Array) -> Float64Array:
        """p(t), elementwise."""
        return (t + self.eps) ** self.q - self.eps**self.q

    def slope(self, t: Float64Array) -> Float64Array:
        """p'(t), elementwise."""
        return self.q * (t + self.eps) ** (self.q - 1.0)

    def curvature(self, t: Float64Array) -> Float64Array:
        """p''(t), elementwise."""
        return self.q * (self.q - 1.0) * (t + self.eps) ** (self.q - 2.0)

    @property
    def linear(self) -> bool:
        """False."""
        return False


def make_penalty(q: Any, eps: Any, penalty: Penalty | None = None) -> Penalty:
    """Return the penalty that is meant: the object, or without one that of q and eps.

    Beside an object, q and eps must be as in it, or their defaults.
    """
    if penalty is None:
        check_real("q", q, above=0, most=1)
        check_real("eps", eps, above=0)
        return L1() if q == 1.0 else Lq(float(q), float(eps))
    members = ("value", "slope", "curvature", "linear")
    if isinstance(penalty, type) or not all(hasattr(penalty, name) for name in members):
        raise ValueError(
            f"penalty must be an object with {', '.join(members)}, such as L1() or Lq(0.5), "
            f"got {penalty!r}"
        )
    for name, value in (("q", q), ("eps", eps)):
        if value != DEFAULTS[name] and value != getattr(penalty, name, None):
            raise ValueError(
                f"{name}={value!r} contradicts penalty={penalty!r}: give one of the two"
            )
    return penalty


def make_penalties(q: Sequence[float], eps: Any, penalty: Penalty | None) -> list[Penalty]:
    """Return the penalties to choose from: that of every q, or the object."""
    if penalty is not None and len(q) > 1:
        raise ValueError(f"q={tuple(q)!r} contradicts penalty={penalty!r}: give one of the two")
    return [make_penalty(value, eps, penalty) for value in q]


def exponent(penalty: Penalty) -> float:
    """The q of a penalty; NaN for one that has none."""
    return float(getattr(penalty, "q", math.nan))


def slope_at_zero(penalty: Penalty) -> float:
    """p'(0), the slope against which features at zero are held."""
    return float(penalty.slope(np.zeros(1))[0])
