"""Paired comparisons: two procedures on the same folds, two models on the same samples.

Of the first kind is adjusting: features such as age and sex are in every panel without a penalty,
and the procedure with these alone shows what the others add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._typing import BoolArray, Float64Array
from .._validate import close_names, find_columns
from ..estimators import Panel
from ..estimators.groups import FeatureGroups
from ..estimators.pipeline import last_step
from ..metrics import PairedAreas, PairedLabels, delong_test, mcnemar_test
from ..solvers.penalties import penalty_factors
from .folds import holdout_ratio
from .intervals import PairedDifference, least_spread, paired_differences
from .result import EvaluationResult
from .scores import class_scores
from .values import plain

ALONE = "covariates alone"


def paired_difference(
    first: EvaluationResult,
    second: EvaluationResult,
    score: str = "balanced_accuracy",
    *,
    level: float = 0.95,
) -> PairedDifference:
    """Estimate the difference of two procedures over the same folds, with its interval.

    Both have met the same samples in every fold, so what makes a fold hard or easy cancels:
    the interval is narrower than those of the two scores suggest, and corrected, as they are,
    for training sets that overlap.

    Parameters
    ----------
    first, second : EvaluationResult
        Of `nested_evaluate`, on the same samples with the same folds.
    score : str, default="balanced_accuracy"
        Which of their scores.
    level : float, default=0.95
        Nominal coverage of the interval.

    Returns
    -------
    PairedDifference
        The first minus the second: mean over the folds, interval and p-value.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsegsvp import GSVPSVM, Panel, nested_evaluate
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import paired_difference
    >>> X, y = make_planted(60, 200, 3, effect=2.0, random_state=0, return_X_y=True)
    >>> options = {"n_repeats": 2, "n_permutations": 0}
    >>> selected = nested_evaluate(GSVPSVM(n_features=3), X, y, **options)
    >>> published = make_pipeline(Panel([0, 7, 11]), GSVPSVM(n_features=3))
    >>> difference = paired_difference(selected, nested_evaluate(published, X, y, **options))
    >>> difference.value > 0, difference.low < difference.value < difference.high
    (True, True)
    """
    _check_same_folds(first, second)
    for result in (first, second):
        if score not in result.scores:
            raise ValueError(
                f"there is no score {score!r} in both evaluations, only {sorted(result.scores)}"
            )
    gaps = [a.scores[score] - b.scores[score] for a, b in zip(first.folds, second.folds)]
    floors = None
    if score == "balanced_accuracy":
        floors = [max(_least_spread(first), _least_spread(second))]
    return paired_differences([gaps], holdout_ratio(first.folds), floors=floors, level=level)[0]


def _check_same_folds(first: EvaluationResult, second: EvaluationResult) -> None:
    same = first.classes == second.classes and np.array_equal(first.y, second.y)
    same = same and len(first.folds) == len(second.folds)
    same = same and all(
        (one.repeat, one.index) == (two.repeat, two.index)
        and np.array_equal(one.test, two.test)
        and np.array_equal(one.train, two.train)
        for one, two in zip(first.folds, second.folds)
    )
    if not same:
        raise ValueError(
            "the two evaluations differ in their samples or folds: evaluate both on the same rows "
            "in the same order, with the same cv, n_repeats, groups and random_state"
        )


def _least_spread(result: EvaluationResult) -> float:
    """The spread of fold scores below which they are not believed."""
    n_repeats = len({fold.repeat for fold in result.folds})
    counts = np.sum([fold.counts for fold in result.folds], axis=0) / n_repeats
    return least_spread(counts, len(result.folds) / n_repeats)


# ------------------------------------------------------- features that are adjusted for


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
    places, absent = find_columns(given, names, n_features)
    if absent:
        raise ValueError(_no_feature(absent[0], names, n_features))
    found = sorted(set(places))
    groups = getattr(last_step(estimator), "feature_groups", None)
    together = FeatureGroups.of(groups, n_features, names)
    if together is not None and found:
        return tuple(together.close(found).tolist())
    return tuple(found)


def _no_feature(item: Any, names: Sequence[str] | None, n_features: int) -> str:
    """Say why something cannot be adjusted for."""
    if not isinstance(item, str):
        return (
            f"adjust must hold names of features, or numbers from 0 to {n_features - 1}, "
            f"got {item!r}."
        )
    if names is None:
        return (
            f"adjust names {item!r}, but the data has no names: give a data frame or "
            "feature_names, or the numbers of columns."
        )
    close = close_names(item, names)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"adjust names {item!r}, which is no feature.{hint}"


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


# ------------------------------------------------------- two models on the same samples


@dataclass(frozen=True)
class PairedModels:
    """Two models on the same cohort; the result of `compare_external`.

    Attributes
    ----------
    areas : PairedAreas or None
        Areas under the ROC curve, compared by DeLong's test; None where a model ranks nothing,
        or a class has fewer than two samples.
    labels : PairedLabels
        Labels, compared by McNemar's exact test.
    """

    areas: PairedAreas | None
    labels: PairedLabels

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return plain(vars(self))


def compare_external(
    first: Any, second: Any, X: Any, y: ArrayLike, *, pos_label: Any = None, level: float = 0.95
) -> PairedModels:
    """Compare two fitted classifiers of two classes on the same independent samples.

    Parameters
    ----------
    first, second : classifier
        Fitted, on other samples than these.
    X : array, sparse matrix or data frame, or a pair of these
        The samples; as a pair, what the first and what the second model takes.
    y : array-like of shape (n_samples,)
        Labels.
    pos_label : label, optional
        The positive class, by default the last in sorted order.
    level : float, default=0.95
        Coverage of the interval of the difference.

    Returns
    -------
    PairedModels

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import compare_external
    >>> X, y = make_planted(120, 20, 4, effect=1.5, return_X_y=True)
    >>> small, large = (GSVPSVM(n_features=k).fit(X[:60], y[:60]) for k in (1, 4))
    >>> found = compare_external(large, small, X[60:], y[60:])
    >>> found.areas.difference.value > 0
    True
    """
    classes = np.asarray(first.classes_)
    if len(classes) != 2 or not np.array_equal(classes, second.classes_):
        raise ValueError("both models must know the same two classes.")
    one = classes.tolist().index(pos_label) if pos_label is not None else 1
    parts = zip((first, second), X if isinstance(X, tuple) else (X, X))
    (a, labels_a), (b, labels_b) = (
        (class_scores(model, rows, 2)[0], model.predict(rows)) for model, rows in parts
    )
    ranks = None if a is None or b is None else (a[:, one], b[:, one])
    truth = np.asarray(y)
    return compare_predictions(truth, truth == classes[one], (labels_a, labels_b), ranks, level)


def compare_predictions(
    truth: ArrayLike,
    positive: BoolArray,
    labels: tuple[ArrayLike, ArrayLike],
    ranks: tuple[Float64Array, Float64Array] | None,
    level: float = 0.95,
) -> PairedModels:
    """Compare what two models said of the same samples: labels, and values that rank them."""
    areas = None
    if ranks is not None and min(positive.sum(), (~positive).sum()) >= 2:
        areas = delong_test(positive, *ranks, level=level)
    return PairedModels(areas, mcnemar_test(truth, *labels))
