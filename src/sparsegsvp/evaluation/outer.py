"""The outer folds: a procedure fitted on every training part, and what is made of its predictions.

`evaluate_procedure` runs what a journal does not hold yet and gathers it; `evaluate_fold` is one
fold.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .._notices import Notice
from .._parallel import Task
from .._typing import Float64Array, IntArray, Progress
from .batches import LEFT_OUT, BatchAudit, audit_batch, folds_without
from .folds import Fold, derive_seed
from .journal import Journal, Key, run_logged, seconds_of
from .panels import Procedure, centring_steps, describe, selected_features
from .permutation import PermutationResult, permutation_test, signal_notices
from .result import EvaluationResult, FoldResult
from .scores import (
    aggregate_control,
    aggregate_scores,
    calibration_of,
    class_scores,
    counts_of,
    fold_scores,
    panel_score,
    panel_statistics,
)
from .values import digest, identity, message_of

FOLDS = "nested cross-validation"
_FIT, _CONTROL, _FINAL = 11, 12, 13  # seed streams


@dataclass(frozen=True, kw_only=True)
class Evaluated(Procedure):
    """A procedure and its samples, with what the outer folds need besides."""

    matrix: Any  # X as numbers
    classes: NDArray[Any]
    seed: int

    @property
    def codes(self) -> IntArray:
        """The class of each sample, as its place among the classes."""
        return np.searchsorted(self.classes, self.y)


@dataclass(frozen=True)
class Asked:
    """What is to be done with a procedure, checked."""

    folds: list[Fold]
    positive: int
    names: tuple[str, ...] | None
    level: float
    n_random_panels: int
    final_fit: bool
    permutation: str
    n_permutations: int
    max_permutations: int
    batches: dict[str, NDArray[np.str_]]
    audited: dict[str, NDArray[np.str_]]  # those of the batches that are to be left out

    def alone(self) -> Asked:
        """Ask for the scores of the folds alone."""
        return replace(self, n_random_panels=0, final_fit=False, n_permutations=0, audited={})


def _description(procedure: Evaluated, asked: Asked) -> dict[str, Any]:
    """Say what is evaluated, and how."""
    found = {
        "estimator": describe(procedure.estimator),
        "folds": [[f.repeat, f.index, f.test.size] for f in asked.folds],
        "grouped": procedure.groups is not None,
        "random_state": procedure.seed,
        "level": asked.level,
        "n_random_panels": asked.n_random_panels,
        "permutation": asked.permutation if asked.n_permutations else None,
        "n_permutations": asked.n_permutations,
        "max_permutations": asked.max_permutations,
        "final_fit": asked.final_fit,
        "positive": asked.positive if procedure.classes.size == 2 else None,
    }
    return found | ({"batches": list(asked.batches)} if asked.batches else {})


def evaluation_header(procedure: Evaluated, asked: Asked) -> dict[str, Any]:
    """Return what a log must agree on before it is continued; more draws may be added."""
    left_out = ("n_permutations", "max_permutations", "batches")
    settings = {k: v for k, v in _description(procedure, asked).items() if k not in left_out}
    settings["splits"] = digest(*(f.test for f in asked.folds))
    samples = (procedure.matrix, procedure.y, procedure.groups, asked.batches or None)
    return identity("nested_evaluate", *samples, **settings)


@dataclass(frozen=True)
class Work:
    """A procedure to evaluate, the journal of what is done already, and how to do the rest."""

    procedure: Evaluated
    journal: Journal
    n_jobs: int | None
    progress: Progress | None

    def fit_folds(
        self, stage: str, folds: Mapping[Key, Fold], positive: int = 0, n_random_panels: int = 0
    ) -> dict[Key, FoldResult]:
        """Return the result of each fold by its key, fitting those that the journal lacks."""
        options = (positive, n_random_panels)
        tasks = [Task(key, evaluate_fold, (fold, *options)) for key, fold in folds.items()]
        how: dict[str, Any] = {"progress": self.progress, "n_jobs": self.n_jobs}
        run_logged(tasks, self.procedure, self.journal, stage=stage, **how)
        return {
            key: self.journal.read(key, partial(FoldResult.from_record, fold))
            for key, fold in folds.items()
        }

    def final_panel(self) -> tuple[int, ...] | None:
        """Return the features of the fit on all samples."""
        run_logged([Task(("final",), fit_all)], self.procedure, self.journal)
        panel = self.journal.read(("final",), lambda record: record["panel"])
        return None if panel is None else tuple(int(j) for j in panel)

    def permutations(self, asked: Asked) -> PermutationResult:
        """Return the permutation test, going on from the draws that the journal has."""
        procedure, journal = self.procedure, self.journal
        full = asked.permutation == "full"
        drawn = [key for key in journal.records if key[0] == "permutation"]
        found = permutation_test(
            procedure.X if full else procedure.matrix,
            procedure.y,
            groups=procedure.groups,
            estimator=procedure.estimator if full else None,
            n_permutations=asked.n_permutations,
            max_permutations=asked.max_permutations,
            n_splits=min(5, _most_folds(procedure)),
            batch=procedure.batch,
            random_state=procedure.seed,
            n_jobs=self.n_jobs,
            known={key[1]: journal.read(key, float) for key in drawn},
            report=lambda draw, value: journal.add(("permutation", draw), value),
            progress=self.progress,
        )
        journal.plan(("permutation", draw) for draw in range(len(found.distribution) + 1))
        return found

    def audits(self, asked: Asked, ordinary: tuple[FoldResult, ...]) -> tuple[BatchAudit, ...]:
        """Leave every batch of every variable out once, and audit each variable."""
        procedure = self.procedure
        by_name = folds_without(asked.audited, procedure.codes, procedure.groups)
        left_out = {
            ("batch", name, fold.index): fold for name, folds in by_name.items() for fold in folds
        }
        found = self.fit_folds(LEFT_OUT, left_out) if left_out else {}
        audits = []
        for name, values in asked.audited.items():
            without = [result for key, result in found.items() if key[1] == name]
            audits.append(audit_batch(procedure, name, values, ordinary, without, asked.level))
        return tuple(audits)


def evaluate_procedure(
    work: Work, asked: Asked, notices: Sequence[Notice] = ()
) -> EvaluationResult:
    """Run what the journal does not hold yet, and gather the result."""
    procedure = work.procedure
    codes, classes, n_features = procedure.codes, procedure.classes, procedure.matrix.shape[1]
    folds = {("fold", f.repeat, f.index): f for f in asked.folds}
    fitted = work.fit_folds(FOLDS, folds, asked.positive, asked.n_random_panels)
    found = tuple(fitted.values())
    audits = work.audits(asked, found)
    final = work.final_panel() if asked.final_fit else None
    test = work.permutations(asked) if asked.n_permutations else None

    binary = asked.positive if classes.size == 2 else None
    scores = aggregate_scores(found, codes, binary, asked.level)
    frequencies, stability, jaccard = panel_statistics(found, n_features)
    control = aggregate_control(found, asked.level)
    told = [*notices, *fit_notices(found)]
    told += [notice for audit in audits for notice in audit.notices()]
    told += signal_notices(test, scores["balanced_accuracy"], classes.size, control)
    if final is not None:
        sizes = sizes_notice(len(final), [f.panel.size for f in found if f.panel is not None])
        told += [] if sizes is None else [sizes]
    return EvaluationResult(
        classes=tuple(classes.tolist()),
        positive=None if binary is None else classes.tolist()[binary],
        class_counts=tuple(np.bincount(codes).tolist()),
        n_samples=codes.size,
        n_features=n_features,
        feature_names=asked.names,
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
        notices=tuple(told),
        description=_description(procedure, asked),
        seconds=seconds_of(work.journal, ("fold", "final", "batch")),
        batches=audits,
    )


def _most_folds(procedure: Evaluated) -> int:
    """Return how many folds can each test every class: samples, or groups, of the smallest."""
    units = np.arange(procedure.y.size) if procedure.groups is None else procedure.groups
    return min(np.unique(units[procedure.codes == k]).size for k in range(procedure.classes.size))


# ----------------------------------------------------------------------------- one outer fold


def evaluate_fold(
    procedure: Evaluated, fold: Fold, positive: int, n_random_panels: int
) -> dict[str, Any]:
    """Fit on the training part and predict the test part; return the record."""
    n_classes = procedure.classes.size
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seed = derive_seed(procedure.seed, _FIT, fold.repeat, fold.index)
        model = procedure.fit(fold.train, seed)
    last, X_test = procedure.ready_to_predict(model, fold.test)
    predicted = np.searchsorted(procedure.classes, last.predict(X_test))
    decision, proba = class_scores(last, X_test, n_classes)
    truth = procedure.codes[fold.test]
    panel = selected_features(model, procedure.matrix.shape[1])
    return {
        "scores": fold_scores(
            truth, predicted, decision, proba, n_classes=n_classes, positive=positive
        ),
        "counts": counts_of(truth, predicted, n_classes),
        "predicted": predicted,
        "decision": decision,
        "proba": proba,
        "distances": _plane_distances(last, X_test, n_classes),
        "panel": panel,
        "control": _control(procedure, fold, model, panel, n_random_panels),
        "warnings": [message_of(w.category, w.message) for w in caught],
    }


def fit_all(procedure: Evaluated) -> dict[str, Any]:
    """Fit on all samples; return the record, which holds the panel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = procedure.fit(None, derive_seed(procedure.seed, _FINAL))
    return {"panel": selected_features(model, procedure.matrix.shape[1])}


