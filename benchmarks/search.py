"""CPU time of the search for the size against compiled searches for a penalty.

    python benchmarks/search.py                        all sets of two classes, minutes
    python benchmarks/search.py --sets colon breast
    python benchmarks/search.py --tiny                 made-up data, seconds

Five folds, 30 points and a fit on all samples each: GSVPSVMCV (30 sizes), glmnet's LogitNet and
adelie's cv_grpnet (30 penalties), and scikit-learn's l1 LogisticRegressionCV with liblinear
(10 penalties, so a third of the points). One thread, the same data, the best of three runs after
a first that is not counted (liblinear, which takes longest, runs once). One thread: set
OMP_NUM_THREADS=1.

python-glmnet wants NumPy 1.26, so the peers live in an environment of their own:

    python -m venv peers && peers/bin/pip install -e ".[peers]" "numpy<2" python-glmnet adelie
    OMP_NUM_THREADS=1 peers/bin/python benchmarks/search.py

Those that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from _common import TWO, cpu_time, load, markdown, save
from sparsegsvp import GSVPSVMCV
from sparsegsvp.datasets import make_planted

OURS = "GSVPSVMCV"
POINTS, FOLDS, LIBLINEAR_POINTS = 30, 5, 10


def ours(X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    most = min(POINTS, X.shape[1])
    return lambda: GSVPSVMCV(max_features=most, cv=FOLDS).fit(X, y)


def glmnet(X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    from glmnet import LogitNet

    X = X.astype(np.float64)
    return lambda: LogitNet(
        n_lambda=POINTS, n_splits=FOLDS, standardize=True, n_jobs=1, random_state=0
    ).fit(X, y)


def adelie(X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    import adelie as ad

    X, y = np.asfortranarray(X, dtype=np.float64), y.astype(np.float64)

    def run() -> Any:
        options: Any = {"n_folds": FOLDS, "lmda_path_size": POINTS, "n_threads": 1, "seed": 0}
        glm = ad.glm.binomial(y=y, dtype=np.float64)
        search = ad.cv_grpnet(X=X, glm=glm, progress_bar=False, **options)
        return search.fit(X, glm, lmda_path_size=POINTS, progress_bar=False, n_threads=1)

    return run


def liblinear(X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    X = X.astype(np.float64)
    l1: Any = {"l1_ratios": (1.0,)}
    if LogisticRegression().penalty == "l2":  # scikit-learn before 1.8
        l1 = {"penalty": "l1"}
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)

    def run() -> Any:
        Z = StandardScaler().fit_transform(X)
        return LogisticRegressionCV(
            Cs=np.logspace(-2, 1, LIBLINEAR_POINTS), cv=folds, solver="liblinear", **l1
        ).fit(Z, y)

    return run


# by name, the package that is needed
SEARCHES: dict[str, tuple[str | None, Callable[..., Callable[[], Any]]]] = {
    OURS: (None, ours),
    "glmnet": ("glmnet", glmnet),
    "adelie": ("adelie", adelie),
    "liblinear": (None, liblinear),
}


def measure(X: np.ndarray, y: np.ndarray, repeats: int) -> dict[str, float]:
    """Seconds by name of what is installed."""
    seconds = {}
    for name, (package, make) in SEARCHES.items():
        if package is None or importlib.util.find_spec(package) is not None:
            run = make(X, y)
            if name != "liblinear":
                run()
            seconds[name] = cpu_time(run, 1 if name == "liblinear" else repeats)[0]
    return seconds


def table(results: dict[str, dict[str, float]]) -> str:
    """Seconds, and ours as a ratio to the fastest of the others."""
    names = [name for name in SEARCHES if any(name in row for row in results.values())]
    rows = []
    for title, seconds in results.items():
        fastest = min(value for name, value in seconds.items() if name != OURS)
        cells = [f"{seconds[name]:.3f}" if name in seconds else "" for name in names]
        rows.append([title, *cells, f"{seconds[OURS] / fastest:.2f}"])
    return markdown(["CPU seconds", *names, "ours / fastest"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(TWO), choices=TWO)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="made-up data, one run")
    options = parser.parse_args()
    for name, (package, _) in SEARCHES.items():
        if package is not None and importlib.util.find_spec(package) is None:
            print(f"{name} is left out: {package} is not installed (see --help's file)")
    if options.tiny:
        options.repeats = 1
        sets = {"planted": make_planted(60, 50, 4, effect=1.2, return_X_y=True)}
    else:
        sets = {name: load(name) for name in options.sets}
    results = {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for name, (X, y) in sets.items():
            results[name] = measure(X, y, options.repeats)
            print(name, {k: round(v, 3) for k, v in results[name].items()}, flush=True)
    print(table(results))
    save("search-tiny" if options.tiny else "search", {"seconds": results})


if __name__ == "__main__":
    main()
