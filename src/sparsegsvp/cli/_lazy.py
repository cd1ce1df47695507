"""`select --dask`: a panel from a table that stays on disk.

Tuning and the final fit read the table a chunk at a time. What would need the table in
memory, or many fits, is left out, and the results say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..io import InputError, Table, csv_text, save_model, whole_folder
from . import _listener
from ._listener import Listener
from ._run import FILES, json_text, write_timings
from ._scheduler import SCHEDULERS
from ._settings import Settings, fit_procedure, make_procedure, plan_folds

LEFT_OUT = (
    "Nested cross-validation: the score is that of the tuning, and optimistic.",
    "The permutation test and the stability in half samples.",
    "The page, and predictions of the samples: they need the table in memory.",
)


@contextmanager
def scheduler(name: str) -> Iterator[None]:
    """Run chunks on threads, one by one, on a cluster of this machine, or at an address."""
    from ..io._dask import need

    dask = need("dask", "dask")
    if name in ("threads", "synchronous"):
        with dask.config.set(scheduler=name):
            yield
        return
    if name != "distributed" and "://" not in name:
        raise InputError(f"--dask is '{name}'", remedy=f"use {', '.join(SCHEDULERS)} or an address")
    distributed = need("distributed", "dask")
    try:
        client = distributed.Client() if name == "distributed" else distributed.Client(name)
    except (OSError, TimeoutError) as error:
        raise InputError(f"there is no scheduler at {name} (--dask)") from error
    with client:
        yield


def select_lazily(
    table: Table,
    out: str | PathLike[str],
    settings: Settings,
    *,
    name: str = "threads",
    command: str = "",
    listener: Listener | None = None,
) -> dict[str, Any]:
    """Tune, fit, and write panel.csv, model.skops and results.json.

    Parameters
    ----------
    table : Table
        From `sparsegsvp.io.open_table`.
    out : path-like
        The folder to write.
    settings : Settings
        Of the tuning; the rest does not apply.
    name : str, default="threads"
        A scheduler or its address.
    command : str, default=""
        The command that repeats the run.
    listener : Listener, optional
        Told how the run is doing.

    Returns
    -------
    dict
        What results.json holds.
    """
    listener = Listener() if listener is None else listener
    if settings.log2:
        raise InputError(
            "--log2 does not go with --dask", remedy="store the table with logarithms taken"
        )
    plan = plan_folds(table, settings)
    with whole_folder(out, owned=FILES) as folder, scheduler(name):
        listener.table_read(table)
        with listener.stage(_listener.TUNING):
            grouped = table.groups is not None
            model = make_procedure(settings, plan.final, grouped=grouped, missing=False)
            fit_procedure(model, table)
        results = _describe(table, model, settings, command)
        _write(Path(folder), model, results)
        write_timings(Path(folder), listener.seconds)
    return results


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
            {
                "feature": table.feature_names[j],
                "weights": model.coef_[:, j].tolist(),
            }
            for j in model.feature_order_
            if model.support_[j]
        ],
        "intercept": np.asarray(model.intercept_).tolist(),
        "kkt_residual": model.kkt_residual_.tolist(),
        "parameters": settings.to_dict(),
        "skipped": list(LEFT_OUT),
        "command": command,
    }


def _write(folder: Path, model: Any, results: dict[str, Any]) -> None:
    header = ["feature", *(f"weight for {label}" for label in results["data"]["classes"])]
    rows = [[row["feature"], *row["weights"]] for row in results["panel"]]
    (folder / "panel.csv").write_text(csv_text(header, rows), encoding="utf-8")
    (folder / "results.json").write_text(json_text(results), encoding="utf-8")
    save_model(model, folder / "model.skops")
