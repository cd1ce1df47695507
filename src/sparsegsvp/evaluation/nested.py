"""Nested evaluation: everything that looks at labels happens inside the training part."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length

from .._parallel import Task
from .._typing import Progress
from .._validate import check_choice, check_integer, check_seed
from .._versions import versions
from .audit import BatchAudit
from .batches import LEFT_OUT, audit_batch, check_batches, folds_without
from .folds import check_labels, folds_from, repeated_samples
from .journal import Journal, open_journal, run_logged
from .outer import Procedure, evaluate_fold, final_panel
from .panels import describe
from .permutation import PermutationResult, permutation_test
from .result import EvaluationResult, FoldResult
from .summary import (
    aggregate_control,
    aggregate_scores,
    calibration_of,
    fit_notices,
    panel_statistics,
    signal_notices,
    sizes_notice,
)
from .values import digest

FOLDS = "nested cross-validation"


def nested_evaluate(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    batch: Any = None,
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

    In each of the repeated outer folds a clone of ``estimator`` is fitted on the training
    part and meets the test part only to predict it. Scaling, imputation, selection and
    tuning belong into ``estimator`` (a pipeline); nothing is fitted outside the folds, so
    selection cannot leak.

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
        is audited (:class:`~sparsegsvp.evaluation.BatchAudit`), for which the procedure is
        fitted once more without each batch. The ordinary folds are not changed by it. A step of a
        pipeline that takes ``batch``, such as `sparsegsvp.estimators.BatchCenterer`, gets the
        first of them.
    ids : array-like of shape (n_samples,), optional
        Identifiers of the samples' origin, only to notice repeats; a frame's index is
        looked at by itself.
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
        Folds (and permutations) at a time. The result does not depend on it: every fit
        uses one thread.
    log : path or Journal, optional
        Append-only log of finished folds and draws, one JSON object per line. Timings go
        to a second file beside it. An open journal of a larger piece of work takes them too;
        its owner answers for its header, and finishes it.
    resume : bool, default=False
        Continue ``log`` where it ends.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` when a stage begins and after each piece
        of it; the stages are "nested cross-validation", "leaving batches out" and
        "permutation test".
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
    >>> import numpy as np
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsegsvp import nested_evaluate
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["healthy", "ill"], 20)
    >>> X = rng.normal(size=(40, 100))
    >>> X[y == "ill", :2] += 2
    >>> procedure = make_pipeline(SelectKBest(k=2), LogisticRegression())
    >>> found = nested_evaluate(procedure, X, y, n_repeats=2, n_permutations=0)
    >>> found.scores["balanced_accuracy"].low > 0.5
    True
    >>> found.selection_frequencies[:2].tolist()
    [1.0, 1.0]
    """
    labels, classes, group_ids = check_labels(y, groups)
    seed = check_seed(random_state)
    check_consistent_length(X, labels)
    check_choice("permutation", permutation, ("fixed", "full"))
    check_integer("n_permutations", n_permutations, least=0)
    check_integer("max_permutations", max_permutations, least=0)
    if not hasattr(estimator, "predict"):
        raise ValueError(
            f"{type(estimator).__name__} cannot predict; put a classifier after it in a pipeline."
        )
    matrix = _numeric(X)
    positive = _positive(classes, pos_label)
    names = _names(X, feature_names, matrix.shape[1])
    codes = np.searchsorted(classes, labels)
    folds = folds_from(cv, labels, group_ids, X, n_repeats, seed)
    batches = check_batches(batch, labels.size)
    notices = []
    if check_repeats:
        notices += repeated_samples(matrix, _identifiers(X, ids), group_ids)
    for notice in notices:
        warnings.warn(notice.text, UserWarning, stacklevel=2)

    description = {
        "estimator": describe(estimator),
        "folds": [[f.repeat, f.index, f.test.size] for f in folds],
        "grouped": group_ids is not None,
        "random_state": seed,
        "level": level,
        "n_random_panels": n_random_panels,
        "permutation": permutation if n_permutations else None,
        "n_permutations": int(n_permutations),
        "max_permutations": int(max_permutations),
        "final_fit": final_fit,
        "positive": positive if classes.size == 2 else None,
    }
    if batches:
        description["batches"] = list(batches)

    def header() -> dict[str, Any]:
        # more draws may be added to finished ones
        settings = {k: v for k, v in description.items() if not k.endswith("_permutations")}
        if batches:
            settings["batches"] = digest(batches)
        return {
            "kind": "nested_evaluate",
            "data": digest(matrix, labels, [] if group_ids is None else group_ids),
            "splits": digest(*(f.test for f in folds)),
            "versions": versions(),
            **settings,
        }

    # by the first of them a step of the procedure may centre
    first = next(iter(batches.values()), None)
    procedure = Procedure(estimator, X, matrix, labels, codes, classes, group_ids, seed, first)
    with open_journal(log, header, resume=resume) as journal:
        tasks = [
            Task(("fold", f.repeat, f.index), evaluate_fold, (f, positive, n_random_panels))
            for f in folds
        ]
        run_logged(tasks, procedure, journal, stage=FOLDS, progress=progress, n_jobs=n_jobs)
        found = tuple(
            journal.read(task.key, partial(FoldResult.from_record, fold))
            for task, fold in zip(tasks, folds)
        )
        audited = batches if audit else {}
        audits = _audit(procedure, audited, found, level, journal, n_jobs, progress)
        final = test = None
        if final_fit:
            run_logged([Task(("final",), final_panel)], procedure, journal)
            panel = journal.read(("final",), lambda record: record["panel"])
            final = None if panel is None else tuple(int(j) for j in panel)
        if n_permutations:
            wanted = int(n_permutations), int(max_permutations)
            test = _run_permutations(procedure, permutation, *wanted, journal, n_jobs, progress)
        seconds = {
            "/".join(map(str, key)): value
            for key, value in journal.timings.items()
            if key[0] in ("fold", "final", "batch")
        }

    binary = positive if classes.size == 2 else None
    scores = aggregate_scores(found, folds, codes, binary, level)
    frequencies, stability, jaccard = panel_statistics(found, matrix.shape[1])
    control = aggregate_control(found, folds, level)
    notices += fit_notices(found)
    notices += [notice for audit in audits for notice in audit.notices()]
    notices += signal_notices(test, scores["balanced_accuracy"], classes.size, control)
    if final is not None:
        sizes = [f.panel.size for f in found if f.panel is not None]
        notices += [n for n in [sizes_notice(len(final), sizes)] if n is not None]
    return EvaluationResult(
        classes=tuple(classes.tolist()),
        positive=None if binary is None else classes.tolist()[positive],
        class_counts=tuple(int(np.sum(codes == k)) for k in range(classes.size)),
        n_samples=labels.size,
        n_features=matrix.shape[1],
        feature_names=names,
        y=codes,
        folds=found,
        scores=scores,
        selection_frequencies=frequencies,
        stability=stability,
        jaccard=jaccard,
        control=control,
        calibration=calibration_of(found, codes, binary),
        permutation=test,
        final_panel=final,
        notices=tuple(notices),
        description=description,
        seconds=seconds,
        batches=audits,
    )


