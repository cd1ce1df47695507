"""The paper's method and everything it builds on: at equal sizes, and as each would have it.

    python benchmarks/compare.py                      breast, colon, ovarian
    python benchmarks/compare.py --sets colon
    python benchmarks/compare.py --tiny               made-up data, seconds

At equal sizes each gives exactly k features and one classifier judges them, by
`sparsegsvp.compare`. "Native" leaves the number of features and the decision to the method (for
`GSVPSVM` to `GSVPSVMCV`), on other folds. Finished pieces are kept in artifacts/.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from _common import RESULTS, load, made_with, markdown, save
from sparsegsvp import GSVPSVM, GSVPSVMCV, PGDGSVPSVM, LqGSVPSVM, compare, related
from sparsegsvp.datasets import make_planted
from sparsegsvp.reproduce.runs import STUDIES

SIZES = (2, 4, 8, 16)


class RankedPGD(PGDGSVPSVM):
    """The paper's method with an order of features: the largest share in a plane's weights."""

    order_ignores_size = True  # one fit serves all sizes

    @property
    def feature_order_(self) -> np.ndarray:
        shares = np.abs(self.weights_) / np.abs(self.weights_).max(axis=1, keepdims=True)
        return np.argsort(-shares.max(axis=0), kind="stable")


def methods(name: str, max_iter: int) -> dict[str, object]:
    """GSVPSVM, the paper's method with its published settings, and the related methods."""
    study = STUDIES["breast" if name == "breast" else "ovarian"]
    paper = {key: study.model(key, max_iter=max_iter).get_params() for key in study.methods}
    return {
        "GSVPSVM": GSVPSVM(),
        "LqGSVPSVM": LqGSVPSVM(),
        **{f"PGDGSVPSVM, {key}": RankedPGD(**settings) for key, settings in paper.items()},
        **{key: getattr(related, key)() for key in related.__all__},
    }


def native(method: object, X: np.ndarray, y: np.ndarray, folds: int) -> tuple[str, str, float]:
    """Balanced accuracy by the method's own decision, its features, and CPU seconds of a fit."""
    scores, sizes, start = [], [], time.process_time()
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y):
        model = clone(method).fit(X[train], y[train])
        sizes.append(int(model.get_support().sum()))
        if hasattr(model, "predict"):
            scores.append(balanced_accuracy_score(y[test], model.predict(X[test])))
    seconds = (time.process_time() - start) / folds
    shown = f"{np.median(sizes):g} ({min(sizes)}–{max(sizes)})"
    return f"{np.mean(scores):.3f}" if scores else "selects only", shown, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["breast", "colon", "ovarian"])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--max-iter", type=int, default=10_000, help="of the paper's method")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    results = {}
    for name in ["planted"] if options.tiny else options.sets:
        tiny = make_planted(40, 30, 4, effect=1.5, random_state=0, return_X_y=True)
        X, y = tiny if options.tiny else load(name)
        chosen = methods(name, 50 if options.tiny else options.max_iter)
        if options.tiny:
            chosen = {key: chosen[key] for key in list(chosen)[:5]}
        cache = None if options.tiny else RESULTS / f"compare-{name}.cache"
        how = {"n_splits": options.folds, "n_repeats": 1, "cache": cache}
        table = compare(chosen, X, y, sizes=SIZES, **how).table
        rows = {}
        for method, part in table.groupby("method", sort=False):
            scores = part.set_index("size")["balanced_accuracy"]
            rows[str(method)] = [f"{scores.get(k, np.nan):.3f}" for k in SIZES]
        for key, method in chosen.items():
            own = GSVPSVMCV() if key == "GSVPSVM" else method
            score, size, seconds = native(own, X, y, options.folds)
            rows[key] += [score, size, f"{seconds:.2f}"]
        results[name] = rows
        made = ", ".join(f"{key} {value}" for key, value in made_with().items())
        print(f"\n## {name}, {X.shape[0]} x {X.shape[1]}\n\n{options.folds} folds; {made}.\n")
        header = ["method", *map(str, SIZES), "native", "its features", "CPU s a fit"]
        width = len(header) - 1
        shown = [[key, *row, *[""] * (width - len(row))] for key, row in rows.items()]
        print(markdown(header, shown), flush=True)
    save("compare-tiny" if options.tiny else "compare", results)


if __name__ == "__main__":
    main()
