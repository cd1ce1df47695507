"""Nested evaluation: everything that looks at labels happens inside the training part."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Float64Array, IntArray, Progress
from .._validate import check_integer, check_real, check_seed, derive_seed
from ..metrics import move_prior
from .batches import LEFT_OUT, audit_batch, batch_folds
from .cache import run_pieces
from .permutation import run_test
from .procedure import (
    SIZES,
    Answer,
    Procedure,
    always_with,
    answer,
    describe,
    estimator_prior,
    find_adjusted,
    only_with,
    possible_sizes,
    selected_features,
)
from .result import Adjustment, EvaluationResult, Flag, OutOfFold, Scoring, paired_difference
from .splits import (
    Fold,
    Samples,
    count_duplicates,
    count_twins,
    make_folds,
    most_splits,
    read_samples,
    row_keys,
)
from .stability import PanelStability, half_samples

FOLDS, ALONE, FINAL = "folds", "covariates alone", "final fit"
_FIT, _FINAL = 1, 2  # seed streams


def nested_evaluate(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    batch: Any = None,
    adjust: Sequence[str | int] | str | None = None,
    n_splits: int | None = None,
    n_repeats: int = 5,
    n_permutations: int = 99,
    n_pairs: int | None = None,
    prior: Any = None,
    sizes: Sequence[int] = SIZES,
    pos_label: Any = None,
    feature_names: Sequence[str] | None = None,
    level: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> EvaluationResult:
    """Estimate how well a whole procedure predicts, and how stable its panel is.

    In each of the repeated outer folds a clone of ``estimator`` is fitted on the training part
    and meets the test part only to predict it. Scaling, imputation, selection and tuning belong
    into ``estimator`` (a pipeline): nothing is fitted outside the folds, so selection cannot leak.
    Folds and fits do not depend on the order of the rows.

    Parameters
    ----------
    estimator : classifier
        The procedure. Panels are read from ``get_support`` or non-zero ``coef_``, also
        within pipelines and searches. One with ``fit_path``, such as `GSVPSVMCV`, alone or at the
        end of a pipeline, is scored at several sizes too: the ladder.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The table, as it is: frames reach the estimator as frames.
    y : array-like of shape (n_samples,)
        Labels, two classes or more.
    groups : array-like of shape (n_samples,), optional
        Samples of one group (a patient, a family) are never on both sides of a split, and count
        once in intervals.
    batch : array-like, mapping or data frame, optional
        Where or when samples were measured, one variable or several by name: each is audited, and
        labels are permuted within batches. A step that centres batches gets the first.
    adjust : sequence of str or int, optional
        Columns, such as age and sex, that are in every panel without a penalty. The same procedure
        with these alone shows what the others add.
    n_splits : int, optional
        Folds of a repeat: 5 by default, or fewer where a class has fewer samples (or groups).
    n_repeats : int, default=5
        Repeats.
    n_permutations : int, default=99
        Permutations of the test (`permutation_test`); 0 leaves it out.
    n_pairs : int, optional
        Complementary pairs of half samples that the procedure is run on again; by default 25 for
        an estimator with ``fit_path`` and otherwise none.
    prior : "equal" or array-like of shape (n_classes,), optional
        The class shares that the estimator's probabilities are for. By default those that it says
        (``prior_``, or balanced class weights), or else those of its training samples.
    sizes : sequence of int, default=(1, 2, 3, 5, 8, 13, 21, 30)
        Sizes of the ladder.
    pos_label : label, optional
        The positive class of two, by default the last in sorted order.
    feature_names : sequence of str, optional
        Names of the columns; by default those of a data frame.
    level : float, default=0.95
        Nominal coverage of the intervals.
    random_state : int, default=0
        Seed.
    n_jobs : int, optional
        Fits at a time, as in joblib. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    EvaluationResult

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsegsvp import nested_evaluate
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(60, 100, 3, effect=2.0, random_state=0, return_X_y=True)
    >>> found = nested_evaluate(make_pipeline(SelectKBest(k=3), LogisticRegression()), X, y)
    >>> found.verdict.answer, found.scores["balanced_accuracy"].value > 0.8
    ('signal', True)
    """
    seed = check_seed(random_state)
    check_integer("n_permutations", n_permutations, least=0)
    check_real("level", level, above=0, below=1)
    samples = read_samples(X, y, groups, batch)
    positive = _positive(samples, pos_label)
    names = _names(samples.X, feature_names)
    columns = find_adjusted(adjust, samples.X.shape[1], names)
    if columns:
        estimator = always_with(estimator, columns, samples.X.shape[1])
    rungs = possible_sizes(estimator, sizes, samples.X.shape[1])
    if n_pairs is None:
        n_pairs = 25 if rungs else 0
    check_integer("n_pairs", n_pairs, least=0)
    if n_splits is None:
        n_splits = max(2, min(5, most_splits(samples)))
    folds = make_folds(samples, n_splits, n_repeats, seed)
    flags = _sample_flags(samples)
    run = _Run(
        Procedure(estimator, samples), folds, rungs, prior, positive, level, seed, n_jobs, progress
    )

    outer = run.outer()
    audits = run.audits(outer.found)
    model, models = run.final()
    panel = selected_features(model, samples.X.shape[1])
    stability = run.halves(model, models, n_pairs, names)
    scores = run.scoring.all(outer.found, samples.classes.tolist(), float(samples.shares[positive]))
    with run.timed("permutations"):
        verdict = run_test(
            run.procedure, n_permutations, seed, n_jobs=n_jobs, progress=progress
        ).judged(scores["balanced_accuracy"])

    two = samples.n_classes == 2
    prevalence = float(samples.shares[positive]) if two else None
    sizes_found = tuple(len(p) for p in outer.panels) if outer.panels is not None else ()
    flags += outer.flags
    flags += [flag for audit in audits for flag in audit.flags()]
    if panel is not None:
        flags += _size_flags(panel.size, sizes_found)
    if scores["balanced_accuracy"].value == 1:
        flags.append(Flag("perfect", {"value": 1.0}))
    result = EvaluationResult(
        classes=tuple(samples.classes.tolist()),
        positive=samples.classes.tolist()[positive] if two else None,
        class_counts=tuple(np.bincount(samples.codes).tolist()),
        n_samples=samples.codes.size,
        n_features=samples.X.shape[1],
        n_groups=None if samples.groups is None else int(samples.groups.max()) + 1,
        feature_names=names,
        prevalence=prevalence,
        prior=outer.prior,
        scores=scores,
        verdict=verdict,
        calibration=run.scoring.calibration(outer.found),
        panel=None if panel is None else tuple(panel.tolist()),
        panel_sizes=sizes_found,
        model=model,
        models=models,
        stability=stability,
        batches=audits,
        adjusted=None,
        flags=tuple(flags),
        settings={
            "estimator": describe(estimator),
            "n_splits": n_splits,
            "n_repeats": n_repeats,
            "n_permutations": n_permutations,
            "n_pairs": n_pairs,
            "sizes": list(rungs),
            "random_state": seed,
            "level": level,
            "groups": samples.groups is not None,
            "batch": list(samples.batches),
            "adjust": list(columns),
        },
        out_of_fold=outer.found,
        scoring=run.scoring,
        own_threshold=outer.own_threshold(positive, samples.shares),
        fold_panels=outer.panels,
        sized=outer.sized,
        rungs=_rungs(run.scoring, outer, models, stability, names, samples.X.shape[1]),
        level=level,
        seconds=run.seconds,
    )
    if not columns:
        return result
    with run.timed(ALONE):
        alone = nested_evaluate(
            only_with(estimator, columns),
            X,
            y,
            groups=groups,
            n_splits=n_splits,
            n_repeats=n_repeats,
            n_permutations=0,
            n_pairs=0,
            prior=prior,
            sizes=(),
            pos_label=pos_label,
            feature_names=names,
            level=level,
            random_state=seed,
            n_jobs=n_jobs,
            progress=None if progress is None else _renamed(progress, ALONE),
        )
    added = paired_difference(result, alone, level=level)
    known = None if names is None else tuple(names[j] for j in columns)
    return replace(result, adjusted=Adjustment(columns, known, alone, added))


# ------------------------------------------------------------------------------- the stages


@dataclass(frozen=True)
class _Outer:
    """What the outer folds give."""

    found: OutOfFold
    sized: dict[int, OutOfFold]
    panels: tuple[tuple[int, ...], ...] | None
    prior: str
    shares: Float64Array  # that probabilities are for, where they are not the training's
    flags: list[Flag]

    def own_threshold(self, positive: int, shares: Float64Array) -> float:
        """Return the probability, at the samples' shares, where the model's labels change."""
        if self.prior == "training" or shares.size > 2:
            return 0.5
        old, new = self.shares[positive], shares[positive]
        return float(move_prior([0.5], float(old), float(new))[0])


@dataclass
class _Run:
    """The stages of an evaluation, which share the samples, the folds and the workers."""

    procedure: Procedure
    folds: list[Fold]
    rungs: tuple[int, ...]
    prior: Any
    positive: int
    level: float
    seed: int
    n_jobs: int | None
    progress: Progress | None

    def __post_init__(self) -> None:
        self.seconds: dict[str, float] = {}
        samples = self.procedure.samples
        self.scoring = Scoring.of(samples, self.folds, self.positive, self.level)
        if self.prior is not None:  # refuse early what is no prior
            k = samples.n_classes
            move_prior(np.full((1, k), 1 / k), self.prior, "equal")

    def timed(self, stage: str) -> _Timer:
        """Enclose a stage, to know its seconds."""
        return _Timer(self.seconds, stage)

    def _pieces(self, function: Any, pieces: list[tuple[Any, ...]], stage: str) -> list[Any]:
        with self.timed(stage):
            return list(
                run_pieces(
                    function, pieces, n_jobs=self.n_jobs, progress=self.progress, stage=stage
                )
            )

    def outer(self) -> _Outer:
        """Fit and predict all folds."""
        samples = self.procedure.samples
        pieces = [(self.procedure, f, self.rungs, self.prior, self.seed) for f in self.folds]
        done = self._pieces(evaluate_fold, pieces, FOLDS)
        found = OutOfFold.gather(samples.codes, self.folds, [fold.answer for fold in done])
        sized = {
            size: OutOfFold.gather(samples.codes, self.folds, [fold.sized[size] for fold in done])
            for size in self.rungs
        }
        panels = [fold.panel for fold in done]
        known = None if any(p is None for p in panels) else tuple(tuple(p.tolist()) for p in panels)
        return _Outer(found, sized, known, done[0].prior, done[0].shares, _fit_flags(done))

    def audits(self, ordinary: OutOfFold) -> tuple[Any, ...]:
        """Leave every batch of every variable out once, and audit each variable."""
        samples = self.procedure.samples
        by_name = {name: batch_folds(samples, v) for name, v in samples.batches.items()}
        pieces = [
            (self.procedure, fold, (), self.prior, self.seed)
            for folds in by_name.values()
            for fold in folds
        ]
        done = iter(self._pieces(evaluate_fold, pieces, LEFT_OUT) if pieces else [])
        audits = []
        for name, folds in by_name.items():
            answers = [next(done).answer for _ in folds]
            audits.append(
                audit_batch(samples, name, ordinary, folds, answers, self.seed, self.level)
            )
        return tuple(audits)

    def final(self) -> tuple[Any, dict[int, Any]]:
        """Fit on all samples: the procedure, and its path at the sizes of the ladder."""
        pieces = [(self.procedure, self.rungs, derive_seed(self.seed, _FINAL))]
        return self._pieces(fit_all, pieces, FINAL)[0]

    def halves(
        self, model: Any, models: dict[int, Any], n_pairs: int, names: tuple[str, ...] | None
    ) -> PanelStability | None:
        """Run the procedure on half samples."""
        if not n_pairs:
            return None
        with self.timed("half samples"):
            return half_samples(
                self.procedure,
                model,
                models,
                n_pairs=n_pairs,
                seed=self.seed,
                feature_names=names,
                n_jobs=self.n_jobs,
                progress=self.progress,
            )


class _Timer:
    """Adds the seconds that it encloses to a stage."""

    def __init__(self, seconds: dict[str, float], stage: str) -> None:
        self.seconds, self.stage = seconds, stage

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        spent = time.perf_counter() - self.start
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + spent


# -------------------------------------------------------------------------------- one fold


@dataclass(frozen=True)
class FoldOutcome:
    """What one outer fold gives: answers, panel, and what its fit warned of."""

    answer: Answer
    sized: dict[int, Answer]
    panel: IntArray | None
    prior: str
    shares: Float64Array
    warnings: list[tuple[str, str]]


def evaluate_fold(
    procedure: Procedure, fold: Fold, sizes: Sequence[int], prior: Any, seed: int
) -> FoldOutcome:
    """Fit on the training part and predict the test part, at the ladder's sizes too."""
    samples = procedure.samples
    fit_seed = derive_seed(seed, _FIT, fold.repeat, fold.index)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fits = procedure.fit_sizes(fold.train, sizes, fit_seed) if sizes else None
        model = procedure.fit(fold.train, fit_seed) if fits is None else fits.own
        found = procedure.predict(model, fold.test)
    training = np.bincount(samples.codes[fold.train], minlength=samples.n_classes)
    kind, shares = _prior_of(model, prior, training / training.sum())
    if found.proba is None:
        kind = "none"
    else:
        found = replace(found, proba=move_prior(found.proba, shares, samples.shares))
    sized = {}
    if fits is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = procedure.prepare(fits.steps, fold.test)
            sized = {k: answer(fits.models[k], X, samples.classes) for k in sizes}
    panel = selected_features(model, samples.X.shape[1])
    said = [(w.category.__name__, str(w.message)[:300]) for w in caught]
    return FoldOutcome(found, sized, panel, kind, shares, said)


