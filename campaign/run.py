"""The campaign: the long form of what the tests try, and one report of it.

    python campaign/run.py --seed 1            # all of it; a run that was stopped goes on
    python campaign/run.py --only mutation     # one stage, anew
    python campaign/run.py --only --page docs/tested.md   # none: put the last numbers into a page

A stage is a command that writes what it counted and what it found as JSON. Finished stages of the
same commit and seed are kept in the folder of results and not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Kernels of OpenBLAS that run on any x86-64 with AVX-512; the arithmetic of four generations.
KERNELS = ("Prescott", "Nehalem", "Haswell", "SkylakeX")
MARKS = ("<!-- campaign -->", "<!-- end of campaign -->")


@dataclass(frozen=True)
class Stage:
    """A part of the campaign: a command to which ``--json FILE`` is added."""

    name: str
    title: str
    words: tuple[str, ...]
    minutes: float
    """About how long it takes on two cores."""
    flag: str = "--json"
    environment: tuple[tuple[str, str], ...] = ()


def stages(seed: int) -> Iterator[Stage]:
    """Yield the stages in the order in which they run, the quick ones first."""
    python = sys.executable
    trial = (python, "-m", "pytest", "-q", "--campaign", "--campaign-seed", str(seed))
    folder = "tests/campaign"
    yield Stage(
        "estimators", "Estimators: any order of calls, laws, extreme values",
        (*trial, *(f"{folder}/test_{name}.py" for name in ("stateful", "laws", "extremes"))),
        15, "--campaign-json",
    )  # fmt: skip
    for kernel in KERNELS:
        yield Stage(
            f"kernel-{kernel}", f"The mathematics with the arithmetic of {kernel}",
            (python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile",
             "-k", "not (benchmark or dask or processes or test_checks)",
             "tests/linalg", "tests/solvers", "tests/estimators", "tests/cli/test_predict.py",
             f"{folder}/test_laws.py"),
            2, "--campaign-json",
            (("OPENBLAS_CORETYPE", kernel), ("SPARSEGSVP_DATA", "")),
        )  # fmt: skip
    yield Stage(
        "names", "Hostile names, labels, ids and paths",
        (*trial, f"{folder}/test_names.py"), 3, "--campaign-json",
    )  # fmt: skip
    yield Stage(
        "faults", "Faults in every write, and random kills",
        (*trial, f"{folder}/test_faults.py", f"{folder}/test_kills.py"), 30, "--campaign-json",
    )  # fmt: skip
    yield Stage(
        "files", "Damaged and forged files",
        (python, "tests/io/read_right.py", "--cases", "50000", "--seed", str(seed)), 30,
    )  # fmt: skip
    yield Stage(
        "load", "Large tables: time and memory",
        (*trial, f"{folder}/test_load.py"), 15, "--campaign-json",
    )  # fmt: skip
    yield Stage("coverage", "Branches that the tests take", (python, "campaign/branches.py"), 15)
    yield Stage(
        "mutation", "Changed code that the tests notice", (python, "campaign/mutation.py"), 30
    )
    yield Stage(
        "versions", "Oldest and newest dependencies, no extras, an empty environment",
        (python, "campaign/versions.py"), 30,
    )  # fmt: skip


def run(stage: Stage, folder: Path) -> dict[str, Any]:
    """Run a stage; return what it wrote, and how long it took."""
    found = folder / f"{stage.name}.found.json"
    found.unlink(missing_ok=True)
    start = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **dict(stage.environment)}
    with (folder / f"{stage.name}.log").open("w") as log:
        done = subprocess.run(
            [*stage.words, stage.flag, str(found)],
            cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    result: dict[str, Any] = {"numbers": {}, "findings": []}
    if found.exists():
        result |= json.loads(found.read_text())
        found.unlink()
    if done.returncode and not result["findings"]:
        result["findings"] = [f"ended with exit code {done.returncode}; see {stage.name}.log"]
    return {**result, "minutes": round((time.monotonic() - start) / 60, 1)}


def report(results: dict[str, dict[str, Any]], seed: int, notes: bool = True) -> str:
    """Return the report: what was tried, what was found, of which commit; ``notes`` beside it."""
    lines = ["| what | tried | found | minutes | commit |", "| --- | --- | --- | ---: | --- |"]
    said: list[str] = []
    for stage in stages(seed):
        if stage.name not in results:
            lines.append(f"| {stage.title} | not run | | | |")
            continue
        result = results[stage.name]
        numbers = "; ".join(f"{name}: {_number(n)}" for name, n in result["numbers"].items())
        found = len(result["findings"]) or "nothing"
        ran = f"{result['minutes']} | {result['about']['commit']}"
        lines.append(f"| {stage.title} | {numbers} | {found} | {ran} |")
        said += [f"- {stage.name}: {text}" for text in result["findings"]]
        if notes:
            said += [f"- {stage.name}: {text}" for text in result.get("notes", ())]
    versions = {result["about"]["versions"] for result in results.values()}
    lines += ["", f"Seed {seed}; {'; '.join(sorted(versions))}."]
    return "\n".join([*lines, *(["", *said] if said else [])]) + "\n"


def _number(value: Any) -> str:
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def put_into(page: Path, text: str) -> None:
    """Replace what stands between the marks of a page."""
    before, _, rest = page.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    page.write_text(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{after}")


def about(seed: int) -> dict[str, Any]:
    """Return what a run's numbers belong to."""
    from sparsegsvp._versions import versions

    words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    said = ", ".join(f"{name} {version}" for name, version in versions().items())
    return {"commit": commit or "unknown", "seed": seed, "versions": said}


def main() -> int:
    """Run what is not yet there, write the report; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=None, metavar="STAGE")
    parser.add_argument("--out", type=Path, default=ROOT / "artifacts" / "campaign")
    parser.add_argument("--page", type=Path, help="a page whose numbers shall be these")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    this, chosen = about(given.seed), list(stages(given.seed))
    unknown = set(given.only or ()) - {stage.name for stage in chosen}
    if unknown:
        parser.error(f"no such stage: {', '.join(sorted(unknown))}; there are "
                     f"{', '.join(stage.name for stage in chosen)}")  # fmt: skip
    kept = {stage.name: given.out / f"{stage.name}.json" for stage in chosen}
    results = {name: json.loads(path.read_text()) for name, path in kept.items() if path.exists()}
    results = {n: found for n, found in results.items() if found["about"]["seed"] == given.seed}
    wanted = [
        stage for stage in chosen
        if (stage.name in given.only if given.only is not None
            else results.get(stage.name, {}).get("about") != this)
    ]  # fmt: skip
    left = sum(stage.minutes for stage in wanted)
    for k, stage in enumerate(wanted):
        print(
            f"{k + 1} of {len(wanted)}: {stage.title}; about {left:.0f} minutes to go", flush=True
        )
        results[stage.name] = {**run(stage, given.out), "about": this}
        kept[stage.name].write_text(json.dumps(results[stage.name], indent=1) + "\n")
        left -= stage.minutes
    text = report(results, given.seed)
    (given.out / "report.md").write_text(text)
    print(f"\n{text}\n{given.out / 'report.md'}")
    if given.page:
        put_into(given.page, report(results, given.seed, notes=False))
    return 1 if any(result["findings"] for result in results.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
