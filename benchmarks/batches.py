"""Does a correction for batches help on a batch that was not seen?

    python benchmarks/batches.py                      30 replicates of each set
    python benchmarks/batches.py --sets colon --replicates 10
    python benchmarks/batches.py --tiny               made-up data, seconds

Samples are dealt to five batches, which are shifted along two common random directions, every
feature by 1.2 of its standard deviations in the root mean square; the fifth batch is kept out.
"even": classes are even in the batches. "tied": 4 to 1, 3 to 2, 2 to 3 and 1 to 4 in those that
are learned from, even in the unseen one.

Everything is done with the training batches alone: the 300 features with the largest F statistic,
then 10 by `GSVPSVM` from the moments of the classes.

- none: no correction.
- centred: the mean of each batch is subtracted, and the grand mean added. The unseen batch is left
  as it is, or (own mean) centred by the mean of its own samples, which a single sample has not;
  "4 to 1": of the first class in the unseen batch only every fourth sample is there.
- centred within classes: the mean deviation of a batch from the class means is subtracted.
- blind b: b times the covariance of the batch means within the classes is added to the covariance
  of both classes, so that directions along which batches differ count as spread.

Balanced accuracy on the unseen batch, and the area under the ROC curve with which the training
batches are told from the panel within the classes (before any correction of the values).
Writes benchmarks/results/batches.json.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.feature_selection import f_classif

from _common import load, save
from sparsegsvp import GSVPSVM, ClassMoments
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation.scores import mean_class_recall
from sparsegsvp.metrics.batches import batch_from_panel

SETS = ("planted", "colon", "leukemia", "prostate")
SHIFT, N_BATCHES, FILTERED, PANEL = 1.2, 5, 300, 10
SHARES = np.array([0.8, 0.6, 0.4, 0.2])  # of the second class in a tied training batch
BLIND = (0.3, 1.0, 3.0, 10.0)
UNSEEN = N_BATCHES - 1


def deal(y: np.ndarray, tied: bool, rng: np.random.Generator) -> np.ndarray:
    """Return the batch of each sample; a fifth of each class is in the unseen one."""
    batch = np.empty(len(y), dtype=int)
    for k in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == k))
        n_unseen = round(len(rows) / N_BATCHES)
        share = (SHARES if k else 1 - SHARES) if tied else np.ones(4)
        ends = np.round(np.cumsum(share / share.sum()) * (len(rows) - n_unseen)).astype(int)
        batch[rows[:n_unseen]] = UNSEEN
        for b, part in enumerate(np.split(rows[n_unseen:], ends[:-1])):
            batch[part] = b
    return batch


def shifted(X: np.ndarray, batch: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move every batch along two directions that all batches share."""
    directions = rng.normal(size=(2, X.shape[1])) * X.std(axis=0)
    amounts = rng.normal(size=(N_BATCHES, 2)) * SHIFT / np.sqrt(2)
    return X + (amounts @ directions)[batch]


def deviations(
    X: np.ndarray, y: np.ndarray, batch: np.ndarray
) -> list[list[tuple[np.ndarray, float]]]:
    """Of each class: how far each batch's mean is from the class mean, and the batch's share."""
    found = []
    for k in (0, 1):
        rows, own = X[y == k], batch[y == k]
        mean = rows.mean(axis=0)
        found.append(
            [(rows[own == b].mean(axis=0) - mean, np.mean(own == b)) for b in np.unique(own)]
        )
    return found


