"""Two fitted models on the same independent samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..metrics import PairedAreas, PairedLabels, delong_test, mcnemar_test
from .scores import class_scores
from .values import plain


@dataclass(frozen=True)
class PairedModels:
    """Two models on the same cohort; the result of `compare_external`.

    Attributes
    ----------
    areas : PairedAreas or None
        Areas under the ROC curve, compared by DeLong's test; None where a model ranks nothing,
        or a class has fewer than two samples.
    labels : PairedLabels
        Labels, compared by McNemar's exact test.
    """

    areas: PairedAreas | None
    labels: PairedLabels

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return plain(vars(self))


def compare_external(
    first: Any, second: Any, X: Any, y: ArrayLike, *, pos_label: Any = None, level: float = 0.95
) -> PairedModels:
    """Compare two fitted classifiers of two classes on the same independent samples.

    Parameters
    ----------
    first, second : classifier
        Fitted, on other samples than these.
    X : array, sparse matrix or data frame, or a pair of these
        The samples; as a pair, what the first and what the second model takes.
    y : array-like of shape (n_samples,)
        Labels.
    pos_label : label, optional
        The positive class, by default the last in sorted order.
    level : float, default=0.95
        Coverage of the interval of the difference.

    Returns
    -------
    PairedModels

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import compare_external
    >>> X, y = make_planted(120, 20, 4, effect=1.5, return_X_y=True)
    >>> small, large = (GSVPSVM(n_features=k).fit(X[:60], y[:60]) for k in (1, 4))
    >>> found = compare_external(large, small, X[60:], y[60:])
    >>> found.areas.difference.value > 0
    True
    """
    parts = X if isinstance(X, tuple) else (X, X)
    truth = np.asarray(y)
    classes = np.asarray(first.classes_)
    if len(classes) != 2 or not np.array_equal(classes, second.classes_):
        raise ValueError("both models must know the same two classes.")
    one = classes.tolist().index(pos_label) if pos_label is not None else 1
    ranks, labels = [], []
    for model, rows in zip((first, second), parts):
        decision, _ = class_scores(model, rows, 2)
        if decision is not None:
            ranks.append(decision[:, one])
        labels.append(np.asarray(model.predict(rows)))
    positive = truth == classes[one]
    areas = None
    if len(ranks) == 2 and min(positive.sum(), (~positive).sum()) >= 2:
        areas = delong_test(positive, ranks[0], ranks[1], level=level)
    return PairedModels(areas, mcnemar_test(truth, *labels))
