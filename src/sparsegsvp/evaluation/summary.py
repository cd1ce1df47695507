"""Sums over the outer folds: scores with intervals, panels, the control, and the notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

import numpy as np

from .._notices import Notice
from .._typing import Float64Array, IntArray
from ..metrics import (
    CalibrationCurve,
    Interval,
    StabilityIndex,
    average_jaccard,
    balanced_calibration_curve,
)
from .folds import Fold, holdout_ratio
from .intervals import auc_interval, corrected_interval, rate_interval
from .panels import panel_stability
from .permutation import FEWEST_DRAWS, PermutationResult, verdict
from .result import FoldResult
from .scores import BOUNDS, area_variance


def aggregate_scores(
    folds: tuple[FoldResult, ...],
    splits: list[Fold],
    y: IntArray,
    positive: int | None,
    level: float,
) -> dict[str, Interval]:
    """Return the estimate of every score that some fold defines, with its interval."""
    ratio = holdout_ratio(splits)
    n_repeats = len({f.repeat for f in folds})
    # of each class, in a repeat, the mean over repeats
    counts = np.sum([f.counts for f in folds], axis=0) / n_repeats
    ones = list(range(len(counts))) if positive is None else [positive]
    every_class_tested = bool(np.all(counts[:, [1, 3]] > 0))
    rates = {
        "balanced_accuracy": counts[:, :2],
        "sensitivity": counts[ones, :2],
        "specificity": counts[ones, 2:],
    }
    scores = {}
    for name, bounds in BOUNDS.items():
        values = np.array([f.scores[name] for f in folds])
        if not np.isfinite(values).any():
            continue
        if every_class_tested and name in rates:
            pairs = rates[name]
            pooled = float(np.mean(pairs[:, 0] / pairs[:, 1]))
            scores[name] = rate_interval(values, ratio, pairs.tolist(), value=pooled, level=level)
        elif every_class_tested and name == "auc":
            scores[name] = auc_interval(
                values,
                ratio,
                [area_variance(y[f.test], f.decision, ones) for f in folds],
                len(folds) / n_repeats,
                float(counts[:, 1].min()),
                level=level,
            )
        else:
            scores[name] = corrected_interval(values, ratio, level=level, bounds=bounds)
    return scores


def aggregate_control(
    folds: tuple[FoldResult, ...], splits: list[Fold], level: float
) -> dict[str, Interval] | None:
    """Return the common classifier's intervals on panels, on random ones, and of the difference.

    The difference is taken fold by fold: both saw the same samples.
    """
    controls = [f.control for f in folds if f.control is not None]
    if len(controls) < len(folds):
        return None
    ratio = holdout_ratio(splits)
    values = {k: np.array([c[k] for c in controls]) for k in ("selected", "random")}
    found = {k: corrected_interval(v, ratio, level=level) for k, v in values.items()}
    gaps = values["selected"] - values["random"]
    found["difference"] = corrected_interval(gaps, ratio, level=level, bounds=(-1.0, 1.0))
    return found


def panel_statistics(
    folds: tuple[FoldResult, ...], n_features: int
) -> tuple[Float64Array | None, StabilityIndex | None, float | None]:
    """Return selection frequencies, Nogueira's index and the mean Jaccard similarity."""
    panels = [f.panel for f in folds if f.panel is not None]
    if len(panels) < len(folds):
        return None, None, None
    frequencies = np.zeros(n_features)
    for panel in panels:
        frequencies[panel] += 1
    frequencies /= len(panels)
    if len(panels) < 2:
        return frequencies, None, None
    lists = [panel.tolist() for panel in panels]
    return frequencies, panel_stability(lists, n_features), average_jaccard(lists)


def calibration_of(
    folds: tuple[FoldResult, ...], y: IntArray, positive: int | None
) -> CalibrationCurve | None:
    """Return the calibration curve of the first repeat, for two classes."""
    first = [f for f in folds if f.repeat == folds[0].repeat]
    if positive is None or any(f.proba is None for f in first):
        return None
    truth = np.concatenate([y[f.test] == positive for f in first])
    proba = np.concatenate([f.proba[:, positive] for f in first if f.proba is not None])
    if np.unique(truth).size < 2:
        return None
    return balanced_calibration_curve(truth, np.clip(proba, 0, 1), n_bins=5)


