r"""Exactly k features: forward selection on the paper's quotient in closed form.

As q falls to 0 the penalty counts features. With S the pooled within-class covariance of the
standardised features, d the difference of two class means and P a panel, the smallest
generalized singular value of the two classes, squared, at the best bias, is

    r = ((sqrt(D2 + 4) - sqrt(D2)) / 2)^2 ,     D2 = d_P' (S_PP + tau I)^-1 d_P .

The criterion is the sum of r over all pairs of classes. Adding f to P raises D2 by
``(num_f,i - num_f,j)^2 / den_f``, num and den being the class means and the variance of f given
P, so that every candidate is scored exactly; a choice costs one product with the data, which
gives its covariance with all features, and a rank-one update.

Several training sets of the same rows (the folds of a search, and all rows) go side by side:
their steps share the product.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import BoolArray, Float64Array, IntArray
from .._validate import check_integer, check_n_features
from ..linalg.moments import ClassMoments, names_of
from ..linalg.rows import BLOCK, Rows, read_classes, repetitions, spans
from .penalties import penalty_factors

# Above this ratio of mean to standard deviation, float32 products are accumulated in float64.
_LARGE_MEAN = 30.0
# Features up to which the covariances of all of them are formed, where there are more rows.
_TALL, _TALL_LAZY = 256, 2048
# Multiplications that an exact shrinkage may cost, and the features that stand for all above it.
_EXACT_SHRINKAGE, _SAMPLED = 5e9, 16
# Features whose covariances are read ahead in a pass, and the bytes these may take.
_AHEAD, _AHEAD_BYTES = 64, 1 << 28
# Correlation from which features are listed as stand-ins, and how many at most.
_STAND_IN, _STAND_INS = 0.8, 10
# What tau is to Ledoit and Wolf's shrinkage times the logarithm of the number of features.
_TAU_PAIR, _TAU_MANY = 3.0, 1.0


@dataclass(frozen=True, eq=False)
class Spreads:
    """Means and pooled within-class spread of several training sets, sets first.

    ``means`` and ``within`` are in standardised units: ``(x - center) / scale``.
    """

    share: Float64Array  # (n_sets, n_classes), the classes' shares of the weight
    n_samples: Float64Array  # (n_sets,), with repetitions
    center: Float64Array  # (n_sets, n_features)
    scale: Float64Array  # 1 for constant features
    varying: BoolArray
    means: Float64Array  # (n_sets, n_classes, n_features)
    within: Float64Array  # (n_sets, n_features)

    @classmethod
    def of(
        cls,
        share: Float64Array,
        n_samples: Float64Array,
        means: Float64Array,
        within: Float64Array,
        standardize: bool,
    ) -> Spreads:
        """Standardise raw class means and pooled variances."""
        center = np.einsum("sk,skm->sm", share, means)
        total = within + np.einsum("sk,skm->sm", share, (means - center[:, None]) ** 2)
        sd = np.sqrt(total)
        # what rounding leaves of a constant column is no spread, nor is one whose square is
        # below the normal numbers: its inverse would overflow
        eps = np.finfo(np.float64)
        varying = (sd > 16 * eps.eps * np.abs(center)) & (total >= eps.tiny)
        scale = np.where(varying & standardize, sd, 1.0)
        means = np.where(varying[:, None], (means - center[:, None]) / scale[:, None], 0.0)
        return cls(
            share, n_samples, center, scale, varying, means,
            np.where(varying, within / scale**2, 0.0),
        )  # fmt: skip


class RowCovariances:
    """Pooled within-class covariances of training sets, read off the rows as they are asked for.

    At first there is one set, of all rows; `folds` makes several of them. Rows are clipped at
    ``clip`` pooled standard deviations from their class's mean, the same for all sets.
    """

    def __init__(
        self,
        rows: Rows,
        codes: IntArray,
        weight: Float64Array,
        n_classes: int,
        *,
        clip: float | None = None,
        standardize: bool = True,
    ) -> None:
        self.limits: Float64Array | None = None  # of what is clipped, over all classes
        self._n_classes, self._standardize = n_classes, standardize
        self.codes, self._sample_weight, self._times = codes, weight, repetitions(weight)
        mean, variance = rows.class_statistics(codes, weight, n_classes)
        if clip is not None:
            total = np.bincount(codes, weight, minlength=n_classes)
            within = total @ variance / total.sum()
            reach = clip * np.sqrt(within) + 8 * np.finfo(np.float64).eps * np.abs(mean)
            low, high = mean - reach, mean + reach
            self.limits = np.stack([low.min(axis=0), high.max(axis=0)])
            rows = rows.clipped(low, high, codes)
            mean, variance = rows.corrected(mean, variance, codes, weight)
        self.rows = rows
        everything = np.ones((1, rows.shape[0]), dtype=bool)
        self._set(
            everything, codes, np.arange(n_classes), everything[:, :n_classes], mean, variance
        )
        spread = self.spread
        self.key, self.rank = row_identity(
            rows, spread.share[0], spread.means[0], spread.center[0], self._inverse[0]
        )

    def folds(self, train: BoolArray) -> RowCovariances:
        """The same for other training sets, whose rows are marked in ``train`` (n_sets, n)."""
        sets = copy(self)
        cells, of_class, inside = _cells(self.codes, train)
        statistics = self.rows.class_statistics(cells, self._sample_weight, len(of_class))
        sets._set(train, cells, of_class, inside, *statistics)
        return sets

    def _set(
        self,
        train: BoolArray,
        cells: IntArray,
        of_class: IntArray,
        inside: BoolArray,
        mean: Float64Array,
        variance: Float64Array,
    ) -> None:
        """Take the training sets, from the statistics of the cells of rows that make them up."""
        n, m = self.rows.shape
        weight = self._sample_weight
        total = np.bincount(cells, weight, minlength=len(of_class)).astype(np.float64)
        share, means, within = _merged(total, mean, variance, of_class, inside, self._n_classes)
        self.spread = Spreads.of(share, train @ self._times, means, within, self._standardize)
        self._raw_means = means
        self.weight = train * weight
        self.weight /= self.weight.sum(axis=1, keepdims=True)
        self._exact = self.rows.dtype != np.float64 and bool(
            (np.abs(self.spread.center) > _LARGE_MEAN * self.spread.scale).any()
        )
        self.dtype = np.dtype(np.float64) if self._exact else self.rows.dtype
        self.rounding = 1e-9 if self._exact or self.rows.dtype == np.float64 else 1e-5
        self._inverse = np.where(self.spread.varying, 1.0 / self.spread.scale, 0.0)
        self._full: Float64Array | None = None
        if n > m and m <= (_TALL_LAZY if self.rows.lazy else _TALL):
            self._full = self._all_pairs(cells, of_class, inside, mean, total)
        self._ahead: dict[tuple[int, int], Float64Array] = {}

    def at(self, features: IntArray, likely: Float64Array | None = None) -> Float64Array:
        """Covariance of one feature of each set with all features, standardised.

        Where a pass is costly, the features of the largest ``likely`` (n_sets, n_features) are
        read in the same pass.
        """
        sets = range(len(features))
        if self._full is not None:
            raw = self._full[sets, features]
        elif not self.rows.lazy:
            raw = self._read(np.arange(len(features)), features)
        else:
            if any((s, int(f)) not in self._ahead for s, f in zip(sets, features)):
                self._read_ahead(features, likely)
            raw = np.stack([self._ahead[s, int(f)] for s, f in zip(sets, features)])
        return raw * self._inverse[sets, features][:, None] * self._inverse

    def size(self) -> tuple[Float64Array, Float64Array]:
        """Trace of each set's covariance matrix, and sum of the squares of its entries.

        Exact where that is affordable; else from some features, evenly spaced by variance.
        """
        n, m = self.rows.shape
        trace = self.spread.within.sum(axis=1)
        square = np.zeros(len(trace))
        if self._full is not None:
            scaled = self._full * self._inverse[:, :, None] * self._inverse[:, None]
            return trace, np.einsum("sfg,sfg->s", scaled, scaled)
        if float(n) * n * m <= _EXACT_SHRINKAGE:
            gram = self._gram
            for s, weight in enumerate(self.weight):
                trace[s], square[s] = _centred_size(gram, self.codes, weight, self._n_classes)
            return trace, square
        for s, within in enumerate(self.spread.within):
            order = np.argsort(within, kind="stable")[np.count_nonzero(within == 0.0) :]
            features = order[np.linspace(0, len(order) - 1, min(_SAMPLED, len(order)), dtype=int)]
            raw = self._read(np.full(len(features), s), features)
            scaled = raw * self._inverse[s, features][:, None] * self._inverse[s]
            square[s] = (scaled**2).sum() * len(order) / max(1, len(features))
        return trace, square

    @cached_property
    def _gram(self) -> Float64Array:
        """Products of all rows with each other, standardised over all of them: no copy of X.

        Made before `folds` are, which share it: centring rows within the classes of a set is
        done on it.
        """
        n, m = self.rows.shape
        gram = np.zeros((n, n))
        for span in spans(m, max(1, (256 if self.rows.lazy else 4) * BLOCK // n)):
            block = self.rows.columns(np.arange(span.start, span.stop))
            block -= self.spread.center[0, span]
            block *= self._inverse[0, span]
            block = block.astype(self.rows.dtype, copy=False)
            gram += block @ block.T
        return gram

    def _read(self, sets: IntArray, features: IntArray) -> Float64Array:
        """Raw covariances of features, each of a set, with all features, in one pass."""
        centers = self._raw_means[sets, :, features]
        back = (centers * self.spread.share[sets])[:, None] @ self._raw_means[sets]
        return self.rows.cross(
            features, centers, self.codes, self.weight[sets], back[:, 0], exact=self._exact
        )

    def _read_ahead(self, features: IntArray, likely: Float64Array | None) -> None:
        n_sets, m = self.weight.shape[0], self.rows.shape[1]
        room = max(1, min(_AHEAD, _AHEAD_BYTES // (8 * m * n_sets)))
        wanted = []
        for s, f in enumerate(features):
            order = [int(f)] if likely is None else [int(f), *np.argsort(-likely[s])[:room]]
            wanted += [(s, int(g)) for g in dict.fromkeys(order) if (s, int(g)) not in self._ahead]
        sets, index = (np.array(part) for part in zip(*wanted))
        self._ahead = {k: v for k, v in self._ahead.items() if k in set(enumerate(features))}
        self._ahead.update(zip(wanted, self._read(sets, index)))

    def _all_pairs(
        self,
        cells: IntArray,
        of_class: IntArray,
        inside: BoolArray,
        mean: Float64Array,
        total: Float64Array,
    ) -> Float64Array:
        """The covariance matrices of all sets, in one pass: folds are added up, not read anew."""
        patterns, of_pattern = np.unique(inside, axis=1, return_inverse=True)
        of_pattern = of_pattern.reshape(-1)
        m, n_patterns = self.rows.shape[1], patterns.shape[1]

        def visit(
            state: Float64Array | None, block: Float64Array, cell: IntArray, w: Float64Array
        ) -> Float64Array:
            state = np.zeros((n_patterns, m, m)) if state is None else state
            centred = (block - mean[cell]) * np.sqrt(w)[:, None]
            for p in range(n_patterns):
                part = centred[of_pattern[cell] == p]
                state[p] += part.T @ part
            return state

        scatter = self.rows.reduce_rows(visit, np.add, (cells, self._sample_weight))
        full = np.empty((len(inside), m, m))
        for s, member in enumerate(inside):
            away = mean[member] - self._raw_means[s][of_class[member]]
            full[s] = scatter[patterns[s]].sum(axis=0) + (away.T * total[member]) @ away
            full[s] /= total[member].sum()
        return full


class MomentCovariances:
    """The covariances of one training set from per-class moments, without rows."""

    rounding, dtype = 1e-9, np.dtype(np.float64)

    def __init__(self, moments: ClassMoments, standardize: bool = True) -> None:
        share = moments.weights / moments.weights.sum()
        pooled = moments.scatters.sum(axis=0) / moments.weights.sum()
        within = np.maximum(np.diagonal(pooled), 0.0)
        self.spread = Spreads.of(
            share[None], np.array([moments.counts.sum()]), moments.means[None], within[None],
            standardize,
        )  # fmt: skip
        inverse = np.where(self.spread.varying[0], 1.0 / self.spread.scale[0], 0.0)
        self._full = pooled * inverse * inverse[:, None]

    def at(self, features: IntArray, likely: Float64Array | None = None) -> Float64Array:
        """Covariance of the set's feature with all features."""
        return self._full[features]

    def size(self) -> tuple[Float64Array, Float64Array]:
        """Trace of the covariance matrix, and sum of the squares of its entries."""
        return self.spread.within.sum(axis=1), np.array([(self._full**2).sum()])


