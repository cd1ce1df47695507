"""The result of a nested evaluation: folds, scores, panels, verdict and notices."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from .._notices import Notice
from .._typing import Float64Array, IntArray
from ..metrics import (
    CalibrationCurve,
    CalibrationLine,
    DecisionCurve,
    Interval,
    StabilityIndex,
    ThresholdCounts,
    ThresholdRow,
)
from .curves import PositiveProbabilities
from .folds import Fold
from .permutation import PermutationResult, Verdict, verdict
from .values import Scored, plain, ranged

if TYPE_CHECKING:
    from .batches import BatchAudit
    from .paired import Adjustment

EVALUATION_NOTES = (
    "The scores estimate the procedure (scaling, selection, tuning and all), not the one panel "
    "that a final fit on all samples gives.",
    "Selection frequencies come from re-running the whole procedure in every fold.",
    "Intervals of rates and of the area under the curve are of the procedure on new samples: "
    "corrected for overlapping training sets (Nadeau and Bengio), with the sampling of the test "
    "samples added; those of the other scores are corrected alone.",
    "Sensitivity, specificity and balanced accuracy are those of the confusion matrix averaged "
    "over the repeats.",
    "The sizes of the folds' panels belong to the scores.",
    "The permutation test detects neither leakage nor batch effects that happened before the "
    "table was made.",
    "Brier score and calibration curve weigh the classes equally; average precision is to be "
    "read beside the prevalence.",
)

# What a fold may hold of each test sample and class.
_BY_CLASS = ("decision", "proba", "distances")


@dataclass(frozen=True)
class FoldResult(Fold):
    """One outer fold, and what came of it.

    Attributes
    ----------
    repeat, index, train, test
        As of :class:`Fold`.
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
        control, panel = record["control"], record["panel"]

        def finite(value: Any) -> Float64Array:
            array = np.array(value, dtype=np.float64)  # of None, nan
            return np.where(np.isfinite(array), array, np.nan)

        by_class: dict[str, Any] = {
            name: None if record[name] is None else finite(record[name]) for name in _BY_CLASS
        }
        return cls(
            **vars(fold),
            scores={name: float(finite(s)) for name, s in sorted(record["scores"].items())},
            counts=tuple((tp, p, tn, n) for tp, p, tn, n in record["counts"]),
            predicted=np.asarray(record["predicted"], dtype=np.intp),
            **by_class,
            panel=None if panel is None else np.asarray(panel, dtype=np.intp),
            control=None
            if control is None
            else {name: float(control[name]) for name in ("random", "selected")},
            warnings=tuple(record["warnings"]),
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


@dataclass(frozen=True, repr=False)
class EvaluationResult(Scored):
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
        Estimates with intervals: balanced_accuracy, sensitivity and specificity, pooled over
        all folds as in :attr:`confusion`; auc, average_precision, prevalence, and brier and
        log_loss where probabilities exist, averaged over folds.
    selection_frequencies : ndarray of shape (n_features,) or None
        Share of the outer fits that use each feature; None when the estimator does not say.
    stability : StabilityIndex or None
        Nogueira's index of the panels, without an interval, since training sets overlap.
    jaccard : float or None
        Mean Jaccard similarity of the panels.
    control : dict of str to Interval, or None
        ``"selected"`` and ``"random"``: the common classifier on the panel and on random
        panels of the same size; ``"difference"``: the first minus the second, over paired folds.
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
        Time of each fit; not in :meth:`to_dict`, whose bytes are the same in every run.
    batches : tuple of BatchAudit
        What each batch variable that was given has to do with labels, panel and score.
    adjusted : Adjustment or None
        What the features that were adjusted for reach alone, and what the panel adds to them.
    """

    classes: tuple[Any, ...]
    positive: Any
    class_counts: tuple[int, ...]
    n_samples: int
    n_features: int
    feature_names: tuple[str, ...] | None
    y: IntArray
    folds: tuple[FoldResult, ...]
    scores: dict[str, Interval]
    selection_frequencies: Float64Array | None
    stability: StabilityIndex | None
    jaccard: float | None
    control: dict[str, Interval] | None
    calibration: CalibrationCurve | None
    permutation: PermutationResult | None
    final_panel: tuple[int, ...] | None
    notices: tuple[Notice, ...]
    description: dict[str, Any]
    seconds: dict[str, float] = field(compare=False)
    batches: tuple[BatchAudit, ...] = ()
    adjusted: Adjustment | None = None

    def _title(self) -> str:
        return (
            f"Nested evaluation: {self.n_samples} samples, {self.n_features} features, "
            f"{len(self.folds)} fits"
        )

    def _lines(self) -> list[tuple[str, str]]:
        verdict: str = self.verdict
        if self.permutation is not None:
            draws = len(self.permutation.distribution)
            verdict += f" (p = {self.permutation.p_value:.2g}, {draws} draws)"
        names = ("balanced_accuracy", "auc", "sensitivity", "specificity")
        shown = [name for name in names if name in self.scores]
        lines = [("verdict", verdict)]
        lines += [(name.replace("_", " "), ranged(self.scores[name])) for name in shown]
        if self.panel_size_summary is not None:
            middle, low, high = self.panel_size_summary
            lines.append(("panel sizes", f"{middle:g} ({low} to {high})"))
        for audit in self.batches:
            if audit.unseen is not None:
                lines.append((f"unseen {audit.name}", ranged(audit.unseen.score)))
        if self.adjusted is not None:
            added = self.adjusted.added
            text = f"{added.value:+.2f} ({added.low:+.2f} to {added.high:+.2f})"
            lines.append(("added to what is adjusted for", text))
        return lines

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

    @property
    def panel_size_summary(self) -> tuple[float, int, int] | None:
        """Median, smallest and largest number of features of the outer fits."""
        sizes = self.panel_sizes
        return (float(median(sizes)), min(sizes), max(sizes)) if sizes else None

    @property
    def confusion(self) -> dict[str, list[list[float]]]:
        """Samples by true class (rows) and predicted class (columns), out of fold.

        ``"first_repeat"`` holds the counts of the first repeat, whole numbers that are easy to
        read; ``"mean"`` the mean over all repeats. Sensitivity, specificity and balanced accuracy
        are the rates of ``"mean"``.
        """
        k = len(self.classes)
        by_repeat: dict[int, Any] = {}
        for fold in self.folds:
            cells = np.bincount(self.y[fold.test] * k + fold.predicted, minlength=k * k)
            by_repeat[fold.repeat] = by_repeat.get(fold.repeat, 0) + cells.reshape(k, k)
        tables = list(by_repeat.values())
        return {"first_repeat": tables[0].tolist(), "mean": np.mean(tables, axis=0).tolist()}

    def _probabilities(self) -> PositiveProbabilities | None:
        """Return the probabilities of the first repeat, for two classes."""
        proba = self.out_of_fold(self.folds[0].repeat)["proba"]
        if proba is None or self.positive is None:
            return None
        one = self.classes.index(self.positive)
        return PositiveProbabilities.known(self.y == one, proba[:, one])

    @property
    def calibration_line(self) -> CalibrationLine | None:
        """Calibration intercept and slope of the first repeat, for two classes.

        At equal class shares. The intervals are of the samples alone, as if one model had
        predicted all of them.
        """
        found = self._probabilities()
        return None if found is None else found.calibration_line()

    def decision_curve(self, prevalence: float | None = None) -> DecisionCurve | None:
        """Return the decision curve of the first repeat's probabilities, for two classes.

        Parameters
        ----------
        prevalence : float, optional
            Share of the positive class where the model is to be used; by default that of the
            samples.

        Returns
        -------
        DecisionCurve or None
        """
        found = self._probabilities()
        return None if found is None else found.decision_curve(prevalence)

    def thresholds(self, prevalence: float | None = None) -> tuple[ThresholdRow, ...]:
        """Return rates, predictive values and net benefit at thresholds, in the first repeat.

        For two classes; empty without probabilities. The intervals are of the samples alone, as
        if one model had predicted all of them.

        Parameters
        ----------
        prevalence : float, optional
            As for `decision_curve`.

        Returns
        -------
        tuple of ThresholdRow
        """
        found = self._probabilities()
        return () if found is None else found.thresholds(prevalence)

    @property
    def threshold_counts(self) -> ThresholdCounts | None:
        """True and false positives of the first repeat by probability, for equal class shares.

        For two classes; what acting from a probability on means at any prevalence follows.
        """
        found = self._probabilities()
        return None if found is None else found.threshold_counts()

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
        for name in _BY_CLASS:
            have = all(getattr(f, name) is not None for f in mine)
            result[name] = np.full((n, k), np.nan) if have else None
        for f in mine:
            result["predicted"][f.test] = f.predicted
            result["fold"][f.test] = f.index
            for name in _BY_CLASS:
                if result[name] is not None:
                    result[name][f.test] = getattr(f, name)
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return everything but timings, as JSON can hold it."""
        repeats = sorted({f.repeat for f in self.folds})
        names, final, sizes = self.feature_names, self.final_panel, self.panel_size_summary
        return plain(
            {
                "description": self.description,
                "classes": list(self.classes),
                "positive": self.positive,
                "class_counts": self.class_counts,
                "n_samples": self.n_samples,
                "n_features": self.n_features,
                "y": self.y,
                "scores": self.scores,
                "folds": self.folds,
                "out_of_fold": [{"repeat": r, **self.out_of_fold(r)} for r in repeats],
                "confusion": self.confusion,
                "panel_sizes": self.panel_sizes,
                "panel_size_summary": None
                if sizes is None
                else dict(zip(("median", "low", "high"), sizes)),
                "features": self._features(),
                "final_panel": final,
                "final_panel_names": None
                if names is None or final is None
                else [names[j] for j in final],
                "stability": self.stability,
                "jaccard": self.jaccard,
                "control": self.control,
                "calibration": self.calibration,
                "calibration_line": self.calibration_line,
                "threshold_counts": self.threshold_counts,
                "permutation": self.permutation,
                "verdict": self.verdict,
                "batches": self.batches,
                **({} if self.adjusted is None else {"adjusted": self.adjusted}),
                "notices": self.notices,
                "notes": EVALUATION_NOTES,
            }
        )

    def _features(self) -> list[dict[str, Any]]:
        """Return the features that some fit used, most frequent first."""
        frequencies, names = self.selection_frequencies, self.feature_names
        if frequencies is None:
            return []
        final = set(self.final_panel or ())
        used = [j for j in range(self.n_features) if frequencies[j] > 0 or j in final]
        used.sort(key=lambda j: (-frequencies[j], j))
        return [
            {
                "index": j,
                "name": None if names is None else names[j],
                "frequency": float(frequencies[j]),
                "in_final_panel": j in final,
            }
            for j in used
        ]
