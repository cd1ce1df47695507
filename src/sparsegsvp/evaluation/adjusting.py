"""Features that are adjusted for: in every panel without a penalty, and what the others add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._validate import close_names
from ..estimators import Panel
from ..estimators.groups import FeatureGroups
from ..estimators.pipeline import last_step
from ..solvers.penalties import penalty_factors
from .intervals import PairedDifference

if TYPE_CHECKING:
    from .result import EvaluationResult

ALONE = "covariates alone"


@dataclass(frozen=True, eq=False)
class Adjustment:
    """What features that are adjusted for reach alone, and what the panel adds to them.

    Attributes
    ----------
    features : tuple of int
        Their columns.
    names : tuple of str or None
        Their names, when known.
    alone : EvaluationResult
        The same procedure with these features and no others, on the same folds; without a test,
        an audit or a fit on all samples.
    added : PairedDifference
        Balanced accuracy with the panel less that without, paired by fold.

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM, nested_evaluate
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 100, 3, effect=2.0, random_state=0, return_X_y=True)
    >>> options = {"n_repeats": 2, "n_permutations": 0}
    >>> found = nested_evaluate(GSVPSVM(n_features=5), X, y, adjust=[8, 9], **options)
    >>> all({8, 9} <= set(fold.panel) for fold in found.folds)
    True
    >>> found.adjusted.added.low > 0
    True
    """

    features: tuple[int, ...]
    names: tuple[str, ...] | None
    alone: EvaluationResult = field(repr=False)
    added: PairedDifference

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "features": list(self.features),
            "names": None if self.names is None else list(self.names),
            "scores": {name: score.to_dict() for name, score in self.alone.scores.items()},
            "added": self.added.to_dict(),
        }


def adjusted_columns(
    adjust: Sequence[str | int] | str | None,
    estimator: Any,
    n_features: int,
    names: Sequence[str] | None,
) -> tuple[int, ...]:
    """Return the columns to adjust for, ascending, from their names or numbers.

    Features that go together in the procedure are adjusted for as a whole.
    """
    if adjust is None:
        return ()
    given = [adjust] if isinstance(adjust, str | Integral) else list(adjust)
    places = {name: j for j, name in enumerate(names or ())}
    found = set()
    for item in given:
        if isinstance(item, str):
            if names is None:
                raise ValueError(
                    f"adjust names {item!r}, but the data has no names: give a data frame or "
                    "feature_names, or the numbers of columns."
                )
            if item not in places:
                close = close_names(item, list(places))
                hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
                raise ValueError(f"adjust names {item!r}, which is no feature.{hint}")
            found.add(places[item])
        elif isinstance(item, Integral) and not isinstance(item, bool) and 0 <= item < n_features:
            found.add(int(item))
        else:
            raise ValueError(
                f"adjust must hold names of features, or numbers from 0 to {n_features - 1}, "
                f"got {item!r}."
            )
    groups = getattr(last_step(estimator), "feature_groups", None)
    together = FeatureGroups.of(groups, n_features, names)
    if together is not None and found:
        return tuple(together.close(sorted(found)).tolist())
    return tuple(sorted(found))


def always_with(
    estimator: Any, columns: Sequence[int], n_features: int, names: Sequence[str] | None
) -> Any:
    """Return a clone of a procedure that has these columns in every panel, without a penalty.

    The last step takes `penalty_factor`, and the steps before it keep the columns.
    """
    model = last_step(estimator)
    if "penalty_factor" not in model.get_params(deep=False):
        raise ValueError(
            f"adjust needs a method that takes penalty_factor, such as GSVPSVMCV, alone or at the "
            f"end of a pipeline, got {type(model).__name__}."
        )
    factors = penalty_factors(model.penalty_factor, n_features, names)
    factors = np.ones(n_features) if factors is None else factors
    banned = [j for j in columns if np.isinf(factors[j])]
    if banned:
        name = banned[0] if names is None else names[banned[0]]
        raise ValueError(f"{name!r} is adjusted for, and has an infinite penalty_factor.")
    factors[list(columns)] = 0.0
    again = clone(estimator)
    last_step(again).set_params(penalty_factor=factors)
    return again


def only_with(estimator: Any, columns: Sequence[int]) -> Any:
    """Return a clone of a procedure that knows these columns alone, and has all in its panel.

    The steps before the last treat every column by itself, and see all of them. A number of
    features that was asked for becomes that of the columns.
    """
    again = clone(estimator)
    steps = again.steps if isinstance(again, Pipeline) else [("model", again)]
    model, k = steps[-1][1], len(columns)
    model.set_params(penalty_factor=np.zeros(k), feature_groups=None)
    if model.n_features is not None:
        model.set_params(n_features=k)
    return Pipeline([*steps[:-1], ("these alone", Panel(tuple(columns))), steps[-1]])
