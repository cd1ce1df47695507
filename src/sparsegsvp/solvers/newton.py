r"""One plane at one penalty: Newton's method on a growing set of features.

`minimize` is the loop on a few features: a step of Newton's method on the support and the signs
of w, with the worst violators of the certificate joining at zero, or, where that does not descend,
a proximal gradient step. The objective never increases. `solve` calls it on a working set, computes
the gradient over all features, lets violators in, and repeats until none is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from .._typing import Array, BoolArray, IntArray
from .._validate import warn_constant
from .penalties import Penalty
from .quotient import Bias, ClassCovariances, OneVsRest, Quotient

_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # relative, of the objective
_ARMIJO = 1e-4
_MAX_NEWTON = 1000  # largest support whose Hessian is formed
# What is added, one after the other, to the diagonal of an indefinite Hessian, relative to it.
_SHIFTS = np.array([0.0, 0.03, 0.06, 0.18, 0.54, 1.6, 4.8, 15.0, 44.0])
_INNER = 0.01  # part of the tolerance on a working set; by quadratic convergence, a step at most


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem of one plane at any delta."""

    cov: ClassCovariances
    plane: OneVsRest
    tau: float
    penalty: Penalty
    # the factors l_f of all features: 0 for those in every solution, infinite for those in none
    factors: Array

    @cached_property
    def eligible(self) -> BoolArray:
        """Which features a solution may have: they vary and their factors are finite."""
        return self.cov.varying & (self.factors < np.inf)

    @cached_property
    def free(self) -> IntArray:
        """The features without a penalty, which are in every solution."""
        return np.flatnonzero((self.factors == 0.0) & self.cov.varying)

    def check(self, names: Any = None) -> None:
        """Warn of constant features; refuse where nothing is left, or tau = 0 leaves 0/0."""
        warn_constant(np.flatnonzero(~self.cov.varying & (self.factors < np.inf)).tolist(), names)
        features = np.flatnonzero(self.eligible)
        if len(features) == 0:
            raise ValueError(
                "all features that may be selected are constant: there is nothing to select from"
            )
        if self.tau > 0.0:
            return
        singular = len(features) >= self.cov.n_samples
        if not singular:
            total = self.cov.blocks(features, (self.plane.own + self.plane.other)[None])[0]
            contrast = self.plane.other_mean - self.plane.own_mean
            difference = contrast @ self.cov.means[:, features]
            values = np.linalg.eigvalsh(total + np.multiply.outer(difference, difference))
            singular = bool(values[0] <= 1e-13 * values[-1])
        if singular:
            raise ValueError(
                "tau = 0 leaves the quotient 0/0 on directions in which no row differs "
                "(more features than rows, or collinear features): use tau > 0"
            )

    def quotient(self, features: IntArray) -> Quotient:
        """The quotient on some of the features."""
        return Quotient(self.cov, self.plane, self.tau, features)

    def gradient(self, features: IntArray, w: Array, bias: Bias) -> Array:
        """The quotient's gradient over all features, by one pass over the data."""
        plane, means, r = self.plane, self.cov.means, bias.ratio
        gradient = self.cov.products(features, w, (plane.own - r * plane.other)[None])[0]
        spread = (plane.between @ (means[:, features] @ w)) @ plane.between
        pull = bias.own * plane.own_mean - r * (bias.other * plane.other_mean + spread)
        gradient += pull @ means
        gradient[features] += (self.tau * (1.0 - r)) * w
        gradient *= 2.0 / bias.denominator
        return gradient


@dataclass(frozen=True, eq=False)
class Solution:
    """A stationary point of one plane's problem at one delta."""

    delta: float
    features: IntArray
    w: Array  # the weights of ``features``, in standardised units; all others are zero
    bias: Bias
    objective: float
    kkt_residual: float
    n_iter: int
    history: list[float]
    gradient: Array  # of all features; empty where it is not needed any more
    converged: bool
    gap: float = 0.0  # how far the downward path was above this, relative

    def dense(self, n_features: int) -> Array:
        """The weights of all features, the other classes on the positive side of the plane."""
        w = np.zeros(n_features)
        w[self.features] = self.bias.sign * self.w
        return w


def prox_on_sphere(y: Array, threshold: Array) -> Array:
    """Minimise 0.5 ||w - y||^2 + sum threshold_f |w_f| over the unit sphere, exactly."""
    left = np.abs(y) - threshold
    w = np.copysign(np.maximum(left, 0.0), y)
    norm = np.sqrt(w @ w)
    if norm > 0.0:
        return w / norm
    best = int(np.argmax(left))
    w[best] = np.copysign(1.0, y[best])
    return w


