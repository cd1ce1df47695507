"""What the intervals cover, and the size and power of the permutation test.

    python benchmarks/coverage.py                        1,000 replicates a cell, a stand-in
    python benchmarks/coverage.py --procedure real       100 replicates a cell, GSVPSVMCV()
    python benchmarks/coverage.py --cells 60-even-weak   some cells only; 60 takes all of that size
    python benchmarks/coverage.py --delong               areas of an independent cohort, a minute
    python benchmarks/coverage.py --tiny                 one cell, seconds

A cell is a number of samples, a balance of the classes and a strength of the signal: 200
independent normal features, 10 of which (if any) are shifted between the classes. The stand-in
keeps the 10 features with the largest t and is a diagonal discriminant on them; all its fits,
25 a replicate, are products of matrices. Its true scores are known exactly from its weights, so
the truth of a cell is the mean of them over all fits: what the procedure reaches on new samples.

The real procedure is `GSVPSVMCV` at its defaults in 5 outer folds, one repeat of them, on the cells
of no, weak and strong signal. It takes hours: finished replicates are kept in a log beside the
results, from which the next run goes on; all cells advance together, so that any run can be ended
(Ctrl-C, or --minutes) and says what it has. Its permutation test has 19 draws, the fewest that can
decide; --draws 0 leaves it out.

An independent cohort has one area and DeLong's variance of it: --delong draws two classes from
normal distributions whose distance gives the true area, and compares `delong_interval` with the
usual area plus and minus 1.96 standard errors, and with the same on the logit scale.

For each cell: the share of replicates whose interval holds the truth, by score; how wide the
intervals are; how often the permutation test gives p <= 0.05, and after how many draws. Cells
below the goal are printed. Writes benchmarks/results/coverage.json (of the real procedure:
coverage-real.json), and the tables in docs/intervals.md when all cells were run.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from _common import RESULTS, save
from sparsegsvp import GSVPSVMCV, nested_evaluate
from sparsegsvp._parallel import Task
from sparsegsvp._versions import versions
from sparsegsvp.evaluation import auc_interval, corrected_interval, make_folds, rate_interval
from sparsegsvp.evaluation.folds import holdout_ratio
from sparsegsvp.evaluation.journal import Journal, run_logged
from sparsegsvp.evaluation.panels import describe
from sparsegsvp.evaluation.permutation import FEWEST_DRAWS, draws_wanted, sequential_p_value
from sparsegsvp.metrics import delong_interval, delong_variance

GOAL = 0.93
SCORES = ("balanced_accuracy", "auc", "sensitivity", "specificity")
# what Nadeau and Bengio's correction alone would cover
ALONE = ("balanced_accuracy alone", "auc alone")
FEATURES, INFORMATIVE, SELECTED, FOLDS, REPEATS = 200, 10, 10, 5, 5
FIRST, MOST = 99, 999
SAMPLES, BALANCES = (30, 60, 160), ("even", "3to1")
# shifts in standard deviations; smaller ones serve where more samples find the features
SHIFTS = {
    "none": (0.0, 0.0, 0.0),
    "weak": (0.75, 0.6, 0.45),
    "strong": (1.3, 1.1, 0.9),
    "perfect": (1.75, 1.45, 1.25),
}
DOCS = Path(__file__).parents[1] / "docs" / "intervals.md"


@dataclass(frozen=True)
class Cell:
    """Samples, balance and signal of a simulation."""

    n_samples: int
    balance: str
    signal: str

    @property
    def name(self) -> str:
        return f"{self.n_samples}-{self.balance}-{self.signal}"

    @property
    def y(self) -> np.ndarray:
        """True for the positives, a half or a quarter of the samples."""
        positives = self.n_samples // (2 if self.balance == "even" else 4)
        return np.arange(self.n_samples) < positives

    @property
    def shift(self) -> np.ndarray:
        """Difference of the class means, by feature."""
        size = SHIFTS[self.signal][SAMPLES.index(self.n_samples)]
        return np.where(np.arange(FEATURES) < INFORMATIVE, size, 0.0)

    def draw(self, rng: np.random.Generator, y: np.ndarray, *shape: int) -> np.ndarray:
        X = rng.normal(size=(*shape, y.size, FEATURES))
        X[..., y, :] += self.shift
        return X


CELLS = [Cell(*cell) for cell in itertools.product(SAMPLES, BALANCES, SHIFTS)]
REAL_CELLS = [cell for cell in CELLS if cell.signal != "perfect"]


def fit(X: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (..., J, m) and biases (..., J) of J stand-ins.

    X is (..., n, m); the masks (J, n) mark each one's training samples of the two classes.
    """
    a, b = positive.sum(axis=1)[:, None], negative.sum(axis=1)[:, None]
    squares = X * X
    mean_a, mean_b = positive @ X / a, negative @ X / b
    spread_a = positive @ squares - a * mean_a**2
    spread_b = negative @ squares - b * mean_b**2
    variance = (spread_a + spread_b) / (a + b - 2)
    difference = mean_a - mean_b
    t = np.abs(difference) / np.sqrt(variance)
    least = np.partition(t, FEATURES - SELECTED, axis=-1)[..., [FEATURES - SELECTED]]
    weights = np.where(t >= least, difference / variance, 0.0)
    return weights, -np.sum(weights * (mean_a + mean_b) / 2, axis=-1)


