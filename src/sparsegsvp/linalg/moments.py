"""Counts, means and second moments of each class, which determine the quotient.

They add up over batches, folds and sites: one pass over the rows is enough.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from .._typing import Array, IntArray
from .rows import Rows, read_rows

_PARTS = ("counts", "weights", "means", "scatters")


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Counts, means and centred second moments of each class.

    Two sets of moments of the same features are added, stably, with ``+``.

    Attributes
    ----------
    classes, counts, weights : ndarrays of shape (n_classes,)
        Sorted labels, rows of positive weight in each class, and the sum of their weights.
    means, scatters : ndarrays of shapes (n_classes, n_features[, n_features])
        Weighted means, and ``sum_i w_i (x_i - mean)(x_i - mean)'``, of each class.
    feature_names : ndarray of shape (n_features,) or None
        Names of the features, checked when moments are added.

    Notes
    -----
    Moments hide single rows but are not anonymous: a class of one row is that row, and
    two sets of moments that differ by one row give that row away. Share them only for
    classes of many rows, and not at every new patient.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp import ClassMoments
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0], [7.0, 1.0]])
    >>> y = np.array(["a", "a", "b", "b"])
    >>> batches = [ClassMoments.from_data(X[rows], y[rows]) for rows in ([0, 2], [1, 3])]
    >>> pooled = sum(batches)
    >>> pooled.means
    array([[1., 2.],
           [6., 3.]])
    >>> bool(np.allclose(pooled.scatters, ClassMoments.from_data(X, y).scatters))
    True
    """

    classes: np.ndarray
    counts: IntArray
    weights: Array
    means: Array
    scatters: Array
    feature_names: np.ndarray | None = None

    @classmethod
    def from_data(
        cls, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None
    ) -> ClassMoments:
        """Compute the moments of labelled rows in one pass.

        Parameters
        ----------
        X : array or CSR/CSC matrix of shape (n_samples, n_features)
            The rows. Never copied whole; Dask arrays and data frames are read by chunks.
        y : array of shape (n_samples,), optional
            Labels; without them all rows form one class, 0.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights.
        classes : sequence, optional
            The labels to expect, for a batch in which some may be absent.
        """
        names = names_of(X)
        rows = read_rows(X)
        n = rows.shape[0]
        labels = np.zeros(n, dtype=int) if y is None else column_or_1d(y, warn=True)
        if len(labels) != n:
            raise ValueError(
                f"X has {n} rows and y has {len(labels)} labels: pass one label per row"
            )
        if classes is None:
            known, codes = np.unique(labels, return_inverse=True)
        else:
            known = np.unique(np.asarray(classes))
            codes = np.searchsorted(known, labels).clip(max=len(known) - 1)
            if not np.array_equal(known[codes], labels):
                extra = sorted(set(labels.tolist()) - set(known.tolist()))
                raise ValueError(f"y has labels that are not in classes: {extra[:5]}")
        weight = _check_sample_weight(
            sample_weight, labels[:, None], dtype=np.float64, ensure_non_negative=True
        )
        moments = class_moments(rows, codes.astype(np.intp), weight, len(known))
        return replace(moments, classes=known, feature_names=names)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.means.shape[1]

    def __add__(self, other: object) -> ClassMoments:
        if not isinstance(other, ClassMoments):
            return NotImplemented
        if self.n_features != other.n_features:
            raise ValueError(
                f"moments of {self.n_features} and {other.n_features} features cannot be "
                "combined: compute both from the same columns"
            )
        given = [m.feature_names for m in (self, other) if m.feature_names is not None]
        if len(given) == 2 and not np.array_equal(given[0], given[1]):
            raise ValueError(
                "moments have different feature names: put the columns into the same order"
            )
        classes = np.unique(np.concatenate([self.classes, other.classes]))
        left, right = self._expanded(classes), other._expanded(classes)
        total = left.weights + right.weights
        share = np.divide(right.weights, total, out=np.zeros_like(total), where=total > 0)
        step = right.means - left.means
        outer = step[:, :, None] * step[:, None, :] * (left.weights * share)[:, None, None]
        return ClassMoments(
            classes,
            left.counts + right.counts,
            total,
            left.means + share[:, None] * step,
            left.scatters + right.scatters + outer,
            given[0] if given else None,
        )

    def __radd__(self, other: object) -> ClassMoments:
        # sum() starts from 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def _expanded(self, classes: np.ndarray) -> ClassMoments:
        """The same moments with empty entries for classes that are absent."""
        at, parts = np.searchsorted(classes, self.classes), {}
        for name in _PARTS:
            values = getattr(self, name)
            parts[name] = np.zeros((len(classes), *values.shape[1:]), dtype=values.dtype)
            parts[name][at] = values
        return replace(self, classes=classes, **parts)

    def at(self, index: IntArray) -> ClassMoments:
        """The moments of the features at ``index``."""
        scatters = self.scatters[:, index[:, None], index]
        names = None if self.feature_names is None else self.feature_names[index]
        return replace(self, means=self.means[:, index], scatters=scatters, feature_names=names)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Plain arrays, for ``numpy.savez`` or any exchange between sites."""
        out = {name: getattr(self, name) for name in _PARTS}
        out["classes"] = np.array(self.classes.tolist())  # strings as objects would need pickle
        if self.feature_names is not None:
            out["feature_names"] = np.asarray(self.feature_names, dtype=str)
        return out

    @classmethod
    def from_dict(cls, arrays: Mapping[str, np.ndarray]) -> ClassMoments:
        """Rebuild moments from `to_dict`'s arrays, or an ``.npz`` file of them, checked."""
        missing = {"classes", *_PARTS} - set(arrays)
        if missing:
            raise ValueError(f"arrays lacks {sorted(missing)}: pass what to_dict returned")
        counts, weights, means, scatters = (np.asarray(arrays[n], dtype=float) for n in _PARTS)
        classes = np.asarray(arrays["classes"])
        k, m = len(classes), means.shape[-1]
        shapes = [part.shape for part in (means, scatters, counts, weights)]
        if shapes != [(k, m), (k, m, m), (k,), (k,)]:
            raise ValueError("the shapes of the arrays do not fit together: one entry per class")
        if not (np.isfinite(means).all() and np.isfinite(scatters).all()):
            raise ValueError("moments contain NaN or infinity: recompute them from clean rows")
        names = np.asarray(arrays["feature_names"]) if "feature_names" in arrays else None
        return cls(classes, counts.astype(np.intp), weights, means, scatters, names)


