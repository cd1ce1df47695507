"""What a run is asked to do, and the estimators that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline

from ..estimators import GSVPSVMCV
from ..evaluation._panels import fit_with_groups
from ..io import InputError, Log2, Table

INNER_FOLDS = 5


@dataclass(frozen=True)
class Settings:
    """Parameters of a run; the defaults are those of the command line.

    Parameters
    ----------
    q, tau, pool : tuple of float
        Values that `GSVPSVMCV` chooses from.
    deltas : int
        Points on each path.
    rule : {"best", "1se"}
        Which point of the path it takes.
    n_features : int or None
        Largest panel.
    impute : {"median", "none"}
        What to do with missing values: medians of the training part, or refuse them.
    log2 : bool
        Whether to take log2(max(x, floor)) first.
    floor : float
        Smaller values count as this under the logarithm.
    folds, repeats : int
        Outer folds and their repeats.
    permutations : int
        Draws of the permutation test; 0 leaves it out.
    full_permutation : bool
        Tune inside every permutation instead of using the cheap fixed statistic.
    resamples : int
        Half samples of the stability selection; 0 leaves it out.
    seed : int
        Of all random choices.
    jobs : int
        Worker processes; -1 for one per core. Results do not depend on it.

    Examples
    --------
    >>> from sparsegsvp.cli._settings import Settings
    >>> Settings().fast().permutations
    0
    """

    q: tuple[float, ...] = (1.0,)
    tau: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0)
    pool: tuple[float, ...] = (0.5,)
    deltas: int = 30
    rule: str = "best"
    n_features: int | None = None
    impute: str = "median"
    log2: bool = False
    floor: float = 1.0
    folds: int = 5
    repeats: int = 5
    permutations: int = 99
    full_permutation: bool = False
    resamples: int = 50
    seed: int = 0
    jobs: int = -1

    def __post_init__(self) -> None:
        least = {"folds": 2, "repeats": 1, "permutations": 0, "resamples": 0, "deltas": 2}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise InputError(f"--{name} is {getattr(self, name)}, at least {low} is needed")
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}", remedy="use a number from 0 up")
        if self.jobs == 0:
            raise InputError("--jobs is 0", remedy="use 1 or more, or -1 for all cores")
        if self.n_features is not None and self.n_features < 1:
            raise InputError(f"--n-features is {self.n_features}", remedy="ask for at least 1")
        if not self.floor > 0:
            raise InputError(f"--floor is {self.floor:g}", remedy="its logarithm needs a positive")
        if self.impute not in ("median", "none"):
            raise InputError(f"--impute is {self.impute!r}", remedy="use median or none")
        if self.rule not in ("best", "1se"):
            raise InputError(f"--rule is {self.rule!r}", remedy="use best or 1se")
        for value in self.q:
            if not 0 < value <= 1:
                raise InputError(f"--q is {value:g}", remedy="it lies between 0 and 1")
        for value in self.tau:
            if not 0 < value < math.inf:
                raise InputError(f"--tau is {value:g}", remedy="it is a positive number")
        for value in self.pool:
            if not 0 <= value <= 1:
                raise InputError(f"--pool is {value:g}", remedy="it lies between 0 and 1")

    def fast(self) -> Settings:
        """Leave out what takes long: one repeat, no permutations, no half samples."""
        return replace(self, repeats=1, permutations=0, resamples=0)

    def to_dict(self) -> dict[str, Any]:
        """Return what changes the result: all but the number of workers."""
        values = asdict(self)
        del values["jobs"]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


@dataclass(frozen=True)
class FoldPlan:
    """How many folds the smallest class allows, outside, inside, and in half samples."""

    outer: int
    inner: int
    final: int
    half: int | None


def plan_folds(table: Table, settings: Settings) -> FoldPlan:
    """Fit the numbers of folds to the smallest class, or say that it is too small.

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
    limits = [settings.folds, smallest]
    if table.groups is not None:
        n_groups = len(set(table.groups))
        if n_groups < 4:
            raise InputError(
                f"there are only {n_groups} groups (--group)",
                where=table.source,
                remedy="at least 4 are needed, since a group is never split",
            )
        limits.append(n_groups)
    outer = min(limits)
    training = smallest - math.ceil(smallest / outer)
    half = smallest // 2
    return FoldPlan(
        outer,
        min(INNER_FOLDS, training),
        min(INNER_FOLDS, smallest),
        min(INNER_FOLDS, half) if half >= 3 else None,
    )


def make_procedure(
    settings: Settings,
    folds: int,
    *,
    grouped: bool,
    missing: bool,
    tau: Sequence[float] | None = None,
    jobs: int | None = None,
) -> Any:
    """Build everything that looks at the data, as one estimator.

    Parameters
    ----------
    settings : Settings
        What to build.
    folds : int
        Folds of the tuning.
    grouped : bool
        Whether the folds keep groups whole.
    missing : bool
        Whether medians are needed. For a table without missing values they change
        nothing, and evaluating without them is the same but faster.
    tau : sequence of float, optional
        Instead of the settings' values.
    jobs : int, optional
        Workers of the tuning itself.

    Returns
    -------
    GSVPSVMCV, or a Pipeline that ends in one
    """
    cv: Any = folds
    if grouped:
        cv = StratifiedGroupKFold(folds, shuffle=True, random_state=settings.seed)
    steps: list[tuple[str, Any]] = []
    if settings.log2:
        steps.append(("log2", Log2(floor=settings.floor)))
    if missing:
        steps.append(("impute", SimpleImputer(strategy="median", keep_empty_features=True)))
    model = GSVPSVMCV(
        q=settings.q,
        tau=settings.tau if tau is None else tuple(tau),
        pool=settings.pool,
        n_deltas=settings.deltas,
        rule=settings.rule,
        n_features=settings.n_features,
        cv=cv,
        random_state=settings.seed,
        n_jobs=jobs,
    )
    return Pipeline([*steps, ("model", model)]) if steps else model


def fit_procedure(procedure: Any, table: Table) -> Any:
    """Fit on all samples and tell the model the names of its features.

    Names are set by hand: otherwise X would have to be a data frame, and CSR cannot be one.
    """
    fit_with_groups(procedure, table.X, labels_of(table), table.groups)
    first = procedure.steps[0][1] if isinstance(procedure, Pipeline) else procedure
    first.feature_names_in_ = np.array(table.feature_names, dtype=object)
    # How many workers found the model is not a property of the model.
    last = procedure.steps[-1][1] if isinstance(procedure, Pipeline) else procedure
    last.set_params(n_jobs=None)
    return procedure


def labels_of(table: Table) -> Any:
    """Return the labels as a NumPy array of text."""
    if table.y is None:
        raise InputError("there are no labels", where=table.source, remedy="name them: --target")
    return np.array([str(label) for label in table.y])


def refuse_missing(table: Table, settings: Settings) -> None:
    """Refuse missing values where the caller wants none imputed."""
    if settings.impute == "none" and table.n_missing:
        raise InputError(
            f"{table.n_missing} values are missing",
            where=table.source,
            remedy="use --impute median, or fill them before",
        )


def positive_of(table: Table) -> str | None:
    """The class of interest: the one named, or the last of two in sorted order."""
    classes = list(table.class_counts())
    if len(classes) != 2:
        return None
    return table.positive if table.positive is not None else classes[-1]
