"""Samples from elsewhere: another cohort, its values against training, and batches left out.

Of a batch variable two things are asked: is the class told from the batch, and how well is a batch
predicted that was never seen? The best rule that knows the batch alone predicts in batch b the
class with the largest n_bk / n_k; its balanced accuracy is (1/K) sum over b of the largest. On all
samples that flatters the more the more batches there are, so the mean over shuffled batches stands
beside it. Then each batch is left out once, and the procedure predicts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut
from sklearn.utils import check_consistent_length

from .._typing import Float64Array, IntArray, Record
from .._validate import check_real, derive_seed, first_few
from ..metrics.clinical import class_shares, move_prior
from ..metrics.intervals import Interval, recall_mean_interval
from .procedure import Answer, class_scores, estimator_prior, last_step
from .result import Flag, OutOfFold, Scored, Scoring
from .splits import Fold, Samples

LEVEL = 0.01  # of the tests of shifts, shared by all features and both questions (Bonferroni)
LEAST_SHIFT, LEAST_FACTOR = 0.5, 2.0  # training standard deviations, and ratio, worth a word
_FEW = 10  # samples below which a spread is taken from training, if that is larger
LEFT_OUT = "batches left out"
_DRAWS = 999
_MOST = 20  # batches above which several are left out at a time
_FEWEST_LEFT = 4  # samples of each class that must be left to tune and fit on
_CLOSELY = 0.5  # share of the way from chance to certainty at which class and batch go together
_STREAM = 31  # keeps these seeds apart


@dataclass(frozen=True, repr=False)
class ExternalValidation(Scored):
    """Scores of a model on a cohort; the result of `validate_external`.

    Attributes
    ----------
    classes, positive, class_counts, scores, confusion, calibration
        As of `EvaluationResult`, with exact intervals; what the cohort cannot show is absent.
    prevalence : float or None
        Share of the positive class that predictive values, thresholds and the decision curve are
        for; None with more than two classes, or where only one of two is there.
    observed_prevalence : bool
        Whether that is the cohort's own share, because none was given.
    shift : tuple of FeatureShift or None
        The panel's values against training; None where that was not looked at.
    flags : tuple of Flag
        What could not be said, and why.
    """

    observed_prevalence: bool
    shift: tuple[FeatureShift, ...] | None


def validate_external(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    pos_label: Any = None,
    prevalence: float | None = None,
    prior: Any = None,
    level: float = 0.95,
) -> ExternalValidation:
    """Validate a fitted classifier on samples that took no part in fitting it.

    Parameters
    ----------
    model : classifier
        Fitted; with ``predict_proba`` for calibration, decision curve and thresholds.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        The cohort.
    y : array-like of shape (n_samples,)
        Its labels.
    pos_label, level
        As in `sparsegsvp.nested_evaluate`.
    prevalence : float, optional
        Share of the positive class where the model is to be used; by default that of the cohort.
    prior : "equal" or array-like of shape (n_classes,), optional
        The class shares that the model's probabilities are for. Needed where it neither says them
        (``prior_``) nor weights the classes: it does not remember those of its training samples,
        and the cohort's are taken for them.

    Returns
    -------
    ExternalValidation

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import validate_external
    >>> X, y = make_planted(120, 20, 2, effect=2.5, return_X_y=True)
    >>> model = GSVPSVM(n_features=2).fit(X[:80], y[:80])
    >>> found = validate_external(model, X[80:], y[80:], prevalence=0.1)
    >>> round(found.scores["roc_auc"].value, 2) > 0.9, found.prevalence
    (True, 0.1)
    """
    check_real("level", level, above=0, below=1)
    if prevalence is not None:
        check_real("prevalence", prevalence, above=0, below=1)
    labels = np.asarray(model.classes_).tolist()
    k, one = len(labels), positive_code(labels, pos_label)
    truth, predicted = _codes(y, labels), _codes(model.predict(X), labels)
    check_consistent_length(truth, predicted)
    decision, proba = class_scores(model, X)
    prior = estimator_prior(model, k) if prior is None else class_shares("prior", prior, k)
    if prior is None:
        prior = getattr(last_step(model), "class_prior_", None)
    totals = np.bincount(truth, minlength=k)
    shares, complete = totals / truth.size, bool(totals.all())
    if decision is not None and not np.isfinite(decision).all():
        decision = None
    if proba is not None:
        given = shares if prior is None else prior
        proba = move_prior(proba, given, shares) if complete else None
    zeros = np.zeros(truth.size, dtype=np.intp)
    found = OutOfFold(np.arange(truth.size), zeros, zeros, truth, predicted, decision, proba)
    scoring = Scoring(totals.astype(np.float64), one, level, exact=True)
    share = (float(shares[one]) if prevalence is None else prevalence) if k == 2 else None
    share = share if complete else None
    calibration = scoring.calibration(found)
    flags = [Flag("absent", {"class": labels[j]}) for j in np.flatnonzero(totals == 0)]
    if 0 < totals.min() < 10:
        count = int(totals.min())
        flags.append(Flag("few", {"class": labels[int(totals.argmin())], "count": count}))
    if k == 2 and complete:
        if np.ptp(predicted) == 0:
            flags.append(Flag("one call", {"label": labels[predicted[0]]}))
        if decision is not None and np.ptp(decision[:, one]) == 0:
            flags.append(Flag("equal ranks", {}))
        if proba is None:
            flags.append(Flag("no probabilities", {}))
        elif calibration is not None and calibration.slope is None:
            flags.append(Flag("no slope", {"separated": bool(np.ptp(proba[:, one]) > 0)}))
    return ExternalValidation(
        classes=tuple(labels), positive=labels[one] if k == 2 else None, prevalence=share,
        class_counts=tuple(totals.tolist()), scores=scoring.all(found, labels, share),
        calibration=calibration, flags=tuple(flags), out_of_fold=found, scoring=scoring,
        own_threshold=scoring.own_threshold(prior, shares), shift=None,
        observed_prevalence=prevalence is None,
    )  # fmt: skip


def positive_code(labels: list[Any], pos_label: Any) -> int:
    """Return the place of the positive class among the labels, by default the last."""
    if pos_label is None:
        return len(labels) - 1
    if pos_label not in labels:
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels}.")
    return labels.index(pos_label)


def _codes(values: ArrayLike, labels: list[Any]) -> Any:
    """Return the class codes of samples, all of which must be of known classes."""
    given = np.asarray(values).tolist()
    if not given:
        raise ValueError("the cohort has no samples.")
    unknown = sorted({str(label) for label in given if label not in labels})
    if unknown:
        raise ValueError(
            f"y holds {first_few(unknown)}, which the model does not know; its classes are "
            f"{first_few(labels)}. Rename or leave out those samples."
        )
    return np.array([labels.index(label) for label in given], dtype=np.intp)


@dataclass(frozen=True)
class FeatureShift(Record):
    """One feature of a panel in other samples, against training.

    Attributes
    ----------
    feature : str
    shift : float
        How much higher the values are, in training standard deviations within classes.
    factor : float or None
        Their standard deviation over that of training; None where too few samples show one.
    shifted, scaled : bool
        Whether that is beyond chance and worth a word.
    """

    feature: str
    shift: float
    factor: float | None
    shifted: bool
    scaled: bool


def check_shift(
    model: Any, values: ArrayLike, labels: ArrayLike | None = None
) -> list[FeatureShift] | None:
    """Compare the panel's values in other samples with those of the training samples.

    With at least three labelled samples of each class, classes are compared with themselves.
    Otherwise the mix of classes is taken as unknown: only a mean outside the range of the training
    classes' means is a shift, and only a spread that no mix of them has is a scaling.
    """
    fitted = last_step(model)
    if not all(hasattr(fitted, name) for name in ("panel_means_", "panel_variances_")):
        return None
    x = np.asarray(values, dtype=np.float64)
    names = getattr(model, "feature_names_in_", None)
    panel = np.flatnonzero(fitted.support_)
    codes = np.full(x.shape[0], -1)
    if labels is not None:
        place = {str(label): k for k, label in enumerate(fitted.classes_.tolist())}
        codes = np.array([place.get(str(label), -1) for label in np.asarray(labels).tolist()])
    result = []
    for j, feature in enumerate(panel.tolist()):
        known = np.isfinite(x[:, j])
        parts = [x[known, j][codes[known] == k] for k in range(len(fitted.classes_))]
        training = (fitted.panel_means_[:, j], fitted.panel_variances_[:, j], fitted.class_counts_)
        numbers = _compare(x[known, j], parts, *training, LEVEL / (2 * panel.size))
        name = str(feature) if names is None else str(names[feature])
        result.append(FeatureShift(name, *numbers))
    return result


def _compare(
    x: Float64Array,
    parts: list[Float64Array],
    means: Float64Array,
    variances: Float64Array,
    counts: Float64Array,
    level: float,
) -> tuple[float, float | None, bool, bool]:
    """Compare one feature, whose training classes have these means, variances and counts."""
    deviation = float(np.sqrt(variances.mean()))
    if not x.size or deviation == 0.0:
        return 0.0, None, False, False
    low = high = deviation
    if min(part.size for part in parts) >= 3:
        gap = float(np.mean([part.mean() - mean for part, mean in zip(parts, means)]))
        variance = sum(_mean_variance(part, v) for part, v in zip(parts, variances))
        variance = (variance + float(np.sum(variances / counts))) / len(parts) ** 2
        centred = np.concatenate([part - part.mean() for part in parts])
        freedom = x.size - len(parts)
    else:
        gap = float(x.mean() - np.clip(x.mean(), means.min(), means.max()))
        nearest = int(np.abs(means - x.mean()).argmin())
        variance = _mean_variance(x, float(variances.max())) + variances[nearest] / counts[nearest]
        centred, freedom = x - x.mean(), x.size - 1
        low = float(np.sqrt(variances.min()))
        high = float(np.sqrt(variances.max() + np.ptp(means) ** 2 / 4))
    p_shift = float(2 * student.sf(abs(gap) / np.sqrt(variance), max(4, freedom)))
    shift = gap / deviation
    factor, p_scale = _scale(centred, freedom, low, high, float(counts.sum()))
    large = factor is not None and max(factor, 1 / max(factor, 1e-300)) >= LEAST_FACTOR
    shifted = bool(p_shift <= level and abs(shift) >= LEAST_SHIFT)
    return shift, factor, shifted, bool(large and p_scale <= level)


def _mean_variance(x: Float64Array, in_training: float) -> float:
    """Variance of the mean of some samples; few hardly know their own spread."""
    own = float(x.var(ddof=1)) if x.size > 1 else 0.0
    return (max(own, in_training) if x.size < _FEW else own) / x.size


def _scale(
    centred: Float64Array, freedom: int, low: float, high: float, n_train: float
) -> tuple[float | None, float]:
    """Ratio of a standard deviation to the nearest end of a range, and its p-value."""
    if freedom < _FEW - 1 or low <= 0:
        return None, 1.0
    sd = float(np.sqrt(centred @ centred / freedom))
    if low <= sd <= high or sd == 0.0:
        return (1.0 if sd else 0.0), 1.0
    factor = sd / (high if sd > high else low)
    # the variance of a variance depends on the tails
    kurtosis = max(3.0, float(np.mean(centred**4) / np.mean(centred**2) ** 2))
    error = np.sqrt((kurtosis - 1) * (1 / freedom + 1 / n_train))
    return factor, float(2 * norm.sf(abs(2 * np.log(factor)) / error))


@dataclass(frozen=True)
class UnseenBatches(Record):
    """How well the procedure predicts batches that it has not seen.

    Attributes
    ----------
    score : Interval
        Balanced accuracy, pooled over the batches that were left out. Its interval is of the
        sampling of samples, not of batches.
    ordinary : float
        That of the ordinary folds on the same samples; `loss` is by how much it is higher.
    recalls : tuple of tuple of (float or None)
        Share recognised of each class in each batch, where known.
    not_left_out : tuple of str
        Batches without which too few samples of a class are left to learn from.
    together : bool
        Whether several batches were left out at a time, there being so many.
    n_train : int
        The fewest samples that were learned from.
    """

    score: Interval
    ordinary: float
    loss: Interval
    recalls: tuple[tuple[float | None, ...], ...]
    not_left_out: tuple[str, ...]
    together: bool
    n_train: int


@dataclass(frozen=True)
class BatchAudit(Record):
    """What one batch variable has to do with the labels and the score.

    Attributes
    ----------
    name, batches, classes, counts
        The variable, its values, the classes, and the samples of each batch and class.
    accuracy, shuffled, p_value : float
        Balanced accuracy of the best rule that knows the batch only, its mean where batches are
        shuffled, and the share of these that do as well.
    strength : float or None
        ``(accuracy - shuffled) / (1 - shuffled)``: 0 is chance, 1 complete; None if chance gives 1.
    unseen : UnseenBatches or None
        The score on batches left out; None where none of them can be left out.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sparsegsvp import nested_evaluate
    >>> rng = np.random.default_rng(0)
    >>> y, plate = np.tile(["ill", "well"], 30), np.repeat(["p1", "p2", "p3"], 20)
    >>> X = rng.normal(size=(60, 4)) + 2.0 * (y == "ill")[:, None] + 3.0 * (plate == "p3")[:, None]
    >>> found = nested_evaluate(GaussianNB(), X, y, batch={"plate": plate}, n_permutations=0)
    >>> audit = found.batches[0]
    >>> audit.confounded, audit.unseen.ordinary > audit.unseen.score.value
    (False, True)
    """

    name: str
    batches: tuple[str, ...]
    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    accuracy: float
    shuffled: float
    p_value: float
    strength: float | None
    unseen: UnseenBatches | None

    @property
    def confounded(self) -> bool:
        """Whether class and batch hang together more than shuffled ones do."""
        return self.p_value <= 0.05 and (self.strength or 0.0) > 0

    @property
    def complete(self) -> bool:
        """Whether every batch has samples of one class only."""
        return all(sum(n > 0 for n in row) == 1 for row in self.counts)

    @property
    def lost(self) -> bool:
        """Whether unseen batches are predicted worse than samples of known ones."""
        return self.unseen is not None and self.unseen.loss.low > 0

    def flags(self) -> list[Flag]:
        """Return what the reader has to know of it; nothing where all is well."""
        result, unseen = [], self.unseen
        if self.confounded:
            numbers = {n: getattr(self, n) for n in ("name", "accuracy", "shuffled", "p_value")}
            numbers["closely"] = self.complete or (self.strength or 0.0) >= _CLOSELY
            result.append(Flag("confounded", numbers))
        if unseen is not None and self.lost:
            numbers = {"name": self.name, "score": unseen.score.value, "ordinary": unseen.ordinary}
            numbers |= {"below_chance": unseen.score.low <= 1 / len(self.classes)}
            result.append(Flag("new batch", {**numbers, "n_train": unseen.n_train}))
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, and what follows from them."""
        names = ("confounded", "complete", "lost")
        return super().to_dict() | {name: getattr(self, name) for name in names}


