"""`feature_groups`: features that are in a panel together or not at all, and count as one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import BoolArray, Float64Array, IntArray
from .._validate import check_integer
from ..solvers.penalties import as_mapping, by_name, penalty_factors

if TYPE_CHECKING:
    from .planes import PlaneSettings


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """Which features go together: those of the same code."""

    codes: IntArray  # of all features
    labels: dict[int, Any]  # of the groups of several features, by their code

    @classmethod
    def of(cls, given: Any, n_features: int, names: Any = None) -> FeatureGroups | None:
        """Read `feature_groups`; None where every feature goes by itself.

        ``given`` is a label for each feature or, by name, for some. Features of the same label go
        together; those of the label None, and those without one, go by themselves.
        """
        if given is None:
            return None
        mapping = as_mapping(given)
        if mapping is not None:
            labels = by_name(mapping, names, "feature_groups", None, "one label")
        else:
            labels = _labels(given, n_features)
        first: dict[Hashable, int] = {}
        alone = [_missing(label) for label in labels]
        codes = np.array(
            [j if alone[j] else first.setdefault(label, j) for j, label in enumerate(labels)]
        )
        several = np.flatnonzero(np.bincount(codes, minlength=n_features) > 1)
        if len(several) == 0:
            return None
        return cls(codes, {int(code): labels[code] for code in several})

    def count(self, features: Any) -> int:
        """How many groups some features are of."""
        return len(np.unique(self.codes[features]))

    def close(self, features: Any) -> IntArray:
        """All features of the groups of these, sorted."""
        inside = np.zeros(len(self.codes), dtype=bool)
        inside[self.codes[features]] = True
        return np.flatnonzero(inside[self.codes])

    def norms(self, features: IntArray, weights: Float64Array) -> Float64Array:
        """The root of the squared weights of each feature's group."""
        codes = self.codes[features]
        return np.sqrt(np.bincount(codes, weights**2)[codes])

    def together(self, order: IntArray) -> IntArray:
        """The same order of features, but each group follows its first."""
        rank = np.full(len(self.codes), len(order))
        codes = self.codes[order]
        np.minimum.at(rank, codes, np.arange(len(order)))
        return order[np.argsort(rank[codes], kind="stable")]

    def first(self, order: IntArray, k: int) -> IntArray:
        """The features of an order that are of its first k groups."""
        codes = self.codes[order]
        _, at = np.unique(codes, return_index=True)
        return order[np.isin(codes, codes[np.sort(at)[:k]])]

    def steered(self, factors: Float64Array) -> Float64Array:
        """Penalty factors of 0 and of infinity extended to whole groups."""
        factors = factors.copy()
        for code, label in self.labels.items():
            members = self.codes == code
            must, never = (factors[members] == 0.0).any(), np.isinf(factors[members]).any()
            if must and never:
                raise ValueError(
                    f"penalty_factor is 0 for one feature of the group {label!r} and infinite for "
                    "another, but they are in a panel together or not at all"
                )
            if must or never:
                factors[members] = 0.0 if must else np.inf
        if np.isinf(factors).all():
            raise ValueError(
                "penalty_factor is infinite for a feature of every group: there is nothing left "
                "to select from"
            )
        return factors


@dataclass(frozen=True, eq=False)
class Steering:
    """What the caller wants in and out of a panel, and together: checked, of all features."""

    factors: Float64Array | None = None  # of the penalty; None: all 1
    groups: FeatureGroups | None = None

    @classmethod
    def of(cls, estimator: Any, n_features_in: int, names: Any) -> Steering:
        """Read an estimator's parameters; refuse sizes of the panel that contradict them."""
        found = cls(
            penalty_factors(estimator.penalty_factor, n_features_in, names),
            FeatureGroups.of(estimator.feature_groups, n_features_in, names),
        )
        if found.factors is not None and found.groups is not None:
            found = replace(found, factors=found.groups.steered(found.factors))
        must, most = found.n_must, found._count(np.ones(n_features_in, dtype=bool))
        what = "there are"
        if found.factors is not None and np.isinf(found.factors).any():
            most, what = found._count(found.factors < np.inf), "of finite penalty_factor"
        for name in ("n_features", "max_features"):
            size = getattr(estimator, name, None)
            if size is None:
                continue
            if check_integer(name, size, least=1) < must:
                raise ValueError(
                    f"{name}={size} is less than the {must} features of penalty_factor 0, which "
                    "are in every panel"
                )
            if name == "n_features" and size > most:
                raise ValueError(f"n_features={size} asks for more features than the {most} {what}")
        return found

    @property
    def n_must(self) -> int:
        """How many features are in every panel, those that go together counted once."""
        return 0 if self.factors is None else self._count(self.factors == 0.0)

    def _count(self, features: BoolArray) -> int:
        if self.groups is None:
            return int(np.count_nonzero(features))
        return self.groups.count(features)

    def applied(self, settings: PlaneSettings) -> PlaneSettings:
        """The planes' settings with this."""
        return replace(settings, factors=self.factors, groups=self.groups)


def _missing(label: Any) -> bool:
    # pandas' NA, which pandas need not be imported to know, is not even unequal to itself
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def _labels(given: Any, n_features: int) -> list[Any]:
    """One label for each feature, checked."""
    labels = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(labels, str | bytes) or not np.iterable(labels):
        raise ValueError(
            "feature_groups must be one label per feature, or a mapping from the names of "
            f"features to labels, got {given!r:.60}"
        )
    labels = list(labels)
    if not all(isinstance(label, Hashable) for label in labels):
        raise ValueError("feature_groups must hold labels that can be told apart: texts or numbers")
    if len(labels) != n_features:
        raise ValueError(
            f"feature_groups must have one label for each of the {n_features} features, got "
            f"{len(labels)}: in a pipeline, one for each that reaches this step"
        )
    return labels
