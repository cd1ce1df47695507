"""All methods at equal sizes on the same folds, by `sparsegsvp.compare`.

    python benchmarks/compare.py                      all sets, hours
    python benchmarks/compare.py --sets colon khan
    python benchmarks/compare.py --tiny               made-up data, seconds

Each method gives exactly k features inside the training part of every fold; one classifier judges
them. Prints balanced accuracy by method and size, and the lead of `GSVPSVM` over the best other
method. Finished pieces are kept in artifacts/, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse

from _common import MANY, RESULTS, TWO, load, markdown, save
from _peers import peers
from sparsegsvp import compare
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import default_methods

OURS = "GSVPSVM"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*TWO, *MANY])
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    methods = {**default_methods(), **({} if options.tiny else peers()[0])}
    sizes: tuple[int, ...] = (2, 4, 8, 16, 32)
    sets = options.sets
    if options.tiny:
        methods, sizes, sets = {k: methods[k] for k in list(methods)[:4]}, (2, 4), ["planted"]
    RESULTS.mkdir(exist_ok=True)
    results = {}
    for name in sets:
        tiny = make_planted(60, 40, 4, effect=1.5, random_state=0, return_X_y=True)
        X, y = tiny if options.tiny else load(name)
        cache = None if options.tiny else RESULTS / f"compare-{name}.cache"
        table = compare(methods, X, y, sizes=sizes, n_repeats=1, cache=cache).table
        rows = []
        for method, part in table.groupby("method", sort=False):
            scores = part.set_index("size")["balanced_accuracy"]
            rows.append([str(method), *(f"{scores.get(k, float('nan')):.3f}" for k in sizes)])
        print(f"\n## {name}, {X.shape[0]} x {X.shape[1]}\n")
        print(markdown(["method", *map(str, sizes)], rows))
        ours, others = table[table["method"] == OURS], table[table["method"] != OURS]
        best = others.groupby("size")["balanced_accuracy"].max()
        lead = (ours.set_index("size")["balanced_accuracy"] - best).round(3)
        print(f"\n{OURS} minus the best other: {lead.to_dict()}", flush=True)
        results[name] = table[["method", "size", "balanced_accuracy", "stability"]].to_dict("list")
    save("compare-tiny" if options.tiny else "compare", {"sets": results})


if __name__ == "__main__":
    main()
