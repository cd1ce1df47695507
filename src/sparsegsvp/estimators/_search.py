"""Cross-validation along paths: solve once per fold and setting, score every point.

A *point* of a fold is a set of planes at one setting and one rho, or, where the planes are
combined freely, one rho per plane. Rows held out get weight zero, so no fold copies X.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import Float64Array, IntArray
from ..linalg import Covariances
from ..metrics import balanced_log_loss
from ..solvers.working_set import Solution
from ._decision import fit_calibrator, log_distances, margin, probabilities, scores
from ._planes import PlaneProblems, Settings

# A scorer sees a fitted classifier, rows and labels, and returns a number, larger is better.
Scorer = Callable[[Any, Any, Any], float]


@dataclass(frozen=True, eq=False)
class RawPlanes:
    """Planes on a panel in the units of X."""

    panel: IntArray
    coef: Float64Array  # (n_classes, n_selected)
    intercept: Float64Array
    scale: Float64Array

    def distances(self, X: Any) -> Float64Array:
        """Signed distances of rows to the planes, in standardised units."""
        columns = X[:, self.panel]
        columns = columns.toarray() if sp.issparse(columns) else columns
        return columns.astype(np.float64) @ self.coef.T + self.intercept


@dataclass(frozen=True, eq=False)
class FoldScores:
    """What one fold found at every point.

    Attributes
    ----------
    scores : array of shape (n_settings, n_points, n_decisions)
    sizes : array of shape (n_settings, n_points)
        Panel sizes.
    features : array of shape (n_settings, n_points, n_test, n_classes)
        Log distances of the held-out rows, for the final calibrator.
    """

    scores: Float64Array
    sizes: IntArray
    features: Float64Array


def points_of(n_deltas: int, n_classes: int, combine: bool) -> list[tuple[int, ...]]:
    """Index of the delta of each plane, at every point."""
    if combine:
        return list(product(range(n_deltas), repeat=n_classes))
    return [(i,) * n_classes for i in range(n_deltas)]


def solve_points(
    cov: Covariances, settings: Settings, rhos: Float64Array, points: Sequence[tuple[int, ...]]
) -> list[RawPlanes]:
    """Planes at every point; points with the same panel share one refit."""
    problems = PlaneProblems(cov, settings)
    paths = problems.paths(rhos)
    std = cov.standardization
    seen: dict[bytes, RawPlanes] = {}
    out = []
    for point in points:
        solutions = at_point(paths, point)
        panel = problems.select(solutions)
        # with a refit the planes depend on the panel alone
        key = panel.tobytes() if settings.refit else repr(point).encode()
        if key not in seen:
            planes = problems.planes(solutions, panel)
            seen[key] = RawPlanes(panel, *planes.raw(std.center, std.inverse), planes.scale)
        out.append(seen[key])
    return out


def at_point(paths: Sequence[Sequence[Solution]], point: Sequence[int]) -> list[Solution]:
    """The solution of each plane at its own index."""
    return [path[i] for path, i in zip(paths, point)]


def score_fold(
    planes: Sequence[Sequence[RawPlanes]],
    X: Any,
    y: np.ndarray,
    codes: IntArray,
    weight: Float64Array | None,
    train: IntArray,
    test: IntArray,
    decisions: Sequence[str],
    classes: np.ndarray,
    scorer: Scorer | None,
) -> FoldScores:
    """Score every point of a fold on its held-out rows.

    Parameters
    ----------
    planes : sequence of sequences of RawPlanes
        Per setting and point.
    X, y, codes, weight
        All rows, their labels, class codes and weights.
    train, test : arrays of int
        Rows to calibrate on and to score.
    decisions : sequence of str
        Decision rules to score.
    classes : array
        Labels in the order of the codes.
    scorer : callable, optional
        By default the class-balanced log loss of the calibrated decision, negated.
    """
    k, n_points = len(classes), len(planes[0])
    out = np.zeros((len(planes), n_points, len(decisions)))
    sizes = np.zeros((len(planes), n_points), dtype=np.intp)
    features = np.zeros((len(planes), n_points, len(test), k))
    rows = X[test] if scorer is not None else None
    test_weight = None if weight is None else weight[test]
    done: dict[int, tuple[Float64Array, Float64Array]] = {}
    for s, p in np.ndindex(len(planes), n_points):
        plane = planes[s][p]
        sizes[s, p] = len(plane.panel)
        if id(plane) in done:
            out[s, p], features[s, p] = done[id(plane)]
            continue
        distances = plane.distances(X)
        features[s, p] = log_distances(distances[test], plane.scale)
        for d, decision in enumerate(decisions):
            calibrator = None
            if decision == "calibrated":
                calibrator = fit_calibrator(
                    log_distances(distances[train], plane.scale),
                    codes[train],
                    k,
                    None if weight is None else weight[train],
                )
            model = FoldModel(distances[test], plane.scale, decision, calibrator, classes)
            if scorer is None:
                out[s, p, d] = -balanced_log_loss(
                    y[test], model.predict_proba(None), labels=classes, sample_weight=test_weight
                )
            else:
                out[s, p, d] = float(scorer(model, rows, y[test]))
        done[id(plane)] = (out[s, p], features[s, p])
    return FoldScores(out, sizes, features)


class FoldModel:
    """A fitted classifier whose distances to the held-out rows are already known."""

    _estimator_type = "classifier"

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
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> FoldModel:
        """Do nothing: scorers ask for the method, not for its work."""
        return self

    def decision_function(self, X: Any) -> Float64Array:
        """Confidence in each class."""
        return margin(scores(self._distances, self._scale, self._decision, self._calibrator))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each held-out row."""
        found = self.decision_function(X)
        index = (found > 0.0).astype(np.intp) if found.ndim == 1 else found.argmax(axis=1)
        return self.classes_[index]

    def predict_proba(self, X: Any) -> Float64Array:
        """Class probabilities, for equal priors."""
        if self._calibrator is None:
            raise AttributeError(
                f'decision="{self._decision}" gives no probabilities: score it by something '
                'that needs predictions only, such as scoring="balanced_accuracy"'
            )
        return probabilities(self._distances, self._scale, self._calibrator)