def _prior_of(model: Any, prior: Any, training: Float64Array) -> tuple[str, Float64Array]:
    """Return what probabilities are for: the name of it, and the shares."""
    k = training.size
    if prior is not None:
        equal = isinstance(prior, str)
        return ("equal", np.full(k, 1 / k)) if equal else ("given", np.asarray(prior, dtype=float))
    known = estimator_prior(model, k)
    if known is None:
        return "training", training
    return ("equal" if np.allclose(known, 1 / k) else "given"), known


def fit_all(procedure: Procedure, sizes: Sequence[int], seed: int) -> tuple[Any, dict[int, Any]]:
    """Fit on all samples, and at all sizes."""
    order = procedure.samples.order
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not sizes:
            return procedure.fit(order, seed), {}
        fits = procedure.fit_sizes(order, sizes, seed)
        return fits.own, {size: fits.model(size) for size in sizes}


def _rungs(
    scoring: Scoring,
    outer: _Outer,
    models: dict[int, Any],
    stability: PanelStability | None,
    names: tuple[str, ...] | None,
    n_features: int,
) -> tuple[dict[str, Any], ...]:
    """Return the rows of the ladder."""
    rows = []
    nan = float("nan")
    for size, found in outer.sized.items():
        score, area = scoring.balanced_accuracy(found), scoring.roc_auc(found)
        panel = selected_features(models[size], n_features)
        features = () if panel is None else tuple(panel.tolist())
        row: dict[str, Any] = {
            "size": size,
            "balanced_accuracy": score.value,
            "low": score.low,
            "high": score.high,
            "roc_auc": nan if area is None else area.value,
            "roc_auc_low": nan if area is None else area.low,
            "roc_auc_high": nan if area is None else area.high,
        }
        row |= (
            stability.at(size)
            if stability is not None
            else dict.fromkeys(PanelStability.COLUMNS, nan)
        )
        row["features"] = features
        row["names"] = tuple(names[j] if names else str(j) for j in features)
        rows.append(row)
    return tuple(rows)


