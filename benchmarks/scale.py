"""How time, passes and memory grow when the table no longer fits in memory.

    python benchmarks/scale.py                 all parts, about half an hour on two cores
    python benchmarks/scale.py --only tall     one part
    python benchmarks/scale.py --tiny          all parts on small tables, a minute

Tables are made chunk by chunk on the spot and never held: (a) ``tall`` is 10,000,000 x 100
and (b) ``wide`` 1,000 x 500,000, both float32; (c) ``workers`` compares one worker process
with two; (d) ``growth`` gives the exponents in the numbers of samples and features. Every
part runs in a process of its own, whose peak of resident memory is reported.
Writes artifacts/scale.json (scale-tiny.json) and the same as a table, scale.md.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import _common
from _common import exponent

INFORMATIVE = 20


class Generated:
    """A table whose chunks are drawn anew, and the same, whenever they are read."""

    def __init__(self, n: int, m: int, chunks: tuple[int, int]) -> None:
        import dask.array as da

        self.shape, self.reads, self._lock = (n, m), 0, threading.Lock()
        self.y = (np.arange(n) % 2).astype(np.int8)
        self.X = da.map_blocks(
            self._chunk,
            chunks=da.core.normalize_chunks(chunks, (n, m)),
            dtype=np.float32,
            meta=np.empty((0, 0), dtype=np.float32),
        )

    def _chunk(self, block_info: Any = None) -> np.ndarray:
        rows, cols = block_info[None]["array-location"]
        with self._lock:
            self.reads += 1
        rng = np.random.default_rng([rows[0], cols[0]])
        X = rng.random((rows[1] - rows[0], cols[1] - cols[0]), dtype=np.float32)
        labels = (np.arange(*rows) % 2).astype(np.float32)
        for j in range(cols[0], min(cols[1], INFORMATIVE)):
            X[:, j - cols[0]] += np.float32(0.5 / (1 + j / 4)) * labels
        return X

    def __getstate__(self) -> dict[str, Any]:
        # workers make chunks of their own and count for themselves
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "X", "y")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __dask_tokenize__(self) -> tuple[str, tuple[int, int]]:
        return "generated", self.shape

    @property
    def passes(self) -> float:
        return self.reads / self.X.npartitions

    @property
    def gigabytes(self) -> float:
        return self.shape[0] * self.shape[1] * 4 / 1e9


def peak_gigabytes() -> float:
    """Largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def measured(data: Generated, work: Callable[[], Any]) -> dict[str, Any]:
    """Time, passes and memory of some work, and the time of a pass that does nothing else."""
    from dask import compute, delayed

    start = time.perf_counter()
    compute(*(delayed(np.max)(chunk) for chunk in data.X.to_delayed().ravel()))
    one_pass = time.perf_counter() - start
    data.reads = 0
    start = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - start
    return {
        "n": data.shape[0],
        "m": data.shape[1],
        "gigabytes": data.gigabytes,
        "seconds": seconds,
        "passes": data.passes,
        "one_pass_seconds": one_pass,
        "times_one_pass": seconds / one_pass,
        "peak_gigabytes": peak_gigabytes(),
        **found,
    }


# --- parts: each returns rows of the table ------------------------------------------------


def tall_fit(tiny: bool) -> list[dict[str, Any]]:
    return [_tall(tiny, search=False)]


def tall_search(tiny: bool) -> list[dict[str, Any]]:
    return [_tall(tiny, search=True)]


def _tall(tiny: bool, search: bool) -> dict[str, Any]:
    from sparsegsvp import GSVPSVM, GSVPSVMCV

    n, rows = (50_000, 10_000) if tiny else (10_000_000, 200_000)
    data = Generated(n, 20 if tiny else 100, (rows, -1))

    def work() -> dict[str, Any]:
        model = GSVPSVMCV() if search else GSVPSVM(n_features=10)
        model.fit(data.X, data.y)
        return {"selected": int(model.support_.sum())}

    name = "(a) tall, GSVPSVMCV.fit" if search else "(a) tall, GSVPSVM.fit"
    return {"part": name, **measured(data, work), "most_passes": 13 if search else 6}


def wide(tiny: bool) -> list[dict[str, Any]]:
    from sparsegsvp import GSVPSVM

    n, m, cols = (200, 5_000, 1_000) if tiny else (1_000, 500_000, 25_000)
    data = Generated(n, m, (-1, cols))

    def work() -> dict[str, Any]:
        model = GSVPSVM(n_features=25).fit(data.X, data.y)
        return {"selected": int(model.support_.sum())}

    name = "(b) wide, GSVPSVM.fit, 25 features"
    return [{"part": name, **measured(data, work), "most_passes": 8}]


