"""What an audit of batches found, and how it is said; `batches` has the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._notices import Notice, Severity
from ..metrics import BatchTies, Interval
from .result import ranged
from .values import plain

#: Batches above which several are left out at a time.
MOST_LEFT_OUT = 20
#: Samples of each class that must be left to tune and fit on.
FEWEST_LEFT = 4


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
                f"{FEWEST_LEFT} samples."
            )
            return said
        how = "several left out at a time" if self.unseen.together else "each left out once"
        text = (
            f"On unseen values of {self.name}, {how}, the procedure reaches "
            f"{ranged(self.unseen.score)}, and {self.unseen.ordinary:.2f} on the same samples in "
            "ordinary folds."
        )
        if self.unseen.not_left_out:
            text += f" Not left out, a class needing them: {_listed(self.unseen.not_left_out)}."
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
        found = {
            **{key: getattr(self, key) for key in ("name", "batches", "classes", "counts")},
            "labels": asdict(self.labels),
            "panel": None if self.panel is None else asdict(self.panel),
            "unseen": None if self.unseen is None else asdict(self.unseen),
            **{key: getattr(self, key) for key in ("confounded", "complete", "shown", "lost")},
            "sentences": self.sentences(),
        }
        return dict(plain(found))


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
