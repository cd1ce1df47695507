"""What a run is asked to do, and the procedure that follows from it."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from scipy import sparse

from .._typing import Float64Array
from .._validate import check_choice, check_integer, check_real, check_seed
from .._versions import versions
from ..estimators import GSVPSVMCV, BatchCenterer, MedianImputer, PanelPipeline
from ..estimators.search import RULES
from ..evaluation.learning import draw_parts
from ..evaluation.values import digest
from ..io import InputError, Log2, Table
from ..io.errors import option
from ..io.text import names_or_files, read_costs

INNER_FOLDS = 5


@dataclass(frozen=True)
class Settings:
    """Parameters of a run, checked; see `sparsegsvp.select_panel` for what they mean."""

    q: tuple[float, ...] = (1.0,)
    tau: tuple[float, ...] | None = None
    pool: tuple[float, ...] | None = None
    n_deltas: int = 30
    rule: str = "paired"
    n_features: int | None = None
    must: tuple[str, ...] = ()
    ban: tuple[str, ...] = ()
    costs: dict[str, float] | None = None
    panel: tuple[str, ...] = ()
    published: bool = False
    center_batches: bool = False
    impute: str = "median"
    log2: bool = False
    floor: float = 1.0
    folds: int = 5
    repeats: int = 5
    permutations: int = 99
    max_permutations: int = 999
    full_permutation: bool = False
    resamples: int = 50
    plan: bool = False
    random_state: int = 0

    def __post_init__(self) -> None:
        try:
            for name, least in _LEAST.items():
                check_integer(option(name), getattr(self, name), least=least)
            if self.n_features is not None:
                check_integer(option("n_features"), self.n_features, least=1)
            check_seed(self.random_state, option("random_state"))
            check_real(option("floor"), self.floor, above=0)
            check_choice(option("impute"), self.impute, ("median", "none"))
            check_choice(option("rule"), self.rule, RULES)
            for name in ("plan", "published", "center_batches"):
                check_choice(option(name), getattr(self, name), (False, True))
            for value in self.q:
                check_real(option("q"), value, above=0, most=1)
            for value in self.tau or ():
                check_real(option("tau"), value, above=0)
            for value in self.pool or ():
                check_real(option("pool"), value, least=0, most=1)
            for value in (self.costs or {}).values():
                check_real(option("costs"), value, least=0)
        except ValueError as error:
            raise InputError(str(error)) from None
        if self.published and not self.panel:
            raise InputError(
                f"{option('published')} says where a given panel comes from",
                remedy=f"name its features with {option('panel')}",
            )

    def fast(self) -> Settings:
        """Leave out what takes long: one repeat, no permutations, no half samples."""
        return replace(self, repeats=1, permutations=0, resamples=0)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


_LEAST = {
    "folds": 2, "repeats": 1, "permutations": 0, "max_permutations": 0, "resamples": 0,
    "n_deltas": 2,
}  # fmt: skip


def make_settings(**given: Any) -> Settings:
    """Return settings in which one value may stand for a sequence of one, and a file for names."""
    for name in ("q", "tau", "pool"):
        value = given.get(name)
        if value is not None:
            values = value if isinstance(value, list | tuple) else (value,)
            given[name] = tuple(float(v) if isinstance(v, int) else v for v in values)
    for name in ("must", "ban", "panel"):
        given[name] = names_or_files(given.get(name) or ())
    costs = given.get("costs")
    if isinstance(costs, str | os.PathLike):
        given["costs"] = read_costs(costs)
    return Settings(**given)


def run_header(kind: str, table: Table, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return what the log of a run must agree on before it is continued."""
    more = {"batches": digest(table.batches)} if table.batches else {}
    if table.covariates:  # of data in memory their values are no part of the digest
        more["covariates"] = digest(table.covariates, table.X[:, table.covariate_columns])
    if table.categories:
        more["categories"] = digest(table.categories, table.X[:, table.clinical_columns])
    return {
        "kind": kind,
        **more,
        "data": table.digest,
        "features": digest(table.feature_names),
        "labels": [table.target, table.positive_class, digest(table.labels)],
        "groups": None if table.groups is None else digest(table.groups),
        "parameters": parameters,
        "versions": versions(),
    }