# ---------------------------------------------------------------------------------- intervals


def stand_in(cell: Cell, replicates: int, seed: int) -> dict[str, Any]:
    """Truth, and low and high end of every interval, by score."""
    y, rng = cell.y, np.random.default_rng(seed)
    folds = make_folds(y.astype(int), n_splits=FOLDS, n_repeats=REPEATS)
    train = np.zeros((len(folds), y.size))
    for row, fold in zip(train, folds):
        row[fold.train] = 1
    truths: dict[str, list[np.ndarray]] = {name: [] for name in SCORES}
    ends: dict[str, list[tuple[float, float]]] = {name: [] for name in SCORES + ALONE}
    for start in range(0, replicates, 50):
        X = cell.draw(rng, y, min(50, replicates - start))
        weights, biases = fit(X, train * y, train * ~y)
        length = np.linalg.norm(weights, axis=-1)
        pull = weights @ cell.shift
        a, b = norm.cdf((pull + biases) / length), norm.cdf(-biases / length)
        true = ((a + b) / 2, norm.cdf(pull / length / np.sqrt(2)), a, b)
        for name, values in zip(SCORES, true):
            truths[name].append(values)
        decisions = weights @ np.swapaxes(X, -1, -2) + biases[..., None]
        for name, found in _intervals(decisions, y, folds).items():
            ends[name] += found
    return {
        "truth": {name: float(np.concatenate(truths[name]).mean()) for name in SCORES},
        "ends": {name: np.array(found) for name, found in ends.items()},
    }


def _intervals(
    decisions: np.ndarray, y: np.ndarray, folds: list[Any]
) -> dict[str, list[tuple[float, float]]]:
    """The package's intervals of decisions (replicates, J, n), as `nested_evaluate` has them."""
    shape = decisions.shape[:2]
    right = np.zeros((2, *shape))  # positives and negatives that are called so
    total = np.zeros((2, len(folds)))
    areas, variances = np.zeros(shape), np.full(shape, np.nan)
    for j, fold in enumerate(folds):
        p, q = (decisions[:, j, fold.test[y[fold.test] == k]] for k in (True, False))
        right[:, :, j] = (p > 0).sum(axis=1), (q <= 0).sum(axis=1)
        total[:, j] = p.shape[1], q.shape[1]
        above = p[:, :, None] > q[:, None, :]
        areas[:, j] = above.mean(axis=(1, 2))
        if min(p.shape[1], q.shape[1]) > 1:  # DeLong
            parts = above.mean(axis=2), above.mean(axis=1)
            variances[:, j] = sum(part.var(axis=1, ddof=1) / part.shape[1] for part in parts)
    rates = right / total[:, None]
    counts = right.sum(axis=2) / REPEATS, total.sum(axis=1) / REPEATS
    ratio, ends = holdout_ratio(folds), {name: [] for name in SCORES + ALONE}
    for i in range(shape[0]):
        pairs = [(float(counts[0][k, i]), float(counts[1][k])) for k in (0, 1)]
        pooled = [x / n for x, n in pairs]
        smallest = min(n for _, n in pairs)
        found = {
            "balanced_accuracy": rate_interval(
                rates[:, i].mean(axis=0), ratio, pairs, value=sum(pooled) / 2
            ),
            "sensitivity": rate_interval(rates[0, i], ratio, pairs[:1], value=pooled[0]),
            "specificity": rate_interval(rates[1, i], ratio, pairs[1:], value=pooled[1]),
            "auc": auc_interval(areas[i], ratio, variances[i], FOLDS, smallest),
            "balanced_accuracy alone": corrected_interval(rates[:, i].mean(axis=0), ratio),
            "auc alone": corrected_interval(areas[i], ratio),
        }
        for name, interval in found.items():
            ends[name].append((interval.low, interval.high))
    return ends


