"""What the benchmarks share: data, real and simulated, timing, and files of results."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

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


# What differs between the two classes of simulated tables, for readers.
SIMULATIONS = {
    "blocks": "blocks of 20 features that correlate by 0.7; in ten blocks the first differs",
    "weak": "30 independent features that differ a little",
    "unequal": "ten features differ in their mean, and 400 in their variance",
    "imbalanced": "12 features differ; one sample in five is of the second class",
    "mixed": "blocks of ten, 15 features that differ, every feature in units of its own",
}


@dataclass(frozen=True, eq=False)
class Split:
    """Samples to learn from and samples to be judged on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def make_split(name: str, seed: int) -> Split:
    """A random stratified 70/30 split of a real set, or a new draw of a simulated one."""
    return simulate(name, seed) if name in SIMULATIONS else random_split(*_kept(name), seed)


@lru_cache(maxsize=1)
def _kept(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(name)
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.intp)


def random_split(X: np.ndarray, y: np.ndarray, seed: int) -> Split:
    """A random stratified split, 70% of the samples to learn from."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    return Split(X, y, X_test, y_test)


def simulate(
    name: str, seed: int, n_train: int = 84, n_test: int = 600, n_features: int = 1000
) -> Split:
    """A new draw of two classes that differ as `SIMULATIONS` says."""
    rng = np.random.default_rng(1000 + seed)
    n, m = n_train + n_test, n_features
    share = 0.21 if name == "imbalanced" else 0.5
    y = np.zeros(n, dtype=np.intp)
    y[: round(share * n_train)] = 1
    y[n_train : n_train + round(share * n_test)] = 1
    X = rng.normal(size=(n, m))
    second = y == 1
    if name == "blocks":
        _correlate(X, 20, 0.7, rng)
        X[np.ix_(second, range(0, min(200, m), 20))] += 0.9
    elif name == "weak":
        X[second, :30] += 0.45
    elif name == "unequal":
        X[second, :10] += 1.0
        X[second, :200] *= 2.0
        X[~second, 200:400] *= 1.7
    elif name == "imbalanced":
        X[second, :12] += 0.9
    elif name == "mixed":
        _correlate(X, 10, 0.5, rng)
        X[np.ix_(second, range(0, min(15 * 37, m), 37))] += 0.8
        X *= np.exp(rng.normal(0.0, 3.0, size=m))
    else:
        raise ValueError(f"no simulation is called {name!r}: there are {list(SIMULATIONS)}")
    return Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _correlate(X: np.ndarray, size: int, correlation: float, rng: np.random.Generator) -> None:
    """Give the features of each block a part in common, in place."""
    for start in range(0, X.shape[1], size):
        block = X[:, start : start + size]
        block *= np.sqrt(1.0 - correlation)
        block += np.sqrt(correlation) * rng.normal(size=(len(X), 1))


def mean_and_error(differences: Sequence[np.ndarray]) -> tuple[float, float]:
    """Mean over sets of the means over splits, and its standard error.

    The error is that of the mean over these sets: it comes from the splits alone. NaN where a
    set has a single split.
    """
    means = [float(np.mean(d)) for d in differences]
    variances = [np.var(d, ddof=1) / len(d) if len(d) > 1 else np.nan for d in differences]
    return float(np.mean(means)), float(np.sqrt(np.sum(variances)) / len(means))


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
    from sparsegsvp._versions import versions

    results = {"versions": versions(), "cores": os.cpu_count(), **results}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    if path.exists():
        # a run of some parts leaves the others as they were
        results = {**json.loads(path.read_text()), **results}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=2, default=float))
    partial.replace(path)
    return path
