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
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.metrics import confusion_matrix, roc_curve

from .._notices import Notice
from .._typing import BoolArray, Float64Array, IntArray
from .._validate import check_real
from ..metrics import (
    CalibrationCurve,
    CalibrationLine,
    DecisionCurve,
    Interval,
    at_prevalence,
    balanced_accuracy_interval,
    balanced_calibration_curve,
    brier_score,
    calibration_line,
    clopper_pearson,
    decision_curve,
    delong_interval,
    delong_variance,
    net_benefit,
    predictive_values,
    proportion_interval,
)
from ..metrics.clinical import rates_at
from .result import data_frame, html_table, ranged
from .scores import class_scores
from .shift import FeatureShift
from .values import plain

#: Probabilities that the table of thresholds shows, besides the model's own threshold.
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "area under the ROC curve",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "ppv": "positive predictive value",
    "npv": "negative predictive value",
    "brier": "Brier score",
}


@dataclass(frozen=True)
class ThresholdRow:
    """What acting from a probability on means.

    Attributes
    ----------
    threshold : float
        The probability of the positive class, at the prevalence.
    own : bool
        Whether this is the threshold of the model's own labels.
    sensitivity, specificity : Interval
        Exact.
    ppv, npv : Interval or None
        Predictive values at the prevalence; None where no sample is called so.
    net_benefit : float
        In true positives per sample (`sparsegsvp.metrics.net_benefit`).
    """

    threshold: float
    own: bool
    sensitivity: Interval
    specificity: Interval
    ppv: Interval | None
    npv: Interval | None
    net_benefit: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return dict(vars(self))


@dataclass(frozen=True, repr=False)
class ExternalValidation:
    """What a cohort says of a model; the result of `validate_external`.

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
    shift : tuple of FeatureShift or None
        The panel's values against training; None where that was not looked at.
    remarks : tuple of str
        What could not be said, and why.
    """

    classes: tuple[Any, ...]
    positive: Any
    class_counts: tuple[int, ...]
    prevalence: float | None
    observed_prevalence: bool
    scores: dict[str, Interval]
    recalls: tuple[Interval | None, ...]
    confusion: tuple[tuple[int, ...], ...]
    line: CalibrationLine | None
    calibration: CalibrationCurve | None
    roc: dict[str, list[float]] | None
    decision: DecisionCurve | None
    thresholds: tuple[ThresholdRow, ...]
    shift: tuple[FeatureShift, ...] | None
    remarks: tuple[str, ...]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return sum(self.class_counts)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What could not be said, as notices."""
        return tuple(Notice("cohort", "note", text) for text in self.remarks)

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(f"  {name}: {text}" for name, text in self._lines())])

    def _repr_html_(self) -> str:
        return html_table(self._title(), ["", ""], self._lines())

    def _title(self) -> str:
        counts = ", ".join(f"{n} {c}" for n, c in zip(self.class_counts, self.classes))
        return f"External validation: {self.n_samples} samples ({counts})"

    def _lines(self) -> list[tuple[str, str]]:
        lines = [(t, ranged(self.scores[k])) for k, t in _TITLES.items() if k in self.scores]
        if self.line is not None:
            lines.append(("calibration intercept", ranged(self.line.intercept)))
            if self.line.slope is not None:
                lines.append(("calibration slope", ranged(self.line.slope)))
        return lines + [("note", text) for text in self.remarks]

    def to_frame(self) -> Any:
        """Return the scores as a pandas data frame: one row each, with its interval."""
        return data_frame([{"score": k, **v.to_dict()} for k, v in self.scores.items()])

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
        Share of the positive class where the model is to be used; by default that of the cohort.
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
    return validate_predictions(
        np.asarray(y),
        np.asarray(model.predict(X)),
        classes.tolist(),
        decision=decision,
        proba=proba,
        positive=pos_label,
        prevalence=prevalence,
        prior=prior_of(model, classes[-1] if pos_label is None else pos_label),
        level=level,
    )


def prior_of(model: Any, positive: Any) -> float:
    """Return the share of a class that a model's probabilities are for."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    found = getattr(last, "recalibration_", None)
    if found is None:
        return 0.5
    share = float(found["prevalence"])
    return share if str(found["positive"]) == str(positive) else 1 - share


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
        Share of the positive class where the model is to be used; by default that of the cohort.
    prior : float, default=0.5
        The share that the probabilities are for.
    shift : sequence of FeatureShift, optional
        What `check_shift` found.
    level : float, default=0.95
        Coverage of the intervals.

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
    unknown = sorted({str(label) for label in truth.tolist()} - {str(c) for c in labels})
    if unknown:
        raise ValueError(f"the cohort has class {unknown[0]!r}, which the model does not know.")
    if not truth.size:
        raise ValueError("the cohort has no samples.")
    counts = confusion_matrix(truth, predicted, labels=labels)
    totals = counts.sum(axis=1)
    codes = np.array([labels.index(label) for label in truth.tolist()])
    recalls = tuple(
        clopper_pearson(int(counts[k, k]), int(n), level=level) if n else None
        for k, n in enumerate(totals.tolist())
    )
    right = int(np.trace(counts))
    scores = {"accuracy": clopper_pearson(right, int(truth.size), level=level)}
    remarks = []
    missing = [str(c) for c, n in zip(labels, totals.tolist()) if not n]
    if missing:
        remarks.append(
            f"The cohort has no sample of {', '.join(missing)}: what compares the classes "
            "(balanced accuracy, ranking, calibration, predictive values) cannot be estimated."
        )
    else:
        scores["balanced_accuracy"] = balanced_accuracy_interval(truth, predicted, level=level)
    found: dict[str, Any] = {}
    if len(labels) == 2:
        one = labels.index(positive) if positive in labels else 1
        found = {"positive": labels[one]}
        rates = {"sensitivity": recalls[one], "specificity": recalls[1 - one]}
        scores |= {name: rate for name, rate in rates.items() if rate is not None}
        if not missing:
            y = codes == one
            found |= _two_classes(
                y,
                scores,
                remarks,
                called=predicted == labels[one],
                ranks=None if decision is None else decision[:, one],
                p=None if proba is None else np.clip(proba[:, one], 0.0, 1.0),
                prevalence=float(y.mean()) if prevalence is None else prevalence,
                prior=prior,
                level=level,
            )
            found["observed_prevalence"] = prevalence is None
    elif not missing:
        _many_classes(codes, scores, decision, proba, level)
    if not missing and totals.min() < 10:
        few = labels[int(totals.argmin())]
        remarks.append(
            f"Class {few} has {int(totals.min())} sample{'s' if totals.min() > 1 else ''} here: "
            "so few show little, and the intervals are wide."
        )
    nothing: dict[str, Any] = {
        "positive": None, "prevalence": None, "observed_prevalence": False, "line": None,
        "calibration": None, "roc": None, "decision": None, "thresholds": (),
    }  # fmt: skip
    return ExternalValidation(
        classes=tuple(labels),
        class_counts=tuple(totals.tolist()),
        scores=scores,
        recalls=recalls,
        confusion=tuple(tuple(row) for row in counts.tolist()),
        shift=None if shift is None else tuple(shift),
        remarks=tuple(remarks),
        **{**nothing, **found},
    )


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
        areas = [delong_interval(own, rank).value for own, rank in parts]
        area = float(np.mean(areas))
        # the variance of a mean is at most the mean of the variances
        variances = np.array([delong_variance(own, rank) for own, rank in parts])
        trials = 2.0 * float(np.bincount(codes).min())
        variance = float(variances.mean())
        if np.isnan(variance):
            variance = area * (1 - area) / (trials / 2)
        if variance > 0:
            trials = min(trials, area * (1 - area) / variance)
        scores["auc"] = proportion_interval(area, trials, level=level)
    if proba is not None:
        gaps = [np.clip(proba[codes == k], 0, 1) - np.eye(n_classes)[k] for k in range(n_classes)]
        errors = [np.sum(gap**2, axis=1) / 2 for gap in gaps]
        value, half = float(np.mean([part.mean() for part in errors])), 1.0
        if min(part.size for part in errors) > 1:
            variance = sum(part.var(ddof=1) / part.size for part in errors) / n_classes**2
            half = float(norm.ppf((1 + level) / 2) * np.sqrt(variance))
        scores["brier"] = Interval(value, max(0.0, value - half), min(1.0, value + half), level)


