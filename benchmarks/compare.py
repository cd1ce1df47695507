"""Every method at equal panel sizes: accuracy and stability, with the Pareto front.

    python benchmarks/compare.py                      the six sets, hours
    python benchmarks/compare.py --sets colon --repeats 1
    python benchmarks/compare.py --resume             continue after a kill, or with more sets
    python benchmarks/compare.py --tiny               made-up data, seconds
    python benchmarks/compare.py --rebuild --page docs/comparison.md

Writes a log and, when it is complete, a JSON file per set into benchmarks/results/ (or --out),
then a page and its figure from these files alone, which is all that --rebuild does.
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
from sparsegsvp.evaluation import default_methods, permutation_test
from sparsegsvp.report.charts import ChartSheet
from sparsegsvp.report.figures import accuracy_curves
from sparsegsvp.report.panel_charts import accuracy_axes, mark_front

SETS = ("ovarian", "leukemia", "colon", "prostate", "gravier", "cns")
SIZES = (2, 4, 8, 16, 32)
OURS = "GSVPSVM"
# Panels smaller than this are left out of what is counted.
SMALLEST_COUNTED = 4
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
instead of the common one, where it has one.

Sets of 60 samples cannot tell differences below 0.05 apart. Defaults of this package were
chosen while looking at these sets (see [panels.md](panels.md)), so none of them is independent
evidence; and where the permutation test finds no signal, nothing is claimed.
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
    parser.add_argument("--rebuild", action="store_true", help="only the page, of finished sets")
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


def run(name: str, methods: dict[str, Any], options: argparse.Namespace) -> None:
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
    page = {
        **found.to_dict(),
        "permutation": signal_test(name, X, y, options),
        "command": command(options),
        "missing": options.missing,
    }
    path = result_file(name, options)
    path.with_suffix(".partial").write_text(json.dumps(page, indent=1))
    path.with_suffix(".partial").replace(path)


def signal_test(
    name: str, X: np.ndarray, y: np.ndarray, options: argparse.Namespace
) -> dict[str, Any]:
    """The permutation test of a set; that of an earlier run, if that is what is resumed."""
    path = result_file(name, options)
    if options.resume and path.exists():
        before: dict[str, Any] = json.loads(path.read_text())["permutation"]
        if before.get("asked") == options.permutations:
            return before
    test = permutation_test(X, y, n_permutations=options.permutations, n_jobs=options.jobs)
    return {**test.to_dict(), "asked": options.permutations}


def result_file(name: str, options: argparse.Namespace) -> Path:
    """What is kept of a set once all its methods are done."""
    return options.out / f"compare-{name}.json"


# ----------------------------------------------------------------------------- the page


def table(name: str, page: dict[str, Any]) -> list[str]:
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
        + f" | own decision, {middle} | stability, {middle} |",
        "| --- |" + " --- |" * (len(sizes) + 2),
    ]
    rows = {(row["method"], row["size"]): row for row in page["rows"]}
    for method in dict.fromkeys(row["method"] for row in page["rows"]):
        cells = [cell(rows[method, k]) for k in sizes]
        row = rows[method, middle]
        native = f"{row['native']['value']:.3f}" if row["native"] else ""
        stability = row["stability"]["value"] if row["stability"] else None
        cells += [native, "" if stability is None else f"{stability:.2f}"]
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


def found(pages: dict[str, dict[str, Any]]) -> list[str]:
    """How near ours comes to the front of each set, and its mean difference to every other."""
    lines = ["## What was found", ""]
    near, total = 0, 0
    for name, page in pages.items():
        mine = [r for r in page["rows"] if r["method"] == OURS and r["size"] >= SMALLEST_COUNTED]
        at = [str(r["size"]) for r in mine if r["near_front"]]
        far = [str(r["size"]) for r in mine if not r["near_front"]]
        near, total = near + len(at), total + len(mine)
        said = f"with {', '.join(at)} features" if at else "at no size"
        said += f"; below it with {', '.join(far)}" if far and at else ""
        lines.append(f"- {name}: {OURS} is on the front or within one standard error of it {said}.")
    lines.append(
        f"- In all: at {near} of {total} sets and sizes, of {SMALLEST_COUNTED} features and more."
    )
    signal = {n: p for n, p in pages.items() if p["permutation"]["p_value"] <= 0.05}
    if not signal:
        return [*lines, ""]
    lines += [
        "",
        f"Balanced accuracy of {OURS} minus that of each other method, on average over the sets "
        "with a signal and all sizes that both finished; positive where "
        f"{OURS} is more accurate:",
        "",
        "| method | difference | sets and sizes |",
        "| --- | --- | --- |",
    ]
    names = dict.fromkeys(row["method"] for page in signal.values() for row in page["rows"])
    for rival in names:
        gaps = [gap for page in signal.values() for gap in gaps_to(page, rival)]
        if gaps and rival != OURS:
            lines.append(f"| {rival} | {np.mean(gaps):+.3f} | {len(gaps)} |")
    lines += [
        "",
        "L1ReGEC, SparsePSVM, GeneShaving, HOGSVDSelector and IRQM are reconstructions, as their "
        "texts were not at hand: what is said of them here is said of these.",
    ]
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
    ChartSheet(rows, "balanced accuracy against panel size, by set and method").save(path)


def write_page(pages: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """The page and its figure, from the files of the sets alone."""
    problems = {
        (row["method"], row["error"])
        for page in pages.values()
        for row in page["rows"]
        if row["error"]
    }
    problems |= {item for page in pages.values() for item in page["missing"].items()}
    left_out = [f"- {name}: {why}" for name, why in sorted(problems)]
    commands = dict.fromkeys(page["command"] for page in pages.values())
    figure = options.page.with_suffix(".png")
    ours = any(row["method"] == OURS for page in pages.values() for row in page["rows"])
    lines = [
        "# Every method at equal panel size",
        "",
        "Made by",
        "",
        "```",
        *(f"python benchmarks/compare.py {given}" for given in commands),
        "```",
        "",
        "with the shared data in `SPARSEGSVP_DATA`; `--resume` goes on after a kill.",
        "",
        *(found(pages) if ours else []),
        "## How to read it",
        "",
        READING.format(ours=OURS),
        f"![balanced accuracy against panel size]({figure.name})",
        "",
        *(line for name, page in pages.items() for line in table(name, page)),
        *(["## Left out, failed or stopped", "", *left_out] if left_out else []),
    ]
    options.page.write_text("\n".join(lines).rstrip() + "\n")
    print("\n".join(lines))
    try:
        draw(pages, figure)
    except ImportError:
        print("no figure: matplotlib is not installed", file=sys.stderr)


def main() -> None:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.rebuild:
        others, options.missing = ({}, {}) if options.no_peers else peers()
        methods = default_methods() | others
        if options.only:
            methods = {name: methods[name] for name in options.only}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in options.sets:
                run(name, methods, options)
    finished = [name for name in options.sets if result_file(name, options).exists()]
    for name in options.sets:
        if name not in finished:
            print(f"{name} is left out: {result_file(name, options)} is not there", file=sys.stderr)
    if not finished:
        raise SystemExit("no set is finished: run without --rebuild first")
    pages = {name: json.loads(result_file(name, options).read_text()) for name in finished}
    write_page(pages, options)


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
