"""What the user wants in or out of the panel: names in, penalty factors out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._notices import Notice
from .._typing import Float64Array
from ..io import InputError, Table
from ..io.errors import listed, option, quote, suggestion
from ..io.layout import names_in
from .settings import Settings


def steering_factors(settings: Settings, table: Table) -> Float64Array | None:
    """Return the penalty factors of a table's features; None where nothing is asked for."""
    if not (settings.must or settings.ban or settings.costs):
        return None
    must, banned = (columns_of(getattr(settings, name), table, name) for name in ("must", "ban"))
    both = np.intersect1d(must, banned)
    if len(both):
        name = quote(table.feature_names[both[0]])
        raise InputError(
            f"{name} is to be in every panel ({option('must')}) and in none ({option('ban')})",
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
        few = f"fewer than the {n_must} that are to be in every panel ({option('must')})"
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
    must, banned = names[factors == 0.0], names[np.isinf(factors)]
    costly = int(np.sum((factors > 0.0) & (factors != 1.0) & np.isfinite(factors)))
    parts = []
    if len(must):
        parts.append(f"In every panel by request, not by choice: {listed(must)}.")
    if len(banned):
        parts.append(f"In no panel by request: {listed(banned)}.")
    if costly:
        parts.append(f"{costly} features cost more or less than the others, as asked.")
    return [Notice("steered", "note", " ".join(parts))] if parts else []


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
