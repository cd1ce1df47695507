"""The audit of batches: is the class told from the batch, and what of a batch never seen?

The best rule that knows the batch alone predicts in batch b the class with the largest n_bk / n_k;
its balanced accuracy is (1/K) sum over b of the largest. On all samples that flatters the more the
more batches there are, so the mean over shuffled batches stands beside it. Then each batch is left
out once, and the procedure predicts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.model_selection import GroupKFold

from .._typing import IntArray, Record
from .._validate import derive_seed
from ..metrics import Interval, recall_mean_interval
from .procedure import Answer
from .result import Flag, OutOfFold
from .splits import Fold, Samples

LEFT_OUT = "batches left out"
_DRAWS = 999
_MOST = 20  # batches above which several are left out at a time
_FEWEST_LEFT = 4  # samples of each class that must be left to tune and fit on
_CLOSELY = 0.5  # share of the way from chance to certainty at which class and batch go together
_STREAM = 31  # keeps these seeds apart


@dataclass(frozen=True)
class UnseenBatches(Record):
    """How well the procedure predicts batches that it has not seen.

    Attributes
    ----------
    score : Interval
        Balanced accuracy, pooled over the batches that were left out. Its interval is of the
        sampling of samples, not of batches.
    ordinary : float
        That of the ordinary folds on the same samples; `loss` is by how much it is higher.
    recalls : tuple of tuple of (float or None)
        Share recognised of each class in each batch, where known.
    not_left_out : tuple of str
        Batches without which too few samples of a class are left to learn from.
    together : bool
        Whether several batches were left out at a time, there being so many.
    n_train : int
        The fewest samples that were learned from.
    """

    score: Interval
    ordinary: float
    loss: Interval
    recalls: tuple[tuple[float | None, ...], ...]
    not_left_out: tuple[str, ...]
    together: bool
    n_train: int


@dataclass(frozen=True)
class BatchAudit(Record):
    """What one batch variable has to do with the labels and the score.

    Attributes
    ----------
    name, batches, classes, counts
        The variable, its values, the classes, and the samples of each batch and class.
    accuracy, shuffled, p_value : float
        Balanced accuracy of the best rule that knows the batch only, its mean where batches are
        shuffled, and the share of these that do as well.
    strength : float or None
        ``(accuracy - shuffled) / (1 - shuffled)``: 0 is chance, 1 complete; None where chance
        gives 1, as with batches of one sample each.
    unseen : UnseenBatches or None
        The score on batches left out; None where none of them can be left out.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sparsegsvp import nested_evaluate
    >>> rng = np.random.default_rng(0)
    >>> y, plate = np.tile(["ill", "well"], 30), np.repeat(["p1", "p2", "p3"], 20)
    >>> X = rng.normal(size=(60, 4)) + 2.0 * (y == "ill")[:, None] + 3.0 * (plate == "p3")[:, None]
    >>> found = nested_evaluate(GaussianNB(), X, y, batch={"plate": plate}, n_permutations=0)
    >>> audit = found.batches[0]
    >>> audit.confounded, audit.unseen.ordinary > audit.unseen.score.value
    (False, True)
    """

    name: str
    batches: tuple[str, ...]
    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    accuracy: float
    shuffled: float
    p_value: float
    strength: float | None
    unseen: UnseenBatches | None

    @property
    def confounded(self) -> bool:
        """Whether class and batch hang together more than shuffled ones do."""
        return self.p_value <= 0.05 and (self.strength or 0.0) > 0

    @property
    def complete(self) -> bool:
        """Whether every batch has samples of one class only."""
        return all(sum(n > 0 for n in row) == 1 for row in self.counts)

    @property
    def lost(self) -> bool:
        """Whether unseen batches are predicted worse than samples of known ones."""
        return self.unseen is not None and self.unseen.loss.low > 0

    def flags(self) -> list[Flag]:
        """Return what the reader has to know of it; nothing where all is well."""
        result, unseen = [], self.unseen
        if self.confounded:
            numbers = {n: getattr(self, n) for n in ("name", "accuracy", "shuffled", "p_value")}
            numbers["closely"] = self.complete or (self.strength or 0.0) >= _CLOSELY
            result.append(Flag("confounded", numbers))
        if unseen is not None and self.lost:
            numbers = {"name": self.name, "score": unseen.score.value, "ordinary": unseen.ordinary}
            numbers |= {"below_chance": unseen.score.low <= 1 / len(self.classes)}
            result.append(Flag("new batch", {**numbers, "n_train": unseen.n_train}))
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, and what follows from them."""
        names = ("confounded", "complete", "lost")
        return super().to_dict() | {name: getattr(self, name) for name in names}


