r"""Newton's method on the sphere for a quotient whose covariance blocks are at hand.

All that the quotient's derivatives need beside the blocks N and D lies in the span of five
vectors, the rows of the *basis*

.. math:: M = (Nw,\ Dw,\ \mu_i,\ \mu_j,\ w)

so gradient and Hessian are a few numbers each: the gradient is :math:`M'\gamma`, and the
Hessian of the Lagrangian, projected onto the tangent space of the sphere,

.. math:: s\,(N - rD) + c I + M'KM

with a core K of 5 x 5. An iteration gathers the blocks only where the support has changed,
adds one product of low rank and solves with one Cholesky factorisation. Features that violate
the certificate join the system at zero, so letting them in and Newton's step are one.

`minimize_with_newton` and `sphere.minimize_on_sphere` minimise the same function; the latter
knows nothing of blocks, takes gradient steps too, and goes on where this one is stuck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from scipy.linalg.lapack import dposv, dsytrf, dsytrs

from .._typing import BoolArray, Float64Array, IntArray
from .penalties import Penalty
from .quotient import Bias, GramQuotient, Point, best_bias
from .sphere import (
    ARMIJO,
    MAX_NEWTON,
    SURE,
    SphereSolution,
    minimize_on_sphere,
    rounding,
)

# Rows of the basis.
_OWN, _OTHER, _OWN_MEAN, _OTHER_MEAN, _W = range(5)


def minimize_with_newton(
    quotient: GramQuotient,
    penalty: Penalty,
    delta: float,
    weights: Float64Array,
    w: Float64Array,
    *,
    tol: float,
    max_iter: int,
    polish: bool = True,
) -> SphereSolution:
    """Minimise the quotient plus penalty from the unit vector w, as `minimize_on_sphere` does.

    ``weights`` are the l_f, ``polish`` allows one more step at the end, for the sake of the
    coefficients.
    """
    newton = _Newton(quotient, penalty, delta * weights, tol)
    current = newton.start(w)
    history = [current.objective]
    while current.residual > tol and len(history) <= max_iter:
        found = newton.step(current)
        if found is None:
            rest = minimize_on_sphere(
                quotient,
                penalty,
                delta,
                weights,
                current.w,
                tol=tol,
                max_iter=max_iter - len(history) + 1,
                polish=polish,
            )
            n_iter = len(history) - 1 + rest.n_iter
            history += rest.history[1:]
            return SphereSolution(rest.point, rest.objective, rest.residual, n_iter, history)
        current = found
        history.append(current.objective)
    if polish and SURE * tol < current.residual <= tol and 1 < len(history) <= max_iter:
        # Where the problem is ill conditioned a small residual leaves the coefficients less
        # sure. Newton converges quadratically: one step more settles them.
        found = newton.step(current)
        if found is not None and found.residual <= current.residual:
            current = found
            history.append(current.objective)
    point = Point(current.w, current.bias, current.gradient, current.basis[_OTHER])
    return SphereSolution(point, current.objective, current.residual, len(history) - 1, history)


@dataclass(slots=True, eq=False)
class _Iterate:
    """A unit vector with all that a step from it needs, which `_Newton` fills in."""

    w: Float64Array
    support: IntArray  # where w is not zero, in any order
    v: Float64Array  # w there
    signs: Float64Array  # and its signs
    basis: Float64Array = field(init=False)  # M, of shape (5, n_features)
    coordinates: Float64Array = field(init=False)  # M w
    bias: Bias = field(init=False)
    objective: float = field(init=False)
    slopes: Float64Array = field(init=False)  # of the penalty's tangent
    gamma: tuple[float, ...] = field(init=False)  # the gradient in terms of the basis
    gradient: Float64Array = field(init=False)
    multiplier: float = field(init=False)  # lam
    total: Float64Array = field(init=False)  # g + s sign(w) - lam w on the support
    excess: Float64Array = field(init=False)  # |g| - s off the support, negative on it
    worst: float = field(init=False)  # the largest excess
    residual: float = field(init=False)  # the certificate's


class _Newton:
    """Steps of one problem; remembers the blocks of the last support."""

    _at: IntArray | None = None  # the features whose blocks are at hand
    _blocks: Float64Array  # N and D between them, each as one row
    _size: tuple[float, float]  # the means of their diagonals

    def __init__(
        self, quotient: GramQuotient, penalty: Penalty, base: Float64Array, tol: float
    ) -> None:
        self.quotient, self.penalty, self.base, self.tol = quotient, penalty, base, tol
        self._means = np.empty((5, len(base)))  # the other rows are those of an iterate
        self._means[_OWN_MEAN], self._means[_OTHER_MEAN] = quotient.own_mean, quotient.other_mean
        self._linear = penalty.linear
        # features without a penalty, whose weights may change sign: there is no kink at zero
        free = base == 0.0
        self._free = free if free.any() else None

    def start(self, w: Float64Array) -> _Iterate:
        support = w.nonzero()[0]
        v = w[support]
        return self._measured(self._evaluated(w, support, v, np.sign(v)))

    def _evaluated(
        self, w: Float64Array, support: IntArray, v: Float64Array, signs: Float64Array
    ) -> _Iterate:
        """The iterate w with its basis, bias and objective."""
        quotient, it = self.quotient, _Iterate(w, support, v, signs)
        it.basis = basis = self._means.copy()
        basis[:2] = quotient.pair_products(w, support, v)
        basis[_W] = w
        it.coordinates = basis @ w
        own, other, own_mean, other_mean, _ = it.coordinates.tolist()
        tau = quotient.tau
        it.bias = best_bias(max(own, 0.0) + tau, max(other, 0.0) + tau, other_mean - own_mean)
        size = v * signs
        cost = size if self._linear else self.penalty.value(size)
        it.objective = it.bias.ratio + float(self.base[support] @ cost)
        return it

    def _measured(self, it: _Iterate) -> _Iterate:
        """The same iterate with its gradient and certificate."""
        ratio, own, other, denominator, _ = it.bias
        s = 2.0 / denominator
        it.gamma = (
            s,
            -s * ratio,
            s * own,
            -s * ratio * other,
            s * self.quotient.tau * (1.0 - ratio),
        )
        it.gradient = np.array(it.gamma) @ it.basis
        it.slopes = self.base
        if not self._linear:
            it.slopes = self.base * self.penalty.slope(np.abs(it.w))
        it.total = it.gradient[it.support]
        it.total += it.slopes[it.support] * it.signs
        it.multiplier = float(it.v @ it.total)
        it.total -= it.multiplier * it.v
        it.excess = np.abs(it.gradient)
        it.excess -= it.slopes
        it.excess[it.support] = -1.0
        it.worst = _largest(it.excess)
        it.residual = max(_largest(np.abs(it.total)), it.worst)
        return it

    def step(self, it: _Iterate) -> _Iterate | None:
        """One step of Newton's method that does not raise the objective, or None."""
        at, v, signs, total = it.support, it.v, it.signs, it.total
        if it.worst > self.tol:
            new = self._entering(it)
            # they leave zero against their gradient
            pull = it.gradient[new]
            at, v = np.concatenate((at, new)), np.concatenate((v, np.zeros(len(new))))
            signs = np.concatenate((signs, -np.sign(pull)))
            total = np.concatenate((total, pull + it.slopes[new] * signs[-len(new) :]))
        if not 2 <= len(at) <= MAX_NEWTON:
            return None
        direction = self._direction(it, at, v, total)
        if direction is None:
            return None
        direction -= float(v @ direction) * v
        slope = float(total @ direction)
        if slope >= 0.0:
            return None
        return self._search(it, at, v, signs, direction, slope)

    def _entering(self, it: _Iterate) -> IntArray:
        """The features at zero that violate the certificate most.

        Of nearly collinear features only a few are wanted: letting all of them in at once
        costs more steps than it saves.
        """
        new = (it.excess > self.tol).nonzero()[0]
        most = 1 + len(it.support) // 8
        if len(new) > most:
            new = new[np.argsort(-it.excess[new], kind="stable")[:most]]
        return new

    def _search(
        self,
        it: _Iterate,
        at: IntArray,
        v: Float64Array,
        signs: Float64Array,
        direction: Float64Array,
        slope: float,
    ) -> _Iterate | None:
        """The first point along the direction that descends enough, cut at zero crossings."""
        slack = rounding(it.objective)
        length = 1.0
        for _ in range(8):
            values = v + length * direction
            crossed = values * signs <= 0.0
            now = signs
            if self._free is not None:
                through = crossed & self._free[at] & (values != 0.0)
                now, crossed = np.where(through, -signs, signs), crossed & ~through
            values[crossed] = 0.0
            norm = sqrt(float(values @ values))
            if norm > 0.0:
                values /= norm
                w = np.zeros(len(it.w))
                w[at] = values
                new = self._evaluated(w, *_without(crossed, at, values, now))
                if new.objective <= it.objective + ARMIJO * length * slope + slack:
                    self._measured(new)
                    # at the level of rounding only a smaller residual tells progress
                    if new.objective < it.objective or new.residual < it.residual:
                        return new
                    return None
            length *= 0.25
        return None

    def _direction(
        self, it: _Iterate, at: IntArray, v: Float64Array, total: Float64Array
    ) -> Float64Array | None:
        """The solution of the projected Newton system on the features ``at``."""
        H, scale = self.system(it, at, v)
        # symmetric, so the transpose, which LAPACK reads without a copy, is the same matrix
        _, direction, info = dposv(H.T, total, lower=1)
        if info == 0:
            return -direction
        return _turned(H, total, 0.1 * scale)

    def system(self, it: _Iterate, at: IntArray, v: Float64Array) -> tuple[Float64Array, float]:
        """P H P + scale v v', and that scale; H is the Hessian of the Lagrangian on ``at``.

        It is positive definite exactly if H is so on the tangent space. ``v`` is w there.
        """
        n, tau = len(at), self.quotient.tau
        if at is not self._at:
            self._gather(at)
        ratio = it.bias.ratio
        s = 2.0 / it.bias.denominator
        shift = s * tau * (1.0 - ratio) - it.multiplier
        K = _core(it.bias, it.gamma, tau)
        # H v in the basis: the curvature of the penalty, if any, is a vector of its own
        Hv = K @ it.coordinates
        Hv += (s, -s * ratio, 0.0, 0.0, shift)
        vHv = float(Hv @ it.coordinates)
        own, spread = self._size
        scale = max(abs(s * (own - ratio * spread) + shift), 1e-2 * s * (own + tau), 1e-300)
        M = it.basis.take(at, axis=1)
        bend = None
        if not self._linear:
            # where features enter, the tangent of the penalty, which majorises it
            bend = self.base[at] * self.penalty.curvature(np.abs(v)) * (v != 0.0)
            M = np.concatenate((M, [bend * v]))
            K = np.pad(K, (0, 1))
            Hv = np.append(Hv, 1.0)
            vHv += float(M[-1] @ v)
        # P H P + scale v v' = H - h v' - v h'
        Hv[_W] -= 0.5 * (vHv + scale)
        K[_W] -= Hv
        K[:, _W] -= Hv
        H = (np.array((s, -s * ratio)) @ self._blocks).reshape(n, n)
        H += M.T @ (K @ M)
        diagonal = H.ravel()[:: n + 1]
        diagonal += shift
        if bend is not None:
            diagonal += bend
        return H, scale

    def _gather(self, at: IntArray) -> None:
        n = len(at)
        self._at, self._blocks = at, self.quotient.gathered(at)
        own, other = self._blocks[:, :: n + 1].sum(axis=1).tolist()
        self._size = (own / n, other / n)


