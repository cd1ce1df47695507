"""The result of an evaluation: predictions out of fold, and all numbers that follow from them.

Every rate, predictive value, threshold and calibration comes from one set of predictions, those of
all repeats. Frames are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix, roc_curve

from .._typing import BoolArray, Float64Array, IntArray, Record
from .._validate import check_real
from ..metrics import (
    Calibration,
    Difference,
    Interval,
    auc_interval,
    calibration_curve,
    calibration_line,
    decision_curve,
    delong_variance,
    fold_variance,
    mean_interval,
    move_prior,
    paired_differences,
    predictive_values,
    rate_interval,
    threshold_counts,
    threshold_table,
)
from ..metrics.roc import area
from .cache import plain
from .splits import Fold, Samples, holdout_ratio

if TYPE_CHECKING:
    from .batches import BatchAudit
    from .permutation import Verdict
    from .stability import PanelStability

_GRID = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Flag(Record):
    """Something the reader has to know, as a code and its numbers; the report has the words."""

    code: str
    numbers: dict[str, Any]


def frame(columns: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Any:
    """Return columns or rows as a pandas data frame; say how to get pandas where it is missing."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError('frames need pandas: pip install "sparsegsvp[cli]".') from error
    return pd.DataFrame(columns)


# ------------------------------------------------------------------ two classes with probabilities


@dataclass(frozen=True)
class Probabilities:
    """Probabilities of the positive class of two, one row for each prediction."""

    y: BoolArray
    p: Float64Array
    share: float  # of positives among the samples, which the probabilities are for
    own: float  # the probability at which the model's labels change
    n_repeats: int
    trials: tuple[float, float]  # independent positives and negatives


class Scored:
    """A result with scores and, of two classes, what follows from probabilities."""

    scores: dict[str, Interval]
    level: float

    def _probabilities(self) -> Probabilities | None:
        raise NotImplementedError

    def _rates(self, level: float) -> tuple[Interval, Interval] | None:
        """Return sensitivity and specificity at a level; None unless there are two classes."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Return the scores as a data frame: score, value, low and high."""
        rows = [(name, s.value, s.low, s.high) for name, s in self.scores.items()]
        return frame(dict(zip(("score", "value", "low", "high"), map(list, zip(*rows)))))

    def predictive_values(self, prevalence: float | None = None) -> dict[str, Interval]:
        """Return ``ppv`` and ``npv`` at a prevalence, by default that of the samples.

        Empty with more than two classes; one is left out where no sample is called so.
        """
        rates = self._rates(self.level**0.5)
        share = getattr(self, "prevalence", None) if prevalence is None else prevalence
        return {} if rates is None or share is None else predictive_values(*rates, share)

    def thresholds(self, prevalence: float | None = None) -> Any:
        """Return rates, predictive values and net benefit at thresholds as a data frame.

        None without probabilities of two classes; at the samples' prevalence if none is given.
        """
        known, share = self._probabilities(), self._share(prevalence)
        if known is None:
            return None
        own = float(move_prior([known.own], known.share, share)[0])
        options: dict[str, Any] = {"prior": known.share, "prevalence": share, "own": own}
        options |= {"trials": known.trials, "level": self.level}
        return frame(threshold_table(known.y, known.p, **options))

    def slider(self) -> Any:
        """Return who is called positive at any threshold, as a data frame.

        ``threshold`` is for equal shares of the classes, so that it can be moved to any
        prevalence; ``tp``, ``fp``, ``tn`` and ``fn`` are means over the repeats.
        """
        known = self._probabilities()
        if known is None:
            return None
        counts = threshold_counts(known.y, move_prior(known.p, known.share, "equal"))
        divided = {name: counts[name] / known.n_repeats for name in ("tp", "fp", "tn", "fn")}
        return frame({"threshold": counts["threshold"], **divided})

    def decision_curve(self, prevalence: float | None = None) -> Any:
        """Return net benefit against the threshold as a data frame; see `thresholds`."""
        known, share = self._probabilities(), self._share(prevalence)
        if known is None:
            return None
        options: dict[str, Any] = {"trials": known.trials, "level": self.level}
        return frame(
            decision_curve(known.y, known.p, prior=known.share, prevalence=share, **options)
        )

    def calibration_curve(self, n_bins: int = 5) -> Any:
        """Return predicted and observed shares of positives in bins as a data frame."""
        known = self._probabilities()
        return None if known is None else frame(calibration_curve(known.y, known.p, n_bins=n_bins))

    def _share(self, prevalence: float | None) -> float:
        if prevalence is None:
            return float(getattr(self, "prevalence", None) or 0.5)
        return check_real("prevalence", prevalence, above=0, below=1)

    def _curves(self) -> dict[str, Any]:
        """Return what a page draws of the probabilities, as columns."""
        if self._probabilities() is None:
            return {}
        made = {
            "thresholds": self.thresholds(),
            "slider": self.slider(),
            "decision_curve": self.decision_curve(),
            "calibration_curve": self.calibration_curve(),
        }
        return {name: table.to_dict("list") for name, table in made.items()}


