"""The procedure of a run, as one scikit-learn object, and features by their names.

In the folds it imputes, where the table has gaps, selects and classifies. The logarithm looks at
one cell at a time, so it is taken once, before the folds. `complete` puts what comes before the
last step in front of a model that was fitted on all samples: from then on it takes the cells of a
file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from .._notices import Notice
from .._typing import Float64Array
from ..estimators import GSVPSVM, GSVPSVMCV, PanelPipeline
from ..estimators.pipeline import Log2, last_step
from ..io import InputError, Table
from ..io.errors import listed, option, quote, suggestion
from ..io.text import names_in
from .settings import Settings

_PER_WEIGHT = 10  # samples of the smallest class for each feature that is in every panel


def make_imputer() -> SimpleImputer:
    """Return the step that fills gaps by medians; a column without values stays, as zeros."""
    return SimpleImputer(strategy="median", keep_empty_features=True)


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
