"""Cross-validation along paths: solve once per fold and setting, score every point.

A *point* is one rho for all planes, or, where the planes are combined freely, one rho for
each. Rows held out get weight zero, so no fold copies X.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .._typing import Float64Array, IntArray
from ..linalg import Covariances, as_matrix
from ..linalg._dask import DaskMatrix
from ..metrics import balanced_log_loss
from ..solvers._build import make_covariances
from ..solvers._threads import one_blas_thread
from ..solvers.working_set import Solution
from ._decision import fit_calibrator, log_distances, margin, probabilities, scores
from ._planes import PlaneProblems, Settings

# A scorer sees a fitted classifier, rows and labels, and returns a number, larger is better.
Scorer = Callable[[Any, Any, Any], float]


# Points beyond which a free combination of planes is refused.
_MAX_POINTS = 100_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows.

    Attributes
    ----------
    X : array, sparse matrix or DaskMatrix of shape (n_samples, n_features)
    codes : array of shape (n_samples,)
        Index of each row's class in `classes`.
    weight : array of shape (n_samples,) or None
        Sample weights.
    classes : array of shape (n_classes,)
        Labels.
    """

    X: Any
    codes: IntArray
    weight: Float64Array | None
    classes: np.ndarray

    @property
    def y(self) -> np.ndarray:
        """The label of each row."""
        return self.classes[self.codes]

    def weight_of(self, index: Any) -> Float64Array | None:
        """Weights of some rows, if there are weights."""
        return None if self.weight is None else self.weight[index]

    def covariances(self, standardize: bool, weight: Float64Array | None = None) -> Covariances:
        """Covariances of all rows, with their own weights or with others."""
        weight = self.weight if weight is None else weight
        return make_covariances(
            as_matrix(self.X), self.codes, weight, len(self.classes), standardize=standardize
        )


@dataclass(frozen=True, eq=False)
class Search:
    """What is tried: every setting at every point with every decision.

    Attributes
    ----------
    settings : sequence of Settings
    rhos : array of shape (n_deltas,)
        Falling ratios of delta to its largest value.
    points : sequence of tuple of int
        At every point, the index of the rho of each plane.
    decisions : sequence of str
    scorer : callable or None
        None is the class-balanced log loss of the calibrated decision, negated.
    standardize : bool
    n_features : int or None
        The largest panel.
    """

    settings: Sequence[Settings]
    rhos: Float64Array
    points: Sequence[tuple[int, ...]]
    decisions: Sequence[str]
    scorer: Scorer | None
    standardize: bool
    n_features: int | None = None


@dataclass(frozen=True, eq=False)
class RawPlanes:
    """Planes on a panel in the units of X."""

    panel: IntArray
    coef: Float64Array  # (n_classes, n_selected)
    intercept: Float64Array
    scale: Float64Array

    def distances(self, X: Any) -> Float64Array:
        """Signed distances of rows to the planes, in standardised units."""
        return as_matrix(X).combine(self.panel, self.coef.T) + self.intercept


@dataclass(frozen=True, eq=False)
class FoldScores:
    """What one fold found at every point.

    Attributes
    ----------
    scores : array of shape (n_settings, n_points, n_decisions)
    accuracies : array of shape (n_settings, n_points, n_decisions)
        Balanced accuracies of the held-out rows, whatever the score is.
    sizes : array of shape (n_settings, n_points)
        Panel sizes.
    rows : array of shape (n_rows,)
        Indices of held-out rows for the final calibrator.
    features : array of shape (n_settings, n_points, n_rows, n_classes)
        Their log distances.
    """

    scores: Float64Array
    accuracies: Float64Array
    sizes: IntArray
    rows: IntArray
    features: Float64Array


def points_of(n_deltas: int, n_classes: int, combine: bool) -> list[tuple[int, ...]]:
    """Index of the delta of each plane, at every point."""
    if not combine:
        return [(i,) * n_classes for i in range(n_deltas)]
    if n_deltas**n_classes > _MAX_POINTS:
        raise ValueError(
            f"combine=True with {n_deltas} deltas and {n_classes} classes makes "
            f"{n_deltas**n_classes} points to score: use a smaller n_deltas or combine=False"
        )
    return list(product(range(n_deltas), repeat=n_classes))


