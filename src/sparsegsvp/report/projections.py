"""Samples in a plane: the distances to two planes, and principal components.

Drawn from training samples, noise looks separated too; so whatever depends on labels is
drawn from fits that did not see the sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, orthogonal_procrustes

from .._typing import Float64Array
from ..linalg.matrix import dense
from .figures import FigureData, SampleTable

#: More samples than this are thinned, the same number per class.
MAX_POINTS = 1200
_BLOCK = 1024


def thin(codes: NDArray[np.intp], limit: int = MAX_POINTS) -> NDArray[np.intp]:
    """Choose at most ``limit`` rows, evenly spread over the rows of every class."""
    if codes.size <= limit:
        return np.arange(codes.size)
    kept = []
    labels, counts = np.unique(codes, return_counts=True)
    left = limit
    for done, k in enumerate(np.argsort(counts, kind="stable")):
        rows = np.flatnonzero(codes == labels[k])
        share = min(rows.size, left // (labels.size - done))
        at = np.round(np.linspace(0, rows.size - 1, share)).astype(np.intp)
        kept.append(rows[at])
        left -= share
    return np.sort(np.concatenate(kept))


def sample_outcomes(
    evaluation: Mapping[str, Any] | None,
    codes: NDArray[np.intp],
    rows: NDArray[np.intp],
    positive: str | None = None,
) -> FigureData:
    """Class codes of some samples, and what the first repeat's fits without them say of each.

    ``wrong`` is false where nothing is known; ``probability`` is that of the positive class of
    two, of the sample's own class otherwise, None where there is none.
    """
    wrong, probability = np.zeros(codes.size, dtype=bool), [None] * codes.size
    if evaluation is not None and evaluation["out_of_fold"]:
        first = evaluation["out_of_fold"][0]
        predicted = np.asarray(first["predicted"])
        wrong = (predicted >= 0) & (predicted != codes)
        if first.get("proba") is not None:
            classes = [str(c) for c in evaluation["classes"]]
            positive = str(evaluation["positive"]) if len(classes) == 2 else None
            of = codes if positive is None else np.full(codes.size, classes.index(positive))
            probability = [row[k] for row, k in zip(first["proba"], of)]
    return {
        "label": codes[rows].tolist(),
        "wrong": wrong[rows].tolist(),
        "probability": [probability[i] for i in rows],
        "positive": positive,
    }


def sample_names(names: Sequence[str] | None, rows: NDArray[np.intp]) -> list[str]:
    """The names of some samples, or their places in the table."""
    return [f"sample {i + 1}" if names is None else str(names[i]) for i in rows]


def planes(
    evaluation: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    pair: tuple[int, int] = (0, 1),
) -> FigureData | None:
    """Out-of-fold samples in the plane of their distances to two of the planes.

    Absolute distances in standardised units, first repeat; None where the procedure has no
    planes. ``pair`` are the classes whose planes span the picture.
    """
    if not evaluation["out_of_fold"] or evaluation["out_of_fold"][0].get("distances") is None:
        return None
    classes = evaluation["classes"]
    nowhere = [float("nan")] * len(classes)
    found = evaluation["out_of_fold"][0]["distances"]
    distances = np.array([nowhere if d is None or None in d else d for d in found], dtype=float)
    return _scatter(
        np.abs(distances[:, list(pair)]),
        evaluation["y"],
        evaluation,
        classes,
        names,
        titles=[f"distance to the plane of {classes[k]}" for k in pair],
        note="Each sample is placed by a fit that did not see it (first repeat of the outer "
        "folds). A sample near one plane and far from the other belongs to the first.",
    )


def pca_before(samples: SampleTable, evaluation: Mapping[str, Any] | None = None) -> FigureData:
    """First two principal components of all standardised features; labels play no part.

    Missing values are set to the median of their column. An ``evaluation`` tells the samples'
    probabilities; which of them are predicted wrongly is not shown here.
    """
    X, codes = samples.X, samples.codes
    rows = thin(codes)
    gram = np.zeros((rows.size, rows.size))
    for start in range(0, X.shape[1], _BLOCK):  # never a standardised copy of the table
        block = X[:, start : start + _BLOCK]
        Z = _standardized(block, rows)
        gram += Z @ Z.T
    values, vectors = eigh(gram, subset_by_index=_last_two(rows.size))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    scores = np.full((codes.size, 2), np.nan)
    scores[rows] = 0.0
    scores[np.ix_(rows, np.arange(vectors.shape[1]))] = _signed(vectors * np.sqrt(values))
    total = float(np.trace(gram)) or 1.0
    shares = [*(values / total), 0.0][:2]
    shown = _scatter(
        scores,
        codes,
        evaluation,
        samples.classes,
        samples.ids,
        titles=[f"PC1 ({shares[0]:.0%} of variance)", f"PC2 ({shares[1]:.0%})"],
        note=f"All {X.shape[1]:,} features, standardised; the labels only colour the points.",
    )
    return shown | {"wrong": [False] * rows.size, "n_total": codes.size}


def pca_after(
    X: Any, evaluation: Mapping[str, Any], names: Sequence[str] | None = None
) -> FigureData | None:
    """First two principal components of the panels, each sample placed by an unseeing fit.

    In every fold of the first repeat the components of the fold's own panel come from the
    training part, and the test samples are projected on them. Components of different folds
    agree only up to a rotation, which is found on the training rows they share.

    None where a fold has no panel.
    """
    folds = [f for f in evaluation["folds"] if f["repeat"] == evaluation["folds"][0]["repeat"]]
    if any(not f["panel"] for f in folds):
        return None
    n = int(evaluation["n_samples"])
    scores = np.full((n, 2), np.nan)
    reference: tuple[NDArray[np.bool_], Float64Array] | None = None
    for fold in folds:
        test = np.asarray(fold["test"], dtype=np.intp)
        train = np.ones(n, dtype=bool)
        train[test] = False
        Z = _standardized(X[:, np.asarray(fold["panel"], dtype=np.intp)], None, fit=train)
        _, vectors = eigh(Z[train].T @ Z[train], subset_by_index=_last_two(Z.shape[1]))
        all_scores = np.zeros((n, 2))
        all_scores[:, : vectors.shape[1]] = Z @ vectors[:, ::-1]
        if reference is None:
            all_scores = _signed(all_scores)
            reference = (train, all_scores)
        else:
            shared = train & reference[0]
            rotation, _ = orthogonal_procrustes(all_scores[shared], reference[1][shared])
            all_scores = all_scores @ rotation
        scores[test] = all_scores[test]
    return _scatter(
        scores,
        evaluation["y"],
        evaluation,
        evaluation["classes"],
        names,
        titles=["PC1 of the panel", "PC2 of the panel"],
        note="Selected features only. Panel and components come from the training part of each "
        "outer fold, and the samples shown were not in it.",
    )


def _last_two(size: int) -> list[int]:
    return [max(0, size - 2), size - 1]


def _signed(scores: Float64Array) -> Float64Array:
    """Fix the sign of each component, so that equal data give equal pictures."""
    size = np.abs(scores)
    # the first large score, not the largest: two of nearly equal size must not swap the sign
    first = np.argmax(size >= 0.5 * size.max(axis=0), axis=0)
    return scores * np.where(scores[first, np.arange(scores.shape[1])] < 0.0, -1.0, 1.0)


def _standardized(
    block: Any, rows: NDArray[np.intp] | None, fit: NDArray[np.bool_] | None = None
) -> Float64Array:
    """Dense columns, medians for missing values, scaled by the rows they are fitted on."""
    columns = dense(block)
    Z = np.array(columns if rows is None else columns[rows], dtype=np.float64)
    base = Z if fit is None else Z[fit]
    missing = ~np.isfinite(Z)
    if missing.any():
        known = np.where(np.isfinite(base), base, np.nan)
        empty = np.isnan(known).all(axis=0)
        known[:, empty] = 0.0
        Z = np.where(missing, np.nanmedian(known, axis=0), Z)
        base = Z if fit is None else Z[fit]
    mean, spread = base.mean(axis=0), base.std(axis=0)
    constant = spread <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return (Z - mean) * np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))


def _scatter(
    points: Float64Array,
    y: ArrayLike,
    evaluation: Mapping[str, Any] | None,
    classes: Sequence[str],
    names: Sequence[str] | None,
    *,
    titles: Sequence[str],
    note: str,
) -> FigureData:
    """Thin the samples that have a place, and name them."""
    codes = np.asarray(y, dtype=np.intp)
    placed = np.flatnonzero(np.isfinite(points).all(axis=1))
    rows = placed[thin(codes[placed])]
    return {
        "x": points[rows, 0].tolist(),
        "y": points[rows, 1].tolist(),
        **sample_outcomes(evaluation, codes, rows),
        "name": sample_names(names, rows),
        "classes": [str(c) for c in classes],
        "x_title": titles[0],
        "y_title": titles[1],
        "n_total": placed.size,
        "note": note,
    }