def workers(tiny: bool) -> list[dict[str, Any]]:
    from distributed import Client, LocalCluster

    from sparsegsvp import GSVPSVM

    n, rows = (50_000, 10_000) if tiny else (4_000_000, 100_000)
    found = []
    for count in (1, 2):
        with (
            LocalCluster(
                n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
        ):
            # imports are not timed, on any worker
            client.run(importlib.import_module, "sparsegsvp.estimators")
            data = Generated(n, 20 if tiny else 100, (rows, -1))
            GSVPSVM().fit(data.X[: 2 * rows], data.y[: 2 * rows])
            start = time.perf_counter()
            GSVPSVM().fit(data.X, data.y)
            seconds = time.perf_counter() - start
        found.append(
            {
                "part": f"(c) {count} worker(s)",
                "n": n,
                "m": data.shape[1],
                "gigabytes": data.gigabytes,
                "seconds": seconds,
                "peak_gigabytes": peak_gigabytes(),
            }
        )
    found[1]["speed_up"] = found[0]["seconds"] / found[1]["seconds"]
    return found


def growth(tiny: bool) -> list[dict[str, Any]]:
    from sparsegsvp import GSVPSVM

    def seconds(n: int, m: int, chunks: tuple[int, int]) -> float:
        data = Generated(n, m, chunks)
        times = []
        for _ in range(1 if tiny else 2):
            start = time.perf_counter()
            GSVPSVM().fit(data.X, data.y)
            times.append(time.perf_counter() - start)
        return min(times)

    factor = 1 if tiny else 20
    tall_n = [s * factor for s in (10_000, 20_000, 40_000, 80_000)]
    tall_m = [20, 40, 80] if tiny else [100, 200, 400, 800]
    wide_m = [1_000 * s for s in ((2, 4, 8) if tiny else (25, 50, 100, 200))]
    wide_n = [100, 200, 400] if tiny else [250, 500, 1_000, 2_000]
    m, n, w = (20, 5_000, 2_000) if tiny else (100, 100_000, 50_000)
    seconds(tall_n[0], m, (10_000, -1))  # warm
    sweeps = {
        "tall, in n": (tall_n, [seconds(s, m, (10_000 * min(factor, 5), -1)) for s in tall_n]),
        "tall, in m": (tall_m, [seconds(n, s, (max(1, 5_000_000 // s), -1)) for s in tall_m]),
        "wide, in m": (wide_m, [seconds(400, s, (-1, 12_500)) for s in wide_m]),
        "wide, in n": (wide_n, [seconds(s, w, (-1, 12_500)) for s in wide_n]),
    }
    return [
        {
            "part": f"(d) {name}",
            "sizes": sizes,
            "times": times,
            "exponent": exponent([float(s) for s in sizes], times),
            "last_exponent": exponent([float(s) for s in sizes[-2:]], times[-2:]),
        }
        for name, (sizes, times) in sweeps.items()
    ]


PARTS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "tall_fit": tall_fit,
    "tall_search": tall_search,
    "wide": wide,
    "workers": workers,
    "growth": growth,
}


# --- running and writing ------------------------------------------------------------------


def run_apart(part: str, tiny: bool) -> list[dict[str, Any]]:
    """A part in a fresh process, so that its peak of memory is its own."""
    command = [sys.executable, __file__, "--part", part] + (["--tiny"] if tiny else [])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{part} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| part | table | GB | seconds | passes (at most) | times one pass | peak GB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if "exponent" in row:
            continue
        passes = f"{row['passes']:.1f} ({row['most_passes']})" if "passes" in row else "-"
        ratio = f"{row['times_one_pass']:.1f}" if "passes" in row else "-"
        lines.append(
            f"| {row['part']} | {row['n']:,} x {row['m']:,} | {row['gigabytes']:.2f} | "
            f"{row['seconds']:.1f} | {passes} | {ratio} | {row['peak_gigabytes']:.2f} |"
        )
    lines.append("")
    lines += [f"Speed-up from 1 to 2 workers: {r['speed_up']:.2f}" for r in rows if "speed_up" in r]
    lines += [
        f"{row['part']}: time grows with exponent {row['exponent']:.2f} "
        f"(between the two largest: {row['last_exponent']:.2f})"
        for row in rows
        if "exponent" in row
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small tables")
    parser.add_argument("--only", nargs="*", default=list(PARTS), help="parts to run")
    parser.add_argument("--out", type=Path, default=_common.RESULTS, help="folder to write")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(PARTS[options.part](options.tiny), default=float))
        return
    chosen = [p for p in PARTS if any(p.startswith(word) for word in options.only)]
    rows: list[dict[str, Any]] = []
    for part in chosen:
        rows += run_apart(part, options.tiny)
        print(f"{part} done", flush=True)
    print(table(rows))
    name = "scale-tiny" if options.tiny else "scale"
    _common.RESULTS = options.out
    path = _common.save(name, {"rows": rows})
    path.with_suffix(".md").write_text(table(rows))
    over = [row for row in rows if row.get("passes", 0) > row.get("most_passes", np.inf)]
    if over:
        raise SystemExit(f"too many passes in {[row['part'] for row in over]}")


if __name__ == "__main__":
    main()
