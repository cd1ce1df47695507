"""The result of an evaluation: predictions out of fold, and all numbers that follow from them.

Every rate, predictive value, threshold and calibration comes from one set of predictions, those of
all repeats. Frames are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Float64Array, IntArray, Record
from .._validate import check_real, need
from ..metrics import Calibration, Difference, Interval, clinical, intervals
from .procedure import panel_of
from .splits import Fold

if TYPE_CHECKING:
    from .external import BatchAudit
    from .permutation import Verdict
    from .stability import PanelStability

_GRID = np.linspace(0, 1, 101)
#: What is known of panels of each size from half samples.
COLUMNS = ("stability", "stability_noise", "chosen_again", "chosen_again_noise")


@dataclass(frozen=True)
class Flag(Record):
    """Something the reader has to know, as a code and its numbers; the report has the words."""

    code: str
    numbers: dict[str, Any]


def frame(columns: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Any:
    """Return columns or rows as a pandas data frame; say how to get pandas where it is missing."""
    return need("pandas", "cli").DataFrame(columns)


@dataclass(frozen=True)
class OutOfFold:
    """Predictions of every fold: one row a prediction, one column a class in tables."""

    sample: IntArray
    repeat: IntArray
    fold: IntArray
    truth: IntArray
    predicted: IntArray
    decision: Float64Array | None
    proba: Float64Array | None  # for the class shares of the samples
    distances: Float64Array | None = None

    @classmethod
    def gather(cls, codes: IntArray, folds: Sequence[Fold], answers: Sequence[Any]) -> OutOfFold:
        """Join the answers of all folds."""

        def joined(name: str) -> Any:
            parts = [getattr(a, name) for a in answers]
            return None if any(part is None for part in parts) else np.concatenate(parts)

        sample = np.concatenate([fold.test for fold in folds])
        sizes = [fold.test.size for fold in folds]
        repeat = np.repeat([fold.repeat for fold in folds], sizes)
        index = np.repeat([fold.index for fold in folds], sizes)
        tables = [joined(name) for name in ("predicted", "decision", "proba", "distances")]
        return cls(sample, repeat, index, codes[sample], *tables)

    @cached_property
    def parts(self) -> list[IntArray]:
        """Rows of each fold."""
        keys = self.repeat * self.n_folds + self.fold
        return [np.flatnonzero(keys == key) for key in np.unique(keys)]

    @property
    def n_folds(self) -> int:
        """Number of folds of a repeat."""
        return int(self.fold.max()) + 1

    @property
    def n_repeats(self) -> int:
        """Number of repeats."""
        return int(np.unique(self.repeat).size)

    def confusion(self, n_classes: int) -> Float64Array:
        """Samples by true (rows) and predicted class (columns), the mean over the repeats."""
        cells = np.bincount(self.truth * n_classes + self.predicted, minlength=n_classes**2)
        return cells.reshape(n_classes, n_classes) / self.n_repeats

    def recalls(self, n_classes: int, rows: Any = slice(None)) -> Float64Array:
        """Share of each class that is recognised, of all predictions or some; nan without any."""
        truth, right = self.truth[rows], self.predicted[rows] == self.truth[rows]
        totals = np.bincount(truth, minlength=n_classes)
        hits = np.bincount(truth[right], minlength=n_classes)
        return np.where(totals > 0, hits / np.maximum(totals, 1), np.nan)

    def fold_accuracies(self, n_classes: int) -> Float64Array:
        """Balanced accuracy of each fold, over the classes that it tests."""
        return np.array([np.nanmean(self.recalls(n_classes, rows)) for rows in self.parts])

    def placements(self, n_classes: int, positive: int) -> Float64Array:
        """Share of the other class that each prediction is on the right side of, in its fold.

        One row for the positive class of two; with more, one for each class against the rest. nan
        in folds that lack a class.
        """
        placed = np.full((len(self.ones(n_classes, positive)), self.truth.size), np.nan)
        for rows in self.parts:
            truth = self.truth[rows]
            if self.decision is not None and np.unique(truth).size == n_classes:
                for row, k in zip(placed, self.ones(n_classes, positive)):
                    row[rows] = intervals.placements(truth == k, self.decision[rows, k])
        return placed

    @staticmethod
    def ones(n_classes: int, positive: int) -> Sequence[int]:
        """Return the classes that an area is of, each against the rest."""
        return [positive] if n_classes == 2 else range(n_classes)

    def fold_areas(self, n_classes: int, positive: int) -> Float64Array:
        """Area under the curve of each fold; the mean of one against the rest with K > 2."""
        pairs = list(zip(self.placements(n_classes, positive), self.ones(n_classes, positive)))
        return np.array(
            [
                np.mean([row[rows[self.truth[rows] == k]].mean() for row, k in pairs])
                for rows in self.parts
            ]
        )


def of_both_ends(low: Mapping[Any, Interval], high: Mapping[Any, Interval]) -> dict[Any, Interval]:
    """Return intervals with the lower ends of some and the upper ends of others."""
    return {name: replace(first, high=high[name].high) for name, first in low.items()}


@dataclass(frozen=True)
class Scoring:
    """What turns predictions into scores with intervals."""

    units: Float64Array  # independent samples of each class
    positive: int
    level: float
    groups: IntArray | None = None  # of the samples
    exact: bool = False  # of one model on samples that it has not seen

    def _units_of(self, found: OutOfFold) -> IntArray:
        """Return the independent unit of each prediction: a sample or its group."""
        return found.sample if self.groups is None else self.groups[found.sample]

    def sampling(self, found: OutOfFold, values: Any) -> Float64Array:
        """Return the covariances of the means of all classes, of one value a prediction."""
        units, numbers = self._units_of(found), np.asarray(values, dtype=np.float64)
        sides, n_units = [found.truth == j for j in range(self.units.size)], int(units.max()) + 1
        moved = [intervals.influences(numbers[side], units[side], n_units) for side in sides]
        if self.groups is None:
            return np.diag([fsum(part**2) for part in moved])
        # classes that have groups in common vary together
        return np.array([[fsum(a * b) for a in moved] for b in moved])

    def _luck(self, found: OutOfFold, truth: float, above: bool) -> float:
        """Return the luck with the training samples, if a balanced accuracy was the truth."""
        return intervals.training_luck(truth, self.units.size, found.n_folds, above=above)

    def lucks(self, found: OutOfFold) -> tuple[float, float]:
        """Return the luck with the training samples at either end of the balanced accuracy.

        Every score is between what it is at the one end and at the other. None for one model.
        """
        if self.exact:
            return 0.0, 0.0
        ends = self.balanced_accuracy(found)
        return self._luck(found, ends.low, False), self._luck(found, ends.high, True)

    def _covariances(self, found: OutOfFold) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return recalls that are never quite 0 or 1, and what `rate_covariance` says of them."""
        sampling = self.sampling(found, found.predicted == found.truth)
        return intervals.rate_covariance(found.recalls(self.units.size), self.units, sampling)

    def worth(self, found: OutOfFold, luck: float) -> tuple[list[float], float]:
        """Return how many trials each recall is worth, and how far two of them err together."""
        if self.exact:
            return self.units.tolist(), 0.0
        rates, sampling, spread = self._covariances(found)
        own = np.diag(covariance := sampling + luck * spread)
        correlation = float(np.clip(covariance[0, 1] / np.sqrt(own[0] * own[1]), -1, 1))
        return (rates * (1 - rates) / own).tolist(), correlation

    def rates(self, found: OutOfFold) -> dict[int, Interval]:
        """Return the recall of each class that has samples."""
        return of_both_ends(*(self._rates(found, luck)[0] for luck in self.lucks(found)))

    def _rates(self, found: OutOfFold, luck: float) -> tuple[dict[int, Interval], float]:
        """Return the recalls if the luck was such, and their correlation."""
        interval: Any = intervals.exact_interval if self.exact else intervals.proportion_interval
        recalls, result = found.recalls(self.units.size), {}
        worth, correlation = self.worth(found, luck)
        for j, trials in enumerate(worth):
            if trials:
                first = round(recalls[j] * trials) if self.exact else float(recalls[j])
                result[j] = interval(first, trials, level=self.level)
        return result, correlation

    def predictive_values(self, found: OutOfFold, share: float | None) -> dict[str, Interval]:
        """Return ``ppv`` and ``npv`` at a prevalence; nothing without samples of two classes."""
        if self.units.size != 2 or not self.units.all() or share is None:
            return {}
        both = []
        for rates, correlation in (self._rates(found, luck) for luck in self.lucks(found)):
            pair = rates[self.positive], rates[1 - self.positive]
            both.append(clinical.predictive_values(*pair, share, correlation=correlation))
        return of_both_ends(*both)

    def balanced_accuracy(self, found: OutOfFold) -> Interval:
        """Return the mean of the recalls, of all repeats together."""
        k = self.units.size
        if self.exact:
            hits = [round(hit) for hit in found.recalls(k) * self.units]
            totals = [int(n) for n in self.units]
            return intervals.recall_mean_interval(hits, totals, level=self.level)
        mean = self._mean(found, np.full(k, 1 / k))
        return intervals.two_ends(
            mean(0.0).value, lambda truth, above: mean(self._luck(found, truth, above))
        )

    def accuracy(self, found: OutOfFold) -> Interval:
        """Return the share of samples that are recognised, of all repeats together."""
        right = found.predicted == found.truth
        if self.exact:
            return intervals.exact_interval(int(right.sum()), right.size, level=self.level)
        shares = np.bincount(found.truth, minlength=self.units.size) / right.size
        return self._between(found, self._mean(found, shares))

    def _between(
        self, found: OutOfFold, interval: Callable[[float], Interval], *, falls: bool = False
    ) -> Interval:
        """Return an interval whose ends have the luck of either end of the balanced accuracy."""
        low, high = (interval(luck) for luck in self.lucks(found)[:: -1 if falls else 1])
        return replace(low, high=high.high)

    def _mean(self, found: OutOfFold, weights: Float64Array) -> Callable[[float], Interval]:
        """Return the interval of a weighted mean of the recalls, by the luck."""
        value = min(1.0, float(weights @ found.recalls(self.units.size)))
        rates, sampling, spread = self._covariances(found)
        mean = float(weights @ rates)

        def interval(luck: float) -> Interval:
            trials = mean * (1 - mean) / float(weights @ (sampling + luck * spread) @ weights)
            return intervals.proportion_interval(value, trials, level=self.level)

        return interval

    def roc_auc(self, found: OutOfFold) -> Interval | None:
        """Return the mean area over the folds; None where nothing ranks the samples."""
        areas = found.fold_areas(self.units.size, self.positive)
        if not np.isfinite(areas).any():
            return None
        placed = found.placements(self.units.size, self.positive)
        area = float(np.nanmean(areas))

        def interval(luck: float) -> Interval:
            variance = self.area_variance(found, placed, intervals.AREA_LUCK * luck)
            return intervals.auc_interval(area, variance, self.units, level=self.level)

        return self._between(found, interval)

    def area_variance(
        self, found: OutOfFold, placed: Float64Array, luck: float, least: float = 0.0
    ) -> float:
        """Return the variance of a mean area, or of a difference, by placements of predictions.

        DeLong's, where a sample counts with its mean over the repeats, with its placements for all
        classes and with those of its group, and the luck with the training samples, which areas
        share as recalls do. `least` of a sample is taken to differ.
        """
        units = self._units_of(found)
        influence, total, spread = np.zeros(int(units.max()) + 1), 0.0, 0.0
        for k, row in zip(found.ones(self.units.size, self.positive), placed):
            spreads = []
            for side in (found.truth == k, found.truth != k):
                known = side & np.isfinite(row)
                of_side, values = units[known], row[known]
                count = np.unique(of_side).size
                if count < 2:
                    return float("nan")
                moved = intervals.influences(values, of_side, influence.size)
                influence += moved * np.sqrt(count / (count - 1))
                total += least / count**2
                spreads.append(values.var() / count)
            spread += float(intervals.shared(np.array(spreads)).sum())
        n_areas = len(placed)
        total += fsum(influence**2) + luck * spread * min(n_areas, 2)
        return total / n_areas**2

    def brier(self, found: OutOfFold) -> Interval | None:
        """Return the mean squared error of the probabilities, half of it summed over classes."""
        if found.proba is None:
            return None
        target = np.eye(self.units.size)[found.truth]
        errors, n = np.sum((found.proba - target) ** 2, axis=1) / 2, float(self.units.sum())
        sampling = fsum(intervals.influences(errors, self._units_of(found)) ** 2)
        mean, variance = intervals.never_certain(errors.mean(), n, sampling)

        def interval(luck: float) -> Interval:
            total = variance + intervals.BRIER_LUCK * luck * errors.var() / n
            trials = float(mean * (1 - mean) / total)
            return intervals.proportion_interval(float(errors.mean()), trials, level=self.level)

        return self._between(found, interval, falls=True)

    def calibration(self, found: OutOfFold) -> Calibration | None:
        """Return intercept and slope of two classes with probabilities."""
        if self.units.size != 2 or found.proba is None:
            return None
        truth, proba = found.truth == self.positive, found.proba[:, self.positive]
        return clinical.calibration_line(truth, proba, weight=1 / found.n_repeats, level=self.level)

    def own_threshold(self, prior: Any, shares: Float64Array) -> float:
        """Return the probability, at the samples' shares, where labels of a model change."""
        if prior is None or shares.size > 2 or not shares.all():
            return 0.5
        one = self.positive
        return float(clinical.move_prior([0.5], float(prior[one]), float(shares[one]))[0])

    def all(
        self, found: OutOfFold, classes: Sequence[Any], prevalence: float | None
    ) -> dict[str, Interval]:
        """Return every score that the predictions allow."""
        scores: dict[str, Interval | None] = {}
        if self.units.all():
            scores["balanced_accuracy"] = self.balanced_accuracy(found)
            scores["roc_auc"] = self.roc_auc(found)
        known, k = self.rates(found), self.units.size
        if k == 2:
            scores["sensitivity"] = known.get(self.positive)
            scores["specificity"] = known.get(1 - self.positive)
            scores |= self.predictive_values(found, prevalence)
        scores["accuracy"] = self.accuracy(found)
        scores["brier"] = self.brier(found)
        if k > 2:
            scores |= {f"recall {classes[j]}": recall for j, recall in known.items()}
        return {name: score for name, score in scores.items() if score is not None}


