"""Planes on a panel: the best without a penalty, from one eigenproblem where there are two.

Everything here is in standardised units and knows nothing of scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import (
    dormqr,
    dpotrf,
    dstebz,
    dstein,
    dsygst,
    dsygvd,
    dsytrd,
    dtrtrs,
)

from .._typing import Float64Array, IntArray
from ..linalg import Covariances
from ..solvers.quotient import OneVsRest, best_bias
from ..solvers.working_set import Solution

# Features below which all eigenvectors are found as fast as two.
_FEW_FEATURES = 16


@dataclass(frozen=True, eq=False)
class Planes:
    """One plane per class on a common panel, in standardised units."""

    panel: IntArray  # sorted indices of the selected features
    w: Float64Array  # unit normals, (n_classes, n_selected)
    b: Float64Array  # biases for centred features
    scale: Float64Array  # class-balanced root mean square distances of the training rows
    kept: bool = False  # some plane could not be refitted, so the penalised one was kept

    def within(self, panel: IntArray) -> Planes:
        """The same planes on a larger panel, whose other features have no weight."""
        w = np.zeros((len(self.w), len(panel)))
        w[:, np.searchsorted(panel, self.panel)] = self.w
        return replace(self, panel=panel, w=w)

    def raw(self, center: Float64Array, inverse: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Coefficients on the panel and intercepts in the units of X."""
        coef = self.w * inverse[self.panel]
        return coef, self.b - coef @ center[self.panel]


def refit_pair(cov: Covariances, plane: OneVsRest, tau: float, panel: IntArray) -> Planes | None:
    """The best unpenalised planes of two classes on a panel, from one eigenproblem.

    With M_k = [[S_k + tau I + mu_k mu_k', mu_k], [mu_k', 1]] the plane of the first class is
    the first eigenvector (w, b) of the pair (M_1, M_1 + M_2). That of the second class is the
    quotient turned over, so it is the last. None where one of them lies at infinity.
    """
    lift = None
    features = panel
    if len(panel) > cov.n_samples:
        # tau counts against any part of w outside the row space, so the planes lie in it
        reduced = cov.row_space(panel)
        if reduced is not None:
            cov, lift = reduced
            features = np.arange(cov.means.shape[1])
    cov.extend(features)
    k = len(features)
    within, means = cov.blocks(features, np.eye(2)), cov.means[:, features]
    spreads = (plane.own, plane.other)
    forms = np.empty((2, k + 1, k + 1))
    for form, (first, second), mean in zip(forms, spreads, means):
        block = form[:k, :k]
        np.multiply(within[0], first, out=block)
        block += second * within[1]
        block += np.multiply.outer(mean, mean)
        form[:k, k] = form[k, :k] = mean
        form[k, k] = 1.0
        form.flat[: -1 : k + 2] += tau
    ends = _end_vectors(forms[0], forms[0] + forms[1]).T
    w, norms = ends[:, :k], np.linalg.norm(ends[:, :k], axis=1)
    if (norms <= 1e-8 * np.abs(ends[:, k])).any():
        return None
    w = w / norms[:, None]
    # variances and means of the classes (columns) along the planes (rows)
    variances = np.maximum(((w @ within) * w).sum(axis=2), 0.0).T
    centers = w @ means.T
    b = np.empty(2)
    for i, j in ((0, 1), (1, 0)):
        own, other = (float(spreads[c] @ variances[i]) + tau for c in (i, j))
        bias = best_bias(own, other, float(centers[i, j] - centers[i, i]))
        b[i] = bias.own - centers[i, i]
        if bias.other < 0.0:  # the other class lies on the positive side
            w[i], b[i], centers[i] = -w[i], -b[i], -centers[i]
    scale = np.sqrt((variances + (centers + b[:, None]) ** 2).mean(axis=1))
    if lift is not None:
        w = np.stack([lift(row) for row in w])
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    return Planes(panel, w, b, np.where(scale > 0.0, scale, 1.0))


def _end_vectors(A: Float64Array, B: Float64Array) -> Float64Array:
    """The first and the last eigenvector of the pair (A, B), as columns.

    By way of a tridiagonal matrix, as LAPACK has it for some but not for both of them: all
    eigenvectors take twice as long.
    """
    n = len(A)
    if n < _FEW_FEATURES:
        _, vectors, failed = dsygvd(A, B)
        if not failed:
            return vectors[:, [0, -1]]
    else:
        factor, failed = dpotrf(B.T, lower=1)
        if not failed:
            reduced, _ = dsygst(A.T, factor, lower=1)
            reflectors, diagonal, beside, scales, _ = dsytrd(reduced, lower=1)
            found = np.empty((n, 2), order="F")
            for column, index in enumerate((1, n)):
                _, values, block, split, wrong = dstebz(
                    diagonal, beside, 2, 0.0, 0.0, index, index, 0.0, "B"
                )
                vector, stalled = dstein(diagonal, beside, values[:1], block, split)
                found[:, column] = vector[:, 0]
                failed |= wrong | stalled
            found[1:], _, wrong = dormqr("L", "N", reflectors[1:, :-1], scales, found[1:], 128)
            vectors, singular = dtrtrs(factor, found, lower=1, trans=1)
            if not (failed or wrong or singular):
                return vectors
    return eigh(A, B)[1][:, [0, -1]]


def balanced_scale(
    cov: Covariances, panel: IntArray, w: Float64Array, b: Float64Array
) -> Float64Array:
    """Root of the mean over classes of the mean squared distance to each plane."""
    offset = w @ cov.means[:, panel].T + b[:, None]
    scale = np.sqrt((cov.class_variances(panel, w) + offset**2).mean(axis=1))
    return np.where(scale > 0.0, scale, 1.0)


def cut_to_panel(
    cov: Covariances, plane: OneVsRest, solution: Solution, panel: IntArray
) -> tuple[Float64Array, float]:
    """Weights on the panel and bias, the other classes on the positive side.

    The bias is the solution's own also where weights are cut off, as the paper has it.
    """
    dense = np.zeros(len(panel))
    _, at, source = np.intersect1d(panel, solution.features, return_indices=True)
    dense[at] = solution.w[source]
    own = float((plane.own_mean @ cov.means[:, solution.features]) @ solution.w)
    sign = -1.0 if solution.bias.other < 0.0 else 1.0
    bias = sign * (solution.bias.own - own)
    norm = float(np.linalg.norm(dense))
    if norm == 0.0:
        return dense, bias
    # a truncated normal is made a unit vector again, so that distances stay distances
    return sign * dense / norm, bias / norm


def warn_about(solutions: Sequence[Solution], planes: Planes, labels: Sequence[object]) -> None:
    """Warn of planes that were not refitted and of biases that were clipped."""
    if planes.kept:
        warnings.warn(
            "on the selected features the best unpenalised plane of some class lies at "
            "infinity, so its penalised plane was kept: the means of the classes may coincide. "
            "Try a larger pool or tau",
            RuntimeWarning,
            stacklevel=5,
        )
    clipped = [label for label, s in zip(labels, solutions) if s.bias.clipped]
    if clipped:
        warnings.warn(
            f"the best bias of the plane of class {clipped[0]!r} ran off to infinity and was "
            "clipped: along its direction the class means coincide. Try a larger pool or tau",
            RuntimeWarning,
            stacklevel=5,
        )
