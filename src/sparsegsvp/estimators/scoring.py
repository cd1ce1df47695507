"""Scores of all planes of a fold, their distances and calibrators computed in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import Covariances, Matrix
from ..linalg.covariances import make_covariances
from .decision import Calibrator, FoldModel, fit_calibrators, log_distances

# A scorer sees a fitted classifier, rows and labels, and returns a number, larger is better.
Scorer = Callable[[Any, Any, Any], float]

# Distances held at a time.
_MOST_DISTANCES = 1 << 22


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with their classes and, if there are any, sample weights."""

    X: Matrix
    codes: IntArray  # index of each row's class in `classes`
    weight: Float64Array | None
    classes: np.ndarray  # labels

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
            self.X, self.codes, weight, len(self.classes), standardize=standardize
        )


@dataclass(frozen=True, eq=False)
class RawPlanes:
    """Planes on a panel in the units of X."""

    panel: IntArray
    coef: Float64Array  # (n_classes, n_selected)
    intercept: Float64Array
    scale: Float64Array
    size: int  # of the panel, features that go together counted once


# The planes of each setting and point; None at points that a path did not reach.
FoldPlanes = Sequence[Sequence[RawPlanes | None]]


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores, panel sizes, and log distances and losses of held-out rows, at every point.

    At points that the fold's paths did not reach, sizes are zero and scores and losses not a
    number; the losses are also where a scorer gives the scores.
    """

    scores: Float64Array  # (n_settings, n_points, n_decisions)
    accuracies: Float64Array  # balanced accuracies, likewise, whatever the score is
    sizes: IntArray  # of the panels, (n_settings, n_points)
    rows: IntArray  # indices of held-out rows for the final calibrator
    features: Float64Array  # their log distances, (n_settings, n_points, n_rows, n_classes)
    losses: Float64Array  # their log losses, (n_settings, n_points, n_rows)
    n_scored: int  # how many rows the scores are of; `rows` may be a sample of them

    @classmethod
    def empty(
        cls, planes: FoldPlanes, rows: IntArray, n_decisions: int, n_classes: int, n_scored: int
    ) -> FoldScores:
        """The sizes of these planes' panels, and no scores yet."""
        sizes = np.array([[0 if p is None else p.size for p in points] for points in planes])
        nothing = np.full((*sizes.shape, n_decisions), np.nan)
        features = np.zeros((*sizes.shape, len(rows), n_classes))
        losses = np.full(features.shape[:-1], np.nan)
        return cls(nothing, nothing.copy(), sizes, rows, features, losses, n_scored)

    def put(
        self,
        place: IntArray,
        start: int,
        scores: Float64Array,
        accuracies: Float64Array,
        features: Float64Array,
        losses: Float64Array | None,
    ) -> None:
        """Set what was found of the models from ``start`` on, wherever `distinct` places them.

        Scores and accuracies have a row for each model and a column for each decision; features
        and losses have the rows first.
        """
        here = (place >= start) & (place < start + len(scores))
        at = place[here] - start
        self.scores[here], self.accuracies[here] = scores[at], accuracies[at]
        self.features[here] = features.swapaxes(0, 1)[at]
        if losses is not None:
            self.losses[here] = losses.T[at]


@dataclass(frozen=True, eq=False)
class PlaneStack:
    """Several sets of planes as one matrix, with their calibrators."""

    panel: IntArray  # the union of the panels
    coef: Float64Array  # (n_union, n_models, n_classes)
    intercept: Float64Array  # (n_models, n_classes)
    scale: Float64Array  # (n_models, n_classes)
    slope: Float64Array  # of the calibrators, (n_models, n_classes, n_classes)
    offset: Float64Array  # of the calibrators, (n_models, n_classes)

    @classmethod
    def of(cls, planes: Sequence[RawPlanes]) -> PlaneStack:
        """Stack planes, without calibrators."""
        panel = np.unique(np.concatenate([plane.panel for plane in planes]))
        k = len(planes[0].intercept)
        coef = np.zeros((len(panel), len(planes), k))
        for i, plane in enumerate(planes):
            coef[np.searchsorted(panel, plane.panel), i] = plane.coef.T
        return cls(
            panel,
            coef,
            np.stack([plane.intercept for plane in planes]),
            np.stack([plane.scale for plane in planes]),
            np.zeros((len(planes), k, k)),
            np.zeros((len(planes), k)),
        )

    def distances(self, X: Matrix) -> Float64Array:
        """Signed distances of all rows, of shape (n_rows, n_models, n_classes)."""
        found = X.combine(self.panel, self.coef.reshape(len(self.panel), -1))
        return found.reshape(-1, *self.intercept.shape) + self.intercept

    def log_distances(self, rows: Float64Array) -> Float64Array:
        """Log distances of rows given by the columns of the panel."""
        distances = np.tensordot(rows, self.coef, axes=1) + self.intercept
        return log_distances(distances, self.scale)

    def calibrated(
        self, features: Float64Array, codes: IntArray, weight: Float64Array | None
    ) -> PlaneStack:
        """The same planes with calibrators fitted to the log distances of training rows."""
        k = self.offset.shape[1]
        coef, intercept = fit_calibrators(features, codes, k, weight)
        if k > 2:
            return replace(self, slope=coef, offset=intercept)
        # two classes: the log odds of the second
        slope, offset = np.zeros_like(self.slope), np.zeros_like(self.offset)
        slope[:, 1], offset[:, 1] = coef, intercept
        return replace(self, slope=slope, offset=offset)

    def calibrator(self, i: int) -> Calibrator:
        """The calibrator of one set of planes."""
        if self.offset.shape[1] > 2:
            return Calibrator(self.slope[i], self.offset[i])
        return Calibrator(self.slope[i, 1], self.offset[i, 1])

    def losses(self, features: Float64Array, codes: IntArray) -> tuple[Float64Array, BoolArray]:
        """Log losses and hits of rows, of shape (n_rows, n_models), given their log distances."""
        logits = np.einsum("npk,pck->npc", features, self.slope) + self.offset
        hits = logits.argmax(axis=2) == codes[:, None]
        logits -= logits.max(axis=2, keepdims=True)
        loss = np.log(np.exp(logits).sum(axis=2))
        loss -= np.take_along_axis(logits, codes[:, None, None], axis=2)[:, :, 0]
        # as the metric has it, no probability is taken below the rounding unit
        np.minimum(loss, -np.log(np.finfo(np.float64).eps), out=loss)
        return loss, hits


