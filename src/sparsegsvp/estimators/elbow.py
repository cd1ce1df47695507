"""The elbow: where a curve of sorted weights stops falling steeply."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validate import check_choice

ElbowRule = Literal["chord", "full-chord"]

# A straight line of n points departs from its chord by rounding only; relative to the fall
# of the curve that is far below this.
_STRAIGHT = 1e-12


def find_elbow(weights: ArrayLike, *, rule: ElbowRule = "chord") -> int | None:
    r"""Find how many of the largest weights lie up to the elbow of the sorted curve.

    Sort :math:`|w|` in descending order, :math:`s_0 \ge s_1 \ge \dots`, and join the first
    and the last point by a chord. The elbow is the point with the largest distance to it,
    the first one if several share it, and every point up to and including it is kept.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
    rule : {"chord", "full-chord"}, default="chord"
        "chord" first removes a constant head and tail, all but the point next to the curve,
        so a long tail of zeros does not flatten the chord. This is what the paper's
        knee-finding library does. "full-chord" joins the very first and the very last point,
        which is what the paper's text says.

    Returns
    -------
    int or None
        The number of weights kept, or None where the curve has no elbow: fewer than three
        points left, a constant curve, or a straight one.

    References
    ----------
    U. O. Ugwu and M. Kirby, Optimizing Sparse Generalized Singular Vectors for Feature
    Selection in Proximal Support Vector Machines with Application to Breast and Ovarian
    Cancer Detection, arXiv:2410.03978 (2024), Algorithm 3.

    Examples
    --------
    >>> from sparsegsvp.estimators.elbow import find_elbow
    >>> find_elbow([0.1, -9.0, 8.0, 0.3, 0.2])
    3
    >>> find_elbow([4.0, 3.0, 2.0, 1.0]) is None
    True
    """
    check_choice("rule", rule, get_args(ElbowRule))
    curve = np.sort(_magnitudes(weights))[::-1]
    first, last = 0, curve.size - 1
    if rule == "chord":
        first = int(np.flatnonzero(curve == curve[0])[-1])
        last = int(np.flatnonzero(curve == curve[-1])[0])
    fall = curve[first] - curve[last]
    if last - first < 2 or fall == 0.0:
        return None
    # The vertical distance to the chord is the true one times a constant.
    position = np.arange(last - first + 1) / (last - first)
    distance = np.abs((curve[first : last + 1] - curve[first]) / fall + position)
    # Up to rounding, equal distances are ties, and the first of them wins.
    largest = distance.max()
    if largest <= _STRAIGHT:
        return None
    return first + int(np.argmax(distance >= largest * (1.0 - _STRAIGHT))) + 1


def elbow_features(weights: ArrayLike, *, rule: ElbowRule = "chord") -> NDArray[np.intp]:
    """Return the features up to the elbow, the heaviest first.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
    rule : {"chord", "full-chord"}, default="chord"
        See `find_elbow`.

    Returns
    -------
    ndarray of int
        Indices in descending order of magnitude, the lower index first among equals. Where
        there is no elbow, all features whose weight is not zero; a zero is never selected.

    Examples
    --------
    >>> from sparsegsvp.estimators.elbow import elbow_features
    >>> elbow_features([0.1, -9.0, 8.0, 0.0, 0.0])
    array([1, 2, 0])
    >>> elbow_features([0.0, 1.0, 0.0])
    array([1])
    """
    magnitudes = _magnitudes(weights)
    order = np.argsort(-magnitudes, kind="stable")
    kept = find_elbow(magnitudes, rule=rule)
    order = order if kept is None else order[:kept]
    return order[magnitudes[order] > 0.0]


def _magnitudes(weights: ArrayLike) -> NDArray[np.float64]:
    magnitudes = np.abs(np.asarray(weights, dtype=np.float64))
    if magnitudes.ndim != 1 or magnitudes.size == 0:
        raise ValueError(f"weights must be one non-empty row of numbers, got {magnitudes.shape}.")
    if not np.isfinite(magnitudes).all():
        raise ValueError("weights hold NaN or infinity.")
    return magnitudes