def _plane_distances(model: Any, X: Any, n_classes: int) -> Float64Array | None:
    """Return the distances to the planes of a classifier that has one per class."""
    if isinstance(model, Pipeline) and hasattr(model[-1], "distances"):
        X, model = model[:-1].transform(X), model[-1]
    distances = getattr(model, "distances", None)
    if not callable(distances):
        return None
    values = np.asarray(distances(X), dtype=np.float64)
    return values if values.ndim == 2 and values.shape[1] == n_classes else None


def _seen(procedure: Evaluated, fold: Fold, model: Any) -> Any:
    """Return the table as it is or, in a fold whose model centres batches, with these centred."""
    if procedure.batch is None or not centring_steps(model):
        return procedure.matrix
    rows = np.concatenate([fold.train, fold.test])
    _, seen = procedure.ready_to_predict(model, rows)
    if seen.shape[1] != procedure.matrix.shape[1]:
        return procedure.matrix
    table = np.zeros(procedure.matrix.shape, seen.dtype)
    table[rows] = seen
    return table


def _control(
    procedure: Evaluated, fold: Fold, model: Any, panel: IntArray | None, n_random_panels: int
) -> dict[str, float] | None:
    """Score the common classifier on the panel and on random panels of its size."""
    if panel is None or not panel.size or n_random_panels < 1:
        return None
    rng = np.random.default_rng(derive_seed(procedure.seed, _CONTROL, fold.repeat, fold.index))
    matrix = _seen(procedure, fold, model)
    n_features = matrix.shape[1]
    drawn = [rng.choice(n_features, panel.size, replace=False) for _ in range(n_random_panels)]
    values = [panel_score(matrix, procedure.codes, fold, p)[0] for p in [panel, *drawn]]
    return {"selected": values[0], "random": float(np.mean(values[1:]))}


