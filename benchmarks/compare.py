"""Every method at equal panel sizes: accuracy, stability and seconds, with the Pareto front.

    python benchmarks/compare.py                      the six sets, hours
    python benchmarks/compare.py --sets colon --repeats 1
    python benchmarks/compare.py --resume             continue after a kill
    python benchmarks/compare.py --tiny               made-up data, seconds
    python benchmarks/compare.py --resume --page docs/comparison.md

Goals are printed beside the results and nothing is tuned to them. Writes a log and a JSON
file per set into benchmarks/results/ (or --out), then a page and its figure from them.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import sparsegsvp.related
from _common import RESULTS, load
from _peers import peers
from sparsegsvp import compare
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import Comparison, default_methods, permutation_test
from sparsegsvp.report.charts import Sheet
from sparsegsvp.report.drawings import accuracy_axes, mark_front
from sparsegsvp.report.figures import accuracy_curves

SETS = ("ovarian", "leukemia", "colon", "prostate", "gravier", "cns")
SIZES = (2, 4, 8, 16, 32)
OURS = "GSVPSVM"
# Sets that no default was chosen on.
INDEPENDENT = ("gravier", "cns")
NOTES = {
    "ovarian": "reported to carry experimental bias and easy to separate: perfect scores here "
    "prove little",
    "cns": "close to no signal: a method that claims much here is leaking",
}

READING = """\
The same folds for all methods, everything inside them. Each method gives exactly k features,
and one balanced logistic regression on these, the same for all, predicts the test part: that
is the score. Cells hold the mean balanced accuracy over the folds and, after ±, its standard
error, corrected for overlapping training sets. **Bold \\*** is on the Pareto front of its set: no
other row is as accurate with as few features. `+` and `-` mark a difference to {ours} at p <= 0.05
after Holm's adjustment over the set's table. "Own decision" is the method's own classifier
instead of the common one, where it has one. Seconds are of one fit on one thread, while the
machine did other work too.

Sets of 60 samples cannot tell differences below 0.05 apart. Defaults of this package were
chosen while looking at colon, leukemia, prostate and ovarian, so only gravier and cns are
independent evidence; and where the permutation test finds no signal, nothing is claimed.
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--permutations", type=int, default=99)
    parser.add_argument("--time-limit", type=float, default=300, help="seconds per method and fold")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="names of the methods to run")
    parser.add_argument("--no-peers", action="store_true", help="leave other packages out")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, help="where the page goes, its figure beside it")
    parser.add_argument("--tiny", action="store_true", help="made-up data, for the tests")
    options = parser.parse_args()
    options.page = options.page or options.out / "compare.md"
    if options.tiny:
        options.sets, options.sizes = ["planted"], [2, 4]
        options.splits, options.repeats, options.permutations = 2, 1, 4
        options.no_peers = True  # some compile for longer than the rest takes
        options.time_limit = None
    return options


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "planted":
        found = make_planted(n_samples=48, n_features=60, n_informative=4, random_state=0)
        return found.X, found.y
    return load(name)


def run(name: str, methods: dict[str, Any], options: argparse.Namespace) -> Comparison:
    """Compare on one set and test it for any signal at all; write what was found."""
    X, y = data(name)
    found = compare(
        methods,
        X,
        y,
        sizes=[k for k in options.sizes if k <= X.shape[1]],
        n_splits=options.splits,
        n_repeats=options.repeats,
        reference=OURS if OURS in methods else None,
        time_limit=options.time_limit,
        n_jobs=options.jobs,
        log=options.out / f"compare-{name}.jsonl",
        resume=options.resume,
        progress=lambda stage, done, total: print(
            f"\r{name}: {stage} {done}/{total} ", end="", file=sys.stderr
        ),
    )
    print(file=sys.stderr)
    test = permutation_test(X, y, n_permutations=options.permutations, n_jobs=options.jobs)
    page = {**found.to_dict(), "permutation": test.to_dict()}
    (options.out / f"compare-{name}.json").write_text(json.dumps(page, indent=1))
    return found


# ----------------------------------------------------------------------------- the page