def batch_folds(samples: Samples, values: NDArray[np.str_]) -> list[Fold]:
    """Return the folds that leave each batch out where enough samples of each class are left."""
    order, groups, folds = samples.order, samples.groups, []
    few = np.unique(values).size <= _MOST
    splitter = LeaveOneGroupOut() if few else GroupKFold(_MOST)
    for index, (train, test) in enumerate(splitter.split(order, groups=values[order])):
        train, test = order[train], order[test]
        if groups is not None:  # samples whose group has others in the test part are in neither
            train = train[~np.isin(groups[train], groups[test])]
        left = np.bincount(samples.codes[train], minlength=samples.n_classes)
        if left.min() >= _FEWEST_LEFT:
            folds.append(Fold(0, index, train, test))
    return folds


def audit_batch(
    samples: Samples,
    name: str,
    ordinary: OutOfFold,
    folds: Sequence[Fold],
    answers: Sequence[Answer],
    seed: int,
    level: float,
) -> BatchAudit:
    """Audit one batch variable; ``answers`` are of the folds that leave its batches out."""
    names, member = np.unique(samples.batches[name], return_inverse=True)
    rng = np.random.default_rng(derive_seed(seed, _STREAM))
    accuracy, shuffled, p_value = class_from_batch(samples, member, rng)
    strength = max(0.0, (accuracy - shuffled) / (1 - shuffled)) if shuffled < 1 - 1e-9 else None
    unseen = unseen_batches(samples, member, names, folds, answers, ordinary, level)
    classes = tuple(str(label) for label in samples.classes)
    counts = tuple(tuple(row) for row in _counts(member, samples.codes).tolist())
    known = (name, tuple(names.tolist()), classes, counts)
    return BatchAudit(*known, accuracy, shuffled, p_value, strength, unseen)


