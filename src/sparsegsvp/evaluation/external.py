"""One fitted model on samples that took no part in it: an independent cohort.

Everything a reader of a clinical paper looks for, with intervals: how often it is right, how well
it ranks, whether its probabilities mean what they say, and what acting on them would be worth. What
a cohort is too small or too plain to show is said in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import confusion_matrix, roc_curve

from .._notices import Notice
from .._typing import BoolArray, Float64Array, IntArray
from .._validate import check_real
from ..metrics import (
    CalibrationCurve,
    CalibrationLine,
    DecisionCurve,
    Interval,
    ThresholdCounts,
    ThresholdRow,
    balanced_accuracy_interval,
    clopper_pearson,
    delong_interval,
    predictive_values,
)
from ..metrics.calibration import mean_by_class
from ..metrics.ranking import mean_area
from .curves import PositiveProbabilities
from .recalibration import check_known, recalibrated_share
from .scores import SCORE_TITLES, class_scores
from .shift import FeatureShift
from .values import Scored, plain, ranged


@dataclass(frozen=True, repr=False)
class ExternalValidation(Scored):
    """Scores, curves and remarks of a model on a cohort; the result of `validate_external`.

    Attributes
    ----------
    classes : tuple
        The model's classes.
    positive : label or None
        The positive class of two; None with more.
    class_counts : tuple of int
        Samples of each class.
    prevalence : float or None
        Share of the positive class that predictive values, thresholds and the decision curve are
        for. None with more than two classes, or where only one of two is there.
    observed_prevalence : bool
        Whether that is the cohort's own share, because none was given.
    scores : dict of str to Interval
        What the cohort can show of accuracy, balanced_accuracy, auc, sensitivity, specificity,
        ppv, npv, brier (at equal class shares) and brier_at_prevalence. With more than two
        classes, auc is the mean over each class against the rest, and there are no sensitivity
        and what follows from it, but `recalls`.
    recalls : tuple of Interval or None
        Share of each class that is recognised; None for a class without samples.
    confusion : tuple of tuple of int
        Samples by true class (rows) and predicted class (columns).
    line : CalibrationLine or None
        Calibration intercept and slope.
    calibration : CalibrationCurve or None
        At equal class shares.
    roc : dict or None
        ``fpr`` and ``tpr`` of the curve.
    decision : DecisionCurve or None
    thresholds : tuple of ThresholdRow
        At the prevalence.
    threshold_counts : ThresholdCounts or None
        The same in counts, at every probability for equal class shares: for any prevalence.
    shift : tuple of FeatureShift or None
        The panel's values against training; None where that was not looked at.
    remarks : tuple of str
        What could not be said, and why.
    """

    classes: tuple[Any, ...]
    class_counts: tuple[int, ...]
    scores: dict[str, Interval]
    recalls: tuple[Interval | None, ...]
    confusion: tuple[tuple[int, ...], ...]
    remarks: tuple[str, ...]
    positive: Any = None
    prevalence: float | None = None
    observed_prevalence: bool = False
    line: CalibrationLine | None = None
    calibration: CalibrationCurve | None = None
    roc: dict[str, list[float]] | None = None
    decision: DecisionCurve | None = None
    thresholds: tuple[ThresholdRow, ...] = ()
    threshold_counts: ThresholdCounts | None = None
    shift: tuple[FeatureShift, ...] | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return sum(self.class_counts)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What could not be said, as notices."""
        return tuple(Notice("cohort", "note", text) for text in self.remarks)

    def _title(self) -> str:
        counts = ", ".join(f"{n} {c}" for n, c in zip(self.class_counts, self.classes))
        return f"External validation: {self.n_samples} samples ({counts})"

    def _lines(self) -> list[tuple[str, str]]:
        lines = [(t, ranged(self.scores[k])) for k, t in SCORE_TITLES.items() if k in self.scores]
        if self.line is not None:
            lines.append(("calibration intercept", ranged(self.line.intercept)))
            if self.line.slope is not None:
                lines.append(("calibration slope", ranged(self.line.slope)))
        return lines + [("note", text) for text in self.remarks]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return plain(
            {
                **vars(self),
                "n_samples": self.n_samples,
                "classes": [str(c) for c in self.classes],
                "positive": None if self.positive is None else str(self.positive),
            }
        )


