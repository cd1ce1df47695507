"""The audit of batches: how well the procedure predicts a batch that it has not seen.

Each batch is left out once. What a batch variable has to do with labels and panels, the other two
questions of the audit, is asked in `sparsegsvp.metrics.batches`; panels are those of the outer
folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.model_selection import GroupKFold

from .._notices import Notice, Severity
from .._typing import IntArray
from .._validate import first_few
from ..metrics import BatchTies, Interval, balanced_accuracy_interval
from ..metrics.batches import batch_ties
from .folds import Fold
from .result import FoldResult
from .values import plain, ranged

if TYPE_CHECKING:
    from .outer import Evaluated

LEFT_OUT = "leaving batches out"
_MOST = 20  # batches above which several are left out at a time
_FEWEST_LEFT = 4  # samples of each class that must be left to tune and fit on


@dataclass(frozen=True)
class UnseenBatches:
    """How well the procedure predicts batches that it has not seen.

    Attributes
    ----------
    score : Interval
        Balanced accuracy, pooled over the batches that were left out. Its interval is of the
        sampling of samples, not of batches.
    ordinary : float
        That of the ordinary folds, on the same samples.
    loss : Interval
        The ordinary one minus `score`, paired by sample.
    recalls : tuple of tuple of (float or None)
        Share recognised of each class in each batch; None where a batch has no such sample or
        was not left out.
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


@dataclass(frozen=True, repr=False)
class BatchAudit(BatchTies):
    """What one batch variable has to do with the labels, the panel and the score.

    Attributes
    ----------
    name, batches, classes, counts, labels, panel
        As of `sparsegsvp.metrics.BatchTies`; the panels are those of the outer folds.
    unseen : UnseenBatches or None
        The score on batches left out; None where none of them can be left out.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsegsvp import nested_evaluate
    >>> rng = np.random.default_rng(0)
    >>> y, plate = np.tile(["ill", "well"], 30), np.repeat(["p1", "p2", "p3"], 20)
    >>> X = rng.normal(size=(60, 50))
    >>> X[y == "ill", :2] += 2
    >>> X[plate == "p3"] += 3  # shifted as a whole
    >>> procedure = make_pipeline(SelectKBest(k=2), LogisticRegression())
    >>> found = nested_evaluate(
    ...     procedure, X, y, batch={"plate": plate}, n_repeats=1, n_permutations=0
    ... )
    >>> audit = found.batches[0]
    >>> audit.labels.p_value > 0.05, audit.panel.auc > 0.7
    (True, True)
    >>> audit.unseen.ordinary > audit.unseen.score.value
    True
    """

    unseen: UnseenBatches | None

    @property
    def lost(self) -> bool:
        """Whether unseen batches are predicted worse than samples of known ones."""
        return self.unseen is not None and self.unseen.loss.low > 0

    def sentences(self) -> list[str]:
        """Say what was found: one sentence for each of the three questions."""
        said = super().sentences()
        if self.unseen is None:
            said.append(
                f"No value of {self.name} can be left out: without it a class has fewer than "
                f"{_FEWEST_LEFT} samples."
            )
            return said
        how = "several left out at a time" if self.unseen.together else "each left out once"
        text = (
            f"On unseen values of {self.name}, {how}, the procedure reaches "
            f"{ranged(self.unseen.score)}, and {self.unseen.ordinary:.2f} on the same samples in "
            "ordinary folds."
        )
        names = self.unseen.not_left_out
        if names:
            text += f" Not left out, a class needing them: {first_few(names)}."
        return [*said, text]

    def _notices(self) -> Iterator[Notice]:
        yield from super()._notices()
        if self.unseen is not None and self.lost:
            chance = 1 / len(self.classes)
            text = f"{self.sentences()[2]} Expect the lower score where samples are measured anew."
            if self.unseen.n_train < 0.7 * sum(map(sum, self.counts)):
                text += (
                    f" A part of the loss may come from learning from {self.unseen.n_train} "
                    "samples."
                )
            severity: Severity = "serious" if self.unseen.score.low <= chance else "caution"
            yield Notice("new batch", severity, text)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        flags = ("confounded", "complete", "shown", "lost")
        found = {**asdict(self), **{name: getattr(self, name) for name in flags}}
        return plain({**found, "sentences": self.sentences()})


def batch_folds(member: IntArray, codes: IntArray, groups: NDArray[Any] | None) -> list[Fold]:
    """Return the folds that leave each batch out where enough samples of each class are left.

    Samples whose group has others in the test part are in neither part. More than 20 batches
    are left out several at a time.
    """
    lots = member
    if member.max() + 1 > _MOST:
        lots = np.empty_like(member)
        splits = GroupKFold(_MOST).split(member, groups=member)
        for lot, (_, test) in enumerate(splits):
            lots[test] = lot
    folds = []
    for lot in range(int(lots.max()) + 1):
        test = np.flatnonzero(lots == lot)
        apart = lots != lot
        if groups is not None:
            apart &= ~np.isin(groups, groups[test])
        train = np.flatnonzero(apart)
        if np.bincount(codes[train], minlength=codes.max() + 1).min() >= _FEWEST_LEFT:
            folds.append(Fold(0, lot, train, test))
    return folds


def folds_without(
    batches: Mapping[str, Any], codes: IntArray, groups: NDArray[Any] | None
) -> dict[str, list[Fold]]:
    """Return, for each batch variable, the folds that leave its batches out."""
    return {
        name: batch_folds(np.unique(values, return_inverse=True)[1], codes, groups)
        for name, values in batches.items()
    }


def unseen_batches(
    codes: IntArray,
    member: IntArray,
    names: Sequence[str],
    left_out: Sequence[FoldResult],
    ordinary: Sequence[FoldResult],
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
    missing = np.setdiff1d(member, np.concatenate([member[fold.test] for fold in left_out]))
    return UnseenBatches(
        score,
        score.value + loss,
        Interval(loss, max(-1.0, loss - reach), min(1.0, loss + reach), level),
        tuple(recalls),
        tuple(names[b] for b in missing),
        len(names) > _MOST,
        min(fold.train.size for fold in left_out),
    )


def audit_batch(
    procedure: Evaluated,
    name: str,
    values: NDArray[np.str_],
    ordinary: Sequence[FoldResult],
    left_out: Sequence[FoldResult],
    level: float,
) -> BatchAudit:
    """Ask the three questions of one batch variable; nothing of the procedure is fitted.

    `ordinary` are the outer folds and `left_out` those of `batch_folds`.
    """
    codes, classes = procedure.codes, procedure.classes.tolist()
    panels = [fold.panel for fold in ordinary if fold.repeat == ordinary[0].repeat]
    ties = batch_ties(
        name, values, procedure.matrix, codes, classes, procedure.groups, panels, procedure.seed
    )
    unseen = None
    if left_out:
        member = np.unique(values, return_inverse=True)[1]
        unseen = unseen_batches(codes, member, ties.batches, left_out, ordinary, level)
    return BatchAudit(**vars(ties), unseen=unseen)
