"""The audit of batches: how well the procedure predicts a batch that it has not seen.

Each batch is left out once. What a batch variable has to do with labels and panels, the other two
questions of the audit, is asked in `sparsegsvp.metrics.batches`; panels are those of the outer
folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.model_selection import GroupKFold

from .._typing import IntArray
from ..metrics import Interval, balanced_accuracy_interval
from ..metrics.batches import batch_ties
from .audit import FEWEST_LEFT, MOST_LEFT_OUT, BatchAudit, UnseenBatches
from .folds import Fold
from .result import FoldResult

LEFT_OUT = "leaving batches out"


def batch_folds(
    member: IntArray, codes: IntArray, groups: NDArray[Any] | None
) -> tuple[list[Fold], IntArray]:
    """Return the folds that leave each batch out, and the batches that none leaves out.

    Samples whose group has others in the test part are in neither part. More than 20 batches
    are left out several at a time.
    """
    lots = member
    if member.max() + 1 > MOST_LEFT_OUT:
        lots = np.empty_like(member)
        splits = GroupKFold(MOST_LEFT_OUT).split(member, groups=member)
        for lot, (_, test) in enumerate(splits):
            lots[test] = lot
    folds = []
    for lot in range(int(lots.max()) + 1):
        test = np.flatnonzero(lots == lot)
        apart = lots != lot
        if groups is not None:
            apart &= ~np.isin(groups, groups[test])
        train = np.flatnonzero(apart)
        if np.bincount(codes[train], minlength=codes.max() + 1).min() >= FEWEST_LEFT:
            folds.append(Fold(0, lot, train, test))
    tested = np.concatenate([member[:0], *(member[fold.test] for fold in folds)])
    return folds, np.setdiff1d(member, tested)


def folds_without(
    batches: Mapping[str, Any], codes: IntArray, groups: NDArray[Any] | None
) -> dict[str, list[Fold]]:
    """Return, for each batch variable, the folds that leave its batches out."""
    return {
        name: batch_folds(np.unique(values, return_inverse=True)[1], codes, groups)[0]
        for name, values in batches.items()
    }


def unseen_batches(
    codes: IntArray,
    member: IntArray,
    names: Sequence[str],
    left_out: Sequence[FoldResult],
    ordinary: Sequence[FoldResult],
    missing: IntArray,
    level: float,
) -> UnseenBatches | None:
    """Compare the score on batches left out with that of ordinary folds on the same samples."""
    n_classes = int(codes.max()) + 1
    right = np.full(codes.size, np.nan)
    predicted = np.full(codes.size, -1)
    for fold in left_out:
        predicted[fold.test] = fold.predicted
        right[fold.test] = fold.predicted == codes[fold.test]
    hits, times = np.zeros(codes.size), np.zeros(codes.size)
    for fold in ordinary:
        hits[fold.test] += fold.predicted == codes[fold.test]
        times[fold.test] += 1
    tested = np.flatnonzero(~np.isnan(right) & (times > 0))
    if np.unique(codes[tested]).size < n_classes:
        return None
    usual = np.divide(hits, times, out=np.zeros(codes.size), where=times > 0)
    gaps = usual[tested] - right[tested]
    parts = [gaps[codes[tested] == k] for k in range(n_classes)]
    loss = float(np.mean([part.mean() for part in parts]))
    error = np.sqrt(sum(part.var(ddof=1) / part.size for part in parts if part.size > 1))
    reach = float(norm.ppf((1 + level) / 2) * error / n_classes)
    score = balanced_accuracy_interval(codes[tested], predicted[tested], level=level)
    recalls = []
    for b in range(len(names)):
        rows = [right[(member == b) & (codes == k)] for k in range(n_classes)]
        recalls.append(
            tuple(float(r.mean()) if r.size and not np.isnan(r).any() else None for r in rows)
        )
    return UnseenBatches(
        score,
        score.value + loss,
        Interval(loss, max(-1.0, loss - reach), min(1.0, loss + reach), level),
        tuple(recalls),
        tuple(names[b] for b in missing),
        len(names) > MOST_LEFT_OUT,
        min(fold.train.size for fold in left_out),
    )


def audit_batch(
    name: str,
    values: NDArray[np.str_],
    matrix: Any,
    codes: IntArray,
    classes: Sequence[Any],
    groups: NDArray[Any] | None,
    ordinary: Sequence[FoldResult],
    left_out: Sequence[FoldResult],
    *,
    level: float,
    seed: int,
) -> BatchAudit:
    """Ask the three questions of one batch variable; nothing of the procedure is fitted.

    `ordinary` are the outer folds and `left_out` those of `batch_folds`.
    """
    panels = [fold.panel for fold in ordinary if fold.repeat == ordinary[0].repeat]
    ties = batch_ties(name, values, matrix, codes, classes, groups, panels, seed)
    member = np.unique(values, return_inverse=True)[1]
    unseen = None
    if left_out:
        _, missing = batch_folds(member, codes, groups)
        unseen = unseen_batches(codes, member, ties.batches, left_out, ordinary, missing, level)
    return BatchAudit(**vars(ties), unseen=unseen)
