"""Which k features, how many, and which decision: what the defaults were chosen by.

    python benchmarks/panels.py                        all sets, 8 splits, half an hour
    python benchmarks/panels.py --splits 4 --sets colon khan
    python benchmarks/panels.py --ours --splits 12     the defaults alone, without peers
    python benchmarks/panels.py --tiny                 made-up data, seconds
    python benchmarks/panels.py --rebuild              the tables from the file of results

Features are selected on 70% of the samples, drawn with the classes in proportion; one judge, a
balanced logistic regression on the standardised columns that were chosen, is fitted on the same
samples and scored on the others. All methods see the same splits. One thread: set
OMP_NUM_THREADS=1. celer and abess are left out where they are not installed (extra ``peers``).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _common import MANY, RESULTS, TWO, cpu_time, load, markdown, save
from _selectors import OURS, Method, methods
from sparsegsvp import GSVPSVM, GSVPSVMCV, subset_gsvp
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import base as decision_module
from sparsegsvp.estimators import gsvpsvm_cv as search_module
from sparsegsvp.estimators.base import DECISIONS
from sparsegsvp.metrics import nogueira_stability
from sparsegsvp.solvers import subset as subset_module

SIZES = (1, 2, 3, 5, 8, 10, 13, 20, 30)
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
STRENGTHS = (0.1, 0.3, 1.0, 3.0)
# name -> rule, standard errors, part of the gain
RULES = {
    "best": ("best", 0.0, 0.0),
    "paired, 0 or 1%": ("paired", 0.0, 0.01),
    "paired, 0 or 3%": ("paired", 0.0, 0.03),
    "paired, 0.25 or 1%": ("paired", 0.25, 0.01),
    "paired, 0.25 or 2%": ("paired", 0.25, 0.02),
    "paired, 0.25 or 3%": ("paired", 0.25, 0.03),
    "paired, 0.25 or 4%": ("paired", 0.25, 0.04),
    "paired, 0.5 or 1%": ("paired", 0.5, 0.01),
    "paired, 0.5 or 2%": ("paired", 0.5, 0.02),
    "paired, 0.75 or 2%": ("paired", 0.75, 0.02),
    "1se": ("1se", 0.0, 0.0),
}

Table = tuple[np.ndarray, np.ndarray]


# --- one split -----------------------------------------------------------------------------


def judge(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> float:
    model = make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=2000)
    ).fit(X, y)
    return float(balanced_accuracy_score(y_test, model.predict(X_test)))


@contextmanager
def patched(module: Any, **values: Any) -> Iterator[None]:
    """Set a module's constants for a while: what they would be with other defaults."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def by_decision(
    train: Table, test: Table, sizes: Sequence[int], **options: Any
) -> dict[str, float]:
    models = GSVPSVM(**options).fit_path(*train, sizes)
    return {
        str(k): float(balanced_accuracy_score(test[1], model.predict(test[0])))
        for k, model in models.items()
    }


def run_split(train: Table, test: Table, sizes: Sequence[int], known: dict[str, Method]) -> Any:
    """Everything that is measured on a split."""
    (X, y), (X_test, y_test) = train, test
    varying = np.ptp(X, axis=0) > 0
    scaler = StandardScaler().fit(X[:, varying])
    columns = np.flatnonzero(varying)
    Z, Z_test = scaler.transform(X[:, varying]), scaler.transform(X_test[:, varying])
    result: dict[str, Any] = {"methods": {}, "factors": {}, "strengths": {}, "rules": {}}
    for name, method in known.items():
        rows = X[:, varying] if name == OURS else Z  # which standardises by itself
        seconds, panels = cpu_time(lambda method=method, rows=rows: method(rows, y, sizes))
        result["methods"][name] = {
            "seconds": seconds,
            "panels": {str(k): sorted(columns[p].tolist()) for k, p in panels.items()},
            "accuracy": {
                str(k): judge(Z[:, p], y, Z_test[:, p], y_test) for k, p in panels.items()
            },
        }
    tau = subset_gsvp(X[:, varying], y, 1).tau
    factor = subset_module._TAU_PAIR if y.max() == 1 else subset_module._TAU_MANY
    for c in FACTORS:
        order = subset_gsvp(X[:, varying], y, max(sizes), tau=tau * c / factor).order
        result["factors"][str(c)] = {
            "panels": {str(k): sorted(columns[order[:k]].tolist()) for k in sizes},
            "accuracy": {
                str(k): judge(Z[:, order[:k]], y, Z_test[:, order[:k]], y_test) for k in sizes
            },
        }
    for C in STRENGTHS:
        with patched(decision_module, _STRENGTH_PAIR=C, _STRENGTH_MANY=C):
            result["strengths"][str(C)] = by_decision(train, test, sizes)
    result["decisions"] = {d: by_decision(train, test, sizes, decision=d) for d in DECISIONS}
    for name, (rule, errors, part) in RULES.items():
        with patched(search_module, _ERRORS=errors, _PART_PAIR=part, _PART_MANY=part):
            model = GSVPSVMCV(rule=rule).fit(X, y)
        score = float(balanced_accuracy_score(y_test, model.predict(X_test)))
        result["rules"][name] = {"accuracy": score, "size": model.n_features_}
    return result