def solve_points(cov: Covariances, settings: Settings, search: Search) -> list[RawPlanes]:
    """Planes at every point; points with the same panel share one refit."""
    problems = PlaneProblems(cov, settings)
    paths = problems.paths(search.rhos)
    std = cov.standardization
    seen: dict[bytes, RawPlanes] = {}
    out = []
    for point in search.points:
        solutions = at_point(paths, point)
        panel = problems.select(solutions, search.n_features)
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


def run_fold(rows: Rows, search: Search, split: tuple[IntArray, IntArray]) -> FoldScores:
    """Solve and score one fold, given its training and its test rows.

    The settings share the cached products.
    """
    train, test = split
    weight = np.bincount(train, minlength=len(rows.codes)).astype(np.float64)
    if rows.weight is not None:
        weight *= rows.weight
    with one_blas_thread():
        cov = rows.covariances(search.standardize, weight)
        planes = [solve_points(cov, settings, search) for settings in search.settings]
        if isinstance(rows.X, DaskMatrix):
            # one pass for all points instead of one for each
            rows.X.hold(np.unique(np.concatenate([p.panel for points in planes for p in points])))
        return score_fold(planes, rows, search, train, test)


def score_fold(
    planes: Sequence[Sequence[RawPlanes]],
    rows: Rows,
    search: Search,
    train: IntArray,
    test: IntArray,
) -> FoldScores:
    """Score every point of a fold on its held-out rows.

    Parameters
    ----------
    planes : sequence of sequences of RawPlanes
        Per setting and point.
    rows : Rows
        All rows.
    search : Search
        What is tried.
    train, test : arrays of int
        Rows to calibrate on and to score.
    """
    classes, codes, scorer = rows.classes, rows.codes, search.scorer
    k, n_points = len(classes), len(planes[0])
    out = np.zeros((len(planes), n_points, len(search.decisions)))
    accuracies = np.zeros_like(out)
    sizes = np.zeros((len(planes), n_points), dtype=np.intp)
    features = np.zeros((len(planes), n_points, len(test), k))
    X_test = rows.X[test] if scorer is not None else None
    y_test, test_weight = classes[codes[test]], rows.weight_of(test)
    done: dict[int, tuple[Float64Array, Float64Array, Float64Array]] = {}
    for s, p in np.ndindex(len(planes), n_points):
        plane = planes[s][p]
        sizes[s, p] = len(plane.panel)
        if id(plane) in done:
            out[s, p], accuracies[s, p], features[s, p] = done[id(plane)]
            continue
        distances = plane.distances(rows.X)
        features[s, p] = log_distances(distances[test], plane.scale)
        for d, decision in enumerate(search.decisions):
            calibrator = None
            if decision == "calibrated":
                calibrator = fit_calibrator(
                    log_distances(distances[train], plane.scale),
                    codes[train],
                    k,
                    rows.weight_of(train),
                )
            model = FoldModel(distances[test], plane.scale, decision, calibrator, classes)
            accuracies[s, p, d] = balanced_accuracy(codes[test], model.predicted_codes(), k)
            if scorer is None:
                out[s, p, d] = -balanced_log_loss(
                    y_test, model.predict_proba(None), labels=classes, sample_weight=test_weight
                )
            else:
                out[s, p, d] = float(scorer(model, X_test, y_test))
        done[id(plane)] = (out[s, p], accuracies[s, p], features[s, p])
    return FoldScores(out, accuracies, sizes, test, features)


def balanced_accuracy(codes: IntArray, predicted: IntArray, n_classes: int) -> float:
    """Mean over the classes that occur of the share of their rows predicted right."""
    counts = np.bincount(codes, minlength=n_classes)
    hits = np.bincount(codes[codes == predicted], minlength=n_classes)
    return float(mean_recall(hits[:, None], counts)[0])


def mean_recall(hits: Float64Array | IntArray, counts: Float64Array | IntArray) -> Float64Array:
    """Balanced accuracies from hits (n_classes, n_models) and rows per class.

    Rows count the same whatever their weights are, as in scikit-learn's score.
    """
    present = counts > 0
    return (hits[present] / counts[present, None]).mean(axis=0)


class FoldModel:
    """A fitted classifier whose distances to the held-out rows are already known."""

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

    def predicted_codes(self) -> IntArray:
        """Index in ``classes_`` of the class of each held-out row."""
        found = self.decision_function(None)
        return (found > 0.0).astype(np.intp) if found.ndim == 1 else found.argmax(axis=1)

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