def _counts(member: IntArray, codes: IntArray) -> IntArray:
    """Count the samples of each batch and class."""
    shape = int(member.max()) + 1, int(codes.max()) + 1
    return np.bincount(member * shape[1] + codes, minlength=shape[0] * shape[1]).reshape(shape)


def class_from_batch(
    samples: Samples, member: IntArray, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the accuracy of the batch alone, that of shuffled batches, and the p-value."""
    codes, unit = samples.codes, np.argsort(samples.order)
    if samples.groups is not None:  # those that lie within batches are shuffled as a whole
        pairs = np.unique(np.stack([samples.groups, member]), axis=1).shape[1]
        if pairs == samples.groups.max() + 1 > member.max() + 1:
            unit = samples.groups
    per_class = np.bincount(codes)

    def accuracy(batches: IntArray) -> float:
        return float((_counts(batches, codes) / per_class).max(axis=1).sum() / per_class.size)

    of_unit = np.empty(int(unit.max()) + 1, dtype=np.intp)
    of_unit[unit] = member
    observed = accuracy(member)
    drawn = np.array([accuracy(rng.permutation(of_unit)[unit]) for _ in range(_DRAWS)])
    p = (1 + int((drawn >= observed - 1e-12).sum())) / (_DRAWS + 1)
    return observed, float(drawn.mean()), p


def unseen_batches(
    samples: Samples,
    member: IntArray,
    names: NDArray[np.str_],
    folds: Sequence[Fold],
    answers: Sequence[Answer],
    ordinary: OutOfFold,
    level: float,
) -> UnseenBatches | None:
    """Compare the score on batches left out with that of ordinary folds on the same samples."""
    codes, n = samples.codes, samples.codes.size
    right = np.full(n, np.nan)
    for fold, found in zip(folds, answers):
        right[fold.test] = found.predicted == codes[fold.test]
    times = np.bincount(ordinary.sample, minlength=n)
    hits = np.bincount(ordinary.sample, ordinary.predicted == ordinary.truth, minlength=n)
    tested = np.isfinite(right) & (times > 0)
    of_class = [tested & (codes == k) for k in range(samples.n_classes)]
    if not all(rows.any() for rows in of_class):
        return None
    counts = [(int(right[rows].sum()), int(rows.sum())) for rows in of_class]
    score = recall_mean_interval(*zip(*counts), level=level)
    gaps = [hits[rows] / times[rows] - right[rows] for rows in of_class]
    loss = float(np.mean([gap.mean() for gap in gaps]))
    error = np.sqrt(sum(gap.var(ddof=1) / gap.size for gap in gaps if gap.size > 1))
    reach = float(norm.ppf((1 + level) / 2) * error / len(gaps))
    left_out = np.unique(member[np.isfinite(right)])

    def recall(rows: NDArray[np.bool_]) -> float | None:
        return float(right[rows].mean()) if rows.any() and np.isfinite(right[rows]).all() else None

    cells = [[(member == b) & (codes == k) for k in range(len(gaps))] for b in range(names.size)]
    return UnseenBatches(
        score,
        score.value + loss,
        Interval(loss, max(-1.0, loss - reach), min(1.0, loss + reach), level),
        tuple(tuple(recall(rows) for rows in row) for row in cells),
        tuple(np.delete(names, left_out).tolist()),
        names.size > _MOST,
        min(fold.train.size for fold in folds),
    )
