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
from typing import NamedTuple, Protocol

import numpy as np

from .._typing import Float64Array, IntArray
from ..linalg import Covariances

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
    # (E M)'(E M) to the denominator; None for two classes
    between: Float64Array | None

    @classmethod
    def of_class(cls, i: int, share: Float64Array, pool: float) -> OneVsRest:
        """The weights for class i, given each class's share of the total weight.

        ``pool`` is how far each class's spread is shrunk toward the pooled one.
        """
        k = len(share)
        unit = np.eye(k)[i]
        rest = (1.0 - unit) / (k - 1)
        between = None
        if k > 2:
            between = (np.eye(k) - rest)[np.arange(k) != i] / np.sqrt(k - 1)
        return cls(
            own=(1.0 - pool) * unit + pool * share,
            other=(1.0 - pool) * rest + pool * share,
            own_mean=unit,
            other_mean=rest,
            between=between,
        )


class Bias(NamedTuple):
    """The best bias and the quotient there.

    ``own`` is the signed distance p_i + b of the own class's mean from the plane,
    ``other`` that of the other classes' mean.
    """

    ratio: float
    own: float
    other: float
    denominator: float
    clipped: bool


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


def single_feature_ratios(cov: Covariances, plane: OneVsRest, tau: float) -> Float64Array:
    """The quotient of every feature by itself; infinite for constant features.

    With tau = 0 a feature may separate the classes without any spread, and then its
    quotient is 0.
    """
    a = plane.own @ cov.variances + tau
    c = plane.other @ cov.variances + tau
    if plane.between is not None:
        c = c + ((plane.between @ cov.means) ** 2).sum(axis=0)
    d = (plane.other_mean - plane.own_mean) @ cov.means
    u = c + d * d - a
    root = np.hypot(u, 2.0 * np.sqrt(a) * d)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(u > 0.0, 2.0 * a * d / (u + root), (root - u) / (2.0 * d))
        far = _FAR * np.sqrt(a + c + d * d)
        t = np.clip(np.where(np.isnan(t), 0.0, t), -far, far)  # NaN: alike, any t will do
        ratio = (a + t * t) / (c + (t + d) ** 2)
    return np.where(cov.standardization.varying & ~np.isnan(ratio), ratio, np.inf)


@dataclass(frozen=True, eq=False)
class Point:
    """A point on the sphere with the quotient's bias and gradient there."""

    w: Float64Array
    bias: Bias
    gradient: Float64Array
    spread: Float64Array  # D w

    @property
    def ratio(self) -> float:
        return self.bias.ratio


class Quotient(Protocol):
    """The quotient restricted to a few features, however its products are computed."""

    tau: float
    own_mean: Float64Array
    other_mean: Float64Array

    def products(self, w: Float64Array) -> tuple[Float64Array, Float64Array]:
        """N w and D w."""
        ...

    def curvature(self, ratio: float, at: IntArray) -> Float64Array:
        """N - ratio D between the features ``at``."""
        ...


class GramQuotient:
    """The quotient of a few features from their covariance blocks, ``own`` and ``other``."""

    def __init__(self, cov: Covariances, plane: OneVsRest, tau: float, features: IntArray) -> None:
        means = cov.means[:, features]
        self.tau = tau
        self.own_mean = plane.own_mean @ means
        self.other_mean = plane.other_mean @ means
        self._pair = cov.blocks(features, np.array((plane.own, plane.other)))
        if plane.between is not None:
            spread = plane.between @ means
            self._pair[1] += spread.T @ spread
        self.own, self.other = self._pair

    def products(self, w: Float64Array) -> tuple[Float64Array, Float64Array]:
        at = w.nonzero()[0]
        both = self.pair_products(w, at, w[at])
        return both[0], both[1]

    def pair_products(self, w: Float64Array, at: IntArray, v: Float64Array) -> Float64Array:
        """N w and D w as rows, for a w that is v on the features ``at`` and zero elsewhere."""
        if 2 * len(at) < len(w):
            # symmetric: the rows of the support are contiguous, its columns are not
            return v @ self._pair[:, at]
        return self._pair @ w

    def gathered(self, at: IntArray) -> Float64Array:
        """N and D between the features ``at``, each as one row."""
        flat = (at[:, None] * len(self.own_mean) + at).ravel()
        return self._pair.reshape(2, -1).take(flat, axis=1)

    def curvature(self, ratio: float, at: IntArray) -> Float64Array:
        # rows, then columns: twice as fast as both at once
        out = self.other.take(at, axis=0).take(at, axis=1)
        out *= -ratio
        out += self.own.take(at, axis=0).take(at, axis=1)
        return out


