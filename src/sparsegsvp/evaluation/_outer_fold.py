"""One outer fold: fit on the training part, predict and score the test part."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ._folds import Fold, derive_seed
from ._panel_score import panel_score
from ._panels import fit_with_groups, selected_features, with_seed
from ._scores import class_scores, counts_of, score_fold
from .journal import message_of

_FIT, _CONTROL, _FINAL = 11, 12, 13  # seed streams


class Study:
    """A procedure and the samples it is evaluated on: what every fit needs."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        matrix: Any,
        y: NDArray[Any],
        codes: NDArray[np.intp],
        classes: NDArray[Any],
        groups: NDArray[Any] | None,
        seed: int,
    ) -> None:
        self.estimator = estimator
        self.X = X
        self.matrix = matrix
        self.y = y
        self.codes = codes
        self.classes = classes
        self.groups = groups
        self.seed = seed

    def fit(self, rows: NDArray[np.intp] | None, seed: int) -> tuple[Any, list[str]]:
        """Fit a clone on some rows (all by default); return it with its warnings."""
        model = with_seed(clone(self.estimator), seed)
        X = self.X if rows is None else _safe_indexing(self.X, rows)
        y = self.y if rows is None else self.y[rows]
        groups = self.groups
        if groups is not None and rows is not None:
            groups = groups[rows]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit_with_groups(model, X, y, groups)
        return model, [message_of(w.category, w.message) for w in caught]


def evaluate_fold(study: Study, fold: Fold, positive: int, n_random_panels: int) -> dict[str, Any]:
    """Fit on the training part and predict the test part; return the record."""
    n_classes = study.classes.size
    model, caught = study.fit(fold.train, derive_seed(study.seed, _FIT, fold.repeat, fold.index))
    X_test = _safe_indexing(study.X, fold.test)
    predicted = np.searchsorted(study.classes, model.predict(X_test))
    decision, proba = class_scores(model, X_test, n_classes)
    truth = study.codes[fold.test]
    panel = selected_features(model, study.matrix.shape[1])
    return {
        "scores": score_fold(
            truth, predicted, decision, proba, n_classes=n_classes, positive=positive
        ),
        "counts": counts_of(truth, predicted, n_classes),
        "predicted": predicted,
        "decision": decision,
        "proba": proba,
        "distances": _plane_distances(model, X_test, n_classes),
        "panel": panel,
        "control": _control(study, fold, panel, n_random_panels),
        "warnings": caught,
    }


def final_panel(study: Study) -> dict[str, Any]:
    """Fit on all samples; return the record, which holds the panel."""
    model, _ = study.fit(None, derive_seed(study.seed, _FINAL))
    return {"panel": selected_features(model, study.matrix.shape[1])}


def _plane_distances(model: Any, X: Any, n_classes: int) -> NDArray[np.float64] | None:
    """Return the distances to the planes of a classifier that has one per class."""
    if isinstance(model, Pipeline) and hasattr(model[-1], "distances"):
        X, model = model[:-1].transform(X), model[-1]
    distances = getattr(model, "distances", None)
    if not callable(distances):
        return None
    values = np.asarray(distances(X), dtype=np.float64)
    return values if values.ndim == 2 and values.shape[1] == n_classes else None


def _control(
    study: Study, fold: Fold, panel: NDArray[np.intp] | None, n_random_panels: int
) -> dict[str, float] | None:
    """Score the common classifier on the panel and on random panels of its size."""
    if panel is None or not panel.size or n_random_panels < 1:
        return None
    rng = np.random.default_rng(derive_seed(study.seed, _CONTROL, fold.repeat, fold.index))
    n_features = study.matrix.shape[1]
    drawn = [rng.choice(n_features, panel.size, replace=False) for _ in range(n_random_panels)]
    values = [panel_score(study.matrix, study.codes, fold, p)[0] for p in [panel, *drawn]]
    return {"selected": values[0], "random": float(np.mean(values[1:]))}
