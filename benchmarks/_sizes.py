"""Panels of given sizes: who selects what on one split, and how good and stable that is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _common import SIMULATIONS, Split, mean_and_error
from _peers import peers
from sparsegsvp import GSVPSVM
from sparsegsvp.estimators.planes import PlaneProblems, PlaneSettings, feature_order, shared_paths
from sparsegsvp.evaluation.baselines import L1Logistic, common_classifier
from sparsegsvp.evaluation.panels import exact_panel, size_is_a_cut
from sparsegsvp.linalg import as_matrix
from sparsegsvp.linalg.covariances import make_covariances
from sparsegsvp.metrics import nogueira_stability
from sparsegsvp.solvers.penalties import L1

SIZES = (1, 2, 4, 8, 16, 32)
OURS = "GSVPSVM"
# what ours is measured against; the other rows are what it was chosen from
RIVALS = ("l1 logistic", "celer", "F test", "mRMR")
JUDGES = {"planes": "the calibrated planes", "logistic": "balanced logistic regression"}
# where ours is behind by more than this, the page says so
BEHIND, LESS_STABLE = 0.005, 0.02


class FirstVersion(BaseEstimator):
    """Panels of version 0.1: the least penalised planes with at most so many features.

    Filled up, or where even the first planes have more cut, by the order of importance.
    """

    def __init__(self, n_features: int = 10) -> None:
        self.n_features = n_features

    def fit(self, X: np.ndarray, y: np.ndarray) -> FirstVersion:
        cov = make_covariances(as_matrix(X), y, None, 2, standardize=True)
        problems = PlaneProblems(cov, PlaneSettings(L1(), tau=1.0, pool=0.5))
        rhos = np.geomspace(1.0, 1e-3, 60)
        [paths] = shared_paths([problems], rhos, max_features=self.n_features)
        last = problems.with_gradients([path[-1] for path in paths])
        self.feature_order_ = feature_order(problems, last)
        return self


def methods(packages: bool = True) -> dict[str, Callable[[int, int], Any]]:
    """Estimators by name, each made for a number of features and one of samples."""
    found = peers()[0] if packages else {}
    others = {name: found[name] for name in RIVALS if name in found}

    def of_package(name: str) -> Callable[[int, int], Any]:
        step = others[name].steps[-1][0]
        return lambda k, n: others[name].set_params(**{f"{step}__n_features": k})

    return {
        OURS: lambda k, n: GSVPSVM(n_features=k),
        "both planes, pool = 0.5": lambda k, n: GSVPSVM(n_features=k, tau=max(3.0, k), pool=0.5),
        "larger tau for few samples": lambda k, n: GSVPSVM(
            n_features=k, tau=max(3.0, k) * max(1.0, 100 / n), pool=1.0
        ),
        "version 0.1": lambda k, n: FirstVersion(k),
        "l1 logistic": lambda k, n: make_pipeline(StandardScaler(), L1Logistic(k)),
        "F test": lambda k, n: SelectKBest(f_classif, k=k),
        **{name: of_package(name) for name in others},
    }


def run(
    split: Split, sizes: Sequence[int], every: dict[str, Callable[[int, int], Any]]
) -> dict[str, Any]:
    """Every method's panel of every size on one split, and the accuracy of both judges."""
    n, m = split.X.shape
    out: dict[str, Any] = {name: {} for name in every}
    judged: dict[bytes, dict[str, float]] = {}  # methods often agree on small panels
    for name, make in every.items():
        model: Any = None
        for k in (k for k in sizes if k <= m):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if model is None or not size_is_a_cut(model):
                    model = make(k, n).fit(split.X, split.y)
                panel = exact_panel(model, k, m)
                key = panel.tobytes()
                judged[key] = judged.get(key) or judge(split, panel)
                out[name][str(k)] = {"panel": panel.tolist(), **judged[key]}
    return out


def judge(split: Split, panel: np.ndarray) -> dict[str, float]:
    """Balanced accuracy of both judges on a panel."""
    every = {
        # all features of the panel, so that nothing is left to select
        "planes": GSVPSVM(n_features=len(panel), tau=1.0, pool=0.5),
        "logistic": common_classifier(),
    }
    out = {}
    for name, model in every.items():
        model.fit(split.X[:, panel], split.y)
        predicted = model.predict(split.X_test[:, panel])
        out[name] = float(balanced_accuracy_score(split.y_test, predicted))
    return out


# ------------------------------------------------------------------------------ the tables


