"""Decisions on a panel: from distances to the planes, or linear in the panel's columns."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

from .._typing import Float64Array, IntArray
from ..linalg.moments import ClassMoments, add_block
from ..linalg.rows import Rows

DECISIONS = ("logistic", "discriminant", "calibrated", "scaled", "distance")
#: Decisions that are linear in the panel's columns.
LINEAR = ("logistic", "discriminant")
#: Decisions that have probabilities.
PROBABILISTIC = ("logistic", "discriminant", "calibrated")
#: Rows that a logistic regression is fitted on, at most.
SAMPLE = 20_000

# Scaled distances below this are all "on the plane"; their logarithm must not run away.
_FLOOR = 0.05
# Inverse strength of the ridge, for two classes and for more (docs/panels.md).
_STRENGTH_PAIR, _STRENGTH_MANY = 0.3, 1.0
# Coefficients up to which the matrix of second derivatives is formed, which is exact and fast.
_FEW = 400


def log_distances(distances: Float64Array, scale: Float64Array) -> Float64Array:
    """Logarithm of each scaled distance, smoothly floored."""
    return np.log(np.hypot(distances / scale, _FLOOR))


def fit_logistic(
    features: Float64Array,
    codes: IntArray,
    n_classes: int,
    weight: Float64Array,
    n_samples: int,
) -> tuple[Float64Array, Float64Array]:
    """Coefficients and intercepts of a ridge logistic regression on standardised features.

    Every class counts the same, so probabilities are for equal priors, and all of them together
    as ``n_samples`` rows, so that the scale of the weights and repeated rows change nothing.
    For two classes one row, positive for the second; else one row a class.
    """
    totals = np.bincount(codes, weight, minlength=n_classes)
    balanced = weight * n_samples / (n_classes * totals[codes])
    few = features.shape[1] * (1 if n_classes == 2 else n_classes) <= _FEW
    model = LogisticRegression(
        C=_STRENGTH_PAIR if n_classes == 2 else _STRENGTH_MANY,
        solver="newton-cholesky" if few else "lbfgs",
        tol=1e-8 if few else 1e-5,
        max_iter=200 if few else 500,
    )
    with config_context(skip_parameter_validation=True, assume_finite=True):
        model.fit(features, codes, sample_weight=balanced)
    return model.coef_, model.intercept_


def read_panel(
    rows: Rows,
    codes: IntArray,
    weight: Float64Array,
    n_classes: int,
    size: int,
    center: Float64Array,
    mix: Float64Array,
) -> tuple[ClassMoments, Float64Array, IntArray, Float64Array]:
    """Class moments of a panel's columns, and rows to fit a decision on, from one pass.

    Of at most ``size`` rows there are as many of each class as there are or an even share:
    decisions weigh the classes evenly, so a rare class is worth keeping whole. Rows go by the
    product of ``x - center`` with ``mix``, so by what is in them and not by their place.
    """
    counts = np.bincount(codes[weight > 0.0], minlength=n_classes)
    quota, left = np.zeros(n_classes, dtype=int), size
    for done, k in enumerate(np.argsort(counts, kind="stable")):
        quota[k] = min(counts[k], left // (n_classes - done))
        left -= quota[k]

    def merge(*states: Any) -> Any:
        moments, *sample = zip(*states)
        columns, code, w = map(np.concatenate, sample)
        if quota.sum() < counts.sum():
            value = np.round((columns - center) @ mix, 10)
            order = np.lexsort((value, (1e6 * value) % 1.0, code))
            ranked = code[order]
            order = order[np.arange(len(order)) - np.searchsorted(ranked, ranked) < quota[ranked]]
            columns, code, w = columns[order], code[order], w[order]
        return reduce(add, moments), columns, code, w

    def visit(state: Any, block: Float64Array, code: IntArray, w: Float64Array) -> Any:
        there = w > 0.0
        part = add_block(None, block, code, w, n_classes), block[there], code[there], w[there]
        return merge(part) if state is None else merge(state, part)

    return rows.reduce_rows(visit, merge, (codes, weight))


def margins(scores: Float64Array) -> Float64Array:
    """scikit-learn's form of scores: for two classes the lead of the second, else all columns."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def winners(decision: Float64Array) -> IntArray:
    """The index of the class that wins, from scores in scikit-learn's form."""
    return (decision > 0.0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)


def probabilities(decision: Float64Array) -> Float64Array:
    """Probabilities of log odds in scikit-learn's form, one column per class."""
    if decision.ndim == 1:
        return np.column_stack([expit(-decision), expit(decision)])
    return softmax(decision, axis=1)
