"""Cross-validation of tall data in two passes.

The first pass forms the moments of every fold; a training part is the sum of the other
folds' moments. The second scores all points block by block, each block by the planes of
the folds its rows are held out from. Calibrators are fitted on a fixed stratified sample.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import Float64Array, IntArray
from ..linalg import ClassMoments, Matrix, MomentCovariances
from ..linalg._moments import scatter_by_class
from ._decision import fit_calibrator, log_distances
from ._search import FoldScores, RawPlanes

# Rows that calibrators are fitted on.
SAMPLE = 20_000


def fold_moments(
    matrix: Matrix,
    codes: IntArray,
    weight: Float64Array | None,
    folds: IntArray,
    n_classes: int,
    n_folds: int,
) -> list[ClassMoments]:
    """Moments of each fold's rows, in one pass over all of them."""
    joint = folds * n_classes + codes
    parts = scatter_by_class(matrix, joint, weight, n_folds * n_classes)
    labels = np.arange(n_classes)
    return [
        ClassMoments(labels, *(part[f * n_classes : (f + 1) * n_classes] for part in parts))
        for f in range(n_folds)
    ]


def training_moments(parts: Sequence[ClassMoments], held_out: int) -> ClassMoments:
    """The sum of all folds' moments but one: adding is stable, subtracting is not."""
    return sum(
        (part for f, part in enumerate(parts) if f != held_out), start=0
    )  # type: ignore[return-value]


def training_covariances(
    parts: Sequence[ClassMoments], held_out: int, standardize: bool
) -> MomentCovariances:
    """Covariances of the rows outside one fold."""
    return MomentCovariances(training_moments(parts, held_out), standardize)


def stratified_sample(codes: IntArray, size: int, seed: int) -> IntArray:
    """At most ``size`` rows, in proportion to the classes, always the same for a seed."""
    if len(codes) <= size:
        return np.arange(len(codes))
    rng = np.random.default_rng(seed)
    chosen = []
    for k in np.unique(codes):
        rows = np.flatnonzero(codes == k)
        take = max(2, min(len(rows), round(size * len(rows) / len(codes))))
        chosen.append(rng.choice(rows, size=take, replace=False))
    return np.sort(np.concatenate(chosen))


def score_by_blocks(
    planes: Sequence[Sequence[Sequence[RawPlanes]]],
    matrix: Matrix,
    codes: IntArray,
    weight: Float64Array | None,
    folds: IntArray,
    sample: IntArray,
    sample_rows: Float64Array,
    n_classes: int,
) -> list[FoldScores]:
    """Class-balanced log loss of every point of every fold, in one pass.

    Parameters
    ----------
    planes : nested sequence of RawPlanes
        Per fold, setting and point.
    matrix, codes, weight, folds
        All rows, their classes, weights and the fold each is held out from.
    sample, sample_rows : arrays
        Indices of the rows to calibrate on, and those rows.
    n_classes : int

    Returns
    -------
    list of FoldScores
        One per fold; the features are of the sample's rows in the fold.
    """
    ones = np.ones(len(codes)) if weight is None else weight
    models = [
        _FoldStack(
            planes[f],
            sample_rows,
            codes[sample],
            ones[sample],
            folds[sample] != f,
            n_classes,
        )
        for f in range(len(planes))
    ]
    for rows, block in matrix.row_blocks():
        fold, code = folds[rows], codes[rows]
        for f, model in enumerate(models):
            inside = fold == f
            if inside.any():
                model.add(block[inside], code[inside], ones[rows][inside])
    return [model.result() for model in models]


class _FoldStack:
    """All points of one fold as one matrix, with their calibrators and running losses."""

    def __init__(
        self,
        planes: Sequence[Sequence[RawPlanes]],
        rows: Float64Array,
        codes: IntArray,
        weight: Float64Array,
        train: np.ndarray,
        n_classes: int,
    ) -> None:
        self.n_settings, self.n_points, self.k = len(planes), len(planes[0]), n_classes
        flat = [plane for setting in planes for plane in setting]
        self.index = np.zeros(len(flat), dtype=np.intp)
        unique: list[RawPlanes] = []
        place: dict[int, int] = {}
        for i, plane in enumerate(flat):
            if id(plane) not in place:
                place[id(plane)] = len(unique)
                unique.append(plane)
            self.index[i] = place[id(plane)]
        m = rows.shape[1]
        self.coef = np.zeros((m, len(unique), n_classes))
        for i, plane in enumerate(unique):
            self.coef[plane.panel, i] = plane.coef.T
        self.intercept = np.stack([plane.intercept for plane in unique])
        self.scale = np.stack([plane.scale for plane in unique])
        self.sizes = np.array([len(plane.panel) for plane in flat])
        sampled = self._features(rows)
        self.held_out = sampled[~train]
        self.slope = np.zeros((len(unique), n_classes, n_classes))
        self.offset = np.zeros((len(unique), n_classes))
        for i in range(len(unique)):
            model = fit_calibrator(sampled[train][:, i], codes[train], n_classes, weight[train])
            if model.coef.ndim == 1:  # two classes: the log odds of the second
                self.slope[i, 1], self.offset[i, 1] = model.coef, model.intercept
            else:
                self.slope[i], self.offset[i] = model.coef, model.intercept
        self.loss = np.zeros((n_classes, len(unique)))
        self.total = np.zeros(n_classes)

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

    def result(self) -> FoldScores:
        present = self.total > 0
        mean = (self.loss[present] / self.total[present, None]).mean(axis=0)
        shape = (self.n_settings, self.n_points)
        features = self.held_out[:, self.index].reshape(-1, *shape, self.k)
        return FoldScores(
            scores=-mean[self.index].reshape(*shape, 1),
            sizes=self.sizes.reshape(shape),
            features=np.moveaxis(features, 0, 2),
        )