# -------------------------------------------------------------------------------- out of fold


@dataclass(frozen=True)
class OutOfFold:
    """Predictions of every fold: one row a prediction, one column a class in tables.

    Probabilities are for the class shares of the samples.
    """

    sample: IntArray
    repeat: IntArray
    fold: IntArray
    truth: IntArray
    predicted: IntArray
    decision: Float64Array | None
    proba: Float64Array | None
    distances: Float64Array | None

    @classmethod
    def gather(cls, codes: IntArray, folds: Sequence[Fold], answers: Sequence[Any]) -> OutOfFold:
        """Join the answers of all folds."""

        def joined(name: str) -> Any:
            parts = [getattr(a, name) for a in answers]
            return None if any(part is None for part in parts) else np.concatenate(parts)

        sample = np.concatenate([fold.test for fold in folds])
        sizes = [fold.test.size for fold in folds]
        return cls(
            sample,
            np.repeat([fold.repeat for fold in folds], sizes),
            np.repeat([fold.index for fold in folds], sizes),
            codes[sample],
            joined("predicted"),
            joined("decision"),
            joined("proba"),
            joined("distances"),
        )

    @cached_property
    def parts(self) -> list[IntArray]:
        """Rows of each fold."""
        keys = self.repeat * (int(self.fold.max()) + 1) + self.fold
        return [np.flatnonzero(keys == key) for key in np.unique(keys)]

    @property
    def n_repeats(self) -> int:
        """Number of repeats."""
        return int(np.unique(self.repeat).size)

    def recalls(self, n_classes: int) -> Float64Array:
        """Share of each class that is recognised, over all repeats."""
        return np.array([np.mean(self.predicted[self.truth == k] == k) for k in range(n_classes)])

    def fold_accuracies(self, n_classes: int) -> Float64Array:
        """Balanced accuracy of each fold, over the classes that it tests."""
        values = []
        for rows in self.parts:
            truth, right = self.truth[rows], self.predicted[rows] == self.truth[rows]
            present = [k for k in range(n_classes) if np.any(truth == k)]
            values.append(np.mean([right[truth == k].mean() for k in present]))
        return np.array(values)

    def fold_areas(self, n_classes: int, positive: int) -> tuple[Float64Array, Float64Array]:
        """Area of each fold with DeLong's variance, means of one against the rest with K > 2."""
        ones = [positive] if n_classes == 2 else range(n_classes)
        areas: list[Any] = []
        variances: list[Any] = []
        for rows in self.parts:
            truth = self.truth[rows]
            if self.decision is None or np.unique(truth).size < n_classes:
                areas.append(np.nan)
                variances.append(np.nan)
                continue
            pairs = [(truth == k, self.decision[rows, k]) for k in ones]
            areas.append(np.mean([area(*pair) for pair in pairs]))
            variances.append(np.mean([delong_variance(*pair) for pair in pairs]))
        return np.array(areas), np.array(variances)