# ----------------------------------------------------------------------------------- notices


def sizes_notice(final_size: int, sizes: Sequence[int]) -> Notice | None:
    """Return a notice if a panel differs much in size from those behind the score.

    Parameters
    ----------
    final_size : int
        Number of features of the panel that is shown.
    sizes : sequence of int
        Those of the outer fits (:attr:`EvaluationResult.panel_sizes`).

    Returns
    -------
    Notice or None
        If the size lies outside their range, or is more than twice or less than half their median.

    Examples
    --------
    >>> from sparsegsvp.evaluation import sizes_notice
    >>> print(sizes_notice(2, [2, 30, 40, 50, 238]).text)
    The panel has 2 features, but the score is of panels with 2 to 238 (median 40)...
    >>> sizes_notice(10, [8, 10, 12]) is None
    True
    """
    if not sizes:
        return None
    middle, low, high = median(sizes), min(sizes), max(sizes)
    if low <= final_size <= high and middle / 2 <= final_size <= 2 * middle:
        return None
    spread = f"{low}" if low == high else f"{low} to {high} (median {middle:g})"
    features = "1 feature" if final_size == 1 else f"{final_size} features"
    text = (
        f"The panel has {features}, but the score is of panels with {spread}: it says little "
        "about a panel of this size."
    )
    return Notice("sizes", "caution", text)


def fit_notices(folds: tuple[FoldResult, ...]) -> list[Notice]:
    """Return one notice for each kind of warning that the fits gave."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for fold in folds:
        for kind in {text.split(":")[0] for text in fold.warnings}:
            counts[kind] += 1
        for text in fold.warnings:
            first.setdefault(text.split(":")[0], text)
    return [
        Notice(
            "fits",
            "note",
            f"{counts[kind]} of {len(folds)} fits warned, the first with {first[kind]}",
        )
        for kind in sorted(counts)
    ]