def kkt_residual(w: Array, gradient: Array, slopes: Array) -> float:
    """The largest violation of stationarity at a unit vector w, slopes ``s_f = delta l_f p'``.

    That is ``|g_f + s_f sign(w_f) - lam w_f|`` where w_f != 0, with ``lam = sum s_f |w_f|``, and
    ``max(|g_f| - s_f, 0)`` where w_f = 0.
    """
    violation = np.abs(gradient) - slopes
    at = w.nonzero()[0]
    total = gradient[at] + slopes[at] * np.sign(w[at])
    # w'g = 0, so this is sum s_f |w_f|; where the bias was clipped it is the multiplier
    violation[at] = np.abs(total - (w[at] @ total) * w[at])
    # those of the support are not negative, and it is not empty
    return float(violation.max())


class Iterate:
    """A unit vector with its objective, slopes of the penalty and certificate."""

    def __init__(self, quotient: Quotient, penalty: Penalty, base: Array, w: Array) -> None:
        t = np.abs(w)
        self.quotient, self.penalty, self.base = quotient, penalty, base
        self.point = quotient.evaluate(w)
        self.objective = self.point.bias.ratio + float(base @ penalty.value(t))
        self.slopes = base if penalty.q == 1.0 else base * penalty.slope(t)

    @property
    def w(self) -> Array:
        return self.point.w

    @cached_property
    def residual(self) -> float:
        return kkt_residual(self.w, self.point.gradient, self.slopes)

    def at(self, w: Array) -> Iterate:
        """The same problem at another unit vector."""
        return Iterate(self.quotient, self.penalty, self.base, w)


def minimize(
    problem: Problem, delta: float, features: IntArray, w: Array, tol: float, max_iter: int
) -> tuple[Iterate, list[float]]:
    """Lower the objective on some features from w to a residual of ``tol``; with its history."""
    base = delta * problem.factors[features]
    current, previous = Iterate(problem.quotient(features), problem.penalty, base, w), None
    history = [current.objective]
    while current.residual > tol and len(history) <= max_iter:
        new = _newton_step(current, tol) or _gradient_step(current, previous)
        if new is None:
            break  # no step decreases the objective any more: rounding
        current, previous = new, current
        history.append(current.objective)
    return current, history


