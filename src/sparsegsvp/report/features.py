"""Features one by one: the panel described, and what pictures of features show."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.stats import false_discovery_control
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from .._typing import Float64Array
from ..estimators.pipeline import last_step
from ..evaluation import find_substitutes
from ..evaluation.substitutes import group_frequency, within_class_scores
from ..linalg.matrix import dense
from .figures import FigureData, SampleTable
from .projections import sample_names, sample_outcomes, thin

_MAX_OUTLIERS = 12
_MAX_ROWS = 40  # features of a heatmap
_MAX_COLUMNS = 160  # samples of a heatmap
_MAX_CORRELATED = 36
_NAMED = 60  # features of a volcano that are named when pointed at
_RASTER = (120, 80)  # features of a volcano that fall into one cell are drawn once
_BLOCK = 1024
# Columns count as measured in one unit if their spreads differ by no more than this factor.
_LIKE = 10.0

# --------------------------------------------------------------------------- one feature


def column(X: Any, index: int) -> Float64Array:
    """One column of a dense or sparse table, as dense numbers."""
    return dense(X[:, [index]]).ravel().astype(np.float64)


def boxes_by_class(
    values: Float64Array, codes: NDArray[np.intp], classes: Sequence[str]
) -> list[FigureData]:
    """The box plots of one feature by class, without classes that have no value."""
    found = (box(values[codes == k], name) for k, name in enumerate(classes))
    return [part for part in found if part is not None]


def box(values: Float64Array, label: str) -> FigureData | None:
    """The numbers of a box plot: quartiles, whiskers to 1.5 times the box, and outliers.

    Missing values are left out; None when nothing is left. At most 12 outliers are listed, the
    most extreme on either side; ``n_outliers`` counts all.
    """
    x = np.sort(values[np.isfinite(values)])
    if not x.size:
        return None
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
        "outliers": [*below[:half].tolist(), *above[-half:].tolist()],
        "n_outliers": int(below.size + above.size),
    }


def effect_sizes(
    values: Float64Array, codes: NDArray[np.intp], n_classes: int
) -> list[float | None]:
    """The standardised mean difference of each class to the others (for two: Cohen's d).

    The mean of a class minus the mean of the other class means, divided by the pooled
    within-class standard deviation, without missing values. None where that deviation is zero
    or a class is empty.
    """
    parts = [values[(codes == k) & np.isfinite(values)] for k in range(n_classes)]
    if any(part.size == 0 for part in parts):
        return [None] * n_classes
    means = np.array([part.mean() for part in parts])
    freedom = sum(part.size for part in parts) - n_classes
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    spread = np.sqrt(squares / max(freedom, 1))
    if freedom < 1 or spread <= 1e-12 * np.abs(means).max():  # only rounding is left
        return [None] * n_classes
    others = (means.sum() - means) / (n_classes - 1)
    return [float(v) for v in (means - others) / spread]


def single_auc(values: Float64Array, codes: NDArray[np.intp], n_classes: int) -> float | None:
    """The area under the ROC curve of one feature alone, in its better direction.

    None unless there are two classes with values in both.
    """
    known = np.isfinite(values)
    if n_classes != 2 or np.unique(codes[known]).size < 2:
        return None
    area = float(roc_auc_score(codes[known] == 1, values[known]))
    return max(area, 1.0 - area)


# ----------------------------------------------------------------------------- the panel


def samples_of(table: Any, model: Any) -> SampleTable:
    """The samples of a table, with the classes that a model was fitted on.

    Of two classes the positive one is the table's, or the last.
    """
    known = last_step(model).classes_
    codes = np.searchsorted(known, np.asarray(table.y)).astype(np.intp)
    classes, positive = [str(c) for c in known.tolist()], None
    if len(classes) == 2:
        given = getattr(table, "positive", None)
        positive = str(getattr(table, "positive_class", classes[-1]) if given is None else given)
    ids = getattr(table, "sample_names", None)
    return SampleTable(table.X, codes, classes, table.feature_names, ids, positive)


def describe_panel(table: Any, model: Any) -> list[FigureData]:
    """Describe each selected feature by weight, effect and values, the heaviest first.

    How often it is chosen again, and what stands in for it, is added by `summarize`.

    Parameters
    ----------
    table : object
        As for `summarize`.
    model : GSVPSVMCV or Pipeline that ends in one

    Returns
    -------
    list of dict
        Each a ``Feature`` of `sparsegsvp.report.schema.DOCUMENT`.
    """
    final, samples = last_step(model), samples_of(table, model)
    classes, codes = samples.classes, samples.codes
    support = np.flatnonzero(final.support_)
    inner_X = _seen_by_the_planes(model, table.X)
    # a plane has the other classes on its positive side: turned round, a weight is positive
    # where larger values speak for the class
    weights = -np.array(final.coef_[:, support])
    if final.standardize and support.size:
        weights *= np.array([np.nanstd(column(inner_X, int(j))) for j in support])
        norms = np.linalg.norm(weights, axis=1, keepdims=True)
        weights /= np.where(norms > 0.0, norms, 1.0)
    listing = []
    for rank, i in enumerate(np.argsort(-np.abs(weights).max(axis=0, initial=0.0), kind="stable")):
        j = int(support[i])
        values = column(table.X, j)
        effects = effect_sizes(values, codes, len(classes))
        above = [-1.0 if effect is None else effect for effect in effects]
        listing.append(
            {
                "feature": str(table.feature_names[j]),
                "index": j,
                "rank": rank + 1,
                "weights": weights[:, i].tolist(),
                "coefficients": final.coef_[:, j].tolist(),
                "effects": effects,
                "higher_in": classes[int(np.argmax(above))] if max(above) > 0 else None,
                "auc": single_auc(values, codes, len(classes)),
                "frequency": None,
                "group_frequency": None,
                "substitutes": [],
                "boxes": boxes_by_class(values, codes, classes),
            }
        )
    return listing


def _seen_by_the_planes(model: Any, X: Any) -> Any:
    """Return the table as the last step of a pipeline saw it."""
    if not hasattr(model, "steps") or len(model.steps) == 1:
        return X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a model that knows names is given none
        inner = model[:-1].transform(X)
    if inner.shape[1] != X.shape[1]:
        raise ValueError(
            "the steps before the estimator must keep the columns, but they turn "
            f"{X.shape[1]} into {inner.shape[1]}."
        )
    return inner


def with_frequencies(
    panel: list[FigureData],
    samples: SampleTable,
    selections: NDArray[np.bool_] | None,
    stability: Any,
) -> list[FigureData]:
    """Add how often refits chose each feature, and which others stand in for it."""
    if selections is None:
        return panel
    if stability is None:
        substitutes = find_substitutes(samples.X, samples.codes, selections)
    else:
        substitutes = stability.substitutes_
    rows = []
    for row in panel:
        others = substitutes.get(row["index"], ())
        added = {
            "frequency": float(selections[:, row["index"]].mean()),
            "group_frequency": group_frequency(selections, row["index"], others),
            "substitutes": [
                {
                    "feature": str(samples.names[other.feature]),
                    "index": other.feature,
                    "correlation": other.correlation,
                    "frequency": other.frequency,
                }
                for other in others
            ],
        }
        rows.append({**row, **added})
    return rows


# -------------------------------------------------------------------------- all features


def volcano(samples: SampleTable, panel: Sequence[int]) -> FigureData | None:
    """Every feature's difference between two classes against its q-value.

    Welch's t test on all samples, adjusted for the number of features by Benjamini and
    Hochberg. Differences are in the units of the table where the columns are spread alike, and
    in within-class standard deviations otherwise. Where many features fall on one place only the
    first is listed; those of ``panel`` always are.

    None with more than two classes, or where no feature varies.
    """
    classes = samples.classes
    if len(classes) != 2:
        return None
    one = 0 if samples.positive == classes[0] else 1
    counts, means, squares = _moments_of_two(samples.X, samples.codes)
    freedom = np.maximum(counts - 1, 1)
    error = squares / freedom / np.maximum(counts, 1)  # variance of each mean
    within = np.sqrt(squares.sum(axis=0) / np.maximum(counts.sum(axis=0) - 2, 1))
    varies = (counts >= 2).all(axis=0) & (within > 1e-12 * np.abs(means).max(axis=0))
    kept = np.flatnonzero(varies)
    if not kept.size:
        return None
    difference = means[one, kept] - means[1 - one, kept]
    error, spread = error[:, kept], within[kept]
    both = error.sum(axis=0)
    degrees = both**2 / (error**2 / freedom[:, kept]).sum(axis=0)
    p = 2 * student.sf(np.abs(difference) / np.sqrt(both), degrees)
    q = np.maximum(false_discovery_control(p), 1e-300)
    low, high = np.quantile(spread, [0.1, 0.9])
    alike = bool(high <= _LIKE * low)
    x = difference if alike else difference / spread
    mine = np.isin(kept, panel)
    shown = _apart(x, -np.log10(q), mine, np.argsort(q, kind="stable")[:_NAMED])
    shown = shown[np.argsort(q[shown], kind="stable")]
    return {
        "feature": [str(samples.names[j]) for j in kept[shown]],
        "difference": x[shown].tolist(),
        "p": p[shown].tolist(),
        "q": q[shown].tolist(),
        "in_panel": mine[shown].tolist(),
        "higher_in": [str(classes[one if d > 0 else 1 - one]) for d in x[shown]],
        "contrast": f"{classes[one]} − {classes[1 - one]}",
        "unit": "units of the table" if alike else "within-class standard deviations",
        "n_total": int(kept.size),
        "n_below": int((q <= 0.05).sum()),
    }


def _moments_of_two(
    X: Any, codes: NDArray[np.intp]
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Known values, their mean and squared deviations from it, of each feature in two classes."""
    counts, means, squares = (np.zeros((2, X.shape[1])) for _ in range(3))
    for start in range(0, X.shape[1], _BLOCK):  # never a dense copy of the table
        here = slice(start, start + _BLOCK)
        block = dense(X[:, here])
        for k in (0, 1):
            rows = np.asarray(block[codes == k], dtype=np.float64)
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


# -------------------------------------------------------- the panel over samples and features


def heatmap(
    samples: SampleTable, panel: Sequence[int], evaluation: Mapping[str, Any] | None = None
) -> FigureData | None:
    """The panel's values over the samples, both put beside what is like them.

    Values are in standard deviations from the mean of all samples. Rows and columns are ordered
    by average linkage; of many samples some of every class are shown. With an ``evaluation`` the
    samples that its first repeat predicts wrongly are marked. None without a panel.
    """
    panel = list(panel)[:_MAX_ROWS]
    if not panel:
        return None
    rows = thin(samples.codes, _MAX_COLUMNS)
    Z = np.stack([column(samples.X, j) for j in panel])
    Z[~np.isfinite(Z)] = np.nan
    empty = np.isnan(Z).all(axis=1)
    Z[empty] = 0.0
    spread = np.nanstd(Z, axis=1, keepdims=True)
    Z = (Z - np.nanmean(Z, axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    Z = Z[:, rows]
    known = np.nan_to_num(Z)
    up, across = _alike(known), _alike(known.T)
    rows = rows[across]
    return {
        "feature": [str(samples.names[panel[i]]) for i in up],
        "values": [[None if np.isnan(v) else round(float(v), 3) for v in Z[i, across]] for i in up],
        "name": sample_names(samples.ids, rows),
        **sample_outcomes(evaluation, samples.codes, rows, samples.positive),
        "classes": [str(c) for c in samples.classes],
        "n_total": int(samples.codes.size),
    }


def _alike(Z: Float64Array) -> NDArray[np.intp]:
    """An order of rows in which those alike are neighbours."""
    if len(Z) < 3:
        return np.arange(len(Z))
    return leaves_list(linkage(Z, "average", optimal_ordering=True)).astype(np.intp)


def correlations(samples: SampleTable, panel: Sequence[Mapping[str, Any]]) -> FigureData | None:
    """Pooled within-class correlations of the panel and what stands in for its features.

    ``panel`` are rows of the document: each feature is followed by its three most frequent
    substitutes. None with fewer than two features.
    """
    shown = panel[:_MAX_CORRELATED]
    mine, room = {row["index"] for row in shown}, _MAX_CORRELATED - len(shown)
    near: dict[int, str | None] = {}
    for row in shown:
        near[row["index"]] = None
        for other in row["substitutes"][:3]:
            if room and other["index"] not in mine | near.keys():
                near[other["index"]] = str(row["feature"])
                room -= 1
    if len(near) < 2:
        return None
    columns = np.array(list(near), dtype=np.intp)
    scores = within_class_scores(samples.X, samples.codes, columns)
    return {
        "feature": [str(samples.names[j]) for j in near],
        "stands_for": list(near.values()),
        "values": np.clip(scores.T @ scores, -1.0, 1.0).round(4).tolist(),
    }
