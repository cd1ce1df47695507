"""Two procedures on the same folds, and two fitted models on the same independent samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import BoolArray, Float64Array
from ..metrics import PairedAreas, PairedLabels, delong_test, mcnemar_test
from .folds import Fold, holdout_ratio
from .intervals import PairedDifference, least_spread, paired_differences
from .result import EvaluationResult
from .scores import class_scores
from .values import plain


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
    values = [np.array([fold.scores[score] for fold in r.folds]) for r in (first, second)]
    floors = None
    if score == "balanced_accuracy":
        floors = [max(_least_spread(first), _least_spread(second))]
    ratio = holdout_ratio([Fold(f.repeat, f.index, f.train, f.test) for f in first.folds])
    return paired_differences([values[0] - values[1]], ratio, floors=floors, level=level)[0]


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