def batch_folds(samples: Samples, values: NDArray[np.str_]) -> list[Fold]:
    """Return the folds that leave each batch out where enough samples of each class are left.

    Samples whose group has others in the test part are in neither part. More than 20 batches
    are left out several at a time.
    """
    lots = np.unique(values, return_inverse=True)[1]
    if lots.max() + 1 > _MOST:
        splits = list(GroupKFold(_MOST).split(lots, groups=lots))
        for lot, (_, test) in enumerate(splits):
            lots[test] = -1 - lot
        lots = -1 - lots
    folds = []
    ordered, groups = lots[samples.order], samples.groups
    for lot in range(int(lots.max()) + 1):
        test = samples.order[ordered == lot]
        apart = ordered != lot
        if groups is not None:
            apart &= ~np.isin(groups[samples.order], groups[test])
        train = samples.order[apart]
        left = np.bincount(samples.codes[train], minlength=samples.n_classes)
        if left.min() >= _FEWEST_LEFT:
            folds.append(Fold(0, lot, train, test))
    return folds


def audit_batch(
    samples: Samples,
    name: str,
    ordinary: OutOfFold,
    folds: Sequence[Fold],
    answers: Sequence[Answer],
    seed: int,
    level: float,
) -> BatchAudit:
    """Audit one batch variable; ``answers`` are of the folds that leave its batches out."""
    names, member = np.unique(samples.batches[name], return_inverse=True)
    rng = np.random.default_rng(derive_seed(seed, _STREAM))
    accuracy, shuffled, p_value = class_from_batch(samples, member, rng)
    room, unseen = 1 - shuffled, None
    if folds:
        unseen = unseen_batches(samples, member, names.tolist(), folds, answers, ordinary, level)
    return BatchAudit(
        name,
        tuple(names.tolist()),
        tuple(str(label) for label in samples.classes),
        tuple(tuple(row) for row in _counts(member, samples.codes).tolist()),
        accuracy,
        shuffled,
        p_value,
        None if room < 1e-9 else max(0.0, (accuracy - shuffled) / room),
        unseen,
    )


def _counts(member: IntArray, codes: IntArray) -> IntArray:
    """Count the samples of each batch and class."""
    shape = int(member.max()) + 1, int(codes.max()) + 1
    return np.bincount(member * shape[1] + codes, minlength=shape[0] * shape[1]).reshape(shape)


def class_from_batch(
    samples: Samples, member: IntArray, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the accuracy of the batch alone, that of shuffled batches, and the p-value.

    Groups that lie within batches are shuffled as a whole.
    """
    codes, unit = samples.codes, np.argsort(samples.order)
    if samples.groups is not None:
        pairs = np.unique(np.stack([samples.groups, member]), axis=1).shape[1]
        if pairs == samples.groups.max() + 1 > member.max() + 1:
            unit = samples.groups
    per_class = np.bincount(codes)

    def accuracy(batches: IntArray) -> float:
        return float((_counts(batches, codes) / per_class).max(axis=1).sum() / per_class.size)

    of_unit = np.empty(int(unit.max()) + 1, dtype=np.intp)
    of_unit[unit] = member
    observed = accuracy(member)
    drawn = np.array([accuracy(rng.permutation(of_unit)[unit]) for _ in range(_DRAWS)])
    p = (1 + int((drawn >= observed - 1e-12).sum())) / (_DRAWS + 1)
    return observed, float(drawn.mean()), p


def unseen_batches(
    samples: Samples,
    member: IntArray,
    names: Sequence[str],
    folds: Sequence[Fold],
    answers: Sequence[Answer],
    ordinary: OutOfFold,
    level: float,
) -> UnseenBatches | None:
    """Compare the score on batches left out with that of ordinary folds on the same samples."""
    codes, k = samples.codes, samples.n_classes
    right = np.full(codes.size, np.nan)
    for fold, found in zip(folds, answers):
        right[fold.test] = found.predicted == codes[fold.test]
    times = np.bincount(ordinary.sample, minlength=codes.size)
    hits = np.bincount(ordinary.sample, ordinary.predicted == ordinary.truth, minlength=codes.size)
    tested = np.flatnonzero(np.isfinite(right) & (times > 0))
    if np.unique(codes[tested]).size < k:
        return None
    gaps = hits[tested] / times[tested] - right[tested]
    parts = [gaps[codes[tested] == j] for j in range(k)]
    loss = float(np.mean([part.mean() for part in parts]))
    error = np.sqrt(sum(part.var(ddof=1) / part.size for part in parts if part.size > 1))
    reach = float(norm.ppf((1 + level) / 2) * error / k)
    own = [right[tested][codes[tested] == j] for j in range(k)]
    counts = [(int(part.sum()), part.size) for part in own]
    score = recall_mean_interval(*zip(*counts), level=level)
    recalls = []
    for b in range(len(names)):
        shares = [_mean(right[(member == b) & (codes == j)]) for j in range(k)]
        recalls.append(tuple(share if np.isfinite(share) else None for share in shares))
    missing = np.setdiff1d(member, np.concatenate([member[fold.test] for fold in folds]))
    return UnseenBatches(
        score,
        score.value + loss,
        Interval(loss, max(-1.0, loss - reach), min(1.0, loss + reach), level),
        tuple(recalls),
        tuple(names[b] for b in missing),
        len(names) > _MOST,
        min(fold.train.size for fold in folds),
    )


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
