r"""The quotient of mean squared distances, its best bias, gradient and curvature.

For the plane of class i, with :math:`\|w\|_2 = 1`,

.. math:: r(w) = \min_b \frac{w'Nw + (\mu_i'w + b)^2 + \tau}{w'Dw + (\mu_j'w + b)^2 + \tau}

where N and D are the covariances of class i and of the others, shrunk toward the pooled
one, and :math:`\mu_i`, :math:`\mu_j` their means. The bias has a closed form, so it never
appears as a variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, hypot, inf, sqrt
from typing import NamedTuple

import numpy as np

from .._typing import Float64Array, IntArray
from ..linalg.covariances import ClassCovariances

# Relative size of the quotient's dependence on the bias that is rounding.
_FLAT = 1e-12
# The distance of the plane from its class mean, in units of the spread, beyond which the
# bias is taken to run off to infinity.
_FAR = 1e4


@dataclass(frozen=True, eq=False)
class OneVsRest:
    """Weights of class covariances and means in the quotient of one class against the rest."""

    own: Float64Array  # of the class covariances in the numerator
    other: Float64Array  # and in the denominator
    own_mean: Float64Array  # of the class means
    other_mean: Float64Array
    # contrasts E of the class means M such that the spread of the other classes' means adds
    # (E M)'(E M) to the denominator; for two classes one row of zeros
    between: Float64Array

    @classmethod
    def of_class(cls, i: int, share: Float64Array, pool: float) -> OneVsRest:
        """The weights for class i, given each class's share of the total weight and ``pool``."""
        k = len(share)
        unit = np.eye(k)[i]
        rest = (1.0 - unit) / (k - 1)
        own, other = (1.0 - pool) * np.array([unit, rest]) + pool * share
        between = (np.eye(k) - rest)[unit == 0.0] / np.sqrt(k - 1)
        return cls(own, other, unit, rest, between)


class Bias(NamedTuple):
    """The best bias, as the signed distances p_i + b and p_j + b of the means from the plane."""

    ratio: float  # the quotient there
    own: float
    other: float
    denominator: float
    clipped: bool

    @property
    def sign(self) -> float:
        """What turns the plane so that the other classes' mean is on its positive side."""
        return -1.0 if self.other < 0.0 else 1.0


def best_bias(a: float, c: float, d: float) -> Bias:
    """Minimise (a + t^2) / (c + (t + d)^2) over t = p_i + b.

    a and c are the spreads of the own class and of the others, tau included, and d is the
    difference of the projected means, p_j - p_i.
    """
    u = c + d * d - a
    root = hypot(u, 2.0 * sqrt(a) * d)
    if root <= _FLAT * (a + c):
        return Bias(a / c, 0.0, d, c, False)  # the classes are alike: rounding would choose
    if u > 0.0:
        t = 2.0 * a * d / (u + root)  # the conjugate form, without cancellation
    else:
        t = (root - u) / (2.0 * d) if d != 0.0 else inf
    far = _FAR * sqrt(a + c + d * d)
    clipped = bool(abs(t) > far)
    if clipped:
        t = copysign(far, t)
    denominator = c + (t + d) ** 2
    return Bias((a + t * t) / denominator, t, t + d, denominator, clipped)


def single_feature_ratios(cov: ClassCovariances, plane: OneVsRest, tau: float) -> Float64Array:
    """The quotient of every feature by itself at its best bias; infinite for constant features.

    With a, c and d as in `best_bias` it is the smaller root of ``c r^2 - (a + c + d^2) r + a``.
    """
    a = plane.own @ cov.variances + tau
    c = plane.other @ cov.variances + tau + ((plane.between @ cov.means) ** 2).sum(axis=0)
    d = (plane.other_mean - plane.own_mean) @ cov.means
    root = np.hypot(c + d * d - a, 2.0 * np.sqrt(a) * d)
    with np.errstate(invalid="ignore"):
        ratio = 2.0 * a / (a + c + d * d + root)
    return np.where(cov.varying & ~np.isnan(ratio), ratio, np.inf)


class Point(NamedTuple):
    """A unit vector with the quotient's best bias and gradient there."""

    w: Float64Array
    bias: Bias
    gradient: Float64Array
    spread: Float64Array  # D w


class Quotient:
    """The quotient of one plane on a few features.

    ``pair`` holds N and D between the features; None where they are too many, so that every
    product reads the data.
    """

    def __init__(
        self, cov: ClassCovariances, plane: OneVsRest, tau: float, features: IntArray
    ) -> None:
        means = cov.means[:, features]
        self.tau, self._cov, self._features = tau, cov, features
        self.own_mean, self.other_mean = plane.own_mean @ means, plane.other_mean @ means
        self._coef = np.array((plane.own, plane.other))
        self._between = plane.between @ means
        self.pair: Float64Array | None = None
        if len(features) <= cov.max_block:
            self.pair = cov.blocks(features, self._coef)
            self.pair[1] += self._between.T @ self._between

    def products(self, w: Float64Array) -> Float64Array:
        """N w and D w, as rows."""
        if self.pair is not None:
            return self.pair @ w
        out = self._cov.products(self._features, w, self._coef)[:, self._features]
        out[1] += (self._between @ w) @ self._between
        return out

    def evaluate(self, w: Float64Array) -> Point:
        """Best bias, quotient and gradient at a unit vector w.

        The gradient is that of the quotient made scale-free, tau multiplying ||w||^2, so by
        Euler's theorem w'g = 0 unless the bias was clipped.
        """
        own, other = self.products(w)
        tau = self.tau
        bias = best_bias(
            max(float(w @ own), 0.0) + tau,
            max(float(w @ other), 0.0) + tau,
            float(w @ self.other_mean - w @ self.own_mean),
        )
        gradient = own - bias.ratio * other
        gradient += bias.own * self.own_mean
        gradient -= (bias.ratio * bias.other) * self.other_mean
        gradient += (tau * (1.0 - bias.ratio)) * w
        gradient *= 2.0 / bias.denominator
        return Point(w, bias, gradient, other)

    def hessian(self, point: Point, at: IntArray) -> Float64Array:
        """Second derivative of the scale-free quotient on the features ``at``, bias eliminated.

        With f = a / c and gradients ``a'``, ``c'`` in (w, b), the Hessian is
        ``(a'' - f c'' - f' (c')' - c' (f')') / c``; the row of the bias, whose derivative is
        zero at its best value, goes by a Schur complement. N and D are there by blocks, all
        else is of low rank: products of the vectors N w, D w, mu_i, mu_j and w.
        """
        assert self.pair is not None
        r, _, distance, denominator, clipped = point.bias
        scale = 2.0 / denominator
        mi, mj = self.own_mean[at], self.other_mean[at]
        w, g = point.w[at], point.gradient[at]
        steepness = scale * (point.spread[at] + distance * mj + self.tau * w)  # c' / c
        left = [scale * mi, (-scale * r) * mj, -g, -steepness]
        right = [mi, mj, steepness, g]
        corner = scale * (1.0 - r)
        if corner > 0.0 and not clipped:
            cross = scale * (mi - r * mj - distance * g)
            left.append(cross / -corner)
            right.append(cross)
        own, other = self.pair
        # rows, then columns: twice as fast as both at once
        out = other.take(at, axis=0).take(at, axis=1)
        out *= -r
        out += own.take(at, axis=0).take(at, axis=1)
        out *= scale
        out += np.array(left).T @ np.array(right)
        out.flat[:: len(at) + 1] += scale * self.tau * (1.0 - r)
        return out
