"""Planes without a penalty, exact, from a generalised symmetric eigenproblem.

With M_k = [[S_k + tau I + mu_k mu_k', mu_k], [mu_k', 1]] the smallest quotient is the smallest
eigenvalue of the pair (M_i, M_j), and its eigenvector holds w and b.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, lstsq

from .._typing import Float64Array, IntArray
from .._validate import warn_caller
from ..linalg.gsvd import gsvd
from .quotient import Bias, ClassCovariances, OneVsRest, best_bias


def solve_unpenalized(
    cov: ClassCovariances, plane: OneVsRest, tau: float, features: IntArray
) -> tuple[Float64Array, Bias] | None:
    """Unit normal and bias of the best plane on some features; None where it is at infinity."""
    reduced = cov.row_space(features) if tau > 0.0 else None
    if reduced is None:
        spreads = cov.blocks(features, np.array((plane.own, plane.other)))
        return _best_plane(spreads, cov.means[:, features], plane, tau)
    # tau counts against any part of w outside the row space, so the minimiser lies in it: the
    # problem shrinks to as many dimensions as there are rows
    small, lift = reduced
    result = solve_unpenalized(small, plane, tau, np.arange(small.means.shape[1]))
    if result is None:
        return None
    w = lift(result[0])
    return w / np.linalg.norm(w), result[1]


def panel_planes(
    means: Float64Array, covariances: Float64Array, share: Float64Array, tau: float, pool: float
) -> tuple[Float64Array, Float64Array]:
    """Unit normals (n_classes, n_selected) and biases of each class's best plane on a panel.

    The other classes are on the positive side. A plane lies at infinity where its class is the
    wider one and the means coincide: that of ``pool=1`` stands in for it, with a warning.
    """
    share = share / share.sum()
    n_classes = len(means)
    # means that coincide exactly have no direction between them: any plane through their mean
    w, b = np.tile(np.eye(means.shape[1])[0], (n_classes, 1)), -means[:, 0]
    far = 0
    for i in range(n_classes):
        for attempt in dict.fromkeys((pool, 1.0)):
            plane = OneVsRest.of_class(i, share, attempt)
            spreads = np.tensordot((plane.own, plane.other), covariances, axes=1)
            result = _best_plane(spreads, means, plane, tau)
            if result is not None and not result[1].clipped:
                normal, bias = result
                sign = -1.0 if bias.other < 0.0 else 1.0
                w[i], b[i] = sign * normal, sign * (bias.own - float(normal @ means[i]))
                break
            far += attempt == pool
    if far:
        warn_caller(
            f"the best plane of {far} of {n_classes} classes lies at infinity, because its "
            "class is wider than the others and the means coincide: the plane of the pooled "
            "spread stands in for it. Try a larger pool or tau",
            RuntimeWarning,
        )
    return w, b


def _best_plane(
    spreads: Float64Array, means: Float64Array, plane: OneVsRest, tau: float
) -> tuple[Float64Array, Bias] | None:
    """Unit normal and bias of the best plane, None where it has no finite bias."""
    own_mean, other_mean = plane.own_mean @ means, plane.other_mean @ means
    between = plane.between @ means
    own, other = spreads[0], spreads[1] + between.T @ between
    if tau > 0.0:
        A, B = np.empty((2, len(own) + 1, len(own) + 1))
        for form, cov, mean in ((A, own, own_mean), (B, other, other_mean)):
            extended = np.append(mean, 1.0)
            np.multiply.outer(extended, extended, out=form)
            form[:-1, :-1] += cov + tau * np.eye(len(cov))
        z = eigh(A, A + B, subset_by_index=[0, 0])[1][:, 0]
    else:  # both forms may be singular, so factors of them go through the GSVD
        result = gsvd(_factor(own, own_mean), _factor(other, other_mean))
        z = lstsq(result.X.T, np.eye(len(result.alpha))[-1])[0]
    norm = float(np.linalg.norm(z[:-1]))
    if norm <= 1e-8 * abs(float(z[-1])):
        return None
    w = z[:-1] / norm
    # the bias in closed form, which the eigenvector has to fewer digits
    bias = best_bias(
        max(float(w @ own @ w), 0.0) + tau,
        max(float(w @ other @ w), 0.0) + tau,
        float(w @ (other_mean - own_mean)),
    )
    return w, bias


def _factor(cov: Float64Array, mean: Float64Array) -> Float64Array:
    """F with F'F = [[cov + mean mean', mean], [mean', 1]]."""
    values, vectors = eigh(cov)
    # the root of what rounding leaves of a zero would count as a dimension
    noise = 4 * len(mean) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    top = np.sqrt(np.where(values > noise, values, 0.0))[:, None] * vectors.T
    return np.block([[top, np.zeros((len(mean), 1))], [mean, 1.0]])
