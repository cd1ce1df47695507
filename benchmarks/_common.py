"""What the benchmarks share: data, timing, and files of results."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"

_FILES = {
    "ovarian": "ovarian_253x15154.npz",
    "leukemia": "leukemia_golub.npz",
    "colon": "colon_alon.npz",
    "prostate": "prostate_singh.npz",
    "gravier": "breast_gravier.npz",
    "cns": "cns_pomeroy.npz",
}
# raw intensities, to be used on a logarithmic scale
_RAW = {"leukemia", "colon", "prostate"}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A real data set by its short name; exits with a reason where it is not there."""
    if name == "breast":
        from sparsegsvp.datasets import load_breast_cancer

        return load_breast_cancer(return_X_y=True)
    from sparsegsvp.datasets import data_folder

    folder = data_folder()
    if folder is None or not (folder / _FILES[name]).exists():
        raise SystemExit(f"{_FILES[name]} not found: set SPARSEGSVP_DATA to the folder that has it")
    with np.load(folder / _FILES[name], allow_pickle=False) as file:
        X, y = file["X"], file["y"].astype(int)
    if name in _RAW:
        X = np.log2(np.maximum(X, 16)).astype(np.float32)
    return X, y


def standardized(X: np.ndarray) -> np.ndarray:
    """Unit variance and mean zero, in float64; constant columns become zero."""
    X = X.astype(np.float64)
    X -= X.mean(axis=0)
    sd = X.std(axis=0)
    X /= np.where(sd > 0, sd, 1.0)
    return X


def best_time(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The shortest of several runs, and what the last one returned."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        value = work()
        times.append(time.perf_counter() - start)
    return min(times), value


def exponent(sizes: list[float], times: list[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def save(name: str, results: dict[str, Any]) -> Path:
    """Write results as JSON, whole or not at all, with the versions that made them."""
    import scipy
    import sklearn

    results = {
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "cores": os.cpu_count(),
        **results,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    if path.exists():
        # a run of some parts leaves the others as they were
        results = {**json.loads(path.read_text()), **results}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=2, default=float))
    partial.replace(path)
    return path
