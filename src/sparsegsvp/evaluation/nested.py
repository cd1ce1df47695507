"""Nested evaluation: everything that looks at labels happens inside the training part."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Float64Array, Progress
from .._validate import check_integer, check_real, check_seed, derive_seed
from ..metrics.clinical import class_shares, move_prior
from .cache import Clock
from .external import LEFT_OUT, BatchAudit, audit_batch, batch_folds, positive_code
from .permutation import PERMUTATIONS, run_test
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
    panel_of,
    possible_sizes,
)
from .result import Adjustment, EvaluationResult, Flag, OutOfFold, Scoring, paired_difference
from .splits import Fold, Samples, count_duplicates, count_twins, make_folds, read_samples
from .stability import HALVES, PAIRS, STREAM, draw_halves, half_samples

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
        The procedure. Panels are read from ``get_support`` or non-zero ``coef_``. One with
        ``fit_path``, such as `GSVPSVMCV` or a pipeline that ends with it, is scored at several
        sizes too: the ladder.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The table, as it is: frames reach the estimator as frames.
    y : array-like of shape (n_samples,)
        Labels, two classes or more.
    groups : array-like of shape (n_samples,), optional
        Samples of one group (a patient) are never split, and count once in intervals.
    batch : array-like, mapping or data frame, optional
        Where or when samples were measured, one variable or several by name: each is audited, and
        labels are permuted within batches. A step that centres batches gets the first.
    adjust : sequence of str or int, optional
        Columns, such as age and sex, that are in every panel; what the others add is shown.
    n_splits : int, optional
        Folds of a repeat: 5 by default, or fewer where a class has fewer samples (or groups).
    n_repeats : int, default=5
        Repeats.
    n_permutations : int, default=99
        Permutations of the test (`permutation_test`); 0 leaves it out.
    n_pairs : int, optional
        Pairs of half samples for the stability; by default 20 with ``fit_path``, else none.
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
    m, k, labels = samples.X.shape[1], samples.n_classes, samples.classes.tolist()
    prior = None if prior is None else class_shares("prior", prior, k)
    positive, names = positive_code(labels, pos_label), _names(samples.X, feature_names)
    columns = find_adjusted(adjust, m, names)
    if columns:
        estimator = always_with(estimator, columns, m)
    rungs = possible_sizes(estimator, sizes, m)
    if n_pairs is None:
        n_pairs = PAIRS if rungs else 0
    check_integer("n_pairs", n_pairs, least=0)
    if n_splits is None:
        n_splits = max(2, min(5, int(samples.units.min())))
    folds = make_folds(samples, n_splits, n_repeats, seed)
    half_seed = derive_seed(seed, STREAM)
    halves = draw_halves(samples, n_pairs, half_seed)  # refused before any work
    flags = _sample_flags(samples)
    procedure, clock = Procedure(estimator, samples), Clock(progress)
    scoring = Scoring(samples.units, positive, level, samples.groups)

    pieces = [(procedure, fold, rungs, prior, seed) for fold in folds]
    done = clock.run(FOLDS, evaluate_fold, pieces, n_jobs)
    found = OutOfFold.gather(samples.codes, folds, [fold.answer for fold in done])
    audits = _audits(clock, procedure, found, prior, seed, level, n_jobs)
    final = (procedure, rungs, derive_seed(seed, _FINAL))
    model, models = clock.run(FINAL, fit_all, [final], n_jobs)[0]
    stability = None
    options: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    if n_pairs:
        with clock.stage(HALVES):
            stability = half_samples(
                procedure, model, models, halves, names, seed=half_seed, **options
            )
    with clock.stage(PERMUTATIONS):
        verdict = run_test(procedure, n_permutations, seed=seed, **options)

    prevalence = float(samples.shares[positive]) if k == 2 else None
    scores = scoring.all(found, labels, prevalence)
    sized = {
        size: OutOfFold.gather(samples.codes, folds, [fold.sized[size] for fold in done])
        for size in rungs
    }
    panel = panel_of(model, m)
    panels = tuple(fold.panel for fold in done) if all(f.panel is not None for f in done) else None
    panel_sizes = tuple(len(p) for p in panels or ())
    flags += [*_fit_flags(done), *(flag for audit in audits for flag in audit.flags())]
    flags += _size_flags(panel, panel_sizes)
    if scores["balanced_accuracy"].value == 1:
        flags.append(Flag("perfect", {"value": 1.0}))
    result = EvaluationResult(
        classes=tuple(labels), positive=labels[positive] if k == 2 else None,
        class_counts=tuple(np.bincount(samples.codes).tolist()), prevalence=prevalence,
        scores=scores, calibration=scoring.calibration(found), flags=tuple(flags),
        out_of_fold=found, scoring=scoring,
        own_threshold=scoring.own_threshold(done[0].shares, samples.shares),
        n_features=m, feature_names=names, prior=done[0].prior,
        n_groups=None if samples.groups is None else int(samples.groups.max()) + 1,
        verdict=verdict.judged(scores["balanced_accuracy"]), panel=panel, panel_sizes=panel_sizes,
        model=model, models=models, stability=stability, batches=audits, adjusted=None,
        settings={
            "estimator": describe(estimator), "adjust": list(columns), "n_splits": n_splits,
            "n_repeats": n_repeats, "n_permutations": n_permutations, "n_pairs": n_pairs,
            "sizes": list(rungs), "random_state": seed, "level": level,
            "groups": groups is not None, "batch": list(samples.batches),
        },
        fold_panels=panels, sized=sized, seconds=clock.seconds,
    )  # fmt: skip
    if not columns:
        return result
    with clock.stage(ALONE):
        alone = nested_evaluate(
            only_with(estimator, columns), X, y, groups=groups, n_splits=n_splits,
            n_repeats=n_repeats, n_permutations=0, n_pairs=0, prior=prior, sizes=(),
            pos_label=pos_label, feature_names=names, level=level, random_state=seed,
            n_jobs=n_jobs, progress=lambda _, done, total: clock.progress(ALONE, done, total),
        )  # fmt: skip
    added = paired_difference(result, alone, level=level)
    chosen = None if names is None else tuple(names[j] for j in columns)
    return replace(result, adjusted=Adjustment(columns, chosen, alone, added))


@dataclass(frozen=True)
class FoldOutcome:
    """What one outer fold gives: answers, panel, and what its fit warned of."""

    answer: Answer
    sized: dict[int, Answer]
    panel: tuple[int, ...] | None
    prior: str
    shares: Float64Array | None  # that the probabilities were for; None: the training samples'
    warnings: list[tuple[str, str]]


def evaluate_fold(
    procedure: Procedure, fold: Fold, sizes: Sequence[int], prior: Float64Array | None, seed: int
) -> FoldOutcome:
    """Fit on the training part and predict the test part, at the ladder's sizes too."""
    samples = procedure.samples
    fit_seed = derive_seed(seed, _FIT, fold.repeat, fold.index)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fits = procedure.fit_sizes(fold.train, sizes, fit_seed)
        found = procedure.predict(fits.own, fold.test)
    k = samples.n_classes
    training = np.bincount(samples.codes[fold.train], minlength=k) / fold.train.size
    given = estimator_prior(fits.own, k) if prior is None else prior

    def moved(said: Answer) -> Answer:
        if said.proba is None:
            return said
        shares = training if given is None else given
        return replace(said, proba=move_prior(said.proba, shares, samples.shares))

    sized = {}
    if sizes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = procedure.prepare(fits.steps, fold.test)
            sized = {k: moved(answer(fits.models[k], X, samples.classes)) for k in sizes}
    panel = panel_of(fits.own, samples.X.shape[1])
    # a column that is constant in a fold is simply not chosen there
    told = [(w.category.__name__, str(w.message)[:300]) for w in caught]
    said = [(kind, text) for kind, text in told if "constant" not in text]
    kind = "training"
    if found.proba is None:
        kind = "none"
    elif given is not None:
        kind = "equal" if np.allclose(given, 1 / k) else "given"
    return FoldOutcome(moved(found), sized, panel, kind, given, said)


