"""Which experiments a reproduction runs, and how many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .._parallel import Task
from ..evaluation.values import digest
from .protocol import Study
from .runs import (
    OWN,
    changed_run,
    own_convergence,
    own_sweep_point,
    published_row,
    sweep_point,
    tuned,
)

SOURCES = ("code", "paper")
# Raise when an experiment returns something else than it did for the same arguments.
_FORMAT = 1


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
    max_iter: int = 10_000
    rules: tuple[str, ...] = ("best", "1se")
    qs: tuple[float, ...] | None = None
    eps: tuple[float, ...] | None = None

    def grid(self, study: Study) -> list[tuple[float, float]]:
        """All pairs (q, eps) of the study of q."""
        qs, eps = self.qs or study.sweep.qs, self.eps or study.sweep.eps
        return [(q, e) for e in eps for q in qs]


PLANS = {
    "breast": Plan(),
    # Reordering rows shows chaos as well on the small set, in minutes instead of an hour.
    "ovarian": Plan(n_row_orders=0),
}


def _task(name: str, function: Callable[..., Any], **arguments: Any) -> Task:
    """Return an experiment, known by its name and by a digest of what it computes."""
    identity = digest([_FORMAT, f"{function.__module__}.{function.__qualname__}", arguments])
    return Task((name, identity[:16]), function, keywords=arguments)


def stages(study: Study, plan: Plan) -> Iterator[tuple[str, list[Task]]]:
    """Yield the stages of a reproduction: what to call it, and its tasks."""
    base = {"study": study.key}
    capped = {**base, "max_iter": plan.max_iter}
    methods = [method.key for method in study.methods]
    yield (
        "the published rows",
        [
            _task(f"row/{method}/{source}", published_row, method=method, source=source, **capped)
            for method in methods
            for source in SOURCES
        ],
    )
    yield (
        "this package's method on the same split",
        [
            *[_task(f"own/{rule}", tuned, rule=rule, **base) for rule in plan.rules],
            _task("own/convergence", own_convergence, **base),
        ],
    )
    sweep = {"delta": list(study.sweep.delta), "step_size": study.sweep.step_size, **capped}
    tasks = []
    for q, eps in plan.grid(study):
        at = f"{q:g}/{eps:.4g}"
        tasks.append(_task(f"sweep/paper/{at}", sweep_point, q=q, eps=eps, **sweep))
        tasks.append(_task(f"sweep/own/{at}", own_sweep_point, q=q, eps=eps, **base))
    yield "the study of q and eps", tasks
    for change, count, title in (
        ("starts", plan.n_starts, "the sensitivity to the start"),
        ("rows", plan.n_row_orders, "the sensitivity to rounding"),
        ("splits", plan.n_splits, "the sensitivity to the split"),
    ):
        # other orders of rows are other folds to GSVPSVMCV: the same as other starts
        counts = dict.fromkeys([*methods, "GSVPSVM"], count)
        tuned_runs = count if plan.n_tuned is None else min(count, plan.n_tuned)
        counts["GSVPSVMCV"] = 0 if change == "rows" else tuned_runs
        tasks = [
            _task(
                f"{change}/{method}/{seed}",
                changed_run,
                **{**(base if method in OWN else capped), **OWN.get(method, {})},
                method=method,
                change=change,
                seed=seed,
            )
            for method, runs in counts.items()
            for seed in range(runs)
        ]
        if tasks:
            yield title, tasks