def _newton_step(it: Iterate, tol: float) -> Iterate | None:
    """A Newton step on support and signs, cut at zero crossings; None where it fails."""
    w, gradient = it.w, it.point.gradient
    support = w.nonzero()[0]
    excess = np.abs(gradient) - it.slopes
    excess[support] = 0.0
    # Of nearly collinear features that violate the certificate only a few are wanted: letting
    # all of them in at once costs more steps than it saves.
    entering = _largest(excess, tol, 1 + len(support) // 8)
    at = np.concatenate((support, entering))
    if it.quotient.pair is None or not 2 <= len(at) <= _MAX_NEWTON:
        return None
    v = w[at]
    # features at zero leave it against their gradient
    signs = np.where(v != 0.0, np.sign(v), -np.sign(gradient[at]))
    total = gradient[at] + it.slopes[at] * signs
    multiplier = float(v @ total)
    total -= multiplier * v
    direction = _newton_direction(it, at, v, total, multiplier)
    slope = 0.0 if direction is None else float(total @ direction)
    if direction is None or not slope < 0.0:
        return None
    kinks = it.base[at] > 0.0  # without a penalty a weight may change its sign
    slack = _ROUNDING * max(abs(it.objective), 1e-3)
    for length in 0.25 ** np.arange(8):
        values = v + length * direction
        values[kinks & (values * signs < 0.0)] = 0.0
        norm = np.sqrt(values @ values)
        if norm == 0.0:
            continue
        moved = np.zeros(len(w))
        moved[at] = values / norm
        new = it.at(moved)
        if new.objective <= it.objective + _ARMIJO * length * slope + slack:
            # at the level of rounding only a smaller residual tells progress
            lower = new.objective < it.objective or new.residual < it.residual
            return new if lower else None
    return None


def _newton_direction(
    it: Iterate, at: IntArray, v: Array, total: Array, multiplier: float
) -> Array | None:
    """Minus the inverse of the Lagrangian's Hessian, on the tangent space, times ``total``."""
    H = it.quotient.hessian(it.point, at)
    diagonal = H.ravel()[:: len(at) + 1]
    diagonal -= multiplier
    if it.penalty.q < 1.0:
        # where features enter, the tangent of the penalty, which majorises it
        diagonal += it.base[at] * it.penalty.curvature(np.abs(v)) * (v != 0.0)
    # P H P + size v v', positive definite exactly if H is so on the tangent space
    Hv = H @ v
    size = max(float(np.abs(diagonal).mean()), 1e-300)
    half = Hv - (0.5 * (float(v @ Hv) + size)) * v
    H -= np.array([half, v]).T @ np.array([v, half])
    # Between nearly collinear features the objective is concave: a shift of the diagonal makes
    # the system definite, so that the step leaves the saddle instead of seeking it.
    for shift in size * _SHIFTS:
        diagonal += shift
        # symmetric, so the transpose, which LAPACK reads without a copy, is the same matrix
        _, direction, info = dposv(H.T, -total, lower=1)
        if info == 0:
            return direction - float(v @ direction) * v
    return None


def _gradient_step(it: Iterate, previous: Iterate | None) -> Iterate | None:
    """A proximal gradient step, halved until the objective has decreased enough."""
    w, gradient = it.w, it.point.gradient
    length = 1.0
    if previous is not None:  # the length of Barzilai and Borwein
        step = w - previous.w
        bend = float(step @ (gradient - previous.point.gradient))
        length = float(step @ step) / bend if bend > 0.0 else length
    for _ in range(60):
        new = it.at(prox_on_sphere(w - length * gradient, length * it.slopes))
        moved = float(((new.w - w) ** 2).sum())
        if moved == 0.0:
            return None
        if new.objective <= it.objective - _ARMIJO * moved / (2.0 * length):
            return new
        length *= 0.5
    return None


def solve(problem: Problem, delta: float, start: Solution, tol: float, max_iter: int) -> Solution:
    """Solve at one delta from a solution whose gradient and delta give the features to expect."""
    # what the slopes of features at zero are compared with
    resting = (delta * problem.penalty.slope(0.0)) * problem.factors
    features = _expected(problem, delta, start, resting)
    w = placed(start.features, start.w, features)
    history: list[float] = []
    while True:
        left = max(max_iter - len(history) + 1, 1)
        it, steps = minimize(problem, delta, features, w, _INNER * tol, left)
        history += steps[1:] if history else steps
        support = it.w.nonzero()[0]
        chosen, weights, bias = features[support], it.w[support], it.point.bias
        gradient = problem.gradient(chosen, weights, bias)
        gradient[features] = it.point.gradient  # in float64 whatever the data is
        excess = np.abs(gradient) - resting
        excess[features] = 0.0
        residual = max(it.residual, float(excess.max()))
        new = _largest(excess, _INNER * tol, max(16, len(features)))
        if residual <= tol or len(history) > max_iter or len(new) == 0:
            break
        grown = np.union1d(features, new)
        w, features = placed(features, it.w, grown), grown
    n_iter, converged = len(history) - 1, residual <= tol
    return Solution(
        delta, chosen, weights, bias, it.objective, residual, n_iter, history, gradient, converged
    )


def solve_reweighted(
    problem: Problem, delta: float, start: Solution, tol: float, max_iter: int
) -> Solution:
    """Solve with a concave penalty from the l1 solution at the same delta.

    Three times p is majorised by its tangent; then the loop takes its curvature into account.
    """
    current, n_iter = start, 0
    for _ in range(3):
        t = np.zeros(len(problem.factors))
        t[current.features] = np.abs(current.w)
        tangent = replace(
            problem, penalty=Penalty(), factors=problem.factors * problem.penalty.slope(t)
        )
        current = solve(tangent, delta, current, 10.0 * tol, max_iter)
        n_iter += current.n_iter
    result = solve(problem, delta, current, tol, max_iter)
    return replace(result, n_iter=n_iter + result.n_iter)


def _largest(values: Array, least: float, most: int) -> IntArray:
    """Where the values above ``least`` are, the largest first, at most so many."""
    above = np.flatnonzero(values > least)
    return above[np.argsort(-values[above], kind="stable")[:most]]


def placed(features: IntArray, w: Array, among: IntArray) -> Array:
    """w on a larger sorted set of features, zero elsewhere."""
    out = np.zeros(len(among))
    out[np.searchsorted(among, features)] = w
    return out


def _expected(problem: Problem, delta: float, start: Solution, resting: Array) -> IntArray:
    """The support of ``start`` and the features that are likely to join it, in order."""
    # sequential strong rule: slopes change by no more than delta does
    least = max(2.0 - max(start.delta, delta) / delta, 0.0)
    pull = np.abs(start.gradient)
    with np.errstate(invalid="ignore"):  # 0 times an infinite factor
        expected = problem.eligible & (pull >= least * resting)
    score = np.where(expected, pull - resting, -np.inf)
    kept = np.union1d(start.features, problem.free)
    score[kept] = np.inf
    # more of them save few passes and cost memory for their blocks
    return np.sort(_largest(score, -np.inf, 3 * len(kept) // 2 + 16))
