"""Parameters of a run, and the procedure that they make: one scikit-learn object.

In the folds it imputes, where the table has gaps, selects and classifies. The logarithm looks at
one cell at a time, so it is taken once, before the folds. `complete` puts what comes before the
last step in front of a model that was fitted on all samples: from then on it takes the cells of a
file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._notices import Notice, Severity, notice
from .._typing import Float64Array
from .._validate import check_integer, check_real, check_seed, listed, quote, suggestion
from ..estimators import GSVPSVM, GSVPSVMCV, PanelPipeline
from ..estimators.pipeline import Log2, last_step
from ..evaluation.procedure import make_imputer
from ..io import InputError, Table
from ..io.errors import option
from ..io.text import names_in

_FEWEST = 4  # samples of each class, and groups: two of each in the folds within the folds
_MANY = 5000  # samples from which one repeat says as much as five of a few hundred
_HALVED = 6  # samples of the smallest class for which half of them can be tuned on
_PER_WEIGHT = 10  # samples of the smallest class for each feature that is in every panel


@dataclass(frozen=True)
class Settings:
    """Parameters of a run, checked; `sparsegsvp.select_panel` says what they mean."""

    n_features: int | None = None
    must: tuple[str, ...] = ()
    ban: tuple[str, ...] = ()
    panel: tuple[str, ...] = ()
    prevalence: float | None = None
    log2: bool = False
    floor: float = 1.0
    fast: bool = False
    folds: int = 5
    repeats: int = 5
    permutations: int = 99
    random_state: int = 0

    def __post_init__(self) -> None:
        try:
            for name, least in {"folds": 2, "repeats": 1, "permutations": 0}.items():
                check_integer(option(name), getattr(self, name), least=least)
            if self.n_features is not None:
                check_integer(option("n_features"), self.n_features, least=1)
            if self.prevalence is not None:
                check_real(option("prevalence"), self.prevalence, above=0, below=1)
            check_seed(self.random_state, option("random_state"))
            check_real(option("floor"), self.floor, above=0)
        except ValueError as error:
            raise InputError(str(error)) from None

    def is_fast(self, table: Table) -> bool:
        """Tell whether a run makes do with less: where it is asked to, and of many samples."""
        return self.fast or table.X.shape[0] > _MANY

    def evaluation(self, table: Table) -> dict[str, Any]:
        """Return the parameters of `nested_evaluate` for a table, or refuse the table."""
        fast, halved = self.is_fast(table), min(table.class_counts().values()) >= _HALVED
        return {
            "n_splits": outer_folds(table, self.folds),
            "n_repeats": 1 if fast else self.repeats,
            "n_permutations": min(self.permutations, 19) if fast else self.permutations,
            "n_pairs": (5 if fast else None) if halved else 0,
        }

    def skipped(self, table: Table) -> list[str]:
        """Say what a run leaves out."""
        skipped = []
        if self.is_fast(table):
            why = "This was a fast run" if self.fast else f"With {table.X.shape[0]:,} samples"
            skipped.append(
                f"{why}: 1 repeat of the folds in place of {self.repeats}, at most 19 "
                "permutations, and 5 pairs of half samples."
            )
        if not self.permutations:
            skipped.append("The permutation test was left out, as asked.")
        if self.evaluation(table)["n_pairs"] == 0:
            skipped.append(
                "Panels of half samples were left out: the smallest class has fewer than "
                f"{_HALVED} samples."
            )
        return skipped


def outer_folds(table: Table, folds: int) -> int:
    """Return how many outer folds the smallest class and the groups allow, at most `folds`."""
    label, smallest = min(table.class_counts().items(), key=lambda item: item[1])
    if smallest < _FEWEST:
        raise InputError(
            f"class '{label}' has only {smallest} samples",
            where=table.source,
            remedy="at least 4 of each class are needed to tune and to test; leave it out or merge",
        )
    if table.groups is None:
        return min(folds, smallest)
    n_groups = len(set(table.groups))
    if n_groups < _FEWEST:
        raise InputError(
            f"there are only {n_groups} groups ({option('groups')})",
            where=table.source,
            remedy="at least 4 are needed, since a group is never split",
        )
    return min(folds, smallest, n_groups)


def make_procedure(settings: Settings, table: Table) -> Any:
    """Build what is fitted in every fold; `must` and `ban` become penalty factors."""
    factors = penalty_factors(settings, table)
    model = (
        GSVPSVMCV(penalty_factor=factors, random_state=settings.random_state)
        if settings.n_features is None
        else GSVPSVM(settings.n_features, penalty_factor=factors)
    )
    if not table.n_missing:
        return model
    return PanelPipeline([("impute", make_imputer()), ("model", model)])


def first_steps(settings: Settings, table: Table) -> list[tuple[str, Any]]:
    """Return what is done before the folds: the logarithm, except of what is adjusted for."""
    if not settings.log2:
        return []
    skip = tuple(table.covariate_columns)
    return [("log2", Log2(floor=settings.floor, skip=skip).fit(table.X))]


def values_of(table: Table, settings: Settings) -> Any:
    """Return the samples as the procedure sees them: logarithms taken, gaps open."""
    X = table.X
    for _, step in first_steps(settings, table):
        X = step.transform(X)
    return X


def complete(model: Any, table: Table, settings: Settings, values: Any) -> PanelPipeline:
    """Put logarithm and imputation in front of the fitted last step of a model.

    A model of a table without gaps has medians too, for samples to come.
    """
    steps = [*first_steps(settings, table), ("impute", make_imputer().fit(values))]
    steps[0][1].feature_names_in_ = np.array(table.feature_names)
    return PanelPipeline([*steps, ("model", last_step(model))])


def penalty_factors(settings: Settings, table: Table) -> Float64Array | None:
    """Return the penalty factors of a table's features, of `must` and `ban`; None if all are 1."""
    names, adjusted = table.feature_names, table.covariate_columns
    must, ban = (columns_of(settings, table, role) for role in ("must", "ban"))
    for column in {*must, *adjusted}.intersection(ban):
        role = option("must" if column in must else "adjust")
        raise InputError(
            f"{quote(names[column])} is to be in every panel ({role}) and in none "
            f"({option('ban')})",
            remedy="leave it out of one of the two",
        )
    always, left = len({*must, *adjusted}), len(names) - len(ban)
    if left == 0:
        raise InputError(f"{option('ban')} leaves no feature", remedy="name fewer")
    size = settings.n_features
    if size is not None and not always <= size <= left:
        few = f"fewer than the {always} that are to be in every panel"
        many = f"more than the {left} that there are" + (f" ({option('ban')})" if ban else "")
        raise InputError(
            f"{option('n_features', size)} asks for {few if size < always else many}",
            remedy=f"ask for {always if size < always else left}, or leave it out",
        )
    if not must and not ban:
        return None
    factors = np.ones(len(names))
    factors[must], factors[ban] = 0.0, np.inf
    return factors