# -------------------------------------------------------------------------------- notices


def signal_notices(
    test: PermutationResult | None,
    score: Interval,
    n_classes: int,
    control: dict[str, Interval] | None,
) -> list[Notice]:
    """Return the notice of the verdict, and one if random panels do as well."""
    found = []
    decided = verdict(test, score, n_classes)
    if decided == "none":
        assert test is not None
        reason = (
            f"Permuted labels score as well in a share of p = {test.p_value:.2g} of the draws."
            if test.p_value > 0.05
            else f"The balanced accuracy, {score.value:.2f}, is not above chance."
        )
        text = f"{reason} The panel should not be read as a set of markers."
        found.append(Notice("none", "serious", text))
    elif decided == "inconclusive":
        assert test is not None
        text = (
            f"The interval of the balanced accuracy, {score.low:.2f} to {score.high:.2f}, lies "
            f"above chance, but permuted labels score as well in a share of p = "
            f"{test.p_value:.2g} of {len(test.distribution)} draws. More draws may decide."
        )
        found.append(Notice("inconclusive", "caution", text))
    elif decided == "not tested":
        text = (
            "There was no permutation test"
            if test is None
            else f"{len(test.distribution)} permutations cannot decide; it takes {FEWEST_DRAWS}"
        )
        text += ", so it is open whether the score, however high, is more than chance."
        found.append(Notice("not tested", "caution", text))
    looks_good = decided == "signal" or score.low > 1 / n_classes
    if looks_good and control is not None and control["difference"].low <= 0:
        gap = control["difference"]
        text = (
            f"Random panels of the same size reach {control['random'].value:.2f} against "
            f"{control['selected'].value:.2f}, and on these samples the difference (between "
            f"{gap.low:.2f} and {gap.high:.2f}) cannot be told from none: many features may carry "
            "the signal, and these need not be special."
        )
        found.append(Notice("random", "caution", text))
    return found


def sizes_notice(final_size: int, sizes: Sequence[int]) -> Notice | None:
    """Return a notice if a panel differs much in size from those behind the score.

    Parameters
    ----------
    final_size : int
        Number of features of the panel that is shown.
    sizes : sequence of int
        Those of the outer fits (:attr:`EvaluationResult.panel_sizes`).

    Returns
    -------
    Notice or None
        If the size lies outside their range, or is more than twice or less than half their median.

    Examples
    --------
    >>> from sparsegsvp.evaluation import sizes_notice
    >>> print(sizes_notice(2, [2, 30, 40, 50, 238]).text)
    The panel has 2 features, but the score is of panels with 2 to 238 (median 40)...
    >>> sizes_notice(10, [8, 10, 12]) is None
    True
    """
    if not sizes:
        return None
    middle, low, high = median(sizes), min(sizes), max(sizes)
    if low <= final_size <= high and middle / 2 <= final_size <= 2 * middle:
        return None
    spread = f"{low}" if low == high else f"{low} to {high} (median {middle:g})"
    features = "1 feature" if final_size == 1 else f"{final_size} features"
    text = (
        f"The panel has {features}, but the score is of panels with {spread}: it says little "
        "about a panel of this size."
    )
    return Notice("sizes", "caution", text)


def fit_notices(folds: tuple[FoldResult, ...]) -> list[Notice]:
    """Return one notice for each kind of warning that the fits gave."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for fold in folds:
        for kind in {text.split(":")[0] for text in fold.warnings}:
            counts[kind] += 1
        for text in fold.warnings:
            first.setdefault(text.split(":")[0], text)
    return [
        Notice(
            "fits",
            "note",
            f"{counts[kind]} of {len(folds)} fits warned, the first with {first[kind]}",
        )
        for kind in sorted(counts)
    ]