@dataclass(frozen=True, repr=False)
class Scored:
    """Predictions with their scores and, of two classes, what follows from probabilities."""

    classes: tuple[Any, ...]
    positive: Any
    class_counts: tuple[int, ...]
    prevalence: float | None
    scores: dict[str, Interval]
    calibration: Calibration | None
    flags: tuple[Flag, ...]
    out_of_fold: OutOfFold
    scoring: Scoring
    own_threshold: float  # probability, at the samples' shares, where the model's labels change

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}: {self.n_samples} samples"]
        for name, s in self.scores.items():
            lines.append(f"  {name}: {s.value:.3f} ({s.low:.3f} to {s.high:.3f})")
        return "\n".join(lines)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return sum(self.class_counts)

    @property
    def confusion(self) -> Float64Array:
        """Samples by true (rows) and predicted class (columns), the mean over the repeats."""
        return self.out_of_fold.confusion(len(self.classes))

    def to_frame(self) -> Any:
        """Return the scores as a data frame: score, value, low and high."""
        rows = [(name, s.value, s.low, s.high) for name, s in self.scores.items()]
        return frame(dict(zip(("score", "value", "low", "high"), map(list, zip(*rows)))))

    def predictive_values(self, prevalence: float | None = None) -> dict[str, Interval]:
        """Return ``ppv`` and ``npv`` at a prevalence, by default that of the samples.

        Empty with more than two classes; one is left out where no sample is called so.
        """
        share = self.prevalence if prevalence is None else prevalence
        return self.scoring.predictive_values(self.out_of_fold, share)

    def _probabilities(self, prevalence: float | None) -> tuple[Any, Any, dict[str, Any]] | None:
        """Return positives, their probabilities and how to read them; None without."""
        found, scoring = self.out_of_fold, self.scoring
        if self.positive is None or found.proba is None or self.prevalence is None:
            return None
        if prevalence is not None:
            check_real("prevalence", prevalence, above=0, below=1)
        y, one = found.truth == scoring.positive, scoring.positive
        options: dict[str, Any] = {"prior": float(y.mean()), "level": scoring.level}
        options["prevalence"] = self.prevalence if prevalence is None else prevalence
        return y, found.proba[:, one], options

    def _with_ends(self, table: Callable[..., Mapping[str, Any]], known: Any, **more: Any) -> Any:
        """Return a table as a data frame, its lower and upper ends each with their luck."""
        (y, p, options), found, one = known, self.out_of_fold, self.scoring.positive
        both = []
        for luck in self.scoring.lucks(found):
            trials, more["correlation"] = self.scoring.worth(found, luck)
            more["trials"] = trials[one], trials[1 - one]
            both.append(table(y, p, **options, **more))
        low, high = both
        return frame({name: (high if name.endswith("high") else low)[name] for name in low})

    def thresholds(self, prevalence: float | None = None) -> Any:
        """Return rates, predictive values and net benefit at thresholds as a data frame.

        None without probabilities of two classes; at the samples' prevalence if none is given.
        """
        known = self._probabilities(prevalence)
        if known is None:
            return None
        prior, prevalence = known[2]["prior"], known[2]["prevalence"]
        own = float(clinical.move_prior([self.own_threshold], prior, prevalence)[0])
        return self._with_ends(clinical.threshold_table, known, own=own)

    def slider(self) -> Any:
        """Return who is called positive at any threshold, as a data frame.

        ``threshold`` is for equal shares of the classes, so that it can be moved to any
        prevalence; ``tp``, ``fp``, ``tn`` and ``fn`` are means over the repeats.
        """
        known = self._probabilities(None)
        if known is None:
            return None
        y, p, options = known
        counts = clinical.threshold_counts(y, clinical.move_prior(p, options["prior"], "equal"))
        shown = {k: v / self.out_of_fold.n_repeats for k, v in counts.items() if k != "threshold"}
        return frame({"threshold": counts["threshold"], **shown})

    def decision_curve(self, prevalence: float | None = None) -> Any:
        """Return net benefit against the threshold as a data frame; see `thresholds`."""
        known = self._probabilities(prevalence)
        return None if known is None else self._with_ends(clinical.decision_curve, known)

    def calibration_curve(self) -> Any:
        """Return predicted and observed shares of positives, and counts, as a data frame.

        In five bins of equal counts; those that ties make equal are one.
        """
        known = self._probabilities(None)
        if known is None:
            return None
        y, p, _ = known
        bins = np.searchsorted(np.percentile(p, [20, 40, 60, 80]), p)
        _, member, count = np.unique(bins, return_inverse=True, return_counts=True)
        predicted, observed = (np.bincount(member, part) / count for part in (p, y))
        return frame({"predicted": predicted, "observed": observed, "count": count})

    def roc_curve(self) -> Any:
        """Return the ROC curve; of several folds their mean at equal false positive rates."""
        from sklearn.metrics import roc_curve

        found, one = self.out_of_fold, self.scoring.positive
        if self.positive is None or found.decision is None or min(self.class_counts) == 0:
            return None
        curves = []
        for rows in found.parts:
            truth = found.truth[rows] == one
            if truth.any() and not truth.all():
                curves.append(roc_curve(truth, found.decision[rows, one])[:2])
        if len(curves) == 1:
            return frame(dict(zip(("fpr", "tpr"), curves[0])))
        mean = np.mean([np.interp(_GRID, *curve) for curve in curves], axis=0)
        mean[0] = 0.0
        return frame({"fpr": _GRID, "tpr": mean})


