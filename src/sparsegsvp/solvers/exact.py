"""Solutions that take no search: the unpenalised one, and the sparsest, where paths start.

The first is exact, from a generalised symmetric eigenproblem. With
M_k = [[S_k + tau I + mu_k mu_k', mu_k], [mu_k', 1]] the smallest quotient is the smallest
eigenvalue of the pair (M_i, M_j), and its eigenvector holds w and b.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, lstsq

from .._typing import Float64Array, IntArray
from ..linalg import Covariances, gsvd
from .gradients import Rounds, full_gradient
from .penalties import slope_at_zero
from .quotient import (
    Bias,
    GramQuotient,
    OneVsRest,
    best_bias,
    evaluate,
    single_feature_ratios,
)
from .sphere import kkt_residual
from .working_set import Limits, Problem, Solution, lowest_copies

# A quotient that is zero but for rounding.
_NOTHING_LEFT = 1e-24
# How far the features without a penalty are solved where that cannot be done exactly.
_INEXACT = Limits(tol=1e-10, max_iter=1000)


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
    # the root of what rounding leaves of a zero would count as a dimension
    noise = 4 * len(mean) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    top = np.sqrt(np.where(values > noise, values, 0.0))[:, None] * vectors.T
    return np.block([[top, np.zeros((len(mean), 1))], [mean[None, :], np.ones((1, 1))]])


def panel_planes(
    means: Float64Array, covariances: Float64Array, share: Float64Array, tau: float, pool: float
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """The best plane of each class against the others on a panel, without a penalty.

    Parameters
    ----------
    means : ndarray of shape (n_classes, n_selected)
        Class means of the panel's features, standardised.
    covariances : ndarray of shape (n_classes, n_selected, n_selected)
        Covariances within the classes.
    share : ndarray of shape (n_classes,)
        Weight of each class in the pooled covariance.
    tau : float
        Floor on squared distances; 0 goes by the GSVD.
    pool : float
        How far each class's spread is shrunk toward the pooled one, from 0 to 1.

    Returns
    -------
    w : ndarray of shape (n_classes, n_selected)
        Unit normals; the mean of the other classes lies on the positive side.
    b : ndarray of shape (n_classes,)
        Biases.
    scale : ndarray of shape (n_classes,)
        Root of the mean over all classes of their mean squared distance to each plane, 1 where
        that is 0.

    Warns
    -----
    RuntimeWarning
        The best plane of a class lies at infinity, because the class is the wider one and the
        means coincide. Its plane for ``pool=1``, which is always near, stands in for it.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.solvers.exact import panel_planes
    >>> means = np.array([[0.0, 0.0], [3.0, 0.0]])
    >>> w, b, scale = panel_planes(means, np.array([np.eye(2)] * 2), np.ones(2), 0.0, 0.5)
    >>> w.round(6) + 0.0, b.round(3)
    (array([[ 1.,  0.],
           [-1.,  0.]]), array([0.303, 3.303]))
    """
    share = share / share.sum()
    n_classes = len(means)
    w, b = np.empty(means.shape), np.empty(n_classes)
    far = []
    for i in range(n_classes):
        found = _panel_plane(means, covariances, OneVsRest.of_class(i, share, pool), tau)
        if found is None:
            far.append(i)
            found = _panel_plane(means, covariances, OneVsRest.of_class(i, share, 1.0), tau)
        w[i], b[i] = found if found is not None else (np.eye(means.shape[1])[0], 0.0)
    if far:
        warnings.warn(
            f"the best plane of {len(far)} of {n_classes} classes lies at infinity, because its "
            "class is wider than the others and the means coincide: the plane of the pooled "
            "spread stands in for it. Try a larger pool or tau",
            RuntimeWarning,
            stacklevel=3,
        )
    # variances and distances of the classes (columns) along the planes (rows)
    variances = np.einsum("if,kfg,ig->ik", w, covariances, w, optimize=True)
    squares = np.maximum(variances, 0.0) + (w @ means.T + b[:, None]) ** 2
    scale = np.sqrt(squares.mean(axis=1))
    return w, b, np.where(scale > 0.0, scale, 1.0)


def _panel_plane(
    means: Float64Array, covariances: Float64Array, plane: OneVsRest, tau: float
) -> tuple[Float64Array, float] | None:
    """Unit normal and bias of one plane; None where it lies at infinity."""
    own, other = np.tensordot((plane.own, plane.other), covariances, axes=1)
    own_mean, other_mean = plane.own_mean @ means, plane.other_mean @ means
    if plane.between is not None:
        spread = plane.between @ means
        other += spread.T @ spread
    forms = [(own, own_mean), (other, other_mean)]
    if tau > 0.0:
        z = _smallest_eigenvector(*(_bordered(*form, tau) for form in forms))
    else:
        z = _smallest_generalized_vector(*(_factor(*form) for form in forms))
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
    if bias.clipped:
        return None
    sign = -1.0 if bias.other < 0.0 else 1.0
    return sign * w, sign * (bias.own - float(w @ own_mean))


# -------------------------------------------------------------------------- where paths start


class Start(NamedTuple):
    """Where a path begins."""

    first: Solution  # the sparsest solution
    delta_max: float  # at and above it the first solution is the path's
    launch: Solution  # what solutions below it are started from


def path_start(problem: Problem) -> Rounds[Start]:
    """The first solution of a path, and delta_max.

    It has the feature with the smallest quotient by itself or, where some have no penalty, all
    of these, at the best plane on them. It meets the certificate at and above the largest
    ``|g_f| / (l_f p'(0))`` over the other features, which is delta_max.

    Unless features without a penalty tell next to nothing: a covariate by which the classes were
    matched leaves a plane whose gradient is small, so that it is stationary far below the
    penalty at which another feature alone, of quotient r_f, is worth its price. Then delta_max is
    the largest ``(r - r_f) / (l_f p'(0))`` instead, and the path goes on from that feature.
    """
    cov, plane, tau = problem.cov, problem.plane, problem.tau
    ratios = _ratios(problem)
    if len(problem.free):
        features, w, bias = _best_without_penalty(problem, ratios)
        other, gain = _best_other(problem, bias.ratio - ratios)
    else:
        features, w, bias = _single(problem, ratios)
        other, gain = features, 0.0
    asked = [problem.request(features, w, bias)]
    if gain > 0.0:
        cov.extend(other)
        point = evaluate(GramQuotient(cov, plane, tau, other), np.ones(1))
        asked.append(problem.request(other, point.w, point.bias))
    gradient, *rest = yield asked
    slope = problem.weights * slope_at_zero(problem.penalty)
    pull = problem.pull(gradient)
    pull[features] = 0.0
    cov.prefetch(pull)
    # the path hangs on this one gradient: from the blocks, in float64 whatever the data is
    top = int(pull.argmax())
    near = np.union1d(features, top)
    if problem.forms_blocks(near):
        cov.extend(near)
        dense = np.zeros(len(near))
        dense[np.searchsorted(near, features)] = w
        gradient[near] = evaluate(GramQuotient(cov, plane, tau, near), dense).gradient
    delta_max = float(np.abs(gradient[top]) / slope[top]) if pull[top] > 0.0 else 0.0
    if tau == 0.0 and not bias.ratio > _NOTHING_LEFT:
        what = "the features of penalty 0 leave no distance"
        if len(problem.free) == 0:
            what = f"feature {features[0]} is constant"
        raise ValueError(
            f"{what} within the class, which makes delta_max 0: with "
            "tau = 0 its quotient is 0 at once, and no other feature can add to it. Use tau > 0"
        )
    jump = gain / slope_at_zero(problem.penalty)
    leaps = jump > delta_max
    delta_max = max(jump, delta_max)
    objective = bias.ratio + delta_max * penalty_of(problem, features, w)
    first = launch = Solution(
        delta=delta_max,
        features=features,
        w=w,
        bias=bias,
        objective=objective,
        kkt_residual=kkt_residual(w, gradient[features], np.zeros(len(w))),
        n_iter=0,
        history=[objective],
        gradient=gradient,
        converged=True,
    )
    if leaps:
        launch = replace(first, features=other, w=np.ones(1), gradient=rest[0])
    return Start(first, delta_max, launch)


def penalty_of(problem: Problem, features: IntArray, w: Float64Array) -> float:
    """``sum_f l_f p(|w_f|)`` of a w that is non-zero on ``features`` only."""
    return float(problem.weights[features] @ problem.penalty.value(np.abs(w)))


_Point = tuple[IntArray, Float64Array, Bias]


def _single(problem: Problem, ratios: Float64Array) -> _Point:
    """The feature with the smallest quotient by itself."""
    cov = problem.cov
    if not np.isfinite(ratios).any():
        raise ValueError("every feature is constant: there is nothing to select from")
    cov.prefetch(-ratios)
    best = lowest_copies(problem, np.array([int(np.argmin(ratios))]))
    cov.extend(best)
    point = evaluate(GramQuotient(cov, problem.plane, problem.tau, best), np.ones(1))
    return best, point.w, point.bias


def _best_without_penalty(problem: Problem, ratios: Float64Array) -> _Point:
    """The best plane on the features without a penalty, exactly if it is not at infinity."""
    free = problem.free
    found = solve_unpenalized(problem.cov, problem.plane, problem.tau, free)
    if found is not None:
        return found.features, found.w, found.bias
    best = free[np.argmin(ratios[free])]
    point = problem.minimize(0.0, free, 1.0 * (free == best), _INEXACT).point
    at = point.w.nonzero()[0]
    return free[at], point.w[at], point.bias


def _best_other(problem: Problem, gains: Float64Array) -> tuple[IntArray, float]:
    """The feature that gains most for its penalty, which it has, and that gain."""
    worth = np.full(len(gains), -np.inf)
    np.divide(gains, problem.weights, out=worth, where=(problem.weights > 0.0) & problem.eligible)
    best = lowest_copies(problem, np.array([int(np.argmax(worth))]))
    return best, float(worth[best[0]])


def _ratios(problem: Problem) -> Float64Array:
    """The quotient of every feature by itself; infinite where a plane may not use it."""
    ratios = single_feature_ratios(problem.cov, problem.plane, problem.tau)
    return np.where(problem.eligible, ratios, np.inf)