# --------------------------------------------------------------------------- permutation test


def statistics(X: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Balanced accuracy over one repeat of folds, stratified anew, for each row of labels."""
    draws, n = labels.shape
    positives = int(labels[0].sum())
    # sorted by class, at random within it; dealt to the folds in turn
    order = np.argsort(labels + rng.random((draws, n)) / 2, axis=1)
    fold = np.empty((draws, n), dtype=int)
    deal = np.concatenate([np.arange(n - positives) % FOLDS, np.arange(positives) % FOLDS])
    np.put_along_axis(fold, order, np.broadcast_to(deal, (draws, n)), axis=1)
    test = fold[:, None, :] == np.arange(FOLDS)[:, None]
    truth = np.broadcast_to(labels[:, None, :], test.shape)
    masks = [(~test & truth), (~test & ~truth), (test & truth), (test & ~truth)]
    train_p, train_n, test_p, test_n = (m.reshape(-1, n).astype(float) for m in masks)
    weights, biases = fit(X, train_p, train_n)
    says = weights @ X.T + biases[:, None] > 0
    a = (says * test_p).sum(axis=1) / test_p.sum(axis=1)
    b = (~says * test_n).sum(axis=1) / test_n.sum(axis=1)
    return ((a + b) / 2).reshape(draws, FOLDS).mean(axis=1)


def permutation_p_value(
    X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[float, int]:
    """The package's p-value for the stand-in's statistic, and the number of draws."""
    observed = statistics(X, y[None], rng)[0]
    exceeds: list[bool] = []
    wanted = FIRST
    while len(exceeds) < wanted:
        # enough to stop on noise, then the rest of the first batch, then larger parts
        part = min(wanted - len(exceeds), 20 if not exceeds else 225)
        labels = rng.permuted(np.broadcast_to(y, (part, y.size)), axis=1)
        for value in statistics(X, labels, rng):
            exceeds.append(bool(value >= observed - 1e-12))
            wanted = draws_wanted(exceeds, FIRST, MOST)
            if len(exceeds) >= wanted:
                break
    p_value, draws, _ = sequential_p_value(exceeds)
    return p_value, draws


# ------------------------------------------------------------------- an independent cohort

COHORTS = ((10, 10), (20, 20), (50, 50), (100, 100), (10, 30), (25, 75), (20, 180))
AREAS = (0.5, 0.7, 0.85, 0.95, 0.99)


def delong(positives: int, negatives: int, area: float, replicates: int, seed: int) -> dict:
    """Coverage and width of three intervals of an area, all with DeLong's variance."""
    rng = np.random.default_rng([seed, positives, negatives, round(1000 * area)])
    y = np.arange(positives + negatives) < positives
    shift = np.sqrt(2) * norm.ppf(area)
    ends: dict[str, list[tuple[float, float]]] = {"delong": [], "wald": [], "logit": []}
    for _ in range(replicates):
        score = rng.normal(size=y.size) + shift * y
        found = delong_interval(y, score)
        a, half = found.value, 1.96 * np.sqrt(delong_variance(y, score))
        ends["delong"].append((found.low, found.high))
        ends["wald"].append((a - half, a + half))
        inner = min(max(a, 1e-12), 1 - 1e-12)
        middle, reach = np.log(inner / (1 - inner)), half / (inner * (1 - inner))
        logit = 1 / (1 + np.exp(-np.array([middle - reach, middle + reach])))
        ends["logit"].append((float(logit[0]), float(logit[1])))
    result: dict[str, Any] = {
        "positives": positives,
        "negatives": negatives,
        "area": area,
        "replicates": replicates,
        "coverage": {},
        "width": {},
    }
    for name, found in ends.items():
        low, high = np.array(found).T
        result["coverage"][name] = float(np.mean((low <= area) & (area <= high)))
        result["width"][name] = float(np.mean(np.minimum(high, 1) - np.maximum(low, 0)))
    return result


def delong_table(results: list[dict[str, Any]]) -> str:
    """Coverage (mean width) of the three intervals as Markdown."""
    lines = [
        "| positives + negatives | true AUC | `delong_interval` | ± 1.96 SE | logit ± 1.96 SE |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in results:
        parts = []
        for name, coverage in row["coverage"].items():
            mark = "**" if coverage < GOAL else ""
            parts.append(f"{mark}{coverage:.3f}{mark} ({row['width'][name]:.2f})")
        lines.append(
            f"| {row['positives']} + {row['negatives']} | {row['area']} | {' | '.join(parts)} |"
        )
    return "\n".join(lines)


def run_delong(replicates: int, seed: int, *, tiny: bool) -> None:
    """Run the cells of independent cohorts, print their table and put it into the docs."""
    cells = [(10, 10, 0.85)] if tiny else [(*n, area) for n in COHORTS for area in AREAS]
    results = [delong(*cell, replicates, seed) for cell in cells]
    text = delong_table(results)
    print(text)
    if tiny:
        return
    print("written:", save("coverage-delong", {"seed": seed, "cells": results}))
    below = [
        f"{r['positives']} + {r['negatives']} at {r['area']}: {r['coverage']['delong']:.3f}"
        for r in results
        if r["coverage"]["delong"] < GOAL
    ]
    said = f"{replicates:,} replicates a cell. Below the goal of {GOAL}: "
    put_between(DOCS, "coverage delong", f"{text}\n\n{said}{'; '.join(below) or 'no cell'}.")
    print("written:", DOCS)


# ---------------------------------------------------------------------------- real procedure


def replicate(_: None, cell: Cell, number: int, seed: int, repeats: int, draws: int) -> dict:
    """True scores and intervals of `GSVPSVMCV` on one table of a cell, evaluated as a user would.

    The true scores are those of a fit on four fifths of the table, on 2,000 new samples.
    """
    rng = np.random.default_rng([seed, CELLS.index(cell), number])
    y, new_y = cell.y, np.arange(2000) < 1000
    X, new_X = cell.draw(rng, y), cell.draw(rng, new_y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = nested_evaluate(
            GSVPSVMCV(),
            X,
            y,
            n_repeats=repeats,
            random_state=number,
            n_permutations=draws,
            max_permutations=0,
            final_fit=False,
            n_random_panels=0,
        )
        train = make_folds(y.astype(int), n_splits=FOLDS, random_state=number)[0].train
        model = GSVPSVMCV().fit(X[train], y[train])
        says, decision = model.predict(new_X), model.decision_function(new_X)
    a, b = float(np.mean(says[new_y])), float(np.mean(~says[~new_y]))
    true = ((a + b) / 2, float(roc_auc_score(new_y, decision)), a, b)
    test = found.permutation
    return {
        "truth": dict(zip(SCORES, true)),
        "ends": {name: [found.scores[name].low, found.scores[name].high] for name in SCORES},
        "test": None if test is None else [test.p_value, len(test.distribution)],
    }


class Enough(Exception):
    """The time that was given is over."""


class Clock:
    """Says how far a run is and when it will be done; ends it when its time is over."""

    def __init__(self, minutes: float | None) -> None:
        self.start, self.limit = time.monotonic(), minutes
        self.first: int | None = None
        self.said = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        gone = (time.monotonic() - self.start) / 60
        if self.first is None:
            self.first = done  # what an earlier run has done took no time of this one
        new = done - self.first
        if new <= 1 or done == total or gone - self.said >= 0.5:
            self.said = gone
            left = f", about {gone / new * (total - done):.0f} min to go" if new else ""
            print(f"{stage}: {done} of {total}, {gone:.1f} min{left}", file=sys.stderr, flush=True)
        if self.limit is not None and gone >= self.limit and done < total:
            raise Enough


def real(
    cells: Sequence[Cell],
    replicates: int,
    seed: int,
    *,
    repeats: int = 1,
    draws: int = FEWEST_DRAWS,
    log: Path | None = None,
    n_jobs: int = 1,
    minutes: float | None = None,
) -> list[dict[str, Any]]:
    """The results of each cell of which at least one replicate is finished."""
    header = {
        "kind": "coverage",
        "procedure": describe(GSVPSVMCV()),
        "cells": [FEATURES, INFORMATIVE, SHIFTS],
        "seed": seed,
        "repeats": repeats,
        "draws": draws,
        "versions": versions(),
    }
    tasks = [
        Task((cell.name, i), replicate, (cell, i, seed, repeats, draws))
        for i in range(replicates)
        for cell in cells
    ]
    with Journal(log, header, resume=log is not None and log.exists()) as journal:
        try:
            clock = Clock(minutes)
            run_logged(tasks, None, journal, stage="replicates", progress=clock, n_jobs=n_jobs)
        except (Enough, KeyboardInterrupt):
            print("ended early; the same command goes on from here", file=sys.stderr)
        else:
            journal.finish(keep_others=True)
        records = dict(journal.records)
    results = []
    for cell in cells:
        keys = [(cell.name, i) for i in range(replicates) if (cell.name, i) in records]
        if keys:
            results.append(summary(cell, gathered([records[key] for key in keys])))
    return results


def gathered(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Replicates of a cell in the form that the stand-in's have."""
    tests = [record["test"] for record in records if record["test"] is not None]
    p_values, draws = np.array(tests).T if tests else (np.array([np.nan]), np.array([0]))
    return {
        "truth": {k: float(np.mean([r["truth"][k] for r in records])) for k in SCORES},
        "ends": {k: np.array([r["ends"][k] for r in records]) for k in SCORES},
        "p_values": p_values,
        "draws": draws,
    }


# ------------------------------------------------------------------------------------- report


def cheap(cell: Cell, replicates: int, seed: int) -> dict[str, Any]:
    """The results of a cell with the stand-in."""
    found = stand_in(cell, replicates, seed)
    rng = np.random.default_rng(seed + 1)
    tests = [permutation_p_value(cell.draw(rng, cell.y), cell.y, rng) for _ in range(replicates)]
    found["p_values"], found["draws"] = np.array(tests).T
    return summary(cell, found)


def summary(cell: Cell, found: dict[str, Any]) -> dict[str, Any]:
    """Coverage and width of the intervals of a cell, and how its permutation tests ended."""
    tested = not np.isnan(found["p_values"]).any()
    result: dict[str, Any] = {
        "cell": cell.name,
        "replicates": len(found["ends"]["auc"]),
        "truth": found["truth"],
        "coverage": {},
        "width": {},
        "rejected": float(np.mean(found["p_values"] <= 0.05)) if tested else None,
        "draws": float(np.mean(found["draws"])),
    }
    for name, ends in found["ends"].items():
        low, high = ends.T
        truth = found["truth"][name.removesuffix(" alone")]
        result["coverage"][name] = float(np.mean((low <= truth) & (truth <= high)))
        result["width"][name] = float(np.mean(high - low))
    return result


def table(results: list[dict[str, Any]]) -> str:
    """The results as Markdown: coverage, with the mean width; then the test."""
    lines = [
        "| samples, balance, signal | true BA | true AUC | balanced accuracy | AUC | sensitivity "
        "| specificity | p ≤ 0.05 | draws |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in results:
        parts = [
            f"{'**' if row['coverage'][k] < GOAL else ''}{row['coverage'][k]:.3f}"
            f"{'**' if row['coverage'][k] < GOAL else ''} ({row['width'][k]:.2f})"
            for k in SCORES
        ]
        n, balance, signal = row["cell"].split("-")
        rejected = "not tested" if row["rejected"] is None else f"{row['rejected']:.3f}"
        lines.append(
            f"| {n}, {balance.replace('to', ' to ')}, {signal} "
            f"| {row['truth']['balanced_accuracy']:.3f} | {row['truth']['auc']:.4f} "
            f"| {' | '.join(parts)} | {rejected} | {row['draws']:.0f} |"
        )
    return "\n".join(lines)


def misses(results: list[dict[str, Any]]) -> list[str]:
    """The cells and scores below the goal."""
    return [
        f"{row['cell']} {name}: {row['coverage'][name]:.3f}"
        for row in results
        for name in SCORES
        if row["coverage"][name] < GOAL
    ]


def write_docs(results: list[dict[str, Any]], path: Path = DOCS, *, mark: str = "coverage") -> None:
    """Put the table between the marks of the page."""
    fewest = min(row["replicates"] for row in results)
    said = (
        f"{fewest:,} replicates a cell. "
        f"Below the goal of {GOAL}: {'; '.join(misses(results)) or 'no cell'}."
    )
    if all(name in row["coverage"] for row in results for name in ALONE):
        alone = [[row["coverage"][name] for row in results] for name in ALONE]
        spans = [f"{min(values):.2f} to {max(values):.2f}" for values in alone]
        said += (
            f" Nadeau and Bengio's interval alone covers {spans[0]} (balanced accuracy) and "
            f"{spans[1]} (AUC) in these cells."
        )
    put_between(path, mark, f"{table(results)}\n\n{said}")


def put_between(path: Path, mark: str, text: str) -> None:
    """Replace what stands between a mark of a page and the end mark that follows it."""
    marked = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end -->)", re.DOTALL)
    path.write_text(marked.sub(lambda m: f"{m[1]}{text}\n{m[2]}", path.read_text()))


def chosen_cells(words: Sequence[str], known: Sequence[Cell]) -> list[Cell]:
    """The cells of these names, all without any; a part of a name takes every cell that has it."""

    def matching(word: str) -> list[Cell]:
        found = [c for c in known if set(word.split("-")) <= set(c.name.split("-"))]
        if not found:
            raise SystemExit(f"there is no cell {word}: {', '.join(c.name for c in known)}")
        return found

    wanted = {cell for word in words for cell in matching(word)}
    return [cell for cell in known if not words or cell in wanted]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--procedure", choices=("stand-in", "real"), default="stand-in")
    parser.add_argument("--replicates", type=int, help="1000; 100 of the real procedure")
    parser.add_argument(
        "--cells", nargs="+", default=(), metavar="CELL", help="such as 60-even-weak, or 60"
    )
    # the form of the intervals was chosen on draws with seed 0
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tiny", action="store_true", help="one cell, few replicates, no files")
    parser.add_argument("--delong", action="store_true", help="areas of an independent cohort")
    only = parser.add_argument_group("the real procedure")
    only.add_argument("--repeats", type=int, default=1, help="of the outer folds")
    only.add_argument("--draws", type=int, default=FEWEST_DRAWS, help="of the permutation test")
    only.add_argument("--jobs", type=int, default=1, help="processes")
    only.add_argument("--minutes", type=float, help="end after about so long; go on another time")
    options = parser.parse_args()
    if options.delong:
        replicates = 200 if options.tiny else options.replicates or 2000
        run_delong(replicates, options.seed, tiny=options.tiny)
        return
    is_real = options.procedure == "real"
    known = REAL_CELLS if is_real else CELLS
    replicates = options.replicates or (100 if is_real else 1000)
    chosen = chosen_cells(options.cells, known)
    if options.tiny:
        chosen, replicates = [Cell(30, "even", "weak")], 2 if is_real else 100
    name = "coverage-real" if is_real else "coverage"
    results = []
    with threadpool_limits(1):
        if is_real:
            results = real(
                chosen,
                replicates,
                options.seed,
                repeats=options.repeats,
                draws=options.draws,
                log=None if options.tiny else RESULTS / f"{name}.jsonl",
                n_jobs=options.jobs,
                minutes=options.minutes,
            )
            print(table(results))
        for cell in [] if is_real else chosen:
            start = time.perf_counter()
            results.append(cheap(cell, replicates, options.seed))
            seconds = time.perf_counter() - start
            print(table(results).splitlines()[-1], f"{seconds:.0f} s", flush=True)
    print(f"\nbelow {GOAL}:", "; ".join(misses(results)) or "none")
    if options.tiny or not results:
        return
    print("written:", save(name, {"seed": options.seed, "cells": results}))
    if [row["replicates"] for row in results] == [replicates] * len(known):
        write_docs(results, mark="coverage real" if is_real else "coverage")
        print("written:", DOCS)


if __name__ == "__main__":
    main()