def fit_all(procedure: Procedure, sizes: Sequence[int], seed: int) -> tuple[Any, dict[int, Any]]:
    """Fit on all samples, and at all sizes."""
    order = procedure.samples.order
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = procedure.fit_sizes(order, sizes, seed)
        return fits.own, {size: fits.model(size) for size in sizes}


def _audits(
    clock: Clock,
    procedure: Procedure,
    found: OutOfFold,
    prior: Any,
    seed: int,
    level: float,
    n_jobs: int | None,
) -> tuple[BatchAudit, ...]:
    """Leave every batch of every variable out once, and audit each variable."""
    samples = procedure.samples
    by_name = {name: batch_folds(samples, values) for name, values in samples.batches.items()}
    pieces = [(procedure, f, (), prior, seed) for folds in by_name.values() for f in folds]
    done = iter(clock.run(LEFT_OUT, evaluate_fold, pieces, n_jobs) if pieces else [])
    audits = []
    for name, folds in by_name.items():
        answers = [next(done).answer for _ in folds]
        audits.append(audit_batch(samples, name, found, folds, answers, seed, level))
    return tuple(audits)


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
    n, counts = samples.codes.size, np.bincount(samples.codes)
    code, said = "duplicates", "exact duplicates of another row"
    alike = count_duplicates(samples)
    if not alike:
        code, said = "twins", "far more like another row than chance allows"
        alike = count_twins(samples.X, samples.groups)
    flags = []
    if alike:
        flags.append(Flag(code, {"n_samples": alike, "n_rows": n}))
        remedy = "if they come from the same patient, pass that column as groups"
        warnings.warn(f"{alike} of {n} rows are {said}: {remedy}.", stacklevel=3)
    if counts.min() < 10:
        label = samples.classes.tolist()[int(counts.argmin())]
        flags.append(Flag("few", {"class": label, "count": int(counts.min())}))
    return flags


def _fit_flags(folds: Sequence[FoldOutcome]) -> list[Flag]:
    """Return one flag for each kind of warning that the fits gave."""
    kinds = Counter(kind for fold in folds for kind in {kind for kind, _ in fold.warnings})
    first = dict(reversed([said for fold in folds for said in fold.warnings]))
    return [
        Flag("fits", {"n_fits": kinds[kind], "kind": kind, "first": first[kind]})
        for kind in sorted(kinds)
    ]


def _size_flags(panel: tuple[int, ...] | None, sizes: Sequence[int]) -> list[Flag]:
    """Return a flag if the panel differs much in size from those behind the score."""
    if panel is None or not sizes:
        return []
    size, middle, low, high = len(panel), float(np.median(sizes)), min(sizes), max(sizes)
    if low <= size <= high and middle / 2 <= size <= 2 * middle:
        return []
    return [Flag("sizes", {"size": size, "median": middle, "low": low, "high": high})]