@dataclass(frozen=True, repr=False)
class EvaluationResult(Scored):
    """Result of `sparsegsvp.nested_evaluate`.

    Attributes
    ----------
    classes, class_counts : tuple
        Labels, sorted, and their samples.
    positive : label or None
        The positive class of two, whose share among the samples is `prevalence`.
    n_features, n_groups, feature_names
        Of the table; None where there are no groups, or no names.
    prior : {"equal", "training", "given", "none"}
        The class shares that the estimator's probabilities are for; here they are moved to those
        of all samples.
    scores : dict of str to Interval
        balanced_accuracy, roc_auc, accuracy, brier; of two classes sensitivity, specificity, ppv
        and npv; of more ``recall <label>``. Rates are of all repeats, areas are means over folds;
        intervals are of the procedure on new samples.
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
        Estimator, folds and seeds; time of each stage.
    """

    n_features: int
    n_groups: int | None
    feature_names: tuple[str, ...] | None
    prior: str
    verdict: Verdict
    panel: tuple[int, ...] | None
    panel_sizes: tuple[int, ...]
    model: Any
    models: dict[int, Any]
    stability: PanelStability | None
    batches: tuple[BatchAudit, ...]
    adjusted: Adjustment | None
    settings: dict[str, Any]
    fold_panels: tuple[tuple[int, ...], ...] | None
    sized: dict[int, OutOfFold]
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        p = self.verdict.p_value
        said = f"  verdict: {self.verdict.answer}" + ("" if p is None else f" (p = {p:.2g})")
        first, *rest = super().__repr__().splitlines()
        return "\n".join([f"{first}, {self.n_features} features", said, *rest])

    @property
    def size_range(self) -> tuple[float, int, int] | None:
        """Median, smallest and largest number of features of the outer fits."""
        sizes = self.panel_sizes
        return (float(np.median(sizes)), min(sizes), max(sizes)) if sizes else None

    @property
    def confusions(self) -> dict[int, Float64Array]:
        """What `confusion` is for exactly k features, for each size of the ladder."""
        return {k: found.confusion(len(self.classes)) for k, found in self.sized.items()}

    def at_size(self, size: int) -> EvaluationResult:
        """Return the result of exactly so many features, one of the ladder's sizes.

        Predictions, scores, panel and model are of that size. The permutation test is that of the
        procedure, judged by the score of that size.
        """
        if size not in self.models:
            raise ValueError(f"size must be one of {sorted(self.models)}, got {size!r}.")
        found = self.sized[size]
        scores = self.scoring.all(found, self.classes, self.prevalence)
        return replace(
            self,
            out_of_fold=found,
            scores=scores,
            verdict=self.verdict.judged(scores["balanced_accuracy"]),
            calibration=self.scoring.calibration(found),
            panel=panel_of(self.models[size], self.n_features),
            panel_sizes=(size,) * len(found.parts),
            fold_panels=None,
            model=self.models[size],
            flags=tuple(flag for flag in self.flags if flag.code != "sizes"),
        )

    @cached_property
    def predictions(self) -> Any:
        """Every prediction out of fold: a data frame.

        Columns: sample (row of X), repeat, fold, truth, prediction; for each class
        ``probability_<label>`` (for the class shares of the samples), ``decision_<label>`` and
        ``distance_<label>``, where the estimator has them.
        """
        found, labels = self.out_of_fold, np.array(self.classes, dtype=object)
        columns = {name: getattr(found, name) for name in ("sample", "repeat", "fold")}
        columns |= {"truth": labels[found.truth], "prediction": labels[found.predicted]}
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
        rows = found.parts
        n_test = np.array([part.size for part in rows])
        return frame(
            {
                "repeat": [int(found.repeat[part[0]]) for part in rows],
                "fold": [int(found.fold[part[0]]) for part in rows],
                "n_train": self.n_samples - n_test,
                "n_test": n_test,
                "balanced_accuracy": found.fold_accuracies(k),
                "roc_auc": found.fold_areas(k, self.scoring.positive),
                "size": self.panel_sizes or np.nan,
            }
        )

    @cached_property
    def panels(self) -> Any:
        """The panels of the outer folds: repeat, fold, size, features; None when unknown."""
        if self.fold_panels is None:
            return None
        return self.folds[["repeat", "fold", "size"]].assign(features=list(self.fold_panels))

    @cached_property
    def ladder(self) -> Any:
        """The score of exactly k features, for each size, as a data frame; None without a path.

        Columns: size, balanced_accuracy, low, high, roc_auc, roc_auc_low, roc_auc_high, stability,
        stability_noise, chosen_again, chosen_again_noise, features, names. No size was chosen by
        these scores, so each is honest; picking the best of them afterwards is not.
        """
        rows, nothing = [], Interval(np.nan, np.nan, np.nan)
        for size, found in self.sized.items():
            score = self.scoring.balanced_accuracy(found)
            area = self.scoring.roc_auc(found) or nothing
            row: dict[str, Any] = {"size": size, "balanced_accuracy": score.value}
            row |= {"low": score.low, "high": score.high, "roc_auc": area.value}
            row |= {"roc_auc_low": area.low, "roc_auc_high": area.high}
            row |= dict.fromkeys(COLUMNS, np.nan)
            row |= {} if self.stability is None else self.stability.at(size)
            row["features"] = panel_of(self.models[size], self.n_features) or ()
            names = self.feature_names or [str(j) for j in range(self.n_features)]
            rows.append({**row, "names": tuple(names[j] for j in row["features"])})
        return frame(rows) if rows else None

    @cached_property
    def class_recalls(self) -> Any:
        """The recall of each class at each size of the ladder, as a data frame; None without.

        Columns: size, label, recall, low, high.
        """
        rows = []
        for size, found in self.sized.items():
            for j, rate in self.scoring.rates(found).items():
                row = {"size": size, "label": str(self.classes[j]), "recall": rate.value}
                rows.append({**row, "low": rate.low, "high": rate.high})
        return frame(rows) if rows else None


