"""Cross-validation of tall data in two passes.

The first pass forms the moments of every fold and draws a fixed sample of all classes, to
which calibrators are fitted; a training part is the sum of the other folds' moments. The
second scores all points block by block, each block by the planes of the folds its rows are
held out from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add

import numpy as np

from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import ClassMoments, Covariances, MomentCovariances
from ..linalg.covariances import choose_method
from ..linalg.moments import ClassSums, add_rows, merge_sums
from .decision import SAMPLE, balanced_sample
from .scoring import (
    FoldPlanes,
    FoldScores,
    LabelledRows,
    PlaneStack,
    distinct,
    mean_scores,
    sum_losses,
)
from .search import Search, effective_rows, solve_fold

_Split = tuple[IntArray, IntArray]


def fold_of_rows(rows: LabelledRows, search: Search, splits: Sequence[_Split]) -> IntArray | None:
    """The fold each row is held out from, if the search can be done by blocks; else None.

    That takes moments that are cheap to form, folds that partition the rows, the default
    score, and rows so many, or so costly to read, that it is worth it.
    """
    n = len(rows.codes)
    if search.scorer is not None or choose_method(*rows.X.shape) != "moments":
        return None
    if n <= SAMPLE and not rows.X.costly_passes:
        return None
    folds = np.full(n, -1, dtype=np.intp)
    for f, (train, test) in enumerate(splits):
        if (folds[test] >= 0).any() or len(train) + len(test) != n:
            return None
        folds[test] = f
    return folds if (folds >= 0).all() else None


def search_by_blocks(
    rows: LabelledRows, search: Search, folds: IntArray, on_fold: Callable[[], None]
) -> tuple[list[FoldScores], Covariances]:
    """Solve and score all folds in two passes over the rows.

    ``folds`` is what `fold_of_rows` gives; ``on_fold`` is called whenever the paths of a
    fold are solved. The scores' features are of the rows sampled for the calibrators. The
    covariances returned are of all rows, so that the final fit needs no pass of its own.
    """
    sample = balanced_sample(rows.codes, SAMPLE, seed=0)
    parts, sampled = fold_moments(rows, folds, sample)
    planes = []
    for f in range(len(parts)):
        # adding moments is stable, subtracting them is not
        training = reduce(add, parts[:f] + parts[f + 1 :])
        cov = MomentCovariances(training, search.standardize)
        n_rows = effective_rows(training.counts.sum(), training.weights.sum())
        planes.append(solve_fold(cov, search, n_rows))
        on_fold()
    results = score_by_blocks(planes, rows, folds, sample, sampled)
    return results, MomentCovariances(reduce(add, parts), search.standardize)


def fold_moments(
    rows: LabelledRows, folds: IntArray, sample: IntArray
) -> tuple[list[ClassMoments], Float64Array]:
    """Moments of each fold's rows, and the rows of the sample, in one pass over all rows."""
    k, n_folds = len(rows.classes), int(folds.max()) + 1
    drawn = np.zeros(len(rows.codes), dtype=bool)
    drawn[sample] = True
    sums, sampled = rows.X.reduce_rows(
        partial(_visit, n_classes=n_folds * k), _merge, (folds * k + rows.codes, rows.weight, drawn)
    )
    all_folds = sums.moments()
    moments = [
        ClassMoments(
            np.arange(k),
            all_folds.counts[at],
            all_folds.weights[at],
            all_folds.means[at],
            all_folds.scatters[at],
        )
        for at in (slice(f * k, (f + 1) * k) for f in range(n_folds))
    ]
    return moments, np.concatenate(sampled)


_Seen = tuple[ClassSums, list[Float64Array]]


def _visit(
    state: _Seen | None,
    block: Float64Array,
    code: IntArray,
    weight: Float64Array | None,
    drawn: BoolArray,
    *,
    n_classes: int,
) -> _Seen:
    sums, sampled = (None, []) if state is None else state
    sampled.append(block[drawn])
    return add_rows(sums, block, code, weight, n_classes=n_classes), sampled


def _merge(earlier: _Seen, later: _Seen) -> _Seen:
    return merge_sums(earlier[0], later[0]), earlier[1] + later[1]


def score_by_blocks(
    planes: Sequence[FoldPlanes],
    rows: LabelledRows,
    folds: IntArray,
    sample: IntArray,
    sampled: Float64Array,
) -> list[FoldScores]:
    """Class-balanced log loss and accuracy of every point of every fold, in one pass.

    ``planes`` come per fold, setting and point; ``sample`` and ``sampled`` are the indices
    and values of the rows to calibrate on, those in the fold giving features and losses.
    """
    stacks, places, held_out = [], [], []
    for f, fold in enumerate(planes):
        models, place = distinct(fold)
        stack = PlaneStack.of(models)
        features = stack.log_distances(sampled[:, stack.panel])
        inside = folds[sample] != f
        train = sample[inside]
        stacks.append(stack.calibrated(features[inside], rows.codes[train], rows.weight_of(train)))
        places.append(place)
        loss, _ = stacks[-1].losses(features[~inside], rows.codes[sample[~inside]])
        held_out.append((features[~inside], loss))
    losses = rows.X.reduce_rows(
        partial(_visit_losses, stacks=stacks), _add_losses, (folds, rows.codes, rows.weight)
    )
    results = []
    for f, (fold, place) in enumerate(zip(planes, places)):
        inside = sample[folds[sample] == f]
        n_scored = int(np.count_nonzero(folds == f))
        found = FoldScores.empty(fold, inside, 1, len(rows.classes), n_scored)
        reached = place >= 0
        scores, accuracies = mean_scores(losses[f])
        found.scores[reached, 0] = scores[place[reached]]
        found.accuracies[reached, 0] = accuracies[place[reached]]
        features, loss = held_out[f]
        found.features[reached] = features.swapaxes(0, 1)[place[reached]]
        found.losses[reached] = loss.T[place[reached]]
        results.append(found)
    return results


def _visit_losses(
    state: list[Float64Array] | None,
    block: Float64Array,
    folds: IntArray,
    codes: IntArray,
    weight: Float64Array | None,
    *,
    stacks: Sequence[PlaneStack],
) -> list[Float64Array]:
    """Per fold the sums of `sum_losses` over this block and those before."""
    found = []
    for f, stack in enumerate(stacks):
        inside = folds == f
        row_weight = np.ones(int(inside.sum())) if weight is None else weight[inside]
        features = stack.log_distances(block[np.ix_(inside, stack.panel)])
        losses = stack.losses(features, codes[inside])
        found.append(sum_losses(*losses, codes[inside], row_weight, stack.offset.shape[1]))
    return found if state is None else _add_losses(state, found)


def _add_losses(earlier: list[Float64Array], later: list[Float64Array]) -> list[Float64Array]:
    return [a + b for a, b in zip(earlier, later)]
