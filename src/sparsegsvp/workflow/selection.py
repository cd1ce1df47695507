"""`select_panel`: a table in, a panel with an honest estimate out."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._notices import Notice
from .._typing import Progress
from ..datasets import load_breast_cancer
from ..estimators.pipeline import last_step
from ..evaluation import (
    EvaluationResult,
    ExternalValidation,
    LearningCurve,
    StabilitySelection,
    learning_curve,
    shift_notice,
)
from ..evaluation.journal import Journal, open_journal
from ..evaluation.panels import fit_with_groups
from ..io import InputError, Table, check_cohort, csv_text, make_table, save_model, write_atomic
from ..io.errors import option
from ..report import (
    build_report,
    checklist_markdown,
    describe_model,
    describe_panel,
    summarize,
    summarize_test,
)
from ..report.methods import methods
from ..report.words import interval
from .beside import fixed_panels
from .evidence import evaluate_beside, evaluate_procedure
from .files import (
    json_text,
    out_of_fold_csv,
    panel_rows,
    panel_workbook,
    results_folder,
    timings_text,
    write_figures,
    write_texts,
)
from .predict import (
    Predictions,
    check_prevalence,
    predict_table,
    predictions_csv,
    recalibrate_model,
)
from .settings import (
    Settings,
    batch_of,
    can_be_halved,
    make_procedure,
    make_settings,
    named_rows,
    outer_folds,
    refuse_missing,
    refuse_plan,
    run_header,
)
from .stages import SUMMARY, TUNING, Stages
from .steering import centring_notices, steering_factors, steering_notices

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """What `select_panel` found.

    Attributes
    ----------
    model : estimator
        The procedure fitted on all samples: a `GSVPSVMCV`, or a `PanelPipeline` that ends in
        one. It predicts from a data frame that has the panel's columns alone.
    evaluation : EvaluationResult
        How well the procedure predicts samples it has not seen.
    stability : StabilitySelection or None
        Panels of half samples; None where that was left out.
    document : dict
        Everything the page shows, as ``results.json`` holds it
        (`sparsegsvp.report.schema.Results`).
    table : Table
        The samples.
    cohort : Predictions or None
        Predictions of the independent cohort, if one was given.
    validation : ExternalValidation or None
        What that cohort says of the model.
    seconds : dict of str to float
        How long each stage took; not part of `document`, which repeats byte for byte.
    learning : LearningCurve or None
        Accuracy and stability at growing parts of the samples, where that was asked for.
    """

    model: Any
    evaluation: EvaluationResult
    stability: StabilitySelection | None
    document: dict[str, Any]
    table: Table
    cohort: Predictions | None
    cohort_table: Table | None
    seconds: dict[str, float]
    learning: LearningCurve | None = None
    validation: ExternalValidation | None = None

    FILES = (
        "report.html",
        "checklist.md",
        "panel.csv",
        "panel.xlsx",
        "figures/",
        "model.skops",
        "results.json",
        "predictions.csv",
        "test-predictions.csv",
        "timings.json",
    )
    NEEDS = ("jinja2", "skops")

    @property
    def panel(self) -> pd.DataFrame:
        """The panel, one row per feature, the heaviest first."""
        import pandas as pd

        rows = []
        for row in self.document["panel"]:
            cells = {"higher_in": row["higher_in"]}
            for label, weight in zip(self.document["data"]["classes"], row["weights"]):
                cells[f"weight_{label}"] = weight
            cells |= {name: row[name] for name in ("auc", "frequency", "group_frequency")}
            cells["substitutes"] = "; ".join(s["feature"] for s in row["substitutes"])
            rows.append(cells)
        names = [row["feature"] for row in self.document["panel"]]
        return pd.DataFrame(rows, index=pd.Index(names, name="feature", dtype=object))

    def to_frame(self) -> pd.DataFrame:
        """Return the panel, one row per feature, the heaviest first."""
        return self.panel

    def __repr__(self) -> str:
        """Say in a few lines what was found: the headline, the score and the sizes."""
        score = self.evaluation.scores["balanced_accuracy"].to_dict()
        sizes = self.evaluation.panel_sizes
        lines = [
            self.document["verdict"]["headline"],
            f"balanced accuracy {interval(score)}",
            f"panels: {len(self.document['panel'])} on all samples, {min(sizes)} to {max(sizes)} "
            f"in the outer folds, {median(sizes):g} in the median",
        ]
        return "Selection: " + "\n  ".join(lines)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the reader has to know, the most serious first."""
        return tuple(Notice(n["code"], n["severity"], n["text"]) for n in self.document["notices"])

    @property
    def verdict(self) -> str:
        """Whether there is signal: "signal", "inconclusive", "none" or "not tested"."""
        return str(self.document["verdict"]["level"])

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the page, and write it if a path is given."""
        page = build_report(self.document)
        if path is not None:
            write_atomic(path, page)
        return page

    def save(
        self, folder: str | os.PathLike[str], *, force: bool = False, figures: bool = False
    ) -> None:
        """Write page, checklist, panel, predictions, results and model into a folder, all or none.

        Results of an earlier run are replaced only with `force`, other files never. With
        `figures` every figure is written too, as SVG, PNG and CSV.
        """
        with results_folder(folder, type(self), force=force) as part:
            self.write(part, figures=figures)

    def write(self, folder: Path, *, figures: bool = False) -> None:
        """Write the files into a folder that exists, one after the other."""
        cohort = None
        if self.cohort is not None and self.cohort_table is not None:
            cohort = predictions_csv(self.cohort_table, self.cohort)
        write_texts(
            folder,
            {
                "results.json": json_text(self.document),
                "panel.csv": csv_text(*panel_rows(self.document)),
                "predictions.csv": out_of_fold_csv(self.table, self.document["evaluation"]),
                "test-predictions.csv": cohort,
                "report.html": self.to_html(),
                "checklist.md": checklist_markdown(self.document),
                "timings.json": timings_text(self.seconds),
            },
        )
        write_atomic(folder / "panel.xlsx", panel_workbook(self.document))
        if figures:
            write_figures(folder / "figures", self.document)
        save_model(self.model, folder / "model.skops")

    def recalibrated(
        self,
        cohort: Any = None,
        *,
        prevalence: float | None = None,
        method: str = "intercept",
        **reading: Any,
    ) -> Selection:
        """Return the same with probabilities fitted to a prevalence, to a cohort, or both.

        The estimates stay those of before; page, checklist and methods paragraph say what was
        done. See `sparsegsvp.evaluation.recalibrate`.

        Parameters
        ----------
        cohort : like the data of `select_panel`, optional
            Samples with labels.
        prevalence : float, optional
            Share of the positive class that probabilities are to be for.
        method : {"intercept", "slope"}, default="intercept"
            What the cohort sets: an intercept of the log odds, or slope and intercept.
        **reading
            How to read `cohort`, as in `select_panel`.

        Returns
        -------
        Selection
        """
        model = recalibrate_model(
            self.model,
            None if cohort is None else _cohort_table(cohort, self.table, reading),
            positive=self.table.positive_class,
            prevalence=prevalence,
            method=method,
        )
        document = {**self.document, "model": describe_model(model)}
        return replace(self, model=model, document={**document, "methods": methods(document)})

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame that can reach neither it nor the network."""
        page = html.escape(self.to_html(), quote=True)
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{page}" '
            'style="width: 100%; height: 720px; border: 1px solid #ccc"></iframe>'
        )


