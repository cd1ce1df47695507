"""What pictures of samples and features show, as plain numbers.

``Samples`` are the table as pictures take it; every function returns what JSON can hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse import issparse
from scipy.spatial.distance import squareform
from scipy.stats import false_discovery_control, ttest_ind_from_stats

from .._typing import Float64Array
from ..evaluation.cache import plain
from ..metrics.intervals import area_and_variance
from .words import MANY_CLASSES

Part = dict[str, Any]

MAX_POINTS = 600  # samples of a scatter plot
_MAX_ROWS, _MAX_COLUMNS = 40, 160  # features and samples of a heatmap
_MAX_OUTLIERS = 12  # points of a box plot
_NAMED = 60  # features of a volcano plot that are named when pointed at
_RASTER = (120, 80)  # of features that fall into one cell of a volcano plot one is kept
_CELLS = 16_000_000  # values that are made dense at a time
_GRID = np.linspace(0, 1, 101)  # false positive rates
_LIKE = 10.0  # columns are in one unit if their spreads differ by no more than this factor


def columns_of(frame: Any) -> dict[str, list[Any]] | None:
    """The columns of a data frame as lists; None without rows."""
    if frame is None or not len(frame):
        return None
    return {str(name): plain(frame[name].tolist()) for name in frame.columns}


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline, or the one that another model is."""
    return [step for _, step in getattr(model, "steps", [("", model)])]


def whole_counts(table: ArrayLike) -> list[list[int]]:
    """Round a table of mean counts to whole samples, every row to the sum it has."""
    means = np.asarray(table, dtype=np.float64)
    counts = np.floor(means + 1e-9).astype(int)
    left = np.rint(means.sum(axis=1)).astype(int) - counts.sum(axis=1)
    ranks = np.argsort(np.argsort(counts - means, axis=1, kind="stable"), axis=1)
    return (counts + (ranks < left[:, None])).tolist()


@dataclass(frozen=True)
class Samples:
    """A table and its classes; ``codes`` are the places of the samples' classes in ``classes``."""

    X: Any
    codes: NDArray[np.intp]
    classes: Sequence[str]
    features: Sequence[str]
    names: Sequence[str] | None = None
    positive: str | None = None

    def column(self, index: int) -> Float64Array:
        """One feature as dense numbers, NaN where it is missing."""
        values = self.X[:, [index]]
        values = values.toarray() if issparse(values) else np.asarray(values)
        values = values.ravel().astype(np.float64)
        return np.where(np.isfinite(values), values, np.nan)


