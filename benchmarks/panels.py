"""Which panels are better: of given sizes, and chosen by the rules of the tuned search.

    python benchmarks/panels.py                       both parts, 20 splits, hours
    python benchmarks/panels.py --part sizes --sets colon weak --splits 5
    python benchmarks/panels.py --resume              continue after a kill, or with more splits
    python benchmarks/panels.py --rebuild --page docs/panels.md
    python benchmarks/panels.py --tiny                made-up data, seconds

Random stratified 70/30 splits of the shared sets, and simulations drawn anew for each split with
600 samples to be judged on. Everything is fitted on the first part. One thread.
Writes benchmarks/results/panels.json after every split; the page is made of that file alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import _rules
import _sizes
from _common import RESULTS, SIMULATIONS, Split, make_split, random_split, save, simulate
from sparsegsvp.datasets import make_planted

SETS = ("colon", "leukemia", "prostate", "gravier", "cns", "ovarian", "breast", *SIMULATIONS)
TINY_SETS = ("planted", "weak")
PARTS = ("sizes", "rules")

INTRODUCTION = """\
# Which panels are better

Two questions are measured here. *Which k features*, when their number is given, as with
`GSVPSVM(n_features=k)` or `sparsegsvp select --n-features k`? And *how many*, when it is left to
cross-validation, as with `GSVPSVMCV()`? The defaults of this package were chosen by measurements
like these on these very sets, so the tables are no independent evidence for them.

{sets}

Everything is fitted on 70% of the samples, drawn at random with the classes in proportion, and
judged on the rest; this is repeated {splits} times. Simulated sets are drawn anew each time: 84
samples of 1,000 features to learn from, 600 to be judged on. All methods see the same splits.
After ± stands the standard error of the mean difference over these splits. It tells how well the
mean over splits of these sets is known. Splits of one set overlap, so on new samples differences
vary more than it says.

Made by

```
python benchmarks/panels.py
```

with the shared data in `SPARSEGSVP_DATA`.
"""

SIZES_TEXT = """\
## Panels of a given size

Each method gives exactly k features. Two judges, the same for all methods, learn from these
features alone and predict the other samples: the calibrated planes of this package
(`tau = 1`, `pool = 0.5`), and a logistic regression. The first row has the balanced accuracy of
`GSVPSVM(n_features=k)`; the others have their difference to it, positive where they are more
accurate. *Stability* is Nogueira's index of the panels of all splits: 1 if they are the same, 0 if
they overlap as random panels do. "Behind by" stands where l1 logistic regression, celer, the F test
or mRMR is ahead by more than {behind} on average, or where the F test's panels are more stable by
more than {less_stable}.

The next three rows are what the default was chosen from: both planes' features instead of one
plane's (`tau = max(3, k)`, `pool = 0.5`); a `tau` that also grows as samples get fewer
(`max(3, k) * max(1, 100 / n)`); and the panels of version 0.1.
"""

RULES_TEXT = """\
## Panels chosen by cross-validation

The search scores many panels by the log loss of samples held out in {folds} folds, then picks one.
Taking the *best* leads to large panels: many points are about as good, and the best of them is
often one of the larger. The other rules take the smallest panel that is not clearly worse:

- *within a standard error*: its mean loss is at most one standard error of the best point's fold
  losses above it;
- *paired over samples, c*: on the same held-out samples its losses exceed those of the best point
  by at most c standard errors of that difference;
- *paired over folds, c*: likewise, with one difference per fold;
- *or 2%*: also if it is worse by at most that share of what the best point gains over guessing,
  which counts where there are so many samples that small differences can be told.

The points of a search are falling penalties, or rising sizes of the panel; `tau` and `pool` are
chosen along with them. The first row has the balanced accuracy and log loss of the best point of
the narrowest grid; the other rows have their differences to it (a log loss below zero is better).
The last column is the mean number of features. All rules choose from the same scores of the same
folds.
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--resume", action="store_true", help="keep the splits that are there")
    parser.add_argument("--rebuild", action="store_true", help="only the page, of what is there")
    parser.add_argument("--page", type=Path, help="where the page goes; by default it is printed")
    parser.add_argument("--tiny", action="store_true", help="made-up data, for the tests")
    options = parser.parse_args()
    options.file = "panels-tiny" if options.tiny else "panels"
    if options.tiny:
        options.sets, options.splits = list(TINY_SETS), 2
    return options


