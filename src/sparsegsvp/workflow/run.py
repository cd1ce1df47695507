"""`select_panel`: a table in, a panel with an honest estimate out; and `compare_table`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from typing import Any

from .._typing import Progress
from ..evaluation import (
    EvaluationResult,
    compare,
    default_methods,
    find_method,
    nested_evaluate,
    paired_difference,
)
from ..evaluation.cache import Clock
from ..evaluation.procedure import SIZES, only_with
from ..io.errors import InputError, locating, option
from ..io.table import Table, make_table
from ..io.text import ReadOptions
from ..report import build_comparison, build_document, describe_cohort, describe_given
from .predict import check_cohort, validate_table
from .procedure import (
    Settings,
    columns_of,
    complete,
    make_procedure,
    outer_folds,
    steering_notices,
    values_of,
)
from .results import ComparedMethods, Selection

# The stages of an evaluation under the names that timings have.
_STAGES = {"final fit": "search", "half samples": "halves"}
# How a table was read that a cohort is read by, too.
_SAME_READING = {"id", "collapse", *(field.name for field in fields(ReadOptions))}


def select_panel(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    positive: str | None = None,
    n_features: int | None = None,
    groups: Any = None,
    batch: Any = None,
    adjust: str | Sequence[str] = (),
    must: str | Sequence[str] = (),
    ban: str | Sequence[str] = (),
    panel: str | Sequence[str] | None = None,
    test: Any = None,
    prevalence: float | None = None,
    log2: bool = False,
    floor: float = 1.0,
    fast: bool = False,
    folds: int = 5,
    repeats: int = 5,
    permutations: int = 99,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    command: str = "",
    **reading: Any,
) -> Selection:
    """Select a small panel of features and estimate honestly how well it predicts.

    The whole of ``sparsegsvp select``: the procedure (imputation, selection, the number of
    features, the decision) is evaluated by nested cross-validation and tested against permuted
    labels, panels of half samples show how stable it is, and the panel is that of all samples.
    Beside it stands the ladder: panels of 1, 2, 3, 5, 8, ... features, each with its score.

    Parameters
    ----------
    data : path-like, data frame, array, AnnData or Table
        Samples in rows, features in columns.
    y : array-like of shape (n_samples,), optional
        Labels, unless `target` names them.
    target : str, optional
        The column of labels.
    positive : str, optional
        The class of interest of two; by default guessed from the names (case, cancer, died,
        yes, 1, ...), and else the last in sorted order.
    n_features : int, optional
        Exactly this many features; by default as many as cross-validation finds worth it.
    groups : str or array-like of shape (n_samples,), optional
        Patients or sites that are never split: a column, or one value per sample.
    batch : str, sequence of str, or mapping from name to array-like, optional
        Columns that say where or when samples were measured (plate, day, site), or such values
        under their names: no features, but audited.
    adjust : str or sequence of str, optional
        Columns such as age and sex that are in every panel, and counted in its size: what the
        others add to them is shown.
    must, ban : str or sequence of str, optional
        Features that are in every panel, or in none, in every fold.
    panel : str or sequence of str, optional
        Features of another panel, scored on the same folds, with the paired difference. Its
        score flatters where it was chosen with these samples.
    test : like `data`, optional
        An independent cohort that the final model is validated on (`validate_external`).
    prevalence : float, optional
        Share of the positive class where the panel is to be used, for predictive values and
        decision curves; by default that of the samples they are measured on.
    log2 : bool, default=False
        Take ``log2(max(x, floor))`` first.
    floor : float, default=1.0
        Smaller values count as this under the logarithm.
    fast : bool, default=False
        A first look: one repeat, 19 permutations, 5 pairs of half samples.
    folds, repeats : int, default=5
        Outer folds and their repeats.
    permutations : int, default=99
        Draws of the permutation test, up to 999 where 99 leave it open; 0 leaves it out.
    random_state : int, default=0
        Seed of all random choices.
    n_jobs : int, optional
        Worker processes; -1 for one per core. Results do not depend on it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
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
    >>> selection = select_panel(data.X, data.y, fast=True)
    >>> sorted(selection.panel.index[:2]) == sorted(f"f{j}" for j in data.support)
    True
    >>> selection.verdict
    'signal'
    >>> selection.with_size(1).panel.shape[0]
    1
    """
    settings = Settings(
        n_features=n_features, must=_names(must), ban=_names(ban), panel=_names(panel),
        prevalence=prevalence, log2=bool(log2), floor=floor,
        fast=bool(fast), folds=folds, repeats=repeats, permutations=permutations,
        random_state=random_state,
    )  # fmt: skip
    clock = Clock(progress)
    with clock.stage("reading"):
        named = {"group" if isinstance(groups, str) else "groups": groups}
        table = make_table(
            data, y, target=target, positive=positive, batch=batch or (), adjust=adjust, **named,
            **reading,
        )  # fmt: skip
        cohort = None if test is None else read_cohort(test, table, reading)
    if prevalence is not None and len(table.classes) != 2:
        raise InputError(
            f"{option('prevalence')} is for two classes, and there are {len(table.classes)}",
            where=table.source,
            remedy="leave it out",
        )
    table = table.without_notice("raw") if settings.log2 else table
    run = Run(table, settings, cohort, command, values_of(table, settings))
    evaluation, given = run.evaluate(n_jobs, clock)
    return run.selection(evaluation, given, clock)


@dataclass(frozen=True, eq=False)
class Run:
    """A table with what is to be done with it; makes a `Selection` of an evaluation."""

    table: Table
    settings: Settings
    cohort: Table | None
    command: str
    values: Any

    def evaluate(
        self, n_jobs: int | None, clock: Clock
    ) -> tuple[EvaluationResult, dict[str, Any] | None]:
        """Evaluate the procedure, and a given panel on the same folds."""
        table, settings = self.table, self.settings
        with locating(table.source):
            procedure, given = make_procedure(settings, table), columns_of(settings, table, "panel")
        options: dict[str, Any] = {"groups": table.groups, "pos_label": table.positive_class}
        options |= {"feature_names": table.feature_names, "n_jobs": n_jobs}
        options |= {"random_state": settings.random_state, **settings.evaluation(table)}
        more = (settings.n_features,) if settings.n_features else ()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the result has them as flags
            evaluation = nested_evaluate(
                procedure, self.values, table.labels, batch=table.batches or None,
                adjust=table.covariate_columns or None, sizes=tuple(sorted({*SIZES, *more})),
                progress=clock.progress, **options,
            )  # fmt: skip
            for stage, seconds in evaluation.seconds.items():
                clock.seconds[_STAGES.get(stage, stage)] = seconds
            if not given:
                return evaluation, None
            every = list(dict.fromkeys([*given, *table.covariate_columns]))
            options |= {"n_permutations": 0, "n_pairs": 0}
            with clock.stage("given panel"):
                other = nested_evaluate(
                    only_with(procedure, every), self.values, table.labels, **options,
                    progress=lambda _, done, total: clock.progress("given panel", done, total),
                )  # fmt: skip
        names = [table.feature_names[j] for j in given]
        return evaluation, describe_given(names, other, paired_difference(other, evaluation))

    def selection(
        self, evaluation: EvaluationResult, given: dict[str, Any] | None, clock: Clock
    ) -> Selection:
        """Make the model complete, validate it on the cohort, and describe it all."""
        with clock.stage("summary"):
            table, settings, cohort = self.table, self.settings, self.cohort
            model = complete(evaluation.model, table, settings, self.values)
            notices, validation, described = steering_notices(settings, table), None, None
            if cohort is not None:
                validation = validate_table(
                    model, cohort, positive=table.positive_class, prevalence=settings.prevalence
                )
                described = describe_cohort(validation, source=cohort.source, digest=cohort.digest)
                notices += [n for n in cohort.notices if n.code == "spelling"]
            document = build_document(
                table, replace(evaluation, model=model), values=self.values,
                units=f"log2(max(x, {settings.floor:g}))" if settings.log2 else None,
                settings=asdict(settings), command=self.command, seed=settings.random_state,
                skipped=settings.skipped(table), notices=notices, cohort=described, given=given,
                prevalence=settings.prevalence,
            )  # fmt: skip
        return Selection(
            model, evaluation, validation, document, table, cohort, clock.seconds, self, given
        )


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def read_cohort(test: Any, table: Table, reading: Mapping[str, Any]) -> Table:
    """Read an independent cohort: the same features, and labels the table knows."""
    if isinstance(test, Table):
        return check_cohort(test, table)
    same = {name: value for name, value in reading.items() if name in _SAME_READING}
    adjust = tuple(table.covariates)
    cohort = make_table(
        test, target=table.target, adjust=adjust, features=table.feature_names, **same
    )
    return check_cohort(cohort, table)


def demo_table() -> Table:
    """Return the breast cancer data of scikit-learn, malignant being the class of interest.

    Examples
    --------
    >>> from sparsegsvp.workflow import demo_table
    >>> demo_table().class_counts()
    {'benign': 357, 'malignant': 212}
    """
    import pandas as pd

    from ..datasets import load_breast_cancer

    data = load_breast_cancer()
    return make_table(
        data.X,
        pd.Series(data.labels, name="diagnosis"),
        feature_names=data.feature_names.tolist(),
        positive="malignant",
        source="the breast cancer data of scikit-learn",
    )


def compare_table(
    table: Table,
    *,
    methods: Sequence[str] = (),
    sizes: Sequence[int] = (2, 4, 8, 16, 32),
    log2: bool = False,
    floor: float = 1.0,
    folds: int = 5,
    repeats: int = 5,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> ComparedMethods:
    """Compare methods at equal panel sizes on the same folds.

    Parameters
    ----------
    table : Table
        Samples, features and labels.
    methods : sequence of str
        Names among `sparsegsvp.evaluation.method_names`; all of them by default.
    sizes : sequence of int
        Panel sizes; those above the number of features are left out.
    log2, floor, folds, repeats, random_state, n_jobs, progress, command
        As in `select_panel`.
    cache : path-like, optional
        A file of finished pieces: an interrupted comparison goes on from it.

    Returns
    -------
    ComparedMethods
    """
    settings = Settings(
        log2=bool(log2), floor=floor, folds=folds, repeats=repeats, random_state=random_state
    )
    table = table.without_notice("raw") if settings.log2 else table
    n_features = len(table.feature_names)
    possible = [size for size in sizes if 1 <= size <= n_features]
    if not possible or min(sizes) < 1:
        raise InputError(
            f"{option('sizes')} are {', '.join(map(str, sizes))} and there are {n_features} "
            "features",
            remedy="ask for panels of at least 1 and at most all features",
        )
    try:
        chosen = [find_method(name) for name in methods or default_methods()]
    except ValueError as error:
        raise InputError(str(error)) from None
    clock = Clock(progress)
    with warnings.catch_warnings(), clock.stage("comparison"):
        warnings.simplefilter("ignore")
        comparison = compare(
            chosen, values_of(table, settings), table.labels, possible, groups=table.groups,
            n_splits=outer_folds(table, folds), n_repeats=repeats, random_state=random_state,
            n_jobs=n_jobs, cache=cache, progress=clock.progress,
        )  # fmt: skip
    asked = {**asdict(settings), "sizes": possible, "methods": chosen}
    document = build_comparison(
        comparison, table, settings=asked, command=command, seed=settings.random_state
    )
    return ComparedMethods(comparison, document, clock.seconds)
