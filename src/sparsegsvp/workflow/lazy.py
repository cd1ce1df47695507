"""`select_lazily`: a panel from a table that stays on disk.

Tuning and the final fit read the table a chunk at a time. What would need the table in
memory, or many fits, is left out, and the results say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Progress
from ..io import InputError, Table, csv_text, save_model
from ..io.errors import need, option
from ..linalg.lazy import DaskMatrix
from .procedure import make_procedure, steering_factors
from .results import Selection, json_text, timings_text, write_texts
from .run import TUNING, Stages
from .settings import Settings, outer_folds, settings_from

SCHEDULERS = ("threads", "synchronous", "distributed")
NOT_DONE = (
    "Nested cross-validation: the score is that of the tuning, and optimistic.",
    "The permutation test and the stability in half samples.",
    "The page, and predictions of the samples: they need the table in memory.",
)


@dataclass(frozen=True, eq=False)
class LazySelection:
    """What `select_lazily` found: the model, what ``results.json`` holds, and the times."""

    model: Any
    document: dict[str, Any] = field(repr=False)
    seconds: dict[str, float] = field(repr=False)

    FILES = Selection.FILES
    NEEDS = ("skops",)

    def write(self, folder: Path) -> None:
        """Write panel, results and model into a folder that exists."""
        header = ["feature", *(f"weight for {c}" for c in self.document["data"]["classes"])]
        rows = [[row["feature"], *row["weights"]] for row in self.document["panel"]]
        write_texts(
            folder,
            {
                "panel.csv": csv_text(header, rows),
                "results.json": json_text(self.document),
                "timings.json": timings_text(self.seconds),
            },
        )
        save_model(self.model, folder / "model.skops")


@contextmanager
def _scheduler(name: str) -> Iterator[None]:
    """Run chunks on threads, one by one, on a cluster of this machine, or at an address."""
    dask = need("dask", "dask")
    if name in ("threads", "synchronous"):
        with dask.config.set(scheduler=name):
            yield
        return
    if name != "distributed" and "://" not in name:
        raise InputError(
            f"{option('dask')} is '{name}'", remedy=f"use {', '.join(SCHEDULERS)} or an address"
        )
    distributed = need("distributed", "dask")
    try:
        client = distributed.Client() if name == "distributed" else distributed.Client(name)
    except (OSError, TimeoutError) as error:
        raise InputError(f"there is no scheduler at {name} ({option('dask')})") from error
    with client:
        yield


def select_lazily(
    table: Table,
    *,
    scheduler: str = "threads",
    progress: Progress | None = None,
    command: str = "",
    **parameters: Any,
) -> LazySelection:
    """Tune and fit on a table that stays on disk.

    Parameters
    ----------
    table : Table
        From `sparsegsvp.io.open_table`.
    scheduler : str, default="threads"
        Where chunks are computed: "threads", "synchronous", "distributed" or an address.
    progress, command
        As in `select_panel`.
    **parameters
        Of the tuning, as in `select_panel`; the rest does not apply.

    Returns
    -------
    LazySelection
    """
    settings = settings_from(**{**parameters, "impute": "none"})
    if settings.log2:
        raise InputError(
            f"{option('log2')} does not go with {option('dask')}",
            remedy="store the table with logarithms taken",
        )
    outer_folds(table, settings)  # refuses classes and groups that are too small
    stages = Stages(progress)
    model = make_procedure(settings, steering_factors(settings, table))
    with _scheduler(scheduler), stages.stage(TUNING):
        fit = {} if table.groups is None else {"groups": table.groups}
        model.fit(DaskMatrix(table.X, names=table.feature_names), table.labels, **fit)
    return LazySelection(model, _describe(table, model, settings, command), stages.seconds)


def _describe(table: Table, model: Any, settings: Settings, command: str) -> dict[str, Any]:
    best = model.best_index_
    return {
        "format": "sparsegsvp lazy selection",
        "data": {
            "source": table.source,
            "digest": table.digest,
            "n_samples": int(table.X.shape[0]),
            "n_features": int(table.X.shape[1]),
            "classes": [str(label) for label in model.classes_],
            "counts": table.class_counts(),
            "record": list(table.record),
            "roles": table.role_lines(),
        },
        "chosen": {
            "q": model.q_,
            "tau": model.tau_,
            "pool": model.pool_,
            "delta": model.delta_.tolist(),
        },
        "tuning_score": {
            "name": f"negative {model.scoring.replace('_', ' ')}",
            "mean": float(model.cv_results_["mean_test_score"][best]),
            "standard_error": float(model.cv_results_["se_test_score"][best]),
            "folds": int(model.n_splits_),
        },
        "panel": [
            {"feature": table.feature_names[j], "weights": (-model.coef_[:, j]).tolist()}
            for j in model.feature_order_
            if model.support_[j]
        ],
        "intercept": np.asarray(model.intercept_).tolist(),
        "kkt_residual": model.kkt_residual_.tolist(),
        "parameters": settings.to_dict(),
        "skipped": list(NOT_DONE),
        "command": command,
    }
