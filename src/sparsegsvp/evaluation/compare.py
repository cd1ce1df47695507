"""Comparison at equal panel size: its methods, and the same folds, sizes and judge for each."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_selection import SelectKBest, chi2, f_classif
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .._parallel import Outcome, Task
from .._typing import IntArray, Progress
from .._validate import check_real, check_seed
from .baselines import (
    ElasticNetSelector,
    L1Logistic,
    RandomPanel,
    RecursiveElimination,
    TreeImportance,
    mutual_information,
)
from .comparison import RANDOM_PANEL, Comparison, MethodAtSize, comparison_rows, mean_seconds
from .folds import Fold, check_samples, derive_seed, make_folds, repeated_samples
from .journal import Journal, open_journal, run_logged
from .panels import Procedure, describe, exact_panel, size_is_a_cut, with_size
from .scores import area_variance, counts_of, fold_scores, mean_class_recall, panel_score
from .values import identity, message_of

COMPARISON = "comparison"
_FIT = 21  # seed stream

#: What the methods of scikit-learn's parts do; others say it themselves.
_WORDS = {
    "l1 logistic": "Logistic regression with an l1 penalty (lasso); a fit for each size.",
    "elastic net": "Least squares with an l1 and an l2 penalty; correlated features stay together.",
    "random forest": "Features by their importance to 500 trees on bootstrapped samples.",
    "gradient boosting": "Features by their importance to 100 small trees, one after the other.",
    "RFE": "Recursive elimination of the smallest weights of a linear SVM.",
    "F test": "Features one by one, by analysis of variance (the t-test of two classes).",
    "chi-squared": "Features one by one, by the chi-squared statistic of scaled values.",
    "mutual information": "Features one by one, by mutual information with the class.",
}

#: Other names that people know methods by.
KNOWN_AS = {
    "lasso": "l1 logistic",
    "l1": "l1 logistic",
    "logistic": "l1 logistic",
    "glmnet": "elastic net",
    "enet": "elastic net",
    "rf": "random forest",
    "forest": "random forest",
    "trees": "random forest",
    "gbm": "gradient boosting",
    "boosting": "gradient boosting",
    "xgboost": "gradient boosting",
    "lightgbm": "gradient boosting",
    "svm": "RFE",
    "svmrfe": "RFE",
    "recursivefeatureelimination": "RFE",
    "ttest": "F test",
    "anova": "F test",
    "chi2": "chi-squared",
    "mi": "mutual information",
    "mutualinfo": "mutual information",
    "rifle": "TruncatedRayleighFlow",
}


@dataclass(frozen=True)
class _Samples:
    """The samples, which every fold of every method needs, and the seed."""

    X: Any
    y: NDArray[Any]
    codes: IntArray
    groups: NDArray[Any] | None
    missing: bool
    seed: int

    @classmethod
    def of(
        cls,
        X: Any,
        y: NDArray[Any],
        classes: NDArray[Any],
        groups: NDArray[Any] | None,
        seed: int,
    ) -> _Samples:
        """Return checked samples with their codes, and whether values are missing."""
        missing = not hasattr(X, "tocsr") and bool(np.isnan(X).any())
        return cls(X, y, np.searchsorted(classes, y), groups, missing, seed)


def method_lines() -> dict[str, str]:
    """Return what each of `default_methods` does, in a line."""
    found = {}
    for name, method in default_methods().items():
        own = (type(method).__doc__ or "").strip().partition("\n")[0]
        found[name] = _WORDS.get(name, own)
    return found


def default_methods() -> dict[str, Any]:
    """Return the methods of a comparison that names none.

    Everything in :mod:`sparsegsvp.related`, :class:`~sparsegsvp.GSVPSVM`, and from
    scikit-learn l1 logistic regression, elastic net, random forest, gradient boosting,
    recursive elimination and three filters.

    Returns
    -------
    dict
        From a name to an unfitted estimator.

    Examples
    --------
    >>> from sparsegsvp.evaluation import default_methods
    >>> {"l1 logistic", "RFE", "F test"} <= set(default_methods())
    True
    """
    from .. import related
    from ..estimators import GSVPSVM

    kinds = {name: getattr(related, name) for name in related.__all__}
    return {
        "GSVPSVM": GSVPSVM(),
        **{k: v() for k, v in kinds.items() if isinstance(v, type) and hasattr(v, "fit")},
        "l1 logistic": make_pipeline(StandardScaler(), L1Logistic()),
        "elastic net": make_pipeline(StandardScaler(), ElasticNetSelector()),
        "random forest": TreeImportance(),
        "gradient boosting": TreeImportance(boosted=True, n_trees=100),
        "RFE": make_pipeline(StandardScaler(), RecursiveElimination()),
        "F test": SelectKBest(f_classif),
        "chi-squared": make_pipeline(MinMaxScaler(), SelectKBest(chi2)),
        "mutual information": SelectKBest(mutual_information),
    }


def compare(
    methods: Mapping[str, Any] | None,
    X: Any,
    y: ArrayLike,
    sizes: Sequence[int] = (2, 4, 8, 16, 32),
    *,
    groups: ArrayLike | None = None,
    n_splits: int = 5,
    n_repeats: int = 5,
    reference: str | None = None,
    time_limit: float | None = None,
    level: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    check_repeats: bool = True,
) -> Comparison:
    """Compare methods of feature selection at equal panel sizes.

    In every fold each method is fitted on the training part and gives exactly k features,
    for each k in ``sizes``; a balanced logistic regression on them, the same for all,
    predicts the test part. That is the primary score; a method's own decision is the
    secondary one. A random panel is a row of its own.

    A method is asked for k features through whichever of ``n_features``,
    ``n_features_to_select``, ``k`` or ``max_features`` it has. A larger panel is cut, and a
    smaller one filled, by the method's own order (``feature_order_``, or the size of
    ``coef_``, or ``ranking_`` or ``scores_``).

    Parameters
    ----------
    methods : mapping from name to estimator, or None
        Selectors, or classifiers that select; None for
        :func:`~sparsegsvp.evaluation.default_methods`.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table. Missing values are replaced by the training part's medians.
    y, groups, level, random_state, n_jobs, resume, check_repeats
        As in :func:`~sparsegsvp.nested_evaluate`; the level is joint for the differences. What
        was stopped at a smaller ``time_limit`` than this one's is tried again on resuming.
    sizes : sequence of int, default=(2, 4, 8, 16, 32)
        Panel sizes.
    n_splits, n_repeats : int, default=5
        Folds per repeat, and repeats.
    reference : str, optional
        The method that differences are taken to; the first by default.
    time_limit : float, optional
        Seconds that a method may take in one fold, over all sizes. One that takes longer (or
        takes its process down) is reported and not tried again; the others go on.
    log : path, optional
        As in :func:`~sparsegsvp.nested_evaluate`, but never an open journal.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` at the beginning and after each method and
        fold; the stage is "comparison".

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sparsegsvp import compare
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(40, 60, 4, effect=1.5, return_X_y=True)
    >>> found = compare({"F test": SelectKBest()}, X, y, sizes=(2, 4), n_repeats=2)
    >>> found.row("F test", 4).score.value > found.row("random panel", 4).score.value
    True
    """
    seed = check_seed(random_state)
    matrix, labels, classes, ids = check_samples(X, y, groups)
    panel_sizes = _check_sizes(sizes, matrix.shape[1])
    chosen = _check_methods(methods)
    reference = _check_reference(reference, chosen)
    if time_limit is not None:
        check_real("time_limit", time_limit, above=0)
    for notice in repeated_samples(matrix, None, ids) if check_repeats else ():
        warnings.warn(notice.text, UserWarning, stacklevel=2)
    folds = make_folds(
        labels, groups=ids, n_splits=n_splits, n_repeats=n_repeats, random_state=seed
    )
    description = {
        "methods": {name: describe(estimator) for name, estimator in chosen.items()},
        "sizes": panel_sizes,
        "n_splits": n_splits,
        "n_repeats": n_repeats,
        "grouped": ids is not None,
        "random_state": seed,
    }

    header = partial(identity, "compare", matrix, labels, ids, **description)
    with open_journal(log, header, resume=resume) as journal:
        shared = _Samples.of(matrix, labels, classes, ids, seed)
        _run(journal, chosen, folds, panel_sizes, shared, n_jobs, time_limit, progress)
    cells = {
        (name, size): MethodAtSize.collect(journal, name, size, folds)
        for name in chosen
        for size in panel_sizes
    }
    return Comparison(
        rows=comparison_rows(cells, folds, reference, matrix.shape[1], level),
        reference=reference,
        sizes=panel_sizes,
        n_samples=labels.size,
        n_features=matrix.shape[1],
        n_folds=len(folds),
        description={**description, "level": level, "classes": classes.tolist()},
        seconds=mean_seconds(journal, chosen, panel_sizes, folds),
    )


def _check_sizes(sizes: Sequence[int], n_features: int) -> tuple[int, ...]:
    found = tuple(sorted({int(k) for k in sizes}))
    if not found or found[0] < 1 or found[-1] > n_features:
        raise ValueError(
            f"sizes={tuple(sizes)} must lie in 1..{n_features}, the number of features."
        )
    return found


def _check_methods(methods: Mapping[str, Any] | None) -> dict[str, Any]:
    chosen = dict(default_methods() if methods is None else methods)
    if not chosen:
        raise ValueError("methods is empty; give a mapping from names to estimators, or None.")
    for name, estimator in chosen.items():
        known = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
        if not known or isinstance(estimator, type):
            raise ValueError(f"method {name!r} is not an estimator; give an instance.")
    chosen.setdefault(RANDOM_PANEL, RandomPanel())
    return chosen


def _check_reference(reference: str | None, chosen: Mapping[str, Any]) -> str:
    found = next(iter(chosen)) if reference is None else reference
    if found not in chosen:
        raise ValueError(f"reference={found!r} is not among the methods {list(chosen)}.")
    return found


# ------------------------------------------------------------------------- one fold


def _run_fold(
    shared: _Samples, estimator: Any, fold: Fold, sizes: tuple[int, ...]
) -> Iterator[dict[str, Any]]:
    """Yield a method's result at each size, as it gets ready."""
    X = shared.X
    if shared.missing:
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        X = imputer.fit(X[fold.train]).transform(X)
    seed = derive_seed(shared.seed, _FIT, fold.repeat, fold.index)
    model, seconds = None, 0.0
    for size in sizes:
        try:
            if model is None or not size_is_a_cut(estimator):
                sized = with_size(estimator, size)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    start = time.perf_counter()
                    method = Procedure(sized, X, shared.y, shared.groups)
                    model = method.fit(fold.train, seed)
                    seconds = time.perf_counter() - start
            result = _judge(shared, X, model, fold, size)
        except Exception as error:
            result = {"status": "failed", "error": message_of(type(error), error)}
        yield {"size": size, "seconds": seconds, **result}


def _judge(shared: _Samples, X: Any, model: Any, fold: Fold, size: int) -> dict[str, Any]:
    """Score a fitted method's panel with the common classifier, and its own decision."""
    panel = exact_panel(model, size, X.shape[1])
    if not panel.size:
        raise ValueError("it gave an empty panel.")
    n_classes = int(shared.codes.max()) + 1
    truth = shared.codes[fold.test]
    _, predicted, proba = panel_score(X, shared.codes, fold, panel)
    scores = fold_scores(truth, predicted, proba, proba, n_classes=n_classes, positive=1)
    native = native_counts = None
    if hasattr(model, "predict"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = np.searchsorted(np.unique(shared.y), model.predict(X[fold.test]))
        native, native_counts = mean_class_recall(truth, own), counts_of(truth, own, n_classes)
    return {
        "status": "ok",
        "error": None,
        "panel": panel,
        "score": scores["balanced_accuracy"],
        "auc": scores["auc"],
        "auc_variance": area_variance(truth, proba, [1] if n_classes == 2 else range(n_classes)),
        "counts": counts_of(truth, predicted, n_classes),
        "native": native,
        "native_counts": native_counts,
    }


def _run(
    journal: Journal,
    methods: Mapping[str, Any],
    folds: Sequence[Fold],
    sizes: tuple[int, ...],
    shared: _Samples,
    n_jobs: int | None,
    time_limit: float | None,
    progress: Progress | None,
) -> None:
    """Do what the journal does not hold yet; drop a method whose process had to be replaced."""
    journal.plan((name, fold.repeat, fold.index) for name in methods for fold in folds)
    for key in list(journal.records):
        record = journal.read(key, _check_record)
        if record["limit"] is not None and (time_limit is None or time_limit > record["limit"]):
            journal.forget([key])  # stopped at a smaller limit than this: it gets another try
    dropped = {
        key[0]: {name: value[name] for name in ("status", "error", "limit")}
        for key, value in journal.records.items()
        if value["dropped"]
    }

    def record_of(outcome: Outcome) -> tuple[dict[str, Any], list[Any]]:
        name, repeat, index = outcome.task.key
        if outcome.status in ("timeout", "died"):
            late = outcome.status == "timeout"
            dropped[name] = {
                "status": "timeout" if late else "failed",
                "error": f"{outcome.error} in repeat {repeat + 1}, fold {index + 1}",
                "limit": time_limit if late else None,
            }
        return _record(outcome, sizes, dropped.get(name))

    tasks = [
        Task((name, fold.repeat, fold.index), _run_fold, (estimator, fold, sizes))
        for fold in folds
        for name, estimator in methods.items()
    ]
    run_logged(
        tasks,
        shared,
        journal,
        stage=COMPARISON,
        progress=progress,
        record=record_of,
        n_jobs=n_jobs,
        isolate=True,
        time_limit=time_limit,
        cancelled=lambda task: task.key[0] in dropped,
    )


def _check_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record; raise KeyError or TypeError if it lacks something that is used of it."""
    _ = [record[name] for name in ("status", "error", "dropped", "limit")]
    for entry in record["sizes"]:
        _ = [entry[name] for name in ("size", "error")]
        if entry["status"] == "ok":
            _ = [entry[name] for name in ("panel", "score", "auc", "auc_variance", "counts")]
            _ = [entry[name] for name in ("native", "native_counts")]
    return record


def _record(
    outcome: Outcome, sizes: tuple[int, ...], why_dropped: dict[str, Any] | None
) -> tuple[dict[str, Any], list[Any]]:
    """Return what the log keeps of a method in a fold, and apart from it the seconds."""
    early = outcome.status in ("timeout", "died", "cancelled")
    record = {"status": outcome.status, "error": outcome.error, "dropped": early, "limit": None}
    if early and why_dropped is not None:
        record.update(why_dropped)
    missing = {"status": record["status"], "error": record["error"]}
    by_size = {part["size"]: dict(part) for part in outcome.value or ()}
    entries = [by_size.get(size, {"size": size, **missing}) for size in sizes]
    seconds = [entry.pop("seconds", None) for entry in entries]
    problem = next((entry for entry in entries if entry["status"] != "ok"), None)
    if record["status"] == "ok" and problem is not None:
        record.update(status="failed", error=problem["error"])
    return {**record, "sizes": entries}, seconds
