"""What a run is asked to do: parameters checked, and what a table does not allow refused."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from scipy import sparse

from .._validate import check_choice, check_integer, check_real, check_seed
from ..estimators.search import RULES
from ..evaluation.learning import draw_parts
from ..io import InputError, Table
from ..io.errors import option
from ..io.text import names_or_files


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


def settings_from(**given: Any) -> Settings:
    """Return settings in which one value may stand for a sequence of one, and a file for names."""
    for name in ("q", "tau", "pool"):
        value = given.get(name)
        if value is not None:
            values = value if isinstance(value, list | tuple) else (value,)
            given[name] = tuple(float(v) if isinstance(v, int) else v for v in values)
    for name in ("must", "ban", "panel"):
        given[name] = names_or_files(given.get(name) or ())
    return Settings(**given)


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


def refuse_missing(table: Table, settings: Settings) -> None:
    """Refuse missing values where none are to be imputed, and what cannot be centred."""
    if settings.center_batches and not table.batches:
        raise InputError(
            f"{option('center_batches')} needs batches",
            remedy=f"name the column that holds them with {option('batch')}",
        )
    if settings.center_batches and sparse.issparse(table.X):
        raise InputError(
            f"{option('center_batches')} would fill every zero of sparse data",
            where=table.source,
            remedy="leave it out, or give the table as a dense one",
        )
    if settings.impute == "none" and table.n_missing:
        raise InputError(
            f"{table.n_missing} values are missing",
            where=table.source,
            remedy=f"use {option('impute', 'median')}, or fill them before",
        )
