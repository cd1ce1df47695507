"""The result of a nested evaluation: folds, scores, panels, verdict and notices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._notices import Notice
from .._typing import Float64Array, IntArray
from ..metrics import (
    CalibrationCurve,
    Interval,
    StabilityIndex,
    average_jaccard,
    balanced_calibration_curve,
    nogueira_stability,
)
from .folds import Fold, holdout_ratio
from .intervals import auc_interval, corrected_interval, rate_interval
from .journal import plain
from .permutation import FEWEST_DRAWS, PermutationResult, Verdict, verdict
from .scores import BOUNDS

NOTES = (
    "The scores estimate the procedure (scaling, selection, tuning and all), not the one panel "
    "that a final fit on all samples gives.",
    "Selection frequencies come from re-running the whole procedure in every fold.",
    "Intervals are corrected for overlapping training sets (Nadeau and Bengio); where the folds "
    "hardly differ, the wider interval from the counts of the first repeat is given.",
    "The permutation test detects neither leakage nor batch effects that happened before the "
    "table was made.",
    "The stability interval supposes independent panels; training sets overlap, so it is too "
    "narrow.",
    "Brier score and calibration curve weigh the classes equally; average precision is to be "
    "read beside the prevalence.",
)


@dataclass(frozen=True)
class FoldResult:
    """One outer fold.

    Attributes
    ----------
    repeat, index : int
        Which repeat, and which fold in it.
    train, test : ndarray of int
        Row numbers.
    scores : dict
        Score by name; ``nan`` where the fold cannot define it.
    counts : tuple of (true positives, positives, true negatives, negatives)
        One entry per class.
    predicted : ndarray of int
        Class codes of the test samples.
    decision, proba : ndarray of shape (n_test, n_classes) or None
        Decision values and probabilities of the test samples.
    distances : ndarray of shape (n_test, n_classes) or None
        Distances to the planes, for an estimator that has one per class.
    panel : ndarray of int or None
        Features used.
    control : dict or None
        Balanced accuracy of the common classifier on the panel (``"selected"``) and on
        random panels of its size (``"random"``, the mean).
    warnings : tuple of str
        Warnings of the fit.
    """

    repeat: int
    index: int
    train: IntArray
    test: IntArray
    scores: dict[str, float]
    counts: tuple[tuple[int, int, int, int], ...]
    predicted: IntArray
    decision: Float64Array | None
    proba: Float64Array | None
    distances: Float64Array | None
    panel: IntArray | None
    control: dict[str, float] | None
    warnings: tuple[str, ...]

    @classmethod
    def from_record(cls, fold: Fold, record: dict[str, Any]) -> FoldResult:
        """Build from the record of a fold, fresh or from a log, which holds no infinities."""
        control = record["control"]

        def values(name: str) -> Float64Array | None:
            if record[name] is None:
                return None
            array = np.array(record[name], dtype=np.float64)
            array[~np.isfinite(array)] = np.nan
            return array

        return cls(
            fold.repeat,
            fold.index,
            fold.train,
            fold.test,
            {name: _finite(value) for name, value in sorted(record["scores"].items())},
            tuple((tp, p, tn, n) for tp, p, tn, n in record["counts"]),
            np.asarray(record["predicted"], dtype=np.intp),
            values("decision"),
            values("proba"),
            values("distances"),
            None if record["panel"] is None else np.asarray(record["panel"], dtype=np.intp),
            None if control is None else {k: float(control[k]) for k in ("random", "selected")},
            tuple(record["warnings"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return plain(
            {
                "repeat": self.repeat,
                "fold": self.index,
                "n_train": self.train.size,
                "n_test": self.test.size,
                "test": self.test,
                "scores": self.scores,
                "counts": self.counts,
                "panel": self.panel,
                "panel_size": None if self.panel is None else self.panel.size,
                "control": self.control,
            }
        )


def _finite(value: float | None) -> float:
    return float(value) if value is not None and np.isfinite(value) else float("nan")


@dataclass(frozen=True)
class EvaluationResult:
    """Result of :func:`~sparsegsvp.nested_evaluate`.

    Attributes
    ----------
    classes : tuple
        Labels, sorted.
    positive : label or None
        The positive class of two; None with more, where scores average over the classes.
    class_counts : tuple of int
        Samples of each class.
    n_samples, n_features : int
        Size of the table.
    feature_names : tuple of str or None
        Column names, when known.
    folds : tuple of FoldResult
        Every outer fold.
    scores : dict of str to Interval
        Mean over folds with its interval: balanced_accuracy, auc, average_precision,
        prevalence, sensitivity, specificity, and brier and log_loss where probabilities
        exist.
    selection_frequencies : ndarray of shape (n_features,) or None
        Share of the outer fits that use each feature; None when the estimator does not say.
    stability : StabilityIndex or None
        Nogueira's index of the panels.
    jaccard : float or None
        Mean Jaccard similarity of the panels.
    control : dict of str to Interval, or None
        ``"selected"`` and ``"random"``: the common classifier on the panel and on random
        panels of the same size.
    calibration : CalibrationCurve or None
        Of the first repeat, for two classes with probabilities.
    permutation : PermutationResult or None
        The permutation test.
    final_panel : tuple of int or None
        Features of the fit on all samples.
    notices : tuple of Notice
        What the reader has to know.
    description : dict
        Estimator, folds and seeds.
    seconds : dict
        Time of each fold; never part of :meth:`to_dict`, so that results can be compared
        byte for byte.
    """

    classes: tuple[Any, ...]
    positive: Any
    class_counts: tuple[int, ...]
    n_samples: int
    n_features: int
    feature_names: tuple[str, ...] | None
    y: IntArray = field(repr=False)
    folds: tuple[FoldResult, ...] = field(repr=False)
    scores: dict[str, Interval]
    selection_frequencies: Float64Array | None = field(repr=False)
    stability: StabilityIndex | None
    jaccard: float | None
    control: dict[str, Interval] | None
    calibration: CalibrationCurve | None = field(repr=False)
    permutation: PermutationResult | None = field(repr=False)
    final_panel: tuple[int, ...] | None
    notices: tuple[Notice, ...]
    description: dict[str, Any] = field(repr=False)
    seconds: dict[str, float] = field(repr=False, compare=False)

    @property
    def verdict(self) -> Verdict:
        """Whether there is signal, by :func:`~sparsegsvp.evaluation.verdict`."""
        return verdict(self.permutation, self.scores["balanced_accuracy"], len(self.classes))

    @property
    def signal(self) -> bool | None:
        """The verdict as a truth value: None where it is "inconclusive" or "not tested"."""
        return {"signal": True, "none": False}.get(self.verdict)

    @property
    def panel_sizes(self) -> tuple[int, ...]:
        """Number of features of each outer fit."""
        return tuple(int(f.panel.size) for f in self.folds if f.panel is not None)

    def out_of_fold(self, repeat: int = 0) -> dict[str, Any]:
        """Return the predictions of one repeat, each sample predicted by a fit without it.

        Parameters
        ----------
        repeat : int, default=0
            Which repeat.

        Returns
        -------
        dict
            ``predicted`` (codes, -1 where not tested), ``decision``, ``proba`` and
            ``distances`` (n_samples, n_classes; ``nan`` where not tested) or None, and
            ``fold`` (-1 where not tested).
        """
        mine = [f for f in self.folds if f.repeat == repeat]
        if not mine:
            raise ValueError(f"there is no repeat {repeat}.")
        n, k = self.n_samples, len(self.classes)
        result: dict[str, Any] = {
            "predicted": np.full(n, -1, dtype=np.intp),
            "fold": np.full(n, -1, dtype=np.intp),
        }
        for name in ("decision", "proba", "distances"):
            have = all(getattr(f, name) is not None for f in mine)
            result[name] = np.full((n, k), np.nan) if have else None
        for f in mine:
            result["predicted"][f.test] = f.predicted
            result["fold"][f.test] = f.index
            for name in ("decision", "proba", "distances"):
                if result[name] is not None:
                    result[name][f.test] = getattr(f, name)
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return everything but timings, as JSON can hold it."""
        repeats = sorted({f.repeat for f in self.folds})
        names = self.feature_names
        frequencies = self.selection_frequencies
        features = []
        if frequencies is not None:
            final = set(self.final_panel or ())
            used = [j for j in range(self.n_features) if frequencies[j] > 0 or j in final]
            used.sort(key=lambda j: (-frequencies[j], j))
            features = [
                {
                    "index": j,
                    "name": None if names is None else names[j],
                    "frequency": float(frequencies[j]),
                    "in_final_panel": j in final,
                }
                for j in used
            ]
        return plain(
            {
                "description": self.description,
                "classes": list(self.classes),
                "positive": self.positive,
                "class_counts": self.class_counts,
                "n_samples": self.n_samples,
                "n_features": self.n_features,
                "y": self.y,
                "scores": {k: v.to_dict() for k, v in self.scores.items()},
                "folds": [f.to_dict() for f in self.folds],
                "out_of_fold": [{"repeat": r, **self.out_of_fold(r)} for r in repeats],
                "panel_sizes": self.panel_sizes,
                "features": features,
                "final_panel": self.final_panel,
                "final_panel_names": None
                if names is None or self.final_panel is None
                else [names[j] for j in self.final_panel],
                "stability": self.stability,
                "jaccard": self.jaccard,
                "control": self.control,
                "calibration": self.calibration,
                "permutation": self.permutation,
                "verdict": self.verdict,
                "notices": self.notices,
                "notes": NOTES,
            }
        )