def sum_losses(
    loss: Float64Array, hits: BoolArray, codes: IntArray, weight: Float64Array, n_classes: int
) -> Float64Array:
    """Summed losses and numbers of hits, of shape (2, n_classes, n_models + 1).

    The last column holds what the sums are to be divided by: the weight and the number of rows.
    """
    out = np.zeros((2, n_classes, loss.shape[1] + 1))
    for c in range(n_classes):
        inside = codes == c
        out[0, c, :-1] = weight[inside] @ loss[inside]
        out[0, c, -1] = weight[inside].sum()
        out[1, c, :-1] = hits[inside].sum(axis=0)
        out[1, c, -1] = inside.sum()
    return out


def mean_scores(losses: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Negated balanced log losses and balanced accuracies from the sums of `sum_losses`."""
    (loss, hits), (total, counts) = losses[:, :, :-1], losses[:, :, -1]
    present = total > 0.0
    if not present.any():
        raise ValueError("sample_weight leaves no sample to score.")
    return -(loss[present] / total[present, None]).mean(axis=0), mean_recall(hits, counts)


def mean_recall(hits: Float64Array | IntArray, counts: Float64Array | IntArray) -> Float64Array:
    """Balanced accuracies from hits (n_classes, n_models) and rows per class.

    Rows count the same whatever their weights are, as in scikit-learn's score.
    """
    present = counts > 0
    return (hits[present] / counts[present, None]).mean(axis=0)


def distinct(planes: FoldPlanes) -> tuple[list[RawPlanes], IntArray]:
    """The planes that differ, and the place of each setting's and point's among them.

    The place of a point that was not reached is -1.
    """
    found: list[RawPlanes] = []
    place: dict[int, int] = {id(None): -1}
    for points in planes:
        for plane in points:
            if plane is not None and id(plane) not in place:
                place[id(plane)] = len(found)
                found.append(plane)
    return found, np.array([[place[id(plane)] for plane in points] for points in planes])


def score_fold(
    planes: FoldPlanes,
    rows: LabelledRows,
    decisions: Sequence[str],
    scorer: Scorer | None,
    train: IntArray,
    test: IntArray,
) -> FoldScores:
    """Score the planes of every setting and point on the rows held out from a fold.

    Without a scorer the score is the balanced log loss of the calibrated decision, negated.
    """
    models, place = distinct(planes)
    k = len(rows.classes)
    out = FoldScores.empty(planes, test, len(decisions), k, len(test))
    y_test, weight = rows.codes[test], rows.weight_of(test)
    weight = np.ones(len(test)) if weight is None else weight
    X_test = rows.X.rows(test) if scorer is not None else None
    # one pass for all points instead of one for each
    rows.X.fetch(np.unique(np.concatenate([model.panel for model in models])))
    step = max(1, _MOST_DISTANCES // (k * len(rows.codes)))
    for start in range(0, len(models), step):
        stack = PlaneStack.of(models[start : start + step])
        distances = stack.distances(rows.X)
        features = log_distances(distances, stack.scale)
        if "calibrated" in decisions:
            stack = stack.calibrated(features[train], rows.codes[train], rows.weight_of(train))
        scores = np.zeros((len(stack.scale), len(decisions)))
        accuracies = np.zeros_like(scores)
        loss = None
        if scorer is None:
            loss, hits = stack.losses(features[test], y_test)
            sums = sum_losses(loss, hits, y_test, weight, k)
            scores[:, 0], accuracies[:, 0] = mean_scores(sums)
        else:
            for i, d in np.ndindex(scores.shape):
                calibrator = stack.calibrator(i) if decisions[d] == "calibrated" else None
                model = FoldModel(
                    distances[test, i], stack.scale[i], decisions[d], calibrator, rows.classes
                )
                accuracies[i, d] = balanced_accuracy(y_test, model.predicted_codes(), k)
                scores[i, d] = float(scorer(model, X_test, rows.classes[y_test]))
        out.put(place, start, scores, accuracies, features[test], loss)
    return out


def balanced_accuracy(codes: IntArray, predicted: IntArray, n_classes: int) -> float:
    """Mean over the classes that occur of the share of their rows predicted right."""
    counts = np.bincount(codes, minlength=n_classes)
    hits = np.bincount(codes[codes == predicted], minlength=n_classes)
    return float(mean_recall(hits[:, None], counts)[0])
