"""Seconds of ``sparsegsvp select`` at its defaults, from a CSV file to the page, by stage.

    python benchmarks/select_panel.py                  ovarian and colon
    python benchmarks/select_panel.py --tiny           a small table, seconds

The file is read by pandas beside it, as something named to hold the seconds against.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from _common import load, markdown, save
from sparsegsvp.datasets import make_planted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["colon", "ovarian"])
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    rows, results = [], {}
    for name in ["planted"] if options.tiny else options.sets:
        tiny = make_planted(40, 60, 3, effect=2.0, random_state=0, return_X_y=True)
        X, y = tiny if options.tiny else load(name)
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder, "table.csv"), Path(folder, "report")
            frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
            frame.insert(0, "class", [f"class {label}" for label in y])
            frame.to_csv(path, index=False)
            pd.read_csv(path)  # what a first call costs is not of the file
            start = time.perf_counter()
            pd.read_csv(path)
            alone = time.perf_counter() - start
            words = ["select", str(path), "--target", "class", "--out", str(out)]
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "sparsegsvp.cli", *words, *["--fast"] * options.tiny],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            total = time.perf_counter() - start
            seconds = json.loads((out / "timings.json").read_text())["seconds"]
        results[name] = {"total": total, "pandas": alone, **seconds}
        shown = ("import", "reading", "search", "folds", "permutations", "halves", "page")
        cells = [f"{seconds.get(stage, 0.0):.1f}" for stage in shown]
        ratio = seconds["reading"] / alone
        rows.append([name, f"{total:.1f}", *cells, f"{ratio:.2f}"])
    header = ["set", "seconds in all", *shown, "reading / pandas"]
    print(markdown(header, rows))
    save("select_panel-tiny" if options.tiny else "select_panel", {"sets": results})


if __name__ == "__main__":
    main()
