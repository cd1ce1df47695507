"""Decisions and probabilities from distances to the planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils import ClassifierTags, Tags, TargetTags

from .._typing import Float64Array, IntArray

DECISIONS = ("distance", "scaled", "calibrated")

# Scaled distances below this are all "on the plane"; their logarithm must not run away.
_FLOOR = 0.05
# Rows that calibrators are fitted on, at most.
SAMPLE = 20_000
# Classes up to which a calibrator's second derivatives are formed, which is faster for few.
_FEW_CLASSES = 20
# Rows times models that calibrators are fitted to at a time.
_MOST_VALUES = 1 << 18
# Steps of Newton's method, at most: ten or so are enough.
_MOST_STEPS = 100


def log_distances(distances: Float64Array, scale: Float64Array) -> Float64Array:
    """Logarithm of each scaled distance, smoothly floored."""
    return np.log(np.hypot(distances / scale, _FLOOR))


@dataclass(frozen=True, eq=False)
class Calibrator:
    """A logistic regression: log odds of the second of two classes, or of each of many."""

    coef: Float64Array  # (n_features,) or (n_classes, n_features)
    intercept: Float64Array  # () or (n_classes,)

    def log_odds(self, features: Float64Array) -> Float64Array:
        """The linear part, of shape (n_samples,) or (n_samples, n_classes)."""
        return features @ self.coef.T + self.intercept

    def probabilities(self, features: Float64Array) -> Float64Array:
        """Probabilities, one column per class."""
        found = self.log_odds(features)
        if found.ndim == 1:
            return np.column_stack([expit(-found), expit(found)])
        return softmax(found, axis=1)


def fit_calibrator(
    features: Float64Array, codes: IntArray, n_classes: int, weight: Float64Array | None
) -> Calibrator:
    """Class-balanced logistic regression (C = 1) on log distances of shape (n_rows, n_classes).

    Every class counts the same in total, so the probabilities are for equal priors.
    """
    coef, intercept = fit_calibrators(features[:, None], codes, n_classes, weight)
    return Calibrator(coef[0].copy(), np.array(intercept[0]))


def fit_calibrators(
    features: Float64Array, codes: IntArray, n_classes: int, weight: Float64Array | None
) -> tuple[Float64Array, Float64Array]:
    """Calibrators of many models on the same rows: coefficients and intercepts, models first.

    ``features`` has the shape (n_rows, n_models, n_classes). A search fits thousands of these
    on two features, where scikit-learn spends nearly all of its time on checks; so two classes
    are fitted here, all models at once.
    """
    weight = np.ones(len(codes)) if weight is None else weight
    totals = np.bincount(codes, weight, minlength=n_classes)
    safe = np.where(totals > 0.0, totals, 1.0)
    balanced = weight * (totals.sum() / (n_classes * safe[codes]))
    if n_classes == 2:
        step = max(1, _MOST_VALUES // len(codes))
        parts = [features[:, i : i + step] for i in range(0, features.shape[1], step)]
        theta = np.concatenate([_fit_binary(part, codes, balanced) for part in parts])
        return theta[:, :-1], theta[:, -1]
    # the matrix of second derivatives has about n_classes ** 4 entries: 100 million of 100 classes
    solver = "newton-cholesky" if n_classes <= _FEW_CLASSES else "newton-cg"
    models = [
        LogisticRegression(C=1.0, solver=solver, tol=1e-8, max_iter=200).fit(
            features[:, j], codes, sample_weight=balanced
        )
        for j in range(features.shape[1])
    ]
    return np.stack([model.coef_ for model in models]), np.stack([m.intercept_ for m in models])


def _fit_binary(features: Float64Array, codes: IntArray, weight: Float64Array) -> Float64Array:
    """Newton's method for sum_i w_i log(1 + exp(-y_i z_i)) + ||coef||^2 / 2, of each model.

    Returns one row per model: the coefficients, then the intercept. Models that have
    converged leave the batch.
    """
    n, n_models, k = features.shape
    design = np.ones((n_models, k + 1, n))
    design[:, :k] = np.moveaxis(features, 0, 2)
    signs = 2.0 * codes - 1.0
    ridge = np.ones(k + 1)
    ridge[-1] = 0.0
    diagonal = np.arange(k + 1)

    def objective(theta: Float64Array, z: Float64Array) -> Float64Array:
        loss = np.matmul(np.logaddexp(0.0, -signs * z)[:, None, :], weight)[:, 0]
        return loss + 0.5 * (theta**2 * ridge).sum(axis=1)

    found = np.empty((n_models, k + 1))
    active = np.arange(n_models)
    theta, z = np.zeros_like(found), np.zeros((n_models, n))
    value = objective(theta, z)
    for _ in range(_MOST_STEPS):
        p = expit(z)
        gradient = np.matmul(design, (weight * (p - codes))[:, :, None])[:, :, 0] + ridge * theta
        curvature = np.matmul(
            design * (weight * p * (1.0 - p))[:, None, :], design.transpose(0, 2, 1)
        )
        # far from the data the intercept alone may have no curvature left
        trace = curvature.trace(axis1=1, axis2=2)
        curvature[:, diagonal, diagonal] += ridge + 1e-12 * (1.0 + trace)[:, None]
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        decrement = (gradient * step).sum(axis=1)
        # the objective cannot tell such steps apart, but they still converge: take the last
        last = decrement <= 1e-12 * (1.0 + np.abs(value))
        length = np.ones(len(active))
        while True:
            trial = theta - length[:, None] * step
            trial_z = np.matmul(trial[:, None, :], design)[:, 0]
            trial_value = objective(trial, trial_z)
            short = ~last & (trial_value > value - 1e-4 * length * decrement)
            if not short.any():
                break
            length[short] *= 0.5
            # no length helps: stay
            stuck = short & (length <= 1e-10)
            length[stuck], last[stuck] = 0.0, True
        theta, z, value = trial, trial_z, trial_value
        found[active] = theta
        on = ~last
        if not on.any():
            break
        if last.any():
            active, design = active[on], design[on]
            theta, z, value = theta[on], z[on], value[on]
    return found


def balanced_sample(codes: IntArray, size: int, seed: int) -> IntArray:
    """At most ``size`` rows, as many of each class as there are or an even share.

    Calibrators weigh the classes evenly, so a rare class is worth keeping whole.
    """
    if len(codes) <= size:
        return np.arange(len(codes))
    rng = np.random.default_rng(seed)
    counts = np.bincount(codes)
    chosen, left = [], size
    for done, k in enumerate(np.argsort(counts, kind="stable")):
        take = min(int(counts[k]), left // (len(counts) - done))
        chosen.append(rng.choice(np.flatnonzero(codes == k), size=take, replace=False))
        left -= take
    return np.sort(np.concatenate(chosen))


def scores(
    distances: Float64Array,
    scale: Float64Array,
    decision: str,
    calibrator: Calibrator | None,
) -> Float64Array:
    """One column per class, the largest of which wins; calibrated ones are log odds."""
    if decision == "distance":
        return -np.abs(distances)
    if decision == "scaled":
        return -np.abs(distances) / scale
    assert calibrator is not None
    raw = calibrator.log_odds(log_distances(distances, scale))
    return np.column_stack([-raw / 2, raw / 2]) if raw.ndim == 1 else raw


def margin(all_scores: Float64Array) -> Float64Array:
    """scikit-learn's form: for two classes the lead of the second, else all columns."""
    if all_scores.shape[1] == 2:
        return all_scores[:, 1] - all_scores[:, 0]
    return all_scores


