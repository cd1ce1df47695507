"""One outer fold: the procedure fitted on the training part, and the test part predicted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from .._typing import Float64Array, IntArray
from .folds import Fold, derive_seed
from .panels import centring_steps, fit_on, ready_to_predict, selected_features
from .scores import class_scores, counts_of, panel_score, score_fold
from .values import message_of

_FIT, _CONTROL, _FINAL = 11, 12, 13  # seed streams


@dataclass(frozen=True)
class Procedure:
    """A procedure and the samples it is evaluated on: what every fit needs."""

    estimator: Any
    X: Any  # as it was given
    matrix: Any  # the same as numbers
    y: NDArray[Any]
    codes: IntArray
    classes: NDArray[Any]
    groups: NDArray[Any] | None
    seed: int
    batch: NDArray[np.str_] | None = None

    def fit(self, rows: IntArray | None, seed: int) -> tuple[Any, list[str]]:
        """Fit a clone on some rows (all by default); return it with its warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fit_on(self.estimator, self.X, self.y, self.groups, rows, seed, self.batch)
        return model, [message_of(w.category, w.message) for w in caught]


def evaluate_fold(
    procedure: Procedure, fold: Fold, positive: int, n_random_panels: int
) -> dict[str, Any]:
    """Fit on the training part and predict the test part; return the record."""
    n_classes = procedure.classes.size
    model, caught = procedure.fit(
        fold.train, derive_seed(procedure.seed, _FIT, fold.repeat, fold.index)
    )
    batch = None if procedure.batch is None else procedure.batch[fold.test]
    last, X_test = ready_to_predict(model, _safe_indexing(procedure.X, fold.test), batch)
    predicted = np.searchsorted(procedure.classes, last.predict(X_test))
    decision, proba = class_scores(last, X_test, n_classes)
    truth = procedure.codes[fold.test]
    panel = selected_features(model, procedure.matrix.shape[1])
    return {
        "scores": score_fold(
            truth, predicted, decision, proba, n_classes=n_classes, positive=positive
        ),
        "counts": counts_of(truth, predicted, n_classes),
        "predicted": predicted,
        "decision": decision,
        "proba": proba,
        "distances": _plane_distances(last, X_test, n_classes),
        "panel": panel,
        "control": _control(procedure, fold, model, panel, n_random_panels),
        "warnings": caught,
    }


def final_panel(procedure: Procedure) -> dict[str, Any]:
    """Fit on all samples; return the record, which holds the panel."""
    model, _ = procedure.fit(None, derive_seed(procedure.seed, _FINAL))
    return {"panel": selected_features(model, procedure.matrix.shape[1])}


def _plane_distances(model: Any, X: Any, n_classes: int) -> Float64Array | None:
    """Return the distances to the planes of a classifier that has one per class."""
    if isinstance(model, Pipeline) and hasattr(model[-1], "distances"):
        X, model = model[:-1].transform(X), model[-1]
    distances = getattr(model, "distances", None)
    if not callable(distances):
        return None
    values = np.asarray(distances(X), dtype=np.float64)
    return values if values.ndim == 2 and values.shape[1] == n_classes else None


def _seen(procedure: Procedure, fold: Fold, model: Any) -> Any:
    """Return the table as it is or, in a fold whose model centres batches, with these centred."""
    if procedure.batch is None or not centring_steps(model):
        return procedure.matrix
    rows = np.concatenate([fold.train, fold.test])
    given = _safe_indexing(procedure.X, rows)
    _, seen = ready_to_predict(model, given, procedure.batch[rows])
    if seen.shape[1] != procedure.matrix.shape[1]:
        return procedure.matrix
    table = np.zeros(procedure.matrix.shape, seen.dtype)
    table[rows] = seen
    return table


def _control(
    procedure: Procedure, fold: Fold, model: Any, panel: IntArray | None, n_random_panels: int
) -> dict[str, float] | None:
    """Score the common classifier on the panel and on random panels of its size."""
    if panel is None or not panel.size or n_random_panels < 1:
        return None
    rng = np.random.default_rng(derive_seed(procedure.seed, _CONTROL, fold.repeat, fold.index))
    matrix = _seen(procedure, fold, model)
    n_features = matrix.shape[1]
    drawn = [rng.choice(n_features, panel.size, replace=False) for _ in range(n_random_panels)]
    values = [panel_score(matrix, procedure.codes, fold, p)[0] for p in [panel, *drawn]]
    return {"selected": values[0], "random": float(np.mean(values[1:]))}
