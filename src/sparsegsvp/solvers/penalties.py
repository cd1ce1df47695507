r"""The penalty :math:`\sum_f l_f\, p(|w_f|)`: the function p and the factors l_f."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array
from .._validate import check_real, close_names, find_columns, first_few


@dataclass(frozen=True)
class Penalty:
    """p(t) = t for q = 1, and (t + eps)^q - eps^q below, concave: tangents lie above it."""

    q: float = 1.0
    eps: float = 1e-3

    def __post_init__(self) -> None:
        check_real("q", self.q, above=0, most=1)
        check_real("eps", self.eps, above=0)

    def value(self, t: Array) -> Array:
        """p(t), elementwise."""
        return t if self.q == 1.0 else (t + self.eps) ** self.q - self.eps**self.q

    def slope(self, t: Any) -> Any:
        """p'(t), elementwise; at 0 what the gradient of a feature at zero is compared with."""
        return self.q * (t + self.eps) ** (self.q - 1.0)

    def curvature(self, t: Array) -> Array:
        """p''(t), elementwise."""
        return self.q * (self.q - 1.0) * (t + self.eps) ** (self.q - 2.0)


def penalty_factors(given: Any, n_features: int, names: Any = None) -> Array:
    """Return the factors of all features, checked; given for each, or by name, for some."""
    if given is None:
        return np.ones(n_features)
    labels = getattr(given, "index", None)  # that of a list is a method
    if labels is not None and not callable(labels) and all(isinstance(a, str) for a in labels):
        given = dict(zip(labels, np.asarray(given).tolist()))
    by_name = isinstance(given, Mapping)
    try:
        # a copy: the caller's array may change after the fit
        factors = np.array(list(given.values()) if by_name else given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "penalty_factor must be one number per feature, or a mapping from the names of "
            f"features to numbers, got {given!r:.60}"
        ) from None
    if by_name:
        named, factors = factors, np.ones(n_features)
        factors[_places(given, names)] = named
    if factors.shape != (n_features,):
        raise ValueError(
            f"penalty_factor must have one number for each of the {n_features} features, got "
            f"shape {factors.shape}: in a pipeline, one for each that reaches this step"
        )
    wrong = np.flatnonzero(~(factors >= 0.0))
    if len(wrong):
        which = f"feature {wrong[0] if names is None else repr(str(names[wrong[0]]))}"
        raise ValueError(
            f"penalty_factor must be 0 or more, got {factors[wrong[0]]:g} for {which}: 0 is for "
            "features that are always in the panel, infinity for those that never are"
        )
    if np.isinf(factors).all():
        raise ValueError(
            "penalty_factor is infinite for every feature: there is nothing left to select from"
        )
    return factors


def _places(given: Mapping[Any, Any], names: Any) -> list[int]:
    """Where the features are that a mapping names."""
    if names is None:
        raise ValueError(
            "penalty_factor names features, but the data has no names: fit on a data frame, or "
            "give one number per feature"
        )
    names = [str(name) for name in names]
    places, unknown = find_columns(given, names)
    if unknown:
        close = close_names(str(unknown[0]), names)
        meant = f"did you mean {' or '.join(map(repr, close))}?" if close else "check the spelling"
        shown = first_few(map(repr, unknown), most=3)
        raise ValueError(f"penalty_factor names features that are not there: {shown}; {meant}")
    return places