def page(results: dict[str, Any]) -> list[str]:
    """Markdown: accuracies by both judges and stability, for all sets and for each kind."""
    real = [name for name in results if name not in SIMULATIONS]
    simulated = [name for name in results if name in SIMULATIONS]
    groups = {"All sets": [*real, *simulated]}
    if real and simulated:
        groups |= {"Real sets": real, "Simulated sets": simulated}
    absent = [name for name in RIVALS if name not in names_of(results)]
    lines = [f"Not measured on all sets, so left out: {', '.join(absent)}.", ""] if absent else []
    for title, sets in groups.items():
        chosen = {name: results[name] for name in sets}
        lines += [f"### {title} ({', '.join(sets)})", ""]
        for name, said in JUDGES.items():
            lines += [f"Balanced accuracy of {said}:", "", *accuracy_table(chosen, name), ""]
        lines += ["Stability:", "", *stability_table(chosen), ""]
    return [*lines, *by_set(results)]


def sizes_of(results: dict[str, Any]) -> list[str]:
    """All sizes that some set has, rising."""
    found = {k for part in results.values() for k in part["splits"][0][OURS]}
    return sorted(found, key=int)


def names_of(results: dict[str, Any]) -> list[str]:
    """Ours first, then all that ran on every set."""
    first, *others = results.values()
    return [n for n in first["splits"][0] if all(n in part["splits"][0] for part in others)]


def head(results: dict[str, Any], first: str) -> list[str]:
    sizes = sizes_of(results)
    titles = [f"{k} feature{'s' * (k != '1')}" for k in sizes]
    return [f"| {first} | " + " | ".join(titles) + " |", "| --- |" + " --- |" * len(sizes)]


def scores(part: dict[str, Any], method: str, k: str, by: str) -> np.ndarray:
    """Accuracies of a method on all splits of a set."""
    return np.array([split[method][k][by] for split in part["splits"]])


def accuracy_table(results: dict[str, Any], by: str) -> list[str]:
    """Accuracy of ours, and the differences of the others to it with their standard errors."""
    names, lines = names_of(results), head(results, "method")
    cells: dict[str, list[str]] = {name: [] for name in names}
    for k in sizes_of(results):
        having = [part for part in results.values() if k in part["splits"][0][OURS]]
        found = {
            name: mean_and_error(
                [scores(part, name, k, by) - scores(part, OURS, k, by) for part in having]
            )
            for name in names
        }
        mine = f"{np.mean([scores(part, OURS, k, by).mean() for part in having]):.3f}"
        ahead = max((found[name][0] for name in RIVALS if name in found), default=0.0)
        cells[OURS].append(mine + behind(ahead, BEHIND, 3))
        for name in names[1:]:
            cells[name].append(difference(*found[name]))
    return [*lines, *(f"| {name} | " + " | ".join(cells[name]) + " |" for name in names)]


def stability_table(results: dict[str, Any]) -> list[str]:
    """Nogueira's index of each method's panels, the mean over sets."""
    names, lines = names_of(results), head(results, "method")
    index = {
        (name, k): np.mean(
            [stability(part, name, k) for part in results.values() if reached(part, k)]
        )
        for name in names
        for k in sizes_of(results)
    }
    for name in names:
        cells = [f"{index[name, k]:.2f}" for k in sizes_of(results)]
        if name == OURS and "F test" in names:
            ahead = [index["F test", k] - index[OURS, k] for k in sizes_of(results)]
            cells = [cell + behind(a, LESS_STABLE, 2) for cell, a in zip(cells, ahead)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def by_set(results: dict[str, Any]) -> list[str]:
    """Accuracy of ours by its own decision, and its stability, on every set."""
    lines = [
        f"### {OURS} on each set",
        "",
        "Balanced accuracy of the calibrated planes; stability:",
        "",
    ]
    lines += head(results, "set")
    for name, part in results.items():
        cells = [
            f"{scores(part, OURS, k, 'planes').mean():.3f}; {stability(part, OURS, k):.2f}"
            if reached(part, k)
            else ""
            for k in sizes_of(results)
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def reached(part: dict[str, Any], k: str) -> bool:
    """Whether a set has so many features."""
    return k in part["splits"][0][OURS]


def stability(part: dict[str, Any], method: str, k: str) -> float:
    """Nogueira's index over the splits of a set; NaN for a single one."""
    panels = [split[method][k]["panel"] for split in part["splits"]]
    return nogueira_stability(panels, part["n_features"]).value if len(panels) > 1 else np.nan


def behind(ahead: float, most: float, digits: int) -> str:
    return f", behind by {ahead:.{digits}f}" if ahead > most else ""


def difference(mean: float, error: float) -> str:
    return f"{mean:+.3f} ± {error:.3f}"
