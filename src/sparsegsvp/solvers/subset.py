r"""Exactly k features: forward selection on the paper's quotient in closed form.

As q falls to 0 the penalty counts features. With S the pooled within-class covariance of the
standardised features, d the difference of two class means and P a panel, the smallest
generalized singular value of the two classes, squared, at the best bias, is

    r = ((sqrt(D2 + 4) - sqrt(D2)) / 2)^2 ,     D2 = d_P' (S_PP + tau I)^-1 d_P .

The criterion is the sum of r over all pairs of classes. Adding f to P raises D2 by
``(num_f,i - num_f,j)^2 / den_f``, num and den being the class means and the variance of f given
P, so that every candidate is scored exactly; a choice costs one product with the data and a
rank-one update. Several training sets of the same rows go side by side and share the product.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import Array, BoolArray, IntArray
from .._validate import check_integer, check_n_features
from ..linalg.moments import ClassMoments, Sample, names_of, sample_rows, standardisation
from ..linalg.rows import BLOCK, Rows, read_classes, repetitions, spans
from .penalties import penalty_factors
from .quotient import LARGE_MEAN

_TALL, _TALL_LAZY = 256, 2048  # features up to which all covariances are formed of more rows
_KEPT = 1024  # features times classes up to which a tall table is read but once after the limits
# Multiplications that an exact shrinkage may cost, and the features that stand for all above it.
_EXACT_SHRINKAGE, _SAMPLED = 5e9, 16
_AHEAD, _AHEAD_BYTES = 64, 1 << 28  # features that are read ahead in a pass, and their bytes
_STAND_IN, _STAND_INS = 0.8, 10  # least correlation of stand-ins, and how many at most
_TAU_PAIR, _TAU_MANY = 3.0, 0.3  # what tau is to ln(n_features) times Ledoit and Wolf's shrinkage


class Covariances:
    """Means and pooled within-class covariances of several training sets, sets first.

    ``means`` (n_sets, n_classes, n_features) and ``within``, the variances (n_sets, n_features),
    are in standardised units; ``inverse`` is ``1 / scale``, zero for constant features. At first
    there is one set, of all rows, clipped ``clip`` pooled standard deviations from class means.
    Covariances are formed for tall tables; else they are read off the rows as they are needed.
    """

    dtype = np.dtype(np.float64)
    rounding = 1e-9  # gains that differ by less are ties
    limits: Array | None = None  # of what is clipped, over all classes
    _full: Array | None  # of all features, in the units of X
    _kept: Sample | None = None  # of a small tall table

    def __init__(
        self,
        rows: Rows,
        codes: IntArray,
        weight: Array,
        n_classes: int,
        *,
        clip: float | None = None,
        standardize: bool = True,
        sample: int = 0,
    ) -> None:
        (n, m), self._scaled, self._sample = rows.shape, standardize, sample
        self.codes, self._sample_weight, self._times = codes, weight, repetitions(weight)
        mean, variance = rows.class_statistics(codes, weight, n_classes)
        total = np.bincount(codes, weight, minlength=n_classes)
        share = total / total.sum()
        # where a table is tall, one more pass gives means, variances and covariances
        most = _TALL_LAZY if rows.lazy else _TALL
        if float(n) * n * m <= _EXACT_SHRINKAGE:  # else the shrinkage would need all products
            most = max(most, 4 * _TALL)
        self._tall, self._pilot = m <= min(n - 1, most), mean
        if clip is not None:
            reach = clip * np.sqrt(share @ variance) + 8 * np.finfo(np.float64).eps * np.abs(mean)
            low, high = mean - reach, mean + reach
            self.limits = np.stack([low.min(axis=0), high.max(axis=0)])
            rows = rows.clipped(low, high, codes)
            if not self._tall:
                mean, variance = rows.corrected(mean, variance, codes, weight)
        self.rows, everything = rows, np.ones((1, max(n, n_classes)), dtype=bool)
        if m <= min(n - 1, _TALL, _KEPT // n_classes):
            center = share @ mean  # rows go by features, whatever their order and units
            apart = share @ (mean - center) ** 2
            varying, scale = standardisation(center, share @ variance + apart, True)
            angle, inverse = 100.0 * apart / scale**2, varying / scale
            self._take(sample_rows(rows, codes, weight, n_classes, sample, center, inverse, angle))
            self.n_samples = np.array([self._times.sum()])
            return
        self._set(everything[:, :n], codes, np.arange(n_classes), everything[:, :n_classes],
                  (mean, variance))  # fmt: skip
        self._unit = self.inverse[0]  # of all rows, also in sets that `folds` makes

    @classmethod
    def of_moments(cls, moments: ClassMoments, standardize: bool = True) -> Covariances:
        """One training set, from per-class moments without rows."""
        self, none = cls.__new__(cls), np.zeros((0, moments.n_features))
        self._scaled = standardize
        self._take(Sample(moments, none, np.zeros(0, dtype=np.intp), np.zeros(0)))
        return self

    def _take(self, data: Sample) -> None:
        """Take one training set from moments."""
        self._kept, moments = data, data.moments
        share = moments.weights[None] / moments.weights.sum()
        self._full = moments.scatters.sum(axis=0)[None] / moments.weights.sum()
        within = np.maximum(np.diagonal(self._full, axis1=1, axis2=2), 0.0)
        counts = np.array([moments.counts.sum()])
        self._standardize(share, counts, moments.means[None], within)
        self._unit = self.inverse[0]

    def folds(self, train: BoolArray) -> Covariances:
        """The same for other training sets, whose rows are marked in ``train`` (n_sets, n)."""
        sets, cells = copy(self), self.codes
        # rows of one class that are in the same sets form a cell
        for mask in train:
            cells = 2 * cells + mask
            cells = np.searchsorted(np.flatnonzero(np.bincount(cells)), cells)
        row = np.empty(cells.max() + 1, dtype=np.intp)
        row[cells] = np.arange(len(cells))  # any of each cell
        sets._set(train, cells, self.codes[row], train[:, row])
        return sets

    def _set(
        self,
        train: BoolArray,
        cells: IntArray,
        of_class: IntArray,
        inside: BoolArray,
        statistics: tuple[Array, Array] | None = None,
    ) -> None:
        """Take training sets; cells of rows make them up, ``inside`` (n_sets, n_cells)."""
        weight, times, n_classes = self._sample_weight, self._times, len(self._pilot)
        total, times = (np.bincount(cells, w, len(of_class)).astype(float) for w in (weight, times))
        scatter = None
        if self._tall:
            mean, scatter = self._scatter(cells, of_class, inside, total)
        else:
            mean, variance = statistics or self.rows.class_statistics(cells, weight, len(total))
        by_class = (inside * total)[:, None] * (of_class == np.arange(n_classes)[:, None])
        in_class = by_class.sum(axis=2)
        share = in_class / in_class.sum(axis=1, keepdims=True)
        means = (by_class / np.where(in_class > 0.0, in_class, 1.0)[:, :, None]) @ mean
        within, size = np.empty((len(inside), mean.shape[1])), 0.0
        for s, w in enumerate(inside * total):
            if scatter is None:
                within[s] = w @ (variance + (mean - means[s][of_class]) ** 2) / w.sum()
                continue
            raw = np.diagonal(scatter[s]) / w.sum()
            away = (means[s] - self._pilot) * np.sqrt(share[s])[:, None]
            scatter[s] = scatter[s] / w.sum() - away.T @ away
            # what cancels but for rounding is nothing
            within[s] = np.where(np.diagonal(scatter[s]) > 1e-13 * raw, np.diagonal(scatter[s]), 0)
            size = np.abs(self._pilot).max(axis=0)
        self._standardize(share, inside @ times, means, within, size)
        self._full, self._raw_means = scatter, means
        if scatter is None:
            self.weight = train * weight
            self.weight /= self.weight.sum(axis=1, keepdims=True)
        far = (np.abs(self.center) > LARGE_MEAN * self.scale).any()
        self._exact = self.rows.dtype != np.float64 and bool(far)
        self.dtype = np.dtype(np.float64) if self._exact else self.rows.dtype
        self.rounding = 1e-9 if self.dtype == np.float64 else 1e-5
        self._ahead: dict[tuple[int, int], Array] = {}

    def _standardize(
        self, share: Array, n_samples: Array, means: Array, within: Array, size: Any = 0.0
    ) -> None:
        """Take raw class means and pooled variances; ``size`` as in `standardisation`."""
        self.share, self.n_samples = share, n_samples
        self.center = np.einsum("sk,skm->sm", share, means)
        apart = means - self.center[:, None]
        total = within + np.einsum("sk,skm->sm", share, apart**2)
        self.varying, self.scale = standardisation(self.center, total, self._scaled, size)
        self.inverse = np.where(self.varying, 1.0 / self.scale, 0.0)
        self.means, self.within = apart * self.inverse[:, None], within * self.inverse**2

    def _scatter(
        self, cells: IntArray, of_class: IntArray, inside: BoolArray, total: Array
    ) -> tuple[Array, Array]:
        """Means of cells and each set's products about the first class means, from one pass."""
        patterns, of_pattern = np.unique(inside, axis=1, return_inverse=True)
        groups = of_pattern.reshape(-1) == np.arange(patterns.shape[1])[:, None]
        if len(groups) > len(inside):  # of many splits, rows are in more patterns than sets
            patterns, groups = np.eye(len(inside), dtype=bool), inside
        centers = self._pilot[of_class]

        def visit(state: Any, block: Array, cell: IntArray, w: Array) -> tuple[Array, Array]:
            m = block.shape[1]
            sums, products = state or (np.zeros_like(centers), np.zeros((len(groups), m, m)))
            centred, member = block - centers[cell], np.zeros((len(centers), len(cell)))
            member[cell, np.arange(len(cell))] = w
            sums += member @ centred
            centred *= np.sqrt(w)[:, None]
            for group, product in zip(groups, products):
                part = centred[group[cell]]
                product += part.T @ part  # a matrix with itself: symmetric to the last bit
            return sums, products

        sums, products = self.rows.reduce_rows(
            visit, lambda a, b: (a[0] + b[0], a[1] + b[1]), (cells, self._sample_weight)
        )
        mean = centers + sums / np.where(total > 0.0, total, 1.0)[:, None]
        return mean, np.tensordot(patterns.astype(np.float64), products, axes=1)

    def at(self, features: IntArray, likely: Array) -> Array:
        """Covariance of a feature of each set with all; where a pass is costly, of likely ones."""
        sets = np.arange(len(features))
        if self._full is not None:
            raw = self._full[sets, features]
        elif self.rows.lazy:
            raw = self._read_ahead(features, likely)
        else:
            self.rows.likely = likely
            raw = self._read(sets, features)
        return raw * self.inverse[sets, features][:, None] * self.inverse

    def _read_ahead(self, features: IntArray, likely: Array) -> Array:
        wanted = list(enumerate(features.tolist()))
        if any(key not in self._ahead for key in wanted):
            n_sets, m = likely.shape
            room = max(1, min(_AHEAD, _AHEAD_BYTES // (8 * m * n_sets)))
            guessed = [
                (s, f) for s in range(n_sets) for f in np.argsort(-likely[s])[:room].tolist()
            ]
            missing = [k for k in dict.fromkeys(wanted + guessed) if k not in self._ahead]
            sets, index = (np.array(part) for part in zip(*missing))
            self._ahead = {k: v for k, v in self._ahead.items() if k in wanted}
            self._ahead.update(zip(missing, self._read(sets, index)))
        return np.stack([self._ahead[key] for key in wanted])

    def _read(self, sets: IntArray, features: IntArray) -> Array:
        """Raw covariances of features, each of a set, with all features, in one pass."""
        centers = self._raw_means[sets, :, features]
        back = (centers * self.share[sets])[:, None] @ self._raw_means[sets]
        return self.rows.cross(
            features, centers, self.codes, self.weight, sets, back[:, 0], exact=self._exact
        )

    def size(self) -> tuple[Array, Array]:
        """Trace of each set's covariance matrix, and sum of its squared entries, in common units.

        Exact where that is affordable, else from some features, evenly spaced by variance.
        """
        unit, trace = self._unit, (self.within * self.scale**2) @ self._unit**2
        if self._full is not None:
            return trace, self._full**2 @ unit**2 @ unit**2
        n, m = self.rows.shape
        square = np.zeros(len(trace))
        for s, within in enumerate(self.within):
            if float(n) * n * m > _EXACT_SHRINKAGE:
                order = np.argsort(np.round(within, 9), kind="stable")  # words have equal ones
                order = order[within[order] > 0.0]
                order = order[np.linspace(0, len(order) - 1, min(_SAMPLED, len(order)), dtype=int)]
                raw = self._read(np.full(len(order), s), order) * unit
                square[s] = unit[order] ** 2 @ (raw**2).sum(axis=1)
                square[s] *= np.count_nonzero(within) / max(1, len(order))
                continue
            # the rows of a set, centred within its classes
            index = np.flatnonzero(self.weight[s])
            w, code, gram = self.weight[s, index], self.codes[index], self._gram[index][:, index]
            averages = np.zeros((self.share.shape[1], len(index)))
            averages[code, np.arange(len(index))] = w / np.bincount(code, w)[code]
            gram -= (averages @ gram)[code]
            gram -= (gram @ averages.T)[:, code]
            square[s] = w @ gram**2 @ w
        return trace, square

    @cached_property
    def _gram(self) -> Array:
        """Products of all rows with each other, in units of all of them: no copy of X."""
        n, m = self.rows.shape
        gram = np.zeros((n, n))
        for span in spans(m, max(1, (256 if self.rows.lazy else 4) * BLOCK // n)):
            block = self.rows.columns(np.arange(span.start, span.stop))
            block -= self.center[0, span]  # rows are centred within classes later on
            block *= self._unit[span]
            block = block.astype(self.rows.dtype, copy=False)
            gram += block @ block.T
        return gram

    def row_values(self) -> Array:
        """A number of each row by its content, whatever the order and units of the columns."""
        weights = np.cos(100.0 * (self.share[0] @ self.means[0] ** 2)) * self.inverse[0]
        value = self.rows.dot(weights, exact=True) - weights @ self.center[0]
        return np.round(value / (np.abs(value).max() or 1.0), 11)

    def panel(self, order: IntArray) -> Sample:
        """Class moments of features, sorted, and rows to fit a decision to."""
        place = np.argsort(order)
        panel = order[place]
        if self._kept is not None:
            columns, moments = self._kept.columns[:, panel], self._kept.moments.at(panel)
            return self._kept._replace(columns=columns, moments=moments)
        return sample_rows(
            self.rows.take(panel), self.codes, self._sample_weight, len(self._pilot), self._sample,
            self.center[0, panel], self.inverse[0, panel], 1.0 + place,
        )  # fmt: skip


def default_tau(covariances: Covariances) -> Array:
    """The floor of each training set: ``c ln(m) intensity / (1 - intensity) * mean variance``.

    The intensity is Ledoit and Wolf's in its Rao-Blackwell form (Chen, Wiesel, Eldar and Hero
    2010), from the traces of S and its square. It is near 1 over uncorrelated features. There,
    with several pairs of classes, a large floor would keep those that are apart in the criterion.
    """
    m = np.maximum(covariances.varying.sum(axis=1), 1)
    (trace, square), n = covariances.size(), covariances.n_samples
    apart = (n + 2) * (square - trace**2 / m)
    noise = (n - 2) / n * square + trace**2
    factor, most = (_TAU_PAIR, 0.99) if covariances.share.shape[1] == 2 else (_TAU_MANY, 0.5)
    intensity = np.clip(np.divide(noise, apart, out=np.ones_like(noise), where=apart > 0), 0, most)
    shrinkage = intensity / (1 - intensity) * covariances.within.sum(axis=1) / m
    return np.maximum(factor * np.log(np.maximum(m, 2)) * shrinkage, 1e-3)


@dataclass(frozen=True, eq=False)
class Path:
    """A forward selection: its first j features are the panel of size j."""

    order: IntArray  # the features as they were chosen, (k,)
    pairs: Array  # the quotient of each pair of classes before the first and after each step
    quotients: Array  # their sum, (k + 1,)
    pivots: Array  # variance of each feature given those before it, with tau
    lower: Array  # unit triangle: lower @ diag(pivots) @ lower.T is S + tau I of the panel
    levels: Array  # class means of each feature given those before it, (k, n_classes)
    center: Array  # of the panel's features, in the units of X
    scale: Array
    tau: float
    within: Array
    # features that correlate with the panel's, their covariances with the panel given the
    # features before (k, n_near), variances and class means
    near: tuple[IntArray, Array, Array, Array]

    def predictions(self, columns: Array) -> IntArray:
        """The class that scores highest with every size, (k, n), of columns in units of X.

        A feature adds ``level_i / pivot * (innovation - level_i / 2)`` to the score of class i.
        """
        k, n_classes = self.levels.shape
        out = np.empty((k, len(columns)), dtype=np.intp)
        for span in spans(len(columns), max(1, 4 * BLOCK // (k * n_classes))):
            z = (columns[span] - self.center) / self.scale
            e = solve_triangular(self.lower, z.T, lower=True, unit_diagonal=True)
            steps = e[:, :, None] - self.levels[:, None] / 2
            steps *= (self.levels / self.pivots[:, None])[:, None]
            out[:, span] = np.cumsum(steps, axis=0, out=steps).argmax(axis=2)
        return out

    def scores(self, k: int) -> tuple[Array, Array]:
        """Weights (n_classes, k) and offsets of the class scores of size k, in units of X."""
        lower = self.lower[:k, :k]
        weights = solve_triangular(
            lower, self.levels[:k] / self.pivots[:k, None], lower=True, trans="T",
            unit_diagonal=True,
        ).T  # fmt: skip
        offsets = -0.5 * (self.levels[:k] ** 2 / self.pivots[:k, None]).sum(axis=0)
        weights = weights / self.scale[:k]
        return weights, offsets - weights @ self.center[:k]

    def stand_ins(self, k: int) -> list[list[tuple[int, float, float]]]:
        """Stand-ins for each of the first k: index, correlation, and what the criterion loses."""
        features, given, variances, means = self.near
        lower = self.lower[:k, :k]
        covariances, levels = (lower * self.pivots[:k]) @ lower.T, lower @ self.levels[:k]
        across = (lower @ given[:k]).T  # of the candidates with the panel
        i, j = np.triu_indices(levels.shape[1], 1)
        outside, out = ~np.isin(features, self.order[:k]), []
        for f in range(k):
            size = np.sqrt(np.maximum(variances * self.within[f], 0.0))
            correlation = np.divide(across[:, f], size, out=np.zeros_like(size), where=size > 0.0)
            at = np.flatnonzero((np.abs(correlation) >= _STAND_IN) & outside)
            at = at[np.argsort(-np.abs(correlation[at]), kind="stable")[:_STAND_INS]]
            # the panel with f exchanged for each of them
            S, M = np.tile(covariances, (len(at), 1, 1)), np.tile(levels, (len(at), 1, 1))
            S[:, f] = S[:, :, f] = across[at]
            S[:, f, f], M[:, f] = variances[at] + self.tau, means[:, at].T
            apart = M[:, :, i] - M[:, :, j]
            distance = (apart * np.linalg.solve(S, apart)).sum(axis=1)
            loss = _quotient(distance).sum(axis=1) - self.quotients[k]
            out.append(list(zip(features[at].tolist(), correlation[at].tolist(), loss.tolist())))
        return out


def _quotient(distance: Array) -> Array:
    """r of a pair of classes whose squared distance is D2, without cancellation."""
    return 2.0 / (distance + 2.0 + np.sqrt(distance * (distance + 4.0)))


def forward(
    cov: Covariances,
    n_features: int,
    *,
    tau: float | None = None,
    max_correlation: float = 0.9,
    penalty_factor: Array | None = None,
) -> list[Path]:
    """Select features one by one in every training set; of equal gains the lowest index wins."""
    n_sets, n_classes, m = cov.means.shape
    sets = np.arange(n_sets)
    taus = default_tau(cov) if tau is None else np.full(n_sets, float(tau))
    factor = np.ones(m) if penalty_factor is None else penalty_factor
    # 0 enters first, 1 is a candidate, 2 a copy of a chosen feature, 3 is out
    tier = np.where(cov.varying & np.isfinite(factor), np.where(factor == 0.0, 0, 1), 3)
    cost = np.where((factor > 0.0) & np.isfinite(factor), factor, 1.0)
    k = min(n_features, int((tier < 3).sum(axis=1).min()))
    i, j = np.triu_indices(n_classes, 1)
    num, den = cov.means.copy(), cov.within + taus[:, None]
    floor = 1e-9 * den + 1e-12
    distance = np.zeros((n_sets, len(i)))
    given = np.empty((n_sets, k, m), dtype=cov.dtype)
    order, pivots = np.empty((n_sets, k), dtype=np.intp), np.empty((n_sets, k))
    levels, pairs = np.empty((n_sets, k, n_classes)), np.ones((n_sets, k + 1, len(i)))
    near = np.zeros((n_sets, m), dtype=bool)
    for t in range(k):
        gain = _gains(num, den, distance, i, j) / cost
        open_ = tier == tier.min(axis=1, keepdims=True)
        gain[~open_] = -1.0
        best = gain.max(axis=1, keepdims=True)
        f = (gain >= best * (1.0 - cov.rounding)).argmax(axis=1)
        u = cov.at(f, gain)
        size = np.sqrt(cov.within * cov.within[sets, f][:, None]) + 1e-12
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
        pairs[:, t + 1] = _quotient(distance)
        u = u / pivots[:, t, None]
        num -= change[:, :, None] * u[:, None]
        den -= given[:, t] * u
        np.maximum(den, floor, out=den)
    paths = []
    for s in range(n_sets):
        panel, index = order[s], np.flatnonzero(near[s])
        lower = np.tril((given[s][:, panel] / pivots[s, :, None]).T, -1) + np.eye(k)
        around = index, given[s][:, index], cov.within[s, index], cov.means[s][:, index]
        paths.append(
            Path(
                panel, pairs[s], pairs[s].sum(axis=1), pivots[s], lower, levels[s],
                cov.center[s, panel], cov.scale[s, panel], float(taus[s]), cov.within[s, panel],
                around,
            )
        )  # fmt: skip
    return paths


def _gains(num: Array, den: Array, distance: Array, i: IntArray, j: IntArray) -> Array:
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


@dataclass(frozen=True, eq=False)
class SubsetResult:
    """What `subset_gsvp` returns.

    Attributes
    ----------
    order, quotients : ndarrays of shape (n_features,)
        The features in the order of choice, and the criterion after each step.
    tau : float
        The floor that was used.
    """

    order: IntArray
    quotients: Array
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
    tau, clip, max_correlation, penalty_factor, standardize
        As in `GSVPSVM`.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights; only their ratios matter.

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
    covariances = Covariances(rows, codes, weight, len(classes), clip=clip, standardize=standardize)
    k = check_panel(n_features, covariances.varying[0], factor)
    [path] = forward(
        covariances, k, tau=tau, max_correlation=max_correlation, penalty_factor=factor
    )
    return SubsetResult(path.order, path.quotients[1:], path.tau)


def check_panel(
    n_features: Any, varying: BoolArray, factor: Array, least: int | None = None
) -> int:
    """Return how many features can be selected; ``least`` is the smallest of several numbers."""
    check_integer("n_features", n_features, least=1)
    if not varying.any():
        raise ValueError("all features are constant: there is nothing to select from")
    least, must = n_features if least is None else least, int(np.count_nonzero(factor == 0.0))
    if least < must:
        raise ValueError(
            f"n_features={least} is less than the {must} features of penalty_factor 0, which "
            "are in every panel"
        )
    return check_n_features(n_features, int(np.count_nonzero(varying & np.isfinite(factor))))
