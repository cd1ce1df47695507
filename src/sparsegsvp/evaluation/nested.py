"""Nested evaluation: everything that looks at labels happens inside the training part."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from .._typing import Progress
from .._validate import check_choice, check_integer, check_seed
from ..metrics.batches import check_batches
from .folds import check_samples, folds_from, repeated_samples
from .journal import Journal, open_journal
from .outer import Asked, Evaluated, Work, evaluate_procedure, evaluation_header
from .paired import (
    ALONE,
    Adjustment,
    adjusted_columns,
    always_with,
    only_with,
    paired_difference,
)
from .result import EvaluationResult


def nested_evaluate(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    batch: Any = None,
    adjust: Sequence[str | int] | str | None = None,
    ids: ArrayLike | None = None,
    cv: Any = 5,
    n_repeats: int = 5,
    n_permutations: int = 99,
    max_permutations: int = 999,
    permutation: str = "fixed",
    pos_label: Any = None,
    feature_names: Sequence[str] | None = None,
    final_fit: bool = True,
    n_random_panels: int = 5,
    level: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    log: str | os.PathLike[str] | Journal | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    check_repeats: bool = True,
    audit: bool = True,
) -> EvaluationResult:
    r"""Estimate how well a whole procedure predicts, and how stable its panel is.

    In each of the repeated outer folds a clone of ``estimator`` is fitted on the training part
    and meets the test part only to predict it. Scaling, imputation, selection and tuning belong
    into ``estimator`` (a pipeline): nothing is fitted outside the folds, so selection cannot leak.

    Rates are pooled over all folds, so that they are those of the confusion matrix; areas and
    other scores are averaged over folds. Intervals of rates and of the area under the curve are
    of the procedure on new samples (:func:`~sparsegsvp.evaluation.score_interval`); those of
    the other scores are Nadeau and Bengio's, of the fitted models alone.

    Parameters
    ----------
    estimator : classifier
        The procedure. Panels are read from ``get_support`` or non-zero ``coef_``, also
        within pipelines and searches.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The table, as it is: frames reach the estimator as frames.
    y : array-like of shape (n_samples,)
        Labels, two classes or more.
    groups : array-like of shape (n_samples,), optional
        Samples of one group never appear on both sides of a split. Also handed to an
        estimator whose ``fit`` takes ``groups``.
    batch : array-like, data frame or mapping from name to array-like, optional
        Where or when each sample was measured: plates, days, sites; several may be given. Each
        is audited (:class:`~sparsegsvp.evaluation.BatchAudit`), with one more fit without each
        batch; the ordinary folds stay as they are. A step of a pipeline that takes ``batch``,
        such as `sparsegsvp.estimators.BatchCenterer`, gets the first of them.
    adjust : sequence of str or int, optional
        Names or numbers of features, such as age and sex, that are in every panel without a
        penalty. The procedure with these alone is scored on the same folds, which shows what the
        others add (:class:`~sparsegsvp.evaluation.Adjustment`). For a procedure that ends in a
        method with ``penalty_factor``, such as `GSVPSVMCV`, and whose other steps keep the columns.
    ids : array-like of shape (n_samples,), optional
        Identifiers of the samples' origin, by default a frame's index; only to notice repeats.
    cv : int, splitter or iterable, default=5
        Number of stratified folds, or anything that gives splits.
    n_repeats : int, default=5
        Repeats, when ``cv`` is a number.
    n_permutations : int, default=99
        First draws of the permutation test; 0 leaves it out.
    max_permutations : int, default=999
        Where 99 first draws leave p between 0.01 and 0.1, drawing goes on up to this number;
        0, or as many as ``n_permutations``, never goes on.
    permutation : {"fixed", "full"}, default="fixed"
        The statistic: a cheap one fixed in advance, or ``estimator`` with all its tuning.
    pos_label : label, optional
        The positive one of two classes; by default the last in sorted order.
    feature_names : sequence of str, optional
        Column names; a frame's own by default.
    final_fit : bool, default=True
        Also fit on all samples, for the panel that the frequencies are shown beside.
    n_random_panels : int, default=5
        Random panels of the same size per fold, averaged, as a control.
    level : float, default=0.95
        Nominal coverage of the intervals.
    random_state : int, default=0
        Seed of folds, permutations, controls, and every ``random_state`` of ``estimator``
        that is None.
    n_jobs : int, optional
        Fits at a time, each on one thread. The result does not depend on it.
    log : path or Journal, optional
        Append-only log of finished fits and draws, one JSON object per line, with timings in a
        second file beside it; or the open journal of a larger piece of work, whose owner answers
        for its header and finishes it.
    resume : bool, default=False
        Continue ``log`` where it ends.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` when a stage begins and after each piece
        of it; the stages are "nested cross-validation", "leaving batches out", "permutation
        test" and "covariates alone".
    check_repeats : bool, default=True
        Look for samples that occur more than once; False where that was done already.
    audit : bool, default=True
        Audit the batches; False where that was done already, for another procedure.

    Returns
    -------
    EvaluationResult

    References
    ----------
    Nadeau, Bengio (2003), Inference for the generalization error, Machine Learning 52(3),
    239-281.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsegsvp import nested_evaluate
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(40, 100, 2, effect=3.0)
    >>> procedure = make_pipeline(SelectKBest(k=2), LogisticRegression())
    >>> found = nested_evaluate(procedure, data.X, data.y, n_repeats=2, n_permutations=0)
    >>> found.scores["balanced_accuracy"].low > 0.5
    True
    >>> found.selection_frequencies[data.support].tolist()
    [1.0, 1.0]
    """
    seed = check_seed(random_state)
    _check_asked(estimator, permutation, n_permutations, max_permutations)
    matrix, labels, classes, group_ids = check_samples(X, y, groups)
    names = _names(X, feature_names, matrix.shape[1])
    adjusted = adjusted_columns(adjust, estimator, matrix.shape[1], names)
    if adjusted:
        estimator = always_with(estimator, adjusted, matrix.shape[1], names)
    batches = check_batches(batch, labels.size)
    asked = Asked(
        folds=folds_from(cv, labels, group_ids, X, n_repeats, seed),
        positive=_positive(classes, pos_label),
        names=names,
        level=level,
        n_random_panels=n_random_panels,
        final_fit=final_fit,
        permutation=permutation,
        n_permutations=int(n_permutations),
        max_permutations=int(max_permutations),
        batches=batches,
        audited=batches if audit else {},
    )
    notices = repeated_samples(matrix, _identifiers(X, ids), group_ids) if check_repeats else []
    for notice in notices:
        warnings.warn(notice.text, UserWarning, stacklevel=2)
    # by the first of them a step of the procedure may centre
    first = next(iter(batches.values()), None)
    procedure = Evaluated(
        estimator, X, labels, group_ids, first, matrix=matrix, classes=classes, seed=seed
    )
    with open_journal(log, partial(evaluation_header, procedure, asked), resume=resume) as journal:
        work = Work(procedure, journal, n_jobs, progress)
        found = evaluate_procedure(work, asked, notices)
        return _adjusted(found, work, asked, adjusted) if adjusted else found


def _adjusted(
    found: EvaluationResult, work: Work, asked: Asked, columns: tuple[int, ...]
) -> EvaluationResult:
    """Return an evaluation with what the columns adjusted for reach alone on the same folds."""

    def report(_: str, done: int, total: int) -> None:
        if work.progress is not None:
            work.progress(ALONE, done, total)

    procedure = replace(work.procedure, estimator=only_with(work.procedure.estimator, columns))
    part = replace(work, procedure=procedure, journal=work.journal.part(ALONE), progress=report)
    alone = evaluate_procedure(part, asked.alone())
    names = None if asked.names is None else tuple(asked.names[j] for j in columns)
    added = paired_difference(found, alone, level=asked.level)
    return replace(found, adjusted=Adjustment(columns, names, alone, added))


# ------------------------------------------------------------------------------ the input


def _check_asked(
    estimator: Any, permutation: str, n_permutations: int, max_permutations: int
) -> None:
    check_choice("permutation", permutation, ("fixed", "full"))
    check_integer("n_permutations", n_permutations, least=0)
    check_integer("max_permutations", max_permutations, least=0)
    if not hasattr(estimator, "predict"):
        raise ValueError(
            f"{type(estimator).__name__} cannot predict; put a classifier after it in a pipeline."
        )


def _positive(classes: NDArray[Any], pos_label: Any) -> int:
    if pos_label is None:
        return int(classes.size - 1)
    found = np.flatnonzero(classes == pos_label)
    if not found.size:
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {classes.tolist()}.")
    return int(found[0])


def _names(X: Any, given: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    if given is None:
        given = getattr(X, "columns", None)
    if given is None:
        return None
    names = tuple(str(name) for name in given)
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} entries for {n_features} features.")
    return names


def _identifiers(X: Any, ids: ArrayLike | None) -> ArrayLike | None:
    if ids is not None:
        check_consistent_length(X, ids)
        return ids
    index = getattr(X, "index", None)
    return None if index is None or callable(index) else np.asarray(index)