def _turned(H: Float64Array, total: Float64Array, least: float) -> Float64Array | None:
    """Minus the solution with an indefinite H made positive definite.

    Between nearly collinear features the objective is concave: the step is to leave the
    saddle instead of seeking it. In H = LDL', with blocks D of one or two features, D is
    replaced by its absolute value, of at least ``least``, for a tenth of what eigenvectors cost.
    D depends on the order of the features, so that is taken from H, not from the table.
    """
    order = np.argsort(-H.diagonal())
    factor, pivots, info = dsytrf(H.take(order, axis=0).take(order, axis=1).T, lower=1)
    if info < 0:
        return None
    diagonal = factor.diagonal().copy()
    single = pivots > 0
    diagonal[single] = np.maximum(np.abs(diagonal[single]), least)
    pairs = (~single).nonzero()[0][::2]
    for k in pairs.tolist():
        a, b, c = float(factor[k, k]), float(factor[k + 1, k]), float(factor[k + 1, k + 1])
        # |B| = (B^2 + |det B| I) / tr |B| for two by two
        size = abs(a * c - b * b)
        trace = sqrt(a * a + 2.0 * b * b + c * c + 2.0 * size)
        diagonal[k] = max((a * a + b * b + size) / trace, least)
        diagonal[k + 1] = max((b * b + c * c + size) / trace, least)
        beside = b * (a + c) / trace
        # dsytrs divides by it
        factor[k + 1, k] = beside if abs(beside) > 1e-100 * trace else 1e-100 * trace
    np.fill_diagonal(factor, diagonal)
    solution, info = dsytrs(factor, pivots, -total[order], lower=1)
    if info != 0:
        return None
    direction = np.empty_like(total)
    direction[order] = solution
    return direction


