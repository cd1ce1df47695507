"""Time, memory and passes over the data: single cells, and tables larger than memory.

    python benchmarks/scale.py                       all parts, about an hour on two cores
    python benchmarks/scale.py --part cells growth   some parts
    python benchmarks/scale.py --tiny                all parts on small tables, a minute
    python benchmarks/scale.py --part --docs docs    no part: tables of the pages from scale.json

``cells``    50 genes of 50,000 x 10,000 cells in CSR, 10 types, against 60 products X'v.
``large``    200,000 x 20,000, 30 types.
``growth``   Exponents of the time in cells, genes and pairs of types.
``markers``  Panels of other selectors on the same cells at equal sizes, held-out donors.
``honest``   `select_panel` and its page of 20,000 x 5,000 cells, folds by donors.
``cluster``  Two Dask processes: fit, search, predict, evaluation, a worker killed on the way.
``generated``  10,000,000 x 100 and 1,000 x 500,000, made chunk by chunk and never held.

Every part runs in processes of its own on one thread; seconds are of the CPU except in the last
two. Memory is the peak of resident memory less that before the table was loaded. Writes
artifacts/scale.json (scale-tiny.json) and the same as tables, scale.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import _common
from _common import cpu_time, exponent, markdown

Row = dict[str, Any]
N_GENES = 50  # of a panel
# part -> cells, genes and types of its table, tiny and not
TABLES = {
    "cells": ((3_000, 400, 4), (50_000, 10_000, 10)),
    "large": ((3_000, 800, 6), (200_000, 20_000, 30)),
    "honest": ((600, 120, 3), (20_000, 5_000, 10)),
    "cluster": ((1_500, 2_200, 4), (50_000, 10_000, 10)),
}


def resident(*, peak: bool = False) -> float:
    """Resident memory of this process in GB, now or at most so far."""
    if peak:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e9


def warmed() -> float:
    """Resident memory after a small search, with all that it imports."""
    from sparsegsvp import GSVPSVMCV

    rng = np.random.default_rng(0)
    GSVPSVMCV(2).fit(sp.csr_matrix(rng.random((60, 9))), np.arange(60) % 3)
    return resident()


# --- cells in memory ---------------------------------------------------------------------


def write_cells(folder: Path, n: int, m: int, types: int) -> None:
    """Make cells and write them as arrays: who loads them has no memory of their making."""
    from sparsegsvp.datasets import make_cells

    X, obs = make_cells(n, m, types, n_donors=10, as_anndata=False)
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    arrays |= {name: obs[name].cat.codes.to_numpy() for name in ("cell_type", "donor")}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def read_cells(folder: Path, **options: Any) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Values, types and donors."""
    names = ("data", "indices", "indptr", "cell_type", "donor")
    data, indices, indptr, y, donor = (np.load(folder / f"{name}.npy", **options) for name in names)
    genes = int(json.loads((folder / "shape.json").read_text())[1])
    return sp.csr_matrix((data, indices, indptr), shape=(len(y), genes)), y, donor