def outer_folds(table: Table, settings: Settings) -> int:
    """Return how many outer folds the smallest class and the groups allow.

    Every training part of every fold needs two samples of each class, also in the folds
    within the folds. A class of 4 is the smallest for which that works out.
    """
    counts = table.class_counts()
    label, smallest = min(counts.items(), key=lambda item: item[1])
    if smallest < 4:
        raise InputError(
            f"class '{label}' has only {smallest} samples",
            where=table.source,
            remedy="at least 4 of each class are needed to tune and to test; leave it out or merge",
        )
    if table.groups is None:
        return min(settings.folds, smallest)
    n_groups = len(set(table.groups))
    if n_groups < 4:
        raise InputError(
            f"there are only {n_groups} groups ({option('group')})",
            where=table.source,
            remedy="at least 4 are needed, since a group is never split",
        )
    return min(settings.folds, smallest, n_groups)


def can_be_halved(table: Table) -> bool:
    """Return whether half of the samples are enough to tune on: three of each class."""
    return min(table.class_counts().values()) >= 6


def refuse_plan(table: Table, settings: Settings) -> None:
    """Refuse a learning curve of too few samples, before any work is done."""
    if not settings.plan:
        return
    try:
        draw_parts(table.labels, table.groups, random_state=settings.random_state)
    except ValueError as error:
        raise InputError(
            str(error), where=table.source, remedy=f"leave out {option('plan')}"
        ) from None


def preparing_steps(settings: Settings, table: Table | None = None) -> list[tuple[str, Any]]:
    """Return what comes before any method: logarithm, medians of missing values, centring.

    Logarithm and centring leave alone what is adjusted for in a table, and its categories.
    """
    skip = () if table is None else tuple(table.clinical_columns)
    steps: list[tuple[str, Any]] = []
    if settings.log2:
        steps.append(("log2", Log2(floor=settings.floor, skip=skip)))
    if settings.impute == "median":
        steps.append(("impute", MedianImputer()))
    if settings.center_batches:
        steps.append(("center", BatchCenterer(skip=skip)))
    return steps


def batch_of(table: Table) -> Any:
    """Return the batch of each sample that values are centred by: the first that was named."""
    return next(iter(table.batches.values()), None)


def refuse_centring(table: Table, settings: Settings) -> None:
    """Refuse to centre what has no batches, or would no longer be sparse."""
    if not settings.center_batches:
        return
    if not table.batches:
        raise InputError(
            f"{option('center_batches')} needs batches",
            remedy=f"name the column that holds them with {option('batch')}",
        )
    if sparse.issparse(table.X):
        raise InputError(
            f"{option('center_batches')} would fill every zero of sparse data",
            where=table.source,
            remedy="leave it out, or give the table as a dense one",
        )


def make_procedure(
    settings: Settings, factors: Float64Array | None = None, table: Table | None = None
) -> Any:
    """Build everything that looks at the data as one estimator.

    The object that is fitted on all samples is the one that is evaluated: clones of it are
    fitted in the outer folds. Small classes shorten the folds of its tuning by themselves.
    Fitted on a data frame, it predicts from one that has the panel's columns alone.
    ``factors`` are the penalty factors of all features; the table says which of them are levels
    of one category, and what is no measurement.
    """
    model = GSVPSVMCV(
        q=settings.q,
        tau=settings.tau,
        pool=settings.pool,
        n_deltas=settings.n_deltas,
        rule=settings.rule,
        n_features=settings.n_features,
        cv=INNER_FOLDS,
        random_state=settings.random_state,
        penalty_factor=factors,
        feature_groups=None if table is None else table.feature_groups,
    )
    steps = preparing_steps(settings, table)
    return PanelPipeline([*steps, ("model", model)]) if steps else model


def named_rows(table: Table) -> Any:
    """Return the samples as a data frame, from which a model learns the names of features."""
    import pandas as pd

    names = list(table.feature_names)
    if sparse.issparse(table.X):
        return pd.DataFrame.sparse.from_spmatrix(table.X, columns=names)
    return pd.DataFrame(table.X, columns=names, copy=False)


def refuse_missing(table: Table, settings: Settings) -> None:
    """Refuse missing values where the caller wants none imputed, and what cannot be centred."""
    refuse_centring(table, settings)
    if settings.impute == "none" and table.n_missing:
        raise InputError(
            f"{table.n_missing} values are missing",
            where=table.source,
            remedy=f"use {option('impute', 'median')}, or fill them before",
        )