def run_set(X: np.ndarray, y: np.ndarray, n_splits: int, known: dict[str, Method]) -> Any:
    sizes = [k for k in SIZES if k <= X.shape[1]]
    splits = []
    for seed in range(n_splits):
        A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
        splits.append(run_split((A, a), (B, b), sizes, known))
    n_classes = int(y.max()) + 1
    return {"shape": X.shape, "classes": n_classes, "sizes": sizes, "splits": splits}


def best_pairs(n_tables: int = 30) -> dict[str, dict[str, float]]:
    """How often forward selection finds the best pair of 12 features, by brute force.

    Tables of 60 samples: features that are independent within the classes, and mixtures of such
    features, which correlate.
    """
    result = {}
    options: Any = {"clip": None, "max_correlation": 1.0}
    for kind in ("independent", "correlated", "correlated, tau 0.01", "correlated, three classes"):
        tau = 0.01 if "tau" in kind else None
        hits, excess = 0, []
        for seed in range(n_tables):
            rng = np.random.default_rng(seed)
            X, y = make_planted(60, 12, 3, effect=0.8, random_state=seed, return_X_y=True)
            if kind != "independent":
                X = X @ rng.normal(size=(12, 12))
            if "three" in kind:
                y = np.arange(60) % 3
                X += (1.5 * rng.normal(size=(3, 12)) * X.std(axis=0))[y]
            greedy = subset_gsvp(X, y, 2, tau=tau, **options)
            values = {}
            for pair in combinations(range(12), 2):
                factor = np.full(12, np.inf)
                factor[list(pair)] = 1.0
                both = subset_gsvp(X, y, 2, tau=greedy.tau, penalty_factor=factor, **options)
                values[pair] = both.quotients[-1]
            best = min(values, key=values.__getitem__)
            hits += set(best) == set(greedy.order.tolist())
            excess.append(greedy.quotients[-1] / values[best] - 1.0)
        result[kind] = {"tables": n_tables, "best": hits, "excess": float(max(excess))}
    return result


# --- tables --------------------------------------------------------------------------------


def mean_scores(sets: dict[str, Any], read: Callable[[Any], dict[str, float]]) -> dict[int, float]:
    """Mean over sets of the means over splits, by size."""
    result = {}
    for k in SIZES:
        means = [
            np.mean([read(split)[str(k)] for split in data["splits"]])
            for data in sets.values()
            if k in data["sizes"]
        ]
        if means:
            result[k] = float(np.mean(means))
    return result


def stability(
    sets: dict[str, Any], read: Callable[[Any], dict[str, list[int]]]
) -> dict[int, float]:
    """Nogueira's index of the panels of all splits, mean over sets, by size."""
    result = {}
    for k in SIZES:
        values = [
            nogueira_stability(
                [read(split)[str(k)] for split in data["splits"]], n_features=data["shape"][1]
            )
            for data in sets.values()
            if k < data["shape"][1] and k in data["sizes"]
        ]
        if values:
            result[k] = float(np.mean(values))
    return result


def row(name: str, scores: dict[int, float], form: str = ".3f") -> list[str]:
    return [name, *(format(scores[k], form) if k in scores else "" for k in SIZES)]


def equal_sizes(
    sets: dict[str, Any], names: Sequence[str]
) -> tuple[dict[str, dict[int, float]], list[str]]:
    """Mean accuracy of each method by size, and its tables."""
    header = ["", *map(str, SIZES)]
    scores = {m: mean_scores(sets, lambda s, m=m: s["methods"][m]["accuracy"]) for m in names}
    lead = {m: {k: scores[OURS][k] - scores[m][k] for k in scores[m]} for m in names if m != OURS}
    text = ["Balanced accuracy by the number of features:"]
    text.append(markdown(header, [row(m, scores[m]) for m in names]))
    if lead:
        worst = {k: min(values[k] for values in lead.values()) for k in scores[OURS]}
        text.append("Lead over each, and the smallest:")
        rows = [row(m, values, "+.3f") for m, values in lead.items()]
        text.append(markdown(header, [*rows, row("smallest", worst, "+.3f")]))
    return scores, text