def size_of(X: sp.csr_matrix) -> float:
    return (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e9


def cells(folder: Path, tiny: bool, work: str) -> list[Row]:
    import anndata

    from sparsegsvp import GSVPSVM, GSVPSVMCV
    from sparsegsvp.scverse import select_markers

    before = warmed()
    X, y, donor = read_cells(folder)
    v = np.random.default_rng(0).standard_normal(len(y), dtype=np.float32)
    products = 6 * cpu_time(lambda: [X.T @ v for _ in range(10)], 1 if tiny else 3)[0]
    runs: dict[str, Callable[[], Any]] = {
        "select_markers, 50 genes": lambda: select_markers(adata, "type", N_GENES),
        "GSVPSVM(50)": lambda: GSVPSVM(N_GENES).fit(X, y),
        "GSVPSVMCV(50)": lambda: GSVPSVMCV(N_GENES).fit(X, y, groups=donor),
    }
    if work.startswith("select"):
        adata = anndata.AnnData(X, obs={"type": y.astype(str)})
    a_fit = cpu_time(runs["GSVPSVM(50)"])[0] if work.startswith("GSVPSVMCV") else None
    seconds, _ = cpu_time(runs[work])
    memory = resident(peak=True) - before
    ratios = {"over 60 products": seconds / products, "over the matrix": memory / size_of(X)}
    goals = {}
    if a_fit is not None:
        ratios["over a fit"], goals["over a fit"] = seconds / a_fit, 8
    elif work.startswith("select") and X.shape == TABLES["cells"][not tiny][:2]:
        goals = dict.fromkeys(ratios, 2)
    texts = {name: f"{ratio:.2f}" for name, ratio in ratios.items()}
    return [
        {
            "work": work,
            "cells": X.shape[0],
            "genes": X.shape[1],
            "types": len(np.unique(y)),
            "seconds": seconds,
            "peak GB": memory,
            **texts,
            **{name: f"{texts[name]} (goal {most})" for name, most in goals.items()},
        }
    ]


def growth(folder: Path, tiny: bool, work: str) -> list[Row]:
    from sparsegsvp import GSVPSVM
    from sparsegsvp.datasets import make_cells

    def seconds(n: int, m: int, types: int) -> float:
        X, obs = make_cells(n, m, types, n_markers=4, weights=[1.0] * types, as_anndata=False)
        model = GSVPSVM(min(N_GENES, m // 4), decision="discriminant")
        return cpu_time(lambda: model.fit(X, obs["cell_type"]), 1 if tiny else 3)[0]

    scale = 10 if tiny else 1
    n, m = 10_000 // scale, 2_500 // scale
    seconds(n, m, 4)  # warm
    sweeps = {
        "cells": ([k * n for k in (1, 2, 4, 8)], lambda k: seconds(k, m, 10)),
        "genes": ([k * m for k in (1, 2, 4, 8)], lambda k: seconds(n, k, 10)),
        "pairs": ([10, 45, 190, 435], lambda k: seconds(n, m, round((1 + (1 + 8 * k) ** 0.5) / 2))),
    }
    rows = []
    for name, (sizes, run) in sweeps.items():
        times = [run(size) for size in sizes]
        rows.append(
            {
                "in": name,
                "sizes": ", ".join(f"{size:,}" for size in sizes),
                "seconds": ", ".join(f"{t:.2f}" for t in times),
                "exponent": exponent(sizes, times),
                "of the last two": exponent(sizes[-2:], times[-2:]),
            }
        )
    return rows


def markers(folder: Path, tiny: bool, work: str) -> list[Row]:
    """Macro recall of one classifier on the panels of several selectors."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import recall_score
    from sklearn.model_selection import RepeatedStratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from _markers import METHODS
    from sparsegsvp.datasets import make_cells

    sizes = (5, 10) if tiny else (10, 20, 50)
    shape = (1_500, 200, 4) if tiny else (10_000, 3_000, 12)
    tables = []
    for seed in range(100, 101 if tiny else 105):  # nothing was chosen by these
        X, obs = make_cells(*shape, n_donors=9, random_state=seed, as_anndata=False)
        test = obs["donor"].cat.codes.to_numpy() % 3 == 0  # whole donors
        splits = [(np.flatnonzero(~test), np.flatnonzero(test))]
        tables.append(("make_cells", X, obs["cell_type"].cat.codes.to_numpy(), splits))
    scanpy = importlib.util.find_spec("scanpy")
    if scanpy is not None and scanpy.origin is not None:
        import anndata

        path = Path(scanpy.origin).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"
        adata = anndata.read_h5ad(path)
        y = adata.obs["bulk_labels"].cat.codes.to_numpy()
        folds = RepeatedStratifiedKFold(n_repeats=1 if tiny else 8, random_state=0)
        splits = list(folds.split(y, y))  # several times, for a type may have eight cells
        tables.append(("pbmc68k_reduced", sp.csr_matrix(adata.raw.X), y, splits))
    classifier = make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=300)
    )
    scores: dict[tuple[str, str], list[list[float]]] = {}
    for name, X, y, splits in tables:
        for (train, test), (method, select) in product(splits, METHODS.items()):
            start = time.process_time()
            order = select(X[train], y[train], max(sizes), len(scores))
            results = [time.process_time() - start]
            for panel in (order[:k] for k in sizes):
                classifier.fit(X[train][:, panel].toarray(), y[train])
                predicted = classifier.predict(X[test][:, panel].toarray())
                known = np.unique(y[test])
                recall = recall_score(y[test], predicted, labels=known, average="macro")
                results.append(float(recall))
            scores.setdefault((name, method), []).append(results)
    rows = []
    for (name, method), values in scores.items():
        seconds, *recalls = np.mean(values, axis=0)
        leads = np.subtract(scores[name, "select_markers"], values)[:, 1:]
        columns = [f"{recall:.3f}" for recall in recalls]
        if method != "select_markers":
            columns = [f"{c} ({lead:+.3f})" for c, lead in zip(columns, leads.mean(axis=0))]
        won, lost = np.count_nonzero(leads > 1e-9), np.count_nonzero(leads < -1e-9)
        rows.append(
            {
                "table": name,
                "selector": method,
                "splits": len(values),
                **{f"recall at {k} (lead)": text for k, text in zip(sizes, columns)},
                "ahead, behind": "-" if method == "select_markers" else f"{won}, {lost}",
                "seconds": float(seconds),
            }
        )
    return rows


def honest(folder: Path, tiny: bool, work: str) -> list[Row]:
    import anndata

    from sparsegsvp import select_panel

    before = warmed()
    X, y, donor = read_cells(folder)
    adata = anndata.AnnData(X, obs={"type": y.astype(str), "donor": donor.astype(str)})
    options = {"target": "type", "groups": "donor", "fast": tiny}
    seconds, selection = cpu_time(lambda: select_panel(adata, **options))
    page, html = cpu_time(selection.to_html)
    memory, result = resident(peak=True) - before, selection.evaluation
    rows: list[Row] = []
    for rung in result.ladder.itertuples():
        rates = result.confusions[rung.size]
        rates = rates / rates.sum(axis=1, keepdims=True)
        recalls, others = np.diagonal(rates), rates - np.diag(np.diagonal(rates))
        i, j = np.unravel_index(others.argmax(), others.shape)
        rows.append(
            {
                "genes": rung.size,
                "balanced accuracy": f"{rung.balanced_accuracy:.3f}",
                "interval": f"{rung.low:.3f} to {rung.high:.3f}",
                "lowest recall": f"{recalls.min():.2f} (type {recalls.argmin()})",
                "most often mistaken": f"type {i} for {j} ({others[i, j]:.0%})",
            }
        )
    n, m = X.shape
    rows[0] |= {"table": f"{n:,} x {m:,}", "seconds": seconds, "of the page": page}
    rows[0] |= {"page's MB": len(html.encode()) / 1e6, "peak GB": memory}
    return rows


# --- Dask --------------------------------------------------------------------------------


class Stored:
    """A Dask array of CSR chunks that are read from a folder; every reading is counted."""

    def __init__(self, folder: Path, chunks: int) -> None:
        import dask.array as da

        self.folder, self.log = folder, folder / "readings"
        n, m, _ = json.loads((folder / "shape.json").read_text())
        meta = sp.csr_matrix((0, 0), dtype=np.float32)
        rows = da.core.normalize_chunks((-(-n // chunks), -1), (n, m))
        self.X = da.map_blocks(self.read, chunks=rows, dtype=np.float32, meta=meta)

    def read(self, block_info: Any = None) -> sp.csr_matrix:
        with self.log.open("ab") as log:  # of all processes
            log.write(b".")
        first, last = block_info[None]["array-location"][0]
        return read_cells(self.folder, mmap_mode="r")[0][first:last].copy()

    @property
    def passes(self) -> float:
        return self.log.stat().st_size / self.X.npartitions if self.log.exists() else 0.0

    def __getstate__(self) -> Row:
        return {"folder": self.folder, "log": self.log}

    def __dask_tokenize__(self) -> str:
        return str(self.folder)


def cluster(folder: Path, tiny: bool, work: str) -> list[Row]:
    from distributed import Client, LocalCluster
    from joblib import parallel_config

    from sparsegsvp import GSVPSVM, GSVPSVMCV, nested_evaluate

    lazy = Stored(folder, 12)
    X, y, donor = read_cells(folder, mmap_mode="r")
    size, k = size_of(X), 10 if tiny else N_GENES
    expected = {"fit": GSVPSVM(k).fit(X, y), "search": GSVPSVMCV(k).fit(X, y, groups=donor)}
    some = np.flatnonzero(np.random.default_rng(0).random(len(y)) < (0.3 if tiny else 0.1))
    few, options = X[some], {"n_repeats": 1, "n_permutations": 0, "n_pairs": 0}

    def evaluate() -> Any:
        return nested_evaluate(GSVPSVMCV(10), few, y[some], groups=donor[some], **options)

    def same(model: Any, other: Any) -> str:
        if not np.array_equal(model.feature_order_, other.feature_order_):
            return f"NO: {len(model.feature_order_)} and {len(other.feature_order_)} features"
        return f"weights to {np.abs(model.panel_coef_ - other.panel_coef_).max():.0e}"

    def kill(client: Any) -> None:
        """End a worker in the middle of the third pass."""
        pids = list(client.run(os.getpid).values())
        while lazy.passes < 2.5:
            time.sleep(0.001)
        os.kill(pids[0], signal.SIGKILL)

    rows: list[Row] = []
    evaluated = evaluate()
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as processes,
        Client(processes) as client,
    ):
        client.run(importlib.import_module, "sparsegsvp.estimators")  # is not timed
        started = max(client.run(resident).values())
        models: Row = {}

        def measure(name: str, run: Callable[[], Any]) -> Any:
            lazy.log.unlink(missing_ok=True)
            before, start = resident(), time.perf_counter()
            value = run()
            seconds = time.perf_counter() - start
            rows.append(
                {
                    "work": name,
                    "seconds": seconds,
                    "passes": lazy.passes,
                    "seconds a pass": seconds / lazy.passes if lazy.passes else "-",
                    "table GB": size,
                    "client's GB": resident() - before,
                    "a worker's peak GB": max(client.run(resident, peak=True).values()) - started,
                }
            )
            return value

        nothing = lazy.X.to_delayed().ravel()
        measure("reading alone", lambda: client.gather(client.compute([c.nnz for c in nothing])))
        models["fit"] = measure("fit", lambda: GSVPSVM(k).fit(lazy.X, y))
        rows[-1]["equal to memory"] = same(models["fit"], expected["fit"])
        predicted = measure("predict", lambda: models["fit"].predict(lazy.X))
        equal = np.array_equal(predicted, expected["fit"].predict(X))
        rows[-1]["equal to memory"] = "yes" if equal else "NO"
        columns = measure("transform", lambda: models["fit"].transform(lazy.X))
        rows[-1]["equal to memory"] = f"lazy, {columns.shape[1]} columns"
        models["search"] = measure("search", lambda: GSVPSVMCV(k).fit(lazy.X, y, groups=donor))
        rows[-1]["equal to memory"] = same(models["search"], expected["search"])
        with parallel_config(backend="dask"):
            result = measure(f"nested_evaluate, {len(some):,} cells by joblib", evaluate)
        equal = result.scores["balanced_accuracy"] == evaluated.scores["balanced_accuracy"]
        rows[-1]["equal to memory"] = "yes" if equal else "NO"
        killer = threading.Thread(target=kill, args=(client,))
        killer.start()
        again = measure("fit, a worker killed", lambda: GSVPSVM(k).fit(lazy.X, y))
        killer.join()
        equal = np.array_equal(again.panel_coef_, models["fit"].panel_coef_)
        rows[-1]["equal to memory"] = "same bits as fit" if equal else "NO"
    return rows


def on_paper(rows: list[Row], workers: int = 20) -> list[Row]:
    """What ten million cells of 20,000 genes would take, from the constants of `cluster`."""
    size = 10_000_000 * 20_000 * 0.07 * 8 / 1e9
    out = []
    for work in ("fit", "search"):
        row = next(row for row in rows if row["work"] == work)
        rate = row["table GB"] * row["passes"] / row["seconds"] / 2  # GB a second and worker
        out.append(
            {
                "work": work,
                "cells": 10_000_000,
                "genes": 20_000,
                "workers": workers,
                "table GB": size,
                "passes": row["passes"],
                "GB a pass and worker": size / workers,
                "GB a second and worker": rate,
                "minutes a pass": size / workers / rate / 60,
                "minutes": row["passes"] * size / workers / rate / 60,
            }
        )
    return out


class Generated:
    """Dense chunks that are drawn anew, and the same, whenever they are read."""

    INFORMATIVE = 20

    def __init__(self, n: int, m: int, chunks: tuple[int, int]) -> None:
        import dask.array as da

        self.reads, self.shape, self.y = 0, (n, m), (np.arange(n) % 2).astype(np.int8)
        self.X = da.map_blocks(
            self._chunk,
            chunks=da.core.normalize_chunks(chunks, (n, m)),
            dtype=np.float32,
            meta=np.empty((0, 0), dtype=np.float32),
        )

    def _chunk(self, block_info: Any = None) -> np.ndarray:
        rows, cols = block_info[None]["array-location"]
        self.reads += 1
        rng = np.random.default_rng([rows[0], cols[0]])
        X = rng.random((rows[1] - rows[0], cols[1] - cols[0]), dtype=np.float32)
        labels = (np.arange(*rows) % 2).astype(np.float32)
        for j in range(cols[0], min(cols[1], self.INFORMATIVE)):
            X[:, j - cols[0]] += np.float32(0.5 / (1 + j / 4)) * labels
        return X

    def __dask_tokenize__(self) -> tuple[str, tuple[int, int]]:
        return "generated", self.shape


def generated(folder: Path, tiny: bool, work: str) -> list[Row]:
    import dask

    from sparsegsvp import GSVPSVM, GSVPSVMCV

    if work == "wide":
        n, m, cols = (200, 5_000, 1_000) if tiny else (1_000, 500_000, 25_000)
        data, model, most = Generated(n, m, (-1, cols)), GSVPSVM(25), 8
    else:
        n, m, rows = (50_000, 20, 10_000) if tiny else (10_000_000, 100, 200_000)
        data = Generated(n, m, (rows, -1))
        model, most = (GSVPSVM(10), 3) if work == "tall" else (GSVPSVMCV(), 6)
    with dask.config.set(scheduler="synchronous"):  # one thread
        start = time.perf_counter()
        dask.compute(*(dask.delayed(np.max)(chunk) for chunk in data.X.to_delayed().ravel()))
        a_pass, data.reads, start = time.perf_counter() - start, 0, time.perf_counter()
        model.fit(data.X, data.y)
        seconds = time.perf_counter() - start
    return [
        {
            "work": f"{work}, {type(model).__name__}.fit",
            "rows": n,
            "columns": m,
            "GB": n * m * 4 / 1e9,
            "seconds": seconds,
            "passes": data.reads / data.X.npartitions,
            "at most": most,
            "times one pass": seconds / a_pass,
            "peak GB": resident(peak=True),
        }
    ]


# --- running and writing -----------------------------------------------------------------

Part = Callable[[Path, bool, str], list[Row]]
# part -> its function and what it is called with, each in a process
PARTS: dict[str, tuple[Part, tuple[str, ...]]] = {
    "cells": (cells, ("select_markers, 50 genes", "GSVPSVM(50)", "GSVPSVMCV(50)")),
    "large": (cells, ("select_markers, 50 genes",)),
    "growth": (growth, ("",)),
    "markers": (markers, ("",)),
    "honest": (honest, ("",)),
    "cluster": (cluster, ("",)),
    "generated": (generated, ("tall", "tall search", "wide")),
}


def run_apart(part: str, tiny: bool, folder: Path, work: str) -> list[Row]:
    """A piece in a fresh process, so that its peak of memory is its own."""
    command = [sys.executable, __file__, "--part", part, "--in", str(folder), "--work", work]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command + (["--tiny"] if tiny else []), capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise RuntimeError(f"{part}, {work} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run_part(part: str, tiny: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if part in TABLES:
            (place / "shape.json").write_text(json.dumps(TABLES[part][not tiny]))
            run_apart(part, tiny, place, "make")
        return [row for work in PARTS[part][1] for row in run_apart(part, tiny, place, work)]


def table(rows: list[Row]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        return f"{value:,}" if isinstance(value, int) else str(value)

    header = list(dict.fromkeys(key for row in rows for key in row))
    return markdown(header, [[text(row.get(key, "-")) for key in header] for row in rows])


def renew(folder: Path, results: dict[str, list[Row]]) -> None:
    """Write tables between the marks of the pages that show them."""
    for page in sorted(folder.glob("*.md")):
        text = page.read_text()
        for name, rows in results.items():
            head, mark, rest = text.partition(f"<!-- scale: {name} -->\n")
            if mark:
                text = f"{head}{mark}\n{table(rows)}\n\n{rest[rest.index('<!-- end -->') :]}"
        page.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small tables")
    parser.add_argument("--part", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--out", type=Path, default=_common.RESULTS, help="folder to write")
    parser.add_argument("--docs", type=Path, help="pages whose tables are renewed")
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:  # a process of `run_apart`
        [part] = options.part
        if options.work == "make":
            write_cells(options.folder, *TABLES[part][not options.tiny])
            print("[]")
        else:
            rows = PARTS[part][0](options.folder, options.tiny, options.work)
            print(json.dumps(rows, default=float))
        return
    _common.RESULTS = options.out
    path = options.out / ("scale-tiny.json" if options.tiny else "scale.json")
    failed = []
    for part in options.part:
        try:
            results = {part: run_part(part, options.tiny)}
        except RuntimeError as error:  # the other parts go on
            failed.append(str(error))
            continue
        if part == "cluster":
            results["on paper"] = on_paper(results[part])
        _common.save(path.stem, results)
        for name, rows in results.items():
            print(f"\n{name}\n\n{table(rows)}", flush=True)
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept = {name: kept[name] for name in (*PARTS, "on paper") if name in kept}
    texts = [f"## {name}\n\n{table(rows)}\n" for name, rows in kept.items()]
    path.with_suffix(".md").write_text("\n".join(texts))
    if options.docs is not None:
        renew(options.docs, kept)
    over = [row["work"] for row in kept.get("generated", []) if row["passes"] > row["at most"]]
    if over:
        failed.append(f"too many passes in {over}")
    unequal = [r["work"] for r in kept.get("cluster", []) if "NO" in r.get("equal to memory", "")]
    if unequal:
        failed.append(f"not as in memory: {unequal}")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