# ------------------------------------------------------------------------------ the input


def _numeric(X: Any) -> Any:
    """Return X as a numeric array or CSR matrix, without copying one that already is."""
    try:
        return check_array(X, accept_sparse="csr", ensure_all_finite="allow-nan")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must be a table of numbers: {error} Encode other columns beforehand, "
            "without looking at the labels."
        ) from error


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


# --------------------------------------------------------------------------- the pieces


def _audit(
    procedure: Procedure,
    batches: dict[str, NDArray[np.str_]],
    ordinary: tuple[FoldResult, ...],
    level: float,
    journal: Journal,
    n_jobs: int | None,
    progress: Progress | None,
) -> tuple[BatchAudit, ...]:
    """Leave every batch of every variable out once, and audit each variable."""
    folds = folds_without(batches, procedure.codes, procedure.groups)
    tasks = {
        name: [Task(("batch", name, f.index), evaluate_fold, (f, 0, 0)) for f in of_name]
        for name, of_name in folds.items()
    }
    every = [task for of_name in tasks.values() for task in of_name]
    if every:
        run_logged(every, procedure, journal, stage=LEFT_OUT, progress=progress, n_jobs=n_jobs)
    return tuple(
        audit_batch(
            name,
            values,
            procedure.matrix,
            procedure.codes,
            procedure.classes.tolist(),
            procedure.groups,
            ordinary,
            [
                journal.read(task.key, partial(FoldResult.from_record, fold))
                for task, fold in zip(tasks[name], folds[name])
            ],
            level=level,
            seed=procedure.seed,
        )
        for name, values in batches.items()
    )


def _run_permutations(
    procedure: Procedure,
    permutation: str,
    n_permutations: int,
    max_permutations: int,
    journal: Journal,
    n_jobs: int | None,
    progress: Progress | None,
) -> PermutationResult:
    known = {key[1]: journal.read(key, float) for key in journal.records if key[0] == "permutation"}
    found = permutation_test(
        procedure.X if permutation == "full" else procedure.matrix,
        procedure.y,
        groups=procedure.groups,
        estimator=procedure.estimator if permutation == "full" else None,
        n_permutations=n_permutations,
        max_permutations=max_permutations,
        n_splits=min(5, _most_folds(procedure)),
        batch=procedure.batch,
        random_state=procedure.seed,
        n_jobs=n_jobs,
        known=known,
        report=lambda draw, value: journal.add(("permutation", draw), value),
        progress=progress,
    )
    journal.plan(("permutation", draw) for draw in range(len(found.distribution) + 1))
    return found


def _most_folds(procedure: Procedure) -> int:
    """Return how many folds can each test every class: samples, or groups, of the smallest."""
    units = np.arange(procedure.y.size) if procedure.groups is None else procedure.groups
    return min(np.unique(units[procedure.codes == k]).size for k in range(procedure.classes.size))
