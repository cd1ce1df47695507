"""Methods on the same folds: at equal sizes by `sparsegsvp.compare`, and each as it comes.

    python benchmarks/compare.py                      all methods and sets, hours
    python benchmarks/compare.py --sets colon khan
    python benchmarks/compare.py --paper              the paper's methods, on four sets: 20 minutes
    python benchmarks/compare.py --tiny               made-up data, seconds; also with --paper

At equal size each method gives exactly k features inside the training part of every fold, and one
classifier judges them; the own decision of a method on as many features stands beside it. As it
comes, a method chooses how many features it takes, and decides itself; a selector is followed by
the judge. The iteration of the paper, `PGDGSVPSVM`, has the printed settings on the paper's own
sets and its defaults elsewhere. Prints the tables, and the lead of `GSVPSVM` over the best other
method. Finished pieces are kept in artifacts/, so that a run that was stopped goes on; so are the
results, in compare.json or compare-paper.json.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from _common import MANY, RESULTS, TWO, load, markdown, save
from _peers import peers
from sparsegsvp import GSVPSVM, GSVPSVMCV, PGDGSVPSVM, compare, nested_evaluate, related
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import default_methods
from sparsegsvp.evaluation.compare import common_classifier
from sparsegsvp.reproduce.runs import STUDIES

OURS = "GSVPSVM"
PAPER = ("breast", "ovarian", "colon", "leukemia")
COLUMNS = ["balanced_accuracy", "low", "high", "roc_auc", "native", "stability", "seconds"]


def published(name: str) -> dict[str, Any]:
    """The iteration of the paper, l1 and lq, with the settings printed for a set."""
    if name not in STUDIES:
        return {"PGDGSVPSVM, l1": PGDGSVPSVM(), "PGDGSVPSVM, q = 0.1": PGDGSVPSVM(q=0.1)}
    study = STUDIES[name]
    return {f"PGDGSVPSVM, {key}": study.model(key, "paper") for key in study.methods}


def paper_methods(name: str) -> dict[str, Any]:
    """Ours, the iteration of the paper and every related method."""
    others = {key: getattr(related, key)() for key in related.__all__}
    return {OURS: GSVPSVM(), **published(name), **others}


def as_they_come(methods: dict[str, Any], X: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Each method with a panel of its own size and its own decision, on the same folds."""
    rows = []
    for name, method in methods.items():
        method = GSVPSVMCV() if name == OURS else method
        if not hasattr(method, "predict"):
            method = make_pipeline(method, common_classifier())
        start = time.process_time()
        row: dict[str, Any] = {"method": name, "error": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                options = {"n_repeats": 1, "n_permutations": 0, "n_pairs": 0, "sizes": ()}
                found = nested_evaluate(method, X, y, **options)
                score, sizes = found.scores["balanced_accuracy"], found.panel_sizes
                row |= {"balanced_accuracy": score.value, "low": score.low, "high": score.high}
                row |= {"size": float(np.median(sizes)), "sizes": list(sizes)}
            except Exception as error:  # a method that fails is a row that says so
                row["error"] = f"{type(error).__name__}: {error}"[:200]
        rows.append({**row, "seconds": time.process_time() - start})
    return rows


def report(name: str, table: Any, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Print balanced accuracy by method and size, and the lead of ours."""
    rows = []
    for method, part in table.groupby("method", sort=False):
        by_size = part.set_index("size").reindex(sizes)
        scores = zip(by_size["balanced_accuracy"], by_size["native"])
        rows.append([str(method), *(f"{a:.3f}" + f" ({b:.3f})" * (b == b) for a, b in scores)])
    print(f"\n## {name}, {shape[0]} x {shape[1]}: the judge (own decision)\n")
    print(markdown(["method", *map(str, sizes)], rows))
    ours, others = table[table["method"] == OURS], table[table["method"] != OURS]
    best = others.groupby("size")["balanced_accuracy"].max()
    lead = (ours.set_index("size")["balanced_accuracy"] - best).round(3)
    print(f"\n{OURS} minus the best other: {lead.to_dict()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    sets = options.sets or (PAPER if options.paper else [*TWO, *MANY])
    sizes: tuple[int, ...] = (2, 4, 8, 16, 32)
    if options.tiny:
        sizes, sets = (2, 4), ["planted"]
    RESULTS.mkdir(exist_ok=True)
    results: dict[str, Any] = {}
    for name in sets:
        tiny = make_planted(60, 40, 4, effect=1.5, random_state=0, return_X_y=True)
        X, y = tiny if options.tiny else load(name)
        methods = paper_methods(name) if options.paper else default_methods()
        if options.tiny:
            methods = {key: methods[key] for key in list(methods)[:4]}
        elif not options.paper:
            methods |= peers()[0]
        cache = None if options.tiny else RESULTS / f"compare-{name}.cache"
        table = compare(methods, X, y, sizes=sizes, n_repeats=1, cache=cache).table
        report(name, table, sizes, X.shape)
        results[name] = table[["method", "size", *COLUMNS]].to_dict("list")
        if options.paper:
            rows = as_they_come(methods, X, y)
            results[name] = {"equal": results[name], "native": rows}
            shown = [
                [r["method"], r["error"]] if r["error"] else
                [r["method"], f"{r['balanced_accuracy']:.3f} ({r['low']:.3f} to {r['high']:.3f})",
                 f"{r['size']:g}", f"{r['seconds'] / 5:.2f}"]
                for r in rows
            ]  # fmt: skip
            print("\nAs they come:\n")
            print(markdown(["method", "balanced accuracy", "features", "seconds a fit"], shown))
        key = "compare-paper" if options.paper else "compare"
        save(f"{key}-tiny" if options.tiny else key, {"sets": results})


if __name__ == "__main__":
    main()
