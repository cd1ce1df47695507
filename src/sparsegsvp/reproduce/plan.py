"""Which experiments make up a reproduction, and in what order they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .._parallel import Task
from ..evaluation.journal import digest
from . import runs
from .protocol import Study

SOURCES = ("code", "paper")
# Raise when an experiment returns something else than it did for the same arguments.
_FORMAT = 1
# Settings of this package's methods in the sensitivity study; the rest is at its defaults. The
# study is about panels, so GSVPSVMCV follows its rule for small ones; one tau instead of four
# takes a quarter of the time.
OWN: dict[str, dict[str, Any]] = {"GSVPSVM": {}, "GSVPSVMCV": {"rule": "1se", "tau": [1.0]}}


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


def _task(name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Task:
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
            _task(
                f"row/{method}/{source}",
                runs.published_row,
                {**capped, "method": method, "source": source},
            )
            for method in methods
            for source in SOURCES
        ],
    )
    yield (
        "this package's method on the same split",
        [
            *[_task(f"own/{rule}", runs.tuned, {**base, "rule": rule}) for rule in plan.rules],
            _task("own/convergence", runs.own_convergence, base),
        ],
    )
    sweep = {"delta": list(study.sweep.delta), "step_size": study.sweep.step_size}
    yield (
        "the study of q and eps",
        [
            task
            for q, eps in plan.grid(study)
            for task in (
                _task(
                    f"sweep/paper/{q:g}/{eps:.4g}",
                    runs.sweep_point,
                    {**capped, **sweep, "q": q, "eps": eps},
                ),
                _task(
                    f"sweep/own/{q:g}/{eps:.4g}",
                    runs.own_sweep_point,
                    {**base, "q": q, "eps": eps},
                ),
            )
        ],
    )
    kinds = (
        ("starts", plan.n_starts, runs.start_run),
        ("rows", plan.n_row_orders, runs.row_order_run),
        ("splits", plan.n_splits, runs.split_run),
    )
    own = {
        ("starts", "GSVPSVM"): runs.own_start_run,
        ("rows", "GSVPSVM"): runs.own_row_order_run,
        ("splits", "GSVPSVM"): runs.own_split_run,
        ("starts", "GSVPSVMCV"): runs.tuned_fold_run,
        ("splits", "GSVPSVMCV"): runs.tuned_split_run,
    }
    titles = {
        "starts": "the sensitivity to the start",
        "rows": "the sensitivity to rounding",
        "splits": "the sensitivity to the split",
    }
    for kind, count, function in kinds:
        tasks = [
            _task(f"{kind}/{method}/{seed}", function, {**capped, "method": method, "seed": seed})
            for method in methods
            for seed in range(count)
        ]
        tasks += [
            _task(f"{kind}/{name}/{seed}", own[kind, name], {**base, **settings, "seed": seed})
            for name, settings in OWN.items()
            if (kind, name) in own
            for seed in range(count)
            if name == "GSVPSVM" or plan.n_tuned is None or seed < plan.n_tuned
        ]
        if tasks:
            yield titles[kind], tasks
