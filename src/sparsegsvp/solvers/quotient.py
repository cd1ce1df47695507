r"""The quotient of mean squared distances: its parts, best bias, derivatives and minimum.

For the plane of class i, with :math:`\|w\|_2 = 1`,

.. math:: r(w) = \min_b \frac{w'Nw + (\mu_i'w + b)^2 + \tau}{w'Dw + (\mu_j'w + b)^2 + \tau}

where N and D are the covariances of class i and of the others, shrunk toward the pooled one, and
:math:`\mu_i`, :math:`\mu_j` their means. The bias has a closed form, so it never appears as a
variable. Standardisation is folded into the products with the rows.

With M_k = [[S_k + tau I + mu_k mu_k', mu_k], [mu_k', 1]] the smallest quotient is the smallest
eigenvalue of the pair (M_i, M_j), and its eigenvector holds w and b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import copysign, hypot, inf, sqrt
from operator import add
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, lstsq

from .._typing import Array, IntArray
from .._validate import warn_caller
from ..linalg.gsvd import gsvd
from ..linalg.moments import ClassMoments, class_moments, standardisation
from ..linalg.rows import BLOCK, Rows, as_rows

_FLAT = 1e-12  # relative size of the quotient's dependence on the bias that is rounding
_FAR = 1e4  # distance of the plane from its class mean, in units of the spread, that is infinite
LARGE_MEAN = 30.0  # in standard deviations; above, float32 products are accumulated in float64
_MOST_ELEMENTS = 1 << 24  # elements of the blocks of all classes that are kept in memory

Lift = Callable[[Array], Array]


class Part(NamedTuple):
    """Some rows, the class of each and its weight; all rows of a class are in one part."""

    rows: Rows
    codes: IntArray
    weight: Array


class ClassCovariances:
    """Means and variances of standardised features in each class; a subclass adds covariances."""

    n_samples: int
    max_block: int  # the number of features up to which blocks are formed

    def __init__(self, means: Array, variances: Array, share: Array, standardize: bool) -> None:
        self.share = share
        self.center = share @ means
        total = share @ (variances + (means - self.center) ** 2)
        self.varying, scale = standardisation(self.center, total, standardize)
        self.inverse = np.where(self.varying, 1.0 / scale, 0.0)
        self.means = (means - self.center) * self.inverse
        self.variances = variances * self.inverse**2

    def blocks(self, features: IntArray, coef: Array) -> Array:
        """``sum_k coef_k Cov_k`` between these features, for each row of `coef`."""
        raise NotImplementedError

    def products(self, features: IntArray, w: Array, coef: Array) -> Array:
        """``sum_k coef_k Cov_k w`` for all features, w on `features`, for each row of `coef`."""
        raise NotImplementedError

    def row_space(self, features: IntArray) -> tuple[ClassCovariances, Lift] | None:
        """The rows in an orthonormal basis of their span, and the map back; None if m <= n."""
        return None


class CovariancesOfRows(ClassCovariances):
    """Covariances read off the rows: products with X and X', and cached blocks."""

    def __init__(self, parts: Sequence[Part], n_classes: int, standardize: bool) -> None:
        codes = np.concatenate([part.codes for part in parts])
        weight = np.concatenate([part.weight for part in parts])
        totals = np.bincount(codes, weight, minlength=n_classes)
        self._parts = [part.rows for part in parts]
        ends = np.cumsum([0, *(rows.shape[0] for rows in self._parts)])
        self._spans = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        shape = (n_classes, self._parts[0].shape[1])
        means, variances = np.zeros(shape), np.zeros(shape)
        for part in parts:
            # a class that lies in another part has no weight here, and zeros
            statistics = part.rows.class_statistics(part.codes, part.weight, n_classes)
            means += statistics[0]
            variances += statistics[1]
        super().__init__(means, variances, totals / totals.sum(), standardize)
        self._exact = any(part.dtype != np.float64 for part in self._parts) and bool(
            np.any(np.abs(self.center) * self.inverse > LARGE_MEAN)
        )
        # rows that count, those of each class side by side
        order = np.argsort(codes, kind="stable")
        self._order = order[weight[order] > 0.0]
        self._codes = codes[self._order]
        self._weight = weight[self._order] / totals[self._codes]
        edges = np.searchsorted(self._codes, np.arange(n_classes + 1))
        self._classes = [slice(int(a), int(b)) for a, b in pairwise(edges)]
        self.n_samples = len(self._order)
        self.max_block = int(np.sqrt(_MOST_ELEMENTS / n_classes))
        # of the features whose blocks are formed: their places, centred columns as rows, blocks
        self._place = np.full(shape[1], -1, dtype=np.intp)
        self._n_cached = 0
        self._columns = np.empty((0, self.n_samples))
        self._gram = np.empty((n_classes, 0, 0))

    def _read(self, features: IntArray) -> Array:
        """Standardised columns, one in a row, those rows of X that count."""
        out = np.concatenate([part.columns(features) for part in self._parts])[self._order].T
        out -= self.center[features, None]
        out *= self.inverse[features, None]
        return out

    def _extend(self, features: IntArray) -> IntArray:
        """Form the blocks of these features, unless they are there, and return their places."""
        new = features[self._place[features] < 0]
        if len(new):
            k, size = self._n_cached, self._n_cached + len(new)
            if size > len(self._columns):
                columns, gram, capacity = self._columns, self._gram, size + size // 2 + 32
                self._columns = np.empty((capacity, self.n_samples))
                self._gram = np.empty((len(gram), capacity, capacity))
                self._columns[:k], self._gram[:, :k, :k] = columns[:k], gram[:, :k, :k]
            columns = self._read(new)
            for c, inside in enumerate(self._classes):
                # each class centred by itself: the products are then covariances at once
                part = self._columns[k:size, inside]
                np.subtract(columns[:, inside], self.means[c, new, None], out=part)
                cross = (part * self._weight[inside]) @ self._columns[:size, inside].T
                self._gram[c, k:size, :size] = cross
                self._gram[c, :k, k:size] = cross[:, :k].T
            self._place[new] = np.arange(k, size)
            self._n_cached = size
        return self._place[features]

    def blocks(self, features: IntArray, coef: Array) -> Array:
        at = self._extend(features)
        flat = (at[:, None] * self._gram.shape[1] + at).ravel()
        classes = self._gram.reshape(len(self._gram), -1).take(flat, axis=1)
        return (coef @ classes).reshape(len(coef), len(at), len(at))

    def products(self, features: IntArray, w: Array, coef: Array) -> Array:
        at = self._place[features]
        if (at >= 0).all():
            projected = w @ self._columns[at]
        else:
            dense = np.zeros(len(self.center))
            dense[features] = w * self.inverse[features]
            dots = [part.dot(dense, exact=self._exact) for part in self._parts]
            projected = np.concatenate(dots)[self._order]
            projected -= (self.center @ dense + self.means[:, features] @ w)[self._codes]
        u = np.zeros((len(coef), self._spans[-1].stop))
        u[:, self._order] = coef[:, self._codes] * (projected * self._weight)
        pairs = zip(self._parts, self._spans)
        out = reduce(add, (part.tdot(u[:, rows], exact=self._exact) for part, rows in pairs))
        out -= u.sum(axis=1)[:, None] * self.center
        out *= self.inverse
        return out

    def row_space(self, features: IntArray) -> tuple[ClassCovariances, Lift] | None:
        if len(features) <= self.n_samples:
            return None
        # the Gram matrix of the rows is summed over blocks of columns: no copy of X
        step = max(1, BLOCK // self.n_samples)
        parts = [features[start : start + step] for start in range(0, len(features), step)]
        gram = np.zeros((self.n_samples, self.n_samples))
        for part in parts:
            block = self._read(part)
            gram += block.T @ block
        values, vectors = eigh(gram)
        keep = values > self.n_samples * np.finfo(np.float64).eps * max(values[-1], 0.0)
        root, vectors = np.sqrt(values[keep]), vectors[:, keep]
        weight = self._weight * self.share[self._codes]
        moments = class_moments(as_rows(vectors * root), self._codes, weight, len(self.share))

        def lift(u: Array) -> Array:
            coordinates = vectors @ (u / root)
            return np.concatenate([self._read(part) @ coordinates for part in parts])

        return CovariancesOfMoments(moments, standardize=False), lift


class CovariancesOfMoments(ClassCovariances):
    """Covariances of few features, all of them formed."""

    def __init__(self, moments: ClassMoments, standardize: bool) -> None:
        covariances = moments.scatters / moments.weights[:, None, None]
        variances = np.maximum(np.einsum("kff->kf", covariances), 0.0)
        share = moments.weights / moments.weights.sum()
        super().__init__(moments.means, variances, share, standardize)
        self.n_samples, self.max_block = int(moments.counts.sum()), moments.means.shape[1]
        self._cov = covariances * self.inverse
        self._cov *= self.inverse[:, None]

    def blocks(self, features: IntArray, coef: Array) -> Array:
        return np.tensordot(coef, self._cov[:, features[:, None], features], axes=1)

    def products(self, features: IntArray, w: Array, coef: Array) -> Array:
        # symmetric, so rows serve as columns, and rows are contiguous
        return coef @ (w @ self._cov[:, features])


def covariances_of(parts: Sequence[Part], n_classes: int, *, standardize: bool) -> ClassCovariances:
    """Covariances of labelled rows: all at once where that costs less than passes over them."""
    n = sum(part.rows.shape[0] for part in parts)
    m = parts[0].rows.shape[1]
    if m <= 200 or (m <= 1000 and n >= 10 * m):
        moments = reduce(add, (class_moments(*part, n_classes) for part in parts))
        return CovariancesOfMoments(moments, standardize)
    return CovariancesOfRows(parts, n_classes, standardize)


@dataclass(frozen=True, eq=False)
class OneVsRest:
    """Weights of class covariances and means in the quotient of one class against the rest."""

    own: Array  # of the class covariances in the numerator
    other: Array  # and in the denominator
    own_mean: Array  # of the class means
    other_mean: Array
    # contrasts E of the class means M such that the spread of the other classes' means adds
    # (E M)'(E M) to the denominator; for two classes one row of zeros
    between: Array

    @classmethod
    def of_class(cls, i: int, share: Array, pool: float) -> OneVsRest:
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
    """Minimise (a + t^2) / (c + (t + d)^2) over t = p_i + b, where d = p_j - p_i."""
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


def single_feature_ratios(cov: ClassCovariances, plane: OneVsRest, tau: float) -> Array:
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

    w: Array
    bias: Bias
    gradient: Array
    spread: Array  # D w


class Quotient:
    """The quotient of one plane on some features; ``pair`` is N and D, None for too many."""

    def __init__(
        self, cov: ClassCovariances, plane: OneVsRest, tau: float, features: IntArray
    ) -> None:
        means = cov.means[:, features]
        self.tau, self._cov, self._features = tau, cov, features
        self.own_mean, self.other_mean = plane.own_mean @ means, plane.other_mean @ means
        self._coef = np.array((plane.own, plane.other))
        self._between = plane.between @ means
        self.pair: Array | None = None
        if len(features) <= cov.max_block:
            self.pair = cov.blocks(features, self._coef)
            self.pair[1] += self._between.T @ self._between

    def products(self, w: Array) -> Array:
        """N w and D w, as rows."""
        if self.pair is not None:
            return self.pair @ w
        out = self._cov.products(self._features, w, self._coef)[:, self._features]
        out[1] += (self._between @ w) @ self._between
        return out

    def evaluate(self, w: Array) -> Point:
        """Best bias, quotient and gradient at a unit vector w.

        Of the scale-free quotient, so by Euler's theorem w'g = 0 unless the bias was clipped.
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

    def hessian(self, point: Point, at: IntArray) -> Array:
        """Second derivative of the scale-free quotient on the features ``at``, bias eliminated.

        With f = a / c it is ``(a'' - f c'' - f' (c')' - c' (f')') / c``; the row of the bias goes
        by a Schur complement. All but N and D is of low rank: N w, D w, mu_i, mu_j and w.
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


def solve_unpenalized(
    cov: ClassCovariances, plane: OneVsRest, tau: float, features: IntArray
) -> tuple[Array, Bias] | None:
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
    means: Array, covariances: Array, share: Array, tau: float, pool: float
) -> tuple[Array, Array]:
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
                w[i] = bias.sign * normal
                b[i] = bias.sign * (bias.own - float(normal @ means[i]))
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
    spreads: Array, means: Array, plane: OneVsRest, tau: float
) -> tuple[Array, Bias] | None:
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


def _factor(cov: Array, mean: Array) -> Array:
    """F with F'F = [[cov + mean mean', mean], [mean', 1]]."""
    values, vectors = eigh(cov)
    # the root of what rounding leaves of a zero would count as a dimension
    noise = 4 * len(mean) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    top = np.sqrt(np.where(values > noise, values, 0.0))[:, None] * vectors.T
    return np.block([[top, np.zeros((len(mean), 1))], [mean, 1.0]])
