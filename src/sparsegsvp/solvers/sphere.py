r"""Minimise a quotient plus a separable penalty on the unit sphere: one loop.

.. math:: \min_{\|w\|_2 = 1} r(w) + \delta \sum_f l_f\, p(|w_f|)

Each iteration takes a proximal gradient step, which lets features in and out, and a
Newton step on the support and signs found. Both are accepted only if the objective does
not increase. With ``newton=False`` the loop is the plain Barzilai-Borwein method, which
serves as the check of the fast one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dsyevd

from .._typing import Float64Array, IntArray
from .penalties import Penalty
from .quotient import Point, Quotient, evaluate, hessian

# Relative size of what rounding changes of the objective.
_ROUNDING = 4 * float(np.finfo(np.float64).eps)
ARMIJO = 1e-4
# Part of the tolerance below which the coefficients are as sure as the certificate.
SURE = 1e-2
# Largest support whose Hessian is formed.
MAX_NEWTON = 1000
# Largest support on which an indefinite Hessian is worth its eigenvectors.
MAX_SADDLE = 300


@dataclass(frozen=True, eq=False)
class SphereSolution:
    """The last point of the loop, with its certificate on the features it was given."""

    point: Point
    objective: float
    residual: float
    n_iter: int
    history: list[float]


def rounding(objective: float) -> float:
    """The size below which a change of the objective is rounding."""
    return _ROUNDING * max(abs(objective), 1e-3)


def soft_threshold(y: Float64Array, threshold: Float64Array) -> Float64Array:
    """sign(y) max(|y| - threshold, 0)."""
    return np.copysign(np.maximum(np.abs(y) - threshold, 0.0), y)


def prox_on_sphere(y: Float64Array, threshold: Float64Array) -> Float64Array:
    """Minimise 0.5 ||w - y||^2 + sum threshold_f |w_f| over the unit sphere, exactly.

    That is the soft-thresholded y, normalised; if that is zero, the single coordinate with
    the largest ``|y_f| - threshold_f``, the lowest index in a tie.
    """
    w = soft_threshold(y, threshold)
    norm = np.sqrt(w @ w)
    if norm > 0.0:
        w /= norm
        return w
    best = int(np.argmax(np.abs(y) - threshold))
    w[best] = 1.0 if y[best] >= 0.0 else -1.0
    return w


def kkt_residual(w: Float64Array, gradient: Float64Array, slopes: Float64Array) -> float:
    """The largest violation of stationarity at a unit vector w.

    With slopes ``s_f = delta l_f p'(|w_f|)``, it is the largest over features of
    ``|g_f + s_f sign(w_f) - lam w_f|`` where w_f != 0, with ``lam = sum s_f |w_f|``, and of
    ``max(|g_f| - s_f, 0)`` where w_f = 0.
    """
    violation = np.abs(gradient) - slopes
    at = w.nonzero()[0]
    total = gradient[at] + slopes[at] * np.sign(w[at])
    # w'g = 0, so this is sum s_f |w_f|; where the bias was clipped it is the multiplier
    violation[at] = np.abs(total - (w[at] @ total) * w[at])
    # those of the support are not negative, and it is not empty
    return float(violation.max())


def minimize_on_sphere(
    quotient: Quotient,
    penalty: Penalty,
    delta: float,
    weights: Float64Array,
    w: Float64Array,
    *,
    tol: float,
    max_iter: int,
    newton: bool = True,
    polish: bool = True,
) -> SphereSolution:
    """Run the loop from the unit vector w until `kkt_residual` is at most ``tol``.

    ``weights`` are the l_f, ``newton`` allows Newton steps on the support, and ``polish`` one
    more of them at the end, for the sake of the coefficients.
    """
    base = delta * weights
    state = _State(evaluate(quotient, w), base, penalty)
    history = [state.objective]
    memory = _Memory()
    n_iter = 0
    residual = state.residual()
    while residual > tol and n_iter < max_iter:
        n_iter += 1
        before = state
        admit = state.admits(tol) or not newton
        if admit:
            # Of nearly collinear features only a few are wanted: letting all of them in
            # at once costs more Newton steps than it saves.
            most = 1 + int(np.count_nonzero(state.point.w)) // 8 if newton else None
            state = _gradient_step(quotient, state, memory, most) or state
        if newton:
            moved = _newton_step(quotient, state)
            if moved is not None:
                memory.forget()
                state = moved
            elif not admit:
                state = _gradient_step(quotient, state, memory) or state
        if state is before:
            break  # no step decreases the objective any more: rounding
        history.append(state.objective)
        residual = state.residual()
    if newton and polish and SURE * tol < residual <= tol and 0 < n_iter < max_iter:
        # Where the problem is ill conditioned a small residual leaves the coefficients less
        # sure. Newton converges quadratically: one step more settles them.
        polished = _newton_step(quotient, state)
        if polished is not None and polished.residual() <= residual:
            state, residual, n_iter = polished, polished.residual(), n_iter + 1
            history.append(state.objective)
    return SphereSolution(state.point, state.objective, residual, n_iter, history)


class _State:
    """A point with its objective and the slopes of the penalty's tangent there."""

    __slots__ = ("base", "objective", "penalty", "point", "slopes")

    def __init__(self, point: Point, base: Float64Array, penalty: Penalty) -> None:
        t = np.abs(point.w)
        self.point, self.base, self.penalty = point, base, penalty
        self.objective = point.ratio + float(base @ penalty.value(t))
        self.slopes = base if penalty.linear else base * penalty.slope(t)

    def residual(self) -> float:
        return kkt_residual(self.point.w, self.point.gradient, self.slopes)

    def admits(self, tol: float) -> bool:
        """Whether some feature at zero violates the certificate by more than ``tol``."""
        out = self.point.w == 0.0
        return bool(np.any(np.abs(self.point.gradient[out]) > self.slopes[out] + tol))

    def at(self, point: Point) -> _State:
        return _State(point, self.base, self.penalty)


