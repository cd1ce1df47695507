"""Cross-validation of tall data in two passes.

The first pass forms the moments of every fold and draws a fixed sample of all classes, to
which calibrators are fitted; a training part is the sum of the other folds' moments. The
second scores all points block by block, each block by the planes of the folds its rows are
held out from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add

import numpy as np

from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import ClassMoments, Covariances, MomentCovariances
from ..linalg.covariances import choose_method
from ..linalg.moments import ClassSums, add_rows, merge_sums
from .decision import SAMPLE, balanced_sample, fit_calibrator, log_distances
from .search import FoldScores, LabelledRows, RawPlanes, Search, mean_recall, solve_points

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
        cov = MomentCovariances(reduce(add, parts[:f] + parts[f + 1 :]), search.standardize)
        planes.append([solve_points(cov, settings, search) for settings in search.settings])
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
    planes: Sequence[Sequence[Sequence[RawPlanes]]],
    rows: LabelledRows,
    folds: IntArray,
    sample: IntArray,
    sampled: Float64Array,
) -> list[FoldScores]:
    """Class-balanced log loss and accuracy of every point of every fold, in one pass.

    ``planes`` come per fold, setting and point; ``sample`` and ``sampled`` are the indices
    and values of the rows to calibrate on, those in the fold giving the scores' features.
    """
    stacks, held_out = [], []
    for f, fold in enumerate(planes):
        stack = _FoldStack.of(fold, len(rows.classes), sampled.shape[1])
        features = stack.features(sampled)
        inside = folds[sample] != f
        train = sample[inside]
        stacks.append(stack.calibrated(features[inside], rows.codes[train], rows.weight_of(train)))
        held_out.append(features[~inside])
    losses = rows.X.reduce_rows(
        partial(_visit_losses, stacks=stacks), _add_losses, (folds, rows.codes, rows.weight)
    )
    results = []
    for f, (fold, stack) in enumerate(zip(planes, stacks)):
        (loss, hits), (total, counts) = losses[f][:, :, :-1], losses[f][:, :, -1]
        present = total > 0
        mean = (loss[present] / total[present, None]).mean(axis=0)
        shape = (len(fold), len(fold[0]))
        features = held_out[f][:, stack.index].reshape(-1, *shape, len(rows.classes))
        results.append(
            FoldScores(
                scores=-mean[stack.index].reshape(*shape, 1),
                accuracies=mean_recall(hits, counts)[stack.index].reshape(*shape, 1),
                sizes=np.array([[len(plane.panel) for plane in setting] for setting in fold]),
                rows=sample[folds[sample] == f],
                features=np.moveaxis(features, 0, 2),
            )
        )
    return results


def _visit_losses(
    state: list[Float64Array] | None,
    block: Float64Array,
    folds: IntArray,
    codes: IntArray,
    weight: Float64Array | None,
    *,
    stacks: Sequence[_FoldStack],
) -> list[Float64Array]:
    """Per fold the sums of `_FoldStack.losses` over this block and those before."""
    found = []
    for f, stack in enumerate(stacks):
        inside = folds == f
        row_weight = np.ones(int(inside.sum())) if weight is None else weight[inside]
        found.append(stack.losses(block[inside], codes[inside], row_weight))
    return found if state is None else _add_losses(state, found)


def _add_losses(earlier: list[Float64Array], later: list[Float64Array]) -> list[Float64Array]:
    return [a + b for a, b in zip(earlier, later)]


@dataclass(frozen=True, eq=False)
class _FoldStack:
    """All distinct planes of one fold as one matrix, with their calibrators."""

    index: IntArray  # place of each setting's and point's planes among the distinct ones
    coef: Float64Array  # (n_features, n_distinct, n_classes)
    intercept: Float64Array  # (n_distinct, n_classes)
    scale: Float64Array  # (n_distinct, n_classes)
    slope: Float64Array  # of the calibrators, (n_distinct, n_classes, n_classes)
    offset: Float64Array  # of the calibrators, (n_distinct, n_classes)

    @classmethod
    def of(cls, planes: Sequence[Sequence[RawPlanes]], k: int, m: int) -> _FoldStack:
        """Stack the planes of every setting and point, without calibrators."""
        flat = [plane for setting in planes for plane in setting]
        index = np.zeros(len(flat), dtype=np.intp)
        unique: list[RawPlanes] = []
        place: dict[int, int] = {}
        for i, plane in enumerate(flat):
            if id(plane) not in place:
                place[id(plane)] = len(unique)
                unique.append(plane)
            index[i] = place[id(plane)]
        coef = np.zeros((m, len(unique), k))
        for i, plane in enumerate(unique):
            coef[plane.panel, i] = plane.coef.T
        return cls(
            index,
            coef,
            np.stack([plane.intercept for plane in unique]),
            np.stack([plane.scale for plane in unique]),
            np.zeros((len(unique), k, k)),
            np.zeros((len(unique), k)),
        )

    def calibrated(
        self, features: Float64Array, codes: IntArray, weight: Float64Array | None
    ) -> _FoldStack:
        """The same planes with calibrators fitted to the features of training rows."""
        slope, offset = np.zeros_like(self.slope), np.zeros_like(self.offset)
        for i in range(len(slope)):
            model = fit_calibrator(features[:, i], codes, slope.shape[1], weight)
            if model.coef.ndim == 1:  # two classes: the log odds of the second
                slope[i, 1], offset[i, 1] = model.coef, model.intercept
            else:
                slope[i], offset[i] = model.coef, model.intercept
        return replace(self, slope=slope, offset=offset)

    def features(self, rows: Float64Array) -> Float64Array:
        """Log distances of rows, of shape (n_rows, n_distinct, n_classes)."""
        distances = np.tensordot(rows, self.coef, axes=1) + self.intercept
        return log_distances(distances, self.scale)

    def losses(self, rows: Float64Array, codes: IntArray, weight: Float64Array) -> Float64Array:
        """Summed losses and numbers of hits, of shape (2, n_classes, n_distinct + 1).

        The last column holds what they are divided by: the weight and the number of rows.
        """
        k = self.offset.shape[1]
        logits = np.einsum("npk,pck->npc", self.features(rows), self.slope) + self.offset
        hits = logits.argmax(axis=2) == codes[:, None]
        logits -= logits.max(axis=2, keepdims=True)
        loss = np.log(np.exp(logits).sum(axis=2))
        loss -= np.take_along_axis(logits, codes[:, None, None], axis=2)[:, :, 0]
        # as the metric has it, no probability is taken below the rounding unit
        np.minimum(loss, -np.log(np.finfo(np.float64).eps), out=loss)
        out = np.zeros((2, k, loss.shape[1] + 1))
        for c in range(k):
            inside = codes == c
            out[0, c, :-1] = weight[inside] @ loss[inside]
            out[0, c, -1] = weight[inside].sum()
            out[1, c, :-1] = hits[inside].sum(axis=0)
            out[1, c, -1] = inside.sum()
        return out
