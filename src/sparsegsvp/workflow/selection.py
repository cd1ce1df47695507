"""`select_panel`: a table in, a panel with an honest estimate out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._notices import Notice
from .._typing import Progress
from ..datasets import load_breast_cancer
from ..estimators.pipeline import last_step
from ..evaluation import (
    ExternalValidation,
    LearningCurve,
    StabilitySelection,
    learning_curve,
    shift_notice,
)
from ..evaluation.journal import Journal
from ..evaluation.panels import fit_with_groups
from ..io import InputError, Table, make_table
from ..io.errors import option
from ..report import describe_model, describe_panel, summarize, summarize_test
from .predict import Predictions, check_prevalence, predict_table
from .procedure import batch_of, named_rows
from .results import Selection, cohort_table
from .run import SUMMARY, TUNING, PreparedRun
from .settings import Settings, can_be_halved, refuse_plan, settings_from


def select_panel(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    groups: Any = None,
    batch: Any = (),
    adjust: str | Sequence[str] = (),
    positive: str | None = None,
    test: Any = None,
    prevalence: float | None = None,
    fast: bool = False,
    n_features: int | None = None,
    must: str | Sequence[str] | None = None,
    ban: str | Sequence[str] | None = None,
    costs: Mapping[str, float] | str | os.PathLike[str] | None = None,
    panel: str | Sequence[str] | None = None,
    published: bool = False,
    center_batches: bool = False,
    q: float | Sequence[float] = (1.0,),
    tau: float | Sequence[float] | None = None,
    pool: float | Sequence[float] | None = None,
    n_deltas: int = 30,
    rule: str = "paired",
    impute: str = "median",
    log2: bool = False,
    floor: float = 1.0,
    folds: int = 5,
    repeats: int = 5,
    permutations: int = 99,
    max_permutations: int = 999,
    resamples: int = 50,
    plan: bool = False,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
    on_panel: Callable[[dict[str, Any]], None] | None = None,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    command: str = "",
    **reading: Any,
) -> Selection:
    """Select a small panel of features and estimate honestly how well it predicts.

    Everything that ``sparsegsvp select`` does: the procedure (logarithm, imputation,
    selection, tuning, calibration) is fitted on all samples for the panel, evaluated by
    nested cross-validation, tested against permuted labels, and repeated on half samples.

    Parameters
    ----------
    data : path-like, data frame, array, AnnData or Table
        Samples in rows, features in columns.
    y : array-like of shape (n_samples,), optional
        Labels, unless `target` names them.
    target : str, optional
        The column of labels.
    groups : str or array-like of shape (n_samples,), optional
        Patients, sites or batches that must not be split between training and test: a
        column, or one value per sample.
    batch : str, sequence of str, or mapping from name to array-like, optional
        Columns that say where or when samples were measured (plate, day, site), or such values
        under their names. They are no features; whether the panel shows them instead of the
        class is audited, for which the procedure is fitted once more without each batch.
    adjust : str or sequence of str, optional
        Columns such as age and sex that are in the decision in every fold: what the panel adds to
        them alone is shown on the same folds. They are counted in the size of the panel.
    positive : str, optional
        The class of interest of two; by default guessed from the names (case, cancer, died,
        yes, 1, ...), and else the last in sorted order.
    test : like `data`, optional
        An independent cohort with the same features and labels, on which the final model is
        validated (`sparsegsvp.evaluation.validate_external`).
    prevalence : float, optional
        Share of the positive class where the panel is to be used, for predictive values and
        decision curves; by default that of the samples they are measured on.
    fast : bool, default=False
        Leave out what takes long: one repeat, no permutations, no half samples.
    n_features : int, optional
        Exactly this many features; by default as many as it takes.
    must, ban : str or sequence of str, optional
        Features that are in every panel, or in none, in every fold. ``"@file"`` stands for the
        names in a file, one in each line.
    costs : mapping, path-like, optional
        What features cost, in place of 1: one that costs twice as much has to be worth twice
        the penalty. From names to numbers, or a file with a name and a number in each line.
    panel : str or sequence of str, optional
        Features of another panel, as `must` takes them: it is scored by the same folds, with the
        paired difference to the selection. Unless `published` says otherwise, this is called
        after the fact: its score flatters where it was chosen with these samples.
    published : bool, default=False
        Whether `panel` was chosen without any of these samples.
    center_batches : bool, default=False
        Subtract the mean of each batch (of the first `batch`) inside every fold. Samples of
        other batches are then centred by their own mean, so that the model predicts whole batches
        with mixed classes, and no single sample; see `sparsegsvp.estimators.BatchCenterer`.
    q, tau, pool, n_deltas, rule
        What `GSVPSVMCV` chooses from, and how.
    impute : {"median", "none"}, default="median"
        Fill missing values with medians of the training part, or refuse them.
    log2 : bool, default=False
        Take ``log2(max(x, floor))`` first.
    floor : float, default=1.0
        Smaller values count as this under the logarithm.
    folds, repeats : int, default=5
        Outer folds and their repeats.
    permutations : int, default=99
        Draws of the permutation test; 0 leaves it out.
    max_permutations : int, default=999
        Where at least 99 draws leave p between 0.01 and 0.1, drawing goes on up to this number;
        0, or as many as `permutations`, never goes on.
    resamples : int, default=50
        Half samples for the stability; 0 leaves it out.
    plan : bool, default=False
        Measure accuracy and stability at growing parts of the samples, for the next study: see
        `sparsegsvp.evaluation.learning_curve`. As in half samples, `tau` stays as chosen.
    random_state : int, default=0
        Seed of all random choices.
    n_jobs : int, optional
        Worker processes; -1 for one per core. Results do not depend on it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    cancel : callable, optional
        Asked after each piece of work whether to end the run.
    on_panel : callable, optional
        Called with the parts ``panel``, ``data`` and ``model`` of the document as soon as the
        panel is known, long before the estimate.
    log : path-like, optional
        File to which finished folds, permutations and half samples are appended.
    resume : bool, default=False
        Continue `log` where it ends.
    command : str, default=""
        What repeats the run, for the record.
    **reading
        How to read `data`, and which columns to `drop` or `keep`; see `sparsegsvp.io.make_table`.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from sparsegsvp import select_panel
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> found = select_panel(data.X, data.y, tau=1.0, n_deltas=5, fast=True)
    >>> sorted(found.panel.index[:2]) == sorted(f"f{j}" for j in data.support)
    True
    >>> found.verdict
    'not tested'
    """
    asked = settings_from(
        q=q, tau=tau, pool=pool, n_deltas=n_deltas, rule=rule, n_features=n_features,
        must=must, ban=ban, costs=costs, panel=panel, published=published,
        center_batches=center_batches,
        impute=impute, log2=log2, floor=floor, folds=folds, repeats=repeats,
        permutations=permutations, max_permutations=max_permutations, resamples=resamples,
        plan=plan, random_state=random_state,
    )  # fmt: skip
    named = {"group" if isinstance(groups, str) else "groups": groups}
    table = make_table(
        data, y, target=target, batch=batch, adjust=adjust,
        positive=positive, **named, **reading,
    )  # fmt: skip
    table = table.without_notice("raw") if asked.log2 else table
    cohort = None if test is None else cohort_table(test, table, reading)
    if prevalence is not None:
        check_prevalence(prevalence, list(table.class_counts()))
    run = PreparedRun(
        table, asked.fast() if fast else asked, n_jobs=n_jobs, progress=progress, cancel=cancel
    )
    settings, parameters = run.settings, run.parameters()
    refuse_plan(table, settings)
    with run.open_journal("select_panel", parameters, log, resume) as journal:
        model, said = _fit(run)
        chosen = describe_panel(table, model)
        if on_panel is not None:
            classes = {"classes": list(table.class_counts())}
            on_panel({"panel": chosen, "data": classes, "model": describe_model(model)})
        evaluation = run.evaluate(journal)
        beside = run.evaluate_beside(evaluation, journal)
        again = _with_tau_of(model, run)
        stability = _resample(again, run, journal)
        learning = _learn(again, run, journal)
    if learning is not None and evaluation.verdict == "none":
        learning = learning.without_forecast("chance")  # the outer folds and the test know better
    found = validation = scored = None
    if cohort is not None:
        found, validation, said_of_it = _validate(model, cohort, table, prevalence)
        scored = summarize_test(validation, source=cohort.source, digest=cohort.digest)
        said = [*said, *said_of_it]
    with run.stages.stage(SUMMARY):
        document = summarize(
            table,
            model,
            panel=chosen,
            evaluation=evaluation,
            stability=stability,
            beside=beside,
            learning=learning,
            test=scored,
            prevalence=prevalence,
            command=command,
            parameters=parameters,
            seed=settings.random_state,
            skipped=_skipped(asked, fast, stability is None),
            notices=[*run.notices(), *said],
        )
    return Selection(
        model=model,
        evaluation=evaluation,
        stability=stability,
        document=document,
        table=table,
        cohort=found,
        cohort_table=cohort,
        seconds=run.stages.seconds,
        learning=learning,
        validation=validation,
    )


def demo_table() -> Table:
    """Return the breast cancer data of scikit-learn, malignant being the class of interest.

    Examples
    --------
    >>> from sparsegsvp.workflow import demo_table
    >>> demo_table().class_counts()
    {'benign': 357, 'malignant': 212}
    """
    import pandas as pd

    data = load_breast_cancer()
    return make_table(
        data.X,
        pd.Series(data.labels, name="diagnosis"),
        feature_names=data.feature_names.tolist(),
        positive="malignant",
        source="the breast cancer data of scikit-learn",
    )


def _fit(run: PreparedRun) -> tuple[Any, list[Notice]]:
    """Fit a clone of the procedure on all samples; return it with what it warned of."""
    model, table = clone(run.procedure), run.table
    with (
        run.stages.stage(TUNING),
        warnings.catch_warnings(record=True) as caught,
        parallel_config(n_jobs=run.n_jobs),
    ):
        warnings.simplefilter("always")
        fit_with_groups(model, named_rows(table), table.labels, table.groups, batch_of(table))
    kept = [w for w in caught if issubclass(w.category, ConvergenceWarning | UserWarning)]
    texts = dict.fromkeys(str(w.message) for w in kept)
    return model, [Notice("final", "caution", text) for text in texts]


def _validate(
    model: Any, cohort: Table, table: Table, prevalence: float | None
) -> tuple[Predictions, ExternalValidation, list[Notice]]:
    """Predict an independent cohort and hold it against its labels; say what is odd about it."""
    found = predict_table(model, cohort)
    validation = found.validate(cohort.labels, positive=table.positive_class, prevalence=prevalence)
    notices = [notice for notice in cohort.notices if notice.code == "spelling"]
    odd = shift_notice(validation.shift, cohort.source or "the other cohort")
    notices += [*([] if odd is None else [odd]), *validation.notices]
    notices += [Notice("centred", "caution", text) for text in [found.centred_text()] if text]
    return found, validation, notices


def _with_tau_of(model: Any, run: PreparedRun) -> Any:
    """Return the procedure with tau fixed at the value that was chosen on all samples.

    For refits by the dozen: tuning tau too costs several times as much, the penalty is tuned
    anew. The outer folds, and so the frequencies that they give, tune everything.
    """
    again = clone(run.procedure)
    if run.settings.n_features is None:
        last_step(again).set_params(tau=(float(last_step(model).tau_),))
    return again


@contextmanager
def _measuring(what: str, table: Table, remedy: str) -> Iterator[None]:
    """Refuse what a table does not allow, and hide warnings, which the folds count already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except ValueError as error:
            raise InputError(
                f"{what} cannot be measured ({error})", where=table.source, remedy=remedy
            ) from error