def validate_external(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    pos_label: Any = None,
    prevalence: float | None = None,
    level: float = 0.95,
) -> ExternalValidation:
    """Validate a fitted classifier on samples that took no part in fitting it.

    Parameters
    ----------
    model : classifier
        Fitted; with ``predict_proba`` for calibration, decision curve and thresholds, with that
        or ``decision_function`` for the area under the curve. Probabilities are taken to be for
        equal class shares, or for what `recalibrate` made of them.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        The cohort.
    y : array-like of shape (n_samples,)
        Its labels.
    pos_label : label, optional
        The positive class of two, by default the last in sorted order.
    prevalence : float, optional
        Share of the positive class where the model is to be used; by default the one that it
        was recalibrated to, or else that of the cohort.
    level : float, default=0.95
        Coverage of the intervals.

    Returns
    -------
    ExternalValidation

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import validate_external
    >>> X, y = make_planted(120, 20, 2, effect=2.5, return_X_y=True)
    >>> found = validate_external(GSVPSVM().fit(X[:80], y[:80]), X[80:], y[80:], prevalence=0.1)
    >>> round(found.scores["auc"].value, 2) > 0.9, found.prevalence
    (True, 0.1)
    """
    classes = np.asarray(model.classes_)
    decision, proba = class_scores(model, X, len(classes))
    share = recalibrated_share(model, classes[-1] if pos_label is None else pos_label)
    return validate_predictions(
        np.asarray(y),
        np.asarray(model.predict(X)),
        classes.tolist(),
        decision=decision,
        proba=proba,
        positive=pos_label,
        prevalence=share if prevalence is None else prevalence,
        prior=0.5 if share is None else share,
        level=level,
    )


def validate_predictions(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    classes: Sequence[Any],
    *,
    decision: Float64Array | None = None,
    proba: Float64Array | None = None,
    positive: Any = None,
    prevalence: float | None = None,
    prior: float = 0.5,
    shift: Sequence[FeatureShift] | None = None,
    level: float = 0.95,
) -> ExternalValidation:
    """Validate predictions that are at hand already; see `validate_external`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted labels.
    classes : sequence
        All classes of the model, in its order.
    decision, proba : ndarray of shape (n_samples, n_classes), optional
        Values that rank the samples for each class, and probabilities.
    positive : label, optional
        The positive one of two classes, by default the last.
    prevalence : float, optional
        As for `validate_external`; by default that of the cohort.
    prior : float, default=0.5
        The share that the probabilities are for.
    shift : sequence of FeatureShift, optional
        What `check_shift` found.
    level : float, default=0.95
        As for `validate_external`.

    Returns
    -------
    ExternalValidation

    Examples
    --------
    >>> from sparsegsvp.evaluation import validate_predictions
    >>> found = validate_predictions(["ill", "ill", "well"], ["ill", "well", "well"],
    ...                              ["ill", "well"], positive="ill")
    >>> found.confusion, found.scores["balanced_accuracy"].value
    (((1, 1), (0, 1)), 0.75)
    """
    check_real("level", level, above=0, below=1)
    if prevalence is not None:
        check_real("prevalence", prevalence, above=0, below=1)
    truth, predicted, labels = np.asarray(y_true), np.asarray(y_pred), list(classes)
    _check_cohort(truth, labels, positive)
    counts = confusion_matrix(truth, predicted, labels=labels)
    totals = counts.sum(axis=1).tolist()
    recalls = tuple(
        clopper_pearson(int(counts[k, k]), n, level=level) if n else None
        for k, n in enumerate(totals)
    )
    complete = min(totals) > 0
    scores = {"accuracy": clopper_pearson(int(np.trace(counts)), truth.size, level=level)}
    if complete:
        scores["balanced_accuracy"] = balanced_accuracy_interval(truth, predicted, level=level)
    remarks = _about_absent(labels, totals)
    found: dict[str, Any] = {}
    codes = np.array([labels.index(label) for label in truth.tolist()])
    if len(labels) == 2:
        one = 1 if positive is None else labels.index(positive)
        found = {"positive": labels[one]}
        rates = {"sensitivity": recalls[one], "specificity": recalls[1 - one]}
        scores |= {name: rate for name, rate in rates.items() if rate is not None}
        if complete:
            found |= _two_classes(
                codes == one,
                scores,
                remarks,
                called=predicted == labels[one],
                ranks=None if decision is None else decision[:, one],
                p=None if proba is None else np.clip(proba[:, one], 0.0, 1.0),
                prevalence=prevalence,
                prior=prior,
                level=level,
            )
    elif complete:
        _many_classes(codes, scores, decision, proba, level)
    return ExternalValidation(
        classes=tuple(labels),
        class_counts=tuple(totals),
        scores=scores,
        recalls=recalls,
        confusion=tuple(tuple(row) for row in counts.tolist()),
        shift=None if shift is None else tuple(shift),
        remarks=(*remarks, *_about_few(labels, totals)),
        **found,
    )