def tables(results: dict[str, Any]) -> str:
    """All tables in Markdown, from the results alone."""
    header = ["", *map(str, SIZES)]
    text: list[str] = []
    groups = {
        "two classes": {n: d for n, d in results["sets"].items() if d["classes"] == 2},
        "more classes": {n: d for n, d in results["sets"].items() if d["classes"] > 2},
    }
    names = list(next(iter(results["sets"].values()))["splits"][0]["methods"])
    text += [f"## all {len(results['sets'])} sets", *equal_sizes(results["sets"], names)[1]]
    for group, sets in groups.items():
        if not sets:
            continue
        n_splits = len(next(iter(sets.values()))["splits"])
        text.append(f"## {group}: {', '.join(sets)} ({n_splits} splits)")
        scores, shown = equal_sizes(sets, names)
        text += shown
        text.append("Stability:")
        stable = {m: stability(sets, lambda s, m=m: s["methods"][m]["panels"]) for m in names}
        text.append(markdown(header, [row(m, stable[m], ".2f") for m in names]))
        text.append("CPU seconds for all sizes, sum over sets of the means, and as a ratio:")
        seconds = {
            m: sum(
                np.mean([s["methods"][m]["seconds"] for s in data["splits"]])
                for data in sets.values()
            )
            for m in names
        }
        text.append(
            markdown(
                ["", "seconds", "ratio"],
                [[m, f"{t:.2f}", f"{t / seconds[OURS]:.1f}"] for m, t in seconds.items()],
            )
        )
        text.append("Factor c of tau, accuracy (stability):")
        rows = []
        for c in next(iter(sets.values()))["splits"][0]["factors"]:
            accuracy = mean_scores(sets, lambda s, c=c: s["factors"][c]["accuracy"])
            agreed = stability(sets, lambda s, c=c: s["factors"][c]["panels"])
            cells = [f"{accuracy[k]:.3f} ({agreed.get(k, np.nan):.2f})" for k in accuracy]
            rows.append([c, *cells, *[""] * (len(SIZES) - len(cells))])
        text.append(markdown(header, rows))
        text.append("Strength C of the decision's ridge, decisions, and the judge, on one panel:")
        rows = [
            row(f"C = {C}", mean_scores(sets, lambda s, C=C: s["strengths"][C]))
            for C in map(str, STRENGTHS)
        ]
        rows += [row(d, mean_scores(sets, lambda s, d=d: s["decisions"][d])) for d in DECISIONS]
        text.append(markdown(header, [*rows, row("judge", scores[OURS])]))
        text.append("Rule for the size:")
        rows = []
        for rule in RULES:
            pick = {n: [s["rules"][rule] for s in data["splits"]] for n, data in sets.items()}
            accuracy = np.mean([np.mean([p["accuracy"] for p in ps]) for ps in pick.values()])
            size = {n: np.mean([p["size"] for p in ps]) for n, ps in pick.items()}
            wide = [v for n, v in size.items() if sets[n]["shape"][1] > sets[n]["shape"][0]]
            cells = [f"{accuracy:.3f}", f"{np.mean(list(size.values())):.1f}"]
            rows.append([rule, *cells, f"{np.mean(wide):.1f}" if wide else ""])
        text.append(markdown(["", "accuracy", "features", "on wide sets"], rows))
        text.append("By set, GSVPSVM with 3 and 10 features, and the search:")
        part = search_module._PART_PAIR if group == "two classes" else search_module._PART_MANY
        default = next(n for n, r in RULES.items() if r == (
            "paired", search_module._ERRORS, part))  # fmt: skip
        rows = []
        for n, data in sets.items():
            cells = [
                f"{np.mean([s['methods'][OURS]['accuracy'][k] for s in data['splits']]):.3f}"
                for k in ("3", "10")
            ]
            picked = [s["rules"][default] for s in data["splits"]]
            cells += [f"{np.mean([p[key] for p in picked]):.3f}" for key in ("accuracy", "size")]
            rows.append([n, *cells])
        text.append(markdown(["", "3", "10", "search", "its features"], rows))
    text.append("How often forward selection finds the best pair of 12 features:")
    rows = [
        [kind, f"{pairs['best']} of {pairs['tables']}", f"{pairs['excess']:.1%}"]
        for kind, pairs in results["pairs"].items()
    ]
    text.append(markdown(["features", "best pair", "largest excess of the criterion"], rows))
    return "\n\n".join(text)


def tiny_sets() -> dict[str, Table]:
    two = make_planted(60, 40, 4, effect=1.2, random_state=0, return_X_y=True)
    three = make_planted(90, 40, 6, effect=1.5, n_classes=3, random_state=1, return_X_y=True)
    return {"planted": two, "planted three": three}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=[*TWO, *MANY], choices=[*TWO, *MANY])
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--ours", action="store_true", help="no peers: the defaults alone")
    parser.add_argument("--tiny", action="store_true", help="made-up data, two splits")
    parser.add_argument("--rebuild", action="store_true", help="only print the tables again")
    options = parser.parse_args()
    name = "panels" + "-tiny" * options.tiny + "-ours" * options.ours
    if not options.rebuild:
        known = {k: v for k, v in methods().items() if k == OURS or not options.ours}
        if options.tiny:
            sets, options.splits = tiny_sets(), 2
        else:
            sets = {n: load(n) for n in options.sets}
        results: dict[str, Any] = {"sets": {}, "pairs": best_pairs(3 if options.tiny else 30)}
        warnings.simplefilter("ignore")
        for title, (X, y) in sets.items():
            start = time.process_time()
            X = np.asarray(X, dtype=np.float64)
            results["sets"][title] = run_set(X, y, options.splits, known)
            print(f"{title}: {time.process_time() - start:.0f} CPU seconds", flush=True)
            save(name, results)
    print(tables(json.loads((RESULTS / f"{name}.json").read_text())))


if __name__ == "__main__":
    main()