class _Memory:
    """The last gradient step, for the Barzilai-Borwein length of the next."""

    def __init__(self) -> None:
        self._w: Float64Array | None = None
        self._g: Float64Array | None = None
        self._length: float | None = None

    def forget(self) -> None:
        self._w = None

    def length(self, quotient: Quotient, point: Point) -> float:
        if self._w is not None and self._g is not None:
            s, y = point.w - self._w, point.gradient - self._g
            curvature = float(s @ y)
            if curvature > 0.0:
                return float(s @ s) / curvature
        if self._length is not None:
            return self._length
        # the curvature along the gradient is a lower bound of the largest one
        g = point.gradient
        own, other = quotient.products(g)
        bend = 2.0 * abs(float(g @ own - point.ratio * (g @ other))) / point.bias.denominator
        return float(g @ g) / bend if bend > 0.0 else 1.0

    def keep(self, point: Point, length: float) -> None:
        self._w, self._g, self._length = point.w, point.gradient, length


def _admitting(state: _State, most: int) -> Float64Array:
    """The gradient, but at zero for all features at zero other than the worst few."""
    out = state.point.w == 0.0
    excess = np.where(out, np.abs(state.point.gradient) - state.slopes, -np.inf)
    if len(excess) <= most:
        return state.point.gradient
    worst = np.argpartition(-excess, most)[:most]
    out[worst] = False
    return np.where(out, 0.0, state.point.gradient)


def _gradient_step(
    quotient: Quotient, state: _State, memory: _Memory, most: int | None = None
) -> _State | None:
    """A proximal gradient step, halved until the objective has decreased enough."""
    point = state.point
    gradient = point.gradient
    if most is not None:
        gradient = _admitting(state, most)
    length = memory.length(quotient, point)
    for _ in range(60):
        w = prox_on_sphere(point.w - length * gradient, length * state.slopes)
        step = w - point.w
        moved = float(step @ step)
        if moved == 0.0:
            return None
        new = state.at(evaluate(quotient, w))
        if new.objective <= state.objective - ARMIJO * moved / (2.0 * length):
            memory.keep(point, length)
            return new
        length *= 0.5
    return None


def _newton_step(quotient: Quotient, state: _State) -> _State | None:
    """A Newton step on the support and signs, cut back at zero crossings."""
    point = state.point
    at = point.w.nonzero()[0]
    if not 2 <= len(at) <= MAX_NEWTON:
        return None
    found = _newton_direction(quotient, state, at)
    if found is None:
        return None
    direction, slope = found
    signs = np.sign(point.w[at])
    signs[state.base[at] == 0.0] = 0.0  # without a penalty there is no kink at zero
    length = 1.0
    for _ in range(8):
        values = point.w[at] + length * direction
        values[values * signs < 0.0] = 0.0
        norm = np.sqrt(values @ values)
        if norm > 0.0:
            w = np.zeros_like(point.w)
            w[at] = values / norm
            new = state.at(evaluate(quotient, w))
            if new.objective <= state.objective + ARMIJO * length * slope + rounding(
                state.objective
            ):
                # at the level of rounding only a smaller residual tells progress
                if new.objective < state.objective or new.residual() < state.residual():
                    return new
                return None
        length *= 0.25
    return None


def _newton_direction(
    quotient: Quotient, state: _State, at: IntArray
) -> tuple[Float64Array, float] | None:
    """The Riemannian Newton direction and its slope; None where it would not descend."""
    point = state.point
    v = point.w[at]
    total = point.gradient[at] + state.slopes[at] * np.sign(v)
    multiplier = float(v @ total)
    total -= multiplier * v
    H = hessian(quotient, point, at)
    H.flat[:: len(at) + 1] -= multiplier
    if not state.penalty.linear:
        H.flat[:: len(at) + 1] += state.base[at] * state.penalty.curvature(np.abs(v))
    # P H P + gamma v v', positive definite exactly if H is so on the tangent space
    Hv = H @ v
    gamma = max(float(np.abs(H.flat[:: len(at) + 1]).mean()), 1e-300)
    half = Hv - (0.5 * (float(v @ Hv) + gamma)) * v
    H -= np.array([half, v]).T @ np.array([v, half])
    factor, info = dpotrf(H, lower=1)
    if info == 0:
        direction, _ = dpotrs(factor, -total, lower=1)
    elif len(at) > MAX_SADDLE:
        return None
    else:
        # Between nearly collinear features the objective is concave: turn those
        # directions around, so that the step leaves the saddle instead of seeking it.
        values, vectors, info = dsyevd(H, lower=1)
        if info != 0:
            return None
        values = np.maximum(np.abs(values), 0.1 * gamma)
        direction = -vectors @ ((total @ vectors) / values)
    direction -= float(v @ direction) * v
    slope = float(total @ direction)
    return (direction, slope) if slope < 0.0 else None