# --------------------------------------------------------------------------- aggregation


def pooled_counts(folds: tuple[FoldResult, ...]) -> tuple[list[tuple[int, int, int, int]], int]:
    """Return the counts of the first repeat, summed over its folds, and how many there are."""
    first = [f for f in folds if f.repeat == folds[0].repeat]
    totals = np.sum([f.counts for f in first], axis=0)
    return [tuple(int(v) for v in row) for row in totals], len(first)  # type: ignore[misc]


def aggregate_scores(
    folds: tuple[FoldResult, ...], splits: list[Fold], positive: int | None, level: float
) -> dict[str, Interval]:
    """Return the mean of every score that some fold defines, with its interval."""
    ratio = holdout_ratio(splits)
    counts, n_first = pooled_counts(folds)
    ones = range(len(counts)) if positive is None else [positive]
    usable = all(p > 0 and n > 0 for _, p, _, n in counts)
    rates = {
        "balanced_accuracy": [(tp, p) for tp, p, _, _ in counts],
        "sensitivity": [counts[k][:2] for k in ones],
        "specificity": [counts[k][2:] for k in ones],
    }
    scores = {}
    for name, bounds in BOUNDS.items():
        values = np.array([f.scores[name] for f in folds])
        if not np.isfinite(values).any():
            continue
        if usable and name in rates:
            scores[name] = rate_interval(values, ratio, rates[name], n_first, level=level)
        elif usable and name == "auc":
            scores[name] = auc_interval(
                values, ratio, [counts[k] for k in ones], n_first, level=level
            )
        else:
            scores[name] = corrected_interval(values, ratio, level=level, bounds=bounds)
    return scores


def aggregate_control(
    folds: tuple[FoldResult, ...], splits: list[Fold], level: float
) -> dict[str, Interval] | None:
    """Return the intervals of the common classifier on the panels and on random ones."""
    if any(f.control is None for f in folds):
        return None
    ratio = holdout_ratio(splits)
    return {
        name: corrected_interval(
            [f.control[name] for f in folds if f.control is not None], ratio, level=level
        )
        for name in ("selected", "random")
    }


def panel_statistics(
    folds: tuple[FoldResult, ...], n_features: int, level: float
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
    return (
        frequencies,
        nogueira_stability(lists, n_features, level=level),
        average_jaccard(lists),
    )


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
    if looks_good and control is not None and control["random"].value >= control["selected"].low:
        text = (
            "Random panels of the same size predict about as well "
            f"({control['random'].value:.2f} against {control['selected'].value:.2f}): many "
            "features carry the signal, and these are not special."
        )
        found.append(Notice("random", "caution", text))
    return found


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