Covariances = RowCovariances | MomentCovariances


def default_tau(covariances: Covariances) -> Float64Array:
    """The floor of each training set: ``c ln(m) LW``.

    LW is intensity / (1 - intensity) times the mean variance, the intensity being Ledoit and
    Wolf's in its Rao-Blackwell form (Chen, Wiesel, Eldar and Hero 2010), which needs no more
    than the trace of S and of its square: moments are enough. It falls to nothing as the
    samples grow. Over uncorrelated features it is 1, so it is kept below .99.
    """
    spread = covariances.spread
    m = np.maximum(spread.varying.sum(axis=1), 1)
    (trace, square), n = covariances.size(), spread.n_samples
    apart = (n + 2) * (square - trace**2 / m)
    noise = (n - 2) / n * square + trace**2
    intensity = np.clip(np.divide(noise, apart, out=np.ones_like(noise), where=apart > 0), 0, 0.99)
    factor = _TAU_PAIR if spread.share.shape[1] == 2 else _TAU_MANY
    return np.maximum(
        factor * np.log(np.maximum(m, 2)) * intensity / (1 - intensity)
        * spread.within.sum(axis=1) / m,
        1e-3,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Path:
    """A forward selection: its first j features are the panel of size j.

    Attributes
    ----------
    order : ndarray of int of shape (k,)
        The features as they were chosen.
    quotients : ndarray of shape (k + 1,)
        The criterion before the first and after each step.
    pivots : ndarray of shape (k,)
        Variance of each feature given those before it, with tau.
    lower : ndarray of shape (k, k)
        Unit lower triangle: ``lower @ diag(pivots) @ lower.T`` is ``S + tau I`` of the panel.
    levels : ndarray of shape (k, n_classes)
        Class means of each feature given those before it.
    center, scale : ndarrays of shape (k,)
        Of the panel's features, in the units of X.
    tau : float
        The floor.
    near : tuple of ndarray
        For `stand_ins`: features that correlate with the panel's, their covariances with the
        panel given the features before (k, n_near), variances and class means.
    """

    order: IntArray
    quotients: Float64Array
    pivots: Float64Array
    lower: Float64Array
    levels: Float64Array
    center: Float64Array
    scale: Float64Array
    tau: float
    within: Float64Array
    near: tuple[IntArray, Float64Array, Float64Array, Float64Array]

    def innovations(self, columns: Float64Array) -> Float64Array:
        """What each feature adds to those before it: (k, n) of columns (n, k) in units of X."""
        z = (columns - self.center) / self.scale
        return solve_triangular(self.lower, z.T, lower=True, unit_diagonal=True)

    def predictions(self, columns: Float64Array) -> IntArray:
        """The class that scores highest with every size, (k, n), from one pass.

        The score of class i with the first k features is the sum over these of
        ``level_i / pivot * (innovation - level_i / 2)``.
        """
        k, n_classes = self.levels.shape
        out = np.empty((k, len(columns)), dtype=np.intp)
        for span in spans(len(columns), max(1, 4 * BLOCK // (k * n_classes))):
            e = self.innovations(columns[span])
            steps = e[:, :, None] - self.levels[:, None] / 2
            steps *= (self.levels / self.pivots[:, None])[:, None]
            out[:, span] = np.cumsum(steps, axis=0, out=steps).argmax(axis=2)
        return out

    def scores(self, k: int) -> tuple[Float64Array, Float64Array]:
        """Weights (n_classes, k) and offsets of the class scores of size k, in units of X."""
        lower = self.lower[:k, :k]
        weights = solve_triangular(
            lower, self.levels[:k] / self.pivots[:k, None], lower=True, trans="T",
            unit_diagonal=True,
        ).T  # fmt: skip
        offsets = -0.5 * (self.levels[:k] ** 2 / self.pivots[:k, None]).sum(axis=0)
        weights = weights / self.scale[:k]
        return weights, offsets - weights @ self.center[:k]

    def pair_gains(self) -> Float64Array:
        """What each feature takes from the quotient of each pair of classes, (k, n_pairs)."""
        i, j = np.triu_indices(self.levels.shape[1], 1)
        steps = (self.levels[:, i] - self.levels[:, j]) ** 2 / self.pivots[:, None]
        distance = np.concatenate([np.zeros((1, len(i))), np.cumsum(steps, axis=0)])
        return -np.diff(_quotient(distance), axis=0)

    def stand_ins(self, k: int) -> list[list[tuple[int, float, float]]]:
        """Features that may stand for each of the first k, the nearest first.

        Of each its index, its within-class correlation, and what the criterion loses when it
        takes the feature's place. With Q the inverse of ``S + tau I`` on the panel and s the
        covariances of a candidate, leaving f out changes the candidate's variance given the
        panel by ``(Q s)_f^2 / Q_ff``, and its class means likewise.
        """
        features, given, variances, means = self.near
        lower, given = self.lower[:k, :k], given[:k]
        inverse = solve_triangular(lower, np.eye(k), lower=True, unit_diagonal=True)
        precision = (inverse.T / self.pivots[:k]) @ inverse
        raw = lower @ given  # covariances of the candidates with the panel
        h = precision @ raw
        den = variances + self.tau - (raw * h).sum(axis=0)
        scaled = given / self.pivots[:k, None]
        num = means - self.levels[:k].T @ scaled
        weights = precision @ (lower @ self.levels[:k])  # (k, n_classes)
        i, j = np.triu_indices(self.levels.shape[1], 1)
        distance = ((self.levels[:k, i] - self.levels[:k, j]) ** 2 / self.pivots[:k, None]).sum(0)
        within = np.sqrt(np.maximum(self.within[:k], 0.0))
        out = []
        for f in range(k):
            size = np.sqrt(np.maximum(variances, 0.0)) * within[f]
            correlation = np.divide(raw[f], size, out=np.zeros_like(size), where=size > 0.0)
            at = np.flatnonzero(
                (np.abs(correlation) >= _STAND_IN) & ~np.isin(features, self.order[:k])
            )
            at = at[np.argsort(-np.abs(correlation[at]), kind="stable")[:_STAND_INS]]
            q = precision[f, f]
            left = distance - (weights[f, i] - weights[f, j]) ** 2 / q
            levels = num[:, at] + h[f, at] * weights[f][:, None] / q
            gained = (levels[i] - levels[j]) ** 2 / (den[at] + h[f, at] ** 2 / q)
            loss = _quotient(left[:, None] + gained).sum(axis=0) - self.quotients[k]
            out.append(
                [
                    (int(features[g]), float(correlation[g]), float(value))
                    for g, value in zip(at, loss)
                ]
            )
        return out


def _quotient(distance: Float64Array) -> Float64Array:
    """r of a pair of classes whose squared distance is D2, without cancellation."""
    return 2.0 / (distance + 2.0 + np.sqrt(distance * (distance + 4.0)))


def forward(
    covariances: Covariances,
    n_features: int,
    *,
    tau: float | None = None,
    max_correlation: float = 0.9,
    penalty_factor: Float64Array | None = None,
) -> list[Path]:
    """Select features one by one in every training set.

    Features of penalty factor 0 come first and of infinity never; other gains are divided by
    the factor. A feature whose within-class correlation with one of the panel reaches
    ``max_correlation`` in size is a candidate only where nothing else is left. Of equal gains
    the lowest index wins.
    """
    spread = covariances.spread
    n_sets, n_classes, m = spread.means.shape
    sets = np.arange(n_sets)
    taus = default_tau(covariances) if tau is None else np.full(n_sets, float(tau))
    factor = np.ones(m) if penalty_factor is None else penalty_factor
    # 0 enters first, 1 is a candidate, 2 a copy of a chosen feature, 3 is out
    tier = np.where(spread.varying & np.isfinite(factor), np.where(factor == 0.0, 0, 1), 3)
    cost = np.where((factor > 0.0) & np.isfinite(factor), factor, 1.0)
    k = min(n_features, int((tier < 3).sum(axis=1).min()))
    i, j = np.triu_indices(n_classes, 1)
    num, den = spread.means.copy(), spread.within + taus[:, None]
    floor = 1e-9 * den + 1e-12
    distance = np.zeros((n_sets, len(i)))
    given = np.empty((n_sets, k, m), dtype=covariances.dtype)
    order, pivots = np.empty((n_sets, k), dtype=np.intp), np.empty((n_sets, k))
    levels, quotients = np.empty((n_sets, k, n_classes)), np.full((n_sets, k + 1), float(len(i)))
    near = np.zeros((n_sets, m), dtype=bool)
    for t in range(k):
        gain = _gains(num, den, distance, i, j) / cost
        open_ = tier == tier.min(axis=1, keepdims=True)
        gain[~open_] = -1.0
        best = gain.max(axis=1, keepdims=True)
        f = (gain >= best * (1.0 - covariances.rounding)).argmax(axis=1)
        u = covariances.at(f, gain)
        size = np.sqrt(spread.within * spread.within[sets, f][:, None]) + 1e-12
        near |= np.abs(u) >= _STAND_IN * size
        if max_correlation < 1.0:
            tier[(np.abs(u) >= max_correlation * size) & (tier == 1)] = 2
        if t:
            u -= ((given[sets, :t, f] / pivots[:, :t])[:, None] @ given[:, :t])[:, 0]
        order[:, t], pivots[:, t], levels[:, t] = f, den[sets, f], num[sets, :, f]
        given[:, t] = u
        given[sets, t, f] = pivots[:, t]
        tier[sets, f] = 3
        change = levels[:, t]
        distance += (change[:, i] - change[:, j]) ** 2 / pivots[:, t, None]
        quotients[:, t + 1] = _quotient(distance).sum(axis=1)
        u = u / pivots[:, t, None]
        num -= change[:, :, None] * u[:, None]
        den -= given[:, t] * u
        np.maximum(den, floor, out=den)
    paths = []
    for s in range(n_sets):
        panel, index = order[s], np.flatnonzero(near[s])
        lower = np.tril((given[s][:, panel] / pivots[s, :, None]).T, -1) + np.eye(k)
        around = given[s][:, index], spread.within[s, index], spread.means[s][:, index]
        paths.append(
            Path(
                panel, quotients[s], pivots[s], lower, levels[s], spread.center[s, panel],
                spread.scale[s, panel], float(taus[s]), spread.within[s, panel], (index, *around),
            )
        )  # fmt: skip
    return paths


def _gains(
    num: Float64Array, den: Float64Array, distance: Float64Array, i: IntArray, j: IntArray
) -> Float64Array:
    """What each candidate takes from the criterion, (n_sets, n_features)."""
    n_sets, m = den.shape
    out = np.repeat(_quotient(distance).sum(axis=1)[:, None], m, axis=1)
    for span in spans(m, max(64, BLOCK // (n_sets * len(i)))):
        apart = num[:, i, span] - num[:, j, span]
        apart *= apart
        apart /= den[:, None, span]
        apart += distance[:, :, None]
        out[:, span] -= _quotient(apart).sum(axis=1)
    return out


def _centred_size(
    gram: Float64Array, codes: IntArray, weight: Float64Array, n_classes: int
) -> tuple[float, float]:
    """Trace and squared norm of a set's covariances, from the Gram matrix of all rows."""
    index = np.flatnonzero(weight)
    w, code, gram = weight[index], codes[index], gram[np.ix_(index, index)]
    averages = np.zeros((n_classes, len(index)))
    averages[code, np.arange(len(index))] = w / np.bincount(code, w, minlength=n_classes)[code]
    gram -= (averages @ gram)[code]
    gram -= (gram @ averages.T)[:, code]
    return float(w @ np.diagonal(gram)), float(w @ gram**2 @ w)


def _cells(codes: IntArray, train: BoolArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Group rows by class and membership: cell of each row, class and sets of each cell."""
    cells = codes
    for mask in train:
        _, cells = np.unique(2 * cells + mask, return_inverse=True)
    first = np.unique(cells, return_index=True)[1]
    return cells, codes[first], train[:, first]


def _merged(
    total: Float64Array,
    mean: Float64Array,
    variance: Float64Array,
    of_class: IntArray,
    inside: BoolArray,
    n_classes: int,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Class shares, class means and pooled variances of sets, from those of their cells."""
    weight = inside * total
    member = of_class == np.arange(n_classes)[:, None]
    by_class = weight[:, None] * member
    class_total = by_class.sum(axis=2)
    share = class_total / class_total.sum(axis=1, keepdims=True)
    means = (by_class / np.where(class_total > 0.0, class_total, 1.0)[:, :, None]) @ mean
    within = np.empty((len(inside), mean.shape[1]))
    for s, w in enumerate(weight):
        within[s] = w @ (variance + (mean - means[s][of_class]) ** 2) / w.sum()
    return share, means, within


def row_identity(
    rows: Rows,
    share: Float64Array,
    means: Float64Array,
    center: Float64Array,
    inverse: Float64Array,
) -> tuple[Float64Array, IntArray]:
    """A number in [0, 1) of each row, as good as drawn, and a rank that equal rows share.

    Both depend on what is in a row, and neither on its place nor on the order and units of the
    columns: these weigh in by how far apart the standardised class means lie.
    """
    weights = np.cos(100.0 * (share @ means**2)) * inverse
    value = rows.dot(weights, exact=True) - weights @ center
    size = np.abs(value).max()
    value = np.round(value / (size if size > 0.0 else 1.0), 11).astype(np.float64)
    return (value * 1e6) % 1.0, np.unique(value, return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class SubsetResult:
    """What `subset_gsvp` returns.

    Attributes
    ----------
    order : ndarray of int of shape (n_features,)
        The features in the order of choice: the first j are the panel of size j.
    quotients : ndarray of shape (n_features,)
        The criterion after each step.
    tau : float
        The floor that was used.
    """

    order: IntArray
    quotients: Float64Array
    tau: float


def subset_gsvp(
    X: Any,
    y: Any,
    n_features: int,
    *,
    tau: float | None = None,
    clip: float | None = 3.0,
    max_correlation: float = 0.9,
    penalty_factor: Any = None,
    sample_weight: Any = None,
    standardize: bool = True,
) -> SubsetResult:
    r"""Select exactly k features by the paper's quotient, in closed form.

    The limit q -> 0 of the penalised problem counts features. With a pooled within-class
    covariance S its quotient, minimised over planes on a panel P, is

    .. math::
        r_{ij}(P) = \left(\frac{\sqrt{D^2 + 4} - \sqrt{D^2}}{2}\right)^2, \qquad
        D^2 = (\mu_i - \mu_j)_P^\top (S_{PP} + \tau I)^{-1} (\mu_i - \mu_j)_P

    for the classes i and j. Features are added one by one, each the one that lowers the sum over
    all pairs of classes most.

    Parameters
    ----------
    X : array, CSR/CSC matrix, data frame, or Dask array of shape (n_samples, n_features_in)
        The rows; never copied.
    y : array of shape (n_samples,)
        Class labels, two or more.
    n_features : int
        How many features to select; all that vary, with a warning, if these are fewer.
    tau : float, optional
        Floor of the squared distances in units of a feature's variance. By default a multiple
        of Ledoit and Wolf's shrinkage, which falls to nothing as the samples grow.
    clip : float, optional
        Values are clipped this many pooled within-class standard deviations from their class's
        mean; None for never. Zeros stay.
    max_correlation : float
        A feature whose within-class correlation with a chosen one reaches this in size is taken
        only where no other is left; 1 turns it off.
    penalty_factor : array of shape (n_features_in,) or mapping, optional
        0 for features that come first, infinity for those that never come, else what a
        feature's gain is divided by. A mapping gives it for some, by name.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights; only their ratios matter.
    standardize : bool
        Whether features are scaled to unit variance.

    Returns
    -------
    SubsetResult

    Examples
    --------
    >>> from sparsegsvp import subset_gsvp
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> data = load_breast_cancer()
    >>> result = subset_gsvp(data.X, data.y, 3)
    >>> [str(data.feature_names[f]) for f in result.order]
    ['worst concave points', 'worst radius', 'worst texture']
    """
    rows, classes, codes, weight = read_classes(X, y, sample_weight)
    factor = penalty_factors(penalty_factor, rows.shape[1], rows.names or names_of(X))
    covariances = RowCovariances(
        rows, codes, weight, len(classes), clip=clip, standardize=standardize
    )
    k = check_panel(n_features, covariances.spread.varying[0], factor)
    [path] = forward(
        covariances, k, tau=tau, max_correlation=max_correlation, penalty_factor=factor
    )
    return SubsetResult(path.order, path.quotients[1:], path.tau)


def check_panel(n_features: Any, varying: BoolArray, factor: Float64Array | None) -> int:
    """Return how many features can be selected, of those that vary and may be."""
    check_integer("n_features", n_features, least=1)
    if not varying.any():
        raise ValueError("all features are constant: there is nothing to select from")
    factor = np.ones(len(varying)) if factor is None else factor
    must = int(np.count_nonzero(factor == 0.0))
    if n_features < must:
        raise ValueError(
            f"n_features={n_features} is less than the {must} features of penalty_factor 0, which "
            "are in every panel"
        )
    return check_n_features(n_features, int(np.count_nonzero(varying & np.isfinite(factor))))
