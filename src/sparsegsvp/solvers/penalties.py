r"""Separable concave penalties :math:`\sum_f l_f\, p(|w_f|)`.

A penalty is its value, slope and curvature as functions of t = |w_f|, which is in [0, 1]. The
solver majorises p by its tangent, so every step is a weighted l1 problem and zeros are exact. To
add one, write a class like `Lq`; nothing else in the package depends on which it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._typing import Float64Array
from .._validate import check_real, close_names, find_columns, first_few

#: Values of q and eps where nothing else is asked for.
DEFAULTS = {"q": 1.0, "eps": 1e-3}
# Names that an error lists.


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


# ------------------------------------------------------------------------ the factors l_f


def penalty_factors(given: Any, n_features: int, names: Any = None) -> Float64Array | None:
    """Return the penalty factors of all features, checked; None where none are given.

    They are one non-negative number per feature, or those of some features by name, the others
    being 1; a pandas Series goes by its index if that holds names.
    """
    if given is None:
        return None
    mapping = as_mapping(given)
    if mapping is not None:
        numbers = dict(zip(mapping, _numbers(list(mapping.values())).tolist()))
        factors = np.array(by_name(numbers, names, "penalty_factor", 1.0, "one number"))
    else:
        factors = _numbers(given)
        if factors.shape != (n_features,):
            raise ValueError(
                f"penalty_factor must have one number for each of the {n_features} features, got "
                f"shape {factors.shape}: in a pipeline, one for each that reaches this step"
            )
    wrong = np.flatnonzero(np.isnan(factors) | (factors < 0.0))
    if len(wrong):
        which = f"feature {wrong[0]}" if names is None else f"feature {str(names[wrong[0]])!r}"
        raise ValueError(
            f"penalty_factor must be 0 or more, got {factors[wrong[0]]:g} for {which}: 0 is for "
            "features that are always in the panel, infinity for those that never are"
        )
    if np.isinf(factors).all():
        raise ValueError(
            "penalty_factor is infinite for every feature: there is nothing left to select from"
        )
    return factors


def as_mapping(given: Any) -> Mapping[Any, Any] | None:
    """A mapping as it is, and a pandas Series by its index if that holds names; else None."""
    labels = getattr(given, "index", None)  # that of a list is a method
    if labels is not None and not callable(labels) and all(isinstance(a, str) for a in labels):
        return dict(zip(labels, np.asarray(given).tolist()))
    return given if isinstance(given, Mapping) else None


def by_name(given: Mapping[Any, Any], names: Any, what: str, other: Any, each: str) -> list[Any]:
    """The value of each feature, ``other`` for those that the parameter ``what`` does not name."""
    if names is None:
        raise ValueError(
            f"{what} names features, but the data has no names: fit on a data frame, or "
            f"give {each} per feature"
        )
    names = [str(name) for name in names]
    _, unknown = find_columns(given, names)
    if unknown:
        shown = first_few(map(repr, unknown), most=3)
        close = close_names(str(unknown[0]), names)
        meant = f"did you mean {' or '.join(map(repr, close))}?" if close else "check the spelling"
        raise ValueError(f"{what} names features that are not there: {shown}; {meant}")
    return [given.get(name, other) for name in names]


def _numbers(given: Any) -> Float64Array:
    try:
        # a copy: the caller's array may change after the fit
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "penalty_factor must be one number per feature, or a mapping from the names of "
            f"features to numbers, got {given!r:.60}"
        ) from None
