r"""Separable concave penalties :math:`\sum_f l_f\, p(|w_f|)`.

A penalty is its value, slope and curvature as functions of t = |w_f| >= 0. The solver
majorises p by its tangent, so every step is a weighted l1 problem and zeros are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np

from .._typing import Float64Array


class Penalty(Protocol):
    """A concave, increasing p with p(0) = 0 and a finite slope at 0."""

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
    def convex(self) -> bool:
        """Whether p is linear, so that one tangent serves everywhere."""
        ...


@dataclass(frozen=True)
class L1:
    """p(t) = t."""

    def value(self, t: Float64Array) -> Float64Array:
        return t

    def slope(self, t: Float64Array) -> Float64Array:
        return np.ones_like(t)

    def curvature(self, t: Float64Array) -> Float64Array:
        return np.zeros_like(t)

    @property
    def convex(self) -> bool:
        return True


@dataclass(frozen=True)
class Lq:
    """p(t) = (t + eps)^q - eps^q for 0 < q < 1."""

    q: float
    eps: float

    def value(self, t: Float64Array) -> Float64Array:
        return (t + self.eps) ** self.q - self.eps**self.q

    def slope(self, t: Float64Array) -> Float64Array:
        return self.q * (t + self.eps) ** (self.q - 1.0)

    def curvature(self, t: Float64Array) -> Float64Array:
        return self.q * (self.q - 1.0) * (t + self.eps) ** (self.q - 2.0)

    @property
    def convex(self) -> bool:
        return False


def make_penalty(q: float, eps: float) -> Penalty:
    """The penalty of exponent q: l1 for q = 1, smoothed lq below."""
    if not (isinstance(q, Real) and 0.0 < q <= 1.0):
        raise ValueError(f"q must be in (0, 1], got {q!r}")
    if not (isinstance(eps, Real) and np.isfinite(eps) and eps > 0.0):
        raise ValueError(f"eps must be a positive number, got {eps!r}")
    return L1() if q == 1.0 else Lq(float(q), float(eps))
