"""The procedure of a run: what comes before a method, the method, and penalty factors by name.

Everything that looks at the data is one estimator. It is fitted on all samples, and clones of it
in the outer folds, so that what is evaluated is what is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from .._notices import Notice, Severity
from .._typing import Float64Array, IntArray
from ..estimators import GSVPSVMCV, BatchCenterer, MedianImputer, Panel, PanelPipeline
from ..estimators.groups import FeatureGroups
from ..estimators.log2 import Log2
from ..evaluation import default_methods
from ..evaluation.baselines import common_classifier
from ..evaluation.compare import KNOWN_AS
from ..evaluation.paired import only_with
from ..evaluation.panels import with_size
from ..io import InputError, Table
from ..io.errors import listed, option, quote, suggestion
from ..io.text import names_in
from ..report.words import plural
from .settings import Settings

INNER_FOLDS = 5
OWN = "GSVPSVMCV"  # the tuned method, which is what `select_panel` runs
_PER_WEIGHT = 10  # samples of the smallest class for each weight that carries no penalty


def preparing_steps(settings: Settings, table: Table | None = None) -> list[tuple[str, Any]]:
    """Return what comes before any method: logarithm, medians of missing values, centring.

    Logarithm and centring leave alone what is adjusted for in a table, and its categories.
    """
    skip = () if table is None else tuple(table.covariate_columns)
    steps: list[tuple[str, Any]] = []
    if settings.log2:
        steps.append(("log2", Log2(floor=settings.floor, skip=skip)))
    if settings.impute == "median":
        steps.append(("impute", MedianImputer()))
    if settings.center_batches:
        steps.append(("center", BatchCenterer(skip=skip)))
    return steps


def make_procedure(
    settings: Settings, factors: Float64Array | None = None, table: Table | None = None
) -> Any:
    """Build the tuned method with what comes before it.

    Small classes shorten the folds of its tuning by themselves. Fitted on a data frame, it
    predicts from one that has the panel's columns alone. ``factors`` are the penalty factors of
    all features; the table says which of them are levels of one category, and what is no
    measurement.
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


def batch_of(table: Table) -> Any:
    """Return the batch of each sample that values are centred by: the first that was named."""
    return next(iter(table.batches.values()), None)


# --- methods by their names


def _folded(name: str) -> str:
    """Return a name without capitals, blanks and dashes."""
    return "".join(c for c in name.lower() if c.isalnum())


def method_name(name: str) -> str:
    """Return how `default_methods` spells a name, whatever its capitals, blanks and dashes."""
    known = {_folded(key): key for key in default_methods()}
    folded = _folded(name)
    if folded in known:
        return known[folded]
    if folded in KNOWN_AS:
        remedy = f"did you mean '{KNOWN_AS[folded]}'?"
    else:
        remedy = suggestion(name, [OWN, *known.values()])
    raise InputError(f"there is no method {quote(name)}", remedy=remedy)


def procedure_of(
    method: str,
    settings: Settings,
    factors: Float64Array | None = None,
    table: Table | None = None,
) -> Any:
    """Return a method with what comes before and, if it only selects, after it."""
    if method == OWN:
        return make_procedure(settings, factors, table)
    if factors is not None:
        asked = [option(name) for name in ("must", "ban", "costs", "adjust")]
        raise InputError(
            f"{', '.join(asked[:-1])} and {asked[-1]} are for the method {OWN}",
            remedy="leave them out",
        )
    model = default_methods()[method_name(method)]
    if settings.n_features is not None:
        model = with_size(model, settings.n_features)
    steps = [*preparing_steps(settings), ("method", model)]
    if not hasattr(model, "predict"):
        steps.append(("classify", common_classifier()))
    return Pipeline(steps)


def fixed_procedure(method: str, settings: Settings, columns: Sequence[int], table: Table) -> Any:
    """Return a method that sees some columns only, and takes all of them."""
    if method == OWN:
        return only_with(make_procedure(settings, None, table), columns)
    sized = procedure_of(method, replace(settings, n_features=len(columns)), None, table)
    n = len(preparing_steps(settings))
    steps = [*sized.steps[:n], ("panel", Panel(columns)), *sized.steps[n:]]
    return Pipeline(steps)


# --- features that are wanted, unwanted or dear


