"""Covariances of classes, standardised by folding shift and scale into the products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from scipy.linalg import eigh

from .._typing import BoolArray, Float64Array, IntArray
from .._validate import check_choice
from .matrix import BLOCK, DenseMatrix, Matrix
from .moments import ClassMoments, class_moments

Method = Literal["auto", "moments", "working_set"]

# Above this ratio of mean to standard deviation, float32 products are accumulated in float64.
_LARGE_MEAN = 30.0
# Copying one column in this many is cheaper than a product with all of them.
_FEW = 8
# Relative size of what rounding leaves of the difference of two equal moments.
_ROUNDING = 64 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Standardization:
    """Shift and scale of each feature, and which features vary at all."""

    center: Float64Array
    scale: Float64Array  # 1 for constant features
    varying: BoolArray

    @cached_property
    def inverse(self) -> Float64Array:
        """1 / scale, and 0 for constant features, which thereby vanish from every product."""
        return np.where(self.varying, 1.0 / self.scale, 0.0)

    @classmethod
    def of(
        cls, means: Float64Array, variances: Float64Array, share: Float64Array, scaled: bool
    ) -> Standardization:
        center = share @ means
        total = share @ (variances + (means - center) ** 2)
        sd = np.sqrt(total)
        # what rounding leaves of a constant column is no spread, nor is one whose square is
        # below the normal numbers: its inverse would overflow
        rounding = 16 * np.finfo(np.float64).eps * np.abs(center)
        varying = (sd > rounding) & (total >= np.finfo(np.float64).tiny)
        scale = np.where(varying & scaled, sd, 1.0)
        return cls(center, scale, varying)


# coef, features and w of a product: w is non-zero on the features only.
Term = tuple[Float64Array, IntArray, Float64Array]


class Covariances(ABC):
    """Class covariances of standardised features, as the working-set solver reads them.

    Only the blocks of the features asked for with `extend` are ever formed. What is not
    abstract is for covariances that have no rows.
    """

    means: Float64Array  # (n_classes, n_features), standardised and centred
    variances: Float64Array  # (n_classes, n_features)
    share: Float64Array  # each class's share of the total weight
    standardization: Standardization
    n_samples: int
    n_passes: int  # products with the whole of X so far
    # whether all blocks are at hand, so that a working set would save nothing
    complete = True
    # whether every product with X reads the data anew
    costly_passes = False
    # relative rounding error of a product with X
    rounding = float(np.finfo(np.float64).eps)

    @abstractmethod
    def blocks(self, features: IntArray, coef: Float64Array) -> Float64Array:
        """``sum_k coef_k Cov_k`` between these features, for each row of `coef`."""

    @abstractmethod
    def products(self, terms: Sequence[Term]) -> Float64Array:
        """``sum_k coef_k Cov_k w`` for all features, a row for each term, in one pass."""

    @abstractmethod
    def class_variances(self, features: IntArray, w: Float64Array) -> Float64Array:
        """Variance of every class (columns) along each row of w (rows)."""

    @abstractmethod
    def _identical(self, f: int, others: IntArray) -> BoolArray:
        """Which of the features ``others`` are the same column as f."""

    def extend(self, features: IntArray) -> None:
        """Form the blocks of these features, unless they are there."""
        return

    def prefetch(self, scores: Float64Array) -> None:
        """Prefer the features of the largest scores where columns are read ahead."""
        return

    def cached_product(
        self, coef: Float64Array, features: IntArray, w: Float64Array
    ) -> tuple[IntArray, Float64Array] | None:
        """Some features and their part of a product, where that is much cheaper; or None."""
        return None

    def row_vector(self, term: Term, mean: Float64Array) -> Float64Array | None:
        """The u for which X'u, of standardised X, is a product plus ``sum_k mean_k mu_k``.

        None where products do not cost enough for that to be of use.
        """
        return None

    def some_products(self, u: Float64Array, index: IntArray) -> Float64Array | None:
        """X'u at some features; None where reading their columns is not much less than a pass."""
        return None

    def factor(self, features: IntArray) -> tuple[Float64Array, IntArray, Float64Array] | None:
        """Centred rows at `features`, class codes and row weights; None without rows."""
        return None

    def row_space(
        self, features: IntArray
    ) -> tuple[Covariances, Callable[[Float64Array], Float64Array]] | None:
        """The rows in an orthonormal basis of their span, and the map from the basis back.

        The basis has at most as many dimensions as there are rows. None without rows.
        """
        return None

    @cached_property
    def column_norms(self) -> Float64Array:
        """Root mean squares of the standardised features, weighted as the rows are."""
        return np.sqrt(self.share @ (self.variances + self.means**2))

    def dual(self, u: Float64Array) -> Float64Array:
        """u scaled so that ``|x_f'u|`` is at most its norm times `column_norms`."""
        raise NotImplementedError("there are no rows")

    @cached_property
    def _by_variance(self) -> IntArray:
        """All features by their variance in the first class."""
        return np.argsort(self.variances[0], kind="stable")

    def copies(self, features: IntArray) -> list[IntArray]:
        """Sorted groups of two or more identical columns, those that `features` belong to."""
        variances, order = self.variances[0], self._by_variance
        # only columns of the same variance, up to rounding, may be identical
        at = variances[features]
        first = np.searchsorted(variances, at * (1.0 - 1e-9), side="left", sorter=order)
        last = np.searchsorted(variances, at * (1.0 + 1e-9), side="right", sorter=order)
        found: list[IntArray] = []
        for index in np.flatnonzero(last - first > 1):
            f = int(features[index])
            if any(f in group for group in found):
                continue
            candidates = np.sort(order[first[index] : last[index]])
            group = candidates[self._identical(f, candidates)]
            if len(group) > 1:
                found.append(group)
        return found


