"""Which experiments a reproduction runs, and how many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .._parallel import Task
from ..evaluation.values import digest
from .claims import elimination, filters, imbalance, searched, searched_own
from .protocol import Study, sweep_name
from .runs import (
    OWN_METHODS,
    PUBLISHED,
    own_convergence,
    own_run,
    own_sweep_point,
    paper_runs,
    published_row,
    sweep_points,
    tuned,
)

SOURCES = ("code", "paper")
# Raise when an experiment returns something else than it did for the same arguments.
_FORMAT = 2


@dataclass(frozen=True)
class Plan:
    """How much to run.

    The defaults are the full reproduction; smaller numbers make a quick look, which the
    page then says.

    Attributes
    ----------
    n_starts, n_splits : int
        Random starts and random splits of the sensitivity study.
    n_row_orders : int
        Orders of the training rows, a change of rounding only.
    n_tuned : int or None
        Largest number of runs of `GSVPSVMCV` in each; None sets no limit.
    n_searches : int or None
        Random splits, beside the published one, of the search for delta and step and of the
        claims about other methods; None leaves these out.
    max_iter : int
        Cap on the iterations of the paper's method.
    rules : tuple of str
        Rules of `GSVPSVMCV` on the published split; the figures show the last one.
    qs, eps : tuple of float or None
        The grid of the study of q; None is the published one.
    """

    n_starts: int = 20
    n_splits: int = 20
    n_row_orders: int = 10
    n_tuned: int | None = None
    n_searches: int | None = 5
    max_iter: int = 10_000
    rules: tuple[str, ...] = ("best", "1se")
    qs: tuple[float, ...] | None = None
    eps: tuple[float, ...] | None = None

    def levels(self, study: Study) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The values of q and of eps of the study of q."""
        return self.qs or study.sweep.qs, self.eps or study.sweep.eps

    def grid(self, study: Study) -> list[tuple[float, float]]:
        """All pairs (q, eps) of the study of q."""
        qs, levels = self.levels(study)
        return [(q, eps) for eps in levels for q in qs]


PLANS = {
    "breast": Plan(),
    # Reordering rows shows chaos as well on the small set, in minutes instead of an hour, and so
    # do searches on other splits.
    "ovarian": Plan(n_row_orders=0, n_searches=0),
}