def predicted_codes(margins: Float64Array) -> IntArray:
    """The index of the class that wins, from scores in the form of `margin`."""
    if margins.ndim == 1:
        return (margins > 0.0).astype(np.intp)
    return margins.argmax(axis=1)


def probabilities(
    distances: Float64Array, scale: Float64Array, calibrator: Calibrator
) -> Float64Array:
    """Class probabilities for equal priors."""
    return calibrator.probabilities(log_distances(distances, scale))


class FoldModel:
    """A fitted classifier of rows whose distances are known already, as scorers take it."""

    def __init__(
        self,
        distances: Float64Array,
        scale: Float64Array,
        decision: str,
        calibrator: Any,
        classes: np.ndarray,
    ) -> None:
        self._distances, self._scale = distances, scale
        self._decision, self._calibrator = decision, calibrator
        self.classes_ = classes

    def __sklearn_tags__(self) -> Any:
        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> FoldModel:
        """Do nothing: scorers look for the method and do not call it."""
        return self

    def decision_function(self, X: Any) -> Float64Array:
        """Confidence in each class."""
        return margin(scores(self._distances, self._scale, self._decision, self._calibrator))

    def predicted_codes(self) -> IntArray:
        """Index in ``classes_`` of the class of each held-out row."""
        return predicted_codes(self.decision_function(None))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each held-out row."""
        return self.classes_[self.predicted_codes()]

    def predict_proba(self, X: Any) -> Float64Array:
        """Class probabilities, for equal priors."""
        if self._calibrator is None:
            raise AttributeError(
                f'decision="{self._decision}" gives no probabilities: score it by something '
                'that needs predictions only, such as scoring="balanced_accuracy"'
            )
        return probabilities(self._distances, self._scale, self._calibrator)
