"""Branches that the tests take, and those that they miss.

    python campaign/branches.py                # run the tests, then count
    python campaign/branches.py --again        # count what the last run left

The tests run with coverage in every process: those of pytest, the commands that tests start, and
the workers of joblib. Each package must have 95% of its branches taken; the rest are listed.
What no run here can reach is marked in the source, with the reason.

Folders run beside each other, each in a pytest of its own, and not by xdist: it ends workers that
take more than ten seconds to leave, and what such a worker had counted is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("solvers", "estimators", "evaluation", "io")
# The longest first, so that no process waits for another at the end.
TESTS = tuple(
    f"tests/{name}" for name in ("evaluation", "cli", "io", "estimators", "workflow", "solvers")
)
# Doctests are tests too; the page in a browser is tested by itself.
DOCTESTS = tuple(f"src/sparsegsvp/{name}" for name in PACKAGES)
LEFT_OUT = (
    "--ignore=tests/cli/test_app.py",
    "--ignore=tests/evaluation/test_benchmark.py",
    # its bound on memory is of a process that nobody watches
    "--deselect=tests/io/test_text.py::test_a_wide_table_costs_little_more_than_its_matrix",
)
LEAST = 0.95


def coverage(*words: str) -> int:
    """Run a command of coverage on the project."""
    return subprocess.run([sys.executable, "-m", "coverage", *words], cwd=ROOT).returncode


def measure(workers: int, tests: list[str]) -> int:
    """Run the tests with every process counted; return pytest's first exit code that is not 0."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    coverage("erase")
    # a traced test takes twice as long, and so may everything that waits for it
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "900", *LEFT_OUT)
    with ThreadPoolExecutor(workers) as pool:
        codes = list(pool.map(lambda folder: coverage("run", *words, folder), tests))
    coverage("combine", "-q")
    return next(filter(None, codes), 0)


def counted() -> dict[str, Any]:
    """Return what coverage knows of every file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        coverage("json", "-q", "-o", str(path))
        return json.loads(path.read_text())["files"]


def by_package(files: dict[str, Any]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Sort the files into the packages that are promised."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for name, file in sorted(files.items()):
        parts = Path(name).parts
        package = parts[parts.index("sparsegsvp") + 1]
        if package in PACKAGES:
            found[package].append((name, file))
    return found


def share(files: list[tuple[str, dict[str, Any]]]) -> float:
    """Return the part of the branches of some files that was taken."""
    taken = sum(file["summary"]["covered_branches"] for _, file in files)
    return taken / max(sum(file["summary"]["num_branches"] for _, file in files), 1)


def main() -> int:
    """Run the tests and count; 1 if a package has too few branches taken, or a test failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--again", action="store_true", help="count what the last run left")
    parser.add_argument("--workers", type=int, default=2, help="folders at a time (2)")
    parser.add_argument("--json", type=Path, help="write what was counted and found to this file")
    parser.add_argument("tests", nargs="*", default=[*TESTS, *DOCTESTS])
    given = parser.parse_args()
    failed = 0 if given.again else measure(given.workers, given.tests)
    findings = [f"the tests ended with exit code {failed}"] if failed else []
    numbers = {}
    for package, files in by_package(counted()).items():
        part = share(files)
        numbers[f"{package}, branches %"] = round(100 * part, 1)
        print(f"\n{package}: {part:.1%} of the branches taken")
        for name, file in files:
            missed = [f"{a}->{'exit' if b < 0 else b}" for a, b in file["missing_branches"]]
            if missed:
                print(f"  {name}: {', '.join(missed)}")
        if part < LEAST:
            findings.append(f"{package}: {part:.1%} of the branches taken, {LEAST:.0%} promised")
    print("\n" + "\n".join(findings or ["Every package has the branches taken that are promised."]))
    if given.json:
        found = {"numbers": numbers, "findings": findings, "notes": []}
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
