"""What an audit of batches found, and how it is said; `batches` has the questions and the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._notices import Notice, Severity
from ..metrics import Interval
from .result import ranged
from .values import plain

#: Batches above which several are left out at a time.
MOST_LEFT_OUT = 20
#: Samples of each class that must be left to tune and fit on.
FEWEST_LEFT = 4
# Conventions for readers, not tests: the share of the way from chance to certainty at which
# class and batch hang closely together, and the area at which a panel shows the batch.
_CLOSELY, _SHOWS = 0.5, 0.7


@dataclass(frozen=True)
class ClassFromBatch:
    """How well the class is told from the batch alone.

    Attributes
    ----------
    accuracy : float
        Balanced accuracy of the best rule that knows the batch only, on all samples.
    shuffled : float
        The mean of the same where batches are shuffled: what chance gives with these batches.
    p_value : float
        Share of the shuffled batches that do as well.
    strength : float or None
        ``(accuracy - shuffled) / (1 - shuffled)``: 0 is chance, 1 complete; None where chance
        gives 1, as with batches of one sample each.
    """

    accuracy: float
    shuffled: float
    p_value: float
    strength: float | None


@dataclass(frozen=True)
class BatchFromPanel:
    """How well the batch is told from the panel, among samples of one class.

    Attributes
    ----------
    auc : float
        Probability that a held-out sample of a batch ranks above one of the same class from
        another batch, the mean over the batches; 0.5 is chance.
    by_batch : tuple of (float or None)
        The same for each batch; None for one that shares no class with another.
    p_value : float
        Share of batches shuffled within the classes that do as well.
    """

    auc: float
    by_batch: tuple[float | None, ...]
    p_value: float


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
class BatchAudit:
    """What one batch variable has to do with the labels, the panel and the score.

    Attributes
    ----------
    name : str
        Name of the variable.
    batches, classes : tuple of str
        Its values, and the classes.
    counts : tuple of tuple of int
        Samples of each batch (rows) and class (columns).
    labels : ClassFromBatch
        Can the class be told from the batch alone?
    panel : BatchFromPanel or None
        Can the batch be told from the panel? None where that cannot be asked: every batch has
        a class for itself, or the procedure does not say which features it uses.
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

    name: str
    batches: tuple[str, ...]
    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    labels: ClassFromBatch
    panel: BatchFromPanel | None
    unseen: UnseenBatches | None

    @property
    def confounded(self) -> bool:
        """Whether class and batch hang together more than shuffled ones do."""
        return self.labels.p_value <= 0.05 and (self.labels.strength or 0.0) > 0

    @property
    def complete(self) -> bool:
        """Whether every batch has samples of one class only."""
        return all(sum(n > 0 for n in row) == 1 for row in self.counts)

    @property
    def shown(self) -> bool:
        """Whether the panel tells the batches apart within the classes."""
        return self.panel is not None and self.panel.p_value <= 0.05 and self.panel.auc >= _SHOWS

    @property
    def lost(self) -> bool:
        """Whether unseen batches are predicted worse than samples of known ones."""
        return self.unseen is not None and self.unseen.loss.low > 0

    def sentences(self) -> list[str]:
        """Say what was found: one sentence for each of the three questions."""
        labels = self.labels
        said = [
            f"From {self.name} alone, the class is told with a balanced accuracy of "
            f"{labels.accuracy:.2f} at best, where shuffled batches give {labels.shuffled:.2f} "
            f"(p = {labels.p_value:.3f})."
        ]
        if self.panel is not None:
            said.append(
                f"From the panel, {self.name} is told within the classes with an area under the "
                f"ROC curve of {self.panel.auc:.2f}, where 0.50 is chance "
                f"(p = {self.panel.p_value:.3f})."
            )
        else:
            said.append(f"Whether {self.name} can be told from the panel cannot be asked here.")
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

    def notices(self) -> list[Notice]:
        """Return what the reader has to know of it; nothing where all is well."""
        return list(self._notices())

    def _notices(self) -> Iterator[Notice]:
        first, second, *rest = self.sentences()
        if self.confounded:
            closely = self.complete or (self.labels.strength or 0.0) >= _CLOSELY
            what = "hang closely together" if closely else "hang together"
            yield Notice(
                "confounded",
                "serious" if closely else "caution",
                f"{first} Classes and batches {what}: the panel may show the batch, not the "
                "class. No method can tell the two apart where they go together; measure samples "
                "of every class in every batch.",
            )
        if self.shown:
            yield Notice(
                "batch shows",
                "caution",
                f"{second} Part of what its features measure is where or when a sample was "
                "measured.",
            )
        if self.unseen is not None and self.lost:
            chance = 1 / len(self.classes)
            text = f"{rest[0]} Expect the lower score where samples are measured anew."
            if self.unseen.n_train < 0.7 * sum(map(sum, self.counts)):
                text += (
                    f" A part of the loss may come from learning from {self.unseen.n_train} "
                    "samples."
                )
            severity: Severity = "serious" if self.unseen.score.low <= chance else "caution"
            yield Notice("new batch", severity, text)

    def __repr__(self) -> str:
        title = f"Batches of {self.name}: {len(self.batches)} in {sum(map(sum, self.counts))}"
        return "\n  ".join([f"{title} samples", *self.sentences()])

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