@dataclass(frozen=True)
class Scoring:
    """What turns predictions out of fold into scores with intervals."""

    codes: IntArray
    n_features: int
    units: Float64Array  # independent samples of each class
    n_splits: int
    ratio: float
    positive: int
    level: float

    @classmethod
    def of(cls, samples: Samples, folds: Sequence[Fold], positive: int, level: float) -> Scoring:
        """Return the scoring of samples that were split into folds."""
        n_splits = max(fold.index for fold in folds) + 1
        ratio, shape = holdout_ratio(folds), samples.X.shape
        return cls(samples.codes, shape[1], samples.units, n_splits, ratio, positive, level)

    def balanced_accuracy(self, found: OutOfFold) -> Interval:
        """Return the mean of the recalls, of all repeats together."""
        k = self.units.size
        return rate_interval(
            found.recalls(k),
            self.units,
            fold_scores=found.fold_accuracies(k),
            ratio=self.ratio,
            level=self.level,
        )

    def roc_auc(self, found: OutOfFold) -> Interval | None:
        """Return the mean area over the folds; None where nothing ranks the samples."""
        areas, variances = found.fold_areas(self.units.size, self.positive)
        if not np.isfinite(areas).any():
            return None
        # with groups, each counts once
        variances = variances * (self.codes.size / self.units.sum())
        options: dict[str, Any] = {"n_splits": self.n_splits, "ratio": self.ratio}
        return auc_interval(areas, variances, self.units, **options, level=self.level)

    def recall(self, found: OutOfFold, k: int, level: float) -> Interval:
        """Return the share of a class that is recognised."""
        rate = found.recalls(self.units.size)[k]
        return rate_interval([rate], [self.units[k]], level=level)

    def calibration(self, found: OutOfFold) -> Calibration | None:
        """Return intercept and slope of two classes with probabilities."""
        if self.units.size != 2 or found.proba is None:
            return None
        truth, proba = found.truth == self.positive, found.proba[:, self.positive]
        return calibration_line(truth, proba, weight=1 / found.n_repeats, level=self.level)

    def all(
        self, found: OutOfFold, classes: Sequence[Any], prevalence: float
    ) -> dict[str, Interval]:
        """Return every score that the predictions allow."""
        k = self.units.size
        scores = {"balanced_accuracy": self.balanced_accuracy(found)}
        ranked = self.roc_auc(found)
        if ranked is not None:
            scores["roc_auc"] = ranked
        if k == 2:
            one = self.positive
            scores["sensitivity"] = self.recall(found, one, self.level)
            scores["specificity"] = self.recall(found, 1 - one, self.level)
            rates = [self.recall(found, j, self.level**0.5) for j in (one, 1 - one)]
            scores |= predictive_values(rates[0], rates[1], prevalence)
        right = found.predicted == found.truth
        scores["accuracy"] = rate_interval([right.mean()], [self.units.sum()], level=self.level)
        if found.proba is not None:
            target = np.eye(k)[found.truth]
            errors = np.sum((found.proba - target) ** 2, axis=1) / 2
            folds = [errors[rows].mean() for rows in found.parts]
            variance = float(errors.var(ddof=1) / self.units.sum())
            scores["brier"] = mean_interval(
                float(errors.mean()),
                variance,
                fold_scores=folds,
                ratio=self.ratio,
                level=self.level,
            )
        if k > 2:
            for j, label in enumerate(classes):
                scores[f"recall {label}"] = self.recall(found, j, self.level)
        return scores


# -------------------------------------------------------------------------------- the result