def _core(bias: Bias, gamma: tuple[float, ...], tau: float) -> Float64Array:
    """K of the quotient's Hessian ``s (N - r D + tau (1 - r) I) + M'KM``, the bias eliminated.

    f = a / c has the Hessian ``(a'' - f c'' - f' (c')' - c' (f')') / c`` in (w, b); the row of
    the bias, whose derivative is zero at its best value, goes by a Schur complement.
    """
    ratio, _, other, denominator, clipped = bias
    s = 2.0 / denominator
    slope = (0.0, -s, 0.0, -s * other, -s * tau)  # -c' / c
    left: list[Sequence[float]] = [
        gamma,
        slope,
        (0.0, 0.0, s, 0.0, 0.0),
        (0.0, 0.0, 0.0, -s * ratio, 0.0),
    ]
    right: list[Sequence[float]] = [
        slope,
        gamma,
        (0.0, 0.0, 1.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0, 0.0),
    ]
    corner = s * (1.0 - ratio)
    if corner > 0.0 and not clipped:
        cross = [-s * other * g for g in gamma]
        cross[_OWN_MEAN] += s
        cross[_OTHER_MEAN] -= s * ratio
        left.append(cross)
        right.append([-g / corner for g in cross])
    return np.array(left).T @ np.array(right)


def _largest(values: Float64Array) -> float:
    # several times as fast as max() on arrays this small
    return float(values[values.argmax()])


def _without(
    crossed: BoolArray, at: IntArray, values: Float64Array, signs: Float64Array
) -> tuple[IntArray, Float64Array, Float64Array]:
    """The features left; the very same arrays where all are, so that blocks are kept."""
    if not crossed.any():
        return at, values, signs
    keep = ~crossed
    return at[keep], values[keep], signs[keep]
