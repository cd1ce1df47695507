"""How far the path is from the best of many random starts.

    python benchmarks/starts.py                  20 starts, 8 deltas, 9 settings, 5 sets
    python benchmarks/starts.py --sets colon --starts 5
    python benchmarks/starts.py --raw            starts without the walk down and back
    python benchmarks/starts.py --tiny           made-up data, seconds

A start is settled as ``sparse_gsvp(w0=...)`` does it: solved where it is, then on to smaller
deltas and back, keeping the lower objective. For each setting: how often a start ends above
or below the path, by how much, and the gap between the path down and the path up.
Writes benchmarks/results/starts.json.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _common import load, save
from sparsegsvp.datasets import make_planted
from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import L1
from sparsegsvp.solvers.path import PathSolver
from sparsegsvp.solvers.working_set import Problem

SETS = ("leukemia", "colon", "prostate", "gravier", "cns")
TAUS, POOLS = (0.1, 1.0, 10.0), (0.0, 0.5, 1.0)
# relative to delta_max; the smaller ones are where panels have more than a few features
RHOS = np.geomspace(0.7, 0.03, 8)
SAME = 1e-6  # relative difference of objectives that counts as the same minimum


def compare(
    X: np.ndarray, y: np.ndarray, tau: float, pool: float, starts: int, raw: bool
) -> dict[str, Any]:
    """Relative differences of random starts to the path, both planes."""
    cov = DataCovariances(as_matrix(X), y.astype(np.intp), None, 2, True)
    rows: dict[str, list[float]] = {f"{rho:.3f}": [] for rho in RHOS}
    gaps = []
    for i in range(2):
        problem = Problem.of_class(cov, i, tau=tau, pool=pool, penalty=L1())
        solver = PathSolver(problem, tol=1e-6, max_iter=1000)
        path = solver.run(RHOS * solver.delta_max)
        solve = solver.from_start if raw else solver.solve_from
        gaps += [solution.gap for solution in path]
        varying = np.flatnonzero(cov.standardization.varying)
        rng = np.random.default_rng(0)
        for _ in range(starts):
            w = np.zeros(X.shape[1])
            w[varying] = rng.normal(size=len(varying))
            w /= np.linalg.norm(w)
            for rho, best in zip(RHOS, path):
                found = solve(best.delta, w)
                rows[f"{rho:.3f}"].append(found.objective / best.objective - 1.0)
    every = np.concatenate([np.array(v) for v in rows.values()])
    small = np.concatenate([np.array(v) for k, v in rows.items() if float(k) <= 0.15])
    return {
        "above": float((every > SAME).mean()),
        "below": float((every < -SAME).mean()),
        "worst above": float(max(every.max(), 0.0)),
        "worst below": float(max(-every.min(), 0.0)),
        "worst at delta <= 0.15 delta_max": float(np.abs(small).max()),
        "largest gap down/up": float(max(gaps)),
        "by rho": {k: [float(min(v)), float(max(v))] for k, v in rows.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=[*SETS, "ovarian"])
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--raw", action="store_true", help="solve each start where it is only")
    parser.add_argument("--tiny", action="store_true", help="made-up data")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    results: dict[str, Any] = {}
    print("| set | tau | pool | above | below | worst above | worst below | at small delta | gap |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in ["made-up"] if args.tiny else args.sets:
        if args.tiny:
            data = make_planted(n_samples=40, n_features=120, random_state=0)
            X, y = data.X, data.y
        else:
            X, y = load(name)
        for tau, pool in itertools.product(TAUS, POOLS):
            with threadpool_limits(1):
                row = compare(X, y, tau, pool, 2 if args.tiny else args.starts, args.raw)
            results[f"{name}, tau={tau}, pool={pool}"] = row
            print(
                f"| {name} | {tau:g} | {pool:g} | {row['above']:.0%} | {row['below']:.0%} "
                f"| {row['worst above']:.2%} | {row['worst below']:.2%} "
                f"| {row['worst at delta <= 0.15 delta_max']:.1e} "
                f"| {row['largest gap down/up']:.2%} |",
                flush=True,
            )
    print(f"written to {save('starts-tiny' if args.tiny else 'starts', results)}")


if __name__ == "__main__":
    main()
