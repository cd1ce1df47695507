"""The penalties of the paper's iteration, and its proximal steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from .._typing import Float64Array as Vector
from .._validate import check_choice, check_real

Conventions = Literal["paper", "code"]
Prox = Literal["weighted", "exact"]
# Enough steps of Newton's iteration for the last digit; five to eight are taken.
_NEWTON = 30


class PGDPenalty(Protocol):
    """A penalty as the iteration uses it."""

    def value(self, z: Vector, previous: Vector) -> float:
        """What it adds to the objective at z, the iterate after ``previous``."""

    def prox(self, y: Vector, z: Vector, step: float) -> Vector:
        """Return the iterate after z, from y, where the gradient step ended."""


@dataclass(frozen=True)
class SoftThreshold:
    """delta * ||z||_1 with the paper's threshold, step * delta / 2 (equation 12).

    The proximal operator is printed without the usual factor 1/2, so the iteration aims at
    r + (delta / 2) ||z||_1 while the stopping rule watches delta ||z||_1. Kept.
    """

    delta: float

    def __post_init__(self) -> None:
        check_real("delta", self.delta, least=0)

    def value(self, z: Vector, previous: Vector) -> float:
        return self.delta * float(np.add.reduce(np.abs(z)))

    def prox(self, y: Vector, z: Vector, step: float) -> Vector:
        return np.copysign(np.maximum(np.abs(y) - 0.5 * step * self.delta, 0.0), y)


@dataclass(frozen=True)
class WeightedRidge:
    """delta * z' D z, D = diag((z^2 + eps^2)^((q - 2) / 2)) (equations 14, 15 and 17).

    "paper" takes D at z for the step and at the point itself for the objective; "code" takes
    it at y, after the gradient step, and at the previous iterate.
    """

    delta: float
    q: float
    eps: float
    conventions: Conventions

    def __post_init__(self) -> None:
        check_real("delta", self.delta, least=0)
        check_real("q", self.q, above=0, most=1)
        check_real("eps", self.eps, above=0)

    def _weights(self, z: Vector) -> Vector:
        return (z * z + self.eps**2) ** (0.5 * (self.q - 2.0))

    def value(self, z: Vector, previous: Vector) -> float:
        at = z if self.conventions == "paper" else previous
        return self.delta * float(self._weights(at) @ (z * z))

    def prox(self, y: Vector, z: Vector, step: float) -> Vector:
        at = z if self.conventions == "paper" else y
        return y / (1.0 + step * self.delta * self._weights(at))


@dataclass(frozen=True)
class ExactLq:
    """delta * sum |z|^q with its own proximal operator, in the paper's scale (equation 11).

    At q = 1 it is `SoftThreshold`. Small entries become exactly zero.
    """

    delta: float
    q: float

    def __post_init__(self) -> None:
        check_real("delta", self.delta, least=0)
        check_real("q", self.q, above=0, most=1)

    def value(self, z: Vector, previous: Vector) -> float:
        return self.delta * float(np.add.reduce(np.abs(z) ** self.q))

    def prox(self, y: Vector, z: Vector, step: float) -> Vector:
        return lq_prox(y, 0.5 * step * self.delta, self.q)


def make_pgd_penalty(
    delta: float, q: float | None, eps: float, conventions: Conventions, prox: Prox
) -> PGDPenalty:
    """Return the penalty of Algorithm 1 (without q), or that of Algorithm 2 or its variant."""
    check_choice("conventions", conventions, get_args(Conventions))
    check_choice("prox", prox, get_args(Prox))
    if q is None:
        return SoftThreshold(delta)
    return ExactLq(delta, q) if prox == "exact" else WeightedRidge(delta, q, eps, conventions)


def lq_prox(y: Vector, weight: float, q: float) -> Vector:
    r"""Minimise :math:`\frac12 (x - y)^2 + w |x|^q` over x, entry by entry, for 0 < q <= 1.

    With q < 1 the minimiser jumps: it is 0 up to a threshold, and beyond it the larger root
    of :math:`x + w q x^{q-1} = |y|`. Newton's iteration from :math:`|y|` falls to it without
    passing it, because the left side is convex.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.solvers.proximal import lq_prox
    >>> lq_prox(np.array([-3.0, 1.0, 1.6]), 1.0, 0.5)
    array([-2.69545315,  0.        ,  1.1295448 ])
    """
    size = np.abs(y)
    if q == 1.0 or weight == 0.0:
        return np.copysign(np.maximum(size - weight, 0.0), y)
    jump = (2.0 * weight * (1.0 - q)) ** (1.0 / (2.0 - q))
    beyond = np.flatnonzero(size > jump + weight * q * jump ** (q - 1.0))
    target = size[beyond]
    x = target.copy()
    for _ in range(_NEWTON):
        pull = weight * q * x ** (q - 1.0)
        before, x = x, x - (x + pull - target) / (1.0 - (1.0 - q) * pull / x)
        if np.array_equal(before, x):
            break
    found = np.zeros_like(size)
    found[beyond] = np.copysign(x, y[beyond])
    return found
