r"""The penalty :math:`\sum_f l_f\, p(|w_f|)`: the function p and the factors l_f."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Float64Array
from .._validate import check_real, close_names, find_columns, first_few


@dataclass(frozen=True)
class Penalty:
    """p(t) = t for q = 1, and (t + eps)^q - eps^q below, for t = |w_f| in [0, 1].

    The smoothing keeps the slope at 0 finite. p is concave, so its tangent lies above it, and an
    l1 problem with the slopes as factors majorises the one with p.
    """

    q: float = 1.0
    eps: float = 1e-3

    def __post_init__(self) -> None:
        check_real("q", self.q, above=0, most=1)
        check_real("eps", self.eps, above=0)

    def value(self, t: Float64Array) -> Float64Array:
        """p(t), elementwise."""
        return t if self.q == 1.0 else (t + self.eps) ** self.q - self.eps**self.q

    def slope(self, t: Float64Array) -> Float64Array:
        """p'(t), elementwise."""
        return self.q * (t + self.eps) ** (self.q - 1.0)

    def curvature(self, t: Float64Array) -> Float64Array:
        """p''(t), elementwise."""
        return self.q * (self.q - 1.0) * (t + self.eps) ** (self.q - 2.0)

    @property
    def slope_at_zero(self) -> float:
        """p'(0), which the gradient of a feature at zero is compared with."""
        return float(self.q * self.eps ** (self.q - 1.0))


def penalty_factors(given: Any, n_features: int, names: Any = None) -> Float64Array:
    """Return the penalty factors of all features, checked; 1 where none are given.

    They are one non-negative number per feature, or those of some features by name, the others
    being 1; a pandas Series goes by its index if that holds names.
    """
    if given is None:
        return np.ones(n_features)
    mapping = _as_mapping(given)
    if mapping is not None:
        numbers = _numbers(list(mapping.values())).tolist()
        factors = _by_name(dict(zip(mapping, numbers)), names)
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


def _as_mapping(given: Any) -> Mapping[Any, Any] | None:
    """A mapping as it is, and a pandas Series by its index if that holds names; else None."""
    labels = getattr(given, "index", None)  # that of a list is a method
    if labels is not None and not callable(labels) and all(isinstance(a, str) for a in labels):
        return dict(zip(labels, np.asarray(given).tolist()))
    return given if isinstance(given, Mapping) else None


def _by_name(given: Mapping[Any, float], names: Any) -> Float64Array:
    """The factor of each feature, 1 for those that are not named."""
    if names is None:
        raise ValueError(
            "penalty_factor names features, but the data has no names: fit on a data frame, or "
            "give one number per feature"
        )
    names = [str(name) for name in names]
    _, unknown = find_columns(given, names)
    if unknown:
        shown = first_few(map(repr, unknown), most=3)
        close = close_names(str(unknown[0]), names)
        meant = f"did you mean {' or '.join(map(repr, close))}?" if close else "check the spelling"
        raise ValueError(f"penalty_factor names features that are not there: {shown}; {meant}")
    return np.array([given.get(name, 1.0) for name in names])


def _numbers(given: Any) -> Float64Array:
    try:
        # a copy: the caller's array may change after the fit
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "penalty_factor must be one number per feature, or a mapping from the names of "
            f"features to numbers, got {given!r:.60}"
        ) from None