# ---------------------------------------------------------------------------------- input


def _positive(samples: Samples, pos_label: Any) -> int:
    labels = samples.classes.tolist()
    if pos_label is None:
        return len(labels) - 1
    if pos_label not in labels:
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels}.")
    return labels.index(pos_label)


def _names(X: Any, given: Sequence[str] | None) -> tuple[str, ...] | None:
    columns = getattr(X, "columns", None) if given is None else given
    if columns is None:
        return None
    names = tuple(str(name) for name in columns)
    if len(names) != X.shape[1]:
        raise ValueError(f"feature_names has {len(names)} names for {X.shape[1]} columns of X.")
    return names


def _sample_flags(samples: Samples) -> list[Flag]:
    """Look for samples that may be on both sides of a split; warn of them."""
    flags = []
    n = samples.codes.size
    remedy = "if they come from the same patient, pass that column as groups"
    duplicates = count_duplicates(row_keys(samples.X), samples.groups)
    if duplicates:
        flags.append(Flag("duplicates", {"n_rows": duplicates, "n_samples": n}))
        warnings.warn(
            f"{duplicates} of {n} rows are exact duplicates of another row: {remedy}.", stacklevel=3
        )
    twins = 0 if duplicates else count_twins(samples.X, samples.groups)
    if twins:
        flags.append(Flag("twins", {"n_rows": twins, "n_samples": n}))
        warnings.warn(
            f"{twins} of {n} rows are far more like another row than chance allows: {remedy}.",
            stacklevel=3,
        )
    counts = np.bincount(samples.codes)
    if counts.min() < 10:
        smallest = int(counts.argmin())
        label = samples.classes.tolist()[smallest]
        flags.append(Flag("few", {"class": label, "count": int(counts[smallest])}))
    return flags


def _fit_flags(folds: Sequence[FoldOutcome]) -> list[Flag]:
    """Return one flag for each kind of warning that the fits gave."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for fold in folds:
        counts.update({kind for kind, _ in fold.warnings})
        for kind, text in fold.warnings:
            first.setdefault(kind, text)
    return [
        Flag("fits", {"n_fits": counts[kind], "kind": kind, "first": first[kind]})
        for kind in sorted(counts)
    ]


def _size_flags(size: int, sizes: Sequence[int]) -> list[Flag]:
    """Return a flag if a panel differs much in size from those behind the score."""
    if not sizes:
        return []
    middle, low, high = float(np.median(sizes)), min(sizes), max(sizes)
    if low <= size <= high and middle / 2 <= size <= 2 * middle:
        return []
    return [Flag("sizes", {"size": int(size), "median": middle, "low": low, "high": high})]


def _renamed(progress: Progress, stage: str) -> Progress:
    return lambda _, done, total: progress(stage, done, total)
