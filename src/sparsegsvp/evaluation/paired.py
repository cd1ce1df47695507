"""The difference of two evaluations on the same folds."""

from __future__ import annotations

import numpy as np

from .cells import LEAST_SPREAD
from .folds import Fold, holdout_ratio
from .intervals import PairedDifference, counting_deviation, paired_differences
from .result import EvaluationResult


def paired_difference(
    first: EvaluationResult,
    second: EvaluationResult,
    score: str = "balanced_accuracy",
    *,
    level: float = 0.95,
) -> PairedDifference:
    """How much better the first of two procedures is, fold by fold.

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
    return LEAST_SPREAD * counting_deviation(counts[:, :2].tolist(), len(result.folds) / n_repeats)