def select_panel(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    groups: Any = None,
    batch: Any = (),
    adjust: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
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
    categorical : str or sequence of str, optional
        Those of `adjust` whose numbers are codes. Text is categories by itself.
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
    asked = make_settings(
        q=q, tau=tau, pool=pool, n_deltas=n_deltas, rule=rule, n_features=n_features,
        must=must, ban=ban, costs=costs, panel=panel, published=published,
        center_batches=center_batches,
        impute=impute, log2=log2, floor=floor, folds=folds, repeats=repeats,
        permutations=permutations, max_permutations=max_permutations, resamples=resamples,
        plan=plan, random_state=random_state,
    )  # fmt: skip
    named = {"group" if isinstance(groups, str) else "groups": groups}
    table = make_table(
        data, y, target=target, batch=batch, adjust=adjust, categorical=categorical,
        positive=positive, **named, **reading,
    )  # fmt: skip
    table = table.without_notice("raw") if asked.log2 else table
    cohort = None
    if test is not None:
        cohort = _cohort_table(test, table, reading)
    if prevalence is not None:
        check_prevalence(prevalence, list(table.class_counts()))
    settings = asked.fast() if fast else asked
    refuse_missing(table, settings)
    n_outer = outer_folds(table, settings)
    refuse_plan(table, settings)
    stages = Stages(progress, cancel)
    factors = steering_factors(settings, table)
    procedure = make_procedure(settings, factors, table.covariate_columns)
    fixed = fixed_panels(settings, table)
    parameters = {**settings.to_dict(), "outer_folds": n_outer}
    header = partial(run_header, "select_panel", table, parameters)
    with open_journal(log, header, resume=resume) as journal:
        model, said = _fit(procedure, table, n_jobs, stages)
        chosen = describe_panel(table, model)
        if on_panel is not None:
            classes = {"classes": list(table.class_counts())}
            on_panel({"panel": chosen, "data": classes, "model": describe_model(model)})
        evaluation = evaluate_procedure(
            procedure, table, settings, n_outer, n_jobs=n_jobs, log=journal, progress=stages
        )
        beside = evaluate_beside(
            fixed, evaluation, table, settings, n_outer,
            n_jobs=n_jobs, log=journal, progress=stages,
        )  # fmt: skip
        again = _with_tau_of(model, procedure, settings)
        stability = learning = None
        if settings.resamples and can_be_halved(table):
            stability = _resample(again, table, settings, n_jobs, journal, stages)
        if settings.plan:
            learning = _learn(again, table, settings, n_jobs, journal, stages)
            if evaluation.verdict == "none":  # the outer folds and the test know better
                learning = learning.without_forecast("chance")
    steered = [*steering_notices(factors, table), *centring_notices(settings, table)]
    scored = found = validation = None
    spelled: list[Notice] = []
    if cohort is not None:
        spelled = [notice for notice in cohort.notices if notice.code == "spelling"]
        found = predict_table(model, cohort)
        validation = found.validate(
            cohort.labels, positive=table.positive_class, prevalence=prevalence
        )
        scored = summarize_test(validation, source=cohort.source, digest=cohort.digest)
        odd = shift_notice(validation.shift, cohort.source or "the other cohort")
        spelled += [*([] if odd is None else [odd]), *validation.notices]
        spelled += [Notice("centred", "caution", text) for text in [found.centred_text()] if text]
    with stages.stage(SUMMARY):
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
            notices=[*steered, *said, *spelled],
        )
    return Selection(
        model,
        evaluation,
        stability,
        document,
        table,
        found,
        cohort,
        stages.seconds,
        learning,
        validation,
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


def _cohort_table(test: Any, table: Table, reading: dict[str, Any]) -> Table:
    """Read an independent cohort: the same features, and labels the table knows."""
    if isinstance(test, Table):
        cohort = test
    else:
        same = ("id", "transpose", "layer", "sheet", "separator", "decimal", "na", "collapse")
        kept = {name: reading[name] for name in same if name in reading}
        kept |= {"adjust": tuple(table.covariates), "features": table.feature_names}
        cohort = make_table(test, target=table.target, **kept)
    return check_cohort(cohort, table)


def _fit(
    procedure: Any, table: Table, n_jobs: int | None, stages: Stages
) -> tuple[Any, list[Notice]]:
    """Fit a clone of the procedure on all samples; return it with what it warned of."""
    model = clone(procedure)
    with (
        stages.stage(TUNING),
        warnings.catch_warnings(record=True) as caught,
        parallel_config(n_jobs=n_jobs),
    ):
        warnings.simplefilter("always")
        fit_with_groups(model, named_rows(table), table.labels, table.groups, batch_of(table))
    kept = [w for w in caught if issubclass(w.category, ConvergenceWarning | UserWarning)]
    texts = dict.fromkeys(str(w.message) for w in kept)
    return model, [Notice("final", "caution", text) for text in texts]


def _with_tau_of(model: Any, procedure: Any, settings: Settings) -> Any:
    """Return the procedure with tau fixed at the value that was chosen on all samples.

    For refits by the dozen: tuning tau too costs several times as much, the penalty is tuned
    anew. The outer folds, and so the frequencies that they give, tune everything.
    """
    again = clone(procedure)
    if settings.n_features is None:
        last_step(again).set_params(tau=(float(last_step(model).tau_),))
    return again


def _resample(
    again: Any,
    table: Table,
    settings: Settings,
    n_jobs: int | None,
    journal: Journal,
    stages: Stages,
) -> StabilitySelection:
    """Select again in complementary half samples, tuning the penalty in each."""
    stability = StabilitySelection(
        again,
        n_resamples=settings.resamples + settings.resamples % 2,
        n_jobs=n_jobs,
        random_state=settings.random_state,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same as in the folds, where they are counted
        try:
            return stability.fit(
                table.X, table.labels, groups=table.groups, batch=batch_of(table),
                log=journal, progress=stages,
            )  # fmt: skip
        except ValueError as error:
            raise InputError(
                f"stability cannot be measured ({error})",
                where=table.source,
                remedy=f"leave it out with {option('resamples', 0)}",
            ) from error


def _learn(
    again: Any,
    table: Table,
    settings: Settings,
    n_jobs: int | None,
    journal: Journal,
    stages: Stages,
) -> LearningCurve:
    """Select and predict with growing parts of the samples, tuning the penalty in each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same as in the folds, where they are counted
        try:
            return learning_curve(
                again,
                table.X,
                table.labels,
                table.groups,
                random_state=settings.random_state,
                n_jobs=n_jobs,
                log=journal,
                progress=stages,
                batch=batch_of(table),
            )
        except ValueError as error:
            raise InputError(
                f"the learning curve cannot be measured ({error})",
                where=table.source,
                remedy=f"leave out {option('plan')}",
            ) from error


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