@dataclass(frozen=True, repr=False)
class EvaluationResult(Scored):
    """Result of `sparsegsvp.nested_evaluate`.

    Attributes
    ----------
    classes, class_counts : tuple
        Labels, sorted, and their samples.
    positive : label or None
        The positive class of two, whose share among the samples is `prevalence`.
    n_samples, n_features, n_groups, feature_names
        Of the table; None where there are no groups, or no names.
    prior : {"equal", "training", "given", "none"}
        What the estimator's probabilities are for: equal class shares, those of its training
        samples, or those given. In this result they are moved to the shares of all samples.
    scores : dict of str to Interval
        balanced_accuracy, roc_auc, accuracy, brier; of two classes sensitivity, specificity, ppv
        and npv; of more ``recall <label>``. Rates are of all repeats together; areas are means over
        folds. Intervals are of the procedure on new samples.
    verdict : Verdict
        Whether there is signal.
    calibration : Calibration or None
        Of two classes with probabilities.
    panel : tuple of int or None
        Features of the fit on all samples, in the order chosen.
    panel_sizes : tuple of int
        Number of features of each outer fit.
    model, models
        The fit on all samples, and those of the ladder's sizes by size.
    stability : PanelStability or None
        Panels of half samples.
    batches, adjusted, flags
        Audits of batches, what adjusted features do alone, what the reader has to know.
    settings, seconds : dict
        Estimator, folds and seeds; time of each stage, which `to_dict` leaves out.
    """

    classes: tuple[Any, ...]
    positive: Any
    class_counts: tuple[int, ...]
    n_samples: int
    n_features: int
    n_groups: int | None
    feature_names: tuple[str, ...] | None
    prevalence: float | None
    prior: str
    scores: dict[str, Interval]
    verdict: Verdict
    calibration: Calibration | None
    panel: tuple[int, ...] | None
    panel_sizes: tuple[int, ...]
    model: Any
    models: dict[int, Any]
    stability: PanelStability | None
    batches: tuple[BatchAudit, ...]
    adjusted: Adjustment | None
    flags: tuple[Flag, ...]
    settings: dict[str, Any]
    out_of_fold: OutOfFold
    scoring: Scoring
    own_threshold: float
    fold_panels: tuple[tuple[int, ...], ...] | None
    sized: dict[int, OutOfFold]
    rungs: tuple[dict[str, Any], ...]
    level: float = 0.95
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        p = self.verdict.p_value
        lines = [
            f"EvaluationResult: {self.n_samples} samples, {self.n_features} features",
            f"  verdict: {self.verdict.answer}" + ("" if p is None else f" (p = {p:.2g})"),
        ]
        for name, s in self.scores.items():
            lines.append(f"  {name}: {s.value:.3f} ({s.low:.3f} to {s.high:.3f})")
        return "\n".join(lines)

    # --- numbers

    @property
    def size_range(self) -> tuple[float, int, int] | None:
        """Median, smallest and largest number of features of the outer fits."""
        sizes = self.panel_sizes
        return (float(median(sizes)), min(sizes), max(sizes)) if sizes else None

    @property
    def confusion(self) -> Float64Array:
        """Samples by true (rows) and predicted class (columns), the mean over the repeats."""
        found = self.out_of_fold
        labels = range(len(self.classes))
        return confusion_matrix(found.truth, found.predicted, labels=labels) / found.n_repeats

    def _rates(self, level: float) -> tuple[Interval, Interval] | None:
        if self.positive is None:
            return None
        one = self.scoring.positive
        found, scoring = self.out_of_fold, self.scoring
        return scoring.recall(found, one, level), scoring.recall(found, 1 - one, level)

    def _probabilities(self) -> Probabilities | None:
        found, one = self.out_of_fold, self.scoring.positive
        if self.positive is None or found.proba is None or self.prevalence is None:
            return None
        units = self.scoring.units
        return Probabilities(
            found.truth == one,
            found.proba[:, one],
            self.prevalence,
            self.own_threshold,
            found.n_repeats,
            (float(units[one]), float(units[1 - one])),
        )

    def at_size(self, size: int) -> EvaluationResult:
        """Return the result of exactly so many features, one of the ladder's sizes.

        Predictions, scores, panel and model are of that size. The permutation test is that of the
        procedure, judged by the score of that size.
        """
        if size not in self.models:
            raise ValueError(f"size must be one of {sorted(self.models)}, got {size!r}.")
        found, rung = self.sized[size], next(r for r in self.rungs if r["size"] == size)
        scores = self.scoring.all(found, self.classes, self.prevalence or 0.0)
        return replace(
            self,
            out_of_fold=found,
            scores=scores,
            verdict=self.verdict.judged(scores["balanced_accuracy"]),
            calibration=self.scoring.calibration(found),
            panel=tuple(rung["features"]),
            panel_sizes=(size,) * len(found.parts),
            fold_panels=None,
            model=self.models[size],
            flags=tuple(flag for flag in self.flags if flag.code != "sizes"),
        )

    # --- frames

    @cached_property
    def predictions(self) -> Any:
        """Every prediction out of fold: a data frame.

        Columns: sample (row of X), repeat, fold, truth, prediction; for each class
        ``probability_<label>`` (for the class shares of the samples), ``decision_<label>`` and
        ``distance_<label>``, where the estimator has them.
        """
        found, labels = self.out_of_fold, np.array(self.classes, dtype=object)
        columns: dict[str, Any] = {
            "sample": found.sample,
            "repeat": found.repeat,
            "fold": found.fold,
            "truth": labels[found.truth],
            "prediction": labels[found.predicted],
        }
        tables = {"probability": found.proba, "decision": found.decision}
        for name, table in {**tables, "distance": found.distances}.items():
            if table is not None:
                columns |= {f"{name}_{label}": table[:, j] for j, label in enumerate(self.classes)}
        ordered = frame(columns).sort_values(["repeat", "sample"], kind="stable")
        return ordered.reset_index(drop=True)

    @cached_property
    def folds(self) -> Any:
        """Every outer fold: repeat, fold, n_train, n_test, balanced_accuracy, roc_auc, size."""
        found, k = self.out_of_fold, len(self.classes)
        areas, _ = found.fold_areas(k, self.scoring.positive)
        rows = found.parts
        n_test = np.array([part.size for part in rows])
        return frame(
            {
                "repeat": [int(found.repeat[part[0]]) for part in rows],
                "fold": [int(found.fold[part[0]]) for part in rows],
                "n_train": self.n_samples - n_test,
                "n_test": n_test,
                "balanced_accuracy": found.fold_accuracies(k),
                "roc_auc": areas,
                "size": self.panel_sizes or np.nan,
            }
        )

    @cached_property
    def panels(self) -> Any:
        """The panels of the outer folds: repeat, fold, size, features; None when unknown."""
        if self.fold_panels is None:
            return None
        base = self.folds[["repeat", "fold"]]
        sizes = [len(panel) for panel in self.fold_panels]
        return base.assign(size=sizes, features=list(self.fold_panels))

    @cached_property
    def ladder(self) -> Any:
        """The score of exactly k features, for each size, as a data frame; None without a path.

        Columns: size, balanced_accuracy, low, high, roc_auc, roc_auc_low, roc_auc_high, stability,
        stability_noise, chosen_again, chosen_again_noise, features, names. No size was chosen by
        these scores, so each is honest; picking the best of them afterwards is not.
        """
        return frame(list(self.rungs)) if self.rungs else None

    def roc_curve(self) -> Any:
        """Return the ROC curve, averaged over the folds at equal false positive rates."""
        found, one = self.out_of_fold, self.scoring.positive
        if self.positive is None or found.decision is None:
            return None
        curves = []
        for rows in found.parts:
            truth = found.truth[rows] == one
            if truth.any() and not truth.all():
                fpr, tpr, _ = roc_curve(truth, found.decision[rows, one])
                curves.append(np.interp(_GRID, fpr, tpr))
        mean = np.mean(curves, axis=0)
        mean[0] = 0.0
        return frame({"fpr": _GRID, "tpr": mean})

    def to_dict(self) -> dict[str, Any]:
        """Return everything but models and timings, as JSON can hold it."""
        left_out = {"model", "models", "seconds", "out_of_fold", "scoring", "rungs", "fold_panels"}
        left_out.add("sized")
        kept = [name for name in self.__dataclass_fields__ if name not in left_out]
        result = {name: getattr(self, name) for name in kept}
        tables = {"predictions": self.predictions, "folds": self.folds}
        tables |= {"panels": self.panels, "ladder": self.ladder, "roc_curve": self.roc_curve()}
        result |= {k: None if t is None else t.to_dict("list") for k, t in tables.items()}
        result |= {"confusion": self.confusion, "size_range": self.size_range, **self._curves()}
        return plain(result)


