"""A worked example of another cohort: leukemia, a third of the samples held out.

    python benchmarks/cohort.py           a few minutes; writes docs/leukemia-cohort.html
    python benchmarks/cohort.py --fast    no repeats, permutations or half samples, no file

A panel is selected on two thirds of Golub's samples (AML and ALL, the classes kept even) and
validated on the last third, as if that were another hospital's, at a prevalence of AML of 20%.
The held-out third is of the same source, so no shift is to be expected: a true cohort is harder.
The data are read from the folder that SPARSEGSVP_DATA names.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from sparsegsvp import select_panel
from sparsegsvp.io import make_table

PAGE = Path(__file__).parents[1] / "docs" / "leukemia-cohort.html"


def parts(path: Path, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two thirds to select on, one third as the cohort."""
    data = np.load(path)
    frame = pd.DataFrame(data["X"], columns=data["feature_names"])
    frame["leukemia"] = data["class_names"][data["y"]]
    train, test = train_test_split(
        frame, test_size=1 / 3, stratify=frame["leukemia"], random_state=seed
    )
    return train, test


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    folder = os.environ.get("SPARSEGSVP_DATA")
    if folder is None:
        raise SystemExit("SPARSEGSVP_DATA must name the folder with leukemia_golub.npz")
    train, test = parts(Path(folder) / "leukemia_golub.npz")
    found = select_panel(
        train,
        target="leukemia",
        positive="AML",
        test=make_table(test, target="leukemia", source="the third that was held out"),
        log2=True,
        floor=16.0,
        prevalence=0.2,
        fast=options.fast,
        n_jobs=options.jobs,
        source="two thirds of Golub's leukemia samples",
    )
    print(found)
    print(found.validation)
    if not options.fast:
        found.to_html(PAGE)
        print("written:", PAGE)


if __name__ == "__main__":
    main()
