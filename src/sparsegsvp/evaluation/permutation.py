r"""The permutation test of the procedure that is reported, and the verdict.

.. math:: p = \frac{1 + \#\{\text{permuted} \ge \text{observed}\}}{B + 1}

The statistic is the balanced accuracy of the very estimator over one repeat of folds, stratified
anew for every draw. Of an estimator with a path it is that of exactly as many features as it is
asked for or, where it tunes their number, the best of 1, 3 and 10, all from one path in each fold:
permuting the tuning would cost several times as much, and one size alone has little power for a
single marker. True and permuted labels get the same, which is all that validity asks for.

Drawing stops at the 10th exceedance: then p = 10 / draws (Besag and Clifford, 1991). Where 99
draws leave p between 0.01 and 0.1, drawing goes on to 999.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.metrics import balanced_accuracy_score

from .._typing import IntArray, Progress, Record
from .._validate import check_integer, check_seed, derive_seed
from ..metrics.intervals import MAX_EXCEEDANCES, Interval, sequential_p_value
from .cache import run_pieces
from .procedure import PathScores, Procedure, tested_sizes
from .splits import Samples, make_folds, read_samples

PERMUTATIONS = "permutations"
#: Draws below which no p-value reaches 0.05.
FEWEST_DRAWS = 19
#: Draws after which drawing may go on, how far, and the p-values for which it does.
FIRST_DRAWS, MOST_DRAWS, UNDECIDED = 99, 999, (0.01, 0.1)
_STREAM = 7  # keeps these seeds apart from those of the outer folds


@dataclass(frozen=True)
class Verdict(Record):
    """Whether the labels can be predicted better than by chance.

    Attributes
    ----------
    answer : {"signal", "weak", "inconclusive", "none", "not tested"}
        By the p-value and the `interval` of the balanced accuracy; see `judged`.
    p_value : float or None
    at_most : bool
        Whether it is the smallest that `n_draws` permutations can give.
    stopped_early : bool
        Whether the 10th exceedance ended the draws.
    statistic : {"procedure", "sizes"}
        The estimator as it is, or the best of `statistic_sizes` along its path.
    scheme : {"free", "groups", "batches", "groups and batches"}
        Within or between what labels were permuted.
    observed, draws
        Statistics of the true and of the permuted labels.
    chance : float
        One over the number of classes.
    reason : {None, "no test", "few draws", "labels fixed"}
        Why no p-value could decide; "labels fixed": groups and batches leave none to exchange.
    """

    statistic: str
    statistic_sizes: tuple[int, ...]
    scheme: str
    chance: float
    answer: str = "not tested"
    p_value: float | None = None
    n_draws: int = 0
    at_most: bool = False
    stopped_early: bool = False
    observed: float | None = None
    draws: tuple[float, ...] = ()
    interval: Interval | None = None
    reason: str | None = "no test"

    def judged(self, interval: Interval) -> Verdict:
        """Return the verdict that belongs to the interval of a balanced accuracy.

        "signal": p is at most 0.05 and the interval lies above chance. "weak": p is at most 0.05
        and the interval reaches chance. "inconclusive": p is larger although the interval lies
        above chance, or there were fewer than 19 draws (unless exceedances ended them). "not
        tested": no test. "none" otherwise.
        """
        above, answer = interval.low > self.chance, "none"
        if self.p_value is None:
            answer = "not tested"
        elif self.n_draws < FEWEST_DRAWS and not self.stopped_early:
            answer = "inconclusive"
        elif self.p_value > 0.05:
            answer = "inconclusive" if above else "none"
        elif interval.high >= self.chance:
            answer = "signal" if above else "weak"
        return replace(self, answer=answer, interval=interval)


def exchangeable_units(samples: Samples) -> tuple[IntArray, IntArray]:
    """Return the unit of each sample, and the stratum of each unit.

    Units of one stratum may exchange their labels under the null hypothesis. A group of one label
    is a unit; of a group of mixed labels every sample is, and they exchange among themselves.
    Strata lie within batches.
    """
    n = samples.codes.size
    rank, lots = np.argsort(samples.order), np.zeros(n, dtype=np.intp)
    for values in samples.batches.values():
        pairs = np.stack([lots, np.unique(values, return_inverse=True)[1]])
        lots = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
    if samples.groups is None:
        return rank, lots[samples.order]
    names: list[tuple[Any, ...]] = []
    unit = np.empty(n, dtype=np.intp)
    for group in range(int(samples.groups.max()) + 1):
        rows = samples.order[samples.groups[samples.order] == group]
        if np.ptp(samples.codes[rows]) == 0:
            unit[rows] = len(names)
            names.append(("pure", *np.unique(lots[rows]).tolist()))
        else:
            unit[rows] = len(names) + np.arange(rows.size)
            names.extend(("mixed", group, lot) for lot in lots[rows].tolist())
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return unit, np.array([numbers[name] for name in names], dtype=np.intp)


def shuffled_codes(samples: Samples, seed: int) -> IntArray:
    """Exchange the labels of units within strata."""
    rng, (unit, stratum) = np.random.default_rng(seed), exchangeable_units(samples)
    labels = np.empty(stratum.size, dtype=np.intp)
    labels[unit] = samples.codes
    for s in range(int(stratum.max()) + 1):
        inside = np.flatnonzero(stratum == s)
        labels[inside] = labels[rng.permutation(inside)]
    return labels[unit]


def can_permute(samples: Samples) -> bool:
    """Tell whether any exchange changes a label."""
    unit, stratum = exchangeable_units(samples)
    pairs = np.unique(np.stack([stratum[unit], samples.codes]), axis=1)
    return pairs.shape[1] > np.unique(stratum).size


def statistic(
    procedure: Procedure, path: PathScores | None, sizes: tuple[int, ...], seed: int, draw: int
) -> float:
    """Return the statistic of draw number ``draw`` (0: the true labels)."""
    samples = procedure.samples
    codes = samples.codes
    if draw:
        codes = shuffled_codes(samples, derive_seed(seed, _STREAM, draw))
    n_splits, n_repeats = (5, 1) if path is None else _path_folds(samples)
    n_splits = max(2, min(n_splits, int(replace(samples, codes=codes).units.min())))
    fold_seed = derive_seed(seed, _STREAM, draw, 1)
    try:
        folds = make_folds(samples, n_splits, n_repeats, fold_seed, codes)
    except ValueError:
        if draw == 0:
            raise
        return 1.0  # labels fell so that no fold is possible: count it against the signal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path is not None:
            return path.best(codes, folds, sizes)
        predicted = np.zeros(codes.size, dtype=np.intp)
        for fold in folds:
            fit_seed = derive_seed(seed, _STREAM, draw, 2 + fold.index)
            model = procedure.fit(fold.train, fit_seed, codes)
            predicted[fold.test] = procedure.predict(model, fold.test).predicted
        return float(balanced_accuracy_score(codes, predicted))


def _path_folds(samples: Samples) -> tuple[int, int]:
    """Return folds and repeats of a statistic along a path: more of them where samples are few."""
    # of 40 samples with one marker of 2 SD among 500, 5 folds find it in 0.79, 10 twice in 0.90
    n = samples.codes.size if samples.groups is None else int(samples.groups.max()) + 1
    return (5 if n >= 100 else 10), (1 if n > 50 else 2)


def draws_wanted(exceeds: Sequence[bool], n_permutations: int) -> int:
    """Return how many draws there are to be, given the first ones; not more if it is decided."""
    _, draws, stopped = sequential_p_value(exceeds)
    if stopped:
        return draws
    if draws < n_permutations or n_permutations < FIRST_DRAWS:  # who asks for few wants it fast
        return n_permutations
    p, _, _ = sequential_p_value(exceeds[:n_permutations])
    return max(n_permutations, MOST_DRAWS) if UNDECIDED[0] < p <= UNDECIDED[1] else n_permutations


def _step(exceeds: Sequence[bool], n_jobs: int | None) -> int:
    """Return how many draws to begin at once: about as many as the 10th exceedance is away."""
    hits = sum(exceeds)
    away = max(10, (MAX_EXCEEDANCES - hits) * len(exceeds) // (hits + 1))
    return away + -away % max(1, effective_n_jobs(n_jobs))  # a multiple of the workers


def run_test(
    procedure: Procedure,
    n_permutations: int,
    *,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> Verdict:
    """Run the permutation test; the answer is left to `Verdict.judged`."""
    samples = procedure.samples
    grouped, lots = samples.groups is not None, bool(samples.batches)
    scheme = " and ".join([*["groups"] * grouped, *["batches"] * lots]) or "free"
    sizes = tested_sizes(procedure.estimator, samples.X.shape[1])
    none = Verdict("sizes" if sizes else "procedure", sizes, scheme, 1 / samples.n_classes)
    if not n_permutations:
        return none
    if not can_permute(samples):
        return replace(none, reason="labels fixed")
    path = PathScores.of(procedure, sizes, derive_seed(seed, _STREAM)) if sizes else None
    observed = statistic(procedure, path, sizes, seed, 0)
    values: list[float] = []
    exceeds: list[bool] = []
    wanted = n_permutations
    while len(exceeds) < wanted:
        first, last = len(values) + 1, min(len(values) + _step(exceeds, n_jobs), wanted)
        pieces = [(procedure, path, sizes, seed, draw) for draw in range(first, last + 1)]
        for value in run_pieces(statistic, pieces, n_jobs=n_jobs):
            values.append(value)
            # equal counts give equal scores only up to rounding
            if len(exceeds) < wanted:
                exceeds.append(value >= observed - 1e-12)
                wanted = draws_wanted(exceeds, n_permutations)
            if progress is not None and len(values) <= wanted:
                progress(PERMUTATIONS, len(values), wanted)
    p_value, n_draws, stopped = sequential_p_value(exceeds)
    return replace(
        none,
        p_value=p_value,
        n_draws=n_draws,
        at_most=not any(exceeds),
        stopped_early=stopped,
        observed=observed,
        draws=tuple(values[:n_draws]),
        reason="few draws" if n_draws < FEWEST_DRAWS and not stopped else None,
    )


def permutation_test(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    batch: Any = None,
    n_permutations: int = 99,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Test whether an estimator predicts labels better than permuted ones.

    Parameters
    ----------
    estimator, X, y, groups, batch, n_permutations, random_state, n_jobs, progress
        As in `sparsegsvp.nested_evaluate`.

    Returns
    -------
    Verdict
        Without an answer, which needs an interval: see `Verdict.judged`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import permutation_test
    >>> X, y = make_planted(30, 4, 4, effect=2.0, return_X_y=True)
    >>> permutation_test(DummyClassifier(), X, y).p_value
    1.0
    """
    check_integer("n_permutations", n_permutations, least=1)
    procedure = Procedure(estimator, read_samples(X, y, groups, batch))
    seed = check_seed(random_state)
    return run_test(procedure, n_permutations, seed=seed, n_jobs=n_jobs, progress=progress)