@dataclass(frozen=True)
class Adjustment:
    """What features that are adjusted for reach `alone`, on the same folds, and what is `added`."""

    features: tuple[int, ...]
    names: tuple[str, ...] | None
    alone: EvaluationResult
    added: Difference

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return plain({**vars(self), "alone": None, "scores": self.alone.scores})


def paired_difference(
    first: EvaluationResult,
    second: EvaluationResult,
    score: str = "balanced_accuracy",
    *,
    level: float = 0.95,
) -> Difference:
    """Estimate the difference of two procedures over the same folds, with its interval.

    Both have met the same samples in every fold, so what makes a fold hard or easy cancels. The
    variance is the larger of the corrected one over folds and that of sampling.

    Parameters
    ----------
    first, second : EvaluationResult
        Of `nested_evaluate`, on the same samples with the same folds.
    score : {"balanced_accuracy", "roc_auc"}, default="balanced_accuracy"
        Which of their scores.
    level : float, default=0.95
        Nominal coverage of the interval.

    Returns
    -------
    Difference
        The first score minus the second.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sparsegsvp import nested_evaluate
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import paired_difference
    >>> X, y = make_planted(60, 20, 3, effect=2.0, random_state=0, return_X_y=True)
    >>> a, b = (nested_evaluate(model, X, y, n_permutations=0)
    ...         for model in (GaussianNB(), DummyClassifier()))
    >>> paired_difference(a, b).low > 0
    True
    """
    a, b = first.out_of_fold, second.out_of_fold
    same = first.classes == second.classes and a.sample.size == b.sample.size
    if not same or not all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("sample", "repeat", "fold", "truth")
    ):
        raise ValueError(
            "the two evaluations differ in their samples or folds: evaluate both on the same rows "
            "with the same groups, n_splits, n_repeats and random_state."
        )
    if score not in ("balanced_accuracy", "roc_auc"):
        raise ValueError(f"score must be 'balanced_accuracy' or 'roc_auc', got {score!r}.")
    if score not in first.scores or score not in second.scores:
        raise ValueError(f"{score} is not among the scores of both evaluations.")
    value = first.scores[score].value - second.scores[score].value
    return paired_differences(
        [value], [difference_variance(a, b, first.scoring, score)], [len(a.parts) - 1], level=level
    )[0]


def difference_variance(a: OutOfFold, b: OutOfFold, scoring: Scoring, score: str) -> float:
    """Return the variance of a paired difference: the larger of folds' and sampling's."""
    k = scoring.units.size
    if score == "roc_auc":
        areas = [x.fold_areas(k, scoring.positive)[0] for x in (a, b)]
        return fold_variance(areas[0] - areas[1], scoring.ratio)
    gaps = (a.predicted == a.truth).astype(np.float64) - (b.predicted == b.truth)
    sampling = 0.0
    for j in range(k):
        rows = a.truth == j
        # a sample's mean over the repeats; half a sample is taken to differ, at the least
        n = scoring.units[j]
        means = np.bincount(a.sample[rows], gaps[rows]) / np.maximum(np.bincount(a.sample[rows]), 1)
        tested = means[np.unique(a.sample[rows])]
        spread = (float(np.sum((tested - tested.mean()) ** 2)) + 0.5) / (tested.size + 1)
        sampling += spread / n / k**2
    folds = a.fold_accuracies(k) - b.fold_accuracies(k)
    if not gaps.any():
        return 0.0
    return max(sampling, fold_variance(folds, scoring.ratio))