def steering_notices(settings: Settings, table: Table) -> list[Notice]:
    """Say which features are in or out by request, and whether these are many."""
    said = {"must": "In every panel", "ban": "In no panel"}
    columns = {role: columns_of(settings, table, role) for role in said}
    parts = [
        f"{said[role]}, as asked: {listed(table.feature_names[j] for j in chosen)}."
        for role, chosen in columns.items()
        if chosen
    ]
    always = len(columns["must"]) + len(table.covariate_columns)
    smallest = min(table.class_counts().values())
    many = always * _PER_WEIGHT > smallest
    if many:
        parts.append(
            f"The smallest class has {smallest} samples for {always} features that no fold may "
            "leave out: their weights are fitted to few samples."
        )
    severity: Severity = "caution" if many else "note"
    return [notice("steered", severity=severity, text=" ".join(parts))] if parts else []


def columns_of(settings: Settings, table: Table, role: str) -> list[int]:
    """Return the numbers of the features that `must`, `ban` or `panel` names."""
    places = {name: [place] for place, name in enumerate(table.feature_names)}
    # the name of a column that is adjusted for stands for all features made of it
    for column, made in table.covariates.items():
        places.setdefault(column, [places[name][0] for name in made])
    roles = {column.column: column.role for column in table.roles}
    columns: list[int] = []
    for name in names_in(getattr(settings, role), places):
        if name not in places and roles.get(name, "feature") != "feature":
            raise InputError(
                f"column {quote(name)} ({option(role)}) is no feature: it is left out as "
                f"{roles[name]}",
                remedy=f"make it one with {option('keep', name)}",
            )
        if name not in places:
            what = f"there is no feature {quote(name)} ({option(role)})"
            raise InputError(what, remedy=suggestion(name, list(places)))
        columns += places[name]
    return list(dict.fromkeys(columns))
