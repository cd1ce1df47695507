"""Covariances of classes, standardised by folding shift and scale into the products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from .._typing import Float64Array, IntArray
from .moments import ClassMoments, class_moments
from .rows import BLOCK, Rows, as_rows

# Above this ratio of mean to standard deviation, float32 products are accumulated in float64.
_LARGE_MEAN = 30.0
# Elements of the blocks of all classes that are kept in memory.
_MOST_ELEMENTS = 1 << 24

Lift = Callable[[Float64Array], Float64Array]


class Part(NamedTuple):
    """Some rows, the class of each and its weight; all rows of a class are in one part."""

    rows: Rows
    codes: IntArray
    weight: Float64Array


class ClassCovariances:
    """Means and variances of all standardised features in each class, constant features zero.

    A subclass adds the covariances. ``share`` is each class's part of the total weight.
    """

    n_samples: int
    max_block: int  # the number of features up to which blocks are formed

    def __init__(
        self, means: Float64Array, variances: Float64Array, share: Float64Array, standardize: bool
    ) -> None:
        self.share = share
        self.center = share @ means
        total = share @ (variances + (means - self.center) ** 2)
        sd = np.sqrt(total)
        # what rounding leaves of a constant column is no spread, nor is one whose square is
        # below the normal numbers: its inverse would overflow
        rounding = 16 * np.finfo(np.float64).eps * np.abs(self.center)
        self.varying = (sd > rounding) & (total >= np.finfo(np.float64).tiny)
        scale = np.where(self.varying & standardize, sd, 1.0)
        self.inverse = np.where(self.varying, 1.0 / scale, 0.0)
        self.means = (means - self.center) * self.inverse
        self.variances = variances * self.inverse**2

    def blocks(self, features: IntArray, coef: Float64Array) -> Float64Array:
        """``sum_k coef_k Cov_k`` between these features, for each row of `coef`."""
        raise NotImplementedError

    def products(self, features: IntArray, w: Float64Array, coef: Float64Array) -> Float64Array:
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
            np.any(np.abs(self.center) * self.inverse > _LARGE_MEAN)
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

    def _read(self, features: IntArray) -> Float64Array:
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
                self._grow(size + size // 2 + 32)
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

    def _grow(self, capacity: int) -> None:
        k = self._n_cached
        columns, gram = self._columns, self._gram
        self._columns = np.empty((capacity, self.n_samples))
        self._gram = np.empty((len(gram), capacity, capacity))
        self._columns[:k], self._gram[:, :k, :k] = columns[:k], gram[:, :k, :k]

    def blocks(self, features: IntArray, coef: Float64Array) -> Float64Array:
        at = self._extend(features)
        flat = (at[:, None] * self._gram.shape[1] + at).ravel()
        classes = self._gram.reshape(len(self._gram), -1).take(flat, axis=1)
        return (coef @ classes).reshape(len(coef), len(at), len(at))

    def products(self, features: IntArray, w: Float64Array, coef: Float64Array) -> Float64Array:
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

        def lift(u: Float64Array) -> Float64Array:
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

    def blocks(self, features: IntArray, coef: Float64Array) -> Float64Array:
        return np.tensordot(coef, self._cov[:, features[:, None], features], axes=1)

    def products(self, features: IntArray, w: Float64Array, coef: Float64Array) -> Float64Array:
        # symmetric, so rows serve as columns, and rows are contiguous
        return coef @ (w @ self._cov[:, features])


def covariances_of(parts: Sequence[Part], n_classes: int, *, standardize: bool) -> ClassCovariances:
    """Covariances of labelled rows: all at once where that costs less than passes over them."""
    n = sum(part.rows.shape[0] for part in parts)
    m = parts[0].rows.shape[1]
    if m <= 200 or (m <= 1000 and n >= 10 * m):
        moments = sum(class_moments(*part, n_classes) for part in parts)
        assert isinstance(moments, ClassMoments)
        return CovariancesOfMoments(moments, standardize)
    return CovariancesOfRows(parts, n_classes, standardize)