def steering_factors(settings: Settings, table: Table) -> Float64Array | None:
    """Return the penalty factors of a table's features; None where nothing is asked for."""
    adjusted = table.covariate_columns
    if not (settings.must or settings.ban or settings.costs or adjusted):
        return None
    groups = FeatureGroups.of(None, len(table.feature_names))
    must, banned = (
        _whole(columns_of(getattr(settings, name), table, name), groups) for name in ("must", "ban")
    )
    must = np.union1d(must, adjusted).astype(np.intp)
    both = np.intersect1d(must, banned)
    if len(both):
        name = quote(table.feature_names[both[0]])
        asked = option("adjust" if both[0] in adjusted else "must")
        raise InputError(
            f"{name} is to be in every panel ({asked}) and in none ({option('ban')})",
            remedy="leave it out of one of the two",
        )
    factors = np.ones(len(table.feature_names))
    for name, cost in (settings.costs or {}).items():
        factors[columns_of([name], table, "costs")] = cost
    factors[must], factors[banned] = 0.0, np.inf
    if np.isinf(factors).all():
        raise InputError(f"{option('ban')} leaves no feature", remedy="name fewer")
    if groups is not None:
        factors = groups.steered(factors)  # a cost of 0 is a word for must
    n_must, n_left = (
        len(which) if groups is None else groups.count(which)
        for which in (np.flatnonzero(factors == 0.0), np.flatnonzero(factors < np.inf))
    )
    size = settings.n_features
    if size is not None and not n_must <= size <= n_left:
        asked = option("adjust" if adjusted else "must")
        few = f"fewer than the {n_must} that are to be in every panel ({asked})"
        many = f"more than the {n_left} that are left ({option('ban')})"
        raise InputError(
            f"{option('n_features', size)} asks for {few if size < n_must else many}",
            remedy="ask for another number, or name fewer",
        )
    return factors


def _whole(columns: list[int], groups: FeatureGroups | None) -> IntArray:
    """Return these features and the other levels of their columns."""
    found = np.array(columns, dtype=np.intp)
    return found if groups is None else groups.close(found)


def steering_notices(factors: Float64Array | None, table: Table) -> list[Notice]:
    """Say what is in the panel by request, what was kept out of it, and what goes together."""
    factors = np.ones(len(table.feature_names)) if factors is None else factors
    names = np.array(table.feature_names, dtype=object)
    adjusted = table.covariate_columns
    must = names[np.setdiff1d(np.flatnonzero(factors == 0.0), adjusted)]
    banned = names[np.isinf(factors)]
    costly = int(np.sum((factors > 0.0) & (factors != 1.0) & np.isfinite(factors)))
    parts: list[str] = []
    severity: Severity = "note"
    if adjusted:
        parts.append(
            f"Adjusted for, so in every panel and counted in its size: {listed(names[adjusted])}."
        )
        fewest = min(table.class_counts().values())
        if len(adjusted) * _PER_WEIGHT > fewest:
            severity = "caution"
            parts.append(
                f"These are {plural(len(adjusted), 'weight')} without penalty for {fewest} samples "
                f"of the smallest class: with fewer than {_PER_WEIGHT} for each they fit chance, "
                "so adjust for less."
            )
    if len(must):
        parts.append(f"In every panel by request, not by choice: {listed(must)}.")
    if len(banned):
        parts.append(f"In no panel by request: {listed(banned)}.")
    if costly:
        parts.append(f"{costly} features cost more or less than the others, as asked.")
    columns = table.covariates
    several = [f"{quote(n)} ({len(made)} features)" for n, made in columns.items() if len(made) > 1]
    if several:
        parts.append(
            f"The levels of a column are in a panel together or not at all, and count as one where "
            f"panels are chosen by their size: {', '.join(several)}."
        )
    return [Notice("steered", severity, " ".join(parts))] if parts else []


def centring_notices(settings: Settings, table: Table) -> list[Notice]:
    """Say what was centred, and what that asks of samples to come."""
    if not settings.center_batches:
        return []
    name = quote(next(iter(table.batches)))
    text = (
        f"In every fold the mean of each value of {name} in the training part was subtracted. A "
        "batch that training has not seen is centred by its own samples: the model predicts whole "
        "batches in which the classes are mixed about as here, not single samples. Where classes "
        "and batches hang together, centring takes a part of the classes' difference away. Whether "
        "the batch can be told from the panel is asked of the values before that."
    )
    return [Notice("centred", "caution", text)]


def columns_of(given: Iterable[str], table: Table, role: str) -> list[int]:
    """Return the numbers of the features that are named; ``role`` is the parameter they are for.

    The name of a column of categories stands for all its levels.
    """
    places = {name: [place] for place, name in enumerate(table.feature_names)}
    for column, made in (table.covariates).items():
        places.setdefault(column, [places[name][0] for name in made])
    names = list(given) if role == "costs" else names_in(given, places)
    for name in names:
        if name in places:
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
    return list(dict.fromkeys(place for name in names for place in places[name]))
