"""What the benchmarks share: data, timing, and files of results."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent.parent / "artifacts"

# Files of the shared data, by short name; raw intensities are used on a logarithmic scale.
_FILES = {
    "colon": "colon_alon.npz",
    "leukemia": "leukemia_golub.npz",
    "prostate": "prostate_singh.npz",
    "gravier": "breast_gravier.npz",
    "cns": "cns_pomeroy.npz",
    "ovarian": "ovarian_253x15154.npz",
    "sonar": "sonar.npz",
    "pcmac": "pcmac_text.npz",
    "khan": "khan_srbct.npz",
    "tox": "tox_171.npz",
}
_RAW = {"leukemia", "colon", "prostate"}
TWO = ("breast", "colon", "leukemia", "prostate", "gravier", "cns", "ovarian", "sonar", "pcmac")
MANY = ("wine", "digits", "khan", "tox")


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A real data set by its short name; exits with a reason where it is not there."""
    if name in ("breast", "wine", "digits"):
        from sklearn import datasets

        loader = {"breast": "load_breast_cancer"}.get(name, f"load_{name}")
        return getattr(datasets, loader)(return_X_y=True)
    folder = Path(os.environ.get("SPARSEGSVP_DATA", ""))
    if not (folder / _FILES[name]).exists():
        raise SystemExit(f"{_FILES[name]} not found: set SPARSEGSVP_DATA to the folder that has it")
    with np.load(folder / _FILES[name], allow_pickle=False) as file:
        X, y = file["X"], np.unique(file["y"], return_inverse=True)[1]
    if name in _RAW:
        X = np.log2(np.maximum(X, 16)).astype(np.float32)
    return X, y


def cpu_time(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """CPU seconds of the shortest of several runs, and what the last one returned."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        value = work()
        times.append(time.process_time() - start)
    return min(times), value


def exponent(sizes: list[float], times: list[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def made_with() -> dict[str, str]:
    """Versions and commit."""
    from sparsegsvp.evaluation.cache import versions
    from sparsegsvp.reproduce.runs import commit

    return {**versions(), **commit()}


def save(name: str, results: dict[str, Any]) -> Path:
    """Write results as JSON, whole or not at all, with the versions that made them."""
    results = {"versions": made_with(), "cores": os.cpu_count(), **results}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    if path.exists():
        # a run of some parts leaves the others as they were
        results = {**json.loads(path.read_text()), **results}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=2, default=float))
    partial.replace(path)
    return path
