"""The scores of one fold, and what all folds together say: scores with intervals, and panels.

Classes are codes 0..K-1. For two classes the positive one is named; with more, areas and
rates are averaged over each class against the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from .._typing import Float64Array, IntArray
from ..linalg.matrix import dense
from ..metrics import (
    CalibrationCurve,
    Interval,
    StabilityIndex,
    average_jaccard,
    balanced_brier_score,
    balanced_calibration_curve,
    balanced_log_loss,
    delong_variance,
)
from .baselines import common_classifier
from .folds import Fold, holdout_ratio
from .intervals import auc_interval, corrected_interval, rate_interval
from .panels import panel_stability

if TYPE_CHECKING:
    from .result import FoldResult

#: Scores of a fold and their range.
BOUNDS: dict[str, tuple[float, float]] = {
    "balanced_accuracy": (0.0, 1.0),
    "auc": (0.0, 1.0),
    "average_precision": (0.0, 1.0),
    "prevalence": (0.0, 1.0),
    "brier": (0.0, 1.0),
    "log_loss": (0.0, float("inf")),
    "sensitivity": (0.0, 1.0),
    "specificity": (0.0, 1.0),
}


#: What readers call the scores, in the order in which they are shown.
SCORE_TITLES = {
    "balanced_accuracy": "balanced accuracy",
    "auc": "area under the ROC curve",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "accuracy": "accuracy",
    "ppv": "positive predictive value",
    "npv": "negative predictive value",
    "brier": "Brier score",
}


def class_scores(
    estimator: Any, X: Any, n_classes: int
) -> tuple[Float64Array | None, Float64Array | None]:
    """Return decision values and probabilities, both (n, K), or None where there are none.

    For two classes the decision value of class 0 is minus that of class 1. With more,
    probabilities serve where they exist: raw values of one class (a softmax's inputs) are
    comparable within a sample, not between samples.
    """
    proba = None
    if hasattr(estimator, "predict_proba"):
        proba = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        if proba.shape[1] != n_classes:
            raise ValueError(
                f"{type(estimator).__name__}.predict_proba has {proba.shape[1]} columns for "
                f"{n_classes} classes."
            )
    decision = None
    if hasattr(estimator, "decision_function") and (n_classes == 2 or proba is None):
        decision = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if decision.ndim == 1:
            decision = np.column_stack([-decision, decision])
        if decision.shape[1] != n_classes:  # one against one: no value per class
            decision = None
    return (proba if decision is None else decision), proba


def mean_class_recall(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the balanced accuracy over the classes present in ``y``.

    Without the input checks of scikit-learn's, which take longer than a small fit.
    """
    return float(np.mean([np.mean(predicted[y == label] == label) for label in np.unique(y)]))


def counts_of(y: IntArray, predicted: IntArray, n_classes: int) -> list[list[int]]:
    """Return (true positives, positives, true negatives, negatives) of each class."""
    result = []
    for k in range(n_classes):
        own, said = y == k, predicted == k
        counts = (own & said).sum(), own.sum(), (~own & ~said).sum(), (~own).sum()
        result.append([int(count) for count in counts])
    return result


def fold_scores(
    y: IntArray,
    predicted: IntArray,
    decision: Float64Array | None,
    proba: Float64Array | None,
    *,
    n_classes: int,
    positive: int,
) -> dict[str, float]:
    """Return every score of a fold; ``nan`` where the fold cannot define it.

    ``positive`` is the code of the positive class, used for two classes only.
    """
    nan = float("nan")
    counts = counts_of(y, predicted, n_classes)
    recalls = [tp / p if p else nan for tp, p, _, _ in counts]
    specificities = [tn / n if n else nan for _, _, tn, n in counts]
    ones = [positive] if n_classes == 2 else list(range(n_classes))
    complete = all(p > 0 for _, p, _, _ in counts)
    scores = {
        "balanced_accuracy": float(np.mean(recalls)),
        "sensitivity": float(np.mean([recalls[k] for k in ones])),
        "specificity": float(np.mean([specificities[k] for k in ones])),
        "prevalence": float(np.mean([np.mean(y == k) for k in ones])),
        "auc": nan,
        "average_precision": nan,
        "brier": nan,
        "log_loss": nan,
    }
    if not complete:
        return scores
    if decision is not None:
        areas = [roc_auc_score(y == k, decision[:, k]) for k in ones]
        precisions = [average_precision_score(y == k, decision[:, k]) for k in ones]
        scores["auc"] = float(np.mean(areas))
        scores["average_precision"] = float(np.mean(precisions))
    if proba is not None:
        labels = np.arange(n_classes)
        scores["brier"] = balanced_brier_score(y, np.clip(proba, 0, 1), labels=labels)
        scores["log_loss"] = balanced_log_loss(y, np.clip(proba, 0, 1), labels=labels)
    return scores


def area_variance(y: IntArray, decision: Float64Array | None, ones: Iterable[int]) -> float:
    """Return DeLong's variance of the area, its mean over the classes that are averaged."""
    if decision is None:
        return float("nan")
    return float(np.mean([delong_variance(y == k, decision[:, k]) for k in ones]))


def panel_score(
    matrix: Any, codes: IntArray, fold: Fold, panel: IntArray
) -> tuple[float, IntArray, Float64Array]:
    """Return balanced accuracy, predicted codes and probabilities of the common classifier."""
    columns = dense(matrix[:, np.sort(panel)]).astype(float, copy=False)
    train, test = columns[fold.train], columns[fold.test]
    if np.isnan(columns).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column with no value at all
            fill = np.nan_to_num(np.nanmedian(train, axis=0))
        train, test = (np.where(np.isnan(part), fill, part) for part in (train, test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = common_classifier().fit(train, codes[fold.train])
        predicted = model.predict(test)
        score = mean_class_recall(codes[fold.test], predicted)
    return score, predicted, model.predict_proba(test)


# ------------------------------------------------------------------------------- of all folds


def aggregate_scores(
    folds: tuple[FoldResult, ...], y: IntArray, positive: int | None, level: float
) -> dict[str, Interval]:
    """Return the estimate of every score that some fold defines, with its interval."""
    ratio = holdout_ratio(folds)
    n_repeats = len({f.repeat for f in folds})
    # of each class, in a repeat, the mean over repeats
    counts = np.sum([f.counts for f in folds], axis=0) / n_repeats
    ones = list(range(len(counts))) if positive is None else [positive]
    every_class_tested = bool(np.all(counts[:, [1, 3]] > 0))
    rates = {
        "balanced_accuracy": counts[:, :2],
        "sensitivity": counts[ones, :2],
        "specificity": counts[ones, 2:],
    }
    scores = {}
    for name, bounds in BOUNDS.items():
        values = np.array([f.scores[name] for f in folds])
        if not np.isfinite(values).any():
            continue
        if every_class_tested and name in rates:
            pairs = rates[name]
            pooled = float(np.mean(pairs[:, 0] / pairs[:, 1]))
            scores[name] = rate_interval(values, ratio, pairs.tolist(), value=pooled, level=level)
        elif every_class_tested and name == "auc":
            scores[name] = auc_interval(
                values,
                ratio,
                [area_variance(y[f.test], f.decision, ones) for f in folds],
                len(folds) / n_repeats,
                float(counts[:, 1].min()),
                level=level,
            )
        else:
            scores[name] = corrected_interval(values, ratio, level=level, bounds=bounds)
    return scores


def aggregate_control(folds: tuple[FoldResult, ...], level: float) -> dict[str, Interval] | None:
    """Return the common classifier's intervals on panels, on random ones, and of the difference.

    The difference is taken fold by fold: both saw the same samples.
    """
    controls = [f.control for f in folds if f.control is not None]
    if len(controls) < len(folds):
        return None
    ratio = holdout_ratio(folds)
    values = {k: np.array([c[k] for c in controls]) for k in ("selected", "random")}
    found = {k: corrected_interval(v, ratio, level=level) for k, v in values.items()}
    gaps = values["selected"] - values["random"]
    found["difference"] = corrected_interval(gaps, ratio, level=level, bounds=(-1.0, 1.0))
    return found


def panel_statistics(
    folds: tuple[FoldResult, ...], n_features: int
) -> tuple[Float64Array | None, StabilityIndex | None, float | None]:
    """Return selection frequencies, Nogueira's index and the mean Jaccard similarity."""
    panels = [f.panel for f in folds if f.panel is not None]
    if len(panels) < len(folds):
        return None, None, None
    frequencies = np.zeros(n_features)
    for panel in panels:
        frequencies[panel] += 1
    frequencies /= len(panels)
    if len(panels) < 2:
        return frequencies, None, None
    lists = [panel.tolist() for panel in panels]
    return frequencies, panel_stability(lists, n_features), average_jaccard(lists)


def calibration_of(
    folds: tuple[FoldResult, ...], y: IntArray, positive: int | None
) -> CalibrationCurve | None:
    """Return the calibration curve of the first repeat, for two classes."""
    first = [f for f in folds if f.repeat == folds[0].repeat]
    if positive is None or any(f.proba is None for f in first):
        return None
    truth = np.concatenate([y[f.test] == positive for f in first])
    proba = np.concatenate([f.proba[:, positive] for f in first if f.proba is not None])
    if np.unique(truth).size < 2:
        return None
    return balanced_calibration_curve(truth, np.clip(proba, 0, 1), n_bins=5)
