"""How distances to the planes become decisions and probabilities."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from sklearn.linear_model import LogisticRegression

from .._typing import Float64Array, IntArray

Decision = Literal["distance", "scaled", "calibrated"]
DECISIONS: tuple[str, ...] = get_args(Decision)

# Scaled distances below this are all "on the plane"; their logarithm must not run away.
_FLOOR = 0.05


def log_distances(distances: Float64Array, scale: Float64Array) -> Float64Array:
    """Logarithm of each scaled distance, smoothly floored."""
    return 0.5 * np.log((distances / scale) ** 2 + _FLOOR**2)


def fit_calibrator(
    features: Float64Array, codes: IntArray, n_classes: int, weight: Float64Array | None
) -> LogisticRegression:
    """Class-balanced logistic regression (C = 1) on log distances.

    Every class counts the same in total, so the probabilities are for equal priors.
    """
    weight = np.ones(len(codes)) if weight is None else weight
    totals = np.bincount(codes, weight, minlength=n_classes)
    balanced = weight * (totals.sum() / (n_classes * totals[codes]))
    model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8, max_iter=200)
    return model.fit(features, codes, sample_weight=balanced)


def scores(
    distances: Float64Array,
    scale: Float64Array,
    decision: str,
    calibrator: LogisticRegression | None,
) -> Float64Array:
    """One column per class, the largest of which wins; calibrated ones are log odds.

    Returns
    -------
    array of shape (n_samples, n_classes)
    """
    if decision == "distance":
        return -np.abs(distances)
    if decision == "scaled":
        return -np.abs(distances) / scale
    assert calibrator is not None
    raw = calibrator.decision_function(log_distances(distances, scale))
    return np.column_stack([-raw / 2, raw / 2]) if raw.ndim == 1 else raw


def margin(all_scores: Float64Array) -> Float64Array:
    """scikit-learn's form: for two classes the lead of the second, else all columns."""
    if all_scores.shape[1] == 2:
        return all_scores[:, 1] - all_scores[:, 0]
    return all_scores


def probabilities(
    distances: Float64Array, scale: Float64Array, calibrator: LogisticRegression
) -> Float64Array:
    """Class probabilities for equal priors."""
    return calibrator.predict_proba(log_distances(distances, scale))