def _two_classes(
    y: BoolArray,
    scores: dict[str, Interval],
    remarks: list[str],
    *,
    called: BoolArray,
    ranks: Float64Array | None,
    p: Float64Array | None,
    prevalence: float,
    prior: float,
    level: float,
) -> dict[str, Any]:
    """Add scores and remarks of two classes that are both there; return curves and thresholds."""
    found: dict[str, Any] = {"prevalence": prevalence}
    ones, zeros = int(y.sum()), int((~y).sum())
    pairs = (int((called & y).sum()), ones), (int((~called & ~y).sum()), zeros)
    named = zip(("ppv", "npv"), predictive_values(*pairs, prevalence, level=level))
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
    even, there = at_prevalence(p, 0.5, prior=prior), at_prevalence(p, prevalence, prior=prior)
    scores["brier"] = brier_score(y, even, prevalence=0.5, level=level)
    scores["brier_at_prevalence"] = brier_score(y, there, prevalence=prevalence, level=level)
    line = calibration_line(y, even, level=level)
    if line.slope is None:
        why = "are all equal" if np.ptp(even) == 0 else "separate the classes completely"
        remarks.append(f"No calibration slope: the probabilities {why}, which fits any slope.")
    found["line"] = line
    found["calibration"] = balanced_calibration_curve(y, even, n_bins=min(5, max(2, y.size // 10)))
    found["decision"] = decision_curve(y, there, prevalence=prevalence)
    own = prevalence if prior == 0.5 else float(at_prevalence(0.5, prevalence, prior=prior))
    found["thresholds"] = _thresholds(y, there, prevalence, own, level)
    return found


def _thresholds(
    y: BoolArray, p: Float64Array, prevalence: float, own: float, level: float
) -> tuple[ThresholdRow, ...]:
    """Rates, predictive values and net benefit where one would act from each threshold on.

    The model's own labels change where its probabilities are one half: at the prevalence, if
    they are for equal shares.
    """
    at = sorted({*THRESHOLDS, own})
    hits, clear = rates_at(y, p, np.array(at))
    ones, zeros = int(y.sum()), int((~y).sum())
    rows = []
    for t, tp, tn in zip(at, hits.tolist(), clear.tolist()):
        ppv, npv = predictive_values((tp, ones), (tn, zeros), prevalence, level=level)
        rows.append(
            ThresholdRow(
                threshold=t,
                own=t == own,
                sensitivity=clopper_pearson(tp, ones, level=level),
                specificity=clopper_pearson(tn, zeros, level=level),
                ppv=ppv,
                npv=npv,
                net_benefit=float(net_benefit(tp / ones, tn / zeros, prevalence, t)),
            )
        )
    return tuple(rows)