def make(name: str, seed: int, tiny: bool) -> Split:
    """A split of a set; of small made-up data for the tests."""
    if name == "planted":
        X, y = make_planted(n_samples=48, n_features=40, random_state=0, return_X_y=True)
        return random_split(X, y, seed)
    return simulate(name, seed, 30, 40, 40) if tiny else make_split(name, seed)


def stored(file: str) -> dict[str, Any]:
    """What earlier runs left."""
    path = RESULTS / f"{file}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def measure(part: str, options: argparse.Namespace) -> None:
    """Run one part on all sets, and save after every split."""
    if part == "sizes":
        sizes = (1, 2, 4) if options.tiny else _sizes.SIZES
        every = _sizes.methods(packages=not options.tiny)
        settings = {"sizes": list(sizes), "methods": list(every)}
    else:
        search = _rules.TINY if options.tiny else _rules.FULL
        settings = {"grids": _rules.GRIDS, "rhos": search.rhos.tolist(), "sizes": search.sizes}
    settings = json.loads(json.dumps(settings))
    for name in options.sets:
        key = f"{part}/{name}"
        splits: list[Any] = []
        before = stored(options.file).get(key)
        if options.resume and before is not None:
            if before["settings"] != settings:
                raise SystemExit(
                    f"{key} in {RESULTS / options.file}.json was run with other settings: run it "
                    "again without --resume"
                )
            splits = before["splits"]
        for seed in range(len(splits), options.splits):
            start = time.process_time()
            split = make(name, seed, options.tiny)
            done = _sizes.run(split, sizes, every) if part == "sizes" else _rules.run(split, search)
            splits.append(done)
            n_features = split.X.shape[1]
            save(
                options.file,
                {key: {"settings": settings, "n_features": n_features, "splits": splits}},
            )
            spent = time.process_time() - start
            print(f"{key}: split {seed + 1}/{options.splits}, {spent:.1f} s", file=sys.stderr)


def write_page(options: argparse.Namespace) -> None:
    """The page, of everything in the file of results."""
    found = stored(options.file)
    order = TINY_SETS if options.tiny else SETS
    parts = {
        part: {name: found[f"{part}/{name}"] for name in order if f"{part}/{name}" in found}
        for part in PARTS
    }
    if not any(parts.values()):
        raise SystemExit("there are no results yet: run without --rebuild first")
    counts = sorted({len(x["splits"]) for results in parts.values() for x in results.values()})
    simulated = [name for name in order if name in SIMULATIONS]
    said = [f"- *{name}*: {SIMULATIONS[name]}" for name in simulated]
    sets = ["The simulated sets:", "", *said]
    text = INTRODUCTION.format(
        sets="\n".join(sets), splits=" to ".join(map(str, {counts[0]: 0, counts[-1]: 0}))
    )
    lines = [text]
    if parts["sizes"]:
        text = SIZES_TEXT.format(behind=_sizes.BEHIND, less_stable=_sizes.LESS_STABLE)
        lines += [text, *_sizes.page(parts["sizes"])]
    if parts["rules"]:
        lines += [RULES_TEXT.format(folds=_rules.N_FOLDS), *_rules.page(parts["rules"])]
    page = "\n".join(lines).rstrip() + "\n"
    if options.page is not None:
        options.page.write_text(page)
    print(page)


def main() -> None:
    options = arguments()
    warnings.filterwarnings("ignore")
    if not options.rebuild:
        with threadpool_limits(1):
            for part in options.part:
                measure(part, options)
    write_page(options)
    print(f"written to {RESULTS / options.file}.json")


if __name__ == "__main__":
    main()
