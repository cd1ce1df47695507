"""The parameters of a run, checked; its procedure as one scikit-learn object; names of features.

In the folds it imputes, where the table has gaps, selects and classifies. The logarithm looks at
one cell at a time, so it is taken once, before the folds. `complete` puts what comes before the
last step in front of a model that was fitted on all samples: from then on it takes the cells of a
file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._notices import Notice
from .._typing import Float64Array
from .._validate import check_integer, check_real, check_seed
from ..estimators import GSVPSVM, GSVPSVMCV, PanelPipeline
from ..estimators.log2 import Log2
from ..estimators.pipeline import last_step
from ..evaluation.procedure import make_imputer
from ..io import InputError, Table
from ..io.errors import listed, option, quote, suggestion
from ..io.text import names_in

_PER_WEIGHT = 10  # samples of the smallest class for each feature that is in every panel
_LEAST = {"folds": 2, "repeats": 1, "permutations": 0}
_HALVED = 6  # samples of the smallest class for which half of them can be tuned on
# What a fast run makes do with: repeats, permutations and pairs of half samples.
FAST = (1, 19, 5)
_MANY = 5000  # samples above which one repeat says as much as five of a few hundred


@dataclass(frozen=True)
class Settings:
    """Parameters of a run; see `sparsegsvp.select_panel` for what they mean."""

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
            for name, least in _LEAST.items():
                check_integer(option(name), getattr(self, name), least=least)
            if self.n_features is not None:
                check_integer(option("n_features"), self.n_features, least=1)
            if self.prevalence is not None:
                check_real(option("prevalence"), self.prevalence, above=0, below=1)
            check_seed(self.random_state, option("random_state"))
            check_real(option("floor"), self.floor, above=0)
        except ValueError as error:
            raise InputError(str(error)) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def evaluation(self, table: Table) -> dict[str, Any]:
        """Return the parameters of `nested_evaluate` for a table, or refuse the table."""
        usual = (self.repeats, self.permutations, None)
        repeats, permutations, pairs = FAST if self.is_fast(table) else usual
        return {
            "n_splits": outer_folds(table, self.folds),
            "n_repeats": min(repeats, self.repeats),
            "n_permutations": min(permutations, self.permutations),
            "n_pairs": pairs if can_be_halved(table) else 0,
        }

    def is_fast(self, table: Table) -> bool:
        """Return whether a run makes do with less: where it is asked to, and of many samples."""
        return self.fast or table.X.shape[0] > _MANY

    def skipped(self, table: Table) -> list[str]:
        """Say what a run leaves out."""
        skipped = []
        if self.is_fast(table):
            repeats, permutations, pairs = FAST
            why = "This was a fast run" if self.fast else f"With {table.X.shape[0]:,} samples"
            skipped.append(
                f"{why}: {repeats} repeat of the folds in place of {self.repeats}, "
                f"at most {permutations} permutations, and {pairs} pairs of half samples."
            )
        if not self.permutations:
            skipped.append("The permutation test was left out, as asked.")
        if not can_be_halved(table):
            skipped.append(
                "Panels of half samples were left out: the smallest class has fewer than "
                f"{_HALVED} samples."
            )
        return skipped


def can_be_halved(table: Table) -> bool:
    """Return whether half of the samples are enough to tune on."""
    return min(table.class_counts().values()) >= _HALVED


def outer_folds(table: Table, folds: int) -> int:
    """Return how many outer folds the smallest class and the groups allow.

    Every training part of every fold needs two samples of each class, also in the folds
    within the folds. A class of 4 is the smallest for which that works out.
    """
    label, smallest = min(table.class_counts().items(), key=lambda item: item[1])
    if smallest < 4:
        raise InputError(
            f"class '{label}' has only {smallest} samples",
            where=table.source,
            remedy="at least 4 of each class are needed to tune and to test; leave it out or merge",
        )
    if table.groups is None:
        return min(folds, smallest)
    n_groups = len(set(table.groups))
    if n_groups < 4:
        raise InputError(
            f"there are only {n_groups} groups ({option('groups')})",
            where=table.source,
            remedy="at least 4 are needed, since a group is never split",
        )
    return min(folds, smallest, n_groups)


# --- the procedure


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


def values_of(table: Table, settings: Settings) -> Any:
    """Return the samples as the procedure sees them: logarithms taken, gaps open."""
    return _log2(settings, table).transform(table.X) if settings.log2 else table.X


def _log2(settings: Settings, table: Table) -> Log2:
    """The logarithm, which leaves alone what is adjusted for."""
    return Log2(floor=settings.floor, skip=tuple(table.covariate_columns)).fit(table.X)


def complete(model: Any, table: Table, settings: Settings, values: Any) -> PanelPipeline:
    """Put logarithm and imputation in front of the fitted last step of a model.

    The medians are those of all samples. A model of a table without gaps has them too, for
    samples to come. The pipeline knows the features' names, and predicts from a data frame that
    holds its panel alone.
    """
    steps: list[tuple[str, Any]] = [("log2", _log2(settings, table))] if settings.log2 else []
    steps.append(("impute", make_imputer().fit(values)))
    steps[0][1].feature_names_in_ = np.array(table.feature_names, dtype=object)
    return PanelPipeline([*steps, ("model", last_step(model))])


# --- features by their names


def penalty_factors(settings: Settings, table: Table) -> Float64Array | None:
    """Return the penalty factors of a table's features; None where all are 1.

    What is adjusted for is in every panel too, and `nested_evaluate` sees to that.
    """
    adjusted = table.covariate_columns
    must = columns_of(settings.must, table, "must")
    ban = columns_of(settings.ban, table, "ban")
    for column in ban:
        if column in must or column in adjusted:
            name = option("must" if column in must else "adjust")
            raise InputError(
                f"{quote(table.feature_names[column])} is to be in every panel ({name}) and in "
                f"none ({option('ban')})",
                remedy="leave it out of one of the two",
            )
    n_features = len(table.feature_names)
    always, left = len({*must, *adjusted}), n_features - len(ban)
    if left == 0:
        raise InputError(f"{option('ban')} leaves no feature", remedy="name fewer")
    size = settings.n_features
    if size is not None and not always <= size <= left:
        few = f"fewer than the {always} that are to be in every panel"
        many = f"more than the {left} that there are" + (f" ({option('ban')})" if ban else "")
        raise InputError(
            f"{option('n_features', size)} asks for {few if size < always else many}",
            where=table.source,
            remedy=f"ask for {always if size < always else left}, or leave it out",
        )
    if not must and not ban:
        return None
    factors = np.ones(n_features)
    factors[must], factors[ban] = 0.0, np.inf
    return factors


def steering_notices(settings: Settings, table: Table) -> list[Notice]:
    """Say which features are in or out by request, and whether these are many."""
    must = [table.feature_names[j] for j in columns_of(settings.must, table, "must")]
    ban = [table.feature_names[j] for j in columns_of(settings.ban, table, "ban")]
    parts = [f"In every panel, as asked: {listed(must)}."] if must else []
    parts += [f"In no panel, as asked: {listed(ban)}."] if ban else []
    always = len(must) + len(table.covariate_columns)
    smallest = min(table.class_counts().values())
    many = always * _PER_WEIGHT > smallest
    if always and many:
        parts.append(
            f"The smallest class has {smallest} samples for {always} features that no fold may "
            "leave out: their weights are fitted to few samples."
        )
    return [Notice("steered", "caution" if many else "note", " ".join(parts))] if parts else []


def columns_of(given: Iterable[str], table: Table, role: str) -> list[int]:
    """Return the numbers of the features that are named; ``role`` is the parameter they are for.

    The name of a column that is adjusted for stands for all features made of it.
    """
    places = {name: [place] for place, name in enumerate(table.feature_names)}
    for column, made in table.covariates.items():
        places.setdefault(column, [places[name][0] for name in made])
    columns: list[int] = []
    for name in names_in(given, places):
        if name in places:
            columns += places[name]
            continue
        left_out = {column.column: column.role for column in table.roles}
        if left_out.get(name, "feature") != "feature":
            raise InputError(
                f"column {quote(name)} ({option(role)}) is no feature: it is left out as "
                f"{left_out[name]}",
                where=table.source,
                remedy=f"make it one with {option('keep', name)}",
            )
        raise InputError(
            f"there is no feature {quote(name)} ({option(role)})",
            where=table.source,
            remedy=suggestion(name, list(places)),
        )
    return list(dict.fromkeys(columns))
