"""`penalty_factor`: one number per feature, given by position or by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Float64Array
from .._validate import close_names

# Names that an error lists.
_SHOWN = 3


def penalty_factors(given: Any, n_features: int, names: Any = None) -> Float64Array | None:
    """Return the penalty factors of all features, checked; None where none are given.

    Parameters
    ----------
    given : array-like, mapping or None
        One non-negative number per feature, or those of some features by name, the others
        being 1; a pandas Series goes by its index if that holds names. 0 is for features that
        are always in the panel, infinity for those that never are.
    n_features : int
        Number of features.
    names : sequence of str, optional
        Their names, which a mapping needs.

    Examples
    --------
    >>> from sparsegsvp.solvers.factors import penalty_factors
    >>> penalty_factors({"age": 0, "batch": float("inf")}, 3, ["age", "gene", "batch"])
    array([ 0.,  1., inf])
    """
    if given is None:
        return None
    labels = getattr(given, "index", None)  # of a Series; that of a list is a method
    if labels is not None and not callable(labels) and all(isinstance(a, str) for a in labels):
        given = dict(zip(labels, np.asarray(given).tolist()))
    if isinstance(given, Mapping):
        factors = _by_name(given, n_features, names)
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


def _by_name(given: Mapping[Any, Any], n_features: int, names: Any) -> Float64Array:
    if names is None:
        raise ValueError(
            "penalty_factor names features, but the data has no names: fit on a data frame, or "
            "give one number per feature"
        )
    names = [str(name) for name in names]
    known = set(names)
    unknown = [name for name in given if name not in known]
    if unknown:
        shown = ", ".join(repr(name) for name in unknown[:_SHOWN])
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        close = close_names(str(unknown[0]), names)
        meant = f"did you mean {' or '.join(map(repr, close))}?" if close else "check the spelling"
        raise ValueError(
            f"penalty_factor names features that are not there: {shown}{more}; {meant}"
        )
    values = dict(zip(given, _numbers(list(given.values())).tolist()))
    return np.array([values.get(name, 1.0) for name in names])


def _numbers(given: Any) -> Float64Array:
    try:
        # a copy: the caller's array may change after the fit
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "penalty_factor must be one number per feature, or a mapping from the names of "
            f"features to numbers, got {given!r:.60}"
        ) from None
