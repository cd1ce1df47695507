"""Parameters of a run, checked, and what a table does not allow."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .._validate import check_integer, check_real, check_seed
from ..io import InputError, Table
from ..io.errors import option

_LEAST = {"folds": 2, "repeats": 1, "permutations": 0}
_HALVED = 6  # samples of the smallest class for which half of them can be tuned on
# What a fast run makes do with: repeats, permutations and pairs of half samples.
FAST = (1, 19, 5)


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
        repeats, permutations, pairs = FAST if self.fast else usual
        return {
            "n_splits": outer_folds(table, self.folds),
            "n_repeats": repeats,
            "n_permutations": min(permutations, self.permutations),
            "n_pairs": pairs if can_be_halved(table) else 0,
        }

    def skipped(self, table: Table) -> list[str]:
        """Say what a run leaves out."""
        skipped = []
        if self.fast:
            repeats, permutations, pairs = FAST
            skipped.append(
                f"This was a fast run: {repeats} repeat of the folds in place of {self.repeats}, "
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


def check_two_classes(table: Table, name: str) -> None:
    """Refuse a parameter that means something for two classes only."""
    if len(table.classes) != 2:
        raise InputError(
            f"{option(name)} is for two classes, and there are {len(table.classes)}",
            where=table.source,
            remedy="leave it out",
        )
