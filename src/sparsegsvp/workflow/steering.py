"""What the user wants in or out of the panel: names in, penalty factors out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._notices import Notice, Severity
from .._typing import Float64Array, IntArray
from ..estimators.groups import FeatureGroups
from ..io import InputError, Table
from ..io.errors import listed, option, quote, suggestion
from ..io.layout import names_in
from ..report.words import plural
from .settings import Settings

_PER_WEIGHT = 10  # samples of the smallest class for each weight that carries no penalty


def steering_factors(settings: Settings, table: Table) -> Float64Array | None:
    """Return the penalty factors of a table's features; None where nothing is asked for."""
    adjusted = table.covariate_columns
    if not (settings.must or settings.ban or settings.costs or adjusted):
        return None
    groups = FeatureGroups.of(table.feature_groups, len(table.feature_names))
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
    columns = table.covariates | table.categories
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
    for column, made in (table.covariates | table.categories).items():
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
