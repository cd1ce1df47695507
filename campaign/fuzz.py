"""Read damaged and forged files, and report whatever is neither a table nor a clear refusal.

    python campaign/fuzz.py --mutants 50000 --seed 1

Files and damage are those of ``tests/io/fuzzer.py``. Mutants run in batches in a process of their
own, whose death (a crash inside a library, a hang) is a finding like any other. Everything
follows from the seed: ``--only NAME --number K --seed S`` makes and keeps a single mutant.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "io"))
BATCH = 500
HANG = 60  # seconds


def batch(folder: Path, name: str, seed: int, first: int, count: int) -> None:
    """Run mutants in this process; print the number before, the outcome after each."""
    import fuzzer

    fuzzer.judge(folder / name)  # what is imported for it is no part of the time a file takes
    for number in range(first, first + count):
        print(f"{number}", end=" ", flush=True)
        faulthandler.dump_traceback_later(HANG, exit=True)
        outcome = fuzzer.run(folder, name, seed, number)
        faulthandler.cancel_dump_traceback_later()
        print(outcome.encode("ascii", "replace").decode().replace("\n", " "), flush=True)
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, flush=True)


def main() -> int:
    """Run the batches and print the report; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--only", default=None, help="a file of the corpus")
    parser.add_argument("--number", type=int, default=None, help="a single mutant")
    parser.add_argument("--json", type=Path, help="write what was counted and found to this file")
    parser.add_argument("--batch", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.batch:
        folder, name, seed, first, count = given.batch
        batch(Path(folder), name, int(seed), int(first), int(count))
        return 0
    import fuzzer

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    names = [given.only] if given.only else list(fuzzer.WRITERS)
    fuzzer.corpus(folder, names)
    if given.number is not None:
        print(fuzzer.run(folder, names[0], given.seed, given.number), "in", folder / "mutant")
        return 0
    start, peak, outcomes = time.monotonic(), 0, {name: Counter() for name in names}
    findings: list[tuple[str, int, str]] = []
    per_file = max(1, given.mutants // len(names))
    for first in range(0, per_file, BATCH):
        for name in names:
            number, last = first, min(first + BATCH, per_file)
            while number < last and (time.monotonic() - start) / 60 < given.minutes:
                words = [str(folder), name, str(given.seed), str(number), str(last - number)]
                done = subprocess.run(
                    [sys.executable, __file__, "--batch", *words], capture_output=True, text=True
                )
                for line in done.stdout.splitlines():
                    which, _, outcome = line.partition(" ")
                    if which == "peak":
                        peak = max(peak, int(outcome))
                        continue
                    number = int(which) + 1
                    died = done.stderr.strip().splitlines()
                    outcome = outcome or f"the process died: {' '.join(died[:6])}"
                    known = outcome in ("read", "refused")
                    outcomes[name][outcome if known else "FOUND"] += 1
                    if not known:
                        findings.append((name, number - 1, outcome))
                        print(f"{name} {number - 1}: {outcome[:300]}", flush=True)
                if not done.stdout.strip():
                    raise SystemExit(done.stderr)
    total = sum(sum(found.values()) for found in outcomes.values())
    seconds = time.monotonic() - start
    print(f"\nseed {given.seed}: {total} mutants in {seconds:.0f} s, at most {peak} MB\n")
    print("| file | mutants | read | refused | found |\n| --- | ---: | ---: | ---: | ---: |")
    for name, found in outcomes.items():
        counts = (sum(found.values()), found["read"], found["refused"], found["FOUND"])
        print(f"| {name} | {' | '.join(map(str, counts))} |")
    if given.json:
        read, refused = (
            sum(found[what] for found in outcomes.values()) for what in ("read", "refused")
        )
        numbers = {"formats": len(names), "mutants": total, "read": read, "refused": refused}
        numbers["largest process in MB"] = peak
        said = [f"{name}, number {number}: {outcome[:300]}" for name, number, outcome in findings]
        given.json.write_text(json.dumps({"numbers": numbers, "findings": said}) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