class FactorQuotient:
    """The quotient of many features from the rows themselves, without a Gram matrix."""

    def __init__(self, cov: Covariances, plane: OneVsRest, tau: float, features: IntArray) -> None:
        factor = cov.factor(features)
        if factor is None:
            raise ValueError("moments hold no rows: use the covariance blocks")
        self._rows, codes, weight = factor
        self._own, self._other = plane.own[codes] * weight, plane.other[codes] * weight
        means = cov.means[:, features]
        self._spread = None if plane.between is None else plane.between @ means
        self.tau = tau
        self.own_mean = plane.own_mean @ means
        self.other_mean = plane.other_mean @ means

    def products(self, w: Float64Array) -> tuple[Float64Array, Float64Array]:
        r = self._rows @ w
        own, other = (self._own * r) @ self._rows, (self._other * r) @ self._rows
        if self._spread is not None:
            other += (self._spread @ w) @ self._spread
        return own, other

    def curvature(self, ratio: float, at: IntArray) -> Float64Array:
        rows = self._rows[:, at]
        out = rows.T @ (rows * (self._own - ratio * self._other)[:, None])
        if self._spread is not None:
            spread = self._spread[:, at]
            out -= ratio * (spread.T @ spread)
        return out


def evaluate(quotient: Quotient, w: Float64Array) -> Point:
    """Best bias, quotient and gradient at a unit vector w.

    The gradient is that of the quotient made scale-free, tau multiplying ||w||^2, so by
    Euler's theorem w'g = 0 unless the bias was clipped.
    """
    own, other = quotient.products(w)
    tau = quotient.tau
    bias = best_bias(
        max(float(w @ own), 0.0) + tau,
        max(float(w @ other), 0.0) + tau,
        float(w @ quotient.other_mean - w @ quotient.own_mean),
    )
    gradient = own
    gradient -= bias.ratio * other
    gradient += bias.own * quotient.own_mean
    gradient -= (bias.ratio * bias.other) * quotient.other_mean
    gradient += (tau * (1.0 - bias.ratio)) * w
    gradient *= 2.0 / bias.denominator
    return Point(w, bias, gradient, other)


def hessian(quotient: Quotient, point: Point, at: IntArray) -> Float64Array:
    """Second derivative of the scale-free quotient on features ``at``, bias eliminated.

    With f = a / c and gradients ``a'``, ``c'`` in (w, b), the Hessian is
    ``(a'' - f c'' - f' (c')' - c' (f')') / c``; the row of the bias, whose derivative is
    zero at its best value, goes by a Schur complement.
    """
    bias, tau = point.bias, quotient.tau
    r, scale = bias.ratio, 2.0 / bias.denominator
    mi, mj = quotient.own_mean[at], quotient.other_mean[at]
    w, g = point.w[at], point.gradient[at]
    dw = 2.0 * (point.spread[at] + bias.other * mj + tau * w)
    corner = scale * (1.0 - r)
    left = [scale * mi, (-scale * r) * mj, g / -bias.denominator, dw / -bias.denominator]
    right = [mi, mj, dw, g]
    if corner > 0.0 and not bias.clipped:
        cross = scale * (mi - r * mj) - g * (2.0 * bias.other / bias.denominator)
        left.append(cross / -corner)
        right.append(cross)
    out = quotient.curvature(r, at)
    out *= scale
    # all terms of low rank in one product
    out += np.array(left).T @ np.array(right)
    out.flat[:: len(at) + 1] += scale * tau * (1.0 - r)
    return out


def check_definite(cov: Covariances, plane: OneVsRest, features: IntArray) -> None:
    """Refuse tau = 0 where some direction has no distances at all: the quotient is 0/0 there.

    ``features`` are those that a plane may use.
    """
    singular = len(features) >= cov.n_samples
    if not singular:
        cov.extend(features)
        total = cov.blocks(features, (plane.own + plane.other)[None])[0]
        contrast = (plane.other_mean - plane.own_mean) @ cov.means[:, features]
        total += np.multiply.outer(contrast, contrast)
        values = np.linalg.eigvalsh(total)
        singular = bool(values[0] <= 1e-13 * values[-1])
    if singular:
        raise ValueError(
            "tau = 0 leaves the quotient 0/0 on directions in which no row differs "
            "(more features than rows, or collinear features): use tau > 0"
        )
