"""What batches have to do with labels and panels, and how it is said; `batches` has the sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .._notices import Notice

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


@dataclass(frozen=True, repr=False)
class BatchTies:
    """What one batch variable has to do with the labels and with a panel.

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

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 50, 2, effect=2.0, random_state=0, return_X_y=True)
    >>> plate = np.tile(["p1", "p2", "p3"], 20)
    >>> X[plate == "p3"] += 3  # shifted as a whole
    >>> ties = GSVPSVM(n_features=3).fit(X, y, batch={"plate": plate}).batch_audit_["plate"]
    >>> ties.confounded, ties.shown
    (False, True)
    """

    name: str
    batches: tuple[str, ...]
    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    labels: ClassFromBatch
    panel: BatchFromPanel | None

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

    def sentences(self) -> list[str]:
        """Say what was found: one sentence for each question."""
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
        return said

    def notices(self) -> list[Notice]:
        """Return what the reader has to know of it; nothing where all is well."""
        return list(self._notices())

    def _notices(self) -> Iterator[Notice]:
        first, second, *_ = self.sentences()
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

    def __repr__(self) -> str:
        title = f"Batches of {self.name}: {len(self.batches)} in {sum(map(sum, self.counts))}"
        return "\n  ".join([f"{title} samples", *self.sentences()])