@dataclass(frozen=True)
class Adjustment:
    """What features that are adjusted for reach `alone`, on the same folds, and what is `added`."""

    features: tuple[int, ...]
    names: tuple[str, ...] | None
    alone: EvaluationResult
    added: Difference


def paired_difference(
    first: EvaluationResult,
    second: EvaluationResult,
    score: str = "balanced_accuracy",
    *,
    level: float = 0.95,
) -> Difference:
    """Estimate the difference of two procedures over the same folds, with its interval.

    Both have met the same samples in every fold, so what makes a sample hard or easy cancels. The
    variance is that of the samples' differences, and of the luck with the training samples.

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
    names = ("sample", "repeat", "fold", "truth")
    same = all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)
    if first.classes != second.classes or not same:
        raise ValueError(
            "the two evaluations differ in their samples or folds: evaluate both on the same rows "
            "with the same groups, n_splits, n_repeats and random_state."
        )
    if score not in ("balanced_accuracy", "roc_auc"):
        raise ValueError(f"score must be 'balanced_accuracy' or 'roc_auc', got {score!r}.")
    if score not in first.scores or score not in second.scores:
        raise ValueError(f"{score} is not among the scores of both evaluations.")
    value = first.scores[score].value - second.scores[score].value
    variance = difference_variance(a, b, first.scoring, score)
    freedom = first.scoring.units.sum() - len(first.classes)
    return intervals.paired_differences([value], [variance], [freedom], level=level)[0]


def difference_variance(a: OutOfFold, b: OutOfFold, scoring: Scoring, score: str) -> float:
    """Return the variance of a paired difference, by samples that both have judged."""
    k, n = scoring.units.size, scoring.units
    luck = intervals.DIFFERENCE_LUCK[score] * (a.n_folds - 1)
    if score == "roc_auc":
        first, second = (x.placements(k, scoring.positive) for x in (a, b))
        return scoring.area_variance(a, first - second, luck, least=1 / 32)
    gaps = (a.predicted == a.truth).astype(np.float64) - (b.predicted == b.truth)
    if not gaps.any():
        return 0.0
    covariance = scoring.sampling(a, gaps)
    own = np.diag(covariance)  # a quarter of a sample is taken to differ, at the least
    total = covariance.sum() + np.sum((n**2 * own + 0.25) / (n + 0.25) / n - own)
    spreads = np.array([gaps[a.truth == j].var() for j in range(k)]) / n
    return float(total + luck * intervals.shared(spreads).sum()) / k**2