def table(name: str, page: dict[str, Any], seconds: dict[tuple[str, int], float]) -> list[str]:
    """One set as markdown: balanced accuracy by size, then stability and time at the middle."""
    sizes = page["sizes"]
    middle = sizes[len(sizes) // 2]
    p = page["permutation"]["p_value"]
    lines = [f"## {name}: {page['n_samples']} x {page['n_features']}", ""]
    verdict = "signal" if p <= 0.05 else "no signal found, so nothing is claimed"
    lines.append(f"Permutation test: p = {p:.2g} ({verdict}).")
    if name in NOTES:
        lines.append(f"Note: {NOTES[name]}.")
    lines += [
        "",
        "| method | "
        + " | ".join(f"{k} features" for k in sizes)
        + f" | own decision, {middle} | stability, {middle} | seconds, {middle} |",
        "| --- |" + " --- |" * (len(sizes) + 3),
    ]
    rows = {(row["method"], row["size"]): row for row in page["rows"]}
    for method in dict.fromkeys(row["method"] for row in page["rows"]):
        cells = [cell(rows[method, k]) for k in sizes]
        row = rows[method, middle]
        native = f"{row['native']['value']:.3f}" if row["native"] else ""
        stability = row["stability"]["value"] if row["stability"] else None
        cells += [native, "" if stability is None else f"{stability:.2f}"]
        spent = seconds.get((method, middle))
        cells.append("" if spent is None else f"{spent:.2g}" if spent < 10 else f"{spent:.0f}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def cell(row: dict[str, Any]) -> str:
    """A score with its corrected standard error; * on the front, - clearly behind the reference."""
    if row["score"] is None:
        return row["status"]
    text = f"{row['score']['value']:.3f} ± {row['standard_error']:.3f}"
    text = f"**{text}** *" if row["on_front"] else text
    difference = row["difference"]
    if difference and difference["p_adjusted"] <= 0.05:
        text += " -" if difference["value"] < 0 else " +"
    return text


def gaps_to(page: dict[str, Any], rival: str) -> list[float]:
    """How far ours is ahead of another method on one set, at each size that both finished."""
    score = {(r["method"], r["size"]): r["score"]["value"] for r in page["rows"] if r["score"]}
    both = [k for k in page["sizes"] if (OURS, k) in score and (rival, k) in score]
    return [score[OURS, k] - score[rival, k] for k in both]


def goals(pages: dict[str, dict[str, Any]]) -> list[str]:
    """The goals of the comparison beside what was found."""
    lines = ["## Goals, printed and never tuned to", ""]
    near, total = 0, 0
    for name, page in pages.items():
        mine = [r for r in page["rows"] if r["method"] == OURS and r["size"] >= 4]
        hit = [r["near_front"] for r in mine]
        near, total = near + sum(hit), total + len(hit)
        far = [str(r["size"]) for r in mine if not r["near_front"]]
        said = "at every size" if not far else f"not at {', '.join(far)}"
        lines.append(f"- {name}: {OURS} on or within one standard error of the front {said}.")
    lines.append(f"- In all: {near} of {total}. Goal: all.")
    signal = {n: p for n, p in pages.items() if p["permutation"]["p_value"] <= 0.05}
    for rival in sparsegsvp.related.__all__:
        gaps = [gap for page in signal.values() for gap in gaps_to(page, rival)]
        fresh = [gap for n in INDEPENDENT if n in signal for gap in gaps_to(signal[n], rival)]
        if gaps:
            apart = f", {np.mean(fresh):+.3f} on the independent ones" if fresh else ""
            lines.append(
                f"- {OURS} minus {rival}: {np.mean(gaps):+.3f} on average over {len(gaps)} "
                f"sets and sizes with a signal{apart}. Goal: above 0."
            )
    return [*lines, ""]


# How the lines of each kind look: classes of the style sheet of charts; ours lies on top.
KINDS = {
    "methods the paper names": "series fine c1",
    "scikit-learn": "series fine c0",
    "other packages": "series fine c2",
    "random panel": "series dots c7",
    OURS: "series thick",
}


def kind_of(method: str) -> str:
    """The legend's entry for a method: too many to give each a colour of its own."""
    if method in KINDS:
        return method
    if method in sparsegsvp.related.__all__:
        return "methods the paper names"
    return "scikit-learn" if method in default_methods() else "other packages"


def draw(pages: dict[str, dict[str, Any]], path: Path) -> None:
    """Accuracy against panel size, one chart per set, the front's points named."""
    charts = []
    for name, page in pages.items():
        found = accuracy_curves(page)
        chart = accuracy_axes(found, "score")
        for method, curve in sorted(
            found["methods"].items(), key=lambda item: list(KINDS).index(kind_of(item[0]))
        ):
            kind = kind_of(method)
            at = [found["sizes"].index(size) for size in curve["size"]]
            chart.line(at, curve["score"], KINDS[kind], label=kind, tips=[method])
        mark_front(chart, found, label="Pareto front")
        p = page["permutation"]["p_value"]
        said = f"permutation p = {p:.2g}" if p <= 0.05 else f"no signal, p = {p:.2g}"
        chart.title = f"{name} ({said})"
        charts.append(chart)
    rows = [charts[i : i + 2] for i in range(0, len(charts), 2)]
    Sheet(rows, "balanced accuracy against panel size, by set and method").save(path)


def main() -> None:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    methods = default_methods()
    found, missing = ({}, {}) if options.no_peers else peers()
    methods |= found
    if options.only:
        methods = {name: methods[name] for name in options.only}
    pages, text = {}, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.sets:
            comparison = run(name, methods, options)
            pages[name] = json.loads((options.out / f"compare-{name}.json").read_text())
            text += table(name, pages[name], comparison.seconds)
    problems = {
        (row["method"], row["error"]) for p in pages.values() for row in p["rows"] if row["error"]
    }
    left_out = [f"- {name}: {why}" for name, why in sorted({*missing.items(), *problems})]
    figure = options.page.with_suffix(".png")
    page = [
        "# Every method at equal panel size",
        "",
        "Made by",
        "",
        "```",
        f"python benchmarks/compare.py {command(options)}",
        "```",
        "",
        "with the shared data in `SPARSEGSVP_DATA`; `--resume` goes on after a kill.",
        "",
        *(goals(pages) if OURS in methods else []),
        "## How to read it",
        "",
        READING.format(ours=OURS),
        f"![balanced accuracy against panel size]({figure.name})",
        "",
        *text,
        *(["## Left out, failed or stopped", "", *left_out] if left_out else []),
    ]
    options.page.write_text("\n".join(page).rstrip() + "\n")
    print("\n".join(page))
    try:
        draw(pages, figure)
    except ImportError:
        print("no figure: matplotlib is not installed", file=sys.stderr)


def command(options: argparse.Namespace) -> str:
    """The options that decide the numbers, as they are given."""
    words = ["--sets", *options.sets, "--sizes", *map(str, options.sizes)]
    words += ["--splits", str(options.splits), "--repeats", str(options.repeats)]
    if options.time_limit is not None:
        words += ["--time-limit", f"{options.time_limit:g}"]
    words += ["--no-peers"] if options.no_peers else []
    words += ["--only", *options.only] if options.only else []
    return shlex.join(words)


if __name__ == "__main__":
    main()
