"""The unpenalised problem, exactly: a generalised symmetric eigenproblem.

With M_k = [[S_k + tau I + mu_k mu_k', mu_k], [mu_k', 1]] the smallest quotient is the
smallest eigenvalue of the pair (M_i, M_j), and its eigenvector holds w and b.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh, lstsq

from .._typing import Float64Array, IntArray
from ..linalg import Covariances, gsvd
from .quotient import Bias, GramQuotient, OneVsRest, evaluate, full_gradient
from .sphere import kkt_residual
from .working_set import Solution


def solve_unpenalized(
    cov: Covariances, plane: OneVsRest, tau: float, features: IntArray
) -> Solution | None:
    """The best plane on some features, all of them used; its gradient is that of these.

    None where the smallest quotient is that of a plane infinitely far away, so that its w
    vanishes.
    """
    if tau > 0.0 and len(features) > cov.n_samples:
        reduced = cov.row_space(features)
        if reduced is not None:
            return _in_row_space(cov, plane, tau, features, *reduced)
    cov.extend(features)
    quotient = GramQuotient(cov, plane, tau, features)
    forms = [(quotient.own, quotient.own_mean), (quotient.other, quotient.other_mean)]
    if tau > 0.0:
        z = _smallest_eigenvector(*(_bordered(*form, tau) for form in forms))
    else:
        z = _smallest_generalized_vector(*(_factor(*form) for form in forms))
    w, norm = z[:-1], float(np.linalg.norm(z[:-1]))
    if norm <= 1e-8 * abs(float(z[-1])):
        return None
    point = evaluate(quotient, w / norm)
    return _solution(features, point.w, point.bias, point.gradient)


def _in_row_space(
    cov: Covariances,
    plane: OneVsRest,
    tau: float,
    features: IntArray,
    reduced: Covariances,
    lift: Callable[[Float64Array], Float64Array],
) -> Solution | None:
    """The best plane on more features than there are rows.

    tau counts against any part of w outside the row space, so the minimiser lies in it:
    the problem shrinks to as many dimensions as there are rows.
    """
    small = solve_unpenalized(reduced, plane, tau, np.arange(reduced.means.shape[1]))
    if small is None:
        return None
    dense = np.zeros(reduced.means.shape[1])
    dense[small.features] = small.w
    w = lift(dense)
    w /= np.linalg.norm(w)
    gradient = full_gradient(cov, plane, tau, features, w, small.bias)[features]
    return _solution(features, w, small.bias, gradient)


def _solution(
    features: IntArray,
    w: Float64Array,
    bias: Bias,
    gradient: Float64Array,
) -> Solution:
    keep = w != 0.0
    return Solution(
        delta=0.0,
        features=features[keep],
        w=w[keep],
        bias=bias,
        objective=bias.ratio,
        kkt_residual=kkt_residual(w, gradient, np.zeros(len(w))),
        n_iter=1,
        history=[bias.ratio],
        gradient=gradient,
        converged=True,
    )


def _bordered(cov: Float64Array, mean: Float64Array, tau: float) -> Float64Array:
    k = len(mean)
    out = np.empty((k + 1, k + 1))
    out[:k, :k] = cov + np.multiply.outer(mean, mean)
    out[:k, :k].flat[:: k + 1] += tau
    out[:k, k] = out[k, :k] = mean
    out[k, k] = 1.0
    return out


def _smallest_eigenvector(A: Float64Array, B: Float64Array) -> Float64Array:
    _, vectors = eigh(A, A + B, subset_by_index=[0, 0])
    return vectors[:, 0]


def _smallest_generalized_vector(A: Float64Array, B: Float64Array) -> Float64Array:
    """tau = 0: both forms may be singular, so factors of them go through the GSVD."""
    found = gsvd(A, B)
    with np.errstate(divide="ignore"):
        smallest = int(np.argmin(found.alpha / found.beta))
    z, *_ = lstsq(found.X.T, np.eye(found.X.shape[1])[smallest])
    return z


def _factor(cov: Float64Array, mean: Float64Array) -> Float64Array:
    """F with F'F = [[cov + mean mean', mean], [mean', 1]]."""
    values, vectors = eigh(cov)
    top = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return np.block([[top, np.zeros((len(mean), 1))], [mean[None, :], np.ones((1, 1))]])
