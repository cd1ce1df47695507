"""What the user wants in or out of the panel: names in, penalty factors out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._notices import Notice, Severity
from .._typing import Float64Array
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
    must, banned = (columns_of(getattr(settings, name), table, name) for name in ("must", "ban"))
    must = [*must, *adjusted]
    both = np.intersect1d(must, banned)
    if len(both):
        name = quote(table.feature_names[both[0]])
        asked = option("adjust" if both[0] in adjusted else "must")
        raise InputError(
            f"{name} is to be in every panel ({asked}) and in none ({option('ban')})",
            remedy="leave it out of one of the two",
        )
    factors = np.ones(len(table.feature_names))
    costs = settings.costs or {}
    factors[columns_of(costs, table, "costs")] = list(costs.values())
    factors[must], factors[banned] = 0.0, np.inf
    n_must, n_left = int(np.sum(factors == 0.0)), int(np.sum(factors < np.inf))
    size = settings.n_features
    if n_left == 0:
        raise InputError(f"{option('ban')} leaves no feature", remedy="name fewer")
    if size is not None and not n_must <= size <= n_left:
        asked = option("adjust" if adjusted else "must")
        few = f"fewer than the {n_must} that are to be in every panel ({asked})"
        many = f"more than the {n_left} that are left ({option('ban')})"
        raise InputError(
            f"{option('n_features', size)} asks for {few if size < n_must else many}",
            remedy="ask for another number, or name fewer",
        )
    return factors


def steering_notices(factors: Float64Array | None, table: Table) -> list[Notice]:
    """Say what is in the panel by request, and what was kept out of it."""
    if factors is None:
        return []
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
    """Return the numbers of the features that are named; ``role`` is the parameter they are for."""
    places = {name: place for place, name in enumerate(table.feature_names)}
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
            remedy=suggestion(name, table.feature_names),
        )
    return [places[name] for name in names]