def _resample(again: Any, run: PreparedRun, journal: Journal) -> StabilitySelection | None:
    """Select again in complementary half samples, if any, tuning the penalty in each."""
    table, settings = run.table, run.settings
    if not (settings.resamples and can_be_halved(table)):
        return None
    stability = StabilitySelection(
        again,
        n_resamples=settings.resamples + settings.resamples % 2,
        n_jobs=run.n_jobs,
        random_state=settings.random_state,
    )
    with _measuring("stability", table, f"leave it out with {option('resamples', 0)}"):
        stability.fit(
            table.X,
            table.labels,
            groups=table.groups,
            batch=batch_of(table),
            log=journal,
            progress=run.stages,
        )
    return stability


def _learn(again: Any, run: PreparedRun, journal: Journal) -> LearningCurve | None:
    """Select and predict with growing parts of the samples, if asked to, tuning the penalty."""
    table = run.table
    if not run.settings.plan:
        return None
    with _measuring("the learning curve", table, f"leave out {option('plan')}"):
        return learning_curve(
            again,
            table.X,
            table.labels,
            table.groups,
            random_state=run.settings.random_state,
            n_jobs=run.n_jobs,
            log=journal,
            progress=run.stages,
            batch=batch_of(table),
        )


def _skipped(asked: Settings, fast: bool, too_small: bool) -> list[str]:
    """Say what a run leaves out."""
    skipped = []
    if fast and asked.repeats > 1:
        skipped.append(f"{asked.repeats - 1} of {asked.repeats} repeats (fast run).")
    if fast or not asked.permutations:
        skipped.append(f"The permutation test ({'fast run' if fast else 'no draws asked for'}).")
    if fast or not asked.resamples:
        why = "fast run" if fast else "none asked for"
        skipped.append(f"Stability in half samples ({why}).")
    elif too_small:
        skipped.append("Stability in half samples: the smallest class has fewer than 6 samples.")
    return skipped