def thin(codes: NDArray[np.intp], limit: int = MAX_POINTS) -> NDArray[np.intp]:
    """Choose at most ``limit`` rows, evenly spread over the rows of every class."""
    if codes.size <= limit:
        return np.arange(codes.size)
    kept, left = [], limit
    labels, counts = np.unique(codes, return_counts=True)
    for done, k in enumerate(np.argsort(counts, kind="stable")):
        rows = np.flatnonzero(codes == labels[k])
        share = min(rows.size, left // (labels.size - done))
        kept.append(rows[np.round(np.linspace(0, rows.size - 1, share)).astype(np.intp)])
        left -= share
    return np.sort(np.concatenate(kept))


def outcomes(samples: Samples, predictions: Any, rows: NDArray[np.intp]) -> Part:
    """Name, class and fate of some samples: what fits that had not seen them say.

    ``wrong`` is the share of repeats that predict the sample wrongly; ``probability`` the mean
    one of the positive class of two, of the sample's own class otherwise.
    """
    at = np.asarray(predictions["sample"], dtype=np.intp)
    missed = np.asarray(predictions["truth"]) != np.asarray(predictions["prediction"])
    columns = [f"probability_{label}" for label in samples.classes]
    own = np.full(at.size, np.nan)
    if all(name in predictions for name in columns):
        positive = samples.positive
        of = samples.codes[at] if positive is None else samples.classes.index(positive)
        own = predictions[columns].to_numpy(float)[np.arange(at.size), of]
    means = predictions.assign(wrong=missed, own=own).groupby("sample")[["wrong", "own"]].mean()
    means, names = means.reindex(rows), samples.names
    return {
        "name": [f"sample {i + 1}" if names is None else str(names[i]) for i in rows],
        "label": samples.codes[rows].tolist(),
        "wrong": means["wrong"].fillna(0.0).round(3).tolist(),
        "probability": [_rounded(share, 3) for share in means["own"]],
    }


def scatter(samples: Samples, evaluation: Any, panel: list[int], document: Part) -> Part | None:
    """The samples in the plane of two features, and the lines of a fit on these two alone.

    They are the panel of two of the ladder, or the first two of the panel and no lines. A line is
    ``weights[0] x + weights[1] y + intercept = 0``.
    """
    two = [rung["features"] for rung in document["ladder"] if rung["size"] == 2]
    pair = [row["index"] for row in two[0]] if two else panel[:2]
    model = steps_of(evaluation.models.get(2) if two else None)[-1]
    if len(pair) < 2:
        return None
    rows = thin(samples.codes)
    planes = getattr(model, "planes_", None)
    lines = []
    if planes is not None and planes.shape[1] == len(samples.features):
        lines = [
            {"label": str(label), "weights": plane[pair].tolist(), "intercept": float(b)}
            for label, plane, b in zip(model.classes_, planes, model.plane_intercepts_)
        ]
    x, y = (samples.column(f)[rows] for f in pair)
    known = np.isfinite(x + y)
    return {
        "features": [str(samples.features[f]) for f in pair],
        "x": _digits(x[known]),
        "y": _digits(y[known]),
        "lines": lines,
        "n_total": int(samples.codes.size),
        **outcomes(samples, evaluation.predictions, rows[known]),
    }


def heatmap(samples: Samples, evaluation: Any, panel: list[int], document: Part) -> Part | None:
    """The panel over the samples in standard deviations, both ordered by average linkage.

    Samples of many classes stand by class, the classes in the order of the confusion.
    """
    panel, order = panel[:_MAX_ROWS], document["confusion"]["order"]
    if not panel:
        return None
    rows = thin(samples.codes, _MAX_COLUMNS)
    Z = np.stack([_standardized(samples.column(j)) for j in panel])[:, rows]
    up, across = _alike(np.nan_to_num(Z)), _alike(np.nan_to_num(Z).T)
    if len(order) > MANY_CLASSES:
        across = across[np.argsort(np.argsort(order)[samples.codes[rows[across]]], kind="stable")]
    return {
        "feature": [str(samples.features[panel[i]]) for i in up],
        "values": [[_rounded(v, 2) for v in Z[i, across]] for i in up],
        "n_total": int(samples.codes.size),
        **outcomes(samples, evaluation.predictions, rows[across]),
    }


def _standardized(values: Float64Array) -> Float64Array:
    known = values[np.isfinite(values)]
    spread = known.std() if known.size else 0.0
    return (values - (known.mean() if known.size else 0.0)) / (spread or 1.0)


def _alike(Z: Float64Array) -> NDArray[np.intp]:
    """An order of rows in which those alike are neighbours."""
    return np.arange(len(Z)) if len(Z) < 3 else _leaves(Z)


def _leaves(data: Float64Array) -> NDArray[np.intp]:
    return leaves_list(linkage(data, "average", optimal_ordering=True)).astype(np.intp)


def order_of_classes(shares: Float64Array) -> list[int]:
    """Many classes so that those taken for each other are neighbours; few as they are."""
    if len(shares) <= MANY_CLASSES:
        return list(range(len(shares)))
    apart = 1.0 - (shares + shares.T) / 2
    np.fill_diagonal(apart, 0.0)
    return [int(k) for k in _leaves(squareform(apart))]


def roc_curves(samples: Samples, predictions: Any) -> list[Part]:
    """The ROC curve of each of a few classes against the rest, averaged over the folds."""
    from sklearn.metrics import roc_curve

    names = [f"decision_{label}" for label in samples.classes]
    if len(names) > MANY_CLASSES or not all(name in predictions for name in names):
        return []
    truth, curves = np.asarray(predictions["truth"], dtype=str), []
    folds = list(predictions.groupby(["repeat", "fold"]).indices.values())
    for label, name in zip(samples.classes, names):
        scores, mine = np.asarray(predictions[name], dtype=float), truth == label
        parts = [(mine[rows], scores[rows]) for rows in folds if 0 < mine[rows].mean() < 1]
        if parts:
            rates = np.mean([np.interp(_GRID, *roc_curve(*part)[:2]) for part in parts], axis=0)
            rates[0] = 0.0
            auc = float(np.mean([area_and_variance(*part)[0] for part in parts]))
            fpr, tpr = _GRID.tolist(), np.round(rates, 5).tolist()
            curves.append({"label": label, "fpr": fpr, "tpr": tpr, "area": auc})
    return curves


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def _digits(values: Float64Array) -> list[float]:
    """Five digits, which are more than a picture shows."""
    return [float(f"{v:.5g}") for v in values]


def describe_feature(samples: Samples, index: int) -> Part:
    """Values of one feature by class: box plots, effect sizes and its area under the ROC curve.

    An effect size is the mean of a class minus the mean of the other classes' means, in pooled
    within-class standard deviations (for two classes Cohen's d).
    """
    values = samples.column(index)
    parts = [
        values[(samples.codes == k) & np.isfinite(values)] for k in range(len(samples.classes))
    ]
    effects = _effects(parts)
    highest = max(effects, key=lambda e: -math.inf if e is None else e)
    return {
        "feature": str(samples.features[index]),
        "index": int(index),
        "effects": effects,
        "higher_in": None if highest is None else samples.classes[effects.index(highest)],
        "auc": _area(values, samples.codes) if len(parts) == 2 else None,
        "boxes": [_box(part, str(c)) for part, c in zip(parts, samples.classes) if part.size],
    }


def _box(values: Float64Array, label: str) -> Part:
    """Quartiles, whiskers to 1.5 times the box, and the most extreme values beyond them."""
    x = np.sort(values)
    q1, median, q3 = (float(v) for v in np.quantile(x, [0.25, 0.5, 0.75]))
    reach = 1.5 * (q3 - q1)
    inside = x[(x >= q1 - reach) & (x <= q3 + reach)]
    below, above = x[x < q1 - reach], x[x > q3 + reach]
    half = _MAX_OUTLIERS // 2
    return {
        "label": label,
        "n": int(x.size),
        "low": float(inside[0]),
        "q1": q1,
        "median": median,
        "q3": q3,
        "high": float(inside[-1]),
        "mean": float(x.mean()),
        "positive": float((x > 0).mean()),
        "outliers": [*below[:half].tolist(), *above[-half:].tolist()],
        "n_outliers": int(below.size + above.size),
    }


def _effects(parts: Sequence[Float64Array]) -> list[float | None]:
    n = len(parts)
    freedom = sum(part.size for part in parts) - n
    if any(part.size == 0 for part in parts) or freedom < 1:
        return [None] * n
    means = np.array([part.mean() for part in parts])
    spread = np.sqrt(sum(float(((part - part.mean()) ** 2).sum()) for part in parts) / freedom)
    if spread <= 1e-12 * np.abs(means).max():  # only rounding is left
        return [None] * n
    others = (means.sum() - means) / (n - 1)
    return [float(v) for v in (means - others) / spread]


def _area(values: Float64Array, codes: NDArray[np.intp]) -> float | None:
    """Area under the ROC curve of one feature alone, in its better direction."""
    known = np.isfinite(values)
    if np.unique(codes[known]).size < 2:
        return None
    auc = area_and_variance(codes[known] == 1, values[known])[0]
    return max(auc, 1.0 - auc)


def volcano(samples: Samples, _: Any, panel: list[int], document: Part) -> Part | None:
    """Every feature's difference between two classes against its q-value.

    Welch's t test on all samples, adjusted by Benjamini and Hochberg. Differences are in the
    units of the table where the columns are spread alike, else in within-class standard
    deviations. Where many features fall on one place one is listed; those of the panel all are.
    """
    if len(samples.classes) != 2:
        return None
    positive = 0 if samples.positive == samples.classes[0] else 1
    counts, means, squares = _moments(samples)
    within = np.sqrt(squares.sum(axis=0) / np.maximum(counts.sum(axis=0) - 2, 1))
    varies = (counts >= 2).all(axis=0) & (within > 1e-12 * np.abs(means).max(axis=0))
    kept = np.flatnonzero(varies)
    if not kept.size:
        return None
    spreads = np.sqrt(squares / np.maximum(counts - 1, 1))
    stats = [part[k, kept] for k in (0, 1) for part in (means, spreads, counts)]
    p = ttest_ind_from_stats(*stats, equal_var=False).pvalue
    difference = means[positive, kept] - means[1 - positive, kept]
    q = np.maximum(false_discovery_control(p), 1e-300)
    low, high = np.quantile(within[kept], [0.1, 0.9])
    alike = bool(high <= _LIKE * low)
    x = difference if alike else difference / within[kept]
    mine = np.isin(kept, panel)
    first = np.argsort(q, kind="stable")
    shown = _apart(x, -np.log10(q), mine, first[:_NAMED])
    shown = shown[np.argsort(q[shown], kind="stable")]
    return {
        "feature": [str(samples.features[j]) for j in kept[shown]],
        "difference": _digits(x[shown]),
        "p": _digits(p[shown]),
        "q": _digits(q[shown]),
        "in_panel": mine[shown].tolist(),
        "positive": str(samples.classes[positive]),
        "other": str(samples.classes[1 - positive]),
        "standardized": not alike,
        "n_total": int(kept.size),
        "n_below": int((q <= 0.05).sum()),
    }


def _moments(samples: Samples) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Known values, their mean and squared deviations, of each feature in each class."""
    shape = (len(samples.classes), samples.X.shape[1])
    counts, means, squares = (np.zeros(shape) for _ in range(3))
    step = max(1, _CELLS // max(samples.codes.size, 1))  # never a dense copy of the table
    for start in range(0, shape[1], step):
        here = slice(start, start + step)
        block = samples.X[:, here]
        block = block.toarray() if issparse(block) else np.asarray(block)
        for k in range(shape[0]):
            rows = block[samples.codes == k].astype(np.float64)
            known = np.isfinite(rows)
            counts[k, here] = known.sum(axis=0)
            n = np.maximum(counts[k, here], 1)
            means[k, here] = np.where(known, rows, 0.0).sum(axis=0) / n
            squares[k, here] = (np.where(known, rows - means[k, here], 0.0) ** 2).sum(axis=0)
    return counts, means, squares


def _apart(
    x: Float64Array, y: Float64Array, always: NDArray[np.bool_], top: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The points that can be told apart in a picture: the first of each cell of a raster."""
    cells = np.zeros(x.size, dtype=np.int64)
    for values, n in zip((x, y), _RASTER):
        span = np.ptp(values) or 1.0
        cells = cells * (n + 1) + np.floor(n * (values - values.min()) / span).astype(np.int64)
    first = np.unique(cells, return_index=True)[1]
    return np.union1d(first, np.union1d(np.flatnonzero(always), top)).astype(np.intp)