def names_of(X: Any) -> np.ndarray | None:
    """The names of a data frame's columns, where all are text."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = np.asarray(list(columns), dtype=object)
    return names if all(isinstance(name, str) for name in names) else None


def class_moments(rows: Rows, codes: IntArray, weight: Array, n_classes: int) -> ClassMoments:
    """Moments of rows of the classes 0, 1, ..., in one pass."""
    visit = partial(add_block, n_classes=n_classes)
    return rows.reduce_rows(visit, operator.add, (codes, weight))


def add_block(
    state: ClassMoments | None, block: Array, code: IntArray, weight: Array, n_classes: int
) -> ClassMoments:
    """Add the moments of a block of rows, each class centred before it is squared."""
    m = block.shape[1]
    counts, weights = np.zeros(n_classes, dtype=np.intp), np.zeros(n_classes)
    means, scatters = np.zeros((n_classes, m)), np.zeros((n_classes, m, m))
    for k in range(n_classes):
        inside = np.flatnonzero((code == k) & (weight > 0.0))
        if len(inside):
            # relative to its first row a constant column is exactly zero, and stays so
            part, w = block[inside] - block[inside[0]], weight[inside]
            counts[k], weights[k] = len(inside), w.sum()
            center = w @ part / weights[k]
            part -= center
            means[k] = block[inside[0]] + center
            part *= np.sqrt(w)[:, None]  # a matrix with itself: symmetric to the last bit
            scatters[k] = part.T @ part
    moments = ClassMoments(np.arange(n_classes), counts, weights, means, scatters)
    return moments if state is None else state + moments


class Sample(NamedTuple):
    """Class moments of all rows, and some of these with their classes and weights."""

    moments: ClassMoments
    columns: Array
    codes: IntArray
    weight: Array


def sample_rows(
    rows: Rows, codes: IntArray, weight: Array, n_classes: int, size: int,
    center: Array, inverse: Array, angle: Any,
) -> Sample:  # fmt: skip
    """Read class moments and about ``size`` rows, in one pass unless rows are equal.

    A class has an even share of these, or all its rows where they are fewer. A row is taken in
    proportion to its weight, equal rows as one, and by its content, not by its place: by the
    standardised features (``inverse`` is that of their scales) times the cosine of ``angle``.
    """
    counts = np.bincount(codes[weight > 0.0], minlength=n_classes)
    rate, left = np.full(n_classes, 1e150), size  # rows per weight
    for done, k in enumerate(np.argsort(counts, kind="stable")):
        quota = min(counts[k], left // (n_classes - done))
        left -= quota
        if quota < counts[k]:
            rate[k] = quota / weight[codes == k].sum()
    mix = np.cos(np.stack([angle, 1.0 + np.arange(len(angle))])) * inverse

    def taken(value: Array, code: IntArray, w: Array) -> Any:
        return (10.0 * value) % 1.0 < rate[code] * w

    def merge(a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1], a[2] + b[2]

    def visit(state: Any, block: Array, code: IntArray, w: Array) -> Any:
        v = mix @ (block - center).T
        new = add_block(None, block, code, w, n_classes), [v], [block[taken(v[0], code, w)]]
        return new if state is None else merge(state, new)

    moments, parts, blocks = rows.reduce_rows(visit, merge, (codes, weight))
    value, content = np.concatenate(parts, axis=1)
    sure = taken(value, codes, weight)  # taken whichever rows are equal
    order = np.lexsort((content, codes))
    order = order[weight[order] > 0.0]
    new = (np.diff(content[order]) > 1e-12) | (np.diff(codes[order]) > 0)
    start = np.flatnonzero(np.r_[True, new])
    total = np.add.reduceat(weight[order], start)
    one = np.maximum.reduceat(order + len(sure) * sure[order], start) % len(sure)
    kept = taken(value[one], codes[one], total)
    one, total = one[kept], total[kept]
    if not sure[one].all():
        sure = np.isin(np.arange(len(sure)), one)
        blocks = [rows.map_rows(lambda block, here: block[here], (sure,))]
    columns = np.concatenate(blocks)[np.cumsum(sure)[one] - 1]
    return Sample(moments, columns, codes[one], np.maximum(total, 1.0 / rate[codes[one]]))


def standardisation(
    center: Array, total: Array, standardize: bool, size: Any = 0.0
) -> tuple[Any, Array]:
    """Which features vary, and their scales, 1 for constant ones, from mean and variance.

    What rounding leaves is no spread; ``size`` is that of the values, where the mean hides it.
    """
    sd, limits = np.sqrt(total), np.finfo(np.float64)
    rounding = 16 * limits.eps * np.maximum(np.abs(center), size)
    varying = (sd > rounding) & (total >= limits.tiny)
    return varying, np.where(varying & standardize, sd, 1.0)
