"""Cross-validation of tall data in two passes.

The first pass forms the moments of every fold; a training part is the sum of the other
folds' moments. The second scores all points block by block, each block by the planes of
the folds its rows are held out from. Calibrators are fitted on a fixed sample of all classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import numpy as np
import scipy.sparse as sp

from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import ClassMoments, Covariances, Matrix, MomentCovariances, as_matrix
from ..linalg._moments import scatter_by_class
from ._decision import fit_calibrator, log_distances
from ._search import FoldScores, RawPlanes, Rows, Search, solve_points

# Rows that calibrators are fitted on.
SAMPLE = 20_000


def search_by_blocks(
    rows: Rows, search: Search, folds: IntArray, on_fold: Callable[[], None]
) -> tuple[list[FoldScores], Covariances]:
    """Solve and score all folds in two passes over the rows.

    Parameters
    ----------
    rows : Rows
    search : Search
        Without a scorer, so that only the calibrated decision is tried.
    folds : array of shape (n_samples,)
        The fold each row is held out from.
    on_fold : callable
        Called whenever the paths of a fold are solved.

    Returns
    -------
    list of FoldScores
        One per fold; their features are of the rows sampled for the calibrators.
    Covariances
        Of all rows, so that the final fit needs no pass of its own.
    """
    matrix = as_matrix(rows.X)
    parts = fold_moments(matrix, rows, folds)
    planes = []
    for f in range(len(parts)):
        others = add_moments(parts[:f] + parts[f + 1 :])
        cov = MomentCovariances(others, search.standardize)
        planes.append([solve_points(cov, settings, search) for settings in search.settings])
        on_fold()
    sample = balanced_sample(rows.codes, SAMPLE, seed=0)
    results = score_by_blocks(planes, matrix, rows, folds, sample)
    return results, MomentCovariances(add_moments(parts), search.standardize)


def fold_moments(matrix: Matrix, rows: Rows, folds: IntArray) -> list[ClassMoments]:
    """Moments of each fold's rows, in one pass over all of them."""
    k, n_folds = len(rows.classes), int(folds.max()) + 1
    counts, weights, means, scatters = scatter_by_class(
        matrix, folds * k + rows.codes, rows.weight, n_folds * k
    )
    return [
        ClassMoments(np.arange(k), counts[at], weights[at], means[at], scatters[at])
        for at in (slice(f * k, (f + 1) * k) for f in range(n_folds))
    ]


def add_moments(parts: Sequence[ClassMoments]) -> ClassMoments:
    """The sum of some folds' moments: adding is stable, subtracting is not."""
    return reduce(add, parts)


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


def score_by_blocks(
    planes: Sequence[Sequence[Sequence[RawPlanes]]],
    matrix: Matrix,
    rows: Rows,
    folds: IntArray,
    sample: IntArray,
) -> list[FoldScores]:
    """Class-balanced log loss of every point of every fold, in one pass.

    Parameters
    ----------
    planes : nested sequence of RawPlanes
        Per fold, setting and point.
    matrix : Matrix
        The rows' own.
    rows : Rows
    folds : array of shape (n_samples,)
        The fold each row is held out from.
    sample : array of int
        Rows to calibrate on.

    Returns
    -------
    list of FoldScores
        One per fold; the features are of the sample's rows in the fold.
    """
    weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
    sampled = rows.X[sample]
    sampled = sampled.toarray() if sp.issparse(sampled) else sampled
    drawn = Rows(sampled.astype(np.float64), rows.codes[sample], weight[sample], rows.classes)
    models = [_FoldStack(planes[f], drawn, folds[sample] != f) for f in range(len(planes))]
    for span, block in matrix.row_blocks():
        fold = folds[span]
        for f, model in enumerate(models):
            inside = fold == f
            if inside.any():
                model.add(block[inside], rows.codes[span][inside], weight[span][inside])
    return [model.result(sample[folds[sample] == f]) for f, model in enumerate(models)]


class _FoldStack:
    """All points of one fold as one matrix, with their calibrators and running losses."""

    def __init__(
        self,
        planes: Sequence[Sequence[RawPlanes]],
        sample: Rows,
        train: BoolArray,
    ) -> None:
        k = len(sample.classes)
        self.n_settings, self.n_points, self.k = len(planes), len(planes[0]), k
        flat = [plane for setting in planes for plane in setting]
        self.index = np.zeros(len(flat), dtype=np.intp)
        unique: list[RawPlanes] = []
        place: dict[int, int] = {}
        for i, plane in enumerate(flat):
            if id(plane) not in place:
                place[id(plane)] = len(unique)
                unique.append(plane)
            self.index[i] = place[id(plane)]
        self.coef = np.zeros((sample.X.shape[1], len(unique), k))
        for i, plane in enumerate(unique):
            self.coef[plane.panel, i] = plane.coef.T
        self.intercept = np.stack([plane.intercept for plane in unique])
        self.scale = np.stack([plane.scale for plane in unique])
        self.sizes = np.array([len(plane.panel) for plane in flat])
        features = self._features(sample.X)
        self.held_out = features[~train]
        self.slope = np.zeros((len(unique), k, k))
        self.offset = np.zeros((len(unique), k))
        for i in range(len(unique)):
            model = fit_calibrator(
                features[train, i], sample.codes[train], k, sample.weight_of(train)
            )
            if model.coef.ndim == 1:  # two classes: the log odds of the second
                self.slope[i, 1], self.offset[i, 1] = model.coef, model.intercept
            else:
                self.slope[i], self.offset[i] = model.coef, model.intercept
        self.loss = np.zeros((k, len(unique)))
        self.total = np.zeros(k)

    def _features(self, rows: Float64Array) -> Float64Array:
        distances = np.tensordot(rows, self.coef, axes=1) + self.intercept
        return log_distances(distances, self.scale)

    def add(self, rows: Float64Array, codes: IntArray, weight: Float64Array) -> None:
        logits = np.einsum("npk,pck->npc", self._features(rows), self.slope) + self.offset
        logits -= logits.max(axis=2, keepdims=True)
        loss = np.log(np.exp(logits).sum(axis=2))
        loss -= np.take_along_axis(logits, codes[:, None, None], axis=2)[:, :, 0]
        # as the metric has it, no probability is taken below the rounding unit
        np.minimum(loss, -np.log(np.finfo(np.float64).eps), out=loss)
        for k in range(self.k):
            inside = codes == k
            self.loss[k] += weight[inside] @ loss[inside]
            self.total[k] += weight[inside].sum()

    def result(self, sampled: IntArray) -> FoldScores:
        present = self.total > 0
        mean = (self.loss[present] / self.total[present, None]).mean(axis=0)
        shape = (self.n_settings, self.n_points)
        features = self.held_out[:, self.index].reshape(-1, *shape, self.k)
        return FoldScores(
            scores=-mean[self.index].reshape(*shape, 1),
            sizes=self.sizes.reshape(shape),
            rows=sampled,
            features=np.moveaxis(features, 0, 2),
        )