def _check_cohort(truth: NDArray[Any], labels: list[Any], positive: Any) -> None:
    """Raise ValueError unless there are samples, all of known classes, as the positive one is."""
    check_known(truth, labels)
    if not truth.size:
        raise ValueError("the cohort has no samples.")
    if positive is not None and positive not in labels:
        raise ValueError(f"the positive class {positive!r} is not among the classes {labels}.")


def _about_absent(labels: list[Any], totals: list[int]) -> list[str]:
    """Say which classes have no samples, if any."""
    absent = [str(label) for label, n in zip(labels, totals) if not n]
    if not absent:
        return []
    return [
        f"The cohort has no sample of {', '.join(absent)}: what compares the classes "
        "(balanced accuracy, ranking, calibration, predictive values) cannot be estimated."
    ]


def _about_few(labels: list[Any], totals: list[int]) -> list[str]:
    """Say if the smallest class is there with a few samples only."""
    least = min(totals)
    if not 0 < least < 10:
        return []
    return [
        f"Class {labels[totals.index(least)]} has {least} sample{'s' * (least > 1)} here: so "
        "few show little, and the intervals are wide."
    ]


def _many_classes(
    codes: IntArray,
    scores: dict[str, Interval],
    decision: Float64Array | None,
    proba: Float64Array | None,
    level: float,
) -> None:
    """Add the mean area of each class against the rest and the Brier score of K classes."""
    n_classes = int(codes.max()) + 1
    if decision is not None and np.isfinite(decision).all():
        parts = [(codes == k, decision[:, k]) for k in range(n_classes)]
        scores["auc"] = mean_area(parts, level=level)
    if proba is not None:
        gaps = [np.clip(proba[codes == k], 0, 1) - np.eye(n_classes)[k] for k in range(n_classes)]
        errors = [np.sum(gap**2, axis=1) / 2 for gap in gaps]
        scores["brier"] = mean_by_class(errors, [1 / n_classes] * n_classes, level=level)


def _two_classes(
    y: BoolArray,
    scores: dict[str, Interval],
    remarks: list[str],
    *,
    called: BoolArray,
    ranks: Float64Array | None,
    p: Float64Array | None,
    prevalence: float | None,
    prior: float,
    level: float,
) -> dict[str, Any]:
    """Add scores and remarks of two classes that are both there; return curves and thresholds."""
    share = float(y.mean()) if prevalence is None else prevalence
    found: dict[str, Any] = {"prevalence": share, "observed_prevalence": prevalence is None}
    ones, zeros = int(y.sum()), int((~y).sum())
    pairs = (int((called & y).sum()), ones), (int((~called & ~y).sum()), zeros)
    named = zip(("ppv", "npv"), predictive_values(*pairs, share, level=level))
    scores.update({name: value for name, value in named if value is not None})
    if called.all() or not called.any():
        which = "positive" if called.all() else "negative"
        remarks.append(f"Every sample was called {which}: the labels tell nothing apart here.")
    if ranks is not None and np.isfinite(ranks).all():
        scores["auc"] = delong_interval(y, ranks, level=level)
        fpr, tpr, _ = roc_curve(y, ranks)
        found["roc"] = {"fpr": fpr.tolist(), "tpr": tpr.tolist()}
        if np.ptp(ranks) == 0:
            remarks.append("All predictions are equal: the model ranks no sample above another.")
    if p is None:
        remarks.append(
            "The model gives no probabilities: calibration, decision curve and thresholds are "
            "left out."
        )
        return found
    said = PositiveProbabilities(y, p, prior)
    scores["brier"] = said.brier(0.5, level)
    scores["brier_at_prevalence"] = said.brier(share, level)
    found["line"] = said.calibration_line(level)
    if found["line"].slope is None:
        why = "are all equal" if np.ptp(said.at(0.5)) == 0 else "separate the classes completely"
        remarks.append(f"No calibration slope: the probabilities {why}, which fits any slope.")
    found["calibration"] = said.calibration_curve(n_bins=min(5, max(2, y.size // 10)))
    found["decision"] = said.decision_curve(share)
    found["thresholds"] = said.thresholds(share, level)
    found["threshold_counts"] = said.threshold_counts()
    return found