@dataclass(frozen=True)
class Experiment(Task):
    """An experiment, and what it costs beside others, in tenths of a second of some machine.

    A name with an asterisk stands for several runs on the same samples, which share every
    pass over them; they return their results by name.
    """

    cost: int = 1

    @property
    def name(self) -> str:
        return str(self.key[0])

    def by_name(self, value: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return its results by name."""
        return value if "*" in self.name else {self.name: value}


def stages(study: Study, plan: Plan) -> Iterator[tuple[str, list[Experiment]]]:
    """Yield the stages of a reproduction: what to call it, and its experiments."""
    made = _Stages(study, plan)
    yield "the published rows", made.published_rows()
    yield "the study of q and eps", made.sweep()
    yield "this package's method on the same split", made.own_method()
    for change, count, title in (
        ("starts", plan.n_starts, "the sensitivity to the start"),
        ("rows", plan.n_row_orders, "the sensitivity to rounding"),
        ("splits", plan.n_splits, "the sensitivity to the split"),
    ):
        experiments = made.changed(change, count)
        if experiments:
            yield title, experiments
    if plan.n_searches is not None:
        yield "the search and the claims", made.claims(plan.n_searches)


class _Stages:
    """The experiments of a study, a method for each stage."""

    def __init__(self, study: Study, plan: Plan) -> None:
        self.study, self.plan = study, plan
        # The cost of one plane run to its cap, alone and beside many; of a fit of this package.
        costs = (200, 70, 20) if study.shape[1] > 1000 else (5, 3, 1)
        self.alone, self.beside, self.own = costs
        self.methods = [method.key for method in study.methods]

    def _ours(self, name: str, cost: int, function: Callable[..., Any], **given: Any) -> Experiment:
        """An experiment, known by its name and by a digest of what it computes."""
        given["study"] = self.study.key
        computed = [_FORMAT, f"{function.__module__}.{function.__qualname__}", given]
        return Experiment((name, digest(computed)[:16]), function, keywords=given, cost=cost)

    def _paper(
        self, name: str, cost: int, function: Callable[..., Any], **given: Any
    ) -> Experiment:
        """An experiment with the paper's method, whose iterations have a cap."""
        return self._ours(name, cost, function, max_iter=self.plan.max_iter, **given)

    def published_rows(self) -> list[Experiment]:
        """The paper's table, with its printed and with its own conventions."""
        return [
            self._paper(
                f"row/{key}/{source}", 2 * self.alone, published_row, method=key, source=source
            )
            for key in self.methods
            for source in SOURCES
        ]

    def sweep(self) -> list[Experiment]:
        """The grid of q and eps, for the paper's method and for this package's."""
        sweep, (qs, levels) = self.study.sweep, self.plan.levels(self.study)
        given = {"qs": list(qs), "delta": list(sweep.delta), "step_size": sweep.step_size}
        cost = 2 * len(qs) * self.beside
        paper = [
            self._paper(f"sweep/paper/*/{eps:.4g}", cost, sweep_points, eps=eps, **given)
            for eps in levels
        ]
        return paper + [
            self._ours(sweep_name("own", q, eps), self.own, own_sweep_point, q=q, eps=eps)
            for q, eps in self.plan.grid(self.study)
        ]

    def own_method(self) -> list[Experiment]:
        """This package's method, tuned by each rule, and how it converges."""
        rules = self.plan.rules
        found = [self._ours(f"own/{rule}", 30 * self.own, tuned, rule=rule) for rule in rules]
        return [*found, self._ours("own/convergence", self.own, own_convergence)]

    def changed(self, change: str, count: int) -> list[Experiment]:
        """Every method from so many starts, or on so many orders of rows or splits."""
        # Starts of a method share their samples; in the others, so do the methods of a seed.
        groups = (
            [(f"{method}/*", [method], list(range(count))) for method in self.methods]
            if change == "starts"
            else [(f"*/{seed}", self.methods, [seed]) for seed in range(count)]
        )
        paper = [
            self._paper(
                f"{change}/{name}",
                2 * len(members) * len(seeds) * self.beside,
                paper_runs,
                change=change,
                methods=members,
                seeds=seeds,
            )
            for name, members, seeds in groups
            if seeds
        ]
        # other orders of rows are other folds to GSVPSVMCV: the same as other starts
        n_tuned = count if self.plan.n_tuned is None else min(count, self.plan.n_tuned)
        counts = {"GSVPSVM": count, "GSVPSVMCV": 0 if change == "rows" else n_tuned}
        return paper + [
            self._ours(
                f"{change}/{method}/{seed}",
                self.own if method == "GSVPSVM" else 8 * self.own,
                own_run,
                method=method,
                change=change,
                seed=seed,
                **OWN_METHODS[method],
            )
            for method, runs in counts.items()
            for seed in range(runs)
        ]

    def claims(self, n_splits: int) -> list[Experiment]:
        """What stands beside the tables: on the published split and so many others."""
        seeds = [PUBLISHED, *range(n_splits)]
        search = [
            self._paper(
                f"search/{method}/{seed}", 84 * self.beside, searched, method=method, seed=seed
            )
            for seed in seeds
            for method in self.methods
        ]
        search += [
            self._ours(f"search/GSVPSVMCV/{seed}", 30 * self.own, searched_own, seed=seed)
            for seed in seeds
        ]
        if self.study.key == "ovarian":
            more = [PUBLISHED, *range(5)]
            return [
                self._ours("claim/filters", 3000, filters, top=20, size=6, seeds=more),
                *search,
            ]
        more = [PUBLISHED, *range(4 * n_splits)]
        cost = 8 * len(self.methods) * self.beside
        given = {"methods": self.methods, "shares": [1.0, 0.3, 0.1]}
        return [
            self._ours("claim/elimination", 20, elimination, sizes=[18, 7], seeds=more),
            *[
                self._paper(f"claim/imbalance/{seed}", cost, imbalance, seed=seed, **given)
                for seed in seeds
            ],
            *search,
        ]