class DataCovariances(Covariances):
    """Covariances read off the rows: products with X and X', and cached Gram blocks.

    ``codes`` holds the class of each row, ``weight`` sample weights. Features are scaled to
    unit variance with ``standardize`` and centred in any case, which changes nothing but
    the bias.
    """

    complete = False

    def __init__(
        self,
        matrix: Matrix,
        codes: IntArray,
        weight: Float64Array | None,
        n_classes: int,
        standardize: bool,
    ) -> None:
        ones = np.ones(matrix.shape[0]) if weight is None else weight
        totals = np.bincount(codes, ones, minlength=n_classes)
        self.matrix, self.codes, self.n_classes = matrix, codes, n_classes
        self.costly_passes = matrix.costly_passes
        self._sample_weight = weight
        self.weight = ones / totals[codes]
        self.share = totals / totals.sum()
        self.n_samples = matrix.shape[0]
        self.n_passes = 1
        means, variances = matrix.class_statistics(codes, self.weight, n_classes)
        self.standardization = std = Standardization.of(means, variances, self.share, standardize)
        self.means = (means - std.center) * std.inverse
        self.variances = variances * std.inverse**2
        self._exact = bool(np.any(np.abs(std.center) * std.inverse > _LARGE_MEAN)) and (
            matrix.dtype != np.float64
        )
        self.rounding = float(np.finfo(np.float64 if self._exact else matrix.dtype).eps)
        self._features = np.empty(0, dtype=np.intp)
        self._place = np.full(matrix.shape[1], -1, dtype=np.int32)
        # rows that count, those of each class side by side
        order = np.argsort(codes, kind="stable")
        self._order = order[self.weight[order] > 0.0]
        ends = np.searchsorted(codes[self._order], np.arange(n_classes + 1))
        self._spans = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self._factor = np.empty((0, len(self._order)))  # one row per cached feature
        self._gram = [np.empty((0, 0)) for _ in range(n_classes)]

    def columns(self, features: IntArray) -> Float64Array:
        """Standardised columns, dense."""
        out = self.matrix.columns(features)
        out -= self.standardization.center[features]
        out *= self.standardization.inverse[features]
        return out

    def project(self, features: IntArray, w: Float64Array) -> Float64Array:
        """X w, each class centred, for w that is non-zero on ``features`` only.

        Rows of weight zero may be left out, that is zero.
        """
        at = self._place[features]
        if (at >= 0).all():
            out = np.zeros(self.n_samples)
            out[self._order] = w @ self._factor[at]
            return out
        scaled = w * self.standardization.inverse[features]
        if self.costly_passes or _FEW * len(features) < self.matrix.shape[1]:
            # where passes are costly these columns were fetched, or will be wanted again
            out = self.matrix.columns(features) @ scaled
        else:
            dense = np.zeros(self.matrix.shape[1])
            dense[features] = scaled
            self.n_passes += 1
            out = self.matrix.dot(dense, exact=self._exact)
        out -= self.standardization.center[features] @ scaled
        return out - (self.means[:, features] @ w)[self.codes]

    def extend(self, features: IntArray) -> None:
        new = features[self._place[features] < 0]
        if len(new) == 0:
            return
        k, size = len(self._features), len(self._features) + len(new)
        if size > len(self._factor):
            self._grow(min(size + max(32, size // 4), max(size, self.matrix.shape[1])), k)
        rows = self.columns(new)[self._order].T
        weight = self.weight[self._order]
        for c, inside in enumerate(self._spans):
            # each class centred by itself: the products are then covariances at once
            part = self._factor[k:size, inside]
            np.subtract(rows[:, inside], self.means[c, new, None], out=part)
            cross = (part * weight[inside]) @ self._factor[:size, inside].T
            self._gram[c][k:size, :size] = cross
            self._gram[c][:k, k:size] = cross[:, :k].T
        self._place[new] = np.arange(k, size)
        self._features = np.concatenate([self._features, new])

    def _grow(self, capacity: int, k: int) -> None:
        factor = np.empty((capacity, len(self._order)))
        factor[:k] = self._factor[:k]
        self._factor = factor
        for c in range(self.n_classes):
            # one class at a time, so that no more than one block is held twice
            gram = np.empty((capacity, capacity))
            gram[:k, :k] = self._gram[c][:k, :k]
            self._gram[c] = gram

    def blocks(self, features: IntArray, coef: Float64Array) -> Float64Array:
        at = self._place[features].astype(np.intp)
        flat = (at[:, None] * len(self._factor) + at).reshape(-1)
        classes = np.stack([gram.reshape(-1).take(flat) for gram in self._gram])
        return (coef @ classes).reshape(len(coef), len(at), len(at))

    def cached_product(
        self, coef: Float64Array, features: IntArray, w: Float64Array
    ) -> tuple[IntArray, Float64Array] | None:
        if not self.costly_passes:
            return None
        u = self.project(features, w) * coef[self.codes] * self.weight
        seen = self.matrix.cached_tdot(u, exact=self._exact)
        if seen is None:
            return None
        index, out = seen
        std = self.standardization
        return index, (out - std.center[index] * u.sum()) * std.inverse[index]

    def row_vector(self, term: Term, mean: Float64Array) -> Float64Array | None:
        if not self.matrix.reads_cheaply(np.empty(0, dtype=np.intp)):
            return None
        coef, features, w = term
        u = self.project(features, w)
        u *= coef[self.codes]
        u += mean[self.codes]
        u *= self.weight
        return u

    def some_products(self, u: Float64Array, index: IntArray) -> Float64Array | None:
        if not self.matrix.reads_cheaply(index):
            return None
        out = np.empty(len(index))
        # some at a time: all of them in float64 may be half as large as X
        size = max(1, BLOCK // self.n_samples)
        for start in range(0, len(index), size):
            part = slice(start, start + size)
            out[part] = u @ self.columns(index[part])
        return out

    @cached_property
    def _row_scale(self) -> Float64Array:
        part = self.weight * self.share[self.codes]
        return np.divide(1.0, np.sqrt(part), out=np.zeros_like(part), where=part > 0.0)

    def dual(self, u: Float64Array) -> Float64Array:
        return u * self._row_scale

    def products(self, terms: Sequence[Term]) -> Float64Array:
        weight, codes = self.weight, self.codes
        u = np.array([self.project(at, w) * coef[codes] * weight for coef, at, w in terms])
        self.n_passes += 1
        std = self.standardization
        out = self.matrix.tdot(u, exact=self._exact)
        out -= u.sum(axis=1)[:, None] * std.center
        out *= std.inverse
        return out

    def prefetch(self, scores: Float64Array) -> None:
        self.matrix.prefetch(scores)

    def factor(self, features: IntArray) -> tuple[Float64Array, IntArray, Float64Array] | None:
        rows = self.columns(features)
        rows -= self.means[:, features][self.codes]
        return rows, self.codes, self.weight

    def class_variances(self, features: IntArray, w: Float64Array) -> Float64Array:
        return np.array(
            [
                np.bincount(
                    self.codes, self.weight * self.project(features, row) ** 2, self.n_classes
                )
                for row in w
            ]
        )

    def _identical(self, f: int, others: IntArray) -> BoolArray:
        # columns are read only where all statistics agree, which may cost a pass
        near = 1e-6 * (np.sqrt(self.variances[:, [f]]) + np.abs(self.means[:, [f]]))
        apart = np.abs(self.means[:, others] - self.means[:, [f]])
        alike = np.asarray((apart <= near).all(axis=0))
        if alike.sum() > 1:
            columns = self.matrix.columns(others[alike])
            alike[alike] = (columns == self.matrix.columns(np.array([f]))).all(axis=0)
        return alike

    def row_space(
        self, features: IntArray
    ) -> tuple[DataCovariances, Callable[[Float64Array], Float64Array]]:
        n, m = self.n_samples, len(features)
        # the Gram matrix of the rows is summed over blocks of columns: no copy of X
        step = max(1, BLOCK // n)
        parts = [slice(start, start + step) for start in range(0, m, step)]
        gram = np.zeros((n, n))
        for part in parts:
            block = self.columns(features[part])
            gram += block @ block.T
        values, vectors = eigh(gram)
        keep = values > n * np.finfo(np.float64).eps * max(values[-1], 0.0)
        root, vectors = np.sqrt(values[keep]), vectors[:, keep]
        reduced = DataCovariances(
            DenseMatrix(vectors * root), self.codes, self._sample_weight, self.n_classes, False
        )

        def lift(u: Float64Array) -> Float64Array:
            coordinates = vectors @ (u / root)
            return np.concatenate([coordinates @ self.columns(features[part]) for part in parts])

        return reduced, lift


class MomentCovariances(Covariances):
    """Covariances from per-class moments, without rows."""

    def __init__(self, moments: ClassMoments, standardize: bool) -> None:
        self.share = moments.weights / moments.weights.sum()
        self.n_samples = int(moments.counts.sum())
        self.n_passes = 0
        self._cov = moments.scatters / moments.weights[:, None, None]
        variances = np.maximum(np.einsum("kff->kf", self._cov), 0.0)
        self.standardization = std = Standardization.of(
            moments.means, variances, self.share, standardize
        )
        self.means = (moments.means - std.center) * std.inverse
        self.variances = variances * std.inverse**2
        self._cov *= std.inverse
        self._cov *= std.inverse[:, None]

    def blocks(self, features: IntArray, coef: Float64Array) -> Float64Array:
        if len(features) == self._cov.shape[1] and np.array_equal(
            features, np.arange(len(features))
        ):
            return np.tensordot(coef, self._cov, axes=1)
        return np.tensordot(coef, self._cov[:, features[:, None], features], axes=1)

    def products(self, terms: Sequence[Term]) -> Float64Array:
        # symmetric, so rows serve as columns, and rows are contiguous
        return np.array([coef @ (w @ self._cov[:, features]) for coef, features, w in terms])

    def class_variances(self, features: IntArray, w: Float64Array) -> Float64Array:
        blocks = self.blocks(features, np.eye(len(self.share)))
        found = np.einsum("if,kfg,ig->ik", w, blocks, w, optimize=True)
        return np.maximum(found, 0.0)

    def _identical(self, f: int, others: IntArray) -> BoolArray:
        # without rows: the variance of the difference is nothing but rounding
        var = self._cov[:, others, others]
        apart = np.abs(var + self._cov[:, f, f][:, None] - 2.0 * self._cov[:, f, others])
        shift = np.abs(self.means[:, others] - self.means[:, [f]])
        size = np.abs(self.standardization.center * self.standardization.inverse)[others]
        near = (apart <= _ROUNDING * var) & (shift <= _ROUNDING * (np.sqrt(var) + size))
        return np.asarray(near.all(axis=0))


def choose_method(n_samples: int, n_features: int) -> Literal["moments", "working_set"]:
    """Moments where forming them costs less than the passes of a path over the data."""
    if n_features <= 200 or (n_features <= 1000 and n_samples >= 10 * n_features):
        return "moments"
    return "working_set"


def make_covariances(
    matrix: Matrix,
    codes: IntArray,
    weight: Float64Array | None,
    n_classes: int,
    *,
    standardize: bool,
    method: Method = "auto",
) -> Covariances:
    """Covariances of labelled rows by the method that suits their shape."""
    check_choice("method", method, get_args(Method))
    if method == "auto":
        method = choose_method(*matrix.shape)
    if method == "moments":
        return MomentCovariances(class_moments(matrix, codes, weight, n_classes), standardize)
    return DataCovariances(matrix, codes, weight, n_classes, standardize)