def between(X: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Pooled covariance of the batch means within the classes."""
    share = [np.mean(y == k) for k in (0, 1)]
    return sum(
        p * weight * np.multiply.outer(d, d)
        for p, of_class in zip(share, deviations(X, y, batch))
        for d, weight in of_class
    )


def centred(X: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Subtract the mean of each batch, and add the grand mean."""
    out = X + X.mean(axis=0)
    for b in np.unique(batch):
        out[batch == b] -= X[batch == b].mean(axis=0)
    return out


def centred_within(X: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Subtract what a batch's means within the classes have in common."""
    out = X.copy()
    means = np.stack([X[y == k].mean(axis=0) for k in (0, 1)])
    for b in np.unique(batch):
        here = batch == b
        out[here] -= (X[here] - means[y[here]]).mean(axis=0)
    return out


def fit(X: np.ndarray, y: np.ndarray, added: np.ndarray | float = 0.0) -> GSVPSVM:
    """Fit from moments, with something added to the covariance of both classes."""
    moments = ClassMoments.from_data(X, y)
    scatters = moments.scatters + moments.weights[:, None, None] * added
    model = GSVPSVM(tau=1.0, pool=0.5, n_features=PANEL, decision="scaled")
    return model.fit_moments(replace(moments, scatters=scatters))


def one(X: np.ndarray, y: np.ndarray, tied: bool, seed: int) -> dict[str, tuple[float, float]]:
    """Accuracy on the unseen batch and area of the training batches, of every way."""
    rng = np.random.default_rng(seed)
    batch = deal(y, tied, rng)
    X = shifted(X, batch, rng)
    train = batch != UNSEEN
    labels, known = y[train], batch[train]
    kept = np.argsort(-np.nan_to_num(f_classif(X[train], labels)[0]), kind="stable")[:FILTERED]
    rows, others, truth = X[np.ix_(train, kept)], X[np.ix_(~train, kept)], y[~train]
    every = np.arange(len(truth))
    fewer = np.sort(np.r_[np.flatnonzero(truth == 0)[::4], np.flatnonzero(truth == 1)])

    def by_own_mean(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return others[part] - others[part].mean(axis=0) + rows.mean(axis=0), truth[part]

    as_is = others, truth
    within = centred_within(rows, labels, known)
    middle = fit(centred(rows, known), labels)
    models = {
        "none": (fit(rows, labels), as_is),
        "centred": (middle, as_is),
        "centred within classes": (fit(within, labels), as_is),
        "centred, own mean": (middle, by_own_mean(every)),
        "centred, own mean, 4 to 1": (middle, by_own_mean(fewer)),
    }
    B = between(rows, labels, known)
    models |= {f"blind {b:g}": (fit(rows, labels, b * B), as_is) for b in BLIND}
    found = {}
    for name, (model, (unseen, labels_there)) in models.items():
        panel = np.flatnonzero(model.get_support())
        units = np.arange(len(labels))
        told = batch_from_panel(rows, labels, known, units, [panel], seed, n_draws=0)
        assert told is not None
        found[name] = mean_class_recall(labels_there, model.predict(unseen)), told.auc
    return found


def run(X: np.ndarray, y: np.ndarray, tied: bool, replicates: int) -> dict[str, dict[str, float]]:
    """Means over replicates, and the paired gain over no correction with its standard error."""
    drawn = [one(X, y, tied, seed) for seed in range(replicates)]
    out = {}
    for name in drawn[0]:
        scores, areas = np.array([d[name] for d in drawn]).T
        gain = scores - [d["none"][0] for d in drawn]
        out[name] = {
            "accuracy": scores.mean(),
            "gain": gain.mean(),
            "error": gain.std(ddof=1) / np.sqrt(replicates),
            "batch AUC": areas.mean(),
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--replicates", type=int, default=30)
    parser.add_argument("--tiny", action="store_true", help="made-up data")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    results: dict[str, Any] = {}
    print("| set | classes | correction | accuracy, unseen batch | gain | batch AUC of the panel |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in ["planted"] if args.tiny else args.sets:
        if name == "planted":
            shape = (80, 60, 5) if args.tiny else (120, 1000, 10)
            data = make_planted(*shape, effect=1.2, random_state=0)
            X, y = data.X, data.y
        else:
            X, y = load(name)
        X = X.astype(np.float64)
        for tied in (False, True):
            rows = run(X, y, tied, 3 if args.tiny else args.replicates)
            case = "tied" if tied else "even"
            results[f"{name}, {case}"] = rows
            for way, row in rows.items():
                print(
                    f"| {name} | {case} | {way} | {row['accuracy']:.3f} "
                    f"| {row['gain']:+.3f} ± {row['error']:.3f} | {row['batch AUC']:.2f} |",
                    flush=True,
                )
    print(f"written to {save('batches-tiny' if args.tiny else 'batches', results)}")


if __name__ == "__main__":
    main()
